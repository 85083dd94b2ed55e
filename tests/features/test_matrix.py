"""The matrix of nodes and features, its checks, and `describe`, against what the Admin API of real clusters said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from jobs.commands import features
from schemas.kraft.feature_levels import HIGHEST_LEVELS
from schemas.kraft.metadata_versions import level_name
from tests.captures import stages
from tests.features.clusters import admin, cluster, described
from transforms.features import matrix
from transforms.features.matrix import BROKER, CONTROLLER, Node, deprecation, describe, node_of, unheard
from transforms.features.update import Cluster
from transforms.outcome import Outcome

MV = "metadata.version"
GOOD = {MV: (1, 21)}
OLD = {MV: (1, 19)}
NODES = [Node(BROKER, 0, GOOD), Node(BROKER, 1, GOOD), Node(CONTROLLER, 3000, GOOD)]
ZK = replace(NODES[0], ranges={MV: (21, 21)}, migrating_zk=True)
AT = {MV: 21}
DEFAULTS = {name: level for name, level in HIGHEST_LEVELS["4.4"].items() if name != "kraft.version"}

CHECKS: dict[str, tuple[Callable[..., Outcome], tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = {
    "FEAT-01": (matrix.brokers_support, ([*NODES, Node(BROKER, 2, OLD)], AT), (NODES, AT), (None, AT)),
    "FEAT-01 fenced": (
        matrix.brokers_support,
        ([Node(BROKER, 2)], AT),
        ([*NODES, Node(BROKER, 2, OLD, fenced=True)], AT),
        ([Node(BROKER, 2, fenced=True)], AT),
    ),
    "FEAT-02": (matrix.controllers_support, ([Node(CONTROLLER, 1, OLD)], AT), (NODES, AT), (NODES[:2], AT)),
    "FEAT-03": (matrix.level_is_known, ({MV: 99},), (AT,), (None,)),
    "FEAT-04": (matrix.lost_at_migration, ({"x": 1}, AT), ({}, AT), (None, AT)),
    "FEAT-05": (matrix.migrating_brokers_agree, ([ZK], {MV: 20}), ([ZK], AT), ([ZK], {})),
    "FEAT-06 twice": (matrix.rows_are_sound, ([("x", 1), ("x", 2)],), ([("x", 1)],), (None,)),
    "FEAT-06 level 0": (matrix.rows_are_sound, ([("x", 0)],), ([],), (None,)),
    "FEAT-07": (matrix.has_metadata_version, ({"x": 1},), (AT,), (None,)),
    "FEAT-09": (
        matrix.behind_defaults,
        ({MV: 33, **DEFAULTS, "share.version": 1}, (4, 4)),
        ({MV: 33, **DEFAULTS}, (4, 4)),
        (AT, None),
    ),
    "FEAT-09 by level": (matrix.behind_defaults, ({MV: 25, "group.version": 1}, (4, 4)), (AT, (4, 4)), (AT, (4, 5))),
    "FEAT-11": (
        matrix.brokers_of_zookeeper_support,
        ([Node(BROKER, 0, {"x": (1, 2)}), Node(BROKER, 1)], {"x": 2}),
        ([Node(BROKER, 0, {"x": (1, 2)})], {"x": 2}),
        ([], None),
    ),
    "FEAT-08": (matrix.bootstrap_is_readable, ({"3000": 6},), ({"3000": 7},), ({"3000": None},)),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_fails_passes_and_knows_when_it_cannot_know(check: str) -> None:
    judge, violating, healthy, missing = CHECKS[check]
    assert judge(*violating).violations == 1
    passed = judge(*healthy)
    assert (passed.violations, passed.unknown, passed.not_applicable) == (0, None, None)
    assert judge(*missing).unknown is not None


def test_a_cell_says_what_is_wrong() -> None:
    cells = matrix.matrix([*NODES, Node(BROKER, 2, OLD, fenced=True), Node(BROKER, 3)], {**AT, "x": 1})
    gaps = {(cell.node.node_id, cell.feature): cell.gap for cell in cells}
    assert gaps[0, MV] == ""
    assert gaps[2, MV] == "broker 2 (fenced) supports metadata.version 3.0-IV1 to 3.7-IV4, it is at 3.9-IV0"
    assert gaps[3, MV] == "broker 3 does not support metadata.version, which is at 3.9-IV0"
    assert gaps[0, "x"] == "broker 0 does not support x, which is at 1"
    assert [(cell.feature, cell.node.node_id) for cell in cells][:3] == [(MV, 0), (MV, 1), (MV, 2)]


def test_rows_of_the_tables_are_nodes() -> None:
    features = [{"name": MV, "min_level": 1, "max_level": 21}]
    broker = {"broker_id": 4, "features": features, "fenced": True, "is_migrating_zk_broker": True}
    assert node_of(broker) == Node(BROKER, 4, GOOD, fenced=True, migrating_zk=True)
    assert node_of({"controller_id": 3000, "features": None}) == Node(CONTROLLER, 3000)


def test_who_still_needs_a_level_below() -> None:
    nodes = [*NODES, Node(BROKER, 2, OLD, fenced=True), Node(BROKER, 3)]
    assert deprecation(nodes, {MV: 19}, MV, 21) == [
        "the cluster is at 3.7-IV4",
        "broker 2 (fenced) goes up to 3.7-IV4",
        "broker 3 does not support it",
    ]
    assert deprecation(NODES, AT, MV, 21) == []


REAL = [
    *[("4.3.1-kraft", name) for name in stages("4.3.1-kraft") if not name.startswith("static")],
    *[("4.4.0-kraft", name) for name in stages("4.4.0-kraft")],
    *[("3.9.1", name) for name in stages("3.9.1") if name.split("-")[0] in ("11", "12")],
]


@pytest.mark.parametrize(("version", "stage"), REAL)
def test_the_matrix_is_what_the_admin_api_of_a_real_cluster_said(version: str, stage: str) -> None:
    known = cluster(version, stage)
    text = admin(version, stage)["features"]
    finalised, supported = described(text)
    if not supported:
        pytest.skip("the cluster could not answer")
    assert known.finalised == finalised
    brokers = [node for node in known.nodes if node.kind == BROKER]
    assert all(node.ranges == supported for node in brokers if version != "3.9.1" or not node.migrating_zk)
    assert not [
        cell.gap for cell in matrix.matrix(known.nodes, known.finalised) if cell.gap and cell.feature != "x"
    ] or (
        stage.startswith("upgrade")
        and {cell.node.node_id for cell in matrix.matrix(known.nodes, known.finalised) if cell.gap} == {3003}
    )
    newest, lowest = {
        "3.9.1": ("3.9-IV0", "3.0-IV1"),
        "4.3.1-kraft": ("4.3-IV0", "3.3-IV3"),
        "4.4.0-kraft": ("4.4-IV2", "3.3-IV3"),
    }[version]
    level = level_name(finalised[MV])
    lines = describe(supported, finalised, 5)
    assert len(lines) == len(supported)
    [line] = [each for each in lines if each.startswith(f"Feature: {MV}\t")]
    assert line == (
        f"Feature: {MV}\tSupportedMinVersion: {lowest}\tSupportedMaxVersion: {newest}"
        f"\tFinalizedVersionLevel: {level}\tEpoch: 5"
    )


def test_the_tool_of_4_3_pads_its_columns() -> None:
    """`%-40s` and `%-15s` with two spaces between; tabs before."""
    for release in ((4, 3), (4, 4)):
        assert describe({MV: (7, 33)}, {MV: 33}, 5, release) == [
            "Feature: metadata.version                          SupportedMinVersion: 3.3-IV3          "
            "SupportedMaxVersion: 4.4-IV2          FinalizedVersionLevel: 4.4-IV2          Epoch: 5"
        ]
    assert "\t" in describe({MV: (7, 29)}, {MV: 29}, 5, (4, 2))[0]


def test_a_feature_that_is_not_finalised_is_printed_as_0() -> None:
    assert describe({"x": (0, 1)}, {}, None) == [
        "Feature: x\tSupportedMinVersion: 0\tSupportedMaxVersion: 1\tFinalizedVersionLevel: 0\tEpoch: -"
    ]


def test_whoever_did_not_register_is_not_taken_for_one_that_needs_nothing() -> None:
    """Below metadata.version 3.7-IV0 no controller does: `needs` said "Nobody needs" by the brokers alone."""
    brokers = [Node(BROKER, 0, {MV: (1, 25)})]
    assert unheard(brokers, None) == ["no controller has registered, and the quorum's voters are unknown"]
    controllers = [Node(CONTROLLER, 3000, {MV: (1, 25)})]
    assert unheard([*brokers, *controllers], {3000, 3001}) == ["controller 3001 has not registered"]
    assert unheard([*brokers, *controllers], {3000}) == unheard([*brokers, *controllers], None) == []
    cluster = Cluster((3, 6), {MV: 14}, brokers, frozenset({3000}))
    assert features._needs(cluster, MV, 8) == [
        "Unknown is whether they need a level of metadata.version below 3.4-IV0:",
        "  controller 3000 has not registered",
    ]
    heard = replace(cluster, nodes=[*brokers, *controllers])
    assert features._needs(heard, MV, 8) == ["Nobody needs a level of metadata.version below 3.4-IV0."]
