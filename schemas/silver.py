"""Silver tables besides those of the entities: the log's epochs, row versions, barriers, leftovers and findings."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, BooleanType, IntegerType, LongType, StringType

from schemas import replayed
from schemas.bronze import RUN_COLUMNS
from schemas.entities import ENTITIES
from schemas.table import Layer, Table, column
from schemas.zookeeper.history import BARRIER_COLUMNS, WRITE_COLUMNS

LEADER_EPOCHS = Table(
    Layer.SILVER,
    "leader_epochs",
    "KRaft leader epochs: one row per LeaderChange record.",
    (
        *RUN_COLUMNS,
        column("epoch", IntegerType(), "Leader epoch."),
        column("start_offset", LongType(), "Offset of the epoch's LeaderChange record, its first one."),
        column("leader_id", IntegerType(), "node.id of the elected controller."),
        column("voters", ArrayType(IntegerType()), "node.ids of the voters the record names."),
        column("append_time", LongType(), "Append time, milliseconds since the epoch."),
    ),
)

BARRIERS = Table(
    Layer.SILVER,
    "barriers",
    "Stand-alone writes of `/migration` that moved the offset: right after that zxid ZooKeeper equals KRaft at that offset "
    "(docs/semantics.md §5.5).",
    (*RUN_COLUMNS, *BARRIER_COLUMNS),
)

ZOOKEEPER_WRITES = Table(
    Layer.SILVER,
    "zookeeper_writes",
    "Writes of ZooKeeper that matter for the migration beside the mirrored ones: claims, refused changes, rollbacks, and "
    "what something else wrote behind KRaft's back (from the transaction logs).",
    (*RUN_COLUMNS, *WRITE_COLUMNS),
)

ROW_VERSIONS = Table(
    Layer.SILVER,
    "row_versions",
    "KRaft states of compared rows other than the committed one: what a row was at `/migration`'s offset, every version "
    "since, and the removal of rows that are gone. This is what tells lag from loss.",
    (
        *RUN_COLUMNS,
        column("entity", StringType(), "Entity of the row."),
        column("key", StringType(), "Canonical key as one JSON object."),
        column("row", StringType(), "Compared columns as one JSON object; of a removed row, what it was last."),
        column("removed", BooleanType(), "True when the record removed the row."),
        column(
            "from_offset",
            LongType(),
            "Offset of the record that made the version (inclusive); it is valid up to the next version's (exclusive).",
        ),
        column("from_epoch", IntegerType(), "Leader epoch of that record."),
        column("from_append_time", LongType(), "Append time of that record, milliseconds since the epoch."),
        column(
            "created_offset",
            LongType(),
            "Offset of the first record known of the row; null on versions after the first.",
        ),
    ),
)

ADMIN_OPERATIONS = Table(
    Layer.SILVER,
    "admin_operations",
    "ZooKeeper znodes that ask for something or notify: pending deletions, reassignments, elections, notifications.",
    (
        *RUN_COLUMNS,
        column(
            "kind",
            StringType(),
            "Kind: delete_topic, reassignment, preferred_election, isr_change, log_dir_event and so on.",
        ),
        column("subject", StringType(), "Topic, topic-partition or znode name it is about."),
        column("detail", StringType(), "What it asks for, in one line."),
        column("zk_path", StringType(), "Path of the znode."),
        column("zk_czxid", LongType(), "zxid of the transaction that created the znode."),
        column("zk_mzxid", LongType(), "zxid of the last change of its data."),
        column("zk_mtime", LongType(), "Time of that change, milliseconds since the epoch."),
    ),
)

FINDINGS = Table(
    Layer.SILVER,
    "findings",
    "What could not be read or parsed, or breaks a rule of its format (docs/semantics.md §11).",
    (
        *RUN_COLUMNS,
        column("source", StringType(), "zookeeper or kraft."),
        column("code", StringType(), "Id of the check it violates, or a code of its own."),
        column("subject", StringType(), "What it is about: a topic, partition, user, record type."),
        column("detail", StringType(), "What is wrong, in one line, secrets masked."),
        column("place", StringType(), "Znode path, or file and offset."),
    ),
)

TABLES: tuple[Table, ...] = (
    *(entity.table for entity in ENTITIES),
    LEADER_EPOCHS,
    BARRIERS,
    ZOOKEEPER_WRITES,
    ROW_VERSIONS,
    ADMIN_OPERATIONS,
    FINDINGS,
    *replayed.TABLES,
)
