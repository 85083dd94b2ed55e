"""Checks' outcomes from the facts."""

from __future__ import annotations

from collections.abc import Callable

from transforms.outcome import EVIDENCE_LIMIT, Outcome, unknown
from transforms.reconcile.judge.facts import Facts, Sample

CheckFunction = Callable[[Facts], Outcome]


def sampled(*samples: Sample, tolerable: bool = False) -> Outcome:
    """An outcome from exact totals with samples."""
    evidence = tuple(example for sample in samples for example in sample.examples)
    return Outcome(sum(sample.total for sample in samples), evidence[:EVIDENCE_LIMIT], tolerable)


def by_time(check: CheckFunction) -> CheckFunction:
    """A check whose rules need the time of the log's end: without it they find nothing, which does not pass."""
    return _knowing(check, lambda facts: facts.newest_append_time_ms is not None, "the log's newest record has no time")


def by_level(check: CheckFunction) -> CheckFunction:
    """A check whose rules need the metadata.version: without it they find nothing, which does not pass."""
    return _knowing(check, lambda facts: facts.level is not None, "no metadata.version is finalised (FEAT-07)")


def _knowing(check: CheckFunction, known: Callable[[Facts], bool], missing: str) -> CheckFunction:
    def judge(facts: Facts) -> Outcome:
        outcome = check(facts)
        passes = not outcome.violations and outcome.not_applicable is None
        return unknown(missing) if passes and not known(facts) else outcome

    return judge


def in_tables(*codes: str) -> CheckFunction:
    """A check whose violations the tables hold already, under these codes."""

    def check(facts: Facts) -> Outcome:
        return sampled(facts.found(*codes))

    return check
