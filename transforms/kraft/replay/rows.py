"""Events to state: the last event of a key decides, a patch changes some columns, a delete leaves a tombstone.

Everything is set-based, so the order of partitions and batches does not matter; offsets are the order. A base
checkpoint's records stand at the offset before its end and so come before every log record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities.brokers import BROKERS
from transforms.clusters import CLUSTER, by_cluster
from transforms.kraft.replay.entities.event import DELETE, PATCH


# Columns of `fold`: entity, replay_key, key (canonical), row (JSON; of a removed row its last content), removed, offset,
# epoch, append_time (of the last event), created_offset.
def _last() -> Column:
    return F.max(F.struct("offset", "epoch", "append_time")).alias("last")


def fold(stream: DataFrame, by: Sequence[str] = (CLUSTER,)) -> DataFrame:
    """State after all events of `stream`: a row for each key that ever existed, `removed` when its last event deleted it.

    Streams that differ in the columns `by` have a state each.
    """
    return fold_all(stream, by).where("row IS NOT NULL")


def fold_all(stream: DataFrame, by: Sequence[str] = (CLUSTER,)) -> DataFrame:
    """`fold` with the keys that were deleted and never made: their key and row are null."""
    whole = stream.where(F.col("op") != PATCH)
    has_row = F.col("row").isNotNull()
    folded = whole.groupBy("replay_key", "entity", *by).agg(
        F.max_by("op", "offset").alias("op"),
        _filtered("max_by(struct(key, row), offset)", "row IS NOT NULL").alias("content"),
        _last(),
        F.min(F.when(has_row, F.coalesce("created_offset", "offset"))).alias("created_offset"),
    )
    return folded.select(
        *by,
        "entity",
        "replay_key",
        "content.key",
        "content.row",
        (F.col("op") == DELETE).alias("removed"),
        F.col("last.offset").alias("offset"),
        F.col("last.epoch").alias("epoch"),
        F.col("last.append_time").alias("append_time"),
        "created_offset",
    )


def _filtered(aggregate: str, condition: str) -> Column:
    return F.expr(f"{aggregate} FILTER (WHERE {condition})")


def typed(folded: DataFrame, entity: str, struct: StructType, by: Sequence[str] = (CLUSTER,)) -> DataFrame:
    """Living rows of one entity with its silver columns, the KRaft provenance columns and those of `by`."""
    rows = folded.where((F.col("entity") == entity) & ~F.col("removed"))
    parsed = rows.withColumn("parsed", F.from_json("row", struct))
    return parsed.select(
        *by,
        *[F.col(f"parsed.{name}").alias(name) for name in struct.fieldNames()],
        *kraft_provenance(),
    )


def kraft_provenance() -> list[Column]:
    """Provenance columns of a silver KRaft row, from `fold`'s columns."""
    return [
        F.col("offset").alias("kraft_offset"),
        F.col("created_offset").alias("kraft_created_offset"),
        F.col("epoch").alias("kraft_epoch"),
        F.col("append_time").alias("kraft_append_time"),
    ]


_PATCHED = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")


def brokers(stream: DataFrame, folded: DataFrame, by: Sequence[str] = (CLUSTER,)) -> DataFrame:
    """Living broker registrations with the changes of their own epoch applied (`BrokerRegistrationChangeRecord`).

    A change of another epoch than the registration's is not applied: Kafka throws on it; see `stray_broker_changes`.
    """
    struct = StructType(list(BROKERS.columns))
    registered = typed(folded, "brokers", struct, by)
    registration = [*by, "broker_id", "broker_epoch"]
    patches = (
        stream.where((F.col("entity") == "brokers") & (F.col("op") == PATCH))
        .withColumn("parsed", F.from_json("row", struct))
        .select(
            *by,
            "parsed.broker_id",
            "parsed.broker_epoch",
            *[f"parsed.{c}" for c in _PATCHED],
            "offset",
            "epoch",
            "append_time",
        )
    )
    changes = (
        patches.join(registered.select(*registration, "kraft_offset"), registration)
        .where(F.col("offset") > F.col("kraft_offset"))
        .groupBy(*by, "broker_id")
        .agg(
            *[_filtered(f"max_by({c}, offset)", f"{c} IS NOT NULL").alias(f"new_{c}") for c in _PATCHED],
            _last(),
        )
    )
    merged = registered.join(changes, [*by, "broker_id"], "left")
    return merged.select(
        *by,
        *[_patched(name) for name in struct.fieldNames()],
        F.coalesce("last.offset", "kraft_offset").alias("kraft_offset"),
        "kraft_created_offset",
        F.coalesce("last.epoch", "kraft_epoch").alias("kraft_epoch"),
        F.coalesce("last.append_time", "kraft_append_time").alias("kraft_append_time"),
    )


def _patched(name: str) -> Column:
    return F.coalesce(f"new_{name}", name).alias(name) if name in _PATCHED else F.col(name)


def versions(stream: DataFrame, after: Mapping[str, int]) -> DataFrame:
    """Every state a row had from its cluster's offset `after` (inclusive) on, for rows touched there.

    Columns of `fold`; one row for each version, the one valid at `after` included. A version is valid until the next
    one's offset. Only whole-row events count (brokers, which are patched, are not compared between the sides).
    """
    since = by_cluster(after, "bigint")
    row = ["replay_key", "entity", CLUSTER]
    touching = stream.where((F.col("offset") >= since) & (F.col("op") != PATCH))
    keys = touching.select(*row).distinct()
    before = fold(stream.where(F.col("offset") < since).join(F.broadcast(keys), row, "left_semi"))
    later = touching.select(
        *row,
        "key",
        "row",
        (F.col("op") == DELETE).alias("removed"),
        "offset",
        "epoch",
        "append_time",
        F.lit(None).cast("bigint").alias("created_offset"),
    )
    in_order = Window.partitionBy(*row).orderBy("offset")
    # A delete names only the key; what was deleted is the content of the version before it.
    whole = before.unionByName(later).withColumns(
        {name: F.last(name, ignorenulls=True).over(in_order) for name in ("key", "row")}
    )
    return whole.where("row IS NOT NULL")
