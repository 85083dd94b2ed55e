"""The HTML report: one self-contained file, no network, no script, failing items first.

Autoescape is on, every printed text is stripped of invisible characters and bounded, and a content security policy in
the page forbids what a mistake here would still let through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from schemas.report import CheckResult, Gate, Report
from transforms.report import printable, view
from transforms.report.banner import (
    banner_of,
    calm_word,
    defect_count,
    duration,
    in_kraft,
    reach,
    shown_gates,
    state_text,
)
from transforms.report.chart import MOST_RUNS, divergence_chart, lag_chart, moment, series_chart
from transforms.report.compared import UNCOMPARED, UNKNOWN_LAG, lag_is_unknown, phase_of, was_compared
from transforms.report.expectations import expectation_views
from transforms.report.follow_up import TablePlace, explanations, of_checks, of_class
from transforms.report.kips import kips_view
from transforms.report.kraft import kraft_facts
from transforms.report.since import UNKNOWN as SINCE_IS_UNKNOWN
from transforms.report.trend import trend_table
from transforms.report.words import GATE_QUESTIONS, GATE_TITLES, LAG_STATES, MODE_MEANINGS, MODE_NAMES, VERDICT_WORDS

# One of two charts side by side, one that has the row to itself, and a phone: a text is as large in each of them.
_WIDE, _WHOLE_ROW, _NARROW = 540, 1108, 350
# As many points of the lag at the barriers as a run keeps.
_MOST_POINTS = 500
_NOT_REPORTED = Gate("unknown")
_SOMEWHERE = TablePlace()
_NOT_COMPARED = {
    "zookeeper": "Nothing has been copied yet, so there is nothing to compare.",
    "waiting": "Nothing has been copied yet, so there is nothing to compare.",
    "rolled_back": "The cluster was rolled back, so there is nothing to compare.",
    "kraft": "The cluster does not use ZooKeeper, so there is nothing to compare.",
}


def valid_until(report: Report, hours: float | None) -> str:
    """`YYYY-MM-DD HH:MM UTC` until when a report is valid; empty if no validity is configured."""
    if hours is None:
        return ""
    try:
        ended = datetime.fromisoformat(report.finished_at).astimezone(UTC)
        return f"{ended + timedelta(hours=hours):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return ""


_CHECK_ID = re.compile(r"\b([A-Z]{2,5}-\d\d)\b")


@dataclass(frozen=True)
class GateView:
    """One gate as the banner shows it."""

    name: str
    title: str
    words: str
    answer: str
    tone: str
    blocking: view.Bounded[str]


def render_html(report: Report, tables: TablePlace = _SOMEWHERE, valid_hours: float | None = None) -> str:
    """Render a report as one HTML document. Its size is bounded for every report.

    `tables` is the place of the run's tables, for the commands and queries to continue with. The page shows that it is valid
    for `valid_hours` after the run's end: it does not change if later runs fail.
    """
    groups = view.row_groups(report)
    suppressed = view.suppressed_views(report)
    loud, quiet = view.checks_in_order(report)
    unjudged = view.unjudged(report, loud)
    defects = view.defects_in_order(report)
    history = report.history[-MOST_RUNS:]
    series = report.lag_series[-_MOST_POINTS:]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            valid_until=valid_until(report, valid_hours),
            banner=banner_of(report),
            since_is_unknown=SINCE_IS_UNKNOWN,
            defect_count=defect_count(report),
            gates=gate_views(report),
            groups=groups,
            rows_shown=sum(len(group.rows) for group in groups) + len(suppressed.shown),
            suppressed=suppressed,
            compared=was_compared(report),
            no_rows=no_rows_sentence(report),
            by_status={name: report.divergences.by_status.get(name, 0) for name in ("new", "persisting", "resolved")},
            resolved=view.bounded(
                [view.row_view(row) for row in report.resolved[: view.MOST_RESOLVED]],
                view.MOST_RESOLVED,
                len(report.resolved),
            ),
            has_previous=len(report.history) > 1,
            loud=[check for check in loud if check not in unjudged],
            unjudged=unjudged,
            check_ids={check.id for check in report.checks},
            quiet=quiet,
            brokers=view.bounded(view.brokers_in_order(report), view.MOST_BROKERS),
            copies=view.bounded(view.copies_in_order(report), view.MOST_COPIES),
            notes=view.bounded(report.notes, view.MOST_NOTES),
            classes=view.classes_in_order(report),
            open_defects=[defect for defect in defects if defect.exposed or defect.evidence],
            closed_defects=[defect.jira for defect in defects if not defect.exposed and not defect.evidence],
            runs=len(history),
            trend=trend_table(history),
            unknown_lag=UNKNOWN_LAG,
            lag_wide=lag_chart(history, _WIDE),
            lag_narrow=lag_chart(history, _NARROW),
            series=series,
            worst=max(series, key=lambda point: point.seconds, default=None),
            moment=moment,
            series_wide=series_chart(series, _WHOLE_ROW),
            series_narrow=series_chart(series, _NARROW),
            bars_wide=divergence_chart(history, _WIDE),
            bars_narrow=divergence_chart(history, _NARROW),
            kips=kips_view(report),
            mode=MODE_NAMES.get(report.mode, report.mode),
            mode_meaning=MODE_MEANINGS.get(report.mode, ""),
            expectations=expectation_views(report.expectations),
            most_evidence=view.MOST_EVIDENCE,
            most_notes=view.MOST_NOTES,
            in_kraft=in_kraft(report),
            lag_is_unknown=lag_is_unknown(phase_of(report), report.lag.records),
            kraft_facts=kraft_facts(report),
            sql_of_class={group.class_: of_class(report, tables, group.class_) for group in groups},
            explanations={group.class_: explanations(report, tables, group.listed) for group in groups},
            sql_of_checks=of_checks(report, tables),
        )
    )


def gate_views(report: Report) -> list[GateView]:
    """The gates that matter to the cluster, in the order of the migration; one that the report lacks is unknown."""
    return [_gate_view(report, name, report.gates.get(name, _NOT_REPORTED)) for name in shown_gates(report)]


def no_rows_sentence(report: Report) -> str:
    """Why the list of differences is empty: equal sides, or sides that were not compared."""
    if report.divergences.suppressed:
        return "None but those that are suppressed."
    if report.mode in ("kraft_only", "zookeeper_only"):
        return "Only one side was given, so nothing was compared."
    reason = _NOT_COMPARED.get(phase_of(report))
    if reason is not None:
        return reason
    if not was_compared(report):
        return UNCOMPARED
    return "None: both sides hold the same metadata."


@cache
def environment() -> Environment:
    """Make the template environment: autoescape always on, unknown names an error, every text made visible."""
    made = Environment(
        loader=PackageLoader("transforms.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        anchor=printable.anchor,
        check_tone=check_tone,
        check_word=check_word,
        counted=printable.counted,
        duration=duration,
        lag_state=lambda state: LAG_STATES.get(state, state),
        listed=printable.listed,
        number=_number,
        offset=_number,
        prose=prose,
        whole_ids=whole_ids,
        reach=reach,
        sentence=_sentence,
        state_text=state_text,
        reference_parts=view.reference_parts,
        utc=utc,
        value_text=printable.value_text,
        visible=printable.visible,
        yes_no=_yes_no,
    )
    return made


def prose(text: str) -> Markup:
    """A sentence as HTML: what stands between backticks is code, all else is text."""
    parts = printable.visible(text).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )


def whole_ids(text: str) -> Markup:
    """A sentence as HTML in which no line ends within a check's id."""
    parts = _CHECK_ID.split(printable.visible(text))
    return Markup("").join(
        Markup('<span class="nowrap">{}</span>').format(part) if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )


def check_tone(check: CheckResult, report: Report) -> str:
    """Colour of a check: a step that is not due yet warns, a failure alarms."""
    calm = calm_word(report, check)
    if calm is not None:
        return "warn" if calm == "not yet" else "quiet"
    return {"fail": "bad", "warn": "warn", "unknown": "warn", "pass": "good"}.get(check.verdict, "quiet")


def check_word(check: CheckResult, report: Report) -> str:
    """The verdict of a check in a word."""
    return calm_word(report, check) or VERDICT_WORDS.get(check.verdict, check.verdict)


def gate_tone(report: Report, verdict: str) -> str:
    """Colour of a gate: a gate closed in a run without errors is waiting for its turn, not broken."""
    if verdict == "no_go":
        return "bad" if report.verdict == "errors" else "warn"
    return {"go": "good", "unknown": "warn"}.get(verdict, "quiet")


def utc(timestamp: str) -> str:
    """Shorten an ISO time to `YYYY-MM-DD HH:MM:SS UTC`; any other text is shown as it is."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)", timestamp)
    return f"{found[1]} {found[2]} UTC" if found else printable.visible(timestamp, 40)


def _gate_view(report: Report, name: str, gate: Gate) -> GateView:
    return GateView(
        name=name,
        title=GATE_TITLES[name],
        words=_gate_words(name, gate),
        answer=VERDICT_WORDS.get(gate.verdict, gate.verdict),
        tone=gate_tone(report, gate.verdict),
        blocking=view.bounded(gate.blocking, 8),
    )


def _gate_words(name: str, gate: Gate) -> str:
    """The gate's question, and what an open gate was judged without; or why it could not be judged."""
    if gate.verdict == "go" and gate.explanation:
        return f"{GATE_QUESTIONS[name]} {_sentence(gate.explanation)}"
    if gate.verdict == "not_applicable" and gate.explanation:
        # The explanation begins with the gate's name, which the page has as a title.
        why = gate.explanation.removeprefix(f"{name.replace('_', ' ')}: ")
        return _sentence(why)
    return gate.explanation or GATE_QUESTIONS[name]


def _finalize(value: Any) -> Any:
    return printable.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _sentence(text: str) -> str:
    """A phrase written as a sentence."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}."


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _yes_no(value: bool | None) -> str:
    return "-" if value is None else ("yes" if value else "no")
