"""A row's story: states after each record, who wrote each znode, one order, and a text that can be read."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import replace
from typing import Any

from transforms.explain.keys import RowKey, parse_key
from transforms.explain.records import VersionAfter, partition_versions, state_at, versions
from transforms.explain.text import Explanation, Side, render
from transforms.explain.timeline import BarrierPassed, change_text, row_text, timeline
from transforms.explain.writes import session_writers, writes
from transforms.times import utc_time

QUOTA = parse_key("client_quotas", '{"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}')
PARTITION = parse_key("partitions", "orders/3")
CONFIG = parse_key("configs", "TOPIC/orders/retention.ms")
PATH = "/config/topics/orders"
STATE = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 0, "partition_epoch": 0, "adding_replicas": []}


def event(offset: int, op: str, row: dict[str, Any] | None, kind: str = "CLIENT_QUOTA_RECORD") -> dict[str, Any]:
    text = None if row is None else json.dumps(row)
    return {"offset": offset, "epoch": 3, "append_time": 1000 + offset, "type": kind, "op": op, "row": text}


def operation(zxid: int, kind: str, path: str, data: str | None = None, **more: Any) -> dict[str, Any]:
    row = {"zxid": zxid, "time": 1000 + zxid, "session": 7, "multi_index": None, "failed": False, "version": 1}
    return {**row, "type": kind, "path": path, "data": data, **more}


def envelope(zxid: int, kind: str, path: str, data: str | None = None, *, failed: bool = False) -> list[dict[str, Any]]:
    checks = [operation(zxid, "check", "/controller_epoch"), operation(zxid, "check", "/migration")]
    made = [*checks, operation(zxid, kind, path, data)]
    return [{**each, "multi_index": index, "failed": failed} for index, each in enumerate(made)]


def config(value: str) -> str:
    return json.dumps({"version": 1, "config": {"retention.ms": value}})


def test_a_row_is_made_changed_removed_and_made_again() -> None:
    found = versions(
        [
            event(30, "delete", None),
            event(10, "upsert", {"value": 1.0}),
            event(40, "upsert", {"value": 2.0}),
            event(50, "upsert", {"value": 3.0}),
        ]
    )
    assert [(v.offset, v.row and v.row["value"]) for v in found] == [(10, 1.0), (30, None), (40, 2.0), (50, 3.0)]


def test_the_offset_asked_for_is_inclusive() -> None:
    found = versions([event(10, "upsert", {"value": 1.0}), event(30, "delete", None)])
    assert state_at(found, 9, ()) is None
    assert [state_at(found, offset, ()) for offset in (10, 29, 30, 99)] == [found[0], found[0], found[1], found[1]]
    assert state_at(found, 40, ((30, None),)) == found[0], "a transaction that has not ended changes nothing"
    assert state_at(found, 40, ((5, 12),)) == found[1]


def test_a_removal_of_what_never_was_is_no_version() -> None:
    assert versions([event(10, "delete", None)]) == []


def test_a_brokers_patch_counts_in_its_own_epoch_only() -> None:
    registered = {"broker_id": 1, "broker_epoch": 20, "fenced": True, "rack": "r"}
    found = versions(
        [
            event(20, "upsert", registered),
            event(22, "patch", {"broker_id": 1, "broker_epoch": 20, "fenced": False}),
            event(23, "patch", {"broker_id": 1, "broker_epoch": 4, "fenced": True}),
        ]
    )
    assert [v.row and (v.row["fenced"], v.row["rack"]) for v in found] == [(True, "r"), (False, "r"), (False, "r")]


def test_partitions_end_with_their_topic_and_start_with_the_checkpoint() -> None:
    base = {**STATE, "topic_id": "A", "offset": 99, "created_offset": 99, "epoch": 1, "append_time": 5}
    changed = {**base, "offset": 120, "isr": [1]}
    topic = [
        {**event(150, "delete", None), "replay_key": '["A"]'},
        {**event(160, "delete", None), "replay_key": '["B"]'},
    ]
    found = partition_versions([base, changed], topic, 100)
    assert [(v.offset, v.type) for v in found] == [
        (99, None),
        (120, "PARTITION_CHANGE_RECORD"),
        (150, "REMOVE_TOPIC_RECORD"),
    ]
    assert found[-1].row is None
    assert partition_versions([base], [], None)[0].type == "PARTITION_RECORD"


def test_changes_name_the_columns_with_both_values() -> None:
    assert change_text(PARTITION, STATE, {**STATE, "isr": [1], "partition_epoch": 1}) == (
        "isr [1, 2] -> [1], partition_epoch 0 -> 1"
    )
    assert change_text(PARTITION, None, STATE) == "made"
    assert change_text(PARTITION, STATE, None) == "removed"
    assert change_text(QUOTA, {"value": 1.0}, {"value": 2.0}) == "1.0 -> 2.0"
    assert change_text(QUOTA, {"value": 1.0}, {"value": 1.0}) == "unchanged, 1.0"
    assert change_text(QUOTA, None, None) == ""
    assert row_text(PARTITION, STATE) == "replicas=[1, 2] isr=[1, 2] leader=1 leader_epoch=0 partition_epoch=0"
    assert row_text(QUOTA, None) == "absent"


def written(operations: list[dict[str, Any]], kinds: dict[int, str] | None = None) -> list[tuple[int, str, str]]:
    found = writes(CONFIG, operations, [PATH], kinds or {}, {7: "controller 3001"}, 20)
    return [(w.zxid, w.kind, row_text(CONFIG, w.row)) for w in found]


def test_every_write_says_whose_it_is() -> None:
    before = operation(10, "create", PATH, config("1"))
    mirrored = envelope(30, "setData", PATH, config("2"))
    refused = envelope(31, "setData", PATH, config("3"), failed=True)
    foreign = operation(32, "setData", PATH, config("4"))
    gone = operation(33, "delete", PATH)
    assert written([gone, foreign, *refused, *mirrored, before], {32: "foreign", 31: "envelope_failed"}) == [
        (10, "ZooKeeper mode", "1"),
        (30, "mirrored by KRaft", "2"),
        (31, "refused by ZooKeeper, nothing applied", "absent"),
        (32, "FOREIGN: behind KRaft's back", "4"),
        (33, "not a mirrored change", "absent"),
    ]


def test_sessions_are_known_by_what_they_made() -> None:
    controller = json.dumps({"version": 2, "brokerid": 3001, "kraftControllerEpoch": 3})
    elected = json.dumps({"version": 2, "brokerid": 1, "kraftControllerEpoch": -1})
    assert session_writers(
        [
            {"session": 1, "path": "/brokers/ids/0", "data": None},
            {"session": 2, "path": "/controller", "data": controller},
            {"session": 3, "path": "/controller", "data": elected},
            {"session": 4, "path": "/controller", "data": "not JSON"},
            {"session": 5, "path": "/controller", "data": "[]"},
        ]
    ) == {1: "broker 0", 2: "controller 3001", 3: "broker 1"}


def test_one_order_although_a_clock_went_back() -> None:
    made = [
        VersionAfter(10, 1, 5_000, "CONFIG_RECORD", {"value": "1"}),
        VersionAfter(11, 2, 4_000, "CONFIG_RECORD", None),
    ]
    found = writes(CONFIG, envelope(3, "create", PATH, config("1")), [PATH], {}, {}, 1)
    steps = timeline(CONFIG, made, [replace(found[0], time=5_500)], [BarrierPassed(4, 6_000, 11, 3001)])
    assert [step.place for step in steps] == ["offset 10", "offset 11", "zxid 0x3", "zxid 0x4"]
    assert steps[1].time == 4_000, "the time is shown as it was written"
    assert "session 0x7" in steps[2].who
    assert "/migration at 11: everything up to it (inclusive)" in steps[3].what


def test_a_znode_made_anew_is_not_told_as_a_change_of_the_old_one() -> None:
    twice = [operation(10, "create", PATH, config("1")), operation(12, "create", PATH, None)]
    steps = timeline(CONFIG, [], writes(CONFIG, twice, [PATH], {}, {}, 20), [])
    assert [step.what for step in steps] == [f"create {PATH} version 1: made, 1", f"create {PATH} version 1"]


def told(row: RowKey, sides: list[Side], **more: Any) -> str:
    made = Explanation(row, "c", "r", sides, [], [], [])
    return render(replace(made, **more))


def test_the_text_is_aligned_and_cuts_nothing() -> None:
    long = "x" * 1_500
    steps = timeline(CONFIG, [VersionAfter(10, 1, 0, "CONFIG_RECORD", {"value": long})], [], [])
    text = told(CONFIG, [Side("ZooKeeper", "1", "/a"), Side("KRaft", "absent", "offset 3")], steps=steps)
    lines = text.splitlines()
    assert lines[0] == "configs  TOPIC orders · retention.ms"
    assert lines[lines.index("ZooKeeper  1") + 1] == "           /a"
    assert "KRaft      absent" in lines
    assert f"CONFIG_RECORD: made, {long}" in text
    assert "1970-01-01 00:00:00.000  offset 10" in text


def test_hostile_names_never_reach_the_terminal() -> None:
    row = parse_key("configs", {"resource_type": "TOPIC", "resource_name": "a\x1b[2J\u202e\n", "config": "c\x00"})
    path = "/config/topics/a\x1b[2J\u202e\n"
    found = writes(row, [operation(1, "create", path, "\x1b{")], [path], {}, {7: "broker \x1b[31m"}, None)
    steps = timeline(row, [VersionAfter(1, 1, 10**18, "CONFIG_RECORD", {"value": "\x1b]0;x\x07"})], found, [])
    text = told(row, [], steps=steps)
    assert not [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs"} and c != "\n"]
    assert "\\x1b[2J" in text
    assert f"{10**18} ms" in text


def test_times_are_utc_to_the_millisecond() -> None:
    assert utc_time(1_700_000_000_123) == "2023-11-14 22:13:20.123"
    assert utc_time(None) == "-"
