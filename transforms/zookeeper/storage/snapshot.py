"""ZooKeeper snapshot files (`snapshot.<zxid in hex>`) to znode batches.

    file     = header · sessions · acls · tree · seal [· digest · seal] [· last zxid · seal]
    header   = "ZKSN" · version i32 (2) · dbid i64
    sessions = count i32 · (session i64 · timeout i32)*
    acls     = count i32 · (index i64 · list of (perms i32 · scheme string · id string))*
    tree     = see `scan`
    seal     = Adler-32 of everything before it i64 · string "/"
    digest   = zxid i64 · digest version i32 · digest i64                    ZooKeeper 3.6 and later, if enabled
    last zxid = i64                                                          ZooKeeper 3.9 and later, if enabled

Sources: `FileSnap`, `SerializeUtils`, `DataTree`, `ReferenceCountedACLCache`, `SnapStream`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from transforms.zookeeper.read.arrow import ZNODE_SCHEMA
from transforms.zookeeper.read.redact import SECRET_PLACES, Redactor
from transforms.zookeeper.read.znode import AclEntry
from transforms.zookeeper.storage import scan
from transforms.zookeeper.storage.jute import JuteError, JuteReader, decode_string
from transforms.zookeeper.storage.limits import BATCH_BYTES, MAX_ZNODE_BYTES, too_large

MAGIC = 0x5A4B534E
VERSION = 2
SEAL_BYTES = 8 + 4 + 1
_DIGEST_BYTES = 8 + 4 + 8
_ZXID_BYTES = 8
_SESSION_BYTES = 12
_LAST_SEAL_END = b"\x00\x00\x00\x01/"
# What may follow the tree's seal, by its length: nothing, a digest, a last zxid, or both.
_TAILS = {
    0: (),
    _DIGEST_BYTES + SEAL_BYTES: (_DIGEST_BYTES,),
    _ZXID_BYTES + SEAL_BYTES: (_ZXID_BYTES,),
    _DIGEST_BYTES + _ZXID_BYTES + 2 * SEAL_BYTES: (_DIGEST_BYTES, _ZXID_BYTES),
}
# ZooKeeper's own index of the world-open ACL, which is never written into the list (`DataTree`, `OPEN_UNSAFE`).
_OPEN_INDEX = -1
_OPEN_ACL = [AclEntry(31, "world", "anyone")]
BATCH_ROWS = 131_072


class SnapshotError(ValueError):
    """The file is damaged or not a snapshot; the message names the fault and the byte."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot whose checksums hold, ready to be read into batches. `digest` is (zxid, digest version, digest)."""

    data: scan.Bytes
    acls: dict[int, list[AclEntry]]
    positions: npt.NDArray[np.int64]
    children: npt.NDArray[np.int32]
    digest: tuple[int, int, int] | None = None


def open_snapshot(buffer: bytes | memoryview) -> Snapshot:
    """Check a whole, decompressed snapshot file: its layout to the last byte, and every Adler-32.

    Raises SnapshotError; nothing of a snapshot that fails is ever handed out.
    """
    reader = JuteReader(buffer)
    try:
        acls = _read_head(reader)
    except JuteError as error:
        raise SnapshotError(f"its head is damaged: {error}") from None
    data = scan.as_bytes(buffer)
    positions, children, end, fault = scan.scan_tree(data, reader.position)
    if fault != scan.OK:
        raise SnapshotError(f"its tree is damaged at byte {end}: {scan.FAULTS[fault]}")
    if not len(positions):
        raise SnapshotError("its tree has no root")
    digest = _check_seals(buffer, end)
    return Snapshot(data, acls, positions, children, digest)


def warm_up() -> None:
    """Compile the loops over a snapshot's bytes, or load them as they were compiled before."""
    # A root without data: its path, null data, the ACL's index, the stat; then the tree's end.
    tree = bytes(4) + b"\xff" * 4 + bytes(scan.MIN_NODE_BYTES - 8) + b"\x00\x00\x00\x01/"
    data = scan.as_bytes(tree)
    positions, _, _, _ = scan.scan_tree(data, 0)
    path_ends, data_ends = scan.measure(data, positions)
    scan.extract(data, positions, path_ends, data_ends)
    scan.owned(data, positions)
    scan.ending(data, positions, data)
    scan.crcs(data, positions, data)


def _read_head(reader: JuteReader) -> dict[int, list[AclEntry]]:
    magic, version, _ = reader.i32(), reader.i32(), reader.i64()
    if magic != MAGIC or version != VERSION:
        raise SnapshotError("it does not start as a snapshot (ZKSN, version 2)")
    count = reader.i32()
    if count < 0 or count * _SESSION_BYTES > reader.remaining:
        raise SnapshotError(f"it claims {count} sessions")
    for _ in range(count):
        # A session and its time-out.
        reader.i64()
        reader.i32()
    acls = {_OPEN_INDEX: _OPEN_ACL}
    count = reader.i32()
    if count < 0 or count * _SESSION_BYTES > reader.remaining:
        raise SnapshotError(f"it claims {count} ACLs")
    for _ in range(count):
        index = reader.i64()
        acls[index] = reader.acl() or []
    return acls


def _check_seals(buffer: bytes | memoryview, end: int) -> tuple[int, int, int] | None:
    """Check every checksum from the tree's end on; returns the digest, if there is one."""
    view = memoryview(buffer)
    tail = _TAILS.get(len(view) - end - SEAL_BYTES)
    if tail is None:
        raise SnapshotError(f"{len(view) - end} bytes follow its tree and are not a seal")
    checksum, done, digest = 1, 0, None
    for skipped in (0, *tail):
        if skipped == _DIGEST_BYTES:
            reader = JuteReader(view, end)
            digest = reader.i64(), reader.i32(), reader.i64()
        end += skipped
        checksum = zlib.adler32(view[done:end], checksum)
        done = end
        reader = JuteReader(view, end)
        if reader.i64() != checksum or bytes(view[end + 8 : end + SEAL_BYTES]) != _LAST_SEAL_END:
            raise SnapshotError(f"its checksum at byte {end} does not hold")
        end += SEAL_BYTES
    return digest


def read_batches(snapshot: Snapshot, redactor: Redactor) -> Iterator[pa.RecordBatch]:
    """Yield the snapshot's znodes as batches of `ZNODE_COLUMNS`, secrets fingerprinted.

    A batch has at most BATCH_ROWS znodes and `BATCH_BYTES`; of a znode above `MAX_ZNODE_BYTES` all but the data is read.
    """
    acls = _Acls(snapshot, redactor)
    for part in _parts(snapshot):
        if _bytes(snapshot, part) > MAX_ZNODE_BYTES and part.stop - part.start == 1:
            yield _large(snapshot, acls, part)
        else:
            yield _batch(snapshot, acls, redactor, part)


def _parts(snapshot: Snapshot) -> Iterator[slice]:
    """Slices of the znodes that are read at once: a large znode stands alone."""
    count = len(snapshot.positions)
    sizes = np.diff(snapshot.positions, append=len(snapshot.data))
    large = set(np.flatnonzero(sizes > MAX_ZNODE_BYTES).tolist())
    start = 0
    while start < count:
        most = int(np.searchsorted(snapshot.positions, snapshot.positions[start] + BATCH_BYTES))
        stop = max(min(start + BATCH_ROWS, most, count), start + 1)
        stop = start + 1 if start in large else min([stop, *(each for each in large if start < each < stop)])
        yield slice(start, stop)
        start = stop


def _bytes(snapshot: Snapshot, part: slice) -> int:
    end = snapshot.positions[part.stop] if part.stop < len(snapshot.positions) else len(snapshot.data)
    return int(end - snapshot.positions[part.start])


def _large(snapshot: Snapshot, acls: _Acls, part: slice) -> pa.RecordBatch:
    """A znode without its data."""
    reader = JuteReader(snapshot.data.data, int(snapshot.positions[part.start]))
    path, length = reader.string() or "/", reader.i32()
    reader.position += max(length, 0)
    acl = acls.column(np.array([reader.i64()])).to_pylist()[0]
    czxid, mzxid, ctime, mtime = (reader.i64() for _ in range(4))
    version, cversion, aversion = (reader.i32() for _ in range(3))
    owner, pzxid, children = reader.i64(), reader.i64(), int(snapshot.children[part.start])
    row = {
        "path": path,
        "data_is_null": False,
        "data_length": length,
        "czxid": czxid,
        "mzxid": mzxid,
        "pzxid": pzxid,
        "ctime": ctime,
        "mtime": mtime,
        "version": version,
        "cversion": cversion * 2 - children,
        "aversion": aversion,
        "ephemeral_owner": owner,
        "num_children": children,
        "acl": acl,
        "redacted": False,
        "problem": too_large(length),
    }
    return pa.RecordBatch.from_pylist([row], schema=ZNODE_SCHEMA)


def paths_ending(snapshot: Snapshot, end: str) -> list[str]:
    """Return the paths that end with an ASCII text."""
    positions = snapshot.positions[scan.ending(snapshot.data, snapshot.positions, scan.as_bytes(end.encode()))]
    return [JuteReader(snapshot.data.data, position).string() for position in positions.tolist()]


def owned_paths(snapshot: Snapshot) -> list[str]:
    """Return the paths of the znodes that have an owner: ephemerals, containers, those that expire."""
    positions = snapshot.positions[scan.owned(snapshot.data, snapshot.positions)]
    return [JuteReader(snapshot.data.data, position).string() for position in positions.tolist()]


def _batch(snapshot: Snapshot, acls: _Acls, redactor: Redactor, part: slice) -> pa.RecordBatch:
    positions = snapshot.positions[part]
    children = snapshot.children[part]
    path_ends, data_ends = scan.measure(snapshot.data, positions)
    paths, data_lengths, is_null, longs, ints = scan.extract(snapshot.data, positions, path_ends, data_ends)
    raw = _binary(data_ends, data_lengths, is_null)
    path = _paths(_binary(path_ends, paths, None))
    text, redacted, problem = _texts(path, raw, redactor)
    columns = {
        "path": path,
        "data": text,
        "data_is_null": pa.array(is_null),
        "data_length": pa.array(np.diff(data_ends).astype(np.int32)),
        "czxid": longs[1],
        "mzxid": longs[2],
        "pzxid": longs[6],
        "ctime": longs[3],
        "mtime": longs[4],
        "version": ints[0],
        # Stored is the number of children ever made; what clients see counts deletions too (`DataNode.copyStat`).
        "cversion": ints[1] * np.int32(2) - children,
        "aversion": ints[2],
        "ephemeral_owner": longs[5],
        "num_children": children,
        "acl": acls.column(longs[0]),
        "redacted": redacted,
        "problem": problem,
    }
    arrays = [pa.array(columns[name]) if isinstance(columns[name], np.ndarray) else columns[name] for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=ZNODE_SCHEMA)


def _binary(ends: npt.NDArray[np.int64], values: scan.Bytes, is_null: npt.NDArray[np.bool_] | None) -> pa.Array:
    # A batch has BATCH_BYTES at most, so its offsets fit.
    validity = None if is_null is None else pa.array(~is_null).buffers()[1]
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.binary(), len(ends) - 1, buffers)


def _paths(raw: pa.Array) -> pa.Array:
    try:
        return raw.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([decode_string(path) for path in raw.to_pylist()], pa.string())


def _texts(path: pa.Array, raw: pa.Array, redactor: Redactor) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return the data as text, whether a secret was replaced in it, and the problem."""
    count = len(raw)
    try:
        text = raw.cast(pa.string())
        careful = pc.and_(_where_secrets_are(path), pc.is_valid(raw))
    except pa.ArrowInvalid:
        text, careful = pa.nulls(count, pa.string()), pc.is_valid(raw)
    if not pc.any(careful).as_py():
        return text, pa.array(np.zeros(count, np.bool_)), pa.nulls(count, pa.string())
    found = [
        redactor.data(znode, data)
        for znode, data in zip(path.filter(careful).to_pylist(), raw.filter(careful).to_pylist(), strict=True)
    ]
    texts, flags, problems = zip(*found, strict=True)
    return (
        pc.replace_with_mask(text, careful, pa.array(texts, pa.string())),
        pc.replace_with_mask(pa.array(np.zeros(count, np.bool_)), careful, pa.array(flags, pa.bool_())),
        pc.replace_with_mask(pa.nulls(count, pa.string()), careful, pa.array(problems, pa.string())),
    )


def _where_secrets_are(path: pa.Array) -> pa.Array:
    return reduce(pc.or_, [pc.match_substring(path, place) for place in SECRET_PLACES])


class _Acls:
    """The snapshot's distinct ACLs as one array, from which every node takes its own."""

    def __init__(self, snapshot: Snapshot, redactor: Redactor) -> None:
        field = ZNODE_SCHEMA.field("acl")
        self._keys = np.array(sorted(snapshot.acls), dtype=np.int64)
        forms = [
            [{**entry._asdict(), "id": redactor.acl_id(entry.scheme, entry.id)} for entry in snapshot.acls[key]]
            for key in self._keys.tolist()
        ]
        # One more, null, for an index that is not in the list.
        self._forms = pa.array([*forms, None], type=field.type)

    def column(self, indices: npt.NDArray[np.int64]) -> pa.Array:
        """Return the ACLs of nodes by their indices."""
        slots = np.searchsorted(self._keys, indices)
        slots[slots == len(self._keys)] = 0
        slots = np.where(self._keys[slots] == indices, slots, len(self._keys))
        return self._forms.take(pa.array(slots))
