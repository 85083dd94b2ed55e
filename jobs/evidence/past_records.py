"""All records of the log that a run's state was replayed from, also where that run read only the newest part of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.evidence.kept_state import kept_by
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Reader, records
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from transforms.clusters import CLUSTER, of_clusters
from transforms.kraft.coverage import PlannedLog, planned_log
from transforms.kraft.quorum import LogCopy, Slice, plan_read
from transforms.kraft.replay.extent import Extent, Ranges
from transforms.kraft.side import KraftSide


@dataclass(frozen=True)
class WholeLog:
    """All that a run's state was replayed from, also what earlier runs have read of it.

    `records` are good rows of bronze kraft_records, in the log's own offsets. They begin with the checkpoint `base` (exclusive end),
    None for offset 0. `earlier` is what earlier runs were to read of them, None where this one read everything: their rows may be
    gone (`transforms.kraft.coverage.shortfall`).
    """

    records: DataFrame
    base: int | None
    earlier: PlannedLog | None


@dataclass(frozen=True)
class _Part:
    """Offsets [begin, end) of the log, in the rows of the run that has read them; no `end` for the run itself."""

    run_id: str
    begin: int
    end: int | None


def whole_log(warehouse: Warehouse, cluster: str, run_id: str, side: KraftSide) -> WholeLog:
    """All records that a run's state was replayed from.

    A run that continued from an earlier one's state has its records in several runs' rows; they are read in one go, each
    run's from where the one before it ended.
    """
    parts = _parts(warehouse, cluster, run_id, side)
    records = warehouse.read(KRAFT_RECORDS).where(of_clusters([cluster]) & F.col("problem").isNull())
    # As one look-up by run, so that the plan does not grow with the number of runs.
    first = F.from_json(F.lit(json.dumps({part.run_id: part.begin for part in parts})), "map<string,bigint>")
    last = F.from_json(F.lit(json.dumps({part.run_id: part.end for part in parts})), "map<string,bigint>")
    mine = records.where(F.col("run_id").isin([part.run_id for part in parts]))
    offset, checkpoint = F.col("offset"), F.col("checkpoint_offset")
    in_part = (offset >= first[F.col("run_id")]) & (last[F.col("run_id")].isNull() | (offset < last[F.col("run_id")]))
    if side.kept is None:
        base, earlier = side.base, None
    else:
        base, earlier = _earlier(warehouse, cluster, parts[1:])
    # Checkpoints of this run's own part are those that it verifies; of the oldest part, the one that the log begins with.
    of_base = F.lit(False) if base is None else (checkpoint == base) & (F.col("run_id") == parts[-1].run_id)
    own = checkpoint.isNotNull() & (F.col("run_id") == run_id)
    return WholeLog(mine.where((checkpoint.isNull() & in_part) | of_base | own), base, earlier)


def _parts(warehouse: Warehouse, cluster: str, run_id: str, side: KraftSide) -> list[_Part]:
    """What each run has read that the state comes from, the run's own part first."""
    parts = [_Part(run_id, side.kept.offset if side.kept else 0, None)]
    state = side.kept
    while state is not None:
        before = kept_by(warehouse, cluster, state.base_run)
        parts.append(_Part(state.run_id, before.offset if before else 0, state.offset))
        state = before
    return parts


def _earlier(warehouse: Warehouse, cluster: str, parts: Sequence[_Part]) -> tuple[int | None, PlannedLog]:
    """The checkpoint (exclusive end) that earlier runs' records begin with, None for offset 0; and what they were to read."""
    oldest = parts[-1].run_id
    copies = copies_of(warehouse, cluster, oldest)
    planned = planned_log(copies)
    # Without its copies its beginning is unknown: then records that are absent from offset 0 on count as missing.
    base = None if planned is None else _base(copies)
    begins = [max(part.begin, base or 0) if part is parts[-1] else part.begin for part in parts]
    slices = [
        Slice(_named(part), begin, part.end)
        for part, begin in zip(parts, begins, strict=True)
        if part.end is not None and part.end > begin
    ]
    fetched = planned is not None and any(piece.location in planned.fetched for piece in planned.slices[:1])
    names = frozenset([_named(parts[-1])] if fetched else [])
    return base, PlannedLog(None if planned is None else planned.base, tuple(reversed(slices)), names)


def oldest_base(warehouse: Warehouse, cluster: str, run_id: str) -> int | None:
    """Exclusive end of the checkpoint that a run's copies begin with; None when the log reaches back to offset 0."""
    return _base(copies_of(warehouse, cluster, run_id))


def copies_of(warehouse: Reader, cluster: str, run_id: str) -> list[dict[str, Any]]:
    """The copies of the log that a run found: rows of bronze kraft_log_copies."""
    rows = warehouse.rows(KRAFT_LOG_COPIES, where={CLUSTER: cluster, "run_id": run_id})
    return list(records(rows, KRAFT_LOG_COPIES))


def _base(copies: Sequence[Mapping[str, Any]]) -> int | None:
    plan = plan_read([LogCopy.from_row(row) for row in copies])
    return None if plan.base_checkpoint is None else plan.base_checkpoint[1].offset


def _named(part: _Part) -> str:
    return f"run {part.run_id}"


def applied(records: DataFrame, extent: Extent) -> DataFrame:
    """Good records of one log (bronze kraft_records) that take effect.

    The base checkpoint's stand at the offset just before its end, so that they come before the log's; they are never left out,
    because markers of transactions do not occur in checkpoints.
    """
    good = records.where(F.col("problem").isNull() & ~F.col("control"))
    offset, log = F.col("offset"), F.col("checkpoint_offset").isNull()
    in_log = log & (offset >= max(extent.start, extent.base or 0)) & (offset < extent.end)
    if extent.discarded:
        in_log &= ~_within(extent.discarded)
    if extent.base is None:
        return good.where(in_log)
    in_base = F.coalesce(F.col("checkpoint_offset") == extent.base, F.lit(False))
    moved = F.when(log, offset).otherwise(F.col("checkpoint_offset") - 1)
    return good.where(in_base | in_log).withColumn("offset", moved)


def _within(ranges: Ranges) -> Column:
    """Whether the offset is in one of these ranges; both ends inclusive, None is the end of the log."""
    spelled = json.dumps([{"begin": begin, "last": last} for begin, last in ranges])
    mine = F.from_json(F.lit(spelled), "array<struct<begin:bigint,last:bigint>>")
    offset = F.col("offset")
    return F.exists(mine, lambda each: (offset >= each["begin"]) & (each["last"].isNull() | (offset <= each["last"])))
