"""The segments of a copy: written after one another, continued from an earlier copy, and looked through for damage."""

from __future__ import annotations

import os
import re
import shutil
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from jobs.sources.kraft.folder import whole_file
from jobs.sources.kraft.live.copy_folder import check_room, flush, link
from jobs.sources.kraft.proof import FetchedSegment
from transforms.kraft.decode.framing import BatchHeader
from transforms.kraft.decode.scan import checkpoint_problem, scan_segment

_SEGMENT_BYTES = 64 * 1024 * 1024
# A last segment below this size is copied and extended, so that many short copies do not make many files.
_APPEND_BELOW_BYTES = 16 * 1024 * 1024
_CHECKPOINT = re.compile(r"^(\d{20})-(\d{10})\.checkpoint$")


class Segments:
    """Writes batches into segments named after their first offset."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._done: list[FetchedSegment] = []
        self._file: IO[bytes] | None = None
        self._path: Path | None = None
        self._size = self._crc = 0
        self._last: tuple[int, int, int, int] | None = None

    def __enter__(self) -> Segments:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def go_on(self, kept: Path, segments: tuple[FetchedSegment, ...]) -> None:
        """Take the segments of a kept copy as links, except a short last one, which is copied and extended."""
        *whole, last = segments
        if last.bytes >= _APPEND_BELOW_BYTES:
            whole.append(last)
        for segment in whole:
            link(kept / segment.file, self._folder / segment.file)
            self._done.append(segment)
        if whole and whole[-1] is last:
            return
        shutil.copyfile(kept / last.file, self._folder / last.file)
        self._path = self._folder / last.file
        self._file = self._path.open("r+b")
        self._file.seek(0, os.SEEK_END)
        self._size, self._crc = last.bytes, last.crc or 0
        self._last = (last.last_batch, last.bytes - last.last_batch, last.next_offset, last.last_epoch)

    def store(self, data: bytes, last: BatchHeader | None) -> None:
        """Store whole batches, `last` being the last of them with its position in `data`. Raises QuorumError."""
        if last is None or not data:
            return
        if self._file is None or self._size >= _SEGMENT_BYTES:
            check_room(self._folder, _SEGMENT_BYTES, "the next segment of the log")
            self._close()
            self._path = self._folder / f"{int.from_bytes(data[:8], 'big', signed=True):020}.log"
            self._file = self._path.open("w+b")
            self._size = self._crc = 0
        self._file.write(data)
        self._crc = zlib.crc32(data, self._crc)
        self._last = (self._size + last.position, last.size, last.next_offset, last.epoch)
        self._size += len(data)

    def last_batch(self) -> bytes | None:
        """Bytes of the last batch stored; None before the first."""
        if self._file is not None and self._last is not None:
            self._file.seek(self._last[0])
            data = self._file.read(self._last[1])
            self._file.seek(0, os.SEEK_END)
            return data
        if not self._done:
            return None
        segment = self._done[-1]
        with (self._folder / segment.file).open("rb") as file:
            file.seek(segment.last_batch)
            return file.read()

    def finish(self) -> tuple[FetchedSegment, ...]:
        """Close the last segment and return all of them, in order."""
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        if self._file is None or self._path is None or self._last is None:
            return
        flush(self._file)
        self._file.close()
        position, _, next_offset, epoch = self._last
        self._done.append(FetchedSegment(self._path.name, self._size, next_offset, position, epoch, self._crc))
        self._file = self._last = None


def undamaged(folder: Path, segments: tuple[FetchedSegment, ...]) -> Iterator[FetchedSegment]:
    """The segments up to the first whose bytes are not those that were stored, each with the CRC of its bytes."""
    for segment in segments:
        checked = _checked(folder / segment.file, segment)
        if checked is None:
            return
        yield checked


def _checked(path: Path, segment: FetchedSegment) -> FetchedSegment | None:
    try:
        with whole_file(path) as data:
            crc = zlib.crc32(data)
            # A copy of an earlier release has only the CRCs of its batches.
            known = crc if segment.crc is None and scan_segment(data).intact_bytes == segment.bytes else segment.crc
            return replace(segment, crc=crc) if (len(data), crc) == (segment.bytes, known) else None
    except OSError:
        return None


def is_damaged_checkpoint(path: Path) -> bool:
    """Whether a checkpoint is not whole, or cannot be read."""
    try:
        with whole_file(path) as data:
            return checkpoint_problem(data) is not None
    except OSError:
        return True


def base_offset(segment: FetchedSegment) -> int:
    """The first offset of a segment, by the name of its file."""
    return int(segment.file.removesuffix(".log"))


def checkpoint_offset(path: Path) -> int:
    """The exclusive end of a checkpoint, by the name of its file; -1 for another file."""
    matched = _CHECKPOINT.match(path.name)
    return int(matched[1]) if matched else -1
