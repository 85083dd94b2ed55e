"""Texts as numbers: ids of topics and directories, and names, each kept once. Looked up in compiled code, from Arrow's buffers.

A text's number is its place in the order of arrival. `table` is a hash table with open addressing: a number plus one, or 0.
"""

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from transforms.compiled import compiler
from transforms.kernel.layout import Bytes, Ints, Longs, grown
from transforms.kernel.shards import utf8

compiled = compiler(["kernel/texts.py"])
inlined = compiler(["kernel/texts.py"], inlined=True)

_COUNT = 0
_AHEAD = 256
_NOTHING = np.zeros(1, np.uint8)


class _Arrays(NamedTuple):
    """Bytes of all texts, where each ends (after a leading 0), the hash table, and [number of texts]."""

    blob: Bytes
    ends: Ints
    table: Ints
    used: Longs


@inlined
def _word(data: Bytes, at: int) -> int:
    return (
        np.int64(data[at])
        | (np.int64(data[at + 1]) << 8)
        | (np.int64(data[at + 2]) << 16)
        | (np.int64(data[at + 3]) << 24)
    )


@inlined
def _hash(data: Bytes, start: int, end: int) -> int:
    value, at = np.int64(-3750763034362895579), start
    while at + 4 <= end:
        value = (value ^ _word(data, at)) * np.int64(-7046029254386353131)
        at += 4
    while at < end:
        value = (value ^ np.int64(data[at])) * np.int64(-7046029254386353131)
        at += 1
    return value ^ (value >> 32)


@inlined
def _place(texts: _Arrays, data: Bytes, start: int, end: int, hashed: int) -> int:
    """Where in the table a text stands, or is to stand."""
    mask = texts.table.size - 1
    place = hashed & mask
    while texts.table[place] != 0:
        number = texts.table[place] - 1
        if _is_text(texts, number, data, start, end):
            return place
        place = (place + 1) & mask
    return place


@inlined
def _is_text(texts: _Arrays, number: int, data: Bytes, start: int, end: int) -> bool:
    first = texts.ends[number]
    if texts.ends[number + 1] - first != end - start:
        return False
    at = 0
    while at + 4 <= end - start:
        if _word(texts.blob, first + at) != _word(data, start + at):
            return False
        at += 4
    while at < end - start:
        if texts.blob[first + at] != data[start + at]:
            return False
        at += 1
    return True


@inlined
def _number(texts: _Arrays, data: Bytes, start: int, end: int, hashed: int) -> int:
    """A text's number; it is added where it is new, and there is room."""
    place = _place(texts, data, start, end, hashed)
    if texts.table[place] == 0:
        number = texts.used[_COUNT]
        first = texts.ends[number]
        for at in range(end - start):
            texts.blob[first + at] = data[start + at]
        texts.ends[number + 1] = first + end - start
        texts.used[_COUNT] = number + 1
        texts.table[place] = number + 1
    return texts.table[place] - 1


@compiled
def _number_all(texts: _Arrays, data: Bytes, offsets: Ints, rows: Longs, numbers: Longs, ahead: Longs) -> None:
    """Numbers of the texts in some rows.

    As in `transforms.kernel.steps`, what many of them need of memory is looked at in loops as short as can be.
    """
    for first in range(0, rows.size, ahead.size):
        count, mask, seen = min(ahead.size, rows.size - first), texts.table.size - 1, 0
        for at in range(count):
            row = rows[first + at]
            ahead[at] = _hash(data, offsets[row], offsets[row + 1])
        for at in range(count):
            numbers[first + at] = max(texts.table[ahead[at] & mask] - 1, 0)
        for at in range(count):
            numbers[first + at] = texts.ends[numbers[first + at]]
        for at in range(count):
            seen += texts.blob[numbers[first + at]]
        # Otherwise the compiler leaves out what nobody needs.
        numbers[first] = seen
        for at in range(count):
            row = rows[first + at]
            numbers[first + at] = _number(texts, data, offsets[row], offsets[row + 1], ahead[at])


@compiled
def _find_all(texts: _Arrays, data: Bytes, offsets: Ints, numbers: Longs) -> None:
    for at in range(numbers.size):
        hashed = _hash(data, offsets[at], offsets[at + 1])
        numbers[at] = texts.table[_place(texts, data, offsets[at], offsets[at + 1], hashed)] - 1


@compiled
def _fill_table(texts: _Arrays) -> None:
    for number in range(texts.used[_COUNT]):
        start, end = texts.ends[number], texts.ends[number + 1]
        texts.table[_place(texts, texts.blob, start, end, _hash(texts.blob, start, end))] = number + 1


class Texts:
    """Texts by number, and numbers by text."""

    def __init__(self) -> None:
        self._arrays = _Arrays(
            np.zeros(1, np.uint8), np.zeros(1, np.int32), np.zeros(4, np.int32), np.zeros(1, np.int64)
        )
        # At least so many texts and bytes more find room.
        self._spare = [0, 0]
        self._ahead = np.zeros(_AHEAD, np.int64)

    def __len__(self) -> int:
        return int(self._arrays.used[_COUNT])

    def numbers(self, column: pa.StringArray, rows: Longs | None = None) -> Longs:
        """Numbers of the texts in some rows of a column, or in all; new ones are added."""
        rows = np.arange(len(column)) if rows is None else rows
        numbers = np.empty(len(rows), np.int64)
        if len(rows):
            data, offsets = _buffers(column)
            self._reserve(len(rows), int(offsets[-1] - offsets[0]))
            _number_all(self._arrays, data, offsets, rows, numbers, self._ahead)
        return numbers

    def number(self, text: str) -> int:
        """A text's number; it is added where it is new."""
        return int(self.numbers(pa.array([utf8(text)], pa.string()))[0])

    def find(self, column: pa.StringArray) -> Longs:
        """Numbers of all texts of a column; -1 for one that is not here."""
        numbers = np.empty(len(column), np.int64)
        if len(column):
            _find_all(self._arrays, *_buffers(column), numbers)
        return numbers

    def column(self, numbers: npt.NDArray[np.integer]) -> pa.StringArray:
        """Texts as an Arrow column; null for -1."""
        return self.all().take(pa.array(numbers, mask=numbers < 0))

    def text(self, number: int) -> str:
        """One text."""
        first, end = self._arrays.ends[number : number + 2].tolist()
        return self._arrays.blob[first:end].tobytes().decode()

    def all(self) -> pa.StringArray:
        """All texts in their order, where they are."""
        blob, ends, _, _ = self._arrays
        return pa.StringArray.from_buffers(len(self), pa.py_buffer(ends), pa.py_buffer(blob))

    def _reserve(self, count: int, size: int) -> None:
        self._spare = [self._spare[0] - count, self._spare[1] - size]
        if min(self._spare) < 0:
            self._grow(count, size)

    def _grow(self, count: int, size: int) -> None:
        blob, ends, table, used = self._arrays
        texts, filled = len(self) + count, int(ends[len(self)]) + size
        if filled > blob.size:
            blob = grown(blob, filled)
        if texts >= ends.size:
            ends = grown(ends, texts + 1)
        self._arrays = _Arrays(blob, ends, table, used)
        if 2 * texts > table.size:
            self._arrays = self._arrays._replace(table=np.zeros(1 << (4 * texts).bit_length(), np.int32))
            _fill_table(self._arrays)
        self._spare = [min(ends.size - 1, self._arrays.table.size // 2) - texts, blob.size - filled]


def _buffers(column: pa.StringArray) -> tuple[Bytes, Ints]:
    """Bytes and offsets of a column of texts."""
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return (np.frombuffer(data, np.uint8) if data is not None and data.size else _NOTHING), places
