"""The gate of a KRaft cluster: may it go to the next release; and what its verdict is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import KRAFT, Phase
from schemas.checks.codes import CHURN, HEALED_ELECTION, UNDER_REPLICATED
from schemas.report import Divergences, Gate
from tests.reconcile.kraft_clusters import (
    LEVEL,
    NODES,
    behind,
    broker,
    controller,
    copy,
    files,
    found,
    ghost,
    kraft,
    leaderless,
    voter,
    voters,
)
from tests.reconcile.test_checks import finalized
from transforms.properties import NodeProperties, NodeSettings, PropertyFiles, node_properties
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, PartitionCounts, Quorum, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.kraft_summary import kraft_health

# What a controller of 4.3.1 answered when its release's level was asked for with such a node about.
REFUSED = (
    "The update failed for all features since the following feature had an error: "
    "Invalid update version 30 for feature metadata.version. Controller 3003 only supports versions 1-21"
)

# Nodes report kraft.version from 3.9 on.
REPORTED_BY_3_8 = [{"name": "metadata.version", "min_level": 1, "max_level": 20}]


def upgrade(facts: Facts) -> Gate:
    return judge_gates(run_checks(facts), facts)["upgrade"]


def verdict(facts: Facts, gate: str | None = None) -> str:
    checks = run_checks(facts)
    return summary.verdict(Divergences(), checks, judge_gates(checks, facts), facts.phase, gate)


def check(facts: Facts, check_id: str) -> tuple[str, list[str]]:
    result = next(result for result in run_checks(facts) if result.id == check_id)
    return result.verdict, result.evidence


def old_ghost() -> Facts:
    """At the level of 3.9 on 4.3, with a removed controller that was last started on 3.9."""
    rows = [controller(node) for node in NODES] + [controller(3003, 21)]
    rows[-1]["features"][0]["min_level"] = 1
    return behind(controllers=rows)


def test_a_healthy_cluster_is_clean_and_may_go_on() -> None:
    gate = upgrade(kraft())
    assert (gate.verdict, gate.blocking, verdict(kraft())) == ("go", [], "clean")
    assert "metadata.version is at 4.3-IV0 (30), the newest of Kafka 4.3" in gate.explanation
    spoken = [result.id for result in run_checks(kraft()) if result.verdict in ("unknown", "warn", "fail")]
    assert spoken == [], "no ZooKeeper and no property files are missed"


def test_a_ghost_that_is_too_old_blocks_in_kafkas_own_words() -> None:
    gate = upgrade(old_ghost())
    assert (gate.verdict, gate.blocking) == ("no_go", ["UPG-01"])
    assert gate.explanation == REFUSED
    assert verdict(old_ghost()) == "warnings", "nothing is broken"
    assert verdict(old_ghost(), "upgrade") == "errors"


def test_every_node_in_the_way_is_named_though_kafka_names_the_first() -> None:
    rows = [controller(node) for node in NODES] + [controller(3003, 21), controller(3004, 21)]
    old = [broker(0), broker(1), broker(2), broker(9, fenced=True, features=controller(9, 21)["features"])]
    _, evidence = check(behind(controllers=rows, brokers_in_kraft=old), "UPG-01")
    assert "Broker 9 only supports versions" in evidence[0]
    # As the controller comes upon them: by the hash of their ids.
    assert [text.split(" only")[0] for text in evidence[1:]] == ["Controller 3004", "Controller 3003"]


def test_a_broker_that_is_registered_without_its_features_blocks_the_upgrade_of_all() -> None:
    """A real combined cluster, rolled from 3.8.1 to 4.0.1: the first node registered with a controller of 3.8.1, whose request has no
    feature with a minimum of 0 (`BrokerRegistrationRequest.Builder`, below version 4). The words are those of its `kafka-features.sh`."""
    bare = [feature for feature in broker(1)["features"] if feature["name"] == "metadata.version"]
    rolled = behind(20, brokers_in_kraft=[broker(0), broker(1, features=bare), broker(2)])
    assert upgrade(rolled).blocking == ["UPG-01"]
    said, *others = check(rolled, "UPG-01")[1]
    assert said == (
        "The update failed for all features since the following feature had an error: "
        "Invalid update version 1 for feature group.version. Broker 1 does not support this feature."
    )
    assert others == []
    # With the levels of its release there is nothing to raise.
    assert check(kraft(brokers_in_kraft=rolled.brokers_in_kraft), "UPG-01")[0] == "pass"
    # Below 4.0 the tool raises metadata.version alone.
    assert check(behind(19, kafka_version="3.9", brokers_in_kraft=rolled.brokers_in_kraft), "UPG-01")[0] == "pass"


def test_a_ghost_that_supports_all_is_a_warning_and_the_way_is_open() -> None:
    assert upgrade(kraft(controllers=ghost())).verdict == "go"
    assert check(kraft(controllers=ghost()), "QRM-01")[0] == "warn"
    assert verdict(kraft(controllers=ghost())) == "warnings"


def test_partitions_without_a_leader_are_an_error_of_the_present() -> None:
    assert verdict(leaderless()) == "errors"
    assert upgrade(leaderless()).blocking == ["ISR-16"]


def test_a_count_that_the_list_contradicts_is_unknown_and_opens_nothing() -> None:
    facts = kraft(partition_counts={KRAFT: PartitionCounts(10, leaderless=3)})
    assert check(facts, "ISR-16")[0] == "unknown"
    assert upgrade(facts).verdict == "unknown"


def test_what_is_healed_is_told_and_warns_no_more() -> None:
    text = "t/1: unclean election of broker 2 at offset 2405; before it ISR [], ELR [1]"
    facts = kraft(findings={HEALED_ELECTION: Sample(1, (text,))})
    assert check(facts, "ISR-12") == ("pass", [f"healed since: {text}"])
    assert verdict(facts) == "clean"


def test_brokers_that_are_rolled_through_a_migration_are_no_churn() -> None:
    assert check(found(CHURN), "ISR-08")[0] == "warn"
    assert check(found(CHURN, phase=Phase.DUAL_WRITE), "ISR-08")[0] == "pass"


def test_without_its_release_or_its_registrations_nothing_opens() -> None:
    assert upgrade(kraft(kafka_version=None)).verdict == "unknown"
    assert upgrade(kraft(controllers=())).verdict == "unknown"
    assert upgrade(kraft(brokers_in_kraft=())).verdict == "unknown"
    assert upgrade(kraft(findings=None)).verdict == "unknown"


def test_below_the_level_at_which_controllers_register_kafka_does_not_ask_them() -> None:
    """From 3.7 on it only logs that it could not; before that it asked over the network, which no file tells."""
    nobody = {"controllers": (), "counts": {**kraft().counts, "controllers": {KRAFT: 0}}}
    facts = behind(14, kafka_version="3.9", **nobody)
    verdict, evidence = check(facts, "UPG-01")
    assert verdict == "pass"
    assert "Kafka accepts it without asking them" in evidence[1]
    assert upgrade(facts).verdict == "go"
    old = behind(11, kafka_version="3.6", **nobody)
    assert check(old, "UPG-01")[0] == "unknown"
    assert upgrade(old).verdict == "unknown"


def test_a_dynamic_quorum_is_not_asked_for_registrations() -> None:
    """`QuorumFeatures.quorumNodeIds` are those of controller.quorum.voters, which a dynamic quorum has not."""
    missing = [controller(node) for node in NODES[:2]]
    assert check(behind(controllers=missing), "UPG-01")[0] == "pass"
    static = behind(controllers=missing, quorum=Quorum())
    settings = NodeSettings(voters=frozenset(f"{node}@host:9093" for node in NODES))
    properties = PropertyFiles(controllers=(NodeProperties("/etc/3000.properties", 3000, False, False, settings),))
    for facts in (static, behind(controllers=missing, properties=properties)):
        verdict, evidence = check(facts, "UPG-01")
        assert verdict == "fail"
        assert "controller 3002 has not registered, and may not support this feature" in evidence[0]
    assert check(behind(controllers=missing, properties=files(named=False)), "UPG-01")[0] == "pass"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"brokers_in_kraft": [broker(0), broker(1, features=REPORTED_BY_3_8)]},
            "Broker 1 does not support this feature.",
        ),
        (
            {"controllers": [*ghost()[:3], {**controller(3003), "features": REPORTED_BY_3_8}]},
            "Controller 3003 does not support this feature.",
        ),
    ],
    ids=["a broker", "a controller that is not a voter"],
)
def test_who_else_keeps_a_quorum_static(values: dict[str, Any], said: str) -> None:
    """`FeatureControlManager.reasonNotSupported` asks every registered node, for kraft.version as for any feature."""
    assert check(kraft(quorum=Quorum()), "FEAT-10")[0] == "pass"
    two = [controller(node) for node in NODES[:2]]
    assert check(kraft(quorum=Quorum(), controllers=two), "FEAT-10") == (
        "unknown",
        ["the features of voters 3002 are unknown: they are not registered"],
    )
    assert check(kraft(quorum=Quorum(), **values), "FEAT-10") == ("warn", [said])


def test_how_to_be_rid_of_a_ghost_goes_by_the_level() -> None:
    """KIP-1312: controllers can be unregistered from 4.4-IV2 on."""
    [below] = check(kraft(controllers=ghost()), "QRM-01")[1]
    assert "it can be unregistered from metadata.version 4.4-IV2 (33) on" in below
    newest = kraft(controllers=ghost(), features={"metadata.version": 33}, kafka_version="4.4")
    [text] = check(newest, "QRM-01")[1]
    assert text.endswith("kafka-cluster.sh unregister-controller --id 3003 unregisters it once it is stopped")


def test_a_ghost_that_is_a_broker_too_has_to_give_up_the_role() -> None:
    """QRM-01: a combined node of a real 4.4.0 cluster, removed as a voter and unregistered, was registered again when it started."""
    both = [*(broker(node) for node in (0, 1, 2)), broker(3003)]
    [text] = check(kraft(controllers=ghost(), brokers_in_kraft=both), "QRM-01")[1]
    assert text.endswith(
        "; it is a broker, too: with the role controller in its process.roles it registers again whenever it starts"
    )


def test_a_finished_migration_is_asked_and_one_under_way_is_not() -> None:
    assert upgrade(replace(kraft(), phase=Phase.FINALIZED, states=())).verdict != "not_applicable"
    for phase in set(Phase) - {Phase.FINALIZED, Phase.KRAFT}:
        assert upgrade(kraft(phase=phase)).verdict == "not_applicable"


@pytest.mark.parametrize(
    ("sets", "verdict_of_size"),
    [
        ((voters(*NODES),), "pass"),
        ((voters(*NODES), voters(*NODES, 3003, at=900)), "pass"),
        ((voters(*NODES), voters(*NODES, 3003, at=900), voters(*NODES, at=950)), "pass"),
        ((voters(*NODES), voters(3000, 3001, at=900)), "warn"),
        ((voters(*NODES), voters(3000, 3001, at=900), voters(*NODES, at=950)), "warn"),
    ],
    ids=["three", "grown to four", "grown and back", "shrunk to two", "out and in again"],
)
def test_a_quorum_may_grow_and_is_told_when_it_shrinks(sets: tuple, verdict_of_size: str) -> None:  # type: ignore[type-arg]
    assert check(kraft(quorum=Quorum(1, sets)), "QRM-05")[0] == verdict_of_size


def test_a_voter_that_came_back_is_told_with_both_offsets() -> None:
    """A real 4.2.0 with controller.quorum.auto.join.enable: removed at 406, it joined again at 412; both were called 412."""
    sets = (voters(*NODES), voters(3000, 3001, at=406), voters(*NODES, at=412))
    assert check(kraft(quorum=Quorum(1, sets)), "QRM-05")[1] == [
        "voter 3002 was removed at offset 406 and added again at offset 412"
    ]


def test_a_voter_that_its_operator_added_again_is_no_fault() -> None:
    """A real 4.4.0: remove-controller, then add-controller within three seconds. Controllers do not join on their own by default."""
    again = Quorum(1, (voters(*NODES), voters(3000, 3001, at=807), voters(*NODES, at=813)))
    for joins_alone, verdict_of_size in ((False, "pass"), (True, "warn")):
        setting = "controller.quorum.auto.join.enable=true" if joins_alone else ""
        file = node_properties("/etc/3002.properties", f"process.roles=controller\nnode.id=3002\n{setting}\n")
        facts = kraft(quorum=again, properties=PropertyFiles(controllers=(file,)))
        assert check(facts, "QRM-05")[0] == verdict_of_size
    # KIP-1186 is of 4.2.
    assert check(kraft(quorum=again, kafka_version="4.1"), "QRM-05")[0] == "pass"
    assert check(kraft(quorum=again, kafka_version="4.2"), "QRM-05")[0] == "warn"


def test_a_voter_that_is_off_again_has_not_undone_its_removal() -> None:
    """A real 4.4.0: removed, added, removed, and added with a new disk. The first return is history, not a fault of the quorum."""
    sets = (voters(*NODES), voters(3000, 3001, at=807), voters(*NODES, at=813), voters(3000, 3001, at=819))
    assert check(kraft(quorum=Quorum(1, sets)), "QRM-05")[1] == ["2 voters, fewer than before: 3000, 3001"]
    replaced = (*voters(3000, 3001).voters, voter(3002, directory_id="a-new-directory"))
    mended = (*sets, replace(voters(*NODES, at=848), voters=replaced))
    assert check(kraft(quorum=Quorum(1, mended)), "QRM-05")[0] == "pass"


def test_a_voter_that_comes_back_with_another_directory_has_a_new_disk() -> None:
    """With controller.quorum.auto.join.enable its own controller removes the old entry and adds itself within seconds (KIP-1186)."""
    replaced = (*voters(3000, 3001).voters, voter(3002, directory_id="a-new-directory"))
    sets = (voters(*NODES), voters(3000, 3001, at=900), replace(voters(*NODES, at=950), voters=replaced))
    assert check(kraft(quorum=Quorum(1, sets)), "QRM-05")[0] == "pass"


def test_the_summary_tells_voters_from_ghosts_and_counts_partitions() -> None:
    facts = kraft(
        controllers=ghost(),
        partition_counts={KRAFT: PartitionCounts(97, leaderless=3, short=82, recovering=2, moved=44)},
        brokers_in_kraft=[broker(0), broker(1, fenced=True)],
    )
    health = kraft_health(facts)
    assert health is not None
    assert [(member.controller_id, member.voter, member.leader) for member in health.quorum] == [
        (3000, True, True),
        (3001, True, False),
        (3002, True, False),
        (3003, False, False),
    ]
    assert health.quorum[0].directory_id == voter(3000).directory_id
    assert (health.brokers, health.at_work, health.kraft_version) == (2, 1, 1)
    assert (health.partitions, health.leaderless, health.under_replicated, health.recovering) == (97, 3, 82, 2)
    assert health.metadata_version == f"4.3-IV0 ({LEVEL})"
    static = kraft_health(kraft(quorum=Quorum(0), copies=[copy(3000)]))
    assert static is not None
    assert [member.directory_id for member in static.quorum] == [None, None, None]


@pytest.mark.parametrize(("release", "verdict"), [("3.9", "warn"), ("4.0", "warn"), ("4.1", "not_applicable")])
def test_a_bootstrap_checkpoint_of_an_old_level_stops_4_0_0_alone(release: str, verdict: str) -> None:
    """`BootstrapMetadata.fromRecords` throws on level 4 in the classes of 4.0.0, not in those of 4.0.1 to 4.4.0 (KAFKA-19192)."""
    copies = [copy(node, bootstrap_level=4) for node in (3000, 3001, 3002)]
    assert check(kraft(copies=copies, kafka_version=release), "FEAT-08")[0] == verdict


@pytest.mark.parametrize("healthy", [finalized, kraft])
def test_a_cluster_that_may_not_be_upgraded_is_not_clean(healthy: Callable[[], Facts]) -> None:
    facts = replace(healthy(), findings={**(healthy().findings or {}), UNDER_REPLICATED: Sample(1, ("broker 2",))})
    assert (verdict(healthy()), upgrade(facts).blocking, verdict(facts)) == ("clean", ["UPG-02"], "warnings")
