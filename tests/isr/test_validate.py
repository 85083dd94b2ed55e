"""What a controller answers to AlterIsr and AlterPartition: each rule of S§8.2 in both modes, by release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from transforms.isr.partition import RECOVERING, PartitionState
from transforms.isr.validate import (
    AlterPartitionRequest,
    Controller,
    ControllerMode,
    Error,
    Registration,
    api_name,
    offline_replicas,
    partition_epoch_name,
    request_version,
    validate,
)

STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=10)
BROKERS = {1: Registration(100), 2: Registration(200), 3: Registration(300)}
EXPAND = AlterPartitionRequest(leader_epoch=5, partition_epoch=10, isr=(1, 2, 3), sender=1, sender_epoch=100)
KRAFT, ZOOKEEPER = ControllerMode.KRAFT, ControllerMode.ZOOKEEPER
BY_RELEASE = ((3, 4), (3, 5), (3, 6), (3, 9), (4, 3))
ZK_NEW = ((3, 3), (3, 6), (3, 9))
ZK_OLD = ((2, 7), (2, 8), (3, 1))


def controller(mode: ControllerMode, release: tuple[int, int], **more: Any) -> Controller:
    return replace(Controller(mode, release, BROKERS, STATE), **more)


def asked(
    mode: ControllerMode, release: tuple[int, int], request: dict[str, Any], known: dict[str, Any]
) -> tuple[str, int | None]:
    answer = validate(replace(EXPAND, **request), controller(mode, release, **known))
    return answer.error.value, answer.rule


def brokers(**changed: Any) -> dict[str, Any]:
    return {"brokers": {**BROKERS, 3: replace(BROKERS[3], **changed)}}


def state(**changed: Any) -> dict[str, Any]:
    return {"partition": replace(STATE, **changed)}


# request, what the controller knows, error, rule
KRAFT_RULES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int | None]] = {
    "all is right": ({}, {}, "NONE", None),
    "0: a sender that is not registered": ({"sender": 9}, {}, "STALE_BROKER_EPOCH", 0),
    "0: a sender of an earlier epoch": ({"sender_epoch": 99}, {}, "STALE_BROKER_EPOCH", 0),
    "0: comes before an unknown topic": ({"sender_epoch": 99}, {"topic_known": False}, "STALE_BROKER_EPOCH", 0),
    "0: not the active controller": ({}, {"active": False}, "NOT_CONTROLLER", 0),
    "1: an unknown topic id": ({"version": 2}, {"topic_known": False}, "UNKNOWN_TOPIC_ID", 1),
    "2: an unknown partition": ({}, {"partition": None}, "UNKNOWN_TOPIC_OR_PARTITION", 2),
    "3: a leader epoch from the future": ({"leader_epoch": 6}, {}, "NOT_CONTROLLER", 3),
    "3: comes before the sender": ({"leader_epoch": 6, "sender": 2, "sender_epoch": 200}, {}, "NOT_CONTROLLER", 3),
    "4: a partition epoch from the future": ({"partition_epoch": 11}, {}, "NOT_CONTROLLER", 4),
    "4: comes before an old leader epoch": ({"leader_epoch": 4, "partition_epoch": 11}, {}, "NOT_CONTROLLER", 4),
    "5: an old leader epoch": ({"leader_epoch": 4}, {}, "FENCED_LEADER_EPOCH", 5),
    "5: comes before the sender": ({"leader_epoch": 4, "sender": 2, "sender_epoch": 200}, {}, "FENCED_LEADER_EPOCH", 5),
    "6: a sender that does not lead": ({"sender": 2, "sender_epoch": 200}, {}, "INVALID_REQUEST", 6),
    "6: comes before the partition epoch": (
        {"sender": 2, "sender_epoch": 200, "partition_epoch": 9},
        {},
        "INVALID_REQUEST",
        6,
    ),
    "7: an old partition epoch": ({"partition_epoch": 9}, {}, "INVALID_UPDATE_VERSION", 7),
    "7: comes before the proposal": ({"partition_epoch": 9, "isr": (1, 9)}, {}, "INVALID_UPDATE_VERSION", 7),
    "8: a stranger": ({"isr": (1, 9)}, {}, "INVALID_REQUEST", 8),
    "8: a broker twice": ({"isr": (1, 2, 2)}, {}, "INVALID_REQUEST", 8),
    "8: a negative id": ({"isr": (1, -1)}, {}, "INVALID_REQUEST", 8),
    "9: without the leader": ({"isr": (2, 3)}, {}, "INVALID_REQUEST", 9),
    "9: nobody": ({"isr": ()}, {}, "INVALID_REQUEST", 9),
    "10: recovering with others": (
        {"leader_recovery_state": RECOVERING, "isr": (1, 2)},
        state(isr=(1,), leader_recovery_state=RECOVERING),
        "INVALID_REQUEST",
        10,
    ),
    "11: recovering again": ({"leader_recovery_state": RECOVERING, "isr": (1,)}, {}, "INVALID_REQUEST", 11),
    "12: a fenced broker": ({}, brokers(fenced=True), "INELIGIBLE_REPLICA", 12),
    "12: a broker that shuts down": ({}, brokers(in_controlled_shutdown=True), "INELIGIBLE_REPLICA", 12),
    "12: an unregistered broker": ({}, {"brokers": {1: BROKERS[1], 2: BROKERS[2]}}, "INELIGIBLE_REPLICA", 12),
    "12: asks for those in the ISR already": (
        {},
        brokers(fenced=True) | state(isr=(1, 2, 3)),
        "INELIGIBLE_REPLICA",
        12,
    ),
}


@pytest.mark.parametrize("release", BY_RELEASE)
@pytest.mark.parametrize("rule", KRAFT_RULES)
def test_kraft_controllers_ask_in_this_order(rule: str, release: tuple[int, int]) -> None:
    request, known, error, number = KRAFT_RULES[rule]
    assert asked(KRAFT, release, request, known) == (error, number)


@pytest.mark.parametrize(
    ("release", "version", "error"),
    [
        ((3, 9), 1, "OPERATION_NOT_ATTEMPTED"),
        ((3, 9), 2, "INELIGIBLE_REPLICA"),
        ((3, 9), 4, "UNSUPPORTED_VERSION"),
        ((3, 4), 3, "UNSUPPORTED_VERSION"),
        ((4, 0), 1, "UNSUPPORTED_VERSION"),
        ((4, 4), 0, "UNSUPPORTED_VERSION"),
        ((4, 4), 2, "INELIGIBLE_REPLICA"),
    ],
)
def test_the_version_of_the_request_names_the_error(release: tuple[int, int], version: int, error: str) -> None:
    answer = validate(replace(EXPAND, version=version), controller(KRAFT, release, **brokers(fenced=True)))
    assert answer.error.value == error
    unknown = validate(replace(EXPAND, version=version), controller(KRAFT, release, topic_known=False))
    names = {1: "UNKNOWN_TOPIC_OR_PARTITION", 2: "UNKNOWN_TOPIC_ID"}
    assert unknown.error.value == (error if error == "UNSUPPORTED_VERSION" else names[version])
    assert unknown.code in (3, 35, 100)


def test_a_sender_without_rights_is_refused_before_anything_is_asked() -> None:
    answer = validate(EXPAND, controller(KRAFT, (4, 4), authorized=False, active=False))
    assert (answer.error.value, answer.code, answer.writes) == ("CLUSTER_AUTHORIZATION_FAILED", 31, False)


@pytest.mark.parametrize(
    ("release", "epochs", "error"),
    [
        ((3, 5), {3: 299}, "INELIGIBLE_REPLICA"),
        ((4, 3), {3: 299}, "INELIGIBLE_REPLICA"),
        ((3, 5), {3: -1}, "NONE"),
        ((3, 5), {3: 300}, "NONE"),
        ((3, 4), {3: 299}, "NONE"),
    ],
)
def test_epochs_of_the_members_are_compared_from_version_3_on(
    release: tuple[int, int], epochs: dict[int, int], error: str
) -> None:
    assert asked(KRAFT, release, {"broker_epochs": epochs}, {})[0] == error


@pytest.mark.parametrize(
    ("release", "request_", "known", "answer"),
    [
        # Before 3.3 a future epoch is the partition's error; in 2.8 the sender is asked for first.
        ((3, 2), {"leader_epoch": 6}, {}, ("FENCED_LEADER_EPOCH", 5)),
        ((3, 2), {"partition_epoch": 11}, {}, ("INVALID_UPDATE_VERSION", 7)),
        ((2, 8), {"sender": 2, "sender_epoch": 200, "leader_epoch": 4}, {}, ("INVALID_REQUEST", 6)),
        ((3, 0), {"sender": 2, "sender_epoch": 200, "leader_epoch": 4}, {}, ("FENCED_LEADER_EPOCH", 5)),
        ((3, 2), {"sender": 2, "sender_epoch": 200, "leader_epoch": 4}, {}, ("FENCED_LEADER_EPOCH", 5)),
        ((3, 2), {"sender": 2, "sender_epoch": 200, "partition_epoch": 9}, {}, ("INVALID_REQUEST", 6)),
        ((3, 2), {}, brokers(fenced=True), ("NONE", None)),
        ((3, 2), {"leader_recovery_state": RECOVERING, "isr": (1,)}, {}, ("INVALID_REQUEST", 11)),
        ((3, 1), {"leader_recovery_state": RECOVERING, "isr": (1,)}, {}, ("NONE", None)),
        ((3, 2), {"isr": (1, 9)}, {}, ("INVALID_REQUEST", 8)),
        ((3, 2), {}, {"topic_known": False}, ("UNKNOWN_TOPIC_OR_PARTITION", 1)),
        ((3, 3), {}, {"topic_known": False}, ("UNKNOWN_TOPIC_ID", 1)),
    ],
)
def test_early_kraft_controllers_ask_less(
    release: tuple[int, int], request_: dict[str, Any], known: dict[str, Any], answer: tuple[str, int | None]
) -> None:
    assert asked(KRAFT, release, request_, known) == answer


@pytest.mark.parametrize(
    ("version", "error"), [(None, "NEW_LEADER_ELECTED"), (2, "NEW_LEADER_ELECTED"), (1, "FENCED_LEADER_EPOCH")]
)
def test_a_request_that_moves_the_leader_is_refused_and_written(version: int | None, error: str) -> None:
    moving = PartitionState((1, 2, 3), (1, 2), 1, 5, 10, adding=(3,), removing=(1,))
    answer = validate(replace(EXPAND, version=version), controller(KRAFT, (3, 9), partition=moving))
    assert (answer.error.value, answer.rule, answer.writes) == (error, 13, True)
    assert answer.result == PartitionState((2, 3), (2, 3), 2, 6, 11)


def test_a_request_that_completes_a_reassignment_of_others_is_accepted() -> None:
    moving = PartitionState((1, 2, 3), (1, 2), 1, 5, 10, adding=(3,), removing=(2,))
    answer = validate(EXPAND, controller(KRAFT, (3, 9), partition=moving))
    assert (answer.error, answer.writes) == (Error.NONE, True)
    assert answer.result == PartitionState((1, 3), (1, 3), 1, 6, 11)


# Replicas, adding, removing, the ISR before and the one asked for: whether it completes, to 3.7, from 3.8 and from 4.3 on.
COMPLETIONS = {
    "all of the target": ((1, 2, 3, 4), (4,), (1,), (1, 2), (1, 2, 3, 4), (True, True, True)),
    "one of those that stay is missing": ((1, 2, 3, 4), (4,), (1,), (1, 2), (1, 2, 4), (True, False, True)),
    "the same, and more are removed than added": ((1, 2, 3, 4), (4,), (1, 2), (1,), (1, 4), (True, False, False)),
    "only removed": ((1, 2, 3), (), (3,), (1,), (1,), (True, False, False)),
    "one that is added is missing": ((1, 2, 3, 4), (4,), (1,), (1, 2), (1, 2, 3), (False, False, False)),
    "none that stays": ((1, 2, 3), (), (1,), (1,), (1,), (False, False, False)),
    "one is both added and removed": ((1, 2, 3), (3,), (3,), (1,), (1, 2), (False, True, False)),
}
BY_COMPLETION = (((3, 3), (3, 4), (3, 5), (3, 7)), ((3, 8), (3, 9), (4, 0), (4, 2)), ((4, 3), (4, 4)))


@pytest.mark.parametrize("case", COMPLETIONS)
def test_a_reassignment_completes_by_the_rule_of_its_release(case: str) -> None:
    replicas, adding, removing, isr, asked_for, wanted = COMPLETIONS[case]
    moving = PartitionState(replicas, isr, 1, 5, 10, adding=adding, removing=removing)
    known = {number: Registration(100 * number) for number in replicas}
    for releases, completes in zip(BY_COMPLETION, wanted, strict=True):
        for release in releases:
            answer = validate(
                replace(EXPAND, isr=asked_for), controller(KRAFT, release, partition=moving, brokers=known)
            )
            assert answer.result is not None
            assert (release, answer.result.reassigning) == (release, not completes)


def test_a_leader_whose_directory_is_offline_loses_by_its_own_request() -> None:
    answer = validate(EXPAND, controller(KRAFT, (3, 7), offline=(1,)))
    assert (answer.error.value, answer.rule, answer.writes) == ("NEW_LEADER_ELECTED", 13, True)
    assert answer.result == PartitionState((1, 2, 3), (1, 2, 3), 2, 6, 11)
    assert validate(EXPAND, controller(KRAFT, (3, 6), offline=(1,))).error is Error.NONE


@pytest.mark.parametrize(("release", "leader"), [((3, 8), -1), ((3, 9), 2)])
def test_unclean_elections_are_held_for_such_a_partition_from_3_9_on(release: tuple[int, int], leader: int) -> None:
    """`ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic` was false in every case before."""
    alone = controller(KRAFT, release, offline=(1,), unclean=True, partition=replace(STATE, isr=(1,)))
    answer = validate(replace(EXPAND, isr=(1,)), alone)
    assert answer.result is not None
    assert answer.result.leader == leader
    kept = validate(replace(EXPAND, isr=(1,)), replace(alone, unclean=False)).result
    assert kept is not None
    assert kept.leader == -1


def test_a_directory_is_offline_when_its_broker_does_not_name_it() -> None:
    lost, unassigned = "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAQ"
    online = {1: ["a"], 2: ["b"], 3: [], 4: ["d"], 5: ["e"]}
    assert offline_replicas((1, 2, 3, 4, 5), ("a", "x", "c", lost, unassigned), online) == (2, 4)
    assert offline_replicas((1, 2), (), online) == ()


WITH_ELR = replace(STATE, isr=(1,), elr=(2,), last_known_elr=(2,))


@pytest.mark.parametrize(
    ("release", "isr", "least", "elr", "last_known"),
    [
        # An ISR that is large enough needs no ELR; one that is too small keeps who was in it.
        ((4, 1), (1, 3), 2, (), ()),
        ((4, 2), (1, 3), 2, (), (2,)),
        ((4, 2), (1, 3), 3, (2,), (2,)),
        # The same ISR again: a record all the same, where min.insync.replicas has fallen or a leader is there.
        ((4, 1), (1,), 1, (), ()),
        ((4, 2), (1,), 1, (), (2,)),
        ((4, 0), (1,), 2, (2,), ()),
    ],
)
def test_eligible_leader_replicas_change_with_an_isr_that_need_not(
    release: tuple[int, int], isr: tuple[int, ...], least: int, elr: tuple[int, ...], last_known: tuple[int, ...]
) -> None:
    known = controller(KRAFT, release, partition=WITH_ELR, elr=True, min_isr=least)
    answer = validate(replace(EXPAND, isr=isr), known)
    assert answer.result == replace(WITH_ELR, isr=isr, elr=elr, last_known_elr=last_known, partition_epoch=11)
    assert answer.writes


def test_an_isr_that_stays_writes_nothing_where_the_elr_stays() -> None:
    state = replace(WITH_ELR, last_known_elr=())
    answer = validate(replace(EXPAND, isr=(1,)), controller(KRAFT, (4, 1), partition=state, elr=True, min_isr=2))
    assert (answer.writes, answer.result) == (False, state)


def test_what_the_elr_would_be_is_not_guessed() -> None:
    answer = validate(replace(EXPAND, isr=(1,)), controller(KRAFT, (4, 1), elr=True))
    assert any("min.insync.replicas" in note for note in answer.unverified)


ZK_RULES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int | None]] = {
    "all is right": ({}, {}, "NONE", None),
    "not the active controller": ({}, {"active": False}, "NOT_CONTROLLER", 0),
    "a sender that is not live": ({"sender": 9}, {}, "STALE_BROKER_EPOCH", 0),
    "a sender of an earlier epoch": ({"sender_epoch": 99}, {}, "STALE_BROKER_EPOCH", 0),
    "an unknown partition": ({}, {"partition": None}, "UNKNOWN_TOPIC_OR_PARTITION", 2),
    "an old leader epoch": ({"leader_epoch": 4}, {}, "FENCED_LEADER_EPOCH", 5),
    "the same state, and it is a success": ({"isr": (1, 2)}, {}, "NONE", None),
    "the same state by an old partition epoch too": ({"isr": (1, 2), "partition_epoch": 8}, {}, "NONE", None),
    "an old partition epoch": ({"partition_epoch": 9}, {}, "INVALID_UPDATE_VERSION", 7),
    # It does not ask whether the sender leads, nor what the ISR is made of.
    "a sender that does not lead": ({"sender": 2, "sender_epoch": 200}, {}, "NONE", None),
    "without the leader": ({"isr": (2, 3)}, {}, "NONE", None),
    "a live broker that is no replica": ({"isr": (1, 4)}, {"brokers": {**BROKERS, 4: Registration(4)}}, "NONE", None),
}


@pytest.mark.parametrize("release", [*ZK_NEW, *ZK_OLD])
@pytest.mark.parametrize("rule", ZK_RULES)
def test_zookeeper_controllers_ask_in_this_order(rule: str, release: tuple[int, int]) -> None:
    request, known, error, number = ZK_RULES[rule]
    assert asked(ZOOKEEPER, release, request, known) == (error, number)


ZK_NEWER: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[str, int | None], tuple[str, int | None]]] = {
    "a leader epoch from the future": ({"leader_epoch": 6}, {}, ("NOT_CONTROLLER", 3), ("NONE", None)),
    "a partition epoch from the future": (
        {"partition_epoch": 11},
        {},
        ("NOT_CONTROLLER", 4),
        ("INVALID_UPDATE_VERSION", 7),
    ),
    "a member that is not live": ({"isr": (1, 9)}, {}, ("INELIGIBLE_REPLICA", 12), ("NONE", None)),
    "a member that is not live, in version 1": (
        {"isr": (1, 9), "version": 1},
        {},
        ("OPERATION_NOT_ATTEMPTED", 12),
        ("NONE", None),
    ),
    "recovering again": (
        {"leader_recovery_state": RECOVERING, "isr": (1,)},
        {},
        ("INVALID_REQUEST", 11),
        ("NONE", None),
    ),
    "recovering with others": (
        {"leader_recovery_state": RECOVERING, "isr": (1, 2)},
        state(isr=(1,), leader_recovery_state=RECOVERING),
        ("INVALID_REQUEST", 10),
        ("NONE", None),
    ),
    "an unknown topic": ({}, {"topic_known": False}, ("UNKNOWN_TOPIC_ID", 1), ("UNKNOWN_TOPIC_OR_PARTITION", 1)),
}


@pytest.mark.parametrize("rule", ZK_NEWER)
def test_zookeeper_controllers_ask_more_since_3_3(rule: str) -> None:
    request, known, now, original = ZK_NEWER[rule]
    for release in ZK_NEW:
        assert asked(ZOOKEEPER, release, request, known) == now
    for release in ZK_OLD:
        if not (rule.endswith("version 1") and release < (3, 2)):
            assert asked(ZOOKEEPER, release, {"version": None, **request}, known) == original


def test_recovery_is_asked_for_by_zookeeper_controllers_of_3_2() -> None:
    request = {"leader_recovery_state": RECOVERING, "isr": (1,)}
    assert asked(ZOOKEEPER, (3, 2), request, {}) == ("INVALID_REQUEST", 11)
    assert asked(ZOOKEEPER, (3, 2), {"leader_epoch": 6}, {}) == ("NONE", None)
    # There it comes before the epochs.
    assert asked(ZOOKEEPER, (3, 2), {**request, "leader_epoch": 4}, {}) == ("INVALID_REQUEST", 11)
    assert asked(ZOOKEEPER, (3, 3), {**request, "leader_epoch": 4}, {}) == ("FENCED_LEADER_EPOCH", 5)


def test_an_accepted_change_names_what_it_makes_of_the_partition() -> None:
    assert validate(EXPAND, controller(KRAFT, (3, 9))).result == replace(STATE, isr=(1, 2, 3), partition_epoch=11)
    shrink = replace(EXPAND, isr=(1,))
    for release, bumps, epoch in (((3, 5), None, 6), ((3, 9), None, 5), ((3, 9), True, 6), ((4, 3), False, 5)):
        answer = validate(shrink, controller(KRAFT, release, bumps_on_shrink=bumps))
        assert answer.result is not None
        assert answer.result.leader_epoch == epoch
    same = validate(replace(EXPAND, isr=(1, 2)), controller(KRAFT, (3, 9)))
    assert (same.error, same.writes) == (Error.NONE, False)


def test_what_was_not_given_is_named() -> None:
    answer = validate(AlterPartitionRequest(5, 10, (1, 2, 3)), controller(KRAFT, (3, 9), bumps_on_shrink=False))
    assert answer.error is Error.NONE
    assert len(answer.unverified) == 2
    told = replace(EXPAND, broker_epochs={1: 100, 2: 200, 3: 300})
    assert validate(told, controller(KRAFT, (3, 9), bumps_on_shrink=False)).unverified == ()


def test_a_partition_without_a_leader_has_nobody_who_could_ask() -> None:
    answer = validate(
        AlterPartitionRequest(5, 10, (1,)), controller(KRAFT, (3, 9), partition=replace(STATE, leader=-1))
    )
    assert answer.error is Error.STALE_BROKER_EPOCH
    assert "no leader" in answer.reason


def test_names_of_the_proposal_and_of_the_releases() -> None:
    answer = validate(replace(EXPAND, partition_epoch=9), controller(KRAFT, (3, 9)))
    assert (answer.error.value, answer.code, answer.kip_name) == ("INVALID_UPDATE_VERSION", 95, "INVALID_ISR_VERSION")
    refused = validate(replace(EXPAND, leader_epoch=4), controller(KRAFT, (3, 9)))
    assert refused.kip_name == refused.error.value
    assert [api_name(r) for r in ((2, 7), (3, 1), (3, 2))] == ["AlterIsr", "AlterIsr", "AlterPartition"]
    assert [partition_epoch_name(r) for r in ((2, 7), (3, 2))] == ["CurrentIsrVersion", "PartitionEpoch"]
    assert [request_version(r) for r in ((2, 7), (3, 1), (3, 2), (3, 3), (3, 4), (3, 5), (4, 3))] == [
        0,
        0,
        1,
        2,
        2,
        3,
        3,
    ]
