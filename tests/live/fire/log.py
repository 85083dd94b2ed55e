"""A controller's log on disk, followed as it grows, with the project's decoder; and its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.framing import batch_size
from transforms.kraft.decode.masking import UNMASKED
from transforms.kraft.decode.rows import Origin

Row = dict[str, Any]


class LogError(AssertionError):
    """The decoder found fault with what a real controller wrote."""


@dataclass
class Follower:
    """Reads what was appended since. Each row is one of bronze `kraft_records`, `body` being its decoded data."""

    folder: Path
    next_offset: int = 0
    _file: Path | None = None
    _position: int = 0
    _epoch: int | None = None
    rows: list[Row] = field(default_factory=list)

    def new(self) -> list[Row]:
        """The rows appended since the last call, in order."""
        found: list[Row] = []
        while True:
            found += self._rest()
            following = self._following()
            if following is None:
                return found
            self._file, self._position = following, 0

    def _following(self) -> Path | None:
        """The segment that begins where the present one ends."""
        path = self.folder / f"{self.next_offset:020d}.log"
        return path if path != self._file and path.exists() else None

    def _rest(self) -> list[Row]:
        if self._file is None:
            return []
        with self._file.open("rb") as file:
            file.seek(self._position)
            data = file.read()
        end = _whole(data)
        if not end:
            return []
        decoding = DecodePass(
            data[:end],
            Origin(0, self._file.name),
            UNMASKED,
            Continuation(self._position, self.next_offset, self._epoch),
        )
        position = 0
        while position < end:
            frame = decoding.frame_at(position)
            decoding.frame(frame)
            position += frame.size
        self._position += end
        self.next_offset, self._epoch = decoding.next_offset or 0, decoding.epoch
        return list(_good(decoding))


def _whole(data: bytes) -> int:
    """How many of the bytes are whole batches: the controller may be writing the last one."""
    end = 0
    while (size := batch_size(data, end)) is not None:
        end += size
    return end


def _good(decoding: DecodePass) -> Iterator[Row]:
    for row in decoding.rows.rows:
        if row.get("problem"):
            raise LogError(f"{decoding.origin.file} at {row['position']}: {row['problem']}")
        if "data" in row:
            row["body"] = json.loads(row["data"])
        yield row


def checkpoint(path: Path) -> list[Row]:
    """The rows of a snapshot file, control records left out."""
    data = path.read_bytes()
    decoding = DecodePass(data, Origin(0, path.name), UNMASKED, Continuation(next_offset=0))
    position = 0
    while position < len(data):
        frame = decoding.frame_at(position)
        decoding.frame(frame)
        position += frame.size
    return [row for row in _good(decoding) if not row["control"]]
