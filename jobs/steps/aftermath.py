"""What follows the reports of a run: the fleet's page beside them, and the mails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from jobs.audit.run import LOG, Run
from jobs.exit import AuditError
from jobs.settings import Settings
from jobs.sinks.report_files import HTML_NAME
from jobs.steps import mails
from jobs.steps.fleet import FLEET_NAME, fleet_of, fleet_runs, places_of, write_fleet_page
from schemas.report import Report
from transforms.report.fleet_model import FleetRun


@dataclass
class Aftermath:
    """The pages written, lines about mails for people, and what went wrong, a line each.

    `mail_failed` if a mail could not be sent, `crashed` if nothing of this came to its end.
    """

    pages: list[Path] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    mail_failed: bool = False
    crashed: bool = False


def after_run(
    run: Run, reports: Mapping[str, Report], written: Mapping[str, Path], dry_run: Path | None = None
) -> Aftermath:
    """Write the fleet's pages and send the mails of a run whose reports are `written` (paths by cluster).

    What goes wrong here changes no verdict and is said. With `dry_run` mails become files in that folder.
    """
    made = Aftermath()
    settings = {name: cluster.settings for name, cluster in run.clusters.items()}
    try:
        runs = fleet_runs(run.warehouse)
        _pages(made, settings, runs, written)
    except AuditError as error:
        made.problems.append(str(error))
        return made
    _mails(made, run, settings, runs, reports, written, dry_run)
    return made


def _pages(
    made: Aftermath, settings: Mapping[str, Settings], runs: list[FleetRun], written: Mapping[str, Path]
) -> None:
    standing = fleet_of(runs, min(each.report.stale_after_hours for each in settings.values()))
    for folder in sorted({each.report.folder for each in settings.values()}):
        places = places_of(standing, folder, written)
        made.pages.append(write_fleet_page(standing, folder / FLEET_NAME, places))


def _mails(
    made: Aftermath,
    run: Run,
    settings: Mapping[str, Settings],
    runs: list[FleetRun],
    reports: Mapping[str, Report],
    written: Mapping[str, Path],
    dry_run: Path | None,
) -> None:
    if all(each.report.mail is None for each in settings.values()):
        return
    places = {name: _place(settings[name], path) for name, path in written.items()}
    found = mails.candidates(settings, reports, runs, run.started_at, run.newest_mails, places)
    page = next((_page_place(each, made.pages) for each in settings.values()), "")
    delivery = mails.deliver(mails.letters(found), page, dry_run)
    made.lines += delivery.lines
    made.problems += delivery.problems
    made.mail_failed = bool(delivery.problems)
    try:
        mails.store(run, delivery.rows)
    except AuditError as error:
        LOG.warning("what became of the mails is not kept: %s", error)


def _place(settings: Settings, path: Path) -> str:
    """Where a report is, for a reader: its address where reports are served, else its path."""
    url = settings.report.url
    return str(path) if url is None else f"{url.rstrip('/')}/{quote(settings.cluster)}/{HTML_NAME}"


def _page_place(settings: Settings, pages: list[Path]) -> str:
    if settings.report.url is not None:
        return f"{settings.report.url.rstrip('/')}/{FLEET_NAME}"
    return str(pages[0]) if pages else ""
