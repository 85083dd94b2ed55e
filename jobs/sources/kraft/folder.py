"""Controllers' log folders: which copies are there, what each holds, in which files.

Only headers of batches are read here; records are read by `jobs.sources.kraft.log`. Nothing is ever written.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.sources.kraft.proof import Proof, read_proof
from jobs.sources.remote import RemoteError, is_remote, local_path, staged
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.kraft.records import FEATURE_LEVEL
from transforms.kraft.decode.rows import Origin
from transforms.kraft.decode.scan import (
    SPLIT_BYTES,
    ByteRange,
    SegmentScan,
    Voters,
    begins_with,
    checkpoint_problem,
    checkpoint_voters,
    scan_segment,
)
from transforms.kraft.decode.segments import Continuation, decode_checkpoint
from transforms.properties import MalformedPropertiesError, parse
from transforms.secrets import Fingerprinter

LOG_FOLDER = "__cluster_metadata-0"
# A segment has up to a gigabyte, and several clusters are looked at at the same time.
_LARGE_BYTES = 32 * 1024 * 1024
_ONE_LARGE = threading.Lock()
# Exactly these names count. `NNN.snapshot` is the producer state of the log layer, not a metadata snapshot; `.part`,
# `.deleted`, `.index` and `.timeindex` are left alone (S§2.1).
_SEGMENT = re.compile(r"^(\d{20})\.log$")
_CHECKPOINT = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")
# Newer releases format a node with this file: records that the first leader appends to the log, and no committed state.
_BOOTSTRAP = f"{0:020}-{0:010}.checkpoint"
_FORMATTED = "its controller was formatted and not started since: there is no log in it"
_PRODUCER_SNAPSHOT = re.compile(r"^(\d{20})\.snapshot$")


class KraftSourceError(ValueError):
    """A path without a readable copy of the metadata log; the message names it and what to give instead."""

    for_the_user = True


@dataclass(frozen=True)
class SegmentFile:
    """One `.log` file; `ranges` cut it along batches for parallel reading, `location` is where workers read it.

    It is `damaged` if something before its last batch is missing or broken; what a running controller has not finished is after it.
    """

    path: Path
    size: int
    next_offset: int | None
    ranges: tuple[ByteRange, ...]
    location: str
    damaged: bool = False


@dataclass(frozen=True)
class CheckpointFile:
    """One metadata snapshot; everything below `offset` (exclusive) is in it. `problem` is the reason why it is incomplete.

    `voters` are those of a dynamic quorum with their directory ids, None for a static one.
    """

    path: Path
    offset: int
    epoch: int
    size: int
    problem: str | None
    location: str
    voters: Voters | None = None

    @property
    def complete(self) -> bool:
        """True when header and footer are there and every batch is intact."""
        return self.problem is None


@dataclass(frozen=True)
class ScannedCopy:
    """One controller's copy: the columns of bronze `kraft_log_copies` (without chosen_*) and the files behind them."""

    controller_id: int | None
    location: str
    cluster_id: str | None
    meta_version: int | None
    log_start_offset: int | None
    log_end_offset: int | None
    last_epoch: int | None
    last_append_time: int | None
    epoch_starts: tuple[tuple[int, int], ...]
    checkpoints: tuple[CheckpointFile, ...]
    quorum_leader_id: int | None
    quorum_leader_epoch: int | None
    voters: Voters
    producer_snapshot_offset: int | None
    bytes: int
    torn_tail_bytes: int
    problem: str | None
    segments: tuple[SegmentFile, ...]
    notes: tuple[str, ...] = ()
    directory_id: str | None = None
    largest_batch_bytes: int = 0
    bootstrap_level: int | None = None
    proof: Proof | None = None
    other_log: bool = False

    def row(self) -> dict[str, Any]:
        """The columns of `schemas.bronze.LOG_COPY_COLUMNS`; chosen_from, chosen_to and base_run are None."""
        return {
            "controller_id": self.controller_id,
            "location": self.location,
            "cluster_id": self.cluster_id,
            "meta_version": self.meta_version,
            "log_start_offset": self.log_start_offset,
            "log_end_offset": self.log_end_offset,
            "last_epoch": self.last_epoch,
            "last_append_time": self.last_append_time,
            "epoch_starts": [{"epoch": epoch, "start_offset": start} for epoch, start in self.epoch_starts],
            "checkpoints": [
                {"file": file.path.name, "offset": file.offset, "epoch": file.epoch, "complete": file.complete}
                for file in self.checkpoints
            ],
            "quorum_leader_id": self.quorum_leader_id,
            "quorum_leader_epoch": self.quorum_leader_epoch,
            "voters": [voter for voter, _ in self.voters],
            "producer_snapshot_offset": self.producer_snapshot_offset,
            "high_watermark": None if self.proof is None else self.proof.high_watermark,
            "fetched_at": None if self.proof is None else self.proof.finished_ms,
            "voter_ends": None if self.proof is None else _voter_ends(self.proof),
            "bytes": self.bytes,
            "torn_tail_bytes": self.torn_tail_bytes,
            "chosen_from": None,
            "chosen_to": None,
            "base_run": None,
            "problem": self.problem,
            "directory_id": self.directory_id,
            "largest_batch_bytes": self.largest_batch_bytes,
            "bootstrap_level": self.bootstrap_level,
            "voter_directories": [
                {"voter_id": voter, "directory_id": directory}
                for voter, directory in self.voters
                if directory is not None
            ],
            "damaged": any(segment.damaged for segment in self.segments),
            "silent_voters": None if self.proof is None else list(self.proof.silent_voters),
            "other_log": self.other_log,
        }


def find_log_folders(path: Path | str) -> list[Path]:
    """Find the `__cluster_metadata-0` folders below `path`, which may be one, hold one, or hold several controllers.

    Raises KraftSourceError when there is none.
    """
    root = Path(path)
    try:
        if not root.is_dir():
            reason = "is a file" if root.exists() else "does not exist"
            raise KraftSourceError(f"{root}: {reason}; give a controller's metadata log folder")
        if root.name == LOG_FOLDER or _contains_log(root):
            return [root]
        if (root / LOG_FOLDER).is_dir():
            return [root / LOG_FOLDER]
        found = [child / LOG_FOLDER for child in sorted(root.iterdir()) if (child / LOG_FOLDER).is_dir()]
    except OSError as error:
        raise KraftSourceError(f"{root}: can't be read: {error.strerror}") from None
    if not found:
        raise KraftSourceError(f"{root}: no {LOG_FOLDER} in it; give the controller's log.dirs or metadata.log.dir")
    return found


def read_copies(path: Path | str, split_bytes: int = SPLIT_BYTES) -> list[ScannedCopy]:
    """Read the facts of every copy below `path` (see `find_log_folders`), which may be remote (`jobs.sources.remote`)."""
    text = local_path(str(path))
    if not is_remote(text):
        return [read_copy(folder, split_bytes) for folder in find_log_folders(text)]
    try:
        with staged(text) as folder:
            copies = [read_copy(found, split_bytes) for found in find_log_folders(folder)]
            return [_moved(copy, str(folder), text.rstrip("/")) for copy in copies]
    except RemoteError as error:
        raise KraftSourceError(str(error)) from None


def formatted_copy(path: Path | str) -> ScannedCopy | None:
    """The copy of a controller that was formatted and not started since, so that its folder has no log yet; None for any other folder."""
    text = local_path(str(path))
    if is_remote(text) or not (Path(text) / "meta.properties").is_file() or (Path(text) / LOG_FOLDER).exists():
        return None
    empty = read_copy(Path(text) / LOG_FOLDER)
    return replace(empty, problem=_FORMATTED, notes=())


def _moved(copy: ScannedCopy, staged_at: str, uri: str) -> ScannedCopy:
    """The copy as it is where it was staged from: locations and messages name the remote files."""

    def there(text: str) -> str:
        return text.replace(staged_at, uri)

    return replace(
        copy,
        location=there(copy.location),
        checkpoints=tuple(replace(file, location=there(file.location)) for file in copy.checkpoints),
        segments=tuple(replace(file, location=there(file.location)) for file in copy.segments),
        problem=None if copy.problem is None else there(copy.problem),
        notes=tuple(there(note) for note in copy.notes),
    )


def read_copy(folder: Path, split_bytes: int = SPLIT_BYTES) -> ScannedCopy:
    """Read the facts of the copy in one `__cluster_metadata-0` folder.

    What can't be read becomes `problem` (the copy can't be used) or a note (it can); nothing is raised.
    """
    notes: list[str] = []
    proof = _proof(folder, notes)
    meta = _meta_properties(folder, notes)
    quorum = _quorum_state(folder, notes)
    segments: list[SegmentFile] = []
    scans: list[SegmentScan] = []
    checkpoints: list[CheckpointFile] = []
    problem: str | None = None
    try:
        checkpoints = _checkpoints(folder, notes)
        fetched = {file.offset for file in checkpoints if file.complete}
        segments, scans = _segments(folder, split_bytes, fetched, notes)
        # From 4.2 on `kafka-storage format` writes it; a controller that starts makes quorum-state and a segment beside it.
        if [child.name for child in folder.iterdir()] == [_BOOTSTRAP]:
            problem = _FORMATTED
    except OSError as error:
        problem = f"{error.filename}: can't be read: {error.strerror}"
    filled = [scan for scan in scans if scan.first_offset is not None]
    last = filled[-1] if filled else None
    start = _log_start(filled, proof)
    notes += [f"{file.path.name}: incomplete checkpoint: {file.problem}" for file in checkpoints if file.problem]
    return ScannedCopy(
        controller_id=_number(meta.get("node.id", meta.get("broker.id"))),
        location=str(folder),
        cluster_id=meta.get("cluster.id"),
        meta_version=_number(meta.get("version")),
        log_start_offset=start,
        log_end_offset=last.next_offset if last else None,
        last_epoch=last.last_epoch if last else None,
        last_append_time=last.last_append_time if last else None,
        epoch_starts=_epoch_starts(filled),
        checkpoints=tuple(checkpoints),
        quorum_leader_id=_number(quorum.get("leaderId")),
        quorum_leader_epoch=_number(quorum.get("leaderEpoch")),
        voters=_voters(quorum, filled, checkpoints),
        producer_snapshot_offset=_producer_snapshot(folder),
        bytes=sum(segment.size for segment in segments),
        torn_tail_bytes=_torn_tail(scans),
        problem=problem or _unusable(start, last, checkpoints),
        segments=tuple(segments),
        notes=tuple(notes),
        directory_id=meta.get("directory.id"),
        largest_batch_bytes=max((scan.largest_batch for scan in scans), default=0),
        bootstrap_level=_bootstrap_level(folder),
        proof=proof,
    )


@contextmanager
def whole_file(path: Path) -> Iterator[bytes]:
    """The bytes of a file; of large ones, one at a time is in memory.

    It is not mapped: a mapped file that is cut short meanwhile, as by whoever copies another one over it, ends this process.
    """
    with path.open("rb") as file:
        large = os.fstat(file.fileno()).st_size > _LARGE_BYTES
        with _ONE_LARGE if large else nullcontext():
            yield file.read()


def named_place(segment: Path, data: bytes) -> Continuation:
    """Where a segment begins by its name, if its batches agree; it is named after its first offset (`LogFileUtils.logFile`).

    A damaged offset of its first batch shows by that.
    """
    named = _SEGMENT.match(segment.name)
    return Continuation(0, int(named[1])) if named is not None and begins_with(data, int(named[1])) else Continuation()


def _contains_log(folder: Path) -> bool:
    return any(_SEGMENT.match(child.name) or _CHECKPOINT.match(child.name) for child in folder.iterdir())


def _segments(
    folder: Path, split_bytes: int, checkpoints: set[int], notes: list[str]
) -> tuple[list[SegmentFile], list[SegmentScan]]:
    """The log's segments in order, each scanned. `checkpoints` are the offsets (exclusive ends) of the complete ones.

    A controller that fetches a checkpoint removes its log and begins a segment where the checkpoint ends. A copy into the folder
    of an earlier one keeps the segments before it (`KafkaMetadataLog.truncateToLatestSnapshot`).
    """
    files: list[SegmentFile] = []
    scans: list[SegmentScan] = []
    previous = Continuation()
    for path in sorted(folder.iterdir()):
        matched = _SEGMENT.match(path.name)
        if matched is None:
            continue
        base = int(matched[1])
        if previous.next_offset not in (None, base) and base in checkpoints:
            notes.append(
                f"segments before offset {base} are an earlier copy's: the controller replaced its log by the checkpoint that ends there"
            )
            files, scans, previous = [], [], Continuation()
        try:
            with whole_file(path) as data:
                if previous.next_offset is None:
                    previous = named_place(path, data)
                scan = scan_segment(data, previous, split_bytes)
        except FileNotFoundError:
            notes.append(_gone(path))
            continue
        if scan.first_offset is not None and scan.first_offset != base:
            notes.append(f"{path.name} begins with offset {scan.first_offset}, not with the one it is named after")
        damaged = not scan.in_order or scan.intact_bytes + scan.torn_bytes < scan.size
        files.append(SegmentFile(path, scan.size, scan.next_offset, tuple(scan.ranges), str(path), damaged))
        scans.append(scan)
        if scan.next_offset is not None:
            previous = Continuation(0, scan.next_offset, scan.last_epoch)
    return files, scans


def _checkpoints(folder: Path, notes: list[str]) -> list[CheckpointFile]:
    found = []
    for path in sorted(folder.iterdir()):
        matched = _CHECKPOINT.match(path.name)
        if matched is None or path.name == _BOOTSTRAP:
            continue
        try:
            with whole_file(path) as data:
                problem = checkpoint_problem(data)
                voters = checkpoint_voters(data) if problem is None else None
                found.append(
                    CheckpointFile(path, int(matched[1]), int(matched[2]), len(data), problem, str(path), voters)
                )
        except FileNotFoundError:
            notes.append(_gone(path))
    return found


def _gone(path: Path) -> str:
    return f"{path.name} disappeared while it was read: a controller is using this folder"


def _proof(folder: Path, notes: list[str]) -> Proof | None:
    """The leader's report about a copy that was fetched from it; None for a controller's own folder."""
    try:
        return read_proof(folder)
    except (OSError, ValueError) as error:
        notes.append(f"{folder}: {error}; the committed end is determined as for a controller's own folder")
        return None


def _log_start(filled: list[SegmentScan], proof: Proof | None) -> int | None:
    """First offset of the log. What was fetched of a whole log may lack offset 0, which is not the log's loss.

    Once there is a snapshot, no fetch gets it; before 4.0 it is a batch of its own, the first leader's LeaderChange
    (`KafkaRaftClient.validateFetchOffsetAndEpoch`).
    """
    start = filled[0].first_offset if filled else None
    return 0 if start == 1 and proof is not None and proof.begins_at == 0 else start


def _voter_ends(proof: Proof) -> list[dict[str, int]]:
    return [
        {"voter_id": voter.replica_id, "log_end_offset": voter.log_end}
        for voter in proof.voters or ()
        if voter.log_end is not None
    ]


def _producer_snapshot(folder: Path) -> int | None:
    """Offset of the newest producer snapshot; None without one."""
    try:
        found = [_PRODUCER_SNAPSHOT.match(path.name) for path in folder.iterdir()]
    except OSError:
        return None
    return max((int(matched[1]) for matched in found if matched), default=None)


def _meta_properties(folder: Path, notes: list[str]) -> dict[str, str]:
    """Read `meta.properties` beside the log folder (v0 or v1), or inside it."""
    for path in (folder.parent / "meta.properties", folder / "meta.properties"):
        try:
            return {key: value.strip() for key, value in parse(path.read_text("latin-1")).items()}
        except FileNotFoundError:
            continue
        except (OSError, MalformedPropertiesError):
            notes.append(f"{path}: can't be read; controller and cluster id are unknown")
            return {}
    notes.append(f"{folder.parent}/meta.properties is missing; controller and cluster id are unknown")
    return {}


_BOOTSTRAP_FILE = "bootstrap.checkpoint"
# It holds a dozen records; a longer one is not what `kafka-storage format` writes.
_BOOTSTRAP_BYTES = 1024 * 1024


def _bootstrap_level(folder: Path) -> int | None:
    """metadata.version of the `bootstrap.checkpoint` beside the log folder, or inside it (`BootstrapDirectory`)."""
    level = None
    for path in (folder.parent / _BOOTSTRAP_FILE, folder / _BOOTSTRAP_FILE):
        try:
            data = path.read_bytes() if path.stat().st_size <= _BOOTSTRAP_BYTES else b""
        except OSError:
            continue
        # The file may contain SCRAM credentials: they are masked with a key that is not kept.
        for batch in decode_checkpoint(data, Origin(None, path.name, 0), Fingerprinter(os.urandom(32))):
            for name, body in zip(batch.column("type").to_pylist(), batch.column("data").to_pylist(), strict=True):
                record = json.loads(body) if name == FEATURE_LEVEL.name and body else {}
                if record.get("name") == FEATURE_NAME:
                    level = _number(record.get("featureLevel"))
        return level
    return level


def _quorum_state(folder: Path, notes: list[str]) -> dict[str, Any]:
    path = folder / "quorum-state"
    try:
        state = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        notes.append(f"{path} is missing; the leader and the voters are taken from the log")
        return {}
    except (OSError, ValueError):
        notes.append(f"{path}: not readable as JSON; the leader and the voters are taken from the log")
        return {}
    return state if isinstance(state, dict) else {}


def _voters(quorum: dict[str, Any], scans: list[SegmentScan], checkpoints: list[CheckpointFile]) -> Voters:
    """Voters of the log's newest KRaftVoters, else of the newest checkpoint, else of the newest LeaderChange, else of quorum-state.

    A LeaderChange repeats the voters of a dynamic quorum without their directory ids. quorum-state comes last: a static
    quorum that became dynamic keeps its old voters there until the next election, and a controller that joins a dynamic one
    has none (KIP-853).
    """
    recorded = [scan.voters for scan in reversed(scans)] + [file.voters for file in reversed(checkpoints)]
    recorded += [scan.elected_by for scan in reversed(scans)]
    known = next((voters for voters in recorded if voters is not None), None)
    if known is not None:
        return known
    voters = quorum.get("currentVoters")
    if not isinstance(voters, list):
        return ()
    ids = [_number(voter.get("voterId")) for voter in voters if isinstance(voter, dict)]
    return tuple((voter, None) for voter in sorted(voter for voter in ids if voter is not None))


def _epoch_starts(scans: list[SegmentScan]) -> tuple[tuple[int, int], ...]:
    starts: list[tuple[int, int]] = []
    for scan in scans:
        starts += [pair for pair in scan.epoch_starts if not starts or pair[0] > starts[-1][0]]
    return tuple(starts)


def _torn_tail(scans: list[SegmentScan]) -> int:
    """Bytes after the last intact batch of the copy; segments that hold no batch at all count whole."""
    torn = 0
    for scan in reversed(scans):
        torn += scan.torn_bytes
        if scan.first_offset is not None:
            break
    return torn


def _unusable(start: int | None, last: SegmentScan | None, checkpoints: list[CheckpointFile]) -> str | None:
    """Why a controller would not use the log when it starts (`KafkaMetadataLog.recoverSnapshots`, `truncateToLatestSnapshot`)."""
    complete = [(file.epoch, file.offset) for file in checkpoints if file.complete]
    if start is None or last is None or last.next_offset is None:
        return None if complete else "no record batch and no complete checkpoint in it"
    if start > 0 and not any(offset >= start for _, offset in complete):
        return f"the log begins at offset {start} and no complete checkpoint covers what came before"
    epoch, end = max(complete, default=(0, 0))
    if (epoch, end) > (last.last_epoch or 0, last.next_offset):
        return (
            f"the log ends at offset {last.next_offset - 1}, in epoch {last.last_epoch}, before its checkpoint at {end}, in {epoch}: "
            "copy the whole folder again"
        )
    return None


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
