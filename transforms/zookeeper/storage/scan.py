"""The loops over a snapshot's bytes, compiled.

tree   = node* end          in depth-first order, every parent before its children
node   = path string · data buffer · acl i64 · czxid i64 · mzxid i64 · ctime i64 · mtime i64
         · version i32 · cversion i32 · aversion i32 · ephemeralOwner i64 · pzxid i64
end    = string "/"         the root's own path is ""
string, buffer = length i32 (-1 null) · bytes          all numbers big-endian (jute)
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

OK, TRUNCATED, NEGATIVE_LENGTH, NO_PARENT, TOO_DEEP, BAD_PATH = range(6)
FAULTS = (
    "",
    "the file ends inside a node",
    "a length is negative",
    "a node's parent is not there",
    "the tree is deeper than any tree ZooKeeper writes",
    "a path does not start with '/'",
)
# Smallest node: a path of no bytes, null data, the ACL's index and the stat.
MIN_NODE_BYTES = 4 + 4 + 8 + 60
_MAX_DEPTH = 1 << 16
_SLASH = ord("/")
# Where the stat's fields lie behind the data.
ACL, CZXID, MZXID, CTIME, MTIME, VERSION, CVERSION, AVERSION, OWNER, PZXID = 0, 8, 16, 24, 32, 40, 44, 48, 52, 60


@numba.njit(cache=True, inline="always")
def _i32(data: Bytes, at: Any) -> Any:
    value = (
        (np.int64(data[at]) << 24)
        | (np.int64(data[at + 1]) << 16)
        | (np.int64(data[at + 2]) << 8)
        | np.int64(data[at + 3])
    )
    return value - (np.int64(1) << 32) if value >> 31 else value


@numba.njit(cache=True, inline="always")
def _i64(data: Bytes, at: Any) -> Any:
    return (np.int64(_i32(data, at)) << 32) | (np.int64(_i32(data, at + 4)) & np.int64(0xFFFFFFFF))


@numba.njit(cache=True)
def scan_tree(data: Bytes, start: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], int, int]:
    """Find the nodes of a tree that begins at `start`.

    Returns the position of each node, its number of children, where the scan ended, and a fault (an index of FAULTS; OK when
    the tree's end was found). Reads no byte outside `data`, whatever its content.
    """
    size = len(data)
    room = max(size - start, 0) // MIN_NODE_BYTES + 1
    positions = np.empty(room, np.int64)
    children = np.zeros(room, np.int32)
    stack = np.empty(_MAX_DEPTH, np.int64)
    depth = 0
    count = 0
    at = start
    while True:
        if at + 4 > size:
            return positions[:count], children[:count], at, TRUNCATED
        length = _i32(data, at)
        if length < 0:
            return positions[:count], children[:count], at, NEGATIVE_LENGTH
        path = at + 4
        if path + length + 4 > size and not (length == 1 and path + 1 <= size):
            return positions[:count], children[:count], at, TRUNCATED
        if length == 1 and data[path] == _SLASH:
            return positions[:count], children[:count], path + 1, OK
        depth, fault = _find_parent(data, positions, stack, depth, count, path, length)
        if fault != OK:
            return positions[:count], children[:count], at, fault
        data_length = _i32(data, path + length)
        if data_length < -1:
            return positions[:count], children[:count], at, NEGATIVE_LENGTH
        stop = path + length + 4 + max(data_length, 0) + 68
        if stop > size:
            return positions[:count], children[:count], at, TRUNCATED
        if depth:
            children[stack[depth - 1]] += 1
        positions[count] = at
        stack[depth] = count
        depth += 1
        count += 1
        at = stop


@numba.njit(cache=True)
def _find_parent(
    data: Bytes,
    positions: npt.NDArray[np.int64],
    stack: npt.NDArray[np.int64],
    depth: int,
    count: int,
    path: int,
    length: int,
) -> tuple[int, int]:
    """Drop from the stack all nodes that are not ancestors; returns its new depth and a fault."""
    if length == 0:
        return 0, OK if count == 0 else NO_PARENT
    if data[path] != _SLASH:
        return depth, BAD_PATH
    slash = length - 1
    while data[path + slash] != _SLASH:
        slash -= 1
    while depth and _i32(data, positions[stack[depth - 1]]) > slash:
        depth -= 1
    if depth == 0:
        return depth, NO_PARENT
    parent = positions[stack[depth - 1]]
    if _i32(data, parent) != slash:
        return depth, NO_PARENT
    for index in range(slash):
        if data[parent + 4 + index] != data[path + index]:
            return depth, NO_PARENT
    return depth, OK if depth < _MAX_DEPTH - 1 else TOO_DEEP


@numba.njit(cache=True)
def measure(data: Bytes, positions: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return where each node's path and data would end if they were laid end to end, each with a leading 0."""
    count = len(positions)
    paths = np.zeros(count + 1, np.int64)
    data_length = np.zeros(count + 1, np.int64)
    for index in range(count):
        at = positions[index]
        length = _i32(data, at)
        # The root's path is empty in the file and "/" to everyone else.
        paths[index + 1] = paths[index] + max(length, 1)
        data_length[index + 1] = data_length[index] + max(_i32(data, at + 4 + length), 0)
    return paths, data_length


@numba.njit(cache=True)
def extract(
    data: Bytes,
    positions: npt.NDArray[np.int64],
    path_ends: npt.NDArray[np.int64],
    data_ends: npt.NDArray[np.int64],
) -> tuple[Bytes, Bytes, npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Copy nodes into columns; `path_ends` and `data_ends` are what `measure` found.

    Returns the paths' bytes, the data's bytes, whether the data is null, the longs (rows acl, czxid, mzxid, ctime,
    mtime, ephemeralOwner, pzxid) and the ints (rows version, cversion, aversion).
    """
    count = len(positions)
    path_bytes, data_bytes = np.empty(path_ends[-1], np.uint8), np.empty(data_ends[-1], np.uint8)
    is_null, longs, ints = np.empty(count, np.bool_), np.empty((7, count), np.int64), np.empty((3, count), np.int32)
    for index in range(count):
        at = positions[index]
        length = _i32(data, at)
        target = path_ends[index]
        if length == 0:
            path_bytes[target] = _SLASH
        path_bytes[target : target + length] = data[at + 4 : at + 4 + length]
        at += 4 + length
        data_length = _i32(data, at)
        is_null[index] = data_length < 0
        target = data_ends[index]
        if data_length > 0:
            data_bytes[target : target + data_length] = data[at + 4 : at + 4 + data_length]
        at += 4 + max(data_length, 0)
        longs[0, index] = _i64(data, at + ACL)
        longs[1, index] = _i64(data, at + CZXID)
        longs[2, index] = _i64(data, at + MZXID)
        longs[3, index] = _i64(data, at + CTIME)
        longs[4, index] = _i64(data, at + MTIME)
        longs[5, index] = _i64(data, at + OWNER)
        longs[6, index] = _i64(data, at + PZXID)
        ints[0, index] = _i32(data, at + VERSION)
        ints[1, index] = _i32(data, at + CVERSION)
        ints[2, index] = _i32(data, at + AVERSION)
    return path_bytes, data_bytes, is_null, longs, ints


def _crc_tables() -> npt.NDArray[np.uint32]:
    """Tables that take sixteen bytes a step through CRC-32 (`java.util.zip.CRC32`, zlib's), one after the other."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    tables = [table]
    for _ in range(15):
        tables.append(table[tables[-1] & 0xFF] ^ (tables[-1] >> 8))
    return np.concatenate(tables)


_CRC = _crc_tables()


@numba.njit(cache=True, inline="always")
def _at(table: int, byte: Any) -> Any:
    return _CRC[np.uint32(table << 8) | np.uint32(byte)]


@numba.njit(cache=True)
def _crc(crc: np.uint32, data: Bytes, at: np.uint64, end: np.uint64) -> Any:
    """CRC-32 in its inner form (all bits the other way round) after the bytes from `at` to `end`."""
    while at + np.uint64(16) <= end:
        crc = (
            _at(15, data[at] ^ np.uint8(crc))
            ^ _at(14, data[at + np.uint64(1)] ^ np.uint8(crc >> np.uint32(8)))
            ^ _at(13, data[at + np.uint64(2)] ^ np.uint8(crc >> np.uint32(16)))
            ^ _at(12, data[at + np.uint64(3)] ^ np.uint8(crc >> np.uint32(24)))
            ^ _at(11, data[at + np.uint64(4)])
            ^ _at(10, data[at + np.uint64(5)])
            ^ _at(9, data[at + np.uint64(6)])
            ^ _at(8, data[at + np.uint64(7)])
            ^ _at(7, data[at + np.uint64(8)])
            ^ _at(6, data[at + np.uint64(9)])
            ^ _at(5, data[at + np.uint64(10)])
            ^ _at(4, data[at + np.uint64(11)])
            ^ _at(3, data[at + np.uint64(12)])
            ^ _at(2, data[at + np.uint64(13)])
            ^ _at(1, data[at + np.uint64(14)])
            ^ _at(0, data[at + np.uint64(15)])
        )
        at += np.uint64(16)
    while at + np.uint64(4) <= end:
        crc = (
            _at(3, data[at] ^ np.uint8(crc))
            ^ _at(2, data[at + np.uint64(1)] ^ np.uint8(crc >> np.uint32(8)))
            ^ _at(1, data[at + np.uint64(2)] ^ np.uint8(crc >> np.uint32(16)))
            ^ _at(0, data[at + np.uint64(3)] ^ np.uint8(crc >> np.uint32(24)))
        )
        at += np.uint64(4)
    while at < end:
        crc = _at(0, data[at] ^ np.uint8(crc)) ^ (crc >> np.uint32(8))
        at += np.uint64(1)
    return crc


@numba.njit(cache=True)
def crcs(
    data: Bytes, positions: npt.NDArray[np.int64], uncounted: Bytes
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.bool_]]:
    """Return the CRC-32 of each node's path, data and stat (`DigestCalculator`), 0 where a path begins with `uncounted`,
    and which paths are not ASCII: Java may encode those otherwise than the file has them.
    """
    count = len(positions)
    nodes, odd = np.zeros(count, np.uint32), np.zeros(count, np.bool_)
    ones = np.uint32(0xFFFFFFFF)
    stat = np.empty(60, np.uint8)
    for index in range(count):
        at = positions[index]
        length = _i32(data, at)
        path = at + 4
        high = np.uint8(0)
        for place in range(path, path + length):
            high |= data[place]
        odd[index] = high >= 128
        if _begins(data, path, length, uncounted):
            continue
        crc = _crc(ones, data, np.uint64(path), np.uint64(path + length))
        held = max(_i32(data, path + length), 0)
        at = path + length + 4
        if held:
            crc = _crc(crc, data, np.uint64(at), np.uint64(at + held))
        at += held
        # In the file pzxid stands last, in the digest before the times.
        stat[:16] = data[at + CZXID : at + CTIME]
        stat[16:24] = data[at + PZXID : at + PZXID + 8]
        stat[24:] = data[at + CTIME : at + PZXID]
        nodes[index] = _crc(crc, stat, np.uint64(0), np.uint64(60)) ^ ones
    return nodes, odd


@numba.njit(cache=True)
def _begins(data: Bytes, at: int, length: int, start: Bytes) -> bool:
    same = length >= len(start)
    index = 0
    while same and index < len(start):
        same = data[at + index] == start[index]
        index += 1
    return same


@numba.njit(cache=True)
def owned(data: Bytes, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Say which nodes have an ephemeralOwner other than 0."""
    found = np.empty(len(positions), np.bool_)
    for index in range(len(positions)):
        at = positions[index]
        at += 4 + _i32(data, at)
        found[index] = _i64(data, at + 4 + max(_i32(data, at), 0) + OWNER) != 0
    return found


@numba.njit(cache=True)
def ending(data: Bytes, positions: npt.NDArray[np.int64], end: Bytes) -> npt.NDArray[np.bool_]:
    """Say which nodes have a path that ends with some bytes."""
    found = np.zeros(len(positions), np.bool_)
    for index in range(len(positions)):
        at = positions[index]
        length = _i32(data, at)
        if length < len(end):
            continue
        start = at + 4 + length - len(end)
        same = True
        for offset in range(len(end)):
            if data[start + offset] != end[offset]:
                same = False
                break
        found[index] = same
    return found


def as_bytes(buffer: Any) -> Bytes:
    """View a buffer (bytes, mmap) as an array without copying it."""
    return np.frombuffer(buffer, dtype=np.uint8)
