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
from jobs.steps.maintenance.due import due
from schemas.gold import MAINTENANCE

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


@pytest.mark.parametrize(("hours", "runs"), [(-1, True), (-7, False), (1, True), (900, False)])
def test_another_one_is_running_that_has_begun_lately_by_any_clock(tmp_path: Path, hours: int, runs: bool) -> None:
    """One that was killed, on a machine whose clock was ahead, would otherwise keep all others back until then."""
    began = datetime.now(UTC) + timedelta(hours=hours)
    rows = [{"cluster": None, "run_id": "other", "done_at": began, "what": BEGUN}]
    deltalake.write_deltalake(str(tmp_path / "gold" / "maintenance"), arrow_rows(MAINTENANCE, rows))
    tables: Any = Folder(str(tmp_path))
    assert (_another_since(tables, "mine") is not None) is runs
