"""The log's records to silver rows: Kafka's metadata image at an offset, as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities import ENTITIES, Entity
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.kraft.replay import rows as replay
from transforms.kraft.replay.elr import cleared
from transforms.kraft.replay.entities.event import DELETE, PATCH
from transforms.kraft.replay.events import Cache, applied, events, uncached, with_cascades
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.partitions import fold_partitions, named, partition_history, partition_records
from transforms.reconcile.compare.canonical import key_json, row_json

_FOLDED_ELSEWHERE = ("partitions", "brokers", "migration")


@dataclass(frozen=True)
class Log:
    """The applied part of a log, in the two forms replay works on."""

    events: DataFrame
    partition_records: DataFrame

    @staticmethod
    def of(
        records: DataFrame,
        extents: Mapping[str, Extent],
        base: Log | None = None,
        cache: Cache = uncached,
        *,
        clearing: bool = True,
    ) -> Log:
        """Records that take effect (`transforms.kraft.replay.events.applied`); columns of bronze kraft_records with `cluster`.

        `base` is an earlier state (`transforms.kraft.replay.compaction.state_at`) that the records continue. `cache` keeps events that
        several queries read, for a caller that makes more than one table of them. Without
        `clearing` the caller knows that there is no CLEAR_ELR among the records, which spares looking for what it clears.
        """
        kept = applied(records, extents)
        read, partitions = events(kept), partition_records(kept)
        if base is not None:
            read, partitions = base.events.unionByName(read), base.partition_records.unionByName(partitions)
        stream = with_cascades(read, cache)
        if clearing:
            # Several joins, which several queries would each make anew.
            partitions = cache(partitions.unionByName(cleared(kept, stream, partitions)))
        return Log(stream, partitions)

    @staticmethod
    def of_checkpoints(records: DataFrame, cache: Cache = uncached) -> Log:
        """The records of checkpoints: states as they stand, in which nothing is removed and nothing cascades."""
        return Log(cache(events(records)), partition_records(records))

    def since(self, starts: Mapping[str, int]) -> Log:
        """The part from each cluster's offset on; all of a cluster that is not in `starts`."""
        start = F.coalesce(by_cluster(starts, "bigint"), F.lit(-1)) if starts else F.lit(-1)
        return Log(self.events.where(F.col("offset") >= start), self.partition_records.where(F.col("offset") >= start))

    def of_clusters(self, clusters: Collection[str]) -> Log:
        """The part of some clusters."""
        mine = of_clusters(clusters)
        return Log(self.events.where(mine), self.partition_records.where(mine))

    def union(self, other: Log) -> Log:
        """The records of both."""
        return Log(self.events.unionByName(other.events), self.partition_records.unionByName(other.partition_records))

    def below(self, ends: Mapping[str, int]) -> Log:
        """The part below each cluster's offset; nothing of a cluster that is not in `ends`."""
        end = by_cluster(ends, "bigint")
        return Log(self.events.where(F.col("offset") < end), self.partition_records.where(F.col("offset") < end))


def image(log: Log, folded: DataFrame | None = None) -> dict[str, DataFrame]:
    """State after all of `log`: cluster and the silver columns of each entity with KRaft provenance, by entity name.

    `folded` is `replay.fold` of the log's events, for a caller that has it already. The migration's row is not here:
    its history is a few records, read by the caller.
    """
    folded = replay.fold(log.events) if folded is None else folded
    tables = {
        entity.name: replay.typed(folded, entity.name, StructType(list(entity.columns)))
        for entity in ENTITIES
        if entity.name not in _FOLDED_ELSEWHERE
    }
    tables["brokers"] = replay.brokers(log.events, folded)
    partitions = named(fold_partitions(log.partition_records), tables["topics"])
    tables["partitions"] = _silver_partitions(partitions)
    return tables


def topic_names(events: DataFrame) -> DataFrame:
    """Every topic that the events of a log tell of, those that were removed too: cluster, topic_id, topic."""
    topics = events.where("entity = 'topics' AND row IS NOT NULL")
    return topics.select(
        CLUSTER,
        F.get_json_object("replay_key", "$[0]").alias("topic_id"),
        F.get_json_object("row", "$.topic").alias("topic"),
    ).distinct()


def _silver_partitions(partitions: DataFrame) -> DataFrame:
    nothing = F.lit(None)
    return partitions.withColumns(
        {
            "controller_epoch": nothing.cast("int"),
            "zk_assignment_mzxid": nothing.cast("bigint"),
            "zk_assignment_mtime": nothing.cast("bigint"),
        }
    ).withColumnsRenamed(
        {
            "offset": "kraft_offset",
            "created_offset": "kraft_created_offset",
            "epoch": "kraft_epoch",
            "append_time": "kraft_append_time",
        }
    )


def row_versions(log: Log, folded: DataFrame, after: Mapping[str, int], mirrored: tuple[Entity, ...]) -> DataFrame:
    """Rows of `schemas.replayed.ROW_VERSION` of the compared entities.

    Versions of every row touched at its cluster's offset `after` or later, the one valid at `after` included, through
    the log's end; and the removals before it of rows that are not there any more. `folded` is `replay.fold` of the committed part.
    """
    names = [entity.name for entity in mirrored]
    moved = replay.versions(log.events.where(F.col("entity").isin(names)), after)
    gone = folded.where(
        F.col("removed") & F.col("entity").isin(names) & (F.col("offset") < by_cluster(after, "bigint"))
    )
    rows = moved.unionByName(gone).select(
        CLUSTER,
        "entity",
        "key",
        "row",
        "removed",
        F.col("offset").alias("from_offset"),
        F.col("epoch").alias("from_epoch"),
        F.col("append_time").alias("from_append_time"),
        "created_offset",
    )
    return rows.unionByName(_partition_versions(log, after))


def versions_of(log: Log, asked: DataFrame, until: Mapping[str, int]) -> DataFrame:
    """Everything that happened to some rows up to their cluster's offset `until` (inclusive), in all their lives.

    `asked` are keys of compared rows (cluster, entity, key: canonical); gives rows of `schemas.replayed.ROW_VERSION`, one for
    each record on the row. What a removal removed is in its row. Rows of other entities than partitions hold all their
    columns, not the compared ones alone. `log` must reach back as far as it is to be told.
    """
    end = by_cluster(until, "bigint")
    upto = Log(log.events.where(F.col("offset") <= end), log.partition_records.where(F.col("offset") <= end))
    row, replayed = ["key", "entity", CLUSTER], ["replay_key", "entity", CLUSTER]
    keys = F.broadcast(asked.where(F.col("entity") != PARTITIONS.name))
    # A removal has the key that Kafka replays by and no other.
    mine = upto.events.join(keys, row, "left_semi").select(*replayed).distinct()
    whole = upto.events.where(F.col("op") != PATCH).join(F.broadcast(mine), replayed, "left_semi")
    in_order = Window.partitionBy(*replayed).orderBy("offset")
    filled = whole.withColumns({name: F.last(name, ignorenulls=True).over(in_order) for name in ("key", "row")})
    events = filled.where("row IS NOT NULL").select(
        CLUSTER,
        "entity",
        "key",
        "row",
        (F.col("op") == DELETE).alias("removed"),
        F.col("offset").alias("from_offset"),
        F.col("epoch").alias("from_epoch"),
        F.col("append_time").alias("from_append_time"),
        "created_offset",
    )
    partitions = asked.where(F.col("entity") == PARTITIONS.name)
    topics = partitions.select(CLUSTER, F.get_json_object("key", "$.topic").alias("topic")).distinct()
    names = _topic_names(upto).join(F.broadcast(topics), [CLUSTER, "topic"], "left_semi")
    versions = _versions_of_topics(upto, names, names.select(CLUSTER, "topic_id"), F.lit(0))
    return events.unionByName(versions.join(F.broadcast(partitions), row, "left_semi"))


def _topic_names(log: Log) -> DataFrame:
    """Every topic that ever was: cluster, topic, topic_id, removal (offset, epoch, append_time; null while it lives)."""
    folded = replay.fold(log.events.where(F.col("entity") == TOPICS.name))
    topics = folded.withColumn("parsed", F.from_json("row", StructType(list(TOPICS.columns))))
    return topics.select(
        CLUSTER,
        "parsed.topic",
        "parsed.topic_id",
        F.when(F.col("removed"), F.struct("offset", "epoch", "append_time")).alias("removal"),
    )


def _partition_versions(log: Log, after: Mapping[str, int]) -> DataFrame:
    """Versions of partitions whose topic was touched at `after` or later, and of those whose topic is gone."""
    names, topic = _topic_names(log), [CLUSTER, "topic_id"]
    since = by_cluster(after, "bigint")
    dead = names.where("removal IS NOT NULL").select(*topic)
    touched = log.partition_records.where(F.col("offset") >= since).select(*topic).union(dead).distinct()
    return _versions_of_topics(log, names, touched, since)


def _versions_of_topics(log: Log, names: DataFrame, asked: DataFrame, since: Column) -> DataFrame:
    """Versions of the partitions of the topics `asked` (cluster, topic_id) that are valid at offset `since` or later.

    Removing a topic removes its partitions without a record of their own (`RemoveTopicRecord` cascades).
    """
    topic = [CLUSTER, "topic_id"]
    history = partition_history(log.partition_records.join(F.broadcast(asked), topic, "left_semi"))
    named_versions = named(history, names).join(F.broadcast(names.select(*topic, "removal")), topic)
    last = F.col("next_offset").isNull()
    valid = F.coalesce("next_offset", "removal.offset", since + 1) > since
    living = F.struct(F.lit(False).alias("removed"), "offset", "epoch", "append_time")
    gone = F.struct(F.lit(True).alias("removed"), "removal.offset", "removal.epoch", "removal.append_time")
    steps = F.array_compact(F.array(F.when(valid, living), F.when(last & F.col("removal").isNotNull(), gone)))
    rows = named_versions.withColumn("step", F.explode(steps))
    flat = rows.drop("offset", "epoch", "append_time").select("*", "step.*")
    return flat.select(
        CLUSTER,
        F.lit(PARTITIONS.name).alias("entity"),
        key_json(PARTITIONS).alias("key"),
        row_json(PARTITIONS).alias("row"),
        "removed",
        F.col("offset").alias("from_offset"),
        F.col("epoch").alias("from_epoch"),
        F.col("append_time").alias("from_append_time"),
        "created_offset",
    )
