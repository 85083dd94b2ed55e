"""A key that one side has twice is kept and counted, though the row that is compared may be the same on both sides."""

from __future__ import annotations

from typing import Any

from tests.reconcile.silver import Row, kraft, tables, versions, zk
from transforms.reconcile.compare.difference import Ends, differing_rows, duplicated, sides_of


def found(*topics: Row) -> list[dict[str, Any]]:
    return duplicated(differing_rows(sides_of(tables(topics=topics)), versions(), Ends(100)))


def test_a_key_that_is_there_twice_is_counted() -> None:
    rows = [zk(topic="a", topic_id="1"), zk(topic="a", topic_id="1"), kraft(topic="a", topic_id="1")]
    rows += [zk(topic="b", topic_id="2"), kraft(topic="b", topic_id="2")]
    assert found(*rows) == [{"total": 1, "texts": ['topics {"topic":"a"}: 2 rows in ZooKeeper, 1 in KRaft']}]


def test_the_same_key_once_on_each_side_is_twice_nowhere() -> None:
    assert found(zk(topic="a"), kraft(topic="a"), zk(topic="b")) == []


def test_a_few_are_listed_in_order_and_all_are_counted() -> None:
    names = [f"{number:03}" for number in range(30)]
    [told] = found(*[kraft(topic=name) for name in reversed(names) for _ in range(2)])
    assert told["total"] == 30
    assert told["texts"] == [f'topics {{"topic":"{name}"}}: 0 rows in ZooKeeper, 2 in KRaft' for name in names[:20]]
