"""Rows of the bronze table `kraft_records`, gathered into Arrow batches of exactly its schema."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.bronze import LOG_RECORD_COLUMNS

RECORD_SCHEMA: pa.Schema = to_arrow_schema(StructType(list(LOG_RECORD_COLUMNS)))
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
    """The file of the bytes, as named in the rows."""

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
