"""What `kafka-features upgrade`, `downgrade` and `disable` would be answered (S§9.3), without asking a controller.

`FeatureControlManager.updateFeature` for KRaft, `KafkaController.validateFeatureUpdate` for the ZooKeeper controller. Kafka
names the first node that is in the way; here all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.kraft.metadata_versions import BY_LEVEL, FEATURE_NAME, level_name
from transforms.features.levels import MINIMUM_BOOTSTRAP_3X, latest_of, lost_between, lowest_of
from transforms.features.matrix import BROKER, CONTROLLER, DISABLED, KRAFT_VERSION, Node, Range

CONTROLLERS_REGISTER_FROM = 15
ELR = "eligible.leader.replicas.version"
# What a level needs besides (`FeatureVersion.dependencies`).
DEPENDENCIES: Mapping[tuple[str, int], Mapping[str, int]] = {
    (ELR, 1): {FEATURE_NAME: 23},
    (KRAFT_VERSION, 1): {FEATURE_NAME: 21},
}
# What taking a feature back means for what it was used for.
LOSSES: Mapping[str, str] = {
    ELR: "eligible leader replicas are cleared: a partition without a leader then stays so until an unclean election",
    "group.version": "groups of the new consumer protocol can't be served",
    "transaction.version": "transactions are no longer ended with an epoch of their own",
    "share.version": "share groups can't be served",
    "streams.version": "groups of the streams protocol can't be served",
}
IN_PROGRESS = ("PRE_MIGRATION", "MIGRATION")


class Kind(StrEnum):
    """What is asked for."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "downgrade"
    UNSAFE_DOWNGRADE = "unsafe downgrade"


class Verdict(StrEnum):
    """May it be done; `unknown` when what Kafka would ask is not in the tables."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Update:
    """One feature's new level; level 0 with a downgrade is a deletion."""

    feature: str
    level: int
    kind: Kind = Kind.UPGRADE


@dataclass(frozen=True)
class Cluster:
    """What a controller knows when it is asked. `local` is the active controller, whose range its messages call local.

    `voters` None and no registered controllers are unknown, not none. `zookeeper` asks by the ZooKeeper controller's
    rules: then `nodes` are the brokers alive, `local` the one that is the controller, `versioning` whether `/feature` is
    enabled, `min_levels` what a version 1 znode has.
    """

    release: tuple[int, int]
    finalised: Mapping[str, int]
    nodes: Sequence[Node] = ()
    voters: frozenset[int] | None = None
    local: int | None = None
    migration_state: str | None = None
    zookeeper: bool = False
    versioning: bool = True
    min_levels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """The answer for one feature: Kafka's error and words, all nodes in the way, what is lost, what was not known."""

    update: Update
    verdict: Verdict
    error: str = "NONE"
    message: str = ""
    blocking: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DryRun:
    """Answers in the order asked, the lines that Kafka's tool prints, and its exit code (None when that is unknown)."""

    answers: tuple[Answer, ...]
    lines: tuple[str, ...]
    exit_code: int | None


def dry_run(updates: Sequence[Update], cluster: Cluster, operation: str | None = None) -> DryRun:
    """What the controller and the tool would say. `operation` is upgrade, downgrade or disable; told by the first update."""
    proposed = {**cluster.finalised, **{update.feature: update.level for update in updates}}
    answers = [_answer(update, cluster, proposed) for update in updates]
    if not cluster.zookeeper and cluster.release >= (4, 0):
        answers = _all_or_none(answers)
    named = operation or _operation(updates)
    lines = [_line(answer, named) for answer in sorted(answers, key=lambda each: each.update.feature)]
    failed = sum(answer.verdict is Verdict.NO for answer in answers)
    if failed:
        lines.append(f"{failed} out of {len(answers)} operation(s) failed.")
    undecided = any(answer.verdict is Verdict.UNKNOWN for answer in answers)
    return DryRun(tuple(answers), tuple(lines), 1 if failed else None if undecided else 0)


def _operation(updates: Sequence[Update]) -> str:
    if all(update.level == 0 and update.kind is not Kind.UPGRADE for update in updates):
        return "disable"
    return "upgrade" if all(update.kind is Kind.UPGRADE for update in updates) else "downgrade"


def _all_or_none(answers: Sequence[Answer]) -> list[Answer]:
    """From 4.0 on one error is the error of all features of the request."""
    first = next((answer for answer in answers if answer.verdict is Verdict.NO), None)
    if first is None:
        return list(answers)
    text = f"The update failed for all features since the following feature had an error: {first.message}"
    return [replace(answer, verdict=Verdict.NO, error=first.error, message=text) for answer in answers]


def _line(answer: Answer, operation: str) -> str:
    name, level = answer.update.feature, answer.update.level
    if answer.verdict is Verdict.UNKNOWN:
        return f"{name}: unknown. {answer.message}"
    if answer.verdict is Verdict.NO:
        asked = f"disable {name}" if operation == "disable" else f"{operation} {name} to {level}"
        return f"Can not {asked}. {answer.message}"
    done = "disabled." if operation == "disable" else f"{operation}d to {level}."
    return f"{name} can be {done}"


def _answer(update: Update, cluster: Cluster, proposed: Mapping[str, int]) -> Answer:
    if cluster.zookeeper:
        return _zookeeper_answer(update, cluster)
    current = cluster.finalised.get(update.feature, 0)
    blocking, undecided = _not_supporting(update, cluster)
    loses = _losses(update, current)
    message = _first_error(update, cluster, current, blocking, proposed)
    if message is not None:
        return Answer(update, Verdict.NO, "INVALID_UPDATE_VERSION", message, tuple(blocking), loses, undecided)
    notes = (*undecided, *_kraft_version_notes(update, cluster, current))
    if undecided:
        return Answer(update, Verdict.UNKNOWN, message="; ".join(undecided), loses=loses, notes=notes)
    return Answer(update, Verdict.YES, loses=loses, notes=notes)


def _invalid(update: Update, reason: str) -> str:
    return f"Invalid update version {update.level} for feature {update.feature}. {reason}"


def _first_error(
    update: Update, cluster: Cluster, current: int, blocking: Sequence[str], proposed: Mapping[str, int]
) -> str | None:
    """The first rule that refuses, in Kafka's words."""
    if update.level < 0:
        return _invalid(update, "A feature version cannot be less than 0.")
    if blocking:
        return _invalid(update, blocking[0])
    if update.level < current and update.kind is Kind.UPGRADE:
        reason = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
        return _invalid(update, reason)
    if update.level > current and update.kind is not Kind.UPGRADE:
        return _invalid(update, "Can't downgrade to a newer version.")
    if update.feature == FEATURE_NAME:
        return _metadata_version_error(update, cluster, current)
    if update.feature == KRAFT_VERSION and update.level < current:
        return _invalid(update, "Can't downgrade the version of this feature.")
    return _dependency_error(update, proposed)


def _metadata_version_error(update: Update, cluster: Cluster, current: int) -> str | None:
    def invalid(reason: str) -> str:
        return f"Invalid metadata.version {update.level}. {reason}"

    if update.level not in BY_LEVEL:
        return invalid("Unknown metadata.version.")
    if cluster.migration_state in IN_PROGRESS:
        return invalid("Unable to modify metadata.version while a ZK migration is in progress.")
    if update.level < MINIMUM_BOOTSTRAP_3X:
        return invalid(f"Unable to set a metadata.version less than {level_name(MINIMUM_BOOTSTRAP_3X)}")
    if not lost_between(update.level, current):
        return None
    reason = (
        "Unsafe metadata downgrade is not supported in this version."
        if update.kind is Kind.UNSAFE_DOWNGRADE
        else "Refusing to perform the requested downgrade because it might delete metadata information."
    )
    if cluster.release >= (4, 1):
        return f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"
    return invalid(reason)


def _dependency_error(update: Update, proposed: Mapping[str, int]) -> str | None:
    level = proposed.get(FEATURE_NAME)
    if update.level >= 1 and (level is None or level < MINIMUM_BOOTSTRAP_3X):
        needed = f"metadata.version={MINIMUM_BOOTSTRAP_3X} ({level_name(MINIMUM_BOOTSTRAP_3X)})"
        return _invalid(update, f"{update.feature} could not be set to {update.level} because it depends on {needed}")
    for name, least in DEPENDENCIES.get((update.feature, update.level), {}).items():
        if proposed.get(name, 0) < least:
            text = f"{update.feature} could not be set to {update.level} because it depends on {name} level {least}"
            return _invalid(update, text)
    return None


def _not_supporting(update: Update, cluster: Cluster) -> tuple[list[str], tuple[str, ...]]:
    """Every node that is in the way, in the order that Kafka asks them, and what could not be asked."""
    controllers = {node.node_id: node for node in cluster.nodes if node.kind == CONTROLLER}
    found = [text for text in [_local(update, cluster, controllers)] if text is not None]
    for node in sorted((node for node in cluster.nodes if node.kind == BROKER), key=lambda each: each.node_id):
        found += _refusal(update, f"Broker {node.node_id}", node.supports(update.feature))
    if cluster.finalised.get(FEATURE_NAME, 1) < CONTROLLERS_REGISTER_FROM:
        note = "controllers do not register below metadata.version 3.7-IV0 (15): Kafka can't ask them either"
        return found, (*_local_unknown(update, cluster, controllers), note)
    for node_id, node in sorted(controllers.items()):
        if node_id != cluster.local:
            found += _refusal(update, f"Controller {node_id}", node.supports(update.feature))
    if cluster.voters is None:
        return found, ("the quorum's voters are not known, and each must be registered",)
    missing = sorted(cluster.voters - set(controllers) - ({cluster.local} if cluster.local is not None else set()))
    found += [f"controller {node_id} has not registered, and may not support this feature" for node_id in missing]
    return found, ()


def _refusal(update: Update, who: str, supported: Range) -> list[str]:
    lowest, highest = supported
    if lowest <= update.level <= highest:
        return []
    if highest == 0:
        return [f"{who} does not support this feature."]
    return [f"{who} only supports versions {lowest}{f'-{highest}' if highest != lowest else ''}"]


def _local(update: Update, cluster: Cluster, controllers: Mapping[int, Node]) -> str | None:
    """The active controller, by its registration, else by its release."""
    node = None if cluster.local is None else controllers.get(cluster.local)
    if node is not None:
        return next(iter(_refusal(update, f"Local controller {cluster.local}", node.supports(update.feature))), None)
    latest = latest_of(cluster.release)
    if update.feature != FEATURE_NAME or latest is None or (controllers and cluster.local is None):
        return None
    who = "Local controller" if cluster.local is None else f"Local controller {cluster.local}"
    return next(iter(_refusal(update, who, (lowest_of(cluster.release), latest))), None)


def _local_unknown(update: Update, cluster: Cluster, controllers: Mapping[int, Node]) -> tuple[str, ...]:
    known = update.feature == FEATURE_NAME and latest_of(cluster.release) is not None
    return () if known or cluster.local in controllers else ("the active controller's own range is not known",)


def _losses(update: Update, current: int) -> tuple[str, ...]:
    if update.level >= current:
        return ()
    if update.feature == FEATURE_NAME:
        return lost_between(update.level, current)
    return tuple(text for name, text in LOSSES.items() if name == update.feature)


def _kraft_version_notes(update: Update, cluster: Cluster, current: int) -> tuple[str, ...]:
    if update.feature != KRAFT_VERSION or update.level <= current or cluster.release >= (4, 1):
        return ()
    return ("before 4.1 this writes a record that the quorum does not heed (KAFKA-18979)",)


def _zookeeper_answer(update: Update, cluster: Cluster) -> Answer:
    message = _zookeeper_error(update, cluster)
    current = cluster.finalised.get(update.feature, 0)
    deletes = update.level < 1 and update.kind is not Kind.UPGRADE
    blocking = () if deletes else _incompatible(update, cluster)
    if message is None:
        return Answer(update, Verdict.YES, loses=_losses(update, current))
    return Answer(update, Verdict.NO, "INVALID_REQUEST", message, blocking, _losses(update, current))


@dataclass(frozen=True)
class _Words:
    """How the request's fields were called: with `FeatureUpdate.UpgradeType` from 3.3 on, with a flag before."""

    level: str
    flag: str
    sets: str


_NEW_WORDS = _Words("versionLevel", "the downgradeType to SAFE", "the downgradeType is set to SAFE in the request")
_OLD_WORDS = _Words("maxVersionLevel", "the allowDowngrade flag", "the allowDowngrade flag set in the request")


def _zookeeper_error(update: Update, cluster: Cluster) -> str | None:
    if not cluster.versioning:
        return "Feature versioning system is disabled."
    if not update.feature:
        return "Feature name can not be empty."
    existing = cluster.finalised.get(update.feature)
    if update.level < 1:
        return _zookeeper_deletion(update, cluster, existing)
    wrong = None if existing is None else _zookeeper_step(update, cluster, existing)
    return wrong or _zookeeper_support(update, cluster)


def _zookeeper_deletion(update: Update, cluster: Cluster, existing: int | None) -> str | None:
    if update.kind is not Kind.UPGRADE:
        return "Can not delete non-existing finalized feature." if existing is None else None
    if cluster.release >= (3, 3):
        return f"Can not provide versionLevel: {update.level} less than 1 without setting the SAFE downgradeType in the request."
    return (
        f"Can not provide maxVersionLevel: {update.level} less than 1"
        " without setting the allowDowngrade flag to true in the request."
    )


def _zookeeper_step(update: Update, cluster: Cluster, existing: int) -> str | None:
    """The rules on where the level goes from where it is."""
    new = cluster.release >= (3, 3)
    words = _NEW_WORDS if new else _OLD_WORDS
    downgrade = update.kind is Kind.SAFE_DOWNGRADE or (not new and update.kind is not Kind.UPGRADE)
    if update.level == existing:
        verb = "downgrade" if downgrade else "upgrade"
        return f"Can not {verb} a finalized feature from existing {words.level}:{existing} to the same value."
    if update.level < existing and not downgrade:
        return (
            f"Can not downgrade finalized feature from existing {words.level}:{existing} to provided"
            f" {words.level}:{update.level} without setting {words.flag} in the request."
        )
    if update.level > existing and update.kind is not Kind.UPGRADE:
        return (
            f"When {words.sets}, the provided {words.level}:{update.level} can not be greater than"
            f" existing {words.level}:{existing}."
        )
    lowest = cluster.min_levels.get(update.feature)
    if not new and lowest is not None and update.level < lowest:
        return (
            f"Can not downgrade finalized feature to maxVersionLevel:{update.level} because it's lower than"
            f" the existing minVersionLevel:{lowest}."
        )
    return None


def _zookeeper_support(update: Update, cluster: Cluster) -> str | None:
    controller = next((node for node in cluster.nodes if node.node_id == cluster.local), None)
    # Brokers of one release support the same: without the controller's own row, what any of them says stands for it.
    asked = [controller] if controller is not None else list(cluster.nodes)
    ranges = [node.ranges[update.feature] for node in asked if update.feature in node.ranges]
    if not ranges:
        return "Could not apply finalized feature update because the provided feature is not supported."
    lowest = max(low for low, _ in ranges)
    if update.level < lowest:
        words = "versionLevel" if cluster.release >= (3, 3) else "maxVersionLevel"
        return (
            f"Could not apply finalized feature update because the provided {words}:{update.level} is lower than the"
            f" supported minVersion:{lowest}."
        )
    if _incompatible(update, cluster):
        return (
            "Could not apply finalized feature update because brokers were found to have incompatible versions for the"
            " feature."
        )
    return None


def _incompatible(update: Update, cluster: Cluster) -> tuple[str, ...]:
    """The brokers alive or shutting down whose range does not hold the level; one that says nothing is among them."""
    texts = []
    for node in sorted(cluster.nodes, key=lambda each: each.node_id):
        lowest, highest = node.supports(update.feature)
        if not lowest <= update.level <= highest or (lowest, highest) == DISABLED:
            support = "does not support it" if update.feature not in node.ranges else f"supports {lowest} to {highest}"
            texts.append(f"broker {node.node_id} {support}")
    return tuple(texts)
