"""Keys that one side has more than once: which of their rows is compared is chance, so nothing is proved of them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER

_LISTED = 20


def duplicated(differing: DataFrame) -> DataFrame:
    """Rows of `differing_rows` whose key is on a side more than once, by cluster: total, texts (a few)."""
    text = F.format_string(
        "%s %s: %d rows in ZooKeeper, %d in KRaft", F.col("entity"), F.col("key"), F.col("zk_rows"), F.col("kraft_rows")
    )
    twice = differing.where((F.col("zk_rows") > 1) | (F.col("kraft_rows") > 1))
    listed = F.slice(F.array_sort(F.collect_list(text)), 1, _LISTED).alias("texts")
    return twice.groupBy(CLUSTER).agg(F.count("*").alias("total"), listed)
