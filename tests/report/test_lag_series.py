"""Lag at the barriers of ZooKeeper's transaction logs, drawn and in words."""

from __future__ import annotations

from dataclasses import replace

from schemas.report import LagPoint
from tests.report.samples import healthy
from transforms.report.chart import series_chart
from transforms.report.html import render_html
from transforms.report.json import from_json, to_json

START = 1_795_233_150_000
SERIES = [
    LagPoint(1300, START, 290, 2, 0.012),
    LagPoint(1320, START + 400_000, 300, 412, 312.4),
    LagPoint(1341, START + 401_000, 306, 6, 0.5),
]


def test_the_report_draws_the_series_and_says_its_worst_and_last() -> None:
    page = render_html(replace(healthy(), lag_series=SERIES))
    assert page.count('aria-label="Seconds that changes waited for ZooKeeper, by barrier"') == 2
    words = " ".join(page.split())
    assert "(412 records), in transaction 0x528 at 2026-11-21T03:59:10Z" in words
    assert "last 0.5 s (6 records), in transaction 0x53d" in words


def test_a_report_without_transaction_logs_draws_none() -> None:
    assert "at the barriers" not in render_html(healthy())
    assert str(series_chart([], 540)) == ""


def test_points_stand_where_their_time_is() -> None:
    drawn = str(series_chart(SERIES, 540))
    line = drawn.split('points="')[1].split('"', maxsplit=1)[0]
    x = [float(place.split(",")[0]) for place in line.split()]
    assert x[0] < x[1] < x[2]
    assert x[2] - x[1] < 2, "a second of seven minutes"
    assert str(series_chart(SERIES[:1], 540)).count("<circle") == 1


def test_it_is_in_the_json_and_reports_of_before_have_none() -> None:
    report = replace(healthy(), lag_series=SERIES)
    assert from_json(to_json(report)) == report
    older = to_json(report).replace('"lag_series"', '"unknown_here"')
    assert from_json(older).lag_series == []
