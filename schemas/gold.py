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
    "Differences between ZooKeeper and KRaft: one row per differing value or missing row.",
    (
        *RUN_COLUMNS,
        column(
            "fingerprint",
            StringType(),
            "Id made of entity, key, column and class: the same in every run that has the divergence.",
        ),
        column("entity", StringType(), "Entity of the row."),
        column("key", StringType(), "Canonical key as one JSON object."),
        column("column", StringType(), "Differing column; null when the whole row is missing on one side."),
        column("kind", StringType(), "zk_only, kraft_only or differs."),
        column("zk_value", StringType(), "ZooKeeper's value as JSON."),
        column("kraft_value", StringType(), "KRaft's value as JSON."),
        column(
            "class",
            StringType(),
            "Why it differs: lag, in_flight, lost_write, foreign_write, load_loss and so on (docs/semantics.md §5.6).",
        ),
        column("severity", StringType(), "critical, error, warning or info."),
        column("explanation", StringType(), "Why this class: offsets, zxids, times."),
        column("zk_path", StringType(), "Path of the znode."),
        column("zk_mzxid", LongType(), "zxid of the last change of the znode's data."),
        column("kraft_offset", LongType(), "Offset of the last record on the row."),
        column("first_seen_run", StringType(), "Id of the run that saw it first."),
        column(
            "status", StringType(), "new, persisting or resolved; a resolved row was in the previous run and is gone."
        ),
    ),
)

CHECKS = Table(
    Layer.GOLD,
    "checks",
    "Verdict of every check of the catalogue.",
    (
        *RUN_COLUMNS,
        column("check_id", StringType(), "Id in the catalogue."),
        column("gates", _STRINGS, "Gates the check can block."),
        column("severity", StringType(), "critical, error or warning: what a violation is."),
        column("verdict", StringType(), "pass, warn, fail, unknown or not_applicable."),
        column("violations", LongType(), "Exact number of violations."),
        column("evidence", _STRINGS, "A bounded sample of the violations, a line each."),
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
        column("blocking", _STRINGS, "Ids of the checks that block it."),
    ),
)

LAG = Table(
    Layer.GOLD,
    "lag",
    "How far ZooKeeper is behind the log, as the metric ZkWriteBehindLag should say it: one row per run.",
    (
        *RUN_COLUMNS,
        column("measured_at", LongType(), "Start of the run that measured it, milliseconds since the epoch."),
        column("records", LongType(), "Number of records in the log past `/migration`'s offset."),
        column(
            "seconds",
            DoubleType(),
            "Seconds from the append of the oldest record that ZooKeeper lacks to that of the newest record; 0 without lag.",
        ),
        column("alive", BooleanType(), "False when /migration was not written to just before the capture."),
        column("kraft_metadata_offset", LongType(), "Offset in `/migration`, inclusive."),
        column("committed_end_offset", LongType(), "Last committed offset, inclusive."),
    ),
)

BROKER_PRESENCE = Table(
    Layer.GOLD,
    "broker_presence",
    "The broker ledger: every broker id seen anywhere, its mode and what it blocks.",
    (
        *RUN_COLUMNS,
        column("broker_id", IntegerType(), "Broker id."),
        column("mode", StringType(), "zookeeper, kraft, transition, missing, stopped or config_only."),
        column("in_zookeeper", BooleanType(), "Has a znode under `/brokers/ids`."),
        column("registered", BooleanType(), "Is registered in KRaft."),
        column("is_migrating_zk_broker", BooleanType(), "Registered as a ZooKeeper broker ready to migrate."),
        column("fenced", BooleanType(), "Fenced in KRaft."),
        column(
            "replicas",
            LongType(),
            "Number of replicas assigned to it: by ZooKeeper, or by KRaft where ZooKeeper was not read.",
        ),
        column("has_config", BooleanType(), "Has dynamic configurations."),
        column("blocks", _STRINGS, "Gates it blocks."),
        column("note", StringType(), "What to know or do."),
    ),
)

EXPECTATIONS = Table(
    Layer.GOLD,
    "expectations",
    "Results of the suites of expectations that a configuration names: one row per expectation.",
    (
        *RUN_COLUMNS,
        column("suite", StringType(), "Name of the suite."),
        column("table", StringType(), "Table it is about, as layer.name."),
        column("expectation", StringType(), "Its type, in Great Expectations' words."),
        column("kwargs", StringType(), "Its arguments as one JSON object."),
        column(
            "column", StringType(), "The columns it is about, separated by commas; null when it is about the table."
        ),
        column("severity", StringType(), "error or warning: what a failure is."),
        column("success", BooleanType(), "True when it is met; false also when it could not be judged."),
        column("rows", LongType(), "Number of rows of the run that it was judged by."),
        column("unexpected", LongType(), "Exact number of rows that are not as expected; null when not about rows."),
        column("percent", DoubleType(), "Their share in percent of the rows whose column is not null."),
        column("observed", StringType(), "What was found instead, where it is not about rows."),
        column(
            "sample", _STRINGS, "At most 20 of those rows as JSON objects; values where only the library knows them."
        ),
        column("sql", StringType(), "The statement that gives all of them."),
        column("problem", StringType(), "Why it could not be judged; null when it could."),
    ),
)

RUNS = Table(
    Layer.GOLD,
    "runs",
    "The finished runs, one row each: inputs, table versions, counts, verdict; enough to rebuild each report.",
    (
        *RUN_COLUMNS,
        column("started_at", TimestampType(), "Start of the run, UTC."),
        column("finished_at", TimestampType(), "End of the run, UTC."),
        column("kafka_version", StringType(), "Kafka version configured or inferred."),
        column("mode", StringType(), "barrier, bracket, single, kraft_only or zookeeper_only."),
        column(
            "state",
            StringType(),
            "Migration state as the log records it: NONE, PRE_MIGRATION, MIGRATION or POST_MIGRATION.",
        ),
        column("verdict", StringType(), "clean, warnings or errors; failed when the audit did not come to its end."),
        column("failure", StringType(), "Why the audit of this cluster failed, in one line; null when it did not."),
        column(
            "walks", _STRINGS, "snapshot_id in bronze zk_znodes of the tree that was judged, and of a bracket's second."
        ),
        column("exit_code", IntegerType(), "Exit code of the run."),
        column("defects", LongType(), "Number of divergences in a class that is a defect."),
        column("divergences", LongType(), "Number of all divergences."),
        column(
            "lag_records",
            LongType(),
            "Number of records in the log past `/migration`'s offset; null where lag does not apply.",
        ),
        column("lag_seconds", DoubleType(), "Lag in seconds, as in the table lag."),
        column(
            "table_versions",
            MapType(StringType(), LongType()),
            "Delta version of every silver table at the end of the run.",
        ),
        column("report", StringType(), "report.json of the run, as text."),
    ),
)

RUN_STEPS = Table(
    Layer.GOLD,
    "run_steps",
    "What each step of a run leaves to the next one, when every step is a process of its own: one row for each step.",
    (
        *RUN_COLUMNS,
        column("step", StringType(), "ingest_zookeeper, ingest_kraft, materialize or reconcile."),
        column("started_at", TimestampType(), "Start of the run, UTC: of its first step."),
        column("finished_at", TimestampType(), "End of the step, UTC."),
        column("notes", _STRINGS, "What the report should say of the run, from all steps so far."),
        column("walks", _STRINGS, "snapshot_id in bronze zk_znodes of the tree to judge, and of a bracket's second."),
    ),
)

TABLES: tuple[Table, ...] = (DIVERGENCES, CHECKS, GATES, LAG, BROKER_PRESENCE, EXPECTATIONS, RUNS, RUN_STEPS)
