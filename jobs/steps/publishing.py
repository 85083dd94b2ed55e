"""What follows the reports of a run: the mails, the metrics, and the fleet's page beside the reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

from jobs.evidence import verified
from jobs.evidence.fleet_runs import fleet_runs
from jobs.exit import AuditError, unexpected, why
from jobs.places import Place
from jobs.run.run import LOG, Run, new_run_id
from jobs.runtime.stopping import not_halfway
from jobs.settings import Settings
from jobs.sinks.report_files import HTML_NAME
from jobs.steps import mails, messages, metrics
from jobs.steps.fleet import FLEET_NAME, fleet_of, places_of, write_fleet_page
from schemas.gold import RUNS
from schemas.report import Report
from transforms.clusters import CLUSTER
from transforms.report.fleet_model import FleetRun, Verified, fleet_columns, fleet_run, of_this_run
from transforms.report.mail_policy import LastMail
from transforms.runs import FAILED, latest_now


@dataclass
class Published:
    """The pages written, lines about mails for people, and what went wrong, a line each.

    `mail_failed` if a mail could not be sent, `crashed` if none of this finished.
    """

    pages: list[Place] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    mail_failed: bool = False
    crashed: bool = False


@dataclass(frozen=True)
class _Known:
    """The known runs of the warehouse: those of this run even if their rows could not be stored.

    `runs` are those of all clusters, `unread` why earlier ones could not be read, `unstored` the clusters of this run
    that have no row, `verified` what `kraft-audit verify` said last by cluster.
    """

    runs: list[FleetRun]
    unread: str = ""
    unstored: frozenset[str] = frozenset()
    verified: Mapping[str, Verified] = field(default_factory=dict)


def publish(
    run: Run,
    reports: Mapping[str, Report],
    written: Mapping[str, Place],
    dry_run: Path | None = None,
    unwritten: Mapping[str, str] | None = None,
) -> Published:
    """Send the mails of a run, write its metrics and the fleet's pages; its reports are `written` (paths by cluster).

    `unwritten` says why a report could not be written, by cluster. Works without any report, and with a warehouse that
    can't be read or written: then the mails say so. A fault here is reported and changes no verdict, and if one part
    fails the others still run; the mails come first, because a page can wait. With `dry_run` mails become files in that
    folder.
    """
    made = Published()
    settings = {name: cluster.settings for name, cluster in run.clusters.items()}
    known = _known(run, reports)
    places = {name: _place(settings[name], path) for name, path in written.items()}
    notices = partial(_notices, run, known, unwritten or {})
    if any(each.report.mail is not None for each in settings.values()):
        made.mail_failed = not _went_well(made, lambda: _mails(made, run, known, reports, places, notices, dry_run))
    if any(each.notify for each in settings.values()):
        all_sent = _went_well(made, lambda: _messages(made, run, known, places, notices, dry_run))
        made.mail_failed = made.mail_failed or not all_sent
    _went_well(made, lambda: _metrics(made, settings, known.runs, run.started_at))
    if known.unread:
        made.problems.append(f"the warehouse can't be read: {known.unread}; the fleet's page stays as it was")
    else:
        _went_well(made, lambda: _pages(made, settings, known, written))
    return made


def publish_unopened(several: Sequence[Settings], error: Exception, dry_run: Path | None = None) -> Published:
    """Report by mail and metrics that a run could not begin: no session, no warehouse, a configuration that can't be run."""
    made = Published()
    began, reason = datetime.now(UTC), why(error)
    run_id = new_run_id(began)
    settings = {each.cluster: each for each in several}
    runs = [FleetRun(name, run_id, began, began, FAILED, reason) for name in settings]
    notices = {name: [_UNBEGUN] for name in settings}
    found = mails.candidates(settings, {}, runs, began, {}, {}, notices, unknowing=True)
    _went_well(made, lambda: not _deliver(made, found, settings, dry_run).problems)
    said = {(target.url_env, name): notices[name] for name, each in settings.items() for target in each.notify}
    unsent = messages.messages(settings, runs, began, {}, {}, said, unknowing=True)
    _went_well(made, lambda: not _delivered(made, messages.deliver(unsent, _page(settings), dry_run)).problems)
    _went_well(made, lambda: _metrics(made, settings, runs, began))
    return made


def publish_stopped(run: Run) -> Published:
    """Write the metrics of a run that was stopped: there is no time to read the warehouse."""
    made = Published()
    settings = {name: cluster.settings for name, cluster in run.clusters.items()}
    runs = [_unstored_run(run, name, None, 1) for name, each in run.clusters.items() if each.failure is not None]
    _went_well(made, lambda: _metrics(made, settings, runs, run.started_at))
    return made


_UNBEGUN = "The run could not start: nothing was read, and no table or report was written."


def _went_well(made: Published, part: Callable[[], bool]) -> bool:
    try:
        return part()
    except AuditError as error:
        made.problems.append(str(error))
    except Exception as error:
        # The verdicts are valid and must be printed even if the page or the mails fail.
        made.problems.append(f"after the reports: {unexpected(error)}")
        made.crashed = True
    return False


def _known(run: Run, reports: Mapping[str, Report]) -> _Known:
    """The rows of gold `runs`, and for clusters of this run without a row the facts known here."""
    runs: list[FleetRun] = []
    checked: Mapping[str, Verified] = {}
    unread = ""
    try:
        if not run.mails_looked_up:
            mails.look_up(run)
        if not run.messages_looked_up:
            messages.look_up(run)
        mailed: dict[str, set[str]] = {}
        newest = [*run.newest_mails.items(), *((name, last) for (_, name), last in run.newest_messages.items())]
        for name, last in newest:
            if last.sent is not None:
                mailed.setdefault(name, set()).add(last.sent.run_id)
        runs, checked = fleet_runs(run.warehouse, also=mailed), verified.newest_in(run.warehouse)
    except Exception as error:
        LOG.debug("the warehouse can't be read", exc_info=error)
        unread = why(error)
    stored = {each.cluster for each in runs if each.started_at == run.started_at}
    unstored = frozenset(run.clusters.keys() - stored)
    mine = [_unstored_run(run, name, reports.get(name), _following(runs, name)) for name in unstored]
    return _Known([*runs, *mine], unread, unstored, checked)


def _following(runs: Sequence[FleetRun], name: str) -> int:
    """The number that a cluster's next run has."""
    return 1 + max((each.sequence or 0 for each in runs if each.cluster == name), default=0)


def _unstored_run(run: Run, name: str, report: Report | None, sequence: int) -> FleetRun:
    failure = run.clusters[name].failure
    ended = datetime.now(UTC)
    if report is None or failure is not None:
        reason = "the audit did not finish" if failure is None else failure.reason
        return FleetRun(name, run.run_id, run.started_at, ended, FAILED, reason, sequence=sequence)
    known = {
        "sequence": sequence,
        CLUSTER: name,
        "run_id": run.run_id,
        "started_at": run.started_at,
        "finished_at": ended,
        "verdict": report.verdict,
        "kafka_version": report.kafka_version,
        "lag_records": report.lag.records,
        "lag_seconds": report.lag.seconds,
        **fleet_columns(report),
    }
    return fleet_run(dict.fromkeys(RUNS.column_names) | known)


def _notices(
    run: Run, known: _Known, unwritten: Mapping[str, str], newest: Mapping[str, LastMail]
) -> dict[str, list[str]]:
    """The notices of mails, or of one channel's messages, about their own run, by cluster; `newest` is the newest one about each."""
    found: dict[str, list[str]] = {name: [] for name in run.clusters}
    for name, said in found.items():
        checked, last = known.verified.get(name), newest.get(name)
        sent = None if last is None or last.sent is None else last.sent.at
        if checked is not None and checked.words and _is_untold(run, known, name, checked, sent):
            said.append(checked.words)
        if name in unwritten:
            said.append(f"The report is not there: {unwritten[name]}")
        if known.unread:
            said.append(f"The warehouse can't be read ({known.unread}): the changes since the last mail are unknown.")
        elif name in known.unstored:
            said.append(
                "This run is not in the warehouse, which could not be written: the next run can't compare with it."
            )
    return found


def _is_untold(run: Run, known: _Known, name: str, checked: Verified, last: datetime | None) -> bool:
    """Whether no mail has reported what was verified; `last` is when (UTC) the newest one was sent."""
    if last is None or checked.at <= latest_now(datetime.now(UTC)):
        return last is None or checked.at > last
    # Its clock was ahead, so its time is unknown: the first run after the one that was verified has reported it.
    _, before = of_this_run(known.runs, name, run.started_at)
    ids = [each.run_id for each in before]
    later = before[ids.index(checked.run_id) + 1 :] if checked.run_id in ids else before
    return not later or last < later[0].started_at


def _metrics(made: Published, settings: Mapping[str, Settings], runs: Sequence[FleetRun], started_at: datetime) -> bool:
    problems = metrics.write_metrics(settings, runs, started_at)
    made.problems += problems
    return not problems


def _pages(made: Published, settings: Mapping[str, Settings], known: _Known, written: Mapping[str, Place]) -> bool:
    retired = {name for each in settings.values() for name in each.report.retired}
    old = min(each.report.stale_after_hours for each in settings.values())
    standing = fleet_of(known.runs, old, retired, known.verified)
    for folder in sorted({each.report.folder for each in settings.values()}, key=str):
        try:
            places = places_of(standing, folder, written)
            made.pages.append(write_fleet_page(standing, folder / FLEET_NAME, places))
        except AuditError as error:
            # Another cluster's folder may well be there.
            made.problems.append(str(error))
    return True


def _mails(
    made: Published,
    run: Run,
    known: _Known,
    reports: Mapping[str, Report],
    places: Mapping[str, str],
    notices: Callable[[Mapping[str, LastMail]], dict[str, list[str]]],
    dry_run: Path | None,
) -> bool:
    settings = {name: cluster.settings for name, cluster in run.clusters.items()}
    newest, began, unknowing = run.newest_mails, run.started_at, bool(known.unread)
    found = mails.candidates(settings, reports, known.runs, began, newest, places, notices(newest), unknowing=unknowing)
    # A stop between a mail and its note would send it twice.
    with not_halfway():
        return _kept(run, _deliver(made, found, settings, dry_run))


def _messages(
    made: Published,
    run: Run,
    known: _Known,
    places: Mapping[str, str],
    notices: Callable[[Mapping[str, LastMail]], dict[str, list[str]]],
    dry_run: Path | None,
) -> bool:
    settings = {name: cluster.settings for name, cluster in run.clusters.items()}
    newest, began, unknowing = run.newest_messages, run.started_at, bool(known.unread)
    # What one channel was told, another one may not know.
    said = {
        (channel, name): mine
        for channel in {target.url_env for each in settings.values() for target in each.notify}
        for name, mine in notices({name: last for (which, name), last in newest.items() if which == channel}).items()
    }
    found = messages.messages(settings, known.runs, began, newest, places, said, unknowing=unknowing)
    with not_halfway():
        return _kept(run, _delivered(made, messages.deliver(found, _page(settings), dry_run)))


def _kept(run: Run, delivery: mails.Delivery) -> bool:
    """Store the attempts; True if everything was sent."""
    try:
        mails.store(run, delivery.rows)
    except Exception as error:
        LOG.warning("the result of the mails could not be stored, so the next run may send them again: %s", why(error))
    return not delivery.problems


def _delivered(made: Published, delivery: mails.Delivery) -> mails.Delivery:
    made.lines += delivery.lines
    made.problems += delivery.problems
    made.mail_failed = made.mail_failed or bool(delivery.problems)
    return delivery


def _deliver(
    made: Published, found: Sequence[mails.Candidate], settings: Mapping[str, Settings], dry_run: Path | None
) -> mails.Delivery:
    return _delivered(made, mails.deliver(mails.letters(found), _page(settings), dry_run))


def _page(settings: Mapping[str, Settings]) -> str:
    """Where the page is. It is written after the mails that link to it."""
    return next((_page_place(each) for each in settings.values()), "")


def _place(settings: Settings, path: Place) -> str:
    """Where a report is, for a reader: its address where reports are served, else its path."""
    url = settings.report.url
    return str(path) if url is None else f"{url.rstrip('/')}/{quote(settings.cluster)}/{HTML_NAME}"


def _page_place(settings: Settings) -> str:
    url, folder = settings.report.url, settings.report.folder
    return str(folder / FLEET_NAME) if url is None else f"{url.rstrip('/')}/{FLEET_NAME}"
