"""Whatever a record can hold survives encoding and decoding, in both decoders, for every type and version."""

from __future__ import annotations

import base64
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from schemas.kraft.control import CONTROL_TYPES, FOREIGN_CONTROL_KEYS
from schemas.kraft.fields import Body, Field, RecordType, WireType
from schemas.kraft.records import PARTITION_TYPES, RECORD_TYPES, USER_SCRAM_CREDENTIAL
from tests.kraft.encoder import batch, control_record, data_value, encode_body, uvarint
from transforms.kraft.decode.codec import DEAD_BODY, decode_record
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.masking import UNMASKED
from transforms.kraft.decode.rows import PARTITION_BODY_COLUMNS, RECORD_SCHEMA, Origin
from transforms.kraft.decode.segments import decode_by_declarations
from transforms.kraft.decode.spelling import java_double, to_json
from transforms.kraft.decode.wire import WireError
from transforms.kraft.kernel.fast import decode_fast

VERSIONS = [(record, version) for record in RECORD_TYPES.values() for version in range(record.body.highest + 1)]
CONTROL = [
    (record, version)
    for record in CONTROL_TYPES.values()
    if record.key not in FOREIGN_CONTROL_KEYS
    for version in range(record.body.highest + 1)
]
UNKNOWN_TAG = 99
_RANGES = {WireType.INT8: 7, WireType.INT16: 15, WireType.INT32: 31, WireType.INT64: 63}


def ids(value: Any) -> str:
    return value.name if isinstance(value, RecordType) else str(value)


def scalars(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.kind is WireType.STRUCT:
        return st.fixed_dictionaries(members(field.fields, version))
    if field.enum is not None:
        return st.sampled_from(sorted(field.enum))
    if field.kind in _RANGES:
        bits = _RANGES[field.kind]
        return st.integers(-(1 << bits), (1 << bits) - 1)
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    return {
        WireType.UINT16: st.integers(0, 65535),
        WireType.BOOL: st.booleans(),
        WireType.FLOAT64: st.floats(allow_nan=False),
        WireType.UUID: st.binary(min_size=16, max_size=16).map(uuid_text),
        WireType.STRING: text,
        WireType.BYTES: st.binary(max_size=40),
    }[field.kind]


def uuid_text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw)[:22].decode()


def values_of(field: Field, version: int) -> st.SearchStrategy[Any]:
    one = scalars(field, version)
    value = st.lists(one, max_size=5) if field.array else one
    return st.none() | value if field.nullable else value


def members(fields: tuple[Field, ...], version: int) -> dict[str, st.SearchStrategy[Any]]:
    return {field.name: values_of(field, version) for field in fields if version >= field.since}


def bodies(body: Body, version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(members(body.fields, version))


def decode(record: RecordType, version: int, raw: bytes) -> tuple[Any, Body, list[str]]:
    return decode_record(record, version, raw, 0, len(raw))


def both(data: bytes) -> list[dict[str, Any]]:
    """Decode with the declarations and with the kernel; they must agree."""
    tables = [
        pa.Table.from_batches(
            list(decoder(DecodePass(data, Origin(1, "a.log"), UNMASKED, Continuation()), 1000)), RECORD_SCHEMA
        )
        for decoder in (decode_by_declarations, decode_fast)
    ]
    assert tables[1].combine_chunks().equals(tables[0].combine_chunks())
    assert sum(tables[0].column("length").to_pylist()) == len(data)
    rows: list[dict[str, Any]] = tables[0].to_pylist()
    return rows


def body_of(row: dict[str, Any], record: RecordType) -> Any:
    if record not in PARTITION_TYPES:
        return json.loads(row["data"])
    return {field.name: row[PARTITION_BODY_COLUMNS[field.name]] for field in record.body.fields}


def expected(record: RecordType, version: int, values: dict[str, Any]) -> Any:
    if record not in PARTITION_TYPES:
        return json.loads(to_json(record.body, version, values))
    return {field.name: values.get(field.name, field.default) for field in record.body.fields}


@pytest.mark.parametrize(("record", "version"), VERSIONS, ids=ids)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_type_and_version(record: RecordType, version: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(bodies(record.body, version), min_size=1, max_size=3))
    records = [(None, data_value(record, version, one)) for one in values]
    rows = both(batch(records, base_offset=7, epoch=3))
    assert [row["problem"] for row in rows] == [None] * len(values)
    for index, (row, one) in enumerate(zip(rows, values, strict=True)):
        assert (row["offset"], row["epoch"], row["type"], row["version"]) == (7 + index, 3, record.name, version)
        decoded, body, notes = decode(record, version, encode_body(record.body, version, one))
        assert (decoded, body, notes) == (one, record.body, [])
        assert body_of(row, record) == expected(record, version, one)


@pytest.mark.parametrize(("record", "version"), CONTROL, ids=ids)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_control_record(record: RecordType, version: int, data: st.DataObject) -> None:
    values = {**data.draw(bodies(record.body, version)), "version": version}
    [row] = both(batch([control_record(record.name, values)], base_offset=0, attributes=0x20))
    assert (row["control"], row["type"], row["version"], row["problem"]) == (True, record.name, version, None)
    assert json.loads(row["data"]) == values


@pytest.mark.parametrize(("record", "version"), VERSIONS, ids=ids)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_an_unknown_tag_is_a_finding_and_the_record_stays(
    record: RecordType, version: int, data: st.DataObject
) -> None:
    values = data.draw(bodies(record.body, version))
    value = data_value(record, version, values, [(UNKNOWN_TAG, b"new")])
    good, finding = both(batch([(None, value)], base_offset=5))
    assert good["problem"] is None
    assert body_of(good, record) == expected(record, version, values)
    assert finding["problem"] == f"unknown: {record.name} v{version}: tag {UNKNOWN_TAG} of 3 bytes, skipped"
    assert (finding["offset"], finding["length"], finding["data"]) == (5, 0, None)


@pytest.mark.parametrize(("record", "version"), VERSIONS, ids=ids)
def test_trailing_bytes_and_missing_bytes_are_problems(record: RecordType, version: int) -> None:
    values = minimal(record.body.fields, version)
    whole = data_value(record, version, values)
    for value in (whole + b"\0", whole[:-1]):
        [row] = both(batch([(None, value)], base_offset=0))
        assert row["type"] == record.name
        assert row["problem"].startswith(f"{record.name}: ")
        assert row["data"] is None
        assert row["partition_id"] is None


def minimal(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    zero: dict[WireType, Any] = {
        WireType.UUID: "A" * 22,
        WireType.STRING: "",
        WireType.BYTES: b"salt",
        WireType.BOOL: False,
        WireType.FLOAT64: 0.0,
    }
    values: dict[str, Any] = {}
    for field in fields:
        if version < field.since:
            continue
        if field.tag is not None or field.array:
            values[field.name] = field.default if field.tag is not None else []
        else:
            values[field.name] = min(field.enum) if field.enum is not None else zero.get(field.kind, 0)
    return values


def test_unknown_types_versions_and_frames_are_problems() -> None:
    topic = data_value(RECORD_TYPES[2], 0, {"name": "t", "topicId": "A" * 22})
    cases = {
        uvarint(1) + uvarint(13) + uvarint(0): "unknown: record type 13",
        uvarint(1) + uvarint(4000) + uvarint(0): "unknown: record type 4000",
        uvarint(1) + uvarint(2) + uvarint(1): "unknown: TOPIC_RECORD of version 1, known up to 0",
        uvarint(1) + uvarint(2) + uvarint(1 << 20): "unknown: TOPIC_RECORD of version 1048576, known up to 0",
        uvarint(2) + topic[1:]: "unknown: frame of version 2, known up to 1",
        uvarint(0) + topic[1:]: "record: frame version 0 (the preview of Kafka 2.8)",
        b"": "record: 1 bytes needed",
    }
    for value, says in cases.items():
        before, row, after = both(batch([(None, topic), (None, value), (None, topic)], base_offset=0))
        assert row["problem"].startswith(says)
        assert (row["offset"], before["problem"], after["problem"]) == (1, None, None)


def test_unknown_codes_keep_the_record() -> None:
    values = {"zkMigrationState": 9}
    good, finding = both(batch([(None, data_value(RECORD_TYPES[21], 0, values))], base_offset=0))
    assert json.loads(good["data"]) == values
    assert finding["problem"] == "unknown: ZK_MIGRATION_STATE_RECORD v0: zkMigrationState 9"


def test_dead_bodies_are_read() -> None:
    token = {
        "owner": "User:a",
        "renewers": ["User:b"],
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expirationTimestamp": 3,
        "tokenId": "x",
    }
    record = RECORD_TYPES[10]
    value = uvarint(1) + uvarint(10) + uvarint(0) + encode_body(record.dead[0], 0, token)
    row, finding = both(batch([(None, value)], base_offset=0))
    assert row["problem"] is None
    assert json.loads(row["data"]) == token
    assert finding["problem"] == f"DELEGATION_TOKEN_RECORD v0: {DEAD_BODY}"
    scram = {
        "name": "u",
        "credentialInfos": [{"mechanism": 1, "salt": b"s", "saltedPassword": b"p", "iterations": 4096}],
    }
    body = USER_SCRAM_CREDENTIAL.dead[-1]
    decoded, used, _ = decode(USER_SCRAM_CREDENTIAL, 0, encode_body(body, 0, scram))
    assert (decoded, used) == (scram, body)


def test_huge_lists() -> None:
    values = minimal(RECORD_TYPES[3].body.fields, 2) | {
        "replicas": list(range(100_000)),
        "directories": ["B" * 21 + "A"] * 50_000,
        "lastKnownElr": [-1] * 70_000,
    }
    [row] = both(batch([(None, data_value(RECORD_TYPES[3], 2, values))], base_offset=0))
    assert row["replicas"] == values["replicas"]
    assert len(row["directories"]) == 50_000
    assert row["last_known_elr"] == values["lastKnownElr"]
    quota = {
        "entity": [{"entityType": "user", "entityName": None}] * 9_000,
        "key": "k" * 300_000,
        "value": 1.5,
        "remove": False,
    }
    [row] = both(batch([(None, data_value(RECORD_TYPES[14], 0, quota))], base_offset=0))
    assert json.loads(row["data"]) == quota


def test_batches_larger_than_the_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    values = minimal(RECORD_TYPES[3].body.fields, 1) | {"replicas": [1, 2, 3], "directories": ["B" * 21 + "A"] * 3}
    partition, nothing = data_value(RECORD_TYPES[3], 1, values), data_value(RECORD_TYPES[20], 0, {})
    data = (
        batch([(None, nothing)] * 9_000, 0)
        + batch([(None, partition)] * 9_000, 9_000)
        + batch([(None, nothing)], 18_000)
    )
    both(data)
    # A snapshot's batches are of this kind: the kernel has to take them, or a large one would take minutes.
    monkeypatch.setattr(DecodePass, "frame", None)
    rows = sum(
        part.num_rows for part in decode_fast(DecodePass(data, Origin(1, "a.log"), UNMASKED, Continuation()), 1000)
    )
    assert rows == 18_001


@pytest.mark.parametrize("length", [1 << 27, (1 << 31) - 2, 0xFFFFFFFF])
def test_absurd_lengths_are_refused_without_allocating(length: int) -> None:
    for head in (b"", b"\0" * 20):
        with pytest.raises(WireError, match="a length of"):
            decode(RECORD_TYPES[3 if head else 2], 0, head + uvarint(length))


@settings(max_examples=300, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e7)
@example(-1e-3)
@example(4.9e-324)
@example(1.7976931348623157e308)
@example(0.1 + 0.2)
@example(-0.0)
def test_doubles_are_spelled_as_java_spells_them(value: float) -> None:
    text = java_double(value)
    assert float(text) == value
    assert math.copysign(1, float(text)) == math.copysign(1, value)
    mantissa, _, exponent = text.lstrip("-").partition("E")
    whole, _, fraction = mantissa.partition(".")
    assert fraction
    assert fraction == "0" or not fraction.endswith("0")
    assert bool(exponent) == (value != 0 and not 1e-3 <= abs(value) < 1e7)
    assert not exponent or len(whole) == 1
    quota = {"entity": [], "key": "k", "value": value, "remove": False}
    [row] = both(batch([(None, data_value(RECORD_TYPES[14], 0, quota))], base_offset=0))
    assert row["data"] == f'{{"entity":[],"key":"k","value":{text},"remove":false}}'


def test_known_spellings_of_doubles() -> None:
    # Double.toString of Java 19 and later.
    known = {
        1048576.0: "1048576.0", 9999999.0: "9999999.0", 1e7: "1.0E7", 12345678.0: "1.2345678E7", 0.001: "0.001",
        0.0009: "9.0E-4", 1e21: "1.0E21", 123456789012.5: "1.234567890125E11", -2.5: "-2.5", 0.0: "0.0",
    }  # fmt: skip
    assert {value: java_double(value) for value in known} == known
    assert [java_double(value) for value in (math.nan, math.inf, -math.inf)] == ['"NaN"', '"Infinity"', '"-Infinity"']
