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


def tree(rows: Sequence[Row]) -> Tree:
    """ZooKeeper that has all of these records."""
    return state_at(ONE, side_of(rows), Extent(len(rows)), [batch(rows)], {}).tables


def judged(zookeeper: Tree, log: Sequence[Row], *, frozen: bool) -> pl.DataFrame:
    """Divergences of the tree."""
    end = len(log)
    side = side_of(log, committed=end)
    found = replayed(ONE, side, [batch(log)], {}, M)
    context = Context(
        frozen=frozen,
        migration_offset=M,
        migration_mzxid=100,
        committed_end=end,
        load_time_ms=0,
        newest_append_time_ms=1000 + end,
        history_from=0,
        claim_zxid=50,
        load_claim=50,
    )
    both = [Sides(entity, zookeeper[entity.name], found.tables[entity.name]) for entity in MIRRORED]
    differing = differing_rows(both, found.row_versions, Ends(end, end))

    def versions(asked: Any) -> pl.DataFrame:
        return versions_of(side, side.whole(None), [batch(log)], {}, asked, M)

    return classified(differing, context, ZNODES, versions)


STALE, LAG = classes.EXPECTED_STALE, classes.LAG


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
