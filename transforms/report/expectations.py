"""The users' expectations for readers: those not met first, with the failing rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.report import ExpectationResult
from transforms.report.printable import counted, value_text, visible

MOST_SHOWN = 20
MOST_ROWS = 20
_ROW_LIMIT = 1_000
_SHORT_ROW = 320
_PREFIX = "expect_"
_NOT_SHOWN = ("column", "column_list", "unexpected_rows_query", "condition_parser")


@dataclass(frozen=True)
class ExpectationView:
    """One expectation that is not met. `rows` are whole rows as text, `few` is their number and the total."""

    tone: str
    suite: str
    table: str
    what: str
    finding: str
    why: str
    rows: list[str]
    few: str
    sql: str


@dataclass(frozen=True)
class ExpectationViews:
    """All expectations: those not met, a bounded number of them, and how many there are of each kind."""

    shown: list[ExpectationView]
    unmet: int
    total: int
    suites: int

    @property
    def left_out(self) -> int:
        """How many of those not met are not shown."""
        return self.unmet - len(self.shown)


def unmet(results: Sequence[ExpectationResult], severity: str | None = None) -> list[ExpectationResult]:
    """Those that are not met, of one severity or of both, errors first."""
    failed = [each for each in results if not each.success and severity in (None, each.severity)]
    return sorted(failed, key=lambda each: each.severity != "error")


def unmet_sentence(results: Sequence[ExpectationResult]) -> str:
    """What is not met, in a sentence; empty when everything is."""
    failed = unmet(results)
    if not failed:
        return ""
    more = f", and {len(failed) - 1:,} more" if len(failed) > 1 else ""
    return f"Expectation not met: {failed[0].table}, {what(failed[0])} (suite {visible(failed[0].suite, 60)}){more}."


def what(result: ExpectationResult) -> str:
    """The expectation in words: its type without the prefix, its columns, its arguments."""
    name = result.expectation.removeprefix(_PREFIX).replace("_", " ")
    query = result.kwargs.get("unexpected_rows_query")
    if query is not None:
        return f"no rows of {visible(' '.join(str(query).split()), 300)}"
    arguments = {key: value for key, value in result.kwargs.items() if key not in _NOT_SHOWN}
    subject = visible(result.column, 200) if result.column else ""
    more = f"({value_text(arguments, 200)})" if arguments else ""
    return " ".join(part for part in (subject, name, more) if part)


def finding(result: ExpectationResult) -> str:
    """What was found: how many rows of how many, another value, or why it could not be judged."""
    if result.problem is not None:
        return f"could not be judged: {visible(result.problem, 300)}"
    if result.unexpected is None:
        return f"found {visible(result.observed or 'something else', 200)}"
    share = "" if result.percent is None or not result.unexpected else f" ({result.percent:.3g} %)"
    return f"{result.unexpected:,} of {counted(result.rows, 'row')}{share}"


def expectation_views(
    results: Sequence[ExpectationResult], rows: int = MOST_ROWS, most: int = MOST_SHOWN, row_limit: int = _ROW_LIMIT
) -> ExpectationViews:
    """The expectations for a page: at most `most` that are not met, with at most `rows` rows each.

    A row longer than `row_limit` characters is shortened in its middle, which is marked.
    """
    failed = unmet(results)
    suites = len({each.suite for each in results})
    return ExpectationViews([_view(each, rows, row_limit) for each in failed[:most]], len(failed), len(results), suites)


def _view(result: ExpectationResult, rows: int, row_limit: int) -> ExpectationView:
    shown = [row_text(row, row_limit) for row in result.sample[:rows]]
    few = f"{len(shown):,} of {result.unexpected:,}" if shown and result.unexpected is not None else ""
    return ExpectationView(
        tone="bad" if result.severity == "error" else "warn",
        suite=visible(result.suite, 100),
        table=visible(result.table, 100),
        what=what(result),
        finding=finding(result),
        why=visible(result.why, 300),
        rows=shown,
        few=few,
        sql=visible(result.sql.replace("\n", " "), 4_000) if result.sql and result.unexpected else "",
    )


def row_text(row: str, limit: int = _ROW_LIMIT) -> str:
    """A row, which is a JSON object, as `name=value, …` in the order of its columns; another text as it is."""
    try:
        loaded: Any = json.loads(row)
    except ValueError:
        return visible(row, limit)
    if not isinstance(loaded, Mapping):
        return value_text(loaded, limit)
    return visible(", ".join(f"{name}={value_text(value, limit)}" for name, value in loaded.items()), limit)


def expectation_lines(
    results: Sequence[ExpectationResult],
    most_rows: int = MOST_ROWS,
    most: int = MOST_SHOWN,
    *,
    all_of_them: bool = True,
) -> list[str]:
    """Lines for a terminal; with `all_of_them` those that are met are listed too."""
    if not results:
        return []
    views = expectation_views(results, most_rows, most, _ROW_LIMIT if all_of_them else _SHORT_ROW)
    state = f"{views.unmet:,} not met" if views.unmet else "all met"
    lines = [f"Expectations ({counted(views.total, 'expectation')} of {counted(views.suites, 'suite')}, {state})"]
    for each in views.shown:
        lines += _lines(each)
    if views.left_out:
        lines.append(f"  ... {views.left_out:,} more not met")
    if all_of_them:
        lines += [_met(each) for each in results if each.success]
    return lines


def _lines(each: ExpectationView) -> list[str]:
    word = "ERROR" if each.tone == "bad" else "WARNING"
    lines = [f"  {word:<8} {each.suite}: {each.table}, {each.what}: {each.finding}"]
    lines += [f"           {each.why}"] if each.why else []
    lines += [f"             {row}" for row in each.rows]
    if each.sql:
        lines.append(f"           {each.few + '; ' if each.few else ''}all of them: {each.sql}")
    return lines


def _met(result: ExpectationResult) -> str:
    rows = counted(result.rows, "row") if result.rows else "no rows to judge by"
    tolerated = f", {result.unexpected:,} of them tolerated" if result.unexpected else ""
    found = f", found {visible(result.observed, 100)}" if result.observed else ""
    return f"  met      {visible(result.suite, 100)}: {result.table}, {what(result)}: {rows}{tolerated}{found}"
