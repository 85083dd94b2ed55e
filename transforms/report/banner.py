"""The report at first glance: is all well, what is wrong, what to do. Sentences only, no markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from schemas.classes import CLASSES, DEFECTS, MISSING_STATE, ORDER
from schemas.gates import GATES, MIGRATION_GATES
from schemas.report import (
    ZNODE_NOT_GIVEN,
    ZNODE_UNREADABLE,
    CheckResult,
    DivergenceRow,
    Gate,
    MigrationSummary,
    Report,
)
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.requested_gate import shut_gate_in
from transforms.report.compared import UNCOMPARED, phase_of, was_compared
from transforms.report.expectations import unmet, unmet_sentence
from transforms.report.printable import counted, listed, visible
from transforms.report.row_text import line_of
from transforms.report.since import HISTORY, since_when
from transforms.report.words import (
    CHECK_ORDER,
    GATE_TITLES,
    GATE_VERBS,
    HEALTHY_KRAFT,
    PHASE_OF_STATE,
    PHASES,
    SEVERITY_ORDER,
    UNJUDGED,
    UNKNOWN_PHASE,
    StateWords,
)

TONES = {"clean": "good", "warnings": "warn", "errors": "bad"}
VERDICT_LABELS = {"clean": "Clean", "warnings": "Warnings", "errors": "Errors"}
_BEFORE_THE_COPY = ("zookeeper", "waiting")
_ACTIONS = 4
_EVIDENCE, _EVIDENCE_LIMIT = 3, 240
# Checks of the differences' totals: the remedies are those of the differences themselves.
_OF_DEFECTS = ("DUR-05", "RB-02")
_UNKNOWN = Gate("unknown")
_WITHOUT_OFFSET = {ZNODE_NOT_GIVEN: "ZooKeeper was not given", ZNODE_UNREADABLE: "there, but not readable"}
_CANNOT_START = "The migration cannot start yet"


@dataclass(frozen=True)
class Action:
    """One thing to do: `what` is a sentence, `why` names the check or the class behind it."""

    what: str
    why: str


@dataclass(frozen=True)
class ReportBanner:
    """The banner: `tone` is good, warn or bad; `title` a phrase, `sentences` its meaning, `actions` the most urgent first.

    `decisions` are the sentences about what not to do. `since` is the start of the fault, `evidence` are the first defects, or the
    first lines of the most severe open check. `next_steps` lead towards finalising and repair nothing.
    """

    tone: str
    label: str
    title: str
    sentences: list[str]
    actions: list[Action]
    next_steps: list[Action]
    decisions: list[str] = field(default_factory=list)
    since: str = ""
    evidence: list[str] = field(default_factory=list)


def banner_of(report: Report) -> ReportBanner:
    """The banner of a report: its verdict, cause and next steps in plain words."""
    decisions = _gate_sentences(report)
    return ReportBanner(
        tone="warn" if is_not_ready(report) else TONES.get(report.verdict, "bad"),
        label="Not ready" if is_not_ready(report) else VERDICT_LABELS.get(report.verdict, visible(report.verdict, 20)),
        title=_title(report),
        sentences=[
            s
            for s in (
                _consequence(report),
                _lag_sentence(report),
                *decisions,
                _asked_sentence(report),
                unmet_sentence(report.expectations),
            )
            if s
        ],
        actions=[*_rescue(report), *repairs(report)][:_ACTIONS]
        or (next_steps(report) if report.verdict == "errors" else []),
        next_steps=next_steps(report) if report.verdict == "clean" else [],
        decisions=decisions,
        since=_since(report),
        evidence=_evidence(report),
    )


def _since(report: Report) -> str:
    # The last one is this run.
    earlier = [(run.started_at, run.verdict) for run in report.history[:-1]]
    return since_when(report.verdict, earlier, whole=len(report.history) < HISTORY)


def _evidence(report: Report) -> list[str]:
    """What was found, in a few lines, and how much more there is."""
    defects = [row for row in report.divergences.rows if row.class_ in DEFECTS and row.suppressed is None]
    if defects and _gravest(report) is None:
        ordered = sorted(defects, key=lambda row: rank(ORDER, row.class_))[:_EVIDENCE]
        more = _unsuppressed(report) - len(ordered)
        return [*(line_of(row) for row in ordered), *([f"and {more:,} more"] if more > 0 else [])]
    open_ = [check for check in report.checks if check.verdict in ("fail", "warn") and calm_word(report, check) is None]
    worst = min(open_, key=check_rank(report), default=None)
    # A check's lines are not always one for each violation.
    lines = [] if worst is None else worst.evidence[: min(_EVIDENCE, worst.violations)]
    more_lines = worst is not None and len(worst.evidence) > len(lines)
    return [
        *(visible(line, _EVIDENCE_LIMIT) for line in lines),
        *([f"more at {worst.id}"] if worst and more_lines else []),
    ]


def _unsuppressed(report: Report) -> int:
    return defect_count(report) - sum(report.divergences.suppressed_by_class.get(name, 0) for name in DEFECTS)


def _asked_sentence(report: Report) -> str:
    """Why the run is an error if nothing else shows it: the requested gate could not be judged."""
    shut = shut_gate_in(report.notes)
    return f"Requested gate: {shut}." if shut and " is NO-GO" not in shut else ""


def in_kraft(report: Report) -> bool:
    """True for a cluster without a migration: its report is about its own health."""
    return phase_of(report) == "kraft" and report.kraft is not None


def shown_gates(report: Report) -> list[str]:
    """Names of the gates that a reader is shown: those of a migration, of KRaft, or both once it is finalised."""
    if in_kraft(report):
        return ["upgrade"]
    upgrade = report.gates.get("upgrade")
    return list(GATES if upgrade is not None and upgrade.verdict != "not_applicable" else MIGRATION_GATES)


def defect_count(report: Report) -> int:
    """Count the differences that are defects, all of them, listed or not."""
    return summary.defects(report.divergences)


def suppressed_words(report: Report) -> str:
    """How many of the defects are suppressed: `, all suppressed`, `, 2 of them suppressed`, or nothing."""
    known = sum(report.divergences.suppressed_by_class.get(name, 0) for name in DEFECTS)
    if not known:
        return ""
    return ", all suppressed" if known >= defect_count(report) else f", {known:,} of them suppressed"


def check_rank(report: Report) -> Callable[[CheckResult], tuple[int, bool, int, str]]:
    """Make the order of a report's checks: failing first, faults before steps of the plan, gravest first."""
    return lambda check: (
        rank(CHECK_ORDER, check.verdict),
        calm_word(report, check) is not None,
        rank(SEVERITY_ORDER, check.severity),
        check.id,
    )


def calm_word(report: Report, check: CheckResult) -> str | None:
    """Name a failed check that is not a fault: `not yet` for a step of the plan, `closed` for a way that is past.

    A check that only the finalise gate needs (brokers still to be rolled) is a step of the plan, and after finalising the
    rollback gate is closed for good. None for a fault; a critical check is always one, whichever gate it belongs to.
    """
    if check.verdict != "fail" or check.severity == "critical":
        return None
    if check.gates == ["finalize"]:
        return "not yet"
    return "closed" if check.gates == ["rollback"] and phase_of(report) == "finalized" else None


def rank(order: tuple[str, ...], word: str) -> int:
    """Place of a word in an order; an unknown word comes first, where it is noticed."""
    return order.index(word) if word in order else -1


def repairs(report: Report) -> list[Action]:
    """List what to repair, each thing once: the defects' own remedies, then failing checks, then warnings.

    A suppressed defect needs no repair; the checks that it fails still do.
    """
    checks = sorted((check for check in report.checks if calm_word(report, check) is None), key=check_rank(report))
    if phase_of(report) == "rolled_back":
        # There are no controllers to stop: RB-05 has the remedy for the same znode.
        checks = [check for check in checks if check.id != "START-07"]
    # Until a missing state znode is there, no full sync can repair the others.
    rows = sorted(report.divergences.rows, key=lambda row: (row.remedy != MISSING_STATE, rank(ORDER, row.class_)))
    of_rows = [Action(remedy_of(row), row.class_) for row in rows if row.class_ in DEFECTS and row.suppressed is None]
    said = _OF_DEFECTS if of_rows else ()
    return _once(
        of_rows
        + [Action(check.remedy, check.id) for check in checks if check.verdict == "fail" and check.id not in said]
        + [Action(check.remedy, check.id) for check in checks if check.verdict == "warn"]
        + [
            Action(f"Repair the rows of {each.table} that do not meet the expectation.", each.suite)
            for each in unmet(report.expectations)
        ]
    )


def next_steps(report: Report) -> list[Action]:
    """List what the finalise gate still waits for."""
    waiting = [check for check in report.checks if calm_word(report, check) == "not yet"]
    return _once([Action(check.remedy, check.id) for check in sorted(waiting, key=check_rank(report))])


def remedy_of(row: DivergenceRow) -> str:
    """What to do about a difference: the row's own remedy, else its class's."""
    known = CLASSES.get(row.class_)
    return row.remedy or (known.remedy if known else "")


def _once(wanted: list[Action]) -> list[Action]:
    once = {action.what: action for action in reversed(wanted) if action.what}
    return list(once.values())[::-1][:_ACTIONS]


def _words(report: Report) -> StateWords:
    phase = phase_of(report)
    dual_write = report.gates.get("dual_write")
    if in_kraft(report):
        return HEALTHY_KRAFT
    if phase == "dual_write" and dual_write is not None and dual_write.verdict != "go":
        return UNJUDGED
    return PHASES.get(phase, UNKNOWN_PHASE)


def _title(report: Report) -> str:
    if report.verdict == "errors":
        return _error_title(report)
    if report.verdict == "warnings":
        return _warning_title(report)
    if is_not_ready(report):
        return _CANNOT_START
    start = report.gates.get("start")
    if phase_of(report) in _BEFORE_THE_COPY and start is not None and start.verdict == "go":
        return "Ready to start the migration"
    return _words(report).title


def is_not_ready(report: Report) -> bool:
    """True when nothing is broken, so that the verdict is clean, and yet the migration would wait forever."""
    return report.verdict == "clean" and phase_of(report) in _BEFORE_THE_COPY and "start" in _closed(report)


def is_gone(report: Report) -> bool:
    """True when a leftover `/migration` let an empty log empty ZooKeeper: no topic is on either side (S§14)."""
    topics, offset = report.counts.get("topics", {}), report.migration.kraft_metadata_offset
    empty = topics.get("zookeeper") == 0 and topics.get("kraft") == 0 and offset is not None and offset > 0
    failed = any(check.id == "START-07" and check.verdict == "fail" for check in report.checks)
    return phase_of(report) == "waiting" and empty and failed


def _has_leftover(report: Report) -> bool:
    """True when controllers wait over the `/migration` of an earlier attempt; one that cannot be parsed only stops them."""
    failed = any(check.id == "START-07" and check.verdict == "fail" for check in report.checks)
    return failed and phase_of(report) == "waiting" and report.migration.kraft_metadata_offset not in (None, -1)


def _is_claimed(report: Report) -> bool:
    """True while a controller holds ZooKeeper and no load has ended: the brokers have no controller meanwhile."""
    unended = any(check.id == "START-22" and check.verdict == "unknown" for check in report.checks)
    return unended and phase_of(report) == "waiting" and not _repeated_load(report)


def is_log_unusable(report: Report) -> bool:
    """True when copies of the log were given and none of them can be read, so that no phase is known."""
    return report.migration.copy_used is None and any(c.id == "CAP-03" and c.verdict == "fail" for c in report.checks)


def _gravest(report: Report) -> StateWords | None:
    """The headline that comes before every other one, where the phase alone would mislead."""
    if is_gone(report):
        return StateWords(
            "The metadata is gone from ZooKeeper",
            "The controllers took a leftover /migration for a finished load, skipped the load, and deleted from ZooKeeper everything that "
            "their empty log does not contain.",
        )
    if _has_leftover(report):
        return StateWords(
            "Stop the controllers: they would empty ZooKeeper",
            "They would take what an earlier migration left in ZooKeeper for a finished load, and skip the load.",
        )
    if _is_claimed(report):
        return StateWords(
            "The load runs, or has broken off",
            "A KRaft controller has claimed ZooKeeper and has not ended the load. Until it has, ZooKeeper's brokers have no controller.",
        )
    if is_log_unusable(report):
        return StateWords(
            "The metadata log cannot be used",
            f"Without it the state of the migration is unknown. {_violated(report)}".strip(),
        )
    return None


def _rescue(report: Report) -> list[Action]:
    if _is_claimed(report):
        return [Action(check.remedy, check.id) for check in report.checks if check.id == "START-22"]
    if not is_gone(report):
        return []
    places = "ZooKeeper's snapshots and transaction logs (version-2 of every server) and the log folders of the earlier controllers"
    return [
        Action(
            f"Stop the controllers and ZooKeeper now. Copy {places} to a safe place: they still contain the metadata.",
            "START-07",
        )
    ]


def is_stopped(report: Report) -> bool:
    """True when dual write has stopped; earlier reports name no state beside `alive`."""
    return report.lag.state == "stopped" or (report.lag.alive is False and not report.lag.state)


def _kraft_title(report: Report) -> str | None:
    """The headline of a KRaft cluster that is not clean: partitions without a leader, then a blocked upgrade."""
    if not in_kraft(report):
        return None
    offline = next((check for check in report.checks if check.id == "ISR-16" and check.verdict == "fail"), None)
    if offline is not None:
        return f"{counted(offline.violations, 'partition')} without a leader"
    if report.verdict == "warnings":
        warned = sum(1 for check in report.checks if check.verdict == "warn")
        if "upgrade" in _closed(report):
            return "An upgrade is blocked"
        return f"The cluster runs on KRaft: {counted(warned, 'warning')}" if warned else "The cluster runs on KRaft"
    return None


def _error_title(report: Report) -> str:
    gravest = _gravest(report)
    first = _kraft_title(report) if gravest is None else gravest.title
    if first is not None:
        return first
    defects = defect_count(report)
    if defects:
        return f"ZooKeeper and KRaft disagree: {counted(defects, 'defect')}{suppressed_words(report)}"
    if is_stopped(report):
        return "Dual write has stopped"
    closed = _closed(report)
    if _repeated_load(report):
        return "The load does not complete"
    if phase_of(report) in _BEFORE_THE_COPY and "start" in closed:
        return "The migration cannot start"
    if "dual_write" in closed:
        # Of what was read, nothing follows about dual write itself.
        of_sources = all(name.startswith("CAP-") for name in report.gates["dual_write"].blocking)
        return "The sources have faults" if of_sources else "Dual write is unhealthy"
    failed = _failed(report)
    if not failed and unmet(report.expectations, "error"):
        return f"{counted(len(unmet(report.expectations)), 'expectation')} not met"
    return _failure_title(report, failed, closed)


def _failure_title(report: Report, failed: Sequence[CheckResult], closed: Sequence[str]) -> str:
    if not failed and not closed and shut_gate_in(report.notes):
        return "The requested gate is not open"
    if failed or not closed:
        return f"{counted(len(failed), 'check')} failed"
    return f"{counted(len(closed), 'gate')} closed: {', '.join(GATE_TITLES[name].lower() for name in closed)}"


def _failed(report: Report) -> list[CheckResult]:
    failed = [check for check in report.checks if check.verdict == "fail" and calm_word(report, check) is None]
    return sorted(failed, key=check_rank(report))


def _warning_title(report: Report) -> str:
    gravest = _gravest(report)
    first = _kraft_title(report) if gravest is None else gravest.title
    if first is not None:
        return first
    if phase_of(report) in _BEFORE_THE_COPY and "start" in _closed(report):
        return _CANNOT_START
    if report.lag.records:
        stopped = "Dual write has stopped: " if is_stopped(report) else ""
        return f"{stopped}ZooKeeper is {counted(report.lag.records, 'record')} behind KRaft"
    if report.lag.state == "stopped in order":
        return "The controllers are stopped, and ZooKeeper has everything"
    warned = sum(1 for check in report.checks if check.verdict == "warn")
    none = "No defects" if was_compared(report) else "The two sides were not compared"
    if not warned and unmet(report.expectations):
        return f"{none}, {counted(len(unmet(report.expectations)), 'expectation')} not met"
    if phase_of(report) != "dual_write" and warned:
        return f"{_words(report).title}: {counted(warned, 'warning')}"
    return f"{none}, {counted(warned, 'warning')}" if warned else f"{none}, but not everything could be judged"


def _consequence(report: Report) -> str:
    gravest = _gravest(report)
    if gravest is not None:
        return gravest.meaning
    lost = report.divergences.by_class.get("lost_write", 0)
    if lost and phase_of(report) == "dual_write":
        return f"A rollback to ZooKeeper now would lose {counted(lost, 'change')}."
    if defect_count(report):
        return "ZooKeeper and KRaft differ, and dual write will not repair it."
    if is_stopped(report):
        return "Changes made in KRaft no longer reach ZooKeeper; a rollback would lose them."
    if report.lag.state == "silent":
        return "ZooKeeper received no write in the last seconds before the capture. Audit again to see whether writes continue."
    if report.verdict != "errors" or in_kraft(report):
        return _kraft_meaning(report) if in_kraft(report) else _words(report).meaning
    repeated = _repeated_load(report)
    if repeated:
        return f"{repeated[0].upper()}{repeated[1:]}."
    where = "" if phase_of(report) == "dual_write" else PHASES.get(phase_of(report), UNKNOWN_PHASE).meaning
    return f"{where} {_violated(report)}".strip()


def _kraft_meaning(report: Report) -> str:
    """The cluster in figures, and what does not hold."""
    if report.verdict == "clean":
        return _words(report).meaning
    health, said = report.kraft, []
    if health is not None:
        said.append(
            f"{health.at_work} of {counted(health.brokers, 'broker')} running; {counted(health.partitions, 'partition')}, "
            f"{health.leaderless:,} without a leader, {health.under_replicated:,} not fully in sync."
        )
    return " ".join([*said, _violated(report)]).strip()


def _repeated_load(report: Report) -> str:
    """The evidence of a load that runs again and again before dual write; empty if there is none."""
    if phase_of(report) != "waiting":
        return ""
    again = next((check for check in _failed(report) if check.id == "DUR-08"), None)
    return visible(again.evidence[0], 300) if again is not None and again.evidence else ""


def _violated(report: Report) -> str:
    titles = [visible(check.title, 160) for check in _failed(report) if check.title]
    more = f" ({len(titles) - 1} more below)" if len(titles) > 1 else ""
    return f"This check fails: “{titles[0]}”{more}." if titles else ""


def _lag_sentence(report: Report) -> str:
    lag = report.lag
    if phase_of(report) != "dual_write":
        return ""
    if is_stopped(report) and not lag.records:
        return "Do not trust a lag of 0: nothing writes to ZooKeeper."
    if lag.records is None:
        # Without a state there is nothing to be behind, as in 3.4.
        return f"How far ZooKeeper is behind is unknown: {lag.explanation}." if lag.state and lag.explanation else ""
    if lag.records == 0 and defect_count(report):
        return "The lag is 0, so waiting will not repair it."
    if lag.records == 0:
        return "ZooKeeper holds every committed record." if was_compared(report) else UNCOMPARED
    age = f", the oldest {duration(lag.seconds)} old" if lag.seconds is not None else ""
    return f"{counted(lag.records, 'record')} of the log not in ZooKeeper yet{age}."


def _gate_sentences(report: Report) -> list[str]:
    if in_kraft(report) and report.gates.get("upgrade", _UNKNOWN).verdict == "go":
        return ["It can be upgraded."]
    return [
        _decision(report, name, listed(report.gates[name].blocking))
        for name in _closed(report)
        if name in GATE_VERBS and report.gates[name].blocking and not _is_history(report, name)
    ]


def _decision(report: Report, gate: str, blocking: str) -> str:
    if gate == "start" and phase_of(report) == "waiting":
        # The controllers wait for the brokers: the load begins automatically when the last one is ready.
        return f"Repair before the load begins: {blocking}."
    return f"Do not {GATE_VERBS[gate]} ({blocking})."


def _is_history(report: Report, gate: str) -> bool:
    # Finalised: that there is no way back is the state itself, not an advice.
    return gate == "rollback" and phase_of(report) == "finalized"


def _closed(report: Report) -> list[str]:
    return [name for name in GATES if name in report.gates and report.gates[name].verdict == "no_go"]


def duration(seconds: float | None) -> str:
    """Write a time span in common units: `0.4 s`, `95 s`, `12 min`, `3.2 h`, `4.0 days`; `unknown` for None."""
    if seconds is None:
        return "unknown"
    if abs(seconds) < 10:
        return f"{seconds:.1f} s"
    if abs(seconds) < 120:
        return f"{seconds:.0f} s"
    if abs(seconds) < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if abs(seconds) < 172_800 else f"{seconds / 86_400:.1f} days"


def reach(migration: MigrationSummary) -> str:
    """Say how far `/migration` has got in the committed log: `306 of 306 committed`, `nothing copied yet`."""
    offset, end = migration.kraft_metadata_offset, migration.committed_end_offset
    if offset is None:
        return _WITHOUT_OFFSET.get(migration.migration_znode, "not there")
    if offset < 0:
        return "nothing copied yet"
    if end is not None and offset > end:
        return f"{offset:,}, past the committed end of the log, {end:,}"
    return f"{offset:,} of {'unknown' if end is None else f'{end:,}'} committed"


def state_text(migration: MigrationSummary) -> str:
    """Name the state as the log records it, and the phase if it differs: `MIGRATION (rolled back)`."""
    phase_of_state = PHASE_OF_STATE.get(migration.state.upper())
    phase = f" ({migration.phase.replace('_', ' ')})" if migration.phase and migration.phase != phase_of_state else ""
    return f"{migration.state}{phase}"
