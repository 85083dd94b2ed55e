"""The second look at what seems lost: which rows and znodes it is about, and what the tree tells of them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from schemas.classes import FOREIGN_WRITE, LOST_WRITE
from transforms.reconcile.compare import places as module
from transforms.reconcile.compare.places import Doubtful, doubtful, look_up

ROW = {"entity": "topics", "kind": "kraft_only", "zk_value": "null", "zk_path": None, "zk_mzxid": None}
COLUMNS = pl.Schema(
    {
        "entity": pl.String,
        "key": pl.String,
        "class": pl.String,
        "kind": pl.String,
        "zk_value": pl.String,
        "zk_path": pl.String,
        "zk_mzxid": pl.Int64,
        "kraft_offset": pl.Int64,
    }
)
QUOTA = {"entity": {"client-id": "app", "user": None}, "quota": "q"}


def divergence(class_: str, key: dict[str, Any], **values: Any) -> dict[str, Any]:
    return {**ROW, "class": class_, "key": json.dumps(key), "kraft_offset": 7, **values}


def found(*rows: dict[str, Any]) -> Doubtful:
    return doubtful(pl.DataFrame(list(rows), schema=COLUMNS))


def test_a_topic_that_zookeeper_lacks_has_its_own_place() -> None:
    mine = found(divergence(LOST_WRITE, {"topic": "t"}))
    assert mine
    assert mine.keys == {("topics", '{"topic":"t"}')}
    assert (mine.places, mine.made, mine.rewritten) == ({"/brokers/topics/t"}, {"/brokers/topics/t": 7}, set())


def test_keys_are_those_of_the_comparison_whatever_a_report_spells() -> None:
    lost = divergence(LOST_WRITE, QUOTA, entity="client_quotas", kind="differs", zk_value="1.0")
    mine = found(lost)
    key = '{"entity":[{"type":"client-id","name":"app"},{"type":"user","name":null}],"quota":"q"}'
    assert mine.keys == {("client_quotas", key)}
    assert not mine.places, "its znode has a value"
    gone = found({**lost, "zk_value": "null"})
    assert gone.places == {"/config/users/<default>/clients/app"}


def test_znodes_that_somebody_wrote_last_are_looked_at_beside_what_seems_lost() -> None:
    key = {"resource_type": "TOPIC", "resource_name": "t", "config": "c"}
    foreign = divergence(FOREIGN_WRITE, key, entity="configs", kind="differs", zk_path="/config/topics/t", zk_mzxid=9)
    lost = divergence(LOST_WRITE, {"topic": "t"})
    assert found(foreign, lost).rewritten == {"/config/topics/t"}
    assert found(lost, {**foreign, "kind": "kraft_only"}).rewritten == set()
    assert found(lost, {**foreign, "entity": "topics", "key": '{"topic": "u"}'}).rewritten == set(), "it is alone there"
    alone = found(foreign)
    assert not alone
    assert alone == Doubtful()
    assert not found(divergence("lag", {"topic": "t"}))


def test_of_many_rows_the_lost_ones_come_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "_LIMIT", 2)
    key = {"resource_type": "TOPIC", "resource_name": "t", "config": "c"}
    foreign = divergence(FOREIGN_WRITE, key, entity="configs", kind="differs", zk_path="/config/topics/t", zk_mzxid=9)
    mine = found(foreign, *(divergence(LOST_WRITE, {"topic": f"t{n}"}) for n in range(3)))
    assert (mine.made, mine.rewritten) == ({"/brokers/topics/t0": 7, "/brokers/topics/t1": 7}, set())


def tree(**changes: dict[str, int]) -> pl.DataFrame:
    """`/brokers/topics` with two topics, of which the second was made in transaction 20."""
    topics = {"path": "/brokers/topics", "czxid": 1, "pzxid": 20, "cversion": 2, "num_children": 2}
    rows = [
        {"path": "/brokers", "czxid": 1, "pzxid": 1, "cversion": 1, "num_children": 1},
        {**topics, **changes.get("topics", {})},
        {"path": "/brokers/topics/a", "czxid": 10, "pzxid": 11, "cversion": 1, "num_children": 1},
        {"path": "/brokers/topics/a/partitions", "czxid": 11, "pzxid": 11, "cversion": 0, "num_children": 0},
        {"path": "/brokers/topics/b", "czxid": 20, "pzxid": 20, "cversion": 0, "num_children": 0},
    ]
    return pl.DataFrame([{"mzxid": 30, "mtime": 3_000, **row} for row in rows])


def test_a_place_that_is_there_is_told_with_its_last_write() -> None:
    seen = look_up(tree(), {"/brokers/topics/a", "/brokers/topics/gone"}, 15)
    assert seen.looked_up
    assert {path: (each.mzxid, each.mtime) for path, each in seen.written.items()} == {"/brokers/topics/a": (30, 3_000)}
    above = seen.above["/brokers/topics"]
    assert (above.pzxid, above.removed, above.lost_a_child) == (20, 0, False)
    assert seen.emptied == frozenset(), "a topic was made in the transaction that changed the list last"


def test_a_list_that_changed_though_nothing_was_made_has_lost_a_child() -> None:
    removed = tree(topics={"pzxid": 25, "cversion": 4})
    seen = look_up(removed, {"/brokers/topics/gone"}, 15)
    assert (seen.above["/brokers/topics"].removed, seen.above["/brokers/topics"].lost_a_child) == (1, True)
    assert seen.emptied == {"/brokers/topics"}
    assert look_up(removed, {"/brokers/topics/gone"}, 25).emptied == frozenset(), "not since /migration's last write"
    assert look_up(removed, {"/brokers/topics/gone"}, None).emptied == frozenset()


def test_where_the_tree_lacks_children_their_numbers_say_nothing() -> None:
    seen = look_up(tree(topics={"num_children": 3}), {"/brokers/topics/gone"}, 15)
    assert seen.above == {}


def test_what_is_gone_with_all_around_it_is_looked_for_further_up() -> None:
    """Somebody removed a partition's znode with its state, or all partitions of a topic."""
    place = "/brokers/topics/a/partitions/0/state"
    seen = look_up(tree(), {place}, 15)
    assert (seen.over(place), seen.emptied) == ("/brokers/topics/a/partitions", frozenset())
    changed = {"/brokers/topics/a": {"pzxid": 27, "cversion": 2, "num_children": 0}}
    rows = [{**row, **changed.get(row["path"], {})} for row in tree().iter_rows(named=True)]
    emptied = pl.DataFrame([row for row in rows if row["path"] != "/brokers/topics/a/partitions"])
    seen = look_up(emptied, {place}, 15)
    assert (seen.over(place), seen.emptied) == ("/brokers/topics/a", {"/brokers/topics/a"})
    assert seen.above["/brokers/topics/a"].lost_a_child
    assert seen.gone == {place: "/brokers/topics/a/partitions"}


def test_a_place_is_known_by_the_highest_znode_that_is_missing_above_it() -> None:
    acl = "/kafka-acl/Topic/a"
    assert look_up(tree(), {acl, "/brokers/topics/gone"}, 15).gone == {acl: "/kafka-acl"}


def test_of_the_rows_of_a_znode_the_oldest_tells_whether_it_was_there() -> None:
    rows = [divergence(LOST_WRITE, {"topic": "t", "partition": n}, entity="partitions") for n in range(3)]
    offsets = [{**row, "kraft_offset": offset} for row, offset in zip(rows, (9, 5, None), strict=True)]
    assert found(*offsets, divergence(LOST_WRITE, {"topic": "t"})).made == {"/brokers/topics/t": 5}
    assert not found({**rows[0], "kind": "differs", "zk_value": "null"}).made, "the row is there, its state is not"
