"""The order of Kafka's hash tables, against what Java itself printed (OpenJDK 17, `TimelineHashMap` of 4.4.0)."""

from __future__ import annotations

import pytest

from transforms.features.java_order import feature_order, hash_map_order, registered_order, string_hash


@pytest.mark.parametrize(
    ("ids", "order"),
    [
        ([0, 1, 2], [2, 0, 1]),
        ([0, 1, 2, 3, 4], [0, 2, 4, 1, 3]),
        ([1, 2, 3, 4, 5, 6, 7], [5, 2, 7, 4, 1, 6, 3]),
        ([3000, 3001, 3002, 3003], [3000, 3002, 3001, 3003]),
    ],
)
def test_registrations_come_as_the_timeline_hash_map_gives_them(ids: list[int], order: list[int]) -> None:
    assert registered_order(ids) == order
    assert registered_order(reversed(ids)) == order


def test_features_of_a_request_come_as_the_hash_map_gives_them() -> None:
    names = [
        "metadata.version",
        "kraft.version",
        "transaction.version",
        "group.version",
        "eligible.leader.replicas.version",
        "share.version",
        "streams.version",
        "x",
        "y",
    ]
    assert feature_order(names) == [
        "group.version",
        "kraft.version",
        "metadata.version",
        "share.version",
        "streams.version",
        "x",
        "y",
        "transaction.version",
        "eligible.leader.replicas.version",
    ]
    assert string_hash("metadata.version") != string_hash("kraft.version")
    assert string_hash("Aa") == string_hash("BB") == 2112


def test_voters_come_as_the_hash_map_made_for_them_gives_them() -> None:
    assert hash_map_order([3000, 3005, 3001, 3010, 7]) == [3000, 3001, 3010, 3005, 7]
    assert hash_map_order([1, 2, 3, 4]) == [1, 2, 3, 4]
