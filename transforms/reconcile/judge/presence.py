"""The broker ledger: every broker id seen anywhere, with its mode and what it blocks (KIP-866, Broker Presence)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.checks import Phase
from schemas.report import BrokerPresence
from transforms.outcome import listed_ids
from transforms.reconcile.judge.facts import Facts, ReplicaUse

ZOOKEEPER, KRAFT, TRANSITION, MISSING, STOPPED, CONFIG_ONLY = (
    "zookeeper",
    "kraft",
    "transition",
    "missing",
    "stopped",
    "config_only",
)


def broker_ledger(facts: Facts) -> list[BrokerPresence]:
    """One entry per broker id in `/brokers/ids`, registrations, assignments or broker configs, in order.

    `blocks` follows released Kafka, which requires the brokers of assignments; the note shows where KIP-866's text, which also
    requires those named in configurations, would decide otherwise.
    """
    in_zookeeper = {broker["broker_id"] for broker in facts.brokers_in_zookeeper}
    registered = {broker["broker_id"]: broker for broker in facts.brokers_in_kraft}
    uses = {use.broker_id: use for use in facts.replicas}
    shared = _shared_endpoints(facts)
    ids: Iterable[int] = in_zookeeper | registered.keys() | uses.keys() | (facts.brokers_with_config or frozenset())
    return [
        _entry(
            _Sighting(broker, broker in in_zookeeper, registered.get(broker), uses.get(broker), shared.get(broker, ())),
            facts,
        )
        for broker in sorted(ids)
    ]


@dataclass(frozen=True)
class _Sighting:
    """Where a broker id was seen; `twins` are others that claim one of its endpoints."""

    broker: int
    in_zookeeper: bool
    row: Any
    use: ReplicaUse | None
    twins: Sequence[int]

    @property
    def replicas(self) -> int:
        return self.use.replicas if self.use else 0


def _shared_endpoints(facts: Facts) -> dict[int, list[int]]:
    """Registrations of different ids that name one host and port: one process under two ids, or a wrong listener."""
    claims: dict[tuple[str, int], set[int]] = defaultdict(set)
    for broker in facts.brokers_in_kraft:
        for endpoint in broker.get("endpoints") or ():
            claims[endpoint["host"], endpoint["port"]].add(broker["broker_id"])
    shared: dict[int, list[int]] = defaultdict(list)
    for ids in claims.values():
        for node in ids:
            shared[node] = sorted({*shared[node], *ids} - {node})
    return shared


def _entry(seen: _Sighting, facts: Facts) -> BrokerPresence:
    row = seen.row
    mode = _mode(seen.in_zookeeper, row, seen.replicas, facts.phase)
    blocks, notes = _blocks(seen.in_zookeeper, row, seen.replicas, facts.phase)
    return BrokerPresence(
        broker_id=seen.broker,
        mode=mode,
        blocks=blocks,
        in_zookeeper=seen.in_zookeeper,
        registered=row is not None,
        is_migrating_zk_broker=None if row is None else row["is_migrating_zk_broker"],
        fenced=None if row is None else row["fenced"],
        replicas=seen.replicas,
        has_config=seen.broker in (facts.brokers_with_config or ()),
        note="; ".join([*notes, *_remarks(seen, mode)]),
    )


def _remarks(seen: _Sighting, mode: str) -> list[str]:
    """Remarks about a broker besides what it blocks."""
    said = []
    if mode == CONFIG_ONLY:
        said.append("only named in configurations: KIP-866 would wait for it, released Kafka does not")
    if seen.row is not None and seen.row["in_controlled_shutdown"]:
        said.append("shut down cleanly" if seen.row["fenced"] else "shutting down")
    elif seen.row is not None and seen.row["fenced"] and mode != STOPPED:
        said.append("fenced")
    if seen.use is not None and seen.use.adding:
        said.append(f"{seen.use.adding} of its replicas are being added by a reassignment")
    if seen.twins:
        said.append(f"has the same endpoint as broker {listed_ids(seen.twins)}")
    return said


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


def _blocks(in_zookeeper: bool, row: Any, replicas: int, phase: Phase) -> tuple[list[str], list[str]]:
    ready = row is not None and row["is_migrating_zk_broker"]
    if phase in (Phase.ZOOKEEPER, Phase.WAITING) and not ready and (in_zookeeper or replicas):
        what = "in /brokers/ids" if in_zookeeper else f"holds {replicas} replicas and is not running"
        return ["start"], [f"{what}, not registered as ready to migrate"]
    if phase in (Phase.ZOOKEEPER, Phase.WAITING) and replicas and not in_zookeeper:
        return ["start"], [f"holds {replicas} replicas, registered as ready to migrate, and is not running"]
    if phase is Phase.DUAL_WRITE:
        if in_zookeeper:
            return ["finalize"], ["still in ZooKeeper mode"]
        if ready:
            return ["finalize"], ["registered in ZooKeeper mode, not running"]
    return [], []
