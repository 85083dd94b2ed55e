"""The known Kafka defects that a cluster is exposed to, and those that left traces in it (S§12.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.checks import Phase
from schemas.defects import DEFECTS, KnownDefect, RowTrace
from schemas.report import CheckResult, Defect, DivergenceRow
from transforms.reconcile.compare.exposure import affecting
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import FAIL, WARN, run_checks
from transforms.report.printable import key_text

_TRACES_SHOWN = 3


def exposure(facts: Facts) -> list[Defect]:
    """The catalogue for this cluster: exposed by its release, and whether traces were found.

    `detail` gives the effect, the releases and the traces; a trace that a defect could have left which the
    release does not have is another's. Nothing for a cluster that does not migrate; where the release is not known, only what left
    traces.
    """
    if facts.phase is Phase.KRAFT:
        return []
    affected = {d.jira: releases for d, releases in affecting(facts.kafka_version)} if facts.kafka_version else {}
    results = {result.id: result for result in run_checks(facts)}
    known = facts.kafka_version is not None
    judged = [
        _judged(
            defect,
            affected,
            [] if known and defect.jira not in affected else _traces(defect, facts, results),
            _not_searched(defect, facts) if known and defect.jira in affected else "",
        )
        for defect in DEFECTS
    ]
    return [defect for defect in judged if known or defect.evidence]


def _judged(defect: KnownDefect, affected: Mapping[str, str], traces: Sequence[str], not_searched: str) -> Defect:
    release = affected.get(defect.jira, "")
    found = f"found: {'; '.join(traces[:_TRACES_SHOWN])}" if traces else not_searched
    detail = " ".join(part for part in (defect.effect, release and f"({release})", found) if part)
    return Defect(defect.jira, defect.jira in affected, bool(traces), defect.title, detail)


def _traces(defect: KnownDefect, facts: Facts, results: Mapping[str, CheckResult]) -> list[str]:
    """What a defect left behind, a line each; a bounded sample."""
    failed = [results[name] for name in defect.checks if results[name].verdict in (FAIL, WARN)]
    lines = [f"{result.id}: {text}" for result in failed for text in result.evidence[:_TRACES_SHOWN]]
    lines += [f"{code}: {text}" for code in defect.findings for text in facts.found(code).examples[:_TRACES_SHOWN]]
    rows = [row for row in facts.defect_rows if any(_left_by(trace, row) for trace in defect.rows)]
    return lines + [f"{row.class_} of {row.entity}: {key_text(row.entity, row.key)}" for row in rows[:_TRACES_SHOWN]]


def _not_searched(defect: KnownDefect, facts: Facts) -> str:
    """What to say if no trace was found and rows of the kind that the defect leaves are not all known."""
    listed, kinds = facts.defects_listed, {(row.entity, row.class_) for row in facts.defect_rows}
    if listed is None or not any((trace.entity, name) in kinds for trace in defect.rows for name in trace.classes):
        return ""
    return f"its traces were looked for in the rows that the report lists: {listed[0]} of {listed[1]} that are defects"


def _left_by(trace: RowTrace, row: DivergenceRow) -> bool:
    return (
        row.entity == trace.entity
        and row.class_ in trace.classes
        and trace.kind in (None, row.kind)
        and trace.column in (None, row.column)
        and (trace.explanation is None or trace.explanation in row.explanation)
        and (not trace.parts or any(part in row.key.get("entity", {}) for part in trace.parts))
    )
