"""When maintenance is due after a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
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


def neglected(warehouse: Warehouse) -> str | None:
    """Why somebody should maintain the tables, for whom no configuration does; None where that is well or not known.

    Every run adds a file to gold `runs`, and maintenance makes one of them. Outside a local folder nobody counts them.
    """
    runs = warehouse.number_of_files(RUNS)
    if runs is None or runs < MANY_RUNS:
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
    ended = _runs_since(warehouse, wanted, done) if any(each.after_runs for each in wanted.values()) else {}

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


def _runs_since(
    warehouse: Warehouse, clusters: Collection[str], done: Mapping[tuple[str | None, str], datetime]
) -> dict[str, int]:
    rows = warehouse.rows(RUNS, (CLUSTER, "started_at"), {CLUSTER: sorted(clusters)})
    found: dict[str, int] = defaultdict(int)
    for row in records(rows, RUNS):
        last = done.get((row[CLUSTER], ROWS))
        found[row[CLUSTER]] += last is None or row["started_at"] > last
    return found
