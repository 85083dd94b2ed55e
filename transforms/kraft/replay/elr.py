"""What CLEAR_ELR does to partitions, as changes of partitions that replay folds like any other (S§8.4, KIP-966).

The record names a topic, or all topics by an empty name. `ReplicationControlManager.replay(ClearElrRecord)` merges into
each partition that has eligible leader replicas or last known ones a change that empties both: its partition epoch rises
by one, its leader epoch stays. A partition that has none is left as it is, and so is its epoch.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from schemas.kraft.records import CLEAR_ELR
from transforms.clusters import CLUSTER
from transforms.kraft.replay.entities import DELETE
from transforms.kraft.replay.partitions import KEY

_ELR = ("eligible_leader_replicas", "last_known_elr")
_RECORD = ("offset", "epoch", "append_time")


def cleared(records: DataFrame, events: DataFrame, partitions: DataFrame) -> DataFrame:
    """The changes that the CLEAR_ELR records among `records` make: rows with the columns of `partitions`.

    `records` are those that take effect, `events` the events of the whole log (a base state's too: a record may name a
    topic that was made before), `partitions` its partition records. Few partitions ever have such replicas, so those are looked
    for first, and not even that when there is no CLEAR_ELR: a join with nothing does not read the other side.
    """
    clears = records.where(F.col("type") == CLEAR_ELR.name).select(
        CLUSTER, F.get_json_object("data", "$.topicName").alias("named"), *[F.col(name) for name in _RECORD]
    )
    some = clears.select(CLUSTER).distinct()
    holding = partitions.where(_holds("eligible_leader_replicas") | _holds("last_known_elr"))
    affected = holding.join(F.broadcast(some), CLUSTER).select(*KEY).distinct()
    steps = _clearing(affected, topic_lives(events), clears)
    changes = _changes_in_order(partitions.join(F.broadcast(steps.select(*KEY).distinct()), KEY, "left_semi"))
    return _effective(changes.unionByName(steps)).select(
        *[_column(field.name).cast(field.dataType).alias(field.name) for field in partitions.schema.fields]
    )


def _holds(name: str) -> Column:
    return F.coalesce(F.size(name) > 0, F.lit(False))


def _nobody() -> Column:
    return F.array().cast("array<int>")


def topic_lives(events: DataFrame) -> DataFrame:
    """Each topic id: cluster, topic_id, topic, made, made_last, removed: offsets of its first and last TopicRecord and of its
    removal (null while it lives)."""
    topics = events.where("entity = 'topics'").groupBy(CLUSTER, "replay_key")
    return topics.agg(
        F.max(F.get_json_object("row", "$.topic")).alias("topic"),
        F.min(F.when(F.col("row").isNotNull(), F.coalesce("created_offset", "offset"))).alias("made"),
        F.max(F.when(F.col("op") != DELETE, F.col("offset"))).alias("made_last"),
        F.max(F.when(F.col("op") == DELETE, F.col("offset"))).alias("removed"),
    ).select(
        CLUSTER, F.get_json_object("replay_key", "$[0]").alias("topic_id"), "topic", "made", "made_last", "removed"
    )


def _clearing(partitions: DataFrame, lives: DataFrame, clears: DataFrame) -> DataFrame:
    """One row a partition and record that names its topic while there is such a topic: columns of `_changes_in_order`."""
    named = partitions.join(lives, [CLUSTER, "topic_id"])
    of_one = clears.where("named <> ''").withColumn("topic", F.col("named"))
    one = named.join(of_one, [CLUSTER, "topic"])
    every = named.join(F.broadcast(clears.where("named = ''")), CLUSTER).select(one.columns)
    alive = (F.col("made") < F.col("offset")) & F.coalesce(F.col("removed") > F.col("offset"), F.lit(True))
    return (
        one.unionByName(every)
        .where(alive)
        .select(*KEY, F.lit(True).alias("clearing"), *_RECORD, *[_nobody().alias(name) for name in _ELR])
    )


def _changes_in_order(partitions: DataFrame) -> DataFrame:
    """What each record says of the two lists; a PartitionRecord that says nothing of them empties them."""
    lists = [F.when(F.col("whole"), F.coalesce(name, _nobody())).otherwise(F.col(name)).alias(name) for name in _ELR]
    return partitions.select(*KEY, F.lit(False).alias("clearing"), *_RECORD, *lists)


def _effective(changes: DataFrame) -> DataFrame:
    """The clearing steps that find something to clear."""
    before = Window.partitionBy(*KEY).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)
    carried = changes.withColumns({f"{name}_before": F.last(name, ignorenulls=True).over(before) for name in _ELR})
    return carried.where(
        F.col("clearing") & (_holds("eligible_leader_replicas_before") | _holds("last_known_elr_before"))
    )


def _column(name: str) -> Column:
    if name in (*KEY, *_RECORD, *_ELR):
        return F.col(name)
    return F.lit(False) if name == "whole" else F.lit(None)
