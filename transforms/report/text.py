"""The report as plain text for a terminal, a log, a mail: at most 100 columns, hostile characters escaped."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from schemas.report import CheckResult, Gate, Report
from transforms.report import view
from transforms.report.banner import (
    Action,
    ReportBanner,
    banner_of,
    calm_word,
    defect_count,
    duration,
    in_kraft,
    reach,
    shown_gates,
    state_text,
)
from transforms.report.compared import NOT_COMPARED, phase_of, was_compared, without_lag
from transforms.report.expectations import expectation_lines
from transforms.report.kraft import kraft_facts
from transforms.report.printable import NAME_LIMIT, anchor, counted, listed, visible
from transforms.report.since import UNKNOWN
from transforms.report.words import LAG_STATES, MODE_NAMES, VERDICT_WORDS

WIDTH = 100
MOST_ROWS = 10
MOST_CHECKS = 15
MOST_EVIDENCE = 3


def render_text(report: Report) -> str:
    """Render the short verdict: where the migration stands, its gates, what fails, what differs, what to do."""
    banner = banner_of(report)
    blocks = [
        _head(report, banner),
        _facts(report),
        _gates(report),
        _steps("What to do", banner.actions),
        _steps("Next, towards finalising", banner.next_steps),
        _checks(report),
        _differences(report),
        _suppressed(report),
        _expectations(report),
        _foot(report),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def first_anchor(report: Report) -> str:
    """Where to look first in the HTML report: the anchor of the gravest check that is open; empty when none is."""
    loud, _ = view.checks_in_order(report)
    faults = [check for check in loud if check.verdict in ("fail", "warn") and calm_word(report, check) is None]
    return f"check-{anchor(faults[0].id)}" if faults else ""


def _head(report: Report, banner: ReportBanner) -> list[str]:
    name = visible(report.cluster, NAME_LIMIT)
    return [
        *_wrapped(f"{banner.label.upper()}: {banner.title}"),
        *_wrapped("" if banner.since == UNKNOWN else banner.since, "  "),
        *_wrapped(" ".join(banner.sentences), "  "),
        *_wrapped(f"Cluster {name}, Kafka {report.kafka_version}, {_how(report)}", "  "),
    ]


def _how(report: Report) -> str:
    return "its metadata log alone" if in_kraft(report) else f"comparison: {MODE_NAMES.get(report.mode, report.mode)}"


def _facts(report: Report) -> list[str]:
    if in_kraft(report):
        return [line for name, value in kraft_facts(report) for line in _wrapped(f"{name:<13}{value}", "", " " * 13)]
    migration = report.migration
    alive = {True: ", alive", False: ", STOPPED", None: ""}[report.lag.alive]
    if report.lag.state in ("silent", "behind", "stopped in order"):
        alive = f", {LAG_STATES.get(report.lag.state, report.lag.state)}"
    records = without_lag(phase_of(report)) if report.lag.records is None else counted(report.lag.records, "record")
    age = f", {duration(report.lag.seconds)}" if report.lag.seconds else ""
    return [
        *_wrapped(f"State        {state_text(migration)}"),
        f"Lag          {records}{age}{alive}",
        f"/migration   {reach(migration)}",
        f"Differences  {_differing(report)}",
    ]


def _differing(report: Report) -> str:
    if not was_compared(report):
        return NOT_COMPARED
    defects = counted(defect_count(report), "defect")
    return f"{report.divergences.total:,}, of them {defects}{_since(report)}"


def _since(report: Report) -> str:
    known = [
        f"{report.divergences.by_status[name]:,} {name}"
        for name in ("new", "persisting", "resolved")
        if report.divergences.by_status.get(name)
    ]
    if report.divergences.suppressed:
        known.append(f"{report.divergences.suppressed:,} suppressed")
    return f" ({', '.join(known)})" if known else ""


def _gates(report: Report) -> list[str]:
    lines = ["Gates"]
    for name in shown_gates(report):
        gate = report.gates.get(name)
        verdict = "unknown" if gate is None else gate.verdict
        lines += _wrapped(f"  {name:<11}{VERDICT_WORDS.get(verdict, verdict):<8}{_why(gate)}", "", "  " + " " * 21)
    return lines


def _why(gate: Gate | None) -> str:
    if gate is None:
        return ""
    if gate.blocking:
        why = f": {gate.explanation}" if gate.verdict == "no_go" and gate.explanation else ""
        return f"  {listed(gate.blocking)}{why}"
    return f"  {gate.explanation}" if gate.verdict == "go" and gate.explanation else ""


def _steps(title: str, steps: list[Action]) -> list[str]:
    if not steps:
        return []
    lines = [title]
    for number, step in enumerate(steps, 1):
        lines += _wrapped(f"{number}. {step.what} ({step.why})", "  ", "     ")
    return lines


def _checks(report: Report) -> list[str]:
    loud, quiet = view.checks_in_order(report)
    if not loud:
        return [f"Checks: all that apply have passed ({len(quiet)} passed or not applicable)"]
    lines = [f"Checks ({len(loud)} open, {len(quiet)} passed or not applicable)"]
    for check in loud[:MOST_CHECKS]:
        lines += _check(report, check)
    return [*lines, *_more(len(loud) - MOST_CHECKS, "checks")]


def _check(report: Report, check: CheckResult) -> list[str]:
    word = calm_word(report, check) or VERDICT_WORDS.get(check.verdict, check.verdict)
    number = f" ({counted(check.violations, 'violation')})" if check.violations else ""
    name = f"{check.id}  {check.title}" if check.title else check.id
    lines = _wrapped(f"  {word:<8} {name}{number}", "", " " * 11)
    for evidence in check.evidence[:MOST_EVIDENCE]:
        lines += _wrapped(visible(evidence, 240), " " * 13)
    return lines


def _differences(report: Report) -> list[str]:
    if not report.divergences.total and not report.divergences.rows:
        return []
    groups = view.row_groups(report, MOST_ROWS)
    shown = sum(len(group.rows) for group in groups)
    known = f", {report.divergences.suppressed:,} suppressed" if report.divergences.suppressed else ""
    lines = [f"Differences ({shown} of {report.divergences.total:,}{known})"]
    for group in groups:
        for row in group.rows:
            lines += _difference(group.class_, row)
    return lines


def _difference(class_: str, row: view.RowView) -> list[str]:
    column = f" · {row.column}" if row.column else ""
    where = ", ".join(part for part in (row.zxid, row.kraft_offset, row.status) if part)
    return [
        *_wrapped(f"{class_}  {row.entity}  {row.key}{column}", "  ", "    "),
        *_wrapped(f"ZooKeeper: {row.zookeeper} | KRaft: {row.kraft} | {where}", "      ", "      "),
    ]


def _suppressed(report: Report) -> list[str]:
    listed_rows = view.suppressed_views(report, MOST_ROWS)
    if not listed_rows.total:
        return []
    lines = [f"Suppressed ({len(listed_rows.shown)} of {listed_rows.total:,}; counted and judged like all others)"]
    for known in listed_rows.shown:
        lines += _difference(known.class_, known.row)
        lines += _wrapped(f"by {known.who} until {known.until}: {known.why}", "      ", "      ")
    return lines


def _expectations(report: Report) -> list[str]:
    lines = expectation_lines(report.expectations, most_rows=MOST_EVIDENCE, most=MOST_CHECKS, all_of_them=False)
    return [part for line in lines for part in _wrapped(line, "", "           ")]


def _foot(report: Report) -> list[str]:
    lines = []
    if report.quarantined:
        lines.append(f"{counted(report.quarantined, 'piece')} of input could not be read (table quarantine)")
    return [*lines, f"Exit code {report.exit_code}"]


def _more(number: int, what: str) -> Iterable[str]:
    return [f"  ... {number:,} more {what}"] if number > 0 else []


def _wrapped(text: str, indent: str = "", next_indent: str | None = None) -> list[str]:
    return textwrap.wrap(
        visible(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if next_indent is None else next_indent,
        drop_whitespace=True,
        replace_whitespace=False,
        break_on_hyphens=False,
    )
