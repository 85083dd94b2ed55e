"""Step 5: the report of a run, from the gold tables to files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyspark.sql import functions as F

from jobs.audit.run import Run, open_run
from jobs.exit import UsageError, guarded
from jobs.settings import load_settings
from jobs.sinks.report_files import ReportPaths, write_report
from schemas.gold import RUNS
from schemas.report import Report
from transforms.report.json import from_json
from transforms.report.text import render_text


def run_step(run: Run, out: Path | None = None) -> tuple[Report, ReportPaths]:
    """Render the run's report from gold `runs` into `out` (default: the configured folder, a subfolder a cluster)."""
    report = stored_report(run, run.run_id)
    return report, write_report(report, out or run.settings.report.folder / run.cluster)


def stored_report(run: Run, run_id: str) -> Report:
    """The report of any finished run of the cluster. Raises UsageError when there is none."""
    rows = run.warehouse.read(RUNS).where((F.col("cluster") == run.cluster) & (F.col("run_id") == run_id))
    found = rows.select("report").limit(1).collect()
    if not found:
        raise UsageError(f"cluster {run.cluster} has no finished run {run_id}; see `kraft-audit history`")
    return from_json(found[0]["report"])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit report`."""
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument("--run", dest="run_id", required=True, help="run to report; `kraft-audit history` lists them")
    parser.add_argument("--out", type=Path, help="folder for report.html and report.json")


def execute(arguments: argparse.Namespace) -> int:
    """Write the report again and print its verdict."""
    with open_run(load_settings(arguments.conf), arguments.run_id) as run:
        report, paths = run_step(run, arguments.out)
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
