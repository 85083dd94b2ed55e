"""A healthy cluster whose log begins at a snapshot and holds no LeaderChange, from one bare copy of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.report import Report
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content

pytestmark = pytest.mark.slow


@in_fleet("bare-copy")
def prepare(folder: Path) -> Content:
    """Controller 3000 came back with a snapshot at offset 488: its log folder alone, without meta.properties."""
    healthy, bare = capture("3.9.1", "9"), folder / "logs" / "__cluster_metadata-0"
    shutil.copytree(healthy / "kraft" / "3000" / "__cluster_metadata-0", bare)
    return settings_content(healthy, folder, kraft={"folders": [str(bare.parent)]})


@pytest.fixture
def report(audited: Callable[[str], Audit]) -> Report:
    return audited("bare-copy").report


def test_the_log_begins_at_the_snapshot(report: Report) -> None:
    assert [(copy.controller_id, copy.log_start_offset) for copy in report.log_copies] == [(None, 488)]
    assert report.migration.leader_id == 3001
    assert "the leader is taken from quorum-state" in report.migration.explanation


def test_dual_writing_and_the_way_back_are_judged(report: Report) -> None:
    assert report.divergences.total == 0
    assert {name: report.gates[name].verdict for name in ("dual_write", "rollback")} == {
        "dual_write": "go",
        "rollback": "go",
    }
    assert (report.verdict, report.exit_code) == ("clean", 0)


def test_one_copy_proves_no_majority(report: Report) -> None:
    assert "voters' copies" not in report.migration.explanation
