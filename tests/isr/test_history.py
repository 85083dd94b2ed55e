"""What each change of a partition was: on real logs against what happened there, and case by case."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.captures import capture
from tests.isr.logs import CHANGE, histories, log_records
from tests.isr.plain import churn, flapping
from tests.pipeline import expected
from transforms.isr.history import LOSSY, ChangeKind, ClassifiedChange, Record, steps
from transforms.isr.partition import CLEARED, RECOVERING, Change, PartitionState, change_of, merged, state_of

RELEASE = "4.3.1-kraft"
STAGES = [
    *[(RELEASE, name, 3001) for name in ("2", "4", "5", "6", "7", "8", "12", "upgrade-3-done")],
    *[("4.4.0-kraft", name, 3001) for name in ("2", "4", "8", "12", "static-1-quorum", "upgrade-1-before")],
    *[(version, stage, 3001) for version in ("3.5.2", "3.6.2", "3.9.1") for stage in ("5", "6", "7")],
]


@pytest.mark.parametrize(("version", "stage", "controller"), STAGES)
def test_histories_end_in_the_state_that_an_independent_replay_of_the_dump_has(
    version: str, stage: str, controller: int
) -> None:
    """Epoch by epoch: each record is one step, and none is left out."""
    folder = capture(version, stage)
    wanted = expected.load(folder)
    told = histories(folder, controller)
    for (topic, partition), value in expected.partitions(wanted["state"]).items():
        history = [step for step in told.pop(f"{topic}/{partition}") if step.offset < wanted["end_offset"]]
        clears = sum(ChangeKind.ELR_CLEARED in step.kinds for step in history)
        last = history[-1].after
        assert value == {
            "replicas": list(last.replicas),
            "isr": list(last.isr),
            "leader": last.leader,
            "leader_epoch": last.leader_epoch,
            # Kafka counts a CLEAR_ELR, as its checkpoints show; that replay does not.
            "partition_epoch": last.partition_epoch - clears,
            "recovery": last.leader_recovery_state,
            "adding": list(last.adding),
            "removing": list(last.removing),
            **({"elr": list(last.elr)} if last.elr else {}),
            **({"last_known_elr": list(last.last_known_elr)} if last.last_known_elr else {}),
        }
        epochs = [step.after.partition_epoch for step in history]
        assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
    assert told == {}
    assert any(record.type == CHANGE for record in log_records(folder, controller))


def of_kind(stage: str, kind: ChangeKind) -> set[int]:
    told = histories(capture(RELEASE, stage), 3001)
    return {step.offset for history in told.values() for step in history if kind in step.kinds}


def test_elections_that_can_lose_data_are_told_by_offset_and_kind() -> None:
    assert of_kind("12", ChangeKind.UNCLEAN_ELECTION) == {2182, 2183, 2184, 2405, 2406, 2465, 2466}
    assert of_kind("12", ChangeKind.LAST_KNOWN_LEADER_ELECTION) == {541, *range(1957, 1963)}
    assert of_kind("upgrade-1-before", ChangeKind.UNCLEAN_ELECTION) == {376, 377}


def test_a_leader_out_of_the_elr_is_a_clean_election() -> None:
    assert {1396, 1397, 1398} <= of_kind("5", ChangeKind.ELR_ELECTION)
    assert of_kind("5", ChangeKind.UNCLEAN_ELECTION) == set()
    assert of_kind("5", ChangeKind.LAST_KNOWN_LEADER_ELECTION) == {541}


@pytest.mark.parametrize("version", ["3.5.2", "3.6.2", "3.9.1"])
@pytest.mark.parametrize("stage", ["6", "7", "11"])
def test_a_migration_has_no_election_that_can_lose_data(version: str, stage: str) -> None:
    told = histories(capture(version, stage), 3001)
    found = [step for history in told.values() for step in history]
    assert [step for step in found if step.election in LOSSY] == []
    assert stage != "6" or any(ChangeKind.SHRINK in step.kinds for step in found)
    assert stage != "7" or any(ChangeKind.EXPAND in step.kinds for step in found)


def test_what_the_captures_tell_of_reassignments_recovery_and_the_elr() -> None:
    assert 1048 in of_kind("2", ChangeKind.REASSIGNMENT_STARTED)
    assert {975, 977} <= of_kind("2", ChangeKind.REASSIGNMENT_STARTED) | of_kind("2", ChangeKind.REASSIGNMENT_COMPLETED)
    assert 1051 in of_kind("2", ChangeKind.REASSIGNMENT_CANCELLED)
    assert of_kind("9", ChangeKind.RECOVERED) >= {2539, 2540, 2541, 2542}
    assert of_kind("7", ChangeKind.ELR_CLEARED) == {2006}
    assert 1894 in of_kind("6", ChangeKind.ELR_LOST)
    assert 977 in of_kind("2", ChangeKind.EPOCH_BUMP)


def test_who_was_last_known_is_kept_by_a_partition_that_a_checkpoint_makes() -> None:
    made = Change(whole=True, replicas=(1, 2), isr=(), leader=-1, last_known_elr=(2,))
    back = Change(isr=(2,), leader=2, last_known_elr=(), leader_recovery_state=RECOVERING)
    *_, last = steps([Record(1, 0, made), Record(2, 0, back)])
    assert last.election is ChangeKind.LAST_KNOWN_LEADER_ELECTION


STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=10)
LEADERLESS = replace(STATE, isr=(), leader=-1)

CASES: dict[str, tuple[PartitionState, Change, tuple[ChangeKind, ...]]] = {
    "shrink": (STATE, Change(isr=(1,)), (ChangeKind.SHRINK,)),
    "expand": (STATE, Change(isr=(1, 2, 3)), (ChangeKind.EXPAND,)),
    "swap": (STATE, Change(isr=(1, 3)), (ChangeKind.SHRINK, ChangeKind.EXPAND)),
    "order": (STATE, Change(isr=(2, 1)), (ChangeKind.REORDERED,)),
    "leader moves": (STATE, Change(leader=2), (ChangeKind.CLEAN_ELECTION, ChangeKind.LEADER_MOVE)),
    "leader epoch": (STATE, Change(leader=1), (ChangeKind.EPOCH_BUMP,)),
    "leader lost": (STATE, Change(leader=-1), (ChangeKind.LEADER_LOST,)),
    "unclean": (
        LEADERLESS,
        Change(isr=(3,), leader=3, leader_recovery_state=RECOVERING),
        (ChangeKind.UNCLEAN_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.EXPAND),
    ),
    "unclean before there was a recovery state": (
        replace(STATE, leader=-1),
        Change(isr=(3,), leader=3),
        (ChangeKind.UNCLEAN_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.SHRINK, ChangeKind.EXPAND),
    ),
    "unclean while recovering": (
        replace(LEADERLESS, leader_recovery_state=RECOVERING, elr=(1,)),
        Change(isr=(3,), leader=3),
        (ChangeKind.UNCLEAN_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.EXPAND),
    ),
    "clean while recovering": (
        replace(STATE, isr=(2,), leader=-1, leader_recovery_state=RECOVERING),
        Change(leader=2),
        (ChangeKind.CLEAN_ELECTION, ChangeKind.LEADER_MOVE),
    ),
    "last known leader": (
        replace(LEADERLESS, last_known_elr=(2,)),
        Change(isr=(2,), leader=2, last_known_elr=(), leader_recovery_state=RECOVERING),
        (ChangeKind.LAST_KNOWN_LEADER_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.EXPAND),
    ),
    "out of the ELR": (
        replace(LEADERLESS, elr=(1, 2), last_known_elr=(1,)),
        Change(isr=(1,), leader=1, elr=(2,), last_known_elr=()),
        (ChangeKind.ELR_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.EXPAND, ChangeKind.ELR_LOST),
    ),
    "recovered": (
        replace(STATE, isr=(1,), leader_recovery_state=RECOVERING),
        Change(isr=(1, 2), leader_recovery_state=0),
        (ChangeKind.EXPAND, ChangeKind.RECOVERED),
    ),
    "reassignment started": (
        STATE,
        Change(replicas=(1, 2, 3, 4), adding=(4,), removing=(3,)),
        (ChangeKind.REASSIGNMENT_STARTED,),
    ),
    "reassignment changed": (
        replace(STATE, replicas=(1, 2, 3, 4), adding=(4,)),
        Change(replicas=(1, 2, 3, 5), adding=(5,)),
        (ChangeKind.REASSIGNMENT_CHANGED,),
    ),
    "reassignment completed, and the leader is one that it added": (
        replace(STATE, replicas=(1, 4), isr=(1,), adding=(4,), removing=(1,)),
        Change(replicas=(4,), isr=(4,), leader=4, adding=(), removing=()),
        (
            ChangeKind.CLEAN_ELECTION,
            ChangeKind.LEADER_MOVE,
            ChangeKind.REASSIGNMENT_COMPLETED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "reassignment cancelled": (
        replace(STATE, replicas=(1, 2, 3, 4), adding=(4,)),
        Change(replicas=(1, 2, 3), adding=()),
        (ChangeKind.REASSIGNMENT_CANCELLED,),
    ),
    "reassignment cancelled while only replicas that it adds are in sync": (
        PartitionState((4, 5, 6, 1, 2, 3), (4, 5), 4, 5, 10, adding=(4, 5, 6), removing=(1, 2, 3)),
        Change(replicas=(1, 2, 3), isr=(1,), leader=1, adding=(), removing=()),
        (
            ChangeKind.UNCLEAN_ELECTION,
            ChangeKind.LEADER_MOVE,
            ChangeKind.REASSIGNMENT_CANCELLED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "the same, and the replica that is left over is not there": (
        PartitionState((4, 1), (4,), 4, 5, 10, adding=(4,), removing=(1,)),
        Change(replicas=(1,), isr=(1,), leader=-1, adding=(), removing=()),
        (
            ChangeKind.UNCLEAN_ELECTION,
            ChangeKind.LEADER_LOST,
            ChangeKind.REASSIGNMENT_CANCELLED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "the same, and nobody led before": (
        PartitionState((4, 1), (4,), -1, 5, 10, adding=(4,), removing=(1,)),
        Change(replicas=(1,), isr=(1,), adding=(), removing=()),
        (ChangeKind.UNCLEAN_ELECTION, ChangeKind.REASSIGNMENT_CANCELLED, ChangeKind.SHRINK, ChangeKind.EXPAND),
    ),
    "reassignment cancelled while an old replica is in sync": (
        PartitionState((4, 1, 2), (4, 2), 4, 5, 10, adding=(4,), removing=(1, 2)),
        Change(replicas=(1, 2), isr=(2,), leader=2, adding=(), removing=()),
        (ChangeKind.CLEAN_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.REASSIGNMENT_CANCELLED, ChangeKind.SHRINK),
    ),
    "reassignment cancelled, and an eligible replica is left over": (
        PartitionState((4, 1), (4,), 4, 5, 10, adding=(4,), removing=(1,), elr=(1,)),
        Change(replicas=(1,), isr=(1,), leader=1, adding=(), removing=(), elr=()),
        (
            *(ChangeKind.ELR_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.REASSIGNMENT_CANCELLED),
            *(ChangeKind.SHRINK, ChangeKind.EXPAND, ChangeKind.ELR_LOST),
        ),
    ),
    "reassignment cancelled of a replica that is both added and removed": (
        PartitionState((1, 2, 3), (3,), 3, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1, 2), isr=(1,), leader=1, adding=(), removing=()),
        (
            ChangeKind.UNCLEAN_ELECTION,
            ChangeKind.LEADER_MOVE,
            ChangeKind.REASSIGNMENT_CANCELLED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "reassignment completed of a replica that is both added and removed": (
        PartitionState((1, 2, 3), (1, 3), 1, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1, 2), isr=(1, 2), leader=1, adding=(), removing=()),
        (ChangeKind.EPOCH_BUMP, ChangeKind.REASSIGNMENT_COMPLETED, ChangeKind.SHRINK, ChangeKind.EXPAND),
    ),
    "the same, and the leader was in no ISR before": (
        PartitionState((1, 3), (3,), 3, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1,), isr=(1,), leader=1, adding=(), removing=()),
        (
            ChangeKind.CLEAN_ELECTION,
            ChangeKind.LEADER_MOVE,
            ChangeKind.REASSIGNMENT_COMPLETED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "the same, once the last of the ISR is back": (
        PartitionState((1, 3), (1,), -1, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1,), leader=1, adding=(), removing=()),
        (ChangeKind.CLEAN_ELECTION, ChangeKind.LEADER_MOVE, ChangeKind.REASSIGNMENT_COMPLETED),
    ),
    "reassignment cancelled of a replica that is both added and removed, and nobody leads": (
        PartitionState((1, 3), (3,), 3, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1,), isr=(1,), leader=-1, adding=(), removing=()),
        (
            ChangeKind.UNCLEAN_ELECTION,
            ChangeKind.LEADER_LOST,
            ChangeKind.REASSIGNMENT_CANCELLED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "the same, and nobody led either": (
        PartitionState((1, 3), (3,), -1, 5, 10, adding=(3,), removing=(3,)),
        Change(replicas=(1,), isr=(1,), leader=1, adding=(), removing=()),
        (
            ChangeKind.UNCLEAN_ELECTION,
            ChangeKind.LEADER_MOVE,
            ChangeKind.REASSIGNMENT_CANCELLED,
            ChangeKind.SHRINK,
            ChangeKind.EXPAND,
        ),
    ),
    "ELR gained": (STATE, Change(isr=(1,), elr=(2,)), (ChangeKind.SHRINK, ChangeKind.ELR_GAINED)),
    "directories only": (STATE, Change(), (ChangeKind.DIRECTORIES,)),
    "replaced": (STATE, Change(replicas=(1,), isr=(1,), leader=1, whole=True), (ChangeKind.REPLACED,)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_change_is_what_it_is(case: str) -> None:
    before, change, kinds = CASES[case]
    [step] = steps([Record(11, 0, change)], before)
    assert sorted(step.kinds) == sorted(kinds)
    assert (step.kinds[0] in kinds, step.before) == (True, before)


def test_a_clear_that_finds_nothing_is_no_step() -> None:
    holding = replace(STATE, elr=(3,))
    story = [Record(1, 0, CLEARED, True), Record(2, 0, CLEARED, True), Record(3, 0, Change(isr=(1,)))]
    assert [(step.offset, step.after.partition_epoch) for step in steps(story, holding)] == [(1, 11), (3, 12)]


def test_a_change_of_no_partition_is_an_error() -> None:
    with pytest.raises(ValueError, match="never made"):
        merged(None, Change(isr=(1,)))


def test_rows_of_the_tables_are_states_and_changes() -> None:
    row = {"replicas": [1, 2], "isr": [1], "leader": 1, "leader_epoch": 3, "partition_epoch": 4}
    row |= {"adding_replicas": None, "removing_replicas": [], "eligible_leader_replicas": [2]}
    assert state_of(row) == PartitionState((1, 2), (1,), 1, 3, 4, elr=(2,))
    assert state_of({**row, "isr": None}) is None
    changed = change_of({"isr": None, "leader": -2, "leader_recovery_state": -1, "last_known_elr": []}, whole=False)
    assert changed == Change(last_known_elr=())


MINUTE = 60_000


def flap(times: int, every: int) -> list[ClassifiedChange]:
    """Broker 2 leaves and comes back in turn."""
    story = [Record(n, n * every, Change(isr=(1,) if n % 2 == 0 else (1, 2))) for n in range(times)]
    return list(steps(story, STATE))


def test_flapping_counts_alternations_within_the_window() -> None:
    assert flapping(flap(6, MINUTE), least=6) == {2: 6}
    assert flapping(flap(5, MINUTE), least=6) == {}
    assert flapping(flap(20, 30 * MINUTE), least=6) == {}


def test_churn_is_counted_by_partition_broker_and_hour_the_worst_first() -> None:
    found = churn({"a/0": flap(4, 25 * MINUTE), "b/0": flap(1, MINUTE)})
    assert [(row.subject, row.hour, row.shrinks, row.expansions) for row in found] == [
        ("broker 2", 0, 3, 1),
        ("a/0", 0, 2, 1),
        ("a/0", 60 * MINUTE, 0, 1),
        ("b/0", 0, 1, 0),
        ("broker 2", 60 * MINUTE, 0, 1),
    ]
