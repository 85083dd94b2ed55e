"""State rows of znodes to silver rows of each entity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities import ENTITIES, Entity
from schemas.entities.partitions import PARTITIONS
from schemas.zookeeper.trees import TREE
from transforms.clusters import CLUSTER
from transforms.zookeeper.read.trees import at_barrier, newest

_PROVENANCE = ("zk_path", "zk_czxid", "zk_mzxid", "zk_mtime")
_OWN_SHAPE = ("partitions", "migration")


def tables(state: DataFrame) -> dict[str, DataFrame]:
    """Silver rows with `cluster` by entity name from CLUSTER_STATE rows; the migration's row is made by `migration_row`.

    What is compared is of the tree at the barrier, the rest as it was when the tree was read.
    """
    compared, as_read = state.where(at_barrier()), state.where(newest())
    made = {
        entity.name: _rows(compared if entity.mirrored else as_read, entity)
        for entity in ENTITIES
        if entity.name not in _OWN_SHAPE
    }
    made["partitions"] = _partitions(compared)
    return made


def _rows(state: DataFrame, entity: Entity) -> DataFrame:
    struct = StructType(list(entity.columns))
    rows = state.where(F.col("entity") == entity.name).withColumn("parsed", F.from_json("row", struct))
    return rows.select(CLUSTER, *[F.col(f"parsed.{name}").alias(name) for name in struct.fieldNames()], *_PROVENANCE)


_ASSIGNED = ("replicas", "adding_replicas", "removing_replicas")
_STATED = ("isr", "leader", "leader_epoch", "leader_recovery_state", "partition_epoch", "controller_epoch")


def _partitions(state: DataFrame) -> DataFrame:
    """Assignments with their states; a partition without a readable state znode keeps nulls there (START-04)."""
    assignments = state.where("entity = 'partition_assignments'").select(
        CLUSTER,
        "topic",
        "partition",
        "topic_id",
        *_ASSIGNED,
        F.col("zk_path").alias("topic_path"),
        F.col("zk_mzxid").alias("zk_assignment_mzxid"),
        F.col("zk_mtime").alias("zk_assignment_mtime"),
    )
    states = state.where("entity = 'partition_states'").select(CLUSTER, "topic", "partition", *_STATED, *_PROVENANCE)
    joined = assignments.join(states, [CLUSTER, "topic", "partition"], "left")
    kraft_only = {
        "directories": "array<string>",
        "eligible_leader_replicas": "array<int>",
        "last_known_elr": "array<int>",
    }
    filled = joined.withColumns({name: F.lit(None).cast(kind) for name, kind in kraft_only.items()})
    return filled.withColumn("zk_path", F.coalesce("zk_path", "topic_path")).select(
        CLUSTER, *[field.name for field in PARTITIONS.columns], *_PROVENANCE
    )


def migration_row(rows: Iterable[Mapping[str, Any]], tree: str) -> dict[str, Any] | None:
    """Merge the few state rows of entity `migration` (one per znode, each with its own columns); None without any.

    Of two trees, that of `tree` (`schemas.zookeeper.trees`).
    """
    merged: dict[str, Any] = {}
    for row in rows:
        if row[TREE] not in (None, tree):
            continue
        merged |= {name: value for name, value in json.loads(row["row"]).items() if value is not None}
    return merged or None
