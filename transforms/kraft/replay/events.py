"""Metadata records to a stream of events on rows, in the workers (Arrow in, Arrow out).

Partition and PartitionChange records are not here: they are most of any log and are folded in columns by
`transforms.kraft.replay.partitions`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.bronze import RUN_COLUMNS
from schemas.replayed import EVENT_COLUMNS
from transforms.clusters import CLUSTER, by_cluster
from transforms.kraft.replay.entities import READERS
from transforms.kraft.replay.extent import Extent, Ranges
from transforms.kraft.replay.keys import canonical_key

PARTITION = "PARTITION_RECORD"
PARTITION_CHANGE = "PARTITION_CHANGE_RECORD"
PARTITION_TYPES = (PARTITION, PARTITION_CHANGE)

# `created_offset` is known for the rows of a base state only (`transforms.kraft.replay.compaction`); a deletion among them has the
# row that it deleted.
EVENT = StructType([RUN_COLUMNS[0], *EVENT_COLUMNS])
_BODY = (CLUSTER, "type", "data", "offset", "epoch", "append_time")
_ARROW_EVENT: pa.Schema = to_arrow_schema(EVENT)

# Keeps rows that several queries read, so that they are made once.
Cache = Callable[[DataFrame], DataFrame]


def applied(records: DataFrame, extents: Mapping[str, Extent]) -> DataFrame:
    """Good records that take effect, of the clusters in `extents`; columns of bronze kraft_records with `cluster`.

    The base checkpoint's records stand at the offset just before its end, so that they come before the log's; they are
    never discarded, because markers do not occur in snapshots.
    """
    good = records.where(F.col("problem").isNull() & ~F.col("control"))
    log = F.col("checkpoint_offset").isNull()
    start = by_cluster({name: max(extent.start, extent.base or 0) for name, extent in extents.items()}, "bigint")
    end = by_cluster({name: extent.end for name, extent in extents.items()}, "bigint")
    in_log = log & (F.col("offset") >= start) & (F.col("offset") < end)
    if any(extent.discarded for extent in extents.values()):
        in_log = in_log & ~within({name: extent.discarded for name, extent in extents.items()})
    bases = {name: extent.base for name, extent in extents.items() if extent.base is not None}
    if not bases:
        return good.where(in_log)
    in_base = F.col("checkpoint_offset") == by_cluster(bases, "bigint")
    moved = F.when(log, F.col("offset")).otherwise(F.col("checkpoint_offset") - 1)
    return good.where(F.coalesce(in_base, F.lit(False)) | in_log).withColumn("offset", moved)


def within(ranges: Mapping[str, Ranges]) -> Column:
    """Tell whether a row's offset is in one of its cluster's ranges; both ends inclusive, None is the end of the log."""
    spelled = {name: [{"begin": begin, "last": last} for begin, last in mine] for name, mine in ranges.items()}
    mine = by_cluster(spelled, "array<struct<begin:bigint,last:bigint>>")
    offset = F.col("offset")
    inside = F.exists(mine, lambda each: (offset >= each["begin"]) & (each["last"].isNull() | (offset <= each["last"])))
    return F.coalesce(inside, F.lit(False))


def events(records: DataFrame) -> DataFrame:
    """Events of all records but the two partition types, without cascades: columns of EVENT, in no particular order."""
    bodies = records.where(F.col("type").isin(list(READERS))).select(*_BODY)
    return bodies.mapInArrow(_read_batches, EVENT)


def uncached(rows: DataFrame) -> DataFrame:
    """Cache nothing."""
    return rows


def with_cascades(stream: DataFrame, cache: Cache = uncached) -> DataFrame:
    """Events with what removing a topic deletes besides the topic; `cache` keeps both for several queries."""
    cached = cache(stream)
    return cached.unionByName(cache(_cascades(cached)))


def _cascades(stream: DataFrame) -> DataFrame:
    """Deletions of the configs of removed topics (`ConfigurationControlManager.deleteTopicConfigs`): columns of EVENT."""
    removals = stream.where((F.col("entity") == "topics") & (F.col("op") == "delete"))
    names = stream.where((F.col("entity") == "topics") & F.col("row").isNotNull()).select(
        CLUSTER, "replay_key", _field("topic").alias("topic")
    )
    removed = removals.select(CLUSTER, "replay_key", "offset", "epoch", "append_time").join(
        names.distinct(), [CLUSTER, "replay_key"]
    )
    configs = (
        stream.where((F.col("entity") == "configs") & F.col("row").isNotNull())
        .where(_field("resource_type") == "TOPIC")
        .select(CLUSTER, F.col("replay_key").alias("config_key"), _field("resource_name").alias("topic"))
        .distinct()
    )
    return removed.join(configs, [CLUSTER, "topic"]).select(
        CLUSTER,
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
    """One Arrow batch of (cluster, type, data, offset, epoch, append_time) to a batch of EVENT rows."""
    columns = [batch.column(name).to_pylist() for name in _BODY]
    rows = [
        (
            cluster,
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
        for cluster, record_type, data, offset, epoch, append_time in zip(*columns, strict=True)
        for event in READERS[record_type](json.loads(data))
    ]
    arrays = list(zip(*rows, strict=True)) or [()] * len(_ARROW_EVENT)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip(arrays, _ARROW_EVENT, strict=True)], schema=_ARROW_EVENT
    )


def _dump(row: dict[str, object] | None) -> str | None:
    return None if row is None else json.dumps(row)
