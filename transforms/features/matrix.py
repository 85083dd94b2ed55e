"""The matrix of nodes and features: the levels that each supports, with the finalised one (S§9.4), and its checks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.kraft import feature_levels
from schemas.kraft.metadata_versions import FEATURE_NAME, MINIMUM_LEVEL_4X, is_known, level_name
from transforms.features.levels import defaults, is_known_level, kafka_name, latest_of, level_text
from transforms.outcome import Outcome, found, not_applicable, unknown

Range = tuple[int, int]
Levels = Mapping[str, int]
KRAFT_VERSION = feature_levels.KRAFT_VERSION
# The range of a node that does not report a feature (`QuorumFeatures.DISABLED`).
DISABLED: Range = (0, 0)
BROKER, CONTROLLER = "broker", "controller"


@dataclass(frozen=True)
class Node:
    """A registered broker or controller and the levels that it reports."""

    kind: str
    node_id: int
    ranges: Mapping[str, Range] = field(default_factory=dict)
    fenced: bool = False
    migrating_zk: bool = False

    @property
    def name(self) -> str:
        """Its name as in Kafka's messages, with details that Kafka leaves out."""
        return f"{self.kind} {self.node_id}{' (fenced)' if self.fenced else ''}"

    def supports(self, feature: str) -> Range:
        """Lowest and highest level; 0..0 for a feature that it does not report."""
        return self.ranges.get(feature, DISABLED)


@dataclass(frozen=True)
class Cell:
    """One node's part in one feature; `gap` names the problem, empty if the finalised level is in its range."""

    node: Node
    feature: str
    lowest: int
    highest: int
    finalised: int | None
    gap: str


def node_of(row: Mapping[str, Any]) -> Node:
    """A silver row of brokers or controllers as a node."""
    ranges = {each["name"]: (each["min_level"], each["max_level"]) for each in row.get("features") or ()}
    if "controller_id" in row:
        return Node(CONTROLLER, row["controller_id"], ranges)
    fenced, zookeeper = bool(row.get("fenced")), bool(row.get("is_migrating_zk_broker"))
    return Node(BROKER, row["broker_id"], ranges, fenced, zookeeper)


def matrix(nodes: Iterable[Node], finalised: Levels) -> list[Cell]:
    """One cell per node and feature that it or the cluster has; features by name, brokers before controllers."""
    listed = sorted(nodes, key=lambda node: (node.kind, node.node_id))
    features = sorted({*finalised, *(feature for node in listed for feature in node.ranges)})
    return [_cell(node, feature, finalised.get(feature)) for feature in features for node in listed]


def _cell(node: Node, feature: str, level: int | None) -> Cell:
    lowest, highest = node.supports(feature)
    return Cell(node, feature, lowest, highest, level, _gap(node, feature, level))


def _gap(node: Node, feature: str, level: int | None) -> str:
    lowest, highest = node.supports(feature)
    if not level or lowest <= level <= highest:
        return ""
    # A controller of 3.7 and 3.8 does not report features without a level in its release; only a raised level can be missing.
    if highest == 0:
        return f"{node.name} does not support {feature}, which is at {level_text(feature, level)}"
    shown = f"{level_text(feature, lowest)} to {level_text(feature, highest)}"
    return f"{node.name} supports {feature} {shown}, it is at {level_text(feature, level)}"


def brokers_support(nodes: Sequence[Node] | None, finalised: Levels | None) -> Outcome:
    """FEAT-01: every finalised level is in the range of every broker that is not fenced."""
    if nodes is None or finalised is None:
        return unknown("no registrations or no features were collected")
    brokers = [node for node in nodes if node.kind == BROKER and not node.fenced]
    if not brokers:
        return unknown("no running broker is registered")
    return found(cell.gap for cell in matrix(brokers, finalised) if cell.gap)


def controllers_support(nodes: Sequence[Node] | None, finalised: Levels | None) -> Outcome:
    """FEAT-02: every finalised level is in the range of every registered controller."""
    if nodes is None or finalised is None:
        return unknown("no registrations or no features were collected")
    controllers = [node for node in nodes if node.kind == CONTROLLER]
    if not controllers:
        return unknown("no controller is registered: they are from metadata.version 3.7-IV0 (15) on")
    return found(cell.gap for cell in matrix(controllers, finalised) if cell.gap)


def level_is_known(finalised: Levels | None) -> Outcome:
    """FEAT-03: this audit supports the finalised metadata.version; the meaning of another feature or level is unknown."""
    if finalised is None:
        return unknown("no features were collected")
    beyond = {name: level for name, level in sorted(finalised.items()) if not is_known_level(name, level)}
    if beyond.keys() - {FEATURE_NAME}:
        listed = (f"{name} {level_text(name, level)}" for name, level in beyond.items())
        return unknown(f"this audit does not support {', '.join(listed)}")
    level = finalised.get(FEATURE_NAME)
    if level is None:
        return not_applicable("no metadata.version is finalised (FEAT-07)")
    return found([] if is_known(level) else [f"metadata.version is at {level_name(level)} ({level})"])


def lost_at_migration(zookeeper: Levels | None, kraft: Levels | None) -> Outcome:
    """FEAT-04: which features `/feature` has finalised that KRaft has not; the migration does not take them over."""
    if zookeeper is None or kraft is None:
        return unknown("/feature or KRaft's features were not collected")
    return found(
        (f"{name} was at {level} in /feature" for name, level in sorted(zookeeper.items()) if name not in kraft),
        tolerable=True,
    )


def migrating_brokers_agree(nodes: Sequence[Node] | None, finalised: Levels | None) -> Outcome:
    """FEAT-05: a broker in ZooKeeper mode supports exactly the finalised metadata.version, its own IBP."""
    if nodes is None or finalised is None:
        return unknown("no registrations or no features were collected")
    migrating = [node for node in nodes if node.kind == BROKER and node.migrating_zk]
    level = finalised.get(FEATURE_NAME)
    if not migrating:
        return not_applicable("no broker is registered in ZooKeeper mode")
    if level is None:
        return unknown("no metadata.version is finalised")
    return found(
        f"{node.name} has the inter.broker.protocol.version {_ibp(node)}, metadata.version is {level_name(level)}"
        for node in migrating
        if node.supports(FEATURE_NAME) != (level, level)
    )


def _ibp(node: Node) -> str:
    lowest, highest = node.supports(FEATURE_NAME)
    return level_name(lowest) if lowest == highest else f"{level_name(lowest)} to {level_name(highest)}"


def brokers_of_zookeeper_support(nodes: Sequence[Node] | None, finalised: Levels | None) -> Outcome:
    """FEAT-11: every broker in `/brokers/ids` supports what `/feature` has finalised; else it stops (`BrokerFeatures`)."""
    if nodes is None or finalised is None:
        return unknown("/brokers/ids or /feature was not read")
    if finalised and not nodes:
        return unknown("no broker is in /brokers/ids")
    return found(cell.gap for cell in matrix(nodes, finalised) if cell.gap)


def rows_are_sound(rows: Iterable[tuple[str, int]] | None) -> Outcome:
    """FEAT-06: each feature is finalised once, and none at level 0 (that is a removal). `rows` are name and level."""
    if rows is None:
        return unknown("no features were collected")
    listed = list(rows)
    names = [name for name, _ in listed]
    twice = sorted({name for name in names if names.count(name) > 1})
    texts = [f"{name} is finalised {names.count(name)} times" for name in twice]
    return found([*texts, *(f"{name} is finalised at level {level}" for name, level in listed if level < 1)])


def has_metadata_version(finalised: Levels | None) -> Outcome:
    """FEAT-07: a metadata.version is finalised; without one a cluster runs at the lowest level that its release supports."""
    if finalised is None:
        return unknown("no features were collected")
    return found([] if FEATURE_NAME in finalised else ["no metadata.version is finalised"])


def bootstrap_is_readable(levels: Mapping[str, int | None] | None) -> Outcome:
    """FEAT-08: each node's `bootstrap.checkpoint` is at a level that 4.0.0 reads; a warning, for it is not started yet.

    `levels` are the metadata.version of the file of each node, None where it could not be read.
    """
    if levels is None:
        return unknown("no bootstrap.checkpoint was given")
    unread = [node for node, level in levels.items() if level is None]
    texts = [
        f"{node}: bootstrap.checkpoint is at {level_name(level)}, 4.0.0 starts from {level_name(MINIMUM_LEVEL_4X)}"
        for node, level in levels.items()
        if level is not None and level < MINIMUM_LEVEL_4X
    ]
    if unread and not texts:
        return unknown(f"the bootstrap.checkpoint of {', '.join(unread)} could not be read")
    return found(texts, tolerable=True)


def behind_defaults(finalised: Levels | None, release: tuple[int, int] | None) -> Outcome:
    """FEAT-09: each feature that the release has is at least at its default for the finalised metadata.version.

    kraft.version is another matter (FEAT-10): a static quorum works as well.
    """
    if finalised is None or release is None:
        return unknown("the features or the Kafka release are unknown")
    level = finalised.get(FEATURE_NAME)
    if level is None:
        return not_applicable("no metadata.version is finalised (FEAT-07)")
    if latest_of(release) is None or not is_known(level):
        return unknown("this audit does not support the defaults of this release or metadata.version")
    wanted = {name: default for name, default in defaults(release, level).items() if name != KRAFT_VERSION}
    return found(
        (
            f"{name} is at {finalised.get(name, 0)}, {default} is the default at metadata.version {level_name(level)}"
            for name, default in wanted.items()
            if finalised.get(name, 0) < default
        ),
        tolerable=True,
    )


def deprecation(nodes: Iterable[Node], finalised: Levels, feature: str, lowest: int) -> list[str]:
    """The nodes that still need a level of `feature` below `lowest`; without any, the levels below may be dropped (KIP-584).

    The proposal raised the cluster's minimum with min_version_level; releases from 3.3 on have none, and drop levels by
    no longer supporting them.
    """
    level = finalised.get(feature)
    texts = [f"the cluster is at {level_text(feature, level)}"] if level is not None and level < lowest else []
    for node in sorted(nodes, key=lambda each: (each.kind, each.node_id)):
        highest = node.supports(feature)[1]
        if highest < lowest:
            support = f"goes up to {level_text(feature, highest)}" if highest else "does not support it"
            texts.append(f"{node.name} {support}")
    return texts


def unheard(nodes: Iterable[Node], voters: Collection[int] | None) -> list[str]:
    """The controllers whose levels are unknown: below metadata.version 3.7-IV0 (15) none registers, above it one may be down.

    `voters` None means unknown.
    """
    registered = {node.node_id for node in nodes if node.kind == CONTROLLER}
    if voters is None:
        return [] if registered else ["no controller has registered, and the quorum's voters are unknown"]
    return [f"controller {node_id} has not registered" for node_id in sorted({*voters} - registered)]


_TABS = "Feature: {}\tSupportedMinVersion: {}\tSupportedMaxVersion: {}\tFinalizedVersionLevel: {}\tEpoch: {}"
_PADDED = "Feature: {:<40}  SupportedMinVersion: {:<15}  SupportedMaxVersion: {:<15}  FinalizedVersionLevel: {:<15}  Epoch: {}"


def describe(
    supported: Mapping[str, Range], finalised: Levels, epoch: int | None, release: tuple[int, int] = (3, 9)
) -> list[str]:
    """The lines of `kafka-features describe`, one a supported feature (`FeatureCommand.handleDescribe`).

    The tool of `release` puts tabs between them, from 4.3 on columns of fixed width.
    """
    shown = "-" if epoch is None else str(epoch)
    form = _PADDED if release >= (4, 3) else _TABS
    return [
        form.format(
            name,
            kafka_name(name == FEATURE_NAME, lowest),
            kafka_name(name == FEATURE_NAME, highest),
            kafka_name(name == FEATURE_NAME, finalised.get(name, 0)),
            shown,
        )
        for name, (lowest, highest) in sorted(supported.items())
    ]
