"""Silver tables besides those of entities: barriers, leftovers and parse findings."""

from __future__ import annotations

from pyspark.sql.types import LongType, StringType

from schemas.bronze import RUN_COLUMNS
from schemas.entities import ENTITIES
from schemas.examined import EXAMINED
from schemas.table import Layer, Table, column
from schemas.zookeeper.trees import TREE_COLUMN
from schemas.zookeeper.writes import BARRIER_COLUMNS, WRITE_COLUMNS

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
    "Writes to ZooKeeper that matter for the migration, besides the mirrored ones: elections and claims, refused changes, "
    "rollbacks, and foreign writes (from the transaction logs).",
    (*RUN_COLUMNS, *WRITE_COLUMNS),
)

ADMIN_OPERATIONS = Table(
    Layer.SILVER,
    "admin_operations",
    "Znodes with pending requests and notifications: deletions, reassignments, elections, notifications.",
    (
        *RUN_COLUMNS,
        column(
            "kind",
            StringType(),
            "Kind: delete_topic, reassignment, preferred_election, isr_change, log_dir_event and so on.",
        ),
        column("subject", StringType(), "Topic, topic-partition or znode name it concerns."),
        column("detail", StringType(), "The request, in one line."),
        TREE_COLUMN,
        column("zk_path", StringType(), "Path of the znode."),
        column("zk_czxid", LongType(), "zxid of the transaction that created the znode."),
        column("zk_mzxid", LongType(), "zxid of the last change of its data."),
        column("zk_mtime", LongType(), "Time of that change, milliseconds since the epoch."),
    ),
)

FINDINGS = Table(
    Layer.SILVER,
    "findings",
    "Data that could not be read or parsed, or that breaks a rule of its format (docs/semantics.md §11).",
    (
        *RUN_COLUMNS,
        column("source", StringType(), "zookeeper or kraft."),
        column("code", StringType(), "Id of the check it violates, or a code of its own."),
        column("subject", StringType(), "Subject: a topic, partition, user, record type."),
        column("detail", StringType(), "What is wrong, in one line, secrets masked."),
        column("place", StringType(), "Znode path, or file and offset."),
    ),
)

# Rows of every run; those of a cluster's older runs are removed after a while.
STATE_TABLES: tuple[Table, ...] = (
    *(entity.table for entity in ENTITIES),
    BARRIERS,
    ZOOKEEPER_WRITES,
    ADMIN_OPERATIONS,
    FINDINGS,
)
TABLES: tuple[Table, ...] = (*STATE_TABLES, EXAMINED)
