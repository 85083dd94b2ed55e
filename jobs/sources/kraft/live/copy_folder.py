"""The folder of a copy: one process at a time, a copy on its way beside the one that stands, and the disk's room and faults."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from jobs.disk import said
from jobs.sources.kraft.live.errors import QuorumError
from jobs.sources.kraft.proof import PROOF_FILE

LOG_FOLDER = "__cluster_metadata-0"
_DRAFT, _OLD, _LOCK = ".copying-", ".replaced-", ".lock"
# A copy never fills a disk: this much stays free, or a twentieth of a small one.
_KEPT_FREE_BYTES = 1024 * 1024 * 1024


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One copy at a time. Raises QuorumError if another is in progress, or the folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / _LOCK).open("w")
    except OSError as error:
        raise _not_copied(folder, error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise QuorumError(f"{folder}: another process is copying into it") from None
        yield


@contextmanager
def new_draft(folder: Path) -> Iterator[Path]:
    """A folder for a copy on its way; it goes if the copy does not take its place."""
    draft = folder
    try:
        draft = Path(tempfile.mkdtemp(prefix=_DRAFT, dir=folder))
        yield draft
    except OSError as error:
        raise _not_copied(folder, error) from None
    finally:
        if draft != folder:
            shutil.rmtree(draft, ignore_errors=True)


def _not_copied(folder: Path, error: OSError) -> QuorumError:
    """The disk's error, with the file if it is known."""
    return QuorumError(
        f"the copy in {folder} can't be made: {f'{error.filename}: ' if error.filename else ''}{said(error)}"
    )


def sweep(folder: Path) -> None:
    """Remove what copyings that were killed have left, and put back a copy that was moved aside last.

    Raises QuorumError when the folder holds a log of another origin: nothing of a controller's is ever replaced.
    """
    log = folder / LOG_FOLDER
    if log.exists() and not (log / PROOF_FILE).exists():
        raise QuorumError(f"{log}: contains a log that this program did not fetch; name another folder")
    try:
        for left in sorted(folder.iterdir()):
            if left.name.startswith(_OLD) and not log.exists():
                left.rename(log)
            elif left.name.startswith((_DRAFT, _OLD)):
                shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        raise _not_copied(folder, error) from None


def take_place(folder: Path, draft: Path) -> None:
    """Let the finished copy stand where the one before it stood. Its owner alone may read it, as it holds secrets."""
    log = folder / LOG_FOLDER
    old = folder / f"{_OLD}{draft.name.removeprefix(_DRAFT)}"
    if log.exists():
        log.rename(old)
    try:
        draft.rename(log)
    except OSError:
        with contextlib.suppress(OSError):
            old.rename(log)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_room(place: Path, size: int, what: str) -> None:
    """Raise QuorumError when something does not fit and leave some of the disk free, or can't be of that size."""
    if size < 0:
        raise QuorumError(f"{what} is said to have {size} bytes")
    disk = shutil.disk_usage(place.parent)
    free = disk.free - min(disk.total // 20, _KEPT_FREE_BYTES)
    if size > free:
        raise QuorumError(f"{place.parent}: {what} has {size} bytes, and no more than {max(free, 0)} can be used there")


def link(source: Path, target: Path) -> None:
    """The same bytes under another name; copied where the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def flush(file: IO[bytes]) -> None:
    """Bring what was written to the disk."""
    file.flush()
    os.fsync(file.fileno())
