"""A cluster's log as all its finished runs have read it: bronze keeps what Kafka has pruned since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.evidence.opening import Finished, spark_tables
from jobs.evidence.past_records import applied, oldest_base
from schemas.bronze import KRAFT_RECORDS
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.kraft.other_logs import CLOCKS_APART_MS
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.transactions import MARKERS, Marker, read_transactions
from transforms.runs import FAILED, oldest_first

_IN_ORDER = ("sequence", "started_at", "finished_at")


@dataclass(frozen=True)
class RunExtent:
    """What one run has of a log: its first record's offset, and the end proved committed (exclusive).

    `first_time` is the append time (ms) of the first record but that at offset 0: once there is a snapshot, a leader does not give
    that one. `newest` is that of the last record, `epoch` the newest leader epoch that began before `end`. They and `cluster_id` are None
    if the run did not know or store them.
    """

    run_id: str
    first: int
    first_time: int
    end: int
    cluster_id: str | None = None
    newest: int | None = None
    epoch: int | None = None


@dataclass
class OneLog:
    """One log over several runs: `parts` are the offsets taken from each, first inclusive and end exclusive.

    `gaps` are offsets between two runs that no run has read: first inclusive, end exclusive.
    """

    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    begun: int | None = None
    cluster_id: str | None = None
    newest: int | None = None
    epoch: int | None = None

    @property
    def first(self) -> int:
        """First offset that any run has read."""
        return min(first for first, _ in self.parts.values())

    @property
    def end(self) -> int:
        """End of what any run has read and found committed, exclusive."""
        return max(end for _, end in self.parts.values())


def logs_of(runs: Sequence[RunExtent]) -> list[OneLog]:
    """Group the runs that read the same log, in their order; each adds its new records.

    The log of another cluster is another log: RUN-01 failed in that run, and the cluster's own log goes on after it.
    A log that begins at offset 0 or 1 at another time is another log: the controllers were formatted again. A log that begins
    later is the part of the earlier one that Kafka has not pruned, unless its times or epochs show that it is another one.
    """
    found: list[OneLog] = []
    for run in runs:
        begun = run.first_time if run.first <= 1 else None
        log = next((each for each in reversed(found) if is_of_one_cluster(each, run)), None)
        if log is None or (begun is not None and begun != log.begun) or (begun is None and _is_younger(run, log)):
            parts = {run.run_id: (run.first, run.end)}
            log = OneLog(parts, begun=begun, cluster_id=run.cluster_id, newest=run.newest, epoch=run.epoch)
            found.append(log)
            continue
        log.cluster_id = log.cluster_id or run.cluster_id
        end = log.end
        if run.first > end:
            log.gaps.append((end, run.first))
        if run.end > end:
            log.parts[run.run_id] = (max(run.first, end), run.end)
            log.newest, log.epoch = run.newest or log.newest, run.epoch or log.epoch
    return found


def _is_younger(run: RunExtent, log: OneLog) -> bool:
    """Whether a run that has not seen its log's first record has read one that was begun after the log: its record is younger than
    all that the log had there, or it is longer and of an older epoch, and epochs never fall."""
    if run.first < log.end and log.newest is not None and run.first_time > log.newest + CLOCKS_APART_MS:
        return True
    return run.end > log.end and run.epoch is not None and log.epoch is not None and run.epoch < log.epoch


def is_of_one_cluster(log: OneLog, other: OneLog | RunExtent) -> bool:
    """True unless both cluster ids are known and differ."""
    return None in (log.cluster_id, other.cluster_id) or log.cluster_id == other.cluster_id


@dataclass(frozen=True)
class AppliedLog:
    """One log's records that take effect, and the exclusive end of the checkpoint it begins with, None without one."""

    log: OneLog
    records: DataFrame
    base_end: int | None


def applied_logs(finished: Finished) -> list[AppliedLog]:
    """The cluster's logs, the oldest first: only what a finished run has found committed."""
    return [_applied(finished, log) for log in logs_of(_extents(finished))]


def _extents(finished: Finished) -> list[RunExtent]:
    mine = F.col(CLUSTER) == finished.cluster
    finished_runs = spark_tables(finished.warehouse).read(RUNS).where(mine & (F.col("verdict") != FAILED))
    last = F.get_json_object("report", "$.migration.committed_end_offset").cast("bigint")
    stored = ("cluster_id", "newest_append_time", "leader_epochs")
    ends = finished_runs.select("run_id", *stored, *_IN_ORDER, last.alias("last")).where("last IS NOT NULL")
    good = mine & F.col("checkpoint_offset").isNull() & F.col("problem").isNull()
    own = spark_tables(finished.warehouse).read(KRAFT_RECORDS).where(good)
    # That of offset 0 is the greatest, which counts where there is no other one.
    placed = F.struct(F.col("offset") == 0, "offset", "append_time")
    firsts = own.groupBy("run_id").agg(F.min("offset").alias("first"), F.min(placed)["append_time"].alias("time"))
    rows = ends.join(firsts, "run_id").orderBy(*oldest_first()).collect()
    return [
        RunExtent(
            row["run_id"],
            row["first"],
            row["time"] or 0,
            row["last"] + 1,
            row["cluster_id"],
            row["newest_append_time"],
            max(
                (each["epoch"] for each in row["leader_epochs"] or () if each["start_offset"] <= row["last"]),
                default=None,
            ),
        )
        for row in rows
    ]


def _applied(finished: Finished, log: OneLog) -> AppliedLog:
    first_run = next(iter(log.parts))
    base = oldest_base(spark_tables(finished.warehouse), finished.cluster, first_run)
    rows = spark_tables(finished.warehouse).read(KRAFT_RECORDS).where(F.col(CLUSTER) == finished.cluster)
    mine = rows.where(F.col("run_id").isin(list(log.parts)))
    offset, checkpoint = F.col("offset"), F.col("checkpoint_offset")
    in_part = checkpoint.isNull() & (offset >= _by_run(log.parts, 0)) & (offset < _by_run(log.parts, 1))
    of_base = F.lit(False) if base is None else (checkpoint == base) & (F.col("run_id") == first_run)
    records = mine.where(in_part | of_base)
    markers = [
        Marker(row["offset"], row["type"], json.loads(row["data"]).get("name"), row["append_time"])
        for row in records.where(checkpoint.isNull() & F.col("type").isin(list(MARKERS)) & F.col("problem").isNull())
        .orderBy("offset")
        .collect()
    ]
    extent = Extent(log.end, base or 0, base, read_transactions(markers).discarded)
    return AppliedLog(log, applied(records, extent), base)


def _by_run(parts: Mapping[str, tuple[int, int]], which: int) -> Column:
    """One look-up, so that the plan does not grow with the number of runs."""
    values = json.dumps({name: part[which] for name, part in parts.items()})
    return F.from_json(F.lit(values), "map<string,bigint>")[F.col("run_id")]
