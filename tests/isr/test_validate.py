"""What a controller answers to AlterIsr and AlterPartition: each rule of S§8.2 in both modes, by release."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from transforms.isr.partition import RECOVERING, PartitionState
from transforms.isr.validate import (
    Controller,
    Error,
    Mode,
    Registration,
    Request,
    api_name,
    partition_epoch_name,
    request_version,
    validate,
)

STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=10)
BROKERS = {1: Registration(100), 2: Registration(200), 3: Registration(300)}
EXPAND = Request(leader_epoch=5, partition_epoch=10, isr=(1, 2, 3), sender=1, sender_epoch=100)
KRAFT, ZOOKEEPER = Mode.KRAFT, Mode.ZOOKEEPER
BY_RELEASE = ((3, 4), (3, 5), (3, 6), (3, 9), (4, 3))
ZK_NEW = ((3, 3), (3, 6), (3, 9))
ZK_OLD = ((2, 7), (2, 8), (3, 1))


def controller(mode: Mode, release: tuple[int, int], **more: Any) -> Controller:
    return replace(Controller(mode, release, BROKERS, STATE), **more)


def asked(
    mode: Mode, release: tuple[int, int], request: dict[str, Any], known: dict[str, Any]
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
    "1: an unknown topic name": ({"version": 1}, {"topic_known": False}, "UNKNOWN_TOPIC_OR_PARTITION", 1),
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
    "12: has another name in version 1": ({"version": 1}, brokers(fenced=True), "OPERATION_NOT_ATTEMPTED", 12),
}


@pytest.mark.parametrize("release", BY_RELEASE)
@pytest.mark.parametrize("rule", KRAFT_RULES)
def test_kraft_controllers_ask_in_this_order(rule: str, release: tuple[int, int]) -> None:
    request, known, error, number = KRAFT_RULES[rule]
    assert asked(KRAFT, release, request, known) == (error, number)


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
        # Before 3.3 the sender is asked for first, and a future epoch is the partition's error.
        ((3, 2), {"leader_epoch": 6}, {}, ("FENCED_LEADER_EPOCH", 5)),
        ((3, 2), {"partition_epoch": 11}, {}, ("INVALID_UPDATE_VERSION", 7)),
        ((3, 2), {"sender": 2, "sender_epoch": 200, "leader_epoch": 4}, {}, ("INVALID_REQUEST", 6)),
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


@pytest.mark.parametrize(("release", "completes"), [((3, 4), True), ((3, 5), False)])
def test_before_3_5_a_reassignment_completes_without_the_replicas_that_stay(
    release: tuple[int, int], completes: bool
) -> None:
    moving = PartitionState((1, 2, 3, 4), (1,), 1, 5, 10, adding=(3,), removing=(4,))
    request = replace(EXPAND, isr=(1, 3))
    answer = validate(request, controller(KRAFT, release, partition=moving))
    assert answer.result is not None
    assert answer.result.reassigning is not completes


ZK_RULES: dict[str, tuple[dict[str, Any], dict[str, Any], str, int | None]] = {
    "all is right": ({}, {}, "NONE", None),
    "not the active controller": ({}, {"active": False}, "NOT_CONTROLLER", 0),
    "a sender that is not live": ({"sender": 9}, {}, "STALE_BROKER_EPOCH", 0),
    "a sender of an earlier epoch": ({"sender_epoch": 99}, {}, "STALE_BROKER_EPOCH", 0),
    "an unknown partition": ({}, {"partition": None}, "UNKNOWN_TOPIC_OR_PARTITION", 2),
    "an old leader epoch": ({"leader_epoch": 4}, {}, "FENCED_LEADER_EPOCH", 5),
    "the same state, and it is a success": ({"isr": (1, 2)}, {}, "NONE", 13),
    "the same state by an old partition epoch too": ({"isr": (1, 2), "partition_epoch": 8}, {}, "NONE", 13),
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
    answer = validate(Request(5, 10, (1, 2, 3)), controller(KRAFT, (3, 9), bumps_on_shrink=False))
    assert answer.error is Error.NONE
    assert len(answer.unverified) == 2
    told = replace(EXPAND, broker_epochs={1: 100, 2: 200, 3: 300})
    assert validate(told, controller(KRAFT, (3, 9), bumps_on_shrink=False)).unverified == ()


def test_a_partition_without_a_leader_has_nobody_who_could_ask() -> None:
    answer = validate(Request(5, 10, (1,)), controller(KRAFT, (3, 9), partition=replace(STATE, leader=-1)))
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
