"""What a maintenance writes into gold `maintenance`: which runs lose rows, before they do, and that it finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from jobs.evidence.removed import DETAILS, FILES, JUDGED, ROWS
from jobs.sinks.conditions import PRESENT
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.steps.maintenance.old_rows import Going
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.gold import MAINTENANCE
from transforms.clusters import CLUSTER
from transforms.retention import Part, Retained

_MARKS = {Part.DETAILS: DETAILS, Part.JUDGED: JUDGED}


def mark(warehouse: Warehouse, upkeep: Upkeep, going: Sequence[Going], stays: Mapping[str, Retained]) -> None:
    """Write down which finished or failed runs lose rows, once."""
    marks = {
        (name, run_id, _MARKS[each.section.part])
        for each in going
        if each.section.part in _MARKS
        for name, ids in each.ids.items()
        for run_id in ids & stays[name].known
    }
    if marks:
        there = warehouse.rows(MAINTENANCE, (CLUSTER, "run_id", "what"), {"run_id": PRESENT})
        marks -= {*there.iter_rows()}
    note(warehouse, upkeep.now, sorted(marks))


def end(warehouse: Warehouse, upkeep: Upkeep, found: Sequence[Tended]) -> None:
    """Record that it finished, unless something has to be done again."""
    if not any(each.problem for each in found):
        ends: list[tuple[str | None, str | None, str]] = [(name, None, ROWS) for name in sorted(upkeep.rules)]
        note(warehouse, upkeep.now, [*ends, (None, None, FILES)] if upkeep.files else ends)


def note(warehouse: Warehouse, now: datetime, rows: Sequence[tuple[str | None, str | None, str]]) -> None:
    """Add rows to gold `maintenance`: cluster, run and what was done, or begins."""
    values = [{CLUSTER: name, "run_id": run_id, "done_at": now, "what": what} for name, run_id, what in rows]
    if values:
        warehouse.append(MAINTENANCE, arrow_rows(MAINTENANCE, values))
