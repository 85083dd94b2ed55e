"""Rules about brokers' and controllers' registrations that several checks use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from schemas.kraft.metadata_versions import FEATURE_NAME, level_name
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.liveness import clocks

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


def voters_of_unknown_flag(facts: Facts) -> set[int]:
    """Voters of which neither a registration nor a property file tells whether the migration is enabled."""
    seen = {c["controller_id"] for c in facts.controllers} | {file.node_id for file in facts.properties.controllers}
    return set(facts.voters) - seen


# ZooKeeper forgets a process that died within its session timeout, at most 40 s by default; the clocks differ too.
_TOGETHER_SECONDS = 60


def both_modes(facts: Facts) -> list[str]:
    """Brokers that are in `/brokers/ids` and running in KRaft mode for longer than one process could be, as violations.

    For that time both sides were written on after the later of the two signs of life.
    """
    found = []
    for broker, written, registered, end in _signs_of_life(facts):
        at_work = not (broker["is_migrating_zk_broker"] or broker["fenced"] or broker["in_controlled_shutdown"])
        seconds = (end - max(written, registered)) / 1000
        if at_work and seconds > _TOGETHER_SECONDS:
            found.append(
                f"broker {broker['broker_id']} is in /brokers/ids and, as incarnation {broker['incarnation_id']}, "
                f"running in KRaft mode, both for {seconds:.0f} s"
            )
    return found


def unregistered_since_start(facts: Facts) -> list[str]:
    """Brokers that have run in ZooKeeper mode for longer than a start takes and are fenced in KRaft since before it, as violations."""
    found = []
    for broker, written, registered, end in _signs_of_life(facts):
        off = broker["is_migrating_zk_broker"] and (broker["fenced"] or broker["in_controlled_shutdown"])
        seconds = (end - written) / 1000
        if off and written > registered and seconds > _TOGETHER_SECONDS:
            found.append(
                f"broker {broker['broker_id']} has been in /brokers/ids for {seconds:.0f} s, and fenced in KRaft since before it started"
            )
    return found


def _signs_of_life(facts: Facts) -> Iterator[tuple[Mapping[str, Any], int, int, int]]:
    """Registrations of brokers that are in `/brokers/ids`, too, with three times in milliseconds: of the znode's last write, of the
    registration's last change, and up to which both sides were written.

    All are by the controllers' clock: ZooKeeper's are converted to it, if the rows show the difference.
    """
    newest, appended = facts.newest_znode_time_ms, facts.newest_append_time_ms
    if newest is None or appended is None:
        return
    ahead = clocks(facts).ahead_ms
    times = {row["broker_id"]: row.get("zk_mtime") for row in facts.brokers_in_zookeeper}
    for broker in facts.brokers_in_kraft:
        written, registered = times.get(broker["broker_id"]), broker.get("kraft_append_time")
        if written is not None and registered is not None:
            yield broker, written - ahead, registered, min(newest - ahead, appended)
