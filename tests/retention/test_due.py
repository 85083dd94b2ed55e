"""When a run maintains the tables, by what gold `maintenance` has of earlier times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake

from jobs.evidence.removed import FILES, ROWS
from jobs.settings import Settings
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
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
