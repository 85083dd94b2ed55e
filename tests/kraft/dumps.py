"""Kafka's own dump of a capture (`dump-log-*.txt.gz`), parsed: the truth that the decoder is compared with."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.captures import VERSIONS, capture, stages

_BATCH = re.compile(
    r"^baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) count: \d+ .*partitionLeaderEpoch: (?P<epoch>\d+) .*"
    r"isControl: (?P<control>\w+) .*position: (?P<position>\d+) CreateTime: (?P<time>-?\d+) size: (?P<size>\d+) .*"
    r"crc: (?P<crc>\d+) isvalid: (?P<valid>\w+)"
)
_RECORD = re.compile(
    r"^\| offset: (?P<offset>\d+) CreateTime: (?P<time>-?\d+) keySize: -?\d+ valueSize: -?\d+ sequence: -1 "
    r"headerKeys: \[\] (?P<what>.*)$"
)
_CONTROL_NAMES = {
    "SnapshotHeader": "SNAPSHOT_HEADER",
    "SnapshotFooter": "SNAPSHOT_FOOTER",
    "LeaderChange": "LEADER_CHANGE",
    "KRaftVersion": "KRAFT_VERSION",
    "KRaftVoters": "KRAFT_VOTERS",
}


@dataclass(frozen=True)
class DumpedRecord:
    """One record line, with what its batch line says. `data` is None where the tool prints no body (LeaderChange)."""

    offset: int
    time: int
    epoch: int
    control: bool
    position: int
    type: str
    version: int | None
    data: dict[str, Any] | None
    text: str | None


def dumps() -> list[tuple[str, str, int]]:
    """(version, stage, controller) of each dump in the repository."""
    return [
        (version, stage, int(dump.name.removeprefix("dump-log-").removesuffix(".txt.gz")))
        for version in VERSIONS
        for stage in stages(version)
        for dump in sorted(capture(version, stage).glob("dump-log-*.txt.gz"))
    ]


def log_folder(version: str, stage: str, controller: int) -> Path:
    """A controller's `__cluster_metadata-0` folder in a capture."""
    return capture(version, stage) / "kraft" / str(controller) / "__cluster_metadata-0"


def read_dump(version: str, stage: str, controller: int) -> dict[str, list[DumpedRecord]]:
    """Records by file name."""
    return parse_dump(capture(version, stage) / f"dump-log-{controller}.txt.gz")


def parse_dump(path: Path) -> dict[str, list[DumpedRecord]]:
    """Records by file name; under "" when the dump names no file."""
    files: dict[str, list[DumpedRecord]] = {}
    current = files.setdefault("", [])
    batch: re.Match[str] | None = None
    for line in _lines(path):
        if line.startswith("# "):
            current = files.setdefault(line[2:], [])
        elif matched := _BATCH.match(line):
            batch = matched
        elif matched := _RECORD.match(line):
            assert batch is not None
            current.append(_record(matched, batch))
    return {name: records for name, records in files.items() if name or records}


def _record(line: re.Match[str], batch: re.Match[str]) -> DumpedRecord:
    what = line["what"]
    version: int | None = None
    data, text = None, None
    if what.startswith("payload: "):
        payload = json.loads(what.removeprefix("payload: "))
        name, version, data = payload["type"], payload["version"], payload["data"]
        text = what[what.index('"data":') + 7 : -1]
    elif what.startswith("controlType: "):
        name = what.removeprefix("controlType: ").partition("(")[0]
    else:
        kafka_name, _, text = what.partition(" ")
        name, data = _CONTROL_NAMES[kafka_name.rstrip(":")], json.loads(text)
    return DumpedRecord(
        offset=int(line["offset"]),
        time=int(line["time"]),
        epoch=int(batch["epoch"]),
        control=batch["control"] == "true",
        position=int(batch["position"]),
        type=name,
        version=version,
        data=data,
        text=text,
    )


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield line.rstrip("\n")
