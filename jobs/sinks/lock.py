"""One writer at a time for each table of a warehouse in a local folder.

Delta commits by looking whether the next number is taken and renaming a file to it. Within one Java that is one step; between
two, the second rename replaces the first one's commit. So whoever writes to a table holds a lock (`flock`) on a file of that
table, from before Delta looks until it has renamed. The kernel releases it when its holder dies, however that comes about, so
it is never stale. `flock FILE COMMAND` of a shell takes the same lock.

Python holds the lock, and Java writes: a Java that outlives a killed Python for a moment may still commit. Its number is
in the file until the write is done, and whoever comes next waits for its end.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.disk import said
from jobs.exit import AuditError
from jobs.sinks.storage import make_private

LOG = logging.getLogger("kraft-audit")
LOCKS = ".locks"
SAY_AFTER_SECONDS = 5.0
# A Java process whose Python has ended stops within seconds. A process id that was reused costs this time.
_ORPHAN_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.2
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
_MOST_BYTES = 4096
_PROC = Path("/proc")


class LockError(AuditError):
    """A table cannot be locked; the text names the file and the remedy."""


@dataclass(frozen=True)
class Owner:
    """Who writes: a process, the Java that commits for it (None when it is not known), since when (UTC)."""

    host: str
    pid: int
    java: int | None
    since: str

    @staticmethod
    def me(java: int | None) -> Owner:
        """This process, from now on."""
        return Owner(socket.gethostname(), os.getpid(), java, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC")

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def lock_file(root: Path, name: str) -> Path:
    """Where the lock of a table is: `<root>/.locks/<layer>.<table>`."""
    return root / LOCKS / name


@contextmanager
def only_writer(root: Path, name: str, java: int | None = None) -> Iterator[None]:
    """Be the only one who writes to a table, between threads, processes and, where the file system has locks, machines.

    Waits without a limit, and names the holder once. `java` is the process that commits. Raises LockError where the file can't
    be made or the file system has no locks.
    """
    path = lock_file(root, name)
    descriptor = _opened(root, path)
    try:
        waiting = _Waiting(root, name)
        _until(lambda: _taken(descriptor, path), lambda: waiting.once(_owner(descriptor)))
        _outlive(_owner(descriptor), java, waiting)
        _sign(descriptor, Owner.me(java))
        try:
            yield
        except Exception:
            _sign(descriptor, None)
            raise
        # Whatever else ends the write (an interrupt) leaves Java running: the name stays.
        _sign(descriptor, None)
    finally:
        os.close(descriptor)


class _Waiting:
    """Logs once which process the writer waits for."""

    def __init__(self, root: Path, name: str) -> None:
        self._what, self._said = f"table {name} of {root}", False

    def once(self, owner: Owner | None) -> None:
        mine = owner is not None and (owner.host, owner.pid) == (socket.gethostname(), os.getpid())
        if not self._said and not mine:
            LOG.warning("waiting to write to %s: %s writes to it", self._what, owner or "another process")
            self._said = True


def _opened(root: Path, path: Path) -> int:
    try:
        make_private(root)
        path.parent.mkdir(exist_ok=True)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise LockError(f"the warehouse {root} can't be written: {path}: {said(error)}") from None


def _taken(descriptor: int, path: Path) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        hint = "; use a file system with locks, for NFS mount without nolock" if error.errno in _NO_LOCKS else ""
        raise LockError(f"{path} can't be locked: {error.strerror}{hint}") from None
    return True


@contextmanager
def held(path: Path, seconds: float) -> Iterator[None]:
    """Hold the lock of a file, which is made where it is missing; wait for it so many seconds at most.

    Raises OSError where the file can't be made or another process holds it for longer, LockError where the file system has
    no locks.
    """
    with path.open("a") as file:
        if not _until(lambda: _taken(file.fileno(), path), lambda: None, seconds):
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        yield


def _until(done: Callable[[], bool], say: Callable[[], None], seconds: float | None = None) -> bool:
    """Try with growing pauses until it succeeds (True), or for this many seconds (False); call `say` after a few."""
    started, pause = time.monotonic(), _FIRST_PAUSE
    while not done():
        waited = time.monotonic() - started
        if seconds is not None and waited > seconds:
            return False
        if waited > SAY_AFTER_SECONDS:
            say()
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
    return True


def _outlive(before: Owner | None, java: int | None, waiting: _Waiting) -> None:
    """Wait for the end of a Java that may still commit for a process that died in mid-write."""
    if before is None or before.java in (None, java) or before.host != socket.gethostname():
        return
    number = before.java
    _until(lambda: not _alive(number), lambda: waiting.once(before), _ORPHAN_SECONDS)


def _alive(pid: int | None) -> bool:
    """True while a process with this id runs; if the system shows it, only if it is Java."""
    if pid is None or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
        # False for a process that has ended but whose exit code nobody has read.
        return b"java" in (_PROC / str(pid) / "cmdline").read_bytes()
    except ProcessLookupError:
        return False
    except OSError:
        return not _PROC.is_dir() or (_PROC / str(pid)).exists()


def _owner(descriptor: int) -> Owner | None:
    """The last writer that did not finish; None if there is none, or it is unknown."""
    with suppress(OSError, ValueError, TypeError):
        text = os.pread(descriptor, _MOST_BYTES, 0).decode("utf-8")
        if text:
            return Owner(**json.loads(text))
    return None


def _sign(descriptor: int, owner: Owner | None) -> None:
    """Put a name into the file, or take it out. On a full disk the lock holds without one."""
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        if owner is not None:
            os.pwrite(descriptor, json.dumps(asdict(owner)).encode(), 0)
