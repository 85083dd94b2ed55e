"""What KRaft had when a cluster was rolled back and ZooKeeper never got (S§7.5)."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster, of_clusters


def left_behind(both: DataFrame, migration_offsets: Mapping[str, int]) -> DataFrame:
    """Rows that KRaft made or changed after `/migration`'s offset and ZooKeeper lacks: (cluster, code, text).

    `both` are `canonical` rows of both sides. Of partitions only those that ZooKeeper does not have at all: after a
    rollback their leaders and replicas are ZooKeeper's to change.
    """
    exists = F.when(F.col("entity") == "partitions", F.lit("")).otherwise(F.col("row"))
    rows = both.where(of_clusters(migration_offsets)).select(
        CLUSTER, "zk", "entity", "key", exists.alias("row"), "kraft_offset"
    )
    late = rows.where(~F.col("zk") & (F.col("kraft_offset") > by_cluster(migration_offsets, "bigint")))
    there = rows.where("zk").select(CLUSTER, "entity", "key", "row")
    text = F.format_string("%s %s, of offset %d", "entity", "key", "kraft_offset")
    return late.join(there, [CLUSTER, "entity", "key", "row"], "left_anti").select(
        CLUSTER, F.lit("RB-13").alias("code"), text.alias("text")
    )
