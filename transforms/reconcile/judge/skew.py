"""How far ZooKeeper's clock is from the controllers', told by what was mirrored (S§7.3, DUR-04)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from schemas.entities.configs import CONFIGS
from schemas.entities.entity import Entity
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.reconcile.compare.context import Clocks
from transforms.unions import union_all

# Fewer changes than this say nothing of a clock: one write that was repeated late would count as skew.
_ENOUGH = 5
# Entities whose znodes KRaft writes once for each change, and otherwise in a full sync only.
_MEASURED: tuple[Entity, ...] = (PARTITIONS, CONFIGS, PRODUCER_IDS)
# The newest changes tell as much as all of them.
_NEWEST = 1_000
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# A large change takes seconds to be mirrored, however near to each other the others are.
_LEAST_MARGIN_MS = 5_000
_MARGIN_OF_FURTHEST = 3


@dataclass(frozen=True)
class OneByOne:
    """Which changes were mirrored as they were made: the offsets after which (exclusive) and up to which (inclusive).

    What the load or a full sync wrote is as old as these, not as its record; what was written after `/migration`'s last
    write, transaction `mzxid`, was not mirrored.
    """

    after: int
    until: int
    mzxid: int


@dataclass(frozen=True)
class ClockSkew:
    """ZooKeeper's clock minus the controllers', in milliseconds: the median over `pairs` changes and its spread.

    `spread` is how far half of the changes lie from the median, `furthest` how far nine in ten of them do. The time that
    mirroring takes is part of the median, so it is an upper bound of the skew by some milliseconds in a healthy cluster,
    by more in one that lags.
    """

    median: float
    spread: float
    pairs: int
    furthest: float = 0.0

    @property
    def clocks(self) -> Clocks:
        """What the comparison of single times needs."""
        return Clocks(round(self.median), round(max(_LEAST_MARGIN_MS, _MARGIN_OF_FURTHEST * self.furthest)))


def clock_skew(quantiles: Sequence[float] | None, pairs: int) -> ClockSkew | None:
    """The skew from a row of `mirroring_times`; None when too few changes were mirrored to tell."""
    if quantiles is None or pairs < _ENOUGH:
        return None
    lowest, low, middle, high, highest = quantiles
    return ClockSkew(middle, (high - low) / 2, pairs, max(highest - middle, middle - lowest))


def mirroring_times(tables: Mapping[str, DataFrame], mirrored: Mapping[str, OneByOne]) -> DataFrame:
    """How much later a znode's mtime is than the append time of the record it mirrors: cluster, quantiles (ms), pairs.

    `tables` are silver rows by entity.
    """
    apart = union_all([_of_entity(entity, tables[entity.name], mirrored) for entity in _MEASURED])
    return apart.groupBy(CLUSTER).agg(
        F.percentile("apart", F.array(*[F.lit(part) for part in _QUANTILES])).alias("quantiles"),
        F.count("*").alias("pairs"),
    )


def _of_entity(entity: Entity, rows: DataFrame, mirrored: Mapping[str, OneByOne]) -> DataFrame:
    key = [CLUSTER, *entity.key]
    mine = rows.where(of_clusters(mirrored))
    after, until, mzxid = (
        by_cluster({cluster: getattr(each, name) for cluster, each in mirrored.items()}, "bigint")
        for name in ("after", "until", "mzxid")
    )
    changed = mine.where(
        (F.col("source") == "kraft") & (F.col("kraft_offset") > after) & (F.col("kraft_offset") <= until)
    )
    in_order = Window.partitionBy(CLUSTER).orderBy(F.col("kraft_offset").desc())
    newest = changed.withColumn("number", F.row_number().over(in_order)).where(F.col("number") <= _NEWEST)
    znodes = mine.where((F.col("source") == "zookeeper") & (F.col("zk_mzxid") <= mzxid)).select(
        *key, "zk_path", "zk_mtime"
    )
    both = znodes.join(F.broadcast(newest.select(*key, "kraft_append_time")), key)
    # Of the rows that one znode holds, the one that changed last had it written last.
    written = both.groupBy(CLUSTER, "zk_path").agg(
        F.max("zk_mtime").alias("zk"), F.max("kraft_append_time").alias("kraft")
    )
    return written.select(CLUSTER, (F.col("zk") - F.col("kraft")).alias("apart"))
