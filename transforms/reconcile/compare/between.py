"""Between which two transactions a write was lost: the barriers around its record (S§5.5)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER


def located(divergences: DataFrame, barriers: DataFrame | None) -> DataFrame:
    """DIVERGENCE rows with lost_after_zxid and lost_until_zxid, and the same in the words of their explanation.

    At a barrier ZooKeeper must have everything up to its offset: the last one below a lost record's offset still was right,
    the first one at or above it is wrong. `barriers` are silver barriers of this migration; None where there are no
    transaction logs.
    """
    if barriers is None:
        nothing = F.lit(None).cast("bigint")
        return divergences.withColumns({"lost_after_zxid": nothing, "lost_until_zxid": nothing})
    row = [CLUSTER, "lost_offset"]
    asked = divergences.where("lost_offset IS NOT NULL").select(*row).distinct()
    found = divergences.join(F.broadcast(_around(asked, barriers)), row, "left")
    after, until = F.col("lost_after_zxid"), F.col("lost_until_zxid")
    begun = F.when(after.isNull(), F.lit("before")).otherwise(F.format_string("after transaction %d and by", after))
    words = F.concat("explanation", F.format_string("; the record at offset %d was lost ", "lost_offset"), begun)
    text = F.when(until.isNotNull(), F.concat(words, F.format_string(" transaction %d", until)))
    return found.withColumn("explanation", F.coalesce(text, "explanation"))


def _around(asked: DataFrame, barriers: DataFrame) -> DataFrame:
    """The barriers below, and at or above, each offset: in one sort of both, however many barriers there are."""
    nothing = F.lit(None).cast("bigint")
    marks = asked.select(CLUSTER, F.col("lost_offset").alias("at"), nothing.alias("zxid")).unionByName(
        barriers.join(F.broadcast(asked.select(CLUSTER).distinct()), CLUSTER, "left_semi").select(
            CLUSTER, F.col("kraft_metadata_offset").alias("at"), "zxid"
        )
    )
    # A question stands before the barrier of the same offset, because nulls come first.
    in_order = Window.partitionBy(CLUSTER).orderBy("at", "zxid")
    below = F.last("zxid", ignorenulls=True).over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    above = F.first("zxid", ignorenulls=True).over(in_order.rowsBetween(1, Window.unboundedFollowing))
    placed = marks.withColumns({"lost_after_zxid": below, "lost_until_zxid": above}).where("zxid IS NULL")
    return placed.select(CLUSTER, F.col("at").alias("lost_offset"), "lost_after_zxid", "lost_until_zxid")
