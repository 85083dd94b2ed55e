"""What maintenance has removed of earlier runs, so that nobody takes missing rows for nothing found."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import functions as F

from jobs.sinks.delta import Warehouse
from jobs.steps.fleet import from_micros
from schemas.gold import MAINTENANCE
from schemas.table import Layer
from transforms.clusters import CLUSTER
from transforms.report.printable import visible

DETAILS, JUDGED, ROWS, FILES = "details", "judged", "rows", "files"
OF_LAYER: Mapping[Layer, str] = {Layer.BRONZE: DETAILS, Layer.SILVER: DETAILS, Layer.GOLD: JUDGED}
_LOOK = {
    DETAILS: "its report and gold tables stay (`report --run`, `diff --run`, `history`); for more look at a newer run",
    JUDGED: "look at a newer run",
}


def removed_parts(warehouse: Warehouse, cluster: str, run_id: str) -> dict[str, datetime]:
    """What of a run was removed (DETAILS, JUDGED), and when (UTC); nothing of a run that is whole."""
    mine = (F.col(CLUSTER) == cluster) & (F.col("run_id") == run_id)
    rows = warehouse.read(MAINTENANCE).where(mine).groupBy("what").agg(F.min(F.unix_micros("done_at")).alias("at"))
    return {row["what"]: from_micros(row["at"]) for row in rows.collect()}


def last_vacuum(warehouse: Warehouse) -> datetime | None:
    """When maintenance last removed files that no table needs any more (UTC)."""
    ends = warehouse.read(MAINTENANCE).where(F.col("run_id").isNull() & (F.col("what") == FILES))
    micros = ends.agg(F.max(F.unix_micros("done_at")).alias("at")).collect()[0]["at"]
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
