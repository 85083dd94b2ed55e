"""What a change of a partition is: each case of the rules, stories of all kinds, and the workers' kernel on the same records."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from schemas.gold import ISR_CHANGE
from tests.isr.random_logs import any_change, any_story, record_row
from tests.isr.test_history import CASES
from tests.kernel.logs import ONE, Outcome, Row, batch, made_of, plan, run
from transforms.isr.history import ELECTIONS, ChangeKind, ClassifiedChange, Record, step_of, steps
from transforms.isr.partition import Change, PartitionState
from transforms.kernel import lists
from transforms.kernel.history import HISTORY as SCHEMA
from transforms.kernel.history import empty_changes
from transforms.kernel.layout import ISR, LIST_NAMES, SLOT_LONGS, TOPIC_LONGS
from transforms.kernel.lists import SOURCES
from transforms.kernel.rules import ORDER

STORIES = {f"topic-{seed:03}": list(any_story(seed)) for seed in range(30)}


def made(state: PartitionState) -> Change:
    return Change(whole=True, **vars(state))


def told(stories: dict[str, list[Record]]) -> Outcome:
    """The history of topics of one partition each, whose records are mixed."""
    records = [_row(topic, record) for topic, story in stories.items() for record in story]
    random.Random(1).shuffle(records)  # noqa: S311 - any order between topics will do
    in_order: dict[str, list[Row]] = {}
    for row in sorted(records, key=lambda row: row["offset"]):
        in_order.setdefault(row["topic_id"], []).append(row)
    turns = iter([topic for row in records for topic in [row["topic_id"]]])
    rows: list[Row] = [
        {"type": "TOPIC_RECORD", "data": f'{{"name": "{topic}", "topicId": "{topic}"}}', "control": False, "epoch": 1}
        for topic in stories
    ]
    rows += [in_order[topic].pop(0) for topic in turns]
    placed = [{**row, "offset": place, "append_time": row.get("append_time", 0)} for place, row in enumerate(rows)]
    return run(plan(len(placed)), [batch(placed)])


def _row(topic: str, record: Record) -> Row:
    row = record_row(ONE, topic, record)
    if record.change.whole and record.change.leader_recovery_state is None:
        row["leader_recovery_state"] = None
    return row


def by_topic(found: Outcome) -> dict[str, list[ClassifiedChange]]:
    steps_of: dict[str, list[ClassifiedChange]] = {}
    for row in found.history:
        steps_of.setdefault(row["topic_id"], []).append(step_of(row))
    return steps_of


def same_but_for_offsets(found: list[ClassifiedChange], expected: list[ClassifiedChange]) -> bool:
    return [(s.time, s.before, s.after, s.kinds) for s in found] == [
        (s.time, s.before, s.after, s.kinds) for s in expected
    ]


def test_each_case_of_the_rules_is_the_same_here() -> None:
    stories = {case: [Record(0, 0, made(before)), Record(1, 1, change)] for case, (before, change, _) in CASES.items()}
    named = {f"case {number}": story for number, story in enumerate(stories.values())}
    found = by_topic(told(named))
    assert len(found) == len(CASES) > 25
    for topic, story in named.items():
        assert same_but_for_offsets(found[topic], [*steps(story)]), topic


def test_stories_are_told_as_the_rules_tell_them() -> None:
    outcome = told(STORIES)
    found = by_topic(outcome)
    for topic, story in STORIES.items():
        assert same_but_for_offsets(found[topic], [*steps(story)]), topic
    kinds = {kind for row in outcome.history for kind in row["kinds"]}
    assert kinds == {*ChangeKind}
    assert {row["topic"] for row in outcome.history} == {*STORIES}


def test_kinds_are_named_in_the_order_of_the_rules() -> None:
    assert {*ORDER} == {*ChangeKind}
    assert len(ORDER) == len(ChangeKind)
    assert [kind for kind in ORDER if kind in ELECTIONS] == [*ELECTIONS]


def test_columns_and_lists_are_where_the_layout_says() -> None:
    assert SCHEMA.names == ISR_CHANGE.fieldNames()
    assert (SLOT_LONGS * 8) % 64 == (TOPIC_LONGS * 8) % 64 == 0
    assert LIST_NAMES[ISR] == "isr"


def test_machine_code_is_kept_for_all_sources_that_are_compiled_together() -> None:
    """Otherwise a change of one of them would go on running as it was."""
    folder = Path(lists.__file__).parent
    compiled = {path.name for path in folder.glob("*.py") if re.search("^@(compiled|inlined)$", path.read_text(), re.M)}
    assert {f"kernel/{name}" for name in compiled - {"texts.py"}} | {"kernel/layout.py"} <= {*SOURCES}
    assert {"isr/history.py", "isr/partition.py"} <= {*SOURCES}


WIDE = tuple(range(100, 400))


def test_lists_of_any_length_find_room() -> None:
    """A partition on hundreds of brokers, among thousands that have three."""
    few = PartitionState(replicas=(1, 2, 3), isr=(1, 2, 3), leader=1, leader_epoch=0, partition_epoch=0)
    many = PartitionState(replicas=WIDE, isr=WIDE, leader=100, leader_epoch=0, partition_epoch=0)
    rows: list[Row] = []
    for number in range(3000):
        state = many if number % 1000 == 7 else few
        rows.append(made_of(state, len(rows), topic_id="a", partition_id=number))
    for size in (0, 5, 299, 1, 300):
        columns = {"topic_id": "a", "partition_id": 7, "isr": [*WIDE[:size]], "leader": -2, "leader_recovery_state": -1}
        rows.append({**rows[0], **dict.fromkeys(("replicas", "adding_replicas", "removing_replicas")), **columns})
        rows[-1] |= {"offset": len(rows) - 1, "type": "PARTITION_CHANGE_RECORD"}
        rows[-1] |= dict.fromkeys(("eligible_leader_replicas", "last_known_elr"))
    found = run(plan(len(rows)), [batch(rows)])
    assert [len(row["isr"]) for row in found.history[-5:]] == [0, 5, 299, 1, 300]
    assert found.history[-1]["brokers"] == [*WIDE[1:]]
    assert found.history[-1]["joined"] == [*WIDE[1:]]
    assert [len(row["replicas"]) for row in found.history[:3000]] == [300 if n % 1000 == 7 else 3 for n in range(3000)]


def test_one_record_that_clears_more_partitions_than_find_room_at_once() -> None:
    count = 5000
    held = PartitionState((1, 2), (1,), 1, 0, 0, elr=(2,))
    rows: list[Row] = [_topic(0, "orders", "a")]
    rows += [made_of(held, 1 + number, topic_id="a", partition_id=number) for number in range(count)]
    rows.append({**_topic(count + 1, "", ""), "type": "CLEAR_ELR_RECORD", "data": '{"topicName": ""}'})
    rows.append({**rows[-1], "offset": count + 2, "data": '{"topicName": "orders"}'})
    first, rest = batch(rows[: count + 1]), batch(rows[count + 1 :])
    found = run(plan(count + 3), [first, rest])
    cleared = [row for row in found.history if row["kinds"] == ["elr_cleared"]]
    assert [row["partition"] for row in cleared] == [*range(count)]
    assert {row["offset"] for row in cleared} == {count + 1}
    assert {row["partition_epoch"] for row in found.states[count + 3]["partitions"]} == {1}
    assert len(empty_changes(1, 0).longs[0]) < count


def _topic(offset: int, name: str, topic_id: str) -> Row:
    body = f'{{"name": "{name}", "topicId": "{topic_id}"}}'
    row: Row = {"offset": offset, "epoch": 1, "append_time": offset, "control": False}
    return {**row, "type": "TOPIC_RECORD", "data": body}


def test_slices_and_nulls_with_values_behind_them_are_read_right() -> None:
    """Arrow may keep values behind a null, and a slice keeps its column's values."""
    chance = random.Random(3)  # noqa: S311 - the seed makes a failure repeatable
    story = [
        Record(0, 0, any_change(chance, whole=True)),
        *[Record(n, n, any_change(chance, whole=False)) for n in range(1, 40)],
    ]
    rows = batch([record_row(ONE, "a", record) for record in story])
    expected = run(plan(40), [rows])
    assert run(plan(40), [pa.concat_batches([rows.slice(30), rows]).slice(10)]) == expected
    isr = rows["isr"]
    width = 2
    values = np.where(np.repeat(isr.is_null().to_numpy(zero_copy_only=False), width), 77, 0)
    ends = np.arange(0, len(values) + 1, width, dtype=np.int32)
    hidden = pa.ListArray.from_arrays(pa.array(ends), pa.array(values, pa.int32()), mask=pa.array([True] * len(isr)))
    nothing = pa.nulls(len(isr), isr.type)
    place = rows.schema.get_field_index("isr")
    assert run(plan(40), [rows.set_column(place, rows.schema.field(place), hidden.cast(isr.type))]) == run(
        plan(40), [rows.set_column(place, rows.schema.field(place), nothing)]
    )


@pytest.mark.parametrize("partition", [0, 2**31 - 1, -1])
def test_any_number_is_a_partition(partition: int) -> None:
    row = made_of(PartitionState((1,), (1,), 1, 0, 0), 0, topic_id="a", partition_id=partition)
    assert run(plan(1), [batch([row])]).history[0]["partition"] == partition
