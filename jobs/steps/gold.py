"""A run in the gold tables: its own rows, and what earlier runs left there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.run import LOG, Run, time_in_run_id
from jobs.sinks.delta import ConcurrentWriteError, in_parallel
from schemas import silver
from schemas.gold import BROKER_PRESENCE, CHECKS, GATES, RUNS
from schemas.gold import LAG as LAG_TABLE
from schemas.report import Report, RunPoint
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters
from transforms.reconcile.compare.divergences import stored_counts
from transforms.reconcile.judge import summary
from transforms.report.json import to_json

HISTORY = 60
FAILED = "failed"
Row = dict[str, Any]


def write(run: Run, reports: Mapping[str, Report], previous: Mapping[str, Sequence[Any]]) -> None:
    """Gold first, the rows of `runs` last: a run without one never counts, so an interrupted run changes no report."""
    rows: dict[Table, list[Row]] = {CHECKS: [], GATES: [], BROKER_PRESENCE: [], LAG_TABLE: []}
    for report in reports.values():
        for table, mine in _rows_of(run, report).items():
            rows[table] += [{CLUSTER: report.cluster, **row} for row in mine]
    in_parallel([lambda table=table: _append(run, table, rows[table]) for table in rows])  # type: ignore[misc]
    run.finish_writes()
    _append(run, RUNS, [_run_row(run, report) for name, report in reports.items() if name in run.going])
    _forget_old_state(run, previous)


def write_failures(run: Run) -> None:
    """A row of `runs` for each cluster whose audit did not come to its end, with the reason."""
    rows = [
        {
            CLUSTER: name,
            "started_at": run.started_at,
            "finished_at": datetime.now(UTC),
            "verdict": FAILED,
            "failure": cluster.failure.reason,
            "exit_code": cluster.failure.exit_code,
        }
        for name, cluster in run.clusters.items()
        if cluster.failure is not None
    ]
    if rows:
        _append(run, RUNS, rows)


def _rows_of(run: Run, report: Report) -> dict[Table, list[Row]]:
    return {
        CHECKS: [
            {
                "check_id": c.id,
                "gates": c.gates,
                "severity": c.severity,
                "verdict": c.verdict,
                "violations": c.violations,
                "evidence": c.evidence,
                "title": c.title,
            }
            for c in report.checks
        ],
        GATES: [
            {"gate": name, "verdict": gate.verdict, "blocking": gate.blocking} for name, gate in report.gates.items()
        ],
        BROKER_PRESENCE: [
            {name: getattr(entry, name) for name in BROKER_PRESENCE.column_names if hasattr(entry, name)}
            for entry in report.broker_presence
        ],
        LAG_TABLE: [
            {
                "measured_at": int(run.started_at.timestamp() * 1000),
                "records": report.lag.records,
                "seconds": report.lag.seconds,
                "alive": report.lag.alive,
                "kraft_metadata_offset": report.migration.kraft_metadata_offset,
                "committed_end_offset": report.migration.committed_end_offset,
            }
        ],
    }


def _append(run: Run, table: Table, rows: Sequence[Row]) -> None:
    values = [tuple({**row, "run_id": run.run_id}.get(name) for name in table.column_names) for row in rows]
    run.append(table, run.spark.createDataFrame(values, StructType(list(table.columns))))


def _run_row(run: Run, report: Report) -> Row:
    return {
        CLUSTER: report.cluster,
        "started_at": run.started_at,
        "finished_at": datetime.now(UTC),
        "kafka_version": report.kafka_version,
        "mode": report.mode,
        "state": report.migration.state,
        "verdict": report.verdict,
        "walks": run.clusters[report.cluster].walks,
        "exit_code": report.exit_code,
        "defects": summary.defects(report.divergences),
        "divergences": report.divergences.total,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        "table_versions": run.table_versions(),
        "report": to_json(report),
    }


def previous_runs(run: Run) -> dict[str, list[Any]]:
    """Each cluster's last HISTORY finished runs but this one, oldest first: rows of gold `runs`, `by_class`, `finished`.

    `finished` is how many finished runs the cluster has in all; a run that failed is none.
    """
    found: dict[str, list[Any]] = defaultdict(list)
    if run.warehouse.version(RUNS) is None:
        return found
    rows = run.warehouse.read(RUNS).where(of_clusters(run.clusters) & (F.col("run_id") != run.run_id))
    mine = Window.partitionBy(CLUSTER)
    numbered = rows.where(F.col("verdict") != FAILED).withColumns(
        {
            "by_class": stored_counts(),
            "finished": F.count("*").over(mine),
            "place": F.row_number().over(mine.orderBy(F.col("started_at").desc(), F.col("run_id").desc())),
        }
    )
    for row in (
        numbered.where(F.col("place") <= HISTORY).drop("report", "table_versions").orderBy("started_at").collect()
    ):
        found[row[CLUSTER]].append(row)
    return found


def run_point(row: Any) -> RunPoint:
    """A row of `previous_runs` as a point of the report's history."""
    return RunPoint(
        row["run_id"],
        iso(row["started_at"]),
        row["verdict"],
        row["state"],
        row["lag_records"],
        row["lag_seconds"],
        row["defects"],
        row["divergences"],
        json.loads(row["by_class"] or "{}"),
    )


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC to the millisecond; Spark's timestamps come without a zone, in that of this machine."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _forget_old_state(run: Run, previous: Mapping[str, Sequence[Any]]) -> None:
    """Every few runs, remove a cluster's silver rows of all but its newest runs: bronze and gold keep everything.

    So go the rows of runs that were killed or failed before the oldest of those. Delta keeps the removed rows for a week,
    so that these runs can be looked into by time travel that long.
    """
    conditions = []
    for name, rows in previous.items():
        keep = run.clusters[name].settings.keep_state_of_runs
        if len(rows) > keep and rows[-1]["finished"] % keep == 0:
            ids = [row["run_id"] for row in rows]
            conditions.append(_older_than(name, ids[-keep:], ids[:-keep], rows[-keep]["started_at"]))
    if not conditions:
        return
    condition = reduce(or_, conditions)
    for table in [table for table in silver.STATE_TABLES if run.warehouse.version(table) is not None]:
        try:
            run.warehouse.delete(table, condition)
        except ConcurrentWriteError as error:
            LOG.info("old rows of %s are kept for now: %s", table.full_name, error)


def _older_than(cluster: str, kept: Sequence[str], old: Sequence[str], since: datetime) -> Column:
    """In words that Delta passes on to its files: the old runs' rows, and those with an id of an earlier time.

    Ids that a user has chosen for single steps tell no time, unless they look like one.
    """
    run_id = F.col("run_id")
    earlier = run_id.between("2000", time_in_run_id(since)) & ~run_id.isin(list(kept))
    return (F.col(CLUSTER) == cluster) & (run_id.isin(list(old)) | earlier)
