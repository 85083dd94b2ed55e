"""The replayed state that a run keeps for the next one, and what of it a run continues (`transforms.kraft.replay.base`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.run import Run
from jobs.sinks.delta import in_parallel
from schemas.bronze import RUN_COLUMNS
from schemas.replayed import FORMAT, REPLAYED_PARTITIONS, REPLAYED_ROWS, REPLAYED_STATES
from transforms.kraft.replay.image import Log

_KEY_PROBE = "kraft-audit"


@dataclass(frozen=True)
class KeptState:
    """A state of the log below `offset`; `milestones` are the records below it that a run reads by themselves."""

    run_id: str
    offset: int
    last_epoch: int
    last_append_time: int
    milestones: tuple[Mapping[str, Any], ...]
    versions: Mapping[str, int]


def versions_from(committed: int, migration_offset: int | None) -> int:
    """First offset past `/migration`'s: rows touched from there on keep every version; the tail always does."""
    if migration_offset is None or migration_offset < 0:
        return committed
    return min(migration_offset + 1, committed)


def keep_rows(run: Run, state: Log) -> Log:
    """Write a state's rows and partitions to silver, in place of the cluster's earlier ones, and read them back.

    They count as kept only when `keep_state` has written where they belong.
    """
    in_parallel(
        [
            lambda: run.replace(REPLAYED_PARTITIONS, state.hot),
            lambda: run.replace(REPLAYED_ROWS, state.events),
        ]
    )
    return Log(run.read(REPLAYED_ROWS).drop(*_RUN), run.read(REPLAYED_PARTITIONS).drop(*_RUN))


_RUN = tuple(field.name for field in RUN_COLUMNS)


def keep_state(run: Run, offset: int, last: Mapping[str, Any], milestones: Sequence[Mapping[str, Any]]) -> None:
    """Say that the rows written by `keep_rows` are the state below `offset`; `last` is the record before it."""
    versions = {table.full_name: run.warehouse.version(table) for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS)}
    _append_state(
        run,
        {
            "format": FORMAT,
            "offset": offset,
            "last_epoch": last["epoch"],
            "last_append_time": last["append_time"],
            "fingerprint": run.fingerprinter.text(_KEY_PROBE),
            "milestones": json.dumps([dict(milestone) for milestone in milestones if milestone["offset"] < offset]),
            "versions": versions,
        },
    )


def keep_nothing(run: Run) -> None:
    """Say that no state may be continued: the log has findings, and the next run must see them too."""
    _append_state(run, {"format": FORMAT, "offset": -1})


def _append_state(run: Run, row: Mapping[str, Any]) -> None:
    struct = StructType([field for field in REPLAYED_STATES.columns if field.name not in _RUN])
    values = tuple(row.get(name) for name in struct.fieldNames())
    run.append(REPLAYED_STATES, run.spark.createDataFrame([values], struct))


def newest_state(run: Run) -> KeptState | None:
    """The cluster's newest kept state that this release and this fingerprint key can continue."""
    rows = run.warehouse.read(REPLAYED_STATES).where(F.col("cluster") == run.cluster)
    newest = rows.orderBy(F.col("run_id").desc()).limit(1).collect()
    if not newest or newest[0]["format"] != FORMAT or newest[0]["offset"] < 0:
        return None
    row = newest[0]
    if row["fingerprint"] != run.fingerprinter.text(_KEY_PROBE):
        return None
    return _kept(row)


def state_of(run: Run, run_id: str) -> KeptState:
    """The state that the run `run_id` kept."""
    rows = run.warehouse.read(REPLAYED_STATES).where((F.col("cluster") == run.cluster) & (F.col("run_id") == run_id))
    return _kept(rows.collect()[0])


def _kept(row: Any) -> KeptState:
    return KeptState(
        row["run_id"],
        row["offset"],
        row["last_epoch"],
        row["last_append_time"],
        tuple(json.loads(row["milestones"])),
        dict(row["versions"]),
    )


def read_state(run: Run, kept: KeptState) -> Log:
    """The kept rows, as they were written: later runs may have replaced them."""
    rows, partitions = (
        run.warehouse.read(table, kept.versions[table.full_name])
        .where((F.col("cluster") == run.cluster) & (F.col("run_id") == kept.run_id))
        .drop(*_RUN)
        for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS)
    )
    return Log(rows, partitions)
