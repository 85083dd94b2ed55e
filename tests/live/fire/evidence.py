"""Mutants of the prediction: each lacks one rule of S§8.2 or S§3.3, and a session has to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from unittest.mock import patch

from tests.live.fire.session import Asked
from transforms.isr import builder, validate
from transforms.isr.validate import AlterPartitionAnswer, AlterPartitionRequest, Controller, Error

Predictor = Callable[[AlterPartitionRequest, Controller], AlterPartitionAnswer]
# Rules that stand apart from the list of those on one partition: without them the request is taken.
_APART = (0, 1, 2, 13)
RULES = tuple(range(14))


@contextmanager
def without(rule: int) -> Iterator[Predictor]:
    """The project's prediction without one rule."""
    if rule in _APART:
        yield lambda request, controller: _taken(validate.validate(request, controller), rule)
        return
    rules = validate._kraft_rules

    def fewer(release: tuple[int, int]) -> list[object]:
        return [each for each in rules(release) if each[0] != rule]

    with patch.object(validate, "_kraft_rules", fewer):
        yield validate.validate


def _taken(answer: AlterPartitionAnswer, rule: int) -> AlterPartitionAnswer:
    return replace(answer, error=Error.NONE, rule=None) if answer.rule == rule else answer


@contextmanager
def _completion_of(release: tuple[int, int]) -> Iterator[Predictor]:
    """Reassignments complete by another release's rule."""
    completes = builder.completes
    with patch.object(builder, "completes", lambda proposal, _: completes(proposal, release)):
        yield validate.validate


@contextmanager
def _without_elr() -> Iterator[Predictor]:
    yield lambda request, controller: validate.validate(request, replace(controller, elr=False))


def other_completion(release: tuple[int, int]) -> tuple[int, int]:
    """A release whose reassignments complete otherwise."""
    return (4, 3) if (3, 8) <= release < (4, 3) else (3, 9)


def seen(asked: Sequence[Asked], predictor: Predictor) -> int | None:
    """The place of the first answer that a predictor gets wrong; None when it gets all right."""
    for place, each in enumerate(asked):
        answer = predictor(each.question.request, each.question.controller)
        if answer.code != each.error or _other_state(answer, each):
            return place
    return None


def _other_state(answer: AlterPartitionAnswer, each: Asked) -> bool:
    real = each.question.answer
    return not answer.code and (answer.result, answer.writes) != (real.result, real.writes)


def mutants(release: tuple[int, int], elr: bool) -> dict[str, Callable[[], AbstractContextManager[Predictor]]]:
    """Every mutant that a release can tell from the truth, by name; each makes a context of a predictor."""
    found: dict[str, Callable[[], AbstractContextManager[Predictor]]] = {
        f"rule {rule}": partial(without, rule) for rule in RULES
    }
    found["completion of another release"] = partial(_completion_of, other_completion(release))
    if elr:
        found["no eligible leader replicas"] = _without_elr
    return found
