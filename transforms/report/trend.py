"""The last runs in figures: lag, differences, defects, and one column per class that any of them had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from schemas.classes import ORDER
from schemas.report import RunPoint
from transforms.report.compared import lag_is_unknown

MOST_RUNS = 20


@dataclass(frozen=True)
class TrendRow:
    """One run; `counts` stand in the order of the table's classes, None for a run that stored none.

    A run that compared nothing has no numbers. `lag` is None where there is none, and where nobody knows it (`lag_unknown`).
    """

    started: str
    run_id: str
    verdict: str
    lag: int | None
    lag_unknown: bool
    divergences: int | None
    defects: int | None
    counts: list[int | None]


@dataclass(frozen=True)
class TrendTable:
    """Runs, newest first, with the classes that occur in them, defects first."""

    classes: list[str]
    rows: list[TrendRow]


def run_point(row: Mapping[str, Any]) -> RunPoint:
    """A point of a history of a row of gold `runs`."""
    stored = {
        each.name: row[each.name] for each in fields(RunPoint) if each.name not in ("not_compared", "lag_unknown")
    }
    found = {name: stored[name] or 0 for name in ("defects", "divergences")}
    unknown = lag_is_unknown(row["phase"], row["lag_records"])
    return RunPoint(**stored | found, not_compared=row["defects"] is None, lag_unknown=unknown)


def trend_table(history: Sequence[RunPoint], most: int = MOST_RUNS) -> TrendTable:
    """Tabulate the newest `most` runs of a history (oldest first)."""
    points = list(reversed(history))[:most]
    met = {name for point in points for name, count in point.by_class.items() if count}
    classes = sorted(met, key=lambda name: (ORDER.index(name) if name in ORDER else -1, name))
    return TrendTable(classes, [_row(point, classes) for point in points])


def _row(point: RunPoint, classes: Sequence[str]) -> TrendRow:
    # A run of an older release stored only its total: its parts are unknown.
    known = bool(point.by_class) or not (point.divergences or point.not_compared)
    counts = [point.by_class.get(name, 0) if known else None for name in classes]
    return TrendRow(
        point.started_at,
        point.run_id,
        point.verdict,
        point.lag_records,
        point.lag_unknown,
        None if point.not_compared else point.divergences,
        None if point.not_compared else point.defects,
        counts,
    )
