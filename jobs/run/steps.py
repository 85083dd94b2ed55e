"""Steps as processes of their own: gold `run_steps` has what one leaves to the next.

A repeated step reads its sources again, so the rows of an earlier attempt are removed first: two readings never mix. If the earlier
attempt is still running, the row counts in `run_steps` show it.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as F

from jobs.exit import OK, UsageError, guarded, worst
from jobs.run.failures import write_failures
from jobs.run.run import ClusterRun, Run, open_run
from jobs.settings import add_files_argument, load_settings
from jobs.sinks.conditions import all_of
from jobs.sinks.folder_table import arrow_rows
from schemas import gold
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, QUARANTINE, ZK_TRANSACTIONS, ZK_ZNODES
from schemas.examined import EXAMINED
from schemas.gold import DIVERGENCES, ISR_BY_DAY, ISR_HISTORY, MAILS, MAINTENANCE, RUN_STEPS, RUNS
from schemas.silver import BARRIERS, STATE_TABLES, ZOOKEEPER_WRITES
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters

# Which steps a step builds on, where the configuration has the side it reads.
_NEEDS: dict[str, tuple[str, ...]] = {
    "ingest_zookeeper": (),
    "ingest_kraft": ("ingest_zookeeper",),
    "materialize": ("ingest_zookeeper", "ingest_kraft"),
    "reconcile": ("materialize",),
}
_ENDS = {"ingest_zookeeper": "materialize", "ingest_kraft": "materialize", "materialize": "reconcile"}
_READS = ("ingest_zookeeper", "ingest_kraft")
# What a step writes again when it is repeated. The rows of a walk have a name of their own, and gold runs comes first: while
# the others are written again, the run has not finished.
_OF_ZOOKEEPER = (ZK_TRANSACTIONS, BARRIERS, ZOOKEEPER_WRITES)
_OF_STATE = (
    *(table for table in STATE_TABLES if table not in _OF_ZOOKEEPER),
    EXAMINED,
    QUARANTINE,
    ISR_HISTORY,
    DIVERGENCES,
)
_OF_VERDICT = (
    RUNS,
    *(
        table
        for table in gold.TABLES
        if table not in (RUNS, RUN_STEPS, MAILS, MAINTENANCE, ISR_HISTORY, ISR_BY_DAY, DIVERGENCES)
    ),
)
_WRITES: dict[str, tuple[Table, ...]] = {
    "ingest_zookeeper": _OF_ZOOKEEPER,
    "ingest_kraft": (KRAFT_LOG_COPIES, KRAFT_RECORDS),
    "materialize": _OF_STATE,
    "reconcile": _OF_VERDICT,
}
_COUNTED = {table.full_name: table for table in (ZK_ZNODES, ZK_TRANSACTIONS, KRAFT_LOG_COPIES, KRAFT_RECORDS)}


def step_main(name: str, step: Callable[[Run], object], argv: list[str] | None) -> int:
    """`main` of a step: parse `--conf` and `--run-id`, run it, and map what happens to an exit code."""
    parser = argparse.ArgumentParser(prog=f"kraft-audit {name.replace('_', '-')}", description=step.__doc__)
    add_files_argument(parser, "configuration files (YAML)", required=True)
    parser.add_argument("--run-id", required=True, help="run the step belongs to; the same for all steps of one run")
    arguments = parser.parse_args(argv)

    def body() -> int:
        settings = [load_settings(path) for path in arguments.conf]
        with open_run(settings, arguments.run_id, keep_failures=True) as run:
            begin(run, name)
            outcome = _done(run, step)
            finish(run, name)
            failures = [cluster.failure for cluster in run.clusters.values() if cluster.failure is not None]
            for failure in failures:
                write_failures(run)
                raise UsageError(failure.reason)
        return worst(outcome.values()) if isinstance(outcome, dict) else OK

    return guarded(body)


def _done(run: Run, step: Callable[[Run], object]) -> object:
    """Do the step; an error leaves a row in gold `runs`, as in a whole run."""
    if not run.going:
        return None
    try:
        outcome = step(run)
        run.finish_writes()
    except Exception as error:
        for name in run.going:
            run.fail(name, error)
        write_failures(run)
        raise
    return outcome


def begin(run: Run, step: str) -> None:
    """Load what earlier steps of the run left, and remove what an earlier attempt at this step left.

    Raises UsageError when the step is not the next one.
    """
    run.in_steps, run.attempt = True, secrets.token_hex(4)
    rows = run.warehouse.read(RUN_STEPS).where(of_clusters(run.clusters) & (F.col("run_id") == run.run_id)).collect()
    done_rows = [row for row in rows if row["finished_at"] is not None]
    for name, cluster in run.clusters.items():
        mine = sorted((row for row in done_rows if row[CLUSTER] == name), key=lambda row: row["finished_at"])
        done = {row["step"] for row in mine}
        _check(run.run_id, name, step, done, _given(cluster.settings.zookeeper, cluster.settings.kraft))
        if mine:
            _take_up(run, cluster, mine)
        run.steps_done |= done
        if step == "materialize" and cluster.settings.bracketed and len(cluster.walks) < 2:
            raise UsageError(
                f"run {run.run_id} of cluster {name} is a bracket and ZooKeeper was walked once: "
                "run `ingest-zookeeper` again, after `ingest-kraft`"
            )
    if any(row["step"] == step for row in rows):
        _clear(run, step)
    _append(run, step, list(run.clusters), None)


def _take_up(run: Run, cluster: ClusterRun, mine: Sequence[Any]) -> None:
    """Load what the finished steps have left, in their order."""
    run.started_at = mine[0]["started_at"].astimezone(UTC)
    cluster.notes = list(mine[-1]["notes"] or ())
    cluster.walks = list(mine[-1]["walks"] or ())
    cluster.rows_read = dict(mine[-1]["rows_read"] or {})
    cluster.walked_at_ms, cluster.log_seen_at_ms = mine[-1]["walked_at_ms"], mine[-1]["log_seen_at_ms"]


def _clear(run: Run, step: str) -> None:
    """Remove what an earlier attempt at the step has written: it read other files, or the same ones at another time."""
    if step == "ingest_zookeeper" and "ingest_kraft" in run.steps_done:
        # It is the second walk of a bracket, whose rows have a name of their own; those of the first still count.
        return
    mine = all_of({CLUSTER: sorted(run.clusters), "run_id": run.run_id})
    for table in _WRITES[step]:
        if run.warehouse.version(table) is not None:
            run.warehouse.delete(table, mine)


def _given(zookeeper: object, kraft: object) -> frozenset[str]:
    steps = {"materialize", "reconcile"}
    steps |= {"ingest_zookeeper"} if zookeeper is not None else set()
    return frozenset(steps | ({"ingest_kraft"} if kraft is not None else set()))


def _check(run_id: str, cluster: str, step: str, done: set[str], given: frozenset[str]) -> None:
    missing = [needed for needed in _NEEDS[step] if needed in given and needed not in done]
    if missing:
        name = missing[0].replace("_", "-")
        raise UsageError(f"run {run_id} of cluster {cluster} has not been through `{name}` yet; run that step first")
    if _ENDS.get(step) in done:
        raise UsageError(
            f"run {run_id} of cluster {cluster} has finished `{_ENDS[step]}`: earlier steps cannot be repeated; "
            "start another run"
        )


def finish(run: Run, step: str) -> None:
    """Store what the next step needs."""
    if step in _READS and run.going:
        for name, counted in rows_read(run).items():
            run.clusters[name].rows_read = counted
    _append(run, step, run.going, datetime.now(UTC))


def rows_read(run: Run) -> dict[str, dict[str, int]]:
    """How many rows of each bronze table the run has, by cluster and the table's name. Of znodes, those of the walks that count."""
    walks = [walk for cluster in run.clusters.values() for walk in cluster.walks]
    counted: dict[str, dict[str, int]] = {name: dict.fromkeys(_COUNTED, 0) for name in run.going}
    for name, table in _COUNTED.items():
        mine = {CLUSTER: run.going, "run_id": run.run_id, **({"snapshot_id": walks} if table is ZK_ZNODES else {})}
        for (cluster, _), rows in run.warehouse.counts(table, mine).items():
            counted[cluster][name] = rows
    return counted


def differing_rows(read: Mapping[str, int], there: Mapping[str, int]) -> str | None:
    """Where the tables do not hold as many rows as steps have read, in a few words; None where they do.

    `read` is empty where a release before this one has read them.
    """
    for name, count in sorted(read.items()):
        if there.get(name, 0) != count:
            return f"{there.get(name, 0)} rows are in {name} instead of {count}"
    return None


def _append(run: Run, step: str, clusters: Sequence[str], finished_at: datetime | None) -> None:
    rows = [
        {
            CLUSTER: name,
            "run_id": run.run_id,
            "step": step,
            "started_at": run.started_at,
            "finished_at": finished_at,
            "attempt": run.attempt,
            **{
                field: getattr(run.clusters[name], field)
                for field in ("notes", "walks", "walked_at_ms", "log_seen_at_ms", "rows_read")
            },
        }
        for name in clusters
    ]
    if rows:
        run.warehouse.append(RUN_STEPS, arrow_rows(RUN_STEPS, rows))
