"""A copy of the log of a running quorum, in a folder laid out like a controller's, with the leader's proof next to it.

A copy is made in a folder of another name and takes its place when it is complete, so the folder always has a complete copy. The
next copy continues it: its segments are linked, not copied, after the leader has sent the last batch once more, byte for
byte. What the disk has damaged meanwhile is fetched again. Batches are stored as the leader sends them, from its own segments, up
to its high watermark; each CRC is checked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from jobs.sources.kraft.folder import whole_file
from jobs.sources.kraft.live import messages
from jobs.sources.kraft.live.copy_folder import (
    LOG_FOLDER,
    check_room,
    flush,
    link,
    locked,
    new_draft,
    sweep,
    take_place,
)
from jobs.sources.kraft.live.copy_segments import (
    Segments,
    base_offset,
    checkpoint_offset,
    is_damaged_checkpoint,
    undamaged,
)
from jobs.sources.kraft.live.errors import DamagedReplyError, MovedError, QuorumError
from jobs.sources.kraft.live.messages import FetchAnswer, OffsetAndEpoch, QuorumAnswer
from jobs.sources.kraft.live.quorum import Leader, QuorumClient, QuorumSettings
from jobs.sources.kraft.proof import FetchedSegment, Proof, ReplicaState, read_proof, write_proof
from transforms.kraft.decode.framing import BatchHeader, batch_size, crc_of, read_header
from transforms.kraft.decode.scan import checkpoint_problem

_ATTEMPTS = 5
# Each attempt that fails leaves a stack trace in the controller's log: it can't encode the refusal.
_SNAPSHOT_ATTEMPTS = 3
_POLL_SECONDS = 0.1
# The newest ones, besides the one that replay starts from.
_NEWEST_CHECKPOINTS = 2


@dataclass(frozen=True)
class CopyResult:
    """What a copy took: `bytes_received` of log and snapshots; `resumed_at` is the offset it continued from, or None."""

    folder: Path
    proof: Proof
    bytes_received: int
    seconds: float
    resumed_at: int | None


def copy_quorum(
    settings: QuorumSettings,
    folder: Path,
    *,
    history: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> CopyResult:
    """Copy log and snapshots of a quorum into `folder`, or what is new since the copy that is there.

    history: everything that is still served; otherwise the newest checkpoint and the log after it. progress: is called with the
    next offset and the one to reach. Raises QuorumError (one line) and leaves an existing copy as it was.
    """
    started, started_ms = time.monotonic(), _now_ms()
    with locked(folder), QuorumClient(settings) as quorum:
        sweep(folder)
        for attempt in range(1, _ATTEMPTS + 1):
            with new_draft(folder) as draft:
                try:
                    copy = _Copy(quorum, folder, draft, history, progress)
                    copy.make()
                    proof = copy.finish(settings.cluster_id, started_ms)
                except MovedError as error:
                    if attempt == _ATTEMPTS:
                        raise QuorumError(f"given up after {attempt} attempts: {error}") from None
                    continue
                take_place(folder, draft)
            return CopyResult(folder, proof, quorum.bytes_received, time.monotonic() - started, copy.resumed_at)
    raise AssertionError("the last attempt returns or raises")


@dataclass
class _Copy:
    """One attempt. `position` is the next offset to ask for, `last_epoch` that of the record before it."""

    quorum: QuorumClient
    kept: Path
    draft: Path
    history: bool
    progress: Callable[[int, int], None] | None
    position: int = 0
    last_epoch: int = 0
    log_start: int = 0
    begins_at: int = 0
    high_watermark: int = -1
    resumed_at: int | None = None
    leader: Leader | None = None
    notes: list[str] = field(default_factory=list)
    gap: tuple[int, int] | None = None
    segments: tuple[FetchedSegment, ...] = ()
    damages: int = 0

    def make(self) -> None:
        """Copy snapshots and log into the draft. Raises MovedError when to begin again, QuorumError."""
        leader, first = self._first_answer()
        self.log_start = first.log_start
        kept = self._kept_proof()
        if kept is not None and self._resume(kept):
            self.begins_at = kept.begins_at
        else:
            self.begins_at = self.log_start
            self._begin(first)
        if first.snapshot is not None:
            self._snapshot(first.snapshot)
        with Segments(self.draft) as segments:
            if self.resumed_at is not None and kept is not None:
                segments.go_on(self.kept / LOG_FOLDER, kept.segments)
            self._log(segments, leader)
            self.segments = segments.finish()
        self._trim()

    def finish(self, cluster_id: str | None, started_ms: int) -> Proof:
        """Write the files beside the log. Returns the proof."""
        if self.leader is None:
            raise AssertionError("a copy has a leader")
        quorum = self._described()
        voters = None if quorum is None else _states(quorum.voters)
        proof = Proof(
            cluster_id=cluster_id,
            leader_id=self.leader.node_id,
            leader_epoch=self.leader.epoch,
            high_watermark=self.high_watermark,
            log_start=self.log_start,
            begins_at=self.begins_at,
            log_end=self.position,
            started_ms=started_ms,
            finished_ms=_now_ms(),
            voters=voters,
            observers=None if quorum is None else _states(quorum.observers),
            segments=self.segments,
            notes=tuple(self.notes),
            gap=self.gap,
        )
        _write_quorum_state(self.draft, proof)
        replicas = () if quorum is None else quorum.voters
        directory = next((each.directory_id for each in replicas if each.replica_id == proof.leader_id), None)
        _write_meta_properties(self.draft, proof, directory)
        write_proof(self.draft, proof)
        return proof

    def _first_answer(self) -> tuple[Leader, FetchAnswer]:
        """The answer to a fetch from offset 0: the newest checkpoint, or, without any, the log's first records."""
        leader, answer = self.quorum.fetch(0, 0)
        self.leader = leader
        return leader, answer

    def _kept_proof(self) -> Proof | None:
        """The proof of the copy that is there, up to its first damaged segment, when that can be continued from."""
        log = self.kept / LOG_FOLDER
        try:
            proof = read_proof(log)
        except (ValueError, OSError):
            self.notes.append("the earlier copy could not be resumed: its proof cannot be read")
            return None
        if proof is None or not proof.segments:
            return None
        first = base_offset(proof.segments[0])
        if any(is_damaged_checkpoint(path) for path in log.glob(f"{first:020}-*.checkpoint")):
            self.notes.append(f"the earlier copy could not be resumed: its checkpoint at offset {first} was damaged")
            return None
        whole = tuple(undamaged(log, proof.segments))
        if len(whole) == len(proof.segments):
            return replace(proof, segments=whole)
        damaged = f"its {proof.segments[len(whole)].file} was damaged"
        if not whole:
            self.notes.append(f"the earlier copy could not be resumed: {damaged}")
            return None
        self.notes.append(f"the earlier copy could not be resumed beyond offset {whole[-1].next_offset}: {damaged}")
        return replace(proof, segments=whole, log_end=whole[-1].next_offset)

    def _resume(self, kept: Proof) -> bool:
        """Continue after the kept copy, if the leader still has its last batch, byte for byte."""
        last = kept.segments[-1]
        with (self.kept / LOG_FOLDER / last.file).open("rb") as file:
            file.seek(last.last_batch)
            tail = file.read()
        base = int.from_bytes(tail[:8], "big", signed=True)
        if self.log_start > base:
            if self.log_start > kept.log_end:
                self.gap = (kept.log_end, self.log_start)
                self.notes.append(
                    f"offsets {kept.log_end} to {self.log_start - 1} are gone: the controllers removed them before "
                    "they were copied"
                )
            return False
        _, answer = self.quorum.fetch(base, None)
        if answer.diverging is not None or answer.snapshot is not None or not answer.records.startswith(tail):
            self.notes.append(
                f"the earlier copy belongs to another log (it differs before offset {kept.log_end}): everything was copied again"
            )
            return False
        for checkpoint in sorted((self.kept / LOG_FOLDER).glob("*.checkpoint")):
            if checkpoint_offset(checkpoint) <= kept.log_end and not is_damaged_checkpoint(checkpoint):
                link(checkpoint, self.draft / checkpoint.name)
        self.position, self.last_epoch, self.resumed_at = kept.log_end, last.last_epoch, kept.log_end
        return True

    def _begin(self, first: FetchAnswer) -> None:
        """Find out where the log to copy begins, and copy the snapshot before it."""
        newest = first.snapshot
        if newest is None:
            self.position = 0
            return
        if self.history and self.log_start == 0:
            # Offset 0 is answered with a snapshot although the log has it. Before 4.0 it is a batch of its own, the first
            # leader's LeaderChange, and can't be had.
            self.position, self.last_epoch = 1, -1
            return
        oldest = self._oldest() if self.history else None
        chosen = oldest or newest
        self._snapshot(chosen)
        self.position, self.last_epoch = chosen.offset, chosen.epoch

    def _oldest(self) -> OffsetAndEpoch | None:
        epoch = self.quorum.epoch_of_snapshot(self.log_start)
        if epoch is None:
            self.notes.append(f"history from offset {self.log_start} on is no longer available; the copy begins later")
            return None
        return OffsetAndEpoch(self.log_start, epoch)

    def _snapshot(self, snapshot: OffsetAndEpoch) -> None:
        """Copy a snapshot whole from one leader: those of one id differ between controllers, bytes of two don't mix."""
        target = self.draft / f"{snapshot.offset:020}-{snapshot.epoch:010}.checkpoint"
        if target.exists():
            return
        part = target.with_suffix(".checkpoint.part")
        for _ in range(_SNAPSHOT_ATTEMPTS):
            if self._snapshot_once(snapshot, part):
                part.replace(target)
                return
            part.unlink(missing_ok=True)
            _, answer = self._first_answer()
            self.log_start = max(self.log_start, answer.log_start)
            if answer.snapshot is not None and answer.snapshot != snapshot and answer.log_start > snapshot.offset:
                break
            time.sleep(_POLL_SECONDS)
        raise MovedError(f"the checkpoint at offset {snapshot.offset} could not be copied from one leader")

    def _snapshot_once(self, snapshot: OffsetAndEpoch, part: Path) -> bool:
        position, size, source = 0, -1, None
        started = time.monotonic()
        with part.open("wb") as file:
            while size < 0 or position < size:
                leader, answer = self.quorum.snapshot(snapshot, position)
                source = source or leader
                same = leader == source and answer.position == position and size in (-1, answer.size)
                if answer.error != messages.NONE or not same or (not answer.data and position < answer.size):
                    return False
                if size < 0:
                    check_room(part, answer.size, f"the checkpoint at offset {snapshot.offset} of {source}")
                size = answer.size
                position += len(answer.data)
                self._check_pace(source, position, started)
                file.write(answer.data)
            flush(file)
        with whole_file(part) as data:
            problem = checkpoint_problem(data) if position == size else "it is longer than it should be"
        if problem is not None:
            self.notes.append(
                f"the checkpoint at offset {snapshot.offset} of {source} was damaged on arrival: {problem}"
            )
        return problem is None

    def _check_pace(self, source: Leader, received: int, started: float) -> None:
        """A snapshot that comes byte by byte never comes. Raises QuorumError."""
        seconds = time.monotonic() - started - self.quorum.patience_seconds
        if received < seconds * self.quorum.least_bytes_a_second:
            raise QuorumError(f"{source} sends a checkpoint too slowly: {received} bytes so far")

    def _log(self, segments: Segments, leader: Leader) -> None:
        """Copy the log up to the high watermark that was first seen, and what else is committed in the last answer."""
        target: int | None = None
        patience = _Patience(self.quorum.patience_seconds)
        while target is None or self.position < target:
            answerer, answer = self.quorum.fetch(self.position, self.last_epoch if self.last_epoch >= 0 else None)
            if answerer != leader:
                leader, self.leader = answerer, answerer
                self._check_tail(segments)
                continue
            if self._elsewhere(answer):
                continue
            if answer.high_watermark >= 0:
                target = answer.high_watermark if target is None else target
                self.high_watermark = max(self.high_watermark, answer.high_watermark)
            if self._take(segments, answer, leader):
                patience.renew()
            elif target is None or self.position < target:
                patience.wait(f"{leader} returns no committed records from offset {self.position} on")
            if self.progress is not None and target is not None:
                self.progress(self.position, target)
        self.leader = leader

    def _elsewhere(self, answer: FetchAnswer) -> bool:
        """True if the fetch must be repeated with the leader's epoch. Raises MovedError if the log is no longer there."""
        if answer.diverging is not None:
            raise MovedError(f"the leader's log diverges from the copy at offset {answer.diverging.offset}")
        if answer.snapshot is None:
            return False
        # Before 4.0 a record older than the oldest snapshot is answered so although its offset is there.
        if answer.log_start <= self.position and self.last_epoch >= 0 and self.position > 0:
            self.last_epoch = -1
            return True
        raise MovedError(f"the log begins at offset {answer.log_start} now, after {self.position}")

    def _check_tail(self, segments: Segments) -> None:
        """After an election: has the new leader the last batch that was copied from the old one?"""
        tail = segments.last_batch()
        if tail is None:
            return
        _, answer = self.quorum.fetch(int.from_bytes(tail[:8], "big", signed=True), None)
        if answer.diverging is not None or answer.snapshot is not None or not answer.records.startswith(tail):
            raise MovedError("the new leader's log is not the one that was being copied")

    def _take(self, segments: Segments, answer: FetchAnswer, leader: Leader) -> bool:
        """Store the answer's whole committed batches; False when there is none."""
        last: BatchHeader | None = None
        problem = None
        for batch in _batches(answer.records):
            if batch.next_offset > answer.high_watermark:
                break
            problem = self._problem(batch, self.position if last is None else last.next_offset)
            if problem is not None:
                break
            last = batch
        if last is not None:
            segments.store(answer.records[: last.position + last.size], last)
            self.position, self.last_epoch, self.damages = last.next_offset, last.epoch, 0
        if problem is not None:
            self._damaged(leader, problem)
        return last is not None

    def _problem(self, batch: BatchHeader, expected: int) -> str | None:
        """Why a batch that arrived can't be the one of offset `expected`, or None."""
        if not batch.intact:
            return f"a batch with CRC {batch.computed_crc:#010x} instead of {batch.crc:#010x}"
        # Asked for offset 1, the leader sends the whole batch that it is in.
        begins = batch.base_offset == expected or (expected == 1 and batch.base_offset == 0 and batch.next_offset > 1)
        return None if begins else f"a batch of offset {batch.base_offset}"

    def _damaged(self, leader: Leader, what: str) -> None:
        self.damages += 1
        if self.damages >= _ATTEMPTS:
            raise DamagedReplyError(f"{leader} sends {what} at offset {self.position}, {self.damages} times in a row")

    def _described(self) -> QuorumAnswer | None:
        """Voters and observers; None, with a note, if they are not reported: the copy is complete without them."""
        try:
            answer = self.quorum.describe()
        except QuorumError as error:
            self.notes.append(f"the voters are unknown: {error}")
            return None
        if answer.error == messages.NONE:
            return answer
        self.notes.append("the voters are unknown: DESCRIBE on the cluster is not granted")
        return None

    def _trim(self) -> None:
        """Drop what the controllers have dropped as well, and snapshots that nothing starts from."""
        if self.resumed_at is None:
            return
        gone = [segment for segment in self.segments[:-1] if segment.next_offset <= self.log_start]
        first = base_offset(self.segments[len(gone)]) if self.segments else 0
        checkpoints = sorted(self.draft.glob("*.checkpoint"))
        above = [path for path in checkpoints if checkpoint_offset(path) >= first]
        if gone and above:
            for segment in gone:
                (self.draft / segment.file).unlink()
            self.segments = self.segments[len(gone) :]
        wanted = {*above[:1], *checkpoints[-_NEWEST_CHECKPOINTS:]}
        for path in checkpoints:
            if path not in wanted:
                path.unlink()


class _Patience:
    """Waits in small steps while nothing arrives, up to a limit."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    def renew(self) -> None:
        """Something came."""
        self._until = time.monotonic() + self._seconds

    def wait(self, why: str) -> None:
        """Nothing came. Raises QuorumError when that has lasted too long."""
        if time.monotonic() > self._until:
            raise QuorumError(f"{why} for {self._seconds:g} s")
        time.sleep(_POLL_SECONDS)


def _batches(data: bytes) -> Iterator[BatchHeader]:
    """The whole batches at the start of an answer, CRCs computed; a cut one at the end is left out."""
    position = 0
    while (size := batch_size(data, position)) is not None:
        yield read_header(data, position, size, crc_of(data, position, size))
        position += size


def _states(replicas: tuple[messages.Replica, ...]) -> tuple[ReplicaState, ...]:
    return tuple(ReplicaState(r.replica_id, r.log_end, r.last_fetch_ms, r.last_caught_up_ms) for r in replicas)


def _write_quorum_state(folder: Path, proof: Proof) -> None:
    """As a controller's `quorum-state` of data_version 0 (`QuorumStateData`), so that readers of such folders find the voters."""
    state = {
        "clusterId": "",
        "leaderId": proof.leader_id,
        "leaderEpoch": proof.leader_epoch,
        "votedId": -1,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in proof.voter_ids],
        "data_version": 0,
    }
    if proof.voters is None:
        del state["currentVoters"]
        state["data_version"] = 1
    (folder / "quorum-state").write_text(json.dumps(state, separators=(",", ":")), "utf-8")


def _write_meta_properties(folder: Path, proof: Proof, directory_id: str | None) -> None:
    """The leader's, as far as it is known. The file is in the log folder, so that both are moved together."""
    lines = ["version=1", f"node.id={proof.leader_id}"]
    if proof.cluster_id is not None:
        lines.append(f"cluster.id={proof.cluster_id}")
    if directory_id is not None:
        lines.append(f"directory.id={directory_id}")
    (folder / "meta.properties").write_text("\n".join(lines) + "\n", "utf-8")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
