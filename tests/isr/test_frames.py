"""The history of all partitions of a log, against what Kafka's dump says and the same rules in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pytest

from tests.captures import capture
from tests.isr.logs import Stories, log_records, partition_records
from tests.isr.random_logs import Row, any_story, bronze_row, record_row
from tests.isr.told import batch, history_of
from tests.kraft.dumps import DumpedRecord, parse_dump
from transforms.isr.history import ChangeKind, ClassifiedChange, Record, step_of, steps
from transforms.isr.partition import Change
from transforms.kernel.replay import DecodedCheckpoint, Plan, TableKind, replay
from transforms.kraft.replay.extent import Extent

# Real shrinks, expansions and leader moves; elections of all kinds, reassignments, cleared ELRs, removed topics.
CAPTURES = {
    f"{version}.{stage}": (version, stage)
    for version, stage in [
        *[(version, stage) for version in ("3.5.2", "3.6.2", "3.9.1") for stage in ("6", "7")],
        *[("4.3.1-kraft", stage) for stage in ("2", "7", "12", "upgrade-3-done")],
    ]
}
ONE = "one"
Key = tuple[str, str, int, int]
Told = dict[Key, Row]


def told_by(name: str, history: pl.DataFrame) -> Told:
    told: Told = {(name, row["topic_id"], row["partition"], row["offset"]): row for row in history.to_dicts()}
    assert len(told) == history.height
    return told


def wanted(name: str, stories: Stories) -> dict[Key, ClassifiedChange]:
    return {
        (name, topic_id, partition, step.offset): step
        for (topic_id, partition), story in stories.items()
        for step in steps(story)
    }


@pytest.fixture(scope="module")
def dumped() -> dict[str, list[DumpedRecord]]:
    found = {name: log_records(capture(*which), 3001) for name, which in CAPTURES.items()}
    assert all(records[0].offset == 0 for records in found.values())
    return found


@pytest.fixture(scope="module")
def of_captures(dumped: dict[str, list[DumpedRecord]]) -> Told:
    told: Told = {}
    for name, records in dumped.items():
        told |= told_by(name, history_of(bronze_row(each, name) for each in records))
    return told


def test_the_history_of_every_partition_is_what_the_dump_says_epoch_by_epoch(
    of_captures: Told, dumped: dict[str, list[DumpedRecord]]
) -> None:
    expected: dict[Key, ClassifiedChange] = {}
    for name, records in dumped.items():
        gone: Stories = {}
        expected |= wanted(name, partition_records(records, gone))
        expected |= wanted(name, gone)
    assert {key: step_of(row) for key, row in of_captures.items()} == expected
    kinds = Counter(kind for step in expected.values() for kind in step.kinds)
    assert {*ChangeKind} - {*kinds} <= {
        ChangeKind.REPLACED,
        ChangeKind.REORDERED,
        ChangeKind.REASSIGNMENT_CHANGED,
        ChangeKind.DIRECTORIES,
    }
    assert len(expected) > 5_000


def test_a_row_says_whom_it_concerns_and_which_election_it_was(of_captures: Told) -> None:
    for row in of_captures.values():
        step = step_of(row)
        before = step.before
        assert row["election"] == step.election
        assert (tuple(row["departed"]), tuple(row["joined"])) == (step.left, step.joined)
        concerned = {*step.left, *step.joined}
        if before is None or ChangeKind.LEADER_MOVE in step.kinds or ChangeKind.LEADER_LOST in step.kinds:
            concerned |= {step.after.leader, -1 if before is None else before.leader}
        concerned |= {*(() if before is None else before.elr)} ^ {*step.after.elr}
        assert concerned - {-1} <= {*row["brokers"]}, row
        assert row["brokers"] == sorted({*row["brokers"]})
        assert -1 not in row["brokers"]


def test_a_leaderless_time_begins_where_the_leader_was_lost(of_captures: Told) -> None:
    lost: dict[tuple[str, str, int], int] = {}
    healed = 0
    for key in sorted(of_captures, key=lambda key: key[3]):
        row = of_captures[key]
        partition = key[:3]
        had_none = row["leader_before"] == -1
        assert row["leaderless_since"] == (lost[partition] if had_none else None)
        healed += had_none and row["leader"] >= 0
        if row["leader"] == -1:
            lost.setdefault(partition, row["append_time"])
        else:
            lost.pop(partition, None)
    assert healed > 50


CUT = 30
END = 1000


@pytest.fixture(scope="module")
def random_stories() -> dict[str, list[Record]]:
    return {f"topic-{seed}": list(any_story(seed)) for seed in range(300)}


def rows_of(topic: str, story: Iterable[Record]) -> list[Row]:
    return [record_row(ONE, topic, record) for record in story]


@pytest.fixture(scope="module")
def told(random_stories: Mapping[str, list[Record]]) -> Told:
    found: Told = {}
    for topic, story in random_stories.items():
        rows = rows_of(topic, story)
        random.Random(7).shuffle(rows)  # noqa: S311 - order must not matter
        found |= told_by(ONE, history_of(rows))
    return found


def test_any_records_are_told_by_the_rules(told: Told, random_stories: dict[str, list[Record]]) -> None:
    found = {key: step_of(row) for key, row in told.items()}
    assert found == wanted(ONE, {(topic, 0): story for topic, story in random_stories.items()})
    assert {kind for step in found.values() for kind in step.kinds} == {*ChangeKind}


def test_a_history_goes_on_from_a_kept_state_which_is_no_change_itself(
    told: Told, random_stories: dict[str, list[Record]]
) -> None:
    whole = {key: row for key, row in told.items() if key[3] >= CUT}
    rest: Told = {}
    for topic, story in random_stories.items():
        rows = rows_of(topic, story)
        plan = Plan(ONE, Extent(END), keep_at=CUT)
        [kept] = [each.rows for each in replay(plan, [batch(rows)]) if each.kind == TableKind.KEPT]
        later = [row for row in rows if row["offset"] >= CUT]
        rest |= told_by(ONE, history_of(later, Plan(ONE, Extent(END)), kept["kept"][0].as_py()))
    assert rest == whole
    assert min(key[3] for key in rest) == CUT


def test_topics_give_their_names_and_a_change_of_no_partition_is_none() -> None:
    made, changed = Change((1, 2), (1, 2), 1, whole=True), Change(isr=(1,))
    body = '{"name": "orders", "topicId": "A"}'
    topic: dict[str, Any] = {"offset": 0, "epoch": 1, "append_time": 0, "control": False}
    rows = [
        {**topic, "type": "TOPIC_RECORD", "data": body},
        record_row(ONE, "A", Record(1, 0, made)),
        record_row(ONE, "A", Record(2, 0, changed)),
        record_row(ONE, "B", Record(3, 0, changed)),
        record_row(ONE, "C", Record(4, 0, made)),
    ]
    found = told_by(ONE, history_of(rows))
    assert {(key[1], key[3]): row["topic"] for key, row in found.items()} == {
        ("A", 1): "orders",
        ("A", 2): "orders",
        ("C", 4): None,
    }


def test_what_a_base_checkpoint_holds_is_where_a_history_begins() -> None:
    """As if the log began there: its partitions are no changes, and the first change of each has a before."""
    files = parse_dump(capture("4.3.1-kraft", "12") / "dump-log-3001.txt.gz")
    begin = 949
    kept = files["00000000000000000949-0000000001.checkpoint"]
    records = [each for name, mine in files.items() if name.endswith(".log") for each in mine if each.offset >= begin]
    base = DecodedCheckpoint(None, True, lambda: [batch(bronze_row(each, ONE) for each in kept)])
    plan = Plan(ONE, Extent(records[-1].offset + 1, begin, begin), checkpoints={begin: base})
    found = told_by(ONE, history_of([bronze_row(each, ONE) for each in records], plan))
    assert min(key[3] for key in found) >= begin
    gone: Stories = {}
    stories = partition_records([*kept, *records], gone)
    expected = wanted(ONE, stories) | wanted(ONE, gone)
    # A checkpoint counts its records from 0, so they are those below its end here.
    later = {key: step for key, step in expected.items() if key[3] >= begin}
    assert {key: step_of(row) for key, row in found.items()} == later
    assert all(row["isr_before"] is not None for row in found.values())
