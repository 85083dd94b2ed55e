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
        column(
            "phase", StringType(), "Where it stood: zookeeper, waiting, dual_write, finalized, rolled_back or kraft."
        ),
        column("label", StringType(), "The word of the report's banner: Clean, Not ready, Warnings or Errors."),
        column("headline", StringType(), "The headline of the report's banner."),
        column(
            "to_do", StringType(), "What to do first, or next towards finalising; null when there is nothing to do."
        ),
        column(
            "gates", MapType(StringType(), StringType()), "Verdict of each gate by its name, as in the table gates."
        ),
        column(
            "statuses",
            MapType(StringType(), LongType()),
            "Number of defects that are new, persisting and resolved, of those that the report lists.",
        ),
        column("open_checks", _STRINGS, "Ids of the checks that failed or warned."),
    ),
)

MAILS = Table(
    Layer.GOLD,
    "mails",
    "The mails about runs: one row for each cluster a mail told of. Addresses are not kept.",
    (
        *RUN_COLUMNS,
        column("tried_at", TimestampType(), "When it was sent, or tried for the last time, UTC."),
        column("policy", StringType(), "What the configuration asks for: always, on_change or when_red."),
        column("reason", StringType(), "Why it was sent: always, change, reminder or red."),
        column("recipients", IntegerType(), "Number of addresses it was for."),
        column("problem", StringType(), "Why it was not sent, in one line; null when it was."),
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

TABLES: tuple[Table, ...] = (DIVERGENCES, CHECKS, GATES, LAG, BROKER_PRESENCE, RUNS, RUN_STEPS, MAILS)
