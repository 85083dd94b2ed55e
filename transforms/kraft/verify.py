"""Kafka's own checkpoint as a witness: the replay at its offset must equal it (CAP-08).

A checkpoint is what Kafka made of the same records. It leaves out what its metadata.version has no record for (S§3.4),
writes the producer ids without their broker, and knows nothing of row history; all else must be the same, row for row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.kraft.metadata_versions import DEFAULT_LEVEL, SNAPSHOT_KEEPS_FROM
from transforms.kraft import replay
from transforms.kraft.image import Log
from transforms.kraft.partitions import KEY, fold_partitions
from transforms.reconcile.difference import union_all

_STATE = ("replicas", "adding_replicas", "removing_replicas", "isr", "leader", "leader_epoch", "partition_epoch")
_LATER = ("leader_recovery_state", "eligible_leader_replicas", "last_known_elr")


def checkpoint_records(records: DataFrame, offset: int) -> DataFrame:
    """The records of the checkpoint that ends at `offset` (exclusive), standing just before it."""
    return records.where(F.col("checkpoint_offset") == offset).withColumn("offset", F.lit(offset - 1).cast("bigint"))


def checkpoint_differences(replayed: Log, checkpoint: Log, metadata_version: int | None) -> DataFrame:
    """Rows in which the replay below a checkpoint's offset is not the checkpoint: source, code, subject, detail, place.

    `replayed` is the log below the checkpoint's offset, `checkpoint` its own records. Equal states give no row.
    """
    level = DEFAULT_LEVEL if metadata_version is None else metadata_version
    left, right = _rows(replayed, level), _rows(checkpoint, level)
    both = left.withColumn("replayed", F.lit(True)).unionByName(right.withColumn("replayed", F.lit(False)))
    paired = both.groupBy("entity", "key").agg(
        F.expr("first(row) FILTER (WHERE replayed)").alias("ours"),
        F.expr("first(row) FILTER (WHERE NOT replayed)").alias("theirs"),
    )
    differing = paired.where(~F.col("ours").eqNullSafe(F.col("theirs")))
    detail = (
        F.when(F.col("ours").isNull(), "in the checkpoint, not in the replay")
        .when(F.col("theirs").isNull(), "in the replay, not in the checkpoint")
        .otherwise("the replay and the checkpoint differ")
    )
    return differing.select(
        F.lit("kraft").alias("source"),
        F.lit("CAP-08").alias("code"),
        F.format_string("%s %s", "entity", "key").alias("subject"),
        detail.alias("detail"),
        F.lit("checkpoint").alias("place"),
    )


def _rows(log: Log, level: int) -> DataFrame:
    folded = replay.fold(log.events)
    lost = [entity for entity, first in SNAPSHOT_KEEPS_FROM.items() if level < first]
    plain = folded.where(~F.col("removed") & ~F.col("entity").isin(["brokers", "producer_ids", "migration", *lost]))
    producer = folded.where("entity = 'producer_ids'")
    frames = [
        plain.select("entity", F.col("replay_key").alias("key"), "row"),
        producer.select("entity", F.lit("").alias("key"), F.get_json_object("row", "$.next_producer_id").alias("row")),
        _brokers(log, folded),
        _partitions(log, level),
    ]
    return union_all(frames)


def _brokers(log: Log, folded: DataFrame) -> DataFrame:
    columns = ("broker_epoch", "incarnation_id", "is_migrating_zk_broker", "fenced", "rack", "endpoints", "features")
    rows = replay.brokers(log.events, folded)
    return rows.select(
        F.lit("brokers").alias("entity"),
        F.col("broker_id").cast("string").alias("key"),
        F.to_json(F.struct(*columns)).alias("row"),
    )


def _partitions(log: Log, level: int) -> DataFrame:
    """A checkpoint holds the partitions of living topics only; a removed topic's are in the log alone."""
    topics = replay.fold(log.events.where("entity = 'topics'")).where("NOT removed")
    living = topics.select(F.get_json_object("row", "$.topic_id").alias("topic_id"))
    names: list[str] = [*_STATE, *_LATER]
    if level >= SNAPSHOT_KEEPS_FROM["directories"]:
        names.append("directories")
    rows = fold_partitions(log.hot).join(F.broadcast(living), "topic_id", "left_semi")
    return rows.select(
        F.lit("partitions").alias("entity"),
        F.concat_ws("/", *KEY).alias("key"),
        F.to_json(F.struct(*[_written(name) for name in names])).alias("row"),
    )


def _written(name: str) -> Column:
    """ELR lists are absent in a record when they are empty."""
    if name in ("eligible_leader_replicas", "last_known_elr"):
        return F.when(F.size(name) > 0, F.col(name)).alias(name)
    return F.col(name)
