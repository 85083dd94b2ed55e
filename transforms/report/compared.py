"""Whether a run compared the two sides: without that, no difference is known, and none must not read as equal."""

from __future__ import annotations

from schemas.report import Report

NOT_COMPARED = "not compared"
_PHASES = ("dual_write", "finalized")
_ONE_SIDE = ("kraft_only", "zookeeper_only")


def was_compared(report: Report, phase: str) -> bool:
    """True if the rows of both sides were compared. `phase` is the cluster's, a `schemas.checks.Phase` value."""
    if report.migration.compared_offset is not None or report.divergences.total:
        return True
    if any(check.id == "DUR-05" and check.verdict == "unknown" for check in report.checks):
        return False
    # Reports of early releases have neither of these offsets: they compared wherever that is possible.
    early = report.migration.newest_zxid is None
    return early and report.mode not in _ONE_SIDE and phase in _PHASES
