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
    StructField,
    StructType,
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
            "Hash of entity, key, column and class: the same in every run that has the divergence.",
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
        column("explanation", StringType(), "Reason for the class: offsets, zxids, times."),
        column(
            "zk_path",
            StringType(),
            "Path of the znode; of a row whose folder is missing in ZooKeeper, of the highest znode that is missing.",
        ),
        column("zk_mzxid", LongType(), "zxid of the last change of the znode's data."),
        column("kraft_offset", LongType(), "Offset of the row's last record."),
        column(
            "lost_offset", LongType(), "Of a lost write, the offset of the first record whose effect ZooKeeper lacks."
        ),
        column(
            "lost_after_zxid",
            LongType(),
            "Of a lost write, the last transaction (zxid) after which ZooKeeper had everything; null without transaction logs.",
        ),
        column(
            "lost_until_zxid",
            LongType(),
            "Of a lost write, the transaction (zxid) by which it should have arrived; null without transaction logs.",
        ),
        column("first_seen_run", StringType(), "Id of the first run that had it."),
        column(
            "status", StringType(), "new, persisting or resolved; a resolved row was in the previous run and is gone."
        ),
    ),
)

CHECKS = Table(
    Layer.GOLD,
    "checks",
    "Verdicts of all checks of the catalogue.",
    (
        *RUN_COLUMNS,
        column("check_id", StringType(), "Id in the catalogue."),
        column("gates", _STRINGS, "Gates the check can block."),
        column("severity", StringType(), "critical, error or warning: severity of a violation."),
        column("verdict", StringType(), "pass, warn, fail, unknown or not_applicable."),
        column("violations", LongType(), "Exact number of violations."),
        column("evidence", _STRINGS, "A bounded sample of the violations, one line each."),
        column("title", StringType(), "What must hold."),
    ),
)

GATES = Table(
    Layer.GOLD,
    "gates",
    "The decisions: may the migration start, continue, be finalised, be rolled back; may a KRaft cluster be upgraded.",
    (
        *RUN_COLUMNS,
        column("gate", StringType(), "start, dual_write, finalize, rollback or upgrade."),
        column("verdict", StringType(), "go, no_go, unknown or not_applicable."),
        column("blocking", _STRINGS, "Ids of the checks that block it."),
    ),
)

LAG = Table(
    Layer.GOLD,
    "lag",
    "How far ZooKeeper is behind the log, as the metric ZkWriteBehindLag should show it: one row per run.",
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
        column("phase", StringType(), "Phase of the cluster, as in the table runs: lag applies in dual_write only."),
    ),
)

LAG_SERIES = Table(
    Layer.GOLD,
    "lag_series",
    "Lag at the barriers of ZooKeeper's transaction logs: how many records each mirrored, and how long they had waited. A run has "
    "at most 500 rows of a cluster, among them the worst and the last of each interval.",
    (
        *RUN_COLUMNS,
        column("zxid", LongType(), "Transaction after which ZooKeeper had everything up to the offset."),
        column("time", LongType(), "Time of that transaction by ZooKeeper's clock, milliseconds since the epoch."),
        column("kraft_metadata_offset", LongType(), "Offset up to which ZooKeeper had everything, inclusive."),
        column("records", LongType(), "Number of records that arrived with it: ZooKeeper had lacked them until then."),
        column("seconds", DoubleType(), "Seconds that the oldest of these records had waited."),
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
            "Number of replicas assigned to it: in ZooKeeper, or in KRaft if ZooKeeper was not read.",
        ),
        column("has_config", BooleanType(), "Has dynamic configurations."),
        column("blocks", _STRINGS, "Gates it blocks."),
        column("note", StringType(), "Explanation, or the next step."),
    ),
)

EXPECTATIONS = Table(
    Layer.GOLD,
    "expectations",
    "Results of the configured suites of expectations: one row per expectation.",
    (
        *RUN_COLUMNS,
        column("suite", StringType(), "Name of the suite."),
        column("table", StringType(), "Table it concerns, as layer.name."),
        column("expectation", StringType(), "Its type, as Great Expectations names it."),
        column("kwargs", StringType(), "Its arguments as one JSON object."),
        column(
            "column", StringType(), "The columns it concerns, separated by commas; null when it concerns the table."
        ),
        column("severity", StringType(), "error or warning: severity of a failure."),
        column("success", BooleanType(), "True when it is met; also false when it could not be judged."),
        column("rows", LongType(), "Number of the run's rows that were judged."),
        column(
            "unexpected", LongType(), "Exact number of rows that do not meet it; null when it does not concern rows."
        ),
        column("percent", DoubleType(), "Their share in percent of the rows whose column is not null."),
        column("observed", StringType(), "The observed value, if it does not concern rows."),
        column(
            "sample",
            _STRINGS,
            "At most 20 of those rows as JSON objects, or their values if the library gives no rows.",
        ),
        column("sql", StringType(), "The statement that selects all of them."),
        column("problem", StringType(), "Why it could not be judged; null when it could."),
    ),
    replaced=True,
)

RUNS = Table(
    Layer.GOLD,
    "runs",
    "The runs that finished or failed, one row for each cluster: inputs, table versions, counts, verdict; enough to "
    "rebuild each report. A run without a row does not count.",
    (
        *RUN_COLUMNS,
        column("started_at", TimestampType(), "Start of the run, UTC."),
        column("finished_at", TimestampType(), "End of the run, UTC."),
        column("kafka_version", StringType(), "Kafka version configured or inferred."),
        column("mode", StringType(), "barrier, bracket, single, kraft_only or zookeeper_only."),
        column(
            "state",
            StringType(),
            "Migration state in the log: NONE, PRE_MIGRATION, MIGRATION or POST_MIGRATION.",
        ),
        column("verdict", StringType(), "clean, warnings or errors; failed when the audit did not finish."),
        column("failure", StringType(), "Why the audit of this cluster failed, in one line; null when it did not."),
        column(
            "walks", _STRINGS, "snapshot_id in bronze zk_znodes of the tree that was judged, and of a bracket's second."
        ),
        column("exit_code", IntegerType(), "Exit code of the run."),
        column(
            "defects",
            LongType(),
            "Number of divergences in a class that is a defect; null for a run that failed or that did not compare the two sides (0 in "
            "rows of earlier releases).",
        ),
        column("divergences", LongType(), "Number of all divergences; null as `defects`."),
        column(
            "lag_records",
            LongType(),
            "Number of records in the log past `/migration`'s offset; null if lag does not apply.",
        ),
        column("lag_seconds", DoubleType(), "Lag in seconds, as in the table lag."),
        column(
            "table_versions",
            MapType(StringType(), LongType()),
            "Delta version of every silver table at the end of the run.",
        ),
        column("report", StringType(), "The document of the run's report.json, as one line of JSON."),
        column(
            "phase",
            StringType(),
            "Phase of the cluster: zookeeper, waiting, dual_write, finalized, rolled_back or kraft.",
        ),
        column("label", StringType(), "Label of the report's banner: Clean, Not ready, Warnings or Errors."),
        column("headline", StringType(), "The headline of the report's banner."),
        column(
            "to_do",
            StringType(),
            "The first thing to do, or the next step towards finalising; null when there is nothing to do.",
        ),
        column(
            "gates", MapType(StringType(), StringType()), "Verdict of each gate by its name, as in the table gates."
        ),
        column(
            "statuses",
            MapType(StringType(), LongType()),
            "Number of new, persisting and resolved defects; in rows of earlier releases of those that the report lists.",
        ),
        column("open_checks", _STRINGS, "Ids of the checks that failed or warned."),
        column(
            "passed_checks",
            _STRINGS,
            "Ids of the checks that passed: all others are open, unknown or not applicable. Null for a run that failed, and in rows of "
            "releases without it.",
        ),
        column(
            "sequence",
            LongType(),
            "Number of the run among the cluster's runs, including failed ones: the highest is the newest, independent of clocks. Null "
            "in rows of releases without it: they come before the others.",
        ),
        column("cluster_id", StringType(), "cluster.id of the log's copies, or of `/cluster/id`; null when unknown."),
        column(
            "committed_end_offset", LongType(), "Last offset (inclusive) that was proved committed; null without a log."
        ),
        column("log_end_offset", LongType(), "Last offset (inclusive) of the log that was read; null without a log."),
        column("newest_append_time", LongType(), "Append time of its last record, milliseconds since the epoch."),
        column(
            "leader_epochs",
            ArrayType(
                StructType([StructField("epoch", IntegerType()), StructField("start_offset", LongType())]),
            ),
            "The log's newest leader epochs, each with its first offset, ascending.",
        ),
        column(
            "goes_on",
            BooleanType(),
            "False when the log was not the one that earlier runs had read, or was an older copy (RUN-01 to RUN-03, CAP-11): "
            "later runs are compared with the run before it.",
        ),
        column(
            "kept",
            StringType(),
            "The kept state that the next run resumes, as one JSON object (`jobs.run.kept`): its place, up to "
            "which offset it goes, and digests of its bytes; null for a run that failed.",
        ),
        column(
            "beside",
            StringType(),
            "Inputs of the run besides its sources, as one JSON object, so that commands judge it as its report did: the thresholds, "
            "the milliseconds it spent reading, and from property files the voters by id and the formats; null for a run that failed.",
        ),
        column(
            "retention",
            StringType(),
            "How long the configuration keeps the cluster's rows (sections `maintain` and `hold`), as one JSON object: "
            "`kraft-audit maintain --warehouse` uses the newest run's.",
        ),
        column(
            "state_runs",
            _STRINGS,
            "The runs whose rows in the silver tables of entities make up this run's state, in order: the first one stored all "
            "rows, the others the changes. Null in rows of releases that stored all rows in every run: theirs have its run_id.",
        ),
        column(
            "by_class",
            MapType(StringType(), LongType()),
            "Number of divergences of each class that has any; null for a run that failed, and in rows of releases without it.",
        ),
    ),
)

MAILS = Table(
    Layer.GOLD,
    "mails",
    "The mails and messages about runs: one row for each cluster in a mail or message. Addresses are not stored.",
    (
        *RUN_COLUMNS,
        column("tried_at", TimestampType(), "Time at which it was sent, or last tried, UTC."),
        column("policy", StringType(), "The configured policy: always, on_change or when_red."),
        column("reason", StringType(), "Why it was sent: always, change, reminder or red."),
        column("recipients", IntegerType(), "Number of its addresses."),
        column("problem", StringType(), "Why it was not sent, in one line; null when it was."),
        column(
            "channel",
            StringType(),
            "Null for a mail; for a message the environment variable that holds its address.",
        ),
    ),
)

RUN_STEPS = Table(
    Layer.GOLD,
    "run_steps",
    "What each step of a run leaves to the next if every step is a process of its own: for each attempt at a step one row "
    "when it begins and one when it has finished; if a step was repeated, the last attempt counts.",
    (
        *RUN_COLUMNS,
        column("step", StringType(), "ingest_zookeeper, ingest_kraft, materialize or reconcile."),
        column("started_at", TimestampType(), "Start of the run, UTC: of its first step."),
        column("finished_at", TimestampType(), "End of the step, UTC; null in the row of its beginning."),
        column("notes", _STRINGS, "Notes for the report, from all steps so far."),
        column("walks", _STRINGS, "snapshot_id in bronze zk_znodes of the tree to judge, and of a bracket's second."),
        column("walked_at_ms", LongType(), "Start of the walk of a live ZooKeeper, milliseconds since the epoch."),
        column("log_seen_at_ms", LongType(), "When the end of the log was looked up, milliseconds since the epoch."),
        column("attempt", StringType(), "Id of the attempt at the step; null in rows of releases without it."),
        column(
            "rows_read",
            MapType(StringType(), LongType()),
            "Number of the run's rows in each bronze table, from all steps so far.",
        ),
    ),
)

_IDS = ArrayType(IntegerType())
_LISTS_OF_A_PARTITION = {
    "replicas": "Assigned broker ids, in order",
    "adding_replicas": "Replicas that a reassignment adds",
    "removing_replicas": "Replicas that a reassignment removes",
    "isr": "In-sync replicas, in order",
    "eligible_leader_replicas": "Eligible leader replicas (KIP-966)",
    "last_known_elr": "Last known eligible leader replicas (KIP-966)",
}
_NUMBERS_OF_A_PARTITION = {
    "leader": "Broker id of the leader, -1 for none",
    "leader_recovery_state": "0 recovered, 1 recovering from an election that may have lost data",
    "leader_epoch": "Leader epoch",
    "partition_epoch": "Partition epoch",
}


def _state_of_a_partition(suffix: str, when: str) -> tuple[StructField, ...]:
    lists = [column(name + suffix, _IDS, f"{text}, {when}.") for name, text in _LISTS_OF_A_PARTITION.items()]
    return (
        *lists,
        *[column(name + suffix, IntegerType(), f"{text}, {when}.") for name, text in _NUMBERS_OF_A_PARTITION.items()],
    )


# What `transforms.kernel.history` makes of a log.
ISR_CHANGE_COLUMNS = (
    column("topic", StringType(), "Topic."),
    column("topic_id", StringType(), "Topic id: a topic that was created again has another one."),
    column("partition", IntegerType(), "Partition number."),
    column("offset", LongType(), "Offset of the record that changed it."),
    column("epoch", IntegerType(), "Leader epoch of the record's batch: the controllers', not the partition's."),
    column("append_time", LongType(), "Append time of the record, milliseconds since the epoch."),
    column(
        "kinds",
        _STRINGS,
        "Kinds of the change, the most important first: created, replaced, an election, leader_move, leader_lost, epoch_bump, "
        "shrink, expand, recovered, a step of a reassignment, elr_gained, elr_lost, elr_cleared, directories.",
    ),
    column(
        "election",
        StringType(),
        "clean_election, elr_election, last_known_leader_election or unclean_election (the last two can lose data); null "
        "when no other leader was elected.",
    ),
    column("brokers", _IDS, "Broker ids in the change, ascending."),
    column("departed", _IDS, "Broker ids that left the ISR."),
    column("joined", _IDS, "Broker ids that joined the ISR."),
    *_state_of_a_partition("", "after the change"),
    *_state_of_a_partition("_before", "before it; null if the partition was created"),
    column(
        "before_time",
        LongType(),
        "Append time of the partition's record before this one, milliseconds since the epoch; null if it was created.",
    ),
    column(
        "leaderless_since",
        LongType(),
        "If the partition had no leader before: append time of the record by which it lost its leader, milliseconds since the "
        "epoch, or of its last change before the log that was read.",
    ),
)

ISR_HISTORY = Table(
    Layer.GOLD,
    "isr_history",
    "Every committed change of a partition's ISR, leader and epochs that any run has read, each once (twice "
    "if two runs read it at the same time): it is kept after Kafka has deleted its segment. `run_id` is the first finished run "
    "that read the record; rows of a run without a row in gold runs, which was killed, do not count.",
    (*RUN_COLUMNS, *ISR_CHANGE_COLUMNS),
)
ISR_CHANGE = StructType([RUN_COLUMNS[0], *ISR_CHANGE_COLUMNS])

ISR_BY_DAY = Table(
    Layer.GOLD,
    "isr_by_day",
    "Sums of the changes of a partition by day, which `kraft-audit maintain` makes of rows of isr_history that are older than "
    "`isr_days` before it removes them. A change is in one of the two tables; while maintenance works, or after it was killed, "
    "rows of isr_history whose run is in `runs` of that partition and day are in the sum already and do not count.",
    (
        RUN_COLUMNS[0],
        column("run_id", StringType(), "Id of the newest run whose changes are in the sums."),
        column("topic", StringType(), "Topic."),
        column("topic_id", StringType(), "Topic id: a topic that was created again has another one."),
        column("partition", IntegerType(), "Partition number."),
        column("day", StringType(), "Day of the records' append times, as YYYY-MM-DD, UTC."),
        column("changes", LongType(), "Number of changes; one is often of several kinds."),
        column("shrinks", LongType(), "Number of changes by which brokers left the ISR."),
        column("expansions", LongType(), "Number of changes by which brokers joined the ISR."),
        column("elections", LongType(), "Number of elections of another leader."),
        column(
            "lossy_elections", LongType(), "Number of these that may have lost data: unclean and last known leader."
        ),
        column("leader_losses", LongType(), "Number of changes that left it without a leader."),
        column("reassignments", LongType(), "Number of steps of reassignments: begun, changed, completed, cancelled."),
        column("elr_changes", LongType(), "Number of changes of its ELR: gained, lost, cleared."),
        column("runs", _STRINGS, "Ids of the runs whose changes are in the sums, ascending."),
    ),
)

ISR_AUDIT = Table(
    Layer.GOLD,
    "isr_audit",
    "Sums of the history of partitions over the last day of a log, the worst of each subject: by partition or "
    "broker and hour, and as of the log's end. A time that began before that day counts from the partition's last record before it.",
    (
        *RUN_COLUMNS,
        column(
            "subject",
            StringType(),
            "partition, broker (the ISRs it left or joined, its elections), or leadership (the partitions it leads).",
        ),
        column("topic", StringType(), "Topic of a partition's row."),
        column("partition", IntegerType(), "Partition number of a partition's row."),
        column("broker_id", IntegerType(), "Broker id of a broker's row."),
        column(
            "hour",
            LongType(),
            "Start of the hour, milliseconds since the epoch; null for the state at the end of the log.",
        ),
        column("shrinks", LongType(), "Number of changes by which brokers (this broker) left the ISR."),
        column("expansions", LongType(), "Number of changes by which brokers (this broker) joined the ISR."),
        column("elections", LongType(), "Number of elections of another leader (of this broker)."),
        column(
            "lossy_elections", LongType(), "Number of these that may have lost data: unclean and last known leader."
        ),
        column(
            "flaps",
            LongType(),
            "Most times that one broker left or joined one ISR within an hour that ended in this one.",
        ),
        column(
            "leaderless_ms",
            LongType(),
            "Milliseconds without a leader that ended in the hour; at the end of the log, so far.",
        ),
        column(
            "under_min_ms",
            LongType(),
            "Milliseconds with an ISR smaller than min.insync.replicas (the topic's, or the cluster's dynamic default) that "
            "ended in the hour; at the end of the log, so far.",
        ),
        column(
            "out_of_sync_ms",
            LongType(),
            "Milliseconds with a replica out of the ISR, until all were back (time to heal) in the hour; at the end of the "
            "log, so far.",
        ),
        column("leads", LongType(), "Leadership: number of partitions that the broker leads."),
        column("preferred", LongType(), "Leadership: number of partitions whose first replica it is."),
        column("place", IntegerType(), "Place among the rows of its subject, 1 for the worst."),
        column("total", LongType(), "Number of rows of the subject; only the worst are kept."),
    ),
)

FEATURE_MATRIX = Table(
    Layer.GOLD,
    "feature_matrix",
    "The levels of each feature that each node supports, with the finalised one (KIP-584).",
    (
        *RUN_COLUMNS,
        column("feature", StringType(), "Name of the feature."),
        column("node_kind", StringType(), "broker or controller."),
        column("node_id", IntegerType(), "Broker id, or node.id of the controller."),
        column("min_level", IntegerType(), "Lowest level that the node supports; 0 if it lacks the feature."),
        column("max_level", IntegerType(), "Highest level that the node supports; 0 if it lacks the feature."),
        column("finalised_level", IntegerType(), "Level that the cluster has finalised; null when it has none."),
        column("gap", StringType(), "The problem if the finalised level is outside the node's range; else empty."),
        column("fenced", BooleanType(), "True for a broker that is fenced in KRaft."),
        column("migrating_zk", BooleanType(), "True for a broker that is registered in ZooKeeper mode."),
    ),
)

DOWNGRADE_READINESS = Table(
    Layer.GOLD,
    "downgrade_readiness",
    "Whether the cluster can be downgraded to each older release, and why not (KIP-384): one row for each release and reason.",
    (
        *RUN_COLUMNS,
        column("mode", StringType(), "Where the metadata is: zookeeper, dual_write or kraft."),
        column("release", StringType(), "Target release, e.g. 3.6; null for a setting that breaks a rule on its own."),
        column("verdict", StringType(), "Verdict for the release, its worst outcome: blocked, unknown, loses or safe."),
        column(
            "outcome", StringType(), "blocked, unknown, loses, safe; setting if a setting breaks a rule on its own."
        ),
        column("reason", StringType(), "What blocks it, is lost, or is unknown; for safe, that the release reads it."),
        column("evidence", StringType(), "The znode, record with its offset, node or file that shows it."),
        column("place", IntegerType(), "Place among the release's reasons, 1 for the most important."),
    ),
)

MAINTENANCE = Table(
    Layer.GOLD,
    "maintenance",
    "What `kraft-audit maintain` did: a row for each run whose rows retention removes, written before their removal, and rows "
    "for the time at which it finished. Where there are no locks, also when each one began and ended.",
    (
        column("cluster", StringType(), "Name of the cluster; null in a row about all tables."),
        column(
            "run_id",
            StringType(),
            "Id of the run whose rows were removed, or of the maintenance that began or ended; null in a row about what is done.",
        ),
        column("done_at", TimestampType(), "Time, UTC."),
        column(
            "what",
            StringType(),
            "details (the run's rows in bronze and silver) or judged (in gold); at an end, rows (the cluster's old rows are "
            "gone) or files (tables were compacted and their old files removed); begun or ended: the maintenance itself.",
        ),
    ),
)

VERIFICATIONS = Table(
    Layer.GOLD,
    "verifications",
    "Results of `kraft-audit verify` for the newest run of a cluster: one row each time a cluster was examined again.",
    (
        *RUN_COLUMNS,
        column("verified_at", TimestampType(), "Time, UTC."),
        column(
            "verdict",
            StringType(),
            "equal (the stored results follow from the evidence), differs, or unknown (it could not be examined again).",
        ),
        column("problem", StringType(), "What differs, or why it could not be examined, in one line; null when equal."),
    ),
)

TABLES: tuple[Table, ...] = (
    DIVERGENCES,
    CHECKS,
    GATES,
    LAG,
    LAG_SERIES,
    BROKER_PRESENCE,
    EXPECTATIONS,
    RUNS,
    RUN_STEPS,
    ISR_HISTORY,
    ISR_BY_DAY,
    ISR_AUDIT,
    FEATURE_MATRIX,
    DOWNGRADE_READINESS,
    MAILS,
    MAINTENANCE,
    VERIFICATIONS,
)
