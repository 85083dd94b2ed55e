"""What lies above a table is unknown: never safe, and never a go. One case beyond each table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from schemas.kraft.control import CONTROL_TYPES
from schemas.kraft.feature_levels import HIGHEST_LEVELS
from schemas.kraft.fields import Field, RecordType, WireType
from schemas.kraft.metadata_versions import LATEST_PRODUCTION, METADATA_VERSIONS
from schemas.kraft.records import RECORD_TYPES
from tests.isr.test_validate import EXPAND, controller
from tests.kraft.encoder import batch, data_record, uvarint
from tests.kraft.test_round_trip import both
from tests.reconcile.kraft_clusters import kraft
from tests.zookeeper.trees import codes, state_of
from transforms.downgrade.ledger import OF_KRAFT, Seen
from transforms.downgrade.readiness import KnownCluster, LineOutcome, MetadataMode, readiness
from transforms.features.levels import UnknownLevelError, release_tuple
from transforms.features.matrix import BROKER, CONTROLLER, Node
from transforms.features.requests import feature_dependencies, of_release, version_mapping
from transforms.features.update import Cluster, FeatureVerdict, RequestKind, Update, dry_run
from transforms.isr.validate import ControllerMode, validate
from transforms.kraft.decode.codec import decode_record
from transforms.kraft.decode.wire import WireError
from transforms.kraft.release import infer_release
from transforms.reconcile.judge.facts import LevelChange, Quorum
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.secrets import is_sensitive_config

MV = "metadata.version"
NEWEST = release_tuple(next(reversed(LATEST_PRODUCTION)))
BEYOND = (NEWEST[0], NEWEST[1] + 1)
LEVEL = max(LATEST_PRODUCTION.values())
ABOVE = [version.level for version in METADATA_VERSIONS if version.testing] + [METADATA_VERSIONS[-1].level + 1]
FEATURES = sorted({name for levels in HIGHEST_LEVELS.values() for name in levels})
RANGES = {MV: (7, 99), "what.version": (0, 9), **dict.fromkeys(FEATURES, (0, 9))}
NODES = (Node(BROKER, 0, RANGES), Node(CONTROLLER, 1, RANGES))
CLUSTER = Cluster(NEWEST, {MV: LEVEL}, NODES, frozenset({1}), 1, directory_ids=frozenset({1}))
STATE = KnownCluster(
    MetadataMode.KRAFT,
    NEWEST,
    {name: Seen(0) for name in OF_KRAFT},
    finalised={MV: LEVEL},
    nodes=NODES,
    voters=frozenset({1}),
    local=1,
)
HIGHEST = {name: max(levels.get(name, 0) for levels in HIGHEST_LEVELS.values()) for name in FEATURES}


def outcome(state: KnownCluster, target: tuple[int, int] = NEWEST) -> LineOutcome:
    return readiness(state, target).verdict


def answer(update: Update, cluster: Cluster = CLUSTER) -> FeatureVerdict:
    return dry_run([update], cluster).answers[0].verdict


def test_within_the_tables_all_is_known() -> None:
    assert outcome(STATE) is LineOutcome.SAFE
    assert answer(Update(MV, LEVEL)) is FeatureVerdict.YES
    for name in FEATURES:
        assert answer(Update(name, HIGHEST[name])) is FeatureVerdict.YES
        assert outcome(replace(STATE, finalised={MV: LEVEL, name: HIGHEST[name]})) is LineOutcome.SAFE


@pytest.mark.parametrize("level", ABOVE)
def test_a_level_of_metadata_version(level: int) -> None:
    assert outcome(replace(STATE, finalised={MV: level})) is LineOutcome.UNKNOWN
    assert outcome(replace(STATE, finalised={MV: level}), (4, 3)) in (LineOutcome.UNKNOWN, LineOutcome.BLOCKED)
    assert answer(Update(MV, level)) is FeatureVerdict.UNKNOWN
    assert (
        answer(Update(MV, LEVEL, RequestKind.SAFE_DOWNGRADE), replace(CLUSTER, finalised={MV: level}))
        is FeatureVerdict.UNKNOWN
    )


@pytest.mark.parametrize("name", [*FEATURES, "what.version"])
def test_a_level_of_a_feature(name: str) -> None:
    level = HIGHEST.get(name, 0) + 1
    assert outcome(replace(STATE, finalised={MV: LEVEL, name: level})) is LineOutcome.UNKNOWN
    assert answer(Update(name, level)) is FeatureVerdict.UNKNOWN
    down = Update(name, level - 1 or 1, RequestKind.SAFE_DOWNGRADE)
    at = replace(CLUSTER, finalised={MV: LEVEL, name: level + 1})
    assert answer(down, at) is (FeatureVerdict.NO if name == "kraft.version" else FeatureVerdict.UNKNOWN)


def test_a_release() -> None:
    assert outcome(replace(STATE, release=BEYOND)) is LineOutcome.UNKNOWN
    assert outcome(replace(STATE, release=(BEYOND[0], BEYOND[1] + 1)), BEYOND) is LineOutcome.UNKNOWN
    assert outcome(replace(STATE, release=None)) is LineOutcome.UNKNOWN
    assert answer(Update(MV, LEVEL), replace(CLUSTER, release=BEYOND)) is FeatureVerdict.UNKNOWN
    assert answer(Update("group.version", 1), replace(CLUSTER, release=BEYOND)) is FeatureVerdict.UNKNOWN
    nodes = [{"controller_id": 1, "features": [{"name": MV, "min_level": 7, "max_level": LEVEL + 1}]}]
    assert infer_release(None, nodes, [], LEVEL).version is None


def test_a_place_of_the_log_that_could_not_be_read() -> None:
    assert outcome(replace(STATE, unread=1)) is LineOutcome.UNKNOWN


def test_a_record_of_the_log() -> None:
    assert outcome(replace(STATE, unknown_records=True)) is LineOutcome.UNKNOWN


@pytest.mark.parametrize("key", RECORD_TYPES)
def test_a_version_of_a_record(key: int) -> None:
    record = RECORD_TYPES[key]
    with pytest.raises(WireError, match="known up to"):
        decode_record(record, record.body.highest + 1, b"", 0, 0)


@pytest.mark.parametrize("level", ABOVE)
@pytest.mark.parametrize("release", [".".join(map(str, NEWEST)), ".".join(map(str, BEYOND)), None])
def test_the_gate_of_an_upgrade_is_never_opened(level: int, release: str | None) -> None:
    facts = kraft(features={MV: level}, kafka_version=release)
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict != "go"


@pytest.mark.parametrize("name", [*FEATURES, "what.version"])
def test_nor_by_a_level_of_a_feature(name: str) -> None:
    """Though every node supports it: what it means to the next release is not known here."""
    level = HIGHEST.get(name, 0) + 1
    ranges = [{"name": each, "min_level": low, "max_level": high} for each, (low, high) in RANGES.items()]
    whole = kraft()
    facts = replace(
        whole,
        features={**whole.features, name: level},
        other_levels=[*whole.other_levels, LevelChange(4, level, name)],
        brokers_in_kraft=[{**row, "features": ranges} for row in whole.brokers_in_kraft],
        controllers=[{**row, "features": ranges} for row in whole.controllers],
    )
    if name == "kraft.version":
        facts = replace(
            facts, features=whole.features, other_levels=whole.other_levels, quorum=_at_kraft_version(level)
        )
    gate = judge_gates(run_checks(facts), facts)["upgrade"]
    assert (gate.verdict, gate.blocking) == ("unknown", ["FEAT-03"])
    known = replace(facts, features=whole.features, quorum=whole.quorum)
    assert judge_gates(run_checks(known), known)["upgrade"].verdict == "go"


def _at_kraft_version(level: int) -> Quorum:
    quorum = kraft().quorum
    assert quorum is not None
    return replace(quorum, kraft_version=level)


def test_nor_by_a_release_beyond_alone() -> None:
    facts = kraft(kafka_version=".".join(map(str, BEYOND)))
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "unknown"


def test_every_table_of_releases_ends_with_the_same_one() -> None:
    """Else one of them knows a release of which another says nothing."""
    assert list(HIGHEST_LEVELS) == list(LATEST_PRODUCTION)
    assert LATEST_PRODUCTION[".".join(map(str, NEWEST))] == LEVEL


def test_what_the_tool_of_a_release_above_the_tables_says_is_not_made_up() -> None:
    with pytest.raises(UnknownLevelError, match="this audit does not support"):
        version_mapping(None, BEYOND)
    with pytest.raises(UnknownLevelError, match="this audit does not support"):
        feature_dependencies([("group.version", 1)], BEYOND)
    with pytest.raises(UnknownLevelError, match="this audit does not support"):
        of_release(".".join(map(str, NEWEST)), RequestKind.UPGRADE, BEYOND)
    for text in (".".join(map(str, BEYOND)), f"{BEYOND[0]}.{BEYOND[1]}-IV0"):
        with pytest.raises(UnknownLevelError):
            of_release(text, RequestKind.UPGRADE, NEWEST)
    assert version_mapping(None, NEWEST), "the newest one is known"


def test_a_controller_of_a_release_above_the_tables_is_asked_by_older_rules_and_the_answer_says_so() -> None:
    known = validate(EXPAND, controller(ControllerMode.KRAFT, NEWEST))
    beyond = validate(EXPAND, controller(ControllerMode.KRAFT, BEYOND))
    assert beyond.error is known.error
    note = f"the rules of Kafka {BEYOND[0]}.{BEYOND[1]} are unknown: those of {NEWEST[0]}.{NEWEST[1]} were applied"
    assert beyond.unverified == (note, *known.unverified)


def test_a_type_of_record() -> None:
    key = max(RECORD_TYPES) + 1
    [row] = both(batch([(None, uvarint(1) + uvarint(key) + uvarint(0) + b"\0")], 0))
    assert row["problem"] == f"unknown: record type {key}"
    code = max(CONTROL_TYPES) + 1
    rows = both(batch([(bytes([0, 0, 0, code]), b"\0\0\0")], 0, attributes=0x20))
    assert [row["problem"] for row in rows] == [f"unknown: control record type {code}"]


@pytest.mark.parametrize("key", CONTROL_TYPES)
def test_a_version_of_a_control_record(key: int) -> None:
    record = CONTROL_TYPES[key]
    with pytest.raises(WireError, match="known up to"):
        decode_record(record, record.body.highest + 1, b"", 0, 0)


def _coded() -> Iterator[tuple[str, RecordType, Field]]:
    """Fields whose values stand for something, such as an ACL's operation."""
    for record in RECORD_TYPES.values():
        for field in record.body.fields:
            if field.enum is not None:
                yield f"{record.name} {field.name}", record, field


CODED = {name: (record, field) for name, record, field in _coded()}


def test_codes_of_acls_are_among_those_that_are_tried() -> None:
    assert "ACCESS_CONTROL_ENTRY_RECORD operation" in CODED
    assert len(CODED) > 12


def _least(field: Field) -> Any:
    if field.array:
        return []
    if field.enum is not None:
        return min(field.enum)
    return {
        WireType.UUID: "A" * 22,
        WireType.STRING: "x",
        WireType.BYTES: b"x",
        WireType.BOOL: False,
        WireType.STRUCT: {},
    }.get(field.kind, 0)


@pytest.mark.parametrize("name", CODED)
def test_a_code_of_a_field_is_a_place_of_the_log_that_could_not_be_read(name: str) -> None:
    """Not only named: what it means to a controller is open, so that nothing is safe (CAP-12)."""
    record, field = CODED[name]
    assert field.enum is not None
    code, version = max(field.enum) + 1, record.body.highest
    least = {each.name: _least(each) for each in record.body.fields if each.since <= version}
    rows = both(batch([data_record(record.name, version, {**least, field.name: code})], 0))
    problems = [row["problem"] for row in rows if row["problem"]]
    assert problems == [f"unknown: {record.name} v{version}: {field.name} {code}"]


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/feature", {"version": 3, "status": 1, "features": {}}),
        ("/migration", {"version": 1, "kraft_controller_id": 3000, "kraft_controller_epoch": 1}),
        ("/delegation_token/tokens/t", {"version": 4, "owner": "User:a"}),
        ("/kafka-acl/Topic/t", {"version": 2, "acls": []}),
    ],
)
def test_a_version_of_a_znode(path: str, data: dict[str, Any]) -> None:
    assert codes(state_of(path, json.dumps(data).encode())) != []


def test_an_operation_of_an_acl_znode() -> None:
    entry = {"principal": "User:a", "permissionType": "Allow", "operation": "Levitate", "host": "*"}
    assert codes(state_of("/kafka-acl/Topic/t", json.dumps({"version": 1, "acls": [entry]}).encode())) == ["START-14"]


def test_a_configuration_that_no_release_declares_may_be_a_secret() -> None:
    assert is_sensitive_config("of.a.later.release")
    assert not is_sensitive_config("min.insync.replicas")
