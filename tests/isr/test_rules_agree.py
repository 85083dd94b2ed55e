"""The rules a run asks of all partitions at once are those that `tests.isr.plain` states of one partition."""

from __future__ import annotations

import random
from collections import defaultdict
from typing import Any

import pytest

from schemas.entities.partitions import PARTITIONS
from tests.isr import plain as checks
from transforms.frames import columns_of, frame
from transforms.isr.partition import PartitionState, state_of
from transforms.isr.validate import Registration
from transforms.isr.violations import Present
from transforms.outcome import Outcome
from transforms.reconcile.judge.kraft_queries import Health, kraft_rules, zookeeper_rules
from transforms.reconcile.judge.rules import broken

BROKERS = {0: Registration(1), 1: Registration(2), 2: Registration(3, fenced=True), 3: Registration(4, False, True)}
AT_WORK = (0, 1)
Row = dict[str, Any]


def some_partitions(count: int = 300) -> list[Row]:
    """Partitions of every kind, sound and broken, the same in every run."""
    chosen = random.Random(13)  # noqa: S311
    rows = []
    for number in range(count):
        replicas = chosen.sample(range(5), chosen.randint(1, 3))
        isr = chosen.sample(range(6), chosen.randint(0, 3)) + ([0, 0] if chosen.random() < 0.05 else [])
        empty = chosen.random() < 0.5
        rows.append(
            {
                "source": "kraft",
                "topic": f"t{number}",
                "partition": 0,
                "replicas": replicas,
                "adding_replicas": [],
                "removing_replicas": [],
                "isr": isr,
                "leader": chosen.choice([-1, -1, *replicas, *isr]),
                "leader_epoch": 1,
                "partition_epoch": 1,
                "leader_recovery_state": 0,
                "eligible_leader_replicas": [] if empty else [chosen.randint(0, 4)],
                "last_known_elr": [] if empty else [chosen.randint(0, 4)],
            }
        )
    return rows


@pytest.fixture(scope="module")
def by_columns() -> dict[str, set[str]]:
    health = Health(brokers=list(AT_WORK), zookeeper=True, present=Present(1, at_work=AT_WORK))
    rows = frame(some_partitions(), columns_of(PARTITIONS.row_columns))
    found: dict[str, set[str]] = defaultdict(set)
    for rules in (kraft_rules(health), zookeeper_rules(health)):
        for code, text in broken(rows, rules).iter_rows():
            found[code].add(text.partition(":")[0])
    return found


def told(outcome: Outcome, states: dict[str, PartitionState], judge: object) -> set[str]:
    """Partitions that a rule names; each is judged alone, because evidence is bounded."""
    assert outcome.violations
    return {name for name, state in states.items() if judge({name: state}).violations}  # type: ignore[operator]


@pytest.mark.parametrize(
    ("code", "judge"),
    [
        ("ISR-01", checks.isr_of_replicas),
        ("ISR-02", checks.leader_in_isr),
        ("ISR-03", checks.leader_of_replicas),
        ("ISR-04", lambda states: checks.isr_running(states, BROKERS)),
        ("ISR-05", lambda states: checks.isr_alive(states, AT_WORK)),
        ("ISR-16", lambda states: checks.offline(states, AT_WORK)),
    ],
)
def test_one_rule_in_two_forms(by_columns: dict[str, set[str]], code: str, judge: object) -> None:
    states = {f"{row['topic']}/0": state for row in some_partitions() if (state := state_of(row)) is not None}
    assert by_columns[code] == told(judge(states), states, judge)  # type: ignore[operator]
