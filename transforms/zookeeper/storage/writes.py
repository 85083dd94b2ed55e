"""Transaction logs to tables: every operation, the barriers, and a census of the writes (S§5.1, S§5.5).

A barrier is a stand-alone write of `/migration` that moves its offset: right after it, ZooKeeper equals KRaft's image
at that offset. Writes inside a multi carry the offset from before, and a claim's write repeats it: no barriers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.bronze import RUN_COLUMNS, ZK_TRANSACTIONS
from schemas.zookeeper.paths import CONTAINERS
from schemas.zookeeper.writes import BARRIER_COLUMNS, MISSING, NOTIFICATION_ROOTS, WRITE_COLUMNS
from transforms.zookeeper.read.reading import MalformedError, integer, long, parse_text
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.storage.chroot import is_needed
from transforms.zookeeper.storage.limits import MAX_ZNODE_BYTES
from transforms.zookeeper.storage.transactions import NAMES, Hole, OpCode, Operation, ZkTransaction

TRANSACTION_SCHEMA: pa.Schema = to_arrow_schema(StructType(list(ZK_TRANSACTIONS.columns[len(RUN_COLUMNS) :])))
BARRIER_SCHEMA: pa.Schema = to_arrow_schema(StructType(list(BARRIER_COLUMNS)))
WRITE_SCHEMA: pa.Schema = to_arrow_schema(StructType(list(WRITE_COLUMNS)))

_MIGRATION, _CONTROLLER, _CONTROLLER_EPOCH = "/migration", "/controller", "/controller_epoch"
_BROKER_IDS = "/brokers/ids/"
_CREATES = (OpCode.CREATE, OpCode.CREATE2)
_SESSIONS = (OpCode.CREATE_SESSION, OpCode.CLOSE_SESSION)


def transaction_batch(transactions: Sequence[ZkTransaction], redactor: Redactor) -> pa.RecordBatch:
    """Return transactions as rows of bronze `zk_transactions`: one per transaction, or one per operation of a multi."""
    rows = [row for transaction in transactions for row in _rows(transaction, redactor)]
    return pa.RecordBatch.from_pylist(rows, schema=TRANSACTION_SCHEMA)


def _rows(transaction: ZkTransaction, redactor: Redactor) -> Iterator[dict[str, Any]]:
    multi = transaction.type == OpCode.MULTI
    for index, operation in enumerate(transaction.operations):
        yield {
            "zxid": transaction.zxid,
            "time": transaction.time,
            "session": transaction.session,
            "multi_index": index if multi else None,
            "multi_size": len(transaction.operations) if multi else None,
            "failed": transaction.failed,
            "type": NAMES[operation.type],
            "path": operation.path or None,
            "data": None if _is_large(operation) else redactor.data(operation.path, operation.data).text,
            "version": operation.version,
        }


def _is_large(operation: Operation) -> bool:
    """Larger than any znode that is read: the tree's row reports that."""
    return len(operation.data or b"") > MAX_ZNODE_BYTES


@dataclass(frozen=True)
class Barrier:
    """Right after transaction `zxid`, ZooKeeper equals KRaft's image at `kraft_metadata_offset` (inclusive)."""

    zxid: int
    time: int
    kraft_metadata_offset: int
    kraft_metadata_epoch: int
    kraft_controller_id: int
    kraft_controller_epoch: int


@dataclass(frozen=True)
class ClassifiedTransaction:
    """One transaction: who sent it and what kind of write it is; the rest as the columns of `WRITE_COLUMNS`."""

    zxid: int
    time: int
    session: int
    kind: str
    type: str
    path: str
    error: int | None = None
    controller_epoch: int | None = None
    kraft_controller_id: int | None = None
    kraft_controller_epoch: int | None = None


@dataclass
class WriteCensus:
    """Counts the logs' writes; feed it every transaction in order, and every hole among them.

    `census` counts kinds of writes since the first claim, `foreign` keeps the foreign ones. From `unbroken_from` on (a zxid)
    nothing is missing, as far as the logs go. `loaded_zxid` is the barrier that ended a load, `mirrored_zxid` the newest change of a
    KRaft controller.
    """

    barriers: list[Barrier] = field(default_factory=list)
    census: Counter[str] = field(default_factory=Counter)
    shapes: Counter[tuple[str, str]] = field(default_factory=Counter)
    foreign: list[ClassifiedTransaction] = field(default_factory=list)
    writers: dict[int, str] = field(default_factory=dict)
    first_claim_zxid: int | None = None
    holes: list[Hole] = field(default_factory=list)
    unbroken_from: int = 0
    loaded_zxid: int | None = None
    mirrored_zxid: int = 0
    _mirrors: set[int] = field(default_factory=set)
    _kraft_owns: bool | None = False
    _in_office: str | None = None
    _position: tuple[int, int] | None = None

    def read(self, history: Iterable[ZkTransaction | Hole]) -> Iterator[ClassifiedTransaction]:
        """Take in transactions and holes, and yield the kind of each transaction."""
        for part in history:
            if isinstance(part, Hole):
                self.skip(part)
            else:
                yield self.add(part)

    def skip(self, hole: Hole) -> None:
        """Take in that transactions are missing here: who is in office and where `/migration` stands is unknown behind them."""
        self.holes.append(hole)
        self.unbroken_from = self.unbroken_from if hole.until is None else hole.until
        self._kraft_owns, self._in_office, self._position = None, None, None

    @property
    def kraft_owns(self) -> bool:
        """Whether a KRaft controller owns ZooKeeper after the last transaction, as far as those show it."""
        return bool(self._kraft_owns)

    def add(self, transaction: ZkTransaction) -> ClassifiedTransaction:
        """Take in one transaction and return what kind of write it is."""
        self._learn_writer(transaction)
        kind = self._kind(transaction)
        last = transaction.operations[-1] if transaction.operations else Operation(OpCode.ERROR)
        shape = "+".join(NAMES[operation.type] for operation in transaction.operations)
        path = next((item.path for item in reversed(transaction.operations) if item.path), last.path)
        write = ClassifiedTransaction(
            transaction.zxid,
            transaction.time,
            transaction.session,
            kind,
            shape,
            path,
            error=_first_error(transaction.operations),
            controller_epoch=None if transaction.failed else _epoch_set(transaction.operations),
            **(_claimed(transaction.operations) if kind == "claim" else {}),
        )
        self._follow(transaction, kind)
        if self._kraft_owns or kind == "claim":
            self.census[kind] += 1
            self.shapes[kind, shape] += 1
        if kind == "foreign":
            self.foreign.append(write)
        return write

    def write_batch(self, writes: Sequence[ClassifiedTransaction]) -> pa.RecordBatch:
        """Return writes, and the holes among them, as a batch of `WRITE_COLUMNS`.

        For use after the last transaction, when writers are known.
        """
        rows = [{**vars(write), "writer": self.writers.get(write.session, "unknown")} for write in writes]
        rows += [
            {"zxid": hole.after + 1, "writer": "unknown", "kind": MISSING, "type": hole.why, "path": hole.file}
            for hole in self.holes
        ]
        return pa.RecordBatch.from_pylist(sorted(rows, key=lambda row: int(row["zxid"])), schema=WRITE_SCHEMA)

    def barrier_batch(self) -> pa.RecordBatch:
        """Return the barriers as a batch of `BARRIER_COLUMNS`."""
        return pa.RecordBatch.from_pylist([vars(barrier) for barrier in self.barriers], schema=BARRIER_SCHEMA)

    def _learn_writer(self, transaction: ZkTransaction) -> None:
        if transaction.failed:
            return
        if _is_enveloped(transaction.operations):
            # A controller's later sessions make no claim; the last request of each change identifies it.
            migration = _barrier(transaction, transaction.operations[1])
            if migration is not None:
                self.writers[transaction.session] = f"controller {migration.kraft_controller_id}"
        for operation in transaction.operations:
            if operation.type not in _CREATES:
                continue
            if operation.path == _CONTROLLER:
                owner = _controller(operation)
                if owner is not None:
                    self.writers[transaction.session] = owner
            elif operation.ephemeral and operation.path.startswith(_BROKER_IDS):
                self.writers[transaction.session] = f"broker {operation.path.removeprefix(_BROKER_IDS)}"

    def _kind(self, transaction: ZkTransaction) -> str:
        if transaction.type in _SESSIONS:
            return "session"
        operations = transaction.operations
        enveloped = _is_enveloped(operations)
        if transaction.failed:
            return self._kind_of_refused(transaction, enveloped=enveloped)
        if enveloped:
            return "envelope"
        if _is_claim(operations):
            return "claim"
        if not self._kraft_owns:
            return "zookeeper_mode"
        return self._kind_outside(transaction)

    def _kind_of_refused(self, transaction: ZkTransaction, *, enveloped: bool) -> str:
        """Return the kind of a refused write; of a multi whose first check fails, only errors are left (S§5.1)."""
        writer, operations = self.writers.get(transaction.session, ""), transaction.operations
        of_controller = (
            writer.startswith("controller")
            and len(operations) == _ENVELOPE
            and operations[0].type in (OpCode.CHECK, OpCode.ERROR)
        )
        if not enveloped and not of_controller:
            return "refused"
        return "fenced" if writer and self._in_office is not None and writer != self._in_office else "envelope_failed"

    def _kind_outside(self, transaction: ZkTransaction) -> str:
        """Return the kind of an applied write outside the envelope while KRaft owns ZooKeeper (S§5.1)."""
        operations = transaction.operations
        changes = [item for item in operations if item.type != OpCode.CHECK and is_needed(item.path)]
        if not changes:
            # Without a chroot, the ensemble's other users write beside Kafka: other applications, consumers of before 0.9.
            return "other"
        if all(operation.type == OpCode.SET_ACL for operation in changes):
            # Rights, and nothing that the migration compares: `zookeeper-security-migration.sh`, and the remedies of SEC-01 to SEC-03.
            return "access"
        if all(operation.path.startswith(NOTIFICATION_ROOTS) for operation in changes):
            return "notification"
        if all(_is_broker_own(operation) for operation in changes):
            return "broker"
        known = self.writers.get(transaction.session, "").startswith("controller")
        if len(changes) == 1:
            return _kind_of_one(changes[0], known or transaction.session in self._mirrors)
        return "foreign"

    def _follow(self, transaction: ZkTransaction, kind: str) -> None:
        """Keep track of who owns ZooKeeper and of the offset in `/migration`."""
        if transaction.failed:
            return
        if kind == "claim":
            self.first_claim_zxid = self.first_claim_zxid or transaction.zxid
            self._in_office = self.writers.get(transaction.session)
        if kind in ("claim", "envelope"):
            self._kraft_owns = True
        if kind == "envelope":
            self.mirrored_zxid = transaction.zxid
        for operation in transaction.operations:
            if operation.type in _CREATES and operation.path == _CONTROLLER and operation.ephemeral:
                self._kraft_owns = False
            elif operation.path == _MIGRATION and operation.data is not None:
                # No name for a session: somebody may write it by hand. But whoever does is not busy with empty parents.
                self._mirrors.add(transaction.session)
                self._note_offset(transaction, operation)

    def _note_offset(self, transaction: ZkTransaction, operation: Operation) -> None:
        barrier = _barrier(transaction, operation)
        if barrier is None:
            return
        position = (barrier.kraft_metadata_offset, barrier.kraft_metadata_epoch)
        stands_alone = transaction.type == OpCode.SET_DATA
        # Without an earlier value (logs that begin later) a write may be a claim's, which repeats the offset.
        if stands_alone and self._position is not None and position != self._position:
            self.barriers.append(barrier)
            self.loaded_zxid = transaction.zxid if self._position[0] < 0 else self.loaded_zxid
            # Behind a hole it shows who took over in it.
            self._kraft_owns = True if self._kraft_owns is None else self._kraft_owns
        self._position = position


_ENVELOPE = 3


def _first_error(operations: Sequence[Operation]) -> int | None:
    """The error that refused a transaction: what follows it in a multi failed only because of it."""
    return next((operation.error for operation in operations if operation.error), None)


def _epoch_set(operations: Sequence[Operation]) -> int | None:
    """The value to which a transaction set `/controller_epoch`; None if it did not, or if the value is not a number."""
    for operation in operations:
        if operation.path == _CONTROLLER_EPOCH and operation.type in (OpCode.SET_DATA, *_CREATES):
            text = (operation.data or b"").decode("ascii", "replace").strip()
            return int(text) if text.isdecimal() and len(text) < _LONGEST_INT else None
    return None


_LONGEST_INT = 10


def _claimed(operations: Sequence[Operation]) -> dict[str, int]:
    """Who a claim names: node.id and KRaft leader epoch; empty when its data can't be parsed."""
    for operation in operations:
        if operation.type in _CREATES and operation.path == _CONTROLLER:
            try:
                document = parse_text((operation.data or b"").decode("utf-8", "replace"))
                return {
                    "kraft_controller_id": integer(document, "brokerid"),
                    "kraft_controller_epoch": integer(document, "kraftControllerEpoch"),
                }
            except MalformedError:
                return {}
    return {}


def _is_enveloped(operations: Sequence[Operation]) -> bool:
    if len(operations) != _ENVELOPE:
        return False
    epoch, migration, change = operations
    if epoch.type == OpCode.CHECK and epoch.path == _CONTROLLER_EPOCH:
        # ZooKeeper controllers check the epoch alone. Where the second check fails it is an error without a path.
        if migration.type == OpCode.ERROR:
            return True
        return migration.path == _MIGRATION and migration.type in (OpCode.CHECK, OpCode.SET_DATA)
    # A failed multi may have lost its checks' paths to error entries; what is left of it must still be KRaft's.
    return change.type == OpCode.ERROR and migration.path == _MIGRATION


def _is_claim(operations: list[Operation]) -> bool:
    sets_epoch = any(item.type == OpCode.SET_DATA and item.path == _CONTROLLER_EPOCH for item in operations)
    return sets_epoch and any(
        item.type in _CREATES and item.path == _CONTROLLER and not item.ephemeral for item in operations
    )


def _is_broker_own(operation: Operation) -> bool:
    registers = operation.path.startswith(_BROKER_IDS) or operation.path == "/brokers/seqid"
    # An election that a ZooKeeper broker wins: it is the controller again, after a rollback.
    elects = operation.path == _CONTROLLER and operation.ephemeral
    return registers or elects or operation.path == _CONTROLLER_EPOCH


def _kind_of_one(operation: Operation, by_controller: bool) -> str:
    if operation.path == _MIGRATION and operation.type in (OpCode.SET_DATA, *_CREATES):
        return "migration"
    if operation.type == OpCode.DELETE and operation.path in (_CONTROLLER, _MIGRATION):
        return "rollback"
    is_parent = operation.type in _CREATES and (not operation.data or operation.path in CONTAINERS)
    return "parent" if by_controller and is_parent else "foreign"


def _controller(operation: Operation) -> str | None:
    try:
        document = parse_text((operation.data or b"").decode("utf-8", "replace"))
        kind = "broker" if operation.ephemeral else "controller"
        return f"{kind} {integer(document, 'brokerid')}"
    except MalformedError:
        return None


def _barrier(transaction: ZkTransaction, operation: Operation) -> Barrier | None:
    try:
        document = parse_text((operation.data or b"").decode("utf-8", "replace"))
        return Barrier(
            zxid=transaction.zxid,
            time=transaction.time,
            kraft_metadata_offset=long(document, "kraft_metadata_offset"),
            kraft_metadata_epoch=integer(document, "kraft_metadata_epoch"),
            kraft_controller_id=integer(document, "kraft_controller_id"),
            kraft_controller_epoch=integer(document, "kraft_controller_epoch"),
        )
    except MalformedError:
        return None
