"""START checks: may the migration begin (S§7.2)."""

from __future__ import annotations

from schemas.checks import Phase
from transforms.reconcile.checks.outcome import CheckFunction, Outcome, found, sampled, unknown
from transforms.reconcile.facts import Facts, Sample

CONTROLLER_REGISTRATION_LEVEL = 15


def _ready_brokers(facts: Facts) -> set[int]:
    return {broker["broker_id"] for broker in facts.brokers_in_kraft if broker["is_migrating_zk_broker"]}


def _registered(facts: Facts) -> Outcome:
    """START-01."""
    ready = _ready_brokers(facts)
    missing = sorted(broker["broker_id"] for broker in facts.brokers_in_zookeeper if broker["broker_id"] not in ready)
    return found(f"broker {broker} is in /brokers/ids and not registered as ready to migrate" for broker in missing)


def _replica_holders(facts: Facts) -> Outcome:
    """START-02."""
    ready = _ready_brokers(facts)
    absent = [use for use in facts.replicas if use.broker_id not in ready]
    return found(
        f"broker {use.broker_id} holds {use.replicas} replicas ({', '.join(use.examples)}) "
        "and is not registered as ready to migrate"
        for use in absent
    )


def _topic_ids(facts: Facts) -> Outcome:
    """START-03."""
    return sampled(facts.topics_without_id)


def _states(facts: Facts) -> Outcome:
    """START-04."""
    return sampled(facts.partitions_without_state)


def _controllers(facts: Facts) -> Outcome:
    """START-05."""
    level = facts.features.get("metadata.version", 0)
    if level < CONTROLLER_REGISTRATION_LEVEL:
        return unknown(f"controllers do not register below metadata.version 3.7-IV0 (this cluster is at level {level})")
    ready = {c["controller_id"]: c["zk_migration_ready"] for c in facts.controllers}
    voters = facts.leader.voters if facts.leader else ()
    problems = [f"controller {voter} is not registered" for voter in voters if voter not in ready]
    problems += [f"controller {node} does not have the migration enabled" for node in sorted(ready) if not ready[node]]
    return found(problems)


def _fresh_migration_znode(facts: Facts) -> Outcome:
    """START-07."""
    offset = facts.migration_offset
    if offset is None or offset < 0:
        return found([])
    epoch = (facts.zookeeper or {}).get("kraft_controller_epoch")
    text = f"/migration holds offset {offset} and controller epoch {epoch} of an earlier migration"
    return found([text], tolerable=facts.phase is not Phase.WAITING)


def _loadable(code: str) -> CheckFunction:
    def check(facts: Facts) -> Outcome:
        return sampled(facts.findings.get(code, Sample()))

    return check


CHECKS: dict[str, CheckFunction] = {
    "START-01": _registered,
    "START-02": _replica_holders,
    "START-03": _topic_ids,
    "START-04": _states,
    "START-05": _controllers,
    "START-07": _fresh_migration_znode,
    "START-13": _loadable("START-13"),
    "START-14": _loadable("START-14"),
}
