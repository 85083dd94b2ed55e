"""All records of the log that a run's state was replayed from, also where that run read only the newest part of them."""

from __future__ import annotations

import json

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.audit.kept_state import kept_by
from jobs.sinks.delta import Warehouse
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from transforms.clusters import of_clusters
from transforms.kraft.quorum import LogCopy, plan_read
from transforms.kraft.replay.extent import Extent, Ranges
from transforms.kraft.side import KraftSide


def whole_records(warehouse: Warehouse, cluster: str, run_id: str, side: KraftSide) -> tuple[DataFrame, int | None]:
    """All good records that a run's state was replayed from, in its log's own offsets; and the checkpoint (exclusive end) that they
    begin with, None for offset 0.

    A run that went on from an earlier one's state has its records in several runs' rows; they are read in one go, each
    run's from where the one before it ended.
    """
    parts: list[tuple[str, int, int | None]] = [(run_id, side.kept.offset if side.kept else 0, None)]
    state = side.kept
    while state is not None:
        earlier = kept_by(warehouse, cluster, state.base_run)
        parts.append((state.run_id, earlier.offset if earlier else 0, state.offset))
        state = earlier
    records = warehouse.read(KRAFT_RECORDS).where(of_clusters([cluster]) & F.col("problem").isNull())
    # As one look-up by run, so that the plan does not grow with the number of runs.
    first = F.from_json(F.lit(json.dumps({name: start for name, start, _ in parts})), "map<string,bigint>")
    last = F.from_json(F.lit(json.dumps({name: end for name, _, end in parts})), "map<string,bigint>")
    mine = records.where(F.col("run_id").isin([name for name, _, _ in parts]))
    offset, checkpoint = F.col("offset"), F.col("checkpoint_offset")
    in_part = (offset >= first[F.col("run_id")]) & (last[F.col("run_id")].isNull() | (offset < last[F.col("run_id")]))
    oldest = parts[-1][0]
    base = side.base if side.kept is None else oldest_base(warehouse, cluster, oldest)
    # Checkpoints of this run's own part are those that it verifies; of the oldest part, the one that the log begins with.
    of_base = F.lit(False) if base is None else (checkpoint == base) & (F.col("run_id") == oldest)
    own = checkpoint.isNotNull() & (F.col("run_id") == run_id)
    return mine.where((checkpoint.isNull() & in_part) | of_base | own), base


def oldest_base(warehouse: Warehouse, cluster: str, run_id: str) -> int | None:
    """Exclusive end of the checkpoint that a run's copies begin with; None when the log reaches back to offset 0."""
    rows = warehouse.read(KRAFT_LOG_COPIES).where(of_clusters([cluster]) & (F.col("run_id") == run_id)).collect()
    plan = plan_read([LogCopy.from_row(row.asDict(recursive=True)) for row in rows])
    return None if plan.base_checkpoint is None else plan.base_checkpoint[1].offset


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
