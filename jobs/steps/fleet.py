"""The fleet after a run: what gold `runs` holds of every cluster of the warehouse, and the page made of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from jobs.exit import AuditError
from jobs.places import Place
from jobs.sinks.report_files import HTML_NAME, unwritten, write_whole
from jobs.sources.remote import RemoteError
from transforms.report.fleet_model import Fleet, FleetRun, Verified, fleet, without_retired
from transforms.report.fleet_page import render_fleet

FLEET_NAME = "fleet.html"


def fleet_of(
    runs: Sequence[FleetRun],
    stale_after_hours: float,
    retired: Collection[str] = (),
    verified: Mapping[str, Verified] | None = None,
) -> Fleet:
    """The current fleet, without clusters that are `retired`: one that is still audited is included."""
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
        raise AuditError(f"cannot write the fleet's page {file}: {unwritten(error)}") from None
    return file
