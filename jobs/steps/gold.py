"""A run in the gold tables: its own rows, and what earlier runs left there."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.audit.finished import stored_counts
from jobs.audit.journal import Died, died, running
from jobs.audit.run import LOG, Run, time_in_run_id
from jobs.settings import retention_of
from jobs.sinks.delta import ConcurrentWriteError, UnreadableError, in_parallel
from jobs.sinks.driver_rows import arrow_rows
from schemas import silver
from schemas.examined import EXAMINED
from schemas.gold import BROKER_PRESENCE, CHECKS, EXPECTATIONS, GATES, LAG_SERIES, RUNS
from schemas.gold import LAG as LAG_TABLE
from schemas.report import ExpectationResult, Report, RunPoint
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters
from transforms.examination.made import KEPT_KINDS
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.earlier import COLUMNS, EarlierRun, goes_on
from transforms.report.fleet_model import fleet_columns
from transforms.report.json import to_json
from transforms.report.kip_rows import rows_of_kips
from transforms.report.trend import run_point
from transforms.retention import KnownRun, in_use_since, is_on_hold
from transforms.runs import FAILED, newest_first

HISTORY = 60
Row = dict[str, Any]


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
    in_parallel([lambda table=table: _append(run, table, rows[table]) for table in filled])  # type: ignore[misc]


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
        _append(run, EXPECTATIONS, judged)
    finished = {name: report for name, report in reports.items() if name in run.going}
    _append(run, RUNS, [_run_row(run, report, known[name], kept.get(name)) for name, report in finished.items()])
    run.recorded |= finished.keys()
    _forget_old_state(run, needed)


def write_failures(run: Run) -> None:
    """A row of `runs` for each cluster whose audit did not finish, with the reason."""
    asked = {name: each for name, each in run.clusters.items() if name not in run.recorded}
    failed = [name for name, cluster in asked.items() if cluster.failure is not None]
    sequences = _next_sequences(run, failed)
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
        # Of single steps, each writes once: one that is repeated and comes to its end has a row of its own.
        _append(run, RUNS, rows, "failed")
        run.recorded |= set(failed)


def settle_died(run: Run) -> None:
    """Make failed rows of runs that died without one (`jobs.audit.journal`); a query only where there are any."""
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
    numbers = _asked_sequences(run, {name for name, _ in dead})
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
    _append(run, RUNS, rows, "died")


def _micros(moment: datetime) -> int:
    return (moment - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


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


def _append(run: Run, table: Table, rows: Sequence[Row], series: str = "") -> None:
    run.append(table, arrow_rows(table, [{"run_id": run.run_id, **row} for row in rows]), series=series)


def _run_row(run: Run, report: Report, known: Row, kept: str | None) -> Row:
    return {
        **known,
        "kept": kept,
        "retention": json.dumps(asdict(retention_of(run.clusters[report.cluster].settings))),
        "goes_on": goes_on({check.id: check.verdict for check in report.checks}),
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
        "defects": summary.defects(report.divergences),
        "divergences": report.divergences.total,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        "table_versions": run.table_versions(),
        "state_runs": [*run.chains[report.cluster]],
        "report": to_json(report),
        **fleet_columns(report),
    }


def previous_runs(run: Run) -> dict[str, list[Any]]:
    """Each cluster's last HISTORY finished runs but this one, oldest first: rows of gold `runs` with more columns.

    `by_class` are its differences, `log_end` the last offset of its log (inclusive), `finished` is how many finished runs
    the cluster has in all; a run that failed is none. `own_log` is the newest run whose log was the cluster's own
    (`earlier_run`). In the same query the run learns which of its cluster's runs it is (`Run.sequences`).
    """
    if run.previous is not None:
        return run.previous
    found: dict[str, list[Any]] = defaultdict(list)
    run.previous = found
    if run.warehouse.version(RUNS) is None:
        return found
    rows = run.warehouse.read(RUNS).where(of_clusters(run.clusters) & (F.col("run_id") != run.run_id))
    newest = _numbered(rows).where((F.col("place") <= HISTORY) & (~F.col("failed") | (F.col("place") == 1)))
    log_end = F.get_json_object("report", "$.migration.log_end_offset").cast("bigint")
    told = newest.withColumns({"by_class": stored_counts(), "log_end": F.coalesce(F.col("log_end_offset"), log_end)})
    for row in told.drop("report", "table_versions", "beside").orderBy(F.col("place").desc()).collect():
        run.sequences[row[CLUSTER]] = row["next_sequence"]
        if not row["failed"]:
            found[row[CLUSTER]].append(row)
    return found


_SAME_END = ("cluster_id", "log_end_offset", "newest_append_time")


def _numbered(rows: DataFrame) -> DataFrame:
    """Rows of `runs` with their place among the cluster's finished or failed ones, the newest first, and what all of them tell."""
    mine, failed = Window.partitionBy(CLUSTER), F.col("failed")
    of_kind = Window.partitionBy(CLUSTER, "failed")
    same_end = Window.partitionBy(CLUSTER, *_SAME_END)
    # A maximum over runs by their order: the columns that decide it come first.
    order: list[Column | str] = [F.coalesce("sequence", F.lit(0)).alias("order"), "started_at", "finished_at", "run_id"]
    known = F.struct([*order, *COLUMNS, "unmoved_since", "kept"])
    counts = F.col("log_end_offset").isNotNull() | F.col("cluster_id").isNotNull()
    return (
        rows.withColumn("failed", F.col("verdict") == FAILED)
        .withColumn("unmoved_since", F.unix_millis(F.min("started_at").over(same_end)))
        .withColumns(
            {
                "next_sequence": F.greatest(F.count("*").over(mine), F.coalesce(F.max("sequence").over(mine), F.lit(0)))
                + 1,
                "finished": F.count(F.when(~failed, 1)).over(mine),
                "place": F.row_number().over(of_kind.orderBy(*newest_first())),
                "own_log": F.max(F.when(~failed & F.col("goes_on") & counts, known)).over(mine),
            }
        )
    )


def earlier_run(previous: Sequence[Any]) -> EarlierRun | None:
    """What the cluster's newest run whose log was its own has left; None without one, and of releases that left nothing."""
    left = previous[-1]["own_log"] if previous else None
    return None if left is None else EarlierRun.of_row(left.asDict(recursive=True))


def run_before(previous: Sequence[Any]) -> str:
    """Id of the run whose rows decide what is new: compared with another cluster's or an older copy's rows, all would be new."""
    earlier = earlier_run(previous)
    return str(previous[-1]["run_id"]) if earlier is None else earlier.run_id


def log_end_before(previous: Sequence[Any]) -> int | None:
    """Last offset (inclusive) of the log as the run before read it; None where there is none."""
    earlier = earlier_run(previous)
    if earlier is not None:
        return earlier.log.log_end_offset
    return previous[-1]["log_end"] if previous else None


def clock_notes(run: Run, previous: Sequence[Any]) -> list[str]:
    """Notes about a wrong clock: runs are ordered by their sequence, so it hides none, but their times mislead."""
    newest = previous[-1] if previous else None
    if newest is None or newest["started_at"].astimezone(UTC) <= run.started_at:
        return []
    return [
        f"the clock was set back, or was wrong: run {newest['run_id']}, which ended before this one began, is dated "
        f"{iso(newest['started_at'])}; runs are ordered by their number, not by time"
    ]


def _next_sequences(run: Run, clusters: Sequence[str]) -> dict[str, int]:
    """The number of this run among each cluster's, as `previous_runs` found it; if the run failed before that, it is read now."""
    found = {name: run.sequences.get(name, 1) for name in clusters}
    unasked = [name for name in clusters if name not in run.sequences]
    return found | _asked_sequences(run, unasked)


def _asked_sequences(run: Run, clusters: Collection[str]) -> dict[str, int]:
    """The next number of each cluster that has runs."""
    if not clusters or run.warehouse.version(RUNS) is None:
        return {}
    rows = run.warehouse.read(RUNS).where(of_clusters(clusters)).groupBy(CLUSTER)
    newest = F.greatest(F.count("*"), F.coalesce(F.max("sequence"), F.lit(0)))
    return {row[CLUSTER]: row["newest"] + 1 for row in rows.agg(newest.alias("newest")).collect()}


def stored_point(row: Any) -> RunPoint:
    """A row of `previous_runs` as a point of the report's history."""
    texts = {"started_at": iso(row["started_at"]), "by_class": json.loads(row["by_class"] or "{}")}
    return run_point({**row.asDict(), **texts})


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC to the millisecond; Spark's timestamps come without a zone, in that of this machine."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _forget_old_state(run: Run, needed: Collection[str]) -> None:
    """Every few runs, remove a cluster's silver rows of all but its newest runs and those that are held; the rest stays.

    So go the rows of runs that were killed or failed before the oldest of those. Delta keeps the removed rows for a week,
    so that these runs can be looked into by time travel that long.
    """
    due = {name: rows for name, rows in previous_runs(run).items() if _forgets(run, name, rows)}
    if not due:
        return
    under_way = [
        each for each in running(run.warehouse.root, catalog=run.warehouse.catalog) if each.run_id != run.run_id
    ]
    kept = {name: _state_stays(run, name, rows) | _in_use(name, rows, under_way) for name, rows in due.items()}
    built_on = _built_on(run, kept)
    conditions = {
        # Of a chained table the rows stay that the state of a run which is kept is made of.
        chained: reduce(
            or_, [_old_state(run, name, rows, kept[name] | more.get(name, set())) for name, rows in due.items()]
        )
        for chained, more in ((False, {}), (True, built_on))
    }
    # The answers go first: a run that has them has all its rows (`jobs.audit.past`).
    tables = [EXAMINED, *silver.STATE_TABLES]
    for table in [table for table in tables if run.warehouse.version(table) is not None]:
        gone_on_from = F.col("run_id").isin(sorted(needed)) & F.col("kind").isin(*KEPT_KINDS)
        condition = conditions[table.chained]
        mine = condition & ~gone_on_from if table is EXAMINED else condition
        try:
            run.warehouse.delete(table, mine)
        except (ConcurrentWriteError, UnreadableError) as error:
            LOG.info("old rows of %s are kept for now: %s", table.full_name, error)


def _forgets(run: Run, name: str, rows: Sequence[Any]) -> bool:
    settings = run.clusters[name].settings
    keep = settings.keep_state_of_runs
    due = len(rows) > keep and rows[-1]["finished"] % keep == 0
    return due and not is_on_hold(retention_of(settings).hold, rows[-1]["phase"])


def _state_stays(run: Run, name: str, rows: Sequence[Any]) -> set[str]:
    """Ids of the cluster's runs whose silver rows stay."""
    settings = run.clusters[name].settings
    return {*(row["run_id"] for row in rows[-settings.keep_state_of_runs :]), *retention_of(settings).hold}


def _in_use(name: str, rows: Sequence[Any], under_way: Sequence[Died]) -> set[str]:
    """Runs of the cluster that are in progress, regardless of when they began, and those that they may continue from."""
    mine = [each for each in under_way if name in each.clusters]
    if not mine:
        return set()
    finished = [
        KnownRun(
            row["run_id"],
            row["started_at"].astimezone(UTC),
            finished=True,
            end=() if row["goes_on"] else None,
            finished_at=row["finished_at"].astimezone(UTC),
        )
        for row in rows
    ]
    used = in_use_since(finished, min(each.started_at for each in mine))
    return {*(each.run_id for each in mine), *(each.run_id for each in used)}


def _built_on(run: Run, kept: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The runs whose rows the states of these runs are made of, and this one's, by cluster."""
    mine = of_clusters(kept) & F.col("run_id").isin(sorted(set().union(*kept.values())))
    found: dict[str, set[str]] = {name: {*run.chains.get(name, ())} for name in kept}
    rows = run.warehouse.read(RUNS).where(mine & F.col("state_runs").isNotNull())
    for row in rows.select(CLUSTER, "run_id", "state_runs").collect():
        if row["run_id"] in kept[row[CLUSTER]]:
            found[row[CLUSTER]] |= set(row["state_runs"])
    return found


def _old_state(run: Run, name: str, rows: Sequence[Any], stays: Collection[str]) -> Column:
    keep = run.clusters[name].settings.keep_state_of_runs
    # Not the first of them by number: a wrong clock may have dated that one in the future.
    since = min(row["started_at"] for row in rows[-keep:])
    old = [row["run_id"] for row in rows[:-keep] if row["run_id"] not in stays]
    return _older_than(name, sorted(stays), old, since)


def _older_than(cluster: str, kept: Sequence[str], old: Sequence[str], since: datetime) -> Column:
    """In words that Delta passes on to its files: the old runs' rows, and those with an id of an earlier time.

    Ids that a user has chosen for single steps have no time, unless they look like one.
    """
    run_id = F.col("run_id")
    earlier = run_id.between("2000", time_in_run_id(since)) & ~run_id.isin(list(kept))
    return (F.col(CLUSTER) == cluster) & (run_id.isin(list(old)) | earlier)
