"""Bronze tables: the sources as read, each once, append-only. Secrets are already fingerprints here."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from schemas.table import Layer, Table, column
from schemas.zookeeper.trees import TREE_COLUMN

RUN_COLUMNS = (
    column("cluster", StringType(), "Name of the audited cluster, from the run's configuration."),
    column("run_id", StringType(), "Id of the run that wrote the row."),
)

ACL_ENTRIES = ArrayType(
    StructType(
        [
            StructField("perms", IntegerType()),
            StructField("scheme", StringType()),
            StructField("id", StringType()),
        ]
    )
)

ZNODE_COLUMNS = (
    column("path", StringType(), "Absolute znode path below the chroot."),
    column("data", StringType(), "Data as UTF-8 text (surrogateescape replaced by U+FFFD), secrets fingerprinted."),
    column("data_is_null", BooleanType(), "True when the data is null; ZooKeeper distinguishes null and empty."),
    column("data_length", IntegerType(), "Bytes of data as stored, before redaction."),
    column("czxid", LongType(), "zxid of the transaction that created the znode."),
    column("mzxid", LongType(), "zxid of the last change of the data."),
    column("pzxid", LongType(), "zxid of the last change of the list of children."),
    column("ctime", LongType(), "Creation time, milliseconds since the epoch, by the ZooKeeper leader's clock."),
    column("mtime", LongType(), "Time of the last data change, milliseconds since the epoch."),
    column("version", IntegerType(), "dataVersion: how often the data was written."),
    column("cversion", IntegerType(), "cversion: how often the list of children changed."),
    column("aversion", IntegerType(), "aversion: how often the ACL was set."),
    column("ephemeral_owner", LongType(), "Session that owns an ephemeral znode; 0 for a persistent one."),
    column("num_children", IntegerType(), "Number of children."),
    column(
        "acl",
        ACL_ENTRIES,
        "Access control list: permission bits, scheme and id of each entry; hashes inside digest ids are fingerprinted.",
    ),
    column("redacted", BooleanType(), "True when a secret in the data was replaced by its fingerprint."),
    column(
        "problem", StringType(), "Why the znode could not be read completely (NoAuth, not UTF-8, …); null when it was."
    ),
)

ZK_ZNODES = Table(
    Layer.BRONZE,
    "zk_znodes",
    "ZooKeeper trees as they were read: one row per znode and reading.",
    (
        *RUN_COLUMNS,
        column(
            "snapshot_id",
            StringType(),
            "Id of the reading of the tree: the run's id, with a suffix for the second walk of a bracket.",
        ),
        TREE_COLUMN,
        *ZNODE_COLUMNS,
    ),
)

LOG_RECORD_COLUMNS = (
    column("controller_id", IntegerType(), "node.id of the controller whose copy of the log the record was read from."),
    column("file", StringType(), "File name inside the copy: a .log segment or a .checkpoint."),
    column("position", LongType(), "Byte position of the record's batch (or of the damage) in the file."),
    column("length", LongType(), "Bytes the record takes in the file; for damage, the bytes it covers."),
    column(
        "checkpoint_offset",
        LongType(),
        "Offset of the checkpoint the record was read from (exclusive: the checkpoint holds the records below); null for log records.",
    ),
    column(
        "offset",
        LongType(),
        "Offset of the record in the log, or of the damaged batch; inside a checkpoint it counts from 0 and is not a log offset.",
    ),
    column("epoch", IntegerType(), "partitionLeaderEpoch of the batch: the KRaft leader epoch."),
    column("append_time", LongType(), "Append time of the batch, milliseconds since the epoch."),
    column("control", BooleanType(), "True for a control record (LeaderChange, SnapshotHeader, …)."),
    column(
        "type",
        StringType(),
        "Record type as Kafka's dump spells it, e.g. PARTITION_CHANGE_RECORD; control records as LEADER_CHANGE and so on.",
    ),
    column("version", ShortType(), "Record version."),
    column("partition_id", IntegerType(), "Partition and PartitionChange: the partition."),
    column("topic_id", StringType(), "Partition and PartitionChange: the topic id."),
    column("replicas", ArrayType(IntegerType()), "Partition and PartitionChange; null is 'unchanged'."),
    column("isr", ArrayType(IntegerType()), "Partition and PartitionChange; null is 'unchanged'."),
    column("removing_replicas", ArrayType(IntegerType()), "Partition and PartitionChange; null is 'unchanged'."),
    column("adding_replicas", ArrayType(IntegerType()), "Partition and PartitionChange; null is 'unchanged'."),
    column("leader", IntegerType(), "Partition; PartitionChange with -2 for 'unchanged'."),
    column("leader_epoch", IntegerType(), "Partition only."),
    column("partition_epoch", IntegerType(), "Partition only."),
    column("leader_recovery_state", ByteType(), "Partition; PartitionChange with -1 for 'unchanged'."),
    column("directories", ArrayType(StringType()), "Partition v1+ and PartitionChange v1+; null is 'unchanged'."),
    column("eligible_leader_replicas", ArrayType(IntegerType()), "v2+; null is 'unchanged'."),
    column("last_known_elr", ArrayType(IntegerType()), "v2+; null is 'unchanged'."),
    column(
        "data",
        StringType(),
        "Body of every other type as one JSON object, spelled as Kafka's dump spells it; secrets fingerprinted.",
    ),
    column("problem", StringType(), "What is wrong with these bytes; null for a good record. Such a row has no body."),
)

KRAFT_RECORDS = Table(
    Layer.BRONZE,
    "kraft_records",
    "Records of the metadata log and of its checkpoints, one row each; bytes that are not a record have a row with `problem`.",
    (*RUN_COLUMNS, *LOG_RECORD_COLUMNS),
)

EPOCH_STARTS = ArrayType(StructType([StructField("epoch", IntegerType()), StructField("start_offset", LongType())]))
CHECKPOINTS = ArrayType(
    StructType(
        [
            StructField("file", StringType()),
            StructField("offset", LongType()),
            StructField("epoch", IntegerType()),
            StructField("complete", BooleanType()),
        ]
    )
)

VOTER_ENDS = ArrayType(
    StructType(
        [
            StructField("voter_id", IntegerType()),
            StructField("log_end_offset", LongType()),
        ]
    )
)
VOTER_DIRECTORIES = ArrayType(
    StructType(
        [
            StructField("voter_id", IntegerType()),
            StructField("directory_id", StringType()),
        ]
    )
)
LOG_COPY_COLUMNS = (
    column("controller_id", IntegerType(), "node.id (or broker.id) of meta.properties."),
    column("location", StringType(), "Folder the copy was read from."),
    column("cluster_id", StringType(), "cluster.id of meta.properties."),
    column("meta_version", IntegerType(), "version of meta.properties."),
    column(
        "log_start_offset",
        LongType(),
        "First offset in the segments (inclusive); null when there is no segment with a batch.",
    ),
    column("log_end_offset", LongType(), "One past the last offset of the last intact batch (exclusive)."),
    column("last_epoch", IntegerType(), "Leader epoch of the last intact batch."),
    column("last_append_time", LongType(), "Append time of the last intact batch, milliseconds since the epoch."),
    column("epoch_starts", EPOCH_STARTS, "Leader epochs in the batches, each with its first offset (inclusive)."),
    column(
        "checkpoints",
        CHECKPOINTS,
        "Metadata snapshots (.checkpoint): file name, offset (exclusive), epoch; complete means that it has header and footer.",
    ),
    column("quorum_leader_id", IntegerType(), "leaderId of quorum-state."),
    column("quorum_leader_epoch", IntegerType(), "leaderEpoch of quorum-state."),
    column("voters", ArrayType(IntegerType()), "Voters of quorum-state or of the newest LeaderChange."),
    column(
        "producer_snapshot_offset",
        LongType(),
        "Offset (exclusive) of the newest producer snapshot (.snapshot): a controller that stops cleanly writes one at its log's end.",
    ),
    column(
        "high_watermark",
        LongType(),
        "Offset (exclusive) below which all is committed, as reported by the leader it was fetched from; null for copies of files.",
    ),
    column(
        "fetched_at", LongType(), "Time of the leader's answer, milliseconds since the epoch, by the audit's clock."
    ),
    column(
        "voter_ends",
        VOTER_ENDS,
        "Log end offset (exclusive) of each voter, as reported by that leader; null for copies of files.",
    ),
    column("bytes", LongType(), "Size of all segments in bytes."),
    column("torn_tail_bytes", LongType(), "Bytes after the last intact batch (zero-filled, preallocated or torn)."),
    column("chosen_from", LongType(), "First offset that was read from this copy (inclusive); null when none was."),
    column("chosen_to", LongType(), "One past the last offset that was read from this copy (exclusive)."),
    column(
        "base_run",
        StringType(),
        "Run whose kept state replaces the records below chosen_from; null when all were read.",
    ),
    column("problem", StringType(), "Why the copy can't be used, or null."),
    column(
        "directory_id", StringType(), "directory.id of meta.properties: identifies the disk in the quorum (KIP-853)."
    ),
    column("largest_batch_bytes", LongType(), "Size of the largest intact batch in the segments, in bytes."),
    column(
        "bootstrap_level",
        IntegerType(),
        "metadata.version of the bootstrap.checkpoint next to the log; null without one, or without a level in it.",
    ),
    column(
        "voter_directories",
        VOTER_DIRECTORIES,
        "Directory ids of `voters`, as far as they are known (KIP-853): a controller with another one is an observer.",
    ),
    column("damaged", BooleanType(), "True if a batch in the segments is damaged, missing or out of order (CAP-02)."),
    column(
        "silent_voters",
        ArrayType(IntegerType()),
        "Voters that had not fetched from that leader for ten seconds, or never since its election; null for copies of files.",
    ),
    column(
        "other_log",
        BooleanType(),
        "True if the copy has the cluster's id and is of another log than the one that is read (CAP-11); `problem` says why.",
    ),
)

KRAFT_LOG_COPIES = Table(
    Layer.BRONZE,
    "kraft_log_copies",
    "Controllers' copies of the metadata log, one row per copy and run: its content, and the part that was read.",
    (*RUN_COLUMNS, *LOG_COPY_COLUMNS),
)

QUARANTINE = Table(
    Layer.BRONZE,
    "quarantine",
    "Everything that could not be read or decoded: its place and the reason, never the bytes.",
    (
        *RUN_COLUMNS,
        column("source", StringType(), "zookeeper or kraft."),
        column("file", StringType(), "File or znode path."),
        column("position", LongType(), "Byte position in the file; null for a znode."),
        column("length", LongType(), "Bytes that could not be used."),
        column("offset", LongType(), "Offset of the record or batch in the log; null where it is not known."),
        column("reason", StringType(), "What is wrong, in one line."),
    ),
)

ZK_TRANSACTIONS = Table(
    Layer.BRONZE,
    "zk_transactions",
    "ZooKeeper's transaction logs: one row per transaction, or per operation of a multi.",
    (
        *RUN_COLUMNS,
        column("zxid", LongType(), "Transaction id (zxid)."),
        column("time", LongType(), "Time in the transaction header, milliseconds since the epoch."),
        column("session", LongType(), "Id of the session that sent it."),
        column("multi_index", IntegerType(), "Position inside a multi, from 0; null when the operation stands alone."),
        column("multi_size", IntegerType(), "Number of operations in the multi; null when the operation stands alone."),
        column("failed", BooleanType(), "True when the multi contains an error: none of it was applied."),
        column(
            "type",
            StringType(),
            "Type: create, setData, delete, check, error, createSession, closeSession, setACL and so on.",
        ),
        column("path", StringType(), "Path the operation acts on."),
        column("data", StringType(), "New data as text, secrets fingerprinted."),
        column("version", IntegerType(), "The resulting dataVersion, or the one that is checked."),
    ),
)

TABLES = (ZK_ZNODES, ZK_TRANSACTIONS, KRAFT_RECORDS, KRAFT_LOG_COPIES, QUARANTINE)
