"""Step 4: the results of each cluster to gold: differences with their reasons, and the gates."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jobs.exit import ERRORS, OK, WARNINGS, AuditError
from jobs.run import kept
from jobs.run.earlier_runs import clock_notes, iso, previous_runs, stored_point
from jobs.run.examine import Examined, stored
from jobs.run.opening import opened
from jobs.run.run import ClusterRun, Run
from jobs.run.steps import step_main
from jobs.settings import Settings
from jobs.steps.expect import with_expectations
from jobs.steps.gold import write, write_runs
from jobs.steps.materialize import given_of
from jobs.version import tool_version
from schemas.report import BrokerPresence, CheckResult, Gate, Report, RunPoint
from transforms.examination.answers import COMPARED, DELTAS, FIRST, RECORDED, SECOND
from transforms.kraft.side import KraftSide
from transforms.leaks import without_leaks
from transforms.outcome import EVIDENCE_LIMIT
from transforms.reconcile.judge import kip_tables, summary
from transforms.reconcile.judge.beside import beside_of
from transforms.reconcile.judge.checks.between import known_of
from transforms.reconcile.judge.dashboard import metrics, state_spellings
from transforms.reconcile.judge.defects import exposure
from transforms.reconcile.judge.evidence import ClusterFacts, facts_of, with_differences
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import FAIL, judge_gates, run_checks
from transforms.reconcile.judge.given import Given
from transforms.reconcile.judge.kraft_summary import kraft_health
from transforms.reconcile.judge.presence import broker_ledger
from transforms.reconcile.judge.requested_gate import asked_of
from transforms.report.compared import lag_is_unknown
from transforms.report.comparison import NOTHING, Comparison, ReportRequest, comparison, shown
from transforms.report.json import from_json, report_document, shortened
from transforms.report.since import HISTORY


@dataclass(frozen=True)
class Judged:
    """What pure functions make of one cluster's facts."""

    facts: Facts
    checks: list[CheckResult]
    gates: dict[str, Gate]
    ledger: list[BrokerPresence]
    verdict: str


def run_step(run: Run, given: Mapping[str, Given], found: Mapping[str, Examined]) -> dict[str, Report]:
    """Judge the results of each cluster; write gold and return the reports of those that have not failed."""
    previous = previous_runs(run)
    judged, reports = {}, {}
    for name in run.going:
        try:
            judged[name], report = _reported(
                run, run.clusters[name], given[name], _found(name, found), previous.get(name, ())
            )
            reports[name] = without_secrets(report, run.clusters[name].settings.fail_on)
        except Exception as error:
            run.fail(name, error)
    write(run, reports)
    left = {name: kept.left(run, name, found[name]) for name in reports}
    run.chains = {name: each.chain.runs for name, each in left.items()}
    for name, report in with_expectations(run, reports).items():
        fail_on = run.clusters[name].settings.fail_on
        # Rows that fail an expectation come from the tables: this is the last look at what is written from here on.
        reports[name] = without_secrets(replace(report, exit_code=exit_code(report.verdict, fail_on)), fail_on)
    reports = {name: with_requested_gate(report, run.clusters[name].settings) for name, report in reports.items()}
    said = {name: kept.said(run, each, found[name].answers[RECORDED]) for name, each in left.items()}
    needed = [*left.values(), *run.kept.values()]
    known = {name: {**known_of(each.facts).row(), "beside": beside_of(each.facts)} for name, each in judged.items()}
    write_runs(run, reports, known, said, kept.needed_runs(needed))
    return {name: report for name, report in reports.items() if name in run.going}


def _found(name: str, found: Mapping[str, Examined]) -> Examined:
    """What was found of a cluster. Raises AuditError where this run has stored nothing of it."""
    if name not in found:
        raise AuditError("this run has stored no answers about it: run the step materialize first, or the audit again")
    return found[name]


def _reported(
    run: Run, cluster: ClusterRun, given: Given, found: Examined, previous: Sequence[Any]
) -> tuple[Judged, Report]:
    settings, answers = cluster.settings, found.answers
    gathered = facts_of(given, answers[FIRST], answers[SECOND], cluster.property_files)
    differing = answers[COMPARED]
    compared = NOTHING if differing is None else comparison(differing, settings.report.rows)
    judged = _judged(settings, gathered, compared, answers[DELTAS])
    today, asked = run.started_at.date(), ReportRequest(settings.report.rows, settings.gate, settings.allow_unknown)
    listed = shown(compared, differing or {}, cluster.suppressions, today, judged.facts, asked)
    report = _report(run, gathered, judged, listed, previous)
    return judged, _with_tables(report, replace(gathered, facts=judged.facts), given.side)


def _judged(
    settings: Settings, gathered: ClusterFacts, compared: Comparison, deltas: Sequence[Mapping[str, int]]
) -> Judged:
    facts = with_differences(
        gathered.facts,
        compared=compared.compared,
        samples=compared.samples,
        rows=compared.known,
        duplicated=compared.duplicated,
        deltas={each["offset"]: (each["before"], each["after"]) for each in deltas},
    )
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    asked, lenient = settings.gate, settings.allow_unknown
    verdict = summary.verdict(compared.summary, checks, gates, facts.phase, asked, allow_unknown=lenient)
    return Judged(facts, checks, gates, broker_ledger(facts), verdict)


def _report(
    run: Run, gathered: ClusterFacts, judged: Judged, comparison: Comparison, previous: Sequence[Any]
) -> Report:
    facts, cluster = judged.facts, run.clusters[gathered.name]
    lag = summary.lag(facts)
    mode = summary.mode(facts)
    point = RunPoint(
        run.run_id,
        iso(run.started_at),
        judged.verdict,
        facts.state_name,
        lag.records,
        lag.seconds,
        summary.defects(comparison.summary),
        comparison.summary.total,
        comparison.summary.by_class,
        not comparison.compared,
        lag_is_unknown(facts.phase, lag.records),
    )
    return Report(
        cluster=cluster.name,
        run_id=run.run_id,
        started_at=iso(run.started_at),
        finished_at=iso(datetime.now(UTC)),
        kafka_version=facts.kafka_version or "unknown",
        kafka_version_evidence=gathered.release.evidence,
        mode=mode,
        mode_explanation=summary.MODES[mode],
        exit_code=exit_code(judged.verdict, cluster.settings.fail_on),
        verdict=judged.verdict,
        migration=summary.migration(facts),
        lag=lag,
        gates=judged.gates,
        checks=judged.checks,
        counts={name: dict(sides) for name, sides in facts.counts.items()},
        divergences=comparison.summary,
        resolved=comparison.resolved,
        broker_presence=judged.ledger,
        defects=exposure(facts),
        log_copies=summary.copies(facts),
        history=[*[stored_point(row) for row in previous[-(HISTORY - 1) :]], point],
        notes=[*summary.notes(facts), *clock_notes(run, previous), *cluster.notes, *comparison.notes],
        tool_version=tool_version(),
        metrics=metrics(facts, lag),
        state_spellings=state_spellings(facts),
        lag_series=[*gathered.lag_series],
        unsuppressed_verdict=comparison.unsuppressed_verdict,
        quarantined=sum(each.total for each in (facts.damaged_log, facts.unknown_records, facts.unreadable_znodes)),
        kraft=kraft_health(facts),
    )


def _with_tables(report: Report, gathered: ClusterFacts, side: KraftSide | None) -> Report:
    """The report with the results about partitions' history, features and formats."""
    answers, facts = gathered.answers, gathered.facts
    return replace(
        report,
        isr_history=kip_tables.isr_history(answers, facts),
        features=kip_tables.features(answers, facts),
        downgrade=kip_tables.downgrade(answers, facts, side),
    )


def without_secrets(report: Report, fail_on: str) -> Report:
    """The report as it may be written, stored and mailed: texts with the form of a secret are withheld, and SEC-05 names their
    places; long texts are cut.

    Everything that users see is made from the report, so this is the last place to check.
    """
    document, found = without_leaks(report_document(report))
    document, cut = shortened(document)
    if not found and not cut:
        return report
    cleaned = from_json(json.dumps(document))
    if not found:
        return cleaned
    checks = [_with_places(check, found) if check.id == "SEC-05" else check for check in cleaned.checks]
    return replace(
        cleaned,
        checks=checks,
        verdict=summary.ERRORS,
        exit_code=max(cleaned.exit_code, exit_code(summary.ERRORS, fail_on)),
    )


def _with_places(check: CheckResult, found: Sequence[str]) -> CheckResult:
    """SEC-05 with the findings in the report in addition to those in the tables."""
    before = check.violations if check.verdict == FAIL else 0
    evidence = [*(check.evidence if before else ()), *[f"report: {place}" for place in found]]
    return replace(check, verdict=FAIL, violations=before + len(found), evidence=evidence[:EVIDENCE_LIMIT])


def exit_code(verdict: str, fail_on: str) -> int:
    """Exit code of a verdict: `--fail-on warn` makes warnings errors, `never` makes everything 0."""
    if fail_on == "never" or verdict == summary.CLEAN:
        return OK
    return ERRORS if verdict == summary.ERRORS or fail_on == "warn" else WARNINGS


def with_requested_gate(report: Report, settings: Settings) -> Report:
    """The report with the exit code and the reason if the requested gate is closed, regardless of `--fail-on`."""
    shut = asked_of(report.gates, settings.gate, report.checks, allow_unknown=settings.allow_unknown)
    return report if not shut else replace(report, exit_code=ERRORS, notes=[shut, *report.notes])


def _alone(run: Run) -> dict[str, int]:
    """The step alone, by what `materialize` has stored."""
    kept.look_up(run, kept.bases(run))
    given = given_of(run, opened(run))
    return {name: report.exit_code for name, report in run_step(run, given, stored(run)).items()}


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("reconcile", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
