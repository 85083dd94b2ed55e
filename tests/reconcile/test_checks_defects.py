"""Known defects: which releases have them, and what counts as their trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.checks import CHECKS, Phase
from schemas.classes import CLASSES
from schemas.defects import DEFECTS, LAST_PATCH
from schemas.entities import ENTITIES
from schemas.report import Defect, DivergenceRow
from schemas.zookeeper.findings import FINDINGS
from transforms.reconcile.compare.exposure import affecting
from transforms.reconcile.judge.defects import exposure
from transforms.reconcile.judge.facts import Facts, Sample

MIGRATING = Facts(phase=Phase.DUAL_WRITE, collected=frozenset(), kafka_version="3.9.1")
ACL = {
    "resource_type": "TOPIC",
    "resource_name": "wide",
    "pattern_type": "LITERAL",
    "principal": "User:erin",
    "host": "*",
    "operation": "WRITE",
    "permission": "ALLOW",
}
LATENT = {f"latent {letter}" for letter in "ABCDEFGHI"}


def names(version: str) -> set[str]:
    return {defect.jira for defect, _ in affecting(version)}


def by_name(facts: Facts) -> dict[str, Defect]:
    return {defect.jira: defect for defect in exposure(facts)}


def row(entity: str, class_: str, kind: str, /, *, explanation: str = "", **key: object) -> DivergenceRow:
    return DivergenceRow(entity, key, None, kind, None, None, class_, "error", explanation=explanation)


@pytest.mark.parametrize(
    ("jira", "have", "have_not"),
    [
        ("KAFKA-14801", ["3.4.0", "3.4.1"], ["3.5.0", "3.9.1"]),
        ("KAFKA-15098", ["3.4.1", "3.5.0"], ["3.5.1", "3.6.0"]),
        ("KAFKA-15552", ["3.4.1", "3.5.1", "3.6.0"], ["3.5.2", "3.6.1", "3.7.0", "3.9.1"]),
        ("KAFKA-15825", ["3.5.0", "3.5.2", "3.6.0"], ["3.4.1", "3.6.1", "3.7.0"]),
        ("KAFKA-16180", ["3.6.1"], ["3.6.0", "3.6.2", "3.7.0"]),
        ("KAFKA-16463", ["3.4.1", "3.6.2", "3.7.0"], ["3.7.1", "3.8.0"]),
        ("KAFKA-16222", ["3.5.2", "3.6.1", "3.7.0"], ["3.6.2", "3.7.1", "3.8.0", "3.9.0"]),
        ("KAFKA-16171", ["3.5.2", "3.6.1"], ["3.6.2", "3.7.0", "3.7.2"]),
        ("PR 15327", ["3.5.2", "3.6.1"], ["3.4.1", "3.6.2", "3.7.0"]),
        ("KAFKA-17457", ["3.6.2", "3.7.1", "3.8.0"], ["3.7.2", "3.8.1", "3.9.0"]),
        ("KAFKA-17146", ["3.9.0", "3.9.1"], ["3.8.1", "4.0.0"]),
        ("latent A", ["3.5.0", "3.9.1"], ["3.4.1", "4.0.0", "4.1.0"]),
        ("latent B", ["3.7.0", "3.9.1"], ["3.6.2", "4.0.0"]),
    ],
)
def test_a_release_has_a_defect_until_it_is_repaired_on_its_branch(
    jira: str, have: list[str], have_not: list[str]
) -> None:
    assert {version: jira in names(version) for version in (*have, *have_not)} == {
        **dict.fromkeys(have, True),
        **dict.fromkeys(have_not, False),
    }


@pytest.mark.parametrize("release", list(LAST_PATCH))
def test_a_release_without_its_patch_has_what_any_patch_has(release: str) -> None:
    patches = [names(f"{release}.{patch}") for patch in range(LAST_PATCH[release] + 1)]
    assert names(release) == set().union(*patches)


def test_what_only_some_patches_have_is_said() -> None:
    told = {defect.jira: detail for defect, detail in affecting("3.6")}
    assert "3.6.0, 3.6.1 has the defect" in told["KAFKA-16222"]
    assert told["latent A"].startswith("every release of 3.6 has it")


def test_kafka_4_has_no_migration() -> None:
    assert names("4.0.0") == names("4.1") == set()


def test_the_catalogue_names_what_exists() -> None:
    assert len({defect.jira for defect in DEFECTS}) == len(DEFECTS)
    assert {defect.jira for defect in DEFECTS} >= LATENT
    for defect in DEFECTS:
        assert set(defect.checks) <= {check.id for check in CHECKS}
        assert set(defect.findings) <= set(FINDINGS)
        assert {trace.entity for trace in defect.rows} <= {entity.name for entity in ENTITIES}
        assert {name for trace in defect.rows for name in trace.classes} <= set(CLASSES)
        assert affecting(defect.first)


def test_a_removed_client_quota_that_stays_is_latent_a() -> None:
    lost = row("client_quotas", "lost_write", "zk_only", entity={"client-id": "app-9"}, quota="producer_byte_rate")
    found = by_name(replace(MIGRATING, defect_rows=(lost,)))
    assert found["latent A"].exposed
    assert found["latent A"].evidence
    assert "app-9" in found["latent A"].detail
    assert [name for name, defect in found.items() if defect.evidence] == ["latent A"]


def test_traces_that_the_list_may_lack_are_not_said_to_be_absent() -> None:
    other = row("client_quotas", "lost_write", "zk_only", entity={"user": "alice"}, quota="producer_byte_rate")
    whole = replace(MIGRATING, defect_rows=(other,), divergences={"lost_write": Sample(1, ("one",))})
    cut = replace(whole, divergences={"lost_write": Sample(9, ("one",))})
    text = "its traces were looked for in the rows that the report lists: 1 of 9 that are defects"
    assert text not in by_name(whole)["latent A"].detail
    assert text in by_name(cut)["latent A"].detail
    assert text not in by_name(cut)["KAFKA-19480"].detail, "it leaves no such row"


def test_topics_that_a_sync_of_an_empty_state_deleted_are_its_trace() -> None:
    deleted = row("topics", "lost_write", "kraft_only", topic="orders")
    by_somebody = replace(deleted, class_="foreign_write")
    stayed = replace(deleted, kind="zk_only")
    of_3_5 = [("3.5.2", deleted, True), ("3.5.2", by_somebody, True), ("3.5.2", stayed, False)]
    for version, lost, found in (*of_3_5, ("3.6.1", deleted, False)):
        told = by_name(replace(MIGRATING, kafka_version=version, defect_rows=(lost,)))
        assert told["KAFKA-15825"].evidence is found


def test_a_removed_user_quota_is_not() -> None:
    lost = row("client_quotas", "lost_write", "zk_only", entity={"user": "alice"}, quota="producer_byte_rate")
    assert not by_name(replace(MIGRATING, defect_rows=(lost,)))["latent A"].evidence


def test_mangled_names_and_a_lost_acl_of_3_5() -> None:
    rows = (
        row(
            "client_quotas",
            "load_extra",
            "kraft_only",
            explanation="kept percent-encoded (KAFKA-16222)",
            entity={"client-id": "a%20b"},
            quota="q",
        ),
        row(
            "client_quotas",
            "load_extra",
            "kraft_only",
            explanation="an empty name (KAFKA-16411)",
            entity={"user": ""},
            quota="q",
        ),
        row("acls", "lost_write", "kraft_only", **ACL),
    )
    found = by_name(replace(MIGRATING, kafka_version="3.5", defect_rows=rows))
    assert {name for name, defect in found.items() if defect.evidence} == {"KAFKA-16222", "KAFKA-16411", "PR 15327"}


def test_what_the_release_does_not_have_left_no_trace() -> None:
    found = by_name(replace(MIGRATING, defect_rows=(row("acls", "lost_write", "kraft_only", **ACL),)))
    assert (found["PR 15327"].exposed, found["PR 15327"].evidence) == (False, False)


def test_null_data_in_migration_is_kafka_19480() -> None:
    found = by_name(replace(MIGRATING, findings={"MIGRATION-NULL": Sample(1, ("/migration: its data is null",))}))
    assert found["KAFKA-19480"].evidence


def test_of_an_unknown_release_only_traces_are_told() -> None:
    lost = row("client_quotas", "lost_write", "zk_only", entity={"ip": "10.0.0.1"}, quota="connection_creation_rate")
    found = by_name(replace(MIGRATING, kafka_version=None, defect_rows=(lost,)))
    assert {name: defect.evidence for name, defect in found.items() if defect.evidence == defect.exposed} == {}
    assert "latent A" in found


def test_a_cluster_that_does_not_migrate_has_none() -> None:
    assert exposure(replace(MIGRATING, phase=Phase.KRAFT)) == []
