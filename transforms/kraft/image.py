"""The log's records to silver rows: Kafka's metadata image at an offset, as tables."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities import ENTITIES, Entity
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from transforms.kraft import replay
from transforms.kraft.events import Ranges, applied, events
from transforms.kraft.partitions import KEY, fold_partitions, named, partition_records, partition_versions
from transforms.reconcile.canonical import key_json, row_json

_FOLDED_ELSEWHERE = ("partitions", "brokers", "migration")


@dataclass(frozen=True)
class Log:
    """The applied part of a log, in the two forms replay works on. Persist both when more than one table is made."""

    events: DataFrame
    hot: DataFrame

    @staticmethod
    def of(records: DataFrame, end: int, discarded: Ranges = ()) -> Log:
        """Records below `end` that take effect; columns of bronze kraft_records, one true log, a base re-offset."""
        kept = applied(records, end, discarded)
        return Log(events(kept), partition_records(kept))

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


def image(log: Log) -> dict[str, DataFrame]:
    """State after all of `log`: silver columns of each entity with KRaft provenance, by entity name.

    The migration's row is not here: its history is a few records, read by the caller.
    """
    folded = replay.fold(log.events)
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


def row_versions(log: Log, after: int, committed: int, mirrored: tuple[Entity, ...]) -> DataFrame:
    """Silver row_versions (without the run's columns) of the compared entities.

    Versions of every row touched at `after` or later, the one valid at `after` included, through the log's end; and
    the removals before `committed` of rows that are not there any more.
    """
    moved = replay.versions(log.events, after)
    gone = replay.fold(log.below(committed).events).where("removed")
    stories = moved.unionByName(gone).distinct()
    plain = [_versions_of(entity, stories) for entity in mirrored if entity.name != "partitions"]
    partitions = _partition_versions(log, after, committed)
    for frame in plain:
        partitions = partitions.unionByName(frame)
    return partitions


def _versions_of(entity: Entity, stories: DataFrame) -> DataFrame:
    struct = StructType(list(entity.columns))
    rows = stories.where(F.col("entity") == entity.name).withColumn("parsed", F.from_json("row", struct))
    flat = rows.select(
        *[F.col(f"parsed.{name}").alias(name) for name in struct.fieldNames()],
        *[F.col(name).alias(f"v_{name}") for name in _VERSION],
    )
    return _canonical_versions(entity, flat)


_VERSION = ("removed", "offset", "epoch", "append_time", "created_offset")


def _canonical_versions(entity: Entity, flat: DataFrame) -> DataFrame:
    return flat.select(
        F.lit(entity.name).alias("entity"),
        key_json(entity).alias("key"),
        row_json(entity).alias("row"),
        F.col("v_removed").alias("removed"),
        F.col("v_offset").alias("from_offset"),
        F.col("v_epoch").alias("from_epoch"),
        F.col("v_append_time").alias("from_append_time"),
        F.col("v_created_offset").alias("created_offset"),
    )


def _partition_versions(log: Log, after: int, committed: int) -> DataFrame:
    topics = replay.fold(log.events.where("entity = 'topics'"))
    names = topics.withColumn("parsed", F.from_json("row", StructType(list(TOPICS.columns)))).select(
        "parsed.topic", "parsed.topic_id", "removed", F.struct("offset", "epoch", "append_time").alias("removal")
    )
    living = named(partition_versions(log.hot, after), names).withColumn("removed", F.lit(False))
    dead = names.where("removed")
    doomed = log.hot.join(F.broadcast(dead.select("topic_id")), "topic_id", "left_semi")
    last_rows = named(fold_partitions(doomed), dead)
    gone = (
        last_rows.join(dead.select("topic_id", "removal"), "topic_id")
        .withColumns(
            {"removed": F.lit(True), **{name: F.col(f"removal.{name}") for name in ("offset", "epoch", "append_time")}}
        )
        .drop("removal")
    )
    # A partition of a topic removed after `after` existed at it, though no partition record touched it since.
    late = dead.where(F.col("removal.offset") >= after)
    existed = named(fold_partitions(doomed.where(F.col("offset") < after)), late).withColumn("removed", F.lit(False))
    rows = living.unionByName(gone).unionByName(existed).distinct()
    flat = rows.withColumnsRenamed({name: f"v_{name}" for name in _VERSION})
    return _canonical_versions(PARTITIONS, flat)
