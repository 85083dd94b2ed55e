"""Bronze rows of partitions' records: as a dump says them, and at random, what a controller would hardly write in a row."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from tests.isr.logs import CHANGE, COLUMNS, PARTITION
from tests.kraft.dumps import DumpedRecord
from transforms.clusters import CLUSTER
from transforms.isr.history import Record
from transforms.isr.partition import CLEARED, Change

BROKERS = (1, 2, 3, 4)
LENGTH = 30
Row = dict[str, Any]


def bronze_row(record: DumpedRecord, cluster: str) -> Row:
    data = record.data or {}
    row: Row = {CLUSTER: cluster, "offset": record.offset, "epoch": record.epoch, "append_time": record.time}
    row |= {"control": record.control, "type": record.type, "version": record.version}
    if record.type not in (PARTITION, CHANGE):
        return {**row, "data": json.dumps(data)}
    typed = {column: data[name] for name, column in COLUMNS.items() if name in data}
    unsaid = {"leader_recovery_state": 0} if record.type == PARTITION else {"leader_recovery_state": -1, "leader": -2}
    places = {"topic_id": data["topicId"], "partition_id": data["partitionId"], "directories": data.get("directories")}
    return {**row, **unsaid, **typed, **places}


def ids(chance: random.Random) -> tuple[int, ...]:
    return tuple(chance.sample(BROKERS, chance.randrange(4)))


def maybe(chance: random.Random, value: Any) -> Any:
    return value if chance.random() < 0.35 else None


def any_change(chance: random.Random, *, whole: bool) -> Change:
    lists = {name: ids(chance) for name in ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")}
    leader, recovery = chance.choice([-1, *BROKERS]), chance.choice([0, 1])
    if whole:
        epochs = {"leader_epoch": chance.randrange(9), "partition_epoch": chance.randrange(9)}
        return Change(whole=True, leader=leader, leader_recovery_state=recovery, **lists, **epochs)
    some = {name: maybe(chance, value) for name, value in lists.items()}
    return Change(leader=maybe(chance, leader), leader_recovery_state=maybe(chance, recovery), **some)


def any_story(seed: int) -> Iterator[Record]:
    """Records of one partition from its PartitionRecord on, some of them PartitionRecords too."""
    chance = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
    offset = chance.randrange(3)
    yield Record(offset, offset * 1000, any_change(chance, whole=True))
    for _ in range(LENGTH):
        offset += 1 + chance.randrange(3)
        if chance.random() < 0.1:
            yield Record(offset, offset * 1000, CLEARED)
        else:
            yield Record(offset, offset * 1000, any_change(chance, whole=chance.random() < 0.1))


def record_row(cluster: str, topic_id: str, record: Record) -> Row:
    change = record.change
    row: Row = {CLUSTER: cluster, "offset": record.offset, "epoch": 1, "append_time": record.time, "control": False}
    row |= {"type": PARTITION if change.whole else CHANGE, "topic_id": topic_id, "partition_id": 0}
    lists = ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")
    values = {name: None if (value := getattr(change, name)) is None else list(value) for name in lists}
    columns = {"adding": "adding_replicas", "removing": "removing_replicas", "elr": "eligible_leader_replicas"}
    row |= {columns.get(name, name): value for name, value in values.items()}
    row["leader"] = -2 if change.leader is None else change.leader
    row["leader_recovery_state"] = -1 if change.leader_recovery_state is None else change.leader_recovery_state
    if change.whole:
        row |= {"leader_epoch": change.leader_epoch, "partition_epoch": change.partition_epoch}
    return row
