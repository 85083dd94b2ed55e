"""Several clusters of one run in a terminal: a line each, the worst first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.exit import CRASH, ERRORS, OK, USAGE, WARNINGS, worst
from schemas.report import Lag
from tests.report.samples import HOSTILE, defective, finalised, healthy
from transforms.report.fleet import fleet_table
from transforms.report.html import render_html
from transforms.report.text import render_text

CLUSTERS = {
    "b-clean": replace(healthy(), cluster="b-clean"),
    "a-clean": replace(healthy(), cluster="a-clean"),
    "wrong": replace(defective(), cluster="wrong"),
}


def test_failed_clusters_come_first_then_the_worst_verdicts_then_the_names() -> None:
    places = {"wrong": "reports/wrong/report.html"}
    head, *rows = fleet_table(CLUSTERS, places, {"z-gone": "`kraft.folders`: there is no folder /nowhere"})
    assert head.split() == ["cluster", "phase", "verdict", "gates", "defects", "lag", "report"]
    assert [row.split()[0] for row in rows] == ["z-gone", "wrong", "a-clean", "b-clean"]
    assert rows[0].endswith("`kraft.folders`: there is no folder /nowhere")
    assert rows[1].endswith("reports/wrong/report.html")
    assert " errors " in rows[1]
    assert " NO-GO " in rows[1].replace(":", " ") + " "


def test_a_lag_that_is_unknown_is_not_one_that_does_not_exist() -> None:
    """As of a log that ends before the offset in /migration: `-` stood for both."""
    unmeasured = replace(healthy(), cluster="unmeasured", lag=Lag(None, None, None))
    done = replace(finalised(), cluster="done")
    _, *rows = fleet_table({"unmeasured": unmeasured, "done": done}, {}, {})
    found = {row.split()[0]: row.split() for row in rows}
    assert "unknown" in found["unmeasured"]
    assert found["done"][-1] == "-"
    assert "Lag          unknown" in render_text(unmeasured)
    assert "Lag          n/a" in render_text(done)
    assert "<dt>Lag</dt><dd><b>unknown</b></dd>" in render_html(unmeasured)
    assert "<dt>Lag</dt>" not in render_html(done)


def test_every_cluster_has_its_line() -> None:
    many = {f"c{n:03}": replace(healthy(), cluster=f"c{n:03}") for n in range(300)}
    assert [line.split()[0] for line in fleet_table(many, {}, {})] == ["cluster", *many]


def test_a_name_or_a_reason_cannot_drive_the_terminal() -> None:
    table = fleet_table({HOSTILE: replace(healthy(), cluster=HOSTILE)}, {HOSTILE: HOSTILE}, {"gone": f"{HOSTILE}\nx"})
    assert len(table) == 3
    assert not any(character in line for line in table for character in "\x1b\u202e\n\r")


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], OK),
        ([OK, WARNINGS, OK], WARNINGS),
        ([ERRORS, WARNINGS], ERRORS),
        ([OK, USAGE, ERRORS], USAGE),
        ([USAGE, CRASH], CRASH),
    ],
)
def test_the_worst_cluster_gives_the_exit_code(codes: list[int], expected: int) -> None:
    assert worst(codes) == expected
