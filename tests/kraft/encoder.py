"""An encoder for records and batches, driven by the declarations that drive the decoder."""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence
from typing import Any

import google_crc32c

from schemas.kraft.control import CONTROL_TYPES
from schemas.kraft.fields import Body, Field, RecordType, WireType
from schemas.kraft.records import RECORD_TYPES

BY_NAME: dict[str, RecordType] = {record.name: record for record in RECORD_TYPES.values()}
CONTROL_BY_NAME: dict[str, RecordType] = {record.name: record for record in CONTROL_TYPES.values()}
_FORMATS = {
    WireType.INT8: ">b",
    WireType.INT16: ">h",
    WireType.UINT16: ">H",
    WireType.INT32: ">i",
    WireType.INT64: ">q",
    WireType.FLOAT64: ">d",
    WireType.BOOL: ">?",
}
UnknownTags = Sequence[tuple[int, bytes]]


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    return uvarint(value << 1 if value >= 0 else (-value << 1) - 1)


def encode_body(body: Body, version: int, values: dict[str, Any], unknown_tags: UnknownTags = ()) -> bytes:
    return _struct(body.fields, version, values, body.flexible, unknown_tags)


def data_value(record: RecordType, version: int, values: dict[str, Any], unknown_tags: UnknownTags = ()) -> bytes:
    frame = uvarint(1) + uvarint(record.key) + uvarint(version)
    return frame + encode_body(record.body, version, values, unknown_tags)


def data_record(name: str, version: int, values: dict[str, Any]) -> tuple[bytes | None, bytes]:
    return None, data_value(BY_NAME[name], version, values)


def control_record(name: str, values: dict[str, Any]) -> tuple[bytes | None, bytes]:
    record = CONTROL_BY_NAME[name]
    return struct.pack(">hh", 0, record.key), encode_body(record.body, values["version"], values)


def batch(
    records: Sequence[tuple[bytes | None, bytes]],
    base_offset: int,
    epoch: int = 1,
    time: int = 1_700_000_000_000,
    attributes: int = 0,
) -> bytes:
    """A batch of (key, value) records with a right CRC."""
    body = b"".join(_record(index, key, value) for index, (key, value) in enumerate(records))
    checked = struct.pack(">hiqqqhii", attributes, len(records) - 1, time, time, -1, -1, -1, len(records)) + body
    crc = google_crc32c.value(checked)
    head = struct.pack(">iBI", epoch, 2, crc)
    return struct.pack(">qi", base_offset, len(head) + len(checked)) + head + checked


def _record(index: int, key: bytes | None, value: bytes) -> bytes:
    key_part = varint(-1) if key is None else varint(len(key)) + key
    body = b"\0" + varint(0) + varint(index) + key_part + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def _struct(
    fields: Sequence[Field], version: int, values: dict[str, Any], flexible: bool = True, unknown: UnknownTags = ()
) -> bytes:
    present = [field for field in fields if version >= field.since]
    out = b"".join(_field(field, version, values[field.name]) for field in present if field.tag is None)
    if not flexible:
        return out
    tags = [
        (field.tag, _field(field, version, values[field.name]))
        for field in present
        if field.tag is not None and values[field.name] != _default(field)
    ]
    tags = sorted([*tags, *unknown])
    return out + uvarint(len(tags)) + b"".join(uvarint(tag) + uvarint(len(raw)) + raw for tag, raw in tags)


def _default(field: Field) -> Any:
    return [] if field.default == () else field.default


def _field(field: Field, version: int, value: Any) -> bytes:
    if not field.array:
        return _value(field, version, value)
    if value is None:
        return uvarint(0)
    return uvarint(len(value) + 1) + b"".join(_value(field, version, item) for item in value)


def _value(field: Field, version: int, value: Any) -> bytes:
    if field.kind is WireType.STRUCT:
        return _struct(field.fields, version, value)
    if field.kind is WireType.UUID:
        return base64.urlsafe_b64decode(value + "==")
    if field.kind in (WireType.STRING, WireType.BYTES):
        if value is None:
            return uvarint(0)
        raw: bytes = value.encode("utf-8") if field.kind is WireType.STRING else value
        return uvarint(len(raw) + 1) + raw
    return struct.pack(_FORMATS[field.kind], value)
