"""Checks and gates: run the catalogue over the facts, and decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from schemas.checks import CHECKS, KRAFT, ZOOKEEPER, Check, Phase
from schemas.checks.check import IN_KRAFT
from schemas.gates import GATES
from schemas.report import CheckResult, Gate
from transforms.outcome import Outcome
from transforms.reconcile.judge.absent import NotingFacts, absent
from transforms.reconcile.judge.checks import FUNCTIONS
from transforms.reconcile.judge.checks.finish import unreadable_copies
from transforms.reconcile.judge.checks.operation import unproved_changes, unsettled
from transforms.reconcile.judge.facts import Facts

PASS, WARN, FAIL, UNKNOWN, NOT_APPLICABLE = "pass", "warn", "fail", "unknown", "not_applicable"
_OPTIONAL = frozenset(check.id for check in CHECKS if check.optional)
# Optional checks that must be judged if their input was given but cannot be read, or shows changes that nothing proves or no leader.
_GIVEN: dict[str, Callable[[Facts], object]] = {
    "UPG-05": lambda facts: unreadable_copies(facts) or unproved_changes(facts) or unsettled(facts)
}
# The check that names absent facts.
_COMPLETENESS = "CAP-10"
_SIDES = {ZOOKEEPER: "ZooKeeper's tree", KRAFT: "the controllers' metadata log"}
# Its remark about a proved tree does not limit a gate.
_PROOF = "CAP-20"
_GATE_PHASES: dict[str, frozenset[Phase]] = {
    "start": frozenset({Phase.ZOOKEEPER, Phase.WAITING}),
    "dual_write": frozenset({Phase.DUAL_WRITE}),
    "finalize": frozenset({Phase.DUAL_WRITE}),
    "rollback": frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
    "upgrade": IN_KRAFT,
}


def run_checks(facts: Facts) -> list[CheckResult]:
    """Verdicts of the whole catalogue, in its order.

    A check that finds nothing where rows it looked at were not gathered is unknown: it did not pass, it could not look.
    """
    missing = absent(facts)
    return [_result(check, facts, missing) for check in CHECKS]


def _result(check: Check, facts: Facts, absent_facts: Mapping[str, str]) -> CheckResult:
    verdict, violations, evidence = _verdict(check, facts, absent_facts)
    return CheckResult(
        id=check.id,
        verdict=verdict,
        violations=violations,
        evidence=evidence,
        gates=list(check.gates),
        severity=check.severity,
        title=check.title,
        remedy=check.remedy,
        reference=check.reference,
    )


def _verdict(check: Check, facts: Facts, absent_facts: Mapping[str, str]) -> tuple[str, int, list[str]]:
    if facts.phase not in check.phases:
        return NOT_APPLICABLE, 0, []
    missing = sorted(check.needs - facts.collected)
    if missing == [ZOOKEEPER] and facts.phase is Phase.KRAFT:
        return NOT_APPLICABLE, 0, ["the cluster has no ZooKeeper"]
    if missing:
        return UNKNOWN, 0, [f"{' and '.join(_SIDES[side] for side in missing)} was not given"]
    noting = NotingFacts.of(facts)
    verdict, violations, evidence = _of_outcome(check, FUNCTIONS[check.id](noting))
    unseen = [why for name, why in absent_facts.items() if name in noting.read]
    if unseen and check.id != _COMPLETENESS and verdict in (PASS, WARN, NOT_APPLICABLE):
        return UNKNOWN, 0, [*unseen, *evidence]
    return verdict, violations, evidence


def _of_outcome(check: Check, outcome: Outcome) -> tuple[str, int, list[str]]:
    if outcome.not_applicable is not None:
        return NOT_APPLICABLE, 0, [outcome.not_applicable]
    if outcome.unknown is not None:
        return UNKNOWN, 0, [outcome.unknown]
    if outcome.violations == 0:
        return PASS, 0, list(outcome.evidence)
    tolerable = outcome.tolerable or check.severity == "warning"
    return (WARN if tolerable else FAIL), outcome.violations, list(outcome.evidence)


def judge_gates(results: Sequence[CheckResult], facts: Facts) -> dict[str, Gate]:
    """Each gate: no_go when a check that can block it fails, unknown when one could not be judged, else go.

    An optional check that could not be judged leaves the gate open; the gate's explanation names it. That applies to missing
    input: input that was given but cannot be read, or whose newest changes are not proved committed, is an open question.
    """
    return {gate: _gate(gate, results, facts) for gate in GATES}


def _gate(gate: str, results: Sequence[CheckResult], facts: Facts) -> Gate:
    if facts.phase not in _GATE_PHASES[gate]:
        return Gate(NOT_APPLICABLE, [], _not_applicable(gate, facts.phase))
    mine = [result for result in results if gate in result.gates and result.verdict != NOT_APPLICABLE]
    failed = [result.id for result in mine if result.verdict == FAIL]
    if failed:
        return Gate("no_go", failed, _refusal(gate, mine))
    unjudged = [result.id for result in mine if result.verdict == UNKNOWN]
    open_questions = [check_id for check_id in unjudged if not _may_stay_open(check_id, facts)]
    if open_questions:
        return Gate("unknown", open_questions, "too little was collected to decide")
    passed = [result for result in mine if result.verdict == PASS and result.id != _PROOF]
    remarks = [remark for result in passed for remark in result.evidence]
    if unjudged:
        remarks.append(f"not judged: {', '.join(unjudged)} (each entry says what to provide)")
    return Gate("go", [], "; ".join(remarks))


def _may_stay_open(check_id: str, facts: Facts) -> bool:
    unreadable = _GIVEN.get(check_id)
    return check_id in _OPTIONAL and not (unreadable and unreadable(facts))


def _refusal(gate: str, mine: Sequence[CheckResult]) -> str:
    """Why an upgrade is refused, in the words of the checks: Kafka's own where Kafka would refuse it."""
    if gate != "upgrade":
        return ""
    return "; ".join(result.evidence[0] for result in mine if result.verdict == FAIL and result.evidence)


def _not_applicable(gate: str, phase: Phase) -> str:
    if gate == "upgrade":
        return "upgrade: applies only to clusters in KRaft mode"
    where = {
        Phase.ZOOKEEPER: "the migration has not begun",
        Phase.WAITING: "the metadata is not loaded yet",
        Phase.DUAL_WRITE: "the migration has started",
        Phase.FINALIZED: "the migration is finalised",
        Phase.ROLLED_BACK: "the cluster was rolled back to ZooKeeper",
        Phase.KRAFT: "this cluster does not migrate",
    }
    return f"{gate.replace('_', ' ')}: {where[phase]}"


# Gates whose checks are about the present, not about a future step: their failures are errors of the run.
_PRESENT = {"dual_write"}


def is_error(result: CheckResult, requested_gate: str | None) -> bool:
    """A failed check is an error when it is about the present, always critical, or blocks the requested gate."""
    if result.verdict != FAIL:
        return False
    return (
        bool(_PRESENT & set(result.gates))
        or result.severity == "critical"
        or result.id.startswith("CAP-")
        or requested_gate in result.gates
    )
