"""The report: everything the HTML, the e-mail, report.json and the exit code are made from.

`report.json` is this, as JSON: `format` rises when a meaning changes, fields may be added. Offsets are inclusive, the
last one that is meant; times are ISO 8601 in UTC unless a field says milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FORMAT = 1
ZNODE_READ, ZNODE_UNREADABLE, ZNODE_ABSENT, ZNODE_NOT_GIVEN = "read", "unreadable", "absent", "not given"


@dataclass(frozen=True)
class MigrationSummary:
    """Where the migration stands."""

    state: str
    """The last state the log records: NONE, PRE_MIGRATION, MIGRATION or POST_MIGRATION."""
    kraft_metadata_offset: int | None
    """Last mirrored offset by `/migration`, inclusive; -1 before the load, None where `migration_znode` is not `read`."""
    committed_end_offset: int | None
    """Last offset proved committed, inclusive: one less than the exclusive committed end."""
    log_end_offset: int | None
    """Last offset of the copy used, inclusive: one less than Kafka's log end offset."""
    leader_id: int | None
    """node.id of the leader of the newest epoch."""
    leader_epoch: int | None
    """The newest leader epoch in the log."""
    copy_used: int | None
    """node.id of the controller whose copy of the log was used."""
    explanation: str = ""
    """Why this copy, and how its end was proved committed."""
    history: list[dict[str, Any]] = field(default_factory=list)
    """The states in the log, in order: `offset`, `state`, `append_time` (milliseconds since the epoch); where one follows
    itself also `times` and `last_offset`."""
    phase: str = ""
    """A `schemas.checks.Phase`: it sets a cluster rolled back, or one born in KRaft, apart from its `state`."""
    compared_zxid: int | None = None
    """zxid of the barrier that the rows were compared at; None where they were compared with the tree as it was read."""
    compared_offset: int | None = None
    """`/migration`'s offset in the tree whose rows were compared, inclusive; None where nothing was compared."""
    newest_zxid: int | None = None
    """zxid of the newest change in the tree as it was read, by which all but rows is judged; None without a tree."""
    captured_at_ms: int | None = None
    """When ZooKeeper was read, milliseconds since the epoch: a live walk's begin, or the configuration's `as_of`; None for
    files, where the newest thing on either side counts."""
    clock_skew_ms: float | None = None
    """ZooKeeper's clock minus the controllers', in milliseconds; None where too few changes were mirrored to tell."""
    migration_znode: str = ""
    """`/migration`: `read`, `unreadable`, `absent`, or `not given` where ZooKeeper was not; empty in older reports."""


@dataclass(frozen=True)
class Lag:
    """How far ZooKeeper is behind the log, as ZkWriteBehindLag should show it. None where it does not apply or is unknown."""

    records: int | None
    """Number of records in the log past `/migration`'s offset."""
    seconds: float | None
    """Seconds from the append of the oldest record that ZooKeeper lacks to that of the newest record; 0 without lag."""
    alive: bool | None
    """False when /migration was not written to just before the capture."""
    explanation: str = ""
    """Why there is no lag to measure, or what shows that dual write has stopped."""
    state: str = ""
    """live, behind, silent, stopped or `stopped in order`; empty where nothing is measured, and in older reports."""


@dataclass(frozen=True)
class LagPoint:
    """A barrier of ZooKeeper's transaction logs: a transaction right after which ZooKeeper had everything up to an offset."""

    zxid: int
    """The transaction."""
    time: int
    """Its time by ZooKeeper's clock, milliseconds since the epoch."""
    kraft_metadata_offset: int
    """Offset up to which ZooKeeper had everything, inclusive."""
    records: int
    """Number of records that arrived with it: those ZooKeeper had lacked until then."""
    seconds: float
    """Seconds that the oldest of these records had waited."""


@dataclass(frozen=True)
class Gate:
    """One decision."""

    verdict: str
    """go, no_go, unknown or not_applicable."""
    blocking: list[str] = field(default_factory=list)
    """Ids of the checks that block it (no_go), or that could not be judged (unknown)."""
    explanation: str = ""
    """Why, in a sentence."""


@dataclass(frozen=True)
class CheckResult:
    """One check of the catalogue, as judged."""

    id: str
    """Id in the catalogue."""
    verdict: str
    """pass, warn, fail, unknown or not_applicable."""
    violations: int
    """Exact number of violations."""
    evidence: list[str] = field(default_factory=list)
    """A bounded sample of them, a line each; of another verdict than warn and fail, why it is so."""
    gates: list[str] = field(default_factory=list)
    """Gates the check can block."""
    severity: str = "error"
    """critical, error or warning: what a violation is."""
    title: str = ""
    """What must hold."""
    remedy: str = ""
    """What to do when it does not."""
    reference: str = ""
    """Where the rule comes from: a KIP's section, a ticket, Kafka's class, a section of docs/semantics.md."""


@dataclass(frozen=True)
class Suppression:
    """A user's statement that a difference is known: it is listed separately and still counted."""

    who: str
    """Whose word it is."""
    why: str
    """The reason given."""
    until: str
    """The last day it is in force, ISO 8601."""


@dataclass(frozen=True)
class DivergenceRow:
    """One differing value, or one row that a side lacks."""

    entity: str
    """Entity of the row, e.g. partitions."""
    key: dict[str, Any]
    """Key of the row, by the names of its columns."""
    column: str | None
    """Differing column; None when one side lacks the whole row."""
    kind: str
    """zk_only, kraft_only or differs."""
    zk_value: Any
    """ZooKeeper's value, of the column or of the row; None when it has none."""
    kraft_value: Any
    """KRaft's value, likewise."""
    class_: str
    """Why it differs: one of `schemas.classes`; `class` in JSON."""
    severity: str
    """critical, error, warning or info."""
    zk_path: str | None = None
    """Path of the znode it is in; of a row whose folder is missing in ZooKeeper, of the highest znode that is missing."""
    zk_mzxid: int | None = None
    """zxid of the last change of that znode's data."""
    kraft_offset: int | None = None
    """Offset of the last record on the row."""
    status: str = "new"
    """new, persisting or resolved, against the cluster's run before."""
    explanation: str = ""
    """Why this class: offsets, zxids, times."""
    remedy: str = ""
    """What to do."""
    lost_after_zxid: int | None = None
    """Of a lost write, the transaction after which ZooKeeper still had everything; None without transaction logs."""
    lost_until_zxid: int | None = None
    """Of a lost write, the transaction by which it should have arrived; None without transaction logs."""
    fingerprint: str = ""
    """Id made of entity, key, column and class: the same in every run that has the divergence."""
    suppressed: Suppression | None = None
    """Whose word it is that this is known; None for nobody's."""


@dataclass(frozen=True)
class Divergences:
    """All differences: exact numbers, and a bounded list of rows. Suppressed rows are counted like all others."""

    total: int = 0
    """Number of all divergences."""
    by_class: dict[str, int] = field(default_factory=dict)
    """Number per class."""
    by_entity: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number per entity and class."""
    by_status: dict[str, int] = field(default_factory=dict)
    """Number per status."""
    rows: list[DivergenceRow] = field(default_factory=list)
    """A bounded list: failing classes first, suppressed rows last."""
    suppressed: int = 0
    """How many of the total are suppressed."""
    suppressed_by_class: dict[str, int] = field(default_factory=dict)
    """How many of each class are suppressed."""
    defects_by_status: dict[str, int] | None = None
    """Number of defects per status; None where nothing was compared, and in reports of earlier releases."""


@dataclass(frozen=True)
class BrokerPresence:
    """One line of the broker ledger."""

    broker_id: int
    """Broker id."""
    mode: str
    """zookeeper, kraft, transition, missing, stopped or config_only."""
    blocks: list[str] = field(default_factory=list)
    """Gates it blocks."""
    in_zookeeper: bool = False
    """True when it has a znode under `/brokers/ids`."""
    registered: bool = False
    """True when it is registered in KRaft."""
    is_migrating_zk_broker: bool | None = None
    """True when it is registered as a ZooKeeper broker ready to migrate; None when it is not registered."""
    fenced: bool | None = None
    """True when the controllers hold it for not available; None when it is not registered."""
    replicas: int = 0
    """Number of replicas assigned to it: by ZooKeeper, or by KRaft where ZooKeeper was not read."""
    has_config: bool = False
    """True when it has dynamic configurations."""
    note: str = ""
    """What to know, or do."""


@dataclass(frozen=True)
class QuorumMember:
    """One controller, as voter, as registration, or both."""

    controller_id: int
    """node.id."""
    voter: bool
    """True when it votes; a registered controller that does not counts at every upgrade all the same."""
    leader: bool
    """True when it leads the newest epoch."""
    registered: bool
    """True when it is registered (from metadata.version 3.7-IV0 on)."""
    directory_id: str | None = None
    """Directory id of the voter by the quorum (kraft.version 1); None for a static quorum."""
    endpoint: str = ""
    """host:port of its first listener, by the quorum or else by its registration."""
    metadata_versions: str = ""
    """Levels of metadata.version that it supports, `lowest to highest`."""


@dataclass(frozen=True)
class KraftHealth:
    """Where a KRaft cluster stands; counts are of its partitions at the log's committed end."""

    metadata_version: str
    """Finalised metadata.version by name and level; `none` without one."""
    kraft_version: int
    """0 for a quorum by controller.quorum.voters, 1 for one whose voters are in the log."""
    features: dict[str, int]
    """Finalised features with their levels."""
    quorum: list[QuorumMember]
    """Voters and registered controllers, by node.id."""
    partitions: int
    """Number of partitions."""
    leaderless: int
    """Of these, without a leader."""
    under_replicated: int
    """Of these, with a replica that is not in the ISR."""
    recovering: int
    """Of these, with several replicas and not recovered from an election that can lose data."""
    not_preferred: int
    """Of these, led by another replica than the preferred one."""
    brokers: int
    """Registered brokers."""
    at_work: int
    """Of these, unfenced and not shutting down."""


@dataclass(frozen=True)
class LogCopyLine:
    """One controller's copy of the log, as the report shows it."""

    controller_id: int | None
    """node.id of the controller."""
    location: str
    """Folder the copy was read from."""
    log_start_offset: int | None
    """First offset in the copy, inclusive."""
    log_end_offset: int | None
    """Last offset in the copy, inclusive: one less than Kafka's log end offset."""
    last_epoch: int | None
    """Leader epoch of its last batch."""
    used: str
    """What was taken from it, or why nothing was."""
    problem: str | None = None
    """Why it can't be used; None when it can."""


@dataclass(frozen=True)
class Defect:
    """A known Kafka defect."""

    jira: str
    """Its ticket; `latent A` and so on for those without one."""
    exposed: bool
    """True when the cluster's release has it."""
    evidence: bool
    """True when its traces were found."""
    title: str = ""
    """What is wrong."""
    detail: str = ""
    """Its effect, the releases that have it, the traces found."""


@dataclass(frozen=True)
class Metric:
    """A metric of KIP-866 and what a dashboard should show now; `value` is None if files do not show it."""

    name: str
    """Name of the metric."""
    value: str | None
    """What it should show; None where files can't tell."""
    meaning: str = ""
    """What the value says."""


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one expectation of a user's suite. It can change verdict and exit code, but no gate."""

    suite: str
    """Name of the suite."""
    table: str
    """Table it is about, as `layer.name`."""
    expectation: str
    """Its type, in Great Expectations' words."""
    column: str | None
    """The columns it is about, separated by commas; None when it is about the table."""
    success: bool
    """True when it is met; false also when it could not be judged."""
    severity: str
    """error or warning: what a failure is."""
    rows: int
    """Number of rows of the cluster's run that it was judged by."""
    unexpected: int | None = None
    """Exact number of rows that are not as expected; None where it is about something else than rows."""
    percent: float | None = None
    """Their share in percent of the rows whose column is not null; None where the library tells none."""
    observed: str | None = None
    """What was found instead, where it is not about rows."""
    sample: list[str] = field(default_factory=list)
    """At most 20 of those rows, whole, as JSON texts; values only where the library alone knows the rows."""
    sql: str | None = None
    """The statement that gives all of them; None where the library alone knows the rows."""
    problem: str | None = None
    """Why it could not be judged; None when it could."""
    why: str = ""
    """Why it is expected, in the words of the suite."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Its arguments."""


@dataclass(frozen=True)
class StateSpelling:
    """A migration state: its name in the code, in the KIP and in the KIP's revision, and its byte in the releases."""

    code: str
    """Name in Kafka's code and in the log."""
    kip: str
    """Name in KIP-866."""
    revision: str
    """Name in the KIP's revision."""
    byte_3_4: int | None
    """Byte of the record in 3.4; None when it has none."""
    byte_since_3_5: int | None
    """Byte of the record from 3.5 on; None when it has none."""
    current: bool = False
    """True for the state the cluster is in."""


@dataclass(frozen=True)
class IsrLine:
    """A partition or a broker in one hour, or at the log's end; a row of gold isr_audit."""

    subject: str
    """partition, broker or leadership."""
    topic: str | None = None
    """Topic of a partition's line."""
    partition: int | None = None
    """Partition number of a partition's line."""
    broker_id: int | None = None
    """Broker id of a broker's line."""
    hour: int | None = None
    """Start of the hour, milliseconds since the epoch; None for what is so at the end of the log."""
    shrinks: int = 0
    """Number of changes by which brokers (this broker) left the ISR."""
    expansions: int = 0
    """Number of changes by which brokers (this broker) came into the ISR."""
    elections: int = 0
    """Number of elections of another leader (of this broker)."""
    lossy_elections: int = 0
    """Of these, how many can have lost data: unclean and last known leader."""
    flaps: int = 0
    """Most times that one broker left or joined one ISR within an hour."""
    leaderless_ms: int = 0
    """Milliseconds without a leader that ended in the hour; at the log's end, so far."""
    under_min_ms: int = 0
    """Milliseconds with an ISR below min.insync.replicas, likewise."""
    out_of_sync_ms: int = 0
    """Milliseconds with a replica out of the ISR, likewise."""
    leads: int = 0
    """Leadership: number of partitions that the broker leads."""
    preferred: int = 0
    """Leadership: number of partitions whose first replica it is."""
    place: int = 0
    """Place among the lines of its subject, 1 for the worst."""


@dataclass(frozen=True)
class IsrHistory:
    """What the partitions' history added up to in the last hours before the log's end, the worst first."""

    hours: int
    """How many hours before the log's end are looked at."""
    totals: dict[str, int] = field(default_factory=dict)
    """Number of lines by subject; those listed are bounded."""
    lines: list[IsrLine] = field(default_factory=list)
    """The worst lines of each subject, in order."""


@dataclass(frozen=True)
class FeatureLine:
    """The range of one feature that one node supports, with the finalised level; a row of gold feature_matrix."""

    feature: str
    """Name of the feature."""
    node_kind: str
    """broker or controller."""
    node_id: int
    """Broker id, or node.id of the controller."""
    min_level: int
    """Lowest level that it supports; 0 when it does not know the feature."""
    max_level: int
    """Highest level that it supports; 0 when it does not know the feature."""
    finalised_level: int | None = None
    """Level that the cluster has finalised; None when it has none."""
    gap: str = ""
    """What is wrong when the finalised level is outside the node's."""
    fenced: bool = False
    """True for a broker that the controllers hold for not available."""
    migrating_zk: bool = False
    """True for a broker that is registered in ZooKeeper mode."""


@dataclass(frozen=True)
class DowngradeReason:
    """One reason of a verdict on a downgrade."""

    outcome: str
    """blocked, unknown, loses or safe."""
    reason: str
    """What stands in the way, is lost, or is not known; or that it is read."""
    evidence: str
    """Znode, record with its offset, node or file that shows it."""


@dataclass(frozen=True)
class DowngradeTarget:
    """May the cluster go back to one release."""

    release: str
    """The release asked about, e.g. 3.6."""
    verdict: str
    """blocked, unknown, loses or safe: the worst of the reasons."""
    reasons: list[DowngradeReason] = field(default_factory=list)
    """Why, the weightiest first; of a verdict other than safe, without what is safe."""


@dataclass(frozen=True)
class DowngradeReadiness:
    """May the cluster go back to older releases (KIP-384)."""

    mode: str
    """Where the metadata lives: zookeeper, dual_write or kraft."""
    floor: str | None = None
    """The lowest release that reads every format there is evidence of; None when nothing tells."""
    targets: list[DowngradeTarget] = field(default_factory=list)
    """Every release below the cluster's own, the newest first."""
    settings: list[str] = field(default_factory=list)
    """Format settings that break a rule by themselves: message format <= persistent <= protocol."""


@dataclass(frozen=True)
class RunPoint:
    """One run, for the trend charts: an earlier one, or the present one."""

    run_id: str
    """Id of the run."""
    started_at: str
    """Start of the run, ISO 8601, UTC."""
    verdict: str
    """clean, warnings or errors."""
    state: str
    """Migration state as the log recorded it."""
    lag_records: int | None
    """As `Lag.records`."""
    lag_seconds: float | None
    """As `Lag.seconds`."""
    defects: int
    """Number of divergences in a class that is a defect."""
    divergences: int
    """Number of all divergences."""
    by_class: dict[str, int] = field(default_factory=dict)
    """Number of divergences per class."""
    not_compared: bool = False
    """True if the two sides were not compared: then the numbers of divergences are 0 and mean nothing. Also false for runs of
    releases that did not store it."""
    lag_unknown: bool = False
    """True if ZooKeeper may be behind, and nobody knows how far. Also false for runs of releases that did not store it."""


@dataclass(frozen=True)
class Report:
    """A finished audit of one cluster."""

    cluster: str
    """Name of the cluster, from the configuration."""
    run_id: str
    """Id of the run."""
    started_at: str
    """Start of the run, ISO 8601, UTC."""
    finished_at: str
    """End of the run, ISO 8601, UTC."""
    kafka_version: str
    """Release of the cluster, configured or inferred; `unknown` when neither."""
    mode: str
    """How exactly the sides were compared: barrier, bracket, single, kraft_only or zookeeper_only."""
    exit_code: int
    """Exit code of the run."""
    verdict: str
    """clean, warnings or errors."""
    migration: MigrationSummary
    """Where the migration stands."""
    lag: Lag
    """How far ZooKeeper is behind."""
    gates: dict[str, Gate]
    """The decisions, by the names in GATES."""
    checks: list[CheckResult]
    """Every check of the catalogue, in its order."""
    counts: dict[str, dict[str, int | None]]
    """Number of rows per entity and side (zookeeper, kraft); None for a side that was not read."""
    divergences: Divergences
    """What differs."""
    broker_presence: list[BrokerPresence]
    """The broker ledger, one line per broker id seen anywhere."""
    defects: list[Defect] = field(default_factory=list)
    """Known Kafka defects that matter here."""
    resolved: list[DivergenceRow] = field(default_factory=list)
    """Divergences of the run before that are gone; a bounded list."""
    log_copies: list[LogCopyLine] = field(default_factory=list)
    """Every controller's copy of the log."""
    history: list[RunPoint] = field(default_factory=list)
    """The cluster's last runs, the oldest first, this one last."""
    notes: list[str] = field(default_factory=list)
    """What to know of this audit: inputs left out, limits of the release, suppressions that are over."""
    quarantined: int = 0
    """Number of places in the log and of znodes that could not be read."""
    kafka_version_evidence: str = ""
    """What the release was inferred from."""
    mode_explanation: str = ""
    """What the mode means, in a sentence."""
    tool_version: str = ""
    """Version of kraft-audit."""
    unsuppressed_verdict: str = ""
    """What the verdict would be without the suppressed differences; empty when there are none. It decides whom a mail
    alarms and nothing else."""
    metrics: list[Metric] = field(default_factory=list)
    """The metrics of KIP-866 and what a dashboard should show now."""
    state_spellings: list[StateSpelling] = field(default_factory=list)
    """The migration's states by all their names."""
    lag_series: list[LagPoint] = field(default_factory=list)
    """Lag at the barriers of ZooKeeper's transaction logs, oldest first, where a data folder was read; a bounded list that has
    the worst and the last."""
    kraft: KraftHealth | None = None
    """Where the cluster stands as a KRaft cluster; None while ZooKeeper decides, and in reports of earlier versions."""
    isr_history: IsrHistory | None = None
    """What the partitions' history added up to, by the log; None without a log."""
    features: list[FeatureLine] = field(default_factory=list)
    """What each node supports of each feature (KIP-584), by feature."""
    downgrade: DowngradeReadiness | None = None
    """May the cluster go back to older releases; None in older reports."""
    expectations: list[ExpectationResult] = field(default_factory=list)
    """Results of the suites that the configuration names, in their order; empty without any."""
    format: int = FORMAT
    """Version of this shape."""
