"""Rows of gold `runs` for clusters whose audit did not finish."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import functions as F

from jobs.evidence.journal import Died, died
from jobs.run.earlier_runs import asked_sequences, next_sequences
from jobs.run.rows import append_rows, record
from jobs.run.run import Run
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.runs import FAILED


def write_failures(run: Run) -> None:
    """A row of `runs` for each cluster whose audit did not finish, with the reason."""
    asked = {name: each for name, each in run.clusters.items() if name not in run.recorded}
    failed = [name for name, cluster in asked.items() if cluster.failure is not None]
    sequences = next_sequences(run, failed)
    rows = [
        {
            CLUSTER: name,
            "started_at": run.started_at,
            "finished_at": datetime.now(UTC),
            "verdict": FAILED,
            "failure": cluster.failure.reason,
            "exit_code": cluster.failure.exit_code,
            "sequence": sequences[name],
        }
        for name, cluster in asked.items()
        if cluster.failure is not None
    ]
    if rows:
        # Of single steps, each writes once: one that is repeated and finishes has a row of its own.
        record(run, failed, rows, "failed")


def settle_died(run: Run) -> None:
    """Make failed rows of runs that died without one (`jobs.evidence.journal`); a query only where there are any."""
    warehouse = run.warehouse
    with died(warehouse.root, catalog=warehouse.catalog) as dead:
        if not dead:
            return
        at, begun = F.unix_micros("started_at"), [_micros(each.started_at) for each, _ in dead]
        of_them = at.isin(begun) | F.col("run_id").isin([each.run_id for each, _ in dead])
        stored = warehouse.read(RUNS).where(of_them).select(CLUSTER, "run_id", at.alias("at"))
        known = {(row[CLUSTER], key) for row in stored.collect() for key in (row["run_id"], row["at"])}
        rows = [
            (name, each)
            for each, _ in dead
            for name in each.clusters
            if not known & {(name, each.run_id), (name, _micros(each.started_at))}
        ]
        if rows:
            _store_died(run, rows)
        for _, path in dead:
            path.unlink(missing_ok=True)


def _store_died(run: Run, dead: Sequence[tuple[str, Died]]) -> None:
    numbers = asked_sequences(run, {name for name, _ in dead})
    rows = []
    for name, each in dead:
        number = numbers.get(name, 1)
        numbers[name] = number + 1
        rows.append(
            {
                CLUSTER: name,
                "run_id": each.run_id,
                "started_at": each.started_at,
                "finished_at": each.ended_at,
                "verdict": FAILED,
                "failure": each.why,
                "exit_code": each.exit_code,
                "sequence": number,
            }
        )
    append_rows(run, RUNS, rows, "died")


def _micros(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)
