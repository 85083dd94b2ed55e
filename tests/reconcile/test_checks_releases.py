"""What depends on the release (S§12): each rule at the releases between which it changes.

The table of defects is written from S§12.2 line by line, for releases of which no capture is kept here.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.checks import CHECKS
from schemas.kraft.metadata_versions import SNAPSHOT_KEEPS_FROM, zk_migration_states
from tests.reconcile.test_checks import LOAD_STATE, NOW, broker, dual_write, in_kraft_mode, waiting, zookeeper
from transforms.kraft.release import infer_release
from transforms.kraft.replay.transactions import read_transactions
from transforms.reconcile.compare.exposure import affecting, has
from transforms.reconcile.judge.facts import Facts, LeaderEpoch
from transforms.reconcile.judge.gates import run_checks

V3_4_1, V3_7_2, V3_8_1 = "3.4.1", "3.7.2", "3.8.1"
# Ticket: the releases of these three that have it.
EXPOSED: dict[str, set[str]] = {
    "KAFKA-14801": {V3_4_1},
    "KAFKA-14840": {V3_4_1},
    "KAFKA-14859": {V3_4_1},
    "KAFKA-14796": {V3_4_1},
    "KAFKA-15003": {V3_4_1},
    "KAFKA-15004": {V3_4_1},
    "KAFKA-14805": {V3_4_1},
    "KAFKA-15098": {V3_4_1},
    "KAFKA-15149": set(),  # 3.5.0 alone
    "KAFKA-15263": set(),  # 3.5.0 and 3.5.1
    "KAFKA-15374": set(),  # 3.5.0 and 3.5.1
    "KAFKA-15552": {V3_4_1},
    "KAFKA-15605": {V3_4_1},
    "KAFKA-15825": set(),  # 3.5 and 3.6.0
    "KAFKA-15689": {V3_4_1},
    "KAFKA-15704": {V3_4_1},
    "KAFKA-16007": {V3_4_1},
    "KAFKA-16120": {V3_4_1},
    "KAFKA-16171": {V3_4_1},
    "KAFKA-16180": set(),  # 3.6.1 alone
    "PR 15327": set(),  # 3.5 to 3.6.1
    "KAFKA-16222": {V3_4_1},  # 3.7.1 repairs it
    "KAFKA-16411": {V3_4_1},
    "KAFKA-16428": {V3_4_1},
    "KAFKA-16003": {V3_4_1},
    "KAFKA-16206": {V3_4_1, V3_7_2},  # 3.8.0 repairs it, no 3.7
    "KAFKA-16539": {V3_4_1},
    "KAFKA-16563": {V3_4_1},
    "KAFKA-16463": {V3_4_1},
    "KAFKA-16667": {V3_4_1, V3_7_2, V3_8_1},  # 3.9.0 repairs it
    "KAFKA-17457": {V3_4_1},  # 3.7.2 and 3.8.1 repair it
    "KAFKA-17506": {V3_4_1},
    "KAFKA-17146": set(),  # 3.9
    "KAFKA-16468": {V3_4_1, V3_7_2, V3_8_1},
    "KAFKA-17788": set(),  # 3.9
    "KAFKA-19480": {V3_4_1, V3_7_2, V3_8_1},  # open
    "KAFKA-20488": {V3_4_1, V3_7_2, V3_8_1},
    "KAFKA-20960": {V3_4_1, V3_7_2, V3_8_1},
    "latent A": {V3_7_2, V3_8_1},
    "latent B": {V3_7_2, V3_8_1},
    "latent C": {V3_7_2, V3_8_1},
    "latent D": {V3_7_2, V3_8_1},
    "latent E": {V3_7_2, V3_8_1},
    "latent F": {V3_7_2, V3_8_1},
    "latent G": {V3_7_2, V3_8_1},
    "latent H": {V3_7_2, V3_8_1},
    "latent I": {V3_7_2, V3_8_1},
}


@pytest.mark.parametrize("version", [V3_4_1, V3_7_2, V3_8_1])
def test_a_release_is_exposed_to_what_the_catalogue_says(version: str) -> None:
    assert {defect.jira for defect, _ in affecting(version)} == {
        jira for jira, releases in EXPOSED.items() if version in releases
    }


def verdict(facts: Facts, check_id: str) -> str:
    return next(result.verdict for result in run_checks(facts) if result.id == check_id)


@pytest.mark.parametrize(
    ("level", "version"), [(8, "3.4"), (9, "3.5"), (11, "3.5"), (12, "3.6"), (14, "3.6"), (19, "3.7"), (20, "3.8")]
)
def test_the_newest_level_tells_the_release(level: int, version: str) -> None:
    node = {"controller_id": 1, "features": [{"name": "metadata.version", "min_level": 1, "max_level": level}]}
    assert infer_release(None, [node], [], 8, frozenset({1})).version == version


@pytest.mark.parametrize("version", ["3.5.2", "3.6.2", V3_7_2, V3_8_1, "3.9.1", None])
def test_state_1_is_the_end_of_the_load_from_3_5_on(version: str | None) -> None:
    assert (zk_migration_states(version)[1], zk_migration_states(version)[2]) == ("MIGRATION", "PRE_MIGRATION")
    assert (zk_migration_states(V3_4_1)[1], zk_migration_states(V3_4_1)[2]) == ("PRE_MIGRATION", "MIGRATION")


@pytest.mark.parametrize(
    ("level", "transaction", "expected"),
    [(11, False, "pass"), (12, False, "pass"), (13, False, "fail"), (13, True, "pass"), (19, False, "fail")],
)
def test_the_load_is_a_transaction_from_3_6_iv1_on(level: int, transaction: bool, expected: str) -> None:
    healthy = replace(dual_write(), features={"metadata.version": level})
    facts = healthy if transaction else replace(healthy, transactions=read_transactions([]))
    assert verdict(facts, "DUR-07") == expected
    assert healthy.states[-1].offset == LOAD_STATE


@pytest.mark.parametrize(
    ("level", "expected"), [(14, "not_applicable"), (15, "fail"), (19, "fail"), (20, "fail"), (21, "fail")]
)
def test_controllers_register_from_3_7_iv0_on(level: int, expected: str) -> None:
    """START-05 and FIN-07 ask for registrations only where there can be any (S§4.1.1)."""
    features = {"metadata.version": level}
    mine = [{"name": "metadata.version", "min_level": level, "max_level": level}]
    brokers = [broker(node, features=mine) for node in (0, 1, 2)]
    facts = replace(waiting(), features=features, controllers=[], brokers_in_kraft=brokers)
    assert verdict(facts, "START-05") == expected
    unready = [{"controller_id": 3000, "zk_migration_ready": False}]
    assert verdict(replace(dual_write(), features=features, controllers=unready), "FIN-07") == expected
    assert verdict(replace(in_kraft_mode(), features={"metadata.version": 14}, controllers=[]), "FIN-07") == (
        "not_applicable"
    )


@pytest.mark.parametrize("version", ["3.5.2", "3.6.2", V3_7_2, V3_8_1, "3.9.1"])
@pytest.mark.parametrize(("age_seconds", "expected"), [(2, "warn"), (60, "fail")])
def test_a_new_leader_writes_migration_soon_in_every_release(version: str, age_seconds: int, expected: str) -> None:
    """3.9 writes it with the claim, earlier releases with their first change: a NoOp, half a second later (S§4.4)."""
    epochs = [
        LeaderEpoch(1, 0, 3000, (3000, 3001, 3002), NOW - 600_000),
        LeaderEpoch(2, 380, 3001, (3000, 3001, 3002), NOW - age_seconds * 1000),
    ]
    facts = replace(
        dual_write(),
        kafka_version=version,
        epochs=epochs,
        zookeeper=zookeeper(controller_id=3001, controller_kraft_epoch=2),
    )
    assert verdict(facts, "DUR-03") == expected
    assert verdict(replace(facts, kafka_version=V3_4_1), "DUR-03") == "not_applicable"


@pytest.mark.parametrize(
    ("level", "scram", "tokens"),
    [(8, True, True), (11, False, True), (13, False, True), (14, False, False), (20, False, False)],
)
def test_snapshots_drop_what_the_level_does_not_know(level: int, scram: bool, tokens: bool) -> None:
    facts = replace(dual_write(), features={"metadata.version": level})
    evidence = next(result.evidence for result in run_checks(facts) if result.id == "DUR-09")
    assert [any("scram" in line for line in evidence), any("token" in line for line in evidence)] == [scram, tokens]
    assert (SNAPSHOT_KEEPS_FROM["controllers"], SNAPSHOT_KEEPS_FROM["directories"]) == (15, 17)


def test_remedies_name_what_the_tool_of_an_older_release_has() -> None:
    """`kafka-features.sh` has `--release-version` from 4.0 on; what FEAT-09 asks for begins there, too."""
    naming = {check.id: check.remedy for check in CHECKS if "--release-version" in check.remedy}
    assert naming.keys() == {"FEAT-07", "FEAT-09"}
    assert "--metadata X.Y-IVn" in naming["FEAT-07"]
    [upgrade] = [check.remedy for check in CHECKS if check.id == "UPG-03"]
    assert "--metadata X.Y-IVn" in upgrade


@pytest.mark.parametrize(
    ("version", "expected"),
    [(None, None), ("3.5.2", True), ("3.5", True), ("3.6", None), ("3.6.1", True), ("3.6.2", False), ("3.8", False)],
)
def test_a_release_has_a_defect_or_not_or_its_patch_decides_it(version: str | None, expected: bool | None) -> None:
    assert has("KAFKA-16411", version) is expected
