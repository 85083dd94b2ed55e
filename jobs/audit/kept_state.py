"""The replayed state that a run keeps for the next one, and what of it a run continues (`transforms.kraft.replay.compaction`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.run import Run
from jobs.sinks.delta import Warehouse, in_parallel
from schemas.replayed import FORMAT, REPLAYED_PARTITIONS, REPLAYED_ROWS, REPLAYED_STATES
from schemas.table import Table
from transforms.clusters import CLUSTER, of_clusters
from transforms.kraft.replay.image import Log

_KEY_PROBE = "kraft-audit"
_STATE_TABLES = (REPLAYED_ROWS, REPLAYED_PARTITIONS)


@dataclass(frozen=True)
class KeptState:
    """A cluster's state of the log below `offset`; `milestones` are the records below it that a run reads by themselves.

    `base_run` is the run whose kept state this one itself went on from.
    """

    run_id: str
    offset: int
    last_epoch: int
    last_append_time: int
    milestones: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, int]
    base_run: str | None = None


def versions_from(committed: int, migration_offset: int | None) -> int:
    """First offset past `/migration`'s: rows touched from there on keep every version; the tail always does."""
    if migration_offset is None or migration_offset < 0:
        return committed
    return min(migration_offset + 1, committed)


def keep_rows(run: Run, state: Log, clusters: Collection[str]) -> None:
    """Write the clusters' state to silver, in place of their earlier ones.

    It counts as kept only when `keep_states` has written where it belongs.
    """
    stamp = {"run_id": F.lit(run.run_id)}
    mine = of_clusters(clusters)
    where = {CLUSTER: sorted(clusters)}

    def write(table: Table, rows: DataFrame) -> None:
        run.warehouse.replace_where(table, rows.where(mine).withColumns(stamp), where)

    in_parallel(
        [lambda: write(REPLAYED_PARTITIONS, state.partition_records), lambda: write(REPLAYED_ROWS, state.events)],
    )


def kept_rows(run: Run, clusters: Collection[str]) -> Log:
    """What this run has written with `keep_rows`."""
    mine = of_clusters(clusters) & (F.col("run_id") == run.run_id)
    rows, partitions = (run.warehouse.read(table).where(mine).drop("run_id") for table in _STATE_TABLES)
    return Log(rows, partitions)


@dataclass(frozen=True)
class Keeping:
    """What is to be said of a cluster's state at `offset`, or (offset -1) that it must not be continued."""

    offset: int
    last_epoch: int | None = None
    last_append_time: int | None = None
    milestones: Sequence[Mapping[str, Any]] = ()
    base_run: str | None = None


NOTHING = Keeping(-1)


def keep_states(run: Run, keeping: Mapping[str, Keeping]) -> None:
    """Say that the rows written by `keep_rows` are the states below the offsets, or that none may be continued."""
    if not keeping:
        return
    versions = {table.full_name: run.warehouse.version(table) for table in _STATE_TABLES}
    rows = [
        {
            "cluster": cluster,
            "run_id": run.run_id,
            "kept_at": run.started_at,
            "format": FORMAT,
            "offset": each.offset,
            "last_epoch": each.last_epoch,
            "last_append_time": each.last_append_time,
            "fingerprint": run.fingerprinter.text(_KEY_PROBE),
            "milestones": json.dumps([dict(m) for m in each.milestones if m["offset"] < each.offset]),
            "versions": versions if each.offset >= 0 else None,
            "base_run": each.base_run,
        }
        for cluster, each in keeping.items()
    ]
    struct = StructType(list(REPLAYED_STATES.columns))
    values = [tuple(row.get(name) for name in struct.fieldNames()) for row in rows]
    run.append(REPLAYED_STATES, run.spark.createDataFrame(values, struct))


def newest_states(run: Run, clusters: Collection[str]) -> dict[str, KeptState]:
    """Each cluster's newest kept state, where this release and this fingerprint key can continue it."""
    if run.warehouse.version(REPLAYED_STATES) is None or not clusters:
        return {}
    rows = run.warehouse.read(REPLAYED_STATES).where(of_clusters(clusters))
    in_time = Window.partitionBy(CLUSTER).orderBy(F.col("kept_at").desc_nulls_last(), F.col("run_id").desc())
    newest = rows.withColumn("place", F.row_number().over(in_time)).where("place = 1").collect()
    probe = run.fingerprinter.text(_KEY_PROBE)
    return {
        row["cluster"]: _kept(row)
        for row in newest
        if row["format"] == FORMAT and row["offset"] >= 0 and row["fingerprint"] == probe
    }


def states_of_runs(warehouse: Warehouse, runs: Iterable[tuple[str, str | None]]) -> dict[str, KeptState]:
    """The states that these runs kept, by cluster; `runs` are (cluster, run id), one for each cluster."""
    wanted = {cluster: run_id for cluster, run_id in runs if run_id is not None}
    if not wanted:
        return {}
    rows = warehouse.read(REPLAYED_STATES).where(of_clusters(wanted) & F.col("run_id").isin(sorted(wanted.values())))
    return {row["cluster"]: _kept(row) for row in rows.collect() if wanted[row["cluster"]] == row["run_id"]}


def _kept(row: Any) -> KeptState:
    return KeptState(
        row["run_id"],
        row["offset"],
        row["last_epoch"],
        row["last_append_time"],
        tuple(json.loads(row["milestones"])),
        dict(row["versions"]),
        row["base_run"],
    )


def read_states(run: Run, kept: Mapping[str, KeptState]) -> Log | None:
    """The kept rows of the clusters, as they were written: later runs may have replaced them. None without any.

    States that were written together are read together, so that plans do not grow with the number of clusters.
    """
    together: dict[tuple[tuple[str, int], ...], list[str]] = {}
    for cluster, state in kept.items():
        together.setdefault(tuple(sorted(state.versions.items())), []).append(cluster)
    logs = []
    for versions, clusters in together.items():
        ids = sorted({kept[cluster].run_id for cluster in clusters})
        mine = of_clusters(clusters) & F.col("run_id").isin(ids)
        rows, partitions = (
            run.warehouse.read(table, dict(versions)[table.full_name]).where(mine).drop("run_id")
            for table in _STATE_TABLES
        )
        logs.append(Log(rows, partitions))
    whole: Log | None = None
    for log in logs:
        whole = log if whole is None else whole.union(log)
    if whole is None or not run.small:
        return whole
    # Few rows are read from their table once: a dozen queries would each look up its files anew.
    return Log(whole.events, run.cache(whole.partition_records))
