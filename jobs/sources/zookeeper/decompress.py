"""Compressed snapshots, decompressed into a file block by block, so that memory holds one block regardless of what a file claims.

The first bytes must be a snapshot's; a file that grows out of all proportion is refused while it does.
"""

from __future__ import annotations

import gzip
import zlib
from typing import IO

import pyarrow as pa

from transforms.zookeeper.storage.snapshot import MAGIC, SnapshotError

_MAGIC = MAGIC.to_bytes(4, "big")
_PIECE_BYTES = 1024 * 1024
# Trees of JSON shrink to a tenth or a thirtieth; gzip makes a thousandth of zeros.
MOST_GROWTH = 200
# Below this the growth of a file does not matter.
ALWAYS_ALLOWED_BYTES = 64 * 1024 * 1024
_SNAPPY_MAGIC = b"\x82SNAPPY\x00"
_SNAPPY_HEAD_BYTES = 16
# SnappyOutputStream cuts its input into blocks of 32 KiB (at most 512 MiB can be asked for); far larger ones are damage.
_SNAPPY_BLOCK_LIMIT = 16 * 1024 * 1024


class _Output:
    """Writes the decompressed bytes as long as they can be a snapshot of that size."""

    def __init__(self, target: IO[bytes], compressed_bytes: int) -> None:
        self._target = target
        self._most = max(compressed_bytes * MOST_GROWTH, ALWAYS_ALLOWED_BYTES)
        self.size = 0

    def write(self, piece: bytes) -> None:
        if self.size == 0 and not piece.startswith(_MAGIC):
            raise SnapshotError("it does not start as a snapshot (ZKSN) once it is decompressed")
        self.size += len(piece)
        if self.size > self._most:
            raise SnapshotError(f"it grows to more than {MOST_GROWTH} times its size: no snapshot does")
        self._target.write(piece)


def gunzip(source: IO[bytes], compressed_bytes: int, target: IO[bytes]) -> None:
    """Decompress gzip. Raises SnapshotError if it is not gzip or not a snapshot, or exceeds the bound; OSError."""
    output = _Output(target, compressed_bytes)
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as file:
            while piece := file.read(_PIECE_BYTES):
                output.write(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SnapshotError(f"it can't be decompressed ({error})") from None
    _not_empty(output)


def unsnap(source: IO[bytes], compressed_bytes: int, target: IO[bytes]) -> None:
    """Decompress snappy-java's stream: a head of 16 bytes, then blocks with their compressed length before them.

    Raises SnapshotError if it is not such a stream or not a snapshot; OSError.
    """
    output = _Output(target, compressed_bytes)
    at = len(head := source.read(_SNAPPY_HEAD_BYTES))
    if not head.startswith(_SNAPPY_MAGIC):
        raise SnapshotError("it does not start as a snappy stream")
    while prefix := source.read(4):
        output.write(_block(source, int.from_bytes(prefix, "big"), at))
        at = source.tell()
    _not_empty(output)


def _block(source: IO[bytes], length: int, at: int) -> bytes:
    damaged = SnapshotError(f"its snappy block at byte {at} is damaged")
    if not 0 < length <= _SNAPPY_BLOCK_LIMIT:
        raise damaged
    block = source.read(length)
    size = _snappy_size(block)
    if len(block) != length or size > _SNAPPY_BLOCK_LIMIT:
        raise damaged
    try:
        return bytes(pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True))
    except (pa.ArrowException, OSError):
        raise damaged from None


def _snappy_size(block: bytes) -> int:
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    return _SNAPPY_BLOCK_LIMIT + 1


def _not_empty(output: _Output) -> None:
    if output.size == 0:
        raise SnapshotError("it is empty once it is decompressed")
