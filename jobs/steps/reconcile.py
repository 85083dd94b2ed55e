"""Step 4: silver to gold: what differs, why, and whether the gates are open."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from jobs.audit import kip_tables
from jobs.audit.compare import Compared, Comparison, compare, shown
from jobs.audit.facts import ClusterFacts, Gathering, deltas
from jobs.audit.isr_history import changes
from jobs.audit.kept_state import keep_states
from jobs.audit.kraft_side import KraftSide, kraft_sides, log_copies, milestone_rows
from jobs.audit.run import ClusterRun, Run
from jobs.audit.steps import step_main
from jobs.exit import ERRORS, OK, WARNINGS
from jobs.settings import Settings, claim_of
from jobs.steps.expect import with_expectations
from jobs.steps.gold import (
    HISTORY,
    clock_notes,
    earlier_run,
    iso,
    log_end_before,
    previous_runs,
    run_before,
    stored_point,
    write,
    write_runs,
)
from jobs.steps.materialize import State
from jobs.steps.replay_log import replay_logs
from jobs.version import tool_version
from schemas.bronze import KRAFT_RECORDS
from schemas.entities import MIRRORED
from schemas.entities.migration import MIGRATION
from schemas.gold import ISR_CHANGE
from schemas.replayed import ROW_VERSION
from schemas.report import BrokerPresence, CheckResult, Gate, LagPoint, Report, RunPoint
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from transforms.clusters import CLUSTER
from transforms.kraft.replay.image import row_versions
from transforms.leaks import without_leaks
from transforms.outcome import EVIDENCE_LIMIT
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.asked import asked_of
from transforms.reconcile.judge.checks.between import known_of
from transforms.reconcile.judge.dashboard import metrics, state_spellings
from transforms.reconcile.judge.defects import exposure
from transforms.reconcile.judge.deltas import offsets_asked
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import FAIL, judge_gates, run_checks
from transforms.reconcile.judge.kraft_summary import kraft_health
from transforms.reconcile.judge.presence import broker_ledger
from transforms.report.bounds import shortened
from transforms.report.json import from_json, to_json


@dataclass(frozen=True)
class Judged:
    """What pure functions make of one cluster's facts."""

    facts: Facts
    checks: list[CheckResult]
    gates: dict[str, Gate]
    ledger: list[BrokerPresence]
    verdict: str


def run_step(run: Run, state: State) -> dict[str, Report]:
    """Compare, classify, check and decide; write gold and return the report of each cluster that has not failed."""
    previous = previous_runs(run)
    newest = {name: run_before(rows) for name, rows in previous.items() if rows}
    gathering = Gathering(run, state, newest)
    facts = gathering.without_samples()
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(gathering.samples)
        compared = compare(run, state, facts, newest)
    samples = asked.result()
    gathered = {name: samples[name].added_to(each) for name, each in facts.items()}
    judged = _judge(run, gathered, compared, previous)
    listings = shown(run, compared, {name: each.facts for name, each in judged.items()})
    reports = {}
    for name in run.going:
        try:
            report = _report(run, gathered[name], judged[name], listings[name], previous.get(name, ()))
            whole = _with_tables(report, gathered[name], state.sides.get(name))
            reports[name] = without_secrets(whole, run.clusters[name].settings.fail_on)
        except Exception as error:
            run.fail(name, error)
    write(run, reports)
    for name, report in with_expectations(run, reports).items():
        fail_on = run.clusters[name].settings.fail_on
        # Rows that fail an expectation come from the tables: this is the last look at what is written from here on.
        reports[name] = without_secrets(replace(report, exit_code=exit_code(report.verdict, fail_on)), fail_on)
    reports = {name: held_to_its_gate(report, run.clusters[name].settings) for name, report in reports.items()}
    keep_states(run, state.keeping)
    write_runs(run, reports, previous, {name: known_of(each.facts) for name, each in judged.items()})
    return {name: report for name, report in reports.items() if name in run.going}


def _judge(
    run: Run, gathered: Mapping[str, ClusterFacts], compared: Compared, previous: Mapping[str, Sequence[Any]]
) -> dict[str, Judged]:
    rows = {name: tuple(compared.of(name).summary.rows) for name in gathered}
    found = deltas(
        run,
        {name: offsets_asked(rows[name]) for name in gathered},
        {name: _loaded_at(each.facts) for name, each in gathered.items()},
    )
    judged = {}
    for name in run.going:
        comparison, before = compared.of(name), previous.get(name, ())
        earlier = earlier_run(before)
        facts = replace(
            gathered[name].facts,
            divergences=comparison.samples,
            duplicated=comparison.duplicated,
            compared=comparison.compared,
            defect_rows=rows[name],
            deltas=found.get(name, {}),
            previous_end=log_end_before(before),
            earlier=earlier,
            claim=claim_of(run.clusters[name].settings, run.started_at),
        )
        try:
            judged[name] = _judged(run.clusters[name], facts, comparison)
        except Exception as error:
            run.fail(name, error)
    return judged


def _judged(cluster: ClusterRun, facts: Facts, comparison: Comparison) -> Judged:
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    asked, lenient = cluster.settings.gate, cluster.settings.allow_unknown
    verdict = summary.verdict(comparison.summary, checks, gates, facts.phase, asked, allow_unknown=lenient)
    return Judged(facts, checks, gates, broker_ledger(facts), verdict)


def _loaded_at(facts: Facts) -> int | None:
    return next((change.append_time_ms for change in facts.states if facts.name_of(change) == "MIGRATION"), None)


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
        lag_series=[LagPoint(**vars(point)) for point in gathered.lag_series],
        unsuppressed_verdict=comparison.unsuppressed_verdict,
        quarantined=facts.damaged_log.total + facts.unreadable_znodes.total,
        kraft=kraft_health(facts),
    )


def _with_tables(report: Report, gathered: ClusterFacts, side: KraftSide | None) -> Report:
    """The report with what the partitions' history, the features and the formats say."""
    answers, facts = gathered.answers, gathered.facts
    return replace(
        report,
        isr_history=kip_tables.isr_history(answers, facts),
        features=kip_tables.features(answers, facts),
        downgrade=kip_tables.downgrade(answers, facts, side),
    )


def without_secrets(report: Report, fail_on: str) -> Report:
    """The report as it may be written, stored and mailed: what has the form of a secret is withheld, and SEC-05 says where;
    long texts are cut.

    All that is shown to anybody is made from the report, so that this is the last place to look.
    """
    document, found = without_leaks(json.loads(to_json(report)))
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
    """SEC-05 with what was found in the report beside what was found in the tables."""
    before = check.violations if check.verdict == FAIL else 0
    evidence = [*(check.evidence if before else ()), *[f"report: {place}" for place in found]]
    return replace(check, verdict=FAIL, violations=before + len(found), evidence=evidence[:EVIDENCE_LIMIT])


def exit_code(verdict: str, fail_on: str) -> int:
    """Exit code of a verdict (DESIGN §5): `--fail-on warn` makes warnings errors, `never` makes everything 0."""
    if fail_on == "never" or verdict == summary.CLEAN:
        return OK
    return ERRORS if verdict == summary.ERRORS or fail_on == "warn" else WARNINGS


def held_to_its_gate(report: Report, settings: Settings) -> Report:
    """The report with the exit code and the reason of a gate that was asked for and is shut, whatever `--fail-on` says."""
    shut = asked_of(report.gates, settings.gate, report.checks, allow_unknown=settings.allow_unknown)
    return report if not shut else replace(report, exit_code=ERRORS, notes=[shut, *report.notes])


def stored_state(run: Run) -> State:
    """What `materialize` made, when that was another process: from the tables it wrote."""
    rows = run.rows(MIGRATION.table).where("source = 'zookeeper'").collect()
    migrations, compared = (
        {**dict.fromkeys(run.going), **{row[CLUSTER]: _znodes(row) for row in rows if row[TREE] in (None, tree)}}
        for tree in (NEWEST, BARRIER)
    )
    records = run.rows(KRAFT_RECORDS)
    milestones: dict[str, list[dict[str, Any]]] = {name: [] for name in run.going}
    for row in milestone_rows(records).collect():
        milestones[row[CLUSTER]].append(row.asDict())
    sides = kraft_sides(run.warehouse, log_copies(run), milestones, compared)
    versions, replayed = run.spark.createDataFrame([], ROW_VERSION), None
    history = run.spark.createDataFrame([], ISR_CHANGE)
    if sides:
        offsets = {name: (compared[name] or {}).get("kraft_metadata_offset") for name in sides}
        replayed = replay_logs(run, records, sides, offsets, verify=False)
        versions = row_versions(replayed.compact, replayed.folded, replayed.versions_from_inclusive, MIRRORED)
        history = changes(replayed.log, sides)
    log = None if replayed is None else replayed.log
    return State(sides, migrations, compared, run.cache_now(versions), run.cache(history), log)


def _znodes(row: Any) -> Mapping[str, Any]:
    return {name: value for name, value in row.asDict().items() if name != TREE}


def _alone(run: Run) -> dict[str, int]:
    return {name: report.exit_code for name, report in run_step(run, stored_state(run)).items()}


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("reconcile", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
