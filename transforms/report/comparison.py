"""A cluster's comparison as the report lists it: counts, bounded lists, and samples for the checks."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from schemas.classes import CLASSES, DEFECTS, LOST_CREDENTIAL, LOST_WRITE, MISSING_FOLDER, MISSING_STATE
from schemas.entities.acls import ACLS
from schemas.entities.delegation_tokens import DELEGATION_TOKENS
from schemas.entities.partitions import PARTITIONS
from schemas.entities.scram_credentials import SCRAM_CREDENTIALS
from schemas.report import DivergenceRow, Divergences
from transforms.reconcile.compare.comparison import Answers
from transforms.reconcile.compare.differing import ASSIGNMENT
from transforms.reconcile.compare.suppressions import MARK, SuppressionRule, in_force
from transforms.reconcile.compare.suppressions import notes as suppression_notes
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.report.printable import key_text, value_text

_SAMPLE = 20
# Entities whose folders in ZooKeeper the KRaft controller needs and does not make.
_IN_FOLDERS = (ACLS.name, DELEGATION_TOKENS.name)


@dataclass(frozen=True)
class Comparison:
    """One cluster's differing rows as the report lists them; empty when its sides were not compared.

    `known` are all rows that were answered: those of the list, and the first of each class and entity.
    """

    compared: bool
    summary: Divergences
    resolved: list[DivergenceRow]
    samples: dict[str, Sample]
    duplicated: Sample | None = None
    notes: list[str] = field(default_factory=list)
    unsuppressed_verdict: str = ""
    known: Sequence[DivergenceRow] = ()


NOTHING = Comparison(False, Divergences(), [], {})


@dataclass(frozen=True)
class ReportRequest:
    """The requested output: `limit` rows at most, and the gate that decides the verdict, if any."""

    limit: int
    gate: str | None = None
    allow_unknown: bool = False


def comparison(answers: Answers, limit: int) -> Comparison:
    """Counts and lists from the answers `row` and `twice` of `transforms.reconcile.compare.comparison.Compared`."""
    twice = answers["twice"]
    sample = Sample(twice[0]["total"], tuple(twice[0]["texts"])) if twice else Sample()
    return replace(_summarised(answers["row"], limit), duplicated=sample)


def shown(
    compared: Comparison,
    answers: Answers,
    suppressions: Sequence[SuppressionRule],
    today: date,
    facts: Facts,
    asked: ReportRequest,
) -> Comparison:
    """The comparison as the report lists it: suppressed rows marked and last, every count as it is.

    `suppressions` are the configured ones, in force or not, `facts` those that were judged. Checks and gates are judged
    before this: a suppression changes none of them.
    """
    mine = in_force(suppressions, today)
    if not mine or not compared.compared:
        return replace(compared, notes=suppression_notes(suppressions, today, None))
    matched = {position for row in answers["matched"] for position in row["matched"]}
    noted = replace(compared, notes=suppression_notes(suppressions, today, matched))
    by_class = {row["class"]: row["suppressed"] for row in answers["matched"]}
    return _with_suppressed(noted, answers, mine, by_class, facts, asked) if by_class else noted


def _with_suppressed(
    compared: Comparison,
    answers: Answers,
    rules: Sequence[SuppressionRule],
    by_class: dict[str, int],
    facts: Facts,
    asked: ReportRequest,
) -> Comparison:
    rest = _summarised(answers["others"], asked.limit)
    vouched = [
        replace(divergence_row(row), suppressed=rules[row[MARK]].suppression)
        for row in sorted(answers["hidden"], key=lambda row: int(row["place"]))
    ]
    return replace(
        compared,
        summary=replace(
            compared.summary,
            rows=[*rest.summary.rows, *vouched][: asked.limit],
            suppressed=sum(by_class.values()),
            suppressed_by_class=by_class,
        ),
        unsuppressed_verdict=_verdict_of(facts, rest, asked),
    )


def _verdict_of(facts: Facts, rest: Comparison, asked: ReportRequest) -> str:
    without = replace(facts, divergences=rest.samples, defect_rows=tuple(rest.known))
    checks = run_checks(without)
    gates = judge_gates(checks, without)
    return summary.verdict(rest.summary, checks, gates, without.phase, asked.gate, allow_unknown=asked.allow_unknown)


def _summarised(rows: Sequence[Mapping[str, Any]], limit: int) -> Comparison:
    """Counts and lists from rows of `listed`: every group's total is on each of its rows."""
    totals = {(row["class"], row["entity"], row["status"]): row["total"] for row in rows}
    by_class: dict[str, int] = defaultdict(int)
    by_entity: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    by_status: dict[str, int] = defaultdict(int)
    of_defects: dict[str, int] = defaultdict(int)
    for (class_, entity, status), total in sorted(totals.items()):
        by_status[status] += total
        if class_ in DEFECTS:
            of_defects[status] += total
        if status != "resolved":
            by_class[class_] += total
            by_entity[entity][class_] += total
    current, gone = _in_order(rows, limit, resolved=False), _in_order(rows, limit, resolved=True)
    return Comparison(
        True,
        Divergences(
            total=sum(by_class.values()),
            by_class=dict(by_class),
            by_entity={entity: dict(classes) for entity, classes in by_entity.items()},
            by_status=dict(by_status),
            rows=current,
            defects_by_status=dict(of_defects),
        ),
        gone,
        _samples(current, by_class),
        known=[divergence_row(row) for row in rows if row["status"] != "resolved"],
    )


def _in_order(rows: Sequence[Mapping[str, Any]], limit: int, *, resolved: bool) -> list[DivergenceRow]:
    mine = [row for row in rows if (row["status"] == "resolved") is resolved and row["place"] <= limit]
    return [divergence_row(row) for row in sorted(mine, key=lambda row: int(row["place"]))]


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


def divergence_row(row: Mapping[str, Any]) -> DivergenceRow:
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
        lost_after_zxid=row["lost_after_zxid"],
        lost_until_zxid=row["lost_until_zxid"],
        fingerprint=row["fingerprint"],
        remedy=_remedy(row),
    )


def _remedy(row: Mapping[str, Any]) -> str:
    of_state = row["entity"] == PARTITIONS.name and row["column"] is not None and row["column"] not in ASSIGNMENT
    missing = of_state and row["zk_value"] == "null" and row["class"] in DEFECTS
    if missing:
        return MISSING_STATE
    if (row["entity"], row["kind"], row["class"]) == (SCRAM_CREDENTIALS.name, "kraft_only", LOST_WRITE):
        return LOST_CREDENTIAL
    folder = row["entity"] in _IN_FOLDERS and row["kind"] == "kraft_only" and row["zk_path"] is not None
    return MISSING_FOLDER if folder and row["class"] in DEFECTS else CLASSES[row["class"]].remedy
