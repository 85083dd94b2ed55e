"""The log of a cluster: the copies, the plan made of them, and the records that are needed to read the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from schemas.kraft.feature_levels import ELR_VERSION
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.kraft.quorum import (
    CommittedEnd,
    LogCopy,
    NoUsableLogError,
    ReadPlan,
    committed_end,
    last_stable,
    plan_read,
)
from transforms.kraft.replay.extent import Extent, Ranges, within
from transforms.kraft.replay.transactions import MARKERS, Marker, TransactionLog, read_transactions

STATE, LEADER_CHANGE = "ZK_MIGRATION_STATE_RECORD", "LEADER_CHANGE"
# 3.4 means PRE_MIGRATION by the first byte, and raises leader epochs as in dual write all along.
IN_MIGRATION, PRE_MIGRATION, _POST_MIGRATION = 1, 2, 3
FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
KRAFT_VERSION, KRAFT_VOTERS = "KRAFT_VERSION", "KRAFT_VOTERS"
MILESTONES = (*MARKERS, STATE, LEADER_CHANGE, FEATURE_LEVEL, KRAFT_VERSION, KRAFT_VOTERS)
# The first leader's LeaderChange is at offset 0. What it writes to an empty log follows at once, and begins with the voters, a level or
# a transaction (Kafka's ActivationRecordsGenerator): the records at these offsets are of one moment.
_FIRST_OFFSETS = range(5)
MILESTONE_COLUMNS = ("type", "offset", "epoch", "append_time", "data", "checkpoint_offset")
Milestone = Mapping[str, Any]


@dataclass(frozen=True)
class LogKept:
    """The state of the log below `offset` (exclusive) that an earlier run has kept; its bytes are read where it is replayed.

    `last_epoch` and `last_append_time` (milliseconds) are of the record before the offset, by which a later run knows that it
    reads the same log. `milestones` are the records below it that a run reads by themselves; `base_run` is the run whose kept
    state this one itself continued from.
    """

    run_id: str
    offset: int
    last_epoch: int
    last_append_time: int
    milestones: tuple[Milestone, ...]
    base_run: str | None = None


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
    kept: LogKept | None

    def extent(self) -> Extent:
        """The part of the log that is applied."""
        return Extent(
            end=self.plan.leading.end,
            start=self.kept.offset if self.kept else self.start,
            base=None if self.kept else self.base,
            discarded=self.transactions.discarded,
        )

    def whole(self, base: int | None, end: int | None = None) -> Extent:
        """The part that is applied when the log is read from its beginning, though this run continued from a kept state.

        `base` is the checkpoint (exclusive end) that the log of the first of these runs begins with; None for offset 0. With an
        `end` (exclusive), what was not in force there is left out.
        """
        discarded = self.transactions.discarded if end is None else self.transactions.discarded_at(end - 1)
        return Extent(self.plan.leading.end if end is None else end, base or 0, base, discarded)

    @property
    def base(self) -> int | None:
        """Exclusive end of the checkpoint that the copies begin with; None when the log reaches back to offset 0."""
        return None if self.plan.base_checkpoint is None else self.plan.base_checkpoint[1].offset

    @property
    def start(self) -> int:
        """First offset of the log's own records that counts."""
        return self.base or 0

    @property
    def begun_ms(self) -> int | None:
        """When the log began; None for one that begins with a checkpoint. A copy of a running quorum may lack offset 0."""
        first = min(
            (record for record in self.milestones if record["checkpoint_offset"] is None),
            key=lambda record: int(record["offset"]),
            default=None,
        )
        return None if first is None or first["offset"] not in _FIRST_OFFSETS else first["append_time"]

    def in_effect(self, kind: str) -> list[Milestone]:
        """The records of a type, in log order, but those of transactions that were aborted or have not ended.

        One that ends past the committed end has not: it may be the load, which then is not done.
        """
        committed = self.transactions.discarded_at(self.committed.proved_exclusive - 1)
        return self._outside((*self.transactions.discarded, *committed), kind)

    def not_aborted(self, kind: str) -> list[Milestone]:
        """The records of a type, in log order, but those of transactions that were aborted."""
        return self._outside(self.transactions.aborted, kind)

    def _outside(self, ranges: Ranges, kind: str) -> list[Milestone]:
        return [m for m in self.milestones if m["type"] == kind and not within(m["offset"], ranges)]

    def states(self) -> list[tuple[int, int]]:
        """Offset and code of every ZkMigrationState record that is in effect, in log order."""
        return [(m["offset"], json.loads(m["data"])["zkMigrationState"]) for m in self.in_effect(STATE)]

    def dual_write(self) -> tuple[int, int | None] | None:
        """Offsets between which the log is in dual write, by the bytes of every release whose controllers use them."""
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
        return self._level(FEATURE_NAME, offset)

    def has_elr(self, offset: int) -> bool:
        """Whether eligible leader replicas are on below an offset (KIP-966): the feature's level is above 0."""
        return (self._level(ELR_VERSION, offset) or 0) > 0

    def _level(self, feature: str, offset: int) -> int | None:
        waiting = self.transactions.discarded_at(offset - 1)
        below = [m for m in self.milestones if m["type"] == FEATURE_LEVEL and m["offset"] < offset]
        bodies = [json.loads(m["data"]) for m in below if not within(m["offset"], waiting)]
        levels: list[int] = [body["featureLevel"] for body in bodies if body["name"] == feature]
        return levels[-1] if levels else None


@cache
def _types() -> pa.Array:
    # Only when they are needed: to make an array of Python's values, Arrow imports pandas.
    return pa.array(MILESTONES)


def milestones(records: pa.RecordBatch) -> list[dict[str, Any]]:
    """The few records that are needed to read the others, of a batch of bronze kraft_records: MILESTONE_COLUMNS, checkpoints' too."""
    wanted = pc.and_(pc.is_null(records["problem"]), pc.is_in(records["type"], value_set=_types()))
    found: list[dict[str, Any]] = records.select(MILESTONE_COLUMNS).filter(wanted).to_pylist()
    return found


def kraft_side(
    copies: Sequence[Mapping[str, Any]],
    found: Iterable[Milestone],
    migration: Mapping[str, Any] | None,
    kept: LogKept | None = None,
) -> KraftSide | None:
    """Plan a cluster's log; None without one that can be used.

    `copies` are rows of bronze kraft_log_copies, `found` the `milestones` of the records that were read, `migration` the row of
    `/migration` where there is one. `kept` is the state that the records continue from.
    """
    # A table has no order, and the result of reading equal copies must not depend on one.
    facts = tuple(LogCopy.from_row(row) for row in sorted(copies, key=lambda row: str(row["location"])))
    try:
        plan = plan_read(facts)
    except NoUsableLogError:
        return None
    seen = migration or {}
    committed = committed_end(facts, plan, seen.get("kraft_metadata_offset"), seen.get("kraft_metadata_epoch"))
    base = None if kept is not None or plan.base_checkpoint is None else plan.base_checkpoint[1].offset
    applied = [*(kept.milestones if kept else ()), *_in_log_order(found, base, kept.offset if kept else None)]
    markers = [
        Marker(row["offset"], row["type"], json.loads(row["data"]).get("name"), row["append_time"])
        for row in applied
        if row["type"] in MARKERS
    ]
    transactions = read_transactions(markers)
    return KraftSide(facts, plan, last_stable(committed, transactions), applied, transactions, kept)


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


def versions_from(committed: int, migration_offset: int | None) -> int:
    """First offset past `/migration`'s: rows touched from there on keep every version; the tail always does."""
    if migration_offset is None or migration_offset < 0:
        return committed
    return min(migration_offset + 1, committed)


def checkpoints_to_verify(side: KraftSide) -> list[int]:
    """Offsets of the complete checkpoints inside the replayed part; the base itself proves nothing."""
    start = -1 if side.base is None else side.base
    if side.kept is not None:
        start = side.kept.offset
    offsets = {c.offset for copy in side.copies for c in copy.checkpoints if copy.has_log and c.complete}
    return sorted(offset for offset in offsets if start < offset <= side.committed.end_exclusive)


def keep_at(side: KraftSide, after: int, every: int) -> int | None:
    """Where to keep the state: no version is wanted of what is below (`after`), and no transaction is open there.

    None when fewer than `every` records are new: the next run continues from where this one did.
    """
    states = side.states()
    if states and states[-1][1] == PRE_MIGRATION:
        # A load without transactions may be in progress, and is judged as a whole.
        return None
    pending = side.transactions.open_at(after)
    end = after if pending is None else min(after, pending.begin_inclusive)
    known = 0 if side.kept is None else side.kept.offset
    return end if end - known >= every and end > side.plan.start else None
