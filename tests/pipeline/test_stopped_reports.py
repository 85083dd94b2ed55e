"""A run that takes too long is stopped while it writes reports: its mails say what was found, and that the report is not there."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jobs import pipeline
from jobs.exit import CRASH
from jobs.pipeline import ClusterResult, OutputOptions
from jobs.run.run import Failure
from jobs.runtime.stopping import Stopped
from tests.report.samples import defective, healthy

WHY = "stopped after 7 minutes, as --timeout says"


def test_what_was_found_is_mailed_without_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mail was one without evidence, and the next run took it for the report."""
    done, halfway = replace(healthy(), cluster="done"), replace(defective(), cluster="halfway")
    paths = SimpleNamespace(html="/reports/done/report.html")
    clusters = {
        "done": SimpleNamespace(failure=None),
        "halfway": SimpleNamespace(failure=None),
        "unread": SimpleNamespace(failure=Failure("nothing answers", CRASH)),
    }
    run: Any = SimpleNamespace(spark=None, clusters=clusters, recorded={"done", "halfway", "unread"})
    begun: Any = SimpleNamespace(end=lambda: None)
    mailed: list[Any] = []
    monkeypatch.setattr(pipeline, "stop_queries", lambda _spark: None)
    monkeypatch.setattr(pipeline.failures, "write_failures", lambda _run: None)
    monkeypatch.setattr(pipeline, "publish", lambda *known: mailed.append(known))

    def stopped(_run: Any, _out: Any, _progress: Any, found: dict[str, ClusterResult]) -> dict[str, ClusterResult]:
        found |= {"done": ClusterResult(done, paths), "halfway": ClusterResult(halfway)}  # type: ignore[arg-type]
        raise Stopped(WHY, CRASH, timed_out=True)

    monkeypatch.setattr(pipeline, "run_all", stopped)
    with pytest.raises(Stopped):
        pipeline._audit(run, None, OutputOptions(quiet=True), begun)
    [(_, reports, written, _, unwritten)] = mailed
    assert reports == {"done": done, "halfway": halfway}
    assert written == {"done": "/reports/done/report.html"}
    assert unwritten == {"halfway": WHY}
