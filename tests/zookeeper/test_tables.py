"""Silver rows of ZooKeeper's side, from the state rows of one cluster's trees."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

from schemas.entities import ENTITIES
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from tests.zookeeper.malformed import GOOD_STATE, GOOD_TOPIC, MALFORMED, js
from tests.zookeeper.trees import dump_batches, znode
from transforms.frames import columns_of
from transforms.migration import migration_rows
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.state import STATE, cluster_state
from transforms.zookeeper.read.tables import admin_operations, findings, migration_row, tables
from transforms.zookeeper.read.znode import Znode

Marked = tuple[str | None, Znode]
QUOTA = '{"version":1,"config":{"request_percentage":"%s"}}'


def marked(batch: pa.RecordBatch, trees: Sequence[str | None]) -> pa.RecordBatch:
    """The znodes with the column `tree`."""
    return batch.append_column(TREE, pa.array(trees, pa.string()))


def state(*znodes: Marked) -> pl.DataFrame:
    batch = znode_batch([each for _, each in znodes])
    return cluster_state([marked(batch, [tree for tree, _ in znodes])])


def dumped(version: str, stage: str) -> pl.DataFrame:
    return cluster_state(marked(batch, [None] * batch.num_rows) for batch in dump_batches(version, stage))


def values(rows: pl.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(rows.select(columns).iter_rows())


@pytest.mark.parametrize(("version", "stage"), [("3.9.1", "5-dual-write-changed"), ("3.6.2", "5-dual-write-changed")])
def test_every_row_of_an_entity_has_all_that_its_state_row_says(version: str, stage: str) -> None:
    of_tree = dumped(version, stage)
    made = tables(of_tree)
    assert made.keys() == {entity.name for entity in ENTITIES} - {"migration"}
    for entity in ENTITIES:
        if entity.name not in made:
            continue
        rows = made[entity.name]
        assert rows.schema == columns_of(entity.row_columns)
        assert set(rows["source"]) <= {"zookeeper"}
        assert rows["kraft_offset"].null_count() == rows.height
        if entity.name != "partitions":
            said = [json.loads(text) for text in of_tree.filter(pl.col("entity") == entity.name)["row"]]
            names = [field.name for field in entity.columns]
            assert rows.select(names).to_dicts() == [{name: row.get(name) for name in names} for row in said]
    assert made["topics"].height > 5
    assert made["partitions"]["isr"].null_count() == 0


def test_nothing_that_a_znode_holds_stops_the_others() -> None:
    good = [("/brokers/topics/good", js(GOOD_TOPIC)), ("/config/users/u", (QUOTA % "1.5").encode())]
    bad = [(path, data) for path, data, _ in MALFORMED]
    hostile = state(*((None, znode(path, data)) for path, data in (*bad, *good)))
    made = tables(hostile)
    assert "good" in made["topics"]["topic"]
    assert ("u", 1.5) in [(row["entity"][0]["name"], row["value"]) for row in made["client_quotas"].to_dicts()]
    assert {row["code"] for row in findings(hostile).to_dicts()} == {code for *_, codes in MALFORMED for code in codes}


def test_quotas_that_json_has_no_number_for_are_numbers() -> None:
    texts = {"a": "NaN", "b": "Infinity", "c": "-1e999", "NaN": "1.5"}
    found = tables(state(*((None, znode(f"/config/users/{n}", (QUOTA % v).encode())) for n, v in texts.items())))
    quotas = {row["entity"][0]["name"]: row["value"] for row in found["client_quotas"].to_dicts()}
    assert math.isnan(quotas.pop("a"))
    assert quotas == {"b": math.inf, "c": -math.inf, "NaN": 1.5}


def test_a_partition_has_what_two_znodes_say_of_it() -> None:
    topic = znode("/brokers/topics/t", js({**GOOD_TOPIC, "partitions": {"0": [1, 2], "1": [2]}}), mzxid=8, mtime=80)
    held = znode("/brokers/topics/t/partitions/0/state", js(GOOD_STATE), mzxid=9, mtime=90, version=4)
    found = tables(state((None, topic), (None, held)))["partitions"]
    shown = ("partition", "replicas", "isr", "partition_epoch", "zk_path", "zk_mzxid", "zk_assignment_mzxid")
    assert values(found, *shown) == [
        (0, [1, 2], [1, 2], 4, held.path, 9, 8),
        (1, [2], None, None, topic.path, None, 8),
    ]


def two_trees() -> pl.DataFrame:
    """A topic of both trees, one that was there at the barrier only, and one that came after it."""
    named = {"both": None, "then": BARRIER, "now": NEWEST}
    topics = [(tree, znode(f"/brokers/topics/{name}", js(GOOD_TOPIC))) for name, tree in named.items()]
    odd = [(tree, znode(f"/odd-{name}", b"")) for name, tree in named.items()]
    deleted = [(tree, znode(f"/admin/delete_topics/{name}", b"")) for name, tree in named.items()]
    features = {tree: js({"version": 2, "status": 1, "features": {"f": {"max_version_level": n}}})
                for n, tree in ((1, BARRIER), (2, NEWEST))}  # fmt: skip
    return state(*topics, *odd, *deleted, *((tree, znode("/feature", data)) for tree, data in features.items()))


def test_what_is_compared_is_of_the_barrier_and_the_rest_as_it_was_read() -> None:
    found = tables(two_trees())
    assert values(found["topics"], "topic") == [("both",), ("then",)]
    assert values(found["partitions"], "topic") == [("both",), ("then",)]
    assert values(found["features"], "level") == [(2,)]
    assert values(findings(two_trees()), "source", "code", "place") == [
        ("zookeeper", "UNKNOWN-PATH", "/odd-both"),
        ("zookeeper", "UNKNOWN-PATH", "/odd-now"),
    ]


def test_requests_are_kept_of_both_trees() -> None:
    asked = admin_operations(two_trees())
    found = {row["subject"]: (row["kind"], row[TREE], row["zk_path"]) for row in asked.to_dicts()}
    assert found == {
        name: ("delete_topic", tree, f"/admin/delete_topics/{name}")
        for name, tree in (("both", None), ("then", BARRIER), ("now", NEWEST))
    }


def migration(offset: int) -> bytes:
    controller = {"kraft_controller_id": 3000, "kraft_controller_epoch": 1}
    return js({"version": 0, **controller, "kraft_metadata_offset": offset, "kraft_metadata_epoch": 1})


def test_the_znodes_of_the_migration_are_one_row_of_each_tree() -> None:
    moved = [(BARRIER, znode("/migration", migration(5), mzxid=50)), (NEWEST, znode("/migration", migration(6)))]
    both = state((None, znode("/controller_epoch", b"3")), *moved)
    then, now = migration_row(both, BARRIER), migration_row(both, NEWEST)
    assert then is not None
    assert now is not None
    assert (then["kraft_metadata_offset"], then["migration_mzxid"], then["controller_epoch"]) == (5, 50, 3)
    assert (now["kraft_metadata_offset"], now["controller_epoch"]) == (6, 3)
    assert migration_row(pl.DataFrame(schema=STATE), NEWEST) is None
    shown = ("source", TREE, "kraft_metadata_offset", "state_code", "kraft_offset")
    milestones = [recorded("NO_OP_RECORD", 7, {}), recorded("ZK_MIGRATION_STATE_RECORD", 8, {"zkMigrationState": 1})]
    recorded_state = ("kraft", None, None, 1, 8)
    assert in_order(migration_rows(now, then, milestones).select(shown)) == in_order(
        [("zookeeper", NEWEST, 6, None, None), ("zookeeper", BARRIER, 5, None, None), recorded_state]
    )
    assert in_order(migration_rows(now, dict(now), milestones).select(shown)) == in_order(
        [("zookeeper", None, 6, None, None), recorded_state]
    )
    assert migration_rows(None, None, ()).is_empty()


def recorded(type_: str, offset: int, body: dict[str, Any]) -> dict[str, Any]:
    return {"type": type_, "offset": offset, "epoch": 1, "append_time": 1_000, "data": json.dumps(body)}


def in_order(rows: pl.DataFrame | Iterable[tuple[Any, ...]]) -> list[str]:
    return sorted(map(repr, rows.iter_rows() if isinstance(rows, pl.DataFrame) else rows))
