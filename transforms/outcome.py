"""The result of a check: violations with evidence, or why there is nothing to judge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

EVIDENCE_LIMIT = 20


@dataclass(frozen=True)
class Outcome:
    """Violations of a check: an exact total and bounded evidence. `tolerable` ones warn instead of failing.

    Evidence without a violation is information about a check that passes.

    `unknown` names the missing input, `not_applicable` the reason why there is nothing to judge; then no other field counts.
    """

    violations: int = 0
    evidence: tuple[str, ...] = ()
    tolerable: bool = False
    unknown: str | None = None
    not_applicable: str | None = None


def found(violations: Iterable[str], *, tolerable: bool = False) -> Outcome:
    """An outcome from a list of violations; none is a pass."""
    listed = tuple(violations)
    return Outcome(len(listed), listed[:EVIDENCE_LIMIT], tolerable)


def unknown(what: str) -> Outcome:
    """The check's input could have been collected and was not: no gate it can block is open."""
    return Outcome(unknown=what)


def passed(*remarks: str) -> Outcome:
    """The check passes; the remarks are shown with it and with its gates."""
    return Outcome(evidence=remarks)


def not_applicable(why: str) -> Outcome:
    """There is nothing to judge in this cluster, or Kafka itself does not check it; `why` names the reason."""
    return Outcome(not_applicable=why)


def listed_ids(ids: Iterable[int]) -> str:
    """Ids for a message, in order."""
    return ", ".join(str(number) for number in sorted(ids))
