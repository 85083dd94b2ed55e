"""`--release-version`, `version-mapping` and `feature-dependencies`, in the words and levels of Kafka's tool."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace

import pytest

from jobs.cli import main
from jobs.commands.features import _lines
from transforms.features.levels import UnknownLevelError
from transforms.features.matrix import CONTROLLER, Node
from transforms.features.requests import NEWEST, feature_dependencies, of_release, refused_by_the_tool, version_mapping
from transforms.features.update import ELR, Cluster, RequestKind, Update, dry_run

MV = "metadata.version"


def test_an_upgrade_to_a_release_asks_for_no_level_0() -> None:
    assert of_release("4.1", RequestKind.UPGRADE, (4, 1)) == [
        Update(MV, 27),
        Update("kraft.version", 1),
        Update("transaction.version", 2),
        Update("group.version", 1),
        Update(ELR, 1),
    ]


def test_a_downgrade_to_a_release_names_every_feature() -> None:
    asked = of_release("3.9-IV0", RequestKind.SAFE_DOWNGRADE, (4, 0))
    assert {update.feature: update.level for update in asked} == {
        MV: 21,
        "kraft.version": 1,
        "transaction.version": 0,
        "group.version": 0,
        ELR: 0,
    }
    # A static quorum is at kraft.version 0, and so Kafka refuses the whole request.
    run = dry_run(asked, Cluster((4, 0), {MV: 22}, voters=frozenset({1}), local=1))
    assert "Can't downgrade to a newer version." in run.answers[0].message


@pytest.mark.parametrize(
    ("update", "release", "answer"),
    [
        (
            Update("share.version", 0),
            (4, 4),
            "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided maxVersionLevel:0 is < 1.",
        ),
        (
            Update("share.version", 0),
            (3, 8),
            "The downgradeType flag should be set to SAFE or UNSAFE when the provided maxVersionLevel:0 is < 1.",
        ),
        (Update("share.version", -1), (4, 4), "Cannot specify a negative version level."),
        (Update("share.version", 0, RequestKind.SAFE_DOWNGRADE), (4, 4), None),
        (Update("share.version", 1), (4, 4), None),
    ],
)
def test_what_the_tool_does_not_send(update: Update, release: tuple[int, int], answer: str | None) -> None:
    """`FeatureUpdate` of the clients of 3.3.2 to 4.4.0, and what kafka-features of 4.4.0 said to a real cluster."""
    assert refused_by_the_tool([Update(MV, 30), update], release) == answer


def test_the_matrix_names_controllers_whose_levels_are_unknown() -> None:
    """Voter 3 of a real 4.4.0 cluster, after `kafka-cluster.sh unregister-controller --id 3`."""
    cluster = Cluster((4, 4), {MV: 33}, (Node(CONTROLLER, 1, {MV: (7, 33)}),), voters=frozenset({1, 3}))
    lines = _lines(Namespace(what="matrix"), SimpleNamespace(active=cluster), [])  # type: ignore[arg-type]
    assert [line for line in lines if "unknown" in line] == ["controller 3 has not registered: its levels are unknown"]


def test_the_mapping_is_what_the_tool_prints() -> None:
    assert NEWEST == (4, 4)
    assert version_mapping(None, (4, 4)) == [
        "metadata.version=33 (4.4-IV2)",
        "kraft.version=1",
        "transaction.version=2",
        "group.version=1",
        "eligible.leader.replicas.version=1",
        "share.version=2",
        "streams.version=1",
    ]
    assert version_mapping("4.0.1", (4, 0))[0] == "metadata.version=25 (4.0.1)"
    assert "streams.version=0" in version_mapping("4.1", (4, 2))


@pytest.mark.parametrize(
    ("text", "release"), [("4.2", (4, 1)), ("3.2", (4, 1)), ("25", (4, 1)), ("4.5-IV0", (4, 4)), ("x", (4, 4))]
)
def test_what_the_tool_does_not_know_is_an_error(text: str, release: tuple[int, int]) -> None:
    with pytest.raises(UnknownLevelError):
        version_mapping(text, release)


def test_the_tool_has_releases_from_4_0_on() -> None:
    with pytest.raises(UnknownLevelError, match=r"from 4\.0 on"):
        of_release("3.9", RequestKind.UPGRADE, (3, 9))
    with pytest.raises(UnknownLevelError, match="does not support"):
        version_mapping(None, (4, 5))


def test_dependencies_are_what_the_tool_prints() -> None:
    asked = [(ELR, 1), (MV, 30), ("kraft.version", 1), ("share.version", 2), ("group.version", 0)]
    assert feature_dependencies(asked, (4, 4)) == [
        "eligible.leader.replicas.version=1 requires:",
        "    metadata.version=23 (4.0-IV1)",
        "metadata.version=30 (4.3-IV0) has no dependencies.",
        "kraft.version=1 has no dependencies.",
        "share.version=2 has no dependencies.",
        "group.version=0 has no dependencies.",
    ]
    assert feature_dependencies([("kraft.version", 1)], (4, 0))[1] == "    metadata.version=21 (3.9-IV0)"
    for name, level in ((MV, 34), (MV, 6), ("x", 1), ("group.version", 2)):
        with pytest.raises(UnknownLevelError):
            feature_dependencies([(name, level)], (4, 4))


@pytest.mark.parametrize(
    ("name", "level", "release", "line"),
    [
        ("kraft.version", 1, (4, 1), "kraft.version=1 requires:"),
        ("kraft.version", 1, (4, 2), "kraft.version=1 has no dependencies."),
        ("streams.version", 1, (4, 1), "streams.version=1 has no dependencies."),
        ("share.version", 1, (4, 1), "share.version=1 has no dependencies."),
        ("share.version", 2, (4, 3), None),
        ("share.version", 1, (4, 0), None),
        ("group.version", -1, (4, 4), None),
    ],
)
def test_dependencies_are_those_of_the_tools_own_release(
    name: str, level: int, release: tuple[int, int], line: str | None
) -> None:
    """The enums of 4.0.1 to 4.4.0: KRaftVersion of 4.1.0 still needs a level, ShareVersion of 4.3.1 has no 2."""
    if line is None:
        with pytest.raises(UnknownLevelError):
            feature_dependencies([(name, level)], release)
    else:
        assert feature_dependencies([(name, level)], release)[0] == line


def test_the_command_answers_without_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", "version-mapping", "--release-version", "4.3"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "metadata.version=30 (4.3)"
    assert main(["features", "feature-dependencies", "--feature", f"{ELR}=1", "--kafka-version", "4.1"]) == 0
    assert "metadata.version=23 (4.0-IV1)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["version-mapping", "--release-version", "9.9"], "9.9"),
        (["feature-dependencies"], "--feature"),
        (["describe"], "--conf --warehouse"),
        (["matrix", "--release-version", "4.1"], "--release-version goes with"),
        (["upgrade", "--release-version", "4.1", "--feature", "x=1"], "can't be given with"),
        (["update"], "--upgrade F=N"),
        (["upgrade", "--feature", "x=1", "--delete", "y"], "go with update"),
    ],
)
def test_options_that_do_not_go_together(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["features", *argv]) == 2
    assert words in capsys.readouterr().err
