"""The broker ledger: what blocks, and what else a reader must know of a broker."""

from __future__ import annotations

from typing import Any

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.report import BrokerPresence
from transforms.reconcile.judge.facts import Facts, ReplicaUse
from transforms.reconcile.judge.presence import broker_ledger


def registered(broker_id: int, **values: Any) -> dict[str, Any]:
    return {
        "broker_id": broker_id,
        "is_migrating_zk_broker": True,
        "fenced": False,
        "in_controlled_shutdown": False,
        "endpoints": [{"name": "PLAINTEXT", "host": f"host-{broker_id}", "port": 9092}],
        **values,
    }


def ledger(phase: Phase = Phase.WAITING, **values: Any) -> dict[int, BrokerPresence]:
    facts = Facts(phase=phase, collected=frozenset({ZOOKEEPER, KRAFT}), kafka_version="3.9.1", **values)
    return {entry.broker_id: entry for entry in broker_ledger(facts)}


def test_kip_866_would_wait_for_a_broker_that_only_configurations_name() -> None:
    entry = ledger(brokers_with_config=frozenset({7}))[7]
    assert (entry.mode, entry.blocks) == ("config_only", [])
    assert "KIP-866 would wait for it" in entry.note


def test_both_rules_wait_for_a_missing_broker_with_replicas() -> None:
    entry = ledger(brokers_with_config=frozenset({7}), replicas=[ReplicaUse(7, 4, ("orders/0",))])[7]
    assert (entry.mode, entry.blocks) == ("missing", ["start"])
    assert "KIP-866" not in entry.note


def test_a_broker_is_in_the_ledger_wherever_it_was_seen() -> None:
    entries = ledger(
        brokers_in_zookeeper=[{"broker_id": 1}],
        brokers_in_kraft=[registered(2, fenced=True)],
        replicas=[ReplicaUse(3, 4, ())],
        brokers_with_config=frozenset({4}),
    )
    modes = {1: "zookeeper", 2: "stopped", 3: "missing", 4: "config_only"}
    assert {node: entry.mode for node, entry in entries.items()} == modes


def test_replicas_that_a_reassignment_adds() -> None:
    use = ReplicaUse(2, 10, (), adding=3)
    assert "3 of its replicas are being added" in ledger(brokers_in_kraft=[registered(2)], replicas=[use])[2].note


def test_a_broker_that_leaves_and_one_that_left_in_order() -> None:
    leaving = registered(0, in_controlled_shutdown=True)
    left = registered(1, in_controlled_shutdown=True, fenced=True)
    gone = registered(2, is_migrating_zk_broker=False, fenced=True)
    moving = [registered(3), registered(4, is_migrating_zk_broker=False)]
    running = [{"broker_id": node} for node in (0, 4)]
    entries = ledger(Phase.DUAL_WRITE, brokers_in_kraft=[leaving, left, gone, *moving], brokers_in_zookeeper=running)
    modes = ["zookeeper", "stopped", "kraft", "transition", "transition"]
    assert [entries[node].mode for node in range(5)] == modes
    assert entries[0].note.endswith("shutting down")
    assert entries[1].note.endswith("shut down cleanly")
    assert entries[2].note == "fenced"


def test_two_ids_at_one_endpoint_name_each_other() -> None:
    same = [{"name": "PLAINTEXT", "host": "host-0", "port": 9092}]
    entries = ledger(brokers_in_kraft=[registered(0), registered(1, endpoints=same), registered(2)])
    assert "same endpoint as broker 1" in entries[0].note
    assert "same endpoint as broker 0" in entries[1].note
    assert "endpoint" not in entries[2].note
