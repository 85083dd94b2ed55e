"""All steps of a run in order: `kraft-audit run --conf FILE …`, or `spark-submit jobs/pipeline.py --conf FILE …`."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jobs.audit.run import LOG, Failure, Run, new_run_id, open_run
from jobs.exit import CRASH, AuditError, UsageError, guarded, worst
from jobs.runtime.progress import Progress
from jobs.settings import Settings, load_settings, overridden
from jobs.sinks.mail import MailError, send_report
from jobs.sinks.report_files import ReportPaths
from jobs.steps import gold, ingest_kraft, ingest_zookeeper, materialize, reconcile
from jobs.steps import report as report_step
from schemas.report import Report
from transforms.report.fleet import fleet_table
from transforms.report.printable import visible
from transforms.report.text import render_text

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """What became of one cluster: its report and the report's files, or why there is none."""

    report: Report | None = None
    paths: ReportPaths | None = None
    failure: Failure | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of this cluster alone."""
        if self.failure is not None:
            return self.failure.exit_code
        return 0 if self.report is None else self.report.exit_code


def run_all(run: Run, out: Path | None = None, progress: Progress | None = None) -> dict[str, Outcome]:
    """Run every step over all clusters of the run and write the reports; what became of each cluster, by name.

    `out` is where the report of a run over one cluster goes. Raises what stops a run over a single cluster, if that is
    nothing that a user could have done.
    """
    progress = progress or Progress.for_terminal(sys.stderr)
    with progress:
        reports = _audited(run, progress)
        with progress.step("writing the reports"):
            outcomes = {name: _written(run, report, out) for name, report in reports.items()}
    failed = {name: Outcome(failure=each.failure) for name, each in run.clusters.items() if each.failure is not None}
    return outcomes | failed


def _audited(run: Run, progress: Progress) -> dict[str, Report]:
    """Reports of the clusters that could be audited; `run` knows of the others why not.

    When a query over all of them dies, it is asked again over each half: so the cluster to blame is found.
    """
    try:
        return _steps(run, progress)
    except (UsageError, AuditError) as error:
        # Nothing of a cluster's: the warehouse, the session, the call.
        for name in run.going:
            run.fail(name, error)
        gold.write_failures(run)
        if len(run.clusters) == 1:
            raise
        return {}
    except Exception as error:
        going = run.going
        if len(going) <= 1:
            for name in going:
                run.fail(name, error)
            gold.write_failures(run)
            if len(run.clusters) == 1 and run.parent is None:
                raise
            return {}
        LOG.warning("a query over %d clusters failed; looking for the one to blame", len(going))
        run.drop_writes()
        gold.write_failures(run)
        return _halves(run, going, progress)


def _halves(run: Run, going: Sequence[str], progress: Progress) -> dict[str, Report]:
    reports: dict[str, Report] = {}
    middle = len(going) // 2
    for clusters in (going[:middle], going[middle:]):
        half = run.part(clusters, new_run_id(run.started_at))
        try:
            reports |= _audited(half, progress)
        finally:
            half.close()
        for name in clusters:
            run.clusters[name] = half.clusters[name]
    return reports


def _steps(run: Run, progress: Progress) -> dict[str, Report]:
    def timed(title: str, step: Callable[[], T]) -> T:
        started = time.monotonic()
        with progress.step(title):
            made = step()
        run.durations[title] = time.monotonic() - started
        return made

    timed("reading ZooKeeper", lambda: ingest_zookeeper.run_step(run))
    timed("reading the metadata log", lambda: ingest_kraft.run_step(run))
    if any(settings.bracketed for settings in run.settings_of().values()):
        timed("reading ZooKeeper again", lambda: ingest_zookeeper.run_second_walk(run))
    reports: dict[str, Report] = {}
    if run.going:
        state = timed("replaying into state", lambda: materialize.run_step(run))
    if run.going:
        reports = timed("comparing and judging", lambda: reconcile.run_step(run, state))
    run.finish_writes()
    gold.write_failures(run)
    return reports


def _written(run: Run, report: Report, out: Path | None) -> Outcome:
    cluster = run.clusters[report.cluster]
    alone = len(run.clusters) == 1
    try:
        paths = report_step.write_files(report, cluster.settings, out if alone else None)
    except AuditError as error:
        # The run is stored, and another cluster's report may well be written.
        return Outcome(report, failure=Failure(str(error), CRASH))
    return Outcome(report, paths)


def audit(settings: Settings | Sequence[Settings], out: Path | None = None) -> int:
    """Run, print the verdicts and where the reports are, send the mails that are configured; the worst exit code."""
    with open_run(settings) as run:
        outcomes = run_all(run, out)
        of_clusters = {name: cluster.settings for name, cluster in run.clusters.items()}
    _print(outcomes)
    for name, outcome in sorted(outcomes.items()):
        if outcome.report is not None and outcome.paths is not None:
            _mail(of_clusters[name], outcome.report, outcome.paths)
    return worst(outcome.exit_code for outcome in outcomes.values())


def _print(outcomes: Mapping[str, Outcome]) -> None:
    """One cluster's verdict in full; of several, one table, worst first."""
    if len(outcomes) == 1:
        (outcome,) = outcomes.values()
        if outcome.report is not None and outcome.paths is not None:
            print(render_text(outcome.report), end="")
            print(f"Report       {outcome.paths.html}")
    else:
        reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
        places = {name: str(each.paths.html) for name, each in outcomes.items() if each.paths is not None}
        failures = {name: each.failure.reason for name, each in outcomes.items() if each.failure is not None}
        for line in fleet_table(reports, places, failures):
            print(line)
    for name, outcome in sorted(outcomes.items()):
        if outcome.failure is not None:
            where = "" if len(outcomes) == 1 else f"cluster {name}: "
            print(f"kraft-audit: {where}{visible(outcome.failure.reason, 1000)}", file=sys.stderr)


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
    parser.add_argument(
        "--conf",
        type=Path,
        required=True,
        nargs="+",
        metavar="FILE",
        help="configuration files (YAML), one for each cluster: one run audits all of them",
    )
    parser.add_argument(
        "--full", action="store_true", help="read the metadata logs from their start, whatever earlier runs have kept"
    )
    parser.add_argument(
        "--keep-copy",
        type=Path,
        metavar="DIR",
        help="keep the copies of logs that are read live in a folder each below this one (default: beside the tables)",
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
    """Run the audit the configurations describe."""
    several = []
    for path in arguments.conf:
        settings = overridden(load_settings(path), fail_on=arguments.fail_on, gate=arguments.gate)
        if arguments.full and settings.kraft is not None:
            settings = overridden(settings, kraft=overridden(settings.kraft, full=True))
        if arguments.keep_copy and settings.kraft is not None and settings.kraft.controllers:
            kept = arguments.keep_copy / settings.cluster
            settings = overridden(settings, kraft=overridden(settings.kraft, keep_copy=kept))
        several.append(settings)
    return audit(several)


def main(argv: list[str] | None = None) -> int:
    """Entry point for spark-submit."""
    parser = argparse.ArgumentParser(prog="kraft-audit run", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
