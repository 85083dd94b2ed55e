"""A tree as a server has it, from which snapshots and logs are written with the digest that it has: summed anew each time."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field, replace

from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from transforms.zookeeper.storage.transactions import OpCode

MADE_AT, WRITTEN_AT = 1000, 2000


@dataclass
class Model:
    """`log` is being written; every change goes into it, with the tree's digest behind it."""

    log: Log
    nodes: dict[str, Node] = field(default_factory=lambda: {"/": Node("/", czxid=0, mzxid=0, pzxid=0)})
    times: dict[str, tuple[int, int]] = field(default_factory=lambda: {"/": (MADE_AT, WRITTEN_AT)})
    digested: bool = True

    def digest(self) -> int:
        total = 0
        for path, node in self.nodes.items():
            if path.startswith("/zookeeper/"):
                continue
            stat = struct.pack(">qqqqq", node.czxid, node.mzxid, node.pzxid, *self.times[path])
            stat += struct.pack(">iiiq", node.version, node.cversion, 0, node.owner)
            total += zlib.crc32(("" if path == "/" else path).encode() + (node.data or b"") + stat)
        return total

    def create(self, path: str, data: bytes | None = b"") -> Model:
        parent = path.rpartition("/")[0] or "/"
        zxid, time = self.log.zxid + 1, self.log.next_time()
        before = self.nodes[parent]
        self.nodes[parent] = replace(before, cversion=before.cversion + 1, pzxid=zxid)
        self.nodes[path] = Node(path, data, czxid=zxid, mzxid=zxid, pzxid=zxid)
        self.times[path] = (time, time)
        return self._write(OpCode.CREATE, journal.create(path, data, cversion=before.cversion + 1))

    def set(self, path: str, data: bytes) -> Model:
        node, made = self.nodes[path], self.times[path][0]
        zxid, time = self.log.zxid + 1, self.log.next_time()
        self.nodes[path] = replace(node, data=data, mzxid=zxid, version=node.version + 1)
        self.times[path] = (made, time)
        return self._write(OpCode.SET_DATA, journal.set_data(path, data, node.version + 1))

    def delete(self, path: str) -> Model:
        parent = path.rpartition("/")[0] or "/"
        del self.nodes[path]
        self.nodes[parent] = replace(self.nodes[parent], pzxid=self.log.zxid + 1)
        return self._write(OpCode.DELETE, journal.string(path))

    def _write(self, kind: int, record: bytes) -> Model:
        self.log.add(kind, record, digest=self.digest() if self.digested else None)
        return self

    def snapshot(self, *, of: dict[str, Node] | None = None, digest: tuple[int, int] | None = None) -> bytes:
        """The tree, or that of `of` with other znodes; `digest` is (zxid, digest) and, left out, that of now."""
        nodes = sorted((of or self.nodes).values(), key=lambda node: node.path.split("/") if node.path != "/" else [])
        sealed = journal.snapshot_of([node.bytes(*self.times[node.path]) for node in nodes])
        if not self.digested:
            return sealed
        zxid, total = digest or (self.log.zxid, self.digest())
        return journal.seal(sealed + journal.i64(zxid) + journal.i32(2) + journal.i64(total))
