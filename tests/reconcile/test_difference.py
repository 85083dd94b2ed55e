"""Which rows go on to be judged, and what is told of them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from schemas.entities import ENTITIES
from tests.reconcile.silver import Row, kraft, tables, version, versions, zk
from transforms.kraft.replay.keys import key_text
from transforms.reconcile.compare.canonical import key_json
from transforms.reconcile.compare.difference import (
    DIFFERING,
    Ends,
    differing_rows,
    sides_of,
    with_earlier,
    without_moved,
)

END = Ends(100)
TAILED = Ends(100, 110)
STATE: dict[str, Any] = {
    "topic": "orders",
    "partition": 3,
    "replicas": [1, 2, 3],
    "adding_replicas": [],
    "removing_replicas": [],
    "isr": [1, 2],
    "leader": 1,
    "leader_epoch": 5,
    "leader_recovery_state": 0,
}


def differing(ends: Ends = END, told: tuple[Row, ...] = (), **rows: list[Row]) -> list[dict[str, Any]]:
    found = differing_rows(sides_of(tables(**rows)), versions(*told), ends)
    assert found.schema == DIFFERING
    return found.to_dicts()


def keys(ends: Ends = END, told: tuple[Row, ...] = (), **rows: list[Row]) -> list[tuple[str, str]]:
    return [(row["entity"], row["key"]) for row in differing(ends, told, **rows)]


def test_equal_rows_are_left_out_whatever_their_order_and_ids() -> None:
    ours = [zk(topic=name, topic_id=name.upper()) for name in "abc"]
    theirs = [kraft(topic=name, topic_id=name.upper(), kraft_offset=7) for name in "cab"]
    assert differing(topics=ours + theirs) == []
    assert keys(topics=[*ours, *theirs[:-1], kraft(topic="b", topic_id=None)]) == [("topics", '{"topic":"b"}')]


def test_a_partition_is_compared_by_its_values_and_told_with_where_they_were_written() -> None:
    path = "/brokers/topics/orders/partitions/3/state"
    written = {"zk_path": path, "zk_czxid": 3, "zk_mzxid": 5, "zk_mtime": 7, "zk_assignment_mzxid": 4}
    made = {"kraft_offset": 60, "kraft_created_offset": 40, "kraft_epoch": 2, "kraft_append_time": 9}
    assert differing(partitions=[zk(**STATE), kraft(**STATE, directories=["d"], **made)]) == []
    [row] = differing(partitions=[zk(**STATE, **written), kraft(**{**STATE, "isr": [2, 1]}, **made)])
    compared = {name: value for name, value in STATE.items() if name not in ("topic", "partition")}
    assert json.loads(row["zk_row"]) == compared
    assert json.loads(row["kraft_row"]) == {**compared, "isr": [2, 1]}
    assert {name: row[name] for name in written} == written
    assert (row["kraft_offset"], row["kraft_created_offset"], row["kraft_append_time"]) == (60, 40, 9)
    assert (row["zk_rows"], row["kraft_rows"], row["comparable"], row["versions"]) == (1, 1, True, None)


@pytest.mark.parametrize("other", [{"replicas": [1, 2]}, {"adding_replicas": None}, {"leader": None}])
def test_one_other_value_is_a_difference_null_among_them(other: dict[str, Any]) -> None:
    assert keys(partitions=[zk(**STATE), kraft(**{**STATE, **other})])
    assert not keys(partitions=[zk(**{**STATE, **other}), kraft(**{**STATE, **other})])


def test_a_set_is_the_same_in_any_order() -> None:
    token = {"token_id": "t", "owner": "User:a", "requester": "User:a", "issue_timestamp": 1, "max_timestamp": 2}
    ours = zk(**token, renewers=["User:b", "User:c"])
    assert not keys(delegation_tokens=[ours, kraft(**token, renewers=["User:c", "User:b"])])
    assert keys(delegation_tokens=[ours, kraft(**token, renewers=["User:c"])])


def test_a_null_in_a_key_is_the_same_on_both_sides_and_a_row_without_a_key_is_one() -> None:
    quota = {"entity": [{"type": "user", "name": None}], "quota": "producer_byte_rate"}
    ids = [zk(next_producer_id=5), kraft(next_producer_id=6)]
    assert keys(client_quotas=[zk(**quota, value=1.0), kraft(**quota, value=1.0)], producer_ids=ids) == [
        ("producer_ids", "{}")
    ]


def test_ciphertext_on_one_side_is_said() -> None:
    config = {"resource_type": "BROKER", "resource_name": "1", "config": "ssl.key.password"}
    ours, theirs = zk(**config, value="ciphertext:x", comparable=False), kraft(**config, value="y", comparable=True)
    assert [row["comparable"] for row in differing(configs=[ours, theirs])] == [False]
    assert [row["comparable"] for row in differing(configs=[ours])] == [False]
    assert [row["comparable"] for row in differing(configs=[theirs])] == [True]


SAME = [zk(topic="a", topic_id="1"), kraft(topic="a", topic_id="1")]
KEY = '{"topic":"a"}'


def test_a_row_whose_newest_version_is_past_the_committed_end_is_kept() -> None:
    assert not keys(told=(version("topics", KEY, 99),), topics=SAME)
    told = (version("topics", KEY, 100, '{"topic_id":"2"}'), version("topics", KEY, 50, '{"topic_id":"1"}'))
    for ends in (END, TAILED):
        [row] = differing(ends, told, topics=SAME)
        assert [(v["from_offset"], v["row"]) for v in row["versions"]] == [
            (50, '{"topic_id":"1"}'),
            (100, '{"topic_id":"2"}'),
        ], "by offset"


def test_what_neither_side_has_is_kept_when_the_log_has_a_tail() -> None:
    told = (version("topics", '{"topic":"b"}', 105), version("topics", '{"topic":"c"}', 99))
    assert keys(END, told, topics=SAME) == []
    [row] = differing(TAILED, told, topics=SAME)
    assert (row["key"], row["zk_row"], row["kraft_row"]) == ('{"topic":"b"}', None, None)
    assert [v["from_offset"] for v in row["versions"]] == [105]


def test_versions_of_another_entity_with_the_same_key_are_not_a_rows_own() -> None:
    told = (version("features", KEY, 50), version("topics", KEY, 60))
    [row] = differing(told=told, topics=SAME[:1])
    assert [v["from_offset"] for v in row["versions"]] == [60]


def test_what_earlier_records_tell_is_put_beside_a_row() -> None:
    rows = differing_rows(sides_of(tables(topics=[zk(topic="a"), zk(topic="b")])), versions(), END)
    earlier = versions(version("topics", KEY, 9, removed=True), version("topics", KEY, 4), version("acls", KEY, 1))
    told = with_earlier(rows, earlier).to_dicts()
    assert [[v["from_offset"] for v in row["earlier"] or ()] for row in told] == [[4, 9], []]
    assert [row["versions"] for row in told] == [None, None]


def test_rows_whose_znode_moved_are_left_out_and_those_without_one_are_not() -> None:
    rows = differing_rows(
        sides_of(tables(topics=[zk(topic="a", zk_path="/a"), zk(topic="b", zk_path="/b"), kraft(topic="c")])),
        versions(),
        END,
    )
    moved = pl.DataFrame({"path": ["/a", "/x"]})
    assert without_moved(rows, None).height == 3
    assert without_moved(rows, moved)["key"].to_list() == ['{"topic":"b"}', '{"topic":"c"}']


@pytest.mark.parametrize(
    "name", ["plain", 'a"b\\c', "tab\tand\nline\u0001\u001f\u007f", "ключ \U0001f600 \u2028", "\\u00ab", ""]
)
def test_a_key_is_spelled_as_the_replay_of_the_log_spells_it(name: str) -> None:
    acl = next(entity for entity in ENTITIES if entity.name == "acls")
    key = {**dict.fromkeys(acl.key), "resource_name": name}
    rows = tables(acls=[zk(**key)])["acls"]
    assert rows.select(key_json(acl)).item() == key_text(key)
    quotas = next(entity for entity in ENTITIES if entity.name == "client_quotas")
    quota = {"entity": [{"type": "client-id", "name": name}, {"type": "user", "name": None}], "quota": "q"}
    assert tables(client_quotas=[zk(**quota)])["client_quotas"].select(key_json(quotas)).item() == key_text(quota)
