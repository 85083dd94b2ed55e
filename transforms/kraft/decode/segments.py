"""Bytes of a metadata log segment or snapshot to rows of bronze `kraft_records`.

Accounting: `length` over all rows of a file adds up to the bytes of the file. A batch's header is counted with its
first record. A finding about bytes that could be read (an unknown tag, a gap before a batch) is a row of its own with
`problem` and length 0 beside the good row.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from schemas.kraft.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from transforms.kraft.decode.decode_pass import FAST_FROM_BYTES, Continuation, DecodePass
from transforms.kraft.decode.masking import Masking
from transforms.kraft.decode.rows import Origin

__all__ = ["Continuation", "decode_checkpoint", "decode_segment"]

DEFAULT_ROWS = 65_536


def decode_segment(
    data: bytes, origin: Origin, masking: Masking, continuation: Continuation | None = None
) -> Iterator[pa.RecordBatch]:
    """Decode `data`, which starts and ends where batches do (or at the end of the file), into bronze rows.

    Never raises for what the bytes hold: damage becomes rows with `problem` (S§11).
    """
    yield from _decode(DecodePass(data, origin, masking, continuation or Continuation()))


def decode_checkpoint(data: bytes, origin: Origin, masking: Masking) -> Iterator[pa.RecordBatch]:
    """Decode a whole snapshot file (`.checkpoint`). `offset` is the position within it; header and footer are rows.

    A snapshot that does not begin with its header or end with its footer gets a finding: it must not be used, although
    Kafka's own reader would (S§11).
    """
    decoding = DecodePass(data, origin, masking, Continuation(next_offset=0))
    yield from _decode(decoding)
    if decoding.first_type != SNAPSHOT_HEADER.name:
        decoding.finding(0, "incomplete checkpoint: it does not begin with a SnapshotHeader record")
    if decoding.last_type != SNAPSHOT_FOOTER.name:
        decoding.finding(len(data), "incomplete checkpoint: the footer is missing")
    if len(decoding.rows):
        yield decoding.rows.take()


def decode_by_declarations(decoding: DecodePass, rows_per_batch: int = DEFAULT_ROWS) -> Iterator[pa.RecordBatch]:
    """Decode everything with the declaration-driven decoder: for small inputs, and as the standard that the kernel is held to."""
    position = 0
    while position < len(decoding.data):
        frame = decoding.frame_at(position)
        decoding.frame(frame)
        position += frame.size
        if len(decoding.rows) >= rows_per_batch:
            yield decoding.rows.take()
    if len(decoding.rows):
        yield decoding.rows.take()


def _decode(decoding: DecodePass) -> Iterator[pa.RecordBatch]:
    if len(decoding.data) < FAST_FROM_BYTES:
        yield from decode_by_declarations(decoding)
        return
    # numba takes half a second to import: only inputs that gain from it pay.
    from transforms.kraft.kernel.fast import decode_fast  # noqa: PLC0415

    yield from decode_fast(decoding, DEFAULT_ROWS)
