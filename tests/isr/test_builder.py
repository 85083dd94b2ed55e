"""The record for a proposed state: each row was written by the released class itself (`PartitionChangeBuilder`), by release."""

from __future__ import annotations

import pytest

from transforms.isr.builder import Builder, Proposal
from transforms.isr.partition import RECOVERED, RECOVERING, Change, Ids, PartitionState

Release = tuple[int, int]
ALL: tuple[Release, ...] = ((3, 7), (3, 8), (3, 9), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4))
WITH_ELR, TO_4_1, FROM_4_2 = ALL[3:], ALL[3:5], ALL[5:]
ADDED, TARGET, FEWER = (ALL[0], *ALL[6:]), ALL[1:6], ALL[6:]


def state(replicas: Ids, isr: Ids, leader: int = 1, recovery: int = RECOVERED, **lists: Ids) -> PartitionState:
    return PartitionState(replicas, isr, leader, 5, 9, recovery, **lists)


def proposal(replicas: Ids, isr: Ids, adding: Ids = (), removing: Ids = (), recovery: int = RECOVERED) -> Proposal:
    return Proposal(replicas, isr, adding, removing, recovery)


IN_SYNC, ALONE = state((1, 2, 3), (1, 2)), state((1, 2, 3), (1,))
MOVING = state((1, 2, 3, 4), (1, 2), adding=(4,), removing=(1,))
FEWER_LEFT = state((1, 2, 3, 4), (1,), adding=(4,), removing=(1, 2))
BOTH = state((1, 2, 3), (1,), adding=(3,), removing=(3,))
REVERTED = state((4, 1, 2), (4,), 4, adding=(4,), removing=(1, 2))
ELR = {"elr": True, "min_isr": 2}
# Releases, the state, what is proposed, who can lead, what decides besides, and the record.
Case = tuple[tuple[Release, ...], PartitionState, Proposal, Ids, dict[str, object], Change | None]
CASES: dict[str, Case] = {
    # What remedies of ISR-01 and ISR-02 rely on.
    "a reassignment to the same replicas keeps a member that is not a replica": (
        ALL,
        state((1, 2, 3), (1, 2, 9)),
        proposal((1, 2, 3), (1, 2, 9)),
        (1, 2, 3, 9),
        {},
        None,
    ),
    "the broker of that member stops": (
        ALL,
        state((1, 2, 3), (1, 2, 9)),
        proposal((1, 2, 3), (1, 2)),
        (1, 2, 3),
        {},
        Change(isr=(1, 2)),
    ),
    "a reassignment to the same replicas elects from the ISR where the leader is not in it": (
        ALL,
        state((1, 2, 3), (2, 3)),
        proposal((1, 2, 3), (2, 3)),
        (1, 2, 3),
        {},
        Change(leader=2),
    ),
    "one leaves the ISR": (
        WITH_ELR,
        state((1, 2, 3), (1, 2, 3)),
        proposal((1, 2, 3), (1, 2)),
        (1, 2, 3),
        ELR,
        Change(isr=(1, 2)),
    ),
    "the same where a shrink raises the leader epoch": (
        ALL,
        state((1, 2, 3), (1, 2, 3)),
        proposal((1, 2, 3), (1, 2)),
        (1, 2, 3),
        {"bumps_on_shrink": True},
        Change(isr=(1, 2), leader=1),
    ),
    "below min.insync.replicas": (WITH_ELR, IN_SYNC, proposal((1, 2, 3), (1,)), (1,), ELR, Change(isr=(1,), elr=(2,))),
    "the last member goes": (
        WITH_ELR,
        state((1, 2, 3), (1,), elr=(2,)),
        proposal((1, 2, 3), ()),
        (3,),
        ELR,
        Change(isr=(), leader=-1, elr=(1, 2), last_known_elr=(1,)),
    ),
    "the same ISR, min.insync.replicas fell": (
        WITH_ELR,
        state((1, 2, 3), (1,), elr=(2,)),
        proposal((1, 2, 3), (1,)),
        (1, 2),
        {"elr": True, "min_isr": 1},
        Change(elr=()),
    ),
    "the same ISR, a last known leader is left, to 4.1": (
        TO_4_1,
        state((1, 2, 3), (1,), last_known_elr=(2,)),
        proposal((1, 2, 3), (1,)),
        (1, 2),
        {"elr": True},
        Change(last_known_elr=()),
    ),
    "the same ISR, a last known leader is left, from 4.2": (
        FROM_4_2,
        state((1, 2, 3), (1,), last_known_elr=(2,)),
        proposal((1, 2, 3), (1,)),
        (1, 2),
        {"elr": True},
        None,
    ),
    "the last known leader comes back": (
        WITH_ELR,
        state((1, 2, 3), (), -1, last_known_elr=(2,)),
        proposal((1, 2, 3), ()),
        (2,),
        ELR,
        Change(isr=(2,), leader=2, leader_recovery_state=RECOVERING, last_known_elr=()),
    ),
    "4.0 elects a last known leader that is not there": (
        (ALL[3],),
        state((1, 3, 2), (), -1, last_known_elr=(2,)),
        proposal((1, 3, 2), ()),
        (1,),
        {**ELR, "unclean": True},
        Change(isr=(2,), leader=2, leader_recovery_state=RECOVERING, last_known_elr=()),
    ),
    "an eligible replica comes back": (
        WITH_ELR,
        state((1, 2, 3), (), -1, elr=(1, 2)),
        proposal((1, 2, 3), ()),
        (2,),
        ELR,
        Change(isr=(2,), leader=2, elr=(1,)),
    ),
    "a reassignment leaves ELR members that are no replicas": (
        WITH_ELR,
        state((1, 2, 3), (1,), adding=(3,), removing=(1, 2), elr=(2,)),
        proposal((1, 2, 3), (1, 3), (3,), (1, 2)),
        (1, 3),
        ELR,
        Change(replicas=(3,), isr=(3,), leader=3, adding=(), removing=(), elr=(1, 2)),
    ),
    "a replica leaves a partition without a leader, to 4.1": (
        TO_4_1,
        state((1, 2, 3), (), -1, elr=(1,)),
        proposal((2, 3), ()),
        (),
        ELR,
        Change(replicas=(2, 3), leader=-1),
    ),
    "the same from 4.2: broker -1 is its last known leader": (
        FROM_4_2,
        state((1, 2, 3), (), -1, elr=(1,)),
        proposal((2, 3), ()),
        (),
        ELR,
        Change(replicas=(2, 3), leader=-1, last_known_elr=(-1,)),
    ),
    "all that are added are in sync": (
        ADDED,
        MOVING,
        proposal((1, 2, 3, 4), (1, 2, 4), (4,), (1,)),
        (1, 2, 4),
        {},
        Change(replicas=(2, 3, 4), isr=(2, 4), leader=2, adding=(), removing=()),
    ),
    "the same where the whole target has to be": (
        TARGET,
        MOVING,
        proposal((1, 2, 3, 4), (1, 2, 4), (4,), (1,)),
        (1, 2, 4),
        {},
        Change(isr=(1, 2, 4)),
    ),
    "more are removed than added, to 3.7": (
        ALL[:1],
        FEWER_LEFT,
        proposal((1, 2, 3, 4), (1, 4), (4,), (1, 2)),
        (1, 4),
        {},
        Change(replicas=(3, 4), isr=(4,), leader=4, adding=(), removing=()),
    ),
    "more are removed than added": (
        ALL[1:],
        FEWER_LEFT,
        proposal((1, 2, 3, 4), (1, 4), (4,), (1, 2)),
        (1, 4),
        {},
        Change(isr=(1, 4)),
    ),
    "one is both added and removed, and never comes to an end": (
        ADDED,
        BOTH,
        proposal((1, 2, 3), (1, 2), (3,), (3,)),
        (1, 2),
        {},
        Change(isr=(1, 2)),
    ),
    "one is both added and removed": (
        TARGET,
        BOTH,
        proposal((1, 2, 3), (1, 2), (3,), (3,)),
        (1, 2),
        {},
        Change(replicas=(1, 2), isr=(1, 2), leader=1, adding=(), removing=()),
    ),
    "a cancel makes the first replica the ISR": (
        ALL,
        REVERTED,
        proposal((1, 2), (1,)),
        (1, 2),
        {"unclean": True},
        Change(replicas=(1, 2), isr=(1,), leader=1, adding=(), removing=()),
    ),
    "the same, and nobody is there": (
        ALL,
        REVERTED,
        proposal((1, 2), (1,)),
        (),
        {"unclean": True},
        Change(replicas=(1, 2), isr=(1,), leader=-1, adding=(), removing=()),
    ),
    "the same, and only another one is there": (
        ALL,
        REVERTED,
        proposal((1, 2), (1,)),
        (2,),
        {"unclean": True},
        Change(replicas=(1, 2), isr=(2,), leader=2, adding=(), removing=(), leader_recovery_state=RECOVERING),
    ),
    "an unclean election names the ISR that it finds": (
        ALL,
        state((4, 3, 1), (1,), -1),
        proposal((4, 3, 1), (3,)),
        (1,),
        {"unclean": True},
        Change(isr=(1,), leader=1, leader_recovery_state=RECOVERING),
    ),
    "ELR is off and one is left": (
        WITH_ELR,
        state((1, 6, 2), (6,), -1, elr=(6,)),
        proposal((1, 6, 2), (6, 1)),
        (6,),
        {},
        Change(leader=6, elr=()),
    ),
    "the leader's directory is offline": (
        ALL,
        IN_SYNC,
        proposal((1, 2, 3), (1, 2, 3)),
        (2, 3),
        {},
        Change(isr=(1, 2, 3), leader=2),
    ),
    "recovery ends": (
        ALL,
        state((1, 2, 3), (1,), recovery=RECOVERING),
        proposal((1, 2, 3), (1, 2)),
        (1, 2),
        {},
        Change(isr=(1, 2), leader_recovery_state=RECOVERED),
    ),
    "nothing is new": (ALL, ALONE, proposal((1, 2, 3), (1,)), (1,), {}, None),
}


@pytest.mark.parametrize("case", CASES)
def test_a_record_is_the_one_that_kafka_writes(case: str) -> None:
    releases, before, wanted, leaders, decides, record = CASES[case]
    for release in releases:
        builder = Builder(release, leaders.__contains__, **decides)  # type: ignore[arg-type]
        assert (release, builder.change(before, wanted)) == (release, record)
