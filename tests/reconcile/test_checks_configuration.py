"""Property files before the start: each thing that keeps a node from migrating is told, and a right one is let be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.reconcile import kraft_clusters
from tests.reconcile.test_checks import dual_write, finalized, in_kraft_mode, node, property_files, verdicts, waiting
from transforms.properties import PropertyFiles, ensemble, node_properties
from transforms.reconcile.judge.checks.configuration import protocol_level
from transforms.reconcile.judge.facts import Facts, Quorum
from transforms.reconcile.judge.gates import judge_gates, run_checks

CONTROLLER = """
process.roles=controller
node.id=3000
controller.quorum.voters=3000@c0:9093,3001@c1:9093,3002@c2:9093
controller.listener.names=CONTROLLER
listeners=CONTROLLER://:9093
zookeeper.metadata.migration.enable=true
zookeeper.connect=zk1:2181,zk2:2181/kafka
inter.broker.listener.name=INTERNAL
password.encoder.secret=do-not-keep-me
ssl.keystore.password=nor-me
"""
BROKER = """
broker.id=0
listeners=INTERNAL://:9092,CLIENTS://:9094
advertised.listeners=INTERNAL://b0:9092,CLIENTS://b0:9094
listener.security.protocol.map=INTERNAL:SSL,CLIENTS:SASL_SSL,CONTROLLER:SSL
inter.broker.listener.name=INTERNAL
inter.broker.protocol.version=3.9
zookeeper.metadata.migration.enable=true
zookeeper.connect=ZK2,zk3:2181/kafka/
controller.quorum.voters=3000@c0:9093,3001@c1:9093,3002@c2:9093
controller.listener.names=CONTROLLER
"""


def with_files(controllers: list[str], brokers: list[str], facts: Facts | None = None) -> Facts:
    files = PropertyFiles(
        controllers=tuple(node_properties(f"/etc/c{n}", text) for n, text in enumerate(controllers)),
        brokers=tuple(node_properties(f"/etc/b{n}", text) for n, text in enumerate(brokers)),
    )
    return replace(facts or waiting(), properties=files)


def numbered(text: str, old: str, ids: range) -> list[str]:
    return [text.replace(old, f"{old.partition('=')[0]}={number}", 1) for number in ids]


CONTROLLERS = numbered(CONTROLLER, "node.id=3000", range(3000, 3003))
BROKERS = numbered(BROKER, "broker.id=0", range(3))


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


def test_files_as_kafkas_documentation_has_them_pass() -> None:
    facts = with_files(CONTROLLERS, BROKERS)
    found = verdicts(facts)
    assert [found[name].verdict for name in ("CONF-01", "CONF-02", "CONF-03")] == ["pass"] * 3
    assert judge_gates(run_checks(facts), facts)["start"].verdict == "go"


def test_the_quorum_is_that_of_the_newest_voters_record() -> None:
    """As START-15, UPG-05 and FIN-06 have it; the newest leader's own record may be older."""
    facts = with_files(CONTROLLERS[:2], [])
    assert verdicts(facts)["CONF-01"].evidence == ["give the property file of controller 3002 (properties.controllers)"]
    smaller = replace(facts, quorum=Quorum(1, (kraft_clusters.voters(3000, 3001),)))
    assert verdicts(smaller)["CONF-01"].verdict == "pass"
    assert "the quorum is 3000, 3001" in verdicts(smaller)["CONF-03"].evidence[0]


def test_without_a_level_no_protocol_is_another_than_it() -> None:
    facts = replace(with_files(CONTROLLERS, BROKERS), features={})
    assert not [text for text in verdicts(facts)["CONF-03"].evidence if "metadata.version" in text]


def test_no_secret_of_a_file_is_kept() -> None:
    kept = repr(node_properties("/etc/c0", CONTROLLER))
    assert "do-not-keep-me" not in kept
    assert "nor-me" not in kept


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("process.roles=controller", "process.roles=broker,controller", "a combined node cannot migrate"),
        ("process.roles=controller", "", "process.roles is not set"),
        ("node.id=3000", "", "node.id is not set"),
        ("migration.enable=true", "migration.enable=false", "migration.enable is not true"),
        ("zookeeper.connect=zk1:2181,zk2:2181/kafka", "", "zookeeper.connect is not set"),
        ("controller.quorum.voters=", "other=", "neither controller.quorum.voters"),
        ("voters=3000@c0:9093,", "voters=", "node 3000 is not in its own controller.quorum.voters"),
        ("controller.listener.names=CONTROLLER", "", "controller.listener.names is not set"),
        ("listeners=CONTROLLER://", "listeners=OTHER://", "controller listener CONTROLLER is not in listeners"),
        ("node.id=3000", "node.id=3000\nlistener.security.protocol.map=A:SSL", "protocol.map has no CONTROLLER"),
    ],
)
def test_a_controller_that_could_not_migrate(old: str, new: str, told: str) -> None:
    facts = with_files([changed(CONTROLLER, old, new), *CONTROLLERS[1:]], BROKERS)
    result = verdicts(facts)["CONF-01"]
    assert (result.verdict, any(told in line for line in result.evidence)) == ("fail", True)
    gate = judge_gates(run_checks(facts), facts)["start"]
    assert (gate.verdict, "CONF-01" in gate.blocking) == ("no_go", True)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("broker.id=0", "process.roles=broker\nnode.id=0", "process.roles is set"),
        ("migration.enable=true", "migration.enable=false", "migration.enable is not true"),
        ("zookeeper.connect=ZK2,zk3:2181/kafka/", "", "zookeeper.connect is not set"),
        ("controller.quorum.voters=", "other=", "neither controller.quorum.voters"),
        ("controller.listener.names=CONTROLLER", "", "controller.listener.names is not set"),
        (",CONTROLLER:SSL", "", "protocol.map has no controller listener CONTROLLER"),
        ("advertised.listeners=INTERNAL://b0:9092,", "advertised.listeners=", "it has no listener INTERNAL"),
        ("protocol.version=3.9", "protocol.version=3.3", "3.4 is the lowest"),
        ("protocol.version=3.9", "protocol.version=3.7-IV1\nlog.dirs=/a,/b", "2 log directories need"),
    ],
)
def test_a_broker_that_could_not_migrate(old: str, new: str, told: str) -> None:
    facts = with_files(CONTROLLERS, [changed(BROKER, old, new), *BROKERS[1:]])
    result = verdicts(facts)["CONF-02"]
    assert (result.verdict, any(told in line for line in result.evidence)) == ("fail", True)
    assert judge_gates(run_checks(facts), facts)["start"].verdict == "no_go"


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("3.4", "fail"), ("3.4.1", "fail"), ("3.5.0", "fail"), ("3.5", "pass"), ("3.5.1", "pass"), ("3.9.1", "pass")],
)
def test_a_broker_of_3_4_does_not_start_with_an_authorizer(version: str, verdict: str) -> None:
    """Seen in 3.4.1: "ZooKeeper migration does not yet support authorizers" (`KafkaConfig.validateValues`)."""
    guarded = [f"{text}authorizer.class.name=kafka.security.authorizer.AclAuthorizer\n" for text in BROKERS]
    facts = replace(with_files(CONTROLLERS, guarded), kafka_version=version)
    result = verdicts(facts)["CONF-02"]
    assert (result.verdict, "authorizer.class.name is set" in "".join(result.evidence)) == (verdict, verdict == "fail")
    assert verdicts(replace(with_files(CONTROLLERS, BROKERS), kafka_version=version))["CONF-02"].verdict == "pass"


def test_listeners_that_no_file_names_are_plaintext() -> None:
    """`SocketServerConfigs.LISTENERS_DEFAULT`, and the default of security.inter.broker.protocol (`KafkaConfig`)."""
    unnamed = [changed(text, "inter.broker.listener.name=INTERNAL", "") for text in CONTROLLERS]
    told = verdicts(with_files(unnamed, BROKERS))["CONF-02"]
    assert "it has no listener PLAINTEXT, at which the controllers reach brokers" in told.evidence[0]
    listeners = "listeners=INTERNAL://:9092,CLIENTS://:9094\nadvertised.listeners=INTERNAL://b0:9092,CLIENTS://b0:9094"
    silent = [changed(text, listeners, "") for text in BROKERS]
    assert "it has no listener INTERNAL" in verdicts(with_files(CONTROLLERS, silent))["CONF-02"].evidence[0]
    assert verdicts(with_files(unnamed, silent))["CONF-02"].verdict == "pass"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "told"),
    [
        ("ZK2,zk3:2181/kafka/", "zk2/kafka2", "fail", "the chroot /kafka2"),
        ("ZK2,zk3:2181/kafka/", "zk2", "fail", "the chroot /"),
        ("ZK2,zk3:2181/kafka/", "zk9/kafka", "warn", "other ZooKeeper servers"),
        ("3002@c2:9093", "3009@c2:9093", "fail", "3000, 3001, 3009"),
        ("protocol.version=3.9", "protocol.version=3.8", "fail", "metadata.version is 3.9-IV0"),
        ("inter.broker.protocol.version=3.9", "", "warn", "is not set"),
    ],
)
def test_nodes_that_do_not_agree(old: str, new: str, verdict: str, told: str) -> None:
    facts = with_files(CONTROLLERS, [changed(BROKER, old, new), *BROKERS[1:]])
    result = verdicts(facts)["CONF-03"]
    assert (result.verdict, any(told in line for line in result.evidence)) == (verdict, True)


def test_a_missing_file_is_asked_for_and_no_pass() -> None:
    facts = with_files(CONTROLLERS[:2], BROKERS[:2])
    found = verdicts(facts)
    assert (found["CONF-01"].verdict, found["CONF-02"].verdict) == ("unknown", "unknown")
    assert "controller 3002" in found["CONF-01"].evidence[0]
    assert "broker 2" in found["CONF-02"].evidence[0]
    assert found["CONF-03"].verdict == "unknown"
    assert all(name in found["CONF-03"].evidence[0] for name in ("controller 3002", "broker 2"))
    assert {verdicts(waiting())[name].verdict for name in ("CONF-01", "CONF-02", "CONF-03")} == {"unknown"}


@pytest.mark.parametrize(
    ("controllers", "brokers", "asked"),
    [(CONTROLLERS, [], "brokers"), ([], BROKERS, "controllers"), (CONTROLLERS, BROKERS[:1], "broker 1, 2")],
)
def test_files_of_some_nodes_do_not_show_that_all_agree(controllers: list[str], brokers: list[str], asked: str) -> None:
    result = verdicts(with_files(controllers, brokers))["CONF-03"]
    assert (result.verdict, asked in result.evidence[0]) == ("unknown", True)


@pytest.mark.parametrize("values", [{"migration": False}, {"zookeeper": None}])
def test_a_controller_that_would_finalise_at_its_next_start(values: dict[str, Any]) -> None:
    """KIP-866's first misconfiguration, seen before the restart."""
    files = property_files(controllers=(node(3000, **values), node(3001), node(3002)))
    facts = replace(dual_write(), properties=files)
    assert verdicts(facts)["CONF-04"].verdict == "fail"
    assert judge_gates(run_checks(facts), facts)["dual_write"].verdict == "no_go"
    assert verdicts(replace(in_kraft_mode(), properties=files))["CONF-04"].verdict == "warn", "it is meant"


def test_a_controller_of_which_nothing_tells_the_flag_may_finalise() -> None:
    """As CONF-05 has it: neither its file nor, below metadata.version 3.7-IV0, its registration."""
    two = property_files(controllers=(node(3000), node(3001)))
    counts = {**dual_write().counts, "controllers": {"zookeeper": None, "kraft": 0}}
    early = replace(dual_write(), properties=two, features={"metadata.version": 14}, controllers=[], counts=counts)
    result = verdicts(early)["CONF-04"]
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["give the property file of controller 3002 (properties.controllers)"],
    )
    assert verdicts(replace(dual_write(), properties=two))["CONF-04"].verdict == "pass", (
        "FIN-07 judges its registration"
    )


def test_without_files_the_registrations_tell_where_there_are_any() -> None:
    assert verdicts(dual_write())["CONF-04"].verdict == "not_applicable"
    assert verdicts(replace(dual_write(), features={"metadata.version": 14}))["CONF-04"].verdict == "unknown"


def test_a_flag_left_in_a_file_after_finalising_is_told() -> None:
    """KIP-866's second misconfiguration, in a release whose controllers do not register."""
    counts = {**finalized().counts, "controllers": {"zookeeper": None, "kraft": 0}}
    facts = replace(finalized(), controllers=[], counts=counts, properties=property_files())
    result = verdicts(facts)["CONF-05"]
    assert (result.verdict, result.violations) == ("warn", 3)


def test_a_flag_that_nobody_has_looked_for_is_unknown() -> None:
    """No controller registers below 3.7-IV0, so that without their files nothing shows the flag."""
    counts = {**finalized().counts, "controllers": {"zookeeper": None, "kraft": 0}}
    facts = replace(finalized(), controllers=[], counts=counts)
    result = verdicts(facts)["CONF-05"]
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["give the property file of controller 3000, 3001, 3002 (properties.controllers)"],
    )
    off = tuple(node(number, migration=False) for number in (3000, 3001, 3002))
    some = verdicts(replace(facts, properties=property_files(controllers=off[:2])))["CONF-05"]
    assert (some.verdict, some.evidence) == (
        "unknown",
        ["give the property file of controller 3002 (properties.controllers)"],
    )
    assert verdicts(replace(facts, properties=property_files(controllers=off)))["CONF-05"].verdict == "pass"
    assert verdicts(finalized())["CONF-05"].verdict == "pass", "their registrations show it"
    one = replace(finalized(), controllers=finalized().controllers[:2])
    assert verdicts(one)["CONF-05"].evidence == ["give the property file of controller 3002 (properties.controllers)"]


@pytest.mark.parametrize(
    ("text", "level"),
    [("3.9", 21), ("3.9.1", 21), ("3.7-IV2", 17), ("3.4", 8), ("3.2", 3), ("2.8", 0), ("soon", None), ("9.9", None)],
)
def test_a_protocol_stands_for_its_newest_level(text: str, level: int | None) -> None:
    assert protocol_level(text) == level


def test_an_ensemble_is_its_servers_and_its_chroot() -> None:
    assert ensemble("zk1, ZK2:2182/a/b/") == ensemble("ZK2:2182,zk1:2181/a/b")
    assert ensemble(" ") is None
    assert ensemble("zk1") == ensemble("zk1:2181/")
