"""The same replay in the plainest way: record by record, by the rules for one record. What the kernel is compared with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.entities import MIRRORED
from schemas.entities.partitions import PARTITIONS
from transforms.isr.history import ClassifiedChange, classify
from transforms.isr.partition import NO_LEADER, PartitionState, change_of, merged
from transforms.kernel.layout import LIST_NAMES, NUMBER_NAMES
from transforms.kraft.replay.entities import DELETE, PATCH, READERS

Row = dict[str, Any]
MIGRATING = "AAAAAAAAAAAAAAAAAAAAAA"
WHOLE, CHANGE, CLEAR = "PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD"
STATE = (*LIST_NAMES, *NUMBER_NAMES)
_KEYS = {entity.name: entity.key for entity in MIRRORED}
_SHORT = {"adding_replicas": "adding", "removing_replicas": "removing", "eligible_leader_replicas": "elr"}
_EMPTY: Row = {"leader": -2, "leader_recovery_state": -1, "eligible_leader_replicas": [], "last_known_elr": []}


@dataclass
class Partition:
    """A partition as its records left it; `lost` is when it lost its leader."""

    state: PartitionState
    directories: list[str]
    created: int
    at: Row
    said_elr: bool
    said_last: bool
    lost: int | None = None


@dataclass
class Plain:
    """Topics by id, partitions by id and number, rows of everything else by entity and key, and the history so far."""

    topics: dict[str, Row] = field(default_factory=dict)
    partitions: dict[tuple[str, int], Partition] = field(default_factory=dict)
    rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    history: list[Row] = field(default_factory=list)
    # Every version of rows that are compared, by what Kafka replays them by, and offsets of records on a topic's partitions.
    story: dict[tuple[str, ...], list[Row]] = field(default_factory=dict)
    on_topic: dict[str, int] = field(default_factory=dict)

    def read(self, records: Iterable[Mapping[str, Any]], *, base: bool = False) -> Plain:
        """Read bronze rows that take effect; those of a `base` checkpoint are no changes."""
        told = len(self.history)
        for record in records:
            if record["type"] in (WHOLE, CHANGE):
                self._partition(record, record)
            elif record["type"] == CLEAR:
                self._clear(record, json.loads(record["data"])["topicName"])
            elif record["type"] in READERS:
                self._other(record)
        if base:
            del self.history[told:]
        return self

    def _clear(self, record: Mapping[str, Any], name: str) -> None:
        for (topic_id, number), partition in self.partitions.items():
            topic = self.topics.get(topic_id)
            if (
                topic
                and topic["alive"]
                and name in ("", topic["topic"])
                and (partition.state.elr or partition.state.last_known_elr)
            ):
                self._partition(record, {**_EMPTY, "topic_id": topic_id, "partition_id": number, "type": CHANGE})

    def _partition(self, record: Mapping[str, Any], row: Mapping[str, Any]) -> None:
        key, whole = (row["topic_id"], row["partition_id"]), row["type"] == WHOLE
        known = self.partitions.get(key)
        self.on_topic[key[0]] = record["offset"]
        if known is None and not whole:
            return
        change = change_of(row, whole=whole)
        before = None if known is None else known.state
        after = merged(before, change)
        step = ClassifiedChange(record["offset"], record["append_time"], before, after, classify(before, change, after))
        self._tell(key, record, step, known, named=change.leader is not None)
        directories = row.get("directories")
        if directories is None:
            directories = [] if known is None or whole else known.directories
        if {*directories} <= {MIGRATING}:
            directories = [MIGRATING] * len(after.replicas)
        said = {name: row.get(name) is not None for name in ("eligible_leader_replicas", "last_known_elr")}
        made = Partition(
            after,
            directories,
            record["offset"] if whole or known is None else known.created,
            _at(record),
            said["eligible_leader_replicas"] or (not whole and known is not None and known.said_elr),
            said["last_known_elr"] or (not whole and known is not None and known.said_last),
            None if known is None else known.lost,
        )
        if after.leader == NO_LEADER and (before is None or before.leader != NO_LEADER):
            made.lost = record["append_time"]
        self.partitions[key] = made
        at = {**_at(record), "kraft_created_offset": made.created}
        self._version(("partitions", key[0], str(key[1])), _state(after, ""), at, removed=False)

    def _version(self, key: tuple[str, ...], row: Row, at: Row, *, removed: bool) -> None:
        if key[0] in _KEYS:
            self.story.setdefault(key, []).append({"row": row, "removed": removed, **at})

    def _tell(
        self,
        key: tuple[str, int],
        record: Mapping[str, Any],
        step: ClassifiedChange,
        known: Partition | None,
        *,
        named: bool,
    ) -> None:
        before, after = step.before, step.after
        old = PartitionState((), (), NO_LEADER, 0, 0) if before is None else before
        concerned = {*step.left, *step.joined} | {*old.elr} ^ {*after.elr} | {*old.replicas} ^ {*after.replicas}
        if named:
            concerned |= {leader for leader in (old.leader, after.leader) if leader >= 0}
        topic = self.topics.get(key[0])
        row = {"topic": topic and topic["topic"], "topic_id": key[0], "partition": key[1]}
        row |= {name: record[name] for name in ("offset", "epoch", "append_time")}
        row |= {"kinds": [*step.kinds], "election": step.election, "brokers": sorted(concerned)}
        row |= {"departed": [*step.left], "joined": [*step.joined], **_state(after, ""), **_state(before, "_before")}
        row["before_time"] = None if known is None else known.at["kraft_append_time"]
        row["leaderless_since"] = known.lost if known is not None and old.leader == NO_LEADER else None
        self.history.append(row)

    def _other(self, record: Mapping[str, Any]) -> None:
        at = _at(record)
        for event in READERS[record["type"]](json.loads(record["data"])):
            if event.entity == "topics":
                self._topic(str(event.key[0]), event.row, at)
                continue
            key = (event.entity, json.dumps(event.key))
            known = self.rows.get(key)
            if event.op == PATCH:
                if known and not known["removed"] and known["row"]["broker_epoch"] == (event.row or {})["broker_epoch"]:
                    known.update({"row": known["row"] | (event.row or {}), **_moved(known, at)})
            elif event.op == DELETE:
                if known:
                    known.update({"removed": True, **_moved(known, at)})
                    self._version(key, known["row"], _moved(known, at), removed=True)
            else:
                self.rows[key] = {"row": event.row, "removed": False, **(_moved(known, at) if known else at)}
                self._version(key, event.row or {}, _moved(known, at) if known else at, removed=False)

    def _topic(self, topic_id: str, row: Row | None, at: Row) -> None:
        known = self.topics.get(topic_id)
        if row is not None:
            moved = _moved(known, at) if known else at
            name = known["topic"] if known else row["topic"]
            self.topics[topic_id] = {"topic": name, "topic_id": topic_id, "alive": True, **moved}
            self._version(("topics", topic_id), row, moved, removed=False)
        elif known:
            known.update({"alive": False, **_moved(known, at)})
            row = {"topic": known["topic"], "topic_id": topic_id}
            self._version(("topics", topic_id), row, _moved(known, at), removed=True)
            for (entity, replayed), config in self.rows.items():
                columns = config["row"]
                if entity == "configs" and (columns["resource_type"], columns["resource_name"]) == (
                    "TOPIC",
                    known["topic"],
                ):
                    config.update({"removed": True, **_moved(config, at)})
                    self._version((entity, replayed), columns, _moved(config, at), removed=True)

    def versions(self, since: int) -> list[Row]:
        """Versions of the rows that records at `since` or later touch, the one that is valid just before included, and removals before."""
        found = []
        for key, story in self.story.items():
            if key[0] == "partitions":
                found += self._versions_of_partition(key[1], int(key[2]), story, since)
                continue
            later = [version for version in story if version["kraft_offset"] >= since]
            before = [version for version in story if version["kraft_offset"] < since][-1:]
            if later or before[0]["removed"]:
                later = [{**version, "kraft_created_offset": None} for version in later]
                found += [_told(key[0], version["row"], version) for version in (*before, *later)]
        return found

    def _versions_of_partition(self, topic_id: str, number: int, story: list[Row], since: int) -> list[Row]:
        topic = self.topics.get(topic_id)
        if topic is None or (topic["alive"] and self.on_topic[topic_id] < since):
            return []
        gone = None if topic["alive"] else topic["kraft_offset"]
        ends = [*[version["kraft_offset"] for version in story[1:]], since if gone is None else gone]
        valid = [version for version, end in zip(story, ends, strict=True) if end >= since]
        if gone is not None:
            removal = {name: topic[name] for name in ("kraft_offset", "kraft_epoch", "kraft_append_time")}
            valid.append({**story[-1], **removal, "removed": True})
        key = {"topic": topic["topic"], "partition": number}
        return [_told("partitions", {**version["row"], **key}, version) for version in valid]

    def state(self) -> dict[str, list[Row]]:
        """The state as silver has it, without what is null: rows of each entity."""
        found: dict[str, list[Row]] = {}
        for topic in self.topics.values():
            row = {name: value for name, value in topic.items() if name != "alive"}
            if topic["alive"]:
                found.setdefault("topics", []).append(row)
        for (topic_id, number), partition in self.partitions.items():
            topic = self.topics.get(topic_id, {})
            if topic and topic["alive"]:
                row = {"topic": topic["topic"], "topic_id": topic_id, "partition": number, **_silver(partition)}
                found.setdefault("partitions", []).append(row)
        for (entity, _), each in self.rows.items():
            if entity != "migration" and not each["removed"]:
                where = {name: value for name, value in each.items() if name.startswith("kraft_")}
                found.setdefault(entity, []).append({**each["row"], **where})
        return {name: without_nothing(rows) for name, rows in found.items()}


def _at(record: Mapping[str, Any]) -> Row:
    offset = record["offset"]
    times = {"kraft_epoch": record["epoch"], "kraft_append_time": record["append_time"]}
    return {"kraft_offset": offset, "kraft_created_offset": offset, **times}


def _moved(known: Mapping[str, Any], at: Row) -> Row:
    return {**at, "kraft_created_offset": known["kraft_created_offset"]}


def _state(state: PartitionState | None, suffix: str) -> Row:
    values = {name: None if state is None else getattr(state, _SHORT.get(name, name)) for name in STATE}
    return {name + suffix: list(v) if isinstance(v, tuple) else v for name, v in values.items()}


def _told(entity: str, row: Mapping[str, Any], version: Mapping[str, Any]) -> Row:
    """A version as ROW_VERSION has it, with key and row as they are, without what is null."""
    key = {name: row[name] for name in _KEYS[entity]}
    compared = {name: row[name] for name in (PARTITIONS.compared if entity == PARTITIONS.name else row)}
    told = {"entity": entity, "key": key, "row": {n: value for n, value in compared.items() if value is not None}}
    at = {f"from_{name}": version[f"kraft_{name}"] for name in ("offset", "epoch", "append_time")}
    return {**told, "removed": version["removed"], **at, "created_offset": version["kraft_created_offset"]}


def _silver(partition: Partition) -> Row:
    row = _state(partition.state, "")
    if not partition.said_elr:
        row["eligible_leader_replicas"] = None
    if not partition.said_last:
        row["last_known_elr"] = None
    row |= {"directories": partition.directories, **partition.at, "kraft_created_offset": partition.created}
    return row


def without_nothing(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows without the cluster and the columns that are null: those that only ZooKeeper fills are nowhere else."""
    kept = [{name: value for name, value in row.items() if value is not None and name != "cluster"} for row in rows]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True))
