"""Compare the two sides of a run: the differing rows with their classes, as tables, samples and counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.facts import Gatherer
from jobs.audit.homes import classified
from jobs.audit.run import Run
from schemas.checks import Phase
from schemas.classes import CLASSES
from schemas.entities import MIRRORED
from schemas.gold import DIVERGENCES
from schemas.report import (
    DivergenceRow,
    Divergences,
)
from schemas.silver import ROW_VERSIONS, ZOOKEEPER_WRITES
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.difference import differing_rows, union_all, without_moved
from transforms.reconcile.compare.divergences import followed, ranked, totals
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.compare.suppressions import MARK, counted_matches, in_force, marked, matches_by_rule
from transforms.reconcile.compare.suppressions import notes as suppression_notes
from transforms.reconcile.context import Context
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.load import history_from, load_claim, load_range
from transforms.report.printable import key_text, value_text

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


def compare(run: Run, gatherer: Gatherer, facts: Facts, previous_run: str | None) -> Comparison:
    """Compare the two sides and write the differences to gold; nothing when they can't be compared (`may_compare`)."""
    if not summary.may_compare(facts):
        return Comparison(None, Divergences(), [], {})
    both = union_all([canonical(entity, gatherer.silver[entity.name]) for entity in MIRRORED])
    context = _context(run, gatherer, facts)
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


def _context(run: Run, gatherer: Gatherer, facts: Facts) -> Context:
    if facts.committed is None or facts.migration_offset is None:
        raise ValueError("rows are compared only when the log and /migration are there; see may_compare")
    foreign = gatherer.foreign_writes()
    zookeeper = facts.zookeeper or {}
    claim = zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None
    load = load_range([(state.offset, facts.name_of(state)) for state in facts.states], facts.transactions)
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
        claim_zxid=claim,
        limits=limits(facts.kafka_version),
        load=load,
        load_claim=load_claim(zookeeper, facts.plan, load),
        history_from=history_from(facts.plan),
        transactions_told=claim is not None and _claim_told(run, claim),
    )


def _claim_told(run: Run, claim_zxid: int) -> bool:
    """Whether ZooKeeper's transaction logs were read from the claim on."""
    claims = run.read(ZOOKEEPER_WRITES).where((F.col("kind") == "claim") & (F.col("zxid") == claim_zxid))
    return bool(claims.limit(1).collect())


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


def shown(run: Run, facts: Facts, comparison: Comparison) -> Comparison:
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
