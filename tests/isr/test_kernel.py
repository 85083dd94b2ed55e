"""The kernel gives the same history however its rows are cut into batches, and that history is the rules'."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
import pytest

from tests.isr.test_frames import any_story
from tests.isr.test_history import CASES
from transforms.clusters import CLUSTER
from transforms.isr.frames import step_of
from transforms.isr.history import Record, Step, steps
from transforms.isr.kernel import HISTORY, READ, histories
from transforms.isr.partition import Change, PartitionState

_COLUMNS = {
    "adding": "adding_replicas",
    "removing": "removing_replicas",
    "elr": "eligible_leader_replicas",
}
_IDS = pa.list_(pa.int32())
SCHEMA = pa.schema(
    [
        ("topic_id", pa.string()),
        ("partition_id", pa.int32()),
        (CLUSTER, pa.string()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("append_time", pa.int64()),
        ("whole", pa.bool_()),
        ("created_offset", pa.int64()),
        *[(name, _IDS) for name in READ[8:14]],
        *[(name, pa.int32()) for name in READ[14:18]],
        ("directories", pa.bool_()),
    ]
)
STORIES = {f"topic-{seed:03}": list(any_story(seed)) for seed in range(30)}


def row_of(topic_id: str, record: Record) -> dict[str, object]:
    change = record.change
    lists = ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")
    row: dict[str, object] = {
        CLUSTER: "one",
        "topic_id": topic_id,
        "partition_id": 0,
        "offset": record.offset,
        "epoch": 1,
        "append_time": record.time,
        "whole": change.whole,
        "leader": change.leader,
        "leader_recovery_state": change.leader_recovery_state,
        "directories": False,
    }
    row |= {_COLUMNS.get(name, name): getattr(change, name) for name in lists}
    return row | (
        {"leader_epoch": change.leader_epoch, "partition_epoch": change.partition_epoch} if change.whole else {}
    )


def rows_of(stories: Mapping[str, Sequence[Record]]) -> pa.RecordBatch:
    rows = [row_of(topic, record) for topic, story in stories.items() for record in story]
    return pa.RecordBatch.from_pylist(rows, schema=SCHEMA)


def cut(rows: pa.RecordBatch, chance: random.Random) -> Iterator[pa.RecordBatch]:
    start = 0
    while start < rows.num_rows:
        # Spark hands over empty batches, too.
        size = chance.choice([0, 1, 1, 2, 3, 7, 40])
        yield rows.slice(start, size)
        start += size


def told(batches: Iterator[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in histories(batches) for row in batch.to_pylist()]


def test_the_declared_columns_are_those_that_are_read_and_made() -> None:
    assert tuple(SCHEMA.names) == READ
    [batch] = histories(iter([rows_of({"a": STORIES["topic-000"]})]))
    assert tuple(batch.schema.names) == HISTORY


def test_one_batch_is_what_the_rules_say() -> None:
    found: dict[str, list[Step]] = {}
    for row in told(iter([rows_of(STORIES)])):
        found.setdefault(str(row["topic_id"]), []).append(step_of(row))
    assert found == {topic: list(steps(story)) for topic, story in STORIES.items()}


def made(state: PartitionState) -> Change:
    """The PartitionRecord of a state."""
    return Change(**vars(state), whole=True)


def test_each_case_of_the_rules_is_the_same_here() -> None:
    stories = {
        case: [Record(10, 0, made(before)), Record(11, 0, change)] for case, (before, change, _) in CASES.items()
    }
    rows = told(iter([rows_of(stories)]))
    found = {str(row["topic_id"]): step_of(row) for row in rows if row["offset"] == 11}
    assert found == {case: list(steps(story))[1] for case, story in stories.items()}
    assert len(found) > 25


@pytest.mark.parametrize("seed", range(5))
def test_where_the_batches_are_cut_changes_nothing(seed: int) -> None:
    rows = rows_of(STORIES)
    assert told(cut(rows, random.Random(seed))) == told(iter([rows]))  # noqa: S311 - the seed makes a failure repeatable


def test_a_leaderless_time_is_carried_over_batches() -> None:
    rows = rows_of(STORIES)
    since = [(row["topic_id"], row["offset"], row["leaderless_since"]) for row in told(iter([rows]))]
    assert sum(time is not None for _, _, time in since) > 25
    one_by_one = (rows.slice(number, 1) for number in range(rows.num_rows))
    assert [(row["topic_id"], row["offset"], row["leaderless_since"]) for row in told(one_by_one)] == since


def test_lists_that_are_slices_and_null_lists_with_values_are_read_right() -> None:
    """Arrow may keep values behind a null, and a slice keeps its column's values."""
    story = STORIES["topic-001"]
    twice = rows_of({"a": STORIES["topic-000"], "b": story})
    start = len(STORIES["topic-000"])
    [alone] = histories(iter([rows_of({"b": story})]))
    [sliced] = histories(iter([twice.slice(start)]))
    assert sliced.to_pylist() == alone.to_pylist()
    isr = twice["isr"]
    filled = pa.ListArray.from_arrays(
        pa.array(range(0, 2 * len(isr) + 1, 2), pa.int32()),
        pa.array([8, 9] * len(isr), pa.int32()),
        mask=pa.array([True] * len(isr)),
    )
    hidden = twice.set_column(twice.schema.get_field_index("isr"), "isr", filled)
    nothing = twice.set_column(twice.schema.get_field_index("isr"), "isr", pa.nulls(len(isr), _IDS))
    assert told(iter([hidden])) == told(iter([nothing]))
