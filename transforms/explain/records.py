"""The metadata records of one row, and the state after each of them (S§3.1, S§3.2)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.entities.configs import CONFIGS
from schemas.entities.topics import TOPICS
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.kraft.records import CLEAR_ELR, PARTITION, PARTITION_CHANGE
from transforms.explain.keys import RowKey
from transforms.isr.partition import NO_LEADER_CHANGE, NO_RECOVERY_CHANGE
from transforms.kraft.replay.entities import DELETE, PATCH, READERS, RECORDS_OF, UPSERT, Event
from transforms.kraft.replay.extent import Ranges, within
from transforms.kraft.replay.keys import canonical_key

_REMOVE_TOPIC = "REMOVE_TOPIC_RECORD"
_ELR = ("eligible_leader_replicas", "last_known_elr")
# Columns that a PartitionChangeRecord changes where it names them.
_LISTS = ("replicas", "adding_replicas", "removing_replicas", "isr", "directories", *_ELR)
_RECORD = ("offset", "epoch", "append_time")
# What events are made of, of the columns of bronze kraft_records.
EVENT_COLUMNS = ("checkpoint_offset", "type", "data", *_RECORD)
Row = dict[str, Any]
Key = tuple[str, tuple[str | int | None, ...]]
Wanted = Callable[[Event], bool]


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


def row_events(records: pl.DataFrame, row: RowKey) -> list[Row]:
    """Events on one row (not a partition), in the order of the log.

    `records` are those that take effect, of the log or of some of its types, with the columns of bronze kraft_records; a base
    checkpoint's stand just before its end. Keys: `op`, `row` and `replay_key` (JSON, as `transforms.kraft.replay.entities` has
    them), offset, epoch, append_time, and `type` of the record, None for one of a checkpoint. A row may have been made several
    times, under different ids (a topic, an ACL): the events of all of them are there.
    """
    stream = list(_stream(records, row.entity.name))
    lives = {mine["replay_key"] for mine, event in stream if canonical_key(event) == row.canonical}
    return [mine for mine, _ in stream if mine["replay_key"] in lives]


def config_events(records: pl.DataFrame, topic: str) -> list[tuple[RowKey, list[Row]]]:
    """The `row_events` of every configuration that the topic ever had, by its row."""
    found: dict[str, list[Row]] = {}
    rows: dict[str, RowKey] = {}
    for mine, event in _stream(records, CONFIGS.name):
        if event.key[:2] == ("TOPIC", topic):
            found.setdefault(mine["replay_key"], []).append(mine)
            if event.op == UPSERT and event.row is not None:
                rows[mine["replay_key"]] = RowKey(CONFIGS, {name: event.row[name] for name in CONFIGS.key})
    return [(row, found[key]) for key, row in rows.items()]


def names_row(row: RowKey) -> Wanted:
    """Whether an event gives a row its key (not a partition), or is of the topic that a configuration goes with."""
    topic = row.key["resource_name"] if _of_topic(row) else None
    return lambda event: canonical_key(event) == row.canonical if event.entity == row.entity.name else _is(event, topic)


def names_configs(topic: str) -> Wanted:
    """The same of all configurations of a topic."""
    return lambda event: event.key[:2] == ("TOPIC", topic) if event.entity == CONFIGS.name else _is(event, topic)


def _of_topic(row: RowKey) -> bool:
    return row.entity == CONFIGS and row.key["resource_type"] == "TOPIC"


def _is(event: Event, topic: str | None) -> bool:
    return event.entity == TOPICS.name and event.row is not None and event.row["topic"] == topic


def with_events(records: pl.DataFrame, wanted: Wanted) -> pl.DataFrame:
    """The records (EVENT_COLUMNS) that have an event which is `wanted`; all must be of the types `record_types`."""
    matching = [any(wanted(event) for event in _events(record)) for record in records.iter_rows(named=True)]
    return records.filter(pl.Series(matching, dtype=pl.Boolean))


def keys_of(records: pl.DataFrame, wanted: Wanted) -> frozenset[Key]:
    """Entity and the key that Kafka's replay uses, for such events: a removal has only that key."""
    events = [event for record in records.iter_rows(named=True) for event in _events(record)]
    return frozenset((event.entity, event.key) for event in events if wanted(event))


def has_key(keys: frozenset[Key]) -> Wanted:
    """Whether an event is on one of these rows."""
    return lambda event: (event.entity, event.key) in keys


def _events(record: Mapping[str, Any]) -> Iterable[Event]:
    return READERS[record["type"]](json.loads(record["data"]))


def record_types(entity: str) -> list[str]:
    """Records that act on an entity; removing a topic removes its configurations too."""
    names = [entity, TOPICS.name] if entity == CONFIGS.name else [entity]
    return [kind for name in names for kind in RECORDS_OF[name]]


def _stream(records: pl.DataFrame, entity: str) -> Iterator[tuple[Row, Event]]:
    """Events on an entity's rows in the order of the log, with what removing a topic deletes of its configurations."""
    names: dict[str, str] = {}
    configs: dict[str, dict[Event, None]] = {}
    for record in _in_order(records.filter(pl.col("type").is_in(record_types(entity)))):
        for event in _events(record):
            if event.entity == entity:
                yield _event(record, event), event
            if entity != CONFIGS.name:
                continue
            if event.entity == TOPICS.name:
                topic_id = str(event.key[0])
                if event.row is not None:
                    names[topic_id] = event.row["topic"]
                for each in configs.get(names.get(topic_id, ""), ()) if event.op == DELETE else ():
                    yield _event(record, each), each
            elif event.key[0] == "TOPIC":
                gone = Event(CONFIGS.name, event.key, DELETE)
                configs.setdefault(str(event.key[1]), {})[gone] = None


def _in_order(records: pl.DataFrame) -> Iterator[Row]:
    return records.select(EVENT_COLUMNS).sort("offset", maintain_order=True).iter_rows(named=True)


def _event(record: Mapping[str, Any], event: Event) -> Row:
    return {
        "replay_key": json.dumps(event.key),
        "op": event.op,
        "row": None if event.row is None else json.dumps(event.row),
        **{name: record[name] for name in _RECORD},
        "type": record["type"] if record["checkpoint_offset"] is None else None,
    }


def versions(rows: Iterable[Mapping[str, Any]]) -> list[VersionAfter]:
    """Fold the `row_events` of one row into the state after each record, oldest first.

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


def partition_states(records: pl.DataFrame, row: RowKey | None, topic: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Every state of one partition (None: of all) in all lives of its topic, in the order of the log.

    `records` are as for `row_events`, `topic` the `row_events` of the partition's topic: its ids select the records. Keys:
    topic_id, partition_id, the columns of the state, offset, epoch and append_time of the record that made it, `created_offset`
    of the partition's last PartitionRecord, and `type`, which names the record where it is none of the partition's own
    (CLEAR_ELR), and is None otherwise.
    """
    ids = sorted({json.loads(event["replay_key"])[0] for event in topic})
    mine = pl.col("topic_id").is_in(ids) & pl.col("type").is_in([PARTITION.name, PARTITION_CHANGE.name])
    if row is not None:
        mine &= pl.col("partition_id") == row.key["partition"]
    clears = records.filter(pl.col("type") == CLEAR_ELR.name)
    found: list[Row] = []
    now: dict[tuple[str, int], Row] = {}
    # At one offset a checkpoint's topics come before its partitions.
    turns = [*topic, *_clearing(clears, topic), *records.filter(mine).iter_rows(named=True)]
    alive: set[str] = set()
    for turn in sorted(turns, key=lambda turn: int(turn["offset"])):
        if "op" in turn:
            (alive.discard if turn["op"] == DELETE else alive.add)(json.loads(turn["replay_key"])[0])
        elif turn["type"] == CLEAR_ELR.name:
            found += _cleared(turn, now, alive)
        elif (state := _changed(turn, now.get((turn["topic_id"], turn["partition_id"])))) is not None:
            now[state["topic_id"], state["partition_id"]] = state
            found.append(state)
    return found


def _clearing(records: pl.DataFrame, topic: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
    """The records CLEAR_ELR that name the topic, or all."""
    names = {json.loads(event["row"])["topic"] for event in topic if event["row"] is not None}
    for record in records.select("type", "data", *_RECORD).iter_rows(named=True):
        if json.loads(record["data"])["topicName"] in ("", *names):
            yield record


def _cleared(record: Mapping[str, Any], now: dict[tuple[str, int], Row], alive: set[str]) -> Iterator[Row]:
    """Empty both lists of the partitions that hold something (`ReplicationControlManager.replay(ClearElrRecord)`)."""
    for key, state in now.items():
        if key[0] in alive and any(state[name] for name in _ELR):
            emptied = {**_moved_on(record, state), **{name: [] for name in _ELR}, "type": record["type"]}
            now[key] = emptied
            yield emptied


def _moved_on(record: Mapping[str, Any], state: Mapping[str, Any]) -> Row:
    at = {name: record[name] for name in _RECORD}
    return {**state, **at, "partition_epoch": state["partition_epoch"] + 1, "type": None}


def _changed(record: Mapping[str, Any], before: Row | None) -> Row | None:
    """The state after a record of the partition (`PartitionRegistration.merge`); None for a change of a partition that was never created.

    A null list is not changed by the record; a PartitionRecord without ELR leaves it unknown.
    """
    if record["type"] == PARTITION.name:
        lists = {name: record[name] for name in _LISTS}
        numbers = {name: record[name] for name in ("leader", "leader_epoch", "partition_epoch")}
        recovery = {"leader_recovery_state": record["leader_recovery_state"] or 0}
        where = {name: record[name] for name in ("topic_id", "partition_id", *_RECORD)}
        return _migrating({**where, **lists, **numbers, **recovery, "created_offset": record["offset"], "type": None})
    if before is None:
        return None
    after = _moved_on(record, before) | {name: record[name] for name in _LISTS if record[name] is not None}
    if record["leader"] not in (None, NO_LEADER_CHANGE):
        after |= {"leader": record["leader"], "leader_epoch": before["leader_epoch"] + 1}
    if record["leader_recovery_state"] not in (None, NO_RECOVERY_CHANGE):
        after["leader_recovery_state"] = record["leader_recovery_state"]
    return _migrating(after)


def _migrating(state: Row) -> Row:
    """As long as no directory is known, each replica's is MIGRATING, however many there are (`defaultToMigrating`)."""
    if {*(state["directories"] or ())} <= {DIRECTORY_MIGRATING}:
        return {**state, "directories": [DIRECTORY_MIGRATING] * len(state["replicas"])}
    return state


def partition_versions(
    states: Iterable[Mapping[str, Any]], topic: Iterable[Mapping[str, Any]], base_checkpoint_end_exclusive: int | None
) -> list[VersionAfter]:
    """`partition_states` and the removals of the topic as versions, oldest first.

    `base_checkpoint_end_exclusive` is the exclusive end of the checkpoint the log starts with, None without one.
    """
    found = [_partition_version(state, base_checkpoint_end_exclusive) for state in states]
    ids = {state["topic_id"] for state in states}
    for event in topic:
        if event["op"] == DELETE and json.loads(event["replay_key"])[0] in ids:
            found.append(VersionAfter(event["offset"], event["epoch"], event["append_time"], _REMOVE_TOPIC, None))
    return sorted(found, key=lambda version: version.offset)


_NOT_STATE = ("type", "partition_id", "offset", "epoch", "append_time", "created_offset")


def _partition_version(state: Mapping[str, Any], base_checkpoint_end_exclusive: int | None) -> VersionAfter:
    kind: str | None = (PARTITION if state["offset"] == state["created_offset"] else PARTITION_CHANGE).name
    kind = state.get("type") or kind
    if base_checkpoint_end_exclusive is not None and state["offset"] == base_checkpoint_end_exclusive - 1:
        kind = None
    row = {name: value for name, value in state.items() if name not in _NOT_STATE}
    return VersionAfter(state["offset"], state["epoch"], state["append_time"], kind, row)


def state_at(found: Sequence[VersionAfter], offset: int, discarded: Ranges) -> VersionAfter | None:
    """The version valid after `offset` (inclusive); `discarded` are the ranges without effect there. None when there was no row yet."""
    valid = [v for v in found if v.offset <= offset and not within(v.offset, discarded)]
    return valid[-1] if valid else None
