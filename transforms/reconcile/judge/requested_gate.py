"""A requested gate: only evidence opens it, and the checks that keep it closed are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from schemas.gates import GATES
from schemas.report import CheckResult, Gate

GO, NO_GO, UNKNOWN, NOT_APPLICABLE = "go", "no_go", "unknown", "not_applicable"
# Verdicts that --allow-unknown accepts: nothing contradicts them, but nothing proves them.
_NOT_SHOWN = (UNKNOWN, NOT_APPLICABLE)
_START, _NOT_GO = "gate ", "not GO"


def why_shut(
    name: str,
    gate: Gate | None,
    *,
    allow_unknown: bool = False,
    evidence_problem: str = "",
    checks: Sequence[CheckResult] = (),
) -> str:
    """Why the requested gate is closed, in one line; empty if it is open.

    `evidence_problem` is the fault of the run behind it: it is stale, it failed, there is none. It closes the gate
    regardless of the run's result, and nothing overrides it. `allow_unknown` opens a gate that could not be judged or
    that is of another phase; never one that is no-go, nor where one of the `checks` that can close it failed: the phase
    of a log that can't be read is a guess. `gate` is None where no run has judged it.
    """
    if evidence_problem:
        return f"gate {name} is closed: {evidence_problem}"
    verdict = UNKNOWN if gate is None else gate.verdict
    failed = [check.id for check in checks if check.verdict == "fail" and name in check.gates]
    if verdict == GO or (allow_unknown and gate is not None and verdict in _NOT_SHOWN and not failed):
        return ""
    if verdict == NOT_APPLICABLE and failed:
        return f"{_START}{name} is NOT-APPLICABLE, {_NOT_GO} ({', '.join(failed)} failed)"
    return f"{_START}{name} is {verdict.upper().replace('_', '-')}, {_NOT_GO}{_because(gate)}"


def shut_gate_in(notes: Sequence[str]) -> str:
    """The result of `why_shut` for a run's requested gate, among the notes of its report; empty if it is open."""
    return next((note for note in notes if note.startswith(_START) and f", {_NOT_GO}" in note), "")


def asked_of(
    gates: Mapping[str, Gate], asked: str | None, checks: Sequence[CheckResult], *, allow_unknown: bool = False
) -> str:
    """`why_shut` of a run's own gates: also empty if no gate was requested. Raises ValueError for an unknown gate."""
    if asked is None:
        return ""
    if asked not in GATES:
        raise ValueError(f"{asked} is not a gate")
    return why_shut(asked, gates.get(asked), allow_unknown=allow_unknown, checks=checks)


def _because(gate: Gate | None) -> str:
    if gate is None:
        return ": no run has judged it"
    said = [", ".join(gate.blocking), gate.explanation]
    reason = ": ".join(part for part in said if part)
    return f" ({reason})" if reason else ""
