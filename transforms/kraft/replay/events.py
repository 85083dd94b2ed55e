"""Metadata records to a stream of events on rows, in the workers (Arrow in, Arrow out).

Partition and PartitionChange records are not here: they are most of any log and are folded in columns by
`transforms.kraft.replay.partitions`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.entities import ENTITIES
from schemas.replayed import EVENT_COLUMNS
from transforms.kraft.replay.entities import READERS, UPSERT, Event

PARTITION = "PARTITION_RECORD"
PARTITION_CHANGE = "PARTITION_CHANGE_RECORD"
HOT_TYPES = (PARTITION, PARTITION_CHANGE)

# `created_offset` is known for the rows of a base state only (`transforms.kraft.replay.base`); a deletion among them has the
# row that it deleted.
EVENT = StructType(list(EVENT_COLUMNS))
_ARROW_EVENT = pa.schema(
    [
        ("entity", pa.string()),
        ("replay_key", pa.string()),
        ("key", pa.string()),
        ("op", pa.string()),
        ("row", pa.string()),
        ("offset", pa.int64()),
        ("epoch", pa.int32()),
        ("append_time", pa.int64()),
        ("created_offset", pa.int64()),
    ]
)

# Keeps rows that several queries read, so that they are made once.
Hold = Callable[[DataFrame], DataFrame]
Ranges = Sequence[tuple[int, int | None]]


def applied(records: DataFrame, end: int, discarded: Ranges) -> DataFrame:
    """Good records below `end` that take effect: no control records, nothing of aborted or open transactions.

    `discarded` are offset ranges with both ends inclusive (None: to the end of the log). Records of a base checkpoint
    are never discarded: markers do not occur in snapshots.
    """
    kept = records.where(F.col("problem").isNull() & ~F.col("control") & (F.col("offset") < F.lit(end)))
    if not discarded:
        return kept
    return kept.where(F.col("checkpoint_offset").isNotNull() | ~within(discarded))


def within(ranges: Ranges) -> Column:
    """Tell whether a row's offset is in one of the ranges; both ends inclusive, None is the end of the log."""
    inside = F.lit(False)
    for begin, last in ranges:
        bound = F.col("offset") >= F.lit(begin)
        inside = inside | (bound if last is None else bound & (F.col("offset") <= F.lit(last)))
    return inside


def events(records: DataFrame) -> DataFrame:
    """Events of all records but the two partition types, without cascades: columns of EVENT, in no particular order."""
    bodies = records.where(F.col("type").isin(list(READERS))).select("type", "data", "offset", "epoch", "append_time")
    return bodies.mapInArrow(_read_batches, EVENT)


def as_they_are(rows: DataFrame) -> DataFrame:
    """Hold nothing."""
    return rows


def with_cascades(stream: DataFrame, hold: Hold = as_they_are) -> DataFrame:
    """Events with what removing a topic deletes besides the topic; `hold` keeps both for several queries."""
    held = hold(stream)
    return held.unionByName(hold(_cascades(held)))


def _cascades(stream: DataFrame) -> DataFrame:
    """Deletions of the configs of removed topics (`ConfigurationControlManager.deleteTopicConfigs`): columns of EVENT."""
    removals = stream.where((F.col("entity") == "topics") & (F.col("op") == "delete"))
    names = stream.where((F.col("entity") == "topics") & F.col("row").isNotNull()).select(
        "replay_key", _field("topic").alias("topic")
    )
    removed = removals.select("replay_key", "offset", "epoch", "append_time").join(names.distinct(), "replay_key")
    configs = (
        stream.where((F.col("entity") == "configs") & F.col("row").isNotNull())
        .where(_field("resource_type") == "TOPIC")
        .select(F.col("replay_key").alias("config_key"), _field("resource_name").alias("topic"))
        .distinct()
    )
    return removed.join(configs, "topic").select(
        F.lit("configs").alias("entity"),
        F.col("config_key").alias("replay_key"),
        F.lit(None).cast("string").alias("key"),
        F.lit("delete").alias("op"),
        F.lit(None).cast("string").alias("row"),
        "offset",
        "epoch",
        "append_time",
        F.lit(None).cast("bigint").alias("created_offset"),
    )


def _field(name: str) -> Column:
    return F.get_json_object("row", f"$.{name}")


def _read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield read_batch(batch)


def read_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """One Arrow batch of (type, data, offset, epoch, append_time) to a batch of EVENT rows."""
    columns = [batch.column(name).to_pylist() for name in ("type", "data", "offset", "epoch", "append_time")]
    rows = [
        (
            event.entity,
            json.dumps(event.key),
            canonical_key(event),
            event.op,
            _dump(event.row),
            offset,
            epoch,
            append_time,
            None,
        )
        for record_type, data, offset, epoch, append_time in zip(*columns, strict=True)
        for event in READERS[record_type](json.loads(data))
    ]
    arrays = list(zip(*rows, strict=True)) or [()] * len(_ARROW_EVENT)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(arrays, _ARROW_EVENT, strict=True)], schema=_ARROW_EVENT
    )


_ENTITIES = {entity.name: entity for entity in ENTITIES}
_CONTROL = re.compile(r"\\u00[0-9a-f]{2}")


def canonical_key(event: Event) -> str | None:
    """The canonical key of an upsert, in the very text that `transforms.reconcile.compare.canonical.key_json` makes of it."""
    if event.op != UPSERT or event.row is None:
        return None
    row = event.row
    text = json.dumps(
        {name: row[name] for name in _ENTITIES[event.entity].key}, ensure_ascii=False, separators=(",", ":")
    )
    # Jackson writes other control characters with upper-case hex digits.
    return _CONTROL.sub(lambda match: "\\u" + match[0][2:].upper(), text)


def _dump(row: dict[str, object] | None) -> str | None:
    return None if row is None else json.dumps(row)
