"""Records that break a rule of replay (S§3.1, S§11): Kafka throws on them, the audit names them and goes on."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.checks.codes import BROKER_REPLACED, CLEAR_REMOVED, CLEAR_UNKNOWN, TOPIC_UNKNOWN
from schemas.entities.brokers import BROKERS
from schemas.entities.topics import TOPICS
from schemas.kraft.records import CLEAR_ELR
from transforms.clusters import CLUSTER, by_cluster
from transforms.kraft.replay.elr import topic_lives
from transforms.kraft.replay.entities.event import DELETE, PATCH, UPSERT
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.partitions import KEY
from transforms.unions import union_all

_REGISTERED = ("incarnation_id", "fenced", "in_controlled_shutdown")
UNREGISTER_BROKER = "UNREGISTER_BROKER_RECORD"
_INCARNATIONS = ("incarnation_id", "incarnation_id_before")


def log_findings(
    log: Log, compacted: Log, folded: DataFrame, records: DataFrame, snapshots: Mapping[str, int | None]
) -> DataFrame:
    """Findings of a replayed log: cluster, source, code, subject, detail, place.

    `compacted` is a log that replays to the same state (`transforms.kraft.replay.compaction.compacted_then`), or `log`
    itself: most rules can be judged on it. `folded` is `replay.fold` of its events. `records` are the bronze records
    that take effect (`transforms.kraft.replay.events.applied`), `snapshots` the offset (exclusive) of each cluster's newest
    snapshot, None where there is none.
    """
    lives = topic_lives(compacted.events)
    frames = [
        _unknown_partitions(compacted.partition_records),
        _partitions_of_unknown_topics(compacted.partition_records, lives),
        _directories(log.partition_records),
        _stray_broker_changes(compacted.events),
        _unknown_unregistrations(compacted.events, records),
        _unknown_removals(log.events),
        _unknown_clearings(lives, records),
        _clearings_after_removals(lives, records, snapshots),
        _topics_made_twice(folded),
        _topics_made_again(log.events),
        _producer_ids_back(log.events),
        _shared_broker_ids(compacted.events),
    ]
    return union_all(frames)


def _finding(
    rows: DataFrame, code: Column | str, subject: Column, detail: Column | str, offset: str = "offset"
) -> DataFrame:
    return rows.select(
        CLUSTER,
        F.lit("kraft").alias("source"),
        (F.lit(code) if isinstance(code, str) else code).alias("code"),
        subject.alias("subject"),
        (F.lit(detail) if isinstance(detail, str) else detail).alias("detail"),
        F.format_string("offset %d", F.col(offset)).alias("place"),
    )


def _unknown_partitions(records: DataFrame) -> DataFrame:
    """Changes of a partition that no PartitionRecord made (`ReplicationControlManager.replay` throws)."""
    made = F.min(F.when(F.col("whole"), F.coalesce("created_offset", "offset")))
    first = records.groupBy(*KEY).agg(F.min("offset").alias("offset"), made.alias("made"))
    known = first.withColumn("known", F.coalesce(F.col("made") <= F.col("offset"), F.lit(False)))
    subject = F.format_string("%s partition %d", "topic_id", "partition_id")
    return _finding(
        known.where("NOT known"), "PARTITION-UNKNOWN", subject, "a change of a partition that was never made"
    )


def _directories(records: DataFrame) -> DataFrame:
    """A PartitionRecord whose directories are not one a replica (`PartitionRegistration` throws)."""
    wrong = records.where("whole AND size(directories) <> size(replicas)")
    subject = F.format_string("%s partition %d", "topic_id", "partition_id")
    detail = F.format_string("%d directories for %d replicas", F.size("directories"), F.size("replicas"))
    return _finding(wrong, "DIRECTORIES", subject, detail)


def _partitions_of_unknown_topics(records: DataFrame, lives: DataFrame) -> DataFrame:
    """Records on partitions of a topic that no TopicRecord made, or that was removed before them.

    `ReplicationControlManager.replay` of PartitionRecord and PartitionChangeRecord throws on both.
    """
    topic = [CLUSTER, "topic_id"]
    span = records.groupBy(*topic).agg(
        F.min(F.coalesce("created_offset", "offset")).alias("first"), F.max("offset").alias("last")
    )
    known = span.join(lives.select(*topic, "made", "made_last", "removed"), topic, "left")
    never = F.col("made").isNull() | (F.col("first") < F.col("made"))
    gone = F.col("removed") > F.coalesce("made_last", F.lit(-1))
    late = F.coalesce(gone & (F.col("last") > F.col("removed")), F.lit(False))
    offset = F.when(never, F.col("first")).otherwise(F.col("last"))
    detail = F.when(never, F.lit("a record of a partition before its topic was made")).otherwise(
        F.format_string("a record of a partition after its topic was removed at offset %d", "removed")
    )
    rows = known.where(never | late).withColumns({"offset": offset, "detail": detail})
    return _finding(rows, TOPIC_UNKNOWN, F.format_string("topic id %s", "topic_id"), F.col("detail"))


def _stray_broker_changes(stream: DataFrame) -> DataFrame:
    """Registration changes of a broker epoch that was never registered (`ClusterControlManager.replay` throws)."""
    struct = StructType(list(BROKERS.columns))
    rows = stream.where("entity = 'brokers' AND row IS NOT NULL").withColumn("parsed", F.from_json("row", struct))
    flat = rows.select(CLUSTER, "op", "offset", "parsed.broker_id", "parsed.broker_epoch")
    registered = flat.where(F.col("op") == UPSERT).select(CLUSTER, "broker_id", "broker_epoch")
    stray = flat.where(F.col("op") == PATCH).join(registered, [CLUSTER, "broker_id", "broker_epoch"], "left_anti")
    detail = F.format_string("a change of epoch %d, which was never registered", "broker_epoch")
    return _finding(stray, "BROKER-CHANGE", F.format_string("broker %d", "broker_id"), detail)


def _unknown_unregistrations(stream: DataFrame, records: DataFrame) -> DataFrame:
    """UnregisterBrokerRecords of an id that is not registered, or is with another epoch (`ClusterControlManager.replay` throws)."""
    removals = records.where(F.col("type") == UNREGISTER_BROKER).select(
        CLUSTER,
        "offset",
        _number("brokerId", "int").alias("broker_id"),
        _number("brokerEpoch", "bigint").alias("asked"),
    )
    struct = StructType(list(BROKERS.columns))
    rows = stream.where(f"entity = 'brokers' AND op <> '{PATCH}'")
    parsed = rows.withColumn("parsed", F.from_json("row", struct))
    steps = parsed.select(
        CLUSTER,
        "offset",
        F.get_json_object("replay_key", "$[0]").cast("int").alias("broker_id"),
        # A removal leaves no epoch: -1 stands for it, so that it hides the registration before it.
        F.when(F.col("op") == UPSERT, F.col("parsed.broker_epoch")).otherwise(F.lit(-1)).alias("epoch"),
    )
    lives = steps.groupBy(CLUSTER, "broker_id").agg(
        F.array_sort(F.collect_list(F.struct("offset", "epoch"))).alias("steps")
    )
    before = F.filter("steps", lambda step: step["offset"] < F.col("offset"))
    held = removals.join(lives, [CLUSTER, "broker_id"], "left").withColumn(
        "registered", F.try_element_at(before, F.lit(-1))["epoch"]
    )
    nothing = F.coalesce("registered", F.lit(-1)) == -1
    detail = F.when(nothing, F.lit("an unregistration of a broker that is not registered")).otherwise(
        F.format_string("an unregistration with epoch %d of a broker registered with %d", "asked", "registered")
    )
    stray = held.where(nothing | (F.col("registered") != F.col("asked"))).withColumn("detail", detail)
    return _finding(stray, "REMOVAL-UNKNOWN", F.format_string("broker %d", "broker_id"), F.col("detail"))


def _number(field: str, sql_type: str) -> Column:
    return F.get_json_object("data", f"$.{field}").cast(sql_type)


# What Kafka replays by an identity that must be there to be removed: `AclControlManager`, `ReplicationControlManager`,
# `ScramControlManager` and, for controllers, `ClusterControlManager` (4.4) throw when it is not.
_REMOVED_BY_ID = ("acls", "topics", "scram_credentials", "controllers")


def _unknown_removals(stream: DataFrame) -> DataFrame:
    """Removals of what is not there: never made, or removed already. A removal with a row is a kept state's, not a record."""
    rows = stream.where(F.col("entity").isin(*_REMOVED_BY_ID))
    in_order = Window.partitionBy(CLUSTER, "entity", "replay_key").orderBy("offset")
    asked = rows.withColumns({"op_before": F.lag("op").over(in_order)})
    stray = asked.where((F.col("op") == DELETE) & F.col("row").isNull()).where(
        F.col("op_before").isNull() | (F.col("op_before") == DELETE)
    )
    what = F.when(F.col("op_before").isNull(), F.lit("was never made")).otherwise(F.lit("is removed already"))
    detail = F.concat(F.format_string("a removal of an id in %s that ", "entity"), what)
    return _finding(stray, "REMOVAL-UNKNOWN", F.col("replay_key"), detail)


def _unknown_clearings(lives: DataFrame, records: DataFrame) -> DataFrame:
    """ClearElrRecords that name a topic which is not there (`ReplicationControlManager.replayClearTopicElrs` throws)."""
    named = records.where(F.col("type") == CLEAR_ELR.name).select(
        CLUSTER, "offset", F.get_json_object("data", "$.topicName").alias("topic")
    )
    asked = named.where("topic <> ''")
    span = F.struct("made", "removed")
    of_name = lives.groupBy(CLUSTER, "topic").agg(F.collect_list(span).alias("lives"))
    alive = F.exists(
        "lives",
        lambda life: (
            (life["made"] < F.col("offset")) & (life["removed"].isNull() | (life["removed"] > F.col("offset")))
        ),
    )
    stray = asked.join(of_name, [CLUSTER, "topic"], "left").where(~F.coalesce(alive, F.lit(False)))
    return _finding(stray, CLEAR_UNKNOWN, F.col("topic"), "a ClearElr record of a topic that is not there")


def _clearings_after_removals(lives: DataFrame, records: DataFrame, snapshots: Mapping[str, int | None]) -> DataFrame:
    """ClearElrRecords of all topics after one was made and removed, both since the newest snapshot.

    `TopicsDelta.replay` of 4.1 still holds the topic for made and throws; 4.2 forgets it with its removal.
    """
    every = records.where((F.col("type") == CLEAR_ELR.name) & (F.get_json_object("data", "$.topicName") == ""))
    since = F.coalesce(by_cluster(snapshots, "bigint"), F.lit(0)) if snapshots else F.lit(0)
    short = lives.where((F.col("made") >= since) & F.col("removed").isNotNull())
    met = short.join(F.broadcast(every.select(CLUSTER, "offset")), CLUSTER).where(F.col("offset") > F.col("removed"))
    first = met.groupBy(CLUSTER, "topic").agg(F.min("offset").alias("offset"), F.min("removed").alias("removed"))
    detail = F.format_string("a ClearElr record of all topics after the topic's removal at offset %d", "removed")
    return _finding(first, CLEAR_REMOVED, F.col("topic"), detail)


def _topics_made_twice(folded: DataFrame) -> DataFrame:
    """A TopicRecord for a name that is still there under another id: a second load, or a corrupt log (DUR-08)."""
    topics = folded.where("entity = 'topics'").withColumn(
        "parsed", F.from_json("row", StructType(list(TOPICS.columns)))
    )
    by_name = Window.partitionBy("parsed.topic", CLUSTER).orderBy("created_offset")
    following = topics.withColumn("next_created", F.lead("created_offset").over(by_name))
    ended = F.when(F.col("removed"), F.col("offset"))
    twice = following.where(F.col("next_created").isNotNull() & (ended.isNull() | (ended > F.col("next_created"))))
    return _finding(
        twice,
        "DUR-08",
        F.col("parsed.topic"),
        "a topic of this name was made while another was still there",
        "next_created",
    )


def _topics_made_again(stream: DataFrame) -> DataFrame:
    """Topics whose TopicRecord comes again with the same id: a load that ran more than once (S§4.3, S§14; DUR-08)."""
    made = stream.where((F.col("entity") == "topics") & (F.col("op") == UPSERT))
    again = made.groupBy("replay_key", CLUSTER).agg(
        F.count("*").alias("times"),
        F.max("offset").alias("offset"),
        F.max_by("row", "offset").alias("row"),
    )
    detail = F.format_string("made %d times with the same id", "times")
    return _finding(again.where("times > 1"), "DUR-08", F.get_json_object("row", "$.topic"), detail)


def _producer_ids_back(stream: DataFrame) -> DataFrame:
    """Producer ids that do not rise (`ProducerIdControlManager.replay` throws; ids would be handed out twice)."""
    number = F.get_json_object("row", "$.next_producer_id").cast("bigint")
    blocks = stream.where("entity = 'producer_ids'").withColumn("next_id", number)
    in_order = blocks.withColumn("before", F.lag("next_id").over(Window.partitionBy(CLUSTER).orderBy("offset")))
    detail = F.format_string("next producer id %d after %d", "next_id", "before")
    return _finding(in_order.where("next_id <= before"), "DUR-15", F.lit("producer ids"), detail)


def _shared_broker_ids(stream: DataFrame) -> DataFrame:
    """Registrations that show two processes under one broker id; only what still stands: a broker's newest, at work.

    An incarnation is one start of a process. One that registers again after another did was alive all the time
    (DUR-12). One that takes the place of a registration neither fenced, nor shutting down, nor removed came while the
    controller took the other for alive (BROKER_REPLACED; `ClusterControlManager.registerBroker` allows it when the
    other's session has just run out).
    """
    struct = StructType(list(BROKERS.columns))
    rows = stream.where("entity = 'brokers'").withColumn("parsed", F.from_json("row", struct))
    flat = rows.select(CLUSTER, "replay_key", "op", "offset", *[F.col(f"parsed.{name}") for name in _REGISTERED])
    life = Window.partitionBy("replay_key", CLUSTER).orderBy("offset")
    before = life.rowsBetween(Window.unboundedPreceding, -1)
    ever = life.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    registrations = flat.withColumns(
        {
            "seen": F.collect_set("incarnation_id").over(before),
            "unregistered": F.last("op").over(before) == DELETE,
            "newest": F.max(F.when(F.col("op") != PATCH, F.col("offset"))).over(ever) == F.col("offset"),
            "at_work": ~F.last("fenced", ignorenulls=True).over(ever),
            **{f"{name}_before": F.last(name, ignorenulls=True).over(before) for name in _REGISTERED},
        }
    )
    standing = registrations.where("op = 'upsert' AND newest AND at_work AND incarnation_id_before <> incarnation_id")
    alive = "NOT unregistered AND NOT fenced_before AND NOT in_controlled_shutdown_before"
    back = F.array_contains("seen", F.col("incarnation_id"))
    subject = F.format_string("broker %s", F.get_json_object("replay_key", "$[0]"))
    returned = F.format_string("incarnation %s is back, after %s took its place", *_INCARNATIONS)
    replaced = F.format_string("incarnation %s took the place of %s, which was not fenced", *_INCARNATIONS)
    return _finding(standing.where(back), "DUR-12", subject, returned).unionByName(
        _finding(standing.where(~back).where(alive), BROKER_REPLACED, subject, replaced)
    )
