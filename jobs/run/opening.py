"""The few rows that decide how a cluster's others are read: Kafka's root znodes, `/migration`, `/controller` and
`/controller_epoch`, milestones of the log."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.exit import AuditError, UsageError
from jobs.run.kraft_copies import log_copies
from jobs.run.run import Run
from jobs.run.steps import differing_rows, rows_read
from jobs.runtime.workers import failed_rows, failure_of
from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES, ZNODE_COLUMNS
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE_COLUMN
from transforms.clusters import CLUSTER
from transforms.kraft.side import MILESTONE_COLUMNS, MILESTONES, KraftSide, kraft_side
from transforms.zookeeper.read.routes import MIGRATION_PATHS
from transforms.zookeeper.read.state import cluster_state
from transforms.zookeeper.read.tables import migration_row

_ZNODES: pa.Schema = to_arrow_schema(StructType([TREE_COLUMN, *ZNODE_COLUMNS]))
_WITH_NULLS = {"ignoreNullFields": "false"}
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
    found = collected(_questions(run))
    _fail_unread(run, found)
    if run.in_steps:
        _fail_unlike(run, found["rows"])
    return {name: _opened(name, found, copies.get(name, ()), run) for name in run.going}


def _questions(run: Run) -> dict[str, DataFrame]:
    walks = [walk for cluster in run.clusters.values() for walk in cluster.walks[:1]]
    second = [walk for cluster in run.clusters.values() for walk in cluster.walks[1:2]]
    znodes, records = run.rows(ZK_ZNODES), run.rows(KRAFT_RECORDS)
    tree = znodes.where(F.col("snapshot_id").isin(walks))
    roots = F.col("path").isin(list(_ROOTS))
    asked = {
        "failed_tree": failed_rows(znodes),
        "failed_log": failed_rows(records),
        "kafka": tree.where(roots).select(CLUSTER, "path"),
        "migration": tree.where(F.col("path").isin(list(MIGRATION_PATHS))).select(CLUSTER, *_ZNODES.names),
        "milestone": records.where(F.col("problem").isNull() & F.col("type").isin(list(MILESTONES))).select(
            CLUSTER, *MILESTONE_COLUMNS
        ),
    }
    if second:
        asked["kafka_again"] = znodes.where(F.col("snapshot_id").isin(second) & roots).select(CLUSTER, "path")
    if run.in_steps:
        asked["rows"] = rows_read(run)
    return asked


def collected(questions: Mapping[str, DataFrame]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The rows of several questions (with `cluster`), from one query."""
    frames = [
        frame.select(
            CLUSTER,
            F.lit(name).alias("question"),
            F.to_json(F.struct(*[F.col(each) for each in frame.columns if each != CLUSTER]), _WITH_NULLS).alias("row"),
        )
        for name, frame in questions.items()
    ]
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: defaultdict(list) for name in questions}
    for row in reduce(DataFrame.unionAll, frames).collect():
        found[row["question"]][row[CLUSTER]].append(json.loads(row["row"]))
    return found


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


def _fail_unlike(run: Run, counted: Mapping[str, Rows]) -> None:
    """Fail clusters whose tables do not have the rows that earlier steps have read."""
    for name in run.going:
        there = {row["table"]: row["rows"] for row in counted.get(name, ())}
        short = differing_rows(run.clusters[name].rows_read, there)
        if short is not None:
            run.fail(name, AuditError(f"the tables lack rows that the run has read: {short}; start another run"))


def _opened(name: str, found: Collected, copies: Rows, run: Run) -> Opened:
    state = cluster_state([pa.RecordBatch.from_pylist([*found["migration"].get(name, ())], _ZNODES)])
    zookeeper, compared = migration_row(state, NEWEST), migration_row(state, BARRIER)
    kept = run.kept[name].of_log if name in run.kept else None
    side = kraft_side(copies, found["milestone"].get(name, ()), compared, kept) if copies else None
    return Opened(zookeeper, compared, copies, side)
