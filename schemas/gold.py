"""Gold tables: what people read. Every run adds its rows; nothing is rewritten."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    TimestampType,
)

from schemas.bronze import RUN_COLUMNS
from schemas.table import Layer, Table, column

_STRINGS = ArrayType(StringType())

DIVERGENCES = Table(
    Layer.GOLD,
    "divergences",
    "Differences between ZooKeeper and KRaft: one row a differing cell or missing row.",
    (
        *RUN_COLUMNS,
        column("fingerprint", StringType(), "Stable id of (entity, key, column, class): follows the row over runs."),
        column("entity", StringType(), "Entity of the row."),
        column("key", StringType(), "Canonical key as one JSON object."),
        column("column", StringType(), "Differing column; null when the whole row is missing on one side."),
        column("kind", StringType(), "zk_only, kraft_only or differs."),
        column("zk_value", StringType(), "ZooKeeper's value as JSON."),
        column("kraft_value", StringType(), "KRaft's value as JSON."),
        column("class", StringType(), "lag, in_flight, lost_write, foreign_write, load_loss, load_extra, … (S§5.6)."),
        column("severity", StringType(), "critical, error, warning or info."),
        column("explanation", StringType(), "Why this class: offsets, zxids, times."),
        column("zk_path", StringType(), "Znode."),
        column("zk_mzxid", LongType(), "Its last data change."),
        column("kraft_offset", LongType(), "Offset of the last record on the row."),
        column("first_seen_run", StringType(), "Run that saw it first."),
        column("status", StringType(), "new, persisting or resolved (resolved rows are those of the previous run)."),
    ),
)

CHECKS = Table(
    Layer.GOLD,
    "checks",
    "Verdict of every check of the catalogue.",
    (
        *RUN_COLUMNS,
        column("check_id", StringType(), "Id in the catalogue."),
        column("gates", _STRINGS, "Gates it can block."),
        column("severity", StringType(), "error or warning."),
        column("verdict", StringType(), "pass, warn, fail, unknown or not_applicable."),
        column("violations", LongType(), "Exact number of violations."),
        column("evidence", _STRINGS, "A bounded sample."),
        column("title", StringType(), "What must hold."),
    ),
)

GATES = Table(
    Layer.GOLD,
    "gates",
    "The decisions: may the migration start, go on, be finalised, be rolled back.",
    (
        *RUN_COLUMNS,
        column("gate", StringType(), "start, dual_write, finalize or rollback."),
        column("verdict", StringType(), "go, no_go, unknown or not_applicable."),
        column("blocking", _STRINGS, "Checks that block it."),
    ),
)

LAG = Table(
    Layer.GOLD,
    "lag",
    "ZkWriteBehindLag as measured: records of the log that ZooKeeper does not have.",
    (
        *RUN_COLUMNS,
        column("measured_at", LongType(), "When the capture was taken, milliseconds since the epoch."),
        column("records", LongType(), "Last offset of the log - /migration's offset."),
        column("seconds", DoubleType(), "Age of the oldest record of the log that ZooKeeper lacks."),
        column("alive", BooleanType(), "False when /migration was not written to just before the capture."),
        column("kraft_metadata_offset", LongType(), "Offset in `/migration`, inclusive."),
        column("committed_end_offset", LongType(), "Last committed offset."),
    ),
)

BROKER_PRESENCE = Table(
    Layer.GOLD,
    "broker_presence",
    "The broker ledger: every broker id seen anywhere, its mode and what it blocks.",
    (
        *RUN_COLUMNS,
        column("broker_id", IntegerType(), "Broker id."),
        column("mode", StringType(), "zookeeper, kraft, transition, missing, stopped, config_only."),
        column("in_zookeeper", BooleanType(), "Has a znode under `/brokers/ids`."),
        column("registered", BooleanType(), "Is registered in KRaft."),
        column("is_migrating_zk_broker", BooleanType(), "Registered as a ZooKeeper broker ready to migrate."),
        column("fenced", BooleanType(), "Fenced in KRaft."),
        column("replicas", LongType(), "Replicas assigned to it."),
        column("has_config", BooleanType(), "Has dynamic configurations."),
        column("blocks", _STRINGS, "Gates it blocks, with the check."),
        column("note", StringType(), "What to know or do."),
    ),
)

RUNS = Table(
    Layer.GOLD,
    "runs",
    "One row a run: inputs, table versions, counts, verdict; enough to rebuild its report.",
    (
        *RUN_COLUMNS,
        column("started_at", TimestampType(), "Start of the run."),
        column("finished_at", TimestampType(), "End of the run."),
        column("kafka_version", StringType(), "Kafka version configured or inferred."),
        column("mode", StringType(), "barrier, bracket, single, kraft_only or zookeeper_only."),
        column("state", StringType(), "Migration state."),
        column("verdict", StringType(), "clean, warnings or errors."),
        column("exit_code", IntegerType(), "Exit code of the run."),
        column("defects", LongType(), "Divergences in a defect class."),
        column("divergences", LongType(), "All divergences."),
        column("lag_records", LongType(), "ZkWriteBehindLag in records."),
        column("lag_seconds", DoubleType(), "ZkWriteBehindLag in seconds."),
        column("table_versions", MapType(StringType(), LongType()), "Delta version of every table read or written."),
        column("report", StringType(), "report.json of the run."),
    ),
)

TABLES: tuple[Table, ...] = (DIVERGENCES, CHECKS, GATES, LAG, BROKER_PRESENCE, RUNS)
