"""Records that break a rule of replay (S§3.1, S§11): Kafka throws on them, the audit names them and goes on."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities.brokers import BROKERS
from schemas.entities.topics import TOPICS
from transforms.kraft.entities.event import PATCH, UPSERT
from transforms.kraft.image import Log
from transforms.kraft.partitions import KEY


def log_findings(log: Log, folded: DataFrame) -> DataFrame:
    """Findings of a replayed log: source, code, subject, detail, place.

    `folded` is `replay.fold` of the log's events.
    """
    frames = [
        _unknown_partitions(log.hot),
        _directories(log.hot),
        _stray_broker_changes(log.events),
        _unknown_removals(log.events),
        _topics_made_twice(folded),
        _topics_made_again(log.events),
        _producer_ids_back(log.events),
    ]
    found = frames[0]
    for frame in frames[1:]:
        found = found.unionByName(frame)
    return found


def _finding(rows: DataFrame, code: str, subject: Column, detail: Column | str, offset: str = "offset") -> DataFrame:
    return rows.select(
        F.lit("kraft").alias("source"),
        F.lit(code).alias("code"),
        subject.alias("subject"),
        (F.lit(detail) if isinstance(detail, str) else detail).alias("detail"),
        F.format_string("offset %d", F.col(offset)).alias("place"),
    )


def _unknown_partitions(hot: DataFrame) -> DataFrame:
    """Changes of a partition that no PartitionRecord made (`ReplicationControlManager.replay` throws)."""
    known = hot.groupBy(*KEY).agg(F.bool_or("whole").alias("known"), F.min("offset").alias("offset"))
    subject = F.format_string("%s partition %d", "topic_id", "partition_id")
    return _finding(
        known.where("NOT known"), "PARTITION-UNKNOWN", subject, "a change of a partition that was never made"
    )


def _directories(hot: DataFrame) -> DataFrame:
    """A PartitionRecord whose directories are not one a replica (`PartitionRegistration` throws)."""
    wrong = hot.where("whole AND size(directories) <> size(replicas)")
    subject = F.format_string("%s partition %d", "topic_id", "partition_id")
    detail = F.format_string("%d directories for %d replicas", F.size("directories"), F.size("replicas"))
    return _finding(wrong, "DIRECTORIES", subject, detail)


def _stray_broker_changes(stream: DataFrame) -> DataFrame:
    """Registration changes of a broker epoch that was never registered (`ClusterControlManager.replay` throws)."""
    struct = StructType(list(BROKERS.columns))
    rows = stream.where("entity = 'brokers' AND row IS NOT NULL").withColumn("parsed", F.from_json("row", struct))
    flat = rows.select("op", "offset", "parsed.broker_id", "parsed.broker_epoch")
    registered = flat.where(F.col("op") == UPSERT).select("broker_id", "broker_epoch")
    stray = flat.where(F.col("op") == PATCH).join(registered, ["broker_id", "broker_epoch"], "left_anti")
    detail = F.format_string("a change of epoch %d, which was never registered", "broker_epoch")
    return _finding(stray, "BROKER-CHANGE", F.format_string("broker %d", "broker_id"), detail)


def _unknown_removals(stream: DataFrame) -> DataFrame:
    """Removals of an ACL or a topic by an id that was never made (`AclControlManager.replay` throws)."""
    rows = stream.where("entity IN ('acls', 'topics')").groupBy("entity", "replay_key")
    seen = rows.agg(F.bool_or(F.col("op") == UPSERT).alias("made"), F.min("offset").alias("offset"))
    detail = F.format_string("a removal of an id in %s that was never made", "entity")
    return _finding(seen.where("NOT made"), "REMOVAL-UNKNOWN", F.col("replay_key"), detail)


def _topics_made_twice(folded: DataFrame) -> DataFrame:
    """A TopicRecord for a name that is still there under another id: a second load, or a corrupt log (DUR-08)."""
    topics = folded.where("entity = 'topics'").withColumn(
        "parsed", F.from_json("row", StructType(list(TOPICS.columns)))
    )
    by_name = Window.partitionBy("parsed.topic").orderBy("created_offset")
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
    again = made.groupBy("replay_key").agg(
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
    in_order = blocks.withColumn("before", F.lag("next_id").over(Window.orderBy("offset")))
    detail = F.format_string("next producer id %d after %d", "next_id", "before")
    return _finding(in_order.where("next_id <= before"), "DUR-15", F.lit("producer ids"), detail)
