"""All steps of a run in order: `kraft-audit run --conf FILE …`, or `spark-submit jobs/pipeline.py --conf FILE …`."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from jobs.audit.run import LOG, Failure, Run, new_run_id, open_run
from jobs.exit import CRASH, OK, WARNINGS, AuditError, UsageError, guarded, unexpected, worst
from jobs.runtime.progress import Progress
from jobs.settings import Settings, load_settings, overridden
from jobs.sinks.report_files import ReportPaths
from jobs.steps import gold, ingest_kraft, ingest_zookeeper, mails, materialize, reconcile
from jobs.steps import report as report_step
from jobs.steps.aftermath import Aftermath, after_run, tell_unopened
from schemas.gates import GATES
from schemas.report import Report
from transforms.report.fleet import fleet_table, run_json
from transforms.report.printable import visible
from transforms.report.text import first_anchor, render_text

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
    progress.follow(run.spark)
    run.counted = progress.counted
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

    mails.note_owed(run)
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


@dataclass(frozen=True)
class Telling:
    """How a run tells of itself: `as_json` one object on standard output, `quiet` nothing but errors, `color` on terminals.

    `fail_on_mail` makes a mail that could not be sent the exit code's concern; `mail_dry_run` is a folder for mails that are
    not to be sent.
    """

    as_json: bool = False
    quiet: bool = False
    color: bool = True
    fail_on_mail: bool = False
    mail_dry_run: Path | None = None


def audit(settings: Settings | Sequence[Settings], out: Path | None = None, telling: Telling | None = None) -> int:
    """Run, tell of it, and send the mails that are configured; the worst exit code.

    A run whose options say where to write (`out`) is of files, once: it makes no fleet page and sends no mail.
    """
    telling = telling or Telling()
    with _opened(settings, telling, mailed=out is None) as run:
        outcomes, stopped = _outcomes(run, out, telling)
        after = Aftermath() if out is not None else _after(run, outcomes, telling)
    if stopped is None:
        _print(outcomes, after, telling)
    elif telling.as_json:
        print(_json(outcomes, after))
    for problem in after.problems:
        print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
    if stopped is not None:
        raise stopped
    own = [CRASH] if after.crashed or (after.mail_failed and telling.fail_on_mail) else []
    return worst([*(outcome.exit_code for outcome in outcomes.values()), *own])


@contextmanager
def _opened(settings: Settings | Sequence[Settings], telling: Telling, *, mailed: bool) -> Iterator[Run]:
    """`open_run`; why a run could not even begin is told by mail."""
    with ExitStack() as stack:
        try:
            run = stack.enter_context(open_run(settings))
        except Exception as error:
            several = [settings] if isinstance(settings, Settings) else settings
            after = tell_unopened(several, error, telling.mail_dry_run) if mailed else Aftermath()
            for problem in after.problems:
                print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
            raise
        yield run


def _outcomes(run: Run, out: Path | None, telling: Telling) -> tuple[dict[str, Outcome], Exception | None]:
    """What became of each cluster, and what stopped the only one: that is in gold `runs` too, and may be told by mail."""
    try:
        return run_all(run, out, Progress.for_terminal(sys.stderr, quiet=telling.quiet, color=telling.color)), None
    except Exception as error:
        failed = {n: Outcome(failure=each.failure) for n, each in run.clusters.items() if each.failure is not None}
        if not failed:
            raise
        return failed, error


def _after(run: Run, outcomes: Mapping[str, Outcome], telling: Telling) -> Aftermath:
    reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
    written = {name: each.paths.html for name, each in outcomes.items() if each.paths is not None}
    unwritten = {name: each.failure.reason for name, each in outcomes.items() if each.report and each.failure}
    try:
        return after_run(run, reports, written, telling.mail_dry_run, unwritten)
    except Exception as error:
        # The verdicts stand and are to be told, whatever is wrong with the page or the mails.
        return Aftermath(problems=[f"after the reports: {unexpected(error)}"], crashed=True)


def _print(outcomes: Mapping[str, Outcome], after: Aftermath, telling: Telling) -> None:
    """One cluster's verdict in full; of several, one table, worst first. Failures go to standard error in any case."""
    reports, places, failures = _parts(outcomes)
    if telling.as_json:
        print(_json(outcomes, after))
    elif not telling.quiet:
        lines = _alone(reports, places) if len(outcomes) == 1 else fleet_table(reports, places, failures)
        for line in [*lines, *(f"Fleet        {page}" for page in after.pages), *after.lines]:
            print(line)
    for name, reason in sorted(failures.items()):
        where = "" if len(outcomes) == 1 else f"cluster {name}: "
        print(f"kraft-audit: {where}{visible(reason, 1000)}", file=sys.stderr)


def _parts(outcomes: Mapping[str, Outcome]) -> tuple[dict[str, Report], dict[str, str], dict[str, str]]:
    """Reports, where they are, and why there is none, each by cluster."""
    reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
    places = {name: str(each.paths.html) for name, each in outcomes.items() if each.paths is not None}
    failures = {name: each.failure.reason for name, each in outcomes.items() if each.failure is not None}
    return reports, places, failures


def _json(outcomes: Mapping[str, Outcome], after: Aftermath) -> str:
    codes = {name: each.exit_code for name, each in outcomes.items()}
    return run_json(*_parts(outcomes), codes, [str(page) for page in after.pages])


def _alone(reports: Mapping[str, Report], places: Mapping[str, str]) -> list[str]:
    lines = []
    for name, report in reports.items():
        if name in places:
            lines += [*render_text(report).splitlines(), f"Report       {places[name]}"]
            first = first_anchor(report)
            lines += [f"Look first   {Path(places[name]).absolute().as_uri()}#{first}"] if first else []
    return lines


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
    parser.add_argument(
        "--fail-on-mail", action="store_true", help="exit with 1 when a mail could not be sent (it is said in any case)"
    )
    parser.add_argument(
        "--mail-dry-run",
        type=Path,
        metavar="DIR",
        help="write the mails into this folder (.eml) instead of sending them",
    )
    parser.add_argument(
        "--exit-0-on-warnings",
        action="store_true",
        help="exit with 0 instead of 10, for a scheduler that knows only success and failure",
    )
    add_output_arguments(parser)
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
        choices=GATES,
        help="also fail (20) when this gate is no-go",
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how a run tells of itself."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object: what became of each cluster")
    how.add_argument("--quiet", action="store_true", help="print nothing but errors; the exit code tells")
    parser.add_argument(
        "--no-color", action="store_true", help="no colours on a terminal (also: the variable NO_COLOR)"
    )


def telling_of(arguments: argparse.Namespace) -> Telling:
    """What the options of `add_output_arguments` and `add_arguments` say."""
    if arguments.quiet:
        LOG.setLevel(logging.WARNING)
    return Telling(
        as_json=arguments.json,
        quiet=arguments.quiet,
        color=not arguments.no_color,
        fail_on_mail=getattr(arguments, "fail_on_mail", False),
        mail_dry_run=getattr(arguments, "mail_dry_run", None),
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
    code = audit(several, telling=telling_of(arguments))
    return OK if arguments.exit_0_on_warnings and code == WARNINGS else code


def main(argv: list[str] | None = None) -> int:
    """Entry point for spark-submit."""
    parser = argparse.ArgumentParser(prog="kraft-audit run", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
