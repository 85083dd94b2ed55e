"""The log's records to silver rows: Kafka's metadata image at an offset, as tables."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities import ENTITIES, Entity
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from transforms.kraft.elr import cleared
from transforms.kraft.replay import rows as replay
from transforms.kraft.replay.events import Hold, Ranges, applied, as_they_are, events, with_cascades
from transforms.kraft.replay.partitions import fold_partitions, named, partition_history, partition_records
from transforms.reconcile.compare.canonical import key_json, row_json

_FOLDED_ELSEWHERE = ("partitions", "brokers", "migration")


@dataclass(frozen=True)
class Log:
    """The applied part of a log, in the two forms replay works on."""

    events: DataFrame
    hot: DataFrame

    @staticmethod
    def of(
        records: DataFrame, end: int, discarded: Ranges = (), base: Log | None = None, hold: Hold = as_they_are
    ) -> Log:
        """Records below `end` that take effect; columns of bronze kraft_records, one true log, a base re-offset.

        `base` is an earlier state (`transforms.kraft.replay.base.state_at`) that the records continue. `hold` keeps events that
        several queries read, for a caller that makes more than one table of them.
        """
        kept = applied(records, end, discarded)
        read, hot = events(kept), partition_records(kept)
        if base is not None:
            read, hot = base.events.unionByName(read), base.hot.unionByName(hot)
        stream = with_cascades(read, hold)
        return Log(stream, hot.unionByName(cleared(kept, stream, hot)))

    @staticmethod
    def of_checkpoints(records: DataFrame, hold: Hold = as_they_are) -> Log:
        """The records of checkpoints: states as they stand, in which nothing is removed and nothing cascades."""
        return Log(hold(events(records)), partition_records(records))

    def since(self, start: int) -> Log:
        """The part from an offset on."""
        return Log(self.events.where(F.col("offset") >= start), self.hot.where(F.col("offset") >= start))

    def union(self, other: Log) -> Log:
        """The records of both."""
        return Log(self.events.unionByName(other.events), self.hot.unionByName(other.hot))

    def below(self, end: int) -> Log:
        """The part below an offset."""
        return Log(self.events.where(F.col("offset") < end), self.hot.where(F.col("offset") < end))


def with_base(records: DataFrame, base_offset: int | None) -> DataFrame:
    """Log records, and the base checkpoint's at the offset just before its end, so that they come before the log's.

    `base_offset` is the checkpoint's exclusive end; None replays from an empty state.
    """
    log = F.col("checkpoint_offset").isNull()
    if base_offset is None:
        return records.where(log)
    base = F.col("checkpoint_offset") == F.lit(base_offset)
    moved = F.when(log, F.col("offset")).otherwise(F.col("checkpoint_offset") - 1)
    return records.where(base | (log & (F.col("offset") >= base_offset))).withColumn("offset", moved)


def image(log: Log, folded: DataFrame | None = None) -> dict[str, DataFrame]:
    """State after all of `log`: silver columns of each entity with KRaft provenance, by entity name.

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
    partitions = named(fold_partitions(log.hot), tables["topics"])
    tables["partitions"] = _silver_partitions(partitions)
    return tables


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


def row_versions(log: Log, folded: DataFrame, after: int, mirrored: tuple[Entity, ...]) -> DataFrame:
    """Silver row_versions (without the run's columns) of the compared entities.

    Versions of every row touched at `after` or later, the one valid at `after` included, through the log's end; and
    the removals before it of rows that are not there any more. `folded` is `replay.fold` of the committed part.
    """
    names = [entity.name for entity in mirrored]
    moved = replay.versions(log.events.where(F.col("entity").isin(names)), after)
    gone = folded.where(F.col("removed") & F.col("entity").isin(names) & (F.col("offset") < after))
    rows = moved.unionByName(gone).select(
        "entity",
        "key",
        "row",
        "removed",
        F.col("offset").alias("from_offset"),
        F.col("epoch").alias("from_epoch"),
        F.col("append_time").alias("from_append_time"),
        "created_offset",
    )
    return rows.unionByName(_partition_versions(log, replay.fold(log.events.where("entity = 'topics'")), after))


def _partition_versions(log: Log, folded: DataFrame, after: int) -> DataFrame:
    """Versions of partitions whose topic was touched at `after` or later, and of those whose topic is gone.

    Removing a topic removes its partitions without a record of their own (`RemoveTopicRecord` cascades).
    """
    topics = folded.where("entity = 'topics'").withColumn(
        "parsed", F.from_json("row", StructType(list(TOPICS.columns)))
    )
    names = topics.select(
        "parsed.topic",
        "parsed.topic_id",
        F.when(F.col("removed"), F.struct("offset", "epoch", "append_time")).alias("removal"),
    )
    dead = names.where("removal IS NOT NULL").select("topic_id")
    asked = log.hot.where(F.col("offset") >= after).select("topic_id").union(dead).distinct()
    history = partition_history(log.hot.join(F.broadcast(asked), "topic_id", "left_semi"))
    told = named(history, names).join(F.broadcast(names.select("topic_id", "removal")), "topic_id")
    last = F.col("next_offset").isNull()
    valid = F.coalesce("next_offset", "removal.offset", F.lit(after + 1)) > F.lit(after)
    living = F.struct(F.lit(False).alias("removed"), "offset", "epoch", "append_time")
    gone = F.struct(F.lit(True).alias("removed"), "removal.offset", "removal.epoch", "removal.append_time")
    steps = F.array_compact(F.array(F.when(valid, living), F.when(last & F.col("removal").isNotNull(), gone)))
    rows = told.withColumn("step", F.explode(steps))
    flat = rows.drop("offset", "epoch", "append_time").select("*", "step.*")
    return flat.select(
        F.lit(PARTITIONS.name).alias("entity"),
        key_json(PARTITIONS).alias("key"),
        row_json(PARTITIONS).alias("row"),
        "removed",
        F.col("offset").alias("from_offset"),
        F.col("epoch").alias("from_epoch"),
        F.col("append_time").alias("from_append_time"),
        "created_offset",
    )
