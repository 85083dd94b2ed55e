"""The controller's answer to `kafka-features upgrade`, `downgrade` and `disable` (S§9.3), predicted without a controller.

`FeatureControlManager.updateFeature` for KRaft, `KafkaController.validateFeatureUpdate` for the ZooKeeper controller. Kafka
names the first node that blocks it; here all are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.kraft.feature_levels import (
    ELR_VERSION,
    GROUP_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
    TRANSACTION_VERSION,
)
from schemas.kraft.metadata_versions import FEATURE_NAME, is_known, level_name
from transforms.features.java_order import feature_order, hash_map_order, registered_order
from transforms.features.levels import (
    MINIMUM_4X,
    MINIMUM_BOOTSTRAP_3X,
    highest_of,
    is_known_level,
    knows_name,
    latest_of,
    lost_between,
    lowest_of,
    release_name,
    required_by,
)
from transforms.features.matrix import BROKER, CONTROLLER, DISABLED, KRAFT_VERSION, Node, Range

CONTROLLERS_REGISTER_FROM = 15
ELR = ELR_VERSION
# The consequence of lowering a feature below a level. transaction.version 1 only changes the format of new records.
LOSSES: Mapping[tuple[str, int], str] = {
    (
        ELR,
        1,
    ): "checkpoints leave eligible leader replicas out: once the controllers have restarted, a partition whose ISR is empty has no "
    "leader until an unclean election",
    (GROUP_VERSION, 1): "groups of the new consumer protocol can't be served",
    (TRANSACTION_VERSION, 2): "transactions are no longer ended with an epoch of their own",
    (SHARE_VERSION, 1): "share groups can't be served",
    (SHARE_VERSION, 2): "share groups no longer write to dead letter queues",
    (STREAMS_VERSION, 1): "groups of the streams protocol can't be served",
}
IN_PROGRESS = ("PRE_MIGRATION", "MIGRATION")


class RequestKind(StrEnum):
    """The kind of the request."""

    UPGRADE = "upgrade"
    SAFE_DOWNGRADE = "downgrade"
    UNSAFE_DOWNGRADE = "unsafe downgrade"


class FeatureVerdict(StrEnum):
    """Whether Kafka accepts the update; `unknown` if an input of Kafka's decision is not in the tables."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Update:
    """One feature's new level; level 0 with a downgrade is a deletion."""

    feature: str
    level: int
    kind: RequestKind = RequestKind.UPGRADE


@dataclass(frozen=True)
class Cluster:
    """The cluster as a controller has it when it gets a request. `local` is the active controller, whose range its messages call local.

    `voters` None and no registered controllers mean unknown, not none. `zookeeper` applies the ZooKeeper controller's
    rules: then `nodes` are the live brokers, `local` the broker that is the controller, `versioning` whether `/feature` is
    enabled, `min_levels` those of a version 1 znode.

    `configured` are the ids of `controller.quorum.voters`, None without a property file: then a static quorum's are its
    voters, and a dynamic one has none. `directory_ids` are the voters whose directory id is known.
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
    configured: frozenset[int] | None = None
    directory_ids: frozenset[int] = frozenset()


@dataclass(frozen=True)
class FeatureAnswer:
    """The answer for one feature: Kafka's error and words, all nodes that block it, what is lost, what was unknown."""

    update: Update
    verdict: FeatureVerdict
    error: str = "NONE"
    message: str = ""
    blocking: tuple[str, ...] = ()
    loses: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DryRun:
    """Answers in the order of the request, the lines that Kafka's tool prints, and its exit code (None if unknown)."""

    answers: tuple[FeatureAnswer, ...]
    lines: tuple[str, ...]
    exit_code: int | None


def dry_run(updates: Sequence[Update], cluster: Cluster, operation: str | None = None) -> DryRun:
    """The answers of the controller and the tool. `operation` is upgrade, downgrade or disable; derived from the updates.

    One request may upgrade, downgrade and delete at once; then each line names its own operation.
    """
    proposed = {**cluster.finalised, **{update.feature: update.level for update in updates}}
    answers = [_answer(update, cluster, proposed) for update in updates]
    if not cluster.zookeeper and cluster.release >= (4, 0):
        answers = _all_or_none(answers)
    named = operation or _operation(updates)
    lines = [
        _line(answer, named or _operation([answer.update]) or "downgrade")
        for answer in sorted(answers, key=lambda each: each.update.feature)
    ]
    failed = sum(answer.verdict is FeatureVerdict.NO for answer in answers)
    if failed:
        lines.append(f"{failed} out of {len(answers)} operation(s) failed.")
    undecided = any(answer.verdict is FeatureVerdict.UNKNOWN for answer in answers)
    return DryRun(tuple(answers), tuple(lines), 1 if failed else None if undecided else 0)


def _operation(updates: Sequence[Update]) -> str | None:
    """The subcommand that makes these updates; None if no single one can."""
    if all(update.level == 0 and update.kind is not RequestKind.UPGRADE for update in updates):
        return "disable"
    upgrades = [update.kind is RequestKind.UPGRADE for update in updates]
    if all(upgrades):
        return "upgrade"
    return None if any(upgrades) else "downgrade"


def _all_or_none(answers: Sequence[FeatureAnswer]) -> list[FeatureAnswer]:
    """From 4.0 on the first error, in the order of the request's `HashMap`, is the error of all features of the request."""
    order = feature_order([answer.update.feature for answer in answers])
    asked = sorted(answers, key=lambda answer: order.index(answer.update.feature))
    first = next((answer for answer in asked if answer.verdict is FeatureVerdict.NO), None)
    if first is not None:
        text = f"The update failed for all features since the following feature had an error: {first.message}"
        return [replace(answer, verdict=FeatureVerdict.NO, error=first.error, message=text) for answer in answers]
    open_question = next((answer for answer in asked if answer.verdict is FeatureVerdict.UNKNOWN), None)
    if open_question is None:
        return list(answers)
    text = f"all fail with {open_question.update.feature}, of which this is unknown: {open_question.message}"
    return [
        answer
        if answer.verdict is FeatureVerdict.UNKNOWN
        else replace(answer, verdict=FeatureVerdict.UNKNOWN, message=text)
        for answer in answers
    ]


def _line(answer: FeatureAnswer, operation: str) -> str:
    name, level = answer.update.feature, answer.update.level
    if answer.verdict is FeatureVerdict.UNKNOWN:
        return f"{name}: unknown. {answer.message}"
    if answer.verdict is FeatureVerdict.NO:
        asked = f"disable {name}" if operation == "disable" else f"{operation} {name} to {level}"
        return f"Can not {asked}. {answer.message}"
    done = "disabled." if operation == "disable" else f"{operation}d to {level}."
    return f"{name} can be {done}"


def _answer(update: Update, cluster: Cluster, proposed: Mapping[str, int]) -> FeatureAnswer:
    if cluster.zookeeper:
        return _zookeeper_answer(update, cluster)
    current = cluster.finalised.get(update.feature, 0)
    asked = _asked_of(update, cluster)
    loses = _losses(update, current)
    message = _first_error(update, cluster, current, asked.blocking, proposed)
    if message is not None:
        return FeatureAnswer(
            update, FeatureVerdict.NO, "INVALID_UPDATE_VERSION", message, asked.blocking, loses, asked.undecided
        )
    undecided = (*asked.undecided, *_beyond_tables(update, cluster, current), *_not_ready(update, cluster, current))
    notes = (*undecided, *asked.notes, *_kraft_version_notes(update, cluster, current))
    if undecided:
        return FeatureAnswer(update, FeatureVerdict.UNKNOWN, message="; ".join(undecided), loses=loses, notes=notes)
    return FeatureAnswer(update, FeatureVerdict.YES, loses=loses, notes=notes)


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
    direction = _direction_error(update, current)
    if direction is not None:
        return direction
    if update.feature == FEATURE_NAME:
        return _metadata_version_error(update, cluster, current)
    if cluster.release < (4, 0):
        return None
    if update.feature == KRAFT_VERSION and cluster.release >= (4, 1):
        lower = update.level < current
        return _invalid(update, "Can't downgrade the version of this feature.") if lower else None
    return _dependency_error(update, cluster, proposed)


def _direction_error(update: Update, current: int) -> str | None:
    if update.level < current and update.kind is RequestKind.UPGRADE:
        reason = "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
        return _invalid(update, reason)
    if update.level > current and update.kind is not RequestKind.UPGRADE:
        return _invalid(update, "Can't downgrade to a newer version.")
    return None


def _metadata_version_error(update: Update, cluster: Cluster, current: int) -> str | None:
    if cluster.release < (4, 0):
        refusal = _refusal_of_3x(update, cluster)
        if refusal is not None:
            return _invalid_level(update, refusal)
    if not lost_between(update.level, current):
        return None
    return _downgrade_refusal(update, cluster, current)


def _invalid_level(update: Update, reason: str) -> str:
    return f"Invalid metadata.version {update.level}. {reason}"


def _refusal_of_3x(update: Update, cluster: Cluster) -> str | None:
    if not is_known(update.level):
        return "Unknown metadata.version."
    # 3.4 also migrates, but does not check this.
    if cluster.migration_state in IN_PROGRESS and cluster.release >= (3, 5):
        return "Unable to modify metadata.version while a ZK migration is in progress."
    if update.level < MINIMUM_BOOTSTRAP_3X:
        return f"Unable to set a metadata.version less than {level_name(MINIMUM_BOOTSTRAP_3X)}"
    return None


def _downgrade_refusal(update: Update, cluster: Cluster, current: int) -> str:
    if update.kind is RequestKind.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    else:
        retry = " Retry using UNSAFE_DOWNGRADE if you want to force the downgrade to proceed."
        reason = "Refusing to perform the requested downgrade because it might delete metadata information."
        reason += retry if cluster.release < (3, 7) else ""
    if cluster.release >= (4, 2):
        return f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"
    return _invalid_level(update, reason)


def _dependency_error(update: Update, cluster: Cluster, proposed: Mapping[str, int]) -> str | None:
    """`Feature.validateVersion`, from 4.0 on."""
    if update.level == 0 and latest_of(cluster.release) is not None and not knows_name(cluster.release, update.feature):
        return _invalid(update, f"Feature {update.feature} not found.")
    level = proposed.get(FEATURE_NAME)
    if update.level >= 1 and (level is None or level < MINIMUM_4X):
        needed = f"metadata.version={MINIMUM_4X} ({level_name(MINIMUM_4X)})"
        return _invalid(update, f"{update.feature} could not be set to {update.level} because it depends on {needed}")
    for name, least in required_by(update.feature, update.level, cluster.release).items():
        if proposed.get(name, 0) < least:
            text = f"{update.feature} could not be set to {update.level} because it depends on {name} level {least}"
            return _invalid(update, text)
    return None


@dataclass(frozen=True)
class _Asked:
    """The nodes that block, in Kafka's order; why an answer is unknown; and remarks."""

    blocking: tuple[str, ...]
    undecided: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _asked_of(update: Update, cluster: Cluster) -> _Asked:
    """Every node that blocks, and conditions that could not be checked (`FeatureControlManager.reasonNotSupported`)."""
    controllers = {node.node_id: node for node in cluster.nodes if node.kind == CONTROLLER}
    local, own_unknown = _local(update, cluster, controllers)
    before_3_7 = cluster.release < (3, 7)
    found = [*local, *_brokers(update, cluster, _refusal_before_3_7 if before_3_7 else _refusal)]
    if before_3_7 and cluster.voters is not None and cluster.voters == {cluster.local}:
        return _Asked(tuple(found), own_unknown)
    if before_3_7:
        note = "before 3.7 a controller asks the others over the network: no record shows what they support"
        return _Asked(tuple(found), (*own_unknown, note))
    if cluster.finalised.get(FEATURE_NAME, 1) < CONTROLLERS_REGISTER_FROM:
        note = "below metadata.version 3.7-IV0 (15) controllers do not register: Kafka accepts it without asking them"
        return _Asked(tuple(found), own_unknown, (note,))
    for node_id in registered_order(controllers):
        if node_id != cluster.local:
            found += _refusal(update, f"Controller {node_id}", controllers[node_id].supports(update.feature))
    return _unregistered(cluster, set(controllers), found, own_unknown)


def _unregistered(cluster: Cluster, registered: set[int], found: list[str], own_unknown: tuple[str, ...]) -> _Asked:
    """`QuorumFeatures.quorumNodeIds`: those of controller.quorum.voters have to be registered, of any quorum."""
    dynamic = bool(cluster.finalised.get(KRAFT_VERSION))
    asked = cluster.configured if cluster.configured is not None or dynamic else cluster.voters
    here = registered | ({cluster.local} if cluster.local is not None else set())
    if asked is None and not dynamic:
        return _Asked(tuple(found), (*own_unknown, "the quorum's voters are unknown, and each must be registered"))
    if asked is None:
        absent = sorted((cluster.voters or frozenset()) - here)
        notes = (
            f"voter {node_id} has not registered: this matters only if controller.quorum.voters names it"
            for node_id in absent
        )
        return _Asked(tuple(found), own_unknown, tuple(notes))
    missing = [node_id for node_id in hash_map_order(sorted(asked)) if node_id not in here]
    found += [f"controller {node_id} has not registered, and may not support this feature" for node_id in missing]
    return _Asked(tuple(found), own_unknown)


_Refusal = Callable[[Update, str, Range], list[str]]


def _brokers(update: Update, cluster: Cluster, refusal: _Refusal) -> list[str]:
    brokers = {node.node_id: node for node in cluster.nodes if node.kind == BROKER}
    return [
        text
        for node_id in registered_order(brokers)
        for text in refusal(update, f"Broker {node_id}", brokers[node_id].supports(update.feature))
    ]


def _refusal(update: Update, who: str, supported: Range) -> list[str]:
    lowest, highest = supported
    if lowest <= update.level <= highest:
        return []
    if highest == 0:
        return [f"{who} does not support this feature."]
    return [f"{who} only supports versions {lowest}{f'-{highest}' if highest != lowest else ''}"]


def _refusal_before_3_7(update: Update, who: str, supported: Range) -> list[str]:
    """A feature that a broker did not name was refused at any level, 0 included."""
    lowest, highest = supported
    if supported == DISABLED:
        return [f"{who} does not support this feature."]
    if lowest <= update.level <= highest:
        return []
    return [f"{who} does not support the given version. It supports {lowest} to {highest}."]


def _local(update: Update, cluster: Cluster, controllers: Mapping[int, Node]) -> tuple[list[str], tuple[str, ...]]:
    """The active controller, by its registration, otherwise by its release; and a remark if its range is unknown."""
    if cluster.local is None and controllers:
        # It is one of these, and each is checked.
        return [], ()
    who = "Local controller" if cluster.local is None else f"Local controller {cluster.local}"
    node = None if cluster.local is None else controllers.get(cluster.local)
    if node is not None:
        return _refusal(update, who, node.supports(update.feature)), ()
    highest = highest_of(cluster.release, update.feature)
    if highest is None:
        return [], ("the active controller's own range is unknown",)
    lowest = lowest_of(cluster.release) if update.feature == FEATURE_NAME else 0
    return _refusal(update, who, (lowest, highest)), ()


def _beyond_tables(update: Update, cluster: Cluster, current: int) -> tuple[str, ...]:
    """Anything above the tables is unknown: the release, the feature, or its level."""
    if latest_of(cluster.release) is None:
        return (f"Kafka {release_name(cluster.release)} is a release that this audit does not support",)
    return tuple(
        f"{update.feature} {level} is a level that this audit does not support"
        for level in sorted({update.level, current})
        if level > 0 and not is_known_level(update.feature, level)
    )


def _not_ready(update: Update, cluster: Cluster, current: int) -> tuple[str, ...]:
    """From 4.1 on the leader requires every voter's directory id and support (`LeaderState`)."""
    if update.feature != KRAFT_VERSION or update.level <= current or cluster.release < (4, 1):
        return ()
    if cluster.voters is None:
        return ("the quorum's voters are unknown, and the leader has to know the directory id of each",)
    return tuple(voter_readiness(cluster))


def voter_readiness(cluster: Cluster) -> list[str]:
    """Unknown facts of voters that kraft.version 1 needs: registered support, and the directory id."""
    able = {
        node.node_id
        for node in cluster.nodes
        if node.kind == CONTROLLER and node.supports(KRAFT_VERSION)[0] <= 1 <= node.supports(KRAFT_VERSION)[1]
    }
    voters = sorted(cluster.voters or ())
    texts = [f"controller {voter} is not known to support kraft.version 1" for voter in voters if voter not in able]
    return texts + [
        f"the directory id of controller {voter} is unknown" for voter in voters if voter not in cluster.directory_ids
    ]


def _losses(update: Update, current: int) -> tuple[str, ...]:
    if update.level >= current:
        return ()
    if update.feature == FEATURE_NAME:
        return lost_between(update.level, current) or ()
    return feature_losses(update.feature, update.level, current)


def feature_losses(feature: str, level: int, current: int) -> tuple[str, ...]:
    """What a feature loses from its level down to a lower one."""
    return tuple(text for (name, lost), text in LOSSES.items() if name == feature and level < lost <= current)


def _kraft_version_notes(update: Update, cluster: Cluster, current: int) -> tuple[str, ...]:
    if update.feature != KRAFT_VERSION or update.level == current:
        return ()
    if cluster.release < (4, 1):
        return ("before 4.1 this writes a record that the quorum ignores (KAFKA-18979)",)
    return ("the leader must have heard from every voter since it was elected (UpdateRaftVoter), or it refuses",)


def _zookeeper_answer(update: Update, cluster: Cluster) -> FeatureAnswer:
    message = _zookeeper_error(update, cluster)
    current = cluster.finalised.get(update.feature, 0)
    deletes = update.level < 1 and update.kind is not RequestKind.UPGRADE
    blocking = () if deletes else _incompatible(update, cluster)
    if message is None:
        return FeatureAnswer(update, FeatureVerdict.YES, loses=_losses(update, current))
    return FeatureAnswer(update, FeatureVerdict.NO, "INVALID_REQUEST", message, blocking, _losses(update, current))


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
    if update.kind is not RequestKind.UPGRADE:
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
    downgrade = update.kind is RequestKind.SAFE_DOWNGRADE or (not new and update.kind is not RequestKind.UPGRADE)
    if update.level == existing:
        verb = "downgrade" if downgrade else "upgrade"
        return f"Can not {verb} a finalized feature from existing {words.level}:{existing} to the same value."
    if update.level < existing and not downgrade:
        return (
            f"Can not downgrade finalized feature from existing {words.level}:{existing} to provided"
            f" {words.level}:{update.level} without setting {words.flag} in the request."
        )
    if update.level > existing and update.kind is not RequestKind.UPGRADE:
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
    # Brokers of one release support the same: without the controller's own row, that of any broker stands for it.
    asked = [controller] if controller is not None else list(cluster.nodes)
    ranges = [node.ranges[update.feature] for node in asked if update.feature in node.ranges]
    if not ranges:
        return "Could not apply finalized feature update because the provided feature is not supported."
    lowest, highest = max(low for low, _ in ranges), min(high for _, high in ranges)
    # From 3.3 on a level above the range is answered so, too (`SupportedVersionRange.isIncompatibleWith`).
    if update.level < lowest or (update.level > highest and cluster.release >= (3, 3)):
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
    """Brokers, alive or shutting down, whose range does not include the level, or that report none."""
    texts = []
    for node in sorted(cluster.nodes, key=lambda each: each.node_id):
        lowest, highest = node.supports(update.feature)
        if not lowest <= update.level <= highest or (lowest, highest) == DISABLED:
            support = "does not support it" if update.feature not in node.ranges else f"supports {lowest} to {highest}"
            texts.append(f"broker {node.node_id} {support}")
    return tuple(texts)
