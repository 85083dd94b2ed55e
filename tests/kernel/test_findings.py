"""A fault of each kind is found, where it is, and in whichever shard it is; what is right is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.checks.codes import BROKER_REPLACED, CLEAR_REMOVED, CLEAR_UNKNOWN, TOPIC_UNKNOWN
from tests.kernel.logs import Row, batch, in_shards, plan, run


def row(kind: str, body: Row | None = None, **columns: Any) -> Row:
    data = None if body is None else json.dumps(body)
    return {"epoch": 1, "append_time": 5, "control": False, "type": kind, "data": data, **columns}


def topic(name: str, topic_id: str) -> Row:
    return row("TOPIC_RECORD", {"name": name, "topicId": topic_id})


def removal(topic_id: str) -> Row:
    return row("REMOVE_TOPIC_RECORD", {"topicId": topic_id})


def made(topic_id: str, partition: int = 0, **columns: Any) -> Row:
    whole: Row = {"replicas": [1, 2], "isr": [1], "adding_replicas": [], "removing_replicas": [], "leader": 1}
    whole |= {"leader_epoch": 0, "partition_epoch": 0, "leader_recovery_state": 0}
    return row("PARTITION_RECORD", topic_id=topic_id, partition_id=partition, **{**whole, **columns})


def change(topic_id: str, partition: int = 0, **columns: Any) -> Row:
    same: Row = {"leader": -2, "leader_recovery_state": -1, "isr": [1, 2]}
    return row("PARTITION_CHANGE_RECORD", topic_id=topic_id, partition_id=partition, **{**same, **columns})


def clear(name: str = "") -> Row:
    return row("CLEAR_ELR_RECORD", {"topicName": name})


def broker(number: int, epoch: int, incarnation: str, *, fenced: bool = True) -> Row:
    body: Row = {"brokerId": number, "brokerEpoch": epoch, "incarnationId": incarnation, "fenced": fenced}
    return row("REGISTER_BROKER_RECORD", {**body, "rack": None, "endPoints": [], "features": []})


def fence(number: int, epoch: int, fenced: int) -> Row:
    body = {"brokerId": number, "brokerEpoch": epoch, "fenced": fenced}
    return row("BROKER_REGISTRATION_CHANGE_RECORD", body)


def unregister(number: int, epoch: int) -> Row:
    return row("UNREGISTER_BROKER_RECORD", {"brokerId": number, "brokerEpoch": epoch})


def producer_ids(following: int) -> Row:
    return row("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": following})


def acl(acl_id: str) -> Row:
    body = {"id": acl_id, "resourceType": 2, "resourceName": "a", "patternType": 3, "principal": "User:a"}
    return row("ACCESS_CONTROL_ENTRY_RECORD", {**body, "host": "*", "operation": 3, "permissionType": 3})


def acl_removal(acl_id: str) -> Row:
    return row("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": acl_id})


def scram_removal(name: str) -> Row:
    return row("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": name, "mechanism": 1})


def controller_removal(number: int) -> Row:
    return row("UNREGISTER_CONTROLLER_RECORD", {"controllerId": number})


NEVER_MADE = "a change of a partition that was never made"
BEFORE_TOPIC = "a record of a partition before its topic was made"
TWICE = "a topic of this name was made while another was still there"
NO_TOPIC = "a ClearElr record of a topic that is not there"
NOT_REGISTERED = "an unregistration of a broker that is not registered"


# What is in the log, and its findings: code, subject, detail, offset.
FAULTS: dict[str, tuple[list[Row], list[tuple[str, str, str, int]]]] = {
    "a change of a partition that was never made": (
        [topic("a", "A"), change("A", 3), change("A", 3)],
        [("PARTITION-UNKNOWN", "A partition 3", NEVER_MADE, 1)],
    ),
    "a change of a partition that is made later": (
        [topic("a", "A"), change("A"), made("A"), change("A")],
        [("PARTITION-UNKNOWN", "A partition 0", NEVER_MADE, 1)],
    ),
    "a partition of an unknown topic": (
        [made("A"), change("A")],
        [(TOPIC_UNKNOWN, "topic id A", BEFORE_TOPIC, 0)],
    ),
    "a partition before its topic": (
        [made("A"), topic("a", "A"), change("A")],
        [(TOPIC_UNKNOWN, "topic id A", BEFORE_TOPIC, 0)],
    ),
    "a change of a partition of no topic": (
        [change("A")],
        [(TOPIC_UNKNOWN, "topic id A", BEFORE_TOPIC, 0), ("PARTITION-UNKNOWN", "A partition 0", NEVER_MADE, 0)],
    ),
    "a partition after its topic was removed": (
        [topic("a", "A"), made("A"), removal("A"), change("A"), change("A")],
        [(TOPIC_UNKNOWN, "topic id A", "a record of a partition after its topic was removed at offset 2", 4)],
    ),
    "directories that are not one a replica": (
        [topic("a", "A"), made("A", directories=["x"]), made("A", 1, directories=["x", "y"]), made("A", 2)],
        [("DIRECTORIES", "A partition 0", "1 directories for 2 replicas", 1)],
    ),
    "directories of a change that are not one a replica": (
        [topic("a", "A"), made("A"), change("A", replicas=[1, 2, 3], directories=["x", "y"]), change("A")],
        [("DIRECTORIES", "A partition 0", "2 directories for 3 replicas", 2)],
    ),
    "replicas without directories where they are known": (
        [topic("a", "A"), made("A", directories=["x", "y"]), change("A", replicas=[1, 2, 3]), change("A")],
        [("DIRECTORIES", "A partition 0", "2 directories for 3 replicas", 3)],
    ),
    "no directories are known": (
        [topic("a", "A"), made("A", directories=[]), change("A", replicas=[1, 2, 3]), change("A", directories=[])],
        [],
    ),
    "directories of a partition of no topic": (
        [made("A", directories=["x"])],
        [
            ("DIRECTORIES", "A partition 0", "1 directories for 2 replicas", 0),
            (TOPIC_UNKNOWN, "topic id A", BEFORE_TOPIC, 0),
        ],
    ),
    "a change of a registration that never was": (
        [broker(1, 0, "x"), fence(1, 0, -1), fence(1, 7, 1), fence(2, 0, 1)],
        [
            ("BROKER-CHANGE", "broker 1", "a change of epoch 7 of a broker registered with 0", 2),
            ("BROKER-CHANGE", "broker 2", "a change of epoch 0 of a broker that is not registered", 3),
        ],
    ),
    "a change of a registration that another one has replaced": (
        [broker(1, 5, "x"), broker(1, 9, "x"), fence(1, 5, -1), fence(1, 9, -1)],
        [("BROKER-CHANGE", "broker 1", "a change of epoch 5 of a broker registered with 9", 2)],
    ),
    "a change of a registration that was removed, and of one still to come": (
        [broker(1, 5, "x"), unregister(1, 5), fence(1, 5, -1), fence(1, 9, -1), broker(1, 9, "y")],
        [
            ("BROKER-CHANGE", "broker 1", "a change of epoch 5 of a broker that is not registered", 2),
            ("BROKER-CHANGE", "broker 1", "a change of epoch 9 of a broker that is not registered", 3),
        ],
    ),
    "an unregistration of nobody, of another epoch, and twice": (
        [broker(1, 0, "x"), unregister(1, 5), broker(1, 2, "y"), unregister(1, 2), unregister(1, 2), unregister(3, 3)],
        [
            ("REMOVAL-UNKNOWN", "broker 1", "an unregistration with epoch 5 of a broker registered with 0", 1),
            ("REMOVAL-UNKNOWN", "broker 1", NOT_REGISTERED, 4),
            ("REMOVAL-UNKNOWN", "broker 3", NOT_REGISTERED, 5),
        ],
    ),
    "a removal of what was never made, and of what is gone": (
        [
            acl("i"),
            acl_removal("i"),
            acl_removal("i"),
            acl_removal("j"),
            removal("A"),
            removal("A"),
            scram_removal("u"),
        ],
        [
            ("REMOVAL-UNKNOWN", '["i"]', "a removal of an id in acls that is removed already", 2),
            ("REMOVAL-UNKNOWN", '["j"]', "a removal of an id in acls that was never made", 3),
            ("REMOVAL-UNKNOWN", '["A"]', "a removal of an id in topics that was never made", 4),
            ("REMOVAL-UNKNOWN", '["A"]', "a removal of an id in topics that is removed already", 5),
            (
                "REMOVAL-UNKNOWN",
                '["u", "SCRAM-SHA-256"]',
                "a removal of an id in scram_credentials that was never made",
                6,
            ),
        ],
    ),
    "a controller that is not there": (
        [controller_removal(9)],
        [("REMOVAL-UNKNOWN", "[9]", "a removal of an id in controllers that was never made", 0)],
    ),
    "a topic removed twice": (
        [topic("a", "A"), removal("A"), removal("A")],
        [("REMOVAL-UNKNOWN", '["A"]', "a removal of an id in topics that is removed already", 2)],
    ),
    "a ClearElr of a topic that is not there, or no more": (
        [clear("a"), topic("a", "A"), clear("a"), removal("A"), clear("a"), topic("a", "B"), clear("a")],
        [(CLEAR_UNKNOWN, "a", NO_TOPIC, 0), (CLEAR_UNKNOWN, "a", NO_TOPIC, 4)],
    ),
    "a ClearElr of all topics after one was made and removed": (
        [topic("a", "A"), clear(), removal("A"), clear(), clear()],
        [(CLEAR_REMOVED, "a", "a ClearElr record of all topics after the topic's removal at offset 2", 3)],
    ),
    "two topics of one name": (
        [topic("a", "A"), topic("a", "B"), topic("b", "C"), removal("C"), topic("b", "D")],
        [("DUR-08", "a", TWICE, 1)],
    ),
    "two topics of one name, the first of which goes later": (
        [topic("a", "A"), topic("a", "B"), removal("A")],
        [("DUR-08", "a", TWICE, 1)],
    ),
    "a topic made again under its id": (
        [topic("a", "A"), topic("a", "A"), topic("a", "A")],
        [("DUR-08", "a", "made 3 times with the same id", 2)],
    ),
    "producer ids that do not rise": (
        [producer_ids(1000), producer_ids(2000), producer_ids(2000), producer_ids(1500), producer_ids(3000)],
        [
            ("DUR-15", "producer ids", "next producer id 2000 after 2000", 2),
            ("DUR-15", "producer ids", "next producer id 1500 after 2000", 3),
        ],
    ),
    "an incarnation that is back": (
        [broker(1, 0, "x"), broker(1, 1, "y"), broker(1, 2, "x"), fence(1, 2, -1)],
        [("DUR-12", "broker 1", "incarnation x is back, after y took its place", 2)],
    ),
    "a registration that takes the place of a running one": (
        [broker(1, 0, "x"), fence(1, 0, -1), broker(1, 2, "y"), fence(1, 2, -1)],
        [(BROKER_REPLACED, "broker 1", "incarnation y took the place of x, which was not fenced", 2)],
    ),
}

FINE: dict[str, list[Row]] = {
    "a topic's life, and another of its name": [
        *[topic("a", "A"), made("A"), change("A"), removal("A"), topic("a", "B"), made("B"), change("B"), clear("a")]
    ],
    "a broker that restarts": [
        *[broker(1, 0, "x"), fence(1, 0, -1), fence(1, 0, 1), broker(1, 4, "y"), fence(1, 4, -1), unregister(1, 4)]
    ],
    "one that was unregistered and comes back": [
        broker(1, 0, "x"),
        fence(1, 0, -1),
        unregister(1, 0),
        broker(1, 3, "y"),
    ],
    "one that shuts down in order": [
        broker(1, 0, "x"),
        fence(1, 0, -1),
        row("BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": 1, "brokerEpoch": 0, "inControlledShutdown": 1}),
        broker(1, 3, "y"),
        fence(1, 3, -1),
    ],
    "a ClearElr of all topics that are there": [topic("a", "A"), made("A"), clear(), removal("A")],
}


def findings(rows: list[Row], shards: int = 1, **more: Any) -> list[tuple[str, str, str, str]]:
    placed = batch([{**each, "offset": place} for place, each in enumerate(rows)])
    found = in_shards(plan(len(rows), **more), placed, shards).findings
    assert {(each["cluster"], each["source"]) for each in found} <= {("one", "kraft")}
    return sorted((each["code"], each["subject"], each["detail"], each["place"]) for each in found)


@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str, shards: int) -> None:
    rows, expected = FAULTS[name]
    wanted = sorted((code, subject, detail, f"offset {offset}") for code, subject, detail, offset in expected)
    assert findings(rows, shards) == wanted


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_after_going_on_from_before_it_and_behind_it(name: str) -> None:
    rows, _ = FAULTS[name]
    placed = batch([{**each, "offset": place} for place, each in enumerate(rows)])
    whole = run(plan(len(rows)), [placed]).findings
    for at in range(len(rows) + 1):
        kept = run(plan(at, keep_at=at), [placed]).kept[at]
        assert run(plan(len(rows)), [placed], kept).findings == whole


@pytest.mark.parametrize("name", FINE)
def test_what_is_right_is_no_finding(name: str) -> None:
    assert findings(FINE[name]) == []


def test_what_was_removed_before_the_newest_checkpoint_may_be_cleared() -> None:
    rows = [topic("a", "A"), removal("A"), topic("b", "B"), removal("B"), clear()]
    assert [subject for _, subject, _, _ in findings(rows, snapshot=2)] == ["b"]
    assert findings(rows, snapshot=3) == []


def test_a_change_of_an_epoch_that_is_registered_later_is_a_stray_one() -> None:
    """Kafka replays in order, and throws on it."""
    [stray] = findings([fence(1, 4, -1), broker(1, 4, "x")])
    assert stray[0] == "BROKER-CHANGE"


def test_a_topic_that_is_made_again_has_the_partitions_made_since() -> None:
    """Seen in 3.4.1: partitions added in dual write were gone when the load was repeated (`TopicsDelta.replay`, S§4.3)."""
    rows = [topic("a", "A"), made("A"), made("A", 1), topic("a", "A"), made("A"), change("A")]
    placed = batch([{**each, "offset": place} for place, each in enumerate(rows)])
    for end, expected in ((3, [0, 1]), (6, [0])):
        state = run(plan(end), [placed]).states[end]["partitions"]
        assert [each["partition"] for each in state] == expected
