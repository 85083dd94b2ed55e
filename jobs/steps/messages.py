"""The messages of a run to chats, pagers and programs: one to each address, about the clusters that its policy selects.

They follow the policies of mails, and gold `mails` keeps what was tried, by channel: the name of the variable with the address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from jobs.exit import UsageError, unexpected, why
from jobs.run.run import LOG, Run
from jobs.runtime.stopping import is_stop_due
from jobs.settings import NotifySettings, Settings
from jobs.sinks.conditions import PRESENT
from jobs.sinks.reader import Reader
from jobs.sinks.webhook import NotifyError, by_apprise, post
from jobs.steps.mails import Delivery, attempt, newest_tries
from transforms.clusters import CLUSTER
from transforms.report.fleet_mail import MailEntry
from transforms.report.fleet_model import FleetRun, of_this_run
from transforms.report.mail_policy import LastMail, Policy, decide, decide_unknowing
from transforms.report.message import lines_of, payload_of, title_of

APPRISE = "apprise"
Newest = Mapping[tuple[str, str], LastMail]


@dataclass(frozen=True)
class Message:
    """One message: its address and its clusters, each with the policy that selected it."""

    settings: NotifySettings
    entries: tuple[MailEntry, ...]
    policies: Mapping[str, str]


def note_owed(run: Run) -> None:
    """Look up the newest message about each cluster by channel; one that failed is noted for the report."""
    try:
        look_up(run)
    except Exception as error:
        LOG.warning("the result of earlier messages is unknown: %s", why(error))
    for (channel, name), last in sorted(run.newest_messages.items()):
        cluster = run.clusters[name]
        if last.problem and channel in {each.url_env for each in cluster.settings.notify}:
            cluster.notes.append(f"The message of run {last.run_id} was not sent: {last.problem}")


def look_up(run: Run) -> None:
    """The newest message by channel about all clusters of the run that have messages configured, into `run.newest_messages`.

    Those that failed before anything was read, too. Raises what the warehouse raises.
    """
    asked = [name for name, cluster in run.clusters.items() if cluster.settings.notify]
    if asked:
        run.newest_messages = newest_messages(run.warehouse, asked, run.started_at)
    run.messages_looked_up = True


def newest_messages(warehouse: Reader, clusters: Sequence[str], as_of: datetime) -> dict[tuple[str, str], LastMail]:
    """The newest message by channel and cluster as of a moment (UTC), sent or not."""
    return newest_tries(warehouse, {CLUSTER: clusters, "channel": PRESENT}, as_of)


def messages(
    settings: Mapping[str, Settings],
    runs: Sequence[FleetRun],
    started_at: datetime,
    newest: Newest,
    places: Mapping[str, str],
    notices: Mapping[tuple[str, str], Sequence[str]] | None = None,
    *,
    unknowing: bool = False,
) -> list[Message]:
    """The messages of the run begun at `started_at` (UTC): one to each address, about all clusters selected for it.

    The arguments are those of `jobs.steps.mails.candidates`; `newest` and `notices` are by channel and cluster.
    """
    together: dict[str, list[tuple[NotifySettings, MailEntry]]] = {}
    for name, each in sorted(settings.items()):
        now, before = of_this_run(runs, name, started_at)
        if now is None:
            continue
        for target in each.notify:
            policy, which = Policy(target.send, target.remind_after_hours, "message"), (target.url_env, name)
            said = (notices or {}).get(which, ())
            known = (now, before, newest.get(which), said)
            decision = decide_unknowing(policy, said) if unknowing else decide(policy, *known)
            if decision.wanted:
                entry = MailEntry(now, None, decision, places.get(name, ""))
                together.setdefault(target.url_env, []).append((target, entry))
    return [
        Message(mine[0][0], tuple(entry for _, entry in mine), {entry.run.cluster: to.send for to, entry in mine})
        for mine in together.values()
    ]


def deliver(
    made: Sequence[Message],
    page: str,
    dry_run: Path | None = None,
    sender: Callable[[Message, str], None] | None = None,
) -> Delivery:
    """Send the messages, or write them into the folder `dry_run` instead, which leaves no trace elsewhere."""
    delivery = Delivery()
    for message in made:
        channel, problem = message.settings.url_env, ""
        try:
            if dry_run is not None:
                delivery.lines.append(f"Message      {_written(message, page, dry_run)} (not sent)")
                continue
            if is_stop_due():
                raise NotifyError(f"message by {channel} not sent: the run was stopped")
            (sender or send)(message, page)
            delivery.lines.append(f"Message      {channel}")
        except Exception as error:
            # If one address fails, the others still get their messages.
            known = isinstance(error, UsageError | NotifyError)
            problem = str(error) if known else f"message by {channel} not sent: {unexpected(error)}"
            delivery.problems.append(problem)
        delivery.rows += [
            attempt(entry, message.policies[entry.run.cluster], 1, problem, channel) for entry in message.entries
        ]
    return delivery


def send(message: Message, page: str) -> None:
    """Send one message. Raises NotifyError, and UsageError for a variable or a package that is not there."""
    now = datetime.now(UTC)
    if message.settings.form == APPRISE:
        text = "\n".join(lines_of(message.entries, now, page))
        by_apprise(title_of(message.entries, now), text, message.settings)
    else:
        post(payload_of(message.settings.form, message.entries, now, page), message.settings)


def _written(message: Message, page: str, folder: Path) -> Path:
    form = "json" if message.settings.form == APPRISE else message.settings.form
    path = folder / f"{message.entries[0].run.run_id}-{message.settings.url_env}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(payload_of(form, message.entries, datetime.now(UTC), page))
    except OSError as error:
        raise NotifyError(f"message not written to {folder}: {error.strerror or type(error).__name__}") from None
    return path
