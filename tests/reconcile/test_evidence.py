"""From what is given of a cluster and its answers to facts: the release, the phase, what is asked next, where ZooKeeper is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.report import CheckResult, Divergences, Lag, MigrationSummary, Report
from tests.reconcile.kraft_clusters import END, EPOCH, HOUR, NODES, NOW, copy
from transforms.kraft.quorum import CommittedEnd, committed_end, last_stable, plan_read
from transforms.kraft.replay.transactions import ABORT, BEGIN, Marker, read_transactions
from transforms.kraft.replay.transactions import END as END_OF_IT
from transforms.kraft.side import FEATURE_LEVEL, LEADER_CHANGE, STATE, KraftSide
from transforms.properties import PropertyFiles
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS
from transforms.reconcile.judge.beside import Beside
from transforms.reconcile.judge.cluster import cluster_of, views_of
from transforms.reconcile.judge.contexts import context_at, context_of, ends_of
from transforms.reconcile.judge.earlier import Claim, EarlierRun, LogKnown
from transforms.reconcile.judge.evidence import ClusterFacts, facts_of, first_facts, loaded_at, with_differences
from transforms.reconcile.judge.facts import Facts, ReplicaUse, Sample
from transforms.reconcile.judge.finished import finished_facts, given_of
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.gates import run_checks
from transforms.reconcile.judge.given import FIRST_ANSWERS, SECOND_ANSWERS, Given, every_answer
from transforms.reconcile.judge.kraft_queries import MIN_ISR, UNCLEAN
from transforms.reconcile.judge.liveness import LivenessState, liveness
from transforms.reconcile.judge.mirror import MirrorPosition, mirror_position, mirrored, one_by_one
from transforms.reconcile.judge.thresholds import JudgeLimits

MIRRORED, LOADED = 1900, NOW - HOUR
ZNODES = {
    "controller_id": 3000,
    "controller_persistent": True,
    "controller_czxid": 500,
    "controller_kraft_epoch": EPOCH,
    "controller_epoch": 7,
    "kraft_metadata_offset": MIRRORED,
    "kraft_metadata_epoch": EPOCH,
    "migration_mzxid": 900,
    "migration_mtime": NOW - 1000,
}
# A ZooKeeper broker took /controller when the controllers had been stopped.
ROLLED_BACK = {**ZNODES, "controller_persistent": False, "controller_czxid": 950}
PROPERTIES = PropertyFiles()


def record(kind: str, offset: int, time: int = LOADED, **data: Any) -> dict[str, Any]:
    common = {"type": kind, "offset": offset, "epoch": EPOCH, "append_time": time, "checkpoint_offset": None}
    return {**common, "data": json.dumps(data)}


def state(offset: int, code: int) -> dict[str, Any]:
    return record(STATE, offset, zkMigrationState=code)


ELECTED = record(LEADER_CHANGE, 0, leaderId=3000, voters=[{"voterId": node} for node in NODES])
LEVEL = record(FEATURE_LEVEL, 1, name="metadata.version", featureLevel=19)
# PRE_MIGRATION at 2, MIGRATION at 90, as 3.5 and later spell them.
MIGRATING = (ELECTED, LEVEL, state(2, 2), state(90, 1))


def side(*milestones: Mapping[str, Any]) -> KraftSide:
    copies = tuple(copy(node, checkpoints=()) for node in NODES)
    plan = plan_read(copies)
    return KraftSide(copies, plan, committed_end(copies, plan, None, None), milestones, read_transactions([]), None)


def given(*milestones: Mapping[str, Any], **values: Any) -> Given:
    """A cluster in dual write, unless other records are given."""
    whole = Given(
        "prod",
        kafka_version="3.8",
        has_zookeeper=True,
        has_kraft=True,
        walks=1,
        side=side(*(milestones or MIGRATING)),
        zookeeper=ZNODES,
        compared=ZNODES,
    )
    return replace(whole, **values)


def broker(node: int, source: str, **values: Any) -> dict[str, Any]:
    row = {"source": source, "broker_id": node, "is_migrating_zk_broker": None, "fenced": None, "rack": None}
    return {**row, "in_controlled_shutdown": None, "log_dirs": None, "features": [], **values}


REGISTERED = {"is_migrating_zk_broker": True, "fenced": False, "in_controlled_shutdown": False}
_ANSWERED: dict[str, list[dict[str, Any]]] = {
    "brokers": [broker(0, ZOOKEEPER), broker(0, KRAFT, **REGISTERED)],
    "features": [{"source": KRAFT, "feature": "metadata.version", "level": 19, "min_level": None, "kraft_offset": 1}],
    "counts": [
        {"entity": "topics", "source": ZOOKEEPER, "rows": 3},
        {"entity": "topics", "source": KRAFT, "rows": 3},
    ],
    "replicas": [{"broker_id": 1, "replicas": 4, "adding": 1}, {"broker_id": 0, "replicas": 9, "adding": 0}],
    "append_times": [
        {
            "newest": NOW,
            "oldest_behind": NOW - 3000,
            "at_migration": NOW - 4000,
            "changes": 2,
            "before_written": 1800,
        }
    ],
    "protection": [{"znodes": 10, "open": 1, "time": NOW - 500, "zxid": 950}],
    "transactions": [{"time": NOW - 700, "zxid": 960}],
    "pending": [{"topic": "doomed"}],
    "configured": [
        {"resource_name": "0", "source": KRAFT},
        {"resource_name": "7", "source": ZOOKEEPER},
        {"resource_name": "", "source": KRAFT},
        # Anybody may have written such a znode, and int() does not take it.
        {"resource_name": "\N{SUPERSCRIPT TWO}", "source": ZOOKEEPER},
    ],
    "moved": [
        {"code": "moved", "total": 2, "text": "/b: data", "number": 2},
        {"code": "moved", "total": 2, "text": "/a: data", "number": 1},
        {"code": "written", "total": 1, "text": "/migration: data", "number": 1},
    ],
}
ANSWERS = every_answer(FIRST_ANSWERS, _ANSWERED)
_BROKEN: dict[str, list[dict[str, Any]]] = {
    "samples": [
        {"code": "SEC-01", "total": 30, "text": "b", "number": 2},
        {"code": "SEC-01", "total": 30, "text": "a", "number": 1},
    ],
    "fallen": [{"code": "ISR-19", "total": 1, "text": "t/0 fell", "number": 1}],
    "earlier_epochs": [{"partitions": 8}],
    "examples": [
        {"broker_id": 1, "number": 2, "text": "u/0"},
        {"broker_id": 1, "number": 1, "text": "t/0 and 2 more"},
    ],
}
SECOND = every_answer(SECOND_ANSWERS, _BROKEN)
NOTHING_FOUND, NOTHING_BROKEN = every_answer(FIRST_ANSWERS, {}), every_answer(SECOND_ANSWERS, {})


def gathered(**values: Any) -> ClusterFacts:
    return first_facts(FirstLook(given(**values), ANSWERS))


@pytest.mark.parametrize(
    ("passed", "release"),
    [
        ([], "3.4"),
        ([{"kraft_metadata_offset": 190, "records": 80}], "3.4"),
        ([{"kraft_metadata_offset": 190, "records": 80}, {"kraft_metadata_offset": 191, "records": 1}], "3.5"),
    ],
)
def test_an_offset_that_moves_without_a_load_is_of_a_release_after_3_4(
    passed: list[dict[str, Any]], release: str
) -> None:
    """Controllers of 3.4.1 were upgraded to 3.6.2 in dual write: they register no release, and the brokers an old level."""
    features = [{**_ANSWERED["features"][0], "level": 8}]
    answers = {**ANSWERS, "features": features, "lag_series": passed}
    early = given(ELECTED, LEVEL, state(69, 1), state(150, 1), kafka_version=None)
    assert FirstLook(early, answers).release.version == release


@pytest.mark.parametrize(
    ("version", "level", "expected"),
    # Nodes state a lower bound: whoever states 3.5 may run 3.9 at an old metadata.version.
    [("3.6.1", 19, True), ("3.7.1", 19, False), ("3.4.1", 8, None), (None, 11, None), (None, 20, False)],
)
def test_what_the_release_takes_for_a_default(version: str | None, level: int, expected: bool | None) -> None:
    answers = {**ANSWERS, "features": [{**_ANSWERED["features"][0], "level": level}]}
    look = FirstLook(given(ELECTED, LEVEL, state(69, 2), state(150, 1), kafka_version=version), answers)
    assert look.known().default_is_empty is expected


def test_the_same_records_are_another_phase_by_who_holds_the_controller() -> None:
    assert FirstLook(given(), ANSWERS).phase is Phase.DUAL_WRITE
    assert FirstLook(given(zookeeper=ROLLED_BACK), ANSWERS).phase is Phase.ROLLED_BACK
    assert FirstLook(given(ELECTED, state(2, 2)), ANSWERS).phase is Phase.WAITING
    assert FirstLook(given(*MIGRATING, state(1000, 3)), ANSWERS).phase is Phase.FINALIZED
    assert FirstLook(given(side=None), ANSWERS).phase is Phase.ZOOKEEPER


def test_a_tree_from_before_the_load_is_no_rollback() -> None:
    """ZooKeeper was copied earlier than the log. What it does not show is unknown, and nobody is told to remove /migration."""
    waits = {**ROLLED_BACK, "kraft_metadata_offset": -1}

    def judged(newest: int) -> Facts:
        answers = ANSWERS | {"protection": [{"znodes": 1, "open": 1, "time": newest, "zxid": 950}], "transactions": []}
        return first_facts(FirstLook(given(zookeeper=waits, compared=waits), answers)).facts

    assert judged(LOADED + 1).phase is Phase.ROLLED_BACK
    facts = judged(LOADED - 1)
    assert facts.phase is Phase.DUAL_WRITE
    verdicts = {result.id: result for result in run_checks(facts)}
    for check in ("DUR-01", "DUR-02", "DUR-03"):
        assert (verdicts[check].verdict, verdicts[check].evidence) == ("unknown", [facts.older_than_load])


@pytest.mark.parametrize(
    ("offset", "mzxid", "phase"),
    [(640, 900, Phase.ROLLED_BACK), (640, 960, Phase.DUAL_WRITE), (-1, 960, Phase.ROLLED_BACK)],
    ids=["written-before", "written-since", "made-again"],
)
def test_controllers_that_still_write_migration_were_not_rolled_back(offset: int, mzxid: int, phase: Phase) -> None:
    """A ZooKeeper broker took /controller, which somebody removed in dual write. Only a controller that is in office moves the offset."""
    znodes = {**ROLLED_BACK, "migration_mzxid": mzxid, "kraft_metadata_offset": offset}
    assert FirstLook(given(zookeeper=znodes), ANSWERS).phase is phase


def test_a_load_whose_end_is_not_proved_committed_still_waits() -> None:
    """The leader's copy has the load's end; the others were taken before it."""
    markers = (record(BEGIN, 10, name="ZK Migration"), record(END_OF_IT, 91))
    transactions = read_transactions([Marker(each["offset"], each["type"], None, NOW) for each in markers])
    planned = replace(side(*MIGRATING, *markers), transactions=transactions)

    def phase(committed: int) -> Phase:
        proved = last_stable(CommittedEnd(committed, "majority", ""), transactions)
        return FirstLook(given(side=replace(planned, committed=proved)), ANSWERS).phase

    assert [phase(end) for end in (11, 90, 91, 92)] == [Phase.WAITING, Phase.WAITING, Phase.WAITING, Phase.DUAL_WRITE]


def test_a_level_of_an_aborted_transaction_is_none_of_the_clusters_levels() -> None:
    """One that may still take effect is: it must not be reported as missing."""
    log = (ELECTED, LEVEL, record(FEATURE_LEVEL, 11, name="metadata.version", featureLevel=21))
    for end, levels in ((ABORT, [19]), (END_OF_IT, [19, 21]), (None, [19, 21])):
        markers = [Marker(10, BEGIN, "x", NOW), *([Marker(12, end, None, NOW)] if end else [])]
        planned = replace(side(*log), transactions=read_transactions(markers))
        assert [change.level for change in FirstLook(given(side=planned), ANSWERS).levels] == levels


def test_a_tree_with_topics_beside_a_log_without_any_is_in_zookeeper_mode() -> None:
    alone = {**NOTHING_FOUND, "counts": [{"entity": "topics", "source": ZOOKEEPER, "rows": 3}]}
    assert FirstLook(given(ELECTED), alone).phase is Phase.ZOOKEEPER
    assert FirstLook(given(ELECTED), NOTHING_FOUND).phase is Phase.KRAFT
    counts = FirstLook(given(ELECTED, has_zookeeper=False), NOTHING_FOUND).counts
    assert counts["topics"] == {ZOOKEEPER: None, KRAFT: 0}, "a side that was not read has no number"


def test_what_the_second_questions_need_is_known_after_the_first() -> None:
    look = FirstLook(given(), ANSWERS)
    known = look.known()
    assert (known.live, known.down, known.claim, known.controller_epoch) == ([0], [], 500, 7)
    assert (known.loaded_at, known.epoch_start, known.mirrored_until) == (LOADED, 0, None)
    assert known.load is not None
    assert (known.load.after, known.load.until) == (2, 90)
    assert known.newest_znode_time_ms == NOW - 500
    assert known.health.compared
    assert (look.registered, look.strangers, look.mirrored_offset) == ([0], True, MIRRORED)
    assert FirstLook(given(*MIGRATING, state(1000, 3)), ANSWERS).known().mirrored_until == 900


@pytest.mark.parametrize(
    ("values", "unclean"),
    [
        ({"": "true"}, True),
        ({"": " TRUE "}, True),
        ({"": "false"}, False),
        ({"1": "true"}, False),
        ({"3000": "true"}, True),
        ({"": "true", "3000": "false"}, False),
        ({"": None}, False),
    ],
)
def test_unclean_elections_are_allowed_by_the_cluster_or_by_the_controller_that_leads(
    values: Mapping[str, str | None], unclean: bool
) -> None:
    """`ConfigurationControlManager.getTopicConfig` asks for no other broker's own setting."""
    rows = [{"source": KRAFT, "broker": each, "name": UNCLEAN, "value": value} for each, value in values.items()]
    look = FirstLook(given(), {**ANSWERS, "broker_configs": rows})
    assert look.epochs[-1].leader_id == 3000
    assert look.known().health.unclean is unclean


@pytest.mark.parametrize(
    ("values", "decides", "least"),
    [({}, KRAFT, 3), ({"zookeeper": ROLLED_BACK}, ZOOKEEPER, 2), ({"side": None, "has_kraft": False}, ZOOKEEPER, 2)],
)
def test_the_minimum_of_isrs_is_that_of_the_side_that_decides(values: dict[str, Any], decides: str, least: int) -> None:
    """ISR-09: before the load, and after a rollback, the brokers' dynamic configurations are in ZooKeeper."""
    named = {"broker": "", "name": MIN_ISR}
    rows = [{"source": ZOOKEEPER, "value": "2", **named}, {"source": KRAFT, "value": "3", **named}]
    health = FirstLook(given(**values), {**ANSWERS, "broker_configs": rows}).known().health
    assert (health.deciding, health.min_isr) == (decides, {"": least})


@pytest.mark.parametrize(
    ("value", "least"), [(" 2 ", {"": 2}), ("\N{SUPERSCRIPT TWO}", {}), (str(2**31), {}), ("x", {})]
)
def test_a_minimum_that_kafka_does_not_take_is_none(value: str, least: dict[str, int]) -> None:
    """Anybody may have written a configuration's znode."""
    rows = [{"source": KRAFT, "broker": "", "name": MIN_ISR, "value": value}]
    assert FirstLook(given(), {**ANSWERS, "broker_configs": rows}).known().health.min_isr == least


@pytest.mark.parametrize(("version", "capped"), [("3.6", False), ("3.7", True), ("4.1", True), (None, True)])
def test_before_3_7_a_partition_may_need_more_members_than_replicas(version: str | None, capped: bool) -> None:
    """`Partition.effectiveMinIsr`; of an unknown release nothing more is asked."""
    health = FirstLook(given(kafka_version=version), {**ANSWERS, "features": []}).known().health
    assert health.capped_min_isr is capped


@pytest.mark.parametrize(
    ("version", "endless"), [("3.7", True), ("3.8", False), ("4.2", False), ("4.3", True), ("4.4", True), (None, False)]
)
def test_which_releases_do_not_end_the_reassignment_of_a_replica_both_added_and_removed(
    version: str | None, endless: bool
) -> None:
    """`PartitionReassignmentReplicas`; of an unknown release nothing is said."""
    health = FirstLook(given(kafka_version=version), {**ANSWERS, "features": []}).known().health
    assert health.endless_swaps is endless


def test_a_broker_that_shuts_down_is_waited_for_until_the_migration_is_finalised() -> None:
    down = {
        **NOTHING_FOUND,
        "brokers": [broker(0, KRAFT, is_migrating_zk_broker=False, fenced=True, in_controlled_shutdown=True)],
    }
    assert FirstLook(given(), down).known().down == [0]
    assert FirstLook(given(ELECTED), down).known().down == []
    assert FirstLook(given(*MIGRATING, state(95, 3)), down).known().down == [], "the gate upgrade counts it (UPG-02)"


def test_facts_are_built_of_the_answers() -> None:
    facts = gathered(walks=2, thresholds=JudgeLimits(lag_seconds=5.0)).facts
    assert facts.lag is not None
    assert (facts.lag.records, facts.lag.seconds, facts.lag.silence, facts.lag.changes) == (99, 3.0, 1.0, 2)
    assert (facts.newest_znode_time_ms, facts.newest_zxid, facts.load_time_ms) == (NOW - 500, 960, LOADED)
    assert facts.configured_in_kraft == frozenset({0})
    assert facts.brokers_with_config == frozenset({0, 7}), "the cluster-wide configuration is no broker's"
    assert facts.moved == Sample(2, ("/a: data", "/b: data"))
    assert facts.written_while_read
    assert facts.lag_limit == 5.0
    assert facts.compared_at is None
    assert facts.findings is None, "not asked yet"
    assert (facts.level, facts.voters, loaded_at(facts)) == (19, NODES, LOADED)
    assert gathered().facts.moved is None, "one walk tells of nothing that moved"


def test_the_second_answers_are_added() -> None:
    whole = facts_of(given(), ANSWERS, SECOND, PROPERTIES)
    assert whole.facts.findings == {"SEC-01": Sample(30, ("a", "b")), "ISR-19": Sample(1, ("t/0 fell",))}
    assert whole.facts.replicas == [ReplicaUse(0, 9, ()), ReplicaUse(1, 4, ("t/0 and 2 more", "u/0"), 1)]
    assert whole.facts.left_behind is None
    assert whole.facts.previous_partitions
    assert whole.answers == {**ANSWERS, **SECOND}


def test_what_was_left_behind_is_told_of_a_cluster_that_was_rolled_back() -> None:
    back = given(zookeeper=ROLLED_BACK)
    told = {
        **NOTHING_BROKEN,
        "left_behind": [{"code": "RB-13", "total": 1, "text": "topics t, of offset 1901", "number": 1}],
    }
    assert facts_of(back, ANSWERS, NOTHING_BROKEN, PROPERTIES).facts.left_behind == Sample()
    assert facts_of(back, ANSWERS, told, PROPERTIES).facts.left_behind == Sample(1, ("topics t, of offset 1901",))


def test_copies_that_are_no_log_are_a_problem_only_where_a_log_was_to_be_read() -> None:
    assert first_facts(FirstLook(given(side=None), NOTHING_FOUND)).facts.plan_problem is not None
    assert first_facts(FirstLook(given(side=None, has_kraft=False), NOTHING_FOUND)).facts.plan_problem is None


def test_3_4_tells_by_the_time_of_its_last_write_how_far_it_is() -> None:
    row = ANSWERS["append_times"][0]
    assert mirror_position(row, given(), "3.4") == MirrorPosition(None, MIRRORED, NOW - 4000)
    assert mirror_position({**row, "before_written": 1950}, given(), "3.4").mirrored_offset == 1950
    assert mirror_position(row, given(zookeeper={**ZNODES, "kraft_metadata_offset": -1}), "3.8") == MirrorPosition()
    nothing = mirror_position(None, given(), "3.8").lag
    assert nothing is not None
    assert (nothing.records, nothing.seconds, nothing.silence) == (99, 0.0, None)


def test_the_log_is_asked_for_times_up_to_its_end() -> None:
    asked = mirrored(given())
    assert asked is not None
    assert (asked.offset, asked.log_end, asked.written_by) == (MIRRORED, END, NOW - 1000 - 60_000)
    assert mirrored(given(zookeeper=None)) is None
    assert mirrored(given(side=None)) is None


def test_changes_are_mirrored_one_by_one_from_the_load_on() -> None:
    span = one_by_one(given())
    assert span is not None
    assert (span.after, span.until, span.mzxid) == (90, MIRRORED, 900)
    assert one_by_one(given(ELECTED, state(2, 2))) is None
    assert one_by_one(given(ELECTED, state(90, 1))) is None, "3.4 records no state before its load"


def test_the_context_of_the_comparison_is_that_of_the_facts() -> None:
    context = context_of(gathered())
    assert (context.migration_offset, context.committed_end, context.migration_mzxid) == (MIRRORED, END, 900)
    assert (context.claim_zxid, context.load, context.load_claim, context.history_from) == (500, (3, 90), 500, 0)
    assert context.pending_deletes == {"doomed"}
    assert ends_of(gathered()).committed == END
    with pytest.raises(ValueError, match="may_compare"):
        context_of(gathered(side=None))
    with pytest.raises(ValueError, match="may_compare"):
        ends_of(gathered(side=None))


def test_an_earlier_offset_leaves_zookeeper_ahead_and_a_later_one_is_the_logs_end() -> None:
    context = context_of(gathered())
    ahead, behind = context_at(context, 1000), context_at(context, 1950)
    assert (ahead.migration_offset, ahead.committed_end) == (1000, END)
    assert (behind.migration_offset, behind.committed_end) == (MIRRORED, 1951)
    late = replace(context, history_from=1500)
    assert context_at(late, 1000).begins_after_migration is None, "earlier runs have read what the copies lack"
    assert (context_at(late, 1600).history_from, context_at(late, 1950).history_from) == (1500, 1500)


def test_the_comparison_adds_what_differs() -> None:
    facts = with_differences(
        gathered().facts,
        compared=True,
        samples={"lag": Sample(1, ("t",))},
        rows=[],
        duplicated=Sample(),
        deltas={5: (1, 9)},
    )
    assert (facts.compared, facts.differing("lag"), facts.deltas) == (True, Sample(1, ("t",)), {5: (1, 9)})


def report(**values: Any) -> Report:
    migration = MigrationSummary("MIGRATION", MIRRORED, END - 1, END - 1, 3000, EPOCH, 3000, clock_skew_ms=None)
    whole = Report(
        cluster="prod",
        run_id="r",
        started_at="",
        finished_at="",
        kafka_version="3.8",
        kafka_version_evidence="",
        mode="single",
        mode_explanation="",
        exit_code=0,
        verdict="clean",
        migration=migration,
        lag=Lag(None, None, None),
        gates={},
        checks=[CheckResult("CAP-02", "fail", 3)],
        counts={},
        divergences=Divergences(),
        broker_presence=[],
    )
    return replace(whole, **values)


def past(told: Report, beside: Beside | None = None, **answers: Any) -> ClusterFacts:
    mine = given_of(
        told,
        copies=(),
        side=side(*MIGRATING),
        zookeeper=ZNODES,
        compared=ZNODES,
        walks=1,
        reads_data_folder=False,
        beside=beside,
    )
    return finished_facts(told, mine, {**ANSWERS, **answers})


def test_a_finished_run_is_judged_by_the_same_facts() -> None:
    then, now = past(report()).facts, gathered().facts
    assert (then.phase, then.features, then.states, then.leader) == (now.phase, now.features, now.states, now.leader)
    assert context_of(past(report())) == context_of(gathered())
    assert then.damaged_log.total == 3
    assert not then.unknown_records.total
    of_newer = past(report(checks=[CheckResult("CAP-12", "unknown", 0)])).facts
    assert of_newer.unknown_records.total
    assert past(report(kafka_version="unknown")).release.evidence != "configured"


def test_clocks_that_the_run_did_not_hold_for_measured_are_not() -> None:
    apart = {**ANSWERS, "skew": [{"quantiles": [900.0, 950.0, 1000.0, 1050.0, 1100.0], "pairs": 9}]}
    then = report()
    mine = given_of(
        then, copies=(), side=side(*MIGRATING), zookeeper=ZNODES, compared=ZNODES, walks=1, reads_data_folder=False
    )
    measured = replace(then, migration=replace(then.migration, clock_skew_ms=1000.0))
    assert finished_facts(then, mine, apart).facts.skew is None
    assert finished_facts(measured, mine, apart).facts.skew is not None


def test_what_was_appended_while_a_tree_was_read_makes_no_clock_unmeasured_later() -> None:
    """A walk of minutes: the log grew past the limit meanwhile, which is nobody's lag. Its rows are classified by the clocks."""
    late = {"newest": NOW, "oldest_behind": NOW - 90_000, "at_migration": NOW - 91_000, "before_written": None}
    answers = {
        "append_times": [{**late, "changes": 3}],
        "skew": [{"quantiles": [900.0, 950.0, 1000.0, 1050.0, 1100.0], "pairs": 9}],
    }
    run = first_facts(FirstLook(given(reading_ms=60_000), {**ANSWERS, **answers}))
    told = report()
    told = replace(told, migration=replace(told.migration, clock_skew_ms=1000.0))
    assert context_of(run).clocks.margin_ms < CLOCK_MARGIN_MS
    assert context_of(past(told, Beside(reading_ms=60_000), **answers)) == context_of(run)
    assert context_of(past(told, **answers)) != context_of(run), "by the limit alone ZooKeeper would be behind"


def test_a_row_that_was_appended_while_a_tree_was_read_is_not_late() -> None:
    """A walk of minutes with a log that is looked up after it: DUR-04 calls such a record no lag, and its row must be no warning."""
    behind = {"newest": NOW, "oldest_behind": NOW - 90_000, "at_migration": NOW - 91_000, "before_written": None}
    answers = {**ANSWERS, "append_times": [{**behind, "changes": 3}]}
    for took, late in ((60_000, False), (0, True)):
        run = first_facts(FirstLook(given(reading_ms=took), answers))
        now = liveness(run.facts)
        assert now is not None
        assert (now.state is LivenessState.BEHIND) is late
        assert (context_of(run).lag_limit_ms < 90_000) is late


def test_a_log_that_was_copied_live_shows_when_it_began() -> None:
    """Once there is a snapshot, a leader does not give the record at offset 0: the next ones are of the same moment."""
    later = record(LEADER_CHANGE, 400, NOW, leaderId=3001, voters=[])
    of_checkpoint = {**LEVEL, "append_time": NOW, "checkpoint_offset": 1_400}

    def begun(*milestones: Mapping[str, Any]) -> int | None:
        return first_facts(FirstLook(given(*milestones), ANSWERS)).facts.log_begun_ms

    assert begun(*MIGRATING, later) == LOADED
    assert begun(*MIGRATING[1:], later) == LOADED
    assert begun(of_checkpoint, later) is None
    # A second attempt, whose log is shorter than that of the first one.
    before = EarlierRun("r1", LogKnown(None, END + 500, END + 500, LOADED - 1, ()), None)
    again = given(*MIGRATING[1:], earlier=before, claim=Claim(NOW, 48 * 3600.0))
    said = {check.id: check.verdict for check in run_checks(first_facts(FirstLook(again, ANSWERS)).facts)}
    assert (said["RUN-02"], said["RUN-03"]) == ("warn", "warn")


def test_who_is_asked_goes_by_the_phase() -> None:
    dual = views_of(past(report()), (3, 8), None)
    assert dual.active == cluster_of(gathered().facts, (3, 8))
    assert (dual.by_zookeeper, dual.active and dual.active.voters) == (False, frozenset(NODES))
    waiting = first_facts(FirstLook(given(ELECTED, state(2, 2)), ANSWERS))
    by_zookeeper = views_of(waiting, (3, 8), None)
    assert by_zookeeper.active is not None
    assert (by_zookeeper.active.zookeeper, by_zookeeper.active.local) == (True, 3000)
    assert views_of(waiting, None, None).active is None
