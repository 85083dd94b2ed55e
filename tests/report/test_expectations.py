"""Expectations in a report: what is not met is seen in text, page and mail, bounded and harmless; they close no gate."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from schemas.report import ExpectationResult, Report
from tests.report.samples import HOSTILE, HUGE, defective, healthy
from transforms.expectations.outcome import added_to, verdict_of
from transforms.report.banner import banner_of
from transforms.report.expectations import expectation_lines, expectation_views
from transforms.report.html import render_html
from transforms.report.json import from_json, to_json
from transforms.report.mail import SIZE_LIMIT, render_mail
from transforms.report.text import render_text


def unmet(number: int = 1, **more: Any) -> ExpectationResult:
    rows = [json.dumps({"topic": f"t{number}-{row}", "replicas": [row]}) for row in range(20)]
    result = ExpectationResult(
        suite="house_rules",
        table="silver.partitions",
        expectation="expect_column_values_to_be_between",
        column="partition",
        success=False,
        severity="error",
        rows=10_000,
        unexpected=4_312,
        percent=43.12,
        sample=rows,
        sql="WITH batch AS (SELECT * FROM t)\nSELECT * FROM batch WHERE partition < 0",
        kwargs={"column": "partition", "min_value": 0},
    )
    return replace(result, **more)


MET = unmet(success=True, unexpected=0, percent=0.0, sample=[], sql=None)


def with_results(report: Report, *results: ExpectationResult) -> Report:
    return added_to(report, results)


@pytest.mark.parametrize(
    ("results", "verdict", "title"),
    [
        ([MET], "clean", None),
        ([unmet(severity="warning"), MET], "warnings", "No defects, 1 expectation not met"),
        ([unmet(), unmet(severity="warning")], "errors", "2 expectations not met"),
    ],
)
def test_the_gravest_decides_the_verdict_and_no_gate(
    results: list[ExpectationResult], verdict: str, title: str | None
) -> None:
    report = with_results(healthy(), *results)
    assert (verdict_of(results), report.verdict, report.gates) == (verdict, verdict, healthy().gates)
    assert banner_of(report).title == (title or banner_of(healthy()).title)


def test_a_defect_stays_the_story() -> None:
    report = with_results(defective(), unmet())
    assert banner_of(report).title == banner_of(defective()).title
    assert "Expectation not met: silver.partitions, partition column values to be between" in " ".join(
        banner_of(report).sentences
    )


def test_what_the_verdict_would_be_without_suppressed_rows_counts_expectations_too() -> None:
    suppressed = replace(defective(), unsuppressed_verdict="clean")
    assert with_results(suppressed, unmet(severity="warning")).unsuppressed_verdict == "warnings"
    assert with_results(healthy(), unmet()).unsuppressed_verdict == ""


def test_rows_are_told_with_how_many_there_are_and_how_to_get_them() -> None:
    report = with_results(healthy(), unmet(), MET)
    text, page = " ".join(render_text(report).split()), render_html(report)
    assert "Expectations (2 expectations of 1 suite, 1 not met)" in text
    assert "4,312 of 10,000 rows (43.1 %)" in text
    assert "3 of 4,312; all of them: WITH batch AS (SELECT * FROM t) SELECT * FROM batch WHERE partition < 0" in text
    assert "topic=t1-0, replicas=[0]" in text
    assert page.count("topic=t1-") == 20
    assert "20 of 4,312; SQL for all of them" in page
    mail = body(report)
    assert "house_rules: silver.partitions" in mail
    assert "topic=t1-0" in mail
    assert any(line.startswith("  met ") for line in expectation_lines(report.expectations))


def test_a_report_without_suites_does_not_speak_of_them() -> None:
    assert "xpectation" not in render_text(healthy()) + render_html(healthy()) + body(healthy())


def test_what_could_not_be_judged_says_why() -> None:
    line = expectation_lines([unmet(unexpected=None, problem="no column `nope`", sample=[])])[1]
    assert line.endswith("could not be judged: no column `nope`")


def test_hostile_rows_and_names_do_no_harm_and_everything_is_bounded() -> None:
    row = json.dumps({"topic": HOSTILE, "other": HUGE})
    hostile = unmet(suite=HOSTILE, column=HOSTILE, why=HOSTILE, sample=[row] * 20, sql=HUGE, problem=HOSTILE)
    report = with_results(healthy(), *[hostile] * 500)
    page, text = render_html(report), render_text(report)
    assert "<script>alert" not in page
    assert "<script>alert" not in body(report)
    for shown in (text, page):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert len(page) < 2_000_000
    assert len(text) < 90_000
    assert len(render_mail(report).as_bytes()) <= SIZE_LIMIT
    assert expectation_views(report.expectations).left_out == 480


def test_results_survive_report_json() -> None:
    report = with_results(healthy(), unmet(), MET)
    assert from_json(to_json(report)) == report


def body(report: Report) -> str:
    parts = [part for part in render_mail(report).walk() if part.get_content_type() == "text/html"]
    return "".join(str(part.get_content()) for part in parts)
