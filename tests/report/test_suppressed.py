"""Suppressed differences: shown apart and last with whose word it is, in every form; no number is smaller for them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.settings import MailSettings
from jobs.sinks.mail import recipients_of
from schemas.report import Divergences, Report, RunPoint, Suppression
from tests.report.fleets import run_of
from tests.report.samples import HOSTILE, defective, healthy
from tests.report.test_html import Page
from tests.report.test_mail import body, received
from transforms.report.banner import banner_of
from transforms.report.html import render_html
from transforms.report.json import from_json, to_json
from transforms.report.mail import render_mail
from transforms.report.mail_policy import is_red
from transforms.report.text import render_text
from transforms.report.trend import run_point, trend_table

WORD = Suppression("Ann", "the quota is set again on Monday", "2026-12-31")


def partly(word: Suppression = WORD) -> Report:
    """Two lost quotas; the first one is known."""
    rows = [row for row in defective().divergences.rows if row.entity == "client_quotas"]
    listed = [rows[1], replace(rows[0], suppressed=word)]
    found = Divergences(
        2, {"lost_write": 2}, {"client_quotas": {"lost_write": 2}}, {"new": 2}, listed, 1, {"lost_write": 1}
    )
    base = defective()
    return replace(
        healthy(), verdict="errors", exit_code=20, checks=base.checks[:5], gates=base.gates, divergences=found
    )


def wholly() -> Report:
    report = partly()
    rows = [replace(row, suppressed=WORD) for row in report.divergences.rows]
    found = replace(report.divergences, rows=rows, suppressed=2, suppressed_by_class={"lost_write": 2})
    return replace(report, divergences=found, unsuppressed_verdict="clean")


def test_the_text_lists_it_apart_and_last() -> None:
    text = render_text(partly())
    assert text.startswith("ERRORS: ZooKeeper and KRaft disagree: 2 defects, 1 of them suppressed\n")
    assert "Differences  2, of them 2 defects (2 new, 1 suppressed)" in text
    assert "Differences (1 of 2, 1 suppressed)" in text
    assert (
        text.index("ip=10.0.0.9")
        < text.index("\nSuppressed (1 of 1;")
        < text.index("\n  lost_write  client quotas  client-id=app-9")
    )
    assert "by Ann until 2026-12-31: the quota is set again on Monday" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_page_lists_it_apart_and_last_and_counts_it() -> None:
    words = Page(render_html(partly())).words
    assert "lost_write · 2 of them 1 suppressed" in words
    apart = words[words.index("Suppressed · 1") :]
    assert words.index("ip=10.0.0.9") < words.index("Suppressed · 1") < words.index("client-id=app-9")
    assert "the quota is set again on Monday Ann, until 2026-12-31" in apart
    assert "2 of 2 shown, defects first; 1 suppressed, last" in words
    assert "Suppressed ·" not in Page(render_html(defective())).words


def test_all_suppressed_is_still_red() -> None:
    words = Page(render_html(wholly())).words
    assert "2 defects, all suppressed" in words
    assert "None but those that are suppressed." in words
    assert banner_of(wholly()).tone == "bad"
    assert "Errors" in words


def test_a_suppressed_defect_asks_for_nothing_and_its_check_still_does() -> None:
    asked = {action.why for action in banner_of(wholly()).actions}
    assert "lost_write" in {action.why for action in banner_of(partly()).actions}
    assert "lost_write" not in asked
    assert "DUR-05" in asked


def test_the_mail_says_so_in_subject_and_body() -> None:
    message = received(render_mail(wholly()))
    assert str(message["Subject"]).endswith("ZooKeeper and KRaft disagree: 2 defects, all suppressed")
    words = Page(body(message, "html")).words
    assert "Suppressed 2 of 2, counted and judged like all others" in words
    assert "the quota is set again on Monday (Ann, until 2026-12-31)" in words
    assert "2 of 2 differences, 2 suppressed" in words
    assert "by Ann until 2026-12-31" in body(message, "plain")


@pytest.mark.parametrize(
    ("report", "alarmed"),
    [(partly(), True), (wholly(), False), (replace(wholly(), unsuppressed_verdict="errors"), True)],
)
def test_on_call_is_told_unless_all_that_is_wrong_is_known(report: Report, alarmed: bool) -> None:
    settings = MailSettings(
        host="h", sender="a@example.com", recipients=["team@example.com"], error_recipients=["call@example.com"],
        send="when_red",
    )  # fmt: skip
    assert is_red(run_of(report, "c")), "the team is told of a red run, whatever is suppressed"
    assert ("call@example.com" in recipients_of(report, settings)) is alarmed


def test_report_json_keeps_it() -> None:
    assert from_json(to_json(wholly())) == wholly()


def test_a_hostile_word_is_text() -> None:
    html = render_html(partly(Suppression(HOSTILE, HOSTILE, HOSTILE)))
    assert "<script" not in html
    assert "\x1b" not in render_text(partly(Suppression(HOSTILE, HOSTILE, HOSTILE)))


def point(run_id: str, total: int, **by_class: int) -> RunPoint:
    return RunPoint(run_id, "2026-11-21T06:00:00Z", "clean", "MIGRATION", 3, None, 0, total, by_class)


def test_the_trend_has_a_column_a_class_newest_run_first() -> None:
    table = trend_table([point("a", 5), point("b", 3, lag=2, lost_write=1), point("c", 0)])
    assert table.classes == ["lost_write", "lag"]
    assert [(row.run_id, row.counts) for row in table.rows] == [("c", [0, 0]), ("b", [1, 2]), ("a", [None, None])]
    assert [row.run_id for row in trend_table([point(str(i), 0) for i in range(30)]).rows] == [
        str(i) for i in range(29, 9, -1)
    ]


@pytest.mark.parametrize(
    ("phase", "lag", "unknown"),
    [("dual_write", None, True), ("dual_write", 0, False), ("zookeeper", None, False), (None, None, False)],
)
def test_a_stored_run_of_dual_write_without_a_number_has_an_unknown_lag(
    phase: str | None, lag: int | None, unknown: bool
) -> None:
    row = {**vars(point("a", 2)), "lag_records": lag, "phase": phase}
    assert run_point(row).lag_unknown == unknown


def test_the_page_has_the_trend_in_figures() -> None:
    history = [point("a", 2, lag=2), replace(point("b", 3, lag=2, lost_write=1), defects=1)]
    words = Page(render_html(replace(healthy(), history=history))).words
    assert "Run Verdict Behind Differences Defects lost_write lag" in words
    assert "2026-11-21 06:00:00 UTC clean 3 3 1 1 2 2026-11-21 06:00:00 UTC clean 3 2 0 0 2" in words
