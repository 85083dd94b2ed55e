"""ISR checks (S§8.3): what the tables and the partitions' history show, and what of it is over."""

from __future__ import annotations

from collections.abc import Callable

from schemas.checks import BY_ZOOKEEPER, KRAFT, ZOOKEEPER, Phase
from schemas.checks.codes import (
    CHURN,
    CHURN_PAST,
    FLAPPING,
    HEALED_ELECTION,
    ISR_ORDER,
    LOSSY_ELECTION,
    NO_LEADER_FOR_GOOD,
    QUIET_SHRINK,
    RECOVERING_LONG,
)
from transforms.kraft.release import before
from transforms.outcome import EVIDENCE_LIMIT, Outcome, not_applicable, passed, unknown
from transforms.reconcile.judge.checks.brokers import zookeeper_brokers
from transforms.reconcile.judge.checks.outcome import CheckFunction, by_time, in_tables, sampled
from transforms.reconcile.judge.checks.rollback import epochs_too_high
from transforms.reconcile.judge.facts import Facts, Sample
from transforms.reconcile.judge.kraft_queries import MIN_ISR

_NO_PARTITIONS = "the cluster has no partitions"


def _of_partitions(code: str) -> CheckFunction:
    """A rule of partitions' rows; a cluster without partitions has nothing to judge."""

    def check(facts: Facts) -> Outcome:
        if facts.partition_counts is not None and not any(c.partitions for c in facts.partition_counts.values()):
            return not_applicable(_NO_PARTITIONS)
        return sampled(facts.found(code))

    return check


def _epochs(facts: Facts) -> Outcome:
    """ISR-06: a checkpoint is the other account of the epochs that the records are compared with."""
    start = -1 if facts.plan is None or facts.plan.base_checkpoint is None else facts.plan.base_checkpoint[1].offset
    others = [c for copy in facts.copies if copy.has_log for c in copy.checkpoints if c.complete and c.offset > start]
    if not others and facts.plan is not None:
        return not_applicable("no later checkpoint exists to compare the partitions' epochs with")
    return sampled(facts.found("ISR-06"))


def _bumps(facts: Facts) -> Outcome:
    """ISR-07: always before 3.6 and while the cluster migrates, later below metadata.version 3.6-IV0 (S§3.3)."""
    if facts.kafka_version is None:
        return unknown("the Kafka release is unknown")
    level = max((change.level for change in facts.levels), default=0)
    if facts.phase is not Phase.DUAL_WRITE and not before(facts.kafka_version, 3, 6) and level >= 12:
        return not_applicable("from metadata.version 3.6-IV0 on a shrinking ISR leaves the leader epoch as it is")
    return sampled(facts.found(QUIET_SHRINK, "DUR-13"))


def _churn(facts: Facts) -> Outcome:
    """ISR-08. While brokers are rolled through the migration, they leave their ISRs one after the other: a remark, not a warning."""
    flapping, again, past = facts.found(FLAPPING), facts.found(CHURN), facts.found(CHURN_PAST)
    if facts.phase is Phase.DUAL_WRITE:
        return _with_remarks(flapping, Sample(0, again.examples + past.examples))
    return _with_remarks(Sample(again.total + flapping.total, again.examples + flapping.examples), past)


def _with_remarks(violations: Sample, remarks: Sample) -> Outcome:
    """Violations first, then remarks."""
    evidence = (*violations.examples, *remarks.examples)[:EVIDENCE_LIMIT]
    return Outcome(violations.total, evidence)


def _under_min(facts: Facts) -> Outcome:
    """ISR-09. Where nothing dynamic sets a default, the brokers' property files do."""
    side = ZOOKEEPER if _by_zookeeper(facts) else KRAFT
    found = facts.found("ISR-09")
    if found.total or has_dynamic_min_isr(facts, side) or (_brokers(facts) and not without_static_min_isr(facts)):
        return sampled(found)
    return passed("min.insync.replicas has no dynamic default: only topics that set their own were judged")


def _by_zookeeper(facts: Facts) -> bool:
    return facts.phase in BY_ZOOKEEPER or KRAFT not in facts.collected


def _brokers(facts: Facts) -> set[int]:
    if _by_zookeeper(facts):
        return zookeeper_brokers(facts)
    return {row["broker_id"] for row in facts.brokers_in_kraft}


def without_static_min_isr(facts: Facts) -> set[int]:
    """Registered brokers whose property file was not given: its min.insync.replicas is unknown."""
    return _brokers(facts) - facts.properties.static_min_isr().keys()


def has_dynamic_min_isr(facts: Facts, side: str = KRAFT) -> bool:
    """Whether min.insync.replicas has a dynamic default, so that property files don't count."""
    configs = facts.broker_configs or ()
    return any(config.name == MIN_ISR and not config.broker and config.source == side for config in configs)


def _order(facts: Facts) -> Outcome:
    """ISR-10: the order has no meaning, so it is a remark and never a violation."""
    found = facts.found(ISR_ORDER)
    return passed(*found.examples[:EVIDENCE_LIMIT])


def _elections(facts: Facts) -> Outcome:
    """ISR-12: those that are not healed; those that are stay in the evidence, with offset and kind."""
    healed = facts.found(HEALED_ELECTION)
    past = Sample(0, tuple(f"healed since: {text}" for text in healed.examples))
    return _with_remarks(facts.found(LOSSY_ELECTION), past)


def _never_fall(facts: Facts) -> Outcome:
    """ISR-15."""
    found = facts.found("ISR-15")
    if not found.total and not facts.previous_partitions:
        return not_applicable("no earlier run's ZooKeeper partitions are still stored")
    return sampled(found)


def _leaders(facts: Facts) -> Outcome:
    """ISR-16: partitions that can never get a leader come first; leaders that are not preferred are only counted."""
    counts = (facts.partition_counts or {}).get(KRAFT)
    if counts is None:
        return unknown("the partitions were not counted")
    if not counts.partitions:
        return not_applicable(_NO_PARTITIONS)
    found, for_good = facts.found("ISR-16"), facts.found(NO_LEADER_FOR_GOOD)
    if counts.leaderless != found.total:
        return unknown(f"{counts.leaderless} partitions have no leader, {found.total} of them were listed")
    remarks = (
        [f"{counts.moved} of {counts.partitions} partitions are not led by their preferred replica"]
        if counts.moved
        else []
    )
    hopeless = sorted(found.examples, key=lambda text: "for good" not in text)
    evidence = [*([f"{for_good.total} of them have no leader for good"] if for_good.total else []), *hopeless, *remarks]
    return Outcome(found.total, tuple(evidence[:EVIDENCE_LIMIT]))


def _between_sides(facts: Facts) -> Outcome:
    """ISR-17."""
    if not facts.compared:
        return not_applicable("the two sides could not be compared")
    return sampled(facts.found("ISR-17"))


_PARTITION_RULES: dict[str, Callable[[Facts], Outcome]] = {
    code: _of_partitions(code) for code in ("ISR-01", "ISR-02", "ISR-03")
}
CHECKS: dict[str, CheckFunction] = {
    **_PARTITION_RULES,
    "ISR-04": in_tables("ISR-04"),
    "ISR-05": in_tables("ISR-05"),
    "ISR-06": _epochs,
    "ISR-07": by_time(_bumps),
    "ISR-08": by_time(_churn),
    "ISR-09": _under_min,
    "ISR-10": _order,
    "ISR-11": by_time(in_tables(RECOVERING_LONG)),
    "ISR-12": by_time(_elections),
    "ISR-13": in_tables("ISR-13"),
    "ISR-14": epochs_too_high,
    "ISR-15": _never_fall,
    "ISR-16": _leaders,
    "ISR-17": _between_sides,
}
