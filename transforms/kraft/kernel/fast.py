"""Segments through the compiled kernel, with the declaration-driven decoder for the rest.

The rows are exactly those of `transforms.kraft.decode.segments`: the kernel takes ordinary batches only. Two things come back
from it: a batch that is not ordinary (decoded whole by the other path), and single bodies whose text it did not write
(secrets, tags, escapes), which are decoded one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.kraft.records import RECORD_TYPES
from transforms.kraft.decode.codec import decode_record
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.framing import SEARCH_BUDGET, batch_size, frame_at
from transforms.kraft.decode.masking import mask
from transforms.kraft.decode.spelling import to_json
from transforms.kraft.decode.wire import WireError
from transforms.kraft.kernel import batches as kernel
from transforms.kraft.kernel import partitions as layout
from transforms.kraft.kernel.columnar import empty_columns, to_batch
from transforms.kraft.kernel.partitions import Columns
from transforms.kraft.kernel.program import program
from transforms.kraft.kernel.wire import Bytes

# Any batch up to this size fits into fresh buffers; larger ones get their own buffers.
_HEADROOM_BYTES = 1 << 17
_LARGEST_BATCH = 1 << 26
_HEADER_ROWS = 7
_MOST_PIECES = 8
_HEADERS_PER_CHUNK = 65_536


def decode_fast(decoding: DecodePass, rows_per_batch: int) -> Iterator[pa.RecordBatch]:
    """Decode all of the decoding's data; the decoding keeps the state and decodes what the kernel leaves."""
    return _FastPass(decoding, rows_per_batch).batches()


def warm_up() -> None:
    """Compile the kernel and leave the machine code in numba's cache on disk, so that no run has to."""
    nothing = np.frombuffer(b"", np.uint8)
    _run(nothing, _Place(0, -1, -1, 0), empty_columns(1, 0))
    kernel.scan_batches(nothing, 0, np.empty((_HEADER_ROWS, 1), np.int64))


def scan_fast(data: bytes) -> Iterator[npt.NDArray[np.int64]]:
    """Headers of the intact batches of `data`, in chunks; the rows are those of `kernel.scan_batches`."""
    view = np.frombuffer(data, np.uint8)
    budget = [SEARCH_BUDGET]
    position, reason = 0, kernel.FULL
    while reason != kernel.DONE:
        headers = np.empty((_HEADER_ROWS, _HEADERS_PER_CHUNK), np.int64)
        reason, position, count = kernel.scan_batches(view, position, headers)
        if reason == kernel.NOT_MINE:
            position += frame_at(data, position, budget).size
        yield headers[:, :count]


class _Place(NamedTuple):
    """Where the kernel is: position in the bytes, next offset and epoch (-1 unknown), next row."""

    position: int
    next_offset: int
    epoch: int
    row: int


def _run(data: Bytes, place: _Place, columns: Columns) -> tuple[int, _Place]:
    """Call the kernel; returns why it stopped, and where."""
    code = program()
    reason, position, row, next_offset, epoch = kernel.decode_batches(
        data,
        place.position,
        place.next_offset,
        place.epoch,
        place.row,
        code.instructions,
        code.types,
        code.names,
        code.blob,
        columns.longs,
        columns.ints,
        columns.shorts,
        columns.lists,
        columns.topics,
        columns.directories,
        columns.text,
        columns.used,
    )
    return reason, _Place(position, next_offset, epoch, row)


class _FastPass:
    def __init__(self, decoding: DecodePass, rows_per_batch: int) -> None:
        self.data = decoding.data
        self.decoding = decoding
        self.capacity = rows_per_batch
        self.columns = empty_columns(rows_per_batch, _HEADROOM_BYTES)
        self.room = 0
        self.rows = 0
        # (first row, row after the last, rows that stand there instead)
        self.edits: list[tuple[int, int, pa.RecordBatch]] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Alternate between the kernel and the other path until the data ends."""
        view = np.frombuffer(self.data, np.uint8)
        position = 0
        while position < len(self.data):
            reason, position = self._run_kernel(view, position)
            if reason == kernel.FULL and self.rows:
                yield from self._flush()
            elif reason == kernel.FULL and self._make_room(position):
                continue
            elif reason != kernel.DONE:
                position = self._decode_slowly(position)
        yield from self._flush()

    def _run_kernel(self, view: Bytes, position: int) -> tuple[int, int]:
        decoding = self.decoding
        next_offset = -1 if decoding.next_offset is None else decoding.next_offset
        epoch = -1 if decoding.epoch is None else decoding.epoch
        before = self.rows
        reason, place = _run(view, _Place(position, next_offset, epoch, before), self.columns)
        self.rows = place.row
        if self.rows > before:
            decoding.next_offset, decoding.epoch = place.next_offset, place.epoch
            decoding.first_type = (
                decoding.first_type or RECORD_TYPES[int(self.columns.shorts[layout.TYPE, before])].name
            )
            decoding.last_type = RECORD_TYPES[int(self.columns.shorts[layout.TYPE, self.rows - 1])].name
        return reason, place.position

    def _make_room(self, position: int) -> bool:
        """Get buffers that hold the batch at `position`; False when there are such already or it is absurdly large."""
        size = batch_size(self.data, position) or 0
        count = int.from_bytes(self.data[position + 57 : position + 61], "big")
        if size > _LARGEST_BATCH or self.room >= max(size, count):
            return False
        self.room = max(size, count)
        self.columns = empty_columns(max(self.capacity, count), size)
        return True

    def _decode_slowly(self, position: int) -> int:
        """Decode the frame at `position` by the declarations; returns the position after it."""
        frame = self.decoding.frame_at(position)
        self.decoding.frame(frame)
        if len(self.decoding.rows):
            self.edits.append((self.rows, self.rows, self.decoding.rows.take()))
        return position + frame.size

    def _flush(self) -> Iterator[pa.RecordBatch]:
        texts = self._pending_texts()
        if self.rows:
            ordinary = to_batch(self.columns, self.rows, self.decoding.origin, self.decoding.base, texts)
            pieces = list(_splice(ordinary, self.edits))
        else:
            pieces = [rows for _, _, rows in self.edits]
        self.edits, self.rows, self.room = [], 0, 0
        self.columns = empty_columns(self.capacity, _HEADROOM_BYTES)
        yield from _merged(pieces, self.capacity)

    def _pending_texts(self) -> dict[int, str]:
        """Bodies of the rows the kernel left; a body with a problem makes its whole batch an edit."""
        texts: dict[int, str] = {}
        pending = np.flatnonzero(self.columns.longs[layout.PENDING, : self.rows] >= 0)
        done_until = -1
        for row in pending.tolist():
            if row < done_until:
                continue
            text = self._text(row)
            if text is None:
                done_until = self._redo_batch(row)
            else:
                texts[row] = text
        return texts

    def _text(self, row: int) -> str | None:
        longs, shorts = self.columns.longs, self.columns.shorts
        record_type = RECORD_TYPES[int(shorts[layout.TYPE, row])]
        version, start = int(shorts[layout.VERSION, row]), int(longs[layout.PENDING, row])
        end = int(longs[layout.PENDING_END, row])
        try:
            values, body, notes = decode_record(record_type, version, self.data, start, end)
        except WireError:
            return None
        return None if notes else to_json(body, version, mask(body, values, self.decoding.masking))

    def _base_offset(self, position: int) -> int:
        return int.from_bytes(self.data[position : position + 8], "big", signed=True)

    def _redo_batch(self, row: int) -> int:
        """Replace the rows of the batch of `row` by what the declarations make of it; returns the row after them."""
        position = int(self.columns.longs[layout.POSITION, row])
        base_offset = self._base_offset(position)
        first = row - (int(self.columns.longs[layout.OFFSET, row]) - base_offset)
        decoding = DecodePass(
            self.data,
            self.decoding.origin,
            self.decoding.masking,
            Continuation(self.decoding.base, base_offset, int(self.columns.ints[layout.EPOCH, row])),
        )
        frame = decoding.frame_at(position)
        decoding.frame(frame)
        after = int(np.searchsorted(self.columns.longs[layout.POSITION, : self.rows], position, "right"))
        self.edits.append((first, after, decoding.rows.take()))
        return after


def _splice(batch: pa.RecordBatch, edits: list[tuple[int, int, pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    at = 0
    for first, after, rows in sorted(edits, key=lambda edit: edit[:2]):
        if first > at:
            yield batch.slice(at, first - at)
        yield rows
        at = after
    if at < batch.num_rows:
        yield batch.slice(at)


def _merged(pieces: list[pa.RecordBatch], rows_per_batch: int) -> Iterator[pa.RecordBatch]:
    # Copying is dearer than a few small batches.
    if len(pieces) > _MOST_PIECES:
        yield from pa.Table.from_batches(pieces).combine_chunks().to_batches(max_chunksize=2 * rows_per_batch)
    else:
        yield from pieces
