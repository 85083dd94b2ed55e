"""Controllers' logs with records appended, as a leader would have appended them."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.kraft.encoder import BY_NAME, batch, control_record, data_record

CONTROLLERS = ("3000", "3001", "3002")
SEGMENT = "__cluster_metadata-0/00000000000000000000.log"
Record = tuple[bytes | None, bytes]


def record(kind: str, /, version: int = 0, **values: Any) -> Record:
    """A record by Kafka's name for its type; what is not given has the field's default, or is empty."""
    fields = [field for field in BY_NAME[kind].body.fields if version >= field.since]
    return data_record(kind, version, {**{field.name: _nothing(field) for field in fields}, **values})


def _nothing(field: Any) -> Any:
    if field.tag is not None:
        return [] if field.default == () else field.default
    return [] if field.array else None


def writable_copy(folder: Path, target: Path) -> Path:
    """A copy of a capture's logs that may be changed."""
    shutil.copytree(folder, target)
    for path in [target, *target.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target


def append(
    logs: Path, records: Sequence[Record], time: int, epoch: int = 1, controllers: Iterable[str] = CONTROLLERS
) -> int:
    """Append one batch to the controllers' segments; returns its first offset."""
    offset = 0
    for controller in controllers:
        segment = logs / controller / SEGMENT
        data = segment.read_bytes()
        offset = next_offset(data)
        segment.write_bytes(data + batch(records, offset, epoch, time))
    return offset


def next_offset(data: bytes) -> int:
    """One past the last offset of a segment's whole batches."""
    position, following = 0, 0
    while position < len(data):
        base, length = struct.unpack_from(">qi", data, position)
        following = base + struct.unpack_from(">i", data, position + 23)[0] + 1
        position += 12 + length
    return following


def make_log(
    folder: Path, cluster_id: str, batches: Sequence[tuple[int, Sequence[Record]]], controller: int = 3000
) -> int:
    """A controller's log folder of its own: (time, records) a batch, epoch 1 from its leader change on; its end offset."""
    log = folder / str(controller) / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (log.parent / "meta.properties").write_text(f"version=1\nnode.id={controller}\ncluster.id={cluster_id}\n")
    voters = [{"voterId": controller}]
    leader = control_record(
        "LEADER_CHANGE", {"version": 0, "leaderId": controller, "voters": voters, "grantingVoters": voters}
    )
    data, offset = batch([leader], 0, 1, batches[0][0], attributes=0x20), 1
    for time, records in batches:
        data += batch(records, offset, 1, time)
        offset += len(records)
    (log / "00000000000000000000.log").write_bytes(data)
    (log / "quorum-state").write_text(
        f'{{"clusterId":"","leaderId":{controller},"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        f'"currentVoters":[{{"voterId":{controller}}}],"data_version":0}}'
    )
    (log / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    return offset
