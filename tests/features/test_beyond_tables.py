"""What lies above a table is unknown: never safe, and never a go. One case beyond each table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.kraft.feature_levels import HIGHEST_LEVELS
from schemas.kraft.metadata_versions import LATEST_PRODUCTION, METADATA_VERSIONS
from schemas.kraft.records import RECORD_TYPES
from tests.reconcile.kraft_clusters import kraft
from transforms.downgrade.ledger import OF_KRAFT, Seen
from transforms.downgrade.readiness import Mode, Outcome, State, readiness
from transforms.features.levels import release_tuple
from transforms.features.matrix import BROKER, CONTROLLER, Node
from transforms.features.update import Cluster, Kind, Update, Verdict, dry_run
from transforms.kraft.decode.codec import decode_record
from transforms.kraft.decode.wire import WireError
from transforms.kraft.release import infer_release
from transforms.reconcile.judge.gates import judge_gates, run_checks

MV = "metadata.version"
NEWEST = release_tuple(next(reversed(LATEST_PRODUCTION)))
BEYOND = (NEWEST[0], NEWEST[1] + 1)
LEVEL = max(LATEST_PRODUCTION.values())
ABOVE = [version.level for version in METADATA_VERSIONS if version.testing] + [METADATA_VERSIONS[-1].level + 1]
FEATURES = sorted({name for levels in HIGHEST_LEVELS.values() for name in levels})
RANGES = {MV: (7, 99), "what.version": (0, 9), **dict.fromkeys(FEATURES, (0, 9))}
NODES = (Node(BROKER, 0, RANGES), Node(CONTROLLER, 1, RANGES))
CLUSTER = Cluster(NEWEST, {MV: LEVEL}, NODES, frozenset({1}), 1, directory_ids=frozenset({1}))
STATE = State(
    Mode.KRAFT,
    NEWEST,
    {name: Seen(0) for name in OF_KRAFT},
    finalised={MV: LEVEL},
    nodes=NODES,
    voters=frozenset({1}),
    local=1,
)
HIGHEST = {name: max(levels.get(name, 0) for levels in HIGHEST_LEVELS.values()) for name in FEATURES}


def outcome(state: State, target: tuple[int, int] = NEWEST) -> Outcome:
    return readiness(state, target).verdict


def answer(update: Update, cluster: Cluster = CLUSTER) -> Verdict:
    return dry_run([update], cluster).answers[0].verdict


def test_within_the_tables_all_is_known() -> None:
    assert outcome(STATE) is Outcome.SAFE
    assert answer(Update(MV, LEVEL)) is Verdict.YES
    for name in FEATURES:
        assert answer(Update(name, HIGHEST[name])) is Verdict.YES
        assert outcome(replace(STATE, finalised={MV: LEVEL, name: HIGHEST[name]})) is Outcome.SAFE


@pytest.mark.parametrize("level", ABOVE)
def test_a_level_of_metadata_version(level: int) -> None:
    assert outcome(replace(STATE, finalised={MV: level})) is Outcome.UNKNOWN
    assert outcome(replace(STATE, finalised={MV: level}), (4, 3)) in (Outcome.UNKNOWN, Outcome.BLOCKED)
    assert answer(Update(MV, level)) is Verdict.UNKNOWN
    assert answer(Update(MV, LEVEL, Kind.SAFE_DOWNGRADE), replace(CLUSTER, finalised={MV: level})) is Verdict.UNKNOWN


@pytest.mark.parametrize("name", [*FEATURES, "what.version"])
def test_a_level_of_a_feature(name: str) -> None:
    level = HIGHEST.get(name, 0) + 1
    assert outcome(replace(STATE, finalised={MV: LEVEL, name: level})) is Outcome.UNKNOWN
    assert answer(Update(name, level)) is Verdict.UNKNOWN
    down = Update(name, level - 1 or 1, Kind.SAFE_DOWNGRADE)
    at = replace(CLUSTER, finalised={MV: LEVEL, name: level + 1})
    assert answer(down, at) is (Verdict.NO if name == "kraft.version" else Verdict.UNKNOWN)


def test_a_release() -> None:
    assert outcome(replace(STATE, release=BEYOND)) is Outcome.UNKNOWN
    assert outcome(replace(STATE, release=(BEYOND[0], BEYOND[1] + 1)), BEYOND) is Outcome.UNKNOWN
    assert outcome(replace(STATE, release=None)) is Outcome.UNKNOWN
    assert answer(Update(MV, LEVEL), replace(CLUSTER, release=BEYOND)) is Verdict.UNKNOWN
    assert answer(Update("group.version", 1), replace(CLUSTER, release=BEYOND)) is Verdict.UNKNOWN
    nodes = [{"controller_id": 1, "features": [{"name": MV, "min_level": 7, "max_level": LEVEL + 1}]}]
    assert infer_release(None, nodes, [], LEVEL).version is None


def test_a_place_of_the_log_that_could_not_be_read() -> None:
    """A record of an unknown type or version is one (CAP-02)."""
    assert outcome(replace(STATE, unread=1)) is Outcome.UNKNOWN


@pytest.mark.parametrize("key", RECORD_TYPES)
def test_a_version_of_a_record(key: int) -> None:
    record = RECORD_TYPES[key]
    with pytest.raises(WireError, match="is unknown"):
        decode_record(record, record.body.highest + 1, b"", 0, 0)


@pytest.mark.parametrize("level", ABOVE)
@pytest.mark.parametrize("release", [".".join(map(str, NEWEST)), ".".join(map(str, BEYOND)), None])
def test_the_gate_of_an_upgrade_is_never_opened(level: int, release: str | None) -> None:
    facts = kraft(features={MV: level}, kafka_version=release)
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict != "go"


def test_nor_by_a_release_beyond_alone() -> None:
    facts = kraft(kafka_version=".".join(map(str, BEYOND)))
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "unknown"
