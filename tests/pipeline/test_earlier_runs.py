"""What a run knows of the cluster's log from earlier runs, also past those that have not read it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deltalake

from jobs.run import earlier_runs
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from schemas.gold import RUNS
from transforms.reconcile.judge.earlier import LogKnown

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
READ = LogKnown("id", 99, 120, 1_795_000_000_000, ((1, 0), (3, 50)))
OF_ZOOKEEPER = LogKnown("id")


def row(number: int, known: LogKnown, **more: Any) -> dict[str, Any]:
    at = NOON + timedelta(hours=number)
    said = {"run_id": f"r{number}", "sequence": number, "verdict": "clean", "report": "{}", "by_class": {}}
    times = {"started_at": at, "finished_at": at + timedelta(minutes=1)}
    return dict.fromkeys(RUNS.column_names) | {"cluster": "c", "goes_on": True} | said | times | known.row() | more


def previous(root: Path, *rows: dict[str, Any]) -> list[Any]:
    deltalake.write_deltalake(str(root / "gold" / "runs"), arrow_rows(RUNS, rows))
    run: Any = SimpleNamespace(
        previous=None, clusters={"c": None}, run_id="now", warehouse=Folder(str(root)), sequences={}
    )
    return earlier_runs.previous_runs(run)["c"]


def test_a_run_that_read_zookeeper_alone_hides_no_log(tmp_path: Path) -> None:
    """Or a backup that is restored meanwhile is not noticed (RUN-02, RUN-03), nor a log that stands still (RUN-04)."""
    before = previous(tmp_path, row(1, READ), row(2, READ), row(3, OF_ZOOKEEPER))
    earlier = earlier_runs.earlier_run(before)
    assert earlier is not None
    assert (earlier.run_id, earlier.log) == ("r2", READ)
    assert earlier.unmoved_since == int((NOON + timedelta(hours=1)).timestamp() * 1000)
    assert earlier_runs.log_end_before(before) == 120
    assert earlier_runs.run_before(before)["run_id"] == "r3", "its rows decide what is new"


def test_a_cluster_id_that_zookeeper_alone_has_shown_is_known(tmp_path: Path) -> None:
    nameless = LogKnown(None, *list(vars(READ).values())[1:])
    earlier = earlier_runs.earlier_run(previous(tmp_path, row(1, nameless), row(2, OF_ZOOKEEPER)))
    assert earlier is not None
    assert earlier.log == READ


def test_a_cluster_id_that_the_last_run_did_not_know_is_that_of_the_run_before(tmp_path: Path) -> None:
    """Copies without meta.properties, once: the next run must not take another cluster's log for this one's (RUN-01)."""
    nameless = LogKnown(None, 150, 160, *list(vars(READ).values())[3:])
    earlier = earlier_runs.earlier_run(previous(tmp_path, row(1, READ), row(2, nameless)))
    assert earlier is not None
    assert (earlier.run_id, earlier.log.cluster_id, earlier.log.log_end_offset) == ("r2", "id", 160)


def test_a_cluster_without_a_log_is_held_against_its_own_tree(tmp_path: Path) -> None:
    earlier = earlier_runs.earlier_run(previous(tmp_path, row(1, OF_ZOOKEEPER), row(2, OF_ZOOKEEPER)))
    assert earlier is not None
    assert (earlier.run_id, earlier.log) == ("r2", OF_ZOOKEEPER)
