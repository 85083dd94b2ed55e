"""The history of all partitions in one query, against what Kafka's dump says and the same rules in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.captures import capture
from tests.isr.logs import Stories, log_records, partition_records
from tests.isr.random_logs import Row, any_story, bronze, bronze_row, record_row
from tests.kraft.dumps import DumpedRecord, parse_dump
from transforms.clusters import CLUSTER
from transforms.isr.frames import isr_history, step_of
from transforms.isr.history import Kind, Record, Step, steps
from transforms.isr.partition import Change
from transforms.kraft.replay.compaction import compacted_below
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.image import Log

# Real shrinks, expansions and leader moves; elections of all kinds, reassignments, cleared ELRs, removed topics.
CAPTURES = {
    f"{version}.{stage}": (version, stage)
    for version, stage in [
        *[(version, stage) for version in ("3.5.2", "3.6.2", "3.9.1") for stage in ("6", "7")],
        *[("4.3.1-kraft", stage) for stage in ("2", "7", "12", "upgrade-3-done")],
    ]
}
Told = dict[tuple[str, str, int, int], Row]


def told_by(history: DataFrame) -> Told:
    rows = [row.asDict(recursive=True) for row in history.collect()]
    told = {(row[CLUSTER], row["topic_id"], row["partition"], row["offset"]): row for row in rows}
    assert len(told) == len(rows)
    return told


def wanted(cluster: str, stories: Stories) -> dict[tuple[str, str, int, int], Step]:
    return {
        (cluster, topic_id, partition, step.offset): step
        for (topic_id, partition), story in stories.items()
        for step in steps(story)
    }


@pytest.fixture(scope="module")
def dumped() -> dict[str, list[DumpedRecord]]:
    found = {name: log_records(capture(*which), 3001) for name, which in CAPTURES.items()}
    assert all(records[0].offset == 0 for records in found.values())
    return found


@pytest.fixture(scope="module")
def of_captures(spark: SparkSession, dumped: dict[str, list[DumpedRecord]]) -> Told:
    records = bronze(spark, [bronze_row(each, name) for name, mine in dumped.items() for each in mine])
    extents = {name: Extent(mine[-1].offset + 1) for name, mine in dumped.items()}
    return told_by(isr_history(Log.of(records.localCheckpoint(), extents).partition_records))


def test_the_history_of_every_partition_is_what_the_dump_says_epoch_by_epoch(
    of_captures: Told, dumped: dict[str, list[DumpedRecord]]
) -> None:
    expected: dict[tuple[str, str, int, int], Step] = {}
    for name, records in dumped.items():
        gone: Stories = {}
        expected |= wanted(name, partition_records(records, gone))
        expected |= wanted(name, gone)
    assert {key: step_of(row) for key, row in of_captures.items()} == expected
    kinds = Counter(kind for step in expected.values() for kind in step.kinds)
    assert {*Kind} - {*kinds} <= {Kind.REPLACED, Kind.REORDERED, Kind.REASSIGNMENT_CHANGED, Kind.DIRECTORIES}
    assert len(expected) > 5_000


def test_a_row_says_whom_it_concerns_and_which_election_it_was(of_captures: Told) -> None:
    for row in of_captures.values():
        step = step_of(row)
        before = step.before
        assert row["election"] == step.election
        assert (tuple(row["departed"]), tuple(row["joined"])) == (step.left, step.joined)
        concerned = {*step.left, *step.joined}
        if before is None or Kind.LEADER_MOVE in step.kinds or Kind.LEADER_LOST in step.kinds:
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


@pytest.fixture(scope="module")
def random_stories() -> dict[str, list[Record]]:
    return {f"topic-{seed}": list(any_story(seed)) for seed in range(300)}


@pytest.fixture(scope="module")
def random_log(spark: SparkSession, random_stories: dict[str, list[Record]]) -> Log:
    rows = [record_row("one", topic, record) for topic, story in random_stories.items() for record in story]
    random.Random(7).shuffle(rows)  # noqa: S311 - order must not matter
    log = Log.of(bronze(spark, rows), {"one": Extent(1000)}, clearing=False)
    return replace(log, partition_records=log.partition_records.localCheckpoint())


def test_any_records_are_told_by_the_rules(random_log: Log, random_stories: dict[str, list[Record]]) -> None:
    told = {key: step_of(row) for key, row in told_by(isr_history(random_log.partition_records)).items()}
    assert told == wanted("one", {(topic, 0): story for topic, story in random_stories.items()})
    assert {kind for step in told.values() for kind in step.kinds} == {*Kind}


def test_a_history_goes_on_from_a_kept_state_which_is_no_change_itself(random_log: Log) -> None:
    whole = told_by(isr_history(random_log.partition_records, since={"one": CUT}))
    rest = compacted_below(random_log, {"one": CUT}).union(random_log.since({"one": CUT}))
    told = told_by(isr_history(rest.partition_records))
    # Of a partition that had no leader at the cut, a kept state knows the last change only.
    for row in (*told.values(), *whole.values()):
        row["leaderless_since"] = None if row["leaderless_since"] is None else 0
    assert told == whole
    assert min(key[3] for key in told) == CUT


def test_topics_give_their_names_and_a_change_of_no_partition_is_none(spark: SparkSession) -> None:
    made, changed = Change((1, 2), (1, 2), 1, whole=True), Change(isr=(1,))
    rows = [
        record_row("one", "A", Record(0, 0, made)),
        record_row("one", "A", Record(1, 0, changed)),
        record_row("one", "B", Record(2, 0, changed)),
        record_row("two", "A", Record(3, 0, made)),
    ]
    log = Log.of(bronze(spark, rows), {"one": Extent(9), "two": Extent(9)}, clearing=False)
    topics = spark.createDataFrame([("one", "A", "orders")], "cluster string, topic_id string, topic string")
    told = told_by(isr_history(log.partition_records, topics, {"one": 1}))
    assert {(key[0], key[1], key[3]): row["topic"] for key, row in told.items()} == {
        ("one", "A", 1): "orders",
        ("two", "A", 3): None,
    }


def test_what_a_base_checkpoint_holds_is_where_a_history_begins(spark: SparkSession) -> None:
    """As if the log began there: its partitions are no changes, and the first change of each has a before."""
    files = parse_dump(capture("4.3.1-kraft", "12") / "dump-log-3001.txt.gz")
    begin = 949
    kept = files["00000000000000000949-0000000001.checkpoint"]
    records = [each for name, mine in files.items() if name.endswith(".log") for each in mine if each.offset >= begin]
    rows = [{**bronze_row(each, "one"), "checkpoint_offset": begin} for each in kept]
    extents = {"one": Extent(records[-1].offset + 1, begin, begin)}
    log = Log.of(bronze(spark, rows + [bronze_row(each, "one") for each in records]).localCheckpoint(), extents)
    told = told_by(isr_history(log.partition_records, since={"one": begin}))
    assert min(key[3] for key in told) >= begin
    gone: Stories = {}
    stories = partition_records([*kept, *records], gone)
    expected = wanted("one", stories) | wanted("one", gone)
    # A checkpoint counts its records from 0, so they are those below its end here.
    later = {key: step for key, step in expected.items() if key[3] >= begin}
    assert {key: step_of(row) for key, row in told.items()} == later
    assert all(row["isr_before"] is not None for row in told.values())
