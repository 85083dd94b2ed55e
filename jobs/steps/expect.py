"""Users' expectations as a part of a run: judged by its tables when all but `runs` are written."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from jobs.audit.run import Run
from jobs.expectations.validate import Tables, judge
from schemas.report import Report
from schemas.table import Layer, Table
from transforms.expectations.outcome import added_to


def with_expectations(run: Run, reports: Mapping[str, Report]) -> dict[str, Report]:
    """The reports of the clusters that have suites, with the suites' results. Nothing is asked when none has any."""
    suites = {name: run.clusters[name].suites for name in reports if run.clusters[name].suites}
    if not suites:
        return {}
    made: dict[str, DataFrame] = {}

    def rows(table: Table) -> DataFrame:
        if table.full_name not in made:
            # Silver is there as it was made; reading a table back costs queries of its own.
            known = run.rows(table) if table.layer is Layer.SILVER else run.stored(table)
            made[table.full_name] = run.cache_now(known)
        return made[table.full_name]

    try:
        results = judge(suites, Tables(rows, run.warehouse.identifier, dict.fromkeys(suites, run.run_id)))
    finally:
        for each in made.values():
            each.unpersist()
    return {name: added_to(reports[name], found) for name, found in results.items()}
