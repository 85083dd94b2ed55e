"""Step 5: the report of a run, from the gold tables to files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.sql import functions as F

from jobs.exit import UsageError, guarded
from jobs.places import Place, place_of
from jobs.run.run import Run, open_run
from jobs.settings import Settings, load_settings
from jobs.sinks.delta import absolute_root
from jobs.sinks.report_files import ReportPaths, write_report
from schemas.gold import RUNS
from schemas.report import Report
from transforms.clusters import CLUSTER
from transforms.report.follow_up import TablePlace
from transforms.report.json import from_json
from transforms.report.text import render_text
from transforms.runs import newest_first


def write_files(report: Report, settings: Settings, out: Place | None = None) -> ReportPaths:
    """Render a report into `out` (default: the configured folder, a folder for each cluster below it)."""
    tables = TablePlace(absolute_root(settings.warehouse, settings.catalog), settings.catalog)
    folder = out or settings.report.folder / report.cluster
    return write_report(report, folder, tables, settings.report.stale_after_hours)


def stored_report(run: Run, cluster: str, run_id: str) -> Report:
    """The report of any finished run of a cluster. Raises UsageError when there is none."""
    rows = run.warehouse.read(RUNS).where((F.col(CLUSTER) == cluster) & (F.col("run_id") == run_id))
    found = rows.select("report", "failure").limit(1).collect()
    if not found:
        raise UsageError(f"cluster {cluster} has no finished run {run_id}; see `kraft-audit history`")
    if found[0]["report"] is None:
        raise UsageError(f"run {run_id} of cluster {cluster} failed and has no report: {found[0]['failure']}")
    return from_json(found[0]["report"])


def newest_report(run: Run, cluster: str) -> str:
    """The id of the cluster's newest finished run, by its number and not by a clock."""
    finished = run.warehouse.read(RUNS).where((F.col(CLUSTER) == cluster) & F.col("report").isNotNull())
    return str(finished.orderBy(*newest_first()).select("run_id").limit(1).collect()[0]["run_id"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit report`."""
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument("--run", dest="run_id", required=True, help="run to report; `kraft-audit history` lists them")
    parser.add_argument(
        "--out", type=place_of, help="folder for report.html and report.json; needed for a run that is not the newest"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the report again and print its verdict."""
    settings = load_settings(arguments.conf)
    with open_run(settings, arguments.run_id) as run:
        report = stored_report(run, settings.cluster, arguments.run_id)
        newest = newest_report(run, settings.cluster)
    if arguments.out is None and arguments.run_id != newest:
        raise UsageError(
            f"run {arguments.run_id} is not the newest: its report would replace that of run {newest}; give a folder with --out"
        )
    paths = write_files(report, settings, arguments.out)
    print(render_text(report))
    print(f"report: {paths.html}")
    return report.exit_code


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    parser = argparse.ArgumentParser(prog="kraft-audit report", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
