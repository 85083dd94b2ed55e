"""What earlier runs of a run's clusters have left in gold `runs`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from jobs.evidence.stored_reports import stored_reports
from jobs.run.run import Run
from jobs.sinks.conditions import NoneOf
from jobs.sinks.reader import ORDER, oldest_first, records
from schemas.gold import RUNS
from schemas.report import RunPoint
from transforms.clusters import CLUSTER
from transforms.reconcile.judge.earlier import EarlierRun
from transforms.report.since import HISTORY
from transforms.report.trend import run_point
from transforms.runs import FAILED

_SAME_END = (CLUSTER, "cluster_id", "log_end_offset", "newest_append_time")
_PLACING = (*_SAME_END, *ORDER, "verdict", "goes_on")
_UNUSED = ("report", "table_versions", "beside")


def previous_runs(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Each cluster's last HISTORY finished runs before this one, oldest first: rows of gold `runs` with more columns.

    `by_class` are its differences, `log_end` the last offset of its log (inclusive), `finished` is how many finished runs
    the cluster has in all; failed runs are left out. `own_log` is the newest run whose log was the cluster's own, `own_end`
    the newest of these that has read the log (`earlier_run`). This also sets `Run.sequences`, this run's number among its
    cluster's runs.
    """
    if run.previous is not None:
        return run.previous
    found: dict[str, list[Any]] = defaultdict(list)
    run.previous = found
    clusters = {CLUSTER: sorted(run.clusters)}
    every = run.warehouse.rows(RUNS, _PLACING, clusters).filter(pl.col("run_id") != run.run_id)
    run.sequences.update(_next_sequences(every))
    finished = oldest_first(every.filter(pl.col("verdict") != FAILED))
    newest = finished.group_by(CLUSTER, maintain_order=True).tail(HISTORY)
    own = _own_log(finished)
    last = own.group_by(CLUSTER, maintain_order=True).last()
    read = own.filter(pl.col("log_end_offset").is_not_null()).group_by(CLUSTER, maintain_order=True).last()
    wanted = {*newest["run_id"], *last["run_id"], *read["run_id"]}
    columns = [name for name in RUNS.column_names if name not in _UNUSED]
    # A step that failed and was repeated has left a failed row of the same id.
    theirs = {**clusters, "run_id": sorted(wanted), "verdict": NoneOf([FAILED])}
    stored = run.warehouse.rows(RUNS, columns, theirs) if wanted else every.clear()
    rows = {(row[CLUSTER], row["run_id"]): row for row in records(stored, RUNS)}
    # Retention may have removed one between the two looks.
    shown = [key for key in newest.select(CLUSTER, "run_id").iter_rows() if key in rows]
    _complete(run, rows, shown)
    own_log, own_end = ({row[CLUSTER]: row for row in _whole(each, rows)} for each in (last, read))
    counts = dict(finished.group_by(CLUSTER).len().iter_rows())
    for name, run_id in shown:
        beside = {"finished": counts[name], "own_log": own_log.get(name), "own_end": own_end.get(name)}
        found[name].append({**rows[name, run_id], **beside})
    return found


def _next_sequences(runs: pl.DataFrame) -> dict[str, int]:
    numbers = runs.group_by(CLUSTER).agg(pl.max_horizontal(pl.len(), pl.col("sequence").max()) + 1)
    return dict(numbers.iter_rows())


def _own_log(finished: pl.DataFrame) -> pl.DataFrame:
    """The runs whose log was the cluster's own, oldest first; `unmoved_since` is the start of the first that saw the log end there.

    Their `cluster_id` is the newest one known: not every run was shown it.
    """
    begun = pl.col("started_at").dt.epoch("ms").min().over(_SAME_END).alias("unmoved_since")
    knows = pl.col("log_end_offset").is_not_null() | pl.col("cluster_id").is_not_null()
    own = finished.with_columns(begun).filter(pl.col("goes_on") & knows)
    return own.with_columns(pl.col("cluster_id").drop_nulls().last().over(CLUSTER))


def _whole(own: pl.DataFrame, rows: Mapping[tuple[str, str], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The whole `rows` of these runs, without those that retention has removed meanwhile."""
    for row in own.select(CLUSTER, "run_id", "cluster_id", "unmoved_since").iter_rows(named=True):
        stored = rows.get((row[CLUSTER], row["run_id"]))
        if stored is not None:
            yield {**stored, **row}


def _complete(run: Run, rows: Mapping[tuple[str, str], dict[str, Any]], shown: Collection[tuple[str, str]]) -> None:
    """What rows of earlier releases tell in their reports alone."""
    untold = [key for key in shown if rows[key]["by_class"] is None]
    for row in rows.values():
        row["log_end"] = row["log_end_offset"]
    where = {CLUSTER: sorted({name for name, _ in untold})}
    for name, run_id, report in stored_reports(run.warehouse, sorted({run_id for _, run_id in untold}), where):
        told = rows.get((name, run_id), {})
        told["by_class"] = report.get("divergences", {}).get("by_class")
        if told.get("log_end") is None:
            told["log_end"] = report.get("migration", {}).get("log_end_offset")


def earlier_run(previous: Sequence[Any]) -> EarlierRun | None:
    """What the newest run that has read the cluster's own log has left; if none has, the newest one of its tree.

    A run that was given no log would hide where the log ended. None without one, and of releases that left nothing.
    """
    left = (previous[-1]["own_end"] or previous[-1]["own_log"]) if previous else None
    return None if left is None else EarlierRun.of_row(left)


def run_before(previous: Sequence[Any]) -> Mapping[str, Any]:
    """Row of the run whose rows decide what is new: compared with another cluster's or an older copy's rows, all would be new.

    It may be an older one than those of `previous`.
    """
    found: Mapping[str, Any] = previous[-1]["own_log"] or previous[-1]
    return found


def log_end_before(previous: Sequence[Any]) -> int | None:
    """Last offset (inclusive) of the log as the run before read it; None where there is none."""
    earlier = earlier_run(previous)
    if earlier is not None:
        return earlier.log.log_end_offset
    return previous[-1]["log_end"] if previous else None


def clock_notes(run: Run, previous: Sequence[Any]) -> list[str]:
    """Notes about a wrong clock: runs are ordered by their sequence, so it hides no run, but times are wrong."""
    newest = previous[-1] if previous else None
    if newest is None or newest["started_at"].astimezone(UTC) <= run.started_at:
        return []
    return [
        f"the clock was set back, or was wrong: run {newest['run_id']}, which ended before this one began, is dated "
        f"{iso(newest['started_at'])}; runs are ordered by their number, not by time"
    ]


def next_sequences(run: Run, clusters: Sequence[str]) -> dict[str, int]:
    """The number of this run among each cluster's, as `previous_runs` found it; if the run failed before that, it is read now."""
    found = {name: run.sequences.get(name, 1) for name in clusters}
    unasked = [name for name in clusters if name not in run.sequences]
    return found | asked_sequences(run, unasked)


def asked_sequences(run: Run, clusters: Collection[str]) -> dict[str, int]:
    """The next number of each cluster that has runs."""
    if not clusters or run.warehouse.version(RUNS) is None:
        return {}
    return _next_sequences(run.warehouse.rows(RUNS, (CLUSTER, "sequence"), {CLUSTER: sorted(clusters)}))


def stored_point(row: Mapping[str, Any]) -> RunPoint:
    """A row of `previous_runs` as a point of the report's history."""
    return run_point({**row, "started_at": iso(row["started_at"]), "by_class": row["by_class"] or {}})


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
