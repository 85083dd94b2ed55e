"""A run in the gold tables: its own rows, and what earlier runs left there."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.compare import Comparison
from jobs.audit.run import Run
from jobs.sinks.delta import in_parallel
from schemas.gold import BROKER_PRESENCE, CHECKS, GATES, RUNS
from schemas.gold import LAG as LAG_TABLE
from schemas.report import (
    Report,
    RunPoint,
)
from schemas.table import Table
from transforms.reconcile.compare.divergences import stored_counts
from transforms.reconcile.judge import summary
from transforms.report.json import to_json

HISTORY = 60


def write(run: Run, report: Report, comparison: Comparison) -> None:
    """Gold first, the runs row last: a run without one never counts, so an interrupted run changes no report."""
    written: dict[Table, list[dict[str, Any]]] = {
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
    writes: list[Callable[[], None]] = [_appending(run, table, rows) for table, rows in written.items()]
    in_parallel(writes)
    _appending(run, RUNS, [_run_row(run, report)])()
    if comparison.rows is not None:
        comparison.rows.unpersist()


def _appending(run: Run, table: Table, rows: list[dict[str, Any]]) -> Callable[[], None]:
    struct = StructType([field for field in table.columns if field.name not in ("cluster", "run_id")])
    values = [tuple(row.get(name) for name in struct.fieldNames()) for row in rows]
    return lambda: run.append(table, run.spark.createDataFrame(values, struct))


def _run_row(run: Run, report: Report) -> dict[str, Any]:
    return {
        "started_at": run.started_at,
        "finished_at": datetime.now(UTC),
        "kafka_version": report.kafka_version,
        "mode": report.mode,
        "state": report.migration.state,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "defects": summary.defects(report.divergences),
        "divergences": report.divergences.total,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        "table_versions": run.table_versions(),
        "report": to_json(report),
    }


def previous_runs(run: Run) -> list[Any]:
    """The cluster's last HISTORY finished runs but this one, oldest first: rows of gold `runs` and `by_class`."""
    rows = run.warehouse.read(RUNS).where((F.col("cluster") == run.cluster) & (F.col("run_id") != run.run_id))
    newest = rows.orderBy(F.col("started_at").desc()).limit(HISTORY).withColumn("by_class", stored_counts())
    return list(reversed(newest.drop("report", "table_versions").collect()))


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
    """ISO 8601 in UTC to the millisecond; Spark's timestamps come without a zone and are UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
