"""Step 4: silver to gold: what differs, why, and whether the gates are open."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.exit import ERRORS, OK, WARNINGS
from jobs.facts import Gatherer
from jobs.homes import classified
from jobs.run import Run, step_main
from jobs.sinks.delta import in_parallel
from schemas.checks import Phase
from schemas.classes import CLASSES
from schemas.entities import MIRRORED
from schemas.gold import BROKER_PRESENCE, CHECKS, DIVERGENCES, GATES, RUNS
from schemas.gold import LAG as LAG_TABLE
from schemas.report import (
    BrokerPresence,
    CheckResult,
    DivergenceRow,
    Divergences,
    Gate,
    Report,
    RunPoint,
)
from schemas.silver import ROW_VERSIONS
from schemas.table import Table
from transforms.reconcile import summary
from transforms.reconcile.canonical import canonical
from transforms.reconcile.classify import Context
from transforms.reconcile.defects import exposure
from transforms.reconcile.deltas import offsets_asked
from transforms.reconcile.difference import differing_rows, union_all, without_moved
from transforms.reconcile.divergences import followed, ranked, stored_counts, totals
from transforms.reconcile.facts import Facts, Sample
from transforms.reconcile.judge import judge_gates, run_checks
from transforms.reconcile.presence import broker_ledger
from transforms.reconcile.release_limits import limits
from transforms.reconcile.suppressions import MARK, counted_matches, in_force, marked, matches_by_rule
from transforms.reconcile.suppressions import notes as suppression_notes
from transforms.report.json import to_json
from transforms.report.printable import key_text, value_text

_HISTORY = 60
_SAMPLE = 20


@dataclass(frozen=True)
class Comparison:
    """The rows of this run and what the report says of them."""

    rows: DataFrame | None
    summary: Divergences
    resolved: list[DivergenceRow]
    samples: dict[str, Sample]
    notes: list[str] = field(default_factory=list)
    unsuppressed_verdict: str = ""


def run_step(run: Run) -> Report:
    """Compare, classify, check and decide; write gold and return the report."""
    gatherer = Gatherer(run)
    facts = gatherer.facts()
    previous = _previous_runs(run)
    comparison = _compare(run, gatherer, facts, previous[-1]["run_id"] if previous else None)
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
    shown = _shown(run, facts, comparison)
    report = _report(run, gatherer, facts, shown, (checks, gates, ledger, verdict), previous)
    _write(run, report, comparison)
    return report


def _shown(run: Run, facts: Facts, comparison: Comparison) -> Comparison:
    """The comparison as the report lists it: suppressed rows marked and last, every count as it is.

    Checks and gates are judged before this: a suppression changes none of them.
    """
    today = run.started_at.date()
    rules = in_force(run.suppressions, today)
    if comparison.rows is None or not rules:
        return replace(comparison, notes=suppression_notes(run.suppressions, today, None))
    limit = run.settings.report.rows
    rows = marked(comparison.rows, rules)
    current = rows.where("status <> 'resolved'")
    counts = [row.asDict() for row in counted_matches(current, rules).collect()]
    by_class = {row["class"]: row["suppressed"] for row in counts if row["suppressed"]}
    told = suppression_notes(run.suppressions, today, matches_by_rule(counts, rules))
    if not by_class:
        return replace(comparison, notes=told)
    others, _, samples = _summarise(rows.where(F.col(MARK).isNull()), limit)
    hidden = ranked(current.where(F.col(MARK).isNotNull())).orderBy("rank").limit(limit).collect()
    vouched = [replace(divergence_row(row), suppressed=rules[row[MARK]].suppression) for row in hidden]
    total = sum(by_class.values())
    listed = replace(
        comparison.summary,
        rows=[*others.rows, *vouched][:limit],
        suppressed=total,
        suppressed_by_class=by_class,
    )
    without = _verdict_of(run, replace(facts, divergences=samples, defect_rows=tuple(others.rows)), others)
    return replace(comparison, summary=listed, notes=told, unsuppressed_verdict=without)


def _verdict_of(run: Run, facts: Facts, divergences: Divergences) -> str:
    checks = run_checks(facts)
    return summary.verdict(divergences, checks, judge_gates(checks, facts), facts.phase, run.settings.gate)


def _loaded_at(facts: Facts) -> int | None:
    return next((change.append_time for change in facts.states if facts.name_of(change) == "MIGRATION"), None)


def _compare(run: Run, gatherer: Gatherer, facts: Facts, previous_run: str | None) -> Comparison:
    if not summary.may_compare(facts):
        return Comparison(None, Divergences(), [], {})
    both = union_all([canonical(entity, gatherer.silver[entity.name]) for entity in MIRRORED])
    context = _context(gatherer, facts)
    log_end = None if facts.plan is None else facts.plan.leading.end
    apart = differing_rows(both, run.read(ROW_VERSIONS), context.committed_end, log_end)
    differing = without_moved(apart, gatherer.moved()).persist()
    current = classified(gatherer.first_walk(), differing, context)
    history = run.warehouse.read(DIVERGENCES).where(
        (F.col("cluster") == run.cluster) & (F.col("run_id") == previous_run)
    )
    run.append(DIVERGENCES, followed(current.where("class <> 'not_comparable'"), history, run.run_id))
    for held in (current, differing):
        held.unpersist()
    rows = run.read(DIVERGENCES).persist()
    return Comparison(rows, *_summarise(rows, run.settings.report.rows))


def _context(gatherer: Gatherer, facts: Facts) -> Context:
    if facts.committed is None or facts.migration_offset is None:
        raise ValueError("rows are compared only when the log and /migration are there; see may_compare")
    foreign = gatherer.foreign_writes()
    zookeeper = facts.zookeeper or {}
    return Context(
        frozen=facts.phase is Phase.FINALIZED,
        migration_offset=facts.migration_offset if facts.mirrored_offset is None else facts.mirrored_offset,
        migration_mzxid=zookeeper.get("migration_mzxid"),
        committed_end=facts.committed.offset,
        load_time=facts.load_time,
        newest_append_time=gatherer.newest_append_time(),
        pending_deletes=frozenset(row[0] for row in gatherer.pending_deletes().collect()),
        foreign_zxids=frozenset(zxid for zxid, _ in foreign),
        foreign_paths=frozenset(path for _, path in foreign),
        claim_zxid=zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None,
        limits=limits(facts.kafka_version),
    )


def _summarise(rows: DataFrame, limit: int) -> tuple[Divergences, list[DivergenceRow], dict[str, Sample]]:
    by_class: dict[str, int] = defaultdict(int)
    by_entity: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    by_status: dict[str, int] = defaultdict(int)
    for row in totals(rows).collect():
        by_status[row["status"]] += row["rows"]
        if row["status"] != "resolved":
            by_class[row["class"]] += row["rows"]
            by_entity[row["entity"]][row["class"]] += row["rows"]
    listed = ranked(rows.where("status <> 'resolved'")).orderBy("rank").limit(limit).collect() if by_class else []
    gone = rows.where("status = 'resolved'").limit(limit).collect() if by_status.get("resolved") else []
    shown = [divergence_row(row) for row in listed]
    summary = Divergences(
        total=sum(by_class.values()),
        by_class=dict(by_class),
        by_entity={entity: dict(classes) for entity, classes in by_entity.items()},
        by_status=dict(by_status),
        rows=shown,
    )
    return summary, [divergence_row(row) for row in gone], _samples(shown, by_class)


def _samples(rows: Sequence[DivergenceRow], by_class: dict[str, int]) -> dict[str, Sample]:
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if len(texts[row.class_]) < _SAMPLE:
            texts[row.class_].append(_one_line(row))
    return {name: Sample(total, tuple(texts[name])) for name, total in by_class.items()}


def _one_line(row: DivergenceRow) -> str:
    what = key_text(row.entity, row.key) + (f" {row.column}" if row.column else "")
    return (
        f"{row.class_}: {row.entity} {what}: ZooKeeper {value_text(row.zk_value)}, KRaft {value_text(row.kraft_value)}"
    )


def divergence_row(row: Any) -> DivergenceRow:
    """A row of gold divergences as the report holds it."""
    return DivergenceRow(
        entity=row["entity"],
        key=json.loads(row["key"]),
        column=row["column"],
        kind=row["kind"],
        zk_value=json.loads(row["zk_value"]),
        kraft_value=json.loads(row["kraft_value"]),
        class_=row["class"],
        severity=row["severity"],
        zk_path=row["zk_path"],
        zk_mzxid=row["zk_mzxid"],
        kraft_offset=row["kraft_offset"],
        status=row["status"],
        explanation=row["explanation"],
        fingerprint=row["fingerprint"],
        remedy=CLASSES[row["class"]].remedy,
    )


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
        _iso(run.started_at),
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
        started_at=_iso(run.started_at),
        finished_at=_iso(finished_at),
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
        history=[*[_point(row) for row in previous[-(_HISTORY - 1) :]], point],
        notes=[*summary.notes(facts), *run.notes, *comparison.notes],
        unsuppressed_verdict=comparison.unsuppressed_verdict,
        quarantined=facts.damaged_log.total + facts.unreadable_znodes.total,
    )


def exit_code(verdict: str, fail_on: str) -> int:
    """Exit code of a verdict (DESIGN §5): `--fail-on warn` makes warnings errors, `never` makes everything 0."""
    if fail_on == "never" or verdict == summary.CLEAN:
        return OK
    return ERRORS if verdict == summary.ERRORS or fail_on == "warn" else WARNINGS


def _previous_runs(run: Run) -> list[Any]:
    rows = run.warehouse.read(RUNS).where((F.col("cluster") == run.cluster) & (F.col("run_id") != run.run_id))
    newest = rows.orderBy(F.col("started_at").desc()).limit(_HISTORY).withColumn("by_class", stored_counts())
    return list(reversed(newest.drop("report", "table_versions").collect()))


def _point(row: Any) -> RunPoint:
    return RunPoint(
        row["run_id"],
        _iso(row["started_at"]),
        row["verdict"],
        row["state"],
        row["lag_records"],
        row["lag_seconds"],
        row["defects"],
        row["divergences"],
        json.loads(row["by_class"] or "{}"),
    )


def _iso(moment: datetime) -> str:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _write(run: Run, report: Report, comparison: Comparison) -> None:
    """Gold first, the runs row last: a run without one never counts, so an interrupted run changes no report."""
    written: dict[Table, list[dict[str, Any]]] = {
        CHECKS: [
            {
                "check_id": c.id,
                "gates": c.gates,
                "severity": c.severity,
                "verdict": c.verdict,
                "violations": c.violations,
                "evidence": c.evidence,
                "title": c.title,
            }
            for c in report.checks
        ],
        GATES: [
            {"gate": name, "verdict": gate.verdict, "blocking": gate.blocking} for name, gate in report.gates.items()
        ],
        BROKER_PRESENCE: [
            {name: getattr(entry, name) for name in BROKER_PRESENCE.column_names if hasattr(entry, name)}
            for entry in report.broker_presence
        ],
        LAG_TABLE: [
            {
                "measured_at": int(run.started_at.timestamp() * 1000),
                "records": report.lag.records,
                "seconds": report.lag.seconds,
                "alive": report.lag.alive,
                "kraft_metadata_offset": report.migration.kraft_metadata_offset,
                "committed_end_offset": report.migration.committed_end_offset,
            }
        ],
    }
    writes: list[Callable[[], None]] = [_appending(run, table, rows) for table, rows in written.items()]
    in_parallel(writes)
    _appending(run, RUNS, [_run_row(run, report)])()
    if comparison.rows is not None:
        comparison.rows.unpersist()


def _appending(run: Run, table: Table, rows: list[dict[str, Any]]) -> Callable[[], None]:
    struct = StructType([field for field in table.columns if field.name not in ("cluster", "run_id")])
    values = [tuple(row.get(name) for name in struct.fieldNames()) for row in rows]
    return lambda: run.append(table, run.spark.createDataFrame(values, struct))


def _run_row(run: Run, report: Report) -> dict[str, Any]:
    return {
        "started_at": run.started_at,
        "finished_at": datetime.now(UTC),
        "kafka_version": report.kafka_version,
        "mode": report.mode,
        "state": report.migration.state,
        "verdict": report.verdict,
        "exit_code": report.exit_code,
        "defects": summary.defects(report.divergences),
        "divergences": report.divergences.total,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        "table_versions": run.table_versions(),
        "report": to_json(report),
    }


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("reconcile", lambda run: run_step(run).exit_code, argv)


if __name__ == "__main__":
    sys.exit(main())
