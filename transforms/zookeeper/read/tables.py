"""State rows of znodes to silver rows of each entity, of findings and of requests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars as pl

from schemas.checks import ZOOKEEPER
from schemas.entities import ENTITIES, Entity
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from schemas.zookeeper.trees import TREE
from transforms.frames import columns_of, frame, shaped
from transforms.zookeeper.read.trees import at_barrier, newest

_PROVENANCE = ("zk_path", "zk_czxid", "zk_mzxid", "zk_mtime")
_RUN = ("cluster", "run_id")
# Texts that the encoder of state rows writes for numbers, and that are no JSON.
_NO_NUMBER = "NaN|Infinity"


def tables(state: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """ZooKeeper's silver rows by entity name from rows of `transforms.zookeeper.read.state.STATE`.

    What is compared is of the tree at the barrier, the rest as it was when the tree was read. The migration's row is made by
    `migration_row`.
    """
    compared, as_read = state.filter(at_barrier()), state.filter(newest())
    made = {
        entity.name: _rows(compared if entity.mirrored else as_read, entity)
        for entity in ENTITIES
        if entity not in (PARTITIONS, MIGRATION)
    }
    return made | {PARTITIONS.name: _partitions(compared)}


def findings(state: pl.DataFrame) -> pl.DataFrame:
    """ZooKeeper's rows of silver findings: faults of znodes in the newest tree."""
    rows = state.filter(newest()).with_columns(place=pl.col("zk_path"))
    said = pl.Schema(dict.fromkeys(("code", "subject", "detail"), pl.String))
    found = _parsed(rows, "findings", said, ("place",)).with_columns(source=pl.lit(ZOOKEEPER))
    return shaped(found, columns_of(FINDINGS.columns, *_RUN))


def admin_operations(state: pl.DataFrame) -> pl.DataFrame:
    """Rows of silver admin_operations, of both trees."""
    said = pl.Schema(dict.fromkeys(("kind", "subject", "detail"), pl.String))
    rows = _parsed(state, "admin_operations", said, (TREE, *_PROVENANCE))
    return shaped(rows, columns_of(ADMIN_OPERATIONS.columns, *_RUN))


def migration_row(state: pl.DataFrame, tree: str) -> dict[str, Any] | None:
    """Merge the few state rows of entity `migration` (one per znode, each with its own columns); None without any.

    Of two trees, that of `tree` (`schemas.zookeeper.trees`).
    """
    merged: dict[str, Any] = {}
    of_tree = pl.col(TREE).is_null() | (pl.col(TREE) == tree)
    for row in state.filter((pl.col("entity") == "migration") & of_tree)["row"]:
        merged |= {name: value for name, value in json.loads(row).items() if value is not None}
    return merged or None


def _rows(state: pl.DataFrame, entity: Entity) -> pl.DataFrame:
    rows = _parsed(state, entity.name, columns_of(entity.columns), _PROVENANCE)
    return shaped(rows.with_columns(source=pl.lit(ZOOKEEPER)), columns_of(entity.row_columns))


def _parsed(state: pl.DataFrame, entity: str, columns: pl.Schema, beside: Iterable[str]) -> pl.DataFrame:
    """The columns in the JSON of an entity's state rows, and the others."""
    rows = state.filter(pl.col("entity") == entity)
    if rows.is_empty():
        return pl.DataFrame(schema={**columns, **{name: state.schema[name] for name in beside}})
    text = rows["row"]
    if text.str.contains(_NO_NUMBER).any():
        parsed = frame([json.loads(each) for each in text], columns)
    else:
        parsed = text.str.json_decode(pl.Struct(columns)).struct.unnest()
    return parsed.hstack(rows.select(beside))


_KEY = ("topic", "partition")
_ASSIGNED = ("topic_id", "replicas", "adding_replicas", "removing_replicas")
_STATED = ("isr", "leader", "leader_epoch", "leader_recovery_state", "partition_epoch", "controller_epoch")


def _partitions(state: pl.DataFrame) -> pl.DataFrame:
    """Assignments with their states; a partition without a readable state znode keeps nulls there (START-04)."""
    assignments = state.filter(pl.col("entity") == "partition_assignments").select(
        *_KEY,
        *_ASSIGNED,
        topic_path="zk_path",
        zk_assignment_mzxid="zk_mzxid",
        zk_assignment_mtime="zk_mtime",
    )
    states = state.filter(pl.col("entity") == "partition_states").select(*_KEY, *_STATED, *_PROVENANCE)
    joined = assignments.join(states, on=_KEY, how="left").with_columns(
        zk_path=pl.coalesce("zk_path", "topic_path"), source=pl.lit(ZOOKEEPER)
    )
    return shaped(joined, columns_of(PARTITIONS.row_columns))
