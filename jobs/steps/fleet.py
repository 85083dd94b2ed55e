"""The fleet after a run: what gold `runs` holds of every cluster of the warehouse, and the page made of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from urllib.parse import quote

from jobs.exit import AuditError
from jobs.places import Place
from jobs.run.journal import died_runs
from jobs.sinks.reader import Reader, records
from jobs.sinks.report_files import HTML_NAME, unwritten, write_whole
from jobs.sources.remote import RemoteError
from schemas.gold import RUNS
from transforms.clusters import CLUSTER
from transforms.reconcile.judge.earlier import COLUMNS
from transforms.report.fleet_marks import MOST_RUNS
from transforms.report.fleet_model import Fleet, FleetRun, Verified, fleet, fleet_run, without_retired
from transforms.report.fleet_page import render_fleet

FLEET_NAME = "fleet.html"
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


def from_micros(micros: int) -> datetime:
    """A time in microseconds since the epoch, in UTC."""
    return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=micros)


def fleet_of(
    runs: Sequence[FleetRun],
    stale_after_hours: float,
    retired: Collection[str] = (),
    verified: Mapping[str, Verified] | None = None,
) -> Fleet:
    """The fleet as of now, without clusters that are `retired`: one of those that is audited all the same is there."""
    return without_retired(fleet(runs, datetime.now(UTC), stale_after_hours, verified), retired)


def places_of(
    standing: Fleet, reports: Place, written: Mapping[str, Place], seen_from: Place | None = None
) -> dict[str, str]:
    """Relative addresses of the clusters' reports, seen from a folder (`reports` by default).

    They are those just `written`, else those that lie in a folder for each cluster below `reports`. From another file system
    nothing can be seen. Raises AuditError when a remote folder can't be looked into.
    """
    found = {}
    eye = reports if seen_from is None else seen_from
    for cluster in standing.clusters:
        place = written.get(cluster.name, reports / cluster.name / HTML_NAME)
        if isinstance(place, Path) == isinstance(eye, Path) and _is_file(place):
            found[cluster.name] = quote(os.path.relpath(str(place), str(eye)))
    return found


def _is_file(place: Place) -> bool:
    try:
        return place.is_file()
    except RemoteError as error:
        raise AuditError(str(error)) from None


def write_fleet_page(standing: Fleet, file: Place, places: Mapping[str, str]) -> Place:
    """Write the page, whole or not at all. Raises AuditError when that can't be."""
    html = render_fleet(standing, places)
    try:
        write_whole(file, html)
    except (OSError, RemoteError) as error:
        raise AuditError(f"cannot write the fleet's page {file}: {unwritten(error)}; the reports are written") from None
    return file
