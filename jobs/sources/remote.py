"""Log folders that are not on this machine's file system: object stores and HDFS, through `pyarrow.fs`.

A folder is staged for the scan (batch headers and CRCs), on the driver's disk, in a folder that is this user's alone, and
only while the scan runs; what a killed one left is removed by the next. Records are read by the workers from where they
are, byte range by byte range. Credentials are the platform's own (environment, instance profile, `core-site.xml`); none is
taken here.

| path | read through |
| --- | --- |
| `s3://`, `s3a://`, `gs://`, `abfs://`, `abfss://`, `hdfs://`, `viewfs://`, `file://` | `pyarrow.fs` |
| `dbfs:/…` | the `/dbfs` mount that every Databricks worker has; `/Volumes/…` needs nothing |
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir, mkdtemp

import pyarrow as pa
from pyarrow import fs

# Two letters at least, so that a drive letter is no scheme.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop's names for what pyarrow knows under another.
_SAME = {"s3a": "s3", "s3n": "s3", "abfss": "abfss"}
_DBFS = re.compile(r"^dbfs:/+")
_COPY_BYTES = 8 * 1024 * 1024


class RemoteError(ValueError):
    """A location that can't be reached; the message says which and why, in one line."""

    for_the_user = True


def local_path(path: str) -> str:
    """`dbfs:/x` is `/dbfs/x` on every worker; any other path stays as it is."""
    return _DBFS.sub("/dbfs/", path)


def is_remote(path: str) -> bool:
    """Tell whether a path names its file system (`s3://…`) and is to be read through `pyarrow.fs`."""
    return _SCHEME.match(local_path(path)) is not None


def read_range(path: str, start: int, end: int) -> bytes:
    """Read bytes [start, end) of a file, remote or not; fewer when the file is shorter by now."""
    if not is_remote(path):
        with open(local_path(path), "rb") as file:
            file.seek(start)
            return file.read(end - start)
    system, inner = _resolve(path)
    with system.open_input_file(inner) as stream:
        length = min(end, stream.size()) - start
        return bytes(stream.read_at(length, start)) if length > 0 else b""


def remote_size(uri: str) -> int:
    """Bytes of a remote file, or of all files in a remote folder; 0 when there is none.

    Raises RemoteError when it can't be reached.
    """
    system, inner = _resolve(uri)
    try:
        info = system.get_file_info(inner.rstrip("/"))
        below = [info]
        if info.type == fs.FileType.Directory:
            below = system.get_file_info(fs.FileSelector(inner.rstrip("/"), recursive=True))
    except (OSError, pa.ArrowException) as error:
        raise RemoteError(f"{uri}: can't be read: {str(error).splitlines()[0]}") from None
    return sum(file.size or 0 for file in below if file.type == fs.FileType.File)


@contextmanager
def staged(uri: str) -> Iterator[Path]:
    """Copy the files of a remote folder (and of the folders in it, three levels) to a folder that goes afterwards.

    Raises RemoteError when the folder is not there or can't be reached.
    """
    try:
        system, inner = _resolve(uri)
        base = inner.rstrip("/")
        if system.get_file_info(base).type != fs.FileType.Directory:
            raise RemoteError(f"{uri}: no such folder")
        with _private_folder() as folder:
            # The staged folder has the name of the remote one: the name tells a log folder from its parent.
            target = folder / base.rpartition("/")[2]
            _copy_folder(system, base, target)
            yield target
    except (OSError, pa.ArrowException) as error:
        raise RemoteError(f"{uri}: can't be read: {str(error).splitlines()[0]}") from None


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for this process alone, which goes afterwards. What killed processes left goes now: logs hold secrets.

    A process holds a lock on its folder as long as it lives, so a folder whose lock is free is nobody's.
    """
    root = _staging_root()
    with _locked(root):
        for left in root.iterdir():
            _remove_if_left(left)
        folder = Path(mkdtemp(dir=root))
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep_staged() -> None:
    """Remove copies of logs that killed processes of this user have left. Raises OSError, RemoteError."""
    root = _staging_root()
    with _locked(root):
        for left in root.iterdir():
            _remove_if_left(left)


def _staging_root() -> Path:
    """This user's own folder for staging, readable by nobody else. Raises RemoteError when somebody else made it."""
    root = Path(gettempdir()) / f"kraft-audit-staged-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise RemoteError(f"{root} is not a private folder of this user; remove it, or name another place in TMPDIR")
    return root


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _remove_if_left(folder: Path) -> None:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        # Its process is at work.
        return
    finally:
        os.close(held)


def _resolve(uri: str) -> tuple[fs.FileSystem, str]:
    scheme, separator, rest = uri.partition(":")
    try:
        system, inner = fs.FileSystem.from_uri(_SAME.get(scheme.lower(), scheme) + separator + rest)
    except (OSError, pa.ArrowException) as error:
        raise RemoteError(f"{uri}: {str(error).splitlines()[0]}") from None
    return system, inner


def _copy_folder(system: fs.FileSystem, base: str, target: Path) -> None:
    target.mkdir(parents=True)
    for info in system.get_file_info(fs.FileSelector(base, recursive=True)):
        relative = info.path[len(base) :].lstrip("/")
        place = (target / relative).resolve()
        if info.type != fs.FileType.File or not _wanted(relative) or not place.is_relative_to(target.resolve()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with system.open_input_stream(info.path) as source, place.open("wb") as copy:
            while block := source.read(_COPY_BYTES):
                copy.write(block)


def _wanted(relative: str) -> bool:
    name = relative.rpartition("/")[2]
    known = name in ("meta.properties", "quorum-state", "leader-epoch-checkpoint", "fetched.json")
    return known or name.endswith((".log", ".checkpoint", ".snapshot"))
