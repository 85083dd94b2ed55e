"""What KRaft had when a cluster was rolled back and ZooKeeper never got."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.reconcile.silver import kraft, tables, version, versions, zk
from transforms.reconcile.judge.left_behind import left_behind
from transforms.reconcile.judge.rules import VIOLATIONS


def config(name: str, value: str) -> dict[str, str]:
    return {"resource_type": "TOPIC", "resource_name": "orders", "config": name, "value": value}


def partition(number: int, leader: int) -> dict[str, object]:
    return {"topic": "orders", "partition": number, "leader": leader}


def test_what_a_rollback_left_behind() -> None:
    found = left_behind(
        tables(
            configs=[
                kraft(**config("kept", "1"), kraft_offset=101),
                zk(**config("kept", "1")),
                kraft(**config("changed", "2"), kraft_offset=102),
                zk(**config("changed", "1")),
            ],
            topics=[
                kraft(topic="made", kraft_offset=103),
                kraft(topic="deleted since in ZooKeeper", kraft_offset=100),
                kraft(topic="of no known offset"),
            ],
            partitions=[
                kraft(**partition(0, 1), kraft_offset=104),
                zk(**partition(0, 2)),
                kraft(**partition(1, 1), kraft_offset=105),
            ],
        ),
        versions(),
        100,
    )
    assert found.schema == VIOLATIONS
    assert set(found["code"]) == {"RB-13"}
    assert found["text"].sort().to_list() == [
        'configs {"resource_type":"TOPIC","resource_name":"orders","config":"changed"}, of offset 102',
        'partitions {"topic":"orders","partition":1}, of offset 105',
        'topics {"topic":"made"}, of offset 103',
    ]


def test_nothing_is_left_behind_where_nothing_came_late() -> None:
    assert left_behind(tables(topics=[kraft(topic="a", kraft_offset=3)]), versions(), 100).is_empty()


def acl(principal: str) -> dict[str, str]:
    return {
        "resource_type": "TOPIC",
        "resource_name": "orders",
        "pattern_type": "LITERAL",
        "principal": principal,
        "host": "*",
        "operation": "READ",
        "permission": "ALLOW",
    }


def removed_acl(principal: str, offset: int) -> Mapping[str, object]:
    return version("acls", json.dumps(acl(principal), separators=(",", ":")), offset, removed=True)


def test_what_kraft_had_removed_is_there_again() -> None:
    """A rollback takes an ACL, a credential or a topic back that KRaft removed after /migration's offset."""
    found = left_behind(
        tables(
            acls=[
                *(zk(**acl(f"User:{name}")) for name in ("bob", "eve", "dan")),
                kraft(**acl("User:dan"), kraft_offset=50),
            ],
            topics=[zk(topic="old", topic_id="a"), zk(topic="made again", topic_id="new")],
            partitions=[zk(topic="old", partition=0)],
        ),
        versions(
            removed_acl("User:eve", 101),
            # Before /migration's offset, or of one of two entries of the same content.
            removed_acl("User:bob", 100),
            removed_acl("User:dan", 102),
            removed_acl("User:not there either", 103),
            version("topics", '{"topic":"old"}', 104, '{"topic_id":"a"}', removed=True),
            version("topics", '{"topic":"made again"}', 105, '{"topic_id":"old"}', removed=True),
            version("partitions", '{"topic":"old","partition":0}', 104, removed=True),
        ),
        100,
    )
    assert set(found["code"]) == {"RB-13"}
    assert found["text"].sort().to_list() == [
        f"acls {json.dumps(acl('User:eve'), separators=(',', ':'))}, removed at offset 101",
        'topics {"topic":"old"}, removed at offset 104',
    ]
