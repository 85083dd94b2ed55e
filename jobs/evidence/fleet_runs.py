"""The runs of all clusters of a warehouse, from gold `runs` and the journal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

import polars as pl

from jobs.evidence.journal import died_runs
from jobs.sinks.reader import ORDER, Reader, oldest_first, records
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.reconcile.judge.earlier import COLUMNS
from transforms.report.fleet_marks import MOST_RUNS
from transforms.report.fleet_model import FleetRun, fleet_run
from transforms.runs import FAILED

_NOT_TOLD = ("report", "table_versions", "walks", "mode", "state", "exit_code", "state_runs", *COLUMNS)
# The run that has just ended, and the one that it is compared with.
_KNOWN_FINISHED = 2
_COLUMNS = [name for name in RUNS.column_names if name not in _NOT_TOLD]


def fleet_runs(
    warehouse: Reader,
    most: int | None = MOST_RUNS,
    cluster: str | None = None,
    also: Mapping[str, Collection[str]] | None = None,
) -> list[FleetRun]:
    """The newest `most` runs (None: all) of every cluster of the warehouse, or of one, in one query; none without a warehouse.

    Failed ones are among them, and those that died without a row: they never count as finished. `also` names more runs of
    a cluster, by cluster, however old they are. If nearly all of a cluster's newest runs failed, its older ones are there from the last
    but one on that finished: what is known of the cluster is theirs, and a run is compared with the one before it.
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
    if most is not None:
        found = _with_finished(warehouse, found, most)
    return [*found, *died_runs(warehouse, found, cluster)]


def _with_finished(warehouse: Reader, runs: Sequence[FleetRun], most: int) -> list[FleetRun]:
    """The runs with older ones of the clusters whose newest `most` have hardly one that finished."""
    newest = {name: [*mine][-most:] for name, mine in groupby(runs, key=lambda run: run.cluster)}
    wanting = sorted(
        name
        for name, mine in newest.items()
        if len(mine) == most and sum(1 for run in mine if not run.failed) < _KNOWN_FINISHED
    )
    if not wanting:
        return [*runs]
    keys = oldest_first(warehouse.rows(RUNS, (CLUSTER, *ORDER, "verdict"), {CLUSTER: wanting}))
    ids = {name: _since_finished(mine) for (name,), mine in keys.group_by(CLUSTER, maintain_order=True)}
    where = {CLUSTER: wanting, "run_id": sorted({run_id for mine in ids.values() for run_id in mine})}
    known = {(run.cluster, run.run_id) for run in runs}
    older = [fleet_run(row) for row in records(warehouse.rows(RUNS, _COLUMNS, where), RUNS)]
    # Of a run over several clusters, only the cluster that asked for it.
    more = [run for run in older if run.run_id in ids[run.cluster] and (run.cluster, run.run_id) not in known]
    return sorted([*runs, *more], key=lambda run: (run.cluster, run.order))


def _since_finished(runs: pl.DataFrame) -> set[str]:
    """Ids of a cluster's runs, oldest first, from the last but one on that finished; none if no run did."""
    finished = (runs["verdict"] != FAILED).arg_true()
    return set(runs["run_id"][finished[-_KNOWN_FINISHED:][0] :]) if len(finished) else set()


def _split(runs: Sequence[FleetRun], most: int | None) -> tuple[Sequence[FleetRun], Sequence[FleetRun]]:
    """A cluster's runs, oldest first: those before the newest `most`, and these."""
    first = 0 if most is None else max(0, len(runs) - most)
    return runs[:first], runs[first:]
