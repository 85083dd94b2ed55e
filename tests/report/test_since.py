"""Since when a cluster is as it is: by the verdicts of its runs, and unknown where there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.report.samples import defective, healthy
from transforms.report.banner import banner_of
from transforms.report.since import UNKNOWN, since_when
from transforms.report.text import render_text

MONDAY, TUESDAY, WEDNESDAY = (f"2026-11-{day}T06:00:30Z" for day in (16, 17, 18))


@pytest.mark.parametrize(
    ("verdict", "earlier", "said"),
    [
        ("clean", [(MONDAY, "errors")], ""),
        ("errors", [], UNKNOWN),
        ("errors", [(MONDAY, "clean")], "New in this run: the previous one, 2026-11-16 06:00 UTC, was clean."),
        ("warnings", [(MONDAY, "errors")], "New in this run: the previous one, 2026-11-16 06:00 UTC, had errors."),
        (
            "errors",
            [(MONDAY, "clean"), (TUESDAY, "errors"), (WEDNESDAY, "errors")],
            "Errors since 2026-11-17 06:00 UTC (3 runs).",
        ),
        # What was before the stored runs is not known.
        (
            "warnings",
            [(MONDAY, "warnings"), (TUESDAY, "warnings")],
            "Warnings since 2026-11-16 06:00 UTC (3 runs, all that are stored).",
        ),
        # An old error that was repaired meanwhile is another one.
        (
            "errors",
            [(MONDAY, "errors"), (TUESDAY, "clean")],
            "New in this run: the previous one, 2026-11-17 06:00 UTC, was clean.",
        ),
    ],
)
def test_since_when(verdict: str, earlier: list[tuple[str, str]], said: str) -> None:
    assert since_when(verdict, earlier) == said


def test_runs_before_those_that_are_read_may_have_had_the_verdict_as_well() -> None:
    earlier = [(MONDAY, "errors"), (TUESDAY, "errors")]
    assert (
        since_when("errors", earlier, whole=False) == "Errors since 2026-11-16 06:00 UTC or earlier (at least 3 runs)."
    )
    # What was before shows the beginning.
    assert since_when("errors", [(MONDAY, "clean"), *earlier[1:]], whole=False) == (
        "Errors since 2026-11-17 06:00 UTC (2 runs)."
    )


def test_a_report_whose_history_is_full_does_not_tell_its_first_run_as_the_first_stored() -> None:
    report = defective()
    full = [replace(report.history[0], verdict="errors")] * 60
    assert "or earlier (at least 60 runs)" in banner_of(replace(report, history=full)).since
    assert "(59 runs, all that are stored)" in banner_of(replace(report, history=full[1:])).since


def test_a_time_that_is_none_is_shown_as_it_is() -> None:
    assert "the previous one, <b>, was clean" in since_when("errors", [("<b>", "clean")])


def test_the_banner_goes_by_the_runs_before_this_one() -> None:
    report = defective()
    this = report.history[-1]
    assert banner_of(replace(report, history=[this])).since == UNKNOWN
    assert banner_of(replace(report, history=[this, this])).since.startswith("Errors since")
    assert banner_of(healthy()).since == ""
    assert "  Errors since" in render_text(replace(report, history=[this, this]))
