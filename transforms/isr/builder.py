"""The record that a KRaft controller writes for a proposed state of a partition (`PartitionChangeBuilder`, 3.3 to 4.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from transforms.isr.partition import NO_LEADER, RECOVERING, Change, Ids, PartitionState


@dataclass(frozen=True)
class Proposal:
    """What a request or an event wants a partition to be."""

    replicas: Ids
    isr: Ids
    adding: Ids
    removing: Ids
    leader_recovery_state: int

    @staticmethod
    def of(partition: PartitionState) -> Proposal:
        """A builder that starts from the given state."""
        return Proposal(
            partition.replicas, partition.isr, partition.adding, partition.removing, partition.leader_recovery_state
        )


@dataclass(frozen=True)
class Builder:
    """The inputs that decide, besides the partition's state, which record is written.

    `can_lead` is Kafka's LeaderAcceptor: the broker is unfenced, not shutting down, and the replica's directory online.
    `min_isr` is the topic's effective min.insync.replicas, at most the replicas of its partition 0; it counts with ELR only
    (`eligible.leader.replicas.version` 1). `unclean` is the topic's unclean.leader.election.enable.
    """

    release: tuple[int, int]
    can_lead: Callable[[int], bool]
    bumps_on_shrink: bool = False
    elr: bool = False
    min_isr: int = 1
    unclean: bool = False

    def change(self, partition: PartitionState, proposal: Proposal) -> Change | None:
        """The record's fields; None if no record is written."""
        wanted = self._completed(proposal)
        elr = self._elr(partition, wanted.isr)
        leader, unclean = self._elected(partition, wanted, elr)
        recovery = wanted.leader_recovery_state
        moved, forced = leader != partition.leader, False
        if moved and leader in elr:
            wanted, elr = replace(wanted, isr=(leader,)), _without(elr, (leader,))
        if moved and unclean:
            wanted, elr, forced = replace(wanted, isr=(leader,)), (), True
            # The request's recovery state takes precedence: it comes last in Kafka's order.
            if recovery == partition.leader_recovery_state:
                recovery = RECOVERING
        elif not wanted.isr and not self.elr:
            wanted = replace(wanted, isr=partition.isr)
        named = self._named_leader(partition, wanted, leader)
        change = Change(
            replicas=_if_new(wanted.replicas, partition.replicas),
            isr=wanted.isr if forced else _if_new(wanted.isr, partition.isr),
            leader=named,
            leader_recovery_state=None if recovery == partition.leader_recovery_state else recovery,
            adding=_if_new(wanted.adding, partition.adding),
            removing=_if_new(wanted.removing, partition.removing),
            elr=_if_new(elr if self.elr else (), partition.elr),
            last_known_elr=self._last_known(partition, wanted, named),
        )
        return None if change == Change() else change

    def _completed(self, proposal: Proposal) -> Proposal:
        if not completes(proposal, self.release):
            return proposal
        staying = _without(proposal.isr, proposal.removing)
        return replace(
            proposal, replicas=_without(proposal.replicas, proposal.removing), isr=staying, adding=(), removing=()
        )

    def _elr(self, partition: PartitionState, isr: Ids) -> Ids:
        """`maybePopulateTargetElr`; the order is that of Java's HashSet, for ids below 16 by their size.

        Where ELR is off one that is left is still there for the election, and goes with this record.
        """
        if not self.elr:
            return partition.elr
        if len(isr) >= self.min_isr:
            return ()
        return tuple(sorted({*partition.elr, *partition.isr} - set(isr)))

    def _elected(self, partition: PartitionState, wanted: Proposal, elr: Ids) -> tuple[int, bool]:
        """The leader, and whether its election is unclean (`electAnyLeader`)."""
        electable = wanted.isr or elr
        for replica in (partition.leader, *wanted.replicas):
            if replica in electable and self.can_lead(replica):
                return replica, False
        last = partition.last_known_elr
        # Before 4.1 Kafka does not check whether the last known leader is available.
        if self.elr and not electable and len(last) == 1 and (self.release < (4, 1) or self.can_lead(last[0])):
            return last[0], True
        if self.unclean:
            for replica in wanted.replicas:
                if self.can_lead(replica):
                    return replica, True
        return NO_LEADER, False

    def _named_leader(self, partition: PartitionState, wanted: Proposal, leader: int) -> int | None:
        """The leader that the record names; the present one too where its epoch has to rise (S§3.3)."""
        leaves = bool(set(partition.replicas) - set(wanted.replicas))
        shrinks = self.bumps_on_shrink and bool(set(partition.isr) - set(wanted.isr))
        return leader if leader != partition.leader or leaves or shrinks else None

    def _last_known(self, partition: PartitionState, wanted: Proposal, named: int | None) -> Ids | None:
        """`maybeUpdateLastKnownLeader`, which is another one since 4.2."""
        if not self.elr:
            return None
        last = partition.last_known_elr
        if self.release >= (4, 2):
            if named == NO_LEADER and not last:
                return (partition.leader,)
            return () if named is not None and named >= 0 and last else None
        if not wanted.isr and wanted.isr != partition.isr and last != (partition.leader,):
            return (partition.leader,)
        leads = (partition.leader if named is None else named) != NO_LEADER
        return () if leads and last else None


def bumps_on_shrink(release: tuple[int, int], metadata_version: int | None, migrating: bool) -> bool | None:
    """Whether a shrinking ISR raises the leader epoch (S§3.3); None if the level decides and is unknown."""
    if release < (3, 6) or migrating:
        return True
    return None if metadata_version is None else metadata_version < 12


def completes(proposal: Proposal, release: tuple[int, int]) -> bool:
    """Tell whether a proposed state completes its reassignment (`PartitionReassignmentReplicas`; S§3.3).

    All that are added must be in the ISR; from 3.8 to 4.2 the whole target; since then the whole target only where the
    partition loses more replicas than it gets.
    """
    if not (proposal.adding or proposal.removing):
        return False
    target, staying = _without(proposal.replicas, proposal.removing), set(_without(proposal.isr, proposal.removing))
    if proposal.removing and not (staying and target):
        return False
    if (3, 8) <= release < (4, 3):
        return staying >= set(target)
    fewer = release >= (4, 3) and len(proposal.adding) < len(proposal.removing)
    return staying >= set(proposal.adding) and (not fewer or staying >= set(target))


def _without(members: Ids, others: Ids) -> Ids:
    return tuple(member for member in members if member not in others)


def _if_new(wanted: Ids, present: Ids) -> Ids | None:
    return None if wanted == present else wanted
