"""One pass over the frames of a file, record by record, driven by the declarations; reports faults with their place."""

from __future__ import annotations

from dataclasses import dataclass, replace

from schemas.kraft.control import CONTROL_TYPES, FOREIGN_CONTROL_KEYS
from schemas.kraft.enums import COMPRESSION_CODECS
from schemas.kraft.fields import RecordType
from schemas.kraft.records import PARTITION_TYPES, RECORD_TYPES
from transforms.kraft.decode.codec import UNKNOWN, UnknownFormatError, decode_record
from transforms.kraft.decode.framing import HEADER_SIZE, SEARCH_BUDGET, BatchHeader, Damage, Frame, frame_at
from transforms.kraft.decode.masking import Masking, mask
from transforms.kraft.decode.rows import PARTITION_BODY_COLUMNS, Origin, Rows
from transforms.kraft.decode.spelling import to_json
from transforms.kraft.decode.wire import WireError, WireReader

# Loading the compiled kernel takes longer than reading this much by the declarations alone.
FAST_FROM_BYTES = 256 * 1024
_FRAME_VERSION = 1
_INT64 = 1 << 63
_INT16 = 1 << 15


@dataclass(frozen=True)
class Continuation:
    """What precedes the bytes: where in the file they are, which offset and epoch must follow. None is unknown."""

    position: int = 0
    next_offset: int | None = None
    epoch: int | None = None


class DecodePass:
    """State of one pass over one file; rows gather in `rows`."""

    def __init__(self, data: bytes, origin: Origin, masking: Masking, continuation: Continuation) -> None:
        self.data = data
        self.origin = origin
        self.masking = masking
        self.rows = Rows(origin)
        self.base = continuation.position
        self.next_offset = continuation.next_offset
        self.epoch = continuation.epoch
        self.first_type: str | None = None
        self.last_type: str | None = None
        self._budget = [SEARCH_BUDGET]
        # The highest epoch before one that fell: what rises up to it again is not new.
        self._fell_from = -1

    def frame_at(self, position: int) -> Frame:
        """Read the frame that begins at `position`."""
        return frame_at(self.data, position, self._budget)

    def frame(self, frame: BatchHeader | Damage) -> None:
        """Add the rows of one frame."""
        if isinstance(frame, Damage):
            self.last_type = None
            self.rows.add(position=self.base + frame.position, length=frame.size, problem=frame.reason)
            return
        frame = self._in_its_epoch(self._at_its_place(frame))
        problem = _whole_batch_problem(frame, self.next_offset)
        self._check_sequence(frame)
        if problem is None:
            _Records(self, frame).add_rows()
        else:
            self.last_type = None
            self.finding(frame.position, problem, frame, length=frame.size)
        if frame.intact:
            self.next_offset = max(self.next_offset or 0, frame.next_offset)

    def finding(self, position: int, problem: str, batch: BatchHeader | None = None, length: int = 0) -> None:
        """Add a row about bytes, with the known fields of their batch."""
        known = (
            {}
            if batch is None
            else {
                "offset": batch.base_offset,
                "epoch": batch.epoch,
                "append_time": batch.max_timestamp,
                "control": batch.control,
            }
        )
        self.rows.add(position=self.base + position, length=length, problem=problem, **known)

    def _at_its_place(self, batch: BatchHeader) -> BatchHeader:
        """The batch with the offset that the batches around leave it, where its own is another: the CRC does not cover it."""
        place, size, end = self.next_offset, batch.next_offset - batch.base_offset, batch.position + batch.size
        if not batch.intact or place is None or batch.base_offset == place or size <= 0 or end >= len(self.data):
            return batch
        following = self.frame_at(end)
        if isinstance(following, Damage) or not following.intact or following.base_offset != place + size:
            return batch
        placed = replace(batch, base_offset=place)
        problem = f"baseOffset {batch.base_offset} is damaged: the batch stands where offset {place} belongs"
        self.finding(batch.position, problem, placed)
        return placed

    def _in_its_epoch(self, batch: BatchHeader) -> BatchHeader:
        """The batch with the epoch of the one before it, where its own is later: each begins with an election, a control batch."""
        known, at_its_place = self.epoch, batch.base_offset == self.next_offset
        if not batch.intact or batch.control or known is None or not at_its_place:
            return batch
        if batch.epoch <= max(known, self._fell_from):
            return batch
        placed = replace(batch, epoch=known)
        self.finding(
            batch.position, f"leader epoch {batch.epoch} is damaged: no election raised it from {known}", placed
        )
        return placed

    def _check_sequence(self, batch: BatchHeader) -> None:
        if not batch.intact:
            return
        if self.next_offset is not None and batch.base_offset > self.next_offset:
            gap = batch.base_offset - self.next_offset
            self.finding(batch.position, f"gap: {gap} offsets missing before offset {batch.base_offset}", batch)
        if self.epoch is not None and batch.epoch < self.epoch:
            self.finding(batch.position, f"leader epoch falls from {self.epoch} to {batch.epoch}", batch)
            self._fell_from = max(self._fell_from, self.epoch)
        self.epoch = batch.epoch
        if batch.transactional:
            self.finding(batch.position, "a batch of a client transaction, foreign to a metadata log", batch)


def _whole_batch_problem(batch: BatchHeader, next_offset: int | None) -> str | None:
    """Why none of the batch's records can be used, or None."""
    if not batch.intact:
        return f"CRC stored {batch.crc:#010x}, computed {batch.computed_crc:#010x}"
    if batch.compression:
        codec = COMPRESSION_CODECS[batch.compression]
        return f"compressed with {codec}: controllers never compress the metadata log"
    if next_offset is not None and batch.base_offset < next_offset:
        return f"overlap: offset {batch.base_offset} comes again after offset {next_offset - 1}"
    if batch.count == 0 and batch.size == HEADER_SIZE:
        return "a batch without records"
    return None


class _Records:
    """The records of one intact batch."""

    def __init__(self, decoding: DecodePass, batch: BatchHeader) -> None:
        self.decoding = decoding
        self.batch = batch
        self.reader = WireReader(decoding.data, batch.position + HEADER_SIZE, batch.position + batch.size)
        self.accounted = batch.position

    def add_rows(self) -> None:
        """Add a row per record, and one for bytes of the batch that are not part of one."""
        index, reader, batch = 0, self.reader, self.batch
        while index < batch.count and reader.position < reader.end:
            start = reader.position
            try:
                size = reader.varint()
                start_of_body = reader.take(size)
            except WireError as error:
                reader.position = start
                self._finish(index, f"record {index + 1} of {batch.count} can't be read: {error}")
                return
            self._record(index, start_of_body, start_of_body + size)
            index += 1
        if index != batch.count or reader.position != reader.end or batch.last_offset_delta != batch.count - 1:
            left = reader.end - reader.position
            self._finish(
                index,
                f"batch of {batch.count} records with lastOffsetDelta {batch.last_offset_delta} holds {index} and "
                f"{left} bytes more",
            )

    def _finish(self, index: int, problem: str) -> None:
        self._row(index, self.batch.position + self.batch.size, problem=problem)

    def _row(self, delta: int, end: int, **columns: object) -> None:
        batch, decoding = self.batch, self.decoding
        offset = batch.base_offset + delta
        decoding.rows.add(
            position=decoding.base + batch.position,
            length=end - self.accounted,
            offset=offset if -_INT64 <= offset < _INT64 else None,
            epoch=batch.epoch,
            append_time=batch.max_timestamp,
            control=batch.control,
            **columns,
        )
        self.accounted = end

    def _record(self, index: int, start: int, end: int) -> None:
        """Decode the record whose body (after its length) is `data[start:end]`."""
        reader = WireReader(self.decoding.data, start, end)
        decoding = self.decoding
        name, version, delta = None, None, index
        try:
            key, value_end, delta = _record_fields(reader, end)
            if delta != index:
                reader.notes.append(f"offset delta {delta} at place {index} of the batch")
            record_type, version = (
                _control_type(key, reader, value_end) if self.batch.control else _data_type(key, reader)
            )
            name = record_type.name
            columns, notes = _body(record_type, version, reader, value_end, decoding.masking)
        except _UnknownTypeError as error:
            name = error.name
            self._row(delta, end, type=name, version=error.version, problem=f"{UNKNOWN}{error}")
        except UnknownFormatError as error:
            self._row(delta, end, type=name, version=_as_int16(version), problem=f"{UNKNOWN}{error}")
        except WireError as error:
            self._row(delta, end, type=name, version=_as_int16(version), problem=f"{name or 'record'}: {error}")
        else:
            self._row(delta, end, type=name, version=version, **columns)
            for note in reader.notes + notes:
                self._row(delta, end, type=name, version=version, problem=_problem(f"{name} v{version}", note))
        decoding.first_type = decoding.first_type or name or "?"
        decoding.last_type = name


def _problem(record: str, note: str) -> str:
    """A note about a record, as the row's problem."""
    return f"{UNKNOWN}{record}: {note.removeprefix(UNKNOWN)}" if note.startswith(UNKNOWN) else f"{record}: {note}"


class _UnknownTypeError(UnknownFormatError):
    """A record type that no release in the tables has. `name` and `version` are those of its row."""

    def __init__(self, what: str, name: str, version: int | None) -> None:
        super().__init__(what)
        self.name = name
        self.version = version


def _record_fields(reader: WireReader, end: int) -> tuple[bytes | None, int, int]:
    """Read a record and leave the reader at its value. Returns the key, the end of the value and the offset delta.

    Headers are skipped with a note: no controller writes any.
    """
    reader.int8()
    reader.varlong()
    delta = reader.varint()
    key_length = reader.varint()
    key = None if key_length < 0 else reader.raw(key_length)
    value_length = reader.varint()
    if value_length < 0:
        raise WireError("the value is null")
    start = reader.take(value_length)
    value_end = start + value_length
    if reader.varint() != 0:
        reader.notes.append("record headers, which no controller writes")
    elif reader.position != end:
        raise WireError(f"{end - reader.position} trailing bytes in the record")
    reader.position, reader.end = start, value_end
    return key, value_end, delta


def _data_type(key: bytes | None, reader: WireReader) -> tuple[RecordType, int]:
    if key is not None:
        reader.notes.append(f"a key of {len(key)} bytes, which no controller writes")
    frame = reader.uvarint()
    if frame > _FRAME_VERSION:
        raise UnknownFormatError(f"frame of version {frame}, known up to {_FRAME_VERSION}")
    if frame < _FRAME_VERSION:
        raise WireError(f"frame version {frame} (the preview of Kafka 2.8) instead of {_FRAME_VERSION}")
    api_key = reader.uvarint()
    version = reader.uvarint()
    if api_key not in RECORD_TYPES:
        raise _UnknownTypeError(f"record type {api_key}", f"UNKNOWN({api_key})", _as_int16(version))
    return RECORD_TYPES[api_key], version


def _control_type(key: bytes | None, reader: WireReader, end: int) -> tuple[RecordType, int]:
    if key is None or len(key) < 4:
        raise WireError("a control record without a type")
    code = int.from_bytes(key[2:4], "big", signed=True)
    if code not in CONTROL_TYPES:
        raise _UnknownTypeError(f"control record type {code}", f"UNKNOWN_CONTROL({code})", None)
    record_type = CONTROL_TYPES[code]
    if code in FOREIGN_CONTROL_KEYS:
        reader.notes.append("a marker of a client transaction, foreign to a metadata log")
    return record_type, WireReader(reader.data, reader.position, end).int16()


def _body(
    record_type: RecordType, version: int, reader: WireReader, end: int, masking: Masking
) -> tuple[dict[str, object], list[str]]:
    values, body, notes = decode_record(record_type, version, reader.data, reader.position, end)
    if record_type in PARTITION_TYPES:
        return {PARTITION_BODY_COLUMNS[name]: value for name, value in values.items()}, notes
    return {"data": to_json(body, version, mask(body, values, masking))}, notes


def _as_int16(version: int | None) -> int | None:
    return version if version is not None and -_INT16 <= version < _INT16 else None
