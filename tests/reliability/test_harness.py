"""The harnesses that kill audits can tell a report that is right from one that is not, and die where they say."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from schemas.gold import CHECKS, RUNS
from tests.reliability.killing import AFTER, BEFORE, Dead, Killer, differences
from tests.reliability.pairs import pairs
from tests.reliability.schedules import OF_TWO_RUNS, false_words


def writes(killer: Killer) -> list[str]:
    """What reaches two tables, written in turn until death."""
    done: list[str] = []
    with suppress(Dead):
        for table in (CHECKS, RUNS, CHECKS, RUNS):
            killer.call("append", table, partial(done.append, table.name))
    assert killer.dead
    return done


@pytest.mark.parametrize(
    ("at", "when", "done"),
    [
        (1, BEFORE, []),
        (1, AFTER, ["checks"]),
        (3, BEFORE, ["checks", "runs"]),
        ("append gold.runs", BEFORE, ["checks"]),
        ("append gold.runs", AFTER, ["checks", "runs"]),
    ],
)
def test_it_dies_at_the_commit_and_stays_dead(at: int | str, when: str, done: list[str]) -> None:
    killer = Killer(at, when)
    assert writes(killer) == done
    assert writes(killer) == []
    with pytest.raises(Dead):
        killer.alive()


def test_a_write_inside_a_write_is_no_commit_of_its_own() -> None:
    counted = Killer()
    counted.call("append", CHECKS, lambda: counted.call("create", CHECKS, lambda: None))
    assert counted.commits == ["append gold.checks"]


def test_every_difference_is_seen_with_its_place() -> None:
    report = {"checks": [{"id": "ISR-12", "verdict": "warn"}], "history": [1], "mode": "single"}
    assert differences(report, report) == []
    other: dict[str, Any] = {"checks": [{"id": "ISR-12", "verdict": "pass"}], "history": []}
    assert differences(report, other) == [
        "/checks/ISR-12/verdict: warn != pass",
        "/history: [1] != []",
        "/mode: single != None",
    ]


def told(verdict: str, violations: int = 0, name: str = "ISR-12") -> dict[str, Any]:
    same = {"counts": {}, "migration": {}, "lag": {}, "mode": "single", "divergences": {"by_class": {}}}
    return {"checks": [{"id": name, "verdict": verdict, "violations": violations}], **same}


def test_a_false_word_is_one_that_a_fresh_warehouse_does_not_say() -> None:
    assert false_words(told("warn", 4), told("warn", 4)) == []
    assert false_words(told("pass"), told("warn", 4)) == ["ISR-12: ('pass', 0) instead of warn, 4"]
    assert false_words(told("warn", 3), told("warn", 4)) != []
    assert false_words(told("warn", 4), told("pass")) != []
    assert false_words({**told("pass"), "lag": {"records": 1}}, told("pass")) != []
    [name] = sorted(OF_TWO_RUNS)[:1]
    assert false_words(told("warn", 1, name), told("pass", 0, name)) == []


def test_all_pairs_of_stages_of_one_cluster_are_tried() -> None:
    every = pairs()
    assert sorted(every) == list(range(1, 12))
    assert len({pair for mine in every.values() for pair in mine}) == sum(map(len, every.values())) == 252
    assert all(len({pair.cluster for pair in mine}) == len(mine) for mine in every.values()), (
        "one run has each cluster once"
    )
