"""A disk that fails once: the n-th write, flush, rename, link or new folder below a folder ends in an error.

What Python writes goes through the calls named here; what Spark writes is made to fail by `tests.reliability.failing_spark`.
"""

from __future__ import annotations

import builtins
import errno
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_BY_PATH = ("mkdir", "rename", "replace", "link")
_WRITING = set("wax+")


@dataclass
class Disk:
    """Counts what is asked of the disk below `folder`; call number `fails_at` (from 1) ends in an error `number`."""

    folder: Path
    fails_at: int
    number: int
    calls: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """True when the call that was to fail was made."""
        return len(self.calls) >= self.fails_at > 0

    def asked(self, call: str, path: object) -> None:
        """Raise OSError when it is this call's turn."""
        self.calls.append(call)
        if len(self.calls) == self.fails_at:
            raise OSError(self.number, os.strerror(self.number), None if path is None else str(path))

    def concerns(self, path: object) -> bool:
        return isinstance(path, str | os.PathLike) and Path(os.fspath(path)).absolute().is_relative_to(self.folder)


class _File:
    """A file that asks the disk before each write."""

    def __init__(self, file: Any, disk: Disk) -> None:
        self._file, self._disk = file, disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        self._disk.asked("write", None)
        return int(self._file.write(data))


@contextmanager
def failing(folder: Path, fails_at: int, number: int = errno.ENOSPC) -> Iterator[Disk]:
    """Let the disk below a folder fail at one call. With 0 it only counts."""
    disk = Disk(folder.absolute(), fails_at, number)
    undo: list[Callable[[], None]] = []

    def patched(owner: Any, name: str, made: Callable[[Any], Any]) -> None:
        before = getattr(owner, name)
        undo.append(lambda: setattr(owner, name, before))
        setattr(owner, name, made(before))

    for call in _BY_PATH:
        patched(os, call, lambda before, call=call: _by_path(before, call, disk))
    patched(os, "fsync", lambda before: _flushed(before, disk))
    patched(os, "pwrite", lambda before: _flushed(before, disk, "pwrite"))
    patched(os, "fdopen", lambda before: _opened(before, disk, always=True))
    patched(builtins, "open", lambda before: _opened(before, disk))
    patched(pathlib.Path, "open", lambda before: _opened(before, disk))
    try:
        yield disk
    finally:
        for each in reversed(undo):
            each()


def _by_path(before: Callable[..., Any], call: str, disk: Disk) -> Callable[..., Any]:
    def called(path: Any, *more: Any, **named: Any) -> Any:
        if disk.concerns(path):
            disk.asked(call, path)
        return before(path, *more, **named)

    return called


def _flushed(before: Callable[..., Any], disk: Disk, call: str = "fsync") -> Callable[..., Any]:
    def called(descriptor: int, *more: Any) -> Any:
        disk.asked(call, None)
        return before(descriptor, *more)

    return called


def _opened(before: Callable[..., Any], disk: Disk, *, always: bool = False) -> Callable[..., Any]:
    def called(path: Any, mode: str = "r", *more: Any, **named: Any) -> Any:
        writing = bool(_WRITING & set(mode)) and (always or disk.concerns(path))
        if writing and not always:
            disk.asked("open", path)
        file = before(path, mode, *more, **named)
        return _File(file, disk) if writing else file

    return called
