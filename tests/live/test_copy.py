"""Copies of a quorum: the leader's bytes up to its high watermark, whatever controllers do; and never half of one.

The quorum is a fake that answers as real controllers were measured to (`fake.py`); the bytes are a real log's.
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.sources.kraft.folder import read_copies
from jobs.sources.kraft.live.copy import copy_quorum
from jobs.sources.kraft.live.copy_folder import LOG_FOLDER
from jobs.sources.kraft.live.errors import QuorumError
from jobs.sources.kraft.proof import PROOF_FILE, read_proof
from tests.captures import capture
from tests.live.fake import FakeQuorum, Hangup, fake_controllers
from transforms.kraft.quorum import LogCopy, committed_end, plan_read


def real_log() -> tuple[bytes, dict[tuple[int, int], bytes]]:
    """A log from offset 0 with three leader epochs, and its checkpoints: controller 3002's of the last stage."""
    folder = capture("3.9.1", "12") / "kraft" / "3002" / LOG_FOLDER
    checkpoints = {}
    for path in folder.glob("*.checkpoint"):
        offset, epoch = path.stem.split("-")
        checkpoints[int(offset), int(epoch)] = path.read_bytes()
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))), checkpoints


LOG, CHECKPOINTS = real_log()


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    with fake_controllers(FakeQuorum.of_log(LOG)) as served:
        yield served


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((folder / LOG_FOLDER).glob("*.log")))


def proved(folder: Path) -> int:
    """The committed end that an audit of the copy would work with."""
    copies = [LogCopy.from_row(copy.row()) for copy in read_copies(folder)]
    return committed_end(copies, plan_read(copies), None, None).end_exclusive


def test_a_copy_is_the_leaders_bytes(quorum: FakeQuorum, tmp_path: Path) -> None:
    copied = copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG
    assert copied.proof.leader_id == 3000
    assert copied.proof.voter_ids == (3000, 3001, 3002)
    assert proved(tmp_path) == quorum.end


def test_the_folder_is_laid_out_as_a_controllers(quorum: FakeQuorum, tmp_path: Path) -> None:
    copy_quorum(quorum.settings(), tmp_path)
    [copy] = read_copies(tmp_path)
    assert (copy.controller_id, copy.cluster_id) == (3000, "fakefakefakefakefakefa")
    assert [voter for voter, _ in copy.voters] == [3000, 3001, 3002]
    assert (copy.quorum_leader_id, copy.quorum_leader_epoch, copy.problem, copy.notes) == (3000, quorum.epoch, None, ())
    assert (tmp_path / LOG_FOLDER).stat().st_mode & 0o077 == 0, "a log holds secrets"


def test_uncommitted_records_are_not_taken_though_they_are_handed_out(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.high_watermark = quorum.batches[-20][0].base_offset
    copied = copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == quorum.committed()
    assert stored(tmp_path) != LOG
    assert copied.proof.log_end == quorum.high_watermark == proved(tmp_path)


def test_the_next_copy_fetches_only_what_is_new(quorum: FakeQuorum, tmp_path: Path) -> None:
    end = quorum.high_watermark = quorum.batches[-3][0].base_offset
    whole = copy_quorum(quorum.settings(), tmp_path)
    quorum.high_watermark = quorum.end
    again = copy_quorum(quorum.settings(), tmp_path)
    assert (again.resumed_at, stored(tmp_path)) == (end, LOG)
    assert again.bytes_received < whole.bytes_received / 2
    assert copy_quorum(quorum.settings(), tmp_path).resumed_at == quorum.end


def test_a_log_with_a_snapshot_is_copied_from_its_first_batch_that_can_be_had(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG, CHECKPOINTS)) as quorum:
        copy_quorum(quorum.settings(), tmp_path)
    first = quorum.batches[0][1]
    assert first + stored(tmp_path) == LOG
    [copy] = read_copies(tmp_path)
    assert (copy.log_start_offset, copy.problem) == (0, None)
    assert [file.offset for file in copy.checkpoints] == [max(CHECKPOINTS)[0]]
    assert copy.checkpoints[0].path.read_bytes() == CHECKPOINTS[max(CHECKPOINTS)]
    assert plan_read([LogCopy.from_row(copy.row())]).base_checkpoint is None, "replay must not begin at the snapshot"


def test_a_whole_copy_stays_whole_when_the_controllers_trim_their_logs(tmp_path: Path) -> None:
    """It still reaches back to the load, which the controllers have forgotten."""
    start = max(CHECKPOINTS)
    early = FakeQuorum.of_log(LOG, CHECKPOINTS)
    early.high_watermark = early.batches[-3][0].base_offset
    with fake_controllers(early):
        copy_quorum(early.settings(), tmp_path)
    with fake_controllers(trimmed(start)) as late:
        assert copy_quorum(late.settings(), tmp_path).resumed_at == early.high_watermark
    [copy] = read_copies(tmp_path)
    assert (copy.log_start_offset, copy.log_end_offset, copy.problem) == (0, late.end, None)


def trimmed(start: tuple[int, int]) -> FakeQuorum:
    """The quorum after its log was removed up to a snapshot."""
    quorum = FakeQuorum.of_log(LOG, {key: data for key, data in CHECKPOINTS.items() if key >= start})
    quorum.batches = [(batch, data) for batch, data in quorum.batches if batch.base_offset >= start[0]]
    quorum.log_start = start[0]
    return quorum


def test_history_begins_at_the_oldest_snapshot(tmp_path: Path) -> None:
    oldest = min(CHECKPOINTS)
    with fake_controllers(trimmed(oldest)) as quorum:
        copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == quorum.committed()
    [copy] = read_copies(tmp_path)
    assert (copy.log_start_offset, copy.problem) == (oldest[0], None)
    assert [file.offset for file in copy.checkpoints] == sorted(offset for offset, _ in CHECKPOINTS)


def test_without_history_the_copy_begins_at_the_newest_snapshot(tmp_path: Path) -> None:
    newest = max(CHECKPOINTS)
    with fake_controllers(FakeQuorum.of_log(LOG, CHECKPOINTS)) as quorum:
        copy_quorum(quorum.settings(), tmp_path, history=False)
    [copy] = read_copies(tmp_path)
    assert (copy.log_start_offset, [file.offset for file in copy.checkpoints]) == (newest[0], [newest[0]])
    assert stored(tmp_path) == quorum.committed(newest[0])


def test_kafka_4s_followers_know_the_epoch_and_do_not_lead(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.four, quorum.leader = True, 3002
    assert copy_quorum(quorum.settings(), tmp_path).proof.leader_id == 3002


def test_a_candidate_that_is_elected_between_two_questions_is_named_as_the_leader(
    quorum: FakeQuorum, tmp_path: Path
) -> None:
    """A candidate knows the epoch and no leader; it may have won by the question after."""
    asked = [0]

    def win(key: int, request: Any, answer: Any) -> Any:
        asked[0] += key == 1
        if key == 1 and asked[0] == 1:
            answer.responses[0].partitions[0].current_leader.leader_id = -1
        return answer

    quorum.controllers[0].behaviour = win
    quorum.leader = 3000
    assert copy_quorum(quorum.settings(), tmp_path).proof.leader_id == 3000


@pytest.mark.parametrize("killed_after", [1, 2, 5, 9])
def test_a_leader_that_is_killed_in_mid_copy_is_left_for_the_next(
    quorum: FakeQuorum, tmp_path: Path, killed_after: int
) -> None:
    seen = [0]

    def die(key: int, request: Any, answer: Any) -> Any:
        seen[0] += key == 1
        if seen[0] > killed_after:
            quorum.controllers[0].kill()
            quorum.leader, quorum.epoch = 3001, quorum.epoch + 1
            raise Hangup
        return answer

    quorum.controllers[0].behaviour = die
    copied = copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG
    assert copied.proof.leader_id == 3001


def test_a_frozen_leader_is_left_after_the_time_a_request_may_take(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.controllers[0].frozen = True
    quorum.leader = 3000

    def elect() -> None:
        time.sleep(0.7)
        quorum.leader, quorum.epoch = 3002, quorum.epoch + 1

    threading.Thread(target=elect, daemon=True).start()
    copied = copy_quorum(quorum.settings(request_seconds=0.5), tmp_path)
    assert (stored(tmp_path), copied.proof.leader_id) == (LOG, 3002)


def test_a_snapshot_is_begun_again_with_another_leader(tmp_path: Path) -> None:
    """Controllers' snapshots of one id hold the same records in another order: two halves make no whole."""
    newest = max(CHECKPOINTS)
    with fake_controllers(FakeQuorum.of_log(LOG, CHECKPOINTS)) as quorum:

        def move(key: int, request: Any, answer: Any) -> Any:
            if key == 59 and request.topics[0].partitions[0].position > 0:
                quorum.leader, quorum.epoch = 3001, quorum.epoch + 1
                quorum.controllers[0].behaviour = None
                answer.error_code, answer.topics = -1, []
            return answer

        quorum.controllers[0].behaviour = move
        copy_quorum(quorum.settings(snapshot_bytes=700), tmp_path)
        positions = [r.topics[0].partitions[0].position for key, r in quorum.controllers[1].requests if key == 59]
    assert positions[0] == 0
    [copy] = read_copies(tmp_path)
    assert copy.checkpoints[-1].path.read_bytes() == CHECKPOINTS[newest]


def test_a_log_of_another_history_is_copied_anew(quorum: FakeQuorum, tmp_path: Path) -> None:
    copy_quorum(quorum.settings(), tmp_path)
    other = b"".join(
        p.read_bytes() for p in sorted((capture("3.9.1", "quota-removal") / "kraft/3000" / LOG_FOLDER).glob("*.log"))
    )
    with fake_controllers(FakeQuorum.of_log(other)) as elsewhere:
        copied = copy_quorum(elsewhere.settings(), tmp_path)
    assert stored(tmp_path) == other
    assert copied.resumed_at is None
    assert "belongs to another log" in copied.proof.notes[0]


def test_records_that_went_before_they_were_copied_are_told(tmp_path: Path) -> None:
    start = max(CHECKPOINTS)
    early = FakeQuorum.of_log(LOG)
    early.high_watermark = early.batches[50][0].next_offset
    with fake_controllers(early):
        copy_quorum(early.settings(), tmp_path)
    with fake_controllers(trimmed(start)) as late:
        copied = copy_quorum(late.settings(), tmp_path)
    assert copied.proof.gap == (early.high_watermark, start[0])
    assert f"offsets {early.high_watermark} to {start[0] - 1} are gone" in copied.proof.notes[0]
    assert stored(tmp_path) == late.committed()


def test_a_log_that_is_trimmed_in_mid_copy_is_begun_again(tmp_path: Path) -> None:
    start = max(CHECKPOINTS)
    with fake_controllers(FakeQuorum.of_log(LOG)) as quorum:
        after = trimmed(start)
        seen = [0]

        def trim(key: int, request: Any, answer: Any) -> Any:
            seen[0] += key == 1
            if seen[0] == 6:
                quorum.batches, quorum.snapshots, quorum.log_start = after.batches, after.snapshots, after.log_start
            return answer

        quorum.controllers[0].behaviour = trim
        copy_quorum(quorum.settings(), tmp_path)
        assert stored(tmp_path) == quorum.committed()
    [copy] = read_copies(tmp_path)
    assert (copy.log_start_offset, copy.problem) == (start[0], None)


def corrupted(times: int) -> Any:
    """Flip a bit of the last record byte of the first batch of so many answers."""
    left = [times]

    def corrupt(key: int, request: Any, answer: Any) -> Any:
        if key == 1 and answer.responses and answer.responses[0].partitions[0].records and left[0] > 0:
            left[0] -= 1
            records = bytearray(answer.responses[0].partitions[0].records)
            records[70] ^= 1
            answer.responses[0].partitions[0].records = bytes(records)
        return answer

    return corrupt


def test_a_wrong_crc_is_asked_for_again(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.controllers[0].behaviour = corrupted(2)
    copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG


def test_a_leader_that_sends_wrong_crcs_only_is_given_up(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.controllers[0].behaviour = corrupted(10_000)
    with pytest.raises(
        QuorumError, match=r"controller 3000 .* sends a batch with CRC .* at offset 0, 5 times in a row"
    ):
        copy_quorum(quorum.settings(), tmp_path)
    assert not (tmp_path / LOG_FOLDER).exists()


def test_an_answer_cut_in_mid_batch_loses_nothing(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.answer_bytes = max(batch.size for batch, _ in quorum.batches) + 1
    copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG


def test_a_connection_cut_in_mid_answer_is_made_again(quorum: FakeQuorum, tmp_path: Path) -> None:
    seen = [0]

    def cut(key: int, request: Any, answer: Any) -> Any:
        seen[0] += key == 1
        quorum.controllers[0].cut_after = 1000 if key == 1 and seen[0] == 5 else None
        return answer

    quorum.controllers[0].behaviour = cut
    copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG


def test_a_copy_that_fails_leaves_the_one_before_it(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.high_watermark = quorum.batches[30][0].next_offset
    copy_quorum(quorum.settings(), tmp_path)
    before = {path.name: path.read_bytes() for path in (tmp_path / LOG_FOLDER).iterdir()}
    quorum.high_watermark = quorum.end
    quorum.controllers[0].behaviour = corrupted(10_000)
    with pytest.raises(QuorumError):
        copy_quorum(quorum.settings(), tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / LOG_FOLDER).iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", LOG_FOLDER]


def test_what_a_killed_copying_left_is_no_copy_and_goes(quorum: FakeQuorum, tmp_path: Path) -> None:
    copy_quorum(quorum.settings(), tmp_path)
    shutil.copytree(tmp_path / LOG_FOLDER, tmp_path / ".copying-killed")
    (tmp_path / LOG_FOLDER).rename(tmp_path / ".replaced-killed")
    assert copy_quorum(quorum.settings(), tmp_path).resumed_at == quorum.end
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", LOG_FOLDER]


def test_a_copy_whose_segments_were_touched_is_not_gone_on_from(quorum: FakeQuorum, tmp_path: Path) -> None:
    copy_quorum(quorum.settings(), tmp_path)
    segment = next((tmp_path / LOG_FOLDER).glob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-1])
    assert copy_quorum(quorum.settings(), tmp_path).resumed_at is None
    assert stored(tmp_path) == LOG


def in_parts(quorum: FakeQuorum, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A copy of three segments, each made by a copying of its own."""
    monkeypatch.setattr("jobs.sources.kraft.live.copy_segments._APPEND_BELOW_BYTES", 0)
    for number in (50, 100, len(quorum.batches) - 1):
        quorum.high_watermark = quorum.batches[number][0].next_offset
        copy_quorum(quorum.settings(), folder)
    return sorted((folder / LOG_FOLDER).glob("*.log"))


def rot(path: Path, at: int | None = None) -> None:
    """One bit of a byte, by default of the middle of the file; its size and its time stay."""
    before, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2 if at is None else at] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


# Byte 14 is of the first batch's leader epoch, over which its own CRC does not go.
@pytest.mark.parametrize("at", [None, 14], ids=["records", "an epoch"])
@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_segment_that_the_disk_has_damaged_is_fetched_again(
    quorum: FakeQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, at: int | None
) -> None:
    segments = in_parts(quorum, tmp_path, monkeypatch)
    assert len(segments) == 3
    rot(segments[number], at)
    copied = copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG
    assert copied.resumed_at == (int(segments[number].stem) if number else None)
    assert copied.proof.notes == (
        f"the earlier copy could not be resumed beyond offset {int(segments[number].stem)}: its {segments[number].name} was damaged"
        if number
        else f"the earlier copy could not be resumed: its {segments[number].name} was damaged",
    )
    again = copy_quorum(quorum.settings(), tmp_path)
    assert (again.resumed_at, again.proof.notes) == (quorum.end, ())


def test_a_copy_of_an_earlier_release_is_resumed_and_its_damage_is_found_too(
    quorum: FakeQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_of_an_earlier_release() -> None:
        proof = json.loads((tmp_path / LOG_FOLDER / PROOF_FILE).read_text())
        for segment in proof["segments"]:
            del segment["crc"]
        (tmp_path / LOG_FOLDER / PROOF_FILE).write_text(json.dumps(proof))

    segments = in_parts(quorum, tmp_path, monkeypatch)
    as_of_an_earlier_release()
    assert copy_quorum(quorum.settings(), tmp_path).resumed_at == quorum.end
    as_of_an_earlier_release()
    rot(segments[1])
    assert copy_quorum(quorum.settings(), tmp_path).resumed_at == int(segments[1].stem)
    assert stored(tmp_path) == LOG


def test_a_damaged_segment_that_the_controllers_have_dropped_is_told_as_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = max(CHECKPOINTS)
    early = FakeQuorum.of_log(LOG)
    with fake_controllers(early):
        segments = in_parts(early, tmp_path, monkeypatch)
    assert int(segments[1].stem) < start[0]
    rot(segments[1])
    with fake_controllers(trimmed(start)) as late:
        copied = copy_quorum(late.settings(), tmp_path)
    assert copied.proof.gap == (int(segments[1].stem), start[0])
    [copy] = read_copies(tmp_path)
    assert (copy.problem, copy.checkpoints[0].offset, copy.checkpoints[0].complete) == (None, start[0], True)
    assert stored(tmp_path) == late.committed()


def test_a_checkpoint_that_the_disk_has_damaged_is_fetched_again(tmp_path: Path) -> None:
    with fake_controllers(FakeQuorum.of_log(LOG, CHECKPOINTS)) as quorum:
        copy_quorum(quorum.settings(), tmp_path)
        [checkpoint] = (tmp_path / LOG_FOLDER).glob("*.checkpoint")
        rot(checkpoint)
        assert copy_quorum(quorum.settings(), tmp_path).resumed_at == quorum.end
    assert checkpoint.read_bytes() == CHECKPOINTS[max(CHECKPOINTS)]


def test_a_checkpoint_that_replay_starts_from_is_fetched_again_with_the_log(tmp_path: Path) -> None:
    start = min(CHECKPOINTS)
    with fake_controllers(trimmed(start)) as quorum:
        copy_quorum(quorum.settings(), tmp_path)
        whole = stored(tmp_path)
        checkpoint = tmp_path / LOG_FOLDER / f"{start[0]:020}-{start[1]:010}.checkpoint"
        rot(checkpoint)
        copy_quorum(quorum.settings(), tmp_path)
    assert checkpoint.read_bytes() == CHECKPOINTS[start]
    assert stored(tmp_path) == whole


def test_a_controllers_own_folder_is_never_replaced(quorum: FakeQuorum, tmp_path: Path) -> None:
    own = tmp_path / LOG_FOLDER
    own.mkdir()
    (own / f"{0:020}.log").write_bytes(LOG)
    with pytest.raises(QuorumError, match="contains a log that this program did not fetch"):
        copy_quorum(quorum.settings(), tmp_path)
    assert [path.name for path in own.iterdir()] == [f"{0:020}.log"]


def test_two_copyings_into_one_folder_do_not_mix(quorum: FakeQuorum, tmp_path: Path) -> None:
    def wait(key: int, request: Any, answer: Any) -> Any:
        time.sleep(0.1)
        return answer

    quorum.controllers[0].behaviour, quorum.answer_bytes = wait, len(LOG)
    first = threading.Thread(target=copy_quorum, args=(quorum.settings(), tmp_path))
    first.start()
    time.sleep(0.2)
    with pytest.raises(QuorumError, match="another process is copying into it"):
        copy_quorum(quorum.settings(), tmp_path)
    first.join()
    assert stored(tmp_path) == LOG


def test_short_copies_do_not_make_many_files(quorum: FakeQuorum, tmp_path: Path) -> None:
    for number in range(10, 100, 10):
        quorum.high_watermark = quorum.batches[number][0].next_offset
        copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == quorum.committed()
    assert len(list((tmp_path / LOG_FOLDER).glob("*.log"))) == 1


def test_what_the_controllers_dropped_goes_from_the_copy_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.sources.kraft.live.copy_segments._APPEND_BELOW_BYTES", 0)
    start = max(CHECKPOINTS)
    early = FakeQuorum.of_log(LOG)
    for offset in (300, start[0]):
        early.high_watermark = next(b.next_offset for b, _ in early.batches if b.next_offset >= offset)
        with fake_controllers(early):
            copy_quorum(early.settings(), tmp_path)
        early.controllers.clear()
    with fake_controllers(trimmed(start)) as late:
        late.snapshots = {start: CHECKPOINTS[start]}
        copied = copy_quorum(late.settings(), tmp_path)
    assert copied.proof.gap is None
    assert stored(tmp_path).endswith(late.committed()[-200:])
    [copy] = read_copies(tmp_path)
    assert (copy.problem, copy.checkpoints[0].offset) == (None, start[0])


def test_a_new_leader_that_does_not_know_its_high_watermark_yet_is_waited_for(
    quorum: FakeQuorum, tmp_path: Path
) -> None:
    known, quorum.high_watermark = quorum.high_watermark, -1

    def learn() -> None:
        time.sleep(0.5)
        quorum.high_watermark = known

    threading.Thread(target=learn, daemon=True).start()
    copy_quorum(quorum.settings(), tmp_path)
    assert stored(tmp_path) == LOG


def test_a_quorum_that_commits_nothing_is_told(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.high_watermark = -1
    with pytest.raises(QuorumError, match=r"returns no committed records from offset 0 on for 0\.5 s"):
        copy_quorum(quorum.settings(patience_seconds=0.5), tmp_path)


def test_voters_that_may_not_be_seen_are_said_to_be_unknown(quorum: FakeQuorum, tmp_path: Path) -> None:
    quorum.denied = frozenset({55})
    copied = copy_quorum(quorum.settings(), tmp_path)
    assert copied.proof.voters is None
    assert copied.proof.notes == ("the voters are unknown: DESCRIBE on the cluster is not granted",)
    assert proved(tmp_path) == quorum.end


def test_the_rate_is_kept(quorum: FakeQuorum, tmp_path: Path) -> None:
    started = time.monotonic()
    copied = copy_quorum(quorum.settings(bytes_per_second=len(LOG) * 2), tmp_path)
    assert time.monotonic() - started >= copied.bytes_received / (len(LOG) * 2) * 0.9


def test_a_garbled_proof_proves_nothing(quorum: FakeQuorum, tmp_path: Path) -> None:
    copy_quorum(quorum.settings(), tmp_path)
    (tmp_path / LOG_FOLDER / PROOF_FILE).write_text('{"format": 1, "high_watermark": "much"}')
    with pytest.raises(ValueError, match="makes no sense"):
        read_proof(tmp_path / LOG_FOLDER)
    [copy] = read_copies(tmp_path)
    assert copy.proof is None
    assert copy.row()["high_watermark"] is None
