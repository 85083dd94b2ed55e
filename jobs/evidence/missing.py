"""Records that runs have read and that the tables no longer have: removed by retention, or otherwise gone.

Answers about a log come from the rows of many runs. If some are missing, an incomplete answer would look complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F

from jobs.evidence.all_runs import OneLog
from jobs.evidence.kept_state import kept_by
from jobs.evidence.opening import Finished, spark_tables
from jobs.evidence.past_run import PastRun
from jobs.evidence.removed import DETAILS, removed_line, removed_runs
from jobs.sinks.delta import Warehouse
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.kraft.coverage import planned_log
from transforms.report.printable import counted, visible
from transforms.runs import FAILED, oldest_first

_REPAIR = "restore the tables, or let `kraft-audit run --full` read the whole log again"


@dataclass(frozen=True)
class Missing:
    """Records of the log that a run was to read (`of_rows`, None if it is no longer known) and those that are there.

    `removed` is when retention has removed them (UTC), None where it did not. `newest` is the append time (ms) of the run's newest
    record, `last` the last offset that it found committed (inclusive) and `cluster_id` that of its log, None where the run did not say.
    """

    run_id: str
    rows: int
    of_rows: int | None
    removed: datetime | None
    newest: int | None = None
    last: int | None = None
    cluster_id: str | None = None


def of_all_runs(finished: Finished, logs: Sequence[OneLog]) -> list[Missing]:
    """The missing records of all finished runs of the cluster, without those that a completely read log contains anyway."""
    warehouse = spark_tables(finished.warehouse)
    # Releases before this one have no column for it.
    end = F.get_json_object("report", "$.migration.committed_end_offset").alias("end")
    mine = (F.col(CLUSTER) == finished.cluster) & (F.col("verdict") != FAILED)
    rows = (
        warehouse.read(RUNS)
        .where(mine)
        .orderBy(*oldest_first())
        .select("run_id", end, "newest_append_time", "cluster_id")
        .collect()
    )
    known = {row["run_id"]: row.asDict() for row in rows}
    found = _missing(warehouse, finished.cluster, known)
    return [each for each in found if each.removed is None or not _is_in(each, logs)]


def _is_in(each: Missing, logs: Sequence[OneLog]) -> bool:
    """Whether a run's records are in one of the cluster's logs, oldest first: one that is there from its beginning to beyond them.

    They are not if they may be of the log that was begun after it.
    """
    if each.newest is None or each.last is None:
        return False
    mine = [log for log in logs if None in (log.cluster_id, each.cluster_id) or log.cluster_id == each.cluster_id]
    for log, following in zip(mine, [*mine[1:], None], strict=True):
        whole = log.begun is not None and log.begun <= each.newest and not log.gaps and each.last < log.end
        if whole and (following is None or (following.begun is not None and following.begun > each.newest)):
            return True
    return False


def of_chain(past: PastRun) -> list[Missing]:
    """What is missing of the records that a run's state comes from."""
    warehouse = spark_tables(past.warehouse)
    runs: list[str] = []
    following: str | None = past.run_id
    while following is not None and following not in runs:
        runs.append(following)
        copies = past.warehouse.rows(KRAFT_LOG_COPIES, ["base_run"], {CLUSTER: past.cluster, "run_id": following})
        named = next((each for each in copies["base_run"] if each is not None), None)
        state = kept_by(past.warehouse, past.cluster, named)
        # The state may be an earlier run's, which the named one has left as it was.
        following = named if state is None else state.run_id
    return _missing(warehouse, past.cluster, {run_id: {} for run_id in runs})


def _missing(warehouse: Warehouse, cluster: str, runs: Mapping[str, Mapping[str, Any]]) -> list[Missing]:
    """Of these runs (by id, with their rows of gold `runs`) those whose records are not all there, in the runs' order."""
    copies: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in warehouse.read(KRAFT_LOG_COPIES).where(F.col(CLUSTER) == cluster).collect():
        copies[each["run_id"]].append(each.asDict(recursive=True))
    counts = _counts(warehouse, cluster)
    removed = removed_runs(warehouse, cluster, DETAILS)
    found = []
    for run_id, row in runs.items():
        there = counts.get(run_id, {"good": 0, "bad": 0, "first": None})
        if run_id not in copies and row.get("end") is None and not there["good"]:
            # It had no log.
            continue
        wanted = _wanted(copies[run_id], there) if run_id in copies else None
        if wanted is None or (there["good"] < wanted and not there["bad"]):
            newest, last = row.get("newest_append_time"), None if row.get("end") is None else int(row["end"])
            gone = removed.get(run_id)
            found.append(Missing(run_id, there["good"], wanted, gone, newest, last, row.get("cluster_id")))
    return found


def _counts(warehouse: Warehouse, cluster: str) -> dict[str, dict[str, Any]]:
    good = F.col("problem").isNull()
    mine = warehouse.read(KRAFT_RECORDS).where((F.col(CLUSTER) == cluster) & F.col("checkpoint_offset").isNull())
    rows = mine.groupBy("run_id").agg(
        F.count(F.when(good, 1)).alias("good"),
        F.count(F.when(~good, 1)).alias("bad"),
        F.min(F.when(good, F.col("offset"))).alias("first"),
    )
    return {row["run_id"]: row.asDict() for row in rows.collect()}


def _wanted(copies: Sequence[Mapping[str, Any]], there: Mapping[str, Any]) -> int:
    """Number of records that a run should have read: a log has one for every offset."""
    planned = planned_log(copies)
    if planned is None or not planned.slices:
        return 0
    number = sum(each.to_offset_exclusive - each.from_offset_inclusive for each in planned.slices)
    begin = planned.slices[0]
    # A leader gives no offset 0 once there is a snapshot.
    without_first = (begin.from_offset_inclusive, there["first"]) == (0, 1) and begin.location in planned.fetched
    return number - 1 if without_first else number


def lines(found: Collection[Missing]) -> list[str]:
    """At most two lines: what retention has removed, and what is missing without it."""
    removed = [each.removed for each in found if each.removed is not None]
    gone = [each for each in found if each.removed is None]
    return [*([removed_line("log records", removed)] if removed else []), *([_gone_line(gone)] if gone else [])]


def _gone_line(gone: Sequence[Missing]) -> str:
    first = gone[0]
    more = "" if len(gone) == 1 else f", as are some of {counted(len(gone) - 1, 'other run')}"
    number = "the" if first.of_rows is None else f"{first.of_rows - first.rows:,} of {first.of_rows:,}"
    run = visible(first.run_id, 80)
    return f"{number} log records of run {run} are missing{more}, and retention did not remove them; {_REPAIR}"
