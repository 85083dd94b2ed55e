"""Kafka 3.4: its log records no state but at each start of a load, and `/migration` keeps the load's offset (S§4.3, S§4.4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.classes import CLASSES
from schemas.report import CheckResult, Divergences
from tests.reconcile.test_checks import NOW, OFFSET, aborted_loads, broker, counts, dual_write, waiting
from transforms.kraft.replay.transactions import read_transactions
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.defects import exposure
from transforms.reconcile.judge.facts import Facts, LevelChange, Sample, StateChange, phase_of, state_in_3_4
from transforms.reconcile.judge.gates import judge_gates, run_checks

BOTH = frozenset({ZOOKEEPER, KRAFT})
LEVEL_3_4 = 8
LOAD_BEGUN = 1
NOTHING: dict[str, int | None] = {ZOOKEEPER: 0, KRAFT: 0}
# /controller of this quorum's own leader.
CLAIMED = {
    name: (dual_write().zookeeper or {})[name]
    for name in ("controller_id", "controller_kraft_epoch", "controller_persistent")
}
EARLY_BROKERS = [
    broker(node, features=[{"name": "metadata.version", "min_level": LEVEL_3_4, "max_level": LEVEL_3_4}])
    for node in (0, 1, 2)
]


def early(facts: Facts, *begun: int) -> Facts:
    """A cluster as 3.4 would leave it; `begun` are the offsets at which loads began."""
    return replace(
        facts,
        kafka_version="3.4.1",
        features={"metadata.version": LEVEL_3_4},
        controllers=[],
        brokers_in_kraft=EARLY_BROKERS,
        brokers_in_zookeeper=[{"broker_id": node} for node in (0, 1, 2)],
        counts=counts(running=3) | dict.fromkeys(("controllers", "scram_credentials", "delegation_tokens"), NOTHING),
        transactions=read_transactions([]),
        states=[StateChange(offset, LOAD_BEGUN, NOW) for offset in begun],
        levels=[LevelChange(2, LEVEL_3_4)],
        lag=None,
    )


def check(facts: Facts, check_id: str) -> CheckResult:
    return next(result for result in run_checks(facts) if result.id == check_id)


@pytest.mark.parametrize(
    ("recorded", "znode", "state", "phase"),
    [
        ("NONE", {}, "NONE", Phase.ZOOKEEPER),
        ("NONE", {"migration_present": True, "kraft_metadata_offset": -1}, "PRE_MIGRATION", Phase.WAITING),
        ("PRE_MIGRATION", {"migration_present": True, "kraft_metadata_offset": -1}, "PRE_MIGRATION", Phase.WAITING),
        ("PRE_MIGRATION", {"migration_present": True, "kraft_metadata_offset": 90}, "MIGRATION", Phase.DUAL_WRITE),
        ("NONE", {"migration_present": True, "kraft_metadata_offset": 90}, "MIGRATION", Phase.DUAL_WRITE),
    ],
    ids=["nothing-yet", "waiting", "loading", "loaded", "loaded-and-the-log-starts-at-a-checkpoint"],
)
def test_the_phase_comes_from_migrations_offset(recorded: str, znode: dict[str, Any], state: str, phase: Phase) -> None:
    znode = {"controller_persistent": True, **znode}
    assert state_in_3_4(recorded, znode) == state
    assert phase_of(BOTH, state, znode, True) is phase


def test_a_cluster_that_waits_for_its_brokers_can_start() -> None:
    facts = early(waiting())
    assert check(facts, "START-09").verdict == "not_applicable"
    assert judge_gates(run_checks(facts), facts)["start"].verdict == "go"


def test_a_load_that_runs_for_the_first_time_is_no_second_one() -> None:
    facts = early(waiting(), 40)
    assert check(facts, "DUR-08").verdict == "pass"
    assert not summary.notes(facts)


def test_a_load_that_never_completes_is_told_plainly() -> None:
    begun = range(40, 40 + 137 * 60, 60)
    again = Sample(8, ("orders: made 137 times with the same id (offset 8201)",))
    facts = replace(early(waiting(), *begun), findings={"DUR-08": again})
    found = check(facts, "DUR-08")
    assert (found.verdict, found.violations) == ("fail", 136 + 8)
    story = "the load started 137 times, last at offset 8200, and /migration records none as finished"
    assert found.evidence[0].startswith(story)
    assert found.evidence[0].endswith("the load repeats and never completes")
    assert found.evidence[1] == again.examples[0]
    assert any(note.startswith(story) for note in summary.notes(facts))
    gates = judge_gates(run_checks(facts), facts)
    assert "DUR-08" in gates["start"].blocking
    assert summary.verdict(Divergences(), run_checks(facts), gates, facts.phase) == summary.ERRORS
    traces = {defect.jira for defect in exposure(facts) if defect.evidence}
    assert traces == {"KAFKA-14840", "KAFKA-17457"}, "a second load, and one that was no transaction"


def test_the_history_of_a_repeated_load_stays_short() -> None:
    facts = early(waiting(), *range(40, 40 + 1000))
    assert summary.migration(facts).history == [
        {"offset": 40, "state": "PRE_MIGRATION", "append_time": NOW, "times": 1000, "last_offset": 1039}
    ]


def test_a_failover_loads_again_and_says_which_load_counts() -> None:
    """A controller that was a follower loads everything again when it is elected (S§12.1)."""
    facts = early(dual_write(), 40, OFFSET - 50)
    assert f"started 2 times, last at offset {OFFSET - 50}, and finished at offset {OFFSET}" in str(
        check(facts, "DUR-08").evidence
    )
    unfinished = early(dual_write(), 40, OFFSET + 50)
    assert "/migration records an earlier one as finished" in check(unfinished, "DUR-08").evidence[0]


def test_nothing_is_said_of_a_lag_that_nobody_can_read() -> None:
    facts = early(dual_write(), 40)
    lag = summary.lag(facts)
    assert (lag.records, lag.seconds, lag.alive) == (None, None, None)
    assert "3.4" in lag.explanation
    for check_id in ("DUR-04", "FIN-04"):
        assert check(facts, check_id).verdict == "unknown"
        assert "3.4" in check(facts, check_id).evidence[0]
    assert check(facts, "DUR-03").verdict == check(facts, "DUR-07").verdict == "not_applicable"


def test_neither_a_false_alarm_nor_all_is_well() -> None:
    facts = early(dual_write(), 40)
    results = run_checks(facts)
    assert [r.id for r in results if r.verdict == "fail" and "dual_write" in r.gates] == []
    gates = judge_gates(results, facts)
    assert gates["dual_write"].verdict == gates["rollback"].verdict == "unknown"
    assert any("does not mirror ACLs" in note for note in summary.notes(facts))


def test_a_lost_row_fails_the_last_chance_even_without_a_lag() -> None:
    facts = replace(early(dual_write(), 40), divergences={"lost_write": Sample(1, ("a row",))})
    assert check(facts, "FIN-04").verdict == "fail"


@pytest.mark.parametrize(
    ("version", "unmigrated", "mangles", "mirrors_all"),
    [
        ("3.4.1", {"acls", "scram_credentials", "client_quotas", "delegation_tokens"}, True, False),
        ("3.5.2", {"delegation_tokens"}, True, True),
        ("3.6.1", set(), True, True),
        ("3.6.2", set(), False, True),
        ("3.7.0", set(), True, True),
        ("3.7.2", set(), False, True),
        ("3.8.1", set(), False, True),
        ("3.9.1", set(), False, True),
        ("3.7", set(), True, True),
        (None, set(), True, True),
    ],
)
def test_what_a_release_does_not_do(
    version: str | None, unmigrated: set[str], mangles: bool, mirrors_all: bool
) -> None:
    found = limits(version)
    assert set(found.unmigrated) == unmigrated
    assert (found.mangles_names, found.mirrors_all, found.offset_moves) == (mangles, mirrors_all, mirrors_all)


def test_a_load_that_was_aborted_twice_does_not_end() -> None:
    """A load that fails ends its controller's process (`QuorumController.abortMigration`), and the next one tries again."""
    once, twice = (replace(waiting(), transactions=aborted_loads(times)) for times in (1, 2))
    assert (check(once, "START-22").verdict, check(twice, "START-22").verdict) == ("warn", "fail")
    assert check(once, "START-22").evidence[0].startswith("the load that began at offset 30 was aborted")
    assert judge_gates(run_checks(twice), twice)["start"].verdict == "no_go"
    # All controllers were killed (seen in 3.5.1): the log has 7 of 400 topics, or none yet, and nobody leads ZooKeeper's brokers.
    claimed = replace(waiting(), zookeeper=(waiting().zookeeper or {}) | CLAIMED)
    for facts in (claimed, replace(claimed, features={"metadata.version": 9})):
        said = check(facts, "START-22")
        assert (said.verdict, check(facts, "START-08").verdict) == ("unknown", "pass")
        assert said.evidence[0].startswith(
            f"KRaft controller {CLAIMED['controller_id']} has claimed ZooKeeper, and no load has ended: one runs, or"
        )
    assert judge_gates(run_checks(claimed), claimed)["start"].verdict == "unknown"
    loaded = replace(dual_write(), transactions=aborted_loads(2))
    assert check(loaded, "START-22").verdict == "not_applicable", "a later load ended"


def test_a_new_leader_of_3_4_that_waits_for_a_broker_is_told_so() -> None:
    """Seen in 3.4.1: broker 1 was down at a failover, and the new leader did not claim ZooKeeper until it was back."""
    now = early(dual_write(), 40)
    old = {**(now.zookeeper or {}), "controller_kraft_epoch": 0}
    down = replace(now, zookeeper=old, brokers_in_kraft=[EARLY_BROKERS[0], broker(1, fenced=True), EARLY_BROKERS[2]])
    waited = (
        "broker 1 holds replicas and is fenced: a new leader of Kafka 3.4 waits for it before it claims /controller"
    )
    assert check(down, "DUR-02").evidence[-1] == waited
    assert waited not in check(replace(down, kafka_version="3.5.2"), "DUR-02").evidence
    assert check(replace(down, zookeeper=now.zookeeper), "DUR-02").verdict == "pass"


def test_the_remedy_of_a_lost_write_does_not_ask_3_4_for_a_full_sync() -> None:
    assert "Kafka 3.4 has no full sync: upgrade the controllers first" in CLASSES["lost_write"].remedy
