"""The fast way for the two kinds of znodes that make up nine tenths of any tree: partition states and topics.

Both ways give the same rows as the readers in `entities`; every znode that is not plainly good is handed back to them.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from transforms.zookeeper.read.arrow import STATE_SCHEMA, one_batch
from transforms.zookeeper.read.entities.topics import check_topic

_STATE_PATH = r"^/brokers/topics/(?P<topic>[^/]+)/partitions/(?P<partition>[0-9]{1,9})/state$"
_CONTAINER_PATH = r"^/brokers/topics/[^/]+/partitions(/[0-9]{1,9})?$"
_BROKERS = pa.list_(pa.field("element", pa.int32()))
_STATE_FIELDS = pa.schema(
    [
        ("isr", pa.list_(pa.int32())),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("leader_recovery_state", pa.int32()),
        ("controller_epoch", pa.int32()),
    ]
)
_MANDATORY = ("isr", "leader", "leader_epoch", "controller_epoch")
_PARTITION = re.compile(r"[0-9]{1,9}")
_TOPICS = "/brokers/topics/"
_TOPIC_PREFIX = len(_TOPICS)


class Sorted(NamedTuple):
    """A batch's znodes by how they are read; `state_names` has the topic and the partition of each state."""

    states: pa.RecordBatch
    state_names: pa.StructArray
    topics: pa.RecordBatch
    others: pa.RecordBatch


def sort_out(batch: pa.RecordBatch) -> Sorted:
    """Part partition states and topics from the rest; the containers between them hold nothing and are in neither."""
    path = batch["path"]
    below_topics = pc.starts_with(path, _TOPICS)
    state_like = pc.and_(below_topics, pc.ends_with(path, "/state"))
    states = batch.filter(state_like)
    names = pc.extract_regex(states["path"], _STATE_PATH)
    named = pc.is_valid(names)
    between = batch.filter(pc.and_not(below_topics, state_like))
    is_topic = pc.equal(pc.count_substring(between["path"], "/"), 3)
    unknown = pc.invert(pc.or_(is_topic, pc.match_substring_regex(between["path"], _CONTAINER_PATH)))
    others = [batch.filter(pc.invert(below_topics)), states.filter(pc.invert(named)), between.filter(unknown)]
    return Sorted(
        states.filter(named),
        names.filter(named),
        between.filter(is_topic),
        one_batch(pa.Table.from_batches(others)),
    )


def partition_states(batch: pa.RecordBatch, names: pa.StructArray) -> tuple[pa.Table, pa.RecordBatch]:
    """Return the rows of partition state znodes, and the znodes that the careful reader must see."""
    plain = _plain(batch)
    good, good_names = batch.filter(plain), names.filter(plain)
    parsed = _parse_states(good["data"]) if good.num_rows else None
    if parsed is None:
        return STATE_SCHEMA.empty_table(), batch
    clean = _clean_states(parsed)
    odd = pa.Table.from_batches([batch.filter(pc.invert(plain)), good.filter(pc.invert(clean))])
    rows = _state_table(good.filter(clean), good_names.filter(clean), parsed.filter(clean))
    return rows, one_batch(odd)


def topics(batch: pa.RecordBatch) -> tuple[pa.Table, pa.RecordBatch]:
    """Return the topic and assignment rows of topic znodes, and the znodes that the careful reader must see."""
    found = _Assignments()
    odd = [
        index
        for index, (path, data, plain) in enumerate(
            zip(batch["path"].to_pylist(), batch["data"].to_pylist(), _plain(batch).to_pylist(), strict=True)
        )
        if not plain or not found.add(index, path, data)
    ]
    try:
        tables = [_topic_table(batch, found), _assignment_table(batch, found)]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Something in the lists is not a broker id: the careful reader finds out what.
        return STATE_SCHEMA.empty_table(), batch
    return pa.concat_tables(tables), batch.take(pa.array(odd, type=pa.int64()))


def _plain(batch: pa.RecordBatch) -> pa.BooleanArray:
    """Say which znodes have data and no problem."""
    has_data = pc.greater(pc.binary_length(pc.fill_null(batch["data"], "")), 1)
    return pc.and_(has_data, pc.is_null(batch["problem"]))


def _parse_states(data: pa.StringArray) -> pa.Table | None:
    """Parse the documents all at once; None when one of them is not what Kafka writes."""
    # Line ends inside a document are white space; each document must be one line of JSON for the reader.
    flat = pc.replace_substring_regex(data, r"[\r\n]", " ")
    blank = pc.any(pc.equal(pc.utf8_trim_whitespace(flat), "")).as_py()
    if blank:
        return None
    lines = "\n".join(flat.to_pylist()).encode()
    options = pj.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    parsing = pj.ParseOptions(explicit_schema=_STATE_FIELDS, unexpected_field_behavior="ignore")
    try:
        table = pj.read_json(pa.BufferReader(lines), read_options=options, parse_options=parsing)
    except pa.ArrowException:
        return None
    # A line with two documents would shift all the others.
    return table if table.num_rows == len(data) else None


def _clean_states(parsed: pa.Table) -> pa.BooleanArray:
    """Which parsed states need no further check: complete, a known recovery state, a live leader, a non-empty ISR."""
    clean = pc.and_(pc.greater(parsed["leader"], -2), pc.greater(pc.list_value_length(parsed["isr"]), 0))
    for name in _MANDATORY:
        clean = pc.and_(clean, pc.is_valid(parsed[name]))
    recovery = pc.fill_null(parsed["leader_recovery_state"], 0)
    clean = pc.and_(clean, pc.and_(pc.greater_equal(recovery, 0), pc.less_equal(recovery, 1)))
    isr = parsed["isr"].combine_chunks()
    if isr.values.null_count:
        return pa.array([False] * parsed.num_rows)
    return pc.fill_null(clean, False).combine_chunks()


def _state_table(batch: pa.RecordBatch, names: pa.StructArray, parsed: pa.Table) -> pa.Table:
    columns = {
        "topic": names.field("topic"),
        "partition": pc.cast(names.field("partition"), pa.int32()),
        "isr": pc.cast(parsed["isr"].combine_chunks(), _BROKERS),
        "leader": parsed["leader"].combine_chunks(),
        "leader_epoch": parsed["leader_epoch"].combine_chunks(),
        "leader_recovery_state": pc.fill_null(parsed["leader_recovery_state"].combine_chunks(), 0),
        "partition_epoch": batch["version"],
        "controller_epoch": parsed["controller_epoch"].combine_chunks(),
    }
    return _table("partition_states", batch, columns)


class _Assignments:
    """Topics and assignments of a batch, column by column; lists are flat values with row ends."""

    def __init__(self) -> None:
        self.topic_rows: list[int] = []
        self.topic_names: list[str] = []
        self.topic_ids: list[str] = []
        self.rows: list[int] = []
        self.partitions: list[str] = []
        self.sizes: list[int] = []
        self.replicas: list[int] = []

    def add(self, index: int, path: str, data: str) -> bool:
        """Take in one topic znode; False when it is not plainly good, and then nothing of it was taken."""
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return False
        topic = path[_TOPIC_PREFIX:]
        if not _is_plain_topic(path, topic, document, data):
            return False
        partitions = document["partitions"]
        self.topic_rows.append(index)
        self.topic_names.append(topic)
        self.topic_ids.append(document["topic_id"])
        self.rows.extend([index] * len(partitions))
        self.partitions.extend(partitions)
        for replicas in partitions.values():
            self.sizes.append(len(replicas))
            self.replicas.extend(replicas)
        return True


def _is_plain_topic(path: str, topic: str, document: Any, data: str) -> bool:
    if type(document) is not dict or type(document.get("partitions")) is not dict:
        return False
    # Topics with a current reassignment are few and are parsed by the slow path, as are escapes and documents that repeat a key.
    if "\\" in data or any(document.get(key) not in (None, {}) for key in ("adding_replicas", "removing_replicas")):
        return False
    partitions = document["partitions"]
    nested = sum(len(value) for value in document.values() if type(value) is dict)
    if data.count(":") != len(document) + nested or not all(map(_PARTITION.fullmatch, partitions)):
        return False
    return all(map(_is_replica_list, partitions.values())) and not any(
        check_topic(path, topic, document.get("topic_id"))
    )


def _is_replica_list(replicas: Any) -> bool:
    # What the items are is found out for all of them at once, when they become an array.
    try:
        return type(replicas) is list and len(set(replicas)) == len(replicas) > 0
    except TypeError:
        return False


def _topic_table(batch: pa.RecordBatch, found: _Assignments) -> pa.Table:
    rows = [
        f'{{"topic":"{topic}","topic_id":"{topic_id}"}}'
        for topic, topic_id in zip(found.topic_names, found.topic_ids, strict=True)
    ]
    znodes = batch.take(pa.array(found.topic_rows, type=pa.int64()))
    return _table("topics", znodes, {"row": pa.array(rows, pa.string())})


def _assignment_table(batch: pa.RecordBatch, found: _Assignments) -> pa.Table:
    replicas = pa.array(found.replicas, type=pa.int32())
    if set(map(type, found.replicas)) - {int} or _any_negative(replicas):
        raise ValueError("an assignment holds something that is not a broker id")
    offsets = np.concatenate(([0], np.cumsum(np.asarray(found.sizes, dtype=np.int64)))).astype(np.int32)
    none = pa.ListArray.from_arrays(pa.array(np.zeros(len(offsets), dtype=np.int32)), pa.array([], pa.int32()))
    topics_of_rows = pa.array(np.searchsorted(np.asarray(found.topic_rows, dtype=np.int64), found.rows))
    columns = {
        "topic": pa.array(found.topic_names, pa.string()).take(topics_of_rows),
        "topic_id": pa.array(found.topic_ids, pa.string()).take(topics_of_rows),
        "partition": pc.cast(pa.array(found.partitions, pa.string()), pa.int32()),
        "replicas": pc.cast(pa.ListArray.from_arrays(pa.array(offsets), replicas), _BROKERS),
        "adding_replicas": pc.cast(none, _BROKERS),
        "removing_replicas": pc.cast(none, _BROKERS),
    }
    return _table("partition_assignments", batch.take(pa.array(found.rows, type=pa.int64())), columns)


def _any_negative(values: pa.Int32Array) -> bool:
    return bool(len(values)) and pc.min(values).as_py() < 0


def _table(entity: str, batch: pa.RecordBatch, columns: dict[str, pa.Array]) -> pa.Table:
    provenance = {
        "entity": pa.array([entity], pa.string()).take(pa.array(np.zeros(batch.num_rows, dtype=np.int32))),
        "zk_path": batch["path"],
        "zk_czxid": batch["czxid"],
        "zk_mzxid": batch["mzxid"],
        "zk_mtime": batch["mtime"],
    }
    known = {**columns, **provenance}
    arrays = [
        known[field.name] if field.name in known else pa.nulls(batch.num_rows, field.type) for field in STATE_SCHEMA
    ]
    return pa.Table.from_arrays(arrays, schema=STATE_SCHEMA)
