"""Partition state from PartitionRecord and PartitionChangeRecord, in columns (S§3.2, `PartitionRegistration.merge`).

A change merges: a null column keeps the value, a leader of -2 keeps leader and leader epoch, anything else raises the
leader epoch by one; every change raises the partition epoch by one. A PartitionRecord replaces the whole row and
restarts both epochs.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from schemas.kraft.enums import DIRECTORY_MIGRATING
from transforms.clusters import CLUSTER
from transforms.kraft.replay.events import PARTITION, PARTITION_TYPES

PARTITION_KEY = ["topic_id", "partition_id"]
# Sorts begin with what differs most: Spark compares the first bytes of the first column before it compares anything else,
# and a run over one cluster, sorted by cluster first, takes half as long again.
KEY = [*PARTITION_KEY, CLUSTER]
NO_LEADER_CHANGE = -2
NO_RECOVERY_CHANGE = -1

_LISTS = (
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "isr",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)
_MERGED = (*_LISTS, "leader", "leader_recovery_state")


def partition_records(records: DataFrame) -> DataFrame:
    """The two partition record types with 'unchanged' spelled null in every column, and what each does to the epochs."""
    records = records.where(F.col("type").isin(list(PARTITION_TYPES)))
    whole = F.col("type") == PARTITION
    # Compiled with all the rest, as a lambda is not.
    no_directories = F.array_repeat(F.lit(DIRECTORY_MIGRATING), F.size("replicas"))
    return records.select(
        *KEY,
        whole.alias("whole"),
        "offset",
        "epoch",
        "append_time",
        *[F.col(name) for name in _LISTS if name != "directories"],
        F.when(whole, F.coalesce("directories", no_directories)).otherwise(F.col("directories")).alias("directories"),
        F.when(whole | (F.col("leader") != NO_LEADER_CHANGE), F.col("leader")).alias("leader"),
        F.when(whole, F.coalesce("leader_recovery_state", F.lit(0).cast("tinyint")))
        .when(F.col("leader_recovery_state") != NO_RECOVERY_CHANGE, F.col("leader_recovery_state"))
        .alias("leader_recovery_state"),
        F.when(whole, F.col("leader_epoch")).alias("leader_epoch"),
        F.when(whole, F.col("partition_epoch")).alias("partition_epoch"),
        F.lit(None).cast("bigint").alias("created_offset"),
    )


def fold_partitions(records: DataFrame, by: Sequence[str] = ()) -> DataFrame:
    """State of every partition after the records of `partition_records`; removed topics are still in it.

    Columns: cluster, topic_id, partition_id, the merged columns, leader_epoch, partition_epoch, offset, epoch, append_time,
    created_offset (of its PartitionRecord). Changes of a partition that has no PartitionRecord are not in it. Logs that
    differ in the cluster or in the columns `by` have a state each.
    """
    return fold_all_partitions(records, by).where("created_offset IS NOT NULL")


def fold_all_partitions(records: DataFrame, by: Sequence[str] = ()) -> DataFrame:
    """`fold_partitions` with those that were changed and never made: their created_offset is null."""
    keys = [*KEY, *by]
    since = _since_last_whole_record(records, keys)
    change = ~F.col("whole")
    elected = change & F.col("leader").isNotNull()
    folded = since.groupBy(*keys).agg(
        *[F.expr(f"max_by({name}, offset) FILTER (WHERE {name} IS NOT NULL)").alias(name) for name in _MERGED],
        (F.max("leader_epoch") + F.count_if(elected)).cast("int").alias("leader_epoch"),
        (F.max("partition_epoch") + F.count_if(change)).cast("int").alias("partition_epoch"),
        F.max(F.struct("offset", "epoch", "append_time")).alias("last"),
        F.min(F.when(F.col("whole"), _created())).alias("created_offset"),
    )
    return folded.select(
        *keys,
        *_MERGED,
        "leader_epoch",
        "partition_epoch",
        F.col("last.offset").alias("offset"),
        F.col("last.epoch").alias("epoch"),
        F.col("last.append_time").alias("append_time"),
        "created_offset",
    )


def _since_last_whole_record(records: DataFrame, keys: list[str]) -> DataFrame:
    """Drop what a later PartitionRecord of the same partition replaced. Rare, so found before the large aggregate."""
    restarts = (
        records.where("whole")
        .groupBy(*keys)
        .agg(F.max("offset").alias("restart"), F.count("*").alias("whole_records"))
        .where("whole_records > 1")
        .select(*keys, "restart")
    )
    joined = records.join(F.broadcast(restarts), keys, "left")
    return joined.where(F.col("restart").isNull() | (F.col("offset") >= F.col("restart"))).drop("restart")


def partition_history(records: DataFrame) -> DataFrame:
    """Every state every partition of `records` had: columns of `fold_partitions`, one row a record, and `next_offset`.

    A state is valid from its `offset` to `next_offset` (exclusive; null for the newest). Give it only the partitions
    that are asked for: it sorts their records.
    """
    in_order = Window.partitionBy(*KEY).orderBy("offset")
    lives = records.withColumns(
        {"life": F.sum(F.col("whole").cast("int")).over(in_order), "next_offset": F.lead("offset").over(in_order)}
    )
    life = Window.partitionBy(*KEY, "life").orderBy("offset")
    change = ~F.col("whole")
    elected = change & F.col("leader").isNotNull()
    return lives.where("life > 0").select(
        *KEY,
        *[_carried(name, life) for name in _MERGED],
        (F.first("leader_epoch").over(life) + F.count_if(elected).over(life)).cast("int").alias("leader_epoch"),
        (F.first("partition_epoch").over(life) + F.count_if(change).over(life)).cast("int").alias("partition_epoch"),
        "offset",
        "epoch",
        "append_time",
        F.first(_created()).over(life).alias("created_offset"),
        "next_offset",
    )


def _created() -> Column:
    """Where the partition was made: the record's own offset, but for the row of a base state."""
    return F.coalesce("created_offset", "offset")


def _carried(name: str, window: WindowSpec) -> Column:
    return F.last(name, ignorenulls=True).over(window).alias(name)


def named(partitions: DataFrame, topics: DataFrame) -> DataFrame:
    """Partitions of the topics given (columns cluster, topic, topic_id), with the silver column names.

    A partition whose topic is not in `topics` was removed with it (`RemoveTopicRecord` cascades).
    """
    return partitions.join(topics.select(CLUSTER, "topic", "topic_id"), ["topic_id", CLUSTER]).select(
        CLUSTER,
        "topic",
        F.col("partition_id").alias("partition"),
        "topic_id",
        *_MERGED[:-1],
        F.col("leader_recovery_state").cast("int").alias("leader_recovery_state"),
        "leader_epoch",
        "partition_epoch",
        "offset",
        "epoch",
        "append_time",
        "created_offset",
        *[name for name in partitions.columns if name == "next_offset"],
    )
