"""The metadata records of one row, filtered in Spark, and the state after each of them (S§3.1, S§3.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.kraft.records import CLEAR_ELR
from transforms.explain.keys import RowKey
from transforms.kraft.replay.elr import cleared
from transforms.kraft.replay.entities import DELETE, PATCH, RECORDS_OF, UPSERT
from transforms.kraft.replay.events import PARTITION, PARTITION_CHANGE, events, with_cascades
from transforms.kraft.replay.extent import Ranges
from transforms.kraft.replay.partitions import partition_history, partition_records

_REMOVE_TOPIC = "REMOVE_TOPIC_RECORD"


@dataclass(frozen=True)
class VersionAfter:
    """The row after the record at `offset`, valid until the next one; `row` is None when the record removed it.

    `type` is None for a record of the checkpoint that the log starts with.
    """

    offset: int
    epoch: int | None
    time: int | None
    type: str | None
    row: dict[str, Any] | None


def row_events(records: DataFrame, row: RowKey) -> DataFrame:
    """Events on one row (not a partition): columns of `events.EVENT`, and `type` of the record; any order.

    `records` are those that take effect (`events.applied`). A row may have been made several times, under different
    ids (a topic, an ACL): the events of all of them are there.
    """
    kept = records.where(F.col("type").isin(_record_types(row.entity.name)))
    stream = with_cascades(events(kept)).where(F.col("entity") == row.entity.name)
    lives = stream.where((F.col("op") == UPSERT) & (F.col("key") == row.canonical)).select("replay_key").distinct()
    types = kept.where("checkpoint_offset IS NULL").select("offset", "type")
    return stream.join(F.broadcast(lives), "replay_key", "left_semi").join(types, "offset", "left")


def _record_types(entity: str) -> list[str]:
    """Records that act on an entity; removing a topic removes its configurations too."""
    names = [entity, "topics"] if entity == "configs" else [entity]
    return [kind for name in names for kind in RECORDS_OF[name]]


def versions(rows: Iterable[Mapping[str, Any]]) -> list[VersionAfter]:
    """Fold the collected `row_events` of one row into the state after each record, oldest first.

    A patch of another broker epoch than the registration's changes nothing, as in `replay.brokers`.
    """
    found: list[VersionAfter] = []
    for event in sorted(rows, key=lambda event: int(event["offset"])):
        before = found[-1].row if found else None
        after = _after(event, before)
        if event["op"] == DELETE and before is None:
            continue
        found.append(VersionAfter(event["offset"], event["epoch"], event["append_time"], event["type"], after))
    return found


def _after(event: Mapping[str, Any], before: dict[str, Any] | None) -> dict[str, Any] | None:
    if event["op"] == DELETE:
        return None
    row: dict[str, Any] = json.loads(event["row"])
    if event["op"] != PATCH:
        return row
    if before is None or row["broker_epoch"] != before["broker_epoch"]:
        return before
    return {**before, **row}


def partition_states(records: DataFrame, row: RowKey | None, topic: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Every state of one partition (None: of all) in all lives of its topic: columns of `partition_history`, and `type`.

    `topic` are the collected `row_events` of the partition's topic: its ids select the records before they are sorted.
    `type` names the record where it is none of the partition's own (CLEAR_ELR), and is null otherwise.
    """
    ids = sorted({json.loads(event["replay_key"])[0] for event in topic})
    of_topic = F.col("topic_id").isin(ids)
    mine = records.where(of_topic if row is None else of_topic & (F.col("partition_id") == row.key["partition"]))
    changes = partition_records(mine)
    topics = events(records.where(F.col("type").isin(list(RECORDS_OF["topics"]))))
    clears = records.where(F.col("type") == CLEAR_ELR.name).select("offset", "type")
    history = partition_history(changes.unionByName(cleared(records, topics, changes)))
    return history.join(F.broadcast(clears), "offset", "left")


def partition_versions(
    states: Iterable[Mapping[str, Any]], topic: Iterable[Mapping[str, Any]], base_checkpoint_end_exclusive: int | None
) -> list[VersionAfter]:
    """Collected `partition_states` and the removals of the topic as versions, oldest first.

    `base_checkpoint_end_exclusive` is the exclusive end of the checkpoint the log starts with, None without one.
    """
    found = [_partition_version(state, base_checkpoint_end_exclusive) for state in states]
    ids = {state["topic_id"] for state in states}
    for event in topic:
        if event["op"] == DELETE and json.loads(event["replay_key"])[0] in ids:
            found.append(VersionAfter(event["offset"], event["epoch"], event["append_time"], _REMOVE_TOPIC, None))
    return sorted(found, key=lambda version: version.offset)


_NOT_STATE = ("type", "partition_id", "offset", "epoch", "append_time", "created_offset", "next_offset")


def _partition_version(state: Mapping[str, Any], base_checkpoint_end_exclusive: int | None) -> VersionAfter:
    kind: str | None = PARTITION if state["offset"] == state["created_offset"] else PARTITION_CHANGE
    kind = state.get("type") or kind
    if base_checkpoint_end_exclusive is not None and state["offset"] == base_checkpoint_end_exclusive - 1:
        kind = None
    row = {name: value for name, value in state.items() if name not in _NOT_STATE}
    return VersionAfter(state["offset"], state["epoch"], state["append_time"], kind, row)


def state_at(found: Sequence[VersionAfter], offset: int, discarded: Ranges) -> VersionAfter | None:
    """The version valid after `offset` (inclusive); `discarded` are the ranges without effect there. None when there was no row yet."""
    valid = [v for v in found if v.offset <= offset and not _inside(v.offset, discarded)]
    return valid[-1] if valid else None


def _inside(offset: int, ranges: Ranges) -> bool:
    return any(begin <= offset and (last is None or offset <= last) for begin, last in ranges)
