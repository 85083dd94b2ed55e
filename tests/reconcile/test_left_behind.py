"""What KRaft had when a cluster was rolled back and ZooKeeper never got."""

from __future__ import annotations

from tests.reconcile.silver import kraft, tables, zk
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
    assert left_behind(tables(topics=[kraft(topic="a", kraft_offset=3)]), 100).is_empty()
