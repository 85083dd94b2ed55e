"""The few records of a log that are one row's, or one topic's: searched by workers, shown on the driver."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from schemas.bronze import LOG_RECORD_COLUMNS
from schemas.entities.configs import CONFIGS
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.kraft.records import CLEAR_ELR, PARTITION, PARTITION_CHANGE
from transforms.examination.made import slices
from transforms.explain.keys import RowKey, parse_key
from transforms.explain.records import (
    EVENT_COLUMNS,
    VersionAfter,
    Wanted,
    config_events,
    has_key,
    keys_of,
    names_configs,
    names_row,
    partition_states,
    partition_versions,
    record_types,
    row_events,
    versions,
    with_events,
)
from transforms.frames import columns_of, from_arrow

Row = dict[str, Any]
_EVENTS = StructType([each for each in LOG_RECORD_COLUMNS if each.name in EVENT_COLUMNS])


def row_versions(records: DataFrame, row: RowKey, base: int | None) -> list[VersionAfter]:
    """The row after each record that made it, oldest first.

    `records` are those that take effect (`jobs.evidence.past_records.applied`); `base` is the exclusive end of the checkpoint that they
    begin with, None without one.
    """
    if row.entity is not PARTITIONS:
        return versions(lives_of(records, row))
    lives = lives_of(records, parse_key(TOPICS.name, {"topic": row.key["topic"]}))
    mine = records_of_partitions(records, lives, row.key["partition"])
    return partition_versions(partition_states(mine, row, lives), lives, base)


def lives_of(records: DataFrame, row: RowKey) -> list[Row]:
    """The events on a row that is not a partition (`row_events`)."""
    return row_events(_of_rows(records, row.entity.name, names_row(row)), row)


def configs_of(records: DataFrame, topic: str) -> list[tuple[RowKey, list[Row]]]:
    """The events on every configuration that a topic ever had, by its row."""
    return config_events(_of_rows(records, CONFIGS.name, names_configs(topic)), topic)


def partitions_of(
    records: DataFrame, topic: str, lives: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[RowKey, list[Row]]]:
    """The states of every partition of a topic, by its row; `lives` are the topic's events."""
    by_partition: dict[int, list[Row]] = {}
    for state in partition_states(records_of_partitions(records, lives), None, lives):
        by_partition.setdefault(state["partition_id"], []).append(state)
    for number, states in sorted(by_partition.items()):
        yield RowKey(PARTITIONS, {"topic": topic, "partition": number}), states


def _of_rows(records: DataFrame, entity: str, named: Wanted) -> pl.DataFrame:
    """Records of all lives of the rows that are named so: first those that name them, then all with the keys that these have."""
    of_entity = records.where(F.col("type").isin(record_types(entity))).select(*_EVENTS.names)
    keys = keys_of(_collected(of_entity.mapInArrow(_telling(named), _EVENTS), _EVENTS.fields), named)
    if not keys:
        return pl.DataFrame(schema=columns_of(_EVENTS.fields))
    return _collected(of_entity.mapInArrow(_telling(has_key(keys)), _EVENTS), _EVENTS.fields)


def _telling(wanted: Wanted) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema: pa.Schema = to_arrow_schema(_EVENTS)
        for batch in batches:
            for piece in slices(with_events(from_arrow(batch, columns_of(_EVENTS.fields)), wanted)):
                yield from piece.cast(schema).to_batches()

    return look


def records_of_partitions(
    records: DataFrame, lives: Sequence[Mapping[str, Any]], partition: int | None = None
) -> pl.DataFrame:
    """Records of one partition (None: of all) of a topic, and those that clear the ELR of any topic.

    `lives` are the topic's events (`lives_of`).
    """
    ids = sorted({json.loads(event["replay_key"])[0] for event in lives})
    kinds = F.col("type").isin(PARTITION.name, PARTITION_CHANGE.name)
    mine = kinds & F.col("topic_id").isin(ids)
    if partition is not None:
        mine &= F.col("partition_id") == partition
    found = records.where(mine | (F.col("type") == CLEAR_ELR.name))
    return _collected(found.select(*[each.name for each in LOG_RECORD_COLUMNS]), LOG_RECORD_COLUMNS)


def _collected(rows: DataFrame, columns: Iterable[StructField]) -> pl.DataFrame:
    return from_arrow(rows.toArrow(), columns_of(columns))
