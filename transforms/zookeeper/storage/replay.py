"""Transactions on top of a snapshot, as ZooKeeper itself replays them (`DataTree.processTxn`).

A snapshot is fuzzy: it is written while the server runs, and may already have changes of later transactions. All of them
are replayed again, so creating an existing znode or deleting a missing one is not an error. Only the znodes that transactions
change become objects; all others are copied in batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.zookeeper.trees import BARRIER, NEWEST
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import AclEntry, Znode
from transforms.zookeeper.storage.digest import Judgement, TreeDigest, content_crc, znode_digest
from transforms.zookeeper.storage.limits import MAX_ZNODE_BYTES, groups, too_large, znode_bytes
from transforms.zookeeper.storage.transactions import CONTAINER_OWNER, OpCode, Operation, ZkTransaction

_CREATES = {OpCode.CREATE, OpCode.CREATE2, OpCode.CREATE_CONTAINER, OpCode.CREATE_TTL}
_DELETES = {OpCode.DELETE, OpCode.DELETE_CONTAINER}
_SETS = {OpCode.SET_DATA, OpCode.RECONFIG}


@dataclass(slots=True)
class _Node:
    """A znode that may change. `creations` is the stored cversion: the number of children ever made.

    `content` is the CRC of path and data, `digest` what the znode has in the tree's digest; both 0 where none is kept.
    """

    data: bytes | None
    base: Znode | None
    czxid: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int
    version: int
    creations: int
    aversion: int
    owner: int
    children: int
    acl: list[AclEntry] | None
    content: int = 0
    digest: int = 0


@dataclass
class Replay:
    """Transactions to be replayed on a snapshot's batches. `redactor` hides the secrets of data that they bring.

    `digest` is the snapshot's, followed to the end; `at_zxid` is its result for the tree at which `run_past` stops.
    """

    transactions: list[ZkTransaction]
    redactor: Redactor
    digest: TreeDigest | None = None
    at_zxid: Judgement | None = None
    _nodes: dict[str, _Node] = field(default_factory=dict, repr=False)
    _ephemerals: dict[int, set[str]] = field(default_factory=dict, repr=False)
    _changed: set[str] = field(default_factory=set, repr=False)

    def run(
        self, batches: Iterable[pa.RecordBatch], ephemerals: Iterable[str], rows: int = 10_000
    ) -> Iterator[pa.RecordBatch]:
        """Yield the tree after the last transaction.

        `batches` are the snapshot's znodes and `ephemerals` the paths of those among them that a session owns: the
        end of a session removes them, whether the log lists them or not.
        """
        yield from self._untouched(batches, ephemerals)
        for transaction in self.transactions:
            self._apply(transaction)
        yield from _batches([self._znode(path, node) for path, node in self._nodes.items()], rows)

    def run_past(
        self, zxid: int, batches: Iterable[pa.RecordBatch], ephemerals: Iterable[str], rows: int = 10_000
    ) -> Iterator[tuple[str | None, pa.RecordBatch]]:
        """Yield two trees at once: that after transaction `zxid`, and that after the last one, as (`tree`, batch).

        `tree` is None for znodes that are the same in both, else one of `schemas.zookeeper.trees`. `batches` and
        `ephemerals` as for `run`.
        """
        for batch in self._untouched(batches, ephemerals):
            yield None, batch
        # They are in order: those up to the zxid come first.
        later = [transaction for transaction in self.transactions if transaction.zxid > zxid]
        for transaction in self.transactions[: len(self.transactions) - len(later)]:
            self._apply(transaction)
        if self.digest is not None:
            self.at_zxid = self.digest.judge(zxid)
        then = {path: self._znode(path, node) for path, node in self._nodes.items()}
        self._changed.clear()
        for transaction in later:
            self._apply(transaction)
        now = {path: self._znode(path, self._nodes[path]) for path in self._changed if path in self._nodes}
        differing = sorted(path for path in self._changed if then.get(path) != now.get(path))
        for tree, znodes in (
            (BARRIER, [then.pop(path) for path in differing if path in then]),
            (NEWEST, [now[path] for path in differing if path in now]),
            (None, list(then.values())),
        ):
            for batch in _batches(znodes, rows):
                yield tree, batch

    def _untouched(self, batches: Iterable[pa.RecordBatch], ephemerals: Iterable[str]) -> Iterator[pa.RecordBatch]:
        """Take in the znodes that the transactions may change, and yield the others."""
        touched = pa.array(sorted(_touched(self.transactions) | {_parent(path) for path in ephemerals}), pa.string())
        start = 0
        for batch in batches:
            changing = pc.or_(pc.is_in(batch["path"], value_set=touched), pc.not_equal(batch["ephemeral_owner"], 0))
            self._take(batch.filter(changing))
            if self.digest is not None and self.transactions:
                self._start_digest(self.digest, batch, start + np.flatnonzero(changing.to_numpy(zero_copy_only=False)))
            start += batch.num_rows
            untouched = batch.filter(pc.invert(changing))
            if untouched.num_rows:
                yield untouched

    def _take(self, batch: pa.RecordBatch) -> None:
        for row in batch.to_pylist():
            acl = None if row["acl"] is None else [AclEntry(**entry) for entry in row["acl"]]
            base = Znode(**{**row, "acl": acl})
            self._nodes[base.path] = _node(base, acl)
            self._remember(base.path, row["ephemeral_owner"])

    def _start_digest(self, digest: TreeDigest, batch: pa.RecordBatch, taken: npt.NDArray[np.int64]) -> None:
        """Count the digests of the snapshot's znodes that may change; `taken` are their places in the snapshot."""
        digest.newest = max(digest.newest, *(pc.max(batch[name]).as_py() or 0 for name in ("czxid", "mzxid", "pzxid")))
        if not digest.counting:
            return
        for path, content in digest.contents(taken):
            node = self._nodes[path]
            node.content = content
            node.digest = _digest(path, node)

    def _recount(self, path: str, node: _Node) -> None:
        if self.digest is not None and self.digest.counting:
            before, node.digest = node.digest, _digest(path, node)
            self.digest.change(before, node.digest)

    def _doubt(self, zxid: int, path: str, why: str) -> None:
        if self.digest is not None:
            self.digest.doubt(zxid, path, why)

    def _remember(self, path: str, owner: int) -> None:
        if _is_session(owner):
            self._ephemerals.setdefault(owner, set()).add(path)

    def _apply(self, transaction: ZkTransaction) -> None:
        if transaction.type == OpCode.CLOSE_SESSION:
            self._close(transaction)
        elif not transaction.failed:
            for operation in transaction.operations:
                self._operate(transaction, operation)
        if self.digest is not None:
            self.digest.follow(transaction)

    def _operate(self, transaction: ZkTransaction, operation: Operation) -> None:
        if operation.type in _CREATES:
            self._create(transaction, operation)
        elif operation.type in _DELETES:
            self._delete(transaction.zxid, operation.path)
        elif operation.type in _SETS:
            self._set_data(transaction, operation)
        elif operation.type == OpCode.SET_ACL:
            self._set_acl(transaction.zxid, operation)

    def _create(self, transaction: ZkTransaction, operation: Operation) -> None:
        parent = self._nodes.get(_parent(operation.path))
        if parent is None:
            self._doubt(transaction.zxid, operation.path, "makes, below a parent that is not there,")
            return
        exists = operation.path in self._nodes
        if not exists or operation.type == OpCode.CREATE:
            self._count_child(transaction.zxid, operation, parent)
        self._changed |= {operation.path, _parent(operation.path)}
        if exists:
            return
        parent.children += 1
        self._nodes[operation.path] = node = _Node(
            data=operation.data,
            base=None,
            czxid=transaction.zxid,
            mzxid=transaction.zxid,
            pzxid=transaction.zxid,
            ctime=transaction.time,
            mtime=transaction.time,
            version=0,
            creations=0,
            aversion=0,
            owner=operation.owner,
            children=0,
            acl=self._hidden(operation.acl),
            content=content_crc(operation.path, operation.data),
        )
        self._recount(operation.path, node)
        self._remember(operation.path, operation.owner)

    def _count_child(self, zxid: int, operation: Operation, parent: _Node) -> None:
        """Count a child that was made; a change the snapshot already holds must not be taken back."""
        creations = operation.parent_cversion
        if creations is None or creations == -1:
            creations = parent.creations + 1
        if self.digest is not None and zxid > self.digest.newest and creations != parent.creations + 1:
            self._doubt(zxid, _parent(operation.path), f"makes child {creations}, not {parent.creations + 1}, below")
        if creations > parent.creations:
            parent.creations, parent.pzxid = creations, zxid
            self._recount(_parent(operation.path), parent)

    def _delete(self, zxid: int, path: str) -> None:
        if self.digest is not None:
            self.digest.gone(path)
        parent = self._nodes.get(_parent(path))
        if parent is None:
            return
        parent.pzxid = max(parent.pzxid, zxid)
        self._recount(_parent(path), parent)
        self._changed |= {path, _parent(path)}
        node = self._nodes.pop(path, None)
        if node is not None:
            if self.digest is not None and self.digest.counting:
                self.digest.change(node.digest, 0)
            parent.children -= 1
            self._ephemerals.get(node.owner, set()).discard(path)

    def _set_data(self, transaction: ZkTransaction, operation: Operation) -> None:
        node = self._nodes.get(operation.path)
        if node is None:
            self._doubt(transaction.zxid, operation.path, "writes, though it is not there,")
            return
        version = operation.version or 0
        if self.digest is not None and transaction.zxid > self.digest.newest and version != node.version + 1:
            self._doubt(transaction.zxid, operation.path, f"writes version {version} after {node.version} of")
        node.data, node.base = operation.data, None
        self._changed.add(operation.path)
        node.mzxid, node.mtime, node.version = transaction.zxid, transaction.time, version
        node.content = content_crc(operation.path, operation.data)
        self._recount(operation.path, node)

    def _set_acl(self, zxid: int, operation: Operation) -> None:
        node = self._nodes.get(operation.path)
        if node is None:
            self._doubt(zxid, operation.path, "protects, though it is not there,")
            return
        self._changed.add(operation.path)
        node.acl, node.aversion = self._hidden(operation.acl), operation.version or 0
        self._recount(operation.path, node)

    def _close(self, transaction: ZkTransaction) -> None:
        listed = transaction.operations[0].paths or []
        owned = self._ephemerals.pop(transaction.session, set())
        for path in dict.fromkeys((*listed, *sorted(owned))):
            self._delete(transaction.zxid, path)

    def _hidden(self, acl: list[AclEntry] | None) -> list[AclEntry]:
        return [entry._replace(id=self.redactor.acl_id(entry.scheme, entry.id)) for entry in acl or []]

    def _znode(self, path: str, node: _Node) -> Znode:
        if node.base is None:
            is_null, length = node.data is None, len(node.data or b"")
            text, redacted, problem = (
                self.redactor.data(path, node.data) if length <= MAX_ZNODE_BYTES else (None, False, too_large(length))
            )
        else:
            text, redacted, problem = node.base.data, bool(node.base.redacted), node.base.problem
            is_null, length = bool(node.base.data_is_null), node.base.data_length or 0
        return Znode(
            path=path,
            data=text,
            data_is_null=is_null,
            data_length=length,
            czxid=node.czxid,
            mzxid=node.mzxid,
            pzxid=node.pzxid,
            ctime=node.ctime,
            mtime=node.mtime,
            version=node.version,
            cversion=_as_int(node.creations * 2 - node.children),
            aversion=node.aversion,
            ephemeral_owner=node.owner,
            num_children=node.children,
            acl=node.acl,
            redacted=redacted,
            problem=problem,
        )


def _batches(znodes: list[Znode], rows: int) -> Iterator[pa.RecordBatch]:
    for group in groups(znodes, rows, znode_bytes):
        yield znode_batch(group)


def _as_int(value: int) -> int:
    """Wrap a number as a Java int does."""
    return (value + 2**31) % 2**32 - 2**31


def _is_session(owner: int) -> bool:
    """Tell a session from what stands for a container or (top byte 255) for a znode that expires (`EphemeralType`)."""
    return owner not in (0, CONTAINER_OWNER) and not -(2**56) <= owner < 0


def _digest(path: str, node: _Node) -> int:
    stat = (node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime, node.version)
    return znode_digest(path, node.content, (*stat, _as_int(node.creations), node.aversion, node.owner))


def _node(base: Znode, acl: list[AclEntry] | None) -> _Node:
    children = base.num_children or 0
    return _Node(
        data=None,
        base=base,
        czxid=base.czxid or 0,
        mzxid=base.mzxid or 0,
        pzxid=base.pzxid or 0,
        ctime=base.ctime or 0,
        mtime=base.mtime or 0,
        version=base.version or 0,
        creations=((base.cversion or 0) + children) // 2,
        aversion=base.aversion or 0,
        owner=base.ephemeral_owner or 0,
        children=children,
        acl=acl,
    )


def _touched(transactions: Iterable[ZkTransaction]) -> set[str]:
    paths: set[str] = set()
    for transaction in transactions:
        for operation in transaction.operations:
            if operation.path and operation.type != OpCode.CHECK:
                paths.add(operation.path)
            paths.update(operation.paths or ())
    return paths | {_parent(path) for path in paths}


def _parent(path: str) -> str:
    return path.rpartition("/")[0] or "/"
