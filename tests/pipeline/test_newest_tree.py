"""Rows are compared at a barrier; who rules, who is there and whether dual write lives is told by the newest tree.

A real failover whose full sync never began: the new leader claimed ZooKeeper and put its name into /migration, and that
is where ZooKeeper's transaction log is cut. The last barrier is the old leader's.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.bronze import ZK_ZNODES
from schemas.classes import DEFECTS
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

CLUSTER = "failover-without-a-sync"
# The transaction after the claim's write of /migration, and where it begins in its log file.
CLAIM, NEXT, LOG, NEXT_AT = 0x629, 0x62B, "log.598", 27_970
OLD_LEADER, NEW_LEADER = 3000, 3001


@in_fleet(CLUSTER)
def prepare(folder: Path) -> Content:
    source = capture("3.9.1", "7-dual-write-failover")
    shutil.copytree(source / "zookeeper", folder / "zookeeper")
    shutil.copytree(source / "kraft", folder / "kraft")
    # A copy without it can be used: the log itself names the voters.
    (folder / "kraft" / "3002" / "__cluster_metadata-0" / "quorum-state").unlink()
    log = folder / "zookeeper" / "version-2" / LOG
    log.write_bytes(log.read_bytes()[:NEXT_AT] + bytes(4096))
    return settings_content(folder, folder, zookeeper={"folder": str(folder / "zookeeper")})


@pytest.fixture
def audit(audited: Callable[[str], Audit]) -> Audit:
    return audited(CLUSTER)


def evidence(audit: Audit, check_id: str) -> tuple[str, list[str]]:
    (check,) = [check for check in audit.report.checks if check.id == check_id]
    return check.verdict, check.evidence


def test_the_claim_is_judged_as_it_is_now(audit: Audit) -> None:
    """At the barrier /controller still names the old leader: that would be a false alarm."""
    assert audit.report.migration.leader_id == NEW_LEADER
    assert evidence(audit, "DUR-02") == ("pass", [])
    assert evidence(audit, "DUR-03") == ("pass", [])


def test_rows_are_compared_at_the_barrier(audit: Audit) -> None:
    assert audit.report.mode == "barrier"
    assert not set(audit.report.divergences.by_class) & set(DEFECTS)
    assert audit.report.divergences.by_class.get("lag"), "the new leader has written nothing yet"


def test_dual_writing_that_did_not_begin_again_is_not_alive(audit: Audit) -> None:
    assert audit.report.lag.alive is False
    assert evidence(audit, "DUR-04")[0] in ("warn", "fail")


def test_the_report_says_which_transaction_each_was_read_at(audit: Audit) -> None:
    migration = audit.report.migration
    assert migration.compared_zxid is not None
    assert migration.compared_zxid < CLAIM
    assert migration.newest_zxid == NEXT - 1
    said = " ".join(audit.report.notes)
    assert f"{migration.compared_zxid:#x}" in said
    assert f"{NEXT - 1:#x}" in said
    assert f"/controller names {NEW_LEADER}" in said


def test_a_znode_that_changed_since_is_stored_for_each_tree(audit: Audit) -> None:
    rows = audit.rows(ZK_ZNODES, "path = '/controller'")
    assert {row["tree"]: str(OLD_LEADER) in row["data"] for row in rows} == {"barrier": True, "newest": False}
    assert {row["tree"] for row in audit.rows(ZK_ZNODES, "path = '/cluster/id'")} == {None}


def test_what_a_reader_went_without_is_among_the_notes(audit: Audit) -> None:
    assert [note for note in audit.report.notes if "3002/__cluster_metadata-0/quorum-state is missing" in note]
