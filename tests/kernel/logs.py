"""Logs for the kernel: rows to batches, cut anywhere; random ones; and what comes out of a pass, gathered."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tests.isr.random_logs import any_change, record_row
from transforms.isr.history import Record
from transforms.isr.partition import CLEARED, PartitionState
from transforms.kernel.replay import DecodedCheckpoint, Plan, TableKind, replay
from transforms.kernel.shards import Shard
from transforms.kraft.decode.rows import RECORD_SCHEMA
from transforms.kraft.replay.extent import Extent

Row = dict[str, Any]
ONE = "one"


def batch(rows: Iterable[Mapping[str, Any]]) -> pa.RecordBatch:
    """Rows of bronze as a batch; columns that are left out are null."""
    names = RECORD_SCHEMA.names
    return pa.RecordBatch.from_pylist([{name: row.get(name) for name in names} for row in rows], RECORD_SCHEMA)


def cut(rows: pa.RecordBatch, chance: random.Random) -> Iterator[pa.RecordBatch]:
    """Slices of a batch, some of them empty."""
    start = 0
    while start < rows.num_rows:
        size = chance.choice([0, 1, 1, 2, 5, 30])
        yield rows.slice(start, size)
        start += size


def plan(end: int, **more: Any) -> Plan:
    """A plan for a whole log, from offset 0; the state at its end is always told."""
    more["states_at"] = [*more.get("states_at", ()), end]
    extent = {name: more.pop(name) for name in ("start", "base", "discarded") if name in more}
    return Plan(ONE, Extent(end, **extent), **more)


@dataclass
class Outcome:
    """All that a pass told: rows as dicts, the state by offset and entity; rows of history in the order of their keys."""

    history: list[Row] = field(default_factory=list)
    states: dict[int, dict[str, list[Row]]] = field(default_factory=dict)
    findings: list[Row] = field(default_factory=list)
    differences: list[Row] = field(default_factory=list)
    versions: list[Row] = field(default_factory=list)
    kept: dict[int, bytes] = field(default_factory=dict)

    def since(self, offset: int) -> Outcome:
        """The outcome without what a pass that continues from `offset` does not tell again."""
        states = {at: state for at, state in self.states.items() if at >= offset}
        return replace(self, history=[row for row in self.history if row["offset"] >= offset], states=states, kept={})


def run(asked: Plan, batches: Iterable[pa.RecordBatch], kept: bytes | None = None) -> Outcome:
    """All that a pass tells."""
    found = Outcome()
    for told in replay(asked, batches, kept):
        if told.kind == TableKind.KEPT:
            found.kept[told.offset] = told.rows["kept"][0].as_py()
            continue
        rows = told.rows.to_pylist()
        if told.kind == TableKind.HISTORY:
            found.history += rows
        elif told.kind == TableKind.FINDINGS:
            found.findings += rows
        elif told.kind == TableKind.DIFFERENCES:
            found.differences += rows
        elif told.kind == TableKind.VERSIONS:
            found.versions += map(parsed, rows)
        else:
            found.states.setdefault(told.offset, {})[told.entity] = rows
    return sort(found)


def parsed(version: Mapping[str, Any]) -> Row:
    """A row of ROW_VERSION with key and row as they are; columns of a partition that are null are left out."""
    key, row = json.loads(version["key"]), json.loads(version["row"])
    return {**version, "key": key, "row": {name: value for name, value in row.items() if value is not None}}


def sort(found: Outcome) -> Outcome:
    """The same in an order that does not depend on the order of rows."""
    found.history.sort(key=lambda row: (row["offset"], row["topic_id"], row["partition"]))
    for rows in (
        found.findings,
        found.differences,
        found.versions,
        *[rows for state in found.states.values() for rows in state.values()],
    ):
        rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
    return found


def in_shards(asked: Plan, rows: pa.RecordBatch, number: int) -> Outcome:
    """The union of what the shards of a cluster tell."""
    whole = Outcome()
    for shard in range(number):
        part = run(replace(asked, shard=Shard(shard, number)), [rows])
        whole.history += part.history
        whole.findings += part.findings
        whole.differences += part.differences
        whole.versions += part.versions
        for offset, state in part.states.items():
            for name, mine in state.items():
                whole.states.setdefault(offset, {}).setdefault(name, []).extend(mine)
    return sort(whole)


def checkpoint_of(rows: Iterable[Mapping[str, Any]], level: int | None = 30, *, elr: bool = True) -> DecodedCheckpoint:
    """A checkpoint that holds some rows."""
    held = batch([{**row, "offset": place} for place, row in enumerate(rows)])
    return DecodedCheckpoint(level, elr, lambda: [held])


DIRECTORIES = ("AAAAAAAAAAAAAAAAAAAAAA", "p8VBf8LbRtS0sPcqJXXXXX", "t1uZ1e9sRqWCXr6ZYYYYYY")


TOPIC_NAMES = ("orders", "payments", "audit")
BROKERS = (1, 2, 3)


class RandomLog:
    """Records as Kafka's controller makes them: names reused under new ids, partitions remade, configs cascaded away."""

    def __init__(self, seed: int, length: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        self.topics: dict[str, str] = {}
        self.partitions: set[tuple[str, int]] = set()
        self.brokers: dict[int, int] = {}
        self.made = 0
        self.producer_id = 0
        self.rows: list[dict[str, object]] = []
        while len(self.rows) < length:
            self._one()

    def _one(self) -> None:
        step = self.random.choice(
            [self._topic, self._config, self._broker, self._quota, self._producer_ids, *[self._partition] * 5]
        )
        step()

    def _add(self, type_: str, body: dict[str, object] | None, **columns: object) -> None:
        offset = len(self.rows)
        data = None if body is None else json.dumps(body)
        self.rows.append(
            {"offset": offset, "epoch": 1 + offset // 50, "append_time": 1_000 * offset, "control": False}
            | {"type": type_, "version": 0, "data": data, **columns}
        )

    def _topic(self) -> None:
        name = self.random.choice(TOPIC_NAMES)
        if name in self.topics:
            topic_id = self.topics.pop(name)
            self.partitions = {(t, p) for t, p in self.partitions if t != topic_id}
            self._add("REMOVE_TOPIC_RECORD", {"topicId": topic_id})
            return
        self.made += 1
        self.topics[name] = f"id-{self.made}"
        self._add("TOPIC_RECORD", {"name": name, "topicId": self.topics[name]})

    def _config(self) -> None:
        value = self.random.choice([None, "1", "2"])
        name = self.random.choice([*self.topics, "orders"])
        config = self.random.choice(["retention.ms", "segment.ms"])
        # A controller knows no configuration of a topic that is not there.
        if name not in self.topics:
            return
        self._add("CONFIG_RECORD", {"resourceType": 2, "resourceName": name, "name": config, "value": value})

    def _broker(self) -> None:
        broker = self.random.choice(BROKERS)
        if broker not in self.brokers or self.random.random() < 0.3:
            self.brokers[broker] = len(self.rows)
            body = {"brokerId": broker, "brokerEpoch": len(self.rows), "incarnationId": f"i{len(self.rows)}"}
            body |= {"fenced": True, "rack": None, "endPoints": [], "features": []}
            self._add("REGISTER_BROKER_RECORD", body)
        elif self.random.random() < 0.2:
            epoch = self.brokers.pop(broker)
            self._add("UNREGISTER_BROKER_RECORD", {"brokerId": broker, "brokerEpoch": epoch})
        else:
            body = {"brokerId": broker, "brokerEpoch": self.brokers[broker], "fenced": self.random.choice([1, -1])}
            self._add("BROKER_REGISTRATION_CHANGE_RECORD", body)

    def _quota(self) -> None:
        entity = [{"entityType": "user", "entityName": self.random.choice(["ann", None])}]
        body = {"entity": entity, "key": "producer_byte_rate", "remove": self.random.random() < 0.3, "value": 7.0}
        self._add("CLIENT_QUOTA_RECORD", body)

    def _producer_ids(self) -> None:
        self.producer_id += 1000
        self._add("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": self.producer_id})

    def _partition(self) -> None:
        if not self.topics:
            return
        topic_id, partition = self.topics[self.random.choice(sorted(self.topics))], self.random.randrange(2)
        columns: dict[str, object] = {"topic_id": topic_id, "partition_id": partition}
        if (topic_id, partition) not in self.partitions or self.random.random() < 0.1:
            self.partitions.add((topic_id, partition))
            columns |= {"replicas": [1, 2, 3], "isr": [1, 2], "adding_replicas": [], "removing_replicas": []}
            columns |= {"leader": 1, "leader_epoch": self.random.randrange(9), "partition_epoch": 0}
            self._add("PARTITION_RECORD", None, **columns, leader_recovery_state=0)
        else:
            isr = self.random.choice([None, [1], [2, 3]])
            columns |= {"isr": isr, "leader": self.random.choice([-2, -1, 2]), "leader_recovery_state": -1}
            self._add("PARTITION_CHANGE_RECORD", None, **columns)


class AnyLog(RandomLog):
    """Records of all kinds, some of which a controller would hardly write in a row; with `faults` some that no controller writes.

    Topics hold partitions of any state, some of them replaced; CLEAR_ELR of one topic and of all; topics made again under their
    name, and with faults under their id.
    """

    def __init__(self, seed: int, length: int, *, faults: bool = False) -> None:
        self.faults = faults
        self.gone: list[str] = []
        self.acls: list[str] = []
        super().__init__(seed, length)

    def _one(self) -> None:
        steps = [self._topic, self._config, self._broker, self._quota, self._producer_ids, self._clear, self._acl]
        steps += [self._scram, self._partition, *[self._any_partition] * 8]
        if self.faults:
            steps += [self._fault]
        self.random.choice(steps)()

    def _topic(self) -> None:
        before = {*self.topics.values()}
        super()._topic()
        self.gone += before - {*self.topics.values()}

    def _clear(self) -> None:
        name = self.random.choice(["", *self.topics])
        self._add("CLEAR_ELR_RECORD", {"topicName": name})

    def _acl(self) -> None:
        if self.acls and self.random.random() < 0.4:
            self._add("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": self.acls.pop()})
            return
        self.acls.append(f"acl-{len(self.rows)}")
        body = {"id": self.acls[-1], "resourceType": 2, "resourceName": "orders", "patternType": 3}
        body |= {"principal": "User:ann", "host": "*", "operation": 3, "permissionType": 3}
        self._add("ACCESS_CONTROL_ENTRY_RECORD", body)

    def _scram(self) -> None:
        body = {"name": self.random.choice("ab"), "mechanism": 1, "salt": "s", "storedKey": "k", "serverKey": "v"}
        self._add("USER_SCRAM_CREDENTIAL_RECORD", {**body, "iterations": 4096})

    def _any_partition(self) -> None:
        if self.topics:
            topic_id = self.topics[self.random.choice(sorted(self.topics))]
            self._record(topic_id, self.random.randrange(3), known_only=True)

    def _record(self, topic_id: str, partition: int, *, known_only: bool) -> None:
        whole = self.random.random() < 0.15
        if known_only and (topic_id, partition) not in self.partitions:
            whole = True
        if known_only:
            self.partitions.add((topic_id, partition))
        change = CLEARED if not whole and self.random.random() < 0.1 else any_change(self.random, whole=whole)
        offset = len(self.rows)
        row = record_row(ONE, topic_id, Record(offset, 1000 * offset, change))
        if change.replicas is not None and self.random.random() < 0.5:
            row["directories"] = [self.random.choice(DIRECTORIES) for _ in change.replicas]
        elif change is not CLEARED and self.random.random() < 0.1:
            row["directories"] = []
        if whole and self.random.random() < 0.5:
            row["eligible_leader_replicas"] = row["last_known_elr"] = None
        self.rows.append({**row, "partition_id": partition, "epoch": 1 + offset // 50})

    def _fault(self) -> None:
        fault = self.random.randrange(7)
        if fault == 0:
            self._record(self.random.choice([*self.gone, "id-unknown", f"id-{self.made + 1}"]), 0, known_only=False)
        elif fault == 1 and self.topics:
            self._record(self.random.choice([*self.topics.values()]), 9, known_only=False)
        elif fault == 2:
            self._add("REMOVE_TOPIC_RECORD", {"topicId": self.random.choice([*self.gone, "id-unknown"])})
        elif fault == 3:
            self._add("CLEAR_ELR_RECORD", {"topicName": self.random.choice(["orders", "payments", "nothing"])})
        elif fault == 4 and self.topics:
            name, topic_id = self.random.choice([*self.topics.items()])
            self._add(
                "TOPIC_RECORD", {"name": name, "topicId": self.random.choice([topic_id, f"twin-{len(self.rows)}"])}
            )
        elif fault == 5:
            self._add("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": self.producer_id})
        else:
            self._add("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "acl-0"})

    def discarded(self) -> tuple[tuple[int, int | None], ...]:
        """Two ranges that do not take effect, the second to the end of the log."""
        places = sorted(self.random.sample(range(len(self.rows)), 3))
        return (places[0], min(places[0] + 5, places[1] - 1)), (places[2], None)


def made_of(state: PartitionState, offset: int, **columns: Any) -> Row:
    """The PartitionRecord of a state."""
    lists = {"adding": "adding_replicas", "removing": "removing_replicas", "elr": "eligible_leader_replicas"}
    values = {lists.get(name, name): list(v) if isinstance(v, tuple) else v for name, v in vars(state).items()}
    return (
        {"offset": offset, "epoch": 1, "append_time": offset, "control": False, "type": "PARTITION_RECORD"}
        | values
        | columns
    )


def numbers(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Numbers of rows."""
    return np.array(values, np.int64)
