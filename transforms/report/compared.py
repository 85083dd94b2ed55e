"""Whether a run compared the two sides: without that, no difference is known, and none must not read as equal."""

from __future__ import annotations

from collections.abc import Collection

from schemas.checks import Phase
from schemas.report import CheckResult, Report
from transforms.reconcile.judge import summary
from transforms.report.printable import visible
from transforms.report.words import PHASE_OF_STATE

NOT_COMPARED = "not compared"
UNKNOWN_LAG = "unknown"
UNCOMPARED = "The two sides could not be compared, so it is unknown whether they differ."
# Checks that find what was not read or not understood: of the log, and of the tree. Rows may be missing then.
DAMAGED_LOG = "CAP-02"
WHOLE_LOG, WHOLE_TREE = (DAMAGED_LOG, "CAP-12"), ("CAP-07", "CAP-20")
_PHASES = ("dual_write", "finalized")
# Of records that this audit does not know, it is unknown what they change.
_FOUND = {*(("fail", name) for name in (*WHOLE_LOG, *WHOLE_TREE)), ("unknown", "CAP-12")}
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


def lag_is_unknown(phase: str | None, records: int | None) -> bool:
    """Whether nobody knows how many records ZooKeeper is behind: without a number in dual write; in other phases there is no lag."""
    return records is None and phase == Phase.DUAL_WRITE


def without_lag(phase: str | None, none: str = "n/a") -> str:
    """What stands for the lag of a run without a number: that it is unknown, or `none`."""
    return UNKNOWN_LAG if lag_is_unknown(phase, None) else none


def unread_lines(report: Report, checks: Collection[str]) -> list[str]:
    """A line for each of these checks that found something: two sides of which not all was read may look equal."""
    found = [each for each in report.checks if each.id in checks and (each.verdict, each.id) in _FOUND]
    return [visible(f"Rows may be missing or wrong, {each.id}: {_evidence(each)}", 400) for each in found]


def _evidence(check: CheckResult) -> str:
    more = f", and {check.violations - 1:,} more" if check.violations > 1 else ""
    return f"{check.evidence[0]}{more}" if check.evidence else check.title


def counts_of(report: Report) -> tuple[int | None, int | None]:
    """How many differences are defects, and how many there are; None of a run that did not compare the two sides."""
    if not was_compared(report):
        return None, None
    return summary.defects(report.divergences), report.divergences.total
