"""What a finished run did not read or understand, as far as its rows depend on it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jobs.evidence.past_log import past_copies
from jobs.evidence.past_run import PastRun
from jobs.exit import UsageError
from jobs.sinks.conditions import PRESENT
from schemas.bronze import KRAFT_RECORDS
from transforms.kraft.coverage import PlannedLog, planned_log
from transforms.reconcile.judge.log_look import is_damage
from transforms.report.compared import DAMAGED_LOG, unread_lines

_WHERE = ("controller_id", "checkpoint_offset", "offset", "problem")


def unread(past: PastRun, checks: Collection[str]) -> list[str]:
    """`unread_lines` of a run, without damage in what no row comes from: another copy had these records whole."""
    asked = {each.id for each in past.report.checks if each.verdict == "fail"} & {*checks, DAMAGED_LOG}
    spared = DAMAGED_LOG in asked and not _reads_damage(past)
    return unread_lines(past.report, [each for each in checks if not (spared and each == DAMAGED_LOG)])


def _reads_damage(past: PastRun) -> bool:
    """Whether damage is in what the run's rows come from; also if that cannot be told any more."""
    try:
        copies = past_copies(past)
        found = past.rows(KRAFT_RECORDS, _WHERE, {"problem": PRESENT}).filter(is_damage()).to_dicts()
    except UsageError:
        # Retention has removed them.
        return True
    planned = planned_log(copies)
    return not found or planned is None or any(_is_read(row, copies, planned) for row in found)


def _is_read(row: Mapping[str, Any], copies: Sequence[Mapping[str, Any]], planned: PlannedLog) -> bool:
    if row["checkpoint_offset"] is not None:
        return bool(row["checkpoint_offset"] == planned.base)
    places = {copy["location"] for copy in copies if copy["controller_id"] == row["controller_id"]}
    slices = [each for each in planned.slices if each.location in places]
    if row["offset"] is None:
        return bool(slices)
    return any(each.from_offset_inclusive <= row["offset"] < each.to_offset_exclusive for each in slices)
