"""Suites in a run and afterwards: what they make of reports, tables and exit codes, and that they close no gate."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.cli import main
from schemas.gold import EXPECTATIONS
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from transforms.report.html import render_html
from transforms.report.text import render_text

pytestmark = pytest.mark.slow
SHIPPED = str(Path(__file__).parents[2] / "conf" / "expectations" / "*.json")
RETENTION = {
    "name": "house_rules",
    "meta": {"table": "silver.partitions", "where": "source = 'kraft'"},
    "expectations": [
        {
            "type": "unexpected_rows_expectation",
            "kwargs": {"unexpected_rows_query": "SELECT * FROM {batch} WHERE size(replicas) < 9"},
            "meta": {"severity": "warning", "why": "nine replicas each"},
        },
        {"type": "expect_column_values_to_not_be_null", "kwargs": {"column": "isr"}},
    ],
}


def _expecting(stage: str, folder: Path, *more: str) -> Content:
    return settings_content(capture("3.9.1", stage), folder, expectations=[SHIPPED, *more])


@in_fleet("expecting-healthy")
def _healthy(folder: Path) -> Content:
    suite = folder / "house.json"
    suite.write_text(json.dumps(RETENTION))
    return _expecting("9", folder, str(suite))


@in_fleet("expecting-broken")
def _broken(folder: Path) -> Content:
    return _expecting("quota-removal", folder)


def test_the_shipped_suites_are_met_by_a_healthy_cluster_and_a_house_rule_is_not(
    audited: Callable[[str], Audit], audit_of: Callable[[str, str], Audit]
) -> None:
    report, plain = audited("expecting-healthy").report, audit_of("3.9.1", "9").report
    assert len({each.suite for each in report.expectations}) == 8
    (unmet,) = [each for each in report.expectations if not each.success]
    partitions = report.counts["partitions"]["kraft"]
    assert (unmet.suite, unmet.severity, unmet.unexpected, unmet.rows) == (
        "house_rules",
        "warning",
        partitions,
        partitions,
    )
    assert len(unmet.sample) == 20
    assert {"topic", "partition", "replicas", "isr"} <= json.loads(unmet.sample[0]).keys()
    assert (plain.verdict, plain.expectations) == ("clean", [])
    assert (report.verdict, report.exit_code, report.history[-1].verdict) == ("warnings", 10, "warnings")
    assert report.gates == plain.gates
    text = " ".join(render_text(report).split())
    assert "WARNINGS: No defects, 1 expectation not met" in text
    assert f"3 of {partitions}; all of them: WITH batch AS (SELECT * FROM" in text
    assert f"20 of {partitions}; </summary>" not in render_html(report)
    assert f"20 of {partitions}; SQL for all of them" in render_html(report)


def test_a_defect_is_not_as_expected_and_the_results_are_a_table(audited: Callable[[str], Audit]) -> None:
    result = audited("expecting-broken")
    unmet = {each.suite: each for each in result.report.expectations if not each.success}
    assert unmet.keys() == {"gold_defects", "gold_gates"}
    assert unmet["gold_defects"].unexpected == 2
    assert {json.loads(row)["class"] for row in unmet["gold_defects"].sample} == {"lost_write"}
    assert result.report.exit_code == 20
    stored = {(row["suite"], row["expectation"], row["column"], row["success"]) for row in result.rows(EXPECTATIONS)}
    assert stored == {(e.suite, e.expectation, e.column, e.success) for e in result.report.expectations}
    sql = str(unmet["gold_defects"].sql)
    assert result.warehouse.spark.sql(sql).count() == 2


@pytest.mark.parametrize(("severity", "code"), [("error", 20), ("warning", 10)])
def test_a_finished_run_is_judged_by_a_suite_later_on(
    audited: Callable[[str], Audit], tmp_path: Path, capsys: pytest.CaptureFixture[str], severity: str, code: int
) -> None:
    result = audited("3.9.1-9")
    suite = {**RETENTION, "name": "later"}
    suite["expectations"] = [{**RETENTION["expectations"][0], "meta": {"severity": severity}}]  # type: ignore[index]
    path = tmp_path / "later.json"
    path.write_text(json.dumps(suite))
    asked = ["expect", str(path), "--warehouse", result.warehouse.root, "--cluster", result.cluster]
    assert main([*asked, "--run", result.run_id]) == code
    said = capsys.readouterr().out
    partitions = result.report.counts["partitions"]["kraft"]
    assert f"{partitions} of {partitions} rows" in said
    assert "VERSION AS OF" in said
    rows = result.warehouse.read(EXPECTATIONS).where(f"run_id = '{result.run_id}' AND cluster = '{result.cluster}'")
    # Asked twice, stored once.
    assert [(row["suite"], row["severity"]) for row in rows.collect()] == [("later", severity)]
