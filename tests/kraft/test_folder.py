"""What a controller's folder holds is told from its files alone, and damaged or missing files are said, not raised."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.exit import UsageError
from jobs.sources.kraft import folder as scanning
from jobs.sources.kraft.folder import (
    LOG_FOLDER,
    KraftSourceError,
    ScannedCopy,
    find_log_folders,
    read_copies,
    read_copy,
)
from jobs.sources.kraft.log import Selection, plan_checkpoint, plan_log, read_records
from jobs.sources.remote import is_remote, local_path
from jobs.steps.ingest_kraft import find_copies, notes_of
from schemas.bronze import LOG_COPY_COLUMNS
from tests.captures import VERSIONS
from tests.kraft.dumps import dumps, log_folder, read_dump
from tests.kraft.encoder import batch, control_record
from transforms.kraft.decode.framing import BatchHeader, frames
from transforms.kraft.decode.masking import UNMASKED
from transforms.kraft.decode.scan import SegmentScan
from transforms.kraft.quorum import LogCopy, committed_end

WHOLE = ("3.9.1", "8-zookeeper-behind", 3001)
FROM_SNAPSHOT = ("3.9.1", "8-zookeeper-behind", 3000)
LOG = "00000000000000000000.log"


@pytest.fixture
def controller(tmp_path: Path) -> Path:
    """A controller's folder, to be changed by the test."""
    shutil.copytree(log_folder(*WHOLE).parent, tmp_path / "3001", copy_function=shutil.copyfile)
    return tmp_path / "3001"


def copy_in(controller: Path) -> ScannedCopy:
    [copy] = read_copies(controller)
    return copy


def ids(copy: ScannedCopy) -> tuple[int, ...]:
    return tuple(voter for voter, _ in copy.voters)


@pytest.mark.parametrize("version", VERSIONS)
def test_facts_of_every_capture(version: str) -> None:
    seen = 0
    for _, stage, controller in (key for key in dumps() if key[0] == version):
        folder = log_folder(version, stage, controller)
        copy = read_copy(folder)
        records = [row for name, rows in read_dump(version, stage, controller).items() if "log" in name for row in rows]
        quorum = json.loads((folder / "quorum-state").read_text())
        assert (copy.problem, copy.notes, copy.torn_tail_bytes, copy.controller_id) == (None, (), 0, controller)
        assert (copy.log_start_offset, copy.log_end_offset) == (records[0].offset, records[-1].offset + 1)
        assert (copy.last_epoch, copy.last_append_time) == (records[-1].epoch, records[-1].time)
        assert dict(copy.epoch_starts) == {
            row.epoch: min(other.offset for other in records if other.epoch == row.epoch) for row in records
        }
        checkpoint = read_epoch_checkpoint(folder)
        assert checkpoint
        assert set(checkpoint[1:]) <= set(copy.epoch_starts)
        assert (copy.quorum_leader_id, copy.quorum_leader_epoch) == (quorum["leaderId"], quorum["leaderEpoch"])
        assert ids(copy) == (3000, 3001, 3002)
        assert [file.path.name for file in copy.checkpoints] == sorted(
            path.name for path in folder.iterdir() if path.name.endswith(".checkpoint")
        )
        assert all(file.complete for file in copy.checkpoints)
        assert list(copy.row()) == [column.name for column in LOG_COPY_COLUMNS]
        seen += 1
    assert seen >= 30


def read_epoch_checkpoint(folder: Path) -> list[tuple[int, int]]:
    """(epoch, first offset) by Kafka itself: a version, a number of lines, and the lines."""
    lines = (folder / "leader-epoch-checkpoint").read_text("utf-8").split("\n")
    pairs = [line.split() for line in lines[2 : 2 + int(lines[1])]]
    return [(int(epoch), int(start)) for epoch, start in pairs]


def test_leftovers_and_the_snapshot_trap_are_left_alone() -> None:
    folder = log_folder(*FROM_SNAPSHOT)
    assert (folder / f"{LOG}.deleted").exists()
    assert any(path.suffix == ".snapshot" for path in log_folder("3.5.2", "12-finalized", 3001).iterdir())
    copy = read_copy(folder)
    assert [segment.path.name for segment in copy.segments] == [f"{488:020}.log"]
    assert [file.offset for file in copy.checkpoints] == [488]
    assert [file.offset for file in read_copy(log_folder("3.5.2", "12-finalized", 3001)).checkpoints] == [515]


def test_the_file_a_node_was_formatted_with_is_no_state_of_the_log(controller: Path) -> None:
    """Newer releases write `0-0.checkpoint`: records that the first leader appends, not committed by themselves."""
    folder = controller / "__cluster_metadata-0"
    before = copy_in(controller)
    [checkpoint] = folder.glob("*.checkpoint")
    shutil.copyfile(checkpoint, folder / f"{0:020}-{0:010}.checkpoint")
    assert copy_in(controller) == before
    shutil.copyfile(checkpoint, folder / f"{0:020}-{1:010}.checkpoint")
    assert len(copy_in(controller).checkpoints) == 2


def test_every_way_to_name_a_folder() -> None:
    folder = log_folder(*WHOLE)
    assert find_log_folders(folder) == find_log_folders(folder.parent) == [folder]
    assert [copy.controller_id for copy in read_copies(folder.parents[1])] == [3000, 3001, 3002]


def test_wrong_paths(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path, says in (
        (tmp_path, "no __cluster_metadata-0"),
        (tmp_path / "no", "not exist"),
        (tmp_path / "file", "a file"),
    ):
        with pytest.raises(KraftSourceError, match=says):
            read_copies(path)


def test_meta_properties_of_both_versions(controller: Path) -> None:
    (controller / "meta.properties").write_text("# x\nbroker.id=7\nversion=0\ncluster.id=abc\n")
    copy = copy_in(controller)
    assert (copy.controller_id, copy.meta_version, copy.cluster_id, copy.problem) == (7, 0, "abc", None)
    (controller / "meta.properties").unlink()
    copy = copy_in(controller)
    assert (copy.controller_id, copy.problem) == (None, None)
    assert "meta.properties is missing" in copy.notes[0]


def test_quorum_state_of_version_1_or_garbage_falls_back_to_the_log(controller: Path) -> None:
    path = controller / "__cluster_metadata-0" / "quorum-state"
    path.write_text(
        '{"leaderId":3001,"leaderEpoch":2,"votedId":-1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
    )
    assert (ids(copy_in(controller)), copy_in(controller).quorum_leader_id) == ((3000, 3001, 3002), 3001)
    path.write_bytes(b"\xff{")
    copy = copy_in(controller)
    assert (ids(copy), copy.quorum_leader_id, copy.problem) == ((3000, 3001, 3002), None, None)
    assert "not readable as JSON" in copy.notes[0]


def from_the_newest_checkpoint(folder: Path) -> None:
    """Leave a log as Kafka's retention does: no record below the newest checkpoint, and so no LeaderChange."""
    begin = max(int(path.name[:20]) for path in folder.glob("*.checkpoint"))
    kept = b""
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        whole = [frame for frame in frames(data) if isinstance(frame, BatchHeader) and frame.base_offset >= begin]
        kept += b"".join(data[frame.position : frame.position + frame.size] for frame in whole)
        path.unlink()
    first = next(frames(kept))
    assert isinstance(first, BatchHeader)
    (folder / f"{first.base_offset:020}.log").write_bytes(kept)


@pytest.mark.parametrize(
    ("stage", "node", "voters"),
    [
        ("9-unclean-healed", 3000, (3000, 3001, 3002)),
        # quorum-state is as the node wrote it when it joined: without voters.
        ("10-four-voters", 3003, (3000, 3001, 3002, 3003)),
        # And here as it was before the quorum became dynamic.
        ("static-2-to-dynamic", 3001, (3000, 3001, 3002)),
    ],
)
def test_the_voters_of_a_dynamic_quorum_are_in_its_checkpoint_too(
    tmp_path: Path, stage: str, node: int, voters: tuple[int, ...]
) -> None:
    folder = tmp_path / "kraft" / LOG_FOLDER
    shutil.copytree(log_folder("4.3.1-kraft", stage, node), folder, copy_function=shutil.copyfile)
    from_the_newest_checkpoint(folder)
    copy = read_copy(folder)
    assert copy.log_start_offset is not None
    assert copy.log_start_offset > 0
    assert ids(copy) == voters


def test_a_voter_added_since_a_quorum_became_dynamic_counts_before_what_quorum_state_had(tmp_path: Path) -> None:
    """Two of four voters are no majority; quorum-state names three until the next election."""
    folder = tmp_path / "kraft" / LOG_FOLDER
    shutil.copytree(log_folder("4.3.1-kraft", "10-four-voters", 3001), folder, copy_function=shutil.copyfile)
    static = {"leaderId": 3000, "leaderEpoch": 1, "data_version": 0, "currentVoters": [{"voterId": 3000}]}
    (folder / "quorum-state").write_text(json.dumps(static))
    assert ids(read_copy(folder)) == (3000, 3001, 3002, 3003)


@pytest.mark.parametrize("checkpoint_alone", [False, True])
def test_the_voters_of_a_dynamic_quorum_have_the_directory_ids_of_their_disks(
    tmp_path: Path, *, checkpoint_alone: bool
) -> None:
    disks = {}
    for node in (3000, 3001, 3002, 3003):
        shutil.copytree(
            log_folder("4.3.1-kraft", "10-four-voters", node).parent,
            tmp_path / str(node),
            copy_function=shutil.copyfile,
        )
        disks[node] = copy_in(tmp_path / str(node)).directory_id
    if checkpoint_alone:
        from_the_newest_checkpoint(tmp_path / "3000" / LOG_FOLDER)
    copy = copy_in(tmp_path / "3000")
    assert None not in disks.values()
    assert copy.voters == tuple(disks.items())
    assert LogCopy.from_row(copy.row()).voter_directories == tuple(disks.items())


@pytest.mark.parametrize("checkpoint_alone", [False, True])
def test_the_voters_of_a_dynamic_quorum_keep_their_directory_ids_through_an_election(
    tmp_path: Path, *, checkpoint_alone: bool
) -> None:
    """Kafka writes each LeaderChange as version 0, without directory ids, in a dynamic quorum too (`LeaderState`)."""
    folder = tmp_path / "kraft" / LOG_FOLDER
    shutil.copytree(log_folder("4.3.1-kraft", "9-unclean-healed", 3000), folder, copy_function=shutil.copyfile)
    if checkpoint_alone:
        from_the_newest_checkpoint(folder)
    before = read_copy(folder)
    assert before.log_end_offset is not None
    voters = [{"voterId": voter} for voter in ids(before)]
    elected = {"version": 0, "leaderId": 3001, "voters": voters, "grantingVoters": voters[1:]}
    with max(folder.glob("*.log")).open("ab") as log:
        log.write(batch([control_record("LEADER_CHANGE", elected)], before.log_end_offset, 2, attributes=0x20))
    after = read_copy(folder)
    assert after.last_epoch == 2
    assert None not in {directory for _, directory in before.voters}
    assert after.voters == before.voters


def test_the_voters_of_a_static_quorum_have_no_directory_ids(controller: Path) -> None:
    assert {directory for _, directory in copy_in(controller).voters} == {None}
    assert LogCopy.from_row(copy_in(controller).row()).voter_directories == ()


def test_a_disk_that_was_formatted_again_is_no_majority_with_one_other(tmp_path: Path) -> None:
    """Of three voters two copies are given, and one of them has another directory id than the voter of its id."""
    for node in (3001, 3002):
        shutil.copytree(
            log_folder("4.3.1-kraft", "1-healthy", node).parent, tmp_path / str(node), copy_function=shutil.copyfile
        )
    proofs = []
    for name in ("as it was", "formatted again"):
        found = find_copies([str(tmp_path)])
        assert found.plan is not None
        proofs.append(
            (name, committed_end([LogCopy.from_row(c.row()) for c in found.copies], found.plan, None, None).proof)
        )
        path = tmp_path / "3001" / "meta.properties"
        path.write_text(re.sub("directory.id=.*", "directory.id=BBBBBBBBBBBBBBBBBBBBBB", path.read_text()))
    assert proofs == [("as it was", "majority"), ("formatted again", "log_start")]


@pytest.mark.parametrize("tail", [b"\0" * 10_000, b"\0\0\0\1", b"\x01" * 300])
def test_bytes_after_the_last_batch_are_a_torn_tail(controller: Path, tail: bytes) -> None:
    with (controller / "__cluster_metadata-0" / LOG).open("ab") as log:
        log.write(tail)
    copy = copy_in(controller)
    assert (copy.log_end_offset, copy.torn_tail_bytes, copy.problem) == (504, len(tail), None)


def test_a_last_batch_that_was_half_written_is_torn(controller: Path) -> None:
    path = controller / "__cluster_metadata-0" / LOG
    data = path.read_bytes()
    last = [frame for frame in frames(data) if isinstance(frame, BatchHeader)][-1]
    for damaged in (data[:-3], data[:-3] + b"\1" * 6):
        path.write_bytes(damaged)
        copy = copy_in(controller)
        assert (copy.log_end_offset, copy.torn_tail_bytes) == (last.base_offset, len(damaged) - last.position)


def test_a_truncated_snapshot_is_incomplete(controller: Path) -> None:
    [path] = (controller / "__cluster_metadata-0").glob("*.checkpoint")
    path.write_bytes(path.read_bytes()[:-75])
    copy = copy_in(controller)
    assert [file.complete for file in copy.checkpoints] == [False]
    assert copy.problem is None
    assert "the footer is missing" in copy.notes[0]


def test_a_log_whose_beginning_is_lost_can_not_be_used(tmp_path: Path) -> None:
    shutil.copytree(log_folder(*FROM_SNAPSHOT), tmp_path / "__cluster_metadata-0", copy_function=shutil.copyfile)
    assert read_copies(tmp_path)[0].problem is None
    for path in (tmp_path / "__cluster_metadata-0").glob("*.checkpoint"):
        path.unlink()
    assert read_copies(tmp_path)[0].problem == (
        "the log begins at offset 488 and no complete checkpoint covers what came before"
    )
    for path in (tmp_path / "__cluster_metadata-0").glob("*.log"):
        path.write_bytes(b"")
    assert read_copies(tmp_path)[0].problem == "no record batch and no complete checkpoint in it"


def test_what_an_earlier_copy_left_before_a_fetched_checkpoint_is_not_the_log(tmp_path: Path) -> None:
    """The controller was away, fetched a checkpoint and removed its log; a second copy into the same folder keeps the old segment."""
    folder = tmp_path / LOG_FOLDER
    for stage in ("7-dual-write-failover", "8-zookeeper-behind"):
        copied = log_folder("3.9.1", stage, 3000)
        shutil.copytree(copied, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
        folder.chmod(0o755)
    alone = read_copy(copied)
    copy = read_copy(folder)
    assert (copy.log_start_offset, copy.log_end_offset) == (alone.log_start_offset, alone.log_end_offset) == (488, 504)
    assert copy.epoch_starts == alone.epoch_starts
    assert copy.notes[-1] == (
        "segments before offset 488 are an earlier copy's: the controller replaced its log by the checkpoint that ends there"
    )
    problems = [problem for rows in read_records(plan_log(copy), UNMASKED) for problem in rows["problem"].to_pylist()]
    assert set(problems) == {None}


@pytest.mark.parametrize(("ahead", "epochs", "usable"), [(0, 0, True), (1, 0, False), (-1, 1, False)])
def test_a_log_that_ends_before_its_own_checkpoint_can_not_be_used(
    controller: Path, *, ahead: int, epochs: int, usable: bool
) -> None:
    """A controller that starts with such files discards the log (`KafkaMetadataLog.truncateToLatestSnapshot`)."""
    [path] = (controller / LOG_FOLDER).glob("*.checkpoint")
    log = copy_in(controller)
    assert log.log_end_offset is not None
    assert log.last_epoch is not None
    end, epoch = log.log_end_offset + ahead, log.last_epoch + epochs
    path.rename(path.with_name(f"{end:020}-{epoch:010}.checkpoint"))
    [copy] = read_copies(controller)
    why = f"the log ends at offset 503, in epoch 2, before its checkpoint at {end}, in {epoch}: copy the whole folder again"
    assert copy.problem == (None if usable else why)
    assert (find_copies([str(controller)]).plan is not None) is usable


def test_several_segments_read_like_one(controller: Path) -> None:
    folder = controller / "__cluster_metadata-0"
    data = (folder / LOG).read_bytes()
    whole = [row for batch in read_records(plan_log(copy_in(controller)), UNMASKED) for row in batch.to_pylist()]
    cuts = [frame for frame in frames(data) if isinstance(frame, BatchHeader)][10::40]
    (folder / LOG).write_bytes(data[: cuts[0].position])
    for cut, following in zip(cuts, [*cuts[1:], None], strict=True):
        end = len(data) if following is None else following.position
        (folder / f"{cut.base_offset:020d}.log").write_bytes(data[cut.position : end])
    [copy] = read_copies(controller, split_bytes=2000)
    assert (copy.log_start_offset, copy.log_end_offset, len(copy.segments)) == (0, 504, len(cuts) + 1)
    tasks = plan_log(copy)
    assert len(tasks) > len(copy.segments)
    pieces = [row for batch in read_records(tasks, UNMASKED) for row in batch.to_pylist()]
    place = ("file", "position")
    assert [{key: row[key] for key in row if key not in place} for row in pieces] == [
        {key: row[key] for key in row if key not in place} for row in whole
    ]
    (folder / f"{cuts[0].base_offset:020d}.log").unlink()
    problems = [
        problem
        for batch in read_records(plan_log(copy_in(controller)), UNMASKED)
        for problem in batch.column("problem").to_pylist()
        if problem
    ]
    missing = cuts[1].base_offset - cuts[0].base_offset
    assert problems == [f"gap: {missing} offsets missing before offset {cuts[1].base_offset}"]


def test_a_segment_under_a_wrong_name_is_noted(controller: Path) -> None:
    folder = controller / "__cluster_metadata-0"
    (folder / LOG).rename(folder / "00000000000000000007.log")
    assert copy_in(controller).notes == (
        "00000000000000000007.log begins with offset 0, not with the one it is named after",
    )


def test_a_segment_that_goes_away_is_noted(controller: Path) -> None:
    # Listed but not there any more: what a live controller's clean-up looks like to a reader.
    (controller / "__cluster_metadata-0" / "00000000000000000900.log").symlink_to("nowhere")
    copy = copy_in(controller)
    assert (copy.log_end_offset, copy.problem) == (504, None)
    assert copy.notes[0].startswith("00000000000000000900.log disappeared")
    assert notes_of(copy)[0].startswith(f"{controller}/__cluster_metadata-0: 00000000000000000900.log disappeared")


def test_a_file_that_is_cut_short_after_it_was_scanned_is_no_torn_tail(controller: Path) -> None:
    copy = copy_in(controller)
    segment = copy.segments[-1].path
    with segment.open("r+b") as file:
        file.truncate(segment.stat().st_size - 100)
    with pytest.raises(KraftSourceError, match=f"^{segment} became shorter while it was read: .* Run again"):
        list(read_records(plan_log(copy), UNMASKED))


def test_a_large_file_that_is_cut_short_while_it_is_scanned_ends_no_process(
    controller: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by whoever copies another one over it: a mapped file would end all clusters' run with a bus error."""
    before, real = copy_in(controller), scanning.scan_segment
    large = sum(segment.size for segment in before.segments) + (2 << 20)
    newest = before.segments[-1].path
    with newest.open("ab") as file:
        file.truncate(large)

    def cut(data: bytes, *more: Any) -> SegmentScan:
        newest.write_bytes(b"")
        return real(data, *more)

    monkeypatch.setattr(scanning, "_LARGE_BYTES", 1 << 20)
    monkeypatch.setattr(scanning, "scan_segment", cut)
    scanned = copy_in(controller)
    assert (scanned.log_end_offset, scanned.segments[-1].size) == (before.log_end_offset, large)
    with pytest.raises(KraftSourceError, match="became shorter while it was read"):
        list(read_records(plan_log(scanned), UNMASKED))


def test_a_snapshot_that_goes_away_is_noted(controller: Path) -> None:
    """A controller removes old snapshots while somebody copies or reads its folder."""
    (controller / "__cluster_metadata-0" / f"{9:020}-{1:010}.checkpoint").symlink_to("nowhere")
    copy = copy_in(controller)
    assert (copy.log_end_offset, copy.problem) == (504, None)
    assert copy.notes[0].startswith("00000000000000000009-0000000001.checkpoint disappeared while it was read")
    assert not [file for file in copy.checkpoints if file.offset == 9]


def test_offsets_select_ranges(controller: Path) -> None:
    [copy] = read_copies(controller, split_bytes=1000)
    for first, last in ((0, 504), (100, 101), (250, 300), (500, 9_999), (600, 700)):
        selection = Selection(first, last)
        rows = [
            row for batch in read_records(plan_log(copy, selection), UNMASKED, selection) for row in batch.to_pylist()
        ]
        assert [row["offset"] for row in rows] == list(range(first, min(last, 504)))
    assert len(plan_log(copy, Selection(500, 504))) < len(plan_log(copy)) / 4


def test_snapshots_are_read_by_position() -> None:
    copy = read_copy(log_folder(*FROM_SNAPSHOT))
    [batch] = read_records(plan_checkpoint(copy, copy.checkpoints[0]), UNMASKED)
    assert batch.column("offset").to_pylist() == list(range(batch.num_rows))
    assert set(batch.column("checkpoint_offset").to_pylist()) == {488}


def test_remote_folders_are_scanned_where_they_are_staged_and_read_where_they_are(controller: Path) -> None:
    uri = (controller.parent / ".").resolve().as_uri()
    [copy] = read_copies(uri)
    [local] = read_copies(controller)
    log_uri = f"{uri}/3001/__cluster_metadata-0"
    assert copy.location == log_uri
    assert copy.row() == local.row() | {"location": log_uri}
    tasks = plan_log(copy) + plan_checkpoint(copy, copy.checkpoints[0])
    assert {task.path.rpartition("/")[0] for task in tasks} == {log_uri}
    remote = [row for batch in read_records(tasks, UNMASKED) for row in batch.to_pylist()]
    here = plan_log(local) + plan_checkpoint(local, local.checkpoints[0])
    assert remote == [row for batch in read_records(here, UNMASKED) for row in batch.to_pylist()]
    assert read_copies(log_uri)[0].log_end_offset == 504
    with pytest.raises(KraftSourceError, match="no such folder"):
        read_copies(uri + "/nothing")
    with pytest.raises(KraftSourceError, match="nonsense"):
        read_copies("nonsense://bucket/logs")


def test_paths_of_file_systems() -> None:
    assert local_path("dbfs:/logs/3000") == "/dbfs/logs/3000"
    assert [
        is_remote(path) for path in ("/a", "a/b", "dbfs:/x", "C:/x", "s3a://b/k", "abfss://c@a/x", "hdfs://n/x")
    ] == ([False] * 4 + [True] * 3)


def test_a_controller_that_was_formatted_again_has_no_log_yet(tmp_path: Path) -> None:
    """A real static quorum of 3.8.1: its folders were named one by one, and the audit ended because one of them had no log."""
    whole = [str(log_folder(*FROM_SNAPSHOT).parents[1] / str(node)) for node in (3000, 3001)]
    (tmp_path / "meta.properties").write_text(
        "version=1\nnode.id=3002\ncluster.id=c\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAA\n"
    )
    text = (Path(whole[0]) / "meta.properties").read_text()
    (tmp_path / "meta.properties").write_text(re.sub("node.id=.*", "node.id=3002", text))
    found = find_copies([*whole, str(tmp_path)])
    assert found.plan is not None
    assert [(copy.controller_id, copy.problem) for copy in found.copies] == [
        (3000, None),
        (3001, None),
        (3002, "its controller was formatted and not started since: there is no log in it"),
    ]
    with pytest.raises(UsageError, match="no __cluster_metadata-0 in it"):
        find_copies([str(tmp_path)])


def test_from_4_2_on_a_formatted_folder_holds_its_bootstrap_records(tmp_path: Path) -> None:
    """A real 4.4.0, formatted with --no-initial-controllers: the checkpoint 0-0 is the only file of its log folder."""
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "00000000000000000000-0000000000.checkpoint").write_bytes(b"")
    [copy] = read_copies(tmp_path)
    assert copy.problem == "its controller was formatted and not started since: there is no log in it"
