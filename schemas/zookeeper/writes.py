"""Facts from ZooKeeper's transaction logs beyond the tree: barriers, writers, kinds of writes (S§5.1)."""

from __future__ import annotations

from pyspark.sql.types import IntegerType, LongType, StringType

from schemas.table import column

BARRIER_COLUMNS = (
    column(
        "zxid", LongType(), "Transaction that moved the offset: right after it ZooKeeper equals KRaft at the offset."
    ),
    column(
        "time", LongType(), "Time of that transaction, milliseconds since the epoch, by the ZooKeeper leader's clock."
    ),
    column("kraft_metadata_offset", LongType(), "Offset of the last mirrored record, inclusive."),
    column("kraft_metadata_epoch", IntegerType(), "Leader epoch of that record."),
    column("kraft_controller_id", IntegerType(), "node.id of the controller that wrote it."),
    column("kraft_controller_epoch", IntegerType(), "KRaft leader epoch of that controller."),
)

WRITE_COLUMNS = (
    column("zxid", LongType(), "Transaction id (zxid). Of missing ones, the first that is not there."),
    column(
        "time",
        LongType(),
        "Time in the transaction header, milliseconds since the epoch; null for missing transactions.",
    ),
    column("session", LongType(), "Id of the session that sent it; null for missing transactions."),
    column(
        "writer",
        StringType(),
        "controller N, broker N or unknown, by the claims and the ephemeral znodes of the session.",
    ),
    column(
        "kind",
        StringType(),
        "Kind of write: envelope, migration, claim, foreign and so on. missing: here the logs lack transactions, or "
        "they can't be read.",
    ),
    column(
        "type",
        StringType(),
        "Type: create, setData, delete and so on; the operations of a multi are joined by '+'. Of missing "
        "transactions, what is wrong.",
    ),
    column(
        "path",
        StringType(),
        "Path of the operation that matters: the last one of a multi. Of missing transactions, the file that shows it.",
    ),
    column(
        "error", IntegerType(), "ZooKeeper's error code of a refused write (`KeeperException.Code`); null for others."
    ),
    column("controller_epoch", IntegerType(), "New value of `/controller_epoch`; null for other writes."),
    column("kraft_controller_id", IntegerType(), "node.id in a claim; null for other writes."),
    column("kraft_controller_epoch", IntegerType(), "KRaft leader epoch in a claim; null for other writes."),
)

# The kind of a row that stands for transactions that are not there.
MISSING = "missing"

NOTIFICATION_ROOTS: tuple[str, ...] = (
    "/config/changes/",
    "/kafka-acl-changes/",
    "/kafka-acl-extended-changes/",
    "/delegation_token/token_changes/",
    "/isr_change_notification/",
    "/log_dir_event_notification/",
)
