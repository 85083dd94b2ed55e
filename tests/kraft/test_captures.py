"""Every record of every capture decodes equal to what Kafka's own tool printed, field by field and byte by byte."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from schemas.kraft.records import PARTITION, PARTITION_CHANGE, RECORD_TYPES
from tests.captures import VERSIONS, stages
from tests.kraft.dumps import DumpedRecord, dumps, log_folder, parse_dump, read_dump
from transforms.kraft.decode.decode_pass import Continuation, DecodePass
from transforms.kraft.decode.masking import UNMASKED
from transforms.kraft.decode.rows import PARTITION_BODY_COLUMNS, RECORD_SCHEMA, Origin
from transforms.kraft.decode.segments import DEFAULT_ROWS, decode_by_declarations, decode_checkpoint, decode_segment
from transforms.kraft.decode.spelling import to_json
from transforms.kraft.kernel.fast import decode_fast
from transforms.secrets import Fingerprinter

DATA = Path(__file__).parent / "data"
EVERY_VERSION = {
    (record.name, version)
    for record in RECORD_TYPES.values()
    # Later than the releases whose dumps are at hand.
    if record.name != "UNREGISTER_CONTROLLER_RECORD"
    for version in range(record.body.highest + 1)
}
HOT = {record.name: record for record in (PARTITION, PARTITION_CHANGE)}
Decode = Callable[[DecodePass, int], Iterator[pa.RecordBatch]]


def table(data: bytes, decode: Decode, masking: Any = UNMASKED, rows: int = DEFAULT_ROWS) -> pa.Table:
    walk = DecodePass(data, Origin(3000, "a.log"), masking, Continuation())
    return pa.Table.from_batches(list(decode(walk, rows)), RECORD_SCHEMA).combine_chunks()


def decode_file(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    if path.suffix == ".checkpoint":
        origin = Origin(3000, path.name, int(path.name[:20]))
        return [row for batch in decode_checkpoint(data, origin, UNMASKED) for row in batch.to_pylist()]
    return [row for batch in decode_segment(data, Origin(3000, path.name), UNMASKED) for row in batch.to_pylist()]


def body_text(row: dict[str, Any]) -> str:
    if row["type"] not in HOT:
        return str(row["data"])
    values = {name: row[column] for name, column in PARTITION_BODY_COLUMNS.items()}
    return to_json(HOT[row["type"]].body, row["version"], values)


def assert_same(row: dict[str, Any], dumped: DumpedRecord) -> None:
    assert row["problem"] is None
    assert (row["offset"], row["append_time"], row["epoch"]) == (dumped.offset, dumped.time, dumped.epoch)
    assert (row["control"], row["position"], row["type"]) == (dumped.control, dumped.position, dumped.type)
    if dumped.version is not None:
        assert row["version"] == dumped.version
    if dumped.text is not None:
        assert body_text(row) == dumped.text
        assert json.loads(body_text(row)) == dumped.data


@pytest.mark.parametrize("version", VERSIONS)
def test_every_record_equals_kafkas_own_dump(version: str) -> None:
    compared = 0
    for _, stage, controller in (key for key in dumps() if key[0] == version):
        folder = log_folder(version, stage, controller)
        for name, dumped in read_dump(version, stage, controller).items():
            rows = decode_file(folder / name)
            assert len(rows) == len(dumped) > 0
            for row, line in zip(rows, dumped, strict=True):
                assert_same(row, line)
            assert sum(row["length"] for row in rows) == (folder / name).stat().st_size
            compared += len(rows)
    # Each version's captures hold well over ten thousand records; fewer would mean that files were passed over.
    assert compared > 10_000


def test_records_of_4_4_equal_kafkas_own_dump() -> None:
    """An unregistered controller among them, which no dump of an earlier release holds."""
    seen: set[str] = set()
    for name, dumped in read_dump("4.4.0-kraft", "13-controller-unregistered", 3001).items():
        rows = decode_file(log_folder("4.4.0-kraft", "13-controller-unregistered", 3001) / name)
        assert len(rows) == len(dumped) > 0
        for row, line in zip(rows, dumped, strict=True):
            assert_same(row, line)
            seen.add(line.type)
    assert "UNREGISTER_CONTROLLER_RECORD" in seen


@pytest.mark.parametrize("path", sorted(DATA.glob("*.log.gz")), ids=lambda path: path.name)
def test_every_record_type_as_kafka_writes_and_prints_it(path: Path) -> None:
    data = gzip.decompress(path.read_bytes())
    [dumped] = parse_dump(path.with_name(path.name.replace(".log.", ".txt."))).values()
    for decode in (decode_by_declarations, decode_fast):
        rows = table(data, decode).to_pylist()
        assert [row["offset"] for row in rows if row["problem"] is None] == list(range(len(dumped)))
        for row, line in zip([row for row in rows if row["problem"] is None], dumped, strict=True):
            assert_same(row, line)
    seen = {(record.type, record.version) for record in dumped if not record.control}
    release = int(path.name.split("-")[2].split(".")[0])
    newer = {("REGISTER_BROKER_RECORD", 4), ("BROKER_REGISTRATION_CHANGE_RECORD", 3), ("CLEAR_ELR_RECORD", 0)}
    assert seen == EVERY_VERSION - {("ACCESS_CONTROL_RECORD", 0)} - (newer if release < 4 else set())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_kernel_gives_the_rows_of_the_declarations(version: str) -> None:
    for stage in stages(version)[1:]:
        for controller in (3000, 3001, 3002):
            for log in sorted(log_folder(version, stage, controller).glob("*.log")):
                data = log.read_bytes()
                for masking in (UNMASKED, Fingerprinter(b"key")):
                    fast = table(data, decode_fast, masking)
                    fast.validate(full=True)
                    assert fast.equals(table(data, decode_by_declarations, masking))
                assert table(data, decode_fast, rows=64).equals(table(data, decode_fast))


def test_leader_changes_name_leader_and_voters() -> None:
    seen = 0
    for key in dumps():
        for log in sorted(log_folder(*key).glob("*.log")):
            for row in decode_file(log):
                if row["type"] == "LEADER_CHANGE":
                    body = json.loads(row["data"])
                    assert {voter["voterId"] for voter in body["voters"]} == {3000, 3001, 3002}
                    assert body["leaderId"] in (3000, 3001, 3002)
                    assert row["version"] == body["version"] == 0
                    seen += 1
    assert seen > 0
