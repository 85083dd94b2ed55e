"""What each change of a partition was: shrink, expansion, election and of what kind, recovery, step of a reassignment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from transforms.isr.partition import (
    CLEARED,
    LISTS,
    NO_LEADER,
    RECOVERED,
    RECOVERING,
    Change,
    Ids,
    PartitionState,
    merged,
)


class ChangeKind(StrEnum):
    """What a change of a partition is; one change is often several."""

    CREATED = "created"
    REPLACED = "replaced"
    SHRINK = "shrink"
    EXPAND = "expand"
    REORDERED = "reordered"
    LEADER_MOVE = "leader_move"
    LEADER_LOST = "leader_lost"
    EPOCH_BUMP = "epoch_bump"
    CLEAN_ELECTION = "clean_election"
    ELR_ELECTION = "elr_election"
    LAST_KNOWN_LEADER_ELECTION = "last_known_leader_election"
    UNCLEAN_ELECTION = "unclean_election"
    RECOVERED = "recovered"
    REASSIGNMENT_STARTED = "reassignment_started"
    REASSIGNMENT_CHANGED = "reassignment_changed"
    REASSIGNMENT_COMPLETED = "reassignment_completed"
    REASSIGNMENT_CANCELLED = "reassignment_cancelled"
    ELR_GAINED = "elr_gained"
    ELR_LOST = "elr_lost"
    ELR_CLEARED = "elr_cleared"
    DIRECTORIES = "directories"


ELECTIONS = (
    ChangeKind.CLEAN_ELECTION,
    ChangeKind.ELR_ELECTION,
    ChangeKind.LAST_KNOWN_LEADER_ELECTION,
    ChangeKind.UNCLEAN_ELECTION,
)
# Elections that can lose data that was acknowledged.
LOSSY = (ChangeKind.LAST_KNOWN_LEADER_ELECTION, ChangeKind.UNCLEAN_ELECTION)
HOUR = 3_600_000
_NUMBERS = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")


@dataclass(frozen=True)
class Record:
    """One record on one partition: its place and time in the log, and the change."""

    offset: int
    time: int
    change: Change
    clears_elr: bool = False


@dataclass(frozen=True)
class ClassifiedChange:
    """One change of a partition: the states before and after, and its kinds. `before` is None if the partition was created."""

    offset: int
    time: int
    before: PartitionState | None
    after: PartitionState
    kinds: tuple[ChangeKind, ...]

    @property
    def joined(self) -> Ids:
        """Brokers that came into the ISR."""
        known = () if self.before is None else self.before.isr
        return tuple(member for member in self.after.isr if member not in known)

    @property
    def left(self) -> Ids:
        """Brokers that went out of the ISR."""
        known = () if self.before is None else self.before.isr
        return tuple(member for member in known if member not in self.after.isr)

    @property
    def election(self) -> ChangeKind | None:
        """Which election it was, if it was one."""
        return next((kind for kind in self.kinds if kind in ELECTIONS), None)


def step_of(row: Mapping[str, Any]) -> ClassifiedChange:
    """A row of gold isr_history as a step."""
    after = _state(row, "")
    if after is None:
        raise ValueError("a row of the history has a state after it")
    return ClassifiedChange(
        row["offset"], row["append_time"], _state(row, "_before"), after, tuple(map(ChangeKind, row["kinds"]))
    )


def _state(row: Mapping[str, Any], suffix: str) -> PartitionState | None:
    if row[f"leader{suffix}"] is None:
        return None
    values: dict[str, Any] = {name: tuple(row[column + suffix]) for column, name in LISTS.items()}
    return PartitionState(**values, **{name: row[name + suffix] for name in _NUMBERS})


def steps(records: Iterable[Record], base: PartitionState | None = None) -> Iterator[ClassifiedChange]:
    """One partition's records, in the order of the log, as steps. `base` is its state before the first of them.

    A CLEAR_ELR that finds nothing to clear is not a step: Kafka leaves the partition and its epoch as they are. Raises
    ValueError for a change of a partition that was never made.
    """
    before = base
    for record in records:
        if record.clears_elr and not (before and (before.elr or before.last_known_elr)):
            continue
        after = merged(before, record.change)
        yield ClassifiedChange(record.offset, record.time, before, after, classify(before, record.change, after))
        before = after


def classify(before: PartitionState | None, change: Change, after: PartitionState) -> tuple[ChangeKind, ...]:
    """What a change of a partition from `before` to `after` is, the weightiest first.

    A change that does nothing but empty both ELR lists is what a CLEAR_ELR makes of a partition.
    """
    if before is None:
        return (ChangeKind.CREATED,)
    if change.whole:
        return (ChangeKind.REPLACED,)
    if change == CLEARED:
        return (ChangeKind.ELR_CLEARED,)
    election = election_of(before, change, after)
    kinds = [
        *([election] if election is not None else []),
        *_leader(before, change, after),
        *_reassignment(before, after),
        *_isr(before, after),
        *([ChangeKind.RECOVERED] if before.recovering and after.leader_recovery_state == RECOVERED else []),
        *_elr(before, after),
    ]
    return tuple(kinds) or (ChangeKind.DIRECTORIES,)


def election_of(before: PartitionState, change: Change, after: PartitionState) -> ChangeKind | None:
    """The kind of election that made the leader, or the ISR that it comes from (ISR-12); None if there was none.

    A leader from the eligible leader replicas is clean: its log has all acknowledged records. One that is only the last known
    leader (KIP-966), or none of both, may lack it; the controller then sets RECOVERING. A cancelled reassignment can do the
    same without that mark, and without a leader at first.
    """
    if _reverted_uncleanly(before, after):
        return ChangeKind.UNCLEAN_ELECTION
    if change.leader is None or after.leader == NO_LEADER:
        return None
    recovers = change.leader_recovery_state == RECOVERING
    if after.leader == before.leader and not recovers:
        return None
    safe = after.leader in before.isr or after.leader in before.elr
    if recovers or not (safe or _joined_in_time(before, after)):
        last_known = after.leader in before.last_known_elr and not safe
        return ChangeKind.LAST_KNOWN_LEADER_ELECTION if last_known else ChangeKind.UNCLEAN_ELECTION
    if after.leader in before.elr and after.leader not in before.isr:
        return ChangeKind.ELR_ELECTION
    return ChangeKind.CLEAN_ELECTION


def _joined_in_time(before: PartitionState, after: PartitionState) -> bool:
    """A replica that a reassignment adds comes into the ISR and leads by the one record that completes it."""
    led = after.leader in after.isr and before.leader != NO_LEADER
    return led and _ends(before, after) and not _cancelled(before, after)


def _ends(before: PartitionState, after: PartitionState) -> bool:
    return before.reassigning and not after.reassigning


def _cancelled(before: PartitionState, after: PartitionState) -> bool:
    """Whether the reassignment that ends was cancelled.

    Both ways lead to the same replicas where a replica was both added and removed. Then only a completion, which is by
    3.8 to 4.2 only, has the whole target in the ISR; and only a leader that goes on leading brings in a member that was
    in neither ISR nor ELR. A cancel that is like a completion even so needs unclean.leader.election.enable.
    """
    if not _ends(before, after):
        return False
    target = set(before.target)
    both = bool(set(before.adding) & set(before.removing))
    led = NO_LEADER not in (before.leader, after.leader)
    completes = target <= set(after.isr) and (led or not _strangers(before, after))
    return set(after.replicas) != target or (both and not completes)


def _strangers(before: PartitionState, after: PartitionState) -> set[int]:
    """Members of the ISR that were in neither ISR nor ELR."""
    return set(after.isr) - set(before.isr) - set(before.elr)


def _reverted_uncleanly(before: PartitionState, after: PartitionState) -> bool:
    """A reassignment is cancelled while the ISR holds none but replicas that it adds (`PartitionReassignmentRevert`).

    The first of the replicas that are left becomes the ISR, though it was not in sync: Kafka checks
    unclean.leader.election.enable, but does not write RECOVERING. It leads at once, or later, when it is available.
    """
    return _cancelled(before, after) and bool(_strangers(before, after))


def _leader(before: PartitionState, change: Change, after: PartitionState) -> list[ChangeKind]:
    if change.leader is None:
        return []
    if after.leader == before.leader:
        return [ChangeKind.EPOCH_BUMP]
    if after.leader == NO_LEADER:
        return [ChangeKind.LEADER_LOST]
    return [ChangeKind.LEADER_MOVE]


def _isr(before: PartitionState, after: PartitionState) -> list[ChangeKind]:
    left, joined = set(before.isr) - set(after.isr), set(after.isr) - set(before.isr)
    kinds = [*([ChangeKind.SHRINK] if left else []), *([ChangeKind.EXPAND] if joined else [])]
    if not kinds and before.isr != after.isr:
        return [ChangeKind.REORDERED]
    return kinds


def _reassignment(before: PartitionState, after: PartitionState) -> list[ChangeKind]:
    if before.replicas == after.replicas and (before.adding, before.removing) == (after.adding, after.removing):
        return []
    if not before.reassigning:
        return [ChangeKind.REASSIGNMENT_STARTED if after.reassigning else ChangeKind.REASSIGNMENT_COMPLETED]
    if after.reassigning:
        return [ChangeKind.REASSIGNMENT_CHANGED]
    return [ChangeKind.REASSIGNMENT_CANCELLED if _cancelled(before, after) else ChangeKind.REASSIGNMENT_COMPLETED]


def _elr(before: PartitionState, after: PartitionState) -> list[ChangeKind]:
    gained = set(after.elr) - set(before.elr)
    lost = set(before.elr) - set(after.elr)
    return [*([ChangeKind.ELR_GAINED] if gained else []), *([ChangeKind.ELR_LOST] if lost else [])]
