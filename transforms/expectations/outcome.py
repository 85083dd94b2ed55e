"""The library's result for an expectation, as the report shows it, and its effect on a run's verdict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from schemas.report import ExpectationResult, Report
from transforms.expectations.suite import ERROR, WARNING, Expectation, Suite
from transforms.leaks import without_leaks
from transforms.report.printable import visible

MOST_ROWS = 20
_ROW_LIMIT, _PROBLEM_LIMIT = 2_000, 300
_VERDICTS = ("clean", "warnings", "errors")


def outcome(suite: Suite, expectation: Expectation, said: Mapping[str, Any], rows_in_all: int) -> ExpectationResult:
    """One expectation's result for one cluster.

    `said` is the library's result as a dictionary, `rows_in_all` the number of rows of the cluster's run in the table. An
    expectation that could not be judged has failed, with the reason in `problem`.
    """
    found = said.get("result") or {}
    problem = _problem(said.get("exception_info") or {})
    unexpected = found.get("unexpected_count")
    if expectation.type == "unexpected_rows_expectation":
        unexpected = found.get("observed_value")
    observed = found.get("observed_value")
    return ExpectationResult(
        suite=suite.name,
        table=suite.table.full_name,
        expectation=expectation.type,
        column=expectation.column,
        success=bool(said.get("success")) and problem is None,
        severity=expectation.severity,
        rows=rows_in_all,
        unexpected=None if unexpected is None else int(unexpected),
        percent=_percent(found),
        observed=None if observed is None or unexpected is not None else visible(str(observed), 200),
        sample=[visible(json.dumps(value, default=str), 200) for value in found.get("partial_unexpected_list", ())],
        problem=problem,
        why=expectation.why,
        kwargs={name: value for name, value in expectation.kwargs.items() if value is not None},
    )


def accepted(suite: Suite, expectation: Expectation, rows_in_all: int) -> ExpectationResult:
    """The result for a cluster when the rows of all clusters together were accepted."""
    said = {"success": True, "result": {"unexpected_count": 0, "unexpected_percent": 0.0, "observed_value": 0}}
    return outcome(suite, expectation, said, rows_in_all)


def unjudged(suite: Suite, error: Exception) -> ExpectationResult:
    """The result for a suite that could not be judged: not met, with the severity of its most severe expectation."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return ExpectationResult(
        suite=suite.name,
        table=suite.table.full_name,
        expectation="the whole suite",
        column=None,
        success=False,
        severity=ERROR if any(each.severity == ERROR for each in suite.expectations) else WARNING,
        rows=0,
        problem=visible(reason, _PROBLEM_LIMIT),
    )


def is_met(said: Mapping[str, Any]) -> bool:
    """True when the library judged the expectation, and it is met."""
    return bool(said.get("success")) and _problem(said.get("exception_info") or {}) is None


def _percent(found: Mapping[str, Any]) -> float | None:
    percent = found.get("unexpected_percent")
    return None if percent is None else float(percent)


def _problem(result: Mapping[str, Any]) -> str | None:
    """The first exception's text in one line; the library reports one, or one for each of its metrics."""
    for each in (result, *(value for value in result.values() if isinstance(value, Mapping))):
        if each.get("raised_exception"):
            lines = str(each.get("exception_message") or "it could not be evaluated").strip().splitlines()
            return visible(lines[0], _PROBLEM_LIMIT)
    return None


def with_rows(result: ExpectationResult, rows: Sequence[str], sql: str) -> ExpectationResult:
    """The result with rows that fail it, whole, as JSON texts, and the statement that gives all of them."""
    return replace(result, sample=[visible(row, _ROW_LIMIT) for row in rows], sql=sql)


def verdict_of(results: Sequence[ExpectationResult]) -> str:
    """errors, warnings or clean: the gravest expectation that is not met."""
    failed = {result.severity for result in results if not result.success}
    return "errors" if ERROR in failed else "warnings" if failed else "clean"


def without_secrets(results: Sequence[ExpectationResult]) -> list[ExpectationResult]:
    """The results as they may be shown and stored: a text with the form of a secret is withheld."""
    cleaned, _ = without_leaks([vars(each) for each in results])
    return [ExpectationResult(**each) for each in cleaned]


def graver(one: str, other: str) -> str:
    """The graver of two verdicts."""
    return max(one, other, key=_VERDICTS.index)


def added_to(report: Report, results: Sequence[ExpectationResult]) -> Report:
    """A report with the results: they change its verdict, from which its exit code follows, and no gate."""
    verdict = graver(report.verdict, verdict_of(results))
    unsuppressed = report.unsuppressed_verdict
    history = report.history
    if history and history[-1].run_id == report.run_id:
        history = [*history[:-1], replace(history[-1], verdict=verdict)]
    return replace(
        report,
        expectations=[*results],
        verdict=verdict,
        unsuppressed_verdict=graver(unsuppressed, verdict_of(results)) if unsuppressed else "",
        history=history,
    )
