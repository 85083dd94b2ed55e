"""What several checks ask of the brokers' and controllers' registrations."""

from __future__ import annotations

from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from transforms.reconcile.facts import Facts

# Controllers register from 3.7-IV0 on (KIP-919).
CONTROLLER_REGISTRATION_LEVEL = 15


def ready_brokers(facts: Facts) -> set[int]:
    """Brokers registered in ZooKeeper mode, ready to migrate."""
    return {broker["broker_id"] for broker in facts.brokers_in_kraft if broker["is_migrating_zk_broker"]}


def zookeeper_brokers(facts: Facts) -> set[int]:
    """Brokers in `/brokers/ids`."""
    return {broker["broker_id"] for broker in facts.brokers_in_zookeeper}


def other_protocols(facts: Facts, level: int) -> list[str]:
    """Brokers in ZooKeeper mode whose inter.broker.protocol.version is not `level`, as violations.

    Such a broker advertises metadata.version from its protocol's level to the same (S§9.2).
    """
    found = []
    for broker in facts.brokers_in_kraft:
        if not broker["is_migrating_zk_broker"]:
            continue
        for feature in broker["features"] or ():
            levels = (feature["min_level"], feature["max_level"])
            if feature["name"] == FEATURE_NAME and levels != (level, level):
                names = " to ".join(level_name(number) for number in dict.fromkeys(levels))
                found.append(f"broker {broker['broker_id']} runs {names}, the cluster is at {level_name(level)}")
    return found


def unready_controllers(facts: Facts) -> list[int]:
    """Controllers registered without the migration flag."""
    return sorted(c["controller_id"] for c in facts.controllers if not c["zk_migration_ready"])
