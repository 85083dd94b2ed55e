"""Gates that must not open by mistake and must not stay shut without reason, one truth a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.report import CheckResult, Divergences
from tests.reconcile.test_checks import (
    EPOCH,
    NOW,
    OFFSET,
    ONE,
    broker,
    copy,
    dual_write,
    finalized,
    in_kraft_mode,
    rolled_back,
    tables,
    waiting,
    zookeeper,
    zookeeper_alone,
)
from transforms.kraft.quorum import Checkpoint, CommittedEnd, committed_end, plan_read
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.checks.start import emptied
from transforms.reconcile.judge.facts import Facts, LagMeasure, LeaderEpoch, ReplicaUse, Sample, phase_of
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.liveness import LivenessState, liveness
from transforms.reconcile.judge.presence import broker_ledger
from transforms.reconcile.judge.skew import ClockSkew, clock_skew

SECOND = 1000
HOUR = 3600 * SECOND


def check(facts: Facts, check_id: str) -> CheckResult:
    return next(result for result in run_checks(facts) if result.id == check_id)


def gate(facts: Facts, name: str) -> str:
    return judge_gates(run_checks(facts), facts)[name].verdict


def verdict(facts: Facts) -> str:
    checks = run_checks(facts)
    rows = {name: sample.total for name, sample in (facts.divergences or {}).items()}
    return summary.verdict(Divergences(by_class=rows), checks, judge_gates(checks, facts), facts.phase)


# --- nobody there


def test_the_start_is_open_when_everybody_is_there() -> None:
    assert gate(waiting(), "start") == "go"


def test_no_start_while_no_broker_runs() -> None:
    down = replace(waiting(), brokers_in_zookeeper=[], counts=waiting().counts | {"brokers": {ZOOKEEPER: 0, KRAFT: 3}})
    assert check(down, "START-01").evidence == ["/brokers/ids is empty: no broker is running"]
    assert check(down, "START-02").violations == 3
    assert gate(down, "start") == "no_go"


def test_no_start_without_a_broker_that_registered_and_went() -> None:
    """Kafka as released would start; KIP-866 waits for every broker that assignments name (Broker Presence)."""
    facts = replace(
        waiting(),
        brokers_in_zookeeper=[{"broker_id": 0}, {"broker_id": 1}],
        brokers_in_kraft=[broker(0), broker(1), broker(2, fenced=True)],
        counts=waiting().counts | {"brokers": {ZOOKEEPER: 2, KRAFT: 3}},
    )
    assert check(facts, "START-02").evidence == [
        "broker 2 holds 10 replicas but is not running: it is not in /brokers/ids. It is registered, so released Kafka "
        "does not wait for it"
    ]
    assert gate(facts, "start") == "no_go"
    assert {entry.broker_id: entry.blocks for entry in broker_ledger(facts)} == {0: [], 1: [], 2: ["start"]}


def test_kafka_3_4_waits_for_a_broker_that_registered_and_went() -> None:
    """Seen in 3.4.1: "Still waiting for ZK brokers [1]" of one that was registered, and fenced (`ClusterImage.zkBrokers`)."""
    facts = replace(
        waiting(),
        kafka_version="3.4.1",
        brokers_in_zookeeper=[{"broker_id": 0}, {"broker_id": 1}],
        brokers_in_kraft=[broker(0), broker(1), broker(2, fenced=True)],
    )
    assert check(facts, "START-02").evidence[0].endswith("Kafka 3.4 waits for it although it is registered")


def test_without_any_record_that_is_proved_committed_no_broker_is_called_unregistered() -> None:
    """Seen in 3.8.1: of three controllers a load had ended two, and the third was a candidate again and again."""
    unproved = CommittedEnd(0, "log_start", "a log that starts at 0 is committed up to there")
    facts = replace(waiting(), brokers_in_kraft=[], committed=unproved)
    for check_id in ("START-01", "START-02"):
        found = check(facts, check_id)
        assert found.verdict == "unknown"
        assert found.evidence == [
            "no record of the controllers' log is proved committed: copy the logs of all controllers, stopped cleanly"
        ]
    assert gate(facts, "start") != "go"
    nobody = replace(facts, brokers_in_zookeeper=[])
    assert check(nobody, "START-01").verdict == "fail"


def test_a_fenced_broker_that_is_there_is_on_its_way() -> None:
    facts = replace(waiting(), brokers_in_kraft=[broker(0, fenced=True), broker(1), broker(2)])
    assert gate(facts, "start") == "go"


def test_a_broker_that_only_configurations_name_is_a_warning() -> None:
    facts = replace(waiting(), brokers_with_config=frozenset({0, 7}))
    result = check(facts, "START-02")
    assert (result.verdict, result.violations) == ("warn", 1)
    assert result.evidence[0].startswith("broker 7 has configurations")
    assert gate(facts, "start") == "go"


def test_a_full_tree_without_a_running_broker_is_no_kraft_cluster() -> None:
    both = frozenset({ZOOKEEPER, KRAFT})
    assert phase_of(both, "NONE", {}, has_zookeeper_brokers=False, zookeeper_alone_has_topics=True) is Phase.ZOOKEEPER
    assert phase_of(both, "NONE", {}, has_zookeeper_brokers=False, zookeeper_alone_has_topics=False) is Phase.KRAFT


# --- what the start would trip over


@pytest.mark.parametrize("facts", [waiting(), zookeeper_alone()], ids=["waiting", "zookeeper-alone"])
def test_a_migration_znode_that_can_not_be_read_stops_the_start(facts: Facts) -> None:
    unreadable = replace(
        facts, zookeeper={**(facts.zookeeper or {}), "migration_present": True, "kraft_metadata_offset": None}
    )
    assert (check(facts, "START-07").verdict, check(unreadable, "START-07").verdict) == ("pass", "fail")
    assert gate(unreadable, "start") == "no_go"


def test_a_leftover_is_found_before_the_controllers_exist() -> None:
    leftover = {**(zookeeper_alone().zookeeper or {}), "migration_present": True, "kraft_metadata_offset": 326}
    facts = replace(zookeeper_alone(), zookeeper=leftover)
    assert check(facts, "START-07").verdict == "fail"
    # With a KRaft controller's claim the tree may be of a migration that runs: its log decides.
    running = replace(facts, zookeeper={**leftover, "controller_persistent": True})
    assert check(running, "START-07").verdict == "unknown"


def test_a_cluster_before_its_controllers_is_not_judged_by_what_only_they_have() -> None:
    assert gate(zookeeper_alone(), "start") == "unknown"
    assert {check(zookeeper_alone(), check_id).verdict for check_id in ("START-01", "START-02")} == {"unknown"}
    down = replace(zookeeper_alone(), replicas=[ReplicaUse(9, 4, ("orders/0",))])
    assert check(down, "START-02").verdict == "fail"


@pytest.mark.parametrize(
    "code",
    [
        "TOPIC-DATA",
        "PARTITION-KEY",
        "RECOVERY-STATE",
        "TOKEN-DATA",
        "PRODUCER-BLOCK",
        "ACL-DATA",
        "BROKER-DATA",
        "FEATURE-DATA",
        "START-13",
        "START-14",
        "QUOTA-KEY",
        "QUOTA-VALUE",
    ],
)
def test_a_znode_that_stops_the_load_or_is_left_out_closes_the_start(code: str) -> None:
    facts = tables(waiting(), code).fails
    assert gate(facts, "start") == "no_go"
    assert check(facts, "CAP-09").verdict == "pass", "told once"
    assert check(tables(dual_write(), code).fails, "CAP-09").verdict == "warn"


def test_brokers_that_would_not_start_in_zookeeper_mode_again_close_the_way_back() -> None:
    assert (check(dual_write(), "FEAT-11").verdict, gate(dual_write(), "rollback")) == ("pass", "go")
    for facts in (tables(dual_write(), "FEATURE-DATA").fails, replace(dual_write(), zookeeper_features={"x": 1})):
        assert check(facts, "FEAT-11").verdict == "fail"
        assert (gate(facts, "rollback"), gate(facts, "dual_write"), gate(facts, "finalize")) == (
            "no_go",
            gate(dual_write(), "dual_write"),
            gate(dual_write(), "finalize"),
        )
    assert check(replace(waiting(), zookeeper_features={"x": 1}), "FEAT-11").verdict == "fail"
    every_one_in_kraft = replace(in_kraft_mode(), zookeeper_features={"x": 1})
    assert check(every_one_in_kraft, "FEAT-11").evidence == [
        f"broker {node} does not support x, which is at 1" for node in (0, 1, 2)
    ]
    assert check(replace(dual_write(), zookeeper_features=None), "FEAT-11").verdict == "unknown"
    finalized = replace(dual_write(), phase=Phase.FINALIZED, findings={"FEATURE-DATA": Sample(1, ("/feature",))})
    assert check(finalized, "FEAT-11").verdict == "not_applicable"


def test_an_emptied_zookeeper_is_told() -> None:
    nothing: dict[str, int | None] = {ZOOKEEPER: 0, KRAFT: 0}
    leftover = zookeeper(kraft_metadata_offset=384)
    facts = replace(waiting(), zookeeper=leftover, counts=waiting().counts | {"topics": nothing})
    assert emptied(facts)
    assert "has emptied ZooKeeper" in check(facts, "START-07").evidence[1]
    assert not emptied(replace(facts, counts=waiting().counts))
    assert not emptied(replace(facts, zookeeper=waiting().zookeeper))


# --- a log that starts at a snapshot


def after_a_snapshot(**values: Any) -> Facts:
    """Dual write whose log begins at a checkpoint, after the only election."""
    checkpoint = (Checkpoint("00000000000000000350-0000000001.checkpoint", 350, EPOCH, True),)
    copies = [
        copy(node, log_start=350, epoch_starts=((EPOCH, 350),), checkpoints=checkpoint, **values)
        for node in (3000, 3001, 3002)
    ]
    plan = plan_read(copies)
    return replace(
        dual_write(), copies=copies, plan=plan, committed=committed_end(copies, plan, OFFSET, EPOCH), epochs=()
    )


def test_the_leader_is_known_without_a_leader_change() -> None:
    facts = after_a_snapshot()
    assert {check(facts, check_id).verdict for check_id in ("DUR-02", "DUR-03")} == {"pass"}
    assert gate(facts, "dual_write") == gate(facts, "rollback") == "go"
    assert "taken from quorum-state" in summary.migration(facts).explanation
    finishing = replace(in_kraft_mode(), copies=facts.copies, plan=facts.plan, epochs=())
    assert gate(finishing, "finalize") == "go"


@pytest.mark.parametrize("writes", [True, False], ids=["it wrote /migration", "it wrote nothing"])
def test_a_leader_that_was_stopped_before_its_first_record_may_hold_the_claim(writes: bool) -> None:
    """Seen in 3.7.2: all controllers were stopped together; the last one that was elected had claimed ZooKeeper already."""
    claimed = {"controller_id": 3001, "controller_kraft_epoch": EPOCH + 1}
    wrote = {"kraft_controller_id": 3001, "kraft_controller_epoch": EPOCH + 1} if writes else {}
    facts = replace(dual_write(), zookeeper=zookeeper(**claimed, **wrote))
    assert check(facts, "DUR-02").verdict == "fail", "nobody elected it"
    elected = replace(facts, copies=[copy(node, leader_id=3001, leader_epoch=EPOCH + 1) for node in (3000, 3001, 3002)])
    assert {check(elected, check_id).verdict for check_id in ("DUR-02", "DUR-03")} == {"pass"}
    other = replace(elected, copies=[copy(3000, leader_id=3002, leader_epoch=EPOCH + 1)])
    assert check(other, "DUR-02").verdict == "fail"


def test_without_quorum_state_the_claim_names_the_leader() -> None:
    facts = after_a_snapshot(leader_id=None, leader_epoch=None)
    assert facts.leader is not None
    assert (facts.leader.leader_id, facts.leader.epoch) == (3000, EPOCH)
    assert gate(facts, "dual_write") == "go"


def test_a_claim_of_an_older_epoch_than_the_newest_batches_is_no_claim() -> None:
    checkpoint = (Checkpoint("x", 350, EPOCH, True),)
    starts = ((EPOCH, 350), (EPOCH + 1, 380))
    copies = [copy(3000, log_start=350, last_epoch=EPOCH + 1, epoch_starts=starts, checkpoints=checkpoint)]
    facts = replace(after_a_snapshot(), copies=copies, plan=plan_read(copies))
    assert check(facts, "DUR-02").verdict == check(facts, "DUR-03").verdict == "fail"
    assert gate(facts, "dual_write") == "no_go"


def test_an_old_leader_change_does_not_speak_for_newer_batches() -> None:
    starts = ((EPOCH, 0), (EPOCH + 1, 380))
    copies = [copy(node, last_epoch=EPOCH + 1, epoch_starts=starts) for node in (3000, 3001, 3002)]
    facts = replace(dual_write(), copies=copies, plan=plan_read(copies))
    assert facts.leader is not None
    assert facts.leader.epoch == EPOCH + 1
    assert check(facts, "DUR-02").verdict == "fail"


def test_voters_that_nobody_names_are_not_all_of_them() -> None:
    facts = replace(in_kraft_mode(), copies=[copy(3000, voters=())], plan=plan_read([copy(3000, voters=())]), epochs=())
    assert check(facts, "FIN-06").verdict == "unknown"
    starting = replace(waiting(), copies=facts.copies, plan=facts.plan, epochs=())
    assert check(starting, "START-05").verdict == "unknown"


def test_copies_without_meta_properties_are_judged() -> None:
    """What they miss is their cluster's id and their own: a log that holds what /migration names is of this cluster."""
    nameless = [replace(copy(node), controller_id=None, cluster_id=None) for node in (3000, 3001, 3002)]
    facts = replace(dual_write(), copies=nameless, plan=plan_read(nameless))
    assert check(facts, "CAP-01").verdict == "pass"
    assert check(facts, "START-11").verdict == "not_applicable"
    starting = replace(waiting(), copies=nameless, plan=facts.plan)
    assert check(starting, "CAP-01").verdict == "unknown"
    assert gate(starting, "start") == "unknown"


# --- live, behind, stopped


def lagging(seconds: float, silence: float, **values: Any) -> Facts:
    return replace(dual_write(), lag=LagMeasure(11, seconds, silence, 8), divergences={"lag": ONE}, **values)


def test_a_busy_healthy_cluster_can_be_rolled_back() -> None:
    facts = lagging(0.6, 0.4)
    gates = judge_gates(run_checks(facts), facts)
    assert (gates["rollback"].verdict, gates["dual_write"].verdict, verdict(facts)) == ("go", "go", summary.CLEAN)
    assert "would lose 1 row that ZooKeeper is about to receive" in gates["rollback"].explanation
    assert "RB-08" in gates["rollback"].explanation


@pytest.mark.parametrize(
    ("facts", "state", "alive", "check_verdict", "rollback"),
    [
        (lagging(0.6, 0.4), LivenessState.LIVE, True, "pass", "go"),
        (lagging(6.0, 6.0), LivenessState.SILENT, False, "warn", "no_go"),
        (lagging(61.0, 0.4), LivenessState.BEHIND, True, "fail", "no_go"),
        (lagging(75.0, 75.0), LivenessState.STOPPED, False, "fail", "no_go"),
        (lagging(20.0, 0.4, lag_limit=10.0), LivenessState.BEHIND, True, "fail", "no_go"),
        (lagging(20.0, 20.0, lag_limit=10.0), LivenessState.STOPPED, False, "fail", "no_go"),
        (lagging(6.0, 6.0, alive_limit=10.0), LivenessState.LIVE, True, "pass", "go"),
    ],
    ids=["live", "silent", "behind", "stopped", "limit-behind", "limit-stopped", "limit-alive"],
)
def test_headline_gate_and_check_say_the_same(
    facts: Facts, state: LivenessState, alive: bool, check_verdict: str, rollback: str
) -> None:
    now = liveness(facts)
    assert now is not None
    assert (now.state, now.alive) == (state, alive)
    assert check(facts, "DUR-04").verdict == check_verdict
    assert gate(facts, "dual_write") == ("no_go" if check_verdict == "fail" else "go")
    assert gate(facts, "rollback") == rollback
    assert (summary.lag(facts).alive, summary.lag(facts).state) == (alive, state.value)


def test_a_quorum_that_has_been_dead_for_hours_is_not_alive() -> None:
    """Its log ends with it, so /migration is as new as the log's end; ZooKeeper was read hours later."""
    facts = replace(dual_write(), captured_at_ms=NOW + 3 * HOUR)
    assert gate(facts, "dual_write") == gate(facts, "rollback") == "no_go"
    assert "the controllers are not running" in check(facts, "DUR-04").evidence[0]
    assert "the controllers are not running" in check(facts, "CAP-05").evidence[0]
    told = replace(dual_write(), newest_znode_time_ms=NOW + 3 * HOUR)
    assert gate(told, "dual_write") == "no_go"


def test_an_old_copy_of_the_log_is_called_one() -> None:
    """/migration went on after the log's end."""
    facts = replace(dual_write(), captured_at_ms=NOW + HOUR, newest_znode_time_ms=NOW + HOUR, skew=ClockSkew(0, 0, 50))
    facts = replace(facts, lag=LagMeasure(0, 0.0, -3599.5, 0))
    assert check(facts, "DUR-04").verdict == "pass"
    assert check(facts, "CAP-05").verdict == "warn"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"newest_znode_time_ms": NOW - 61 * SECOND}, "warn"),
        ({"newest_znode_time_ms": NOW - 59 * SECOND}, "pass"),
        # Nothing is mirrored before the load and after finalising, and 3.4 does not move /migration.
        ({"newest_znode_time_ms": NOW - 61 * SECOND, "phase": Phase.WAITING}, "pass"),
        ({"newest_znode_time_ms": NOW - 61 * SECOND, "kafka_version": "3.4.1"}, "pass"),
    ],
)
def test_in_dual_write_a_tree_much_older_than_the_log_is_an_old_copy(values: dict[str, Any], expected: str) -> None:
    assert check(replace(dual_write(), **values), "CAP-05").verdict == expected


def test_a_quorum_that_was_stopped_in_order_can_be_rolled_back() -> None:
    stopped = [copy(node, producer_snapshot=OFFSET + 1) for node in (3000, 3001, 3002)]
    facts = replace(dual_write(), copies=stopped, plan=plan_read(stopped), captured_at_ms=NOW + HOUR)
    assert check(facts, "DUR-04").verdict == "warn"
    assert gate(facts, "rollback") == "go"
    left_over = replace(facts, lag=LagMeasure(9, 1.0, 1.0, 2))
    assert gate(left_over, "rollback") == "no_go"


def test_a_clock_that_runs_ahead_hides_no_dead_writer() -> None:
    ahead = {"newest_znode_time_ms": NOW + 25 * SECOND}
    dead = replace(dual_write(), lag=LagMeasure(150, 75.0, -25.0, 9), **ahead)
    now = liveness(dead)
    assert now is not None
    assert now.state is LivenessState.STOPPED
    healthy = replace(dual_write(), lag=LagMeasure(1, 0.5, -25.0, 0), **ahead)
    assert check(healthy, "DUR-04").verdict == "pass"
    measured = replace(dead, skew=ClockSkew(100 * SECOND, 20, 300))
    assert liveness(measured) is not None
    assert check(measured, "DUR-04").verdict == "fail"


def test_the_skew_is_the_median_of_what_was_mirrored() -> None:
    skew = clock_skew([29_990.0, 30_000.0, 30_001.0, 30_002.0, 30_020.0], 300)
    assert skew == ClockSkew(30_001, 1, 300, 19)
    assert (skew.clocks.ahead_ms, skew.clocks.margin_ms) == (30_001, 5_000)
    assert clock_skew([0.0] * 5, 4) is None
    assert clock_skew(None, 0) is None
    slow = clock_skew([0.0, 100.0, 1_000.0, 4_000.0, 21_000.0], 300)
    assert slow is not None
    assert slow.clocks.margin_ms == 60_000, "where mirroring itself takes long, times tell less"
    assert any("ZooKeeper's clock is +30.0 s" in note for note in summary.notes(replace(dual_write(), skew=skew)))


# --- rolling back, finalising


def test_without_controller_epoch_there_is_no_way_back() -> None:
    facts = replace(dual_write(), zookeeper=zookeeper(controller_epoch=None))
    assert check(facts, "RB-03").verdict == "fail"
    assert gate(facts, "rollback") == "no_go"


def test_rows_that_will_not_arrive_close_the_way_back() -> None:
    assert check(lagging(6.0, 6.0), "RB-02").verdict == "fail"
    lost = replace(lagging(0.6, 0.4), divergences={"lag": ONE, "lost_write": Sample(2, ("a", "b"))})
    assert check(lost, "RB-02").violations == 3


def test_a_leadership_that_just_began_is_measured_by_the_configured_limit() -> None:
    moved = [LeaderEpoch(2, OFFSET, 3001, (3000, 3001, 3002), NOW - 7 * SECOND)]
    assert check(replace(dual_write(), epochs=moved), "DUR-03").verdict == "fail"
    assert check(replace(dual_write(), epochs=moved, alive_limit=10.0), "DUR-03").verdict == "warn"


@pytest.mark.parametrize(
    ("seconds", "skew", "expected"),
    [
        (-1, None, "pass"),
        (59, None, "pass"),
        (61, None, "fail"),
        (61, ClockSkew(60 * SECOND, 10, 99), "pass"),
        (61, ClockSkew(0, 10, 99), "fail"),
    ],
)
def test_whoever_writes_migration_after_finalising_is_found(
    seconds: int, skew: ClockSkew | None, expected: str
) -> None:
    znodes = {**(finalized().zookeeper or {}), "migration_mtime": NOW + seconds * SECOND}
    assert check(replace(finalized(), zookeeper=znodes, skew=skew), "POST-02").verdict == expected


def test_two_processes_are_told_by_the_measured_clocks() -> None:
    registered = broker(2, is_migrating_zk_broker=False, incarnation_id="b", kraft_append_time=NOW - 80 * SECOND)
    znode = {"broker_id": 2, "zk_mtime": NOW - 30 * SECOND}
    facts = replace(
        dual_write(),
        brokers_in_zookeeper=[znode],
        brokers_in_kraft=[registered],
        newest_znode_time_ms=NOW + 60 * SECOND,
    )
    assert check(facts, "DUR-12").verdict != "fail"
    assert check(replace(facts, skew=ClockSkew(60 * SECOND, 10, 99)), "DUR-12").verdict == "fail"


def test_a_controller_of_kafka_4_closes_every_gate_and_is_named() -> None:
    four = [{"name": "metadata.version", "min_level": 7, "max_level": 25}]
    facts = replace(dual_write(), controllers=[*dual_write().controllers, {"controller_id": 3003, "features": four}])
    facts = replace(facts, controllers=[{"zk_migration_ready": True, **row} for row in facts.controllers])
    assert check(facts, "DUR-20").evidence[0].startswith("controller 3003 supports metadata.version up to 4.0-IV3")
    assert {gate(facts, name) for name in ("dual_write", "finalize", "rollback")} == {"no_go"}


# --- a log that begins after /migration's offset


def begins_at(offset: int, **values: Any) -> Facts:
    """Dual write with no copy of the log that reaches further back than a checkpoint at the offset (exclusive)."""
    late = {"log_start": offset, "log_end": offset + 10, "checkpoints": (Checkpoint("c", offset, EPOCH, True),)}
    copies = [copy(controller, **late) for controller in (3000, 3001, 3002)]
    plan = plan_read(copies)
    return replace(
        dual_write(), copies=copies, plan=plan, committed=committed_end(copies, plan, OFFSET, EPOCH), **values
    )


def test_no_gate_opens_on_rows_that_may_be_lost_before_the_log_begins() -> None:
    late = begins_at(OFFSET + 2, divergences={"lag": ONE})
    found = check(late, "CAP-04")
    assert (found.verdict, found.gates) == ("unknown", ["dual_write", "finalize", "rollback"])
    assert f"begins at offset {OFFSET + 2}, after /migration's offset {OFFSET}" in found.evidence[0]
    assert [gate(late, name) for name in ("dual_write", "rollback")] == ["unknown", "unknown"]
    same = begins_at(OFFSET + 1, divergences={"lag": ONE})
    assert check(same, "CAP-04").verdict == "pass", "the checkpoint is of /migration's offset"
    assert check(begins_at(OFFSET + 2), "CAP-04").verdict == "pass", "nothing differs that could be lost"


def test_a_log_that_reaches_back_to_what_3_4_has_mirrored_hides_nothing() -> None:
    """Its /migration stays at the load (S§4.4)."""
    late = begins_at(OFFSET + 2, divergences={"lag": ONE}, kafka_version="3.4.1")
    assert check(replace(late, mirrored_offset=OFFSET), "CAP-04").verdict == "unknown"
    assert check(replace(late, mirrored_offset=OFFSET + 1), "CAP-04").verdict == "pass"


def test_after_finalising_it_does_not_matter_where_the_log_begins() -> None:
    late = begins_at(OFFSET + 2, divergences={"expected_stale": ONE})
    facts = replace(finalized(), copies=late.copies, plan=late.plan, divergences=late.divergences)
    assert check(facts, "CAP-04").verdict == "pass"


def test_a_broker_that_runs_in_zookeeper_mode_was_left_behind_by_the_finalising() -> None:
    """The first leader without the flag finalises, whatever mode the brokers run in (KAFKA-20960): they hear nothing any more."""
    after = finalized()
    left = replace(after, brokers_in_kraft=[*after.brokers_in_kraft[1:], broker(0, broker_epoch=1)])
    result = check(left, "POST-03")
    assert (check(after, "POST-03").verdict, result.verdict) == ("pass", "fail")
    assert result.evidence == ["broker 0 still runs in ZooKeeper mode: it gets no metadata since the finalising"]
    stopped = broker(0, broker_epoch=1, fenced=True)
    assert check(replace(left, brokers_in_kraft=[stopped]), "POST-03").verdict == "pass"


def test_controllers_with_the_old_log_after_a_rollback() -> None:
    """Seen in 3.9.1: started again as they were, they made /migration with offset -1, said so once, and waited forever."""
    began = {**(rolled_back().zookeeper or {}), "migration_present": True, "kraft_metadata_offset": -1}
    facts = replace(rolled_back(), zookeeper=began)
    found = {result.id: result for result in run_checks(facts)}
    assert found["RB-14"].verdict == "warn"
    assert (
        summary.verdict(Divergences(), [*found.values()], judge_gates([*found.values()], facts), facts.phase)
        == summary.WARNINGS
    )
    assert "waits forever" in found["RB-14"].evidence[0]
    assert found["RB-05"].verdict == "pass", "it is not the leftover of a load"
    assert (found["RB-13"].verdict, found["CAP-10"].verdict) == ("not_applicable", "pass")
    unreadable = replace(facts, zookeeper={**began, "kraft_metadata_offset": None})
    assert check(unreadable, "RB-05").verdict == "warn"
    assert check(rolled_back(), "RB-14").verdict == "pass"


def test_a_load_of_3_5_that_wrote_again_what_a_broken_one_had_left() -> None:
    """Seen in 3.5.1: killed in the load, then loaded whole, and equal to ZooKeeper. 3.6.2 ends on such a log."""
    over = {"LOADED-AGAIN": Sample(1, ("orders: made 2 times with the same id (offset 60)",))}
    facts = replace(dual_write(), kafka_version="3.5.1", findings=over)
    assert check(facts, "DUR-08").verdict == "warn"
    assert gate(facts, "dual_write") == gate(dual_write(), "dual_write") == "go"
    kept = [replace(copy, checkpoints=(Checkpoint("c", OFFSET, EPOCH, complete=True),)) for copy in facts.copies]
    assert check(replace(facts, copies=kept), "DUR-08").verdict == "pass", "no controller replays it any more"
    second = {**over, "DUR-08": Sample(1, ("orders: made 2 times with the same id (offset 399)",))}
    assert check(replace(facts, findings=second), "DUR-08").verdict == "fail"


def test_a_broker_that_runs_and_is_not_registered_is_not_one_that_was_shut_down() -> None:
    """Seen in 3.9.1 at metadata.version 3.6-IV2: three brokers restarted with another inter.broker.protocol.version stayed fenced."""

    def verdict(started: int, registered: int, **values: Any) -> str:
        now = dual_write()
        off = broker(0, **{"fenced": True, "in_controlled_shutdown": True, "kraft_append_time": registered, **values})
        ids = [{"broker_id": 0, "zk_mtime": started}, {"broker_id": 1}]
        facts = replace(now, brokers_in_zookeeper=ids, brokers_in_kraft=[off, *now.brokers_in_kraft[1:]])
        return check(facts, "DUR-22").verdict

    assert verdict(NOW - 100_000, NOW - 110_000) == "fail"
    assert verdict(NOW - 50_000, NOW - 110_000) == "pass", "it starts"
    assert verdict(NOW - 100_000, NOW - 90_000) == "pass", (
        "it is shutting down, or was killed and ZooKeeper does not know yet"
    )
    assert verdict(NOW - 100_000, NOW - 110_000, fenced=False, in_controlled_shutdown=False) == "pass"
