"""How long changes waited for ZooKeeper, at every barrier of its transaction logs (S§5.5): lag as a series, not a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster

# Of as many parts of the series the worst point and the last one are kept.
_PARTS = 250
MOST_POINTS = 2 * _PARTS


@dataclass(frozen=True)
class Waited:
    """A barrier: `records` are those it brought, `seconds` how long the oldest of them had waited, by the two clocks."""

    zxid: int
    time: int
    kraft_metadata_offset: int
    records: int
    seconds: float


def lag_series(barriers: DataFrame, records: DataFrame, born: Mapping[str, int]) -> DataFrame:
    """Points of the series for each cluster, MOST_POINTS at most: the worst of each part of it is among them, and the last.

    `barriers` are silver barriers, `records` bronze kraft_records; `born` is when the cluster's log began (append time of its
    first record, milliseconds): barriers before that are of another quorum. Columns: cluster and those of `Waited`; a barrier
    whose first record is not among `records` is left out.
    """
    in_order = Window.partitionBy(CLUSTER).orderBy("zxid")
    offset = F.col("kraft_metadata_offset")
    mine = barriers.where(F.col("time") >= by_cluster(born, "bigint"))
    moved = mine.withColumn("before", F.lag(offset).over(in_order)).where(offset > F.col("before"))
    oldest = records.where("checkpoint_offset IS NULL AND problem IS NULL").select(
        CLUSTER, (F.col("offset") - 1).alias("before"), "append_time"
    )
    waited = moved.join(oldest, [CLUSTER, "before"]).select(
        CLUSTER,
        "zxid",
        "time",
        "kraft_metadata_offset",
        (offset - F.col("before")).alias("records"),
        ((F.col("time") - F.col("append_time")) / 1000.0).alias("seconds"),
    )
    number, all_of_it = F.row_number().over(in_order), F.count("*").over(Window.partitionBy(CLUSTER))
    parts = waited.withColumn("part", F.floor((number - 1) * _PARTS / F.greatest(all_of_it, F.lit(_PARTS))))
    part = Window.partitionBy(CLUSTER, "part")
    worst = F.row_number().over(part.orderBy(F.col("seconds").desc(), F.col("zxid").desc())) == 1
    last = F.row_number().over(part.orderBy(F.col("zxid").desc())) == 1
    return parts.withColumns({"worst": worst, "last": last}).where("worst OR last").drop("part", "worst", "last")


def points(rows: Iterable[Mapping[str, Any]], skew_ms: float) -> list[Waited]:
    """The series in order, from rows of `lag_series`; `skew_ms` is ZooKeeper's clock minus the controllers'."""
    found = [Waited(**row) for row in rows]
    return [
        Waited(
            each.zxid,
            each.time,
            each.kraft_metadata_offset,
            each.records,
            round(max(0.0, each.seconds - skew_ms / 1000), 3),
        )
        for each in sorted(found, key=lambda each: each.zxid)
    ]
