"""The migration's own state on both sides: rows of silver `migration`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.entities.migration import MIGRATION
from schemas.kraft.records import ZK_MIGRATION_STATE
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from transforms.frames import columns_of, frame

Row = Mapping[str, Any]


def migration_rows(znodes: Row | None, compared: Row | None, milestones: Iterable[Row]) -> pl.DataFrame:
    """Rows of silver `migration`, but for the run's columns: ZooKeeper's znodes, and each state that KRaft recorded.

    `znodes` is `transforms.zookeeper.read.tables.migration_row` of the newest tree, `compared` that of the tree at the barrier;
    where they are the same, one row stands for both. `milestones` are the log's, with type, offset, epoch, append_time and data.
    """
    rows: list[Row] = [{"source": ZOOKEEPER, **mine, TREE: tree} for tree, mine in _of_trees(znodes, compared)]
    rows += [_recorded(record) for record in milestones if record["type"] == ZK_MIGRATION_STATE.name]
    return frame(rows, columns_of(MIGRATION.row_columns))


def _of_trees(znodes: Row | None, compared: Row | None) -> list[tuple[str | None, Row]]:
    trees = [(None, znodes)] if znodes == compared else [(NEWEST, znodes), (BARRIER, compared)]
    return [(tree, mine) for tree, mine in trees if mine is not None]


def _recorded(record: Row) -> Row:
    return {
        "source": KRAFT,
        "state_code": json.loads(record["data"])["zkMigrationState"],
        "kraft_offset": record["offset"],
        "kraft_created_offset": record["offset"],
        "kraft_epoch": record["epoch"],
        "kraft_append_time": record["append_time"],
    }
