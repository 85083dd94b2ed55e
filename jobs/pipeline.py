"""All steps of a run in order: `kraft-audit run --conf FILE …`, or `spark-submit jobs/pipeline.py --conf FILE …`."""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from jobs.evidence.journal import Begun, begin
from jobs.exit import CRASH, OK, USAGE, WARNINGS, AuditError, UsageError, guarded, unexpected, why, worst
from jobs.places import Place
from jobs.run import failures, kept
from jobs.run.run import LOG, Failure, Run, new_run_id, open_run, shared
from jobs.runtime.output import terminal_width
from jobs.runtime.progress import Progress
from jobs.runtime.spark import stop_queries
from jobs.runtime.stopping import INTERRUPT, Stopped, Stopping, print_reason
from jobs.settings import Settings, add_files_argument, load_settings, overridden
from jobs.sinks.report_files import ReportPaths
from jobs.sinks.storage import is_uri
from jobs.sinks.views import store_views
from jobs.steps import ingest_kraft, ingest_zookeeper, mails, materialize, messages, reconcile
from jobs.steps import report as report_step
from jobs.steps.maintenance.maintain import after_run
from jobs.steps.publishing import Published, publish, publish_stopped, publish_unopened
from schemas.gates import GATES
from schemas.report import Report
from transforms.reconcile.judge.requested_gate import asked_of
from transforms.report.fleet import fleet_table, run_json
from transforms.report.printable import visible
from transforms.report.text import first_anchor, render_text

T = TypeVar("T")
# Of the seconds that a run that is stopped has (`jobs.runtime.stopping`).
_SECONDS_FOR_ROWS, _SECONDS_FOR_MAILS = 7.0, 50.0
_LONGEST_MINUTES = 100_000


@dataclass(frozen=True)
class ClusterResult:
    """The result for one cluster: its report and the report's files, or why there is none."""

    report: Report | None = None
    paths: ReportPaths | None = None
    failure: Failure | None = None

    @property
    def exit_code(self) -> int:
        """Exit code of this cluster alone."""
        if self.failure is not None:
            return self.failure.exit_code
        return 0 if self.report is None else self.report.exit_code


def run_all(
    run: Run,
    out: Place | None = None,
    progress: Progress | None = None,
    found: dict[str, ClusterResult] | None = None,
) -> dict[str, ClusterResult]:
    """Run every step over all clusters of the run and write the reports; returns the result of each cluster, by name.

    `out` is where the report of a run over one cluster goes. A cluster's own fault is in its result. Raises any other
    error that stops a run over a single cluster. `found` has what is known as soon as it is known, for a run that is stopped.
    """
    outcomes = {} if found is None else found
    progress = progress or Progress.for_terminal(sys.stderr)
    progress.follow(run.spark)
    run.counted = progress.counted
    with progress:
        reports = _audited(run, progress)
        outcomes |= {name: ClusterResult(report) for name, report in reports.items()}
        with progress.step("writing the reports"):
            for name, report in reports.items():
                outcomes[name] = _written(run, report, out)
    return outcomes | _failed(run)


def _failed(run: Run) -> dict[str, ClusterResult]:
    return {
        name: ClusterResult(failure=each.failure) for name, each in run.clusters.items() if each.failure is not None
    }


def _audited(run: Run, progress: Progress) -> dict[str, Report]:
    """Reports of the clusters that could be audited; `run` has the reasons of the others.

    A cluster's own fault is raised by its source or its pass. An error that stops a step is one of the warehouse, the session
    or the call.
    """
    try:
        reports = _steps(run, progress)
    except Exception as error:
        run.drop_writes()
        for name in run.going:
            run.fail(name, error)
        failures.write_failures(run)
        if len(run.clusters) == 1:
            raise
        return {}
    try:
        failures.write_failures(run)
    except Exception as error:
        # The other clusters' verdicts are stored, and have to be told.
        LOG.warning("no row of the failed clusters could be stored: %s", why(error))
    return reports


def _steps(run: Run, progress: Progress) -> dict[str, Report]:
    def timed(title: str, step: Callable[[], T]) -> T:
        started = time.monotonic()
        with progress.step(title):
            made = step()
        run.durations[title] = time.monotonic() - started
        return made

    failures.settle_died(run)
    if not run.going:
        return {}
    mails.note_owed(run)
    messages.note_owed(run)
    kept.look_up(run)
    timed("reading ZooKeeper", lambda: ingest_zookeeper.run_step(run))
    timed("reading the metadata log", lambda: ingest_kraft.run_step(run))
    if any(settings.bracketed for settings in run.settings_of().values()):
        timed("reading ZooKeeper again", lambda: ingest_zookeeper.run_second_walk(run))
    reports: dict[str, Report] = {}
    if run.going:
        given, found = timed("replaying and comparing", lambda: materialize.run_step(run))
    if run.going:
        reports = timed("judging", lambda: reconcile.run_step(run, given, found))
    return reports


def _written(run: Run, report: Report, out: Place | None) -> ClusterResult:
    cluster = run.clusters[report.cluster]
    alone = len(run.clusters) == 1
    try:
        paths = report_step.write_files(report, cluster.settings, out if alone else None)
    except AuditError as error:
        # The run is stored, and another cluster's report may well be written.
        return ClusterResult(report, failure=Failure(str(error), CRASH))
    return ClusterResult(report, paths)


@dataclass(frozen=True)
class OutputOptions:
    """A run's output: `as_json` one object on standard output, `quiet` errors only, `color` on terminals.

    With `fail_on_mail` a mail that could not be sent sets the exit code; `mail_dry_run` is a folder for mails that are written
    instead of sent. `minutes` is the longest time that the run may take; with `catches_signals` SIGTERM and SIGINT end the run and
    the process, which is right if the process is the run's own.
    """

    as_json: bool = False
    quiet: bool = False
    color: bool = True
    fail_on_mail: bool = False
    mail_dry_run: Path | None = None
    minutes: float | None = None
    catches_signals: bool = False


def audit(
    settings: Settings | Sequence[Settings], out: Place | None = None, output: OutputOptions | None = None
) -> int:
    """Run, print the results and send the configured mails. Returns the worst exit code.

    A run with the option `out` audits files once: it writes no fleet page and sends no mail.
    """
    output = output or OutputOptions()
    several = [settings] if isinstance(settings, Settings) else list(settings)
    stopping = Stopping(output.minutes)
    begun_at = datetime.now(UTC)
    run_id, begun = new_run_id(begun_at), None
    try:
        with stopping.armed() if output.catches_signals else nullcontext():
            if out is None:
                begun = _begin(several, run_id, begun_at, stopping)
            with _opened(several, run_id, begun_at, output, mailed=out is None) as run:
                # The session may have taken the signals.
                if output.catches_signals:
                    stopping.arm()
                return _audit(run, out, output, begun)
    except BaseException as error:
        # What a call to Java that was cut off raises is not what ended the run.
        if stopping.stopped is None:
            _note(begun, error)
            raise
        print_reason(stopping.stopped)
        return stopping.stopped.exit_code
    finally:
        if begun is not None:
            begun.leave()


def _begin(several: Sequence[Settings], run_id: str, begun_at: datetime, stopping: Stopping) -> Begun | None:
    """Note that the run begins, so that it can't disappear."""
    first, names = shared(several), [each.cluster for each in several]
    begun = begin(first.warehouse, catalog=first.catalog, clusters=names, run_id=run_id, started_at=begun_at)
    if begun is not None:
        stopping.noted = begun.stopped
    return begun


def _note(begun: Begun | None, error: BaseException) -> None:
    """What ended a run that left no row, for the next run to make one of it."""
    if begun is not None and begun.running:
        if isinstance(error, KeyboardInterrupt):
            # PySpark's own, which breaks off a call to Java: what that raises is not what ended the run.
            begun.stopped(*INTERRUPT)
            return
        code = USAGE if isinstance(error, UsageError) else CRASH
        begun.stopped(why(error), code)


def _audit(run: Run, out: Place | None, output: OutputOptions, begun: Begun | None) -> int:
    found: dict[str, ClusterResult] = {}
    try:
        outcomes, stopped = _outcomes(run, out, output, found)
    except Stopped as end:
        _leave_rows(run, end, output, begun, found)
        raise
    if begun is not None and run.recorded >= run.clusters.keys():
        begun.end()
    after = Published() if out is not None else _after(run, outcomes, output)
    if stopped is None:
        _print(outcomes, after, output)
    elif output.as_json:
        print(_json(outcomes, after))
    store_views(run.warehouse)
    maintained = [] if out is not None or stopped is not None else _maintained(run)
    for problem in [*_shut_gates(run, outcomes), *after.problems, *maintained]:
        print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
    if stopped is not None:
        raise stopped
    own = [CRASH] if after.crashed or (after.mail_failed and output.fail_on_mail) else []
    return worst([*(outcome.exit_code for outcome in outcomes.values()), *own])


def _leave_rows(
    run: Run, end: Stopped, output: OutputOptions, begun: Begun | None, found: Mapping[str, ClusterResult]
) -> None:
    """A failed row for each cluster that has none, in a thread of its own: the main one was stopped amid a call to Java.

    Clusters that have a row are mailed with what was `found`; a mail says if the report could not be written. If that takes too long,
    the note that the run has begun records why it ended, and the next run writes the rows.
    """

    def leave() -> None:
        stop_queries(run.spark)
        for name in run.clusters.keys() - run.recorded:
            run.clusters[name].failure = run.clusters[name].failure or Failure(end.why, end.exit_code)
        failures.write_failures(run)
        if begun is not None:
            begun.end()
        if end.timed_out and begun is not None:
            _after(run, {**_unwritten(run, end, found), **_failed(run)}, output)
        else:
            publish_stopped(run)

    def quietly() -> None:
        try:
            leave()
        except Exception as error:
            LOG.debug("no row is left of the run that was stopped", exc_info=error)

    thread = threading.Thread(target=quietly, daemon=True)
    thread.start()
    thread.join(_SECONDS_FOR_MAILS if end.timed_out else _SECONDS_FOR_ROWS)


def _unwritten(run: Run, end: Stopped, found: Mapping[str, ClusterResult]) -> dict[str, ClusterResult]:
    """Results of the clusters that have a row, with why there is no report where the run was stopped before it was written."""
    stopped = Failure(end.why, end.exit_code)
    return {
        name: each if each.paths is not None or each.failure is not None else replace(each, failure=stopped)
        for name, each in found.items()
        if run.clusters[name].failure is None
    }


@contextmanager
def _opened(
    several: Sequence[Settings], run_id: str, begun_at: datetime, output: OutputOptions, *, mailed: bool
) -> Iterator[Run]:
    """`open_run` of a run that belongs to a series of them, or (not `mailed`) of one of files, once.

    The reason why a run could not start is mailed.
    """
    with ExitStack() as stack:
        try:
            run = stack.enter_context(open_run(several, run_id, begun_at, keep_failures=mailed))
        except Exception as error:
            after = publish_unopened(several, error, output.mail_dry_run) if mailed else Published()
            for problem in after.problems:
                print(f"kraft-audit: {visible(problem, 1000)}", file=sys.stderr)
            raise
        yield run


def _outcomes(
    run: Run, out: Place | None, output: OutputOptions, found: dict[str, ClusterResult]
) -> tuple[dict[str, ClusterResult], Exception | None]:
    """The outcome of each cluster, and the error of the only one, which is also in gold `runs` and may be mailed."""
    try:
        progress = Progress.for_terminal(sys.stderr, quiet=output.quiet, color=output.color)
        return run_all(run, out, progress, found), None
    except Exception as error:
        failed = _failed(run)
        if not failed:
            raise
        return failed, error


def _shut_gates(run: Run, outcomes: Mapping[str, ClusterResult]) -> list[str]:
    """Why the requested gate is closed, a line for each cluster."""
    said = []
    for name, each in outcomes.items():
        settings = run.clusters[name].settings
        if each.report is not None:
            shut = asked_of(each.report.gates, settings.gate, each.report.checks, allow_unknown=settings.allow_unknown)
            where = "" if len(outcomes) == 1 else f"cluster {name}: "
            said += [f"{where}{shut}"] if shut else []
    return said


def _after(run: Run, outcomes: Mapping[str, ClusterResult], output: OutputOptions) -> Published:
    reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
    written = {name: each.paths.html for name, each in outcomes.items() if each.paths is not None}
    unwritten = {name: each.failure.reason for name, each in outcomes.items() if each.report and each.failure}
    try:
        return publish(run, reports, written, output.mail_dry_run, unwritten)
    except Exception as error:
        # The verdicts are valid and must be printed even if the page or the mails fail.
        return Published(problems=[f"after the reports: {unexpected(error)}"], crashed=True)


def _maintained(run: Run) -> list[str]:
    """Maintain the tables if the configurations make it due. Returns a line for each problem; the verdicts do not change."""
    try:
        settings = {name: cluster.settings for name, cluster in run.clusters.items()}
        return after_run(run.warehouse, settings, datetime.now(UTC))
    except Exception as error:
        return [f"maintenance: {str(error) if isinstance(error, UsageError | AuditError) else unexpected(error)}"]


def _print(outcomes: Mapping[str, ClusterResult], after: Published, output: OutputOptions) -> None:
    """One cluster's verdict in full; of several, one table, worst first. Failures go to standard error in any case."""
    reports, places, failures = _parts(outcomes)
    if output.as_json:
        print(_json(outcomes, after))
    elif not output.quiet:
        lines = (
            _alone(reports, places) if len(outcomes) == 1 else fleet_table(reports, places, failures, terminal_width())
        )
        for line in [*lines, *(f"Fleet        {page}" for page in after.pages), *after.lines]:
            print(line)
    for name, reason in sorted(failures.items()):
        where = "" if len(outcomes) == 1 else f"cluster {name}: "
        print(f"kraft-audit: {where}{visible(reason, 1000)}", file=sys.stderr)


def _parts(outcomes: Mapping[str, ClusterResult]) -> tuple[dict[str, Report], dict[str, str], dict[str, str]]:
    """Reports, where they are, and why there is none, each by cluster."""
    reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
    places = {name: str(each.paths.html) for name, each in outcomes.items() if each.paths is not None}
    failures = {name: each.failure.reason for name, each in outcomes.items() if each.failure is not None}
    return reports, places, failures


def _json(outcomes: Mapping[str, ClusterResult], after: Published) -> str:
    codes = {name: each.exit_code for name, each in outcomes.items()}
    return run_json(*_parts(outcomes), codes, [str(page) for page in after.pages])


def _alone(reports: Mapping[str, Report], places: Mapping[str, str]) -> list[str]:
    lines = []
    for name, report in reports.items():
        if name in places:
            lines += [*render_text(report).splitlines(), f"Report       {places[name]}"]
            first = first_anchor(report)
            lines += [f"Start here   {_address(places[name])}#{first}"] if first else []
    return lines


def _address(place: str) -> str:
    return place if is_uri(place) else Path(place).absolute().as_uri()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit run`."""
    text = "configuration files (YAML), one for each cluster: one run audits all of them"
    add_files_argument(parser, text, required=True)
    parser.add_argument(
        "--full",
        action="store_true",
        help="read the metadata logs from the start, even if an earlier run's state could be resumed",
    )
    parser.add_argument(
        "--keep-copy",
        type=Path,
        metavar="DIR",
        help="keep the copies of live logs below this folder, one folder per cluster (default: beside the tables)",
    )
    parser.add_argument(
        "--fail-on-mail",
        action="store_true",
        help="exit with 1 when a mail or message could not be sent (it is always reported)",
    )
    parser.add_argument(
        "--mail-dry-run",
        type=Path,
        metavar="DIR",
        help="write the mails (.eml) and messages (.json) into this folder instead of sending them",
    )
    parser.add_argument(
        "--exit-0-on-warnings",
        action="store_true",
        help="exit with 0 instead of 10, for a scheduler that supports only success and failure",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        metavar="MINUTES",
        help="stop the run after this time, as failed (exit code 1)",
    )
    add_output_arguments(parser)
    add_verdict_arguments(parser)


def add_verdict_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what decides the exit code; they override the configuration."""
    parser.add_argument(
        "--fail-on",
        choices=("error", "warn", "never"),
        help="lowest verdict that makes the exit code fail (default error)",
    )
    parser.add_argument(
        "--gate",
        choices=GATES,
        help="also fail (20) unless this gate is GO",
    )
    parser.add_argument(
        "--allow-unknown",
        action="store_true",
        help="with --gate: also accept UNKNOWN and n/a (a no-go never passes)",
    )


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options for a run's output."""
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print one JSON object with the result of each cluster")
    how.add_argument("--quiet", action="store_true", help="print errors only; the exit code has the result")
    parser.add_argument(
        "--no-color", action="store_true", help="no colours on a terminal (also: the variable NO_COLOR)"
    )


def output_options_of(arguments: argparse.Namespace) -> OutputOptions:
    """The output options of `add_output_arguments` and `add_arguments`."""
    if arguments.quiet:
        LOG.setLevel(logging.WARNING)
    return OutputOptions(
        as_json=arguments.json,
        quiet=arguments.quiet,
        color=not arguments.no_color,
        fail_on_mail=getattr(arguments, "fail_on_mail", False),
        mail_dry_run=getattr(arguments, "mail_dry_run", None),
        minutes=getattr(arguments, "timeout", None),
        catches_signals=True,
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run the audit the configurations describe."""
    if arguments.timeout is not None and not 0 < arguments.timeout <= _LONGEST_MINUTES:
        raise UsageError(f"--timeout: give a number of minutes above 0, {_LONGEST_MINUTES:,} at most")
    several = []
    for path in arguments.conf:
        settings = overridden(load_settings(path), fail_on=arguments.fail_on, gate=arguments.gate)
        if arguments.allow_unknown:
            settings = overridden(settings, allow_unknown=True)
        if arguments.full and settings.kraft is not None:
            settings = overridden(settings, kraft=overridden(settings.kraft, full=True))
        if arguments.keep_copy and settings.kraft is not None and settings.kraft.controllers:
            kept = arguments.keep_copy / settings.cluster
            settings = overridden(settings, kraft=overridden(settings.kraft, keep_copy=kept))
        several.append(settings)
    code = audit(several, output=output_options_of(arguments))
    return OK if arguments.exit_0_on_warnings and code == WARNINGS else code


def main(argv: list[str] | None = None) -> int:
    """Entry point for spark-submit."""
    parser = argparse.ArgumentParser(prog="kraft-audit run", description=__doc__)
    add_arguments(parser)
    return guarded(lambda: execute(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
