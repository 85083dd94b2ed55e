"""CLEAR_ELR replayed: partitions lose their eligible leader replicas, and no record that changes state is passed over."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.sources.kraft.log import KraftLogDataSource
from schemas.bronze import LOG_RECORD_COLUMNS, RUN_COLUMNS
from schemas.kraft.feature_levels import ELR_VERSION
from schemas.kraft.records import CLEAR_ELR, PARTITION_TYPES, RECORD_TYPES
from tests.captures import capture, stages
from tests.conftest import KEY_ENV
from tests.held import held, held_log, hold
from tests.kraft.dumps import DumpedRecord, log_folder, parse_dump
from tests.pipeline import expected
from transforms.clusters import CLUSTER
from transforms.explain.keys import parse_key
from transforms.explain.records import partition_states, partition_versions, row_events
from transforms.kraft.replay.compaction import compacted_below, compacted_then
from transforms.kraft.replay.entities import READERS
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.image import Log, image
from transforms.kraft.replay.partitions import fold_partitions
from transforms.kraft.replay.transactions import MARKERS
from transforms.kraft.replay.verify import checkpoint_differences, checkpoint_records

RECORDS = StructType(list(LOG_RECORD_COLUMNS))
RELEASE = "4.3.1-kraft"
# Of the checkpoints of these clusters that are compared: all metadata is kept in them.
LEVEL = 30
Row = dict[str, Any]
# Of each partition (topic id, number) ELR, last known ELR, partition epoch, leader epoch and the offset of its last change.
Held = dict[tuple[str, int], tuple[list[int], list[int], int, int, int]]


def row(offset: int, kind: str, body: Row | None = None, **columns: Any) -> Row:
    data = None if body is None else json.dumps(body)
    common = {"offset": offset, "epoch": 1, "append_time": 1000 + offset, "control": False, "version": 0}
    return {**common, "type": kind, "data": data, **columns}


def topic(offset: int, name: str, topic_id: str) -> Row:
    return row(offset, "TOPIC_RECORD", {"name": name, "topicId": topic_id})


def removal(offset: int, topic_id: str) -> Row:
    return row(offset, "REMOVE_TOPIC_RECORD", {"topicId": topic_id})


def made(offset: int, topic_id: str, partition: int = 0, **more: Any) -> Row:
    whole = {"replicas": [1, 2], "isr": [1], "adding_replicas": [], "removing_replicas": [], "leader": 1}
    whole |= {"leader_epoch": 5, "partition_epoch": 10, "leader_recovery_state": 0}
    return row(offset, "PARTITION_RECORD", topic_id=topic_id, partition_id=partition, **{**whole, **more})


def change(offset: int, topic_id: str, partition: int = 0, **more: Any) -> Row:
    same = {"leader": -2, "leader_recovery_state": -1}
    return row(offset, "PARTITION_CHANGE_RECORD", topic_id=topic_id, partition_id=partition, **{**same, **more})


def clear(offset: int, name: str = "") -> Row:
    return row(offset, "CLEAR_ELR_RECORD", {"topicName": name})


def bronze(spark: SparkSession, logs: Mapping[str, list[Row]]) -> DataFrame:
    """The records of each cluster's log."""
    names = RECORDS.fieldNames()
    rows = [(cluster, *(each.get(name) for name in names)) for cluster, log in logs.items() for each in log]
    return spark.createDataFrame(rows, StructType([RUN_COLUMNS[0], *RECORDS]))


def whole_log(records: DataFrame, end: int, **more: Any) -> Log:
    return held_log(records, {ONE: Extent(end, **more)})


def told_by_cluster(log: Log) -> dict[str, Held]:
    found: dict[str, Held] = defaultdict(dict)
    for each in image(log)["partitions"].collect():
        found[each[CLUSTER]][each["topic_id"], each["partition"]] = (
            each["eligible_leader_replicas"] or [],
            each["last_known_elr"] or [],
            each["partition_epoch"],
            each["leader_epoch"],
            each["kraft_offset"],
        )
    return found


def told(log: Log) -> Held:
    return told_by_cluster(log)[ONE]


# Types that replay to nothing, and why.
WITHOUT_EFFECT = {
    "NO_OP_RECORD": "moves the offset and the time on",
    "ACCESS_CONTROL_RECORD": "in the message schemas up to 3.4, written and replayed by no release",
}


def test_every_declared_record_type_is_replayed_or_named_as_one_without_effect() -> None:
    """A type that is declared is decoded without a problem: if nothing reads it, the state is wrong and nobody says so."""
    replayed = {*READERS, *(kind.name for kind in PARTITION_TYPES), *MARKERS, CLEAR_ELR.name}
    assert {record.name for record in RECORD_TYPES.values()} == replayed | set(WITHOUT_EFFECT)
    assert not replayed & set(WITHOUT_EFFECT)


ONE = "one"
HELD = {"eligible_leader_replicas": [2], "last_known_elr": [1]}

LOGS: dict[str, tuple[list[Row], Held]] = {
    "both lists of the topic named are emptied, and the partition epoch rises": (
        [topic(0, "a", "A"), topic(1, "b", "B"), made(2, "A", **HELD), made(3, "B", **HELD), clear(4, "a")],
        {("A", 0): ([], [], 11, 5, 4), ("B", 0): ([2], [1], 10, 5, 3)},
    ),
    "an empty name means all topics": (
        [topic(0, "a", "A"), topic(1, "b", "B"), made(2, "A", **HELD), made(3, "B", last_known_elr=[1]), clear(4)],
        {("A", 0): ([], [], 11, 5, 4), ("B", 0): ([], [], 11, 5, 4)},
    ),
    "a partition that has none keeps its epoch": (
        [topic(0, "a", "A"), made(1, "A"), change(2, "A", eligible_leader_replicas=[]), clear(3), clear(4, "a")],
        {("A", 0): ([], [], 11, 5, 2)},
    ),
    "a second one finds nothing to clear": (
        [topic(0, "a", "A"), made(1, "A", **HELD), clear(2), clear(3, "a"), clear(4)],
        {("A", 0): ([], [], 11, 5, 2)},
    ),
    "what is held again afterwards stays, or is cleared again": (
        [
            topic(0, "a", "A"),
            made(1, "A", **HELD),
            made(2, "A", 1, **HELD),
            clear(3, "a"),
            change(4, "A", eligible_leader_replicas=[2]),
            change(5, "A", 1, last_known_elr=[2]),
            clear(6, "other"),
            clear(7, "a"),
            change(8, "A", 1, eligible_leader_replicas=[1]),
        ],
        {("A", 0): ([], [], 13, 5, 7), ("A", 1): ([1], [], 14, 5, 8)},
    ),
    "a name that was made again means the topic of that time": (
        [
            topic(0, "a", "OLD"),
            made(1, "OLD", **HELD),
            removal(2, "OLD"),
            topic(3, "a", "NEW"),
            made(4, "NEW", **HELD),
            clear(5, "a"),
            change(6, "NEW", eligible_leader_replicas=[2]),
            removal(7, "NEW"),
            topic(8, "a", "NEWEST"),
            made(9, "NEWEST", **HELD),
        ],
        {("NEWEST", 0): ([2], [1], 10, 5, 9)},
    ),
    "a topic that is made later keeps what it has": (
        [clear(0), clear(1, "a"), topic(2, "a", "A"), made(3, "A", **HELD)],
        {("A", 0): ([2], [1], 10, 5, 3)},
    ),
    "a PartitionRecord that says nothing of them leaves nothing to clear": (
        [topic(0, "a", "A"), made(1, "A", **HELD), made(2, "A"), clear(3)],
        {("A", 0): ([], [], 10, 5, 2)},
    ),
}


@pytest.fixture(scope="module")
def replayed(spark: SparkSession) -> dict[str, Held]:
    """What each log comes to: the logs stand together as clusters."""
    logs = {what: rows for what, (rows, _) in LOGS.items()}
    return told_by_cluster(held_log(bronze(spark, logs), {what: Extent(len(rows)) for what, rows in logs.items()}))


@pytest.mark.parametrize("what", LOGS)
def test_a_log_with_clear_elr_replays_as_the_controller_does(replayed: dict[str, Held], what: str) -> None:
    _, wanted = LOGS[what]
    assert replayed[what] == wanted


def test_one_replays_the_same_after_any_state(spark: SparkSession) -> None:
    """As between two runs: the topic and what its partitions hold are known from what an earlier run has kept."""
    rows, wanted = LOGS["what is held again afterwards stays, or is cleared again"]
    records = bronze(spark, {ONE: rows})
    whole = whole_log(records, len(rows))
    for cut in (3, 6):
        state = held(compacted_below(whole, {ONE: cut}))
        rest = held_log(records, {ONE: Extent(len(rows), start=cut)}, state)
        assert told(rest) == wanted
        assert told(compacted_then(state, whole, {ONE: cut})) == wanted


def test_a_record_clears_nothing_of_another_cluster(spark: SparkSession) -> None:
    records = bronze(spark, {ONE: [topic(0, "a", "A"), made(1, "A", **HELD), clear(2), change(3, "A", isr=[1])]})
    other = records.where("type <> 'CLEAR_ELR_RECORD'").withColumn(CLUSTER, F.lit("two"))
    log = held_log(records.unionByName(other), {ONE: Extent(4), "two": Extent(4)})
    cleared = {each[CLUSTER]: each["eligible_leader_replicas"] for each in image(log)["partitions"].collect()}
    assert cleared == {ONE: [], "two": [2]}


def test_one_in_an_aborted_transaction_clears_nothing(spark: SparkSession) -> None:
    records = bronze(spark, {ONE: [topic(0, "a", "A"), made(1, "A", **HELD), clear(3), change(6, "A", isr=[1, 2])]})
    assert told(whole_log(records, 7, discarded=((2, 4),))) == {("A", 0): ([2], [1], 11, 5, 6)}


def test_the_story_of_a_partition_names_the_record_that_cleared_it(spark: SparkSession) -> None:
    rows, _ = LOGS["what is held again afterwards stays, or is cleared again"]
    records = hold(bronze(spark, {ONE: rows}))
    lives = [each.asDict() for each in row_events(records, parse_key("topics", "a")).collect()]
    states = partition_states(records, parse_key("partitions", "a/0"), lives).collect()
    found = partition_versions([each.asDict(recursive=True) for each in states], lives, None)
    assert [(version.offset, version.type) for version in found] == [
        (1, "PARTITION_RECORD"),
        (3, "CLEAR_ELR_RECORD"),
        (4, "PARTITION_CHANGE_RECORD"),
        (7, "CLEAR_ELR_RECORD"),
    ]
    assert [(version.row or {})["partition_epoch"] for version in found] == [10, 11, 12, 13]


# Stages of one cluster, by the last one: whose log holds that of all of them, and the checkpoint that it starts from.
LIVES = {
    "12-broker-unregistered": (3001, tuple(name for name in stages(RELEASE) if name[0].isdigit()), None),
    "upgrade-4-used-and-downgraded": (
        3001,
        tuple(name for name in stages(RELEASE) if name.startswith("upgrade")),
        None,
    ),
    "static-3-log-starts-at-snapshot": (
        3000,
        tuple(name for name in stages(RELEASE) if name.startswith("static")),
        246,
    ),
}


def clears(stage: str) -> dict[tuple[str, int], list[int]]:
    """Partitions (topic id, number) that a CLEAR_ELR changed, with its offsets: Kafka's dump, read record by record.

    Kafka raises the partition epoch with it, as its checkpoints show; the independent replay of the dump in
    expected.json does not.
    """
    held: dict[tuple[str, int], dict[str, list[int]]] = {}
    names: dict[str, str] = {}
    found: dict[tuple[str, int], list[int]] = {}
    for record in logged(stage):
        data = record.data or {}
        if record.type == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        elif record.type in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            lists = {
                name: data[name] for name in ("eligibleLeaderReplicas", "lastKnownElr") if data.get(name) is not None
            }
            key = (data["topicId"], data["partitionId"])
            held[key] = {**({} if record.type == "PARTITION_RECORD" else held[key]), **lists}
        elif record.type == "REMOVE_TOPIC_RECORD":
            held = {key: lists for key, lists in held.items() if key[0] != data["topicId"]}
        elif record.type == "CLEAR_ELR_RECORD":
            for key, lists in held.items():
                if data["topicName"] in ("", names[key[0]]) and any(lists.values()):
                    found.setdefault(key, []).append(record.offset)
                    held[key] = {}
    return found


def logged(stage: str) -> list[DumpedRecord]:
    """The records of the stage's log, after those of the checkpoint it starts with (at its end) if it does."""
    controller, _, start = LIVES[stage]
    files = parse_dump(capture(RELEASE, stage) / f"dump-log-{controller}.txt.gz")
    base = [name for name in files if name.endswith(".checkpoint") and int(name[:20]) == start]
    log = [record for name, records in files.items() if name.endswith(".log") for record in records]
    return [*(record for name in base for record in files[name]), *(r for r in log if r.offset >= (start or 0))]


@pytest.mark.slow
@pytest.mark.parametrize("last", LIVES)
def test_partitions_of_a_kraft_cluster_are_what_kafkas_own_dump_and_checkpoints_say(
    spark: SparkSession, last: str
) -> None:
    controller, lived, base = LIVES[last]
    spark.dataSource.register(KraftLogDataSource)
    folder = log_folder(RELEASE, last, controller)
    files = [path.name for path in sorted(folder.glob("*.checkpoint")) if not path.name.startswith("0" * 20)]
    records = read(spark, folder, controller)
    for name in files:
        records = records.unionByName(read(spark, folder, controller, checkpoint=name))
    records = hold(records.withColumn(CLUSTER, F.lit(ONE)))
    truths = {stage: expected.load(capture(RELEASE, stage)) for stage in lived}
    log = whole_log(records, max(truth["end_offset"] for truth in truths.values()), base=base)
    ends = F.array(*[F.lit(truth["end_offset"]) for truth in truths.values()])
    copies = log.partition_records.withColumn("end", F.explode(F.filter(ends, lambda end: end > F.col("offset"))))
    cleared_in = clears(last)
    assert cleared_in or base is not None
    found = [each.asDict() for each in fold_partitions(copies, ["end"]).collect()]
    for stage, truth in truths.items():
        names = {each["value"]: each["key"] for each in truth["state"]["topics"]}
        mine = [each for each in found if each["end"] == truth["end_offset"] and each["topic_id"] in names]
        rows = {(names[each["topic_id"]], each["partition_id"]): compared(each) for each in mine}
        wanted = {key: wanted_of(each) for key, each in expected.partitions(truth["state"]).items()}
        for (topic_id, partition), offsets in cleared_in.items():
            if (key := (names.get(topic_id), partition)) in wanted:
                wanted[key]["partition_epoch"] += sum(o < truth["end_offset"] for o in offsets)
        assert rows == wanted, stage
    own = sorted({int(name[:20]) for name in files} - {base})
    if own:
        theirs = Log.of_checkpoints(checkpoint_records(records, {ONE: own}))
        assert checkpoint_differences(log, theirs, {ONE: dict.fromkeys(own, LEVEL)}).collect() == []


@pytest.mark.parametrize("elr", [0, 1])
def test_a_checkpoint_without_the_feature_has_no_lists(spark: SparkSession, elr: int) -> None:
    """What was written while the feature was on is in the log alone; with the feature, the lists have to be the same."""

    def level(offset: int, number: int) -> Row:
        return row(offset, "FEATURE_LEVEL_RECORD", {"name": ELR_VERSION, "featureLevel": number})

    log = [topic(0, "a", "A"), level(1, 1), made(2, "A", last_known_elr=[1]), level(3, elr)]
    own = [topic(3, "a", "A"), *([level(3, elr)] if elr else []), made(3, "A")]
    replayed, theirs = whole_log(bronze(spark, {ONE: log}), 4), Log.of_checkpoints(bronze(spark, {ONE: own}))
    found = checkpoint_differences(replayed, theirs, {ONE: {4: LEVEL}}).collect()
    assert [each["subject"] for each in found] == (["partitions A/0"] if elr else [])


def read(spark: SparkSession, folder: Path, controller: int, **options: str) -> DataFrame:
    reader = spark.read.format("kraft_log").option("controller", str(controller)).option("fingerprint_key_env", KEY_ENV)
    return reader.options(**options).load(str(folder.parents[1]))


def compared(each: Row) -> Row:
    return {
        "replicas": each["replicas"],
        "isr": each["isr"],
        "leader": each["leader"],
        "leader_epoch": each["leader_epoch"],
        "partition_epoch": each["partition_epoch"],
        "recovery": each["leader_recovery_state"],
        "adding": each["adding_replicas"],
        "removing": each["removing_replicas"],
        "elr": each["eligible_leader_replicas"] or [],
        "last_known_elr": each["last_known_elr"] or [],
    }


def wanted_of(value: Row) -> Row:
    return {"elr": [], "last_known_elr": [], **value}
