"""FEAT checks (S§9.4): the rules of `transforms.features.matrix` on one run's facts."""

from __future__ import annotations

from dataclasses import replace

from schemas.checks import Phase
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.zookeeper.findings import FEATURE_DATA

# As a module: `transforms.features.matrix` itself needs this package's outcomes.
from transforms.features import matrix
from transforms.features.levels import defaults, release_tuple
from transforms.features.update import CONTROLLERS_REGISTER_FROM, Cluster, Update, dry_run
from transforms.kraft.release import before
from transforms.outcome import EVIDENCE_LIMIT, Outcome, found, listed_ids, not_applicable, passed, unknown
from transforms.reconcile.judge.checks.brokers import zookeeper_brokers
from transforms.reconcile.judge.checks.outcome import CheckFunction, sampled
from transforms.reconcile.judge.cluster import cluster_of
from transforms.reconcile.judge.facts import Facts


def nodes(facts: Facts) -> list[matrix.Node]:
    """Registered brokers and controllers with the levels that they report; those that report none are left out."""
    registered = [matrix.node_of(row) for row in (*facts.brokers_in_kraft, *facts.controllers)]
    return [node for node in registered if node.ranges]


def _brokers(facts: Facts) -> Outcome:
    """FEAT-01."""
    registered = nodes(facts)
    if not any(node.kind == matrix.BROKER for node in registered) and facts.rows_in_kraft("brokers") == 0:
        return not_applicable("no broker is registered")
    return matrix.brokers_support(registered, facts.features)


def _controllers(facts: Facts) -> Outcome:
    """FEAT-02."""
    if not facts.controllers and (facts.level or 0) < CONTROLLERS_REGISTER_FROM:
        return not_applicable("controllers register from metadata.version 3.7-IV0 on")
    return matrix.controllers_support(nodes(facts), facts.features)


def _known_level(facts: Facts) -> Outcome:
    """FEAT-03. kraft.version is in control records."""
    of_quorum = {} if facts.quorum is None else {matrix.KRAFT_VERSION: facts.quorum.kraft_version}
    return matrix.level_is_known({**facts.features, **of_quorum})


def _lost(facts: Facts) -> Outcome:
    """FEAT-04."""
    return matrix.lost_at_migration(facts.zookeeper_features, facts.features)


def _protocols(facts: Facts) -> Outcome:
    """FEAT-05."""
    return matrix.migrating_brokers_agree(nodes(facts), facts.features)


def _sound(facts: Facts) -> Outcome:
    """FEAT-06."""
    return matrix.rows_are_sound(facts.features.items())


def _has_level(facts: Facts) -> Outcome:
    """FEAT-07. A level in the part of the log that is not proved committed is not missing."""
    end = 0 if facts.committed is None else facts.committed.end_exclusive
    if FEATURE_NAME not in facts.features and any(change.offset >= end for change in facts.levels):
        return unknown("the level in the log is not proved committed: give the logs of a majority of the voters")
    return matrix.has_metadata_version(facts.features)


def _bootstrap(facts: Facts) -> Outcome:
    """FEAT-08. The file is there from 3.3 on, beside the log of every controller; from 4.0.1 on its level does not count (KAFKA-19192)."""
    if facts.kafka_version is not None and not before(facts.kafka_version, 4, 1):
        return not_applicable("from 4.0.1 on Kafka starts with a bootstrap.checkpoint of any level")
    levels = {
        f"controller {copy.who}": copy.bootstrap_level for copy in facts.copies if copy.bootstrap_level is not None
    }
    if not levels:
        return not_applicable("no copy of the log has a bootstrap.checkpoint that names a level beside it")
    return matrix.bootstrap_is_readable(levels)


def _defaults(facts: Facts) -> Outcome:
    """FEAT-09, with the nodes for which Kafka refuses to raise what is behind."""
    release = None if facts.kafka_version is None else release_tuple(facts.kafka_version)
    outcome = matrix.behind_defaults(facts.features, release)
    if release is None or not outcome.violations:
        return outcome
    at = facts.features[FEATURE_NAME]
    behind = {name: level for name, level in defaults(release, at).items() if facts.features.get(name, 0) < level}
    behind.pop(matrix.KRAFT_VERSION, None)
    answers = dry_run([Update(*each) for each in behind.items()], cluster_of(facts, release)).answers
    blocking = dict.fromkeys(text for answer in answers for text in answer.blocking)
    evidence = (*outcome.evidence, *(f"in the way: {text}" for text in blocking))
    return replace(outcome, evidence=evidence[:EVIDENCE_LIMIT])


def _may_become_dynamic(facts: Facts) -> Outcome:
    """FEAT-10: Kafka can raise kraft.version from 4.1 on; before that it writes a record that has no effect."""
    if facts.quorum is None:
        return unknown("the log's control records were not read")
    if facts.quorum.kraft_version:
        return not_applicable("the quorum is dynamic already")
    if facts.kafka_version is None:
        return unknown("the Kafka release is unknown: set kafka_version")
    if before(facts.kafka_version, 4, 1):
        return not_applicable("kraft.version can be raised from Kafka 4.1 on")
    if not facts.voters:
        return unknown("the quorum's voters are unknown")
    return _ready_for_dynamic(facts, cluster_of(facts, release_tuple(facts.kafka_version)))


def _ready_for_dynamic(facts: Facts, cluster: Cluster) -> Outcome:
    voters, registered = set(facts.voters), {row["controller_id"] for row in facts.controllers}
    if not voters <= registered:
        return unknown(f"the features of voters {listed_ids(voters - registered)} are unknown: they are not registered")
    refused = dry_run([Update(matrix.KRAFT_VERSION, 1)], cluster).answers[0].blocking
    if refused:
        return found(refused, tolerable=True)
    missing = voters - cluster.directory_ids
    if missing:
        return unknown(f"the directory id of {listed_ids(missing)} is unknown: give the controllers' folders")
    return passed("kraft.version may be raised to 1: every node supports it, and every voter has a directory id")


def _in_zookeeper(facts: Facts) -> Outcome:
    """FEAT-11. In dual write it is about a rollback, which needs a /feature that can be read, too; before the load START-20 covers that."""
    brokers = [matrix.node_of({**row, "features": row.get("features")}) for row in facts.brokers_in_zookeeper]
    if facts.phase is not Phase.DUAL_WRITE:
        return matrix.brokers_of_zookeeper_support(brokers, facts.zookeeper_features)
    unreadable = facts.found(FEATURE_DATA)
    if unreadable.total:
        return sampled(unreadable)
    return matrix.brokers_of_zookeeper_support([*brokers, *_to_put_back(facts)], facts.zookeeper_features)


def _to_put_back(facts: Facts) -> list[matrix.Node]:
    """Brokers in KRaft mode as they would be in ZooKeeper mode: no release that migrates supports a feature there."""
    there = zookeeper_brokers(facts)
    nodes = [row["broker_id"] for row in facts.brokers_in_kraft if row["broker_id"] not in there]
    return [matrix.Node(matrix.BROKER, node) for node in nodes]


CHECKS: dict[str, CheckFunction] = {
    "FEAT-01": _brokers,
    "FEAT-02": _controllers,
    "FEAT-03": _known_level,
    "FEAT-04": _lost,
    "FEAT-05": _protocols,
    "FEAT-06": _sound,
    "FEAT-07": _has_level,
    "FEAT-08": _bootstrap,
    "FEAT-09": _defaults,
    "FEAT-10": _may_become_dynamic,
    "FEAT-11": _in_zookeeper,
}
