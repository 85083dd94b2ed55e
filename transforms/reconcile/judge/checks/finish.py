"""FIN and POST checks: may the migration be finalised, and was it (S§7.4)."""

from __future__ import annotations

from schemas.checks import ZOOKEEPER
from schemas.checks.codes import OFFLINE_BY_BROKER, UNDER_REPLICATED
from schemas.classes import DEFECTS
from transforms.kraft.quorum import LogCopy, copies_of_observers, ends_of_voters
from transforms.kraft.release import before
from transforms.outcome import Outcome, found, listed_ids, not_applicable, unknown
from transforms.reconcile.judge.checks.brokers import (
    CONTROLLER_REGISTRATION_LEVEL,
    ready_brokers,
    unready_controllers,
    voters_of_unknown_flag,
    zookeeper_brokers,
)
from transforms.reconcile.judge.checks.dual_write import NO_LAG_IN_3_4
from transforms.reconcile.judge.checks.outcome import CheckFunction, in_tables, sampled
from transforms.reconcile.judge.facts import Facts, Sample, StateChange
from transforms.reconcile.judge.liveness import LivenessState, liveness, measured_skew

# A controller further behind than this was away for more than an hour of an idle cluster's log.
CONTROLLER_LAG_RECORDS = 10_000
# In a log shorter than twice that, one that lacks half of it: its disk was formatted again, or it never caught up. Fewer records
# than these are minutes, by which copies of several controllers may differ.
_LEAST_LAG_RECORDS = 1_000


def _all_kraft(facts: Facts) -> Outcome:
    """FIN-01."""
    return found(f"broker {broker} is registered in ZooKeeper mode" for broker in sorted(ready_brokers(facts)))


def _none_in_zookeeper(facts: Facts) -> Outcome:
    """FIN-02."""
    return found(f"broker {broker} is in /brokers/ids" for broker in sorted(zookeeper_brokers(facts)))


def _brokers_up(facts: Facts) -> Outcome:
    """FIN-03. A broker that is fenced after a controlled shutdown is down on purpose."""
    problems = []
    for broker in sorted(facts.brokers_in_kraft, key=lambda row: int(row["broker_id"])):
        if broker["fenced"] and not broker["in_controlled_shutdown"]:
            problems.append(f"broker {broker['broker_id']} is fenced and did not shut down cleanly")
        elif broker["in_controlled_shutdown"] and not broker["fenced"]:
            problems.append(f"broker {broker['broker_id']} is shutting down")
    return found(problems)


def _last_chance(facts: Facts) -> Outcome:
    """FIN-04."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    lost, now = sampled(facts.differing(*DEFECTS)), liveness(facts)
    if now is None:
        no_lag = NO_LAG_IN_3_4 if before(facts.kafka_version, 3, 5) else "the lag could not be measured"
        return lost if lost.violations else unknown(no_lag)
    if now.in_order or now.state in (LivenessState.LIVE, LivenessState.SILENT):
        return unknown(facts.ends_early) if facts.ends_early and not lost.violations else lost
    return Outcome(lost.violations + 1, (now.text, *lost.evidence))


def _settled(facts: Facts) -> Outcome:
    """FIN-05."""
    unsettled, brokers = facts.found("FIN-05"), facts.found(OFFLINE_BY_BROKER)
    return sampled(Sample(max(unsettled.total, brokers.total), (*brokers.examples, *unsettled.examples)))


def _controllers_close(facts: Facts) -> Outcome:
    """FIN-06."""
    if facts.plan is None or not facts.voters:
        return unknown("the voters are unknown: neither quorum-state nor the log lists them")
    far = far_behind(facts)
    if far:
        return found(far.values())
    unmeasured = why_lag_is_unknown(facts)
    return unknown(unmeasured) if unmeasured else found([])


def why_lag_is_unknown(facts: Facts) -> str:
    """Why the log end of some voters is unknown; empty if it is known of all of them."""
    absent, unreadable = _voters_without_end(facts), unreadable_copies(facts)
    which = f"controller {listed_ids(absent)}"
    if unreadable:
        problem = unreadable[0].problem
        why = "holds no log" if problem is None else f"can't be read ({problem})"
        return f"{unreadable[0].location} {why}: the lag of {which} is unknown"
    others = [copy.location for copy in copies_of_observers(facts.copies, facts.plan) if copy.controller_id in absent]
    if others:
        return f"{others[0]} has another directory id than the voter: the lag of {which} is unknown"
    return f"give the log of {which}: its lag is unknown" if absent else ""


def unreadable_copies(facts: Facts) -> list[LogCopy]:
    """Copies that were given but have no known end: of a voter without another copy, or of an unknown controller."""
    absent = _voters_without_end(facts)
    useless = [copy for copy in facts.copies if not copy.has_log]
    return [copy for copy in useless if absent and (copy.controller_id is None or copy.controller_id in absent)]


def _voters_without_end(facts: Facts) -> set[int]:
    """Voters whose log end is unknown: no copy and no leader's answer has it."""
    return set(facts.voters) - ends_of_voters(facts.copies, facts.plan).keys()


def far_behind(facts: Facts) -> dict[int, str]:
    """Voters whose log ends far before the best one, each with the evidence; voters with an unknown end are left out."""
    ends = ends_of_voters(facts.copies, facts.plan)
    if facts.plan is None or not ends:
        return {}
    best = max(facts.plan.leading.end, *ends.values())
    most = min(CONTROLLER_LAG_RECORDS, max(_LEAST_LAG_RECORDS, best // 2))
    return {
        node: f"the log of controller {node} ends at offset {ends[node] - 1}, the longest at {best - 1}"
        for node in sorted(ends.keys() & set(facts.voters))
        if best - ends[node] > most
    }


def _flags(facts: Facts) -> Outcome:
    """FIN-07. With every broker in KRaft mode it is the operator finalising, and a warning."""
    if (facts.level or 0) < CONTROLLER_REGISTRATION_LEVEL:
        return not_applicable("controllers do not register below metadata.version 3.7-IV0")
    left = ready_brokers(facts) | zookeeper_brokers(facts)
    problems = [f"controller {node} runs without the migration flag" for node in unready_controllers(facts)]
    unseen = voters_of_unknown_flag(facts)
    if unseen and not problems:
        return unknown(
            f"controller {listed_ids(unseen)} is not registered, so its migration flag is not known: give its property file "
            "(properties.controllers)"
        )
    return found(problems, tolerable=not left)


def _finalized(facts: Facts) -> list[StateChange]:
    return [change for change in facts.states if facts.name_of(change) == "POST_MIGRATION"]


def _finalized_once(facts: Facts) -> Outcome:
    """POST-01."""
    repeated = _finalized(facts)[1:]
    return found(f"finalised again at offset {change.offset}" for change in repeated)


def _mirroring_stopped(facts: Facts) -> Outcome:
    """POST-02. /controller stays behind as a leftover; that is not a fault. The clocks of both sides may differ (S§7.3)."""
    if ZOOKEEPER not in facts.collected:
        return not_applicable("ZooKeeper was not given; after finalising it is not needed")
    problems = []
    finalized, offset = _finalized(facts), facts.migration_offset
    if finalized and offset is not None and offset >= finalized[-1].offset:
        problems.append(f"/migration is at offset {offset}, after the finalising at {finalized[-1].offset}")
    late = _written_after(facts, finalized[-1]) if finalized else 0.0
    if not problems and late > 0:
        problems.append(f"/migration was written {late:.0f} s after the finalising at offset {finalized[-1].offset}")
    if (facts.zookeeper or {}).get("controller_persistent") is False:
        problems.append(f"/controller is an ephemeral znode of broker {(facts.zookeeper or {}).get('controller_id')}")
    return found(problems)


def _written_after(facts: Facts, change: StateChange) -> float:
    """Seconds by which `/migration` was written later than the clocks' difference explains; 0 when it was not."""
    written = (facts.zookeeper or {}).get("migration_mtime")
    if written is None or change.append_time_ms is None:
        return 0.0
    skew = measured_skew(facts)
    if skew is None:
        apart, margin = float(written - change.append_time_ms), facts.capture_skew_limit * 1000
    else:
        apart = written - change.append_time_ms - skew.median
        margin = max(facts.alive_limit * 1000, skew.clocks.margin_ms)
    return apart / 1000 if apart > margin else 0.0


def _none_in_zookeeper_mode(facts: Facts) -> Outcome:
    """POST-03. A broker's epoch is the offset of its registration. One that is fenced is not running."""
    finalized = _finalized(facts)
    if not finalized:
        return found([])
    problems = []
    for broker in facts.brokers_in_kraft:
        if not broker["is_migrating_zk_broker"]:
            continue
        if broker["broker_epoch"] > finalized[-1].offset:
            problems.append(
                f"broker {broker['broker_id']} registered in ZooKeeper mode at offset {broker['broker_epoch']}"
            )
        elif not broker["fenced"]:
            problems.append(
                f"broker {broker['broker_id']} still runs in ZooKeeper mode: it gets no metadata since the finalising"
            )
    return found(problems)


def _zookeeper_left_alone(facts: Facts) -> Outcome:
    """POST-04."""
    if ZOOKEEPER not in facts.collected:
        return not_applicable("ZooKeeper was not given; after finalising it is not needed")
    if not (facts.zookeeper or {}).get("migration_present"):
        return not_applicable("/migration is gone, so later writes cannot be recognised")
    return sampled(facts.found("POST-04"))


CHECKS: dict[str, CheckFunction] = {
    "FIN-01": _all_kraft,
    "FIN-02": _none_in_zookeeper,
    "FIN-03": _brokers_up,
    "FIN-04": _last_chance,
    "FIN-05": _settled,
    "FIN-06": _controllers_close,
    "FIN-07": _flags,
    "FIN-08": in_tables(UNDER_REPLICATED),
    "POST-01": _finalized_once,
    "POST-02": _mirroring_stopped,
    "POST-03": _none_in_zookeeper_mode,
    "POST-04": _zookeeper_left_alone,
}
