"""The broker ledger: every broker id seen anywhere, what mode it is in and what it blocks (KIP-866, Broker Presence)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from schemas.checks import Phase
from schemas.report import BrokerPresence
from transforms.reconcile.facts import Facts

ZOOKEEPER, KRAFT, TRANSITION, MISSING, STOPPED, CONFIG_ONLY = (
    "zookeeper",
    "kraft",
    "transition",
    "missing",
    "stopped",
    "config_only",
)


def broker_ledger(facts: Facts) -> list[BrokerPresence]:
    """One entry a broker id in `/brokers/ids`, registrations, assignments or broker configs, in order."""
    in_zookeeper = {broker["broker_id"] for broker in facts.brokers_in_zookeeper}
    registered = {broker["broker_id"]: broker for broker in facts.brokers_in_kraft}
    replicas = {use.broker_id: use.replicas for use in facts.replicas}
    ids: Iterable[int] = in_zookeeper | registered.keys() | replicas.keys() | facts.brokers_with_config
    return [
        _entry(broker, broker in in_zookeeper, registered.get(broker), replicas.get(broker, 0), facts)
        for broker in sorted(ids)
    ]


def _entry(broker: int, in_zookeeper: bool, row: Any, replicas: int, facts: Facts) -> BrokerPresence:
    mode = _mode(in_zookeeper, row, replicas, facts.phase)
    blocks, notes = _blocks(broker, in_zookeeper, row, replicas, facts.phase)
    if mode == CONFIG_ONLY:
        notes.append("only named in configurations: KIP-866 would wait for it, Kafka as released does not")
    if row is not None and row["fenced"] and mode != STOPPED:
        notes.append("fenced")
    return BrokerPresence(
        broker_id=broker,
        mode=mode,
        blocks=blocks,
        in_zookeeper=in_zookeeper,
        registered=row is not None,
        is_migrating_zk_broker=None if row is None else row["is_migrating_zk_broker"],
        fenced=None if row is None else row["fenced"],
        replicas=replicas,
        has_config=broker in facts.brokers_with_config,
        note="; ".join(notes),
    )


def _mode(in_zookeeper: bool, row: Any, replicas: int, phase: Phase) -> str:
    if row is None:
        if in_zookeeper:
            return ZOOKEEPER
        return MISSING if replicas else CONFIG_ONLY
    migrating = row["is_migrating_zk_broker"]
    if in_zookeeper:
        return ZOOKEEPER if migrating or phase is Phase.ROLLED_BACK else TRANSITION
    if not migrating:
        return KRAFT
    return STOPPED if row["fenced"] else TRANSITION


def _blocks(broker: int, in_zookeeper: bool, row: Any, replicas: int, phase: Phase) -> tuple[list[str], list[str]]:
    ready = row is not None and row["is_migrating_zk_broker"]
    if phase in (Phase.ZOOKEEPER, Phase.WAITING) and not ready and (in_zookeeper or replicas):
        what = "in /brokers/ids" if in_zookeeper else f"holds {replicas} replicas and is not running"
        return ["start"], [f"{what}, not registered as ready to migrate"]
    if phase is Phase.DUAL_WRITE:
        if in_zookeeper:
            return ["finalize"], ["still in ZooKeeper mode"]
        if ready:
            return ["finalize"], ["registered in ZooKeeper mode, not running"]
    return [], []
