"""Step 4: silver to gold: what differs, why, and whether the gates are open."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from jobs.audit.compare import Comparison, compare, shown
from jobs.audit.facts import Gatherer
from jobs.audit.run import Run, step_main
from jobs.exit import ERRORS, OK, WARNINGS
from jobs.steps.gold import HISTORY, iso, previous_runs, run_point, write
from jobs.version import tool_version
from schemas.report import (
    BrokerPresence,
    CheckResult,
    Gate,
    Report,
    RunPoint,
)
from transforms.reconcile.dashboard import metrics, state_spellings
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.defects import exposure
from transforms.reconcile.judge.deltas import offsets_asked
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.presence import broker_ledger


def run_step(run: Run) -> Report:
    """Compare, classify, check and decide; write gold and return the report."""
    gatherer = Gatherer(run)
    facts = gatherer.facts()
    previous = previous_runs(run)
    comparison = compare(run, gatherer, facts, previous[-1]["run_id"] if previous else None)
    compared = comparison.rows is not None
    rows = tuple(comparison.summary.rows)
    facts = replace(
        facts,
        divergences=comparison.samples,
        compared=compared,
        defect_rows=rows,
        deltas=gatherer.deltas(offsets_asked(rows), _loaded_at(facts)),
    )
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    ledger = broker_ledger(facts)
    verdict = summary.verdict(comparison.summary, checks, gates, facts.phase, run.settings.gate)
    listed = shown(run, facts, comparison)
    report = _report(run, gatherer, facts, listed, (checks, gates, ledger, verdict), previous)
    write(run, report, comparison)
    return report


def _loaded_at(facts: Facts) -> int | None:
    return next((change.append_time for change in facts.states if facts.name_of(change) == "MIGRATION"), None)


Judged = tuple[list[CheckResult], dict[str, Gate], list[BrokerPresence], str]


def _report(
    run: Run, gatherer: Gatherer, facts: Facts, comparison: Comparison, judged: Judged, previous: Sequence[Any]
) -> Report:
    checks, gates, ledger, verdict = judged
    lag = summary.lag(facts, run.settings.thresholds.alive_seconds)
    mode = summary.mode(facts)
    finished_at = datetime.now(UTC)
    point = RunPoint(
        run.run_id,
        iso(run.started_at),
        verdict,
        facts.state_name,
        lag.records,
        lag.seconds,
        summary.defects(comparison.summary),
        comparison.summary.total,
        comparison.summary.by_class,
    )
    return Report(
        cluster=run.cluster,
        run_id=run.run_id,
        started_at=iso(run.started_at),
        finished_at=iso(finished_at),
        kafka_version=facts.kafka_version or "unknown",
        kafka_version_evidence=gatherer.release.evidence,
        mode=mode,
        mode_explanation=summary.MODES[mode],
        exit_code=exit_code(verdict, run.settings.fail_on),
        verdict=verdict,
        migration=summary.migration(facts),
        lag=lag,
        gates=gates,
        checks=checks,
        counts=gatherer.counts(),
        divergences=comparison.summary,
        resolved=comparison.resolved,
        broker_presence=ledger,
        defects=exposure(facts),
        log_copies=summary.copies(facts),
        history=[*[run_point(row) for row in previous[-(HISTORY - 1) :]], point],
        notes=[*summary.notes(facts), *run.notes, *comparison.notes],
        tool_version=tool_version(),
        metrics=metrics(facts, lag),
        state_spellings=state_spellings(facts),
        unsuppressed_verdict=comparison.unsuppressed_verdict,
        quarantined=facts.damaged_log.total + facts.unreadable_znodes.total,
    )


def exit_code(verdict: str, fail_on: str) -> int:
    """Exit code of a verdict (DESIGN §5): `--fail-on warn` makes warnings errors, `never` makes everything 0."""
    if fail_on == "never" or verdict == summary.CLEAN:
        return OK
    return ERRORS if verdict == summary.ERRORS or fail_on == "warn" else WARNINGS


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("reconcile", lambda run: run_step(run).exit_code, argv)


if __name__ == "__main__":
    sys.exit(main())
