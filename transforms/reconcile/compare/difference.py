"""The difference engine: all entities, both sides, one shuffle; only rows that differ go on to be judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, GroupedData
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster
from transforms.reconcile.compare.canonical import ASSIGNMENT_PROVENANCE

# Keys of an entity begin with the same bytes, and those are what Spark sorts by first; their hashes differ.
_HASH = "key_hash"
_ROW = [_HASH, "key", "entity", CLUSTER]
VERSION_FIELDS = ("from_offset", "row", "removed", "from_append_time", "created_offset")


@dataclass(frozen=True)
class Ends:
    """Where a cluster's log ends: `committed` (exclusive), and the copy's own end; None when there is no tail to look at."""

    committed: int
    log: int | None = None

    @property
    def has_tail(self) -> bool:
        """True when the log goes on past what is proved committed."""
        return self.log is not None and self.log > self.committed


def differing_rows(both: DataFrame, versions: DataFrame, ends: Mapping[str, Ends]) -> DataFrame:
    """Rows that are not the same on both sides, with everything a verdict needs.

    `both` are `canonical` rows of both sides; `versions` are ROW_VERSION rows. Rows whose newest version
    starts at the cluster's committed end or later are kept too, because their difference may be in the tail only; so are
    rows that neither side has, when the log goes on past it, and keys that a side has more than once, whose other rows
    nobody compares (`transforms.reconcile.compare.duplicates`).
    Columns: cluster, entity, key, zk_row, zk_rows (how many had this key), kraft_row, kraft_rows, comparable, provenance of both
    sides, and `versions` ordered by offset (array of VERSION_FIELDS; null when there is none).
    """
    rows = _by_row(both).agg(
        F.expr("first(row) FILTER (WHERE zk)").alias("zk_row"),
        F.count_if("zk").alias("zk_rows"),
        F.expr("first(row) FILTER (WHERE NOT zk)").alias("kraft_row"),
        F.count_if(~F.col("zk")).alias("kraft_rows"),
        F.bool_and("comparable").alias("comparable"),
        *[F.first(name, ignorenulls=True).alias(name) for name in ("zk_path",)],
        *[
            F.max(name).alias(name)
            for name in (
                "zk_czxid",
                "zk_mzxid",
                "zk_mtime",
                *ASSIGNMENT_PROVENANCE,
                "kraft_offset",
                "kraft_created_offset",
                "kraft_append_time",
            )
        ],
    )
    timelines = _by_row(versions).agg(
        F.array_sort(F.collect_list(F.struct(*VERSION_FIELDS))).alias("versions"),
        F.max("from_offset").alias("newest_version"),
    )
    # Only a tail can hold rows that are on neither side; without one the narrower join is enough.
    has_tail = any(end.has_tail for end in ends.values())
    joined = rows.join(timelines, _ROW, "full" if has_tail else "left")
    differs = ~F.col("zk_row").eqNullSafe(F.col("kraft_row"))
    tail_from = by_cluster({cluster: end.committed for cluster, end in ends.items()}, "bigint")
    in_tail = F.coalesce(F.col("newest_version") >= tail_from, F.lit(False))
    if has_tail:
        # A full join brings rows of every cluster; without a tail, what neither side has is history.
        tailed = by_cluster({cluster: end.has_tail for cluster, end in ends.items()}, "boolean")
        in_tail = in_tail & (tailed | F.col("zk_row").isNotNull() | F.col("kraft_row").isNotNull())
    twice = (F.col("zk_rows") > 1) | (F.col("kraft_rows") > 1)
    return joined.where(differs | in_tail | F.coalesce(twice, F.lit(False))).drop("newest_version", _HASH)


def _by_row(rows: DataFrame) -> GroupedData:
    return rows.withColumn(_HASH, F.xxhash64("key")).groupBy(*_ROW)


def without_moved(differing: DataFrame, moved: DataFrame | None) -> DataFrame:
    """Leave out rows whose znode changed between the two walks of a bracket (columns cluster and path of `moved`)."""
    if moved is None:
        return differing
    paths = moved.select(CLUSTER, F.col("path").alias("zk_path"))
    return differing.join(F.broadcast(paths), [CLUSTER, "zk_path"], "left_anti").select(differing.columns)
