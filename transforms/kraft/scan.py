"""What a segment or a snapshot holds, from its batch headers alone: offsets, epochs, where to split, where it ends."""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.kraft.control import LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from transforms.kraft.codec import decode_record
from transforms.kraft.framing import HEADER_SIZE, Batch, Damage, crc_of, frames
from transforms.kraft.walk import Continuation
from transforms.kraft.wire import Buffer, Reader, WireError

SPLIT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class ByteRange:
    """Bytes [start, end) of a file, aligned to batches, and what precedes them."""

    start: int
    end: int
    continuation: Continuation


@dataclass
class SegmentScan:
    """Facts of one segment. Offsets are None when it holds no batch; `next_offset` is exclusive.

    `torn_bytes` follow the last batch whose CRC is right; `voters` and `leader_id` are those of the newest
    LeaderChange in the segment.
    """

    size: int
    first_offset: int | None = None
    next_offset: int | None = None
    last_epoch: int | None = None
    last_append_time: int | None = None
    torn_bytes: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)
    ranges: list[ByteRange] = field(default_factory=list)
    voters: tuple[int, ...] | None = None
    leader_id: int | None = None


def scan_segment(data: Buffer, previous: Continuation | None = None, split_bytes: int = SPLIT_BYTES) -> SegmentScan:
    """Scan a whole segment. `previous` says which offset and epoch must follow; its position is ignored."""
    scan = SegmentScan(size=len(data))
    ranges = _Ranges(previous or Continuation(), split_bytes)
    tail: list[Batch] = []
    newest_control: Batch | None = None
    for frame in frames(data, verify=False):
        ranges.before(frame.position)
        if isinstance(frame, Damage):
            continue
        _note_batch(scan, frame)
        ranges.after(frame)
        tail = [*tail[-_TAIL_BATCHES:], frame]
        if frame.control:
            newest_control = frame
    scan.ranges = ranges.finish(len(data))
    _find_end(scan, data, tail)
    if newest_control is not None:
        _read_leader_change(scan, data, newest_control)
    return scan


# Batches at the end whose CRC is verified: a crash tears the last one, a lost page a few more.
_TAIL_BATCHES = 64


class _Ranges:
    def __init__(self, previous: Continuation, split_bytes: int) -> None:
        self.split_bytes = split_bytes
        self.next_offset = previous.next_offset
        self.epoch = previous.epoch
        self.done: list[ByteRange] = []
        self.open = Continuation(0, self.next_offset, self.epoch)

    def before(self, position: int) -> None:
        """A frame begins at `position`: close the open range when it is long enough."""
        if position - self.open.position >= self.split_bytes:
            self.done.append(ByteRange(self.open.position, position, self.open))
            self.open = Continuation(position, self.next_offset, self.epoch)

    def after(self, batch: Batch) -> None:
        """Remember what `batch` leaves behind."""
        self.next_offset = max(self.next_offset or 0, batch.next_offset)
        self.epoch = batch.epoch

    def finish(self, size: int) -> list[ByteRange]:
        """All ranges, the last one up to the end of the file."""
        if size > self.open.position:
            self.done.append(ByteRange(self.open.position, size, self.open))
        return self.done


def _note_batch(scan: SegmentScan, batch: Batch) -> None:
    if scan.first_offset is None:
        scan.first_offset = batch.base_offset
    if not scan.epoch_starts or batch.epoch > scan.epoch_starts[-1][0]:
        scan.epoch_starts.append((batch.epoch, batch.base_offset))


def _find_end(scan: SegmentScan, data: Buffer, tail: list[Batch]) -> None:
    """Find the last batch whose CRC is right; what follows it is torn."""
    for batch in reversed(tail):
        if crc_of(data, batch.position, batch.size) == batch.crc:
            scan.next_offset = batch.next_offset
            scan.last_epoch = batch.epoch
            scan.last_append_time = batch.max_timestamp
            scan.torn_bytes = len(data) - batch.position - batch.size
            scan.epoch_starts = [(epoch, start) for epoch, start in scan.epoch_starts if start <= batch.base_offset]
            return
    scan.first_offset = None
    scan.torn_bytes = len(data)
    scan.epoch_starts = []


def control_records(data: Buffer, batch: Batch) -> list[tuple[int, int, int]]:
    """(type, start of the body, end of the body) of each record of a control batch; what can't be read is left out."""
    found: list[tuple[int, int, int]] = []
    reader = Reader(data, batch.position + HEADER_SIZE, batch.position + batch.size)
    try:
        for _ in range(batch.count):
            size = reader.varint()
            record = Reader(data, reader.take(size), reader.position)
            record.int8()
            record.varlong()
            record.varint()
            key = record.raw(record.varint())
            length = record.varint()
            start = record.take(length)
            found.append((int.from_bytes(key[2:4], "big"), start, start + length))
    except WireError:
        return found
    return found


def _read_leader_change(scan: SegmentScan, data: Buffer, batch: Batch) -> None:
    for code, start, end in control_records(data, batch):
        if code != LEADER_CHANGE.key:
            continue
        try:
            values, _, _ = decode_record(LEADER_CHANGE, Reader(data, start, end).int16(), data, start, end)
        except WireError:
            continue
        scan.leader_id = values["leaderId"]
        scan.voters = tuple(sorted(voter["voterId"] for voter in values["voters"]))


def checkpoint_problem(data: Buffer) -> str | None:
    """Why a snapshot file is incomplete, or None: every batch intact, a header first, a footer last (S§2.4, S§11)."""
    first: Batch | None = None
    last: Batch | None = None
    for frame in frames(data):
        if isinstance(frame, Damage):
            return f"byte {frame.position}: {frame.reason}"
        if not frame.intact:
            return f"byte {frame.position}: CRC stored {frame.crc:#010x}, computed {frame.computed_crc:#010x}"
        first, last = first or frame, frame
    if first is None or last is None:
        return "the file is empty"
    if not _has_control(data, first, SNAPSHOT_HEADER.key):
        return "it does not begin with a snapshot header"
    return None if _has_control(data, last, SNAPSHOT_FOOTER.key) else "the footer is missing"


def _has_control(data: Buffer, batch: Batch, code: int) -> bool:
    return batch.control and any(found == code for found, _, _ in control_records(data, batch))
