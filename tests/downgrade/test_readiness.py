"""May a cluster go back: the ledger row by row, the order of format settings, and the captures in every mode."""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.kraft.metadata_versions import level_name
from tests.captures import capture
from tests.downgrade.trees import TreeEvidence, of_tree
from tests.features.clusters import cluster
from tests.isr.logs import log_records
from tests.reconcile.kraft_clusters import controller, copy, kraft
from tests.reconcile.test_checks import zookeeper_alone
from transforms.downgrade.evidence import MESSAGE_FORMAT, TRACES
from transforms.downgrade.ledger import (
    BY_FEATURE,
    BY_ID,
    FORMATS,
    OF_FILES,
    OF_KRAFT,
    Effect,
    FeatureZnode,
    Seen,
)
from transforms.downgrade.ordering import (
    record_format,
    version_of,
    violations,
)
from transforms.downgrade.readiness import (
    KnownCluster,
    LineOutcome,
    MetadataMode,
    Readiness,
    readiness,
    render,
    with_kraft,
)
from transforms.features.matrix import BROKER, CONTROLLER, Node
from transforms.features.update import Cluster
from transforms.kraft.quorum import Checkpoint
from transforms.kraft.replay.transactions import read_transactions
from transforms.kraft.side import KraftSide
from transforms.reconcile.judge.facts import Facts, LevelChange, Quorum, ReplicaUse
from transforms.reconcile.judge.kip_tables import _topic_formats, settings_of, state_of

IBP, FORMAT = "inter.broker.protocol.version", "log.message.format.version"
NOTHING = {name: Seen(0) for name in (*TRACES, *OF_KRAFT)}
ZK = KnownCluster(MetadataMode.ZOOKEEPER, (3, 9), NOTHING, znode_versions={0: 4}, configurations={0: {IBP: "2.0"}})
TARGETS = ((3, 6), (3, 3), (2, 7), (2, 3))


def having(name: str, **more: Any) -> KnownCluster:
    return replace(ZK, seen={**NOTHING, name: Seen(2, f"/{name}")}, **more)


def outcomes(judged: Readiness, word: str) -> set[str]:
    return {line.outcome.value for line in judged.lines if word in line.what}


LEDGER = {
    # format: highest release below it, what it does there, lowest release that reads it
    "broker_znode_v5": ((2, 6), "safe", (2, 7)),
    "reassignment_keys": ((2, 3), "loses", (2, 4)),
    "topic_id": ((2, 7), "loses", (2, 8)),
    "leader_recovery_state": ((3, 1), "loses", (3, 2)),
    "prefixed_acls": ((1, 1), "loses", (2, 0)),
    "token_v3": ((3, 2), "blocked", (3, 3)),
    "controller_v2": ((3, 3), "safe", (3, 4)),
}


@pytest.mark.parametrize("name", LEDGER)
def test_each_format_of_zookeeper_by_release(name: str) -> None:
    below, effect, reads = LEDGER[name]
    title = BY_ID[name].title
    # With a protocol that every release knows, so that only the format speaks.
    state = having(name, configurations={0: {IBP: "0.9"}})
    assert outcomes(readiness(state, below), title) == {effect}
    assert outcomes(readiness(state, reads), title) == {"safe"}
    [line] = [line for line in readiness(state, below).lines if title in line.what]
    assert line.evidence == f"/{name}"
    # None of it is nothing to fear; not to have looked for it is unknown, where it would matter.
    assert outcomes(readiness(replace(state, seen=NOTHING), below), title) == {"safe"}
    unseen = replace(state, seen={key: value for key, value in NOTHING.items() if key != name})
    assert outcomes(readiness(unseen, below), title) == (set() if effect == "safe" else {"unknown"})


def test_every_trace_is_of_a_format() -> None:
    assert set(TRACES) <= set(BY_ID)
    assert {entry.id for entry in FORMATS} >= set(LEDGER)
    assert all(entry.below is not Effect.READS or entry.reads_from for entry in FORMATS)


@pytest.mark.parametrize(
    ("protocol", "target", "outcome"),
    [
        ("3.6", (3, 6), "safe"),
        ("3.6-IV2", (3, 6), "safe"),
        ("3.6-IV2", (3, 5), "blocked"),
        ("2.7-IV0", (2, 7), "safe"),
        ("2.7", (2, 6), "blocked"),
        (None, (3, 6), "blocked"),
        (None, (3, 9), "safe"),
        ("nonsense", (3, 6), "unknown"),
    ],
)
def test_the_protocol_that_brokers_write_by(protocol: str | None, target: tuple[int, int], outcome: str) -> None:
    """One that is not set is that of the software."""
    conf = {} if protocol is None else {IBP: protocol}
    judged = readiness(replace(ZK, configurations={0: conf}), target)
    if protocol == "nonsense":
        judged = readiness(replace(ZK, configurations={0: conf}, release=None), target)
    assert outcomes(judged, IBP) == {outcome}
    assert not outcomes(judged, "has no ZooKeeper mode")


def test_without_property_files_the_tree_tells_what_it_can() -> None:
    blind = replace(ZK, configurations=None)
    assert readiness(blind, (2, 6)).verdict is LineOutcome.UNKNOWN
    newer = replace(blind, znode_versions={0: 5}, feature_znode=FeatureZnode(2, True))
    assert readiness(newer, (3, 2)).verdict is LineOutcome.BLOCKED
    assert any(line.evidence == "/feature has version 2" for line in readiness(newer, (3, 2)).lines)
    assert readiness(newer, (3, 6)).verdict is LineOutcome.UNKNOWN
    # Features came with 2.7.
    enabled = replace(blind, feature_znode=FeatureZnode(1, True))
    assert [outcomes(readiness(enabled, target), IBP) for target in ((2, 6), (2, 7))] == [{"blocked"}, {"unknown"}]
    one_of_two = replace(ZK, znode_versions={0: 5, 1: 5})
    assert readiness(one_of_two, (3, 6)).verdict is LineOutcome.UNKNOWN
    # Which brokers there are is in /brokers/ids alone.
    assert outcomes(readiness(replace(ZK, znode_versions=None), (3, 6)), IBP) == {"unknown"}


def test_a_broker_that_is_down_has_told_no_protocol() -> None:
    """It is in no znode of /brokers/ids, but in the assignments."""
    answers: dict[str, list[Any]] = {"formats": [], "feature_znode": []}
    facts = replace(zookeeper_alone(), brokers_in_zookeeper=[{"broker_id": 0}], replicas=[ReplicaUse(1, 10, ())])
    for files, outcome in (({0: {IBP: "3.6"}}, "unknown"), ({0: {IBP: "3.6"}, 1: {IBP: "3.6"}}, "safe")):
        state = state_of(answers, facts, None, (3, 9), files)
        assert outcomes(readiness(state, (3, 8)), IBP) == {outcome}


@pytest.mark.parametrize(
    ("protocol", "target", "outcome"),
    [("2.3", (2, 2), "blocked"), ("2.1", (2, 0), "blocked"), ("2.0", (2, 2), "unknown"), ("3.9", (2, 3), None)],
)
def test_formats_of_internal_topics_go_by_the_protocol(protocol: str, target: tuple[int, int], outcome: str) -> None:
    judged = readiness(replace(ZK, configurations={0: {IBP: protocol}}), target)
    assert outcomes(judged, "group metadata") == (
        set() if outcome is None else {"blocked" if protocol == "2.3" else "unknown"}
    )


@pytest.mark.parametrize(
    ("znode", "target", "outcome"),
    [
        (FeatureZnode(2, True, {}), (2, 7), None),
        (FeatureZnode(2, True, {"x": 1}), (3, 2), "blocked"),
        (FeatureZnode(2, True, {"x": 1}), (2, 7), "blocked"),
        (FeatureZnode(2, True, {"x": 1}), (3, 3), "safe"),
        (FeatureZnode(1, True, {"x": 1}), (2, 7), "safe"),
        (FeatureZnode(1, True, {"x": 1}), (2, 6), "loses"),
    ],
)
def test_features_of_zookeeper_mode(znode: FeatureZnode, target: tuple[int, int], outcome: str | None) -> None:
    judged = readiness(replace(ZK, feature_znode=znode), target)
    assert outcomes(judged, "finalised features") == (set() if outcome is None else {outcome})


def test_a_cluster_with_old_formats_only_may_go_back() -> None:
    judged = readiness(ZK, (3, 3))
    assert judged.verdict is LineOutcome.SAFE
    assert judged.floor == (2, 0)
    assert render(judged)[0] == "Downgrade to 3.3: safe; the lowest release that reads everything is 2.0"
    assert readiness(ZK, (4, 0)).verdict is LineOutcome.BLOCKED


RANGES = {
    "metadata.version": (7, 30),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "eligible.leader.replicas.version": (0, 1),
}
KRAFT = KnownCluster(
    MetadataMode.KRAFT,
    (4, 3),
    NOTHING,
    finalised={"metadata.version": 29},
    nodes=(Node(BROKER, 0, RANGES), Node(CONTROLLER, 1, RANGES)),
    voters=frozenset({1}),
    local=1,
    level_offset=7,
)


@pytest.mark.parametrize(
    ("finalised", "target", "verdict", "word"),
    [
        ({"metadata.version": 29}, (4, 2), "safe", "4.2 supports it"),
        ({"metadata.version": 29}, (4, 1), "safe", "lowered to 4.1-IV1 first"),
        ({"metadata.version": 29}, (4, 0), "safe", "nothing is lost"),
        ({"metadata.version": 29}, (3, 9), "blocked", "Refusing to perform"),
        ({"metadata.version": 30}, (4, 2), "blocked", "Refusing to perform"),
        ({"metadata.version": 29}, (3, 2), "blocked", "does not run in KRaft mode"),
        ({"metadata.version": 6}, (4, 0), "blocked", "below what 4.0 starts at"),
        ({}, (4, 2), "unknown", "no metadata.version"),
        ({"metadata.version": 21, "group.version": 1}, (3, 9), "blocked", "featureLevel=1), but this controller only"),
        ({"metadata.version": 21, "group.version": 1}, (3, 9), "blocked", "group.version must be lowered to 0"),
        ({"metadata.version": 29, "streams.version": 1}, (4, 2), "safe", "streams.version 1: 4.2 supports it"),
        ({"metadata.version": 29, "streams.version": 1}, (4, 1), "blocked", "only supports versions 0"),
        ({"metadata.version": 30, "share.version": 1}, (4, 1), "blocked", "Unsupported metadata.version downgrade"),
        ({"metadata.version": 29, "kraft.version": 1}, (4, 1), "safe", "kraft.version 1: 4.1 supports it"),
        ({"metadata.version": 21, "kraft.version": 1}, (3, 8), "blocked", "can't be lowered"),
        ({"metadata.version": 21, "what.version": 1}, (3, 9), "unknown", "does not support"),
    ],
)
def test_a_kraft_cluster_by_its_level_and_features(
    finalised: dict[str, int], target: tuple[int, int], verdict: str, word: str
) -> None:
    judged = readiness(replace(KRAFT, finalised=finalised), target)
    assert judged.verdict.value == verdict
    assert any(word in line.what for line in judged.lines)


def test_without_the_finalised_features_no_kraft_cluster_is_known_to_go_back() -> None:
    judged = readiness(replace(KRAFT, finalised=None), (4, 1))
    assert outcomes(judged, "the finalised features are unknown") == {"unknown"}
    assert judged.verdict is LineOutcome.UNKNOWN


def test_whether_a_feature_can_be_lowered_depends_on_voters_that_may_be_unknown() -> None:
    finalised = {"metadata.version": 21, "group.version": 1}
    judged = readiness(replace(KRAFT, finalised=finalised, voters=None), (3, 9))
    assert outcomes(judged, "whether group.version can be downgraded to 0") == {"unknown"}


def test_what_kraft_keeps_beside_the_level_is_lost_below_it() -> None:
    state = replace(KRAFT, finalised={"metadata.version": 19}, seen={**NOTHING, "directory_ids": Seen(5, "offset 3")})
    assert outcomes(readiness(state, (3, 6)), "log directory ids") == {"loses"}
    assert outcomes(readiness(state, (3, 7)), "log directory ids") == {"safe"}
    assert readiness(replace(KRAFT, finalised=None), (4, 2)).verdict is LineOutcome.UNKNOWN
    assert readiness(replace(KRAFT, release=(3, 9)), (4, 2)).verdict is LineOutcome.BLOCKED


# The captures of 3.9.1.


def tree(stage: str) -> TreeEvidence:
    with gzip.open(capture("3.9.1", stage) / "zookeeper.jsonl.gz", "rt") as lines:
        znodes = [json.loads(line) for line in lines]
    return of_tree((z["path"], _text(z["data_base64"])) for z in znodes)


def _text(data: str | None) -> str | None:
    return None if data is None else base64.b64decode(data).decode(errors="replace")


def captured(stage: str, mode: MetadataMode) -> KnownCluster:
    shown = tree(stage)
    state = KnownCluster(mode, (3, 9), shown.seen, shown.feature_znode, shown.znode_versions)
    if mode is MetadataMode.ZOOKEEPER:
        return state
    known = replace(cluster("3.9.1", stage), local=3001, voters=frozenset({3000, 3001, 3002}))
    states = [r.offset for r in log_records(capture("3.9.1", stage), 3001) if r.type == "ZK_MIGRATION_STATE_RECORD"]
    seen = {**state.seen, "directory_ids": Seen(87, "PARTITION_RECORD"), "eligible_leader_replicas": Seen(0)}
    dual = mode is MetadataMode.DUAL_WRITE
    return with_kraft(replace(state, seen=seen), known, states[-1], None, migrating=dual)


def test_the_tree_of_a_real_cluster_shows_its_formats() -> None:
    shown = tree("1")
    assert shown.znode_versions == {0: 5, 1: 5, 2: 5}
    assert shown.feature_znode == FeatureZnode(2, True, {})
    assert shown.seen["topic_id"].total > 5
    assert shown.seen["token_v3"].example.startswith("/delegation_token/tokens/")
    assert shown.seen["prefixed_acls"].total > 0
    assert shown.seen["broker_znode_v5"].example == "/brokers/ids/0"


@pytest.mark.parametrize(
    ("target", "verdict"), [((3, 6), "unknown"), ((3, 3), "unknown"), ((2, 7), "blocked"), ((2, 3), "blocked")]
)
def test_a_real_cluster_in_zookeeper_mode(target: tuple[int, int], verdict: str) -> None:
    """Its property files are not among the captures, and from 3.3 on nothing else tells its protocol."""
    state = captured("1", MetadataMode.ZOOKEEPER)
    judged = readiness(state, target)
    assert judged.verdict.value == verdict
    if verdict == "blocked":
        evidence = " ".join(line.evidence for line in judged.lines if line.outcome is LineOutcome.BLOCKED)
        assert "/feature has version 2" in evidence
        assert "/delegation_token/tokens/" in evidence
    if target == (2, 7):
        assert any(line.outcome is LineOutcome.LOSES and "/brokers/topics/" in line.evidence for line in judged.lines)
    assert (
        readiness(replace(state, configurations={n: {IBP: "3.3"} for n in range(3)}), (3, 3)).verdict
        is LineOutcome.SAFE
    )
    assert readiness(replace(state, configurations={n: {} for n in range(3)}), (3, 6)).verdict is LineOutcome.BLOCKED


@pytest.mark.parametrize("target", TARGETS)
def test_a_real_cluster_in_dual_write(target: tuple[int, int]) -> None:
    judged = readiness(captured("5", MetadataMode.DUAL_WRITE), target)
    assert judged.verdict is LineOutcome.BLOCKED
    told = [line for line in judged.lines if line.outcome is LineOutcome.BLOCKED]
    assert any(line.evidence == "broker 0's registration" and "3.9-IV0" in line.what for line in told)
    assert not outcomes(judged, "runs in KRaft mode")
    word = "can't be changed while a migration" if target >= (3, 4) else "roll it back first"
    assert any(word in line.what for line in told)


def test_brokers_in_kraft_mode_go_back_first() -> None:
    judged = readiness(captured("11", MetadataMode.DUAL_WRITE), (3, 6))
    assert {line.what.partition(" runs")[0] for line in judged.lines if "KRaft mode" in line.what} == {
        "broker 0",
        "broker 1",
        "broker 2",
    }


@pytest.mark.parametrize("target", TARGETS)
def test_a_real_cluster_after_finalising(target: tuple[int, int]) -> None:
    state = captured("12", MetadataMode.KRAFT)
    judged = readiness(state, target)
    assert judged.verdict is LineOutcome.BLOCKED
    told = " ".join(f"{line.what} [{line.evidence}]" for line in judged.lines if line.outcome is LineOutcome.BLOCKED)
    if target >= (3, 3):
        assert "it might delete metadata information" in told
        assert any("3.7-IV2" in line.what for line in judged.lines if line.outcome is LineOutcome.LOSES)
    else:
        assert f"no way back to ZooKeeper [ZK_MIGRATION_STATE_RECORD, offset {state.migrated_at}]" in told


def test_a_real_kraft_cluster_may_go_back_until_its_level_is_raised() -> None:
    known = cluster("4.3.1-kraft", "upgrade-1-before")
    state = KnownCluster(
        MetadataMode.KRAFT,
        (4, 3),
        NOTHING,
        finalised=known.finalised,
        nodes=known.nodes,
        voters=known.voters,
        local=known.local,
    )
    assert readiness(state, (3, 9)).verdict is LineOutcome.SAFE
    raised = cluster("4.3.1-kraft", "upgrade-3-done")
    judged = readiness(replace(state, finalised=raised.finalised, nodes=raised.nodes), (3, 9))
    assert judged.verdict is LineOutcome.BLOCKED
    assert any("Unsupported metadata.version downgrade from 30 to 21" in line.what for line in judged.lines)


def test_a_real_cluster_of_4_4_does_not_go_back() -> None:
    known = cluster("4.4.0-kraft", "upgrade-3-done")
    state = KnownCluster(
        MetadataMode.KRAFT, (4, 4), NOTHING, finalised=known.finalised, nodes=known.nodes, voters=known.voters
    )
    judged = readiness(state, (4, 3))
    assert (judged.verdict, judged.floor) == (LineOutcome.BLOCKED, (4, 4))
    told = [line.what for line in judged.lines]
    assert any("Unsupported metadata.version downgrade from 33 to 30" in text for text in told)
    assert any(text.startswith("ACLs with hosts in CIDR notation: ") for text in told)
    assert any(text.startswith("records of unregistered controllers: ") for text in told)
    before = cluster("4.4.0-kraft", "upgrade-2-blocked-by-ghost")
    assert readiness(replace(state, finalised=before.finalised, nodes=before.nodes), (4, 3)).verdict is LineOutcome.SAFE


def test_a_controller_of_the_property_file_that_is_not_registered_blocks_the_way() -> None:
    """`FeatureControlManager.reasonNotSupported` asks every node of controller.quorum.voters, and says so in Kafka's words."""
    ranges = {"metadata.version": (7, 29), "kraft.version": (0, 1)}
    nodes = tuple(Node(kind, number, ranges) for kind, number in ((BROKER, 11), (CONTROLLER, 1), (CONTROLLER, 2)))
    levels, voters = {"metadata.version": 29, "kraft.version": 1}, frozenset({1, 2, 3})
    known = Cluster((4, 2), levels, nodes, voters, 1, configured=voters)
    state = KnownCluster(MetadataMode.KRAFT, (4, 2), NOTHING)
    judged = readiness(with_kraft(state, known, None, None, migrating=False), (4, 1))
    assert judged.verdict is LineOutcome.BLOCKED
    assert any(
        "controller 3 has not registered, and may not support this feature" in line.what for line in judged.lines
    )
    without_file = with_kraft(state, replace(known, configured=None), None, None, migrating=False)
    assert readiness(without_file, (4, 1)).verdict is LineOutcome.SAFE


@pytest.mark.parametrize("configurations", [None, {1: {}, 2: {}}, {1: {IBP: "3.9"}, 2: {IBP: "3.9"}}])
def test_in_kraft_mode_the_brokers_protocol_is_not_heeded(configurations: Any) -> None:
    nodes = (Node(BROKER, 1, {"metadata.version": (1, 21)}), Node(CONTROLLER, 3, {"metadata.version": (1, 21)}))
    known = Cluster((3, 9), {"metadata.version": 14}, nodes, frozenset({3}), 3)
    state = KnownCluster(MetadataMode.KRAFT, (3, 9), NOTHING, configurations=configurations)
    judged = readiness(with_kraft(state, known, None, None, migrating=False), (3, 6))
    assert (judged.verdict, judged.floor) == (LineOutcome.SAFE, (3, 6))
    assert settings_of(state, {}) == []
    in_zookeeper = replace(state, mode=MetadataMode.ZOOKEEPER)
    assert bool(settings_of(in_zookeeper, {})) == (configurations == {1: {}, 2: {}})


SHARE = {"metadata.version": (7, 33), "share.version": (0, 2)}


@pytest.mark.parametrize(
    ("level", "target", "outcome"), [(1, (4, 3), "safe"), (2, (4, 3), "blocked"), (2, (4, 0), "blocked")]
)
def test_a_feature_is_judged_by_the_level_that_the_target_replays(
    level: int, target: tuple[int, int], outcome: str
) -> None:
    """`FeatureControlManager.replay` throws on a level above its range: the controllers do not start."""
    nodes = tuple(replace(node, ranges=SHARE) for node in KRAFT.nodes)
    state = replace(KRAFT, release=(4, 4), nodes=nodes, finalised={"metadata.version": 22, "share.version": level})
    judged = readiness(state, target)
    assert judged.verdict.value == outcome
    known = "0" if target == (4, 0) else "0-1"
    if outcome == "blocked":
        words = (
            "Tried to apply FeatureLevelRecord FeatureLevelRecord(name='share.version', featureLevel=2), but this controller only"
            f" supports versions {known}"
        )
        assert any(line.what.endswith(words) for line in judged.lines if line.outcome is LineOutcome.BLOCKED)
        [lowered] = [line.what for line in judged.lines if "must be lowered to" in line.what]
        served = ["share groups no longer write to dead letter queues"]
        lost = "; ".join(served if target == (4, 3) else ["share groups can't be served", *served])
        assert lowered == f"share.version must be lowered to {known[-1]} first: {lost}"


def known_of(facts: Facts, release: tuple[int, int]) -> KnownCluster:
    """A KRaft cluster as its facts have it, whose log holds no format that is asked for."""
    assert facts.plan is not None
    assert facts.committed is not None
    side = KraftSide(tuple(facts.copies), facts.plan, facts.committed, (), read_transactions([]), None)
    answers: dict[str, list[Any]] = {"kraft_formats": [], "features": [], "feature_znode": []}
    return state_of(answers, facts, side, release, None)


@pytest.mark.parametrize(
    ("checkpoint", "levels", "verdict"),
    [
        # Lowered at 1200: of the checkpoint that it is in, of one just before it, and while one node has only that.
        ((1201, 1201), {20: 29, 1200: 27}, "safe"),
        ((1200, 1200), {20: 29, 1200: 27}, "blocked"),
        ((1201, 1100), {20: 29, 1200: 27}, "blocked"),
        # No node has it in its newest checkpoint, nor after that.
        ((1500, 1500), {20: 29, 1200: 27, 1499: 26}, "safe"),
        ((1100, 1100), {20: 27, 1200: 29, 1300: 27}, "blocked"),
        ((1500, 1500), {20: 27, 1200: 29, 1300: 27}, "safe"),
        # It has still to be lowered.
        ((1500, 1500), {20: 29}, "safe"),
    ],
)
def test_a_lowered_level_counts_until_each_node_has_a_newer_checkpoint(
    checkpoint: tuple[int, int], levels: dict[int, int], verdict: str
) -> None:
    """A node replays its newest checkpoint and what follows; `FeatureControlManager.replay` throws on the level that was in force there."""
    facts = kraft(
        kafka_version="4.2",
        copies=[copy(3000 + node, checkpoints=(Checkpoint("c", at, 1, True),)) for node, at in enumerate(checkpoint)],
        levels=[LevelChange(offset, level) for offset, level in levels.items()],
        features={"metadata.version": levels[max(levels)]},
        other_levels=[
            LevelChange(30, 1, "streams.version"),
            LevelChange(31, 0, "streams.version"),
            LevelChange(40, 1, "kraft.version"),
        ],
        brokers_in_kraft=[],
        controllers=[controller(node, 29) for node in (3000, 3001, 3002)],
        quorum=Quorum(0, ()),
    )
    state = known_of(facts, (4, 2))
    judged = readiness(state, (4, 1))
    assert judged.verdict.value == verdict
    assert not outcomes(readiness(state, (3, 8)), "kraft.version")
    assert judged.floor == ((4, 2) if verdict == "blocked" or levels[max(levels)] == 29 else (4, 1))
    blocked = [line for line in judged.lines if line.outcome is LineOutcome.BLOCKED]
    words = "featureLevel=29), but this controller only supports versions 7-27; wait until each node has a newer one"
    assert [line.what.endswith(words) for line in blocked] == [True] * (verdict == "blocked")
    assert [line.evidence for line in blocked] == [f"FEATURE_LEVEL_RECORD, offset {max(levels)}"] * len(blocked)


@pytest.mark.parametrize(
    ("level", "target", "starts"),
    [
        # What the classes of 3.4.1, 3.5.2, 3.6.2, 3.7.2, 3.8.1, 3.9.1 and 4.0.1 read (`BootstrapMetadata.fromRecords`).
        (8, (3, 4), True),
        (9, (3, 4), False),
        (11, (3, 5), True),
        (14, (3, 6), True),
        (15, (3, 6), False),
        (20, (3, 7), True),
        (21, (3, 7), False),
        (21, (3, 8), True),
        (22, (3, 8), False),
        (22, (3, 9), True),
        (25, (3, 9), False),
        (33, (4, 1), True),
    ],
)
def test_a_node_does_not_start_with_a_bootstrap_checkpoint_of_a_level_that_it_has_no_name_for(
    level: int, target: tuple[int, int], starts: bool
) -> None:
    levels = (level, None, 7, level)
    copies = [copy(3000 + node, bootstrap_level=mine) for node, mine in enumerate(levels)]
    old = {
        "levels": [LevelChange(2, 7)],
        "features": {"metadata.version": 7},
        "other_levels": [],
        "quorum": Quorum(0, ()),
    }
    facts = kraft(copies=copies, **old)
    judged = readiness(known_of(facts, (4, 4)), target)
    lines = [line for line in judged.lines if "bootstrap" in line.what]
    assert [line.outcome for line in lines] == [LineOutcome.BLOCKED] * (not starts)
    assert judged.floor is not None
    assert (judged.floor <= target) is starts
    assert all(line.what.startswith("node 3000, 3003 does not start with ") for line in lines)


@pytest.mark.parametrize(("level", "starts"), [(6, False), (7, True), (26, True), (27, False), (33, False)])
def test_the_first_4_0_does_not_start_with_a_bootstrap_checkpoint_that_the_next_one_takes(
    level: int, starts: bool
) -> None:
    """A real 4.0.0 on the folder of a 4.1.1: “No MetadataVersion with feature level 27. Valid feature levels are from 7 to 26.”"""
    facts = kraft(
        copies=[copy(3000, bootstrap_level=level), copy(3001, bootstrap_level=7)],
        levels=[LevelChange(2, 7)],
        other_levels=[],
    )
    judged = readiness(known_of(facts, (4, 1)), (4, 0))
    lines = [(line.outcome, line.what) for line in judged.lines if "bootstrap" in line.what]
    text = (
        "take 4.0.1 or later: node 3000 does not start with 4.0.0, which does not know its bootstrap.checkpoint's level "
        f"{level_name(level)} ({level})"
    )
    assert lines == ([] if starts else [(LineOutcome.SAFE, text)])


@pytest.mark.parametrize(("target", "known"), [((4, 1), "0"), ((4, 0), "0"), ((4, 2), None)])
def test_a_feature_that_was_lowered_counts_until_a_newer_checkpoint(target: tuple[int, int], known: str | None) -> None:
    state = replace(KRAFT, finalised={"metadata.version": 25}, replayed={"streams.version": (1, 900)})
    lines = [
        line for line in readiness(state, target).lines if "FeatureLevelRecord(name='streams.version'" in line.what
    ]
    assert len(lines) == (known is not None)
    assert all(f"only supports versions {known};" in line.what for line in lines)
    assert all(line.outcome is LineOutcome.BLOCKED for line in lines)


@pytest.mark.parametrize("name", BY_FEATURE)
def test_each_format_that_a_feature_level_writes(name: str) -> None:
    entry = BY_ID[name]
    assert entry.written_at is not None
    feature, level = entry.written_at
    major, minor = entry.reads_from
    # 4.0 comes after 3.9.
    target = (major, minor - 1) if minor else (3, 9)
    state = replace(KRAFT, release=(4, 4), finalised={"metadata.version": 21, feature: level})
    outcome = {Effect.LOSES: "loses", Effect.REFUSES: "blocked"}[entry.below]
    assert outcomes(readiness(state, target), f"{entry.title}: ") == {outcome}
    assert outcomes(readiness(state, entry.reads_from), f"{entry.title}: ") == set(), "it reads them"
    less = replace(state, finalised={"metadata.version": 21, feature: level - 1})
    assert outcomes(readiness(less, target), f"{entry.title}: ") == set(), "nobody has written any"


@pytest.mark.parametrize(
    ("name", "below", "reads"), [("client_metrics_configs", (3, 6), (3, 7)), ("group_configs", (3, 9), (4, 0))]
)
def test_configurations_of_a_type_that_an_older_release_does_not_know(
    name: str, below: tuple[int, int], reads: tuple[int, int]
) -> None:
    """`ConfigResource.Type.forId` of 3.9.1 makes UNKNOWN of 32; the real one wrote 0 in its snapshot (S§3.4)."""
    title = BY_ID[name].title
    state = replace(
        KRAFT, release=(4, 4), finalised={"metadata.version": 14}, seen={**KRAFT.seen, name: Seen(1, "here")}
    )
    assert outcomes(readiness(state, below), title) == {"loses"}
    assert outcomes(readiness(state, reads), title) == {"safe"}


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("topic_configs_4_4", (4, 3), "4.3 forgets them, and refuses none"),
        ("group_configs_4_4", (4, 2), "4.3 forgets them, and refuses none"),
        ("topic_configs_3_8", (3, 7), "refuse every later change of the topic"),
        ("broker_configs_4_4", (4, 3), "older brokers ignore them"),
    ],
)
def test_configurations_of_names_that_an_older_release_does_not_know(
    name: str, target: tuple[int, int], words: str
) -> None:
    """`ControllerConfigurationValidator` of 4.0.1 to 4.3.1: Unknown topic config name: errors.deadletterqueue.group.enable."""
    state = replace(
        KRAFT, release=(4, 4), finalised={"metadata.version": 14}, seen={**KRAFT.seen, name: Seen(1, "here")}
    )
    title = BY_ID[name].title
    [line] = [line for line in readiness(state, target).lines if title in line.what]
    assert (line.outcome, line.evidence) == (LineOutcome.LOSES, "here")
    assert line.what.endswith(words)
    assert outcomes(readiness(state, BY_ID[name].reads_from), title) <= {"safe"}
    assert readiness(state, target).floor == BY_ID[name].reads_from


@pytest.mark.parametrize(("target", "outcome"), [((4, 1), "safe"), ((4, 0), "loses"), ((3, 9), "loses")])
def test_acls_of_an_operation_that_an_older_release_does_not_know(target: tuple[int, int], outcome: str) -> None:
    """`StandardAcl.fromRecord` of 3.9.1 and 4.0.1 makes operation 15 UNKNOWN, `toRecord` writes 0, and DescribeAclsResponse throws."""
    found = {**NOTHING, "two_phase_commit_acls": Seen(1, "ACCESS_CONTROL_ENTRY records, offset 9")}
    judged = readiness(replace(KRAFT, release=(4, 2), finalised={"metadata.version": 21}, seen=found), target)
    assert outcomes(judged, "TWO_PHASE_COMMIT (1)") == {outcome}
    assert judged.verdict.value == outcome


def test_clears_that_4_1_can_not_replay_block_the_way_to_it() -> None:
    """`TopicsDelta.replay` of 4.0.1 to 4.1.2 throws on them (seen in 4.1.0, S§8.4): a node that goes back does not start."""
    cleared = {"clear_elr_after_removal": Seen(1, "t (offset 9)")}
    state = replace(KRAFT, release=(4, 3), finalised={"metadata.version": 25}, seen={**KRAFT.seen, **cleared})
    title = BY_ID["clear_elr_after_removal"].title
    for target, outcome in (((4, 2), "safe"), ((4, 1), "blocked"), ((4, 0), "blocked")):
        assert outcomes(readiness(state, target), title) == {outcome}
    assert readiness(state, (4, 1)).floor == (4, 2)
    assert outcomes(readiness(replace(state, seen=KRAFT.seen), (4, 1)), title) == {"safe"}


def test_files_that_older_releases_pass_over_are_in_the_ledger() -> None:
    judged = readiness(replace(ZK, configurations={0: {IBP: "2.0"}}), (2, 7))
    assert outcomes(judged, "partition.metadata") == {"safe"}
    assert outcomes(judged, "directory ids in meta.properties") == {"safe"}
    assert judged.verdict is LineOutcome.SAFE
    # Nothing before 0.11 is asked about, and nothing since has changed what the others are.
    assert all(BY_ID[name].reads_from <= (0, 11) for name in OF_FILES[:4])


# The order of the settings.


@pytest.mark.parametrize(
    ("conf", "words"),
    [
        ({IBP: "3.9"}, []),
        ({}, ["raise it silently"]),
        ({IBP: "3.9", "persistent.metadata.version": "3.0"}, ["no release of Kafka has"]),
        ({IBP: "2.8", "persistent.metadata.version": "3.0"}, ["no release of Kafka has", "is above"]),
        (
            {IBP: "2.8", "persistent.metadata.version": "2.0", FORMAT: "2.4"},
            ["no release of Kafka has", "is above persistent"],
        ),
        ({IBP: "0.10.2", FORMAT: "2.0"}, ["another record format"]),
        ({IBP: "2.1", FORMAT: "2.8"}, []),
        ({IBP: "3.0", FORMAT: "0.9.0"}, []),
        ({IBP: "2.8", "persistent.metadata.version": "2.8"}, ["no release of Kafka has", "no way back"]),
        ({IBP: "nonsense"}, ["is not a version"]),
    ],
)
def test_the_order_of_one_brokers_settings(conf: dict[str, str], words: list[str]) -> None:
    found = violations({0: conf}, {})
    assert len(found) == len(words)
    assert all(word in text for word, text in zip(words, found, strict=True))


def test_brokers_that_disagree_and_topics_above_them() -> None:
    confs = {0: {IBP: "2.8", FORMAT: "2.0"}, 1: {IBP: "2.7"}}
    found = violations(confs, {"old": "0.10.2", "new": "2.8"})
    assert [text for text in found if "disagree" in text] == [
        f"brokers disagree on {IBP} (broker 0: 2.8, broker 1: 2.7)",
        f"brokers disagree on {FORMAT} (broker 0: 2.0, broker 1: unset)",
    ]
    assert [text for text in found if "topic" in text] == [
        "topic new: message.format.version 2.8 is above the brokers' message format 2.0"
    ]
    assert violations({0: {IBP: "3.0"}}, {"new": "3.9"}) == []
    assert violations(None, {"a": "x", "b": "2.0"}) == ["topic a: message.format.version x is not a version"]


def test_formats_by_release() -> None:
    assert [record_format(v) for v in ((0, 9), (0, 10), (0, 11), (3, 0))] == [0, 1, 2, 2]
    versions = {"0.10.2-IV0": (0, 10), "3.5-IV2": (3, 5), "2.8.1": (2, 8)}
    none = ("x", "3", "3.\N{SUPERSCRIPT TWO}", f"3.{'9' * 5000}", "3..1")
    assert {text: version_of(text) for text in (*versions, *none)} == versions | dict.fromkeys(none)


def test_among_many_topics_with_formats_of_their_own_no_format_is_passed_over() -> None:
    formats = {**{f"a{number:04}": "2.8" for number in range(500)}, "z": "3.9"}
    rows = [("TOPIC", topic, MESSAGE_FORMAT, value) for topic, value in formats.items()]
    configs = pl.DataFrame(rows, ["resource_type", "resource_name", "config", "value"], orient="row")
    [answer] = _topic_formats(configs)
    found = {each["resource_name"]: each["value"] for each in answer["topics"]}
    assert (len(found), found["z"], found["a0000"]) == (200, "3.9", "2.8")
