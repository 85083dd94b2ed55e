"""Rows of earlier runs that maintenance has removed, so that missing rows are not taken for “nothing found”."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import polars as pl

from jobs.sinks.reader import Reader
from schemas.gold import MAINTENANCE
from schemas.table import Layer
from transforms.clusters import CLUSTER
from transforms.isr.days import Days, summed_between
from transforms.isr.partition_questions import Histories
from transforms.report.printable import counted, visible
from transforms.times import from_micros

DETAILS, JUDGED, ROWS, FILES = "details", "judged", "rows", "files"
BEGUN, ENDED = "begun", "ended"
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


def removed_runs(tables: Reader, cluster: str, what: str) -> dict[str, datetime]:
    """Runs of a cluster that retention has removed something of (DETAILS, JUDGED), and when (UTC)."""
    marks = tables.rows(MAINTENANCE, ["run_id", "done_at"], {CLUSTER: cluster, "what": what})
    of_runs = marks.filter(pl.col("run_id").is_not_null())
    newest = of_runs.group_by("run_id").agg(pl.col("done_at").dt.epoch("us").max())
    return {run_id: from_micros(micros) for run_id, micros in newest.iter_rows()}


def removed_line(what: str, removed: Sequence[datetime]) -> str:
    """One line: of how many runs something was removed, and when last."""
    runs = counted(len(removed), "earlier run")
    return f"{what} of {runs} were removed by retention, last on {max(removed):%Y-%m-%d}: changes that only they had are not shown"


def changes_lines(tables: Reader, cluster: str, found: Histories, days: Days | None = None) -> list[str]:
    """The same of changes of partitions that runs have recorded: where one does not follow from the one before it.

    A partition's first change may be its first one after a checkpoint, with which a log begins. `days` are sums of changes that are
    not there singly any more.
    """
    summed = days or {}
    holes = [
        (name, then.after.partition_epoch, now.before.partition_epoch)
        for name, history in sorted(found.items())
        for then, now in pairwise(history)
        if now.before is not None
        and now.before.partition_epoch > then.after.partition_epoch
        and not summed_between(summed.get(name, ()), then.time, now.time)
    ]
    begun = all(not history or history[0].before is None or name in summed for name, history in found.items())
    if begun and not holes:
        return []
    removed = removed_runs(tables, cluster, JUDGED)
    if removed:
        return [removed_line("recorded changes", [*removed.values()])]
    if not holes:
        return []
    (partition, _), after, before = holes[0]
    more = "" if len(holes) == 1 else f", and more in {counted(len(holes) - 1, 'other place')}"
    return [
        f"changes of partition {partition} between the partition epochs {after} and {before} are missing{more}: "
        "no run has read them, or rows of gold.isr_history were deleted, but not by retention"
    ]
