"""What KRaft had when a cluster was rolled back and ZooKeeper never got (S§7.5)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def left_behind(both: DataFrame, migration_offset: int) -> DataFrame:
    """Rows that KRaft made or changed after `/migration`'s offset and ZooKeeper lacks: (code, text).

    `both` are `canonical` rows of both sides. Of partitions only those that ZooKeeper does not have at all: after a
    rollback their leaders and replicas are ZooKeeper's to change.
    """
    exists = F.when(F.col("entity") == "partitions", F.lit("")).otherwise(F.col("row"))
    rows = both.select("zk", "entity", "key", exists.alias("row"), "kraft_offset")
    late = rows.where(~F.col("zk") & (F.col("kraft_offset") > F.lit(migration_offset)))
    there = rows.where("zk").select("entity", "key", "row")
    text = F.format_string("%s %s, of offset %d", "entity", "key", "kraft_offset")
    return late.join(there, ["entity", "key", "row"], "left_anti").select(
        F.lit("RB-13").alias("code"), text.alias("text")
    )
