"""Whether a run compared the two sides: without that, no difference is known, and none must not read as equal."""

from __future__ import annotations

from schemas.report import Report
from transforms.reconcile.judge import summary
from transforms.report.words import PHASE_OF_STATE

NOT_COMPARED = "not compared"
UNCOMPARED = "The two sides could not be compared, so it is unknown whether they differ."
_PHASES = ("dual_write", "finalized")
_ONE_SIDE = ("kraft_only", "zookeeper_only")


def phase_of(report: Report) -> str:
    """Where the cluster stands, a `schemas.checks.Phase` value; from the state when the report names no phase."""
    return report.migration.phase or PHASE_OF_STATE.get(report.migration.state.upper(), "")


def was_compared(report: Report) -> bool:
    """False if the two sides were not compared: then the number of differences is unknown."""
    if report.migration.compared_offset is not None or report.divergences.total:
        return True
    if any(check.id == "DUR-05" and check.verdict == "unknown" for check in report.checks):
        return False
    # Reports of early releases have neither of these offsets: they compared wherever that is possible.
    early = report.migration.newest_zxid is None
    return early and report.mode not in _ONE_SIDE and phase_of(report) in _PHASES


def counts_of(report: Report) -> tuple[int | None, int | None]:
    """How many differences are defects, and how many there are; None of a run that did not compare the two sides."""
    if not was_compared(report):
        return None, None
    return summary.defects(report.divergences), report.divergences.total
