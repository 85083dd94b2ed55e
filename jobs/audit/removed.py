"""What maintenance has removed of earlier runs, so that nobody takes missing rows for nothing found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import polars as pl

from jobs.sinks.reader import Reader
from jobs.steps.fleet import from_micros
from schemas.gold import MAINTENANCE
from schemas.table import Layer
from transforms.clusters import CLUSTER
from transforms.report.printable import visible

DETAILS, JUDGED, ROWS, FILES = "details", "judged", "rows", "files"
OF_LAYER: Mapping[Layer, str] = {Layer.BRONZE: DETAILS, Layer.SILVER: DETAILS, Layer.GOLD: JUDGED}
_MICROS = pl.col("done_at").dt.epoch("us")
_LOOK = {
    DETAILS: "its report and gold tables stay (`report --run`, `diff --run`, `history`); for more look at a newer run",
    JUDGED: "look at a newer run",
}


def removed_parts(tables: Reader, cluster: str, run_id: str) -> dict[str, datetime]:
    """What of a run was removed (DETAILS, JUDGED), and when (UTC); nothing of a run that is whole."""
    rows = tables.rows(MAINTENANCE, ["what", "done_at"], {CLUSTER: cluster, "run_id": run_id})
    first = rows.group_by("what").agg(_MICROS.min()).sort("what")
    return {what: from_micros(micros) for what, micros in first.iter_rows()}


def last_vacuum(tables: Reader) -> datetime | None:
    """When maintenance last removed files that no table needs any more (UTC)."""
    ends = tables.rows(MAINTENANCE, ["done_at"], {"run_id": None, "what": FILES})
    micros = ends.select(_MICROS.max()).item()
    return None if micros is None else from_micros(micros)


def removed_text(run_id: str, what: str, at: datetime) -> str:
    """One line: what was removed, when, and what to do."""
    things = "details of run" if what == DETAILS else "run"
    verb = "were" if what == DETAILS else "was"
    return f"{things} {visible(run_id, 80)} {verb} removed on {at:%Y-%m-%d} by retention; {_LOOK[what]}"


def forgotten_text(run_id: str | None, at: datetime) -> str:
    """The same of a run whose state was forgotten, and whose files are gone since."""
    of_run = "the run" if run_id is None else f"run {visible(run_id, 80)}"
    return (
        f"details of {of_run} were removed by {at:%Y-%m-%d} by retention (`keep_state_of_runs`, `maintain.vacuum_hours`); "
        "look at a newer run, or let `kraft-audit run --full` read everything again"
    )
