"""ZooKeeper's own digest of its tree, recomputed: does the tree that was read equal the server's?

    digest of a znode = CRC-32 of path · data · czxid · mzxid · pzxid · ctime · mtime · version · cversion · aversion
                        · ephemeralOwner          (numbers big-endian, cversion as it is stored; the root's path is "")
    digest of a tree  = sum of its znodes' digests modulo 2^64; nothing below /zookeeper counts

ZooKeeper 3.6 and later write the digest that the tree has after a transaction behind that transaction, and the newest
one behind a snapshot, unless `zookeeper.digest.enabled` is false. A snapshot is fuzzy: its tree is exact once the
transaction that its digest names was replayed. Where there is no digest, versions and parents show it: they follow each other.

Sources: `DigestCalculator`, `AdHash`, `DataTree.compareDigest`, `DataTree.deserializeZxidDigest`, `PrepRequestProcessor`.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from transforms.zookeeper.storage import scan
from transforms.zookeeper.storage.jute import JuteReader
from transforms.zookeeper.storage.snapshot import Snapshot
from transforms.zookeeper.storage.transactions import ZkTransaction

VERSION = 2
# What servers change on their own is not counted (`ZooDefs.ZOOKEEPER_NODE_SUBTREE`).
UNCOUNTED = "/zookeeper/"
_STAT = struct.Struct(">qqqqqiiiq")
_MODULUS = 1 << 64


class DigestVerdict(StrEnum):
    """The result of the digests for a tree."""

    PROVED = "proved"
    """The tree's digest is the one that ZooKeeper wrote."""
    UNPROVED = "not proved"
    """Nothing contradicts the tree, and no digest proves it."""
    BROKEN = "broken"
    """The tree is not the one that ZooKeeper had."""


@dataclass(frozen=True)
class Judgement:
    """A verdict, and its evidence in one sentence."""

    verdict: DigestVerdict
    text: str


@dataclass(frozen=True)
class ZxidDigest:
    """The digest of the tree after a transaction, as a file has it."""

    zxid: int
    version: int
    digest: int


def content_crc(path: str, data: bytes | None) -> int:
    """CRC-32 of a znode's path and data: what a digest begins with."""
    return zlib.crc32(data or b"", zlib.crc32(_path(path)))


def znode_digest(path: str, content: int, stat: tuple[int, ...]) -> int:
    """Digest of a znode from its `content_crc` and its stat in the order above; 0 for one that is not counted."""
    return 0 if path.startswith(UNCOUNTED) else zlib.crc32(_STAT.pack(*stat), content)


def _path(path: str) -> bytes:
    return b"" if path == "/" else path.encode("utf-8", "replace")


@dataclass
class TreeDigest:
    """The digest of a tree, kept up to date while transactions are replayed, and compared with the files' own.

    `total` is that of the snapshot, 0 and not counted on where no file has a digest. `newest` is the newest change
    (czxid, mzxid, pzxid) that the snapshot shows: before it, versions need not follow each other.
    """

    snapshot_zxid: int
    total: int
    newest: int = 0
    stored: ZxidDigest | None = None
    ascii_only: bool = True
    counting: bool = True
    agreed_at: int | None = None
    differs_since: int | None = None
    silent_since: int | None = None
    unknown_version: int | None = None
    doubts: dict[str, str] = field(default_factory=dict)
    snapshot: Snapshot | None = field(default=None, repr=False)

    @staticmethod
    def of(snapshot: Snapshot, zxid: int, transactions: list[ZkTransaction]) -> TreeDigest:
        """The digest of a snapshot's tree; `transactions` are those to be replayed on it.

        The snapshot's bytes are gone through only when there is a digest to compare them with.
        """
        stored = None if snapshot.digest is None else ZxidDigest(*snapshot.digest)
        given = stored is not None or any(each.digest is not None for each in transactions)
        total, ascii_only = _sum(snapshot) if given else (0, True)
        tree = TreeDigest(zxid, total, stored=stored, ascii_only=ascii_only, counting=given, snapshot=snapshot)
        if stored is not None and stored.zxid == zxid:
            tree._compare(zxid, stored.version, stored.digest)
        return tree

    @property
    def exact_from(self) -> int | None:
        """The zxid from which on the digests must agree, None if the snapshot does not show it.

        A digest without a transaction, or with one before the snapshot, is that of a tree at rest.
        """
        if self.stored is None or self.stored.version != VERSION:
            return None
        return max(self.stored.zxid, self.snapshot_zxid)

    def contents(self, places: npt.NDArray[np.int64]) -> Iterator[tuple[str, int]]:
        """Path and `content_crc` of some of the snapshot's znodes, by their places in it."""
        if self.snapshot is None:
            return
        for position in self.snapshot.positions[places].tolist():
            reader = JuteReader(self.snapshot.data.data, position)
            path = reader.string() or "/"
            yield path, content_crc(path, reader.buffer())

    def change(self, before: int, after: int) -> None:
        """A znode's digest has changed (0: the znode is not there)."""
        self.total = (self.total + after - before) % _MODULUS

    def doubt(self, zxid: int, path: str, why: str) -> None:
        """What a transaction does to `path` does not fit the tree."""
        self.doubts.setdefault(path, f"transaction {zxid:#x} {why} {path}")

    def gone(self, path: str) -> None:
        """A znode was deleted: a fuzzy snapshot may have missed it, so what did not fit there was right."""
        self.doubts.pop(path, None)

    def follow(self, transaction: ZkTransaction) -> None:
        """A transaction was replayed: does the tree have its digest?"""
        if transaction.digest is not None:
            self._compare(transaction.zxid, *transaction.digest)
        elif not transaction.failed and self.silent_since is None:
            # A transaction that failed changes nothing, and mostly has no digest.
            self.silent_since = transaction.zxid

    def _compare(self, zxid: int, version: int, digest: int) -> None:
        if version != VERSION:
            self.unknown_version = version
            self.silent_since = zxid if self.silent_since is None else self.silent_since
        elif digest % _MODULUS == self.total:
            # Whatever came before: this is the tree.
            self.agreed_at, self.differs_since, self.silent_since = zxid, None, None
            self.doubts.clear()
        elif self.differs_since is None and zxid >= (self.exact_from or 0):
            self.differs_since = zxid

    def judge(self, zxid: int) -> Judgement:
        """The verdict about the tree after transaction `zxid`, the last one that was replayed."""
        fuzzy = self.exact_from is not None and self.exact_from > zxid
        if self.agreed_at is not None and self.differs_since is None and self.silent_since is None:
            return Judgement(
                DigestVerdict.PROVED, f"the tree has ZooKeeper's own digest after transaction {self.agreed_at:#x}"
            )
        if fuzzy:
            return Judgement(
                DigestVerdict.BROKEN,
                f"the snapshot at {self.snapshot_zxid:#x} may hold changes up to {self.exact_from:#x}, and the tree after "
                f"{zxid:#x} lacks the transactions between",
            )
        if self.differs_since is not None and self._should_agree():
            return Judgement(DigestVerdict.BROKEN, self._how_it_differs())
        if self.doubts:
            return Judgement(
                DigestVerdict.BROKEN, f"{next(iter(self.doubts.values()))}: earlier transactions are missing"
            )
        return Judgement(DigestVerdict.UNPROVED, self._why_unproved())

    def _should_agree(self) -> bool:
        """Once it has agreed it must always agree. Before that, it is unknown how a server encoded a path that is not ASCII."""
        return self.agreed_at is not None or (self.exact_from is not None and self.ascii_only)

    def _how_it_differs(self) -> str:
        good = f", and had it after {self.agreed_at:#x}" if self.agreed_at is not None else ""
        return (
            f"the tree does not match ZooKeeper's own digest after transaction {self.differs_since:#x}{good}: transactions are "
            "missing, or the files come from different servers"
        )

    def _why_unproved(self) -> str:
        follow = "versions and parents follow each other"
        if self.unknown_version is not None:
            return f"its digests have version {self.unknown_version}, which this audit does not support; {follow}"
        if self.differs_since is not None:
            why = "has no digest to begin with" if self.ascii_only else "has paths that are not ASCII"
            return f"the snapshot {why}, and no transaction's agrees; {follow}"
        if self.agreed_at is not None:
            return f"transactions after {self.agreed_at:#x} have no digest; {follow}"
        return f"its files have no digest (ZooKeeper before 3.6, or zookeeper.digest.enabled=false); {follow}"


def _sum(snapshot: Snapshot) -> tuple[int, bool]:
    """The digest of a snapshot's tree, and whether all its paths are ASCII."""
    nodes, odd = scan.crcs(snapshot.data, snapshot.positions, scan.as_bytes(UNCOUNTED.encode()))
    for index in np.flatnonzero(odd).tolist():
        # Java's UTF-8 is not jute's for characters beyond 16 bits.
        reader = JuteReader(snapshot.data.data, int(snapshot.positions[index]))
        path, data = reader.string(), reader.buffer()
        content, stat = content_crc(path, data), _stored_stat(reader)
        nodes[index] = znode_digest(path, content, stat)
    return int(nodes.sum(dtype=np.uint64)), not bool(odd.any())


def _stored_stat(reader: JuteReader) -> tuple[int, ...]:
    reader.i64()
    czxid, mzxid, ctime, mtime = (reader.i64() for _ in range(4))
    version, cversion, aversion = (reader.i32() for _ in range(3))
    owner, pzxid = reader.i64(), reader.i64()
    return czxid, mzxid, pzxid, ctime, mtime, version, cversion, aversion, owner
