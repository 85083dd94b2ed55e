"""Reading primitive values of Kafka's wire format from bytes that may be hostile.

    uvarint   7 bits per byte, least significant group first, top bit set while more follow; at most 5 bytes
    varint    uvarint with zigzag; varlong the same with at most 10 bytes
    string    uvarint length + 1 (0 = null), UTF-8; bytes and arrays alike (compact form)
    uuid      16 raw bytes; text form is URL-safe base64 without padding (`org.apache.kafka.common.Uuid`)
    the rest  big-endian

Every read is checked against the end of the record: a bad length is a `WireError`, never an allocation.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode

_INT16 = struct.Struct(">h")
_UINT16 = struct.Struct(">H")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_FLOAT64 = struct.Struct(">d")


class WireError(ValueError):
    """The bytes do not fit the declaration. The message names the fault and its place, and shows no value."""


class WireReader:
    """A cursor over `data[position:end]`. `notes` collects anomalies that could be skipped."""

    __slots__ = ("data", "end", "notes", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end
        self.notes: list[str] = []

    def take(self, size: int) -> int:
        """Advance by `size` bytes and return the position before; WireError past the end."""
        start = self.position
        if size < 0 or size > self.end - start:
            raise WireError(f"{size} bytes needed, {self.end - start} left")
        self.position = start + size
        return start

    def int8(self) -> int:
        """Signed 8 bits."""
        value = self.data[self.take(1)]
        return value - 256 if value > 127 else value

    def boolean(self) -> bool:
        """One byte; anything but 0 is true, as in Kafka."""
        return self.data[self.take(1)] != 0

    def int16(self) -> int:
        """Signed 16 bits."""
        return int(_INT16.unpack_from(self.data, self.take(2))[0])

    def uint16(self) -> int:
        """Unsigned 16 bits."""
        return int(_UINT16.unpack_from(self.data, self.take(2))[0])

    def int32(self) -> int:
        """Signed 32 bits."""
        return int(_INT32.unpack_from(self.data, self.take(4))[0])

    def int64(self) -> int:
        """Signed 64 bits."""
        return int(_INT64.unpack_from(self.data, self.take(8))[0])

    def float64(self) -> float:
        """IEEE 754 double."""
        return float(_FLOAT64.unpack_from(self.data, self.take(8))[0])

    def uuid(self) -> str:
        """16 bytes as Kafka spells them."""
        start = self.take(16)
        return urlsafe_b64encode(self.data[start : start + 16])[:22].decode("ascii")

    def uvarint(self) -> int:
        """Unsigned varint of at most 5 bytes."""
        position = self.position
        # Nearly all of them are one byte long.
        if position < self.end and (byte := self.data[position]) < 0x80:
            self.position = position + 1
            return byte
        return self._groups(5)

    def varint(self) -> int:
        """Zigzag varint (`ByteUtils.readVarint`)."""
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        """Zigzag varint of at most 10 bytes."""
        value = self._groups(10)
        return (value >> 1) ^ -(value & 1)

    def raw(self, size: int) -> bytes:
        """The next `size` bytes."""
        start = self.take(size)
        return self.data[start : start + size]

    def compact_length(self) -> int | None:
        """Length of a string, bytes or array; None for null. WireError when the record is too short for it."""
        length = self.uvarint() - 1
        if length < 0:
            return None
        if length > self.end - self.position:
            raise WireError(f"a length of {length} with {self.end - self.position} bytes left")
        return length

    def _groups(self, most: int) -> int:
        value = 0
        for index in range(most):
            byte = self.data[self.take(1)]
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value
        raise WireError(f"a varint longer than {most} bytes")
