"""START checks: may the migration begin (S§7.2)."""

from __future__ import annotations

from schemas.checks import Phase
from schemas.checks.codes import TO_DECODE
from schemas.kraft.metadata_versions import level_name
from transforms.kraft.release import before
from transforms.reconcile.judge.checks.brokers import (
    CONTROLLER_REGISTRATION_LEVEL,
    other_protocols,
    ready_brokers,
    unready_controllers,
    zookeeper_brokers,
)
from transforms.reconcile.judge.checks.outcome import (
    CheckFunction,
    Outcome,
    found,
    in_tables,
    listed_ids,
    not_applicable,
    sampled,
    unknown,
)
from transforms.reconcile.judge.exposure import affecting
from transforms.reconcile.judge.facts import Facts

MIGRATION_LEVEL, SCRAM_LEVEL, TRANSACTIONS_LEVEL, TOKENS_LEVEL = 8, 11, 13, 14


def _registered(facts: Facts) -> Outcome:
    """START-01."""
    missing = sorted(zookeeper_brokers(facts) - ready_brokers(facts))
    return found(f"broker {broker} is in /brokers/ids and not registered as ready to migrate" for broker in missing)


def _replica_holders(facts: Facts) -> Outcome:
    """START-02."""
    ready = ready_brokers(facts)
    absent = [use for use in facts.replicas if use.broker_id not in ready]
    return found(
        f"broker {use.broker_id} holds {use.replicas} replicas ({', '.join(use.examples)}) "
        "and is not registered as ready to migrate"
        for use in absent
    )


def _topic_ids(facts: Facts) -> Outcome:
    """START-03."""
    return sampled(facts.found("START-03"))


def _states(facts: Facts) -> Outcome:
    """START-04."""
    return sampled(facts.found("START-04"))


def _controllers(facts: Facts) -> Outcome:
    """START-05."""
    level = facts.level or 0
    if level < CONTROLLER_REGISTRATION_LEVEL:
        return not_applicable(
            f"controllers do not register below metadata.version 3.7-IV0 (this cluster is at level {level}), "
            "and Kafka does not ask either"
        )
    ready = {controller["controller_id"] for controller in facts.controllers}
    voters = facts.leader.voters if facts.leader else ()
    problems = [f"controller {voter} is not registered" for voter in voters if voter not in ready]
    problems += [f"controller {node} does not have the migration enabled" for node in unready_controllers(facts)]
    return found(problems)


def _level(facts: Facts) -> Outcome:
    """START-06."""
    level = facts.level
    if level is None:
        return unknown("the log has no metadata.version")
    users, tokens = facts.rows_in_zookeeper("scram_credentials"), facts.rows_in_zookeeper("delegation_tokens")
    losses = []
    if level < MIGRATION_LEVEL:
        losses.append(f"{level_name(level)} can't migrate; 3.4-IV0 is the lowest that can")
    if users and level < SCRAM_LEVEL:
        losses.append(f"{users} SCRAM credentials would be lost at {level_name(level)}")
    if tokens and level < TOKENS_LEVEL:
        losses.append(f"{tokens} delegation tokens would be lost at {level_name(level)}")
    if losses or level >= TRANSACTIONS_LEVEL:
        return found(losses)
    return found([f"at {level_name(level)} the load is not one transaction"], tolerable=True)


def _fresh_migration_znode(facts: Facts) -> Outcome:
    """START-07."""
    offset = facts.migration_offset
    if offset is None or offset < 0:
        return found([])
    epoch = (facts.zookeeper or {}).get("kraft_controller_epoch")
    text = f"/migration holds offset {offset} and controller epoch {epoch} of an earlier migration"
    return found([text], tolerable=facts.phase is not Phase.WAITING)


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
    controllers = {copy.controller_id for copy in facts.copies}
    controllers |= set(facts.leader.voters if facts.leader else ())
    controllers |= {controller["controller_id"] for controller in facts.controllers}
    brokers = zookeeper_brokers(facts) | {broker["broker_id"] for broker in facts.brokers_in_kraft}
    brokers |= {use.broker_id for use in facts.replicas}
    return found(f"{node} is a broker and a controller" for node in sorted(controllers & brokers))


def _encoder_secrets(facts: Facts) -> Outcome:
    """START-15."""
    passwords = facts.found(TO_DECODE)
    if not passwords.total:
        return found([])
    held = f"ZooKeeper holds {passwords.total} encrypted password configurations of brokers"
    controllers = facts.properties.controllers
    if not controllers:
        return unknown(f"{held}: give the controllers' property files (properties.controllers)")
    unable = [file for file in controllers if not file.has_encoder_secret]
    if unable:
        return found(f"controller {file.node_id} has no password.encoder.secret ({file.location})" for file in unable)
    absent = set(facts.leader.voters if facts.leader else ()) - {file.node_id for file in controllers}
    if absent:
        return unknown(f"{held}: give the property file of controller {listed_ids(absent)} (properties.controllers)")
    if facts.properties.clear_text_accepted:
        return found([])
    return sampled(passwords, tolerable=True)


def _release(facts: Facts) -> Outcome:
    """START-17."""
    if facts.kafka_version is None:
        return not_applicable("the Kafka version is not known: name it as kafka_version in the configuration")
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


CHECKS: dict[str, CheckFunction] = {
    "START-01": _registered,
    "START-02": _replica_holders,
    "START-03": _topic_ids,
    "START-04": _states,
    "START-05": _controllers,
    "START-06": _level,
    "START-07": _fresh_migration_znode,
    "START-08": _free_to_claim,
    "START-09": _meant_to_migrate,
    "START-10": _protocols,
    "START-11": _distinct_ids,
    "START-12": in_tables("START-12"),
    "START-13": in_tables("START-13"),
    "START-14": in_tables("START-14"),
    "START-15": _encoder_secrets,
    "START-16": in_tables("START-16"),
    "START-17": _release,
    "START-18": _controller_epoch,
    "START-19": _mirrored_kinds,
}
