"""Writes ZooKeeper's file formats, independently of the readers: snapshots and transaction logs."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

import pyarrow as pa

OPEN = [(31, "world", "anyone")]
# No release's: what is written here is not the tree's digest, and must not be taken for it.
DIGEST_VERSION = 3


def i32(value: int) -> bytes:
    return struct.pack(">i", value)


def i64(value: int) -> bytes:
    return struct.pack(">q", value)


def buffer(data: bytes | None) -> bytes:
    return i32(-1) if data is None else i32(len(data)) + data


def string(text: str) -> bytes:
    return buffer(text.encode())


def acl(entries: list[tuple[int, str, str]]) -> bytes:
    return i32(len(entries)) + b"".join(i32(perms) + string(scheme) + string(name) for perms, scheme, name in entries)


@dataclass
class Node:
    path: str
    data: bytes | None = b""
    acl: int = 1
    czxid: int = 1
    mzxid: int = 1
    pzxid: int = 1
    owner: int = 0
    version: int = 0
    cversion: int = 0

    def bytes(self, made: int = 1000, written: int = 2000) -> bytes:
        stat = i64(self.czxid) + i64(self.mzxid) + i64(made) + i64(written)
        stat += i32(self.version) + i32(self.cversion) + i32(0) + i64(self.owner) + i64(self.pzxid)
        return string("" if self.path == "/" else self.path) + buffer(self.data) + i64(self.acl) + stat


def seal(content: bytes) -> bytes:
    return content + i64(zlib.adler32(content)) + string("/")


def snapshot(nodes: list[Node], *, digest: bool = False, last_zxid: bool = False) -> bytes:
    """A snapshot file; `nodes` in depth-first order, the root first."""
    content = snapshot_of([node.bytes() for node in nodes])
    if digest:
        content = seal(content + i64(5) + i32(DIGEST_VERSION) + i64(123456789))
    return seal(content + i64(5)) if last_zxid else content


def snapshot_of(nodes: list[bytes]) -> bytes:
    """A snapshot's head and tree, sealed."""
    content = struct.pack(">iiq", 0x5A4B534E, 2, -1)
    content += i32(1) + i64(77) + i32(18000)
    content += i32(1) + i64(1) + acl(OPEN)
    return seal(content + b"".join(nodes) + string("/"))


def snappy(data: bytes, block: int = 32 * 1024) -> bytes:
    """What snappy-java's SnappyOutputStream writes."""
    out = b"\x82SNAPPY\x00" + i32(1) + i32(1)
    for start in range(0, len(data), block):
        out += buffer(pa.compress(data[start : start + block], codec="snappy", asbytes=True))
    return out


def create(path: str, data: bytes | None = b"", *, ephemeral: bool = False, cversion: int = -1) -> bytes:
    return string(path) + buffer(data) + acl(OPEN) + bytes([ephemeral]) + i32(cversion)


def create_container(path: str, cversion: int = -1) -> bytes:
    return string(path) + buffer(None) + acl(OPEN) + i32(cversion)


def create_ttl(path: str, ttl: int, cversion: int = -1) -> bytes:
    return create_container(path, cversion) + i64(ttl)


def set_data(path: str, data: bytes | None, version: int) -> bytes:
    return string(path) + buffer(data) + i32(version)


def set_acl(path: str, entries: list[tuple[int, str, str]], version: int) -> bytes:
    return string(path) + acl(entries) + i32(version)


def multi(*operations: tuple[int, bytes]) -> bytes:
    return i32(len(operations)) + b"".join(i32(kind) + buffer(record) for kind, record in operations)


def paths(*names: str) -> bytes:
    return i32(len(names)) + b"".join(string(name) for name in names)


@dataclass
class Log:
    """A transaction log file under construction."""

    zxid: int = 0
    digest: bool = False
    content: bytes = field(default_factory=lambda: struct.pack(">iiq", 0x5A4B4C47, 2, 0))

    def next_time(self) -> int:
        return 10_001 + self.zxid

    def add(self, kind: int, record: bytes = b"", *, session: int = 77, digest: int | None = None) -> Log:
        body = i64(session) + i32(0) + i64(self.zxid + 1) + i64(self.next_time()) + i32(kind) + record
        self.zxid += 1
        if digest is not None:
            body += i32(2) + i64(digest)
        elif self.digest:
            body += i32(DIGEST_VERSION) + i64(-(2**62) + self.zxid)
        self.content += i64(zlib.adler32(body)) + buffer(body) + b"B"
        return self

    def padded(self, size: int = 4096) -> bytes:
        return self.content + bytes(size)
