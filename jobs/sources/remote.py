"""Files that are not on this machine's file system: object stores and HDFS, through `pyarrow.fs`.

A log folder is staged for the scan (batch headers and CRCs), on the driver's disk, in a folder that is this user's alone, and
only while the scan runs; what a killed one left is removed by the next. Records are read by the workers from where they
are, byte range by byte range. ZooKeeper's files are staged by the worker that reads them. Credentials are the platform's own
(environment, instance profile, `core-site.xml`); none is taken here.

| path | read and written through |
| --- | --- |
| `s3://`, `s3a://`, `gs://`, `abfs://`, `abfss://`, `file://` | `pyarrow.fs` |
| `hdfs://`, `viewfs://` | `hdfs-native` where it is installed (the extra `hdfs`), else `pyarrow.fs`, which needs Hadoop's `libhdfs` |
| `dbfs:/…` | the `/dbfs` mount that every Databricks worker has; `/Volumes/…` needs nothing |
"""

from __future__ import annotations

import fcntl
import importlib
import importlib.util
import os
import re
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

# Two letters at least, so that a drive letter is not taken for a scheme.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/")
# Hadoop's scheme names with those of pyarrow.
_SAME = {"s3a": "s3", "s3n": "s3", "abfss": "abfss"}
_DBFS = re.compile(r"^dbfs:/+")
_COPY_BYTES = 8 * 1024 * 1024
_HDFS = ("hdfs", "viewfs")
# Whose files are seen while they are being written. An object appears when it is whole.
_SEEN_HALF = (*_HDFS, "file")
_ANSWER_SECONDS = 15.0
# What a file system that can't be reached raises: pyarrow's own, and those of hdfs-native.
UNREACHED = (OSError, RuntimeError, pa.ArrowException)


class RemoteError(ValueError):
    """A location that cannot be reached; the message names it and the reason in one line."""

    for_the_user = True


def local_path(path: str) -> str:
    """`dbfs:/x` is `/dbfs/x` on every worker; any other path stays as it is."""
    return _DBFS.sub("/dbfs/", path)


def is_remote(path: str) -> bool:
    """True if a path names its file system (`s3://…`) and is read through `pyarrow.fs`."""
    return _SCHEME.match(local_path(path)) is not None


def read_range(path: str, start: int, end: int) -> bytes:
    """Read bytes [start, end) of a file, remote or not; fewer when the file is shorter by now.

    Raises OSError for a file of this machine, RemoteError for another one.
    """
    if not is_remote(path):
        with open(local_path(path), "rb") as file:
            file.seek(start)
            return file.read(end - start)
    system, inner = _resolve(path)
    with _reported_errors(path, "read"), system.open_input_file(inner) as stream:
        length = min(end, stream.size()) - start
        return bytes(stream.read_at(length, start)) if length > 0 else b""


def remote_is_file(uri: str) -> bool:
    """True if the file exists. Raises RemoteError when it can't be reached."""
    system, inner = _resolve(uri)
    with _reported_errors(uri, "read"):
        return bool(system.get_file_info(inner).type == fs.FileType.File)


def write_file(uri: str, data: bytes) -> None:
    """Write or replace a file so that no reader ever sees half of it. Raises RemoteError."""
    system, inner = _resolve(uri)
    with _reported_errors(uri, "written"):
        if _scheme(uri) in _SEEN_HALF:
            _renamed(system, inner, data)
        else:
            with system.open_output_stream(inner) as stream:
                stream.write(data)


def remove_file(uri: str) -> None:
    """Remove a file. Raises RemoteError."""
    system, inner = _resolve(uri)
    with _reported_errors(uri, "removed"):
        system.delete_file(inner)


def _renamed(system: fs.FileSystem, inner: str, data: bytes) -> None:
    folder, _, name = inner.rpartition("/")
    # Containers may have the same host name, and their processes mostly have the id 1.
    part = f"{folder}/.{name}.{socket.gethostname()}.{os.getpid()}.{secrets.token_hex(4)}.part"
    system.create_dir(folder)
    try:
        with system.open_output_stream(part) as stream:
            stream.write(data)
        if isinstance(system, fs.PyFileSystem):
            # Arrow's own way does not replace a file on HDFS.
            system.handler.fs.mv(part, inner, overwrite=True)
        else:
            if not isinstance(system, fs.LocalFileSystem) and system.get_file_info(inner).type == fs.FileType.File:
                system.delete_file(inner)
            system.move(part, inner)
    finally:
        if system.get_file_info(part).type == fs.FileType.File:
            system.delete_file(part)


def remote_size(uri: str) -> int:
    """Bytes of a remote file, or of all files in a remote folder; 0 when there is none.

    Raises RemoteError when it can't be reached.
    """
    system, inner = _resolve(uri)
    with _reported_errors(uri, "read"):
        info = system.get_file_info(inner.rstrip("/"))
        below = [info]
        if info.type == fs.FileType.Directory:
            below = system.get_file_info(fs.FileSelector(inner.rstrip("/"), recursive=True))
    return sum(file.size or 0 for file in below if file.type == fs.FileType.File)


def of_a_log(name: str) -> bool:
    """Whether a file of this name is one that a controller's log folder is read from."""
    known = name in ("meta.properties", "quorum-state", "leader-epoch-checkpoint", "fetched.json")
    return known or name.endswith((".log", ".checkpoint", ".snapshot"))


@contextmanager
def staged(uri: str, wanted: Callable[[str], bool] = of_a_log) -> Iterator[Path]:
    """Copy the `wanted` files (by name) of a remote folder and of those in it to a folder that goes afterwards.

    An address of a file gives a copy of that file. Raises RemoteError when there is neither, or it can't be reached.
    """
    system, inner = _resolve(uri)
    base = inner.rstrip("/")
    with _reported_errors(uri, "read"):
        kind = system.get_file_info(base).type
    if kind == fs.FileType.NotFound:
        raise RemoteError(f"{uri}: no such folder")
    with _private_folder() as folder:
        # The copy has the name of the remote folder: the name distinguishes a log folder from its parent.
        target = folder / base.rpartition("/")[2]
        with _reported_errors(uri, "read"):
            if kind == fs.FileType.File:
                _copy_file(system, base, target)
            else:
                _copy_folder(system, base, target, wanted)
        yield target


@contextmanager
def _reported_errors(uri: str, what: str) -> Iterator[None]:
    """While the block runs, report a file that can't be read or written as RemoteError, with the reason."""
    try:
        yield
    except RemoteError:
        raise
    except UNREACHED as error:
        raise RemoteError(f"{uri}: can't be {what}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return said.splitlines()[0] if said else type(error).__name__


@contextmanager
def _private_folder() -> Iterator[Path]:
    """A folder for this process alone, which is removed afterwards. Folders of killed processes are removed now, because logs
    contain secrets.

    A process holds a lock on its folder as long as it lives, so a folder whose lock is free belongs to no process.
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


def left_staged() -> list[Path]:
    """What `sweep_staged` would remove; nothing is made or changed. Raises OSError, RemoteError."""
    if not _staging_place().exists():
        return []
    root = _staging_root()
    with _locked(root):
        return [folder for folder in sorted(root.iterdir()) if _is_left(folder)]


def _staging_place() -> Path:
    return Path(gettempdir()) / f"kraft-audit-staged-{os.getuid()}"


def _staging_root() -> Path:
    """This user's own folder for staging, readable by nobody else. Raises RemoteError when somebody else made it."""
    root = _staging_place()
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
    with _held_if_left(folder) as is_left:
        if is_left:
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    with _held_if_left(folder) as is_left:
        return is_left


@contextmanager
def _held_if_left(folder: Path) -> Iterator[bool]:
    """Whether no process holds a folder; nobody takes it while the block runs."""
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        yield False
        return
    try:
        yield _taken(held)
    finally:
        os.close(held)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # Its process is running.
        return False
    return True


def _resolve(uri: str) -> tuple[fs.FileSystem, str]:
    scheme, separator, rest = uri.partition(":")
    native = scheme.lower() in _HDFS and importlib.util.find_spec("hdfs_native") is not None
    try:
        if native:
            return _hdfs(uri)
        system, inner = fs.FileSystem.from_uri(_SAME.get(scheme.lower(), scheme) + separator + rest)
    except (*UNREACHED, ValueError) as error:
        # ValueError: what Python says of a port or a name that can be none.
        hint = "; install kraft-migration-audit[hdfs]" if scheme.lower() in _HDFS and not native else ""
        raise RemoteError(f"{uri}: {_reason(error)}{hint}") from None
    return system, inner


def _hdfs(uri: str) -> tuple[fs.FileSystem, str]:
    """A file system without Java and Hadoop's libraries."""
    native: Any = importlib.import_module("hdfs_native.fsspec")
    address = urlsplit(uri)
    if address.port is not None:
        # The client itself would try for minutes.
        socket.create_connection((address.hostname or "", address.port), _ANSWER_SECONDS).close()
    kind = native.ViewfsFileSystem if address.scheme == "viewfs" else native.HdfsFileSystem
    # From its cache fsspec drops clients in each process that is forked, and a client that is dropped there waits for threads
    # that are not there: whoever starts another program, as Spark does, would wait for ever.
    client = kind(address.hostname, address.port, skip_instance_cache=True)
    return fs.PyFileSystem(fs.FSSpecHandler(client)), address.path


def _scheme(uri: str) -> str:
    return uri.partition(":")[0].lower()


def _copy_folder(system: fs.FileSystem, base: str, target: Path, wanted: Callable[[str], bool]) -> None:
    target.mkdir(parents=True)
    for info in system.get_file_info(fs.FileSelector(base, recursive=True)):
        relative = info.path[len(base) :].lstrip("/")
        place = (target / relative).resolve()
        if info.type != fs.FileType.File or not wanted(info.base_name) or not place.is_relative_to(target.resolve()):
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        _copy_file(system, info.path, place)


def _copy_file(system: fs.FileSystem, path: str, place: Path) -> None:
    with system.open_input_stream(path) as source, place.open("wb") as copy:
        while block := source.read(_COPY_BYTES):
            copy.write(block)
