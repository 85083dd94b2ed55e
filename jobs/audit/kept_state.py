"""The replayed state that a run keeps for the next one, and what of it a run continues (`transforms.kraft.replay.compaction`).

A kept state counts when its run has finished (`jobs.audit.finished`) and its rows are found as they were written: later runs
replace them, and Delta forgets what was replaced. Otherwise the whole log is read, and the report says why.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.run import LOG, Run
from jobs.exit import AuditError
from jobs.sinks.delta import Warehouse, in_parallel
from schemas.replayed import FORMAT, REPLAYED_PARTITIONS, REPLAYED_ROWS, REPLAYED_STATES
from schemas.table import Table
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.kraft.replay.image import Log
from transforms.unions import union_all

_KEY_PROBE = "kraft-audit"
_STATE_TABLES = (REPLAYED_ROWS, REPLAYED_PARTITIONS)
_OTHER_FORM = "another release kept it, in another form"
_OTHER_KEY = "secrets were masked with another key then"


@dataclass(frozen=True)
class Written:
    """Rows of one cluster's state by table: how many, and the sum of their hashes; `versions` were Delta's after the write."""

    counts: Mapping[str, int]
    digests: Mapping[str, str]
    versions: Mapping[str, int]


@dataclass(frozen=True)
class KeptState:
    """A cluster's state of the log below `offset`; `milestones` are the records below it that a run reads by themselves.

    `base_run` is the run whose kept state this one itself went on from; `written` its rows.
    """

    run_id: str
    offset: int
    last_epoch: int
    last_append_time: int
    milestones: tuple[Mapping[str, Any], ...]
    written: Written
    base_run: str | None = None


def versions_from(committed: int, migration_offset: int | None) -> int:
    """First offset past `/migration`'s: rows touched from there on keep every version; the tail always does."""
    if migration_offset is None or migration_offset < 0:
        return committed
    return min(migration_offset + 1, committed)


def keep_rows(run: Run, state: Log, clusters: Collection[str]) -> dict[str, Written]:
    """Write the clusters' state to silver, in place of their earlier ones; what was written of each.

    It counts as kept only when `keep_states` has written where it belongs, and the run has finished.
    """
    stamp = {"run_id": F.lit(run.run_id)}
    mine = of_clusters(clusters)
    where = {CLUSTER: sorted(clusters)}
    frames = {REPLAYED_PARTITIONS: state.partition_records.where(mine), REPLAYED_ROWS: state.events.where(mine)}
    # Counted before they are written: what another run leaves of them in the table proves nothing.
    found = _contents(frames)

    def write(table: Table) -> int | None:
        run.warehouse.replace_where(table, frames[table].withColumns(stamp), where)
        return run.warehouse.version(table)

    after = in_parallel([lambda table=table: write(table) for table in frames])  # type: ignore[misc]
    versions = {table.full_name: number for table, number in zip(frames, after, strict=True) if number is not None}
    return {name: replace(found.get(name, _NOTHING_WRITTEN), versions=versions) for name in clusters}


def kept_rows(run: Run, written: Mapping[str, Written]) -> Log:
    """What this run has written with `keep_rows`. Raises AuditError when another run has replaced it meanwhile."""
    log = _stored(run.warehouse, dict.fromkeys(written, run.run_id), _one(written.values()).versions)
    found = _contents({REPLAYED_ROWS: log.events, REPLAYED_PARTITIONS: log.partition_records})
    problems = {name: why for name, each in written.items() if (why := _difference(each, found.get(name)))}
    if problems:
        name, why = min(problems.items())
        raise AuditError(
            f"cluster {name}: another run of it replaced the state this one had written ({why}); run again"
        )
    return log


def _one(written: Iterable[Written]) -> Written:
    return next(iter(written))


_NOTHING_WRITTEN = Written({table.full_name: 0 for table in _STATE_TABLES}, {}, {})


def _contents(frames: Mapping[Table, DataFrame]) -> dict[str, Written]:
    """Number and sum of hashes of each cluster's rows, in one query; the order of rows does not matter."""
    counted = [_counted(table, rows) for table, rows in frames.items()]
    counts: dict[str, dict[str, int]] = {}
    digests: dict[str, dict[str, str]] = {}
    for row in union_all(counted).collect():
        counts.setdefault(row[CLUSTER], {table.full_name: 0 for table in _STATE_TABLES})[row["name"]] = row["rows"]
        digests.setdefault(row[CLUSTER], {})[row["name"]] = row["digest"]
    return {name: Written(mine, digests[name], {}) for name, mine in counts.items()}


def _counted(table: Table, rows: DataFrame) -> DataFrame:
    columns = [name for name in table.column_names if name != "run_id"]
    # The hash passes over nulls, so that a value in one column would be the same value in the next.
    nulls = F.concat(*[F.col(name).isNull().cast("int").cast("string") for name in columns])
    digest = F.sum(F.xxhash64(*columns, nulls).cast("decimal(20,0)")).cast("string")
    sums = rows.groupBy(CLUSTER).agg(F.count("*").alias("rows"), digest.alias("digest"))
    return sums.select(CLUSTER, F.lit(table.full_name).alias("name"), "rows", "digest")


def _difference(written: Written, found: Written | None) -> str | None:
    """Why rows are not those that were written; None when they are."""
    there = found or _NOTHING_WRITTEN
    for name, count in written.counts.items():
        if there.counts.get(name) != count:
            return f"{there.counts.get(name, 0)} of its {count} rows are in {name}"
        if count and there.digests.get(name) != written.digests.get(name):
            return f"its rows in {name} are not those that were written"
    return None


@dataclass(frozen=True)
class Keeping:
    """What is to be said of a cluster's state at `offset`, or (offset -1) that it must not be continued."""

    offset: int
    last_epoch: int | None = None
    last_append_time: int | None = None
    milestones: Sequence[Mapping[str, Any]] = ()
    base_run: str | None = None
    written: Written | None = None


NOTHING = Keeping(-1)


def keep_states(run: Run, keeping: Mapping[str, Keeping]) -> None:
    """Say that the rows written by `keep_rows` are the states below the offsets, or that none may be continued.

    Comes after all other tables of the run, so that a state never goes before what the run has to tell of it.
    """
    going = {name: each for name, each in keeping.items() if name in run.going}
    if not going:
        return
    numbers = _numbers(run, going)
    rows = [
        {
            "cluster": cluster,
            "run_id": run.run_id,
            "kept_at": run.started_at,
            "number": numbers.get(cluster, 0) + 1,
            "format": FORMAT,
            "offset": each.offset,
            "last_epoch": each.last_epoch,
            "last_append_time": each.last_append_time,
            "fingerprint": run.fingerprinter.text(_KEY_PROBE),
            "milestones": json.dumps([dict(m) for m in each.milestones if m["offset"] < each.offset]),
            "base_run": each.base_run,
            **_columns(each.written),
        }
        for cluster, each in going.items()
    ]
    struct = StructType(list(REPLAYED_STATES.columns))
    values = [tuple(row.get(name) for name in struct.fieldNames()) for row in rows]
    run.append(REPLAYED_STATES, run.spark.createDataFrame(values, struct))


def _numbers(run: Run, clusters: Collection[str]) -> dict[str, int]:
    """The highest number of each cluster's states so far, those of runs that never finished included."""
    known = run.found_states.numbers if isinstance(run.found_states, Found) else {}
    if run.warehouse.version(REPLAYED_STATES) is None or known.keys() >= set(clusters):
        return dict(known)
    rows = run.warehouse.read(REPLAYED_STATES).where(of_clusters(clusters))
    return {
        row[CLUSTER]: row["last"] or 0 for row in rows.groupBy(CLUSTER).agg(F.max("number").alias("last")).collect()
    }


def _columns(written: Written | None) -> dict[str, Any]:
    if written is None:
        return {}
    return {
        "versions": dict(written.versions),
        "row_counts": dict(written.counts),
        "digests": dict(written.digests),
    }


@dataclass(frozen=True)
class Found:
    """Kept states that can be continued, their rows, and of other clusters why theirs can't.

    `states` have the versions at which `log` was read. `numbers` are the highest of each cluster's states so far, 0 without any.
    """

    states: dict[str, KeptState] = field(default_factory=dict)
    log: Log | None = None
    problems: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)


def newest_states(run: Run, clusters: Collection[str]) -> Found:
    """Each cluster's newest kept state of a finished run, where this release and this fingerprint key can continue it."""
    finished = run.finished_runs()
    if finished is None or run.warehouse.version(REPLAYED_STATES) is None or not clusters:
        return Found()
    rows = run.warehouse.read(REPLAYED_STATES).where(of_clusters(clusters))
    counting = finished.withColumn("counts", F.lit(True))
    # By number and not by time: a clock that was ahead once must not hide all that came later. Older releases gave none.
    latest = [F.col(name).desc_nulls_last() for name in ("counts", "number", "kept_at", "run_id")]
    mine = Window.partitionBy(CLUSTER)
    in_turn = {"place": F.row_number().over(mine.orderBy(*latest)), "last": F.max("number").over(mine)}
    joined = rows.join(F.broadcast(counting), [CLUSTER, "run_id"], "left")
    first = joined.withColumns(in_turn).where("place = 1").collect()
    newest = [row for row in first if row["counts"]]
    kept = {row[CLUSTER]: row for row in newest if row["offset"] >= 0}
    probe = run.fingerprinter.text(_KEY_PROBE)
    refused = {name: _refusal(row, _OTHER_FORM) for name, row in kept.items() if row["format"] != FORMAT}
    refused |= {
        name: _refusal(row, _OTHER_KEY)
        for name, row in kept.items()
        if name not in refused and row["fingerprint"] != probe
    }
    found = readable(run, {name: _kept(row) for name, row in kept.items() if name not in refused})
    numbers = dict.fromkeys(clusters, 0) | {row[CLUSTER]: row["last"] or 0 for row in first}
    return replace(found, problems=refused | found.problems, numbers=numbers)


def _refusal(row: Any, why: str) -> str:
    return f"the whole log was read: the state that run {row['run_id']} kept can't be continued ({why})"


def states_of_runs(warehouse: Warehouse, runs: Iterable[tuple[str, str | None]]) -> dict[str, KeptState]:
    """The states that these runs kept, by cluster; `runs` are (cluster, run id), one for each cluster."""
    wanted = {cluster: run_id for cluster, run_id in runs if run_id is not None}
    if not wanted:
        return {}
    rows = warehouse.read(REPLAYED_STATES).where(of_clusters(wanted) & F.col("run_id").isin(sorted(wanted.values())))
    return {row["cluster"]: _kept(row) for row in rows.collect() if wanted[row["cluster"]] == row["run_id"]}


def _kept(row: Any) -> KeptState:
    counts, digests, versions = (dict(row[name] or {}) for name in ("row_counts", "digests", "versions"))
    return KeptState(
        row["run_id"],
        row["offset"],
        row["last_epoch"],
        row["last_append_time"],
        tuple(json.loads(row["milestones"])),
        Written(counts, digests, versions),
        row["base_run"],
    )


def read_states(run: Run, kept: Mapping[str, KeptState]) -> Log | None:
    """The kept rows of the clusters, as they were written: later runs may have replaced them. None without any.

    Raises AuditError when they were there as this run began to read the log, in a step of its own, and are no longer.
    """
    if not kept:
        return None
    found = run.found_states
    if not isinstance(found, Found) or not kept.keys() <= found.states.keys():
        found = run.found_states = readable(run, kept)
    gone = [found.problems[name] for name in sorted(kept) if name in found.problems]
    if gone or found.log is None:
        raise AuditError(f"{gone[0] if gone else 'no kept state is there'}; begin another run")
    return found.log if kept.keys() == found.states.keys() else found.log.of_clusters(kept)


def readable(run: Run, kept: Mapping[str, KeptState]) -> Found:
    """Read the states' rows and hold them against what was written: first as they are now, then as of the run's own write.

    As they are now, they outlive a VACUUM; as of the write, they outlive a later run that replaced them.
    """
    now = {table.full_name: run.warehouse.version(table) for table in _STATE_TABLES}
    found = Found()
    present = {name: number for name, number in now.items() if number is not None}
    if len(present) < len(_STATE_TABLES):
        return Found(problems={name: _unreadable(state, "its tables are gone") for name, state in kept.items()})
    for at in (dict.fromkeys(kept, present), {name: dict(state.written.versions) for name, state in kept.items()}):
        for versions, clusters in _together(at):
            missing = {name: kept[name] for name in clusters if name not in found.states}
            if missing and len(versions) == len(_STATE_TABLES):
                found = _with(found, _read(run, missing, dict(versions)))
    return found


def _together(versions: Mapping[str, Mapping[str, int]]) -> list[tuple[tuple[tuple[str, int], ...], list[str]]]:
    """Clusters whose states are read together, so that plans do not grow with the number of clusters."""
    found: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for cluster, mine in versions.items():
        found.setdefault(tuple(sorted(mine.items())), []).append(cluster)
    return list(found.items())


def _with(found: Found, more: Found) -> Found:
    logs = [each.log for each in (found, more) if each.log is not None]
    problems = {name: why for name, why in (found.problems | more.problems).items() if name not in more.states}
    return Found(found.states | more.states, reduce(Log.union, logs) if logs else None, problems)


def _read(run: Run, kept: Mapping[str, KeptState], versions: Mapping[str, int]) -> Found:
    try:
        log = _stored(run.warehouse, {name: state.run_id for name, state in kept.items()}, versions)
        if run.small:
            # Few rows are read from their table once: a dozen queries would each look up its files anew.
            log = Log(run.cache(log.events), run.cache(log.partition_records))
        there = _contents({REPLAYED_ROWS: log.events, REPLAYED_PARTITIONS: log.partition_records})
    except Exception as error:
        # Files that VACUUM took, or a version Delta no longer knows: Java tells of it in a dozen ways.
        LOG.debug("kept states can't be read", exc_info=True)
        if len(kept) == 1:
            return Found(
                problems={n: _unreadable(s, f"its rows can't be read, {type(error).__name__}") for n, s in kept.items()}
            )
        return reduce(_with, [_read(run, {name: state}, versions) for name, state in kept.items()])
    problems = {name: why for name, state in kept.items() if (why := _difference(state.written, there.get(name)))}
    good = {
        name: replace(state, written=replace(state.written, versions=versions))
        for name, state in kept.items()
        if name not in problems
    }
    told = {name: _unreadable(kept[name], why) for name, why in problems.items()}
    if not good:
        return Found(problems=told)
    return Found(good, log if not problems else log.of_clusters(good), told)


def _unreadable(state: KeptState, why: str) -> str:
    return f"the whole log was read: the state that run {state.run_id} kept is not there any more ({why})"


def _stored(warehouse: Warehouse, runs: Mapping[str, str], versions: Mapping[str, int]) -> Log:
    """Rows of these clusters' runs, as of versions of the two tables."""
    mine = of_clusters(runs) & F.col("run_id").isin(sorted(set(runs.values())))
    mine = mine & (F.col("run_id") == by_cluster(runs, "string"))
    rows, partitions = (
        warehouse.read(table, versions[table.full_name]).where(mine).drop("run_id") for table in _STATE_TABLES
    )
    return Log(rows, partitions)
