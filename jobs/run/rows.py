"""Rows that the driver has made, added to a table with the run's id."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from jobs.run.run import Run
from jobs.runtime.stopping import not_halfway
from jobs.sinks.folder_table import arrow_rows
from schemas.gold import RUNS
from schemas.table import Table

Row = dict[str, Any]


def append_rows(run: Run, table: Table, rows: Sequence[Row], series: str = "") -> None:
    """Add rows, which have all columns but `run_id` (`Run.append`)."""
    run.append(table, arrow_rows(table, [{"run_id": run.run_id, **row} for row in rows]), series=series)


def record(run: Run, clusters: Iterable[str], rows: Sequence[Row], series: str = "") -> None:
    """Store the rows of these clusters in gold `runs`."""
    # A stop after the commit that comes before the note would store a second, failed row of the run.
    with not_halfway():
        append_rows(run, RUNS, rows, series)
        run.recorded |= {*clusters}
