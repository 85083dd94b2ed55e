"""`kraft-audit expect`: judge a finished run's tables by a suite of expectations."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from jobs.commands.options import add_run_argument, add_warehouse_arguments
from jobs.evidence.opening import open_warehouse, spark_tables
from jobs.evidence.past_run import PastRun, past_run
from jobs.exit import ERRORS, OK, WARNINGS, UsageError
from jobs.expectations import engine
from jobs.expectations.suites import read_suites
from jobs.expectations.validate import RunRows, check_conditions, judge
from jobs.steps.gold import expectation_rows
from schemas.gold import EXPECTATIONS
from schemas.report import ExpectationResult
from schemas.table import Table
from transforms.expectations.outcome import verdict_of, without_secrets
from transforms.expectations.suite import Suite
from transforms.report.expectations import expectation_lines

_EXIT_CODES = {"clean": OK, "warnings": WARNINGS, "errors": ERRORS}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit expect`."""
    parser.add_argument("suites", nargs="+", metavar="SUITE", help="file of a suite (JSON), or a pattern of several")
    add_warehouse_arguments(parser)
    add_run_argument(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Judge, print, and store the results in gold `expectations`; 20 when an error is not met, 10 for a warning."""
    suites = read_suites(arguments.suites)
    if not suites:
        raise UsageError("expectations: the suites named are switched off (`meta.enabled`), or expect nothing")
    engine.check(suites)
    with open_warehouse(arguments) as finished:
        check_conditions(suites, spark_tables(finished.warehouse).empty)
        past = past_run(finished, arguments.run_id)
        tables = RunRows(
            past.read,
            lambda table: _identifier(past, table),
            {past.cluster: past.run_id},
            {past.cluster: past.state_runs},
        )
        results = without_secrets(judge({past.cluster: suites}, tables)[past.cluster])
        _store(past, suites, results)
    print(f"Cluster {past.cluster}, run {past.run_id}")
    for line in [*expectation_lines(results), *past.standing.lines(finished.stale_after_hours)]:
        print(line)
    return _EXIT_CODES[verdict_of(results)]


def _identifier(past: PastRun, table: Table) -> str:
    """The table's name in SQL; for silver its version at the run's end, because rows of older runs are removed."""
    version = past.versions.get(table.full_name)
    name = spark_tables(past.warehouse).identifier(table)
    return name if version is None else f"{name} VERSION AS OF {version}"


def _store(past: PastRun, suites: Sequence[Suite], results: Sequence[ExpectationResult]) -> None:
    """Put the results in place of those that the run has of these suites."""
    rows = expectation_rows(past.cluster, results)
    values = [tuple({**row, "run_id": past.run_id}.get(name) for name in EXPECTATIONS.column_names) for row in rows]
    frame = past.spark.createDataFrame(values, EXPECTATIONS.struct)
    mine = {"cluster": past.cluster, "run_id": past.run_id, "suite": [suite.name for suite in suites]}
    spark_tables(past.warehouse).replace_where(EXPECTATIONS, frame, mine)
