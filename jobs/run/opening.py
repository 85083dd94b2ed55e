"""The few rows that decide how a cluster's others are read: Kafka's root znodes, `/migration`, `/controller` and
`/controller_epoch`, milestones of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.exit import AuditError, UsageError
from jobs.run.run import Run
from jobs.run.steps import differing_rows, rows_read
from jobs.runtime.workers import failure_of, is_failure
from jobs.sinks.conditions import PRESENT
from jobs.sinks.delta import in_parallel
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, ZK_ZNODES, ZNODE_COLUMNS
from schemas.table import Table
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE_COLUMN
from transforms.clusters import CLUSTER
from transforms.kraft.side import MILESTONE_COLUMNS, MILESTONES, KraftSide, kraft_side
from transforms.zookeeper.read.routes import MIGRATION_PATHS
from transforms.zookeeper.read.state import cluster_state
from transforms.zookeeper.read.tables import migration_row

_ZNODES: pa.Schema = to_arrow_schema(StructType([TREE_COLUMN, *ZNODE_COLUMNS]))
_ROOTS = ("/brokers", "/brokers/topics", "/brokers/ids")
Row = Mapping[str, Any]
Rows = Sequence[Row]
# Rows of several questions by the question's name and the cluster.
Collected = Mapping[str, Mapping[str, Rows]]


@dataclass(frozen=True)
class Opened:
    """Known facts of a cluster before its rows are examined.

    `zookeeper` is the row of `/migration`, `/controller` and `/controller_epoch` as they were when ZooKeeper was read, `compared`
    the same of the tree that is compared with the log; None without one. `copies` are rows of bronze kraft_log_copies,
    `side` the plan made of them, None where there is none.
    """

    zookeeper: Row | None
    compared: Row | None
    copies: Rows
    side: KraftSide | None


def opened(run: Run) -> dict[str, Opened]:
    """Look at what the run has read; a cluster whose source could not be read has failed."""
    copies = log_copies(run)
    found = dict(zip(_QUESTIONS, in_parallel([partial(ask, run) for ask in _QUESTIONS.values()]), strict=True))
    _fail_unread(run, found)
    if run.in_steps:
        _fail_unlike(run, rows_read(run))
    return {name: _opened(name, found, copies.get(name, ()), run) for name in run.going}


def log_copies(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Rows of bronze kraft_log_copies by cluster; clusters without a KRaft side are not in it."""
    asked = [name for name, settings in run.settings_of().items() if settings.kraft is not None]
    copies: dict[str, list[dict[str, Any]]] = {name: [] for name in asked}
    if run.scanned:
        return {name: run.scanned.get(name, []) for name in asked}
    if asked:
        # A table has no order, and the result of reading equal copies must not depend on one.
        for row in sorted(run.looked_up(KRAFT_LOG_COPIES, ()), key=lambda row: str(row["location"])):
            copies.setdefault(row[CLUSTER], []).append(row)
    return copies


def _by_cluster(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[CLUSTER]].append(row)
    return found


def _failed(run: Run, table: Table) -> dict[str, list[Row]]:
    """Rows that say why a source could not be read."""
    return _by_cluster(filter(is_failure, run.looked_up(table, (CLUSTER, "problem"), {"problem": PRESENT})))


def _of_walk(run: Run, number: int, paths: Iterable[str], columns: Sequence[str]) -> dict[str, list[Row]]:
    """Znodes of each cluster's walk of this number: 0 is the one that is judged, 1 a bracket's second."""
    walks = [walk for cluster in run.clusters.values() for walk in cluster.walks[number : number + 1]]
    if not walks:
        return {}
    return _by_cluster(run.looked_up(ZK_ZNODES, (CLUSTER, *columns), {"snapshot_id": walks, "path": [*paths]}))


def _milestones(run: Run) -> dict[str, list[Row]]:
    asked = {"problem": None, "type": [*MILESTONES]}
    return _by_cluster(run.looked_up(KRAFT_RECORDS, (CLUSTER, *MILESTONE_COLUMNS), asked))


_QUESTIONS: Mapping[str, Callable[[Run], dict[str, list[Row]]]] = {
    "failed_tree": partial(_failed, table=ZK_ZNODES),
    "failed_log": partial(_failed, table=KRAFT_RECORDS),
    "kafka": partial(_of_walk, number=0, paths=_ROOTS, columns=("path",)),
    "kafka_again": partial(_of_walk, number=1, paths=_ROOTS, columns=("path",)),
    "migration": partial(_of_walk, number=0, paths=MIGRATION_PATHS, columns=_ZNODES.names),
    "milestone": _milestones,
}


def _fail_unread(run: Run, found: Collected) -> None:
    """Fail clusters whose source could not be read or has no metadata of Kafka.

    A tree without Kafka's znodes is the wrong tree: it must not take the place of a good one. A second walk without
    them was one of another tree: every row would count as moved, and none would be judged.
    """
    failures = {
        name: rows[0]["problem"] for kind in ("failed_log", "failed_tree") for name, rows in found[kind].items()
    }
    for name, settings in run.settings_of().items():
        source, twice = settings.zookeeper, len(run.clusters[name].walks) > 1
        astray = not found["kafka"].get(name) or (twice and not found.get("kafka_again", {}).get(name))
        if name in failures:
            run.fail(name, failure_of(failures[name]))
        elif source is not None and astray:
            where = source.connect or source.folder or source.dump
            run.fail(
                name,
                UsageError(
                    f"ZooKeeper {where} holds no Kafka metadata (no /brokers); "
                    "check the path, or the chroot of the connect string"
                ),
            )


def _fail_unlike(run: Run, counted: Mapping[str, Mapping[str, int]]) -> None:
    """Fail clusters whose tables do not have the rows that earlier steps have read."""
    for name in run.going:
        short = differing_rows(run.clusters[name].rows_read, counted[name])
        if short is not None:
            run.fail(name, AuditError(f"the tables lack rows that the run has read: {short}; start another run"))


def _opened(name: str, found: Collected, copies: Rows, run: Run) -> Opened:
    state = cluster_state([pa.RecordBatch.from_pylist([*found["migration"].get(name, ())], _ZNODES)])
    zookeeper, compared = migration_row(state, NEWEST), migration_row(state, BARRIER)
    kept = run.kept[name].of_log if name in run.kept else None
    side = kraft_side(copies, found["milestone"].get(name, ()), compared, kept) if copies else None
    return Opened(zookeeper, compared, copies, side)
