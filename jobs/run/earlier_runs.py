"""What earlier runs of a run's clusters have left in gold `runs`."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from jobs.evidence.finished import stored_counts
from jobs.run.run import Run
from schemas.gold import RUNS
from schemas.report import RunPoint
from transforms.clusters import CLUSTER, of_clusters
from transforms.reconcile.judge.earlier import COLUMNS, EarlierRun
from transforms.report.trend import run_point
from transforms.runs import FAILED, newest_first

HISTORY = 60
_SAME_END = ("cluster_id", "log_end_offset", "newest_append_time")


def previous_runs(run: Run) -> dict[str, list[Any]]:
    """Each cluster's last HISTORY finished runs before this one, oldest first: rows of gold `runs` with more columns.

    `by_class` are its differences, `log_end` the last offset of its log (inclusive), `finished` is how many finished runs
    the cluster has in all; failed runs are left out. `own_log` is the newest run whose log was the cluster's own
    (`earlier_run`). The same query sets `Run.sequences`, this run's number among its cluster's runs.
    """
    if run.previous is not None:
        return run.previous
    found: dict[str, list[Any]] = defaultdict(list)
    run.previous = found
    if run.warehouse.version(RUNS) is None:
        return found
    rows = run.warehouse.read_files(RUNS).where(of_clusters(run.clusters) & (F.col("run_id") != run.run_id))
    newest = _numbered(rows).where((F.col("place") <= HISTORY) & (~F.col("failed") | (F.col("place") == 1)))
    log_end = F.get_json_object("report", "$.migration.log_end_offset").cast("bigint")
    counted_rows = newest.withColumns(
        {"by_class": stored_counts(), "log_end": F.coalesce(F.col("log_end_offset"), log_end)}
    )
    for row in counted_rows.drop("report", "table_versions", "beside").orderBy(F.col("place").desc()).collect():
        run.sequences[row[CLUSTER]] = row["next_sequence"]
        if not row["failed"]:
            found[row[CLUSTER]].append(row)
    return found


def _numbered(rows: DataFrame) -> DataFrame:
    """Rows of `runs` with their place among the cluster's finished or failed ones, newest first, and columns over all of them."""
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
    rows = run.warehouse.read_files(RUNS).where(of_clusters(clusters)).groupBy(CLUSTER)
    newest = F.greatest(F.count("*"), F.coalesce(F.max("sequence"), F.lit(0)))
    return {row[CLUSTER]: row["newest"] + 1 for row in rows.agg(newest.alias("newest")).collect()}


def stored_point(row: Any) -> RunPoint:
    """A row of `previous_runs` as a point of the report's history."""
    texts = {"started_at": iso(row["started_at"]), "by_class": json.loads(row["by_class"] or "{}")}
    return run_point({**row.asDict(), **texts})


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC to the millisecond; Spark's timestamps come without a zone, in that of this machine."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
