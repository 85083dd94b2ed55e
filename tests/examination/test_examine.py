"""The one pass over real captures: it continues from what it kept, asks for the whole log where it must, and fails by itself."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from polars.testing import assert_frame_equal

from jobs.evidence.feed import each_cluster
from jobs.run.cluster_pass import FEW_ROWS, passing
from jobs.sinks.parquet import NewFiles
from schemas.bronze import QUARANTINE
from schemas.examined import FEED
from schemas.gold import DIVERGENCES, ISR_HISTORY
from schemas.report import CheckResult
from tests.captures import capture
from tests.examination.one_pass import Files, Left, Outcome, examined, left_by
from tests.pipeline.logs import writable_copy
from transforms.examination.answers import COMPARED, FIRST, KEEPING, RECORDED, SECOND
from transforms.examination.made import AGAIN, ANSWERS, FAILURE, FOLD, INDEX, MEMORY, ROWS
from transforms.examination.memory import Memory
from transforms.examination.stories import Stories
from transforms.examination.task import Recorded
from transforms.isr.history import HOUR
from transforms.kraft.coverage import PlannedLog
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.quorum import Slice
from transforms.properties import PropertyFiles
from transforms.reconcile.judge.evidence import facts_of
from transforms.reconcile.judge.gates import run_checks
from transforms.units import FEED_SCHEMA, UnitKind

LOST = capture("3.9.1", "quota-removal")
# A later stage of a cluster after an earlier one.
LATER = [
    ("3.9.1", "4", "5"),
    ("3.9.1", "5", "8"),
    ("3.9.1", "8", "12"),
    ("3.6.2", "5", "8"),
    ("4.3.1-kraft", "7-elr-cleared", "8-unclean"),
]
HISTORY = ISR_HISTORY.full_name
# Of a first run all is new, and a kept state does not know how long a partition had been without a leader.
_OF_RUNS = ("status", "first_seen_run_id", "leaderless_since")


def rows_of(outcome: Outcome, *tables: str) -> set[str]:
    """Rows as texts, with their table."""
    return {
        f"{table} {sorted((name, str(value)) for name, value in row.items() if name not in _OF_RUNS)}"
        for table in tables
        for row in outcome.rows(table)
        # What an earlier run has seen and this one does not find any more.
        if row.get("status") != "resolved"
    }


def state_of(outcome: Outcome) -> set[str]:
    return rows_of(outcome, *outcome.tables - {HISTORY})


def compared_of(outcome: Outcome) -> Any:
    rows = (outcome.answers[COMPARED] or {}).get("row", ())
    return [
        {name: value for name, value in row.items() if name != "status"} for row in rows if row["status"] != "resolved"
    ]


def broken(outcome: Outcome) -> dict[str, Any]:
    """What breaks a rule, but for whether a run before had epochs to compare with."""
    return {name: rows for name, rows in outcome.answers[SECOND].items() if name != "earlier_epochs"}


@pytest.mark.parametrize(
    ("version", "earlier", "later"), LATER, ids=[f"{version}-{one}-{other}" for version, one, other in LATER]
)
def test_a_pass_that_goes_on_makes_what_a_pass_over_the_whole_log_makes(version: str, earlier: str, later: str) -> None:
    first = Files(capture(version, earlier)).examined()
    left = left_by(first)
    second = Files(capture(version, later), left)
    found, whole = second.examined("r2"), Files(capture(version, later)).examined("r2")
    assert second.start > 0, "it reads the newest part"
    assert len(state_of(whole)) > 100
    assert state_of(found) ^ state_of(whole) == set()
    assert compared_of(found) == compared_of(whole)
    # Each change of partitions is made once, whichever run made it.
    assert len(first.rows(HISTORY)) + len(found.rows(HISTORY)) == len(whole.rows(HISTORY))
    assert rows_of(first, HISTORY) | rows_of(found, HISTORY) == rows_of(whole, HISTORY)


@pytest.fixture(scope="module")
def left() -> tuple[Outcome, Left]:
    """What a run has found and left of a cluster that lost writes below the state that it kept."""
    first = Files(LOST).examined()
    assert {row["class"] for row in first.rows(DIVERGENCES.full_name)} == {"lost_write"}
    return first, left_by(first)


def judged(check_id: str, files: Files, outcome: Outcome) -> CheckResult:
    """A check, as a report has it."""
    facts = facts_of(files.given(), outcome.answers[FIRST], outcome.answers[SECOND], PropertyFiles()).facts
    [result] = [each for each in run_checks(facts) if each.id == check_id]
    return result


def unread_segment(tmp_path: Path) -> tuple[Path, int, Path]:
    """A capture's folder to change, with a controller that its log is not read from, and that one's segment."""
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    plan = Files(folder).found.plan
    assert plan is not None
    other = next(node for node in (3000, 3001, 3002) if node != plan.leading.controller_id)
    segment = folder / "kraft" / str(other) / "__cluster_metadata-0" / "00000000000000000000.log"
    return folder, other, segment


def test_damage_in_a_copy_that_the_log_is_not_read_from_is_damage(tmp_path: Path) -> None:
    """A controller that starts with it cuts its log off there (`LogLoader.recoverLog`) and loses records that it has acknowledged."""
    folder, other, segment = unread_segment(tmp_path)
    content = bytearray(segment.read_bytes())
    content[9_000] ^= 0xFF
    segment.write_bytes(bytes(content))
    files = Files(folder)
    outcome = files.examined()
    check = judged("CAP-02", files, outcome)
    assert check.verdict == "fail"
    assert f"controller {other}, {segment.name} at byte" in check.evidence[0]
    assert {row["class"] for row in outcome.rows(DIVERGENCES.full_name)} == set(), "its records are not read twice"


def test_a_batch_that_a_copy_lacks_is_damage_though_the_log_is_not_read_from_it(tmp_path: Path) -> None:
    """Between two intact batches of one segment, where each checksum is right. A controller that starts with it notices nothing."""
    folder, other, segment = unread_segment(tmp_path)
    content = segment.read_bytes()
    batches = [frame for frame in frames(content) if isinstance(frame, BatchHeader)]
    lost = batches[len(batches) // 2]
    segment.write_bytes(content[: lost.position] + content[lost.position + lost.size :])
    files = Files(folder)
    outcome = files.examined()
    check = judged("CAP-02", files, outcome)
    assert check.verdict == "fail"
    missing = lost.next_offset - lost.base_offset
    assert check.evidence == [
        f"controller {other}, {segment.name} at byte {lost.position}: gap: {missing} offsets missing before offset {lost.next_offset}"
    ]


@pytest.mark.parametrize("nodes", [(3001,), (3000, 3001, 3002)])
def test_a_damaged_base_offset_at_the_start_of_a_log_is_one_line(tmp_path: Path, nodes: tuple[int, ...]) -> None:
    """The CRC does not cover it. The log seemed to begin far behind, and each of its rows seemed lost."""
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    for node in nodes:
        segment = folder / "kraft" / str(node) / "__cluster_metadata-0" / "00000000000000000000.log"
        content = bytearray(segment.read_bytes())
        content[5] ^= 1
        segment.write_bytes(bytes(content))
    files = Files(folder)
    outcome = files.examined()
    said = "00000000000000000000.log at byte 0: baseOffset 65536 is damaged: the batch stands where offset 0 belongs"
    assert judged("CAP-02", files, outcome).evidence == [f"controller {node}, {said}" for node in nodes]
    assert {row["class"] for row in outcome.rows(DIVERGENCES.full_name)} == set()


def test_the_longest_copy_is_read_only_where_no_copy_without_damage_reaches(tmp_path: Path) -> None:
    """And the damage in its unread part is found nevertheless."""
    folder = writable_copy(capture("3.9.1", "5"), tmp_path / "capture")
    segments = {
        node: folder / "kraft" / str(node) / "__cluster_metadata-0" / "00000000000000000000.log"
        for node in (3000, 3001, 3002)
    }
    whole = segments[3001].read_bytes()
    batches = [frame for frame in frames(whole) if isinstance(frame, BatchHeader)]
    for node in (3000, 3002):
        segments[node].write_bytes(whole[: batches[-2].position])
    content = bytearray(whole)
    flipped = batches[len(batches) // 2]
    content[flipped.position + 70] ^= 1
    segments[3001].write_bytes(bytes(content))
    files = Files(folder)
    plan = files.found.plan
    assert plan is not None
    assert [piece.to_offset_exclusive for piece in plan.slices] == [batches[-2].base_offset, batches[-1].next_offset]
    outcome = files.examined()
    assert [judged(check, files, outcome).verdict for check in ("CAP-02", "CAP-08")] == ["fail", "pass"]
    texts = judged("CAP-02", files, outcome).evidence
    assert [text for text in texts if "CRC stored" in text] == texts[:1], texts
    assert texts[0].startswith(f"controller 3001, {segments[3001].name} at byte {flipped.position}: CRC stored")
    assert {row["class"] for row in outcome.rows(DIVERGENCES.full_name)} == set()


def test_a_later_epoch_of_a_copys_last_batch_makes_it_neither_the_newest_nor_another_log(tmp_path: Path) -> None:
    """No election began it: the bit is damage (CAP-02)."""
    folder, other, segment = unread_segment(tmp_path)
    content = bytearray(segment.read_bytes())
    last = [frame for frame in frames(bytes(content)) if isinstance(frame, BatchHeader)][-1]
    content[last.position + 14] ^= 1
    segment.write_bytes(bytes(content))
    files = Files(folder)
    outcome = files.examined()
    assert judged("CAP-02", files, outcome).evidence == [
        f"controller {other}, {segment.name} at byte {last.position}: leader epoch 257 is damaged: no election raised it from 1"
    ]
    assert judged("CAP-11", files, outcome).verdict == "pass"
    assert files.found.plan is not None
    assert (files.found.plan.leading.last_epoch, files.found.plan.forks) == (1, ())


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_damaged_checkpoint_that_a_controller_starts_from_is_damage(tmp_path: Path, *, ahead: int) -> None:
    """It reads a wrong checksum and ends (`RecordsIterator.readBatch`), or a checkpoint that is cut off, and knows a part."""
    folder = writable_copy(capture("3.9.1", "8"), tmp_path / "capture")
    [path] = (folder / "kraft" / "3001" / "__cluster_metadata-0").glob("*.checkpoint")
    newer = path.with_name(f"{488 + ahead:020}-0000000002.checkpoint")
    newer.write_bytes(path.read_bytes()[:-75])
    files = Files(folder)
    outcome = files.examined()
    check = judged("CAP-02", files, outcome)
    assert check.verdict == "fail"
    assert f"controller 3001, {newer.name} at byte" in check.evidence[0]
    assert {row["file"] for row in outcome.rows(QUARANTINE.full_name)} == {newer.name}


def epochs_check(files: Files, outcome: Outcome) -> tuple[str, list[str]]:
    """Verdict and evidence of ISR-15."""
    result = judged("ISR-15", files, outcome)
    return result.verdict, result.evidence


def test_epochs_are_compared_with_those_of_a_run_that_read_zookeeper(tmp_path: Path) -> None:
    not_read = ("not_applicable", ["no earlier run's ZooKeeper partitions are still stored"])
    whole = capture("3.9.1", "9")
    shutil.copytree(whole / "kraft", tmp_path / "kraft")
    after_the_log_alone, first = Files(whole, left_by(Files(tmp_path).examined())), Files(whole)
    assert epochs_check(after_the_log_alone, after_the_log_alone.examined("r2")) == not_read
    found = first.examined()
    assert epochs_check(first, found) == not_read
    second = Files(whole, left_by(found))
    assert epochs_check(second, second.examined("r2")) == ("pass", [])


def test_what_differs_persists_through_a_pass_that_cannot_compare(tmp_path: Path) -> None:
    """ZooKeeper is a stage ahead of the log: what differed before is still there when both are of that stage."""
    earlier, later = capture("3.5.2", "5"), capture("3.5.2", "6")
    shutil.copytree(earlier / "kraft", tmp_path / "kraft")
    shutil.copy(later / "zookeeper.jsonl.gz", tmp_path)
    first = Files(earlier).examined("r1")
    blind = Files(tmp_path, left_by(first)).examined("r2")
    assert blind.answers[COMPARED] is None
    # The blind run has kept no state of the log: the whole of it is read again.
    files = Files(later, replace(left_by(first), memory=blind.bytes_of(MEMORY)))
    third = examined(replace(files.asked("r3"), whole_from=0), files.payloads(files.records(0)))
    found = third.rows(DIVERGENCES.full_name)
    assert len(found) == 20
    assert {(row["status"], row["first_seen_run"]) for row in found} == {("persisting", "r1")}


def without_stories(left: Left) -> Left:
    """As a run of a release that remembered none has left it."""
    return replace(left, memory=replace(Memory.from_bytes(left.memory), told=Stories().told).to_bytes())


def test_what_seemed_lost_before_is_judged_by_its_remembered_story(left: tuple[Outcome, Left]) -> None:
    first, files = left[0], Files(LOST, left[1])
    found = files.examined("r2")
    assert files.start > 0, "it reads the newest part"
    assert compared_of(found) == compared_of(first)
    assert {row["status"] for row in found.answers[COMPARED]["row"]} == {"persisting"}
    assert state_of(found) == state_of(first)
    assert broken(found) == broken(first)
    # And is remembered again.
    memory = Memory.from_bytes(found.bytes_of(MEMORY))
    assert memory.told.height == 2
    assert memory.versions.height > 2
    third = Files(LOST, replace(left[1], memory=found.bytes_of(MEMORY))).examined("r3")
    assert compared_of(third) == compared_of(first)
    assert_frame_equal(memory.versions, Memory.from_bytes(left[1].memory).versions)


def test_what_seems_lost_for_the_first_time_is_asked_for_again_and_nothing_else_is_said(
    left: tuple[Outcome, Left],
) -> None:
    found = Files(LOST, without_stories(left[1])).examined("r2")
    assert [(piece.kind, piece.payload) for piece in found.pieces] == [(AGAIN, b"")]


def test_with_the_whole_log_it_is_judged_as_by_the_run_before(left: tuple[Outcome, Left]) -> None:
    first, files = left[0], Files(LOST, left[1])
    found = examined(replace(files.asked("r2"), whole_from=0), files.payloads(files.records(0)))
    assert compared_of(found) == compared_of(first)
    assert {row["status"] for row in found.answers[COMPARED]["row"]} == {"persisting"}
    assert state_of(found) == state_of(first)
    assert broken(found) == broken(first)
    assert found.rows(HISTORY) == [], "an earlier run has made them"


def without_offset(records: Iterator[pa.RecordBatch], offset: int) -> Iterator[pa.RecordBatch]:
    return (batch.filter(pc.not_equal(batch["offset"], offset)) for batch in records)


@pytest.mark.parametrize("lost", [0, 7, -1])
def test_with_earlier_runs_records_that_are_gone_nothing_is_said_but_that(
    left: tuple[Outcome, Left], lost: int
) -> None:
    """Rows that somebody has deleted from the tables are of no shorter log."""
    files, kept = Files(LOST, left[1]), left[1].of_log
    asked = replace(
        files.asked("r2"), whole_from=0, earlier=PlannedLog(None, (Slice("run r1", 0, kept.offset),)), alone=True
    )
    whole = examined(asked, files.payloads(files.records(0)))
    assert ANSWERS in whole.kinds
    found = examined(asked, files.payloads(without_offset(files.records(0), lost if lost >= 0 else kept.offset - 1)))
    assert found.kinds == {FAILURE}
    assert found.failure == {
        "for_people": True,
        "text": "the tables no longer have all log records that earlier runs have read: "
        f"{kept.offset - 1} records are there instead of {kept.offset} of offsets 0 to {kept.offset - 1} of run r1; "
        "read the whole log again with `kraft-audit run --full`",
    }


@pytest.mark.parametrize("rows", [5, 100, 100_000])
def test_it_makes_the_same_however_the_log_is_cut(rows: int) -> None:
    files = Files(capture("3.9.1", "8"))
    whole = files.examined()
    [table] = [pa.Table.from_batches(list(files.records())).combine_chunks()]
    found = examined(files.asked("r1"), files.payloads(iter(table.to_batches(rows))))
    assert found.answers == whole.answers
    assert [(piece.kind, piece.name) for piece in found.pieces if piece.kind != ROWS] == [
        (piece.kind, piece.name) for piece in whole.pieces if piece.kind != ROWS
    ]
    assert {table: found.rows(table) for table in found.tables} == {table: whole.rows(table) for table in whole.tables}


def test_rows_that_are_not_all_there_are_not_judged() -> None:
    files = Files(LOST)
    short = (batch.slice(0, batch.num_rows - 1) for batch in files.records())
    found = examined(files.asked("r1"), files.payloads(short))
    assert found.kinds - {ROWS} == {FAILURE}
    assert found.failure["for_people"]
    assert found.failure["text"].startswith("the tables lack rows that the run has read: ")
    assert found.failure["text"].endswith("; start another run")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    folder = tmp_path / "damaged"
    shutil.copytree(LOST, folder)
    for segment in folder.glob("kraft/*/__cluster_metadata-0/*.log"):
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 1
        segment.write_bytes(content)
    return folder


def test_of_a_damaged_log_the_damage_is_told_and_nothing_is_kept(damaged: Path) -> None:
    found = Files(damaged).examined()
    assert found.answers[KEEPING]["offset"] == -1
    assert FOLD not in found.kinds
    assert {row["source"] for row in found.rows("bronze.quarantine")} == {"kraft"}


def broken_fold(left: Left) -> Left:
    return replace(left, fold=b"a-secret")


def broken_memory(left: Left) -> Left:
    return replace(left, memory=b"a-secret")


@pytest.mark.parametrize("broken", [broken_fold, broken_memory])
def test_what_fails_one_cluster_fails_it_alone_and_tells_no_secret(
    left: tuple[Outcome, Left], broken: Callable[[Left], Left]
) -> None:
    """An exception in the audit's own code: what is in it may be a secret, its name is none."""
    files = {"fine": Files(LOST), "other": Files(LOST), "to-blame": Files(LOST, broken(left[1]))}
    asked = {name: each.asked("r2") for name, each in files.items()}
    made = list(each_cluster(passing("r2", asked, NewFiles()))(feed_of(files)))
    kinds: dict[str, set[str]] = {name: set() for name in files}
    for batch in made:
        [row] = batch.to_pylist()
        kinds[row["cluster"]].add(row["kind"])
        assert row["run_id"] == "r2"
        if row["kind"] == FAILURE:
            said = json.loads(row["payload"])
            assert not said["for_people"]
            assert said["text"].isidentifier()
    assert kinds == {
        "fine": {FEW_ROWS, FOLD, MEMORY, INDEX, ANSWERS},
        "other": {FEW_ROWS, FOLD, MEMORY, INDEX, ANSWERS},
        "to-blame": {FAILURE},
    }


def feed_of(files: dict[str, Files]) -> Iterator[pa.RecordBatch]:
    """The feed of several clusters, whatever batches it comes in."""
    rows = [
        {"cluster": name, "kind": kind, "place": 0, "payload": payload}
        for name, each in sorted(files.items())
        for kind, payload in each.payloads()
    ]
    assert FEED_SCHEMA.names == FEED.fieldNames()
    for begin in range(0, len(rows), 5):
        yield pa.RecordBatch.from_pylist(rows[begin : begin + 5], FEED_SCHEMA)


def test_the_only_cluster_of_a_run_shows_where_it_failed(left: tuple[Outcome, Left]) -> None:
    with pytest.raises(Exception, match=r".") as raised:
        Files(LOST, broken_memory(left[1]), alone=True).examined("r2")
    assert raised.traceback[-1].name != "examine"
    short = Files(LOST, alone=True)
    found = examined(short.asked("r1"), short.payloads(batch.slice(1) for batch in short.records()))
    assert found.failure["for_people"], "what is for people is told as everywhere"


def test_a_cluster_of_which_nothing_was_read_is_examined_too() -> None:
    files = Files(LOST)
    given = replace(files.given(), has_zookeeper=False, has_kraft=False, side=None, copies=(), zookeeper=None)
    asked = replace(files.asked("r1"), given=replace(given, compared=None, walks=0), planned=None)
    found = examined(asked, [(int(UnitKind.BEGIN), b"")])
    assert found.kinds - {ROWS} == {MEMORY, ANSWERS}
    assert found.answers[COMPARED] is None
    assert found.answers[KEEPING] is None


@pytest.mark.parametrize("lacking", [0, 1])
def test_changes_of_a_log_that_was_started_again_are_recorded(lacking: int) -> None:
    """A leader with a snapshot does not give the record at offset 0; the log before had other records at these offsets."""
    files = Files(LOST)
    read = [batch.filter(pc.greater_equal(batch["offset"], lacking)) for batch in files.records()]
    given = files.given()
    assert given.side is not None
    milestones = tuple(each for each in given.side.milestones if each["offset"] >= lacking)
    side = replace(given.side, milestones=milestones)
    asked = replace(files.asked("r2"), given=replace(given, side=side), planned=None)
    fed = files.payloads(iter(read))
    alone = examined(asked, fed)
    changes = alone.rows(HISTORY)
    begun = alone.answers[RECORDED]["begun"]
    assert begun == milestones[0]["append_time"]
    # The log before was the longer one.
    before = Recorded(max(row["offset"] for row in changes) + 500, 1, begun - HOUR)
    assert examined(replace(asked, recorded=before), fed).rows(HISTORY) == changes
    assert examined(replace(asked, recorded=replace(before, begun=begun)), fed).rows(HISTORY) == []
