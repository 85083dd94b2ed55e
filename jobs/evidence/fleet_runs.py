"""The runs of all clusters of a warehouse, from gold `runs` and the journal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from jobs.evidence.journal import died_runs
from jobs.sinks.reader import Reader, records
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.reconcile.judge.earlier import COLUMNS
from transforms.report.fleet_marks import MOST_RUNS
from transforms.report.fleet_model import FleetRun, fleet_run

_NOT_TOLD = ("report", "table_versions", "walks", "mode", "state", "exit_code", "state_runs", *COLUMNS)
_COLUMNS = [name for name in RUNS.column_names if name not in _NOT_TOLD]


def fleet_runs(
    warehouse: Reader,
    most: int | None = MOST_RUNS,
    cluster: str | None = None,
    also: Mapping[str, Collection[str]] | None = None,
) -> list[FleetRun]:
    """The newest `most` runs (None: all) of every cluster of the warehouse, or of one, in one query; none without a warehouse.

    Failed ones are among them, and those that died without a row: they never count as finished. `also` names more runs of
    a cluster, by cluster, however old they are.
    """
    named = also or {}
    mine = {} if cluster is None else {CLUSTER: cluster}
    rows = warehouse.newest_runs(_COLUMNS, most, mine, also={run_id for mine in named.values() for run_id in mine})
    ordered = sorted((fleet_run(row) for row in records(rows, RUNS)), key=lambda run: (run.cluster, run.order))
    found: list[FleetRun] = []
    for name, runs in groupby(ordered, key=lambda run: run.cluster):
        older, newest = _split([*runs], most)
        # Of a run over several clusters, only the cluster that named it.
        found += [*(run for run in older if run.run_id in named.get(name, ())), *newest]
    return [*found, *died_runs(warehouse, found, cluster)]


def _split(runs: Sequence[FleetRun], most: int | None) -> tuple[Sequence[FleetRun], Sequence[FleetRun]]:
    """A cluster's runs, oldest first: those before the newest `most`, and these."""
    first = 0 if most is None else max(0, len(runs) - most)
    return runs[:first], runs[first:]
