"""The report as an e-mail: the same content in at most 100 KB, with a plain-text part and the trend as an inline picture.

It uses tables and inline styles only, because mail clients remove everything else. `jobs.sinks.mail` adds sender, recipients, date and
message id; this module makes the content.
"""

from __future__ import annotations

from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import SMTP

from schemas.report import Report
from transforms.report import view
from transforms.report.banner import (
    ReportBanner,
    banner_of,
    defect_count,
    duration,
    in_kraft,
    reach,
    state_text,
)
from transforms.report.chart import MOST_RUNS
from transforms.report.compared import NOT_COMPARED, phase_of, was_compared, without_lag
from transforms.report.expectations import expectation_views
from transforms.report.html import environment, gate_views
from transforms.report.kraft import kraft_facts
from transforms.report.mail_policy import Decision, with_notice
from transforms.report.picture import can_draw, trend_png
from transforms.report.printable import counted, first_changes, visible
from transforms.report.since import UNKNOWN
from transforms.report.text import render_text
from transforms.report.words import MODE_NAMES

SIZE_LIMIT = 100_000
SUBJECT_LIMIT = 60
_TEXT_LIMIT = 16_000
_MOST_CHANGES = 12
# Of a mail that no policy was asked about.
_UNASKED = Decision()
_CHART_ID = "trend@kraft-audit"
# (rows, checks, chart): the first that fits is sent; the last one always fits, because all its parts are short.
_FITS = ((12, 10, True), (12, 10, False), (4, 4, False), (0, 0, False))


def render_mail(report: Report, location: str = "", decision: Decision = _UNASKED) -> EmailMessage:
    """Make the message, without sender and recipients; `location` is the full report (a path or address).

    `decision` has the changes since the last mail. Its bytes are at most SIZE_LIMIT: a report that is too long for that
    lists fewer rows, with their total.
    """
    banner = banner_of(report)
    for rows, checks, chart in _FITS[:-1]:
        message = _message(report, banner, location, decision, (rows, checks, chart))
        if len(message.as_bytes()) <= SIZE_LIMIT:
            return message
    return _message(report, banner, location, decision, _FITS[-1])


def subject(report: Report, banner: ReportBanner, decision: Decision = _UNASKED) -> str:
    """The subject line: verdict, cluster, and the banner's title; one line for every name of a cluster."""
    title, label = visible(banner.title, SUBJECT_LIMIT), with_notice(banner.label, report.verdict, [decision])
    return f"[kraft-audit] {label} {visible(report.cluster, SUBJECT_LIMIT)}: {title}"


def _message(
    report: Report, banner: ReportBanner, location: str, decision: Decision, sizes: tuple[int, int, bool]
) -> EmailMessage:
    rows, checks, chart = sizes
    chart = chart and bool(report.history) and not in_kraft(report) and can_draw()
    message = EmailMessage(policy=SMTP)
    message["Subject"] = subject(report, banner, decision)
    message["Auto-Submitted"] = "auto-generated"
    message["X-Kraft-Audit-Verdict"] = visible(report.verdict, 20)
    message.set_content(_plain(report, location, decision.changes))
    message.add_alternative(_html(report, banner, location, decision, (rows, checks, chart)), subtype="html")
    if chart:
        html = message.get_payload()[1]  # type: ignore[index]
        html.add_related(  # type: ignore[union-attr]
            trend_png(report.history), "image", "png", cid=f"<{_CHART_ID}>", disposition="inline", filename="trend.png"
        )
    return message


def _plain(report: Report, location: str, changes: Sequence[str]) -> str:
    text = render_text(report)
    if changes:
        listed = "".join(f"  {visible(change, 300)}\n" for change in first_changes(changes, _MOST_CHANGES))
        first, rest = text.split("\n\n", 1)
        text = f"{first}\n\nSince the last mail\n{listed}\n{rest}"
    if len(text) > _TEXT_LIMIT:
        text = text[:_TEXT_LIMIT].rsplit("\n", 1)[0] + f"\n...\nExit code {report.exit_code}\n"
    return f"{text}Full report: {visible(location, 300)}\n" if location else text


def _html(report: Report, banner: ReportBanner, location: str, decision: Decision, sizes: tuple[int, int, bool]) -> str:
    rows, checks, chart = sizes
    groups = view.row_groups(report, rows)
    loud, _quiet = view.checks_in_order(report)
    return (
        environment()
        .get_template("mail.html.j2")
        .render(
            report=report,
            banner=banner,
            since_is_unknown=UNKNOWN,
            subject=subject(report, banner, decision),
            steps=banner.actions or banner.next_steps,
            gates=gate_views(report),
            facts=_facts(report),
            changes=first_changes(decision.changes, _MOST_CHANGES),
            groups=groups,
            rows_shown=sum(len(group.rows) for group in groups),
            suppressed=view.suppressed_views(report, rows),
            checks=view.bounded(loud, checks),
            expectations=expectation_views(report.expectations, rows, checks),
            chart_id=_CHART_ID if chart else "",
            chart_words=_chart_words(report),
            runs=min(len(report.history), MOST_RUNS),
            location=location,
        )
    )


def _facts(report: Report) -> list[tuple[str, str]]:
    if in_kraft(report):
        return kraft_facts(report)
    lag = report.lag
    behind = without_lag(phase_of(report)) if lag.records is None else counted(lag.records, "record")
    age = f", {duration(lag.seconds)}" if lag.seconds else ""
    status = report.divergences.by_status
    since = ", ".join(f"{status.get(name, 0):,} {name}" for name in ("new", "persisting", "resolved"))
    known = f", {report.divergences.suppressed:,} suppressed" if report.divergences.suppressed else ""
    facts = [
        ("State", state_text(report.migration)),
        ("Lag", behind + age),
        ("/migration", reach(report.migration)),
        *(
            [
                ("Defects", f"{defect_count(report):,} of {counted(report.divergences.total, 'difference')}{known}"),
                ("Since the last run", since),
            ]
            if was_compared(report)
            else [("Defects", NOT_COMPARED)]
        ),
        ("Kafka", f"{report.kafka_version}; comparison: {MODE_NAMES.get(report.mode, report.mode)}"),
    ]
    blocking = [f"{b.broker_id} ({visible(b.mode, 20)})" for b in view.brokers_in_order(report) if b.blocks]
    if blocking:
        more = f" and {len(blocking) - 8} more" if len(blocking) > 8 else ""
        facts.append(("Blocking brokers", ", ".join(blocking[:8]) + more))
    if report.quarantined:
        facts.append(("Quarantined", f"{counted(report.quarantined, 'piece')} of input could not be read"))
    return facts


def _chart_words(report: Report) -> str:
    behind = [point.lag_records for point in report.history if point.lag_records is not None]
    return f"Lag over the last runs, at most {max(behind):,} records" if behind else "Differences over the last runs"
