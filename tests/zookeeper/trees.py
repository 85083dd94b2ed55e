"""Trees and readers that the ZooKeeper tests share."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.sources.zookeeper.dump import read_dump
from tests.captures import VERSIONS, capture, stages
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.state import znodes_to_state
from transforms.zookeeper.read.znode import Znode

FINGERPRINT = Fingerprinter(b"test key")
# The password.encoder.secret of the captured brokers.
ENCODER_SECRET = "encoder-secret"
REDACTOR = Redactor(FINGERPRINT, (ENCODER_SECRET,))
EVERY_STAGE = [(version, stage) for version in VERSIONS for stage in stages(version)]
HEALTHY = [
    (version, stage)
    for version, stage in EVERY_STAGE
    if version in ("3.6.2", "3.9.1") and stage.split("-")[0] in ("4", "5", "6", "7", "9", "10", "11")
]


def dump_batches(version: str, stage: str, redactor: Redactor = REDACTOR) -> list[pa.RecordBatch]:
    """Bronze batches of a capture's live dump."""
    return list(read_dump(capture(version, stage) / "zookeeper.jsonl.gz", redactor))


def state_rows(batches: list[pa.RecordBatch], *, parsed: bool = True) -> list[dict[str, Any]]:
    """State rows of bronze batches; `row` parsed and without nulls."""
    rows = [row for batch in batches for row in znodes_to_state(batch).to_pylist()]
    for row in rows if parsed else ():
        if row["row"] is not None:
            row["row"] = json.loads(row["row"])
    return rows


def of(rows: list[dict[str, Any]], entity: str) -> list[dict[str, Any]]:
    """The `row` objects (or, for partitions, the rows themselves) of one entity."""
    return [row["row"] if row["row"] is not None else row for row in rows if row["entity"] == entity]


def codes(rows: list[dict[str, Any]]) -> list[str]:
    """Codes of all findings, sorted."""
    return sorted(row["code"] for row in of(rows, "findings"))


def znode(path: str, data: bytes | None, redactor: Redactor = REDACTOR, **stat: Any) -> Znode:
    """One znode as a source would hand it over."""
    text, redacted, problem = redactor.data(path, data)
    numbers = dict.fromkeys(("czxid", "mzxid", "pzxid", "ctime", "mtime"), 7)
    numbers |= dict.fromkeys(("version", "cversion", "aversion", "ephemeral_owner", "num_children"), 0)
    return Znode(
        path=path,
        data=text,
        data_is_null=data is None,
        data_length=len(data or b""),
        **{**numbers, **stat},
        acl=None,
        redacted=redacted,
        problem=problem,
    )


def state_of(path: str, data: bytes | None, **stat: Any) -> list[dict[str, Any]]:
    """State rows of one znode."""
    return state_rows([znode_batch([znode(path, data, **stat)])])


def raw_dump(folder: Path) -> dict[str, dict[str, Any]]:
    """A capture's dump as it was written, data decoded, by path."""
    with gzip.open(folder / "zookeeper.jsonl.gz", "rt", encoding="utf-8") as lines:
        znodes = [json.loads(line) for line in lines]
    for entry in znodes:
        encoded = entry.pop("data_base64")
        entry["data"] = None if encoded is None else base64.b64decode(encoded)
    return {entry["path"]: entry for entry in znodes}
