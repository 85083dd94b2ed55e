"""The mails of a run: recipients by cluster and policy, the result of each mail, and changes that earlier mails did not report.

Clusters that share a mail server and a recipient share a mail. Gold `mails` has every attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

from jobs.exit import UsageError, unexpected, why
from jobs.run.run import LOG, Run
from jobs.runtime.stopping import is_stop_due
from jobs.settings import MailSettings, Settings
from jobs.sinks.conditions import Where
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.mail import MailError, SentMail, addressed, recipients_of, send
from jobs.sinks.reader import Reader, records
from schemas.gold import MAILS
from schemas.report import Report
from transforms.clusters import CLUSTER
from transforms.report.fleet_mail import MailEntry, render_fleet_mail
from transforms.report.fleet_model import FleetRun, of_this_run
from transforms.report.mail import render_mail
from transforms.report.mail_policy import Decision, LastMail, Policy, decide, decide_unknowing, last_mail
from transforms.report.printable import visible

_SERVER = ("host", "port", "security", "username_env", "password_env", "sender", "attempts")
Sender = Callable[[EmailMessage, MailSettings], SentMail]


@dataclass(frozen=True)
class Candidate:
    """A cluster of the run that has mail configured: its run, the report (None when the audit failed), and where that is."""

    settings: MailSettings
    run: FleetRun
    report: Report | None
    decision: Decision
    location: str

    @property
    def entry(self) -> MailEntry:
        """What a mail of several clusters needs of it."""
        return MailEntry(self.run, self.report, self.decision, self.location)


@dataclass(frozen=True)
class Letter:
    """One mail: its clusters, its recipients' other clusters without news, and the recipients."""

    settings: MailSettings
    candidates: tuple[Candidate, ...]
    others: tuple[Candidate, ...]
    recipients: tuple[str, ...]


@dataclass
class Delivery:
    """What became of the mails: `lines` for people, `problems` in one line each, rows for gold `mails`."""

    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rows: list[dict[str, object]] = field(default_factory=list)


def note_owed(run: Run) -> None:
    """Look up the newest mail about each cluster that has mail configured; one that failed is noted for the report."""
    try:
        look_up(run)
    except Exception as error:
        LOG.warning("the result of earlier mails is unknown: %s", why(error))
    for name, last in run.newest_mails.items():
        if last.problem:
            run.clusters[name].notes.append(f"The mail of run {last.run_id} was not sent: {last.problem}")


def look_up(run: Run) -> None:
    """The newest mails about all clusters of the run that have mail configured, into `run.newest_mails`.

    Those that failed before anything was read, too. Raises what the warehouse raises.
    """
    asked = [name for name, cluster in run.clusters.items() if cluster.settings.report.mail is not None]
    if asked:
        run.newest_mails = newest_mails(run.warehouse, asked, run.started_at)
    run.mails_looked_up = True


def newest_mails(warehouse: Reader, clusters: Sequence[str], as_of: datetime) -> dict[str, LastMail]:
    """The newest mail about each of the clusters as of a moment (UTC), sent or not."""
    return {
        name: last for (_, name), last in newest_tries(warehouse, {CLUSTER: clusters, "channel": None}, as_of).items()
    }


def newest_tries(warehouse: Reader, where: Where, as_of: datetime) -> dict[tuple[str, str], LastMail]:
    """By channel and cluster the newest row of gold `mails` as of a moment (UTC), of those that meet the conditions."""
    rows = warehouse.rows(MAILS, [CLUSTER, "run_id", "tried_at", "problem", "channel"], where)
    tried: dict[tuple[str, str], list[LastMail]] = {}
    for row in records(rows, MAILS):
        each = LastMail(row["run_id"], row["tried_at"], row["problem"] or "")
        tried.setdefault((row["channel"] or "", row[CLUSTER]), []).append(each)
    found = {which: last_mail(mine, as_of) for which, mine in tried.items()}
    return {which: last for which, last in found.items() if last is not None}


def candidates(
    settings: Mapping[str, Settings],
    reports: Mapping[str, Report],
    runs: Sequence[FleetRun],
    started_at: datetime,
    newest: Mapping[str, LastMail],
    places: Mapping[str, str],
    notices: Mapping[str, Sequence[str]] | None = None,
    *,
    unknowing: bool = False,
) -> list[Candidate]:
    """The clusters of the run begun at `started_at` (UTC) that have mail configured, each with its policy's decision.

    `runs` are rows of gold `runs` of all clusters, this run's among them; `places` say where the reports are. `notices` are
    sentences by cluster that are sent regardless of the policy; `unknowing` when earlier runs and mails can't be read.
    """
    found = []
    for name, each in sorted(settings.items()):
        mail = each.report.mail
        now, before = of_this_run(runs, name, started_at)
        if mail is None or now is None:
            continue
        policy, said = Policy(mail.send, mail.remind_after_hours), (notices or {}).get(name, ())
        known = (now, before, newest.get(name), said)
        decision = decide_unknowing(policy, said) if unknowing else decide(policy, *known)
        found.append(Candidate(mail, now, reports.get(name), decision, places.get(name, "")))
    return found


def letters(found: Sequence[Candidate]) -> list[Letter]:
    """Group clusters and recipients: one mail for all addresses of a server that get the same content."""
    of_address: dict[tuple[tuple[object, ...], str], list[Candidate]] = {}
    for each in found:
        server = tuple(getattr(each.settings, name) for name in _SERVER)
        for address in recipients_of(each.report, each.settings):
            of_address.setdefault((server, address), []).append(each)
    together: dict[tuple[tuple[object, ...], tuple[str, ...]], list[str]] = {}
    for (server, address), mine in of_address.items():
        together.setdefault((server, tuple(each.run.cluster for each in mine)), []).append(address)
    by_name = {each.run.cluster: each for each in found}
    made = []
    for (_, clusters), addresses in together.items():
        mine = [by_name[name] for name in clusters]
        wanted = tuple(each for each in mine if each.decision.wanted)
        if wanted:
            others = tuple(each for each in mine if not each.decision.wanted)
            made.append(Letter(wanted[0].settings, wanted, others, tuple(addresses)))
    return made


def message_of(letter: Letter, page: str) -> EmailMessage:
    """Render a letter and address it; `page` is the address of the fleet's page. Raises MailError for an invalid address."""
    first = letter.candidates[0]
    if len(letter.candidates) == 1 and not letter.others and first.report is not None:
        message = render_mail(first.report, first.location, first.decision)
    else:
        others = [each.run for each in letter.others]
        message = render_fleet_mail([each.entry for each in letter.candidates], others, datetime.now(UTC), page)
    about = {each.run.cluster: each.run.run_id for each in letter.candidates}
    return addressed(message, letter.recipients, letter.settings, about)


def deliver(made: Sequence[Letter], page: str, dry_run: Path | None = None, sender: Sender = send) -> Delivery:
    """Send the letters, or write them into the folder `dry_run` as `.eml` files instead, which leaves no trace elsewhere."""
    delivery = Delivery()
    begun: set[str] = set()
    for number, letter in enumerate(made, 1):
        problem = ""
        try:
            message = message_of(letter, page)
            if dry_run is not None:
                delivery.lines.append(f"Mail         {_written(message, dry_run, letter, number)} (not sent)")
                continue
            about = {each.run.cluster for each in letter.candidates}
            # A cluster has one result: with one of its mails sent, the next run would send all of them again.
            if is_stop_due() and not about & begun:
                raise MailError("mail not sent: the run was stopped")
            sent = sender(message, letter.settings)
            begun |= about
            delivery.lines.append(f"Mail         {visible(', '.join(sent.recipients), 500)}")
            if sent.refused:
                delivery.problems.append(f"the mail server refused {', '.join(sent.refused)}; the others have the mail")
        except MailError as error:
            problem = str(error)
            delivery.problems.append(problem)
        except Exception as error:
            # One letter's fault is its own: the others are sent.
            problem = str(error) if isinstance(error, UsageError) else unexpected(error)
            delivery.problems.append(f"mail not sent: {problem}")
        delivery.rows += [
            attempt(each.entry, each.settings.send, len(letter.recipients), problem) for each in letter.candidates
        ]
    return delivery


def store(run: Run, rows: Sequence[Mapping[str, object]]) -> None:
    """Store the attempts in gold `mails`; for a cluster in several mails, the worst result."""
    worst: dict[object, Mapping[str, object]] = {}
    for row in rows:
        what = (row[CLUSTER], row["channel"])
        if what not in worst or row["problem"]:
            worst[what] = row
    if worst:
        run.warehouse.append(MAILS, arrow_rows(MAILS, worst.values()))


def attempt(
    entry: MailEntry, policy: str, recipients: int, problem: str, channel: str | None = None
) -> dict[str, object]:
    """The row of gold `mails` for a cluster's mail that was tried, or its message by a `channel`."""
    return {
        CLUSTER: entry.run.cluster,
        "run_id": entry.run.run_id,
        "tried_at": datetime.now(UTC),
        "policy": policy,
        "reason": entry.decision.reason,
        "recipients": recipients,
        "problem": visible(problem, 500) or None,
        "channel": channel,
    }


def _written(message: EmailMessage, folder: Path, letter: Letter, number: int) -> Path:
    path = folder / f"{letter.candidates[0].run.run_id}-{number}.eml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(message.as_bytes(policy=SMTP))
    except OSError as error:
        raise MailError(f"mail not written to {folder}: {error.strerror or type(error).__name__}") from None
    return path
