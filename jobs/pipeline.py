"""All steps of a run in order: `kraft-audit run --conf FILE`, or `spark-submit jobs/pipeline.py --conf FILE`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from jobs.audit.run import Run, open_run
from jobs.exit import guarded
from jobs.runtime.progress import Progress
from jobs.settings import Settings, load_settings, overridden
from jobs.sinks.mail import MailError, send_report
from jobs.sinks.report_files import ReportPaths
from jobs.steps import ingest_kraft, ingest_zookeeper, materialize, reconcile
from jobs.steps import report as report_step
from schemas.report import Report
from transforms.report.text import render_text

_STEPS: tuple[tuple[str, Callable[[Run], object]], ...] = (
    ("reading ZooKeeper", ingest_zookeeper.run_step),
    ("reading the metadata log", ingest_kraft.run_step),
    ("reading ZooKeeper again", ingest_zookeeper.run_second_walk),
    ("replaying into state", materialize.run_step),
    ("comparing and judging", reconcile.run_step),
)


def steps_of(run: Run) -> tuple[tuple[str, Callable[[Run], object]], ...]:
    """The steps of a run: the second walk is only for a bracket."""
    source = run.settings.zookeeper
    twice = source is not None and source.bracket
    return tuple(step for step in _STEPS if twice or step[1] is not ingest_zookeeper.run_second_walk)


def run_all(run: Run, out: Path | None = None, progress: Progress | None = None) -> tuple[Report, ReportPaths]:
    """Run every step and write the report; returns it with the files' paths."""
    progress = progress or Progress.for_terminal(sys.stderr)
    with progress:
        for title, step in steps_of(run):
            started = time.monotonic()
            with progress.step(title):
                step(run)
            run.durations[title] = time.monotonic() - started
        with progress.step("writing the report"):
            return report_step.run_step(run, out)


def audit(settings: Settings, out: Path | None = None) -> int:
    """Run, print the verdict and the report's path, send the mail if one is configured; returns the exit code."""
    with open_run(settings) as run:
        report, paths = run_all(run, out)
    print(render_text(report), end="")
    print(f"Report       {paths.html}")
    _mail(settings, report, paths)
    return report.exit_code


def _mail(settings: Settings, report: Report, paths: ReportPaths) -> None:
    """Send the report if a mail is configured; a mail that can't be sent is said and changes no verdict."""
    if settings.report.mail is None:
        return
    try:
        sent = send_report(report, settings.report.mail, location=str(paths.html))
    except MailError as error:
        print(f"kraft-audit: the mail was not sent: {error}", file=sys.stderr)
        return
    if sent is not None:
        print(f"Mail         {', '.join(sent.recipients)}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit run`."""
    parser.add_argument("--conf", type=Path, required=True, help="configuration file (YAML)")
    parser.add_argument(
        "--full", action="store_true", help="read the metadata log from its start, whatever an earlier run has kept"
    )
    add_verdict_arguments(parser)


def add_verdict_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what decides the exit code; they override the configuration."""
    parser.add_argument(
        "--fail-on",
        choices=("error", "warn", "never"),
        help="least verdict that makes the exit code fail (default error)",
    )
    parser.add_argument(
        "--gate",
        choices=("start", "dual_write", "finalize", "rollback"),
        help="also fail (20) when this gate is no-go",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the audit the configuration describes."""
    settings = load_settings(arguments.conf)
    settings = overridden(settings, fail_on=arguments.fail_on, gate=arguments.gate)
    if arguments.full and settings.kraft is not None:
        settings = overridden(settings, kraft=overridden(settings.kraft, full=True))
    return audit(settings)


def main(argv: list[str] | None = None) -> int:
    """Entry point for spark-submit."""
    parser = argparse.ArgumentParser(prog="kraft-audit run", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
