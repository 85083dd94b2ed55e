"""Record bodies to values, driven by the declarations of `schemas.kraft` (S§2.3, S§2.5).

Values are plain Python: int, bool, str, float, bytes, None, lists and dicts keyed by Kafka's JSON names, in the
declared order. Uuids are already text. Tagged fields that are absent have their default.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schemas.kraft.fields import Body, Field, RecordType, WireType
from transforms.kraft.decode.wire import WireError, WireReader

Values = dict[str, Any]

# Begins the problem of a place that is whole, and of a kind, version, tag or code that no release in the tables writes.
UNKNOWN = "unknown: "
DEAD_BODY = "a body that only development versions of Kafka had; releases fail on it"

_SCALARS: dict[WireType, Callable[[WireReader], Any]] = {
    WireType.INT8: WireReader.int8,
    WireType.INT16: WireReader.int16,
    WireType.UINT16: WireReader.uint16,
    WireType.INT32: WireReader.int32,
    WireType.INT64: WireReader.int64,
    WireType.FLOAT64: WireReader.float64,
    WireType.BOOL: WireReader.boolean,
    WireType.UUID: WireReader.uuid,
}


class UnknownFormatError(WireError):
    """What no release in the tables writes; the message names it."""


def decode_record(
    record_type: RecordType, version: int, data: bytes, position: int, end: int
) -> tuple[Values, Body, list[str]]:
    """Decode the body at `data[position:end]`, all of it.

    Returns the values, the body that fitted (the present one, or a dead one of S§2.5) and notes on anomalies: unknown tags,
    unknown codes (both begin with UNKNOWN), a dead body. Raises UnknownFormatError for a version above the declared ones, another
    WireError when no body fits.
    """
    highest = record_type.body.highest
    if version < 0:
        raise WireError(f"the version is {version}")
    if version > highest:
        raise UnknownFormatError(f"{record_type.name} of version {version}, known up to {highest}")
    reader = WireReader(data, position, end)
    try:
        return _decode_whole(record_type.body, version, reader), record_type.body, reader.notes
    except WireError:
        for body in record_type.dead:
            attempt = WireReader(data, position, end)
            try:
                return _decode_whole(body, version, attempt), body, [*attempt.notes, DEAD_BODY]
            except WireError:
                continue
        raise


def _decode_whole(body: Body, version: int, reader: WireReader) -> Values:
    values = _struct(body.fields, version, reader, body.flexible)
    if reader.position != reader.end:
        raise WireError(f"{reader.end - reader.position} trailing bytes")
    return values


def _struct(fields: tuple[Field, ...], version: int, reader: WireReader, flexible: bool = True) -> Values:
    values: Values = {}
    for field in fields:
        if version < field.since:
            continue
        values[field.name] = list(field.default) if field.default == () else field.default
        if field.tag is None:
            values[field.name] = _field(field, version, reader)
    if flexible:
        _tagged_fields(fields, version, reader, values)
    return values


def _tagged_fields(fields: tuple[Field, ...], version: int, reader: WireReader, values: Values) -> None:
    for _ in range(reader.uvarint()):
        tag = reader.uvarint()
        size = reader.uvarint()
        end = reader.take(size) + size
        field = next((field for field in fields if field.tag == tag), None)
        if field is None:
            reader.notes.append(f"{UNKNOWN}tag {tag} of {size} bytes, skipped")
            continue
        if version < field.since:
            raise WireError(f"tag {tag} ({field.name}) is not valid in version {version}")
        values[field.name] = _tagged_value(field, version, reader, end - size, end)


def _tagged_value(field: Field, version: int, reader: WireReader, start: int, end: int) -> Any:
    inner = WireReader(reader.data, start, end)
    inner.notes = reader.notes
    value = _field(field, version, inner)
    if inner.position != end:
        raise WireError(
            f"tag {field.tag} ({field.name}) is {end - start} bytes long but its value {inner.position - start}"
        )
    return value


def _field(field: Field, version: int, reader: WireReader) -> Any:
    if not field.array:
        return _value(field, version, reader)
    length = reader.compact_length()
    if length is None:
        _require_nullable(field)
        return None
    return [_value(field, version, reader) for _ in range(length)]


def _value(field: Field, version: int, reader: WireReader) -> Any:
    if field.kind is WireType.STRUCT:
        return _struct(field.fields, version, reader)
    if field.kind is WireType.STRING or field.kind is WireType.BYTES:
        return _text_or_bytes(field, reader)
    value = _SCALARS[field.kind](reader)
    if field.enum is not None and value not in field.enum:
        reader.notes.append(f"{UNKNOWN}{field.name} {value}")
    return value


def _text_or_bytes(field: Field, reader: WireReader) -> str | bytes | None:
    length = reader.compact_length()
    if length is None:
        _require_nullable(field)
        return None
    raw = reader.raw(length)
    # Java's String constructor replaces malformed input too.
    return raw.decode("utf-8", "replace") if field.kind is WireType.STRING else raw


def _require_nullable(field: Field) -> None:
    if not field.nullable:
        raise WireError(f"{field.name} is null and must not be")
