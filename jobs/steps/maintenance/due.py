"""When maintenance is due after a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta

import polars as pl

from jobs.evidence.removed import FILES, ROWS
from jobs.settings import MaintainSettings, Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import records
from schemas.gold import MAINTENANCE, RUNS
from transforms.clusters import CLUSTER
from transforms.runs import latest_now

# From here on a run's time shows it: the 400th takes a third more than the tenth (`tests/benchmarks/README.md`, "A run every hour").
MANY_RUNS = 300


def neglected(warehouse: Warehouse, several: Mapping[str, Settings], now: datetime) -> str | None:
    """Why somebody should maintain the tables, if no configuration of a run's clusters does; None if that is not needed.

    A catalog is not looked at: it may merge files itself, and to ask it takes two queries a run.
    """
    if warehouse.catalog or any(each.maintain is not None for each in several.values()):
        return None
    files = _last_done(warehouse, now).get((None, FILES))
    runs = max(_runs_since(warehouse, dict.fromkeys(several, files)).values(), default=0)
    if runs < MANY_RUNS:
        return None
    return (
        f"none for {runs} runs, and each run takes longer than the one before; give the configuration a section maintain:, or "
        "schedule kraft-audit maintain"
    )


def due(warehouse: Warehouse, several: Mapping[str, Settings], now: datetime) -> tuple[list[str], bool]:
    """Clusters for which maintenance is due after a run, by their configurations; and whether files are due as well."""
    wanted = {name: each.maintain for name, each in several.items() if each.maintain is not None}
    if not wanted:
        return [], False
    done = _last_done(warehouse, now)
    counted = {name: done.get((name, ROWS)) for name, each in wanted.items() if each.after_runs is not None}
    ended = _runs_since(warehouse, counted) if counted else {}

    def is_due(last: datetime | None, each: MaintainSettings, runs: int) -> bool:
        often = each.after_runs is not None and runs >= each.after_runs
        return last is None or often or now - last >= timedelta(hours=each.every_hours)

    names = [name for name, each in wanted.items() if is_due(done.get((name, ROWS)), each, ended.get(name, 0))]
    files = any(is_due(done.get((None, FILES)), each, ended.get(name, 0)) for name, each in wanted.items())
    return sorted(names), files


def _last_done(warehouse: Warehouse, now: datetime) -> dict[tuple[str | None, str], datetime]:
    """When each last ended. An end from the future is of a wrong clock, and would keep the next one back until then."""
    ends = warehouse.rows(MAINTENANCE, (CLUSTER, "what", "done_at"), {"run_id": None})
    newest = ends.filter(pl.col("done_at") <= latest_now(now)).group_by(CLUSTER, "what").agg(pl.col("done_at").max())
    return {(row[CLUSTER], row["what"]): row["done_at"] for row in records(newest, MAINTENANCE)}


def _runs_since(warehouse: Warehouse, done: Mapping[str, datetime | None]) -> dict[str, int]:
    """How many runs of each cluster have begun since it was last done for it, or ever where that is None."""
    rows = warehouse.rows(RUNS, (CLUSTER, "started_at"), {CLUSTER: sorted(done)})
    found: dict[str, int] = defaultdict(int)
    for row in records(rows, RUNS):
        last = done[row[CLUSTER]]
        found[row[CLUSTER]] += last is None or row["started_at"] > last
    return found
