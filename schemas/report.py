"""The report: everything the HTML, the e-mail, report.json and the exit code are made from.

`report.json` is this, as JSON (DESIGN §9): `format` rises when a meaning changes, fields may be added.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

FORMAT = 1
VERDICTS = ("clean", "warnings", "errors")
GATES = ("start", "dual_write", "finalize", "rollback")


@dataclass(frozen=True)
class MigrationSummary:
    """Where the migration stands. Offsets are inclusive except `log_end_offset`'s file sense: it is LEO - 1.

    `phase` is a `schemas.checks.Phase` value: it tells a cluster rolled back, or one born in KRaft, from its `state`.
    """

    state: str
    kraft_metadata_offset: int | None
    committed_end_offset: int | None
    log_end_offset: int | None
    leader_id: int | None
    leader_epoch: int | None
    copy_used: int | None
    explanation: str = ""
    history: list[dict[str, Any]] = field(default_factory=list)
    phase: str = ""


@dataclass(frozen=True)
class Lag:
    """ZkWriteBehindLag: committed records ZooKeeper does not have, and their age. None where it does not apply."""

    records: int | None
    seconds: float | None
    alive: bool | None
    explanation: str = ""


@dataclass(frozen=True)
class Gate:
    """One decision: `verdict` is go, no_go, unknown or not_applicable."""

    verdict: str
    blocking: list[str] = field(default_factory=list)
    explanation: str = ""


@dataclass(frozen=True)
class CheckResult:
    """One check: `verdict` is pass, warn, fail, unknown or not_applicable; `evidence` is bounded, `violations` exact."""

    id: str
    verdict: str
    violations: int
    evidence: list[str] = field(default_factory=list)
    gates: list[str] = field(default_factory=list)
    severity: str = "error"
    title: str = ""
    remedy: str = ""
    reference: str = ""


@dataclass(frozen=True)
class Suppression:
    """Somebody's word that a difference is known: it is shown apart and still counted. `until` is the last day, ISO."""

    who: str
    why: str
    until: str


@dataclass(frozen=True)
class DivergenceRow:
    """One differing cell (`column`) or missing row (`column` None). `fingerprint` follows it over runs."""

    entity: str
    key: dict[str, Any]
    column: str | None
    kind: str
    zk_value: Any
    kraft_value: Any
    class_: str
    severity: str
    zk_path: str | None = None
    zk_mzxid: int | None = None
    kraft_offset: int | None = None
    status: str = "new"
    explanation: str = ""
    remedy: str = ""
    fingerprint: str = ""
    suppressed: Suppression | None = None


@dataclass(frozen=True)
class Divergences:
    """All differences: exact totals, a bounded list of rows, failing classes first, suppressed rows last.

    The totals count suppressed rows like all others; `suppressed_by_class` says how many of each are.
    """

    total: int = 0
    by_class: dict[str, int] = field(default_factory=dict)
    by_entity: dict[str, dict[str, int]] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    rows: list[DivergenceRow] = field(default_factory=list)
    suppressed: int = 0
    suppressed_by_class: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class BrokerPresence:
    """One line of the broker ledger."""

    broker_id: int
    mode: str
    blocks: list[str] = field(default_factory=list)
    in_zookeeper: bool = False
    registered: bool = False
    is_migrating_zk_broker: bool | None = None
    fenced: bool | None = None
    replicas: int = 0
    has_config: bool = False
    note: str = ""


@dataclass(frozen=True)
class LogCopy:
    """One controller's copy of the log, as the report shows it."""

    controller_id: int | None
    location: str
    log_start_offset: int | None
    log_end_offset: int | None
    last_epoch: int | None
    used: str
    problem: str | None = None


@dataclass(frozen=True)
class Defect:
    """A known Kafka defect: exposed by version, and whether its traces were found."""

    jira: str
    exposed: bool
    evidence: bool
    title: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Metric:
    """A metric of KIP-866 and what a dashboard should show now; `value` is None where files can't tell."""

    name: str
    value: str | None
    meaning: str = ""


@dataclass(frozen=True)
class StateSpelling:
    """A migration state: its name in the code, in the KIP and in the KIP's revision, and its byte in the releases."""

    code: str
    kip: str
    revision: str
    byte_3_4: int | None
    byte_since_3_5: int | None
    current: bool = False


@dataclass(frozen=True)
class RunPoint:
    """One earlier or the present run, for the trend charts."""

    run_id: str
    started_at: str
    verdict: str
    state: str
    lag_records: int | None
    lag_seconds: float | None
    defects: int
    divergences: int
    by_class: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A finished audit of one cluster.

    `unsuppressed_verdict` is what the verdict would be without the suppressed differences; empty when there are none.
    It decides whom a mail alarms and nothing else.
    """

    cluster: str
    run_id: str
    started_at: str
    finished_at: str
    kafka_version: str
    mode: str
    exit_code: int
    verdict: str
    migration: MigrationSummary
    lag: Lag
    gates: dict[str, Gate]
    checks: list[CheckResult]
    counts: dict[str, dict[str, int | None]]
    divergences: Divergences
    broker_presence: list[BrokerPresence]
    defects: list[Defect] = field(default_factory=list)
    resolved: list[DivergenceRow] = field(default_factory=list)
    log_copies: list[LogCopy] = field(default_factory=list)
    history: list[RunPoint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    quarantined: int = 0
    kafka_version_evidence: str = ""
    mode_explanation: str = ""
    tool_version: str = ""
    unsuppressed_verdict: str = ""
    metrics: list[Metric] = field(default_factory=list)
    state_spellings: list[StateSpelling] = field(default_factory=list)
    format: int = FORMAT
