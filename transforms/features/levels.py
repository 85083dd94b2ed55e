"""Levels of metadata.version and of the other features: by number, by name and by release (`MetadataVersion`, `Feature`)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from schemas.kraft.feature_levels import (
    BY_FEATURE_LEVEL,
    FEATURE_LEVELS,
    HIGHEST_LEVELS,
    KRAFT_VERSION,
    STREAMS_VERSION,
)
from schemas.kraft.metadata_versions import (
    BY_LEVEL,
    BY_NAME,
    FEATURE_NAME,
    LATEST_PRODUCTION,
    METADATA_VERSIONS,
    MINIMUM_LEVEL_4X,
    is_known,
    level_name,
)

MINIMUM_BOOTSTRAP_3X = 4
MINIMUM_4X = MINIMUM_LEVEL_4X
Release = tuple[int, int]
_RELEASE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})(\.[0-9]{1,3})?")


class UnknownLevelError(ValueError):
    """A text that names no level; the message lists the levels."""


def release_tuple(release: str) -> Release:
    """`3.9.1` or `3.9` as (3, 9). Raises UnknownLevelError for anything else."""
    found = _RELEASE.fullmatch(release)
    if found is None:
        raise UnknownLevelError(f"{release!r} is not a release such as 3.9 or 3.9.1")
    return int(found[1]), int(found[2])


def release_name(release: Release) -> str:
    """(3, 9) as `3.9`."""
    return f"{release[0]}.{release[1]}"


# Every minor release from the first one that the ledger of downgrades distinguishes to the newest supported one.
RELEASES: tuple[Release, ...] = (
    *((2, minor) for minor in range(9)),
    *((3, minor) for minor in range(3)),
    *(release_tuple(name) for name in LATEST_PRODUCTION),
)


def known_release(text: str) -> Release:
    """A release that a person names, as `release_tuple`. Raises UnknownLevelError, with the known ones, for any other text."""
    known = f"known are {release_name(RELEASES[0])} to {release_name(RELEASES[-1])}"
    try:
        release = release_tuple(text)
    except UnknownLevelError as error:
        raise UnknownLevelError(f"{error}; {known}") from None
    if release not in RELEASES:
        raise UnknownLevelError(f"Kafka {release_name(release)} is not known; {known}")
    return release


def level_of(text: str) -> int:
    """The level that a name (`3.9-IV0`), a release (`3.9`, `3.9.1`: its newest) or a number (`21`) means.

    Raises UnknownLevelError when there is no such level.
    """
    if text in BY_NAME:
        return BY_NAME[text].level
    if text.isdigit():
        return int(text)
    if text in (printed := {level_name(level): level for level in BY_LEVEL}):
        return printed[text]
    if "-" not in text and (latest := latest_of(release_tuple(text))) is not None:
        return latest
    known = [version for version in METADATA_VERSIONS if not version.testing]
    raise UnknownLevelError(f"{text!r} is not a level; levels are {known[0].name} to {known[-1].name}")


def latest_of(release: Release) -> int | None:
    """The newest level that a release runs (`MetadataVersion.LATEST_PRODUCTION`); None for an unsupported one."""
    return LATEST_PRODUCTION.get(release_name(release))


def lowest_of(release: Release) -> int:
    """The lowest level that a release runs at: 4.x dropped what is below 3.3-IV3."""
    return MINIMUM_4X if release >= (4, 0) else 1


def highest_of(release: Release, feature: str) -> int | None:
    """The highest level of a feature that a release runs, 0 for one that it does not have; None if the release is unknown."""
    if feature == FEATURE_NAME:
        return latest_of(release)
    levels = HIGHEST_LEVELS.get(release_name(release))
    return None if levels is None else levels.get(feature, 0)


def knows_name(release: Release, feature: str) -> bool:
    """True when the release has a feature of this name, be it without a level yet (`Feature.featureFromName`)."""
    return feature == FEATURE_NAME or feature in HIGHEST_LEVELS.get(release_name(release), {})


def has_level(release: Release, feature: str, level: int) -> bool:
    """True for a level of the feature's enum in a release (`Feature.fromFeatureLevel`): 4.1 has streams.version 1, but runs it nowhere."""
    unstable = (release, feature, level) == ((4, 1), STREAMS_VERSION, 1)
    return unstable or 0 <= level <= (highest_of(release, feature) or 0)


def is_known_level(feature: str, level: int) -> bool:
    """True for a level whose meaning is known: 0, or one that a release in the tables runs."""
    if feature == FEATURE_NAME:
        return is_known(level)
    return any(feature in levels and 0 <= level <= levels[feature] for levels in HIGHEST_LEVELS.values())


def default_level(feature: str, metadata_version: int) -> int:
    """The level that a cluster formatted at a metadata.version has (`Feature.defaultLevel`); 0 for none."""
    mine = (each for each in FEATURE_LEVELS if each.feature == feature and each.default_from <= metadata_version)
    return max((each.level for each in mine), default=0)


def defaults(release: Release, metadata_version: int) -> Mapping[str, int]:
    """Every feature that a release has, in the order of its enum, with its default at a metadata.version."""
    return {name: default_level(name, metadata_version) for name in HIGHEST_LEVELS.get(release_name(release), {})}


def release_of(level: int) -> str:
    """The first release that supports a level, e.g. `3.9` for 21; `unknown(n)` for an unknown level."""
    return level_name(level).partition("-")[0]


def lost_between(target: int, current: int) -> tuple[str, ...] | None:
    """Levels above `target` up to `current` that changed the metadata's format: what a downgrade would lose.

    None if one of the two is an unknown level.
    """
    if target < current and not (is_known(target) and is_known(current)):
        return None
    changed = [version for version in METADATA_VERSIONS if target < version.level <= current and version.changed]
    return tuple(
        f"{version.name} ({version.level}){': ' + version.gates if version.gates else ''}" for version in changed
    )


def level_text(feature: str, level: int) -> str:
    """A level for a reader: of metadata.version its name, of others its number."""
    return level_name(level) if feature == FEATURE_NAME else str(level)


def required_by(feature: str, level: int, release: Release) -> Mapping[str, int]:
    """What a level needs besides (`FeatureVersion.dependencies`); that of kraft.version ended with 4.1."""
    if feature == KRAFT_VERSION and level == 1 and release < (4, 2):
        return {FEATURE_NAME: 21}
    known = BY_FEATURE_LEVEL.get((feature, level))
    return {} if known is None else known.requires


def kafka_name(feature_is_metadata_version: bool, level: int) -> str:
    """A level as `kafka-features` prints it: metadata.version by name, others by number."""
    if not feature_is_metadata_version:
        return str(level)
    return BY_LEVEL[level].name if level in BY_LEVEL else f"UNKNOWN {level}"
