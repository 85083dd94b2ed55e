"""A partition's state as Kafka's controllers hold it, and what a metadata record makes of it (S§3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERED, RECOVERING = 0, 1
NO_RECOVERY_CHANGE = -1

Ids = tuple[int, ...]


@dataclass(frozen=True)
class PartitionState:
    """One state of a partition. In ZooKeeper `partition_epoch` is the state znode's version; there is no ELR there.

    `leader` is -1 when there is none. `elr` and `last_known_elr` are KIP-966's lists.
    """

    replicas: Ids
    isr: Ids
    leader: int
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: int = RECOVERED
    adding: Ids = ()
    removing: Ids = ()
    elr: Ids = ()
    last_known_elr: Ids = ()

    @property
    def recovering(self) -> bool:
        """True between an election that may have lost data and the next change of the ISR by the leader."""
        return self.leader_recovery_state == RECOVERING

    @property
    def reassigning(self) -> bool:
        """True while a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> Ids:
        """The replicas after the current reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)


@dataclass(frozen=True)
class Change:
    """What one record changes: None is 'unchanged' (`PartitionChangeRecord`). `whole` replaces the row and both epochs."""

    replicas: Ids | None = None
    isr: Ids | None = None
    leader: int | None = None
    leader_recovery_state: int | None = None
    adding: Ids | None = None
    removing: Ids | None = None
    elr: Ids | None = None
    last_known_elr: Ids | None = None
    whole: bool = False
    leader_epoch: int = 0
    partition_epoch: int = 0


CLEARED = Change(elr=(), last_known_elr=())

# Columns of a partition's lists, and the fields that they are here.
LISTS = {
    "replicas": "replicas",
    "isr": "isr",
    "adding_replicas": "adding",
    "removing_replicas": "removing",
    "eligible_leader_replicas": "elr",
    "last_known_elr": "last_known_elr",
}


def state_of(row: Mapping[str, Any]) -> PartitionState | None:
    """A silver partition row as a state; None for a ZooKeeper partition without a state znode."""
    if row["isr"] is None or row["leader"] is None:
        return None
    lists = {name: _ids(row.get(column)) or () for column, name in LISTS.items()}
    return PartitionState(
        leader=row["leader"],
        leader_epoch=row["leader_epoch"],
        partition_epoch=row["partition_epoch"],
        leader_recovery_state=row.get("leader_recovery_state") or RECOVERED,
        **lists,
    )


def change_of(row: Mapping[str, Any], *, whole: bool) -> Change:
    """A bronze record of one of the two partition types as a change; 'unchanged' is spelled as the record spells it."""
    leader, recovery = row.get("leader"), row.get("leader_recovery_state")
    return Change(
        leader=None if leader == NO_LEADER_CHANGE else leader,
        leader_recovery_state=None if recovery == NO_RECOVERY_CHANGE else recovery,
        whole=whole,
        leader_epoch=row.get("leader_epoch") or 0,
        partition_epoch=row.get("partition_epoch") or 0,
        **{name: _ids(row.get(column)) for column, name in LISTS.items()},
    )


def merged(before: PartitionState | None, change: Change) -> PartitionState:
    """The state after a record (`PartitionRegistration.merge`). Raises ValueError for a change of no partition.

    Every change raises the partition epoch by one; a change that names a leader, be it the same one, raises the leader
    epoch by one too.
    """
    if change.whole:
        return PartitionState(
            replicas=change.replicas or (),
            isr=change.isr or (),
            leader=NO_LEADER if change.leader is None else change.leader,
            leader_epoch=change.leader_epoch,
            partition_epoch=change.partition_epoch,
            leader_recovery_state=change.leader_recovery_state or RECOVERED,
            adding=change.adding or (),
            removing=change.removing or (),
            elr=change.elr or (),
            last_known_elr=change.last_known_elr or (),
        )
    if before is None:
        raise ValueError("a change of a partition that was never made")
    named = {name: value for name in (*LISTS.values(), "leader") if (value := getattr(change, name)) is not None}
    recovery = before.leader_recovery_state if change.leader_recovery_state is None else change.leader_recovery_state
    return replace(
        before,
        **named,
        leader_recovery_state=recovery,
        leader_epoch=before.leader_epoch + (change.leader is not None),
        partition_epoch=before.partition_epoch + 1,
    )


def _ids(values: Sequence[int] | None) -> Ids | None:
    return None if values is None else tuple(values)
