"""Primitives of the compiled decoder: the wire format's numbers, CRC-32C, base64 of uuids.

Every read is checked against the end of the record. A position of -1 means that something did not fit; it stays -1 in all
further reads, so that callers test once.
"""

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from transforms.compiled import compiler

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Shorts = npt.NDArray[np.int16]

UUID_BYTES = 16
UUID_TEXT = 22

_SOURCES = ("batches.py", "partitions.py", "text.py", "wire.py", "program.py")
compiled = compiler([f"kraft/kernel/{name}" for name in _SOURCES])


def _crc_tables() -> npt.NDArray[np.uint32]:
    tables = np.zeros((16, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        tables[0, byte] = value
    for index in range(1, 16):
        previous = tables[index - 1]
        tables[index] = (previous >> 8) ^ tables[0][previous & 0xFF]
    return tables


_CRC = _crc_tables()
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8).copy()


@compiled
def crc32c(data: Bytes, start: int, end: int) -> int:
    """CRC-32C of `data[start:end]`, sixteen bytes a step."""
    crc = np.uint32(0xFFFFFFFF)
    position = start
    while position + 16 <= end:
        low = (
            np.uint32(data[position])
            | (np.uint32(data[position + 1]) << np.uint32(8))
            | (np.uint32(data[position + 2]) << np.uint32(16))
            | (np.uint32(data[position + 3]) << np.uint32(24))
        ) ^ crc
        crc = (
            _CRC[15, low & np.uint32(0xFF)]
            ^ _CRC[14, (low >> np.uint32(8)) & np.uint32(0xFF)]
            ^ _CRC[13, (low >> np.uint32(16)) & np.uint32(0xFF)]
            ^ _CRC[12, low >> np.uint32(24)]
        )
        for step in range(4, 16):
            crc ^= _CRC[15 - step, data[position + step]]
        position += 16
    while position < end:
        crc = (crc >> np.uint32(8)) ^ _CRC[0, (crc ^ np.uint32(data[position])) & np.uint32(0xFF)]
        position += 1
    return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@compiled
def big(data: Bytes, position: int, size: int) -> int:
    """Unsigned big-endian integer of `size` bytes (8 are signed); the caller has checked the bounds."""
    value = np.int64(0)
    for index in range(size):
        value = (value << 8) | np.int64(data[position + index])
    return value


@compiled
def signed(data: Bytes, position: int, size: int) -> int:
    """Signed big-endian integer of `size` bytes; the caller has checked the bounds."""
    shift = 64 - 8 * size
    return (big(data, position, size) << shift) >> shift


@compiled
def int32_at(data: Bytes, position: int) -> int:
    """Signed 32 bits; the caller has checked the bounds."""
    return np.int64(
        np.int32(
            (np.uint32(data[position]) << np.uint32(24))
            | (np.uint32(data[position + 1]) << np.uint32(16))
            | (np.uint32(data[position + 2]) << np.uint32(8))
            | np.uint32(data[position + 3])
        )
    )


@compiled
def uvarint(data: Bytes, position: int, end: int) -> tuple[int, int]:
    """(value, position after it), or (0, -1)."""
    if position < 0 or position >= end:
        return 0, -1
    byte = np.int64(data[position])
    position += 1
    if byte < 0x80:
        return byte, position
    value = byte & 0x7F
    for index in range(1, 5):
        if position >= end:
            return 0, -1
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return value, position
    return 0, -1


@compiled
def skip_varlong(data: Bytes, position: int, end: int) -> int:
    """Position after a varlong, or -1."""
    if position < 0:
        return -1
    for _ in range(10):
        if position >= end:
            return -1
        position += 1
        if data[position - 1] < 0x80:
            return position
    return -1


@compiled
def take(position: int, size: int, end: int) -> int:
    """Position after `size` bytes, or -1."""
    return position + size if position >= 0 and size >= 0 and size <= end - position else -1


@compiled
def write_uuid(data: Bytes, position: int, target: Bytes, at: int) -> None:
    """16 bytes at `position` as 22 characters of URL-safe base64."""
    for group in range(5):
        source = position + 3 * group
        bits = (np.int64(data[source]) << 16) | (np.int64(data[source + 1]) << 8) | np.int64(data[source + 2])
        target[at + 4 * group] = _BASE64[bits >> 18]
        target[at + 4 * group + 1] = _BASE64[(bits >> 12) & 63]
        target[at + 4 * group + 2] = _BASE64[(bits >> 6) & 63]
        target[at + 4 * group + 3] = _BASE64[bits & 63]
    last = np.int64(data[position + 15])
    target[at + 20] = _BASE64[last >> 2]
    target[at + 21] = _BASE64[(last & 3) << 4]
