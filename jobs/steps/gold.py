"""A run in the gold tables: its own rows, and what earlier runs left there."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from jobs.exit import why
from jobs.run.forgetting import forget_old_state
from jobs.run.rows import Row, append_rows, record
from jobs.run.run import LOG, Run
from jobs.settings import retention_of
from jobs.sinks.delta import in_parallel
from schemas.gold import BROKER_PRESENCE, CHECKS, EXPECTATIONS, GATES, LAG_SERIES
from schemas.gold import LAG as LAG_TABLE
from schemas.report import ExpectationResult, Report
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.reconcile.judge.earlier import is_comparable
from transforms.report.compared import phase_of
from transforms.report.fleet_model import fleet_columns
from transforms.report.gold_rows import judged_rows, rows_of_kips
from transforms.report.json import to_line


def write(run: Run, reports: Mapping[str, Report]) -> None:
    """Write what the run found, and wait for all its tables but `expectations` and `runs`, which come last."""
    rows: dict[Table, list[Row]] = {CHECKS: [], GATES: [], BROKER_PRESENCE: [], LAG_TABLE: [], LAG_SERIES: []}
    for report in reports.values():
        for table, mine in _rows_of(run, report).items():
            rows[table] += [{CLUSTER: report.cluster, **row} for row in mine]
        for table, mine in rows_of_kips(report).items():
            rows.setdefault(table, []).extend({CLUSTER: report.cluster, **row} for row in mine)
    # Without rows there is no commit.
    filled = [table for table in rows if rows[table]]
    in_parallel([lambda table=table: append_rows(run, table, rows[table]) for table in filled])  # type: ignore[misc]


def write_runs(
    run: Run,
    reports: Mapping[str, Report],
    known: Mapping[str, Row],
    kept: Mapping[str, str],
    needed: Collection[str],
) -> None:
    """The rows of `runs`, after all others: a run without one never counts, so an interrupted run changes no report.

    `known` are the columns of what each cluster's run leaves for the next one to be compared with and for whoever looks at it, `kept` what
    the next one continues from; the bytes of the runs `needed` for that are not forgotten.
    """
    judged = [row for name, report in reports.items() for row in expectation_rows(name, report.expectations)]
    if judged:
        append_rows(run, EXPECTATIONS, judged)
    finished = {name: report for name, report in reports.items() if name in run.going}
    record(run, finished, [_run_row(run, report, known[name], kept.get(name)) for name, report in finished.items()])
    try:
        forget_old_state(run, needed)
    except Exception as error:
        # The run is stored, and its verdict stands.
        LOG.warning("old rows of earlier runs are kept for now, and a later run removes them: %s", why(error))


def _rows_of(run: Run, report: Report) -> dict[Table, list[Row]]:
    return {
        **judged_rows(report),
        LAG_TABLE: [
            {
                "measured_at": int(run.started_at.timestamp() * 1000),
                "records": report.lag.records,
                "seconds": report.lag.seconds,
                "alive": report.lag.alive,
                "kraft_metadata_offset": report.migration.kraft_metadata_offset,
                "committed_end_offset": report.migration.committed_end_offset,
                "phase": phase_of(report),
            }
        ],
        LAG_SERIES: [vars(point) for point in report.lag_series],
    }


def expectation_rows(cluster: str, results: Sequence[ExpectationResult]) -> list[Row]:
    """A cluster's results as rows of gold `expectations`, without the run's id."""
    return [
        {
            CLUSTER: cluster,
            **{name: getattr(each, name) for name in EXPECTATIONS.column_names if hasattr(each, name)},
            "kwargs": json.dumps(each.kwargs, default=str),
        }
        for each in results
    ]


def _run_row(run: Run, report: Report, known: Row, kept: str | None) -> Row:
    return {
        **known,
        "kept": kept,
        "retention": json.dumps(asdict(retention_of(run.clusters[report.cluster].settings))),
        "goes_on": is_comparable({check.id: check.verdict for check in report.checks}),
        "sequence": run.sequences.get(report.cluster, 1),
        CLUSTER: report.cluster,
        "started_at": run.started_at,
        "finished_at": datetime.now(UTC),
        "kafka_version": report.kafka_version,
        "mode": report.mode,
        "state": report.migration.state,
        "verdict": report.verdict,
        "walks": run.clusters[report.cluster].walks,
        "exit_code": report.exit_code,
        "by_class": report.divergences.by_class,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        "table_versions": run.table_versions(),
        "state_runs": [*run.chains[report.cluster]],
        "report": to_line(report),
        **fleet_columns(report),
    }
