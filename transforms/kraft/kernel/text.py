"""The compiled decoder's JSON texts: runs the programs of `transforms.kraft.kernel.program` over one record.

A position below 0, in the wire or in the text, means that the program does not cover the record; then the declaration-driven
decoder takes it.
"""

# ruff: noqa: PLR0913, PLR0917 - compiled code takes arrays, not objects

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

import numpy as np

from transforms.kraft.kernel.program import FNV_BASIS, FNV_PRIME, NAME_SLOTS, Op
from transforms.kraft.kernel.wire import Bytes, Ints, big, compiled, signed, take, uvarint, write_uuid

_NOT_MINE = -2
_MAX_EXACT = 1e15
_POWER_FROM = 1e7
_SMALLEST_PLAIN = 1e-3
_MOST_DECIMALS = 6
# Room that any single instruction but a string may need.
_ROOM = 256
(_LITERAL, _INT8, _INT16, _UINT16, _INT32, _INT64, _BOOL, _UUID, _STRING, _FLOAT64, _ARRAY, _NO_TAGS) = (
    int(op) for op in Op if op < Op.TAGS
)
_TAGS, _TAG, _TAG_END, _TAGS_END = int(Op.TAGS), int(Op.TAG), int(Op.TAG_END), int(Op.TAGS_END)
_NULL = np.frombuffer(b"null", np.uint8).copy()
_TRUE = np.frombuffer(b"true", np.uint8).copy()
_FALSE = np.frombuffer(b"false", np.uint8).copy()


@compiled
def run_program(
    data: Bytes,
    position: int,
    end: int,
    first: int,
    last: int,
    instructions: Ints,
    blob: Bytes,
    text: Bytes,
    at: int,
    room: int,
) -> tuple[int, int]:
    """Run the instructions [first, last): read `data[position:end]`, write at `text[at:room]`.

    Returns the positions reached in the wire and in the text.
    """
    index = first
    remaining, loop_start, loop_end = 0, 0, -1
    tags, tag_end = 0, -1
    while index < last:
        if at < 0 or position < 0 or at + _ROOM > room:
            return -1, at
        op = instructions[index, 0]
        if op >= _TAGS:
            index, position, tags, tag_end = _tag_step(data, position, end, index, instructions, tags, tag_end)
        elif op == _ARRAY:
            remaining, position = uvarint(data, position, end)
            remaining -= 1
            if position < 0 or remaining < 0 or remaining > end - position:
                return -1, at
            text[at] = 91
            at += 1
            loop_start, loop_end = index + 1, instructions[index, 1]
            index = loop_start if remaining > 0 else loop_end
        else:
            position, at = _step(data, position, end, index, instructions, blob, text, at, room)
            index += 1
            if index == loop_end and remaining > 1 and at >= 0:
                remaining -= 1
                text[at] = 44
                at += 1
                index = loop_start
                continue
        if index == loop_end and at >= 0:
            text[at] = 93
            at += 1
            loop_end = -1
    return position, at


@compiled
def _tag_step(
    data: Bytes, position: int, end: int, index: int, instructions: Ints, tags: int, tag_end: int
) -> tuple[int, int, int, int]:
    """Run an instruction of the tagged section; returns the next one, the position, the tags left, the value's end."""
    op = instructions[index, 0]
    if op == _TAGS:
        tags, position = uvarint(data, position, end)
    elif op == _TAGS_END:
        position = position if tags == 0 else -1
    elif op == _TAG_END:
        position = position if position == tag_end else -1
        tags -= 1
    else:
        tag, after = uvarint(data, position, end)
        if tags == 0 or (after >= 0 and tag != instructions[index, 2]):
            return instructions[index, 1], position, tags, tag_end
        size, position = uvarint(data, after, end)
        tag_end = take(position, size, end)
        if tag_end < 0 or size == 0 or data[position] == instructions[index, 3]:
            position = -1
    return index + 1, position, tags, tag_end


@compiled
def _step(
    data: Bytes, position: int, end: int, index: int, instructions: Ints, blob: Bytes, text: Bytes, at: int, room: int
) -> tuple[int, int]:
    """Run one instruction that is not an array."""
    op = instructions[index, 0]
    if op == _LITERAL:
        start, size = instructions[index, 1], instructions[index, 2]
        for offset in range(size):
            text[at + offset] = blob[start + offset]
        return position, at + size
    if op == _NO_TAGS:
        tags, position = uvarint(data, position, end)
        return (position if tags == 0 else -1), at
    if op == _STRING:
        return _string(data, position, end, instructions[index, 2], text, at, room)
    after = take(position, _width(op), end)
    if after < 0:
        return -1, at
    return after, _fixed(data, position, op, instructions[index, 3], blob, text, at)


@compiled
def _fixed(data: Bytes, position: int, op: int, known: int, blob: Bytes, text: Bytes, at: int) -> int:
    """Write a value of fixed width; `known` is where in `blob` the known codes of its enum are marked, or -1."""
    if op == _UUID:
        text[at] = 34
        write_uuid(data, position, text, at + 1)
        text[at + 23] = 34
        return at + 24
    if op == _BOOL:
        return _write_word(_TRUE if data[position] != 0 else _FALSE, text, at)
    if op == _FLOAT64:
        return _write_double(_double_at(data, position), text, at)
    value = big(data, position, 2) if op == _UINT16 else signed(data, position, _width(op))
    if known >= 0 and (value < -128 or value > 127 or blob[known + (value & 0xFF)] == 0):
        return _NOT_MINE
    return _write_int(value, text, at)


@compiled
def _width(op: int) -> int:
    if op in (_INT8, _BOOL):
        return 1
    if op in (_INT16, _UINT16):
        return 2
    if op == _INT32:
        return 4
    return 16 if op == _UUID else 8


@compiled
def _write_word(word: Bytes, text: Bytes, at: int) -> int:
    for index in range(word.size):
        text[at + index] = word[index]
    return at + word.size


@compiled
def _string(data: Bytes, position: int, end: int, nullable: int, text: Bytes, at: int, room: int) -> tuple[int, int]:
    stored, position = uvarint(data, position, end)
    size = stored - 1
    if size < 0:
        if position < 0 or nullable == 0:
            return -1, at
        return position, _write_word(_NULL, text, at)
    after = take(position, size, end)
    if after < 0 or at + size + _ROOM > room:
        return -1, at
    return after, _copy_plain(data, position, size, text, at)


@compiled
def _copy_plain(data: Bytes, position: int, size: int, text: Bytes, at: int) -> int:
    """Copy plain ASCII in quotes; not mine when a character needs escaping or decoding."""
    text[at] = 34
    for index in range(size):
        byte = data[position + index]
        if byte < 32 or byte > 126 or byte in (34, 92):
            return _NOT_MINE
        text[at + 1 + index] = byte
    text[at + 1 + size] = 34
    return at + size + 2


@compiled
def _write_int(value: int, text: Bytes, at: int) -> int:
    """Decimal digits; returns the position after them."""
    # The magnitude of the lowest int64 only exists unsigned.
    magnitude = np.uint64(value)
    if value < 0:
        text[at] = 45
        at += 1
        magnitude = np.uint64(0) - magnitude
    digits = 1
    rest = magnitude // np.uint64(10)
    while rest > 0:
        digits += 1
        rest //= np.uint64(10)
    for index in range(digits - 1, -1, -1):
        text[at + index] = np.uint8(48) + np.uint8(magnitude % np.uint64(10))
        magnitude //= np.uint64(10)
    return at + digits


@compiled
def _write_double(value: float, text: Bytes, at: int) -> int:
    """A number with few digits as Java spells it; every other double is not mine.

    The digits are those of the least k with value * 10**k whole: with at most 15 of them they are the shortest that
    give the double back, which is what Java prints.
    """
    if value == 0 or not (-_MAX_EXACT < value < _MAX_EXACT):
        return _NOT_MINE
    if -_POWER_FROM < value < _POWER_FROM:
        return _write_plain(value, text, at)
    if value != np.floor(value):
        return _NOT_MINE
    after = _write_int(int(value), text, at)
    first = at + 1 if value < 0 else at
    exponent = after - first - 1
    last = after - 1
    while last > first + 1 and text[last] == 48:
        last -= 1
    for index in range(last, first, -1):
        text[index + 1] = text[index]
    text[first + 1] = 46
    text[last + 2] = 69
    return _write_int(exponent, text, last + 3)


@compiled
def _write_plain(value: float, text: Bytes, at: int) -> int:
    """Write a double below 1e7 with at most six decimals, at least one of them."""
    scale, decimals = 1.0, 0
    while np.rint(value * scale) / scale != value:
        scale *= 10.0
        decimals += 1
        if decimals > _MOST_DECIMALS:
            return _NOT_MINE
    scaled = np.rint(value * scale)
    if -_SMALLEST_PLAIN < value < _SMALLEST_PLAIN:
        return _NOT_MINE
    unit, digits = int(scale), int(abs(scaled))
    whole = digits // unit if value > 0 else -(digits // unit)
    if value < 0 and whole == 0:
        text[at] = 45
        at += 1
    at = _write_int(whole, text, at)
    text[at] = 46
    fraction = digits % unit
    for index in range(max(decimals, 1), 0, -1):
        text[at + index] = np.uint8(48) + np.uint8(fraction % 10)
        fraction //= 10
    return at + max(decimals, 1) + 1


@compiled
def _double_at(data: Bytes, position: int) -> float:
    # Reinterpreting the bits needs an array; sign, exponent and mantissa do without.
    bits = big(data, position, 8)
    exponent = (bits >> 52) & 0x7FF
    mantissa = bits & 0xFFFFFFFFFFFFF
    if exponent in (0, 0x7FF):
        return 0.0
    value = np.ldexp(np.float64(mantissa | 0x10000000000000), exponent - 1075)
    return -value if bits < 0 else value


@compiled
def _contains(data: Bytes, start: int, end: int, blob: Bytes, word: int, size: int) -> bool:
    """Tell whether `blob[word:word + size]` occurs in `data[start:end]`."""
    for at in range(start, end - size + 1):
        index = 0
        while index < size and data[at + index] == blob[word + index]:
            index += 1
        if index == size:
            return True
    return False


@compiled
def _is_readable(data: Bytes, start: int, end: int, names: Ints, blob: Bytes) -> bool:
    """Tell whether `data[start:end]` is the name of a configuration whose value is not secret (`Program.names`)."""
    value = FNV_BASIS
    for at in range(start, end):
        value = ((value ^ int(data[at])) * FNV_PRIME) & 0xFFFFFFFF
    slot = value % NAME_SLOTS
    while names[1 + slot, 1] > 0:
        size = names[1 + slot, 1]
        if size == end - start and _contains(data, start, end, blob, names[1 + slot, 0], size):
            return True
        slot = (slot + 1) % NAME_SLOTS
    return False


@compiled
def config_is_plain(data: Bytes, position: int, end: int, names: Ints, blob: Bytes) -> bool:
    """Tell whether a Config record surely holds no secret: a name that may be read, and a value that is not encrypted."""
    position = take(position, 1, end)
    size, position = uvarint(data, position, end)
    position = take(position, size - 1, end)
    size, position = uvarint(data, position, end)
    after = take(position, size - 1, end)
    if after < 0 or not _is_readable(data, position, after, names, blob):
        return False
    return not _contains(data, after, end, blob, names[0, 0], names[0, 1])
