"""START checks: may the migration begin (S§7.2)."""

from __future__ import annotations

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.checks.codes import HALF_LOADED, OFFLINE_BY_BROKER, TO_DECODE, UNDER_REPLICATED
from schemas.kraft.metadata_versions import level_name
from schemas.zookeeper.findings import STOP_THE_FULL_SYNC, STOP_THE_LOAD
from transforms.kraft.release import before
from transforms.outcome import Outcome, found, listed_ids, not_applicable, unknown
from transforms.reconcile.compare.exposure import affecting
from transforms.reconcile.judge.checks.brokers import (
    CONTROLLER_REGISTRATION_LEVEL,
    other_protocols,
    ready_brokers,
    unready_controllers,
    zookeeper_brokers,
)
from transforms.reconcile.judge.checks.outcome import CheckFunction, in_tables, sampled
from transforms.reconcile.judge.facts import Facts, ReplicaUse, Sample
from transforms.reconcile.judge.load import LOAD

MIGRATION_LEVEL, SCRAM_LEVEL, TRANSACTIONS_LEVEL, TOKENS_LEVEL = 8, 11, 13, 14
_UNPROVED = "no record of the controllers' log is proved committed: copy the logs of all controllers, stopped cleanly"


def _unproved(facts: Facts) -> bool:
    """Registrations may be in the log, and nothing of it is in effect as far as is proved."""
    return (
        facts.committed is not None
        and facts.committed.end_exclusive == 0
        and bool(facts.plan and facts.plan.leading.end)
    )


def _registered(facts: Facts) -> Outcome:
    """START-01. Kafka waits while no broker is there, on either side."""
    running, ready = zookeeper_brokers(facts), ready_brokers(facts)
    problems = [] if running else ["/brokers/ids is empty: no broker is running"]
    if KRAFT not in facts.collected:
        return found(problems) if problems else unknown("the controllers' metadata log was not given")
    if not problems and _unproved(facts):
        return unknown(_UNPROVED)
    missing = sorted(running - ready)
    problems += [f"broker {broker} is in /brokers/ids but is not registered as ready to migrate" for broker in missing]
    return found(problems)


def _replica_holders(facts: Facts) -> Outcome:
    """START-02. Kafka from 3.5 on requires only the registration; 3.4 and KIP-866 require that the brokers run."""
    running, ready = zookeeper_brokers(facts), ready_brokers(facts)
    with_log = KRAFT in facts.collected
    if with_log and _unproved(facts):
        return unknown(_UNPROVED)
    problems = []
    # `ClusterImage.zkBrokers`: 3.4 counts a broker once it runs.
    patient = before(facts.kafka_version, 3, 5)
    for use in facts.replicas:
        holds = f"broker {use.broker_id} holds {use.replicas} replicas{_named(use)}"
        if with_log and use.broker_id not in ready:
            gone = "" if use.broker_id in running else "not running and "
            problems.append(f"{holds} but is {gone}not registered as ready to migrate")
        elif use.broker_id not in running:
            does = (
                "Kafka 3.4 waits for it although it is registered"
                if patient
                else "It is registered, so released Kafka does not wait for it"
            )
            waits = f". {does}" if with_log else ""
            problems.append(f"{holds} but is not running: it is not in /brokers/ids{waits}")
    if problems:
        return found(problems)
    if not with_log:
        return unknown("the controllers' metadata log was not given")
    return found(_named_by_configurations(facts, running | ready), tolerable=True)


def _named(use: ReplicaUse) -> str:
    return f" ({', '.join(use.examples)})" if use.examples else ""


def _named_by_configurations(facts: Facts, known: set[int]) -> list[str]:
    holders = {use.broker_id for use in facts.replicas}
    strangers = sorted((facts.brokers_with_config or frozenset()) - known - holders)
    return [
        f"broker {broker} has configurations but is not registered: KIP-866 would wait for it, released Kafka does not"
        for broker in strangers
    ]


def _controllers(facts: Facts) -> Outcome:
    """START-05."""
    level = facts.level or 0
    if level < CONTROLLER_REGISTRATION_LEVEL:
        return not_applicable(
            f"controllers do not register below metadata.version 3.7-IV0 (this cluster is at level {level}), "
            "and Kafka does not check it"
        )
    ready, voters = {controller["controller_id"] for controller in facts.controllers}, facts.voters
    problems = [f"controller {voter} is not registered" for voter in voters if voter not in ready]
    problems += [f"controller {node} does not have the migration enabled" for node in unready_controllers(facts)]
    if not problems and not voters:
        return unknown("the voters are unknown: neither quorum-state nor the log lists them")
    return found(problems)


def _level(facts: Facts) -> Outcome:
    """START-06. What a load without a transaction left stays in the log, and the next one writes it again."""
    level, halfway = facts.level, facts.found(HALF_LOADED)
    if halfway.total:
        return sampled(halfway)
    if level is None:
        return unknown("the log has no metadata.version")
    users, tokens = facts.rows_in_zookeeper("scram_credentials"), facts.rows_in_zookeeper("delegation_tokens")
    losses = []
    if level < MIGRATION_LEVEL:
        losses.append(f"{level_name(level)} cannot migrate; the lowest level that can is 3.4-IV0")
    if users and level < SCRAM_LEVEL:
        losses.append(f"{users} SCRAM credentials would be lost at {level_name(level)}")
    if tokens and level < TOKENS_LEVEL:
        losses.append(f"{tokens} delegation tokens would be lost at {level_name(level)}")
    if losses or level >= TRANSACTIONS_LEVEL:
        return found(losses)
    return found([f"at {level_name(level)} the load is not one transaction"], tolerable=True)


def _fresh_migration_znode(facts: Facts) -> Outcome:
    """START-07. After a rollback a leftover is a warning: no controllers are there to read it."""
    zookeeper, offset = facts.zookeeper or {}, facts.migration_offset
    rolled_back = facts.phase is Phase.ROLLED_BACK
    if offset is None and zookeeper.get("migration_present"):
        text = "/migration exists but cannot be parsed: the controllers' migration driver fails on it again and again"
        return found([text], tolerable=rolled_back)
    if offset is None or offset < 0:
        return found([])
    if KRAFT not in facts.collected and zookeeper.get("controller_persistent"):
        return unknown(
            "a KRaft controller holds /controller, so a migration may be running: give the controllers' logs"
        )
    text = f"/migration holds offset {offset} and controller epoch {zookeeper.get('kraft_controller_epoch')} of an earlier migration"
    gone = ["neither ZooKeeper nor the log has any topic: this quorum has emptied ZooKeeper"] if emptied(facts) else []
    return found([text, *gone], tolerable=rolled_back)


def emptied(facts: Facts) -> bool:
    """True when a leftover `/migration` let an empty log empty ZooKeeper: no topic on either side (S§14)."""
    topics, offset = facts.counts.get("topics", {}), facts.migration_offset
    loaded = facts.phase is Phase.WAITING and offset is not None and offset > 0
    return loaded and topics.get(ZOOKEEPER) == 0 and topics.get(KRAFT) == 0


def _free_to_claim(facts: Facts) -> Outcome:
    """START-08. The claim of this quorum's own leader is the load that runs."""
    zookeeper, leader = facts.zookeeper or {}, facts.leader
    if not zookeeper.get("controller_persistent"):
        return found([])
    owner, epoch = zookeeper.get("controller_id"), zookeeper.get("controller_kraft_epoch")
    newest = -1 if leader is None else leader.epoch
    own = leader is not None and (owner, epoch) == (leader.leader_id, leader.epoch)
    if own or (epoch is not None and epoch < newest):
        return found([])
    if KRAFT not in facts.collected:
        return found([f"/controller is held by KRaft controller {owner} of epoch {epoch}, and no log was given"])
    return found([f"/controller is held by KRaft controller {owner} of epoch {epoch}; this quorum's epoch is {newest}"])


def _meant_to_migrate(facts: Facts) -> Outcome:
    """START-09."""
    if facts.state_name == "PRE_MIGRATION":
        return found([])
    if before(facts.kafka_version, 3, 5):
        return not_applicable("Kafka 3.4 records no migration state before its load begins")
    return found([f"the log's migration state is {facts.state_name}: these controllers never start a migration"])


def _protocols(facts: Facts) -> Outcome:
    """START-10."""
    if facts.level is None:
        return unknown("the log has no metadata.version")
    return found(other_protocols(facts, facts.level))


def _distinct_ids(facts: Facts) -> Outcome:
    """START-11."""
    controllers = {copy.controller_id for copy in facts.copies if copy.controller_id is not None}
    controllers |= set(facts.voters)
    controllers |= {controller["controller_id"] for controller in facts.controllers}
    if not controllers:
        return unknown("the controllers' ids are unknown: no file or record has them")
    brokers = zookeeper_brokers(facts) | {broker["broker_id"] for broker in facts.brokers_in_kraft}
    brokers |= {use.broker_id for use in facts.replicas}
    return found(f"{node} is a broker and a controller" for node in sorted(controllers & brokers))


def _encoder_secrets(facts: Facts) -> Outcome:
    """START-15."""
    passwords = facts.found(TO_DECODE)
    if not passwords.total:
        return found([])
    encrypted = f"ZooKeeper holds {passwords.total} encrypted password configuration{'s' if passwords.total > 1 else ''} of brokers"
    controllers = facts.properties.controllers
    if not controllers:
        return unknown(f"{encrypted}: give the controllers' property files (properties.controllers)")
    unable = [file for file in controllers if not file.has_encoder_secret]
    if unable:
        return found(f"controller {file.node_id} has no password.encoder.secret ({file.location})" for file in unable)
    absent = set(facts.voters) - {file.node_id for file in controllers}
    if absent:
        return unknown(
            f"{encrypted}: give the property file of controller {listed_ids(absent)} (properties.controllers)"
        )
    if facts.properties.clear_text_accepted:
        return found([])
    return sampled(passwords, tolerable=True)


def _led(facts: Facts) -> Outcome:
    """START-16."""
    offline, brokers = facts.found("START-16"), facts.found(OFFLINE_BY_BROKER)
    return sampled(Sample(max(offline.total, brokers.total), (*brokers.examples, *offline.examples)))


def _release(facts: Facts) -> Outcome:
    """START-17."""
    if facts.kafka_version is None:
        return not_applicable("the Kafka version is unknown: set kafka_version in the configuration")
    repaired = [(defect, detail) for defect, detail in affecting(facts.kafka_version) if defect.fixed]
    return found(f"{defect.jira}: {defect.title} ({detail})" for defect, detail in repaired if defect.harms)


def _controller_epoch(facts: Facts) -> Outcome:
    """START-18."""
    if (facts.zookeeper or {}).get("controller_epoch") is not None:
        return found([])
    bad = facts.found("START-18")
    return sampled(bad) if bad.total else found(["/controller_epoch does not exist"])


def _mirrored_kinds(facts: Facts) -> Outcome:
    """START-19."""
    return sampled(facts.unmirrored_configs)


def _no_load_broke_off(facts: Facts) -> Outcome:
    """START-22. A load that fails stops its controller, and the next leader aborts and repeats it: one may be a failover alone.

    A controller claims ZooKeeper before it loads. If all of them end then, the claim stays, even with an empty log.
    """
    transactions = facts.transactions.transactions if facts.transactions else ()
    aborted = [each.begin_inclusive for each in transactions if each.name == LOAD and each.outcome == "abort"]
    problems = [
        f"the load that began at offset {offset} was aborted, and nothing of it is in effect: the controller that loaded was gone"
        for offset in aborted
    ]
    if problems:
        return found(problems, tolerable=len(problems) < 2)
    zookeeper = facts.zookeeper or {}
    if zookeeper.get("controller_persistent"):
        return unknown(
            f"KRaft controller {zookeeper.get('controller_id')} has claimed ZooKeeper, and no load has ended: one runs, or it broke off. "
            "Audit again in some minutes"
        )
    if (facts.level or 0) < TRANSACTIONS_LEVEL:
        return not_applicable(
            "below metadata.version 3.6-IV1 a load is not a transaction: START-06 judges what one left"
        )
    return found([])


CHECKS: dict[str, CheckFunction] = {
    "START-01": _registered,
    "START-02": _replica_holders,
    "START-03": in_tables("START-03"),
    "START-04": in_tables("START-04"),
    "START-05": _controllers,
    "START-06": _level,
    "START-07": _fresh_migration_znode,
    "START-08": _free_to_claim,
    "START-09": _meant_to_migrate,
    "START-10": _protocols,
    "START-11": _distinct_ids,
    "START-12": in_tables("START-12"),
    "START-13": in_tables("START-13", *STOP_THE_FULL_SYNC),
    "START-14": in_tables("START-14"),
    "START-15": _encoder_secrets,
    "START-16": _led,
    "START-17": _release,
    "START-18": _controller_epoch,
    "START-19": _mirrored_kinds,
    "START-20": in_tables(*STOP_THE_LOAD),
    "START-21": in_tables(UNDER_REPLICATED),
    "START-22": _no_load_broke_off,
}
