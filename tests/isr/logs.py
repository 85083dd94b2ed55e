"""Partition histories of a capture, from the dump that Kafka's own tool printed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.kraft.dumps import DumpedRecord, parse_dump
from transforms.isr.history import ClassifiedChange, Record, steps
from transforms.isr.partition import CLEARED, Change, change_of

PARTITION, CHANGE = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"
COLUMNS = {
    "replicas": "replicas",
    "isr": "isr",
    "leader": "leader",
    "addingReplicas": "adding_replicas",
    "removingReplicas": "removing_replicas",
    "leaderRecoveryState": "leader_recovery_state",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "partition_epoch",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
}


def change(record: DumpedRecord) -> Change:
    """A dumped record of a partition as a change."""
    data: dict[str, Any] = record.data or {}
    row = {"leader": -2, "leader_recovery_state": -1}
    row |= {column: data[name] for name, column in COLUMNS.items() if name in data}
    if record.type == PARTITION and "leaderRecoveryState" not in data:
        row["leader_recovery_state"] = 0
    return change_of(row, whole=record.type == PARTITION)


def log_records(folder: Path, controller: int) -> list[DumpedRecord]:
    """The records of a copy's segments, in order."""
    files = parse_dump(folder / f"dump-log-{controller}.txt.gz")
    return [record for name, records in files.items() if name.endswith(".log") for record in records]


Stories = dict[tuple[str, int], list[Record]]


def partition_records(records: Iterable[DumpedRecord], gone: Stories | None = None) -> Stories:
    """Records by topic id and partition; those that clear the ELR stand at each partition they mean.

    Those of partitions that went with their topic come into `gone`.
    """
    names: dict[str, str] = {}
    found: Stories = {}
    for record in records:
        data = record.data or {}
        if record.type == "TOPIC_RECORD":
            names[data["topicId"]] = data["name"]
        elif record.type == "REMOVE_TOPIC_RECORD":
            removed = {key: found.pop(key) for key in [*found] if key[0] == data["topicId"]}
            (gone if gone is not None else {}).update(removed)
        elif record.type in (PARTITION, CHANGE):
            key = (data["topicId"], data["partitionId"])
            found.setdefault(key, []).append(Record(record.offset, record.time, change(record)))
        elif record.type == "CLEAR_ELR_RECORD":
            for key, story in found.items():
                if data["topicName"] in ("", names[key[0]]):
                    story.append(Record(record.offset, record.time, CLEARED, clears_elr=True))
    return found


def histories(folder: Path, controller: int) -> dict[str, list[ClassifiedChange]]:
    """Every step of every partition that is still there, by `topic/partition`."""
    records = log_records(folder, controller)
    names = {(r.data or {})["topicId"]: (r.data or {})["name"] for r in records if r.type == "TOPIC_RECORD"}
    return {
        f"{names[topic_id]}/{partition}": list(steps(story))
        for (topic_id, partition), story in partition_records(records).items()
    }
