"""Two KRaft states: what differs, what moves by itself, and a twin with broker ids of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from tests.reconcile.silver import kraft, tables
from transforms.reconcile.compare.states import ComparisonRules, differing_states, state_differences

ONE_CLUSTER = ComparisonRules()
Found = list[tuple[str, str | None, Any, Any]]


def partition(number: int, replicas: list[int], **columns: Any) -> Mapping[str, Any]:
    return kraft(topic="a", partition=number, replicas=replicas, adding_replicas=[], removing_replicas=[], **columns)


def found(left: dict[str, pl.DataFrame], right: dict[str, pl.DataFrame], rules: ComparisonRules = ONE_CLUSTER) -> Found:
    rows = differing_states(left, right, rules)
    assert rows.select("entity", "key").rows() == sorted(rows.select("entity", "key").rows())
    return [(each.entity, each.column, each.left, each.right) for each in state_differences(rows.to_dicts(), rules)]


def test_what_moves_by_itself_is_no_difference() -> None:
    left = tables(partitions=[partition(0, [1, 2], leader=1, isr=[1, 2], leader_epoch=3)])
    right = tables(partitions=[partition(0, [1, 2], leader=2, isr=[2], leader_epoch=4)])
    assert found(left, right) == []


def test_each_entity_is_held_against_its_own() -> None:
    left = tables(
        topics=[kraft(topic="a", topic_id="1")],
        partitions=[partition(0, [1, 2]), partition(1, [1, 2])],
        features=[kraft(feature="metadata.version", level=14)],
    )
    right = tables(
        topics=[kraft(topic="a", topic_id="2"), kraft(topic="b", topic_id="3")],
        partitions=[partition(0, [2, 1]), partition(1, [1, 2])],
        features=[kraft(feature="metadata.version", level=15)],
    )
    assert found(left, right) == [
        ("features", "level", 14, 15),
        ("partitions", "replicas", [1, 2], [2, 1]),
        ("topics", "topic_id", "1", "2"),
        ("topics", None, None, "3"),
    ]


def test_a_twin_has_ids_of_its_own_and_its_brokers_are_mapped() -> None:
    rules = ComparisonRules(twin=True, brokers={1: 11, 2: 12})
    config = {"config": "x", "value": "y"}
    left = tables(
        topics=[kraft(topic="a", topic_id="1")],
        partitions=[partition(0, [1, 2, 3]), partition(1, [1, 2])],
        configs=[
            kraft(resource_type="BROKER", resource_name="1", **config),
            kraft(resource_type="TOPIC", resource_name="1", **config),
        ],
        delegation_tokens=[kraft(token_id="t")],
    )
    right = tables(
        topics=[kraft(topic="a", topic_id="2")],
        partitions=[partition(0, [11, 12, 3]), partition(1, [12, 11])],
        configs=[
            kraft(resource_type="BROKER", resource_name="11", **config),
            kraft(resource_type="TOPIC", resource_name="1", **config),
        ],
    )
    assert found(left, right, rules) == [("partitions", "replicas", [11, 12], [12, 11])]
