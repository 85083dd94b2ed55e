"""ZooKeeper transaction logs (`log.<first zxid in hex>`) to transactions.

    file   = "ZKLG" · version i32 (2) · dbid i64 · entry* · padding
    entry  = Adler-32 of the body i64 · body buffer · 'B'
    body   = session i64 · cxid i32 · zxid i64 · time i64 · type i32 · record [· digest version i32 · digest i64]
    padding = zeros: files grow in steps of 64 MiB

Sources: `FileTxnLog`, `TxnHeader`, `SerializeUtils.deserializeTxn`, `MultiTxn`, `zookeeper.jute`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from schemas.zookeeper.findings import TORN_ENTRY
from transforms.zookeeper.read.znode import AclEntry
from transforms.zookeeper.storage.jute import JuteError, JuteReader

MAGIC = 0x5A4B4C47
VERSION = 2
HEADER_BYTES = 16
_ENTRY_HEAD_BYTES = 12
_END_OF_ENTRY = 0x42
_DIGEST_BYTES = 12
# No server takes a request this large (`jute.maxbuffer` is 1 MiB unless raised).
_MAX_ENTRY_BYTES = 256 * 1024 * 1024
_COMPARED_BYTES = 64 * 1024


class OpCode(IntEnum):
    """Types of transactions (`ZooDefs.OpCode`)."""

    CREATE = 1
    DELETE = 2
    SET_DATA = 5
    SET_ACL = 7
    CHECK = 13
    MULTI = 14
    CREATE2 = 15
    RECONFIG = 16
    CREATE_CONTAINER = 19
    DELETE_CONTAINER = 20
    CREATE_TTL = 21
    ERROR = -1
    CREATE_SESSION = -10
    CLOSE_SESSION = -11


NAMES: dict[int, str] = {
    OpCode.CREATE: "create",
    OpCode.DELETE: "delete",
    OpCode.SET_DATA: "setData",
    OpCode.SET_ACL: "setACL",
    OpCode.CHECK: "check",
    OpCode.MULTI: "multi",
    OpCode.CREATE2: "create2",
    OpCode.RECONFIG: "reconfig",
    OpCode.CREATE_CONTAINER: "createContainer",
    OpCode.DELETE_CONTAINER: "deleteContainer",
    OpCode.CREATE_TTL: "createTTL",
    OpCode.ERROR: "error",
    OpCode.CREATE_SESSION: "createSession",
    OpCode.CLOSE_SESSION: "closeSession",
}
# EphemeralType: what stands for the owner of a container and of a znode that expires.
CONTAINER_OWNER = -(2**63)
_TTL_OWNER = -(2**56)


class TransactionLogError(ValueError):
    """The file is not a transaction log."""


class DamagedError(ValueError):
    """An entry fails its checksum or can't be read: nothing from there on may be used."""


@dataclass(slots=True)
class Operation:
    """One change. `data`, `acl` and `owner` are for those types that set them; `version` is the resulting one.

    `parent_cversion` is the parent's new count of children ever made, None if the log does not have it. `paths` are those a
    closed session's end removes; `error` is an error's code.
    """

    type: int
    path: str = ""
    data: bytes | None = None
    acl: list[AclEntry] | None = None
    version: int | None = None
    ephemeral: bool = False
    owner: int = 0
    parent_cversion: int | None = None
    paths: list[str] | None = None
    error: int | None = None


@dataclass(slots=True)
class ZkTransaction:
    """One entry of a log. `operations` has one element, or those of a multi; time is milliseconds since the epoch.

    `digest` is the version of the digest, and that of the whole tree after the transaction (`storage.digest`).
    """

    session: int
    zxid: int
    time: int
    type: int
    operations: list[Operation]
    position: int = 0
    digest: tuple[int, int] | None = None

    @property
    def failed(self) -> bool:
        """True when any operation is an error: then nothing of the transaction was applied."""
        return any(operation.type == OpCode.ERROR for operation in self.operations)


@dataclass(frozen=True, slots=True)
class Hole:
    """Transactions that a server's logs lack, or that cannot be read: those after zxid `after`, -1 if none before them is there.

    `until` is the first zxid known to be behind them, None if nothing shows that there is more. `file` is where it shows and
    `why` the reason, in one line.
    """

    after: int
    until: int | None
    file: str
    why: str


def read_transactions(buffer: bytes | memoryview, notes: list[str] | None = None) -> Iterator[ZkTransaction]:
    """Yield the transactions of one log file, in order.

    A torn last entry and the zero padding end the log, as they do for ZooKeeper; a torn entry is reported in `notes`.
    Raises TransactionLogError when the file is not one, DamagedError (with the byte position) at an entry whose
    checksum or content is wrong, and at zeros that are followed by more than zeros.
    """
    view = memoryview(buffer)
    notes = notes if notes is not None else []
    if len(view) == 0:
        return
    head = JuteReader(view)
    if len(view) < HEADER_BYTES or head.i32() != MAGIC or head.i32() != VERSION:
        raise TransactionLogError("it does not start as a transaction log (ZKLG, version 2)")
    at = HEADER_BYTES
    while (entry := _entry(view, at, notes)) is not None:
        body, following = entry
        try:
            transaction = parse_transaction(body)
        except JuteError as error:
            raise DamagedError(f"the transaction at byte {at} can't be read: {error}") from None
        transaction.position = at
        yield transaction
        at = following


def _entry(view: memoryview, at: int, notes: list[str]) -> tuple[memoryview, int] | None:
    """Return an entry's body and the start of the next one; None at the end of the written part."""
    if at + _ENTRY_HEAD_BYTES > len(view):
        if any(view[at:]):
            notes.append(f"{TORN_ENTRY} of {len(view) - at} bytes at byte {at}")
        return None
    head = JuteReader(view, at)
    checksum, length = head.i64(), head.i32()
    if length == 0 and checksum == 0:
        behind = _not_zero(view, at)
        if behind is not None:
            # ZooKeeper would end here, too, and lose what comes after.
            raise DamagedError(f"the zeros from byte {at} on are a hole: byte {behind} is none")
        return None
    start, end = at + _ENTRY_HEAD_BYTES, at + _ENTRY_HEAD_BYTES + length
    if not 0 < length <= _MAX_ENTRY_BYTES:
        raise DamagedError(f"the entry at byte {at} has a length of {length}")
    if end < len(view) and view[end] == _END_OF_ENTRY and zlib.adler32(view[start:end]) == checksum:
        return view[start:end], end + 1
    if end < len(view) and any(view[end : end + HEADER_BYTES]):
        raise DamagedError(f"the entry at byte {at} fails its checksum and is followed by others")
    # The entry was never finished, and behind it is padding: the server died, or was copied, while it wrote.
    notes.append(f"{TORN_ENTRY} at byte {at}")
    return None


def _not_zero(view: memoryview, at: int) -> int | None:
    """Where the first byte behind `at` lies that is not zero; None in padding."""
    zeros = bytes(_COMPARED_BYTES)
    for start in range(at, len(view), _COMPARED_BYTES):
        part = view[start : start + _COMPARED_BYTES]
        if part != zeros[: len(part)]:
            return start + next(index for index, byte in enumerate(part) if byte)
    return None


def parse_transaction(body: bytes | memoryview) -> ZkTransaction:
    """Parse the body of one entry. Raises JuteError."""
    reader = JuteReader(body)
    session, _, zxid, time, kind = reader.i64(), reader.i32(), reader.i64(), reader.i64(), reader.i32()
    if kind == OpCode.MULTI:
        operations = _multi(reader)
    elif kind == OpCode.CLOSE_SESSION:
        operations = [Operation(kind, paths=_closed_paths(reader))]
    else:
        operations = [_operation(kind, reader)]
    for operation in operations:
        if operation.ephemeral:
            operation.owner = session
    digest = (reader.i32(), reader.i64()) if reader.remaining == _DIGEST_BYTES else None
    return ZkTransaction(session, zxid, time, kind, operations, digest=digest)


def _multi(reader: JuteReader) -> list[Operation]:
    count = reader.i32()
    if count < 0 or count * 8 > reader.remaining:
        raise JuteError(f"a multi of {count} operations does not fit")
    operations = []
    for _ in range(count):
        kind = reader.i32()
        operations.append(_operation(kind, JuteReader(reader.buffer() or b"")))
    return operations


def _operation(kind: int, reader: JuteReader) -> Operation:
    parse = _RECORDS.get(kind)
    if parse is None:
        raise JuteError(f"the type {kind} is not known")
    return parse(kind, reader)


def _create(kind: int, reader: JuteReader) -> Operation:
    operation = Operation(kind, reader.string(), reader.buffer(), reader.acl(), version=0, ephemeral=reader.boolean())
    # Before ZooKeeper 3.4 (`CreateTxnV0`) the parent's cversion was not written.
    operation.parent_cversion = reader.i32() if reader.remaining >= 4 else -1
    return operation


def _create_container(kind: int, reader: JuteReader) -> Operation:
    operation = Operation(kind, reader.string(), reader.buffer(), reader.acl(), version=0, owner=CONTAINER_OWNER)
    operation.parent_cversion = reader.i32()
    return operation


def _create_ttl(kind: int, reader: JuteReader) -> Operation:
    operation = Operation(kind, reader.string(), reader.buffer(), reader.acl(), version=0)
    operation.parent_cversion = reader.i32()
    operation.owner = _TTL_OWNER | reader.i64()
    return operation


def _delete(kind: int, reader: JuteReader) -> Operation:
    return Operation(kind, reader.string())


def _set_data(kind: int, reader: JuteReader) -> Operation:
    return Operation(kind, reader.string(), reader.buffer(), version=reader.i32())


def _set_acl(kind: int, reader: JuteReader) -> Operation:
    return Operation(kind, reader.string(), acl=reader.acl(), version=reader.i32())


def _check(kind: int, reader: JuteReader) -> Operation:
    return Operation(kind, reader.string(), version=reader.i32())


def _error(kind: int, reader: JuteReader) -> Operation:
    return Operation(kind, error=reader.i32())


def _create_session(kind: int, reader: JuteReader) -> Operation:
    reader.i32()
    return Operation(kind)


def _closed_paths(reader: JuteReader) -> list[str] | None:
    """Return the paths a session's end removes; None when the log does not list them (before 3.6, or switched off).

    What follows may then be a digest of 12 bytes, which is not a list of paths.
    """
    start = reader.position
    try:
        count = reader.i32()
        paths = [reader.string() for _ in range(count)] if 0 <= count * 4 <= reader.remaining else None
    except JuteError:
        paths = None
    if paths is not None and reader.remaining in (0, _DIGEST_BYTES) and all(path.startswith("/") for path in paths):
        return paths
    reader.position = start
    return None


_RECORDS: dict[int, Callable[[int, JuteReader], Operation]] = {
    OpCode.CREATE: _create,
    OpCode.CREATE2: _create,
    OpCode.CREATE_CONTAINER: _create_container,
    OpCode.CREATE_TTL: _create_ttl,
    OpCode.DELETE: _delete,
    OpCode.DELETE_CONTAINER: _delete,
    OpCode.SET_DATA: _set_data,
    OpCode.RECONFIG: _set_data,
    OpCode.SET_ACL: _set_acl,
    OpCode.CHECK: _check,
    OpCode.ERROR: _error,
    OpCode.CREATE_SESSION: _create_session,
}
