"""The questions about one cluster's rows: first those with small answers, which decide its phase, then rows that break a rule.

Every answer is a list of rows that fit into JSON, bounded for any size of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import polars as pl

from schemas.checks import ZOOKEEPER
from transforms.reconcile.judge import kraft_queries, queries, zookeeper_writes
from transforms.reconcile.judge.evidence import MOVED, WRITTEN
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.given import Given
from transforms.reconcile.judge.lag_series import lag_series
from transforms.reconcile.judge.left_behind import left_behind
from transforms.reconcile.judge.log_look import LogLook
from transforms.reconcile.judge.mirror import one_by_one
from transforms.reconcile.judge.queries import Known
from transforms.reconcile.judge.samples import Samples, samples
from transforms.reconcile.judge.skew import mirroring_times
from transforms.reconcile.judge.znode_look import TransactionLook, ZnodeLook, znode_rules
from transforms.reconcile.judge.zookeeper_writes import Logged
from transforms.zookeeper.read.trees import at_barrier, newest

# Tables that are as small as the cluster has nodes and features: all their rows are listed.
_SMALL = {
    "brokers": ("source", "broker_id"),
    "controllers": ("source", "controller_id"),
    "features": ("source", "feature"),
    "producer_ids": ("source",),
}
# Number of partitions that are listed for an unexpected broker.
_EXAMPLES = 5
Rows = list[dict[str, Any]]


class SideRows(Protocol):
    """Both sides as tables."""

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Silver rows of both sides by entity."""

    @property
    def findings(self) -> pl.DataFrame:
        """Silver findings."""

    @property
    def admin_operations(self) -> pl.DataFrame:
        """Silver admin_operations of both trees."""

    @property
    def row_versions(self) -> pl.DataFrame:
        """The versions of KRaft's rows (`schemas.replayed.ROW_VERSION`)."""


class TreeRows(Protocol):
    """ZooKeeper's trees."""

    @property
    def znodes(self) -> pl.DataFrame:
        """Znodes of both trees, without their data."""

    @property
    def look(self) -> ZnodeLook:
        """What all znodes showed."""


class LogRows(Protocol):
    """The metadata log."""

    @property
    def look(self) -> LogLook:
        """What all records showed."""


class WriteRows(Protocol):
    """ZooKeeper's transaction logs."""

    @property
    def barriers(self) -> pl.DataFrame:
        """Silver barriers."""

    @property
    def writes(self) -> pl.DataFrame:
        """Silver zookeeper_writes."""

    @property
    def logged(self) -> Logged:
        """Which part of history the logs hold."""

    @property
    def look(self) -> TransactionLook:
        """What all transactions showed."""

    @property
    def holes(self) -> Rows:
        """Where they lack transactions (`zookeeper_writes.holes_of`)."""

    @property
    def born(self) -> int | None:
        """When the metadata log began (append time of its first record, ms); None without one."""


def first_questions(
    given: Given, sides: SideRows, trees: TreeRows, read: LogRows, written: WriteRows, moved: pl.DataFrame | None
) -> dict[str, Rows]:
    """The questions that decide the others, and those whose answers checks use directly: those of `FIRST_ANSWERS` that this
    cluster can be asked.

    `moved` are the znodes that changed between two walks (`transforms.zookeeper.read.bracket`), None without a second one.
    """
    answers = _of_tables(given, sides) | read.look.answers()
    if given.has_zookeeper:
        answers |= trees.look.answers()
    mirrored = one_by_one(given)
    if mirrored is not None:
        answers["skew"] = mirroring_times(sides.tables, mirrored)
    if given.reads_data_folder:
        answers |= _of_transactions(given, written, read.look)
    if moved is not None:
        answers["moved"] = samples(_moved(moved))
    return answers


def _of_tables(given: Given, sides: SideRows) -> dict[str, Rows]:
    tables = sides.tables
    queued = sides.admin_operations.filter((pl.col("kind") == "delete_topic") & at_barrier())
    pending = queued.select(pl.col("subject").alias("topic")).unique().sort("topic")
    configured = (
        tables["configs"].filter(pl.col("resource_type") == "BROKER").select("resource_name", "source").unique()
    )
    partitions = _of_deciding_side(given, tables["partitions"])
    counted = {name: rows for name, rows in tables.items() if name != "migration"}
    return {
        **{name: tables[name].sort(by, maintain_order=True).to_dicts() for name, by in _SMALL.items()},
        "counts": queries.row_counts(counted).to_dicts(),
        "replicas": queries.replica_counts(partitions, pending).to_dicts(),
        "pending": pending.to_dicts(),
        "configured": configured.sort("resource_name", "source").to_dicts(),
        "partition_health": kraft_queries.partition_health(tables["partitions"]).to_dicts(),
        "out_of_sync": kraft_queries.out_of_sync(tables["partitions"]).to_dicts(),
        "broker_configs": kraft_queries.broker_configs(tables["configs"]).to_dicts(),
    }


def _of_deciding_side(given: Given, partitions: pl.DataFrame) -> pl.DataFrame:
    return partitions.filter(pl.col("source") == given.deciding_side)


def _of_transactions(given: Given, written: WriteRows, look: LogLook) -> dict[str, Rows]:
    """The content of a data folder's transaction logs: whether the tree is at a barrier, and other writers."""
    last_write = (given.compared or {}).get("migration_mzxid")
    answers = {
        "at_barrier": zookeeper_writes.at_barrier(written.barriers, last_write),
        **zookeeper_writes.questions(written.writes),
        **written.logged.answers(written.holes),
    }
    if written.born is not None:
        answers["lag_series"] = lag_series(written.barriers, look.append_times, written.born, written.holes)
    return answers


def _moved(moved: pl.DataFrame) -> pl.DataFrame:
    """Znodes that moved between two walks, as VIOLATIONS."""
    # It moves all the time in dual write, which is not a fault but a sign of life.
    migration, its_data = pl.col("path") == "/migration", pl.col("moved") == "data"
    code = pl.when(~migration).then(pl.lit(MOVED)).when(its_data).then(pl.lit(WRITTEN))
    text = pl.concat_str("path", "moved", separator=": ")
    return moved.select(code.alias("code"), text.alias("text")).filter(pl.col("code").is_not_null())


def second_questions(
    look: FirstLook,
    sides: SideRows,
    trees: TreeRows,
    read: LogRows,
    written: WriteRows,
    history: pl.DataFrame | None,
    epochs: pl.DataFrame,
) -> dict[str, Rows]:
    """Which rows break a rule, and examples of what the first answers counted.

    `history` are the changes of the log's partitions (`transforms.isr.violations.JUDGED`), None without a log; `epochs` those of
    ZooKeeper's partitions as the run before had them (topic, partition, zk_czxid, leader_epoch, partition_epoch).
    """
    given, tables = look.given, sides.tables
    found = broken_rules(look.known(), sides, trees, read, written, history)
    answers = {"samples": found.rows()}
    if given.has_zookeeper and not epochs.is_empty():
        answers["earlier_epochs"] = [{"partitions": epochs.height}]
        now = tables["partitions"].filter(pl.col("source") == ZOOKEEPER)
        answers["fallen"] = samples(kraft_queries.fallen_epochs(now, epochs))
    if look.strangers:
        partitions = _of_deciding_side(given, tables["partitions"])
        answers["examples"] = queries.partitions_on(partitions, look.registered, _EXAMPLES).to_dicts()
    if look.rolled_back_from is not None:
        answers["left_behind"] = samples(left_behind(tables, sides.row_versions, look.rolled_back_from))
    return answers


def broken_rules(
    known: Known, sides: SideRows, trees: TreeRows, read: LogRows, written: WriteRows, history: pl.DataFrame | None
) -> Samples:
    """All violations that single rows show; `history` as in `second_questions`."""
    tables = {
        **sides.tables,
        "findings": sides.findings,
        "admin_operations": sides.admin_operations.filter(newest()),
        "row_versions": sides.row_versions,
    }
    if history is not None:
        tables["isr_history"] = history
    found = Samples(queries.violations(tables, known))
    found.add(znode_rules(trees.znodes, known))
    for seen in (trees.look.violations, written.look.violations, read.look.violations_by(known.load)):
        found.merge(seen)
    return found
