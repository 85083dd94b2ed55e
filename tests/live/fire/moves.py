"""What reassignments, cancels and elections have to come to, said from the request and the state before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.live.fire.log import Row
from tests.live.fire.predict import CHANGE
from tests.live.fire.steps import Elect, Reassign
from tests.live.fire.world import World
from transforms.isr.builder import Builder, Proposal
from transforms.isr.history import LOSSY, ChangeKind, ClassifiedChange, classify
from transforms.isr.partition import NO_LEADER, RECOVERING, Change, PartitionState, change_of, merged
from transforms.isr.validate import builder_of

INVALID_REPLICA_ASSIGNMENT, NONE_IN_PROGRESS, UNKNOWN = 39, 85, -1


def reassigned(asked: Reassign, world: World, error: int, rows: Sequence[Row]) -> str | None:
    """Why the answer to a reassignment and its record are not what they have to be; None when they are."""
    partition = world.partitions.get(asked.key)
    if partition is None:
        return None
    state = partition.state
    builder = builder_of(world.controller(*asked.key))
    if asked.target is None:
        return _cancelled(state, builder, error, asked, rows)
    if error:
        return None
    return _differs(builder_online(builder).change(state, _proposal(state, asked.target)), state, asked, rows)


def builder_online(builder: Builder) -> Builder:
    """A new assignment never elects uncleanly (`changePartitionReassignment`)."""
    return replace(builder, unclean=False)


def _proposal(state: PartitionState, target: tuple[int, ...]) -> Proposal:
    """`PartitionReassignmentReplicas`: what the present replicas have and lack of the target."""
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(state.replicas)))
    now = Proposal.of(state)
    return replace(now, replicas=(*target, *removing), removing=removing or now.removing, adding=adding or now.adding)


def _cancelled(state: PartitionState, builder: Builder, error: int, asked: Reassign, rows: Sequence[Row]) -> str | None:
    """`PartitionReassignmentRevert`."""
    if not state.reassigning:
        return None if error == NONE_IN_PROGRESS else f"error {error}, though no reassignment is under way"
    replicas = tuple(each for each in state.replicas if each not in state.adding)
    isr = tuple(each for each in state.isr if each not in state.adding)
    if not isr and (not replicas or not builder.unclean):
        return None if error == INVALID_REPLICA_ASSIGNMENT else f"error {error}, though it would be an unclean election"
    if error:
        return f"error {error}, though it can be cancelled"
    proposal = replace(Proposal.of(state), replicas=replicas, isr=isr or replicas[:1], adding=(), removing=())
    wrong = _differs(builder.change(state, proposal), state, asked, rows)
    return wrong or _kinds_of_cancel(state, lossy=not isr and replicas[0] not in state.elr, asked=asked, rows=rows)


def _mine(asked: Reassign, rows: Sequence[Row]) -> Row | None:
    return next(
        (row for row in rows if row["type"] == CHANGE and (row["topic_id"], row["partition_id"]) == asked.key), None
    )


def _differs(change: Change | None, state: PartitionState, asked: Reassign, rows: Sequence[Row]) -> str | None:
    row = _mine(asked, rows)
    if change is None and row is None:
        return None
    if change is None or row is None:
        return f"predicted {change}, written {row and change_of(row, whole=False)}"
    after, wanted = merged(state, change_of(row, whole=False)), merged(state, change)
    return None if after == wanted else f"predicted {wanted}, written {after}"


def _kinds_of_cancel(state: PartitionState, *, lossy: bool, asked: Reassign, rows: Sequence[Row]) -> str | None:
    row = _mine(asked, rows)
    assert row is not None
    change = change_of(row, whole=False)
    after = merged(state, change)
    kinds = classify(state, change, after)
    told = any(kind in LOSSY for kind in kinds)
    lossy = lossy or change.leader_recovery_state == RECOVERING
    # It may be RECOVERING already, and the record does not repeat that.
    lossy = lossy or (after.recovering and after.leader not in (NO_LEADER, *state.isr, *state.elr))
    if ChangeKind.REASSIGNMENT_COMPLETED in kinds and _like_a_completion(state, after):
        return None
    if told != lossy or ChangeKind.REASSIGNMENT_CANCELLED not in kinds:
        return f"a cancel {'that loses' if lossy else 'that is clean'} is called {[kind.value for kind in kinds]}"
    return None


def _like_a_completion(before: PartitionState, after: PartitionState) -> bool:
    """Tell whether the completion of a reassignment that adds and removes the same replicas would leave this record."""
    same = set(before.adding) & set(before.replicas) == set(before.removing) & set(before.replicas)
    brought_in = set(after.isr) - {*before.isr, *before.elr}
    led = NO_LEADER not in (before.leader, after.leader)
    return same and set(after.replicas) <= set(after.isr) and (led or not brought_in)


def elected(asked: Elect, world: World, changed: Sequence[tuple[tuple[str, int], ClassifiedChange]]) -> str | None:
    """Why the history's kinds of an election are wrong: an election is lossy just where the controller says RECOVERING."""
    topic_id = world.topics.get(asked.topic)
    for (mine, number), step in changed:
        before = step.before
        if mine != topic_id or before is None or step.after.leader == NO_LEADER:
            continue
        # Who is RECOVERING already is not called so again. Without its feature a partition may still have an ELR that Kafka does not use.
        known = step.after.leader in (*before.isr, *before.elr)
        safe = known if before.recovering else not step.after.recovering
        lossy = step.election in LOSSY
        if step.election is not None and lossy == safe:
            return f"{asked.topic}/{number}: {before} to {step.after} is called {[kind.value for kind in step.kinds]}"
        if lossy and not asked.unclean and not before.last_known_elr:
            return f"{asked.topic}/{number}: a preferred election is called {[kind.value for kind in step.kinds]}"
    return None
