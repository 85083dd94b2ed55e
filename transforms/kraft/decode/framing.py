"""Record batches of magic 2 (S§2.2), and other bytes of a file.

      0 baseOffset i64          12 partitionLeaderEpoch i32   21 attributes i16        35 maxTimestamp i64
      8 batchLength i32         16 magic i8 (2)               23 lastOffsetDelta i32   43 producerId i64 (-1)
                                17 crc32c u32 of 21…          27 baseTimestamp i64     51 producerEpoch i16 (-1)
                                                              53 baseSequence i32 (-1) 57 recordCount i32, 61 records

Frames cover a file without a gap: each byte belongs to one `BatchHeader` or one `Damage`. After damage, reading resumes at
the next batch whose CRC is right, so that one flipped length loses one batch and not the rest of the segment.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import google_crc32c

HEADER_SIZE = 61
# Offsets beyond this could overflow 64 bits when something is added.
MOST_OFFSET = 1 << 62
_HEADER = struct.Struct(">qiibIhiqqqhii")
_LENGTH_AT = 8
_CRC_FROM = 21
_MAGIC = 2
_COMPRESSION = 0x07
_TRANSACTIONAL = 0x10
_CONTROL = 0x20
# producerId, producerEpoch and baseSequence of every batch a controller writes: what the search for one looks for.
_NO_PRODUCER = b"\xff" * 14
_NO_PRODUCER_AT = 43
# Bytes whose CRC may be tried in vain while searching one file; only crafted input has more look-alikes than this.
SEARCH_BUDGET = 256 * 1024 * 1024
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class BatchHeader:
    """A batch header. `size` counts the whole batch in bytes; `computed_crc` is None when it was not verified."""

    position: int
    size: int
    base_offset: int
    last_offset_delta: int
    epoch: int
    attributes: int
    max_timestamp: int
    count: int
    crc: int
    computed_crc: int | None

    @property
    def next_offset(self) -> int:
        """One past the last offset; absurd base offsets, which only crafted batches have, stay as they are."""
        absurd = not -MOST_OFFSET <= self.base_offset <= MOST_OFFSET
        return self.base_offset if absurd else self.base_offset + self.last_offset_delta + 1

    @property
    def control(self) -> bool:
        """True for a batch of control records."""
        return bool(self.attributes & _CONTROL)

    @property
    def transactional(self) -> bool:
        """True for a batch of a client transaction: never in a metadata log."""
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def compression(self) -> int:
        """Code of the compression; 0 is none."""
        return self.attributes & _COMPRESSION

    @property
    def intact(self) -> bool:
        """False when the CRC was verified and is wrong."""
        return self.computed_crc is None or self.computed_crc == self.crc


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a batch, and why."""

    position: int
    size: int
    reason: str


Frame = BatchHeader | Damage


def frames(data: bytes) -> Iterator[Frame]:
    """Yield the batches of `data`, which starts at a batch. Positions count from its start."""
    budget = [SEARCH_BUDGET]
    position = 0
    while position < len(data):
        frame = frame_at(data, position, budget)
        yield frame
        position += frame.size


def frame_at(data: bytes, position: int, budget: list[int]) -> Frame:
    """Read the frame at `position`, where the one before it ends.

    `budget` holds the bytes whose CRC may still be tried in searches (at first `SEARCH_BUDGET`); it is drawn on.
    """
    size = batch_size(data, position)
    if size is None:
        return _damage(data, position, None, budget)
    followed = position + size == len(data) or batch_size(data, position + size) is not None
    batch = read_header(data, position, size, crc_of(data, position, size))
    return batch if batch.intact or followed else _damage(data, position, batch, budget)


def batch_size(data: bytes, position: int) -> int | None:
    """Size in bytes of the batch at `position`; None when no whole batch can be there."""
    if len(data) - position < HEADER_SIZE or data[position + 16] != _MAGIC:
        return None
    size = int.from_bytes(data[position + _LENGTH_AT : position + 12], "big", signed=True) + 12
    return size if HEADER_SIZE <= size <= len(data) - position else None


def crc_of(data: bytes, position: int, size: int) -> int:
    """CRC-32C of the batch at `position`."""
    return int(google_crc32c.value(data[position + _CRC_FROM : position + size]))


def read_header(data: bytes, position: int, size: int, computed_crc: int | None) -> BatchHeader:
    """Read the header of the batch at `position`, which `batch_size` found to be there."""
    (base, _, epoch, _, crc, attributes, last_delta, _, max_time, _, _, _, count) = _HEADER.unpack_from(data, position)
    return BatchHeader(
        position=position,
        size=size,
        base_offset=base,
        last_offset_delta=last_delta,
        epoch=epoch,
        attributes=attributes,
        max_timestamp=max_time,
        count=count,
        crc=crc,
        computed_crc=computed_crc,
    )


def _damage(data: bytes, position: int, batch: BatchHeader | None, budget: list[int]) -> Damage:
    found = _next_batch(data, position + 1, budget)
    size = found - position
    if batch is not None:
        reason = (
            f"CRC stored {batch.crc:#010x}, computed {batch.computed_crc:#010x}, and no batch follows: "
            f"{size} bytes skipped"
        )
    else:
        reason = _why_no_batch(data, position, found)
    return Damage(position, size, reason)


def _why_no_batch(data: bytes, position: int, found: int) -> str:
    size, left = found - position, len(data) - position
    if _is_zero(data, position, found):
        return f"zero-filled: {size} bytes of preallocated space or lost writes"
    if left < HEADER_SIZE:
        return f"torn tail: {left} bytes, less than a batch header"
    if data[position + 16] != _MAGIC:
        return f"no batch header: magic {data[position + 16]} instead of {_MAGIC}, {size} bytes skipped"
    claimed = int.from_bytes(data[position + _LENGTH_AT : position + 12], "big", signed=True) + 12
    if claimed > left and found == len(data):
        return f"torn tail: a batch of {claimed} bytes begins here and {left} are left"
    return f"no batch header: a batch of {claimed} bytes can't be here, {size} bytes skipped"


def _is_zero(data: bytes, start: int, end: int) -> bool:
    return not any(data[block : min(block + _BLOCK, end)].strip(b"\0") for block in range(start, end, _BLOCK))


def _next_batch(data: bytes, start: int, budget: list[int]) -> int:
    """Position of the next batch with a right CRC at or after `start`; the end of the data when there is none."""
    at = data.find(_NO_PRODUCER, start + _NO_PRODUCER_AT)
    while at >= 0 and budget[0] > 0:
        position = at - _NO_PRODUCER_AT
        size = batch_size(data, position)
        if size is not None:
            budget[0] -= size
            if read_header(data, position, size, crc_of(data, position, size)).intact:
                return position
        at = data.find(_NO_PRODUCER, at + 1)
    return len(data)
