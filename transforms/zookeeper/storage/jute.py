"""Jute, ZooKeeper's serialisation (`org.apache.jute.BinaryInputArchive`): big-endian numbers, length-prefixed bytes."""

from __future__ import annotations

import struct

from transforms.zookeeper.read.znode import AclEntry

_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_ACL_MIN_BYTES = 12


class JuteError(ValueError):
    """The bytes do not follow the format; the message names the fault and its place, never the bytes."""


class JuteReader:
    """Reads jute values from a buffer, one after the other. Raises JuteError at anything that does not fit."""

    def __init__(self, data: bytes | memoryview, position: int = 0) -> None:
        self._data = data
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self.position

    def i32(self) -> int:
        """Read an i32."""
        return int(_INT.unpack(self._take(4))[0])

    def i64(self) -> int:
        """Read an i64."""
        return int(_LONG.unpack(self._take(8))[0])

    def boolean(self) -> bool:
        """Read one byte as a boolean."""
        return self._take(1) != b"\x00"

    def buffer(self) -> bytes | None:
        """Read a length and as many bytes; None for null."""
        length = self.i32()
        if length == -1:
            return None
        return self._take(length)

    def string(self) -> str:
        """Read a text."""
        return decode_string(self.buffer() or b"")

    def acl(self) -> list[AclEntry] | None:
        """Read a list of ACL entries; None for null."""
        count = self.i32()
        if count == -1:
            return None
        if count < 0 or count * _ACL_MIN_BYTES > self.remaining:
            raise JuteError(f"a list of {count} ACL entries at byte {self.position} does not fit")
        return [AclEntry(self.i32(), self.string(), self.string()) for _ in range(count)]

    def _take(self, length: int) -> bytes:
        if length < 0 or length > self.remaining:
            raise JuteError(f"{length} bytes at byte {self.position} are not there")
        start = self.position
        self.position += length
        return bytes(self._data[start : self.position])


def decode_string(data: bytes) -> str:
    """Decode a jute text: UTF-8, but Java writes a character beyond 16 bits as two surrogates of three bytes each."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        pairs = data.decode("utf-8", "surrogatepass")
        return pairs.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeError:
        return data.decode("utf-8", "replace")
