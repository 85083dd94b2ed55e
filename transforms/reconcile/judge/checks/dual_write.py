"""DUR checks: is dual write complete and alive (S§7.3)."""

from __future__ import annotations

from collections.abc import Sequence

from schemas.checks.codes import BROKER_REPLACED, LOADED_AGAIN
from schemas.classes import DEFECTS
from schemas.kraft.metadata_versions import SNAPSHOT_KEEPS_FROM, level_name
from schemas.report import DivergenceRow
from transforms.kraft.quorum import replayed_from
from transforms.kraft.release import before, outside_migration
from transforms.outcome import EVIDENCE_LIMIT, Outcome, found, not_applicable, passed, unknown
from transforms.reconcile.judge.checks.brokers import both_modes, unregistered_since_start, zookeeper_brokers
from transforms.reconcile.judge.checks.outcome import CheckFunction, by_time, in_tables, sampled
from transforms.reconcile.judge.deltas import AFTER_QUOTAS, QUOTAS, dropped_behind, lost
from transforms.reconcile.judge.facts import Facts, LeaderEpoch, Sample
from transforms.reconcile.judge.liveness import LivenessState, ends_long_before, liveness
from transforms.reconcile.judge.load import LOAD, state_problems, unbracketed_end
from transforms.zookeeper.zxids import hexadecimal

NO_LAG_IN_3_4 = "Kafka 3.4 keeps the load's offset in /migration: it does not show how far ZooKeeper is behind"


def _load_recorded(facts: Facts) -> Outcome:
    """DUR-01."""
    if facts.older_than_load is not None:
        return unknown(facts.older_than_load)
    zookeeper = facts.zookeeper or {}
    if not zookeeper.get("migration_present"):
        return found(["/migration does not exist"])
    offset = facts.migration_offset
    if offset is None:
        return found(["/migration has no readable data"])
    return found([] if offset > 0 else [f"/migration has offset {offset}: the load is not recorded as finished"])


def _claimed_by_leader(facts: Facts) -> Outcome:
    """DUR-02."""
    zookeeper, leader = facts.zookeeper or {}, facts.in_office
    if leader is None or facts.older_than_load is not None:
        return unknown(facts.older_than_load or "the newest leader epoch is unknown")
    if zookeeper.get("controller_id") is None:
        exists = zookeeper.get("controller_persistent") is not None
        return found(["/controller can't be parsed" if exists else "/controller does not exist"])
    problems = []
    if not zookeeper.get("controller_persistent"):
        problems.append(f"/controller is an ephemeral znode of broker {zookeeper['controller_id']}")
    if leader.leader_id is not None and zookeeper["controller_id"] != leader.leader_id:
        problems.append(f"/controller names {zookeeper['controller_id']}, the KRaft leader is {leader.leader_id}")
    if zookeeper.get("controller_kraft_epoch") != leader.epoch:
        problems.append(
            f"/controller has KRaft epoch {zookeeper.get('controller_kraft_epoch')}, the newest epoch is {leader.epoch}"
        )
    if zookeeper.get("controller_epoch_mzxid") != zookeeper.get("controller_czxid"):
        problems.append(
            f"/controller_epoch was written in transaction {hexadecimal(zookeeper.get('controller_epoch_mzxid'))}, "
            f"/controller was created in {hexadecimal(zookeeper.get('controller_czxid'))}: a claim writes both in one transaction"
        )
    return found([*problems, *_waited_for(facts)] if problems else [])


def _waited_for(facts: Facts) -> list[str]:
    """Why a new leader of 3.4 does not claim ZooKeeper: it waits for every broker as before the load (`ClusterImage.zkBrokers`)."""
    if not before(facts.kafka_version, 3, 5):
        return []
    holders = {use.broker_id for use in facts.replicas}
    return [
        f"broker {broker['broker_id']} holds replicas and is fenced: a new leader of Kafka 3.4 waits for it before it claims /controller"
        for broker in facts.brokers_in_kraft
        if broker["is_migrating_zk_broker"] and broker["fenced"] and broker["broker_id"] in holders
    ]


def _written_by_leader(facts: Facts) -> Outcome:
    """DUR-03. A leadership that began just now may not have written yet."""
    if before(facts.kafka_version, 3, 5):
        return not_applicable("Kafka 3.4 writes /migration at the load only")
    zookeeper, leader = facts.zookeeper or {}, facts.leader
    if leader is None or facts.older_than_load is not None:
        return unknown(facts.older_than_load or "the newest leader epoch is unknown")
    writer = (zookeeper.get("kraft_controller_id"), zookeeper.get("kraft_controller_epoch"))
    # One that was elected just now and stopped at once has claimed ZooKeeper, and perhaps written nothing.
    if writer in [(each.leader_id, each.epoch) for each in (leader, facts.in_office) if each is not None]:
        return found([])
    text = (
        f"/migration was written by controller {writer[0]} in epoch {writer[1]}; "
        f"the leader is {'unknown' if leader.leader_id is None else leader.leader_id} in epoch {leader.epoch}"
    )
    return found([text], tolerable=_began_just_now(facts, leader))


def _began_just_now(facts: Facts, leader: LeaderEpoch) -> bool:
    newest = facts.newest_append_time_ms
    if newest is None or leader.append_time_ms is None:
        return False
    return newest - leader.append_time_ms < facts.alive_limit * 1000


def _alive(facts: Facts) -> Outcome:
    """DUR-04."""
    now = liveness(facts)
    if now is None:
        return unknown(NO_LAG_IN_3_4 if before(facts.kafka_version, 3, 5) else "the lag could not be measured")
    if now.state is LivenessState.LIVE:
        long_before = ends_long_before(facts)
        return unknown(long_before) if long_before else passed()
    if now.in_order:
        return found([f"the controllers were stopped cleanly, with everything mirrored; {now.text}"], tolerable=True)
    return found([now.text], tolerable=now.state is LivenessState.SILENT)


def _no_defects(facts: Facts) -> Outcome:
    """DUR-05."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    return sampled(facts.differing(*DEFECTS))


def storable(facts: Facts) -> Outcome:
    """DUR-06, RB-07: what ZooKeeper has no place for. Log directory ids are left out: its brokers do without."""
    return sampled(facts.unmirrored_configs, facts.found("RB-07"))


def _loaded_once(facts: Facts) -> Outcome:
    """DUR-07."""
    if before(facts.kafka_version, 3, 5):
        return not_applicable("Kafka 3.4 does not record the end of the load")
    problems = found([*state_problems(facts), *unbracketed_end(facts)])
    records = facts.found("DUR-07")
    return sampled(Sample(problems.violations + records.total, (*problems.evidence, *records.examples)))


def _no_second_load(facts: Facts) -> Outcome:
    """DUR-08. What a load of 3.5 wrote again over one that had broken off is as it should be; only 3.6 and later can't replay it."""
    begun = repeated_load(facts)
    first = (restarted_load_text(facts, begun),) if begun else ()
    later = _loads_again(facts)
    over = facts.found(LOADED_AGAIN)
    ends = [change.offset for change in facts.states if facts.name_of(change) == "MIGRATION"]
    if over.total and not begun and not later.violations:
        replayed = not ends or replayed_from(facts.copies) <= ends[0]
        return sampled(over, tolerable=True) if replayed else passed(*over.examples)
    return Outcome(later.violations + len(begun), (*first, *later.evidence)[:EVIDENCE_LIMIT])


def repeated_load(facts: Facts) -> Sequence[int]:
    """Offsets at which 3.4 began a load, the first one left out: it records a state each time (S§4.3)."""
    if not before(facts.kafka_version, 3, 5):
        return ()
    return [change.offset for change in facts.states if facts.name_of(change) == "PRE_MIGRATION"][1:]


def restarted_load_text(facts: Facts, begun: Sequence[int]) -> str:
    """What came of a load that was begun again at these offsets."""
    offset = facts.migration_offset
    text = f"the load started {len(begun) + 1} times, last at offset {begun[-1]}"
    if offset is None or offset <= 0:
        return f"{text}, and /migration records none as finished: the load repeats and never completes"
    if offset < begun[-1]:
        return f"{text}; /migration records an earlier one as finished, at offset {offset}"
    return f"{text}, and finished at offset {offset}"


def _loads_again(facts: Facts) -> Outcome:
    loaded = [change.offset for change in facts.states if facts.name_of(change) == "MIGRATION"]
    transactions = facts.transactions.transactions if facts.transactions else ()
    again = [t for t in transactions if t.name == LOAD and loaded and t.begin_inclusive > loaded[0]]
    begun = found(f"a load began at offset {t.begin_inclusive}, after the one that ended at {loaded[0]}" for t in again)
    twice = facts.found("DUR-08")
    return sampled(Sample(begun.violations + twice.total, (*begun.evidence, *twice.examples)))


def _survives_snapshots(facts: Facts) -> Outcome:
    """DUR-09."""
    if facts.level is None:
        return unknown("the log has no metadata.version")
    kept = {name: lowest for name, lowest in SNAPSHOT_KEEPS_FROM.items() if facts.rows_in_kraft(name)}
    return found(
        f"{facts.rows_in_kraft(name)} {name.replace('_', ' ')}: checkpoints at {level_name(facts.level)} drop them"
        for name, lowest in kept.items()
        if facts.level < lowest
    )


def _constant_level(facts: Facts) -> Outcome:
    """DUR-10."""
    begun = [change.offset for change in facts.states if facts.name_of(change) != "NONE"]
    problems: list[str] = []
    level: int | None = None
    for change in facts.levels:
        if begun and level is not None and change.offset > begun[0] and change.level != level:
            problems.append(f"{level_name(level)} became {level_name(change.level)} at offset {change.offset}")
        level = change.level
    return found(problems)


def _one_mode(facts: Facts) -> Outcome:
    """DUR-11. A broker that runs in ZooKeeper mode and never registered gets no metadata; the rest may be restarts."""
    in_zookeeper = zookeeper_brokers(facts)
    registered = {broker["broker_id"]: broker for broker in facts.brokers_in_kraft}
    strangers = [
        f"broker {node} is in /brokers/ids but is not registered" for node in sorted(in_zookeeper - set(registered))
    ]
    moving = []
    for node, broker in sorted(registered.items()):
        migrating = broker["is_migrating_zk_broker"]
        if node in in_zookeeper and not migrating:
            moving.append(f"broker {node} is in /brokers/ids and registered in KRaft mode")
        leaving = broker["fenced"] or broker["in_controlled_shutdown"]
        if node not in in_zookeeper and migrating and not leaving:
            moving.append(f"broker {node} is registered in ZooKeeper mode, not fenced, and not in /brokers/ids")
    return found([*strangers, *moving], tolerable=not strangers)


def _one_process(facts: Facts) -> Outcome:
    """DUR-12. Who registers while another is taken for alive may also be the same broker, back after a crash."""
    certain = facts.found("DUR-12")
    together = found(both_modes(facts))
    if certain.total or together.violations:
        return sampled(Sample(certain.total + together.violations, (*certain.examples, *together.evidence)))
    return sampled(facts.found(BROKER_REPLACED), tolerable=True)


def _defects_of(facts: Facts, *entities: str) -> list[DivergenceRow]:
    return [row for row in facts.defect_rows if row.class_ in DEFECTS and row.entity in entities]


def _topic_identity(facts: Facts) -> Outcome:
    """DUR-14."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    rows = _defects_of(facts, "topics")
    differ = found(
        f"topic {row.key.get('topic')}: id {row.zk_value} in ZooKeeper, {row.kraft_value} in KRaft"
        for row in rows
        if row.column == "topic_id"
    )
    return _of_all_rows(facts, differ) if rows else differ


def _of_all_rows(facts: Facts, outcome: Outcome) -> Outcome:
    """The outcome of a look at the known rows: if they are not all, finding nothing among them does not pass."""
    listed = facts.defects_listed
    if listed is None or outcome.violations:
        return outcome
    return unknown(f"the report lists {listed[0]} of {listed[1]} rows that are defects: raise report.rows")


def _producer_ids(facts: Facts) -> Outcome:
    """DUR-15."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    differ = found(
        f"next producer id {row.zk_value} in ZooKeeper, {row.kraft_value} in KRaft"
        for row in _defects_of(facts, "producer_ids")
    )
    back = facts.found("DUR-15")
    return sampled(Sample(differ.violations + back.total, (*differ.evidence, *back.examples)))


def _dropped_behind_quota(facts: Facts) -> Outcome:
    """DUR-18. Quotas are mirrored before producer ids, ACLs and tokens; a failure skips what comes after it."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    dropped, rows = found(dropped_behind(facts.defect_rows, facts.deltas)), facts.defect_rows
    return _of_all_rows(facts, dropped) if lost(rows, QUOTAS) and lost(rows, AFTER_QUOTAS) else dropped


def _releases(facts: Facts) -> Outcome:
    """DUR-20."""
    nodes = [(f"controller {row['controller_id']}", row) for row in facts.controllers]
    nodes += [(f"broker {row['broker_id']}", row) for row in facts.brokers_in_kraft]
    problems = [outside_migration(name, row) for name, row in sorted(nodes, key=lambda node: node[0])]
    return found(problem for problem in problems if problem is not None)


def _keys_once(facts: Facts) -> Outcome:
    """DUR-21."""
    if not facts.compared:
        return unknown("the two sides could not be compared")
    return sampled(facts.duplicated or Sample())


def _at_work(facts: Facts) -> Outcome:
    """DUR-22. KRaft takes the leadership from it, and the other checks take it for shut down on purpose."""
    return found(unregistered_since_start(facts))


CHECKS: dict[str, CheckFunction] = {
    "DUR-01": _load_recorded,
    "DUR-02": _claimed_by_leader,
    "DUR-03": _written_by_leader,
    "DUR-04": _alive,
    "DUR-05": _no_defects,
    "DUR-06": storable,
    "DUR-07": _loaded_once,
    "DUR-08": _no_second_load,
    "DUR-09": _survives_snapshots,
    "DUR-10": _constant_level,
    "DUR-11": _one_mode,
    "DUR-12": _one_process,
    "DUR-13": by_time(in_tables("DUR-13")),
    "DUR-14": _topic_identity,
    "DUR-15": _producer_ids,
    "DUR-16": in_tables("DUR-16"),
    "DUR-17": in_tables("DUR-17"),
    "DUR-19": in_tables("DUR-19"),
    "DUR-18": _dropped_behind_quota,
    "DUR-20": _releases,
    "DUR-21": _keys_once,
    "DUR-22": by_time(_at_work),
}
