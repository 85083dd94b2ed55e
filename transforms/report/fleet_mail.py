"""A run over several clusters as one e-mail of at most 100 KB: worst first, grouped, each cluster's own story in short.

Like the mail of one cluster: tables and inline styles only, a plain-text twin, hostile names as text. Who gets it and
whether it is sent at all is decided elsewhere (`transforms.report.mail_policy`, `jobs.steps.mails`).
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP

from schemas.report import Report
from transforms.report.banner import banner_of, duration
from transforms.report.compared import lag_is_unknown
from transforms.report.fleet_model import Fleet, FleetCluster, FleetRun, fleet
from transforms.report.fleet_page import (
    GROUP_TITLES,
    GROUP_TONES,
    Banner,
    GateChip,
    banner,
    defects_text,
    gate_chips,
    label_of,
    moment,
    phase_name,
    since_words,
    tone_of,
)
from transforms.report.html import environment
from transforms.report.mail import SIZE_LIMIT
from transforms.report.mail_policy import Decision, with_notice
from transforms.report.printable import counted, first_changes, listed, visible
from transforms.report.since import UNKNOWN

_SUBJECT_LIMIT = 110
# A run has just ended, so no cluster of it is old.
_NEVER_STALE = float("inf")
# (clusters, sentences and steps of each): the first that fits is sent; the last one always fits.
_FITS = ((60, 4), (30, 2), (10, 1), (0, 0))
_MOST_LINES = 120
_WIDTH = 100


@dataclass(frozen=True)
class MailEntry:
    """One cluster of a mail: its run, its report (None if the audit failed), the reason for the mail, and the report's location."""

    run: FleetRun
    report: Report | None
    decision: Decision
    location: str = ""


@dataclass(frozen=True)
class MailCluster:
    """A cluster's part of the mail: its state in one line, the changes, their meaning, and what to do."""

    name: str
    label: str
    tone: str
    phase: str
    figures: str
    gates: list[GateChip]
    headline: str
    since: str
    evidence: list[str]
    changes: list[str]
    sentences: list[str]
    steps: list[str]
    location: str


@dataclass(frozen=True)
class MailGroup:
    """Stories of one group of clusters; `names` are those that are only named."""

    title: str
    tone: str
    total: int
    clusters: list[MailCluster]
    names: str


def render_fleet_mail(
    entries: Sequence[MailEntry], others: Sequence[FleetRun], as_of: datetime, location: str = ""
) -> EmailMessage:
    """Make the message, without sender and recipients.

    `entries` are the clusters with news, at least one; `others` the recipients' clusters of the run without news. `location` is
    the address of the fleet's page. Its bytes are at most SIZE_LIMIT: a longer message shows fewer clusters and names the rest.
    """
    standing = fleet([*(entry.run for entry in entries), *others], as_of, _NEVER_STALE)
    for sizes in _FITS[:-1]:
        message = _message(entries, others, standing, location, sizes)
        if len(message.as_bytes()) <= SIZE_LIMIT:
            return message
    return _message(entries, others, standing, location, _FITS[-1])


def _message(
    entries: Sequence[MailEntry], others: Sequence[FleetRun], standing: Fleet, location: str, sizes: tuple[int, int]
) -> EmailMessage:
    said = banner(standing)
    groups = _groups(entries, standing, sizes)
    message = EmailMessage(policy=SMTP)
    message["Subject"] = subject(said, standing, entries)
    message["Auto-Submitted"] = "auto-generated"
    message["X-Kraft-Audit-Verdict"] = visible(standing.clusters[0].newest.verdict, 20)
    quiet = _quiet_words(others)
    message.set_content(_plain(said, groups, quiet, location))
    message.add_alternative(
        environment()
        .get_template("fleet_mail.html.j2")
        .render(
            subject=str(message["Subject"]),
            banner=said,
            groups=groups,
            quiet=quiet,
            location=visible(location, 300),
            as_of=moment(standing.as_of),
        ),
        subtype="html",
    )
    return message


def subject(said: Banner, standing: Fleet, entries: Sequence[MailEntry]) -> str:
    """The subject line: the worst verdict, how many clusters, and the names of the first ones."""
    worst = standing.clusters[0].newest
    label = with_notice(label_of(worst), worst.verdict, [entry.decision for entry in entries])
    urgent = [cluster for cluster in standing.clusters if cluster.group == standing.clusters[0].group]
    names = "" if urgent[0].group == "clean" else f": {listed([c.name for c in urgent], 3)}"
    return f"[kraft-audit] {label} {visible(said.title + names, _SUBJECT_LIMIT)}"


def _groups(entries: Sequence[MailEntry], standing: Fleet, sizes: tuple[int, int]) -> list[MailGroup]:
    most, lines = sizes
    by_name = {entry.run.cluster: entry for entry in entries}
    groups: list[MailGroup] = []
    by_group: dict[str, list[FleetCluster]] = {}
    for cluster in standing.clusters:
        if cluster.name in by_name:
            by_group.setdefault(cluster.group, []).append(cluster)
    for name, clusters in by_group.items():
        shown, rest = clusters[:most], clusters[most:]
        most -= len(shown)
        groups.append(
            MailGroup(
                GROUP_TITLES[name],
                GROUP_TONES[name],
                len(clusters),
                [_cluster(by_name[cluster.name], lines) for cluster in shown],
                listed([cluster.name for cluster in rest], 40),
            )
        )
    return groups


def _cluster(entry: MailEntry, lines: int) -> MailCluster:
    run = entry.run
    own = None if entry.report is None else banner_of(entry.report)
    steps = [] if own is None else own.actions or (own.next_steps if run.verdict == "clean" else [])
    return MailCluster(
        name=visible(run.cluster, 120),
        label=label_of(run),
        tone=tone_of(run),
        phase="" if run.failed else phase_name(run.phase),
        figures=_figures(run),
        gates=gate_chips(run),
        headline=visible(run.failure or run.headline, 400),
        since="" if own is None or own.since == UNKNOWN else own.since,
        evidence=[] if own is None else [visible(line, 200) for line in own.evidence[:lines]],
        changes=[visible(change, 300) for change in first_changes(entry.decision.changes, 2 * lines)],
        sentences=[] if own is None else [visible(sentence, 300) for sentence in own.sentences[:lines]],
        steps=[f"{visible(step.what, 600)} ({visible(step.why, 60)})" for step in steps[: max(1, lines // 2)]],
        location=visible(entry.location, 300),
    )


def _figures(run: FleetRun) -> str:
    if run.failed:
        return ""
    since = f" ({since_words(run.statuses)})" if run.statuses else ""
    behind = _behind(run)
    age = "" if not run.lag_records or run.lag_seconds is None else f", {duration(run.lag_seconds)}"
    defects = f"defects {defects_text(run)}" if run.defects is None else counted(run.defects, "defect")
    return f"{defects}{since}{behind}{age}, Kafka {visible(run.kafka_version or 'unknown', 20)}"


def _behind(run: FleetRun) -> str:
    if run.lag_records is not None:
        return f", {counted(run.lag_records, 'record')} behind"
    return ", lag unknown" if lag_is_unknown(run.phase, None) else ""


def _quiet_words(others: Sequence[FleetRun]) -> str:
    """The number of clusters without news, and their state."""
    if not others:
        return ""
    counts: dict[str, int] = {}
    for run in others:
        counts[label_of(run).lower()] = counts.get(label_of(run).lower(), 0) + 1
    how = ", ".join(f"{number:,} {label}" for label, number in sorted(counts.items()))
    return f"No news of {counted(len(others), 'other cluster')}: {how}."


def _plain(said: Banner, groups: Sequence[MailGroup], quiet: str, location: str) -> str:
    lines = [f"{said.word.upper()}: {said.title}", *([f"  {said.sentence}"] if said.sentence else []), ""]
    for group in groups:
        lines.append(f"{group.title} ({group.total:,})")
        for cluster in group.clusters:
            lines += _plain_cluster(cluster)
        lines += [f"  and {group.names}"] if group.names else []
        lines.append("")
    if len(lines) > _MOST_LINES * 4:
        lines = [*lines[: _MOST_LINES * 4], "...", ""]
    lines += [quiet] if quiet else []
    lines += [f"Fleet page: {visible(location, 300)}"] if location else []
    return "\n".join(lines) + "\n"


def _plain_cluster(cluster: MailCluster) -> list[str]:
    where = ", ".join(part for part in (cluster.phase, cluster.figures) if part)
    gates = "  ".join(f"{gate.name}: {gate.answer}" for gate in cluster.gates)
    texts = [
        f"{cluster.label.upper()} {cluster.name}: {cluster.headline}",
        *(f"  {part}" for part in (where, gates) if part),
        *([f"  {cluster.since}"] if cluster.since else []),
        *(f"  * {change}" for change in cluster.changes),
        *(f"  {sentence}" for sentence in cluster.sentences),
        *(f"    {line}" for line in cluster.evidence),
        *(f"  -> {step}" for step in cluster.steps),
        *([f"  {cluster.location}"] if cluster.location else []),
    ]
    return [line for text in texts for line in _wrapped(text)]


def _wrapped(text: str) -> list[str]:
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    first = indent[2:]
    return textwrap.wrap(
        text.strip(),
        _WIDTH,
        initial_indent=f"  {first}",
        subsequent_indent=f"  {indent}",
        break_long_words=False,
        break_on_hyphens=False,
    )
