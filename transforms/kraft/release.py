"""Which Kafka release wrote a log, from what its nodes say they support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from schemas.kraft.metadata_versions import FEATURE_NAME, LATEST_PRODUCTION, level_name

# 3.4 writes state 1 when a load begins, no other one and none into checkpoints (S§2.8, S§4.3).
_NOT_WRITTEN_BY_3_4 = frozenset({0, 2, 3})


@dataclass(frozen=True)
class Release:
    """A release such as `3.9` (None when nothing tells) and the evidence for it, in one line."""

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
) -> Release:
    """The configured version, else the release whose newest metadata.version the nodes advertise.

    `controllers` and `brokers` are silver KRaft rows. A ZooKeeper broker advertises only its IBP (S§9.2), so the result
    is a lower bound when no controller registers (before 3.7). `state_codes` are the ZkMigrationState bytes of the log:
    3.4 writes only 1, so another one tells a later release that runs at an old metadata.version; so does a state that
    the log's base checkpoint holds (`state_in_checkpoint`).
    """
    if configured is not None:
        return Release(configured, "configured")
    levels = [(level, f"controller {c['controller_id']}") for c in controllers for level in _levels(c)]
    levels += [(level, f"broker {b['broker_id']}") for b in brokers for level in _levels(b)]
    if metadata_version is not None:
        levels.append((metadata_version, "the finalised metadata.version"))
    if not levels:
        return Release(None, "neither configured nor told by a registration")
    level, who = max(levels, key=lambda pair: pair[0])
    version = min(
        (name for name, latest in LATEST_PRODUCTION.items() if latest >= level),
        key=lambda name: LATEST_PRODUCTION[name],
        default=None,
    )
    if before(version, 3, 5) and (state_in_checkpoint or state_codes & _NOT_WRITTEN_BY_3_4):
        return Release("3.5", "inferred: the log holds a ZkMigrationState that 3.4 never writes; 3.5 or later")
    return Release(version, f"inferred: {who} supports metadata.version up to {level_name(level)}")


def _levels(node: Mapping[str, Any]) -> list[int]:
    return [feature["max_level"] for feature in node["features"] or () if feature["name"] == FEATURE_NAME]


def before(version: str | None, major: int, minor: int) -> bool:
    """True when the release is known and older than `major.minor`."""
    if version is None:
        return False
    parts = version.split(".")
    return (int(parts[0]), int(parts[1])) < (major, minor)
