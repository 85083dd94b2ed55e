"""The log of each cluster of a run: the copies, the plan made of them, and the records that say how to read the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.kept_state import KeptState, states_of_runs
from jobs.audit.run import Run
from jobs.sinks.delta import Warehouse
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.clusters import of_clusters
from transforms.kraft.quorum import CommittedEnd, LogCopy, NoUsableLogError, ReadPlan, committed_end, plan_read
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.transactions import MARKERS, Marker, TransactionLog, read_transactions

STATE, LEADER_CHANGE = "ZK_MIGRATION_STATE_RECORD", "LEADER_CHANGE"
# 3.4 means PRE_MIGRATION by the first byte, and raises leader epochs as in dual write all along.
IN_MIGRATION, PRE_MIGRATION, _POST_MIGRATION = 1, 2, 3
FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
KRAFT_VERSION, KRAFT_VOTERS = "KRAFT_VERSION", "KRAFT_VOTERS"
MILESTONES = (*MARKERS, STATE, LEADER_CHANGE, FEATURE_LEVEL, KRAFT_VERSION, KRAFT_VOTERS)
_MILESTONE_COLUMNS = ("type", "offset", "epoch", "append_time", "data", "checkpoint_offset")
Milestone = Mapping[str, Any]


@dataclass(frozen=True)
class KraftSide:
    """One cluster's log: what of it to apply, and up to where.

    `milestones` are the records of transactions, states, elections, levels and voters, in log order; `kept` is the state of an
    earlier run that comes before the records this one read.
    """

    copies: tuple[LogCopy, ...]
    plan: ReadPlan
    committed: CommittedEnd
    milestones: Sequence[Milestone]
    transactions: TransactionLog
    kept: KeptState | None

    def extent(self, end: int | None = None, discarded: Sequence[tuple[int, int | None]] | None = None) -> Extent:
        """The part of the log that is applied: to its end, or to `end` (exclusive) with other ranges left out."""
        return Extent(
            end=self.plan.leading.end if end is None else end,
            start=self.kept.offset if self.kept else self.start,
            base=None if self.kept or self.plan.base_checkpoint is None else self.plan.base_checkpoint[1].offset,
            discarded=self.transactions.discarded if discarded is None else discarded,
        )

    @property
    def start(self) -> int:
        """First offset of the log's own records that counts."""
        return 0 if self.plan.base_checkpoint is None else self.plan.base_checkpoint[1].offset

    def states(self) -> list[tuple[int, int]]:
        """Offset and code of every ZkMigrationState record, in log order."""
        states = [m for m in self.milestones if m["type"] == STATE]
        return [(m["offset"], json.loads(m["data"])["zkMigrationState"]) for m in states]

    def dual_write(self) -> tuple[int, int | None] | None:
        """Offsets between which the log is in dual write, by the bytes of every release whose controllers heed them."""
        states = self.states()
        begun = next((offset for offset, code in states if code == IN_MIGRATION), None)
        if begun is None:
            return None
        return begun, next((offset for offset, code in states if code == _POST_MIGRATION and offset > begun), None)

    @property
    def shows_waiting(self) -> bool:
        """True when the state before the load is recorded, or compacted away: Kafka 3.4 records none (S§4.3)."""
        begun = self.dual_write()
        waited = begun is not None and any(code == PRE_MIGRATION for at, code in self.states() if at < begun[0])
        return waited or self.plan.base_checkpoint is not None

    def metadata_version(self, offset: int) -> int | None:
        """The finalised metadata.version below an offset; None when the log has none there."""
        bodies = [json.loads(m["data"]) for m in self.milestones if m["type"] == FEATURE_LEVEL and m["offset"] < offset]
        levels = [body["featureLevel"] for body in bodies if body["name"] == FEATURE_NAME]
        return levels[-1] if levels else None


def continued(sides: Mapping[str, KraftSide]) -> dict[str, int]:
    """First offset that was read (inclusive) of each cluster whose run went on from a kept state."""
    return {name: side.extent().start for name, side in sides.items() if side.kept is not None}


def log_copies(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Rows of bronze kraft_log_copies by cluster; clusters without a KRaft side are not in it."""
    asked = [name for name, settings in run.settings_of().items() if settings.kraft is not None]
    copies: dict[str, list[dict[str, Any]]] = {name: [] for name in asked}
    if run.scanned:
        return {name: run.scanned.get(name, []) for name in asked}
    if asked:
        # A table has no order, and what is read of copies that are alike must not hang on one.
        for row in sorted(run.rows(KRAFT_LOG_COPIES).collect(), key=lambda row: str(row["location"])):
            copies.setdefault(row["cluster"], []).append(row.asDict(recursive=True))
    return copies


def milestone_rows(records: DataFrame) -> DataFrame:
    """The few records that say how to read the others: cluster and the columns of a milestone, checkpoints' too."""
    rows = records.where(F.col("problem").isNull() & F.col("type").isin(list(MILESTONES)))
    return rows.select("cluster", *_MILESTONE_COLUMNS)


def kraft_sides(
    warehouse: Warehouse,
    copies: Mapping[str, Sequence[Mapping[str, Any]]],
    milestones: Mapping[str, Iterable[Milestone]],
    migrations: Mapping[str, Mapping[str, Any] | None],
) -> dict[str, KraftSide]:
    """Plan the log of each cluster's copies; a cluster without a log that can be used is not in the result.

    `milestones` are collected `milestone_rows`, `migrations` the row of `/migration` where there is one.
    """
    bases = {
        (cluster, row["base_run"]) for cluster, rows in copies.items() for row in rows if row["base_run"] is not None
    }
    kept = states_of_runs(warehouse, bases)
    sides = {}
    for cluster, rows in copies.items():
        side = _side(rows, milestones.get(cluster, ()), migrations.get(cluster) or {}, kept.get(cluster))
        if side is not None:
            sides[cluster] = side
    return sides


def _side(
    rows: Sequence[Mapping[str, Any]],
    milestones: Iterable[Milestone],
    migration: Mapping[str, Any],
    kept: KeptState | None,
) -> KraftSide | None:
    copies = tuple(LogCopy.from_row(row) for row in rows)
    try:
        plan = plan_read(copies)
    except NoUsableLogError:
        return None
    committed = committed_end(
        copies, plan, migration.get("kraft_metadata_offset"), migration.get("kraft_metadata_epoch")
    )
    base = None if kept is not None or plan.base_checkpoint is None else plan.base_checkpoint[1].offset
    applied = [*(kept.milestones if kept else ()), *_in_log_order(milestones, base, kept.offset if kept else None)]
    markers = [
        Marker(row["offset"], row["type"], json.loads(row["data"]).get("name"), row["append_time"])
        for row in applied
        if row["type"] in MARKERS
    ]
    return KraftSide(copies, plan, committed, applied, read_transactions(markers), kept)


def _in_log_order(rows: Iterable[Milestone], base: int | None, start: int | None) -> list[Milestone]:
    """The milestones that count: the base checkpoint's just before its end, the log's from there or from `start` on."""
    first = max(base or 0, start or 0)
    chosen: list[Milestone] = []
    for row in rows:
        if row["checkpoint_offset"] is None:
            if row["offset"] >= first:
                chosen.append(row)
        elif base is not None and row["checkpoint_offset"] == base:
            chosen.append({**row, "offset": base - 1})
    return sorted(chosen, key=lambda row: int(row["offset"]))


def whole_records(warehouse: Warehouse, cluster: str, run_id: str, side: KraftSide) -> tuple[DataFrame, Extent]:
    """All records that a finished run's state was replayed from, in its log's own offsets, and what of them applies.

    A run that went on from an earlier one's state has its records in several runs' rows; they are read in one go, each
    run's from where the one before it ended.
    """
    parts: list[tuple[str, int, int | None]] = [(run_id, side.kept.offset if side.kept else 0, None)]
    kept = side.kept
    while kept is not None:
        earlier = states_of_runs(warehouse, {(cluster, kept.base_run)}).get(cluster) if kept.base_run else None
        parts.append((kept.run_id, earlier.offset if earlier else 0, kept.offset))
        kept = earlier
    records = warehouse.read(KRAFT_RECORDS).where(of_clusters([cluster]))
    # As one look-up by run, so that the plan does not grow with the number of runs.
    first = F.from_json(F.lit(json.dumps({name: start for name, start, _ in parts})), "map<string,bigint>")
    last = F.from_json(F.lit(json.dumps({name: end for name, _, end in parts})), "map<string,bigint>")
    mine = records.where(F.col("run_id").isin([name for name, _, _ in parts]))
    offset, checkpoint = F.col("offset"), F.col("checkpoint_offset")
    in_part = (offset >= first[F.col("run_id")]) & (last[F.col("run_id")].isNull() | (offset < last[F.col("run_id")]))
    oldest = parts[-1][0]
    base = None if side.plan.base_checkpoint is None else side.plan.base_checkpoint[1].offset
    if side.kept is not None:
        base = oldest_base(warehouse, cluster, oldest)
    of_base = F.lit(False) if base is None else (checkpoint == base) & (F.col("run_id") == oldest)
    extent = Extent(side.plan.leading.end, base or 0, base, side.transactions.discarded)
    return mine.where((checkpoint.isNull() & in_part) | of_base), extent


def oldest_base(warehouse: Warehouse, cluster: str, run_id: str) -> int | None:
    """Exclusive end of the checkpoint that a run's copies begin with; None when the log reaches back to offset 0."""
    rows = warehouse.read(KRAFT_LOG_COPIES).where(of_clusters([cluster]) & (F.col("run_id") == run_id)).collect()
    plan = plan_read([LogCopy.from_row(row.asDict(recursive=True)) for row in rows])
    return None if plan.base_checkpoint is None else plan.base_checkpoint[1].offset
