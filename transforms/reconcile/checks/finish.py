"""FIN and RB checks: may the migration be finalised, may it be rolled back (S§7.4, S§7.5)."""

from __future__ import annotations

from schemas.classes import DEFECTS, LAG
from transforms.reconcile.checks.outcome import CheckFunction, Outcome, found, sampled, unknown
from transforms.reconcile.facts import Facts, Sample


def _all_kraft(facts: Facts) -> Outcome:
    """FIN-01."""
    waiting = sorted(broker["broker_id"] for broker in facts.brokers_in_kraft if broker["is_migrating_zk_broker"])
    return found(f"broker {broker} is registered in ZooKeeper mode" for broker in waiting)


def _none_in_zookeeper(facts: Facts) -> Outcome:
    """FIN-02."""
    ids = sorted(broker["broker_id"] for broker in facts.brokers_in_zookeeper)
    return found(f"broker {broker} is in /brokers/ids" for broker in ids)


def _not_finalized(facts: Facts) -> Outcome:
    """RB-01."""
    done = [change for change in facts.states if facts.state_name == "POST_MIGRATION"]
    return found([f"finalised at offset {done[-1].offset}"] if done else [])


def _nothing_lost(facts: Facts) -> Outcome:
    """RB-02."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    return sampled(*(facts.divergences.get(name, Sample()) for name in (*DEFECTS, LAG)))


CHECKS: dict[str, CheckFunction] = {
    "FIN-01": _all_kraft,
    "FIN-02": _none_in_zookeeper,
    "RB-01": _not_finalized,
    "RB-02": _nothing_lost,
}
