"""Every record of every capture decodes equal to what Kafka's own tool printed, field by field and byte by byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.kraft.records import PARTITION, PARTITION_CHANGE
from tests.kraft.dumps import DumpedRecord, dumps, read_dump
from transforms.kraft.masking import UNMASKED
from transforms.kraft.rows import HOT_COLUMNS, Origin
from transforms.kraft.segments import decode_checkpoint, decode_segment
from transforms.kraft.spelling import to_json

HOT = {record.name: record for record in (PARTITION, PARTITION_CHANGE)}


def decode_file(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    origin = Origin(3000, path.name, int(path.name[:20]) if path.suffix == ".checkpoint" else None)
    decode = decode_checkpoint if path.suffix == ".checkpoint" else decode_segment
    return [row for batch in decode(data, origin, UNMASKED) for row in batch.to_pylist()]


def body_text(row: dict[str, Any]) -> str:
    if row["type"] not in HOT:
        return str(row["data"])
    record = HOT[row["type"]]
    values = {name: row[column] for name, column in HOT_COLUMNS.items()}
    return to_json(record.body, row["version"], values)


def assert_same(row: dict[str, Any], dumped: DumpedRecord) -> None:
    assert row["problem"] is None
    assert (row["offset"], row["append_time"], row["epoch"]) == (dumped.offset, dumped.time, dumped.epoch)
    assert (row["control"], row["position"], row["type"]) == (dumped.control, dumped.position, dumped.type)
    if dumped.version is not None:
        assert row["version"] == dumped.version
    if dumped.text is not None:
        assert body_text(row) == dumped.text
        assert json.loads(body_text(row)) == dumped.data


@pytest.mark.parametrize(("capture", "controller"), dumps(), ids=lambda value: getattr(value, "name", str(value)))
def test_every_record_equals_kafkas_own_dump(capture: Path, controller: int) -> None:
    folder = capture / "kraft" / str(controller) / "__cluster_metadata-0"
    dump = read_dump(capture, controller)
    assert dump
    for name, dumped in dump.items():
        rows = decode_file(folder / name)
        assert len(rows) == len(dumped)
        for row, line in zip(rows, dumped, strict=True):
            assert_same(row, line)
        assert sum(row["length"] for row in rows) == (folder / name).stat().st_size


def test_leader_changes_name_leader_and_voters() -> None:
    seen = 0
    for capture, controller in dumps():
        folder = capture / "kraft" / str(controller) / "__cluster_metadata-0"
        for log in sorted(folder.glob("*.log")):
            for row in decode_file(log):
                if row["type"] == "LEADER_CHANGE":
                    body = json.loads(row["data"])
                    assert body["leaderId"] in {voter["voterId"] for voter in body["voters"]}
                    assert {voter["voterId"] for voter in body["voters"]} == {3000, 3001, 3002}
                    assert row["version"] == body["version"] == 0
                    seen += 1
    assert seen > 0


def test_the_captures_are_there() -> None:
    assert len(dumps()) >= 3
