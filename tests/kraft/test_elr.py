"""CLEAR_ELR replayed: partitions lose their eligible leader replicas, and no record that changes state is passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.kraft.feature_levels import ELR_VERSION
from schemas.kraft.records import CLEAR_ELR, PARTITION_TYPES, RECORD_TYPES
from tests.captures import capture, stages
from tests.kernel.logs import Outcome, batch, checkpoint_of, plan, run
from tests.kraft.dumps import DumpedRecord, log_folder, parse_dump
from tests.kraft.log_rows import Row, change, clear, made, removal, topic
from tests.pipeline import expected
from transforms.kernel.replay import DecodedCheckpoint
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.segments import decode_checkpoint, decode_segment
from transforms.kraft.replay.entities import READERS
from transforms.kraft.replay.transactions import MARKERS
from transforms.secrets import Fingerprinter

MASKING = Fingerprinter(b"tests")
RELEASE = "4.3.1-kraft"
# Of the checkpoints of these clusters that are compared: all metadata is kept in them.
LEVEL = 30
# Of each partition (topic id, number) ELR, last known ELR, partition epoch, leader epoch and the offset of its last change.
Held = dict[tuple[str, int], tuple[list[int], list[int], int, int, int]]


def replayed(rows: Sequence[Row], end: int | None = None, **more: Any) -> Outcome:
    """What a log comes to, with its history."""
    return run(plan(len(rows) if end is None else end, **more), [batch(rows)])


def told(found: Outcome) -> Held:
    """What the partitions hold at the end."""
    state = found.states[max(found.states)]["partitions"]
    return {(each["topic_id"], each["partition"]): _held(each) for each in state}


def _held(each: Row) -> tuple[list[int], list[int], int, int, int]:
    lists = (each["eligible_leader_replicas"] or [], each["last_known_elr"] or [])
    return (*lists, each["partition_epoch"], each["leader_epoch"], each["kraft_offset"])


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


HELD: dict[str, Any] = {"eligible_leader_replicas": [2], "last_known_elr": [1]}

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


@pytest.mark.parametrize("what", LOGS)
def test_a_log_with_clear_elr_replays_as_the_controller_does(what: str) -> None:
    rows, wanted = LOGS[what]
    assert told(replayed(rows)) == wanted


AGAIN = "what is held again afterwards stays, or is cleared again"


@pytest.mark.parametrize("cut", [3, 6])
def test_one_replays_the_same_after_any_state(cut: int) -> None:
    """As between two runs: the topic and what its partitions hold are known from what an earlier run has kept."""
    rows, wanted = LOGS[AGAIN]
    kept = replayed(rows[:cut], keep_at=cut).kept[cut]
    assert told(run(plan(len(rows)), [batch(rows[cut:])], kept)) == wanted


def test_one_in_an_aborted_transaction_clears_nothing() -> None:
    rows = [topic(0, "a", "A"), made(1, "A", **HELD), clear(3), change(6, "A", isr=[1, 2])]
    assert told(replayed(rows, 7, discarded=((2, 4),))) == {("A", 0): ([2], [1], 11, 5, 6)}


def test_the_story_of_a_partition_has_the_record_that_cleared_it() -> None:
    rows, _ = LOGS[AGAIN]
    found = [row for row in replayed(rows).history if row["partition"] == 0]
    assert [(row["offset"], row["kinds"], row["partition_epoch"]) for row in found] == [
        (1, ["created"], 10),
        (3, ["elr_cleared"], 11),
        (4, ["elr_gained"], 12),
        (7, ["elr_cleared"], 13),
    ]


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


@pytest.mark.parametrize("last", LIVES)
def test_partitions_of_a_kraft_cluster_are_what_kafkas_own_dump_and_checkpoints_say(last: str) -> None:
    controller, lived, base = LIVES[last]
    folder = log_folder(RELEASE, last, controller)
    checkpoints = {int(path.name[:20]): checkpoint(path) for path in folder.glob("*.checkpoint") if int(path.name[:20])}
    truths = {stage: expected.load(capture(RELEASE, stage)) for stage in lived}
    ends = sorted({truth["end_offset"] for truth in truths.values()})
    asked = plan(ends[-1], base=base, checkpoints=checkpoints, states_at=ends[:-1])
    found = run(asked, [rows for path in sorted(folder.glob("*.log")) for rows in segment(path)])
    cleared_in = clears(last)
    assert cleared_in or base is not None
    for stage, truth in truths.items():
        names = {each["value"]: each["key"] for each in truth["state"]["topics"]}
        mine = found.states[truth["end_offset"]]["partitions"]
        rows = {(each["topic"], each["partition"]): compared(each) for each in mine if each["topic_id"] in names}
        wanted = {key: wanted_of(each) for key, each in expected.partitions(truth["state"]).items()}
        for (topic_id, partition), offsets in cleared_in.items():
            if (key := (names.get(topic_id), partition)) in wanted:
                wanted[key]["partition_epoch"] += sum(o < truth["end_offset"] for o in offsets)
        assert rows == wanted, stage
    assert found.differences == []


def segment(path: Path) -> Iterator[pa.RecordBatch]:
    yield from decode_segment(path.read_bytes(), Origin(1, path.name), MASKING)


def checkpoint(path: Path) -> DecodedCheckpoint:
    origin = Origin(1, path.name, int(path.name[:20]))

    def records() -> Iterator[pa.RecordBatch]:
        yield from decode_checkpoint(path.read_bytes(), origin, MASKING)

    elr = any(ELR_VERSION in (data or "") for rows in records() for data in rows["data"].to_pylist())
    return DecodedCheckpoint(LEVEL, elr, records)


@pytest.mark.parametrize("elr", [False, True])
def test_a_checkpoint_without_the_feature_has_no_lists(elr: bool) -> None:
    """What was written while the feature was on is in the log alone; with the feature, the lists have to be the same."""
    log = [topic(0, "a", "A"), made(1, "A", last_known_elr=[1]), topic(2, "b", "B")]
    own = checkpoint_of([topic(0, "a", "A"), made(1, "A")], LEVEL, elr=elr)
    found = replayed(log, checkpoints={2: own}).differences
    assert [each["subject"] for each in found] == (["partitions A/0"] if elr else [])


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
