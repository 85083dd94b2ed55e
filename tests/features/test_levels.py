"""metadata.version by number, name and release, both ways."""

from __future__ import annotations

import pytest

from schemas.kraft.feature_levels import ELR_VERSION as ELR
from schemas.kraft.feature_levels import HIGHEST_LEVELS
from schemas.kraft.metadata_versions import BY_LEVEL, LATEST_PRODUCTION, METADATA_VERSIONS, is_known, level_name
from transforms.features.levels import (
    UnknownLevelError,
    defaults,
    highest_of,
    kafka_name,
    knows_name,
    latest_of,
    level_of,
    lost_between,
    lowest_of,
    release_of,
)


@pytest.mark.parametrize("level", BY_LEVEL)
def test_every_level_has_a_name_that_leads_back(level: int) -> None:
    assert level_of(level_name(level)) == level
    assert level_of(str(level)) == level


@pytest.mark.parametrize(
    ("release", "level", "first"),
    [
        ("3.3", 7, 4),
        ("3.4", 8, 8),
        ("3.5", 11, 9),
        ("3.6", 14, 12),
        ("3.7", 19, 15),
        ("3.8", 20, 20),
        ("3.9", 21, 21),
        ("4.0", 25, 22),
        ("4.1", 27, 26),
        ("4.2", 29, 28),
        ("4.3", 30, 30),
        ("4.4", 33, 31),
    ],
)
def test_releases_and_their_levels(release: str, level: int, first: int) -> None:
    assert level_of(release) == level
    assert level_of(f"{release}.2") == level
    assert (release_of(level), release_of(first)) == (release, release)
    assert release_of(first - 1) != release
    major, minor = (int(part) for part in release.split("."))
    assert latest_of((major, minor)) == level


def test_what_is_not_known_is_said_so() -> None:
    assert level_name(99) == "unknown(99)"
    assert release_of(99) == "unknown(99)"
    assert (kafka_name(True, 99), kafka_name(True, 21), kafka_name(False, 1)) == ("UNKNOWN 99", "3.9-IV0", "1")
    assert latest_of((9, 9)) is None
    for text in ("3.9-IV7", "latest", "9.9", "4"):
        if not text.isdigit():
            with pytest.raises(UnknownLevelError):
                level_of(text)
    assert [lowest_of(release) for release in ((3, 9), (4, 0))] == [1, 7]


def test_what_a_downgrade_loses_are_the_levels_that_changed_metadata() -> None:
    assert lost_between(20, 21) == ()
    assert lost_between(17, 21) == ()
    assert [text.split(" ")[0] for text in lost_between(11, 21) or ()] == ["3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV2"]
    assert [text.split(" ")[0] for text in lost_between(26, 30) or ()] == ["4.3-IV0"]
    assert [text.split(" ")[0] for text in lost_between(30, 33) or ()] == ["4.4-IV1", "4.4-IV2"]
    assert lost_between(30, 21) == ()
    assert lost_between(30, 34) is None, "a level for testing only: nobody knows yet what it changes"
    assert lost_between(30, 99) is None


def test_levels_rise_with_the_releases() -> None:
    assert [version.level for version in METADATA_VERSIONS] == list(range(1, len(METADATA_VERSIONS) + 1))
    assert list(LATEST_PRODUCTION.values()) == sorted(LATEST_PRODUCTION.values())
    assert set(HIGHEST_LEVELS) == set(LATEST_PRODUCTION), "one table, the same releases"


def test_the_level_of_the_next_release_is_for_testing_only() -> None:
    assert BY_LEVEL[34].name == "4.5-IV0"
    assert [is_known(level) for level in (0, 1, 33, 34, 35)] == [False, True, True, False, False]
    assert kafka_name(True, 34) == "4.5-IV0", "as the tool of 4.4 prints it"
    assert latest_of((4, 5)) is None


@pytest.mark.parametrize(
    ("release", "feature", "highest"),
    [
        ((3, 8), "kraft.version", 0),
        ((3, 9), "kraft.version", 1),
        ((3, 9), "group.version", 0),
        ((4, 0), "transaction.version", 2),
        ((4, 0), ELR, 1),
        ((4, 0), "share.version", 0),
        ((4, 1), "share.version", 1),
        ((4, 1), "streams.version", 0),
        ((4, 2), "streams.version", 1),
        ((4, 3), "share.version", 1),
        ((4, 4), "share.version", 2),
        ((4, 4), "metadata.version", 33),
        ((4, 5), "share.version", None),
    ],
)
def test_the_highest_level_of_each_release(release: tuple[int, int], feature: str, highest: int | None) -> None:
    """`latestProduction` of the enums of that release."""
    assert highest_of(release, feature) == highest


def test_names_that_a_release_has_without_a_level() -> None:
    assert knows_name((4, 1), "streams.version")
    assert not knows_name((4, 0), "streams.version")


@pytest.mark.parametrize(
    ("level", "expected"),
    [(21, [1, 0, 0, 0, 0, 0]), (25, [1, 2, 1, 0, 0, 0]), (26, [1, 2, 1, 1, 0, 0]), (33, [1, 2, 1, 1, 2, 1])],
)
def test_defaults_are_those_of_kafkas_version_mapping(level: int, expected: list[int]) -> None:
    """As `Feature.defaultLevel` of 4.4.0 answers, in the order of its enum."""
    assert list(defaults((4, 4), level).values()) == expected
