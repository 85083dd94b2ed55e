"""Captures that tell a story of their own: what a person must read in the report."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from schemas.report import CheckResult, Report
from tests.pipeline.audits import Audit

pytestmark = pytest.mark.slow
Auditor = Callable[[str, str], Audit]


def check(report: Report, check_id: str) -> CheckResult:
    return next(check for check in report.checks if check.id == check_id)


@pytest.mark.parametrize(("version", "lag"), [("3.9.1", 11), ("3.6.2", 10), ("3.5.2", 11)])
def test_zookeeper_behind_is_lag_and_no_defect(audit_of: Auditor, version: str, lag: int) -> None:
    report = audit_of(version, "8").report
    assert report.lag.records == lag
    assert report.lag.seconds is not None
    assert report.lag.seconds > 0
    assert report.lag.alive is False
    assert report.divergences.by_class["lag"] == 8
    rows = [row for row in report.divergences.rows if row.class_ == "lag"]
    assert {row.kind for row in rows} == {"kraft_only"}
    assert sorted(row.key["partition"] for row in rows if row.entity == "partitions") == [0, 1, 2, 3]
    assert "RB-02" in report.gates["rollback"].blocking
    if version != "3.5.2":
        assert report.divergences.by_class == {"lag": 8}
        assert report.exit_code == 10


@pytest.mark.parametrize("version", ["3.9.1", "3.6.2"])
def test_finalised_is_expected_stale_and_no_way_back(audit_of: Auditor, version: str) -> None:
    report = audit_of(version, "12").report
    assert report.migration.state == "POST_MIGRATION"
    assert report.divergences.by_class == {"expected_stale": 8}
    assert report.gates["rollback"].verdict == "no_go"
    assert report.gates["rollback"].blocking == ["RB-01"]
    assert report.exit_code == 0


@pytest.mark.parametrize("version", ["3.9.1", "3.6.2"])
def test_a_broker_that_is_not_ready_blocks_the_start(audit_of: Auditor, version: str) -> None:
    report = audit_of(version, "3").report
    assert report.migration.state == "PRE_MIGRATION"
    assert report.gates["start"].verdict == "no_go"
    assert "START-02" in report.gates["start"].blocking
    assert check(report, "START-02").violations == 1
    assert check(report, "START-02").evidence[0].startswith("broker 2 ")
    ledger = {entry.broker_id: entry for entry in report.broker_presence}
    assert ledger[2].blocks == ["start"]
    assert [ledger[0].blocks, ledger[1].blocks] == [[], []]


def test_a_decommissioned_broker_that_still_holds_replicas_blocks_for_ever(audit_of: Auditor) -> None:
    report = audit_of("3.9.1", "blocked-by-missing-broker").report
    assert report.gates["start"].blocking == ["START-02"]
    evidence = check(report, "START-02").evidence
    assert len(evidence) == 1
    assert evidence[0].startswith("broker 3 holds ")
    assert "on-all/" in evidence[0]
    assert {entry.broker_id: entry.mode for entry in report.broker_presence}[3] == "missing"


def test_removed_quotas_that_stay_in_zookeeper_are_lost_writes(audit_of: Auditor) -> None:
    report = audit_of("3.9.1", "quota-removal").report
    assert report.divergences.by_class == {"lost_write": 2}
    assert {row.entity for row in report.divergences.rows} == {"client_quotas"}
    assert {next(iter(row.key["entity"])) for row in report.divergences.rows} == {"client-id", "ip"}
    assert all(row.kind == "zk_only" and row.kraft_offset is not None for row in report.divergences.rows)
    assert report.lag.records == 0
    assert report.exit_code == 20
    assert check(report, "DUR-05").violations == 2
    assert {"dual_write", "finalize", "rollback"} <= {
        name for name, gate in report.gates.items() if gate.verdict == "no_go"
    }


@pytest.mark.parametrize("stage", ["retry-leftover-migration", "retry-after-join"])
def test_a_leftover_migration_znode_is_the_top_blocker(audit_of: Auditor, stage: str) -> None:
    report = audit_of("3.9.1", stage).report
    assert "START-07" in report.gates["start"].blocking
    assert "offset 326" in check(report, "START-07").evidence[0]
    assert report.exit_code == 20
    assert report.divergences.total == 0


def test_after_a_rollback_nothing_is_compared(audit_of: Auditor) -> None:
    report = audit_of("3.9.1", "rolled-back").report
    assert report.divergences.total == 0
    assert check(report, "START-07").verdict == "warn"
    assert any("rolled back" in note for note in report.notes)


@pytest.mark.parametrize("version", ["3.9.1", "3.6.2"])
def test_the_stopped_controllers_copy_is_not_used_and_the_report_says_so(audit_of: Auditor, version: str) -> None:
    report = audit_of(version, "7").report
    assert report.migration.copy_used in (3001, 3002)
    assert "3000 ends at" in report.migration.explanation
    assert {copy.controller_id: copy.used for copy in report.log_copies}[3000] == "not needed"


def test_lost_and_mangled_rows_of_3_5(audit_of: Auditor) -> None:
    rows = audit_of("3.5.2", "5").report.divergences.rows
    wide = [row for row in rows if row.entity == "acls"]
    assert [(row.key["resource_name"], row.kind, row.class_) for row in wide] == [("wide", "kraft_only", "lost_write")]
    mangled = [row for row in rows if row.class_ == "load_extra"]
    assert {jira for row in mangled for jira in ("KAFKA-16222", "KAFKA-16411") if jira in row.explanation} == {
        "KAFKA-16222",
        "KAFKA-16411",
    }
    tokens = [row for row in rows if row.entity == "delegation_tokens"]
    assert tokens
    assert all(row.kind == "zk_only" for row in tokens)
