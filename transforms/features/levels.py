"""metadata.version levels by number, by name and by release (`MetadataVersion`)."""

from __future__ import annotations

from schemas.kraft.metadata_versions import BY_LEVEL, BY_NAME, LATEST_PRODUCTION, METADATA_VERSIONS, level_name

MINIMUM_BOOTSTRAP_3X = 4
MINIMUM_4X = 7


class UnknownLevelError(ValueError):
    """A text that names no level; the message says what there is."""


def release_tuple(release: str) -> tuple[int, int]:
    """`3.9.1` or `3.9` as (3, 9). Raises UnknownLevelError for anything else."""
    parts = release.split(".")
    if len(parts) < 2 or not all(part.isdigit() for part in parts[:2]):
        raise UnknownLevelError(f"{release!r} is no release such as 3.9 or 3.9.1")
    return int(parts[0]), int(parts[1])


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
    raise UnknownLevelError(
        f"{text!r} is no level; levels are {METADATA_VERSIONS[0].name} to {METADATA_VERSIONS[-1].name}"
    )


def latest_of(release: tuple[int, int]) -> int | None:
    """The newest level that a release runs; None for one that this audit does not know.

    The newest release's own next level is only for testing (`MetadataVersion.LATEST_PRODUCTION`).
    """
    name = f"{release[0]}.{release[1]}"
    if name in LATEST_PRODUCTION:
        return LATEST_PRODUCTION[name]
    named = [version.level for version in METADATA_VERSIONS if version.name.startswith(f"{name}-IV")]
    return max(named, default=None)


def lowest_of(release: tuple[int, int]) -> int:
    """The lowest level that a release runs at: 4.x dropped what is below 3.3-IV3."""
    return MINIMUM_4X if release >= (4, 0) else 1


def release_of(level: int) -> str:
    """The first release that knows a level, e.g. `3.9` for 21; `unknown(n)` for a level nobody knows here."""
    return level_name(level).partition("-")[0]


def lost_between(target: int, current: int) -> tuple[str, ...]:
    """Levels above `target` up to `current` that changed the metadata's format: what a downgrade would lose."""
    changed = [version for version in METADATA_VERSIONS if target < version.level <= current and version.changed]
    return tuple(
        f"{version.name} ({version.level}){': ' + version.gates if version.gates else ''}" for version in changed
    )


def kafka_name(feature_is_metadata_version: bool, level: int) -> str:
    """A level as `kafka-features` prints it: metadata.version by name, others by number."""
    if not feature_is_metadata_version:
        return str(level)
    return BY_LEVEL[level].name if level in BY_LEVEL else f"UNKNOWN {level}"
