"""The records of one row out of a log: all its lives, what goes with its topic, and each state of a partition."""

from __future__ import annotations

import polars as pl

from schemas.bronze import LOG_RECORD_COLUMNS
from tests.kraft.log_rows import Row, change, clear, made, removal, row, topic
from transforms.explain.keys import parse_key
from transforms.explain.records import (
    Wanted,
    config_events,
    has_key,
    keys_of,
    names_configs,
    names_row,
    partition_states,
    partition_versions,
    row_events,
    versions,
    with_events,
)
from transforms.frames import columns_of, frame
from transforms.kraft.replay.entities import DELETE, UPSERT

HELD: Row = {"eligible_leader_replicas": [2], "last_known_elr": [1]}


def config(offset: int, name: str, value: str | None, config: str = "retention.ms") -> Row:
    return row(offset, "CONFIG_RECORD", {"resourceType": 2, "resourceName": name, "name": config, "value": value})


def log(*rows: Row) -> pl.DataFrame:
    return frame(rows, columns_of(LOG_RECORD_COLUMNS))


LIVES = log(
    topic(0, "a", "OLD"),
    config(1, "a", "5"),
    config(2, "b", "6"),
    removal(3, "OLD"),
    topic(4, "a", "NEW"),
    config(5, "a", "7"),
    config(6, "a", "compact", "cleanup.policy"),
    config(7, "a", None),
    removal(8, "NEW"),
)


def test_a_topic_has_the_records_of_all_its_lives() -> None:
    lives = row_events(LIVES, parse_key("topics", "a"))
    assert [(each["offset"], each["op"], each["replay_key"]) for each in lives] == [
        (0, UPSERT, '["OLD"]'),
        (3, DELETE, '["OLD"]'),
        (4, UPSERT, '["NEW"]'),
        (8, DELETE, '["NEW"]'),
    ]
    assert row_events(LIVES, parse_key("topics", "c")) == []


def test_configurations_go_with_their_topic() -> None:
    found = versions(row_events(LIVES, parse_key("configs", "TOPIC/a/retention.ms")))
    assert [(each.offset, each.type, each.row and each.row["value"]) for each in found] == [
        (1, "CONFIG_RECORD", "5"),
        (3, "REMOVE_TOPIC_RECORD", None),
        (5, "CONFIG_RECORD", "7"),
        (7, "CONFIG_RECORD", None),
    ]
    of_another = versions(row_events(LIVES, parse_key("configs", "TOPIC/b/retention.ms")))
    assert [each.offset for each in of_another] == [2]


def test_every_configuration_of_a_topic_is_found_by_its_row() -> None:
    found = {row.canonical: versions(events) for row, events in config_events(LIVES, "a")}
    keys = [parse_key("configs", f"TOPIC/a/{name}").canonical for name in ("retention.ms", "cleanup.policy")]
    assert [*found] == keys
    assert [each.offset for each in found[keys[0]]] == [1, 3, 5, 7]
    assert [each.offset for each in found[keys[1]]] == [6, 8]


def lives(wanted: Wanted) -> pl.DataFrame:
    return with_events(LIVES, has_key(keys_of(with_events(LIVES, wanted), wanted)))


def test_the_records_of_a_row_are_those_of_its_lives_and_what_removed_them() -> None:
    found = lives(names_row(parse_key("configs", "TOPIC/a/retention.ms")))
    assert found["offset"].to_list() == [0, 1, 3, 4, 5, 7, 8]
    row = parse_key("configs", "TOPIC/a/retention.ms")
    assert row_events(found, row) == row_events(LIVES, row)
    assert lives(names_configs("a"))["offset"].to_list() == [0, 1, 3, 4, 5, 6, 7, 8]
    assert lives(names_row(parse_key("configs", "BROKER/1/x"))).is_empty()
    topics = LIVES.filter(pl.col("type") != "CONFIG_RECORD")
    wanted = names_row(parse_key("topics", "a"))
    assert keys_of(topics, wanted) == {("topics", ("OLD",)), ("topics", ("NEW",))}


def test_a_record_of_a_checkpoint_has_no_type() -> None:
    found = row_events(log(topic(9, "a", "A", checkpoint_offset=10), removal(12, "A")), parse_key("topics", "a"))
    assert [each["type"] for each in found] == [None, "REMOVE_TOPIC_RECORD"]


def test_the_story_of_a_partition_names_the_record_that_cleared_it() -> None:
    records = log(
        topic(0, "a", "A"),
        made(1, "A", **HELD),
        made(2, "A", 1, **HELD),
        clear(3, "a"),
        change(4, "A", eligible_leader_replicas=[2]),
        change(5, "A", 1, last_known_elr=[2]),
        clear(6, "other"),
        clear(7, "a"),
        change(8, "A", 1, eligible_leader_replicas=[1]),
    )
    lives = row_events(records, parse_key("topics", "a"))
    found = partition_versions(partition_states(records, parse_key("partitions", "a/0"), lives), lives, None)
    assert [(version.offset, version.type) for version in found] == [
        (1, "PARTITION_RECORD"),
        (3, "CLEAR_ELR_RECORD"),
        (4, "PARTITION_CHANGE_RECORD"),
        (7, "CLEAR_ELR_RECORD"),
    ]
    assert [(version.row or {})["partition_epoch"] for version in found] == [10, 11, 12, 13]
    both = partition_states(records, None, lives)
    assert {state["partition_id"] for state in both} == {0, 1}
    assert [state["offset"] for state in both if state["partition_id"] == 1] == [2, 3, 5, 7, 8]


def test_a_change_merges_and_a_partition_record_starts_anew() -> None:
    records = log(
        topic(0, "a", "A"),
        change(1, "A", isr=[2]),
        made(2, "A", **HELD),
        change(3, "A", isr=[1, 2], leader=2, leader_recovery_state=1),
        made(4, "A", leader=-1),
        removal(5, "A"),
        clear(6),
    )
    lives = row_events(records, parse_key("topics", "a"))
    states = partition_states(records, parse_key("partitions", "a/0"), lives)
    names = ("offset", "created_offset", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state")
    assert [tuple(state[name] for name in names) for state in states] == [
        (2, 2, 1, 5, 10, 0),
        (3, 2, 2, 6, 11, 1),
        (4, 4, -1, 5, 10, 0),
    ]
    assert [(state["isr"], state["last_known_elr"]) for state in states] == [([1], [1]), ([1, 2], [1]), ([1], None)]
    assert states[0]["directories"] == ["AAAAAAAAAAAAAAAAAAAAAA"] * 2


def test_while_no_directory_is_known_there_is_one_migrating_for_each_replica() -> None:
    records = log(
        topic(0, "a", "A"),
        made(1, "A", **HELD, directories=[]),
        change(2, "A", replicas=[1, 2, 3]),
        change(3, "A", replicas=[1]),
        change(4, "A", directories=["x"]),
        change(5, "A", isr=[1]),
    )
    lives = row_events(records, parse_key("topics", "a"))
    states = partition_states(records, parse_key("partitions", "a/0"), lives)
    unknown = "AAAAAAAAAAAAAAAAAAAAAA"
    assert [state["directories"] for state in states] == [[unknown] * 2, [unknown] * 3, [unknown], ["x"], ["x"]]
