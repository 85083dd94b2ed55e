"""ZooKeeper's data folder, read as it is on disk: the newest complete snapshot, and the transaction logs after it.

The folder may be `dataDir` or its `version-2`; transaction logs may be in a `dataLogDir` of their own. Files are
only read. Snapshots may be plain, gzip (`.gz`) or snappy (`.snappy`); those are decompressed into a file without a name.

The tree is compared with ZooKeeper's own digest of it (`transforms.zookeeper.storage.digest`).
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from jobs.sources.zookeeper.decompress import gunzip, unsnap
from schemas.zookeeper.findings import TREE_DIGEST, TREE_UNPROVED
from schemas.zookeeper.trees import BARRIER, NEWEST
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import Znode, unreadable
from transforms.zookeeper.storage.chroot import MARK, below, chroots, transaction_below
from transforms.zookeeper.storage.digest import DigestVerdict, Judgement, TreeDigest
from transforms.zookeeper.storage.replay import Replay
from transforms.zookeeper.storage.snapshot import (
    Snapshot,
    SnapshotError,
    open_snapshot,
    owned_paths,
    paths_ending,
    read_batches,
)
from transforms.zookeeper.storage.transactions import (
    DamagedError,
    Hole,
    OpCode,
    TransactionLogError,
    ZkTransaction,
    read_transactions,
)

_VERSION_FOLDER = "version-2"
_READ_BYTES = 32 * 1024 * 1024
_SNAPSHOT_NAME = re.compile(r"snapshot\.([0-9a-f]{1,16})(\.gz|\.snappy)?")
_LOG_NAME = re.compile(r"log\.([0-9a-f]{1,16})")
# How a row about the logs as a whole is named; others are named after their file.
_LOGS = "transaction logs"
# The part of a zxid that counts up within an epoch.
_OF_EPOCH = (1 << 32) - 1


class ZooKeeperFolderError(Exception):
    """The folder can't be read as a ZooKeeper data folder: one line with what is missing or wrong, and where."""

    for_the_user = True


@dataclass
class FolderSummary:
    """Summary of what was read, complete once all batches were consumed.

    `last_zxid` is the tree's; `problems` lists files that could not be used, or not to their end; `notes` lists findings that
    are normal for a copy of a running server, such as a torn last entry. `proofs` has the result of the comparison with
    ZooKeeper's own digest.
    """

    snapshot: str = ""
    snapshot_zxid: int = 0
    last_zxid: int = 0
    transactions: int = 0
    chroot: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    proofs: list[Judgement] = field(default_factory=list)

    def judged(self, judgement: Judgement | None) -> None:
        """Add the result of the digests."""
        if judgement is None:
            return
        if judgement.verdict is DigestVerdict.BROKEN:
            self.problems.append(f"{_LOGS}: {judgement.text}")
        else:
            self.proofs.append(judgement)


@dataclass(frozen=True, order=True)
class _File:
    zxid: int
    path: Path


class DataFolder:
    """A data folder and its transaction logs. Results are cached, so that a later call need not read the files again.

    Paths are those below the `chroot`, which is found when it is not given. Raises ZooKeeperFolderError when there is no
    such folder.
    """

    def __init__(self, location: str | Path, log_location: str | Path | None = None, chroot: str | None = None) -> None:
        self._snapshots, self._logs = _files(Path(location), Path(log_location) if log_location else None)
        self._location = location
        self._parse = ParsedLogs()
        self._chroot = chroot
        self._holes: list[Hole] | None = None

    @property
    def chroot(self) -> str:
        """The cluster's chroot. Raises ZooKeeperFolderError when there is more than one cluster to choose from."""
        if self._chroot is None:
            aside = FolderSummary()
            newest = _choose(self._snapshots, self._location, None, aside) if self._snapshots else None
            self._chroot = _one_chroot(newest, self._after(aside.snapshot_zxid, None, aside))
        return self._chroot

    def tree(
        self, redactor: Redactor, zxid: int | None = None, summary: FolderSummary | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the tree at the end of the logs, or right after transaction `zxid`, as batches of `ZNODE_COLUMNS`.

        A file that can't be used, or not to its end, is a row too: its name as the path, and `problem`.
        Raises ZooKeeperFolderError when there is no usable snapshot (or none early enough for `zxid`), or more than one
        cluster to choose from.
        """
        summary = summary if summary is not None else FolderSummary()
        yield from self._tree(redactor, zxid, summary)
        # Faults of the files are rows, too: a worker's summary does not reach the driver.
        yield from _about_files(summary.problems)

    def _tree(self, redactor: Redactor, zxid: int | None, summary: FolderSummary) -> Iterator[pa.RecordBatch]:
        snapshot = self._choose(zxid, summary)
        transactions = list(self._after(summary.snapshot_zxid, zxid, summary))
        self._note_end(transactions, summary)
        if zxid is not None and summary.last_zxid < zxid and not summary.problems:
            summary.problems.append(f"{_LOGS}: they end at zxid {summary.last_zxid:#x}, before {zxid:#x}")
        summary.chroot = self.chroot
        digest = TreeDigest.of(snapshot, summary.snapshot_zxid, transactions)
        replay = Replay(transactions, redactor, digest)
        for batch in replay.run(read_batches(snapshot, redactor), owned_paths(snapshot)):
            yield below(batch, summary.chroot)
        summary.judged(digest.judge(summary.last_zxid))

    def trees(self, redactor: Redactor, barrier: int | None) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yield two trees, that right after transaction `barrier` and the newest one, as (`tree`, batch of `ZNODE_COLUMNS`).

        `tree` is one of `schemas.zookeeper.trees`, None for znodes that are the same in both, and for all when there is no
        barrier. What is normal for a copy of a running server is a row too, as a fault of a file is, and so is what
        ZooKeeper's digest says of the tree: `TREE_DIGEST` as the path, and the words as data. Raises as `tree` does.
        """
        summary = FolderSummary()
        if barrier is None:
            yield from ((None, batch) for batch in self._tree(redactor, None, summary))
        else:
            yield from self._both_trees(redactor, barrier, summary)
        yield from ((None, batch) for batch in _about_files(summary.problems, summary.notes, summary.proofs))

    def _both_trees(
        self, redactor: Redactor, barrier: int, summary: FolderSummary
    ) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        snapshot = self._choose(barrier, summary)
        fallbacks = len(summary.problems)
        transactions = list(self._after(summary.snapshot_zxid, None, summary))
        broken = len(summary.problems) > fallbacks
        if broken and summary.snapshot != self._newest_snapshot():
            # The logs end before the newest snapshot, which has later transactions.
            del summary.problems[:], summary.notes[:]
            yield from ((BARRIER, batch) for batch in self._tree(redactor, barrier, summary))
            yield from ((NEWEST, batch) for batch in self._tree(redactor, None, summary))
            return
        self._note_end(transactions, summary)
        digest = TreeDigest.of(snapshot, summary.snapshot_zxid, transactions)
        replay = Replay(transactions, redactor, digest)
        for tree, batch in replay.run_past(barrier, read_batches(snapshot, redactor), owned_paths(snapshot)):
            yield tree, below(batch, self.chroot)
        summary.judged(replay.at_zxid)
        summary.judged(digest.judge(summary.last_zxid))

    def _choose(self, zxid: int | None, summary: FolderSummary) -> Snapshot:
        early = self._snapshots if zxid is None else self._leading_to(zxid)
        # Without any, none is too new.
        snapshot = _choose(early, self._location, zxid if self._snapshots else None, summary)
        if zxid is None and self._logs:
            snapshot = self._reached(snapshot, summary)
        if not self._logs:
            # A server writes one with its first transaction and keeps those that lead on from its snapshots.
            text = f"{_LOGS}: there are none, so the tree is only as new as {summary.snapshot}"
            summary.problems += [] if text in summary.problems else [text]
        return snapshot

    def _reached(self, newest: Snapshot, summary: FolderSummary) -> Snapshot:
        """The newest snapshot whose digest the logs reach, or this one: another may be younger than a copy of the logs."""
        older = [file for file in self._snapshots if file.zxid < summary.snapshot_zxid]
        until = 0 if newest.digest is None else newest.digest[0]
        if not older or until <= summary.snapshot_zxid:
            return newest
        last = max((each.zxid for each in self._after(summary.snapshot_zxid, None, FolderSummary())), default=0)
        if last >= until:
            return newest
        before = FolderSummary()
        try:
            snapshot = self._reached(_choose(older, self._location, None, before), before)
        except ZooKeeperFolderError:
            return newest
        summary.problems.append(
            f"{summary.snapshot}: the logs end before {until:#x}, up to which it was written; an older one is used"
        )
        summary.problems += before.problems
        summary.snapshot, summary.snapshot_zxid = before.snapshot, before.snapshot_zxid
        return snapshot

    def _note_end(self, transactions: list[ZkTransaction], summary: FolderSummary) -> None:
        summary.transactions = len(transactions)
        summary.last_zxid = transactions[-1].zxid if transactions else summary.snapshot_zxid

    def _newest_snapshot(self) -> str:
        aside = FolderSummary()
        _choose(self._snapshots, self._location, None, aside)
        return aside.snapshot

    def transactions(self, problems: list[str] | None = None) -> Iterator[ZkTransaction]:
        """Yield every transaction of the logs in order; what they lack, or can't be read, is added to `problems`."""
        for part in self.history():
            if not isinstance(part, Hole):
                yield part
            elif problems is not None:
                problems.append(f"{part.file}: {part.why}")

    def history(self) -> Iterator[ZkTransaction | Hole]:
        """Yield every transaction of the logs in order, and where some are missing among them or can't be read, a hole.

        It begins with the oldest log that ZooKeeper has not purged, which is not a hole. It is older than the tree, which
        begins with a snapshot, and no digest proves it: what is missing before that snapshot, the tree does not show.
        """
        chroot, holes = self.chroot, []
        for part in _history(self._logs, self._parse, self._saved, self._snapshot_after):
            if isinstance(part, Hole):
                holes.append(part)
            inside = part if isinstance(part, Hole) else transaction_below(part, chroot)
            if inside is not None:
                yield inside
        self._holes = holes

    def is_exact_at(self, zxid: int) -> bool:
        """Whether the tree right after a transaction can be made, though others are missing before it.

        A snapshot behind them must lead there, and hold nothing later: one that was complete by then.
        """
        later = self._leading_to(zxid)
        if later == self._snapshots:
            return self._hole_before(zxid) is None
        aside = FolderSummary()
        try:
            snapshot = _choose(later, self._location, zxid, aside)
        except ZooKeeperFolderError:
            return False
        followed = any(aside.snapshot_zxid < file.zxid <= zxid for file in later)
        return followed or (snapshot.digest is not None and snapshot.digest[0] <= zxid)

    def _leading_to(self, zxid: int) -> list[_File]:
        """The snapshots from which on nothing is missing up to a transaction; all of them where there is none."""
        hole = self._hole_before(zxid)
        if hole is None or hole.until is None:
            return self._snapshots
        last = hole.until - 1
        return [file for file in self._snapshots if file.zxid >= last] or self._snapshots

    def _hole_before(self, zxid: int) -> Hole | None:
        if self._holes is None:
            for _ in self.history():
                pass
        return next((hole for hole in reversed(self._holes or ()) if hole.after < zxid), None)

    @property
    def _saved(self) -> list[int]:
        """The zxids by which snapshots are named."""
        return [file.zxid for file in self._snapshots]

    def _snapshot_after(self, zxid: int) -> int | None:
        """The zxid of the snapshot that the tree begins with, if it is above this one; None if not, or without a usable one."""
        if not self._snapshots or self._snapshots[-1].zxid <= zxid:
            return None
        aside = FolderSummary()
        try:
            self._choose(None, aside)
        except ZooKeeperFolderError:
            return None
        return aside.snapshot_zxid if aside.snapshot_zxid > zxid else None

    def _after(self, start: int, end: int | None, summary: FolderSummary) -> Iterator[ZkTransaction]:
        return _after(self._logs, start, end, summary, self._parse, self._saved)


def _about_files(
    problems: Iterable[str], notes: Iterable[str] = (), proofs: Iterable[Judgement] = ()
) -> Iterator[pa.RecordBatch]:
    """Rows whose path is a file's name and whose `problem` is the finding about it, and the digest's result."""
    rows = [unreadable(*text.split(": ", 1)) for text in dict.fromkeys((*problems, *notes))]
    rows += [_proof(judgement) for judgement in dict.fromkeys(proofs)]
    if rows:
        yield znode_batch(rows)


def _proof(judgement: Judgement) -> Znode:
    text = judgement.text if judgement.verdict is DigestVerdict.PROVED else f"{TREE_UNPROVED}{judgement.text}"
    return unreadable(TREE_DIGEST, "")._replace(data=text, data_is_null=False, data_length=len(text), problem=None)


def of_a_server(name: str) -> bool:
    """Whether a file of this name is one that a data folder, or a dump of a tree, is read from."""
    return bool(_SNAPSHOT_NAME.fullmatch(name) or _LOG_NAME.fullmatch(name))


def read_folder(
    location: str | Path,
    redactor: Redactor,
    *,
    log_location: str | Path | None = None,
    zxid: int | None = None,
    chroot: str | None = None,
    summary: FolderSummary | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the tree of a data folder (`DataFolder.tree`)."""
    return DataFolder(location, log_location, chroot).tree(redactor, zxid, summary)


class ParsedLogs:
    """Log files by path, parsed once as long as they are small: kept transactions take many times a file's bytes."""

    LIMIT_BYTES = 16 * 1024 * 1024

    def __init__(self) -> None:
        self._kept: dict[Path, tuple[list[ZkTransaction], list[str], Exception | None]] = {}
        self._bytes = 0

    def read(self, path: Path, torn: list[str]) -> Iterator[ZkTransaction]:
        """Yield the file's transactions; raises DamagedError or TransactionLogError where they end badly."""
        if path not in self._kept:
            size = path.stat().st_size
            if self._bytes + size > self.LIMIT_BYTES:
                yield from read_transactions(_mapped(path), torn)
                return
            self._bytes += size
            self._kept[path] = _parsed(path)
        transactions, noted, error = self._kept[path]
        torn.extend(noted)
        yield from transactions
        if error is not None:
            raise error


def _parsed(path: Path) -> tuple[list[ZkTransaction], list[str], Exception | None]:
    torn: list[str] = []
    found: list[ZkTransaction] = []
    try:
        found.extend(read_transactions(_mapped(path), torn))
    except (DamagedError, TransactionLogError) as error:
        return found, torn, error
    return found, torn, None


def _one_chroot(snapshot: Snapshot | None, transactions: Iterable[ZkTransaction]) -> str:
    marks = set(paths_ending(snapshot, MARK) if snapshot else ())
    for transaction in transactions:
        for operation in () if transaction.failed else transaction.operations:
            if operation.type == OpCode.DELETE:
                marks.discard(operation.path)
            elif operation.path.endswith(MARK):
                marks.add(operation.path)
    found = chroots(marks)
    if len(found) > 1:
        names = ", ".join(repr(name or "/") for name in sorted(found))
        raise ZooKeeperFolderError(
            f"the folder holds {len(found)} Kafka clusters, at {names}; read one of them live (`zookeeper.connect` with its "
            "chroot), or make a dump of it (`kraft-audit snapshot-zookeeper`)"
        )
    return found.pop() if found else ""


def _files(location: Path, log_location: Path | None) -> tuple[list[_File], list[_File]]:
    folder = _version_folder(location)
    log_folder = _version_folder(log_location) if log_location else folder
    return _named(folder, _SNAPSHOT_NAME), _named(log_folder, _LOG_NAME)


def _version_folder(location: Path) -> Path:
    inner = location / _VERSION_FOLDER
    folder = inner if inner.is_dir() else location
    if not folder.is_dir():
        raise ZooKeeperFolderError(f"{location}: no such folder")
    return folder


def _named(folder: Path, pattern: re.Pattern[str]) -> list[_File]:
    matches = ((pattern.fullmatch(path.name), path) for path in folder.iterdir() if path.is_file())
    return sorted(_File(int(match[1], 16), path) for match, path in matches if match)


def _choose(snapshots: list[_File], location: str | Path, zxid: int | None, summary: FolderSummary) -> Snapshot:
    """Return the best snapshot that is whole, and note it in the summary."""
    damaged = []
    for file in _candidates(snapshots, zxid):
        try:
            snapshot = open_snapshot(_read(file.path))
        except (SnapshotError, OSError) as error:
            damaged.append(f"{file.path.name}: {error}")
            continue
        summary.problems += [f"{fault}; an older snapshot is used" for fault in damaged]
        summary.snapshot, summary.snapshot_zxid = file.path.name, file.zxid
        return snapshot
    when = "" if zxid is None else f" early enough for zxid {zxid:#x}"
    reasons = damaged or ["give ZooKeeper's dataDir, the folder with version-2, or a copy of it"]
    raise ZooKeeperFolderError("; ".join([f"no usable snapshot{when} in {location}", *reasons]))


def _candidates(snapshots: list[_File], zxid: int | None) -> list[_File]:
    """Return the snapshots to try, best first.

    A snapshot is fuzzy: it may hold changes made while it was written. They are over when the next one begins, so one
    whose successor begins by `zxid` is sure to hold nothing later; without such, the oldest.
    """
    newest_first = snapshots[::-1]
    if zxid is None:
        return newest_first
    followed = [file for file, following in pairwise(snapshots) if following.zxid <= zxid]
    early = [file for file in snapshots if file.zxid <= zxid]
    return [*followed[::-1], *(file for file in early if file not in followed)]


def _read(path: Path) -> bytes | memoryview:
    decompress = {".gz": gunzip, ".snappy": unsnap}.get(path.suffix)
    if decompress is None:
        return _mapped(path)
    # It has no name, so nothing is left of it after a kill.
    with path.open("rb") as source, tempfile.TemporaryFile() as whole:
        decompress(source, path.stat().st_size, whole)
        whole.flush()
        return memoryview(mmap.mmap(whole.fileno(), 0, access=mmap.ACCESS_READ))


def _mapped(path: Path) -> bytes | memoryview:
    """The bytes of a file: read when it is small, mapped when it is not.

    A mapped file that is cut short meanwhile ends the process that reads it.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size <= _READ_BYTES:
            return file.read()
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _after(
    logs: list[_File], start: int, end: int | None, summary: FolderSummary, parsed: ParsedLogs, saved: Sequence[int]
) -> Iterator[ZkTransaction]:
    """Yield the transactions with start < zxid <= end; at damage or a gap the logs end, which is added to the summary."""
    previous = start
    for file in _covering(logs, start):
        torn: list[str] = []
        try:
            for transaction in parsed.read(file.path, torn):
                if transaction.zxid <= start:
                    continue
                if end is not None and transaction.zxid > end:
                    return
                fault = _out_of_step(previous, transaction.zxid) or _ends_early(previous, transaction.zxid, saved)
                if fault:
                    raise DamagedError(f"{fault} (byte {transaction.position})")
                previous = transaction.zxid
                yield transaction
        except (DamagedError, TransactionLogError) as error:
            summary.problems.append(f"{file.path.name}: {error}; the tree ends at zxid {previous:#x}")
            return
        summary.notes.extend(f"{file.path.name}: {note}" for note in torn)


def _history(
    logs: list[_File], parsed: ParsedLogs, saved: Sequence[int], snapshot_after: Callable[[int], int | None]
) -> Iterator[ZkTransaction | Hole]:
    """Yield all transactions; behind damage or a gap it continues with the next one that can be read."""
    previous = -1
    lost: tuple[str, str] | None = None
    for file in logs:
        try:
            for transaction in parsed.read(file.path, []):
                zxid = transaction.zxid
                fault = (
                    _out_of_step(previous, zxid)
                    or _late_in_its_epoch(previous, zxid)
                    or _ends_early(previous, zxid, saved)
                )
                if fault and lost is None:
                    lost = file.path.name, fault
                if zxid <= previous:
                    continue
                if lost is not None:
                    yield Hole(previous, zxid, *lost)
                    lost = None
                previous = zxid
                yield transaction
        except (DamagedError, TransactionLogError) as error:
            lost = lost or (file.path.name, str(error))
    later = snapshot_after(previous)
    if lost is not None:
        yield Hole(previous, later, *lost)
    elif later is not None and previous >= 0:
        # Without a transaction before it there is no history that could have a hole.
        yield Hole(previous, later, _LOGS, f"they end at zxid {previous:#x}, and the tree begins at {later:#x}")


def _late_in_its_epoch(previous: int, zxid: int) -> str | None:
    """Why transactions are missing before `zxid`, the first one read of a new epoch; None if none are: the first is number 1."""
    if previous < 0 or zxid >> 32 == previous >> 32 or zxid & _OF_EPOCH <= 1:
        return None
    return f"transactions between {previous:#x} and {zxid:#x} are missing: a log file is not there"


def _ends_early(previous: int, zxid: int, saved: Sequence[int]) -> str | None:
    """Why transactions are missing at the end of an epoch, between `previous` and `zxid`; None if no snapshot shows any.

    A server that begins to lead saves one by the name of its last transaction (`ZooKeeperServer.loadData`), one that begins to follow
    does too (`Learner.syncWithLeader`). No transaction has the count 0: that zxid is the new epoch's own.
    """
    between = [each for each in saved if 0 <= previous < each < zxid and each & _OF_EPOCH]
    if not between:
        return None
    return f"transactions between {previous:#x} and {zxid:#x} are missing, as snapshot.{max(between):x} shows: a log file is not there"


def _covering(logs: list[_File], start: int) -> list[_File]:
    """Return the logs that may hold transactions after `start`: the one it falls into and all later ones."""
    first = max((index for index, file in enumerate(logs) if file.zxid <= start), default=0)
    return logs[first:]


def _out_of_step(previous: int, zxid: int) -> str | None:
    """Why `zxid` cannot follow `previous`; None if it can: zxids count up by one within an epoch (upper 32 bits)."""
    if previous < 0:
        return None
    if zxid <= previous:
        return (
            f"transaction {zxid:#x} comes after {previous:#x}: the logs come from different servers or were overwritten"
        )
    if zxid >> 32 == previous >> 32 and zxid != previous + 1:
        return f"transactions between {previous:#x} and {zxid:#x} are missing: a log file is not there"
    return None
