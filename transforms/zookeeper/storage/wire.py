"""The three reads of ZooKeeper's client protocol (`zookeeper.jute`), as bytes.

request  = length i32 · xid i32 · type i32 · path string [· watch boolean]
reply    = length i32 · xid i32 · zxid i64 · error i32 · body
getData  = data buffer · stat          getACL = list of (perms, scheme, id) · stat     getChildren = list of names
stat     = czxid i64 · mzxid i64 · ctime i64 · mtime i64 · version i32 · cversion i32 · aversion i32
           · ephemeralOwner i64 · dataLength i32 · numChildren i32 · pzxid i64
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from transforms.zookeeper.storage.jute import JuteError, JuteReader

GET_DATA, GET_ACL, GET_CHILDREN = 4, 6, 8
OK, NO_NODE, NO_AUTH = 0, -101, -102
_REQUEST = struct.Struct(">iiii")
_REPLY = struct.Struct(">iqi")
_LENGTH = struct.Struct(">i")
_STAT = struct.Struct(">qqqqiiiqiiq")
_WATCHED = {GET_DATA, GET_CHILDREN}


class Stat(NamedTuple):
    """A znode's stat, in the order of the wire."""

    czxid: int
    mzxid: int
    ctime: int
    mtime: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    num_children: int
    pzxid: int


class Reply(NamedTuple):
    """A reply's head; its body starts at `BODY` of the frame."""

    xid: int
    zxid: int
    error: int


BODY = _REPLY.size


def request(xid: int, kind: int, path: str) -> bytes:
    """Return a whole request; no read of ours ever sets a watch."""
    name = path.encode("utf-8", "surrogatepass")
    watch = b"\x00" if kind in _WATCHED else b""
    return _REQUEST.pack(12 + len(name) + len(watch), xid, kind, len(name)) + name + watch


def reply(frame: bytes) -> Reply:
    """Read a reply's head from a frame without its length. Raises JuteError."""
    try:
        return Reply._make(_REPLY.unpack_from(frame))
    except struct.error:
        raise JuteError(f"a reply of {len(frame)} bytes is too short") from None


def data_and_stat(frame: bytes) -> tuple[bytes | None, Stat]:
    """Read the body of a getData reply. Raises JuteError."""
    try:
        (length,) = _LENGTH.unpack_from(frame, BODY)
        start = BODY + 4
        end = start + max(length, 0)
        stat = Stat._make(_STAT.unpack_from(frame, end))
    except struct.error:
        raise JuteError(f"a getData reply of {len(frame)} bytes is cut short") from None
    return (None if length < 0 else frame[start:end]), stat


def acl_bytes(frame: bytes) -> bytes:
    """Return the undecoded list of a getACL reply: most znodes of a tree share a few, so it is a key to them."""
    return frame[BODY : -_STAT.size]


def children(frame: bytes) -> list[str]:
    """Read the body of a getChildren reply. Raises JuteError."""
    reader = JuteReader(frame, BODY)
    count = reader.i32()
    if count * 4 > reader.remaining:
        raise JuteError(f"a list of {count} children does not fit")
    return [reader.string() for _ in range(count)]
