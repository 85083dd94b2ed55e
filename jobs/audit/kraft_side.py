"""The log of a run as its bronze rows tell it: the copies, the plan made of them, and the records that say how to read the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.kept_state import KeptState, state_of
from jobs.audit.run import Run
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from transforms.kraft.quorum import CommittedEnd, LogCopyFacts, NoUsableLogError, ReadPlan, committed_end, plan_read
from transforms.kraft.replay.image import with_base
from transforms.kraft.replay.transactions import MARKERS, Marker, TransactionLog, read_transactions

STATE, LEADER_CHANGE = "ZK_MIGRATION_STATE_RECORD", "LEADER_CHANGE"
# 3.4 means PRE_MIGRATION by the first byte, and raises leader epochs as in dual write all along.
_MIGRATION, PRE_MIGRATION, _POST_MIGRATION = 1, 2, 3
FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
_MILESTONES = (*MARKERS, STATE, LEADER_CHANGE, FEATURE_LEVEL)


@dataclass(frozen=True)
class KraftSide:
    """The log of a run: what to apply of it and up to where.

    `records` are those to replay, a base checkpoint's among them; `all_records` have every snapshot's as well. What an
    earlier run has `kept` comes before both. `milestones` are the records of transactions, states, elections and levels.
    """

    copies: tuple[LogCopyFacts, ...]
    plan: ReadPlan
    committed: CommittedEnd
    records: DataFrame
    all_records: DataFrame
    milestones: Sequence[Mapping[str, Any]]
    transactions: TransactionLog
    kept: KeptState | None


def read_kraft_side(run: Run, znode_migration: Mapping[str, Any] | None) -> KraftSide | None:
    """Plan the log of the run's copies; None when there is no log that can be used."""
    rows = [row.asDict(recursive=True) for row in run.read(KRAFT_LOG_COPIES).collect()]
    copies = tuple(LogCopyFacts.from_row(row) for row in rows)
    try:
        plan = plan_read(copies)
    except NoUsableLogError:
        return None
    migration = znode_migration or {}
    committed = committed_end(
        copies, plan, migration.get("kraft_metadata_offset"), migration.get("kraft_metadata_epoch")
    )
    kept = next((state_of(run, row["base_run"]) for row in rows if row["base_run"]), None)
    all_records = run.read(KRAFT_RECORDS).where("problem IS NULL")
    if kept is None:
        records = with_base(all_records, None if plan.base is None else plan.base[1].offset)
    else:
        records = all_records.where(F.col("checkpoint_offset").isNull() & (F.col("offset") >= kept.offset))
    milestones = [*(kept.milestones if kept else ()), *_milestones(records)]
    markers = [
        Marker(row["offset"], row["type"], json.loads(row["data"]).get("name"), row["append_time"])
        for row in milestones
        if row["type"] in MARKERS
    ]
    return KraftSide(copies, plan, committed, records, all_records, milestones, read_transactions(markers), kept)


def whole_records(run: Run, kraft: KraftSide) -> DataFrame:
    """All records that the run's state was replayed from: its own, and those of the runs it goes on from."""
    if kraft.kept is None:
        return kraft.records
    earlier = replace(run, run_id=kraft.kept.run_id)
    before = read_kraft_side(earlier, None)
    if before is None:
        return kraft.records
    known = whole_records(earlier, before).where(F.col("offset") < kraft.kept.offset)
    return known.unionByName(kraft.records)


def _milestones(records: DataFrame) -> list[dict[str, Any]]:
    """The few records that say how to read the others, in log order."""
    rows = records.where(F.col("type").isin(list(_MILESTONES)))
    wanted = rows.select("type", "offset", "epoch", "append_time", "data", "checkpoint_offset")
    return [row.asDict() for row in wanted.orderBy("offset").collect()]


def states_of(kraft: KraftSide) -> list[tuple[int, int]]:
    """Offset and code of every ZkMigrationState record, in log order."""
    states = [m for m in kraft.milestones if m["type"] == STATE]
    return [(m["offset"], json.loads(m["data"])["zkMigrationState"]) for m in states]


def dual_write(kraft: KraftSide) -> tuple[int, int | None] | None:
    """Offsets between which the log is in dual write, by the bytes of every release whose controllers heed them."""
    states = states_of(kraft)
    begun = next((offset for offset, code in states if code == _MIGRATION), None)
    if begun is None:
        return None
    return begun, next((offset for offset, code in states if code == _POST_MIGRATION and offset > begun), None)
