"""Real copies of the controllers' logs that end before ZooKeeper's data folder does."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.gold import LAG
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from tests.pipeline.logs import CONTROLLERS, SEGMENT, writable_copy

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

CUT, OLDER = "log-cut-before-the-loss", "log-of-an-earlier-stage"
# Where the segment has the batch of offset 327, the first of two that ZooKeeper passed without writing them.
LOST, LOST_AT = 327, 21_319


@in_fleet(CUT)
def cut(folder: Path) -> Content:
    source = capture("3.9.1", "quota-removal")
    logs = writable_copy(source / "kraft", folder / "kraft")
    for controller in CONTROLLERS:
        segment = logs / controller / SEGMENT
        segment.write_bytes(segment.read_bytes()[:LOST_AT])
    return settings_content(folder, folder, zookeeper={"folder": str(source / "zookeeper")})


@in_fleet(OLDER)
def older(folder: Path) -> Content:
    shutil.copytree(capture("3.9.1", "5") / "kraft", folder / "kraft")
    return settings_content(folder, folder, zookeeper={"folder": str(capture("3.9.1", "9") / "zookeeper")})


@pytest.mark.parametrize(("cluster", "end", "reached"), [(CUT, LOST - 1, 329), (OLDER, 306, 508)])
def test_nothing_is_promised_over_records_that_were_not_read(
    audited: Callable[[str], Audit], cluster: str, end: int, reached: int
) -> None:
    audit = audited(cluster)
    report = audit.report
    assert (report.migration.log_end_offset, report.migration.kraft_metadata_offset) == (end, reached)
    assert report.gates["rollback"].verdict == "unknown"
    assert "RB-02" in report.gates["rollback"].blocking
    assert (report.lag.records, report.lag.seconds) == (None, None)
    assert report.history[-1].lag_unknown
    assert [(row["records"], row["seconds"]) for row in audit.rows(LAG)] == [(None, None)]
    [reaches] = [check.verdict for check in report.checks if check.id == "CAP-04"]
    # Of the older log it is not open anyway: a controller leads that the log does not know yet.
    expected = ("pass", "go") if cluster == CUT else ("unknown", "no_go")
    assert (reaches, report.gates["dual_write"].verdict) == expected
