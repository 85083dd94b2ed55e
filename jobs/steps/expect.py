"""Users' expectations as a part of a run: judged by its tables when all but `runs` are written."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.expectations.validate import RunRows, judge
from jobs.run.run import Run
from schemas.report import Report
from transforms.expectations.outcome import added_to


def with_expectations(run: Run, reports: Mapping[str, Report]) -> dict[str, Report]:
    """The reports of the clusters that have suites, with the suites' results. Without any suites nothing is done."""
    suites = {name: run.clusters[name].suites for name in reports if run.clusters[name].suites}
    if not suites:
        return {}
    results = judge(suites, RunRows(run.rows, run.warehouse.identifier, dict.fromkeys(suites, run.run_id), run.chains))
    return {name: added_to(reports[name], found) for name, found in results.items()}
