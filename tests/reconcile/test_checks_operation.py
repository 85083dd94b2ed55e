"""A KRaft cluster in operation (S§8.6): which rows break a rule, which rows beside them do not, and what the facts alone tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.checks import KRAFT, Phase
from schemas.checks.codes import (
    ACL_PRINCIPAL,
    ACL_TWICE,
    CHURN,
    CIDR_DENY,
    CLEAR_REMOVED,
    CONFIG_LEFT,
    CONFIG_SKIPPED,
    CORDONED,
    DEAD_LETTER_MISSING,
    DEAD_LETTER_PREFIX,
    DEAD_LETTERS,
    DIRECTORY_UNKNOWN,
    ELR_NO_REPLICA,
    ELR_WAITING,
    FEW_ITERATIONS,
    LAST_KNOWN_FENCED,
    LOSSY_ELECTION,
    NO_LEADER_FOR_GOOD,
    ONE_RACK,
    REASSIGNING,
    REASSIGNING_LONG,
    RECOVERING_LONG,
    RESTART_INTERNAL,
    RESTART_OFFLINE,
    RESTART_REFUSED,
    SCRAM_LEFT_OUT,
    SHARE_STATE,
    THROTTLE_LEFT,
    TOKEN_EXPIRED,
    UNDER_REPLICATED,
)
from schemas.report import CheckResult
from tests.reconcile import test_checks, test_evidence
from tests.reconcile.kraft_clusters import (
    DEFAULTS,
    END,
    EPOCH,
    LEVEL,
    NODES,
    NOW,
    broker,
    controller,
    copy,
    found,
    kraft,
)
from tests.reconcile.planted import Row, gathered, samples, table
from tests.reconcile.planted_kraft import (
    ACLS,
    CONFIGS,
    CREDENTIALS,
    END_MS,
    HEALTH,
    HOUR,
    OPERATIONS,
    PARTITIONS,
    TOKENS,
    in_zookeeper,
    row,
)
from tests.reconcile.test_checks_catalogue import IN_KRAFT
from tests.reconcile.test_checks_queries import ROWS as OF_ALL
from transforms.kraft.quorum import plan_read
from transforms.properties import PropertyFiles, node_properties
from transforms.reconcile.judge.checks.finish import CONTROLLER_LAG_RECORDS
from transforms.reconcile.judge.directory_rules import MIGRATING
from transforms.reconcile.judge.facts import BrokerConfig, Facts, LeaderEpoch, LevelChange, Sample
from transforms.reconcile.judge.first_look import FirstLook
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.kraft_queries import (
    MIN_ISR,
    broker_configs,
    fallen_epochs,
    out_of_sync,
    partition_health,
)
from transforms.reconcile.judge.partition_health import by_broker

PLANTED = {
    "partitions": PARTITIONS,
    "configs": CONFIGS,
    "acls": ACLS,
    "scram_credentials": CREDENTIALS,
    "delegation_tokens": TOKENS,
    "admin_operations": OPERATIONS,
}
ONLY = {
    RESTART_INTERNAL: ["__consumer_offsets/0: its only replica is on broker 0"],
    RESTART_OFFLINE: [
        "alone/0: its only replica is on broker 0",
        "moving/0: its only replica that is not being added is on broker 0",
    ],
    RESTART_REFUSED: [
        "all-needed/0: min.insync.replicas 2 of 2 replicas",
        "short/0: min.insync.replicas 2 of 2 replicas",
    ],
    REASSIGNING_LONG: ["moving/0: adding [1], removing [], no change in the 30 h before the log's end"],
    THROTTLE_LEFT: ["TOPIC throttled: leader.replication.throttled.replicas"],
    ONE_RACK: ["in-one-rack/0: all replicas are in rack a", "with-a-stopped-one/0: all replicas are in rack a"],
    ELR_WAITING: [
        f"{topic}/0: the ISR is empty, waiting for one of [1]"
        for topic in ("__share_group_state", "letters", "waits-for-one")
    ],
    ELR_NO_REPLICA: ["left-behind/0: ELR or last known leaders that are not replicas: [5, 7]"],
    SHARE_STATE: ["__share_group_state/0: no leader"],
    DEAD_LETTERS: [
        "group reads-shut: errors.deadletterqueue.group.enable is not set for its dead letter topic moving",
        "group reads-within: its dead letter topic __consumer_offsets is an internal one",
        "group reads: 1 partitions of letters have no leader",
    ],
    DEAD_LETTER_MISSING: ["group reads-too: its dead letter topic nowhere does not exist"],
    DEAD_LETTER_PREFIX: [
        "group reads-too: its dead letter topic nowhere does not begin with dlq.",
        "group reads-well: its dead letter topic in-order does not begin with dlq.",
    ],
    DIRECTORY_UNKNOWN: ["not-placed/0: broker 4 has not reported which of its directories"],
    CORDONED: ["closed-in/0: broker 4's directory d4-closed is cordoned"],
    CIDR_DENY: ["TOPIC t: DENY User:a from 10.1.0.0/16"],
    ACL_TWICE: ["TOPIC t: DENY READ of User:a from 10.1.0.1"],
    ACL_PRINCIPAL: ["TOPIC u: a"],
    FEW_ITERATIONS: ["SCRAM-SHA-256 of weak: 1024 iterations"],
    TOKEN_EXPIRED: ["token old expired 5 h before the log's end"],
}


def told(rows: Mapping[str, list[Row]], **health: Any) -> dict[str, list[str]]:
    """What the rows of a cluster show, all of it, by code."""
    tables = {name: rows.get(name, []) for name in {*OF_ALL, *PLANTED}}
    known = replace(IN_KRAFT, health=replace(HEALTH, **health))
    shown = samples(gathered(tables, [table("findings", [])], ([], []), known))
    return {code: list(sample.examples) for code, sample in shown.items()}


def verdict(check_id: str, facts: Facts) -> CheckResult:
    return next(result for result in run_checks(facts) if result.id == check_id)


@pytest.fixture(scope="module")
def planted() -> dict[str, list[str]]:
    return told(PLANTED)


@pytest.mark.parametrize("code", ONLY)
def test_only_the_broken_rows_are_found(planted: dict[str, list[str]], code: str) -> None:
    assert planted[code] == ONLY[code]


@pytest.mark.parametrize(
    ("code", "rows", "health"),
    [
        (CIDR_DENY, {"acls": ACLS}, {"level": 32}),
        (THROTTLE_LEFT, {"configs": CONFIGS, "partitions": [row("throttled", adding_replicas=[1])]}, {}),
        (
            THROTTLE_LEFT,
            {
                "configs": [{**CONFIGS[4], "resource_type": "BROKER", "resource_name": "1"}],
                "partitions": [row("t", removing_replicas=[1])],
            },
            {},
        ),
        (THROTTLE_LEFT, {"configs": [{**CONFIGS[4], "value": " "}]}, {}),
        (ONE_RACK, {"partitions": PARTITIONS}, {"racks": {0: "a", 1: "a", 2: "a", 4: "a"}}),
        (ONE_RACK, {"partitions": [row("t", replicas=[0, 7])]}, {}),
        (REASSIGNING_LONG, {"partitions": [row("t", adding_replicas=[1], kraft_append_time=END_MS - 23 * HOUR)]}, {}),
        (DIRECTORY_UNKNOWN, {"partitions": [row("t", replicas=[0, 4], directories=["d0", MIGRATING])]}, {}),
        (
            DIRECTORY_UNKNOWN,
            {"partitions": [row("t", directories=["d0", MIGRATING], kraft_append_time=END_MS - 2 * HOUR)]},
            {},
        ),
        (CORDONED, {"partitions": PARTITIONS}, {"cordoned": {}}),
        (RESTART_OFFLINE, {"partitions": [row("t", replicas=[0], isr=[], leader=-1)]}, {}),
        (
            TOKEN_EXPIRED,
            {"delegation_tokens": [{**TOKENS[0], "expiry_timestamp": END_MS - HOUR}]},
            {},
        ),
        (FEW_ITERATIONS, {"scram_credentials": [{**CREDENTIALS[0], "source": "zookeeper"}]}, {}),
    ],
)
def test_what_another_cluster_may_have(code: str, rows: Mapping[str, list[Row]], health: Mapping[str, Any]) -> None:
    """A level that knows ranges, a reassignment under way, a throttle of nothing, one rack, a rack that is not known, a moment, a single
    directory."""
    assert code not in told(rows, **health)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        (
            {"replicas": [1, 2], "adding_replicas": [2], "isr": [1], "leader": 1},
            {RESTART_OFFLINE: ["t/0: its only replica that is not being added is on broker 1"]},
        ),
        (
            {"replicas": [1, 2, 3], "adding_replicas": [3], "isr": [1, 2], "leader": 1},
            {RESTART_REFUSED: ["t/0: min.insync.replicas 2 of 2 replicas"]},
        ),
        ({"replicas": [1, 2, 3], "adding_replicas": [], "isr": [1, 2], "leader": 1}, {}),
    ],
)
def test_a_replica_that_is_being_added_stands_in_for_none(values: Row, shown: Mapping[str, list[str]]) -> None:
    """UPG-04: it has not caught up, so that it can neither lead nor count for acks=all while another one restarts."""
    found = told({"partitions": [row("t", **values)]}, min_isr={"": 2})
    assert {code: found.get(code) for code in (RESTART_OFFLINE, RESTART_REFUSED) if code in found} == shown


@pytest.mark.parametrize(
    ("values", "health", "shown"),
    [
        ({"isr": [0]}, {"static_min_isr": 2}, {"ISR-09", RESTART_REFUSED}),
        ({}, {"static_min_isr": 2}, {RESTART_REFUSED}),
        ({"isr": [0]}, {"static_min_isr": 1}, set()),
        ({}, {"static_min_isr": 2, "min_isr": {"": 1}}, set()),
        ({}, {"static_min_isr": 2, "min_isr": {"0": 1}}, set()),
        ({"source": "zookeeper"}, {"static_min_isr": 2}, set()),
        # The rows of the side that does not decide are a copy, or old.
        ({"source": "zookeeper", "isr": [0]}, {"static_min_isr": 2}, set()),
        ({"source": "zookeeper", "isr": [0]}, {"min_isr": {"": 2}}, set()),
        ({"source": "zookeeper", "isr": [0]}, {"deciding": "zookeeper", "static_min_isr": 2}, {"ISR-09"}),
        ({"source": "zookeeper", "isr": [0]}, {"deciding": "zookeeper", "min_isr": {"": 2}}, {"ISR-09"}),
        ({"isr": [0]}, {"deciding": "zookeeper", "min_isr": {"": 2}}, set()),
    ],
)
def test_property_files_tell_what_nothing_dynamic_sets(values: Row, health: Mapping[str, Any], shown: set[str]) -> None:
    found = told({"partitions": [row("t", **values)]}, **health)
    assert found.keys() & {"ISR-09", RESTART_REFUSED} == shown


def test_a_partition_recovers_for_half_an_hour_before_it_is_named() -> None:
    """ISR-11; one with a single replica has nobody to wait for."""
    recovering = {"isr": [0], "leader_recovery_state": 1, "kraft_append_time": END_MS - 31 * 60_000}
    assert told({"partitions": [row("t", **recovering)]})[RECOVERING_LONG] == [
        "t/0: leader 0 RECOVERING for 31 min or longer"
    ]
    for others in ({"kraft_append_time": END_MS - 29 * 60_000}, {"replicas": [0]}, {"leader": -1}):
        assert RECOVERING_LONG not in told({"partitions": [row("t", **{**recovering, **others})]})


def test_partitions_are_counted_by_what_ails_them() -> None:
    rows = [
        row("t"),
        row("gone", leader=-1, isr=[]),
        row("short", isr=[0]),
        row("back", isr=[0], leader_recovery_state=1),
        row("alone", replicas=[0], isr=[0], leader_recovery_state=1),
        row("moved", leader=1),
        row("moving", replicas=[0, 1, 2], adding_replicas=[2]),
        in_zookeeper("without-a-state", isr=None, leader=None),
    ]
    counted = {"partitions": 7, "leaderless": 1, "short": 3, "recovering": 1, "moved": 1}
    assert partition_health(table("partitions", rows)).to_dicts() == [{"source": KRAFT, **counted}]


def test_epochs_that_stay_have_not_fallen() -> None:
    """ISR-15."""
    same = table("partitions", [in_zookeeper("t")])
    assert fallen_epochs(same, same).is_empty()


@pytest.mark.parametrize(
    ("lists", "said", "for_good"),
    [
        ({"eligible_leader_replicas": [9], "last_known_elr": [0]}, "no leader for good", True),
        ({"eligible_leader_replicas": [9, 1]}, "waiting for one of [1]", False),
        ({"last_known_elr": [-1]}, "no leader for good", True),
        ({"last_known_elr": [0]}, "waiting for one of [0]", False),
    ],
)
def test_nobody_waits_for_a_broker_that_can_not_be_elected(lists: Row, said: str, for_good: bool) -> None:
    """`PartitionChangeBuilder.electAnyLeader`: a replica; the last known leader only while nobody is eligible."""
    shown = told({"partitions": [row("t", leader=-1, isr=[], **lists)]})
    assert said in shown["ISR-16"][0]
    assert (NO_LEADER_FOR_GOOD in shown) is for_good
    assert shown.get(ELR_WAITING, []) == ([f"t/0: the ISR is empty, {said}"] if said.endswith("[1]") else [])


@pytest.mark.parametrize(
    ("lists", "at_work", "said", "for_good"),
    [
        (
            {"eligible_leader_replicas": [1]},
            (0,),
            "waiting for one of [1], which a controller no longer elects if it started",
            False,
        ),
        ({"eligible_leader_replicas": [1]}, (0, 1), "no leader for good, although all its replicas are running", True),
        ({"last_known_elr": [0]}, (), "no leader for good", True),
        ({"isr": [0]}, (), "waiting for one of [0]", False),
    ],
)
def test_eligible_leaders_are_forgotten_once_they_are_turned_off(
    lists: Row, at_work: tuple[int, ...], said: str, for_good: bool
) -> None:
    """A real 4.4.0: checkpoints leave the lists out, and after a roll of the controllers broker 1 came back and was not elected.

    Without the roll it was. The last known leader needs the feature (`PartitionChangeBuilder.canElectLastKnownLeader`).
    """
    present = replace(HEALTH.present, at_work=at_work)
    partition = row("t", **{"leader": -1, "isr": [], **lists})
    shown = told({"partitions": [partition]}, elr_off=True, present=present)
    assert said in shown["ISR-16"][0]
    assert (NO_LEADER_FOR_GOOD in shown) is for_good
    assert bool(shown.get(ELR_WAITING)) is ("no longer elects" in said)


@pytest.mark.parametrize(
    ("endless", "found"),
    [(False, []), (True, ["swap/0: adding [3, 4], removing [1, 3]: [3] is both, so that it never completes"])],
)
def test_a_reassignment_of_a_replica_that_is_added_and_removed_never_completes(endless: bool, found: list[str]) -> None:
    """RAS-01: partition `swap` of a real 4.4.0 cluster, where [1, 2] became [3, 4] and, before that was done, [2, 4]."""
    swap = row("swap", replicas=[2, 4, 1, 3], isr=[1, 2], adding_replicas=[3, 4], removing_replicas=[1, 3])
    assert told({"partitions": [swap]}, endless_swaps=endless).get(REASSIGNING_LONG, []) == found


@pytest.mark.parametrize(("capped", "found"), [(True, []), (False, ["t/0: ISR [1], min.insync.replicas 2"])])
def test_a_partition_of_one_replica_may_need_two(capped: bool, found: list[str]) -> None:
    """ISR-09: before Kafka 3.7 acks=all is refused there, always."""
    alone = {"partitions": [row("t", replicas=[1], isr=[1], leader=1)]}
    assert told(alone, min_isr={"": 2}, capped_min_isr=capped).get("ISR-09", []) == found


@pytest.mark.parametrize(
    ("values", "found"),
    [
        (("true", "TRUE", " true "), "pass"),
        (("true", "true"), "unknown"),
        ((), "unknown"),
        (("true", "false"), "warn"),
        ((None,), "warn"),
    ],
)
def test_a_property_file_may_let_a_broker_create_a_missing_dead_letter_topic(
    values: tuple[str | None, ...], found: str
) -> None:
    """SHR-02: the broker that delivers a group's records asks its own setting (`isDlqAutoTopicCreateEnabled`), false by default."""
    files = files_of(
        *("" if each is None else f"errors.deadletterqueue.auto.create.topics.enable={each}" for each in values)
    )
    missing = {DEAD_LETTER_MISSING: Sample(1, ("group g: its dead letter topic dlq.g does not exist",))}
    assert verdict("SHR-02", kraft(findings=missing, properties=files)).verdict == found


def files_of(*values: str) -> PropertyFiles:
    """Property files of brokers 0 and following, each with such a line."""
    texts = (f"node.id={node}\n{value}" for node, value in enumerate(values))
    return PropertyFiles(brokers=tuple(node_properties("/etc/b", text) for text in texts))


def test_a_static_value_that_no_file_tells_is_remarked() -> None:
    two = "min.insync.replicas = 2"
    assert files_of(two, "", "min.insync.replicas=x").static_min_isr() == {0: 2, 1: 1, 2: 1}
    result = verdict("UPG-04", kraft(broker_configs=(), properties=files_of(two)))
    assert (result.verdict, result.evidence) == (
        "pass",
        [
            "what the property files of brokers 1, 2 set for min.insync.replicas is unknown: "
            "give them (properties.brokers)"
        ],
    )
    for facts in (kraft(), kraft(broker_configs=(), properties=files_of(two, two, two))):
        assert [verdict(each, facts).evidence for each in ("UPG-04", "ISR-09")] == [[], []]
    assert verdict("ISR-09", kraft(broker_configs=(), properties=files_of(two))).evidence


def test_before_the_load_the_minimum_is_that_of_zookeeper_and_its_brokers() -> None:
    """ISR-09: what is not judged is remarked, also where the controllers wait for the load already."""
    brokers = [{**test_checks.waiting().brokers_in_zookeeper[0], "broker_id": node} for node in range(3)]
    for facts in (test_checks.zookeeper_alone(), test_checks.waiting()):
        before = replace(facts, brokers_in_zookeeper=brokers)
        two, files = "min.insync.replicas = 2", files_of("", "", "")
        assert verdict("ISR-09", before).evidence
        assert verdict("ISR-09", replace(before, properties=files_of(two, two))).evidence
        assert not verdict("ISR-09", replace(before, properties=files)).evidence
        assert verdict("ISR-09", replace(before, broker_configs=(BrokerConfig(KRAFT, "", MIN_ISR, "2"),))).evidence
        assert not verdict(
            "ISR-09", replace(before, broker_configs=(BrokerConfig("zookeeper", "", MIN_ISR, "2"),))
        ).evidence


@pytest.mark.parametrize(
    ("configs", "expected"),
    [
        ([("", "min.insync.replicas"), ("1", "unclean.leader.election.enable")], "pass"),
        ([("", "unclean.leader.election.enable")], "warn"),
        ([("", "min.insync.replicas"), ("1", "min.insync.replicas")], "warn"),
        ([], "warn"),
    ],
)
def test_with_elr_the_minimum_is_set_for_the_cluster_alone(configs: list[tuple[str, str]], expected: str) -> None:
    """ELR-01."""
    mine = tuple(BrokerConfig(KRAFT, node, name, "2") for node, name in configs)
    assert verdict("ELR-01", kraft(broker_configs=mine)).verdict == expected
    assert verdict(
        "ELR-01", kraft(broker_configs=(BrokerConfig("zookeeper", "", "min.insync.replicas", "2"),))
    ).violations


def test_a_topic_s_own_minimum_is_no_broker_s() -> None:
    own = {**CONFIGS[0], "resource_type": "TOPIC", "resource_name": "0", "config": "min.insync.replicas", "value": "3"}
    rows = [own, {**own, "resource_type": "BROKER", "value": "2"}]
    found = broker_configs(table("configs", rows)).to_dicts()
    assert found == [{"source": KRAFT, "broker": "0", "name": "min.insync.replicas", "value": "2"}]


def test_the_largest_of_several_files_counts() -> None:
    """After a restart another broker leads, by its own file."""
    look = FirstLook(test_evidence.given(static_min_isr={0: 1, 1: 2}), test_evidence.ANSWERS)
    assert look.known().health.static_min_isr == 2


@pytest.mark.parametrize(
    ("levels", "off"),
    [
        ({"metadata.version": 25}, True),
        ({"metadata.version": 25, "eligible.leader.replicas.version": 1}, False),
        ({}, False),
    ],
)
def test_eligible_leaders_are_off_only_if_the_levels_are_known(levels: dict[str, int], off: bool) -> None:
    features = [
        {**test_evidence.ANSWERS["features"][0], "feature": name, "level": level} for name, level in levels.items()
    ]
    look = FirstLook(test_evidence.given(), {**test_evidence.ANSWERS, "features": features})
    assert look.known().health.elr_off is off


@pytest.mark.parametrize(
    ("resource", "partition"),
    [
        ({}, row("another", adding_replicas=[1])),
        ({}, row("throttled", source="zookeeper", adding_replicas=[1])),
        ({"resource_type": "BROKER", "resource_name": "7"}, row("throttled", adding_replicas=[1])),
    ],
)
def test_a_reassignment_excuses_its_own_throttles_alone(resource: Row, partition: Row) -> None:
    shown = told({"configs": [{**CONFIGS[4], **resource}], "partitions": [partition]})
    assert len(shown[THROTTLE_LEFT]) == 1


def test_internal_topics_are_named_first() -> None:
    both = {RESTART_OFFLINE: Sample(1, ("a-topic/0",)), RESTART_INTERNAL: Sample(1, ("__consumer_offsets/0",))}
    result = verdict("UPG-04", kraft(findings=both))
    assert result.evidence == [
        "2 partitions would have no leader while a broker restarts",
        "__consumer_offsets/0",
        "a-topic/0",
    ]
    refused = verdict("UPG-04", found(RESTART_REFUSED))
    assert refused.evidence[0] == "1 partition would refuse producers with acks=all while a broker restarts"
    assert refused.verdict == "fail"


def far(*nodes: int, by: int, end: int = 2 * CONTROLLER_LAG_RECORDS) -> Facts:
    """A quorum in which some voters' logs end so many records before the others'."""
    copies = [copy(node, log_end=end - by if node in nodes else end) for node in NODES]
    return kraft(copies=copies, plan=plan_read(copies))


def test_a_voter_that_is_far_behind_is_one_that_restarts_already() -> None:
    limit = CONTROLLER_LAG_RECORDS
    facts = far(3002, by=limit + 1)
    assert verdict("UPG-05", facts).evidence == [
        f"the log of controller 3002 ends at offset {limit - 2}, the longest at {2 * limit - 1}: do not restart any other controller"
    ]
    assert verdict("UPG-05", facts).verdict == "fail"
    assert "UPG-05" in judge_gates(run_checks(facts), facts)["upgrade"].blocking
    assert verdict("UPG-05", far(3002, by=limit)).verdict == "pass"


@pytest.mark.parametrize(
    ("end", "by", "said"),
    # Two of three disks were formatted again when the log was still short; copies of three minutes apart; a young cluster.
    [(2_000, 1_990, "fail"), (8_000, 4_001, "fail"), (8_000, 4_000, "pass"), (2_000, 400, "pass"), (300, 290, "pass")],
)
def test_in_a_short_log_who_lacks_half_of_it_is_far_behind(end: int, by: int, said: str) -> None:
    facts = far(3001, 3002, by=by, end=end)
    assert verdict("UPG-05", facts).verdict == said


def of_voters(*nodes: int) -> Facts:
    """A cluster whose newest leader names these voters, of a static quorum."""
    whole = kraft()
    epochs = [LeaderEpoch(each.epoch, each.start_offset, 3000, nodes, each.append_time_ms) for each in whole.epochs]
    copies = [replace(each, voters=nodes) for each in whole.copies if each.controller_id in nodes]
    sets = None if whole.quorum is None else replace(whole.quorum, kraft_version=0, voter_sets=())
    controllers = [each for each in whole.controllers if each["controller_id"] in nodes]
    return replace(whole, epochs=epochs, copies=copies, plan=plan_read(copies), quorum=sets, controllers=controllers)


@pytest.mark.parametrize(
    ("nodes", "said", "words"),
    [
        ((3000,), "fail", "1 voter: the quorum has no leader while one restarts"),
        ((3000, 3001), "fail", "2 voters: the quorum has no leader while one restarts"),
        ((3000, 3001, 3002), "pass", None),
    ],
)
def test_one_or_two_voters_never_keep_a_majority(nodes: tuple[int, ...], said: str, words: str | None) -> None:
    result = verdict("UPG-05", of_voters(*nodes))
    assert result.verdict == said
    assert words is None or result.evidence == [words]
    accepted = replace(of_voters(*nodes), interruption_accepted=True)
    assert verdict("UPG-05", accepted).verdict == ("warn" if words else "pass")
    assert judge_gates(run_checks(of_voters(*nodes)), accepted)["upgrade"].verdict == ("no_go" if words else "go")


def test_voters_of_whom_not_one_is_registered_are_all_missing() -> None:
    counts = {**kraft().counts, "controllers": {KRAFT: 0}}
    result = verdict("UPG-05", kraft(controllers=(), counts=counts))
    assert (result.verdict, result.violations) == ("fail", len(NODES))
    early = kraft(controllers=(), counts=counts, features={"metadata.version": 14})
    assert verdict("UPG-05", early).verdict == "pass", "they do not register yet"
    assert verdict("UPG-05", kraft(controllers=())).verdict == "unknown", "there are some, and they were not read"


def test_what_is_wrong_beside_a_small_quorum_is_not_accepted_with_it() -> None:
    facts = replace(of_voters(3000, 3001), controllers=kraft().controllers[:1], interruption_accepted=True)
    assert verdict("UPG-05", facts).verdict == "fail"


def test_a_voter_whose_log_was_not_given_is_not_known_to_be_near() -> None:
    whole = kraft()
    facts = replace(whole, copies=[each for each in whole.copies if each.controller_id != 3002])
    result = verdict("UPG-05", facts)
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["give the log of controller 3002: its lag is unknown"],
    )
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "go"


def changed(node: int, **values: Any) -> Facts:
    """A quorum of which one controller's copy differs."""
    copies = [replace(each, **values) if each.controller_id == node else each for each in kraft().copies]
    return kraft(copies=copies, plan=plan_read(copies))


def test_without_quorum_state_nobody_knows_whether_one_leads() -> None:
    """Where a majority is missing, no log grows any more, and all copies end alike: only quorum-state shows the elections."""
    facts = changed(3001, leader_epoch=None, leader_id=None)
    result = verdict("UPG-05", facts)
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["whether controller 3001 knew a leader is unknown: the file quorum-state beside its log was not copied"],
    )
    gate = judge_gates(run_checks(facts), facts)["upgrade"]
    assert (gate.verdict, gate.blocking) == ("unknown", ["UPG-05"])
    live = changed(3001, leader_epoch=None, leader_id=None, fetched_at=NOW)
    assert verdict("UPG-05", live).verdict == "pass", "the leader answered"


def test_a_quorum_that_seeks_a_leader_opens_no_gate() -> None:
    """Real clusters of 3.8.1 and 4.4.0, of which two of three controllers were stopped: quorum-state of the third one says leaderId -1, in
    epoch 12 after a log of epoch 3, and in epoch 3 after one of epoch 2."""
    for epoch in (EPOCH + 1, EPOCH + 9):
        facts = changed(3000, leader_id=-1, leader_epoch=epoch)
        result = verdict("UPG-05", facts)
        assert result.verdict == "unknown"
        assert result.evidence[0].startswith(
            f"controller 3000 knew no leader in epoch {epoch}, and the log ends in epoch {EPOCH}: "
        )
        gate = judge_gates(run_checks(facts), facts)["upgrade"]
        assert (gate.verdict, gate.blocking) == ("unknown", ["UPG-05"])
    elected = replace(
        facts, copies=[*facts.copies[:1], replace(facts.copies[1], leader_id=3001, leader_epoch=EPOCH + 9)]
    )
    assert "knew no leader" not in verdict("UPG-05", elected).evidence[0]
    stopped = [replace(each, producer_snapshot=END) for each in facts.copies]
    assert verdict("UPG-05", replace(facts, copies=stopped)).verdict == "pass", "they were stopped to be copied"


def test_a_controller_that_was_stopped_is_missing_however_little_it_lacks() -> None:
    """It lacks what an idle leader appends in half a minute; the next controller that restarts takes the majority away."""
    down = {"log_end": END - 60, "producer_snapshot": END - 60, "last_append_time": NOW - 30_000}
    result = verdict("UPG-05", changed(3001, **down))
    assert (result.verdict, result.evidence) == (
        "fail",
        [
            f"controller 3001 was stopped when its log was copied, at offset {END - 61}, and the log goes on: do not restart any other "
            "controller"
        ],
    )
    rolled = {**down, "last_append_time": NOW - 400}
    assert verdict("UPG-05", changed(3001, **rolled)).verdict == "pass", "a segment that was just begun"
    assert verdict("UPG-05", changed(3001, **{**down, "producer_snapshot": None})).verdict == "pass", (
        "copied half a minute earlier"
    )


def test_a_voter_that_does_not_fetch_from_a_running_leader_is_missing() -> None:
    """A real quorum of 4.2.0, read live with one of three controllers down: the check asked for that one's log and closed nothing."""
    fetched = replace(kraft().copies[0], high_watermark=END, fetched_at=NOW, silent_voters=(3002,))
    facts = kraft(copies=[fetched], plan=plan_read([fetched]))
    result = verdict("UPG-05", facts)
    assert (result.verdict, result.evidence) == (
        "fail",
        ["controller 3002 does not fetch from the leader: do not restart any other controller"],
    )
    assert "UPG-05" in judge_gates(run_checks(facts), facts)["upgrade"].blocking


def test_a_log_that_ends_minutes_earlier_is_of_a_controller_that_is_down_or_was_copied_then() -> None:
    late = changed(3001, log_end=END - 600, last_append_time=NOW - 300_000)
    assert verdict("UPG-05", late).evidence == [
        "the log of controller 3001 ends 300 s before the longest one: it is down, or it was copied earlier"
    ]
    assert judge_gates(run_checks(late), late)["upgrade"].verdict == "unknown"
    assert verdict("UPG-05", replace(late, capture_skew_limit=600.0)).verdict == "pass"
    assert verdict("UPG-05", replace(late, features={"metadata.version": 4})).verdict == "pass", (
        "an idle leader appends nothing"
    )


def unproved(seconds: int, **values: Any) -> Facts:
    """A quorum of one known copy, whose first change past the committed end came so long before the log's end."""
    activity = kraft().activity
    assert activity is not None
    late = replace(activity, unproved=3, unproved_since_ms=activity.last_time_ms - seconds * 1000)
    return kraft(activity=late, copies=kraft().copies[:1], **values)


def test_a_gate_does_not_open_on_a_state_that_later_records_changed() -> None:
    """One controller's copy of three proves nothing after its checkpoint: an outage since then was not seen."""
    result = verdict("UPG-05", unproved(600))
    text = (
        "3 changes in the log's last 10 min are not proved committed and not judged: "
        "give the logs of a majority of the voters, copied at one time"
    )
    assert (result.verdict, result.evidence) == (
        "unknown",
        [f"give the log of controller 3001, 3002: its lag is unknown; {text}"],
    )
    gate = judge_gates(run_checks(unproved(600)), unproved(600))["upgrade"]
    assert (gate.verdict, gate.blocking) == ("unknown", ["UPG-05"])
    every = replace(unproved(600), copies=kraft().copies)
    assert verdict("UPG-05", every).evidence == [text]


def test_copies_of_one_time_may_differ_by_their_newest_changes() -> None:
    facts = unproved(60)
    assert verdict("UPG-05", facts).evidence == ["give the log of controller 3001, 3002: its lag is unknown"]
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "go"
    assert verdict("UPG-05", replace(facts, copies=kraft().copies)).verdict == "pass"


def test_a_small_quorum_that_is_accepted_is_not_judged_by_an_old_state_either() -> None:
    small = replace(of_voters(3000, 3001), interruption_accepted=True, activity=unproved(600).activity)
    assert verdict("UPG-05", small).verdict == "unknown"
    assert verdict("UPG-05", replace(small, interruption_accepted=False)).verdict == "fail"


def test_a_level_that_is_not_proved_committed_is_not_missing() -> None:
    facts = kraft(features={}, counts={**kraft().counts, "features": {KRAFT: 0}}, other_levels=())
    assert facts.committed is not None
    end = facts.committed.end_exclusive
    assert verdict("FEAT-07", replace(facts, levels=[LevelChange(end, 25)])).verdict == "unknown"
    assert verdict("FEAT-07", replace(facts, levels=[LevelChange(end - 1, 25)])).verdict == "fail"
    assert verdict("FEAT-07", replace(facts, levels=())).verdict == "fail"


def test_a_disk_that_was_formatted_again_says_nothing_of_its_voters_lag() -> None:
    disks = tuple((node, f"disk-of-{node}") for node in NODES)
    *whole, last = [replace(each, voter_directories=disks) for each in kraft().copies]
    copies = [*whole, replace(last, directory_id="another")]
    result = verdict("UPG-05", kraft(copies=copies, plan=plan_read(copies)))
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["/logs/3002 has another directory id than the voter: the lag of controller 3002 is unknown"],
    )
    same = [*whole, last]
    assert verdict("UPG-05", kraft(copies=same, plan=plan_read(same))).verdict == "pass"


def test_an_unreadable_copy_is_no_question_where_every_voter_has_another() -> None:
    stray = replace(kraft().copies[0], controller_id=None, location="/logs/stray", problem="torn")
    assert verdict("UPG-05", kraft(copies=[*kraft().copies, stray])).verdict == "pass"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"problem": "it ends before its checkpoint"}, "can't be read (it ends before its checkpoint)"),
        ({"log_end": None}, "holds no log"),
        ({"controller_id": None, "problem": "torn"}, "can't be read (torn)"),
    ],
)
def test_a_voter_whose_log_can_t_be_read_leaves_the_gate_unknown(values: dict[str, Any], why: str) -> None:
    *whole, last = kraft().copies
    facts = kraft(copies=[*whole, replace(last, **values)])
    result = verdict("UPG-05", facts)
    assert (result.verdict, result.evidence) == (
        "unknown",
        [f"/logs/3002 {why}: the lag of controller 3002 is unknown"],
    )
    gate = judge_gates(run_checks(facts), facts)["upgrade"]
    assert gate.verdict != "go"
    assert "UPG-05" in gate.blocking or gate.verdict == "no_go"


def without_a_time() -> Facts:
    """A log whose newest batch has no time."""
    copies = [replace(each, last_append_time=None) for each in kraft().copies]
    return kraft(copies=copies, plan=plan_read(copies))


@pytest.mark.parametrize(
    ("check_id", "code"),
    [
        ("ISR-08", CHURN),
        ("ISR-11", RECOVERING_LONG),
        ("ISR-12", LOSSY_ELECTION),
        ("ELR-02", LAST_KNOWN_FENCED),
        ("RAS-01", REASSIGNING_LONG),
        ("SEC-09", TOKEN_EXPIRED),
        ("DIR-04", DIRECTORY_UNKNOWN),
    ],
)
def test_what_goes_by_time_is_unknown_without_one(check_id: str, code: str) -> None:
    assert verdict(check_id, kraft()).verdict == "pass"
    assert verdict(check_id, without_a_time()).verdict == "unknown"
    assert verdict(check_id, replace(without_a_time(), findings={code: Sample(1, ("one",))})).verdict == "warn"


def test_whether_a_quorum_has_stopped_is_unknown_without_a_time() -> None:
    """RB-12."""
    back = test_checks.rolled_back()
    copies = [replace(each, last_append_time=None) for each in back.copies]
    assert verdict("RB-12", back).verdict == "pass"
    assert verdict("RB-12", replace(back, copies=copies, plan=plan_read(copies))).verdict == "unknown"


@pytest.mark.parametrize("check_id", ["QRM-07", "BRK-01"])
def test_elections_and_fenced_brokers_of_the_last_hour_are_unknown_without_one(check_id: str) -> None:
    assert verdict(check_id, without_a_time()).verdict == "unknown"


def test_brokers_that_report_no_level_are_not_absent() -> None:
    mute = [broker(node, features=[]) for node in (0, 1, 2)]
    assert verdict("FEAT-01", kraft(brokers_in_kraft=mute)).verdict == "unknown"
    nobody = kraft(brokers_in_kraft=[], counts={**kraft().counts, "brokers": {KRAFT: 0}})
    assert verdict("FEAT-01", nobody).verdict == "not_applicable"


@pytest.mark.parametrize("check_id", ["ISR-07", "DUR-13"])
def test_so_are_the_epochs_of_shrinking_isrs_without_one(check_id: str) -> None:
    """They are looked for in the partitions' history, as all that is compared with the present."""
    now = test_checks.dual_write()
    copies = [replace(each, last_append_time=None) for each in now.copies]
    without = replace(now, copies=copies, plan=plan_read(copies))
    assert (verdict(check_id, now).verdict, verdict(check_id, without).verdict) == ("pass", "unknown")
    assert verdict(check_id, replace(without, findings={"DUR-13": Sample(1, ("one",))})).verdict in ("fail", "warn")


@pytest.mark.parametrize("check_id", ["SEC-07", "DIR-01", "DIR-02", "DIR-03", "DIR-04"])
def test_what_goes_by_level_is_unknown_without_one(check_id: str) -> None:
    assert verdict(check_id, kraft(features={"group.version": 1})).verdict == "unknown"
    assert verdict("UPG-03", kraft(features={"group.version": 1}, kafka_version="3.9")).verdict == "unknown"


@pytest.mark.parametrize(
    ("values", "expected", "without"),
    [
        # It was running: a record after its registration fenced it just now.
        ({"kraft_offset": 41, "kraft_append_time": NOW}, "pass", "unknown"),
        # Its registration fences it, and it may still be starting.
        ({"kraft_append_time": NOW - 59 * 60_000}, "pass", "unknown"),
        ({"kraft_append_time": NOW - 61 * 60_000}, "warn", "unknown"),
    ],
)
def test_a_fenced_broker_without_replicas_may_be_one_that_starts(
    values: dict[str, Any], expected: str, without: str
) -> None:
    new = broker(3, **{"fenced": True, "broker_epoch": 40, "kraft_offset": 40, **values})
    brokers = [broker(0), broker(1), broker(2), new]
    assert verdict("QRM-02", kraft(brokers_in_kraft=brokers)).verdict == expected
    untimed = replace(without_a_time(), brokers_in_kraft=brokers)
    assert verdict("QRM-02", untimed).verdict == without


def test_since_when_a_broker_is_fenced_may_be_unknown() -> None:
    untimed = broker(2, fenced=True, kraft_append_time=None)
    result = verdict("BRK-01", kraft(brokers_in_kraft=[broker(0), broker(1), untimed]))
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["since when broker 2 is fenced is unknown: its last record has no time"],
    )
    long = broker(1, fenced=True, kraft_append_time=END_MS)
    assert verdict("BRK-01", kraft(brokers_in_kraft=[broker(0), long, untimed])).verdict == "warn"


@pytest.mark.parametrize("offset", [20, 43])
@pytest.mark.parametrize(("minutes", "found"), [(59, "pass"), (60, "warn")])
def test_a_broker_without_replicas_may_be_down_for_an_hour_like_any_other(
    offset: int, minutes: int, found: str
) -> None:
    """QRM-02: it registered and has not come up (its epoch is that record's offset), or it was stopped and is fenced."""
    time = (kraft().newest_append_time_ms or 0) - minutes * 60_000
    idle = broker(3, fenced=True, broker_epoch=20, kraft_offset=offset, kraft_append_time=time)
    result = verdict("QRM-02", kraft(brokers_in_kraft=[broker(0), broker(1), broker(2), idle]))
    assert (result.verdict, result.evidence) == (
        found,
        [f"broker 3 is fenced and has no replicas, for {minutes} min"],
    )
    untimed = verdict("QRM-02", kraft(brokers_in_kraft=[broker(0), {**idle, "kraft_append_time": None}]))
    assert untimed.evidence == ["since when broker 3 is fenced is unknown: its last record has no time"]


def test_directories_of_two_brokers_and_one_that_a_broker_names_twice() -> None:
    cloned = [broker(0, log_dirs=["d", "own", "own"]), broker(1, log_dirs=["d"]), broker(2)]
    assert verdict("BRK-02", kraft(brokers_in_kraft=cloned)).evidence == [
        "directory d belongs to brokers 0, 1",
        "broker 0 lists directory own twice",
    ]


def test_keys_that_kafka_4_dropped_are_named_and_no_value_of_them() -> None:
    dropped = {
        "zookeeper.connect": "hush:2181",
        "zookeeper.ssl.keystore.password": "hush",
        "inter.broker.protocol.version": "3.9",
        "log.message.format.version": "3.0",
        "log.message.downconversion.enable": "false",
        "control.plane.listener.name": "hush",
        "password.encoder.secret": "hush",
        "password.encoder.iterations": "4096",
        "reserved.broker.max.id": "1000",
        "broker.id.generation.enable": "false",
        "controlled.shutdown.max.retries": "3",
        "controlled.shutdown.retry.backoff.ms": "5000",
        "leader.imbalance.per.broker.percentage": "10",
        "delegation.token.master.key": "hush",
        "offsets.commit.required.acks": "-1",
    }
    kept = {"node.id": "0", "process.roles": "broker", "log.dirs": "/d", "ssl.key.password": "hush"}
    kept |= {"controlled.shutdown.enable": "true", "delegation.token.secret.key": "hush"}
    text = "\n".join(f"{key}={value}" for key, value in {**dropped, **kept}.items())
    result = verdict("CONF-06", kraft(properties=PropertyFiles(brokers=(node_properties("/etc/b", text),))))
    assert (result.verdict, result.violations) == ("warn", 1)
    assert sorted(key for key in (*dropped, *kept) if key in result.evidence[0]) == sorted(dropped)
    assert "hush" not in result.evidence[0]
    fine = "\n".join(f"{key}={value}" for key, value in kept.items())
    passing = kraft(properties=PropertyFiles(brokers=(node_properties("/etc/b", fine),)))
    assert verdict("CONF-06", passing).verdict == "pass"
    assert verdict("CONF-06", kraft()).verdict in ("unknown", "not_applicable"), "no file was given"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("log.segment.bytes=1048575", "log.segment.bytes is below 1048576"),
        ("log.segment.bytes = 1048576", None),
        ("metadata.log.segment.bytes=8388607", "metadata.log.segment.bytes is below 8388608"),
        ("num.replica.fetchers=0", "num.replica.fetchers is below 1"),
        ("remote.log.manager.copier.thread.pool.size=-1", "remote.log.manager.copier.thread.pool.size is below 1"),
        ("remote.log.manager.expiration.thread.pool.size=1", None),
        ("advertised.listeners=", "advertised.listeners is empty"),
        ("log.dirs= ", "log.dirs is empty"),
        ("log.dirs=/hush,/b,", "log.dirs has an empty member"),
        ("log.dirs=/a , /b", None),
        ("listeners=PLAINTEXT://:9092,,SSL://:9093", "listeners has an empty member"),
        ("ssl.cipher.suites=", None),
        ("sasl.enabled.mechanisms=PLAIN,", "sasl.enabled.mechanisms has an empty member"),
        ("super.users=a,", None),
    ],
)
def test_values_that_kafka_4_does_not_take_are_named(line: str, why: str | None) -> None:
    """CONF-06: what AbstractKafkaConfig.CONFIG_DEF of 3.9.1 parses, and that of 4.0.1 to 4.4.0 does not."""
    files = PropertyFiles(brokers=(node_properties("/etc/b", f"node.id=0\n{line}"),))
    result = verdict("CONF-06", kraft(properties=files))
    assert (result.verdict, result.evidence) == (("pass", []) if why is None else ("warn", [f"/etc/b: {why}"]))


@pytest.mark.parametrize("phase", [Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT])
def test_ciphertext_taken_for_a_password_is_found_in_every_phase_with_kraft(phase: Phase) -> None:
    healthy = {
        Phase.DUAL_WRITE: test_checks.dual_write(),
        Phase.FINALIZED: test_checks.finalized(),
        Phase.KRAFT: kraft(),
    }[phase]
    assert verdict("SEC-04", healthy).verdict == "pass"
    broken = replace(healthy, findings={**(healthy.findings or {}), "SEC-04": Sample(1, ("0: pw",))})
    assert verdict("SEC-04", broken).verdict == "fail"


def test_a_record_that_replay_throws_on_is_told_with_the_copies_that_have_it() -> None:
    poison = Sample(1, ("t partition 0: a change of a partition that was never made (offset 50)",))
    result = verdict("LOG-02", kraft(findings={"PARTITION-UNKNOWN": poison}))
    assert result.evidence == [
        f"{poison.examples[0]}; the same record is in the copies of 3000, 3001, 3002",
    ]
    *whole, last = kraft().copies
    otherwise = replace(last, epoch_starts=((EPOCH - 1, 0), (EPOCH, 60)))
    torn = replace(whole[0], location="/logs/torn", controller_id=3005, problem="torn")
    told = verdict("LOG-02", kraft(findings={"PARTITION-UNKNOWN": poison}, copies=[*whole, otherwise, torn]))
    assert told.evidence[0].endswith("; the same record is in the copies of 3000, 3001")


@pytest.mark.parametrize(("previous", "expected"), [(1498, "warn"), (1499, "pass")])
def test_a_log_does_not_go_on_because_of_a_copy_that_nothing_is_read_of(previous: int, expected: str) -> None:
    """The old copy of a controller that is gone for good reaches back to offset 0, but not up to the others' first record."""
    *others, _ = (copy(node, log_start=900) for node in NODES)
    copies = [*others, copy(NODES[-1], log_end=100, checkpoints=())]
    facts = kraft(copies=copies, plan=plan_read(copies), previous_end=previous)
    assert verdict("LOG-04", facts).verdict == expected


def test_a_voters_own_disk_is_found_beside_an_old_copy_of_another_one() -> None:
    old = copy(NODES[0], location="/logs/old", directory_id="disk-before")
    assert verdict("QRM-03", kraft(copies=[*kraft().copies, old])).verdict == "pass"
    *others, _ = kraft().copies
    wrong = kraft(copies=[*others, copy(NODES[-1], directory_id="disk-before")])
    assert verdict("QRM-03", wrong).evidence == [
        f"voter {NODES[-1]} has directory id disk-of-{NODES[-1]}, its meta.properties disk-before"
    ]


@pytest.mark.parametrize("phase", [Phase.WAITING, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT])
@pytest.mark.parametrize(
    "code",
    ["PARTITION-UNKNOWN", "TOPIC-UNKNOWN", "CLEAR-UNKNOWN", "REMOVAL-UNKNOWN", "BROKER-CHANGE", "DUR-08", "DUR-15"],
)
def test_what_replay_throws_on_it_throws_on_in_every_phase(phase: Phase, code: str) -> None:
    facts = replace(kraft(findings={code: Sample(1, ("one",))}), phase=phase, kafka_version="3.9")
    assert verdict("LOG-02", facts).verdict == "fail"


@pytest.mark.parametrize(
    ("check_id", "certain", "by_release"),
    [("LOG-02", "PARTITION-UNKNOWN", CLEAR_REMOVED), ("CAP-08", "CAP-08", CONFIG_SKIPPED)],
)
def test_a_fault_of_every_release_is_one_where_the_release_is_unknown(
    check_id: str, certain: str, by_release: str
) -> None:
    one = Sample(1, ("one",))
    doubtful = kraft(findings={by_release: one}, kafka_version=None)
    assert verdict(check_id, doubtful).verdict == "unknown"
    assert verdict(check_id, replace(doubtful, findings={by_release: one, certain: one})).verdict == "fail"


def test_before_3_6_a_second_topic_of_a_name_took_the_place_of_the_first() -> None:
    twice = {"DUR-08": Sample(1, ("orders",))}
    assert verdict("LOG-02", kraft(findings=twice, kafka_version="3.5")).verdict == "pass"
    assert verdict("LOG-02", kraft(findings=twice, kafka_version="3.6")).verdict == "fail"
    over = {"LOADED-AGAIN": Sample(1, ("orders",))}
    assert verdict("LOG-02", kraft(findings=over, kafka_version="3.5")).verdict == "pass"
    assert verdict("LOG-02", kraft(findings=over, kafka_version="3.6")).verdict == "fail"


def test_what_zookeeper_still_holds_of_a_broker_after_finalising_is_nobodys() -> None:
    gone = frozenset({0, 1, 2, 9})
    facts = replace(test_checks.finalized(), brokers_with_config=gone, configured_in_kraft=frozenset({0, 1, 2}))
    assert verdict("CFG-03", facts).verdict == "pass"
    in_the_log = replace(facts, configured_in_kraft=gone)
    assert verdict("CFG-03", in_the_log).evidence == ["broker 9 is not registered"]
    assert facts.collected >= {KRAFT}


def test_what_a_removed_topic_left_in_a_checkpoint_is_a_warning_and_no_fault_of_the_copy() -> None:
    left = 'configs ["TOPIC", "orders", "retention.ms"]: in the checkpoint, not in the replay (checkpoint 31)'
    facts = kraft(findings={CONFIG_LEFT: Sample(1, (left,))}, configured_in_kraft=frozenset({9}))
    assert verdict("CAP-08", facts).verdict == "pass"
    assert (verdict("CFG-03", facts).verdict, verdict("CFG-03", facts).evidence) == (
        "warn",
        ["broker 9 is not registered", left],
    )


def test_a_credential_that_a_checkpoint_lacks_is_no_fault_of_the_copy() -> None:
    lacks = 'scram_credentials ["dave", "SCRAM-SHA-512"]: in the replay, not in the checkpoint (checkpoint 31)'
    facts = kraft(findings={SCRAM_LEFT_OUT: Sample(1, (lacks,))})
    assert verdict("CAP-08", facts).verdict == "pass"
    assert (verdict("SEC-12", facts).verdict, verdict("SEC-12", facts).evidence) == ("fail", [lacks])


def test_a_controller_may_have_a_configuration_of_its_own() -> None:
    """A voter, or one that is registered; below metadata.version 3.7-IV0 none is."""
    configured = {"configured_in_kraft": frozenset({0, 3000, 3005, 9})}
    observed = kraft(controllers=[*(controller(node) for node in NODES), controller(3005)], **configured)
    assert verdict("CFG-03", observed).evidence == ["broker 9 is not registered"]
    none = kraft(controllers=(), counts={"brokers": {KRAFT: 3}, "controllers": {KRAFT: 0}}, **configured)
    assert verdict("CFG-03", none).evidence == ["broker 9 is not registered", "broker 3005 is not registered"]


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"replicas": [0, 1, 2], "adding_replicas": [2], "isr": [0, 1]}, {}),
        ({"replicas": [0, 1, 2], "adding_replicas": [2], "isr": [0]}, {1: 1}),
        ({"replicas": [0, 1, 2], "isr": [0, 1]}, {2: 1}),
        ({"replicas": [0, 1, 2], "removing_replicas": [2], "isr": [0, 1]}, {2: 1}),
    ],
)
def test_replicas_that_a_reassignment_adds_are_not_out_of_sync(values: dict[str, Any], missing: dict[int, int]) -> None:
    """UPG-02, START-21 and FIN-08 ask for those that are missing: what is being added is to catch up, not to come back."""
    partitions = table("partitions", [row("t", **values)])
    assert dict(out_of_sync(partitions).select("broker_id", "replicas").iter_rows()) == missing
    shown = by_broker(partitions, []).filter(pl.col("code") == UNDER_REPLICATED)["text"].to_list()
    assert shown == [f"broker {node} is not in the ISR of 1 partition" for node in missing]


def test_a_reassignment_under_way_is_told_where_all_others_are_in_sync() -> None:
    moving = {REASSIGNING: Sample(1, ("t/0: adding [2], removing []",))}
    result = verdict("UPG-02", kraft(findings=moving))
    assert (result.verdict, result.evidence) == (
        "pass",
        ["a reassignment is in progress (1 in all)", "t/0: adding [2], removing []"],
    )


@pytest.mark.parametrize(
    ("version", "checkpoint", "resource"),
    [
        ("3.9", "fail", "warn"),
        ("4.2", "fail", "warn"),
        ("4.3", "pass", "not_applicable"),
        ("4.4", "pass", "not_applicable"),
        (None, "unknown", "unknown"),
    ],
)
def test_from_4_3_on_configurations_that_kafka_does_not_know_are_skipped(
    version: str | None, checkpoint: str, resource: str
) -> None:
    skipped = {CONFIG_SKIPPED: Sample(1, ("configs orders: vendor.key",)), "CFG-01": Sample(1, ("orders: old",))}
    facts = kraft(findings=skipped, kafka_version=version)
    assert verdict("CAP-08", facts).verdict == checkpoint
    assert verdict("CFG-01", facts).verdict == resource


def test_of_a_topic_s_next_change_only_releases_that_refuse_it_are_warned() -> None:
    assert verdict("CFG-01", kraft(kafka_version="4.2")).verdict == "pass"


def test_other_configurations_of_a_group_name_no_topic() -> None:
    other = {**CONFIGS[0], "resource_type": "GROUP", "resource_name": "g", "config": "share.auto.offset.reset"}
    assert not told({"configs": [{**other, "value": "earliest"}]}).keys() & {DEAD_LETTERS, DEAD_LETTER_PREFIX}


def of_cluster(key: str, value: str) -> Row:
    whole = {**CONFIGS[0], "resource_type": "BROKER", "resource_name": ""}
    return {**whole, "config": f"errors.deadletterqueue.{key}", "value": value}


@pytest.mark.parametrize(
    ("topic", "cluster", "is_unknown"),
    [
        ("in-order", (), True),
        ("dlq.in-order", (), False),
        ("in-order", (("topic.name.prefix", ""),), False),
        ("in-order", (("topic.name.prefix", "in-"),), False),
    ],
)
def test_the_prefix_of_dead_letter_topics_has_a_default(
    topic: str, cluster: tuple[tuple[str, str], ...], is_unknown: bool
) -> None:
    """`GroupCoordinatorConfig` of 4.4.0 has dlq.; a property file may set another, and `validateDlqTopic` requires it."""
    names = {"reads-well": topic, "in-order": topic}
    groups = [
        {**each, key: topic}
        for each in CONFIGS
        if each["resource_name"] in names
        for key in (("value",) if each["resource_type"] == "GROUP" else ("resource_name",))
    ]
    shown = told({"configs": [*groups, *(of_cluster(*each) for each in cluster)], "partitions": [row(topic)]})
    assert DEAD_LETTERS not in shown
    assert (DEAD_LETTER_PREFIX in shown) is is_unknown
    facts = kraft(findings={code: Sample(len(texts), tuple(texts)) for code, texts in shown.items()})
    assert verdict("SHR-02", facts).verdict == ("unknown" if is_unknown else "pass")


@pytest.mark.parametrize(
    ("cluster", "texts"),
    [
        ((), ["does not exist"]),
        ((of_cluster("auto.create.topics.enable", "true"),), []),
        ((of_cluster("auto.create.topics.enable", "false"),), ["does not exist"]),
        ((of_cluster("topic.name.prefix", "dlq."),), ["does not begin with dlq.", "does not begin with dlq."]),
        ((of_cluster("topic.name.prefix", ""),), ["does not exist"]),
        ((of_cluster("auto.create.topics.enable", "true"), of_cluster("topic.name.prefix", "in-")), ["begin with in-"]),
    ],
)
def test_dead_letter_topics_are_what_the_cluster_lets_them_be(cluster: tuple[Row, ...], texts: list[str]) -> None:
    """`validateDlqTopic`: the cluster may have missing topics created, and may ask for a prefix of their names."""
    groups = [each for each in CONFIGS if each["resource_name"] in ("reads-too", "reads-well", "in-order")]
    found = told({"configs": [*groups, *cluster], "partitions": [row("in-order")]})
    shown = [*found.get(DEAD_LETTERS, []), *found.get(DEAD_LETTER_MISSING, [])]
    assert (DEAD_LETTER_MISSING in found) is (
        not any("auto.create" in each["config"] for each in cluster) and "exist" in str(texts)
    )
    assert len(shown) == len(texts)
    assert all(text in line for text, line in zip(texts, shown, strict=True))


def test_who_is_in_the_way_of_raising_a_feature_is_named() -> None:
    """FEAT-09: a broker of 4.x that registered with a controller of 3.8 is registered without any feature of a minimum of 0."""
    behind = {"metadata.version": LEVEL, **DEFAULTS, "share.version": 0}
    bare = broker(1, features=[{"name": "metadata.version", "min_level": 1, "max_level": LEVEL}])
    kept_down = verdict("FEAT-09", kraft(features=behind))
    refused = verdict("FEAT-09", kraft(features=behind, brokers_in_kraft=[broker(0), bare, broker(2)]))
    assert [kept_down.evidence, kept_down.violations] == [refused.evidence[:1], refused.violations]
    assert list(refused.evidence[1:]) == ["in the way: Broker 1 does not support this feature."]
