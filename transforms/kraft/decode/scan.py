"""What a segment or a snapshot holds, from its batches' headers: offsets, epochs, where to split, where it ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.kraft.control import CONTROL_TYPES, KRAFT_VOTERS, LEADER_CHANGE, SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from schemas.kraft.enums import DIRECTORY_MIGRATING
from transforms.kraft.decode.codec import decode_record
from transforms.kraft.decode.decode_pass import FAST_FROM_BYTES, Continuation
from transforms.kraft.decode.framing import HEADER_SIZE, BatchHeader, Damage, frames, read_header
from transforms.kraft.decode.wire import WireError, WireReader

SPLIT_BYTES = 8 * 1024 * 1024
Headers = npt.NDArray[np.int64]
# Where no batch follows at once: no offset is that low.
_NONE = -(1 << 63)


@dataclass(frozen=True)
class ByteRange:
    """Bytes [start, end) of a file, aligned to batches, and what precedes them."""

    start: int
    end: int
    continuation: Continuation


# Ids and directory ids (KIP-853), None where there is none.
Voters = tuple[tuple[int, str | None], ...]


@dataclass
class SegmentScan:
    """Facts of one segment. Offsets are None when it holds no intact batch; `next_offset` is exclusive.

    `intact_bytes` are those of intact batches, `torn_bytes` follow the last of them; they are `in_order` if offsets are consecutive and
    epochs never fall; `voters` are those of the newest KRaftVoters in the segment, `elected_by` those
    of the newest LeaderChange; `largest_batch` is in bytes.
    """

    size: int
    first_offset: int | None = None
    next_offset: int | None = None
    last_epoch: int | None = None
    last_append_time: int | None = None
    intact_bytes: int = 0
    torn_bytes: int = 0
    epoch_starts: list[tuple[int, int]] = field(default_factory=list)
    ranges: list[ByteRange] = field(default_factory=list)
    voters: Voters | None = None
    elected_by: Voters | None = None
    largest_batch: int = 0
    in_order: bool = True


def scan_segment(data: bytes, previous: Continuation | None = None, split_bytes: int = SPLIT_BYTES) -> SegmentScan:
    """Scan a whole segment: headers and CRCs, no records. `previous` determines which offset and epoch must follow.

    Only intact batches (CRC right) count; the ranges cover every byte all the same.
    """
    fold = _Fold(previous or Continuation(), split_bytes)
    for headers, following in _with_following(_header_chunks(data)):
        fold.add(headers, following)
    scan = SegmentScan(
        size=len(data),
        first_offset=fold.first_offset,
        intact_bytes=fold.intact,
        torn_bytes=len(data) - fold.end,
        epoch_starts=fold.epoch_starts,
        ranges=fold.ranges(len(data)),
        largest_batch=fold.largest,
        in_order=fold.in_order,
    )
    if fold.last is not None:
        scan.next_offset, scan.last_epoch, scan.last_append_time = fold.last
    for position, size in fold.controls:
        _read_quorum(scan, data, read_header(data, position, size, None))
    return scan


def begins_with(data: bytes, offset: int) -> bool:
    """Whether a segment's second batch leaves the first one the place of `offset`, whatever that one says: the CRC does not cover it."""
    both = [frame for frame in islice(frames(data), 2) if isinstance(frame, BatchHeader) and frame.intact]
    return len(both) == 2 and both[1].base_offset == offset + both[0].next_offset - both[0].base_offset


def _header_chunks(data: bytes) -> Iterator[Headers]:
    """Headers of the intact batches, in columns as `kernel.partitions` numbers them."""
    if len(data) < FAST_FROM_BYTES:
        found = [
            (
                frame.position,
                frame.size,
                frame.base_offset,
                frame.next_offset,
                frame.epoch,
                frame.max_timestamp,
                frame.control,
            )
            for frame in frames(data)
            if isinstance(frame, BatchHeader) and frame.intact
        ]
        yield np.array(found, np.int64).reshape(-1, 7).T
        return
    # numba takes half a second to import: only inputs that gain from it pay.
    from transforms.kraft.kernel.fast import scan_fast  # noqa: PLC0415

    yield from scan_fast(data)


def _with_following(chunks: Iterable[Headers]) -> Iterator[tuple[Headers, int | None]]:
    """Each chunk, and the base offset of the batch that follows its last one at once; None if none does."""
    chunk: Headers | None = None
    for later in chunks:
        if later.shape[1] == 0:
            continue
        if chunk is not None:
            yield chunk, int(later[2, 0]) if later[0, 0] == chunk[0, -1] + chunk[1, -1] else None
        chunk = later
    if chunk is not None:
        yield chunk, None


class _Fold:
    """What the batches so far add up to."""

    def __init__(self, previous: Continuation, split_bytes: int) -> None:
        self.split_bytes = split_bytes
        self.first_offset: int | None = None
        self.last: tuple[int, int, int] | None = None
        self.end = 0
        self.intact = 0
        self.largest = 0
        self.in_order = True
        self.epoch_starts: list[tuple[int, int]] = []
        self.controls: list[tuple[int, int]] = []
        self._open = Continuation(0, previous.next_offset, previous.epoch)
        self._next_offset = previous.next_offset
        self._epoch = previous.epoch
        # The highest epoch so far: what follows one that fell may be of it again.
        self._highest = -1 if previous.epoch is None else previous.epoch
        self._last_wrong = False
        self._done: list[ByteRange] = []

    def add(self, headers: Headers, following: int | None) -> None:
        """Add batches, in the order of the file; `following` is the base offset of the next one."""
        position, size, base, after, epoch, time, control = headers
        self._note_order(base, after, epoch)
        base, after, wrong = self._placed(headers, following)
        if self.first_offset is None:
            self.first_offset = int(base[0])
        epoch = self._of_elections(epoch, base, after, control)
        self._note_epochs(epoch, base)
        # Whether a batch is at its place shows in the one that follows: both are in one range.
        tied = np.concatenate(([self._last_wrong], wrong[:-1]))
        next_offsets = np.maximum.accumulate(np.maximum(after, self._next_offset or 0))
        self._close_ranges(position, next_offsets, np.maximum.accumulate(np.maximum(epoch, self._highest)), tied)
        self._highest = max(self._highest, int(epoch.max()))
        self._last_wrong = bool(wrong[-1])
        self._next_offset = max(int(after.max()), self._next_offset or 0)
        self._epoch = int(epoch[-1])
        self.last = int(after[-1]), int(epoch[-1]), int(time[-1])
        self.end = int(position[-1] + size[-1])
        self.intact += int(size.sum())
        self.largest = max(self.largest, int(size.max()))
        self.controls += [(int(position[index]), int(size[index])) for index in np.flatnonzero(control)]

    def ranges(self, size: int) -> list[ByteRange]:
        """All ranges, the last one up to the end of the file."""
        return [*self._done, ByteRange(self._open.position, size, self._open)] if size else []

    def _note_order(self, base: Headers, after: Headers, epoch: Headers) -> None:
        expected = np.concatenate(([base[0] if self._next_offset is None else self._next_offset], after[:-1]))
        before = np.concatenate(([epoch[0] if self._epoch is None else self._epoch], epoch[:-1]))
        self.in_order &= bool((base == expected).all() and (epoch >= before).all())

    def _placed(self, headers: Headers, following: int | None) -> tuple[Headers, Headers, Headers]:
        """Base and next offsets with each batch at its place, and where that is not what it says: as `DecodePass` reads them."""
        position, size, base, after = headers[:4]
        wrong = np.zeros(base.size, np.bool_)
        first = base[0] if self._next_offset is None else self._next_offset
        if (base == np.concatenate(([first], after[:-1]))).all():
            return base, after, wrong
        after_it = [*np.where(position[1:] == (position + size)[:-1], base[1:], _NONE).tolist(), following]
        base, after, place = base.copy(), after.copy(), int(first)
        for index, (begins, ends) in enumerate(zip(base.tolist(), after.tolist(), strict=True)):
            number = ends - begins
            if begins != place and number > 0 and after_it[index] == place + number:
                wrong[index], base[index], after[index] = True, place, place + number
            place = max(place, int(after[index]))
        return base, after, wrong

    def _of_elections(self, epoch: Headers, base: Headers, after: Headers, control: Headers) -> Headers:
        """The epochs that elections began, as `DecodePass` reads them: of another batch a later one is damage."""
        first = base[0] if self._next_offset is None else self._next_offset
        before = np.concatenate((epoch[:1] if self._epoch is None else [self._epoch], epoch[:-1]))
        follows = base == np.maximum.accumulate(np.concatenate(([first], after[:-1])))
        may_not_rise = follows & (control == 0)
        if not ((epoch > before) & may_not_rise).any():
            return epoch
        epoch, known = epoch.copy(), int(before[0])
        highest = max(known, self._highest)
        for index in range(epoch.size):
            if may_not_rise[index] and epoch[index] > highest:
                epoch[index], self.in_order = known, False
            known = int(epoch[index])
            highest = max(highest, known)
        return epoch

    def _note_epochs(self, epoch: Headers, base: Headers) -> None:
        highest = self.epoch_starts[-1][0] if self.epoch_starts else -1
        before = np.maximum.accumulate(np.concatenate(([highest], epoch[:-1])))
        for index in np.flatnonzero(epoch > before).tolist():
            self.epoch_starts.append((int(epoch[index]), int(base[index])))

    def _close_ranges(self, position: Headers, next_offsets: Headers, epoch: Headers, tied: Headers) -> None:
        """Close ranges that are long enough, each at the start of an intact batch."""
        while True:
            index = int(np.searchsorted(position, self._open.position + max(self.split_bytes, 1)))
            index += int(index < position.size and tied[index])
            if index >= position.size:
                return
            start = int(position[index])
            self._done.append(ByteRange(self._open.position, start, self._open))
            if index:
                self._open = Continuation(start, int(next_offsets[index - 1]), int(epoch[index - 1]))
            else:
                self._open = Continuation(start, self._next_offset, self._highest)


def control_records(data: bytes, batch: BatchHeader) -> list[tuple[int, int, int]]:
    """(type, start of the body, end of the body) of each record of a control batch; what can't be read is left out."""
    found: list[tuple[int, int, int]] = []
    reader = WireReader(data, batch.position + HEADER_SIZE, batch.position + batch.size)
    try:
        for _ in range(batch.count):
            size = reader.varint()
            record = WireReader(data, reader.take(size), reader.position)
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


def _read_quorum(scan: SegmentScan, data: bytes, batch: BatchHeader) -> None:
    """A control batch: an election, or the voters of a dynamic quorum (KIP-853).

    Of an election only the voters' ids are known, in a dynamic quorum too: its record is of version 0 (`LeaderState`).
    """
    for code, start, end in control_records(data, batch):
        if code not in (LEADER_CHANGE.key, KRAFT_VOTERS.key):
            continue
        try:
            kind = CONTROL_TYPES[code]
            values, _, _ = decode_record(kind, WireReader(data, start, end).int16(), data, start, end)
        except WireError:
            continue
        voters = tuple(
            (voter["voterId"], _directory(voter)) for voter in sorted(values["voters"], key=itemgetter("voterId"))
        )
        if kind is KRAFT_VOTERS:
            scan.voters = voters
        else:
            scan.elected_by = voters


def _directory(voter: Mapping[str, Any]) -> str | None:
    """A voter's directory id; none in a static quorum, and zero in a dynamic one that was static until it is known."""
    directory = voter.get("voterDirectoryId")
    return None if directory == DIRECTORY_MIGRATING else directory


def checkpoint_problem(data: bytes) -> str | None:
    """Why a snapshot file is incomplete, or None: every batch intact, a header first, a footer last (S§2.4, S§11)."""
    first: BatchHeader | None = None
    last: BatchHeader | None = None
    for frame in frames(data):
        if isinstance(frame, Damage):
            return f"byte {frame.position}: {frame.reason}"
        if not frame.intact:
            return f"byte {frame.position}: CRC stored {frame.crc:#010x}, computed {frame.computed_crc:#010x}"
        first, last = first or frame, frame
    if first is None or last is None:
        return "the file is empty"
    if not _has_control(data, first, SNAPSHOT_HEADER.key):
        return "it does not begin with a SnapshotHeader record"
    return None if _has_control(data, last, SNAPSHOT_FOOTER.key) else "the footer is missing"


def checkpoint_voters(data: bytes) -> Voters | None:
    """Voters by the KRaftVoters record in a snapshot's first batch; None for a static quorum's snapshot, which has none (KIP-853)."""
    first = next(frames(data), None)
    if not isinstance(first, BatchHeader) or not first.control:
        return None
    scan = SegmentScan(size=len(data))
    _read_quorum(scan, data, first)
    return scan.voters


def _has_control(data: bytes, batch: BatchHeader, code: int) -> bool:
    return batch.control and any(found == code for found, _, _ in control_records(data, batch))
