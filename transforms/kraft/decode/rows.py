"""Rows of the bronze table `kraft_records`, gathered into Arrow batches of exactly its schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from schemas.bronze import LOG_RECORD_COLUMNS

_ARROW_TYPES: dict[type[DataType], pa.DataType] = {
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    ShortType: pa.int16(),
    ByteType: pa.int8(),
    BooleanType: pa.bool_(),
    StringType: pa.string(),
}


def _arrow_type(data_type: DataType) -> pa.DataType:
    if isinstance(data_type, ArrayType):
        return pa.list_(pa.field("element", _arrow_type(data_type.elementType)))
    return _ARROW_TYPES[type(data_type)]


RECORD_SCHEMA: pa.Schema = pa.schema(
    [pa.field(column.name, _arrow_type(column.dataType)) for column in LOG_RECORD_COLUMNS]
)
COLUMN_NAMES: tuple[str, ...] = tuple(RECORD_SCHEMA.names)
# Columns of a partition record's body, by Kafka's field name.
PARTITION_BODY_COLUMNS: dict[str, str] = {
    "partitionId": "partition_id",
    "topicId": "topic_id",
    "replicas": "replicas",
    "isr": "isr",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "leader": "leader",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "partition_epoch",
    "leaderRecoveryState": "leader_recovery_state",
    "directories": "directories",
    "eligibleLeaderReplicas": "eligible_leader_replicas",
    "lastKnownElr": "last_known_elr",
}


@dataclass(frozen=True)
class Origin:
    """Which file the bytes are from: what the rows say of it."""

    controller_id: int | None
    file: str
    checkpoint_offset: int | None = None


@dataclass
class Rows:
    """Rows of one file being gathered, as dicts from column to value; columns that are left out are null."""

    origin: Origin
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, **columns: Any) -> None:
        """Add a row."""
        self.rows.append(columns)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self) -> pa.RecordBatch:
        """Make an Arrow batch of the rows gathered so far, and forget them."""
        rows, self.rows = self.rows, []
        constants: dict[str, Any] = {
            "controller_id": self.origin.controller_id,
            "file": self.origin.file,
            "checkpoint_offset": self.origin.checkpoint_offset,
        }
        return pa.RecordBatch.from_arrays(
            [
                pa.array([constants[column.name]] * len(rows), column.type)
                if column.name in constants
                else pa.array([row.get(column.name) for row in rows], column.type)
                for column in RECORD_SCHEMA
            ],
            schema=RECORD_SCHEMA,
        )
