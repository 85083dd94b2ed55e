"""Runs that have begun: a file for each next to the tables, locked as long as the run is alive, so that no run disappears.

A killed run leaves its file unlocked. The next run of the warehouse writes a failed row of gold `runs` for it; until then
commands report it. It costs no query, and also works if Java was killed. It exists only for tables in a local folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.exit import CRASH, AuditError
from jobs.sinks.reader import Reader
from jobs.sources.remote import is_remote, local_path
from transforms.report.fleet_model import FleetRun
from transforms.runs import FAILED

_FOLDER, _UNFINISHED = ".begun", ".part"
_DIED = "died: the process ended without a message (killed, out of memory, or the machine stopped)"


@dataclass
class Begun:
    """A run of this process. `descriptor` holds its file locked."""

    path: Path
    descriptor: int
    entry: dict[str, Any]

    @property
    def running(self) -> bool:
        """True until `end` or `leave`."""
        return self.descriptor >= 0

    def stopped(self, why: str, exit_code: int) -> None:
        """Note at once why the run ends: what comes after may not be reached. Notes nothing once every cluster has its row.

        If it can't be written, the run has died, to the next one: the reason itself must not be lost for that.
        """
        if not self.running:
            return
        self.entry |= {"why": why, "exit_code": exit_code}
        data = json.dumps(self.entry).encode()
        with suppress(OSError):
            # In place: another file of this name would not be the locked one.
            os.pwrite(self.descriptor, data, 0)
            os.ftruncate(self.descriptor, len(data))

    def end(self) -> None:
        """Remove the file: every cluster of the run has its row."""
        self.path.unlink(missing_ok=True)
        self.leave()

    def leave(self) -> None:
        """Unlock the file as it is: the next run finds a run that died, or the reason why it was stopped."""
        # A signal in between must not write to a number that is another file's by then.
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


@dataclass(frozen=True)
class Died:
    """A run that has begun and whose process is gone. Times are UTC."""

    run_id: str
    clusters: tuple[str, ...]
    started_at: datetime
    ended_at: datetime
    why: str
    exit_code: int

    def of(self, cluster: str, sequence: int | None) -> FleetRun:
        """The run of one of its clusters."""
        return FleetRun(
            cluster, self.run_id, self.started_at, self.ended_at, FAILED, failure=self.why, sequence=sequence
        )


def begin(root: str, *, catalog: bool, clusters: Sequence[str], run_id: str, started_at: datetime) -> Begun | None:
    """Note that a run over these clusters begins; None where the tables are in no local folder, or it can't be written."""
    folder = _folder(root, catalog=catalog)
    if folder is None:
        return None
    entry = {
        "run_id": run_id,
        "clusters": sorted(clusters),
        "started_at": started_at.isoformat(),
        "host": socket.gethostname(),
        "process": os.getpid(),
    }
    part, path, descriptor = folder / f"{run_id}{_UNFINISHED}", folder / f"{run_id}.json", -1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(descriptor, json.dumps(entry).encode(), 0)
        # It gets its name when it is locked and whole.
        part.rename(path)
    except OSError:
        # The run itself will report the fault of the warehouse.
        if descriptor >= 0:
            os.close(descriptor)
            with suppress(OSError):
                part.unlink()
        return None
    return Begun(path, descriptor, entry)


def unfinished(root: str, *, catalog: bool) -> list[Path]:
    """Files of runs that have just begun, or were killed before their file had its name."""
    folder = _folder(root, catalog=catalog)
    return sorted(folder.glob(f"*{_UNFINISHED}")) if folder is not None and folder.is_dir() else []


@contextmanager
def died(root: str, *, catalog: bool, only_look: bool = False) -> Iterator[list[tuple[Died, Path]]]:
    """Runs that died, each with its file; while the block runs, no other process handles them.

    To `only_look`, it is enough that the files can be read, and several processes may do so at the same time. Raises AuditError if not
    even that is allowed: then nobody knows whether a run has died.
    """
    folder = _folder(root, catalog=catalog)
    if only_look and folder is not None and folder.is_dir():
        with _readable(folder):
            os.listdir(folder)
    held: list[int] = []
    found = []
    try:
        for path in sorted(folder.glob("*.json")) if folder is not None and folder.is_dir() else []:
            descriptor = _locked(path, only_look=only_look)
            if descriptor is not None:
                held.append(descriptor)
                entry = _read(path)
                if entry is not None:
                    found.append((entry, path))
        yield found
    finally:
        for descriptor in held:
            os.close(descriptor)


def running(root: str, *, catalog: bool) -> list[Died]:
    """Runs that have begun and whose process lives, in the form of runs that died."""
    folder, found = _folder(root, catalog=catalog), []
    for path in sorted(folder.glob("*.json")) if folder is not None and folder.is_dir() else []:
        descriptor = _locked(path)
        entry = _read(path) if descriptor is None else None
        if descriptor is not None:
            os.close(descriptor)
        if entry is not None:
            found.append(entry)
    return found


def died_runs(warehouse: Reader, known: Sequence[FleetRun], cluster: str | None = None) -> list[FleetRun]:
    """Runs that died and have no row among the `known` ones, as the newest of their clusters."""
    made: list[FleetRun] = []
    with died(warehouse.root, catalog=warehouse.catalog, only_look=True) as dead:
        for each, _ in dead:
            for name in each.clusters:
                if cluster in (None, name) and not any(_is(run, each, name) for run in known):
                    numbers = [run.sequence or 0 for run in (*known, *made) if run.cluster == name]
                    made.append(each.of(name, max(numbers, default=0) + 1))
    return made


def _is(run: FleetRun, dead: Died, cluster: str) -> bool:
    """A part of a run has an id of its own, and began when the whole one did."""
    return run.cluster == cluster and (run.run_id == dead.run_id or run.started_at == dead.started_at)


def _folder(root: str, *, catalog: bool) -> Path | None:
    return None if catalog or is_remote(root) else Path(local_path(root)) / _FOLDER


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise AuditError(f"{path} can't be read: {error.strerror}; it shows whether the newest run has died") from None


def _locked(path: Path, *, only_look: bool = False) -> int | None:
    """Lock the file of a run that nobody holds. None while its process lives, and if locks are not available.

    A lock that is shared needs no right to write, also on NFS.
    """
    try:
        with _readable(path) if only_look else nullcontext():
            descriptor = os.open(path, os.O_RDONLY if only_look else os.O_RDWR)
    except OSError:
        return None
    with suppress(OSError):
        fcntl.flock(descriptor, (fcntl.LOCK_SH if only_look else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return descriptor
    os.close(descriptor)
    return None


def _read(path: Path) -> Died | None:
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        ended = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return Died(
            entry["run_id"],
            tuple(entry["clusters"]),
            datetime.fromisoformat(entry["started_at"]),
            ended,
            entry.get("why", _DIED),
            entry.get("exit_code", CRASH),
        )
    except (OSError, ValueError, KeyError):
        return None
