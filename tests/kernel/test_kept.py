"""Kept bytes: the same for the same state, refused when they are not this shard's or not whole; and checkpoints that differ."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from schemas.checks.codes import CONFIG_ALONE, CONFIG_LEFT, CONFIG_SKIPPED, SCRAM_LEFT_OUT
from schemas.replayed import FORMAT
from tests.kernel.logs import AnyLog, Outcome, Row, batch, checkpoint_of, cut, plan, run
from tests.kernel.test_findings import acl, broker, change, made, producer_ids, row, topic
from transforms.kernel import kept
from transforms.kernel.kept import NotContinuedError
from transforms.kernel.shards import Shard

LOG = AnyLog(5, 300)
HOMES = {"orders": [2], "a": [3], "é": [2]}
ROWS = batch(LOG.rows)


def kept_at(offset: int, **more: Any) -> bytes:
    return run(plan(offset, keep_at=offset, **more), [ROWS]).kept[offset]


def test_the_same_state_is_the_same_bytes_whatever_batches_it_came_from() -> None:
    whole = kept_at(200)
    for seed in range(5):
        chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        assert run(plan(300, keep_at=200), cut(ROWS, chance)).kept[200] == whole
    assert kept_at(201) != whole


def test_other_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    good = kept_at(300)
    for damaged in (b"", b"nothing", good[: len(good) // 2], good[:200]):
        with pytest.raises(NotContinuedError, match="not a kept state"):
            run(plan(300), [], damaged)
    with pytest.raises(NotContinuedError, match="shard 0 of 1 instead of 1 of 2"):
        run(plan(300, shard=Shard(1, 2)), [], good)
    monkeypatch.setattr(kept, "FORMAT", FORMAT + 1)
    with pytest.raises(NotContinuedError, match=f"format {FORMAT} instead of {FORMAT + 1}"):
        run(plan(300), [], good)


def test_a_part_that_is_damaged_is_refused() -> None:
    outer = pa.ipc.open_stream(kept_at(300)).read_all()
    streams = [b"nothing" if name == "rows" else rows for name, rows in zip(*outer.to_pydict().values(), strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, outer.schema) as writer:
        writer.write_table(pa.table([outer["part"], pa.array(streams, pa.large_binary())], schema=outer.schema))
    with pytest.raises(NotContinuedError, match="a part of the kept state can't be read"):
        run(plan(300), [], bytes(sink.getvalue()))


def test_a_shard_is_one_of_some() -> None:
    with pytest.raises(ValueError, match="shard 2 of 2"):
        Shard(2, 2)
    names = [f"topic-{number}" for number in range(1000)]
    owners = [[Shard(number, 4).owns(name) for number in range(4)] for name in names]
    assert all(sum(each) == 1 for each in owners)
    assert min(sum(each[number] for each in owners) for number in range(4)) > 150
    # Stable: kept states of an earlier release hang on it.
    homes = {name: [number for number in range(4) if Shard(number, 4).owns(name)] for name in ("orders", "a", "é")}
    assert homes == HOMES


def config(resource: int, name: str, key: str) -> Row:
    return row("CONFIG_RECORD", {"resourceType": resource, "resourceName": name, "name": key, "value": "1"})


BEFORE = [
    topic("a", "A"),
    made("A"),
    made("A", 1, directories=["x", "y"]),
    change("A"),
    broker(1, 4, "x"),
    acl("i"),
    config(2, "a", "retention.ms"),
    producer_ids(1000),
]
# What Kafka makes of it.
HELD = [
    topic("a", "A"),
    made("A", isr=[1, 2], partition_epoch=1),
    made("A", 1, directories=["x", "y"]),
    broker(1, 4, "x"),
    acl("i"),
    config(2, "a", "retention.ms"),
    row("PRODUCER_IDS_RECORD", {"brokerId": -1, "brokerEpoch": -1, "nextProducerId": 1000}),
]
LATER = [topic("b", "B"), made("B")]


def compared(held: list[Row], before: list[Row] = BEFORE, level: int | None = 30, *, elr: bool = True) -> Outcome:
    rows = [{**each, "offset": place} for place, each in enumerate([*before, *LATER])]
    at = len(before)
    return run(plan(len(rows), checkpoints={at: checkpoint_of(held, level, elr=elr)}), [batch(rows)])


def differing(held: list[Row], **more: Any) -> set[tuple[str, str, str, str]]:
    found = compared(held, **more).differences
    return {(each["code"], each["subject"], each["detail"], each["place"]) for each in found}


def without(place: int) -> list[Row]:
    return [each for number, each in enumerate(HELD) if number != place]


def changed(place: int, **columns: Any) -> list[Row]:
    body = HELD[place]["data"]
    if body is None:
        return [*HELD[:place], {**HELD[place], **columns}, *HELD[place + 1 :]]
    data = json.dumps({**json.loads(body), **columns})
    return [*HELD[:place], {**HELD[place], "data": data}, *HELD[place + 1 :]]


DIFFERENT = "the replay and the checkpoint differ"
MORE, MISSING = "in the replay, not in the checkpoint", "in the checkpoint, not in the replay"
CONFIG = 'configs ["TOPIC", "a", "retention.ms"]'


def test_a_checkpoint_that_is_the_state_is_no_difference() -> None:
    assert differing(HELD) == set()


def test_elr_lists_are_compared_where_the_feature_is_on() -> None:
    before = [*BEFORE, {**change("A"), "last_known_elr": [2]}]
    held = changed(1, partition_epoch=2)
    assert differing(held, before=before, elr=False) == set()
    assert differing(held, before=before) == {("CAP-08", "partitions A/0", DIFFERENT, f"checkpoint {len(before)}")}


@pytest.mark.parametrize("replicas", [[1, 2, 3], [1]])
def test_replicas_added_and_removed_while_no_directory_is_known_are_no_difference(replicas: list[int]) -> None:
    """Below metadata.version 17 a reassignment's records name no directories; the checkpoints after the upgrade have one for each."""
    before = [*BEFORE, change("A", replicas=replicas)]
    assert differing(changed(1, partition_epoch=2, replicas=replicas), before=before) == set()


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (changed(1, isr=[1]), {("partitions A/0", DIFFERENT)}),
        (changed(1, replicas=[2, 1]), {("partitions A/0", DIFFERENT)}),
        (changed(1, leader_epoch=1), {("partitions A/0", DIFFERENT)}),
        (changed(1, partition_epoch=7), {("partitions A/0", DIFFERENT)}),
        (changed(1, leader=2), {("partitions A/0", DIFFERENT)}),
        (changed(1, leader_recovery_state=1), {("partitions A/0", DIFFERENT)}),
        (changed(1, eligible_leader_replicas=[2]), {("partitions A/0", DIFFERENT)}),
        (changed(1, last_known_elr=[2]), {("partitions A/0", DIFFERENT)}),
        (changed(1, eligible_leader_replicas=[]), set()),
        (changed(1, directories=["x", "y"]), {("partitions A/0", DIFFERENT)}),
        (changed(2, directories=["x", "z"]), {("partitions A/1", DIFFERENT)}),
        (without(2), {("partitions A/1", MORE)}),
        ([*HELD, made("A", 2)], {("partitions A/2", MISSING)}),
        ([*HELD, topic("c", "C"), made("C")], {("partitions C/0", MISSING), ('topics ["C"]', MISSING)}),
        (changed(0, name="b"), {('topics ["A"]', DIFFERENT)}),
        (changed(3, fenced=False), {("brokers 1", DIFFERENT)}),
        (without(3), {("brokers 1", MORE)}),
        (changed(4, host="10.0.0.1"), {('acls ["i"]', DIFFERENT)}),
        (without(4), {('acls ["i"]', MORE)}),
        (changed(5, value="2"), {(CONFIG, DIFFERENT)}),
        (without(5), {(CONFIG, MORE)}),
        (changed(6, nextProducerId=2000), {("producer_ids ", DIFFERENT)}),
        (without(6), {("producer_ids ", MORE)}),
    ],
)
def test_a_difference_is_found(held: list[Row], expected: set[tuple[str, str]]) -> None:
    assert differing(held) == {("CAP-08", subject, detail, f"checkpoint {len(BEFORE)}") for subject, detail in expected}


def test_what_the_level_does_not_keep_is_not_compared() -> None:
    scram = row("USER_SCRAM_CREDENTIAL_RECORD", {"name": "u", "mechanism": 1, "salt": "s", "storedKey": "k"})
    scram["data"] = json.dumps({**json.loads(scram["data"]), "serverKey": "v", "iterations": 4096})
    before = [*BEFORE, scram]
    assert {subject for _, subject, _, _ in differing(HELD, before=before)} == {
        'scram_credentials ["u", "SCRAM-SHA-256"]'
    }
    assert differing(HELD, before=before, level=10) == set()
    other = changed(2, directories=["x", "z"])
    assert differing(other, level=16) == set()
    assert {subject for _, subject, _, _ in differing(other, level=17)} == {"partitions A/1"}
    # A log that names no level runs at the lowest.
    assert differing(other, level=None) == set()


def test_a_configuration_that_kafka_skips_has_a_code_of_its_own() -> None:
    before = [*BEFORE, config(2, "a", "message.format.version"), config(4, "1", "no.such.key")]
    codes = {(code, subject) for code, subject, _, _ in differing(HELD, before=before)}
    assert codes == {
        (CONFIG_SKIPPED, 'configs ["TOPIC", "a", "message.format.version"]'),
        ("CAP-08", 'configs ["BROKER", "1", "no.such.key"]'),
    }


GONE = row("REMOVE_TOPIC_RECORD", {"topicId": "G"})
OF_GONE = config(2, "g", "retention.ms")
OF_GONE_DELETED = row("CONFIG_RECORD", {**json.loads(OF_GONE["data"]), "value": None})
LIFE = [topic("g", "G"), OF_GONE, GONE]
AGAIN = [topic("g", "H"), made("H")]


@pytest.mark.parametrize(
    ("before", "held", "code"),
    [
        (LIFE, [OF_GONE], CONFIG_LEFT),
        ([], [OF_GONE], CONFIG_LEFT),
        ([*LIFE, *AGAIN], [*AGAIN, OF_GONE], CONFIG_LEFT),
        ([*LIFE, *AGAIN], [*AGAIN, config(2, "g", "retention.bytes")], "CAP-08"),
        ([*AGAIN, OF_GONE, OF_GONE_DELETED], [*AGAIN, OF_GONE], "CAP-08"),
        (AGAIN, [*AGAIN, OF_GONE], "CAP-08"),
    ],
)
def test_configurations_that_a_removed_topic_left_in_a_checkpoint_have_a_code_of_their_own(
    before: list[Row], held: list[Row], code: str
) -> None:
    """`ConfigurationsDelta` keeps them if the topic was made and removed in one delta, as when a controller starts (seen in 3.8.1)."""
    found = differing([*HELD, *held], before=[*before, *BEFORE])
    assert {(each, detail) for each, _, detail, _ in found} == {(code, MISSING)}


@pytest.mark.parametrize("again", [[], AGAIN])
def test_what_a_topic_left_in_the_checkpoint_that_the_log_begins_with_is_no_difference_to_others(
    again: list[Row],
) -> None:
    rows = [{**each, "offset": 50 + place} for place, each in enumerate([*LATER, *again])]
    end = 50 + len(rows)
    checkpoints = {50: checkpoint_of([*HELD, OF_GONE]), end: checkpoint_of([*HELD, *LATER, *again])}
    later = plan(end, start=50, base=50, checkpoints=checkpoints)
    found = run(later, [batch(rows)])
    assert {(each["code"], each["detail"]) for each in found.differences} == {(CONFIG_LEFT, MORE)}
    alone = set() if again else {(CONFIG_ALONE, 'configs ["TOPIC", "g", "retention.ms"]', "offset 49")}
    assert {(each["code"], each["subject"], each["place"]) for each in found.findings} == alone


def credential(user: str, mechanism: int = 2) -> Row:
    keys = {"salt": "s", "storedKey": "k", "serverKey": "v", "iterations": 4096}
    return row("USER_SCRAM_CREDENTIAL_RECORD", {"name": user, "mechanism": mechanism, **keys})


def no_credential(user: str, mechanism: int = 2) -> Row:
    return row("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": user, "mechanism": mechanism})


@pytest.mark.parametrize(
    ("before", "held", "code", "detail"),
    [
        ([credential("alice"), credential("dave"), no_credential("alice")], [], SCRAM_LEFT_OUT, MORE),
        ([credential("dave")], [], "CAP-08", MORE),
        ([credential("alice", 1), credential("dave"), no_credential("alice", 1)], [], "CAP-08", MORE),
        # A checkpoint that has more than the log is no such node's.
        ([credential("alice"), no_credential("alice")], [credential("alice")], "CAP-08", MISSING),
    ],
)
def test_a_credential_that_a_node_lost_when_it_started_has_a_code_of_its_own(
    before: list[Row], held: list[Row], code: str, detail: str
) -> None:
    """Seen in 3.8.1: every checkpoint that a controller wrote after it had started lacked the credential (`ScramDelta.apply`)."""
    found = differing([*HELD, *held], before=[*before, *BEFORE])
    assert {(each, text) for each, _, text, _ in found} == {(code, detail)}


def test_a_topic_that_was_removed_is_not_compared() -> None:
    gone = [topic("g", "G"), made("G"), row("REMOVE_TOPIC_RECORD", {"topicId": "G"})]
    assert differing(HELD, before=[*gone, *BEFORE]) == set()
    still = {
        (subject, detail)
        for _, subject, detail, _ in differing([topic("g", "G"), made("G"), *HELD], before=[*gone, *BEFORE])
    }
    assert still == {("partitions G/0", MISSING), ('topics ["G"]', MISSING)}


def test_a_difference_is_its_shards() -> None:
    held = [*HELD, topic("c", "C"), made("C")]
    rows = batch([{**each, "offset": place} for place, each in enumerate([*BEFORE, *LATER])])
    asked = plan(len(BEFORE) + 2, checkpoints={len(BEFORE): checkpoint_of(without(4) + held[len(HELD) :])})
    whole = run(asked, [rows]).differences
    parts = [each for number in range(3) for each in run(replace(asked, shard=Shard(number, 3)), [rows]).differences]
    assert len(whole) == 3
    assert sorted(map(str, parts)) == sorted(map(str, whole))
