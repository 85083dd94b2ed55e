"""Classes of rows from a log that goes on past /migration's offset, and a tree that does not: replay, comparison and second look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pytest

from schemas import classes
from schemas.bronze import ZK_ZNODES
from schemas.entities import MIRRORED
from tests.kernel.logs import ONE, batch
from tests.kraft.log_rows import Row, change, made, removal, row, topic
from tests.kraft.test_replayed import replayed, side_of
from transforms.frames import columns_of
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replayed import state_at, versions_of
from transforms.reconcile.compare.comparison import classified
from transforms.reconcile.compare.context import Context
from transforms.reconcile.compare.difference import Ends, Sides, differing_rows

M = 6
Tree = Mapping[str, pl.DataFrame]
ZNODES = pl.DataFrame(schema=columns_of(ZK_ZNODES.columns, "cluster", "run_id", "data"))


def noop(offset: int) -> Row:
    return row(offset, "NO_OP_RECORD", {})


def config(offset: int, value: str, name: str = "t") -> Row:
    body = {"resourceType": 2, "resourceName": name, "name": "retention.ms", "value": value}
    return row(offset, "CONFIG_RECORD", body)


BEFORE = [
    noop(0),
    topic(1, "t", "A"),
    made(2, "A"),
    config(3, "1"),
    made(4, "A", 1),
    change(5, "A", 1, isr=[1, 2]),
    noop(M),
]


def again(offset: int) -> list[Row]:
    """The topic under a new id, with one partition in the place of two."""
    new = {"leader_epoch": 0, "partition_epoch": 0, "replicas": [2, 3], "isr": [2, 3], "leader": 2}
    return [topic(offset, "t", "B"), made(offset + 1, "B", **new)]


def acl(offset: int, number: int) -> Row:
    body = {"id": f"id-{number}", "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a"}
    return row(offset, "ACCESS_CONTROL_ENTRY_RECORD", {**body, "host": "*", "operation": 3, "permissionType": 3})


def acl_removal(offset: int, number: int) -> Row:
    return row(offset, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": f"id-{number}"})


def tree(rows: Sequence[Row]) -> Tree:
    """ZooKeeper that has all of these records."""
    return state_at(ONE, side_of(rows), Extent(len(rows)), [batch(rows)], {}).tables


def nothing() -> Tree:
    return tree(BEFORE[:1])


def judged(
    zookeeper: Tree, log: Sequence[Row], *, frozen: bool, checkpoint: Sequence[Row] = (), base: int = 0, **more: Any
) -> pl.DataFrame:
    """Divergences of the tree; with a `checkpoint`, the log begins at its exclusive end `base`."""
    end = base + len(log)
    side = side_of(log, committed=end, end=end, start=base, checkpoints=[base] if base else [])
    read = {base: lambda: [batch({**each, "checkpoint_offset": base} for each in checkpoint)]} if base else {}
    found = replayed(ONE, side, [batch(log)], read, M)
    context = Context(
        frozen=frozen,
        migration_offset=M,
        migration_mzxid=100,
        committed_end=end,
        load_time_ms=0,
        newest_append_time_ms=1000 + end,
        history_from=base,
        claim_zxid=50,
        load_claim=50,
        **more,
    )
    both = [Sides(entity, zookeeper[entity.name], found.tables[entity.name]) for entity in MIRRORED]
    differing = differing_rows(both, found.row_versions, Ends(end, end))

    def versions(asked: Any) -> pl.DataFrame:
        return versions_of(side, side.whole(base or None), [batch(log)], read, asked, M)

    return classified(differing, context, ZNODES, versions)


STALE, LAG, IN_FLIGHT = classes.EXPECTED_STALE, classes.LAG, classes.IN_FLIGHT


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("idle", [0, 1])
def test_the_first_record_past_the_offset_is_judged_like_the_second(idle: int, frozen: bool) -> None:
    """A partition that the record right after /migration's offset changes has its state at the offset like any other."""
    waited = [noop(M + 1)] * idle
    found = judged(tree(BEFORE), [*BEFORE, *waited, change(M + 1 + idle, "A", 1, isr=[2])], frozen=frozen)
    assert found["class"].to_list() == [STALE if frozen else LAG]


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("idle", [0, 1])
def test_a_topic_that_is_removed_past_the_offset_lost_nothing(idle: int, frozen: bool) -> None:
    waited = [noop(M + 1)] * idle
    found = judged(tree(BEFORE), [*BEFORE, *waited, removal(M + 1 + idle, "A")], frozen=frozen)
    assert found.height == 4
    assert set(found["class"]) == {STALE if frozen else LAG}


def test_what_was_lost_before_the_offset_is_lost_though_the_next_record_changes_the_row() -> None:
    """ZooKeeper never got the leader of partition 1; the record after the offset changes its ISR."""
    elected = [*BEFORE[:-1], change(6, "A", 1, leader=2)]
    found = judged(tree(BEFORE), [*elected, change(M + 1, "A", 1, isr=[2])], frozen=False)
    by_column = dict(found.select("column", "class").iter_rows())
    assert by_column == {"isr": LAG, "leader": classes.LOST_WRITE, "leader_epoch": classes.LOST_WRITE}


MADE_AGAIN = {
    "removed next": [removal(7, "A"), *again(8), config(10, "2")],
    "removed later": [noop(7), removal(8, "A"), *again(9), config(11, "2")],
    "changed before": [change(7, "A", 1, isr=[1]), removal(8, "A"), *again(9), config(11, "2")],
    "made again twice": [
        removal(7, "A"),
        *again(8),
        removal(10, "B"),
        topic(11, "t", "C"),
        made(12, "C"),
        config(13, "2"),
    ],
}


@pytest.mark.parametrize("since", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_topic_that_was_made_again_after_finalising_is_stale(since: list[Row]) -> None:
    found = judged(tree(BEFORE), [*BEFORE, *since], frozen=True)
    assert {"topics", "partitions", "configs"} == {*found["entity"]}
    assert set(found["class"]) == {STALE}


@pytest.mark.parametrize("since", MADE_AGAIN.values(), ids=MADE_AGAIN)
def test_a_topic_that_was_made_again_is_on_its_way(since: list[Row]) -> None:
    """ZooKeeper is still at the offset, or has the removal only: Kafka mirrors the removals of a delta first."""
    log = [*BEFORE, *since]
    assert set(judged(tree(BEFORE), log, frozen=False)["class"]) <= {LAG, IN_FLIGHT}
    gone = judged(nothing(), log, frozen=False)
    assert {"topics", "partitions", "configs"} == {*gone["entity"]}
    assert set(gone["class"]) == {IN_FLIGHT}


@pytest.mark.parametrize("frozen", [False, True])
def test_an_acl_that_was_removed_and_added_again_is_on_its_way(frozen: bool) -> None:
    added = [*BEFORE[:-1], acl(M, 1)]
    found = judged(tree(BEFORE), [*added, noop(7), acl_removal(8, 1), acl(9, 2)], frozen=frozen)
    assert found["entity"].to_list() == ["acls"]
    assert found["class"].to_list() == [STALE if frozen else IN_FLIGHT]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_state_znode_that_goes_with_its_topic_is_on_its_way(frozen: bool) -> None:
    """The walk saw the old topic znode, its states removed already; the topic is there again in KRaft."""
    states = ("isr", "leader", "leader_epoch", "leader_recovery_state")
    half = tree(BEFORE)
    partitions = half["partitions"].with_columns(
        pl.lit(None).cast(half["partitions"].schema[name]).alias(name) for name in states
    )
    found = judged({**half, "partitions": partitions}, [*BEFORE, *MADE_AGAIN["removed later"]], frozen=frozen)
    assert set(found["class"]) == ({STALE} if frozen else {LAG, IN_FLIGHT})


def test_a_topic_that_was_lost_before_it_was_removed_and_made_again_ahead_of_the_offset_is_lost() -> None:
    """All of it is at or below the offset: ZooKeeper must have the second life."""
    log = [*BEFORE[:3], removal(3, "A"), *again(4), noop(M), noop(7)]
    assert set(judged(nothing(), log, frozen=False)["class"]) == {classes.LOST_WRITE}
    assert set(judged(nothing(), log, frozen=True)["class"]) == {classes.LOST_WRITE}


def test_after_finalising_a_cell_that_was_lost_before_is_lost_until_it_changes() -> None:
    """ZooKeeper never got the second leader; a change of the ISR alone leaves that loss, the next leader replaces it."""
    elected = [*BEFORE[:-1], change(M, "A", 1, leader=2)]
    shrunk = judged(tree(BEFORE), [*elected, change(M + 1, "A", 1, isr=[2])], frozen=True)
    assert dict(shrunk.select("column", "class").iter_rows()) == {
        "isr": STALE,
        "leader": classes.LOST_WRITE,
        "leader_epoch": classes.LOST_WRITE,
    }
    moved = judged(tree(BEFORE), [*elected, change(M + 1, "A", 1, leader=3)], frozen=True)
    assert set(moved["class"]) == {STALE}


# What KRaft had at the offset, and ZooKeeper has.
LOADED = [
    noop(0),
    topic(1, "t", "A"),
    made(2, "A"),
    made(3, "A", 1),
    config(4, "1"),
    topic(5, "gone", "G"),
    made(M, "G"),
]
BASE = 100
# KRaft at offset 99: t-0 has another leader, the configuration another value, `gone` is gone and `new` is there.
LATER = [
    topic(0, "t", "A"),
    made(1, "A", leader=2, leader_epoch=6, isr=[2]),
    made(2, "A", 1),
    config(3, "2"),
    topic(4, "new", "N"),
    made(5, "N"),
]


def from_checkpoint(zookeeper: Tree, *, frozen: bool, since: Sequence[Row] = (), **more: Any) -> pl.DataFrame:
    log = [noop(BASE), noop(BASE + 1), *since]
    return judged(zookeeper, log, frozen=frozen, checkpoint=LATER, base=BASE, **more)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_log_that_begins_past_the_offset_shows_no_defect(frozen: bool) -> None:
    """Kafka has removed what is before its checkpoint: nothing tells when these rows changed."""
    found = from_checkpoint(tree(LOADED), frozen=frozen)
    assert set(found["class"]) == {STALE if frozen else LAG}
    assert {*found["entity"]} == {"topics", "partitions", "configs"}
    assert {*found.filter(pl.col("kind") == "zk_only")["entity"]} == {"topics", "partitions"}
    assert set(found["severity"]) <= ({"info"} if frozen else {"info", "warning"})
    assert all(f"the log begins at offset {BASE}" in text for text in found["explanation"])


@pytest.mark.parametrize("mzxid", [90, 110])
def test_a_topic_that_dual_write_made_and_kraft_has_removed_since_is_no_foreign_write(mzxid: int) -> None:
    """Its znode is above the claim, and so are all that dual write made."""
    zookeeper = {name: rows.with_columns(zk_mzxid=pl.lit(mzxid, pl.Int64)) for name, rows in tree(LOADED).items()}
    assert set(from_checkpoint(zookeeper, frozen=True)["class"]) == {STALE}
    assert set(from_checkpoint(zookeeper, frozen=False)["class"]) == {LAG}


@pytest.mark.parametrize("frozen", [False, True])
def test_what_the_transaction_logs_show_is_foreign_wherever_the_log_begins(frozen: bool) -> None:
    zookeeper = {name: rows.with_columns(zk_mzxid=pl.lit(90, pl.Int64)) for name, rows in tree(LOADED).items()}
    found = from_checkpoint(zookeeper, frozen=frozen, foreign_zxids=frozenset({90}))
    seen = found.filter(pl.col("kind") != "kraft_only")
    assert set(seen["class"]) == {classes.FOREIGN_WRITE}


def test_a_row_of_after_the_checkpoint_is_lag_like_any_other() -> None:
    fresh = [topic(BASE + 2, "fresh", "F"), made(BASE + 3, "F")]
    found = from_checkpoint(tree(LOADED), frozen=False, since=fresh)
    mine = found.filter(pl.col("key").str.contains("fresh"))
    assert set(mine["class"]) == {LAG}
    assert not any("the log begins" in text for text in mine["explanation"])


def test_a_version_that_the_checkpoint_has_is_in_flight() -> None:
    """ZooKeeper has the checkpoint's leader already; only the ISR changed since."""
    caught_up = tree([*LATER, noop(M)])
    found = from_checkpoint(caught_up, frozen=False, since=[change(BASE + 2, "A", isr=[2, 1])])
    assert found["class"].to_list() == [IN_FLIGHT]


@pytest.mark.parametrize("frozen", [False, True])
def test_a_log_that_begins_at_the_offset_knows_what_kraft_had_there(frozen: bool) -> None:
    """The checkpoint's last record is the one at the offset."""
    found = judged(tree(LOADED), [noop(M + 1)], frozen=frozen, checkpoint=LATER, base=M + 1)
    assert not {*found["class"]} & {LAG, IN_FLIGHT, STALE}
