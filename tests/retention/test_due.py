"""When a run maintains the tables, and whether another maintenance is running, by what gold `maintenance` has of earlier times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pytest

from jobs.evidence.removed import BEGUN, FILES, ROWS
from jobs.settings import Settings
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from jobs.steps.maintenance.alone import _another_since
from jobs.steps.maintenance.clock import why_doubted
from jobs.steps.maintenance.due import due
from schemas.gold import MAINTENANCE, RUNS

NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)


def test_an_end_that_a_clock_ahead_has_dated_in_the_future_keeps_no_maintenance_back(tmp_path: Path) -> None:
    ahead, done = NOW + timedelta(days=900), NOW - timedelta(hours=5)
    ends = [("c", ROWS, ahead), (None, FILES, ahead), ("c", ROWS, done), (None, FILES, done)]
    rows = [{"cluster": name, "run_id": None, "done_at": at, "what": what} for name, what, at in ends]
    deltalake.write_deltalake(str(tmp_path / "gold" / "maintenance"), arrow_rows(MAINTENANCE, rows))
    tables: Any = Folder(str(tmp_path))
    content = {"cluster": "c", "warehouse": "w", "kraft": {"folders": ["k"]}, "maintain": {"every_hours": 24}}
    daily = {"c": Settings.model_validate(content)}
    assert due(tables, daily, NOW) == ([], False), "it was done five hours ago"
    assert due(tables, daily, NOW + timedelta(hours=19)) == (["c"], True)


@pytest.mark.parametrize(
    ("days", "ended", "said"),
    [
        ([2, 1, 0], [], ""),
        ([181, 91, 0], [], ""),
        # The clock has leapt before the newest run, or before some of them.
        ([1101, 1100, 0], [], "from 2023-11-24 to 2026-11-28, 1,100 days"),
        ([1103, 1101, 1, 0], [], "from 2023-11-23 to 2026-11-27, 1,100 days"),
        # Nothing was audited since, and the clock is now asked.
        ([1101, 1100], [1099], "from 2023-11-25 to 2026-11-28, 1,099 days"),
        # Somebody has said that it is right.
        ([1101, 1100, 2, 0], [1], ""),
        # It was put right: what it dated in the future is no time that has passed.
        ([-1100, 1, 0], [-1099], ""),
        ([], [], ""),
    ],
)
def test_a_clock_that_has_leapt_removes_nothing(tmp_path: Path, days: list[int], ended: list[int], said: str) -> None:
    """With a clock three years ahead, all but the newest runs' evidence was removed after the next run."""
    runs = [
        {"cluster": "c", "run_id": str(at), "started_at": NOW - timedelta(days=at), "verdict": "clean"} for at in days
    ]
    ends = [{"cluster": "c", "run_id": None, "done_at": NOW - timedelta(days=at), "what": ROWS} for at in ended]
    for table, rows in ((RUNS, runs), (MAINTENANCE, ends)):
        deltalake.write_deltalake(str(tmp_path / "gold" / table.name), arrow_rows(table, rows))
    tables: Any = Folder(str(tmp_path))
    told = why_doubted(tables, NOW)
    assert said in told
    assert bool(told) is bool(said)


@pytest.mark.parametrize(("hours", "runs"), [(-1, True), (-7, False), (1, True), (900, False)])
def test_another_one_is_running_that_has_begun_lately_by_any_clock(tmp_path: Path, hours: int, runs: bool) -> None:
    """One that was killed, on a machine whose clock was ahead, would otherwise keep all others back until then."""
    began = datetime.now(UTC) + timedelta(hours=hours)
    rows = [{"cluster": None, "run_id": "other", "done_at": began, "what": BEGUN}]
    deltalake.write_deltalake(str(tmp_path / "gold" / "maintenance"), arrow_rows(MAINTENANCE, rows))
    tables: Any = Folder(str(tmp_path))
    assert (_another_since(tables, "mine") is not None) is runs
