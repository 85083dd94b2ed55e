"""The replayed log as it is kept between runs: the state at one offset, in the form that replay goes on from."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from schemas.bronze import RUN_COLUMNS
from schemas.table import Layer, Table, column

# Rises whenever rows of an earlier release must not be continued: another meaning, another event, another column.
FORMAT = 4

EVENT_COLUMNS = (
    column("entity", StringType(), "Entity of the row."),
    column(
        "replay_key", StringType(), "Key that Kafka replays the row by, as a JSON array (a topic's or an ACL's id, …)."
    ),
    column("key", StringType(), "Canonical key as one JSON object."),
    column("op", StringType(), "upsert, delete or patch."),
    column("row", StringType(), "Columns of the row as one JSON object; of a deleted row, what was deleted."),
    column("offset", LongType(), "Offset of the last record on the row."),
    column("epoch", IntegerType(), "Leader epoch of that record."),
    column("append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
    column("created_offset", LongType(), "Offset of the first record on the row."),
)

REPLAYED_ROWS = Table(
    Layer.SILVER,
    "replayed_rows",
    "State of the log at the offset in replayed_states, without its partitions; removed rows are kept with what they were.",
    (*RUN_COLUMNS, *EVENT_COLUMNS),
    replaced=True,
)

_IDS = ArrayType(IntegerType())

PARTITION_COLUMNS = (
    column("topic_id", StringType(), "Topic id."),
    column("partition_id", IntegerType(), "Partition number."),
    column(
        "whole", BooleanType(), "True for a partition's state; false for changes of a partition that was never made."
    ),
    column("offset", LongType(), "Offset of the last record on the partition."),
    column("epoch", IntegerType(), "Leader epoch of that record."),
    column("append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
    column("replicas", _IDS, "Assigned broker ids, in order."),
    column("adding_replicas", _IDS, "Replicas a reassignment adds."),
    column("removing_replicas", _IDS, "Replicas a reassignment removes."),
    column("isr", _IDS, "In-sync replicas, in order."),
    column("eligible_leader_replicas", _IDS, "Eligible leader replicas (ELR)."),
    column("last_known_elr", _IDS, "Last known eligible leader replicas."),
    column("directories", ArrayType(StringType()), "Log directory ids."),
    column("leader", IntegerType(), "Broker id of the leader; -1 for none."),
    column("leader_recovery_state", ByteType(), "0 recovered, 1 recovering from an unclean election."),
    column("leader_epoch", IntegerType(), "Leader epoch."),
    column("partition_epoch", IntegerType(), "Partition epoch."),
    column(
        "created_offset", LongType(), "Offset of the PartitionRecord that made the partition; null when there was none."
    ),
)

REPLAYED_PARTITIONS = Table(
    Layer.SILVER,
    "replayed_partitions",
    "State of every partition at the offset in replayed_states, those of removed topics included.",
    (*RUN_COLUMNS, *PARTITION_COLUMNS),
    replaced=True,
)

REPLAYED_STATES = Table(
    Layer.SILVER,
    "replayed_states",
    "Which state of the log a run has kept, and how a later run knows that it reads the same log: one row per run.",
    (
        *RUN_COLUMNS,
        column("kept_at", TimestampType(), "When the run began that kept it, UTC: the newest one of a cluster counts."),
        column("format", IntegerType(), "Version of the kept form; another one is not continued."),
        column(
            "offset",
            LongType(),
            "First offset that is not in the state (exclusive end); -1 when the run kept none and no earlier one may be used.",
        ),
        column("last_epoch", IntegerType(), "Leader epoch of the record before it."),
        column("last_append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
        column(
            "fingerprint",
            StringType(),
            "Fingerprint of a known text: equal in two runs that masked secrets with the same key.",
        ),
        column(
            "milestones",
            StringType(),
            "Records of transactions, states, elections, levels and voters below the offset, as JSON.",
        ),
        column("versions", MapType(StringType(), LongType()), "Delta versions of the tables that hold the state."),
        column("base_run", StringType(), "Run whose kept state this one itself went on from; null when it read all."),
    ),
)

# KRaft states of compared rows other than the committed one: what a row was at `/migration`'s offset, every version
# since, and the removal of rows that are gone. This is what tells lag from loss.
ROW_VERSION_COLUMNS = (
    RUN_COLUMNS[0],
    column("entity", StringType(), "Entity of the row."),
    column("key", StringType(), "Canonical key as one JSON object."),
    column("row", StringType(), "Compared columns as one JSON object; for a removal, the last content."),
    column("removed", BooleanType(), "True for a removal."),
    column("from_offset", LongType(), "Offset of the record that made the version; valid until the next version's."),
    column("from_epoch", IntegerType(), "Leader epoch of that record."),
    column("from_append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
    column("created_offset", LongType(), "First record known of the row; null on versions after the first."),
)
ROW_VERSION = StructType(list(ROW_VERSION_COLUMNS))

TABLES = (REPLAYED_ROWS, REPLAYED_PARTITIONS, REPLAYED_STATES)
