"""The Kafka release that wrote a log, inferred from the ranges that its nodes report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.kraft.metadata_versions import FEATURE_NAME, LATEST_PRODUCTION, level_name

# 3.4 writes state 1 when a load begins, no other one and none into checkpoints (S§2.8, S§4.3).
_NOT_WRITTEN_BY_3_4 = frozenset({0, 2, 3})
_UNDER_WAY = frozenset({1, 2})
# 3.4-IV0 and 3.9-IV0: the releases between them support both ZooKeeper and the migration.
FIRST_MIGRATING_LEVEL, LAST_MIGRATING_LEVEL = 8, 21
Nodes = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Release:
    """A release such as `3.9` (None if unknown) and the evidence for it, in one line."""

    version: str | None
    evidence: str


def infer_release(
    configured: str | None,
    controllers: Iterable[Mapping[str, Any]],
    brokers: Iterable[Mapping[str, Any]],
    metadata_version: int | None,
    state_codes: frozenset[int] = frozenset(),
    *,
    state_in_checkpoint: bool = False,
    offset_moved: bool = False,
    migrating: bool = False,
) -> Release:
    """The configured version, else the release that most nodes state, held to what decides its meaning.

    `controllers` and `brokers` are silver KRaft rows. Most controllers decide, otherwise most brokers in KRaft mode: one node
    of another release changes nothing. A ZooKeeper broker advertises only its IBP (S§9.2), which no release can be below, nor
    below the finalised level. While a migration runs (`migrating`) the release is one that can migrate, whatever a node says;
    such a node is named by `outside_migration`. `state_codes` are the ZkMigrationState bytes of the log: 3.4 writes only 1, so
    another one shows a later release that runs at an old metadata.version; so does a state that the log's base checkpoint holds
    (`state_in_checkpoint`), and so does an offset of `/migration` that moved without a load (`offset_moved`, S§4.4).
    """
    if configured is not None:
        return Release(configured, "configured")
    levels = _levels_stated(list(controllers), list(brokers), metadata_version)
    if migrating:
        levels = [(min(level, LAST_MIGRATING_LEVEL), who) for level, who in levels]
    if not levels:
        return Release(None, "neither configured nor evident from a registration")
    level, who = max(levels, key=lambda pair: pair[0])
    version = min(
        (name for name, latest in LATEST_PRODUCTION.items() if latest >= level),
        key=lambda name: LATEST_PRODUCTION[name],
        default=None,
    )
    if before(version, 3, 5) and (state_in_checkpoint or state_codes & _NOT_WRITTEN_BY_3_4):
        return Release("3.5", "inferred: the log holds a ZkMigrationState that 3.4 never writes; 3.5 or later")
    if before(version, 3, 5) and offset_moved:
        return Release(
            "3.5", "inferred: the offset in /migration moves after the load, which 3.4 never does; 3.5 or later"
        )
    return Release(version, f"inferred: {who} supports metadata.version up to {level_name(level)}")


def is_migrating(state_codes: Sequence[int], last_epoch: int | None, zookeeper: Mapping[str, Any] | None) -> bool:
    """True if the log and ZooKeeper show a migration that is not over, so the release can migrate.

    `state_codes` are the log's ZkMigrationState bytes in order: 1 and 2 are MIGRATION and PRE_MIGRATION in every release
    (S§2.6). Otherwise `/migration` shows it, if the leader of the log's newest epoch wrote it: 4.x never does.
    """
    if state_codes and state_codes[-1] in _UNDER_WAY:
        return True
    writer = (zookeeper or {}).get("kraft_controller_epoch")
    return not state_codes and writer is not None and writer > 0 and writer == last_epoch


def outside_migration(name: str, node: Mapping[str, Any]) -> str | None:
    """Why the node `name` cannot be part of a migration, by the levels that it supports; None if it can.

    Releases 3.4 to 3.9 migrate: metadata.version 3.4-IV0 is the lowest with a migration (KIP-866), and what supports more than
    3.9-IV0 is Kafka 4, which does not support ZooKeeper and ignores the migration's state.
    """
    levels = _levels(node)
    if not levels:
        return None
    highest = max(levels)
    if highest > LAST_MIGRATING_LEVEL:
        return f"{name} supports metadata.version up to {level_name(highest)}: Kafka 4 or later, which can't migrate"
    if highest < FIRST_MIGRATING_LEVEL:
        return (
            f"{name} supports metadata.version up to {level_name(highest)}: older than Kafka 3.4, which can't migrate"
        )
    return None


StatedLevels = list[tuple[int, str]]


def _levels_stated(controllers: Nodes, brokers: Nodes, metadata_version: int | None) -> StatedLevels:
    """The levels that bound the release from below, each with its source."""
    levels = _majority("controller", controllers)
    if not levels:
        levels = _majority("broker", [row for row in brokers if not row.get("is_migrating_zk_broker")])
    if not levels or levels[0][0] <= LAST_MIGRATING_LEVEL:
        levels += _lowest_of_zookeeper_brokers(brokers)
    if metadata_version is not None:
        levels.append((metadata_version, "the finalised metadata.version"))
    return levels


def _majority(kind: str, nodes: Nodes) -> StatedLevels:
    """The level that more than half of the nodes support, by one of them; None if no node reports any."""
    levels = sorted((max(_levels(node)), node[f"{kind}_id"]) for node in nodes if _levels(node))
    if not levels:
        return []
    level, node = levels[(len(levels) - 1) // 2]
    return [(level, f"{kind} {node}")]


def _lowest_of_zookeeper_brokers(brokers: Nodes) -> StatedLevels:
    """The protocol versions of brokers in ZooKeeper mode: none of these brokers is older than its own."""
    levels = [
        (level, f"broker {row['broker_id']}")
        for row in brokers
        if row.get("is_migrating_zk_broker")
        for level in _levels(row)
        if level <= LAST_MIGRATING_LEVEL
    ]
    return [max(levels)] if levels else []


def _levels(node: Mapping[str, Any]) -> list[int]:
    return [feature["max_level"] for feature in node.get("features") or () if feature["name"] == FEATURE_NAME]


def before(version: str | None, major: int, minor: int) -> bool:
    """True if the release is known and older than `major.minor`."""
    if version is None:
        return False
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) < (major, minor)
