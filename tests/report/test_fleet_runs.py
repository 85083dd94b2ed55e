"""Which runs the fleet's page and mails know: the newest, and however many failed since, the last ones that finished."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake
import pytest

from jobs.evidence.fleet_runs import fleet_runs
from jobs.run.run import Failure
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from jobs.steps import publishing
from schemas.gold import RUNS
from tests.report.fleets import NOW
from tests.report.samples import defective
from transforms.report.fleet_model import fleet, of_this_run
from transforms.report.fleet_text import fleet_objects
from transforms.report.mail_policy import LastMail, changes


def row(cluster: str, number: int, verdict: str) -> Mapping[str, Any]:
    ended = NOW - timedelta(hours=100 - number)
    known = {"cluster": cluster, "run_id": f"r{number}", "started_at": ended, "finished_at": ended, "verdict": verdict}
    more = (
        {"failure": "there is no folder /nowhere", "gates": {}} if verdict == "failed" else {"gates": {"start": "go"}}
    )
    return dict.fromkeys(RUNS.column_names) | known | more | {"sequence": number, "phase": "waiting", "label": "x"}


def stored(root: Path, verdicts: Mapping[str, list[str]]) -> Folder:
    """A warehouse with these runs of each cluster, the oldest first."""
    rows = [row(name, number, each) for name, mine in verdicts.items() for number, each in enumerate(mine, 1)]
    deltalake.write_deltalake(str(root / "gold" / "runs"), arrow_rows(RUNS, rows))
    return Folder(str(root))


def test_after_many_failures_the_last_finished_run_is_known(tmp_path: Path) -> None:
    tables = stored(tmp_path, {"a": ["clean", "errors", *["failed"] * 45], "b": ["clean"] * 50, "c": ["failed"] * 40})
    told = {each["cluster"]: each for each in fleet_objects(fleet(fleet_runs(tables), NOW, 48))}
    assert (told["a"]["judged_run_id"], told["a"]["failures_since"], told["a"]["gates"]) == ("r2", 45, {"start": "go"})
    assert told["b"]["judged_run_id"] == "r50"
    assert "judged_run_id" not in told["c"], "no run of it has finished"
    assert len([run for run in fleet_runs(tables) if run.cluster == "b"]) == 30


@pytest.mark.parametrize("failures", [3, 30, 45])
def test_a_run_that_works_again_is_not_told_as_the_first_one(tmp_path: Path, failures: int) -> None:
    runs = fleet_runs(stored(tmp_path, {"a": ["errors", *["failed"] * failures, "clean"]}))
    *before, now = sorted(runs, key=lambda run: run.order)
    told = changes(now, before, LastMail("r2", before[1].finished_at))
    assert told[0] == "The audit works again."
    assert "This is the first finished run." not in told


@pytest.mark.parametrize("failure", [None, Failure("there is no folder /nowhere", 2)])
def test_a_run_that_could_not_be_stored_is_its_clusters_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Failure | None
) -> None:
    """Its row would have had a number; without one the page would show the run before it, and call the cluster clean."""
    run: Any = SimpleNamespace(
        clusters={"a": SimpleNamespace(failure=failure)},
        run_id="r3",
        started_at=NOW,
        warehouse=stored(tmp_path, {"a": ["errors", "clean"]}),
        mails_looked_up=True,
        messages_looked_up=True,
        newest_mails={},
        newest_messages={},
    )
    monkeypatch.setattr(publishing.verified, "newest_in", lambda _: {})
    known = publishing._known(run, {"a": defective()})
    [cluster] = fleet(known.runs, datetime.now(UTC), 48).clusters
    assert (cluster.newest.run_id, cluster.group) == ("r3", "errors" if failure is None else "failed")
    now, before = of_this_run(known.runs, "a", NOW)
    assert (now, [each.run_id for each in before]) == (cluster.newest, ["r1", "r2"])
