"""DUR checks: is dual writing complete and alive (S§7.3)."""

from __future__ import annotations

from schemas.classes import DEFECTS
from transforms.reconcile.checks.outcome import CheckFunction, Outcome, found, sampled, unknown
from transforms.reconcile.facts import Facts, Sample

SILENCE_LIMIT_SECONDS = 5.0
LAG_LIMIT_SECONDS = 60.0


def _load_recorded(facts: Facts) -> Outcome:
    """DUR-01."""
    zookeeper = facts.zookeeper or {}
    if not zookeeper.get("migration_present"):
        return found(["/migration does not exist"])
    offset = facts.migration_offset
    if offset is None:
        return found(["/migration has no data that can be read"])
    return found([] if offset > 0 else [f"/migration has offset {offset}: the load is not recorded as finished"])


def _claimed_by_leader(facts: Facts) -> Outcome:
    """DUR-02."""
    zookeeper, leader = facts.zookeeper or {}, facts.leader
    if leader is None:
        return unknown("the log holds no leader change")
    if zookeeper.get("controller_id") is None:
        return found(["/controller does not exist"])
    problems = []
    if not zookeeper.get("controller_persistent"):
        problems.append(f"/controller is an ephemeral znode of broker {zookeeper['controller_id']}")
    if zookeeper["controller_id"] != leader.leader_id:
        problems.append(f"/controller names {zookeeper['controller_id']}, the KRaft leader is {leader.leader_id}")
    if zookeeper.get("controller_kraft_epoch") != leader.epoch:
        problems.append(
            f"/controller has KRaft epoch {zookeeper.get('controller_kraft_epoch')}, the newest epoch is {leader.epoch}"
        )
    if zookeeper.get("controller_epoch_mzxid") != zookeeper.get("controller_czxid"):
        problems.append(
            f"/controller_epoch was written in transaction {zookeeper.get('controller_epoch_mzxid')}, "
            f"/controller made in {zookeeper.get('controller_czxid')}: a claim writes both in one"
        )
    return found(problems)


def _alive(facts: Facts) -> Outcome:
    """DUR-04."""
    lag = facts.lag
    if lag is None:
        return unknown("the lag could not be measured")
    behind = f"ZooKeeper is {lag.records} records and {lag.seconds:.1f} s behind"
    if lag.seconds > LAG_LIMIT_SECONDS:
        return found([behind])
    if lag.silence is not None and lag.silence > SILENCE_LIMIT_SECONDS:
        text = f"/migration was last written {lag.silence:.1f} s before the newest committed record; {behind}"
        return found([text], tolerable=lag.silence <= LAG_LIMIT_SECONDS)
    return found([])


def _no_defects(facts: Facts) -> Outcome:
    """DUR-05."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    return sampled(*(facts.divergences.get(name, Sample()) for name in DEFECTS))


def _mirrored_kinds(facts: Facts) -> Outcome:
    """DUR-06."""
    return sampled(facts.unmirrored_configs)


CHECKS: dict[str, CheckFunction] = {
    "DUR-01": _load_recorded,
    "DUR-02": _claimed_by_leader,
    "DUR-04": _alive,
    "DUR-05": _no_defects,
    "DUR-06": _mirrored_kinds,
}
