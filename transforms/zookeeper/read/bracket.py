"""Two walks around a copy of the log: keep what both agree on (S§5.5 (b)).

A walk reads each znode at another zxid. What has the same mzxid, czxid and ACL version before and after the log was
copied had that value all the time between, so it may be compared with the log without tolerance.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER

_SAME = ("czxid", "mzxid", "aversion")


def bracket(before: DataFrame, after: DataFrame) -> tuple[DataFrame, DataFrame]:
    """Return the znodes that stood still, as the later walk has them, and what moved.

    Both walks have `cluster` and the columns of `ZNODE_COLUMNS` (others are kept). The second result has cluster, path, moved (appeared,
    vanished, recreated, data, acl), mzxid_before and mzxid_after.
    """
    old = before.select(CLUSTER, "path", *(F.col(name).alias(f"{name}_before") for name in _SAME))
    joined = after.withColumn("_after", F.lit(True)).join(
        old.withColumn("_before", F.lit(True)), [CLUSTER, "path"], "full_outer"
    )
    still = F.lit(True)
    for name in _SAME:
        still = still & F.col(name).eqNullSafe(F.col(f"{name}_before"))
    both = F.col("_before").isNotNull() & F.col("_after").isNotNull()
    kept = joined.where(both & still).select(after.columns)
    moved = joined.where(~(both & still)).select(
        CLUSTER,
        "path",
        _moved().alias("moved"),
        F.col("mzxid_before"),
        F.col("mzxid").alias("mzxid_after"),
    )
    return kept, moved


def _moved() -> Column:
    return (
        F.when(F.col("_before").isNull(), "appeared")
        .when(F.col("_after").isNull(), "vanished")
        .when(~F.col("czxid").eqNullSafe(F.col("czxid_before")), "recreated")
        .when(~F.col("mzxid").eqNullSafe(F.col("mzxid_before")), "data")
        .otherwise("acl")
    )
