"""One spelling for a row of any entity, so that one engine compares them all: key and compared columns as JSON text."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.entities import Entity
from transforms.clusters import CLUSTER

_KEEP_NULLS = {"ignoreNullFields": "false"}
# A partition's row comes from two znodes: its state, and its topic's, which holds the assignment.
ASSIGNMENT_PROVENANCE = ("zk_assignment_mzxid", "zk_assignment_mtime")


def key_json(entity: Entity) -> Column:
    """The canonical key (S§6) as one JSON object; `{}` for an entity with a single row."""
    if not entity.key:
        return F.lit("{}")
    return F.to_json(F.struct(*entity.key), _KEEP_NULLS)


def row_json(entity: Entity) -> Column:
    """The compared columns as one JSON object, sets sorted; equal rows have equal text."""
    if not entity.compared:
        return F.lit("{}")
    return F.to_json(F.struct(*[_column(entity, name) for name in entity.compared]), _KEEP_NULLS)


def _column(entity: Entity, name: str) -> Column:
    return F.array_sort(name).alias(name) if name in entity.unordered else F.col(name)


def comparable(entity: Entity) -> Column:
    """False where a row's value is ciphertext."""
    return F.col(entity.comparable_flag) if entity.comparable_flag else F.lit(True)


def canonical(entity: Entity, rows: DataFrame) -> DataFrame:
    """Silver rows of one entity to (cluster, zk: which side, entity, key, row, comparable, provenance)."""
    assigned = entity.name == "partitions"
    return rows.select(
        CLUSTER,
        (F.col("source") == "zookeeper").alias("zk"),
        F.lit(entity.name).alias("entity"),
        key_json(entity).alias("key"),
        row_json(entity).alias("row"),
        comparable(entity).alias("comparable"),
        "zk_path",
        "zk_czxid",
        "zk_mzxid",
        "zk_mtime",
        *[(F.col(name) if assigned else F.lit(None).cast("bigint")).alias(name) for name in ASSIGNMENT_PROVENANCE],
        "kraft_offset",
        "kraft_created_offset",
        "kraft_append_time",
    )
