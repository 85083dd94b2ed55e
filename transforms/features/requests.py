"""Requests of `kafka-features` that name a release, and its output that needs no controller (KIP-1022, `FeatureCommand`).

The tool has these from 4.0 on. A release stands for a level of metadata.version and each feature's default at it.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.kraft.feature_levels import HIGHEST_LEVELS
from schemas.kraft.metadata_versions import FEATURE_NAME, LATEST_PRODUCTION, is_known, level_name
from transforms.features.levels import (
    MINIMUM_4X,
    Release,
    UnknownLevelError,
    defaults,
    has_level,
    knows_name,
    latest_of,
    level_of,
    release_name,
    release_tuple,
    required_by,
)
from transforms.features.update import RequestKind, Update

FIRST_WITH_RELEASES: Release = (4, 0)
NEWEST: Release = release_tuple(next(reversed(LATEST_PRODUCTION)))


def of_release(text: str, kind: RequestKind, release: Release) -> list[Update]:
    """The updates that `--release-version` makes: metadata.version, and every feature's default at it.

    An upgrade leaves out levels of 0. Raises UnknownLevelError for a release that the tool of `release` does not support.
    """
    level = _level(text, release)
    others = defaults(release, level)
    return [
        Update(FEATURE_NAME, level, kind),
        *(
            Update(name, default, kind)
            for name, default in others.items()
            if default or kind is not RequestKind.UPGRADE
        ),
    ]


def refused_by_the_tool(updates: Sequence[Update], release: Release) -> str | None:
    """What `kafka-features` of a release says to a request that it does not send (`FeatureUpdate`); None for one that it sends."""
    for update in updates:
        if update.level < 0:
            return "Cannot specify a negative version level."
        if update.level == 0 and update.kind is RequestKind.UPGRADE:
            kinds = ("upgradeType", "SAFE_DOWNGRADE or UNSAFE_DOWNGRADE")
            named, lowering = kinds if release >= (3, 9) else ("downgradeType", "SAFE or UNSAFE")
            return f"The {named} flag should be set to {lowering} when the provided maxVersionLevel:0 is < 1."
    return None


def version_mapping(text: str | None, release: Release) -> list[str]:
    """The lines of `version-mapping`; without a release those of the newest level of the tool's own release.

    Raises UnknownLevelError for a release that the tool of `release` does not know.
    """
    named = text if text is not None else level_name(latest_of(_tool(release)) or 0)
    level = _level(named, release)
    return [
        f"{FEATURE_NAME}={level} ({named})",
        *(f"{name}={default}" for name, default in defaults(release, level).items()),
    ]


def feature_dependencies(asked: Sequence[tuple[str, int]], release: Release) -> list[str]:
    """The lines of `feature-dependencies`. Raises UnknownLevelError for a feature or level that the tool does not support."""
    return [line for name, level in asked for line in _dependencies(name, level, _tool(release))]


def _dependencies(name: str, level: int, release: Release) -> list[str]:
    if name == FEATURE_NAME:
        if not is_known(level) or not MINIMUM_4X <= level <= (latest_of(release) or 0):
            raise UnknownLevelError(f"Unknown metadata.version {level}")
        return [f"{name}={level} ({level_name(level)}) has no dependencies."]
    if not knows_name(release, name):
        raise UnknownLevelError(f"Unknown feature: {name}")
    if not has_level(release, name, level):
        raise UnknownLevelError(f"No feature:{name} with feature level {level}")
    requires = required_by(name, level, release)
    if not requires:
        return [f"{name}={level} has no dependencies."]
    needed = (
        f"    {other}={least} ({level_name(least)})" if other == FEATURE_NAME else f"    {other}={least}"
        for other, least in requires.items()
    )
    return [f"{name}={level} requires:", *needed]


def _tool(release: Release) -> Release:
    if release < FIRST_WITH_RELEASES:
        raise UnknownLevelError(f"kafka-features of {release_name(release)} has no releases: it has them from 4.0 on")
    if release_name(release) not in HIGHEST_LEVELS:
        raise UnknownLevelError(f"Kafka {release_name(release)} is a release that this audit does not support")
    return release


def _level(text: str, release: Release) -> int:
    """The level of a name or a release (`MetadataVersion.fromVersionString`), not of a number."""
    highest = latest_of(_tool(release)) or 0
    level = 0 if text.isdigit() else level_of(text)
    if not MINIMUM_4X <= level <= highest:
        raise UnknownLevelError(
            f"Unknown metadata.version {text!r}: Kafka {release_name(release)} knows {level_name(MINIMUM_4X)} to "
            f"{level_name(highest)}"
        )
    return level
