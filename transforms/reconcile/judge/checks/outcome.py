"""Checks' outcomes from the facts."""

from __future__ import annotations

from collections.abc import Callable

from transforms.outcome import EVIDENCE_LIMIT, Outcome
from transforms.reconcile.judge.facts import Facts, Sample

CheckFunction = Callable[[Facts], Outcome]


def sampled(*samples: Sample, tolerable: bool = False) -> Outcome:
    """An outcome from exact totals with samples."""
    evidence = tuple(example for sample in samples for example in sample.examples)
    return Outcome(sum(sample.total for sample in samples), evidence[:EVIDENCE_LIMIT], tolerable)


def in_tables(*codes: str, tolerable: bool = False) -> CheckFunction:
    """A check whose violations the tables hold already, under these codes."""

    def check(facts: Facts) -> Outcome:
        return sampled(facts.found(*codes), tolerable=tolerable)

    return check
