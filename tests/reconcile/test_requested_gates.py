"""A gate that was asked for opens by evidence only: every gate, verdict and state of the newest run, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from schemas.checks import Phase
from schemas.gates import GATES
from schemas.report import CheckResult, Divergences, Gate, Report
from tests.report.samples import healthy
from tests.report.test_kraft import clean
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.requested_gate import asked_of, shut_gate_in, why_shut
from transforms.report.fleet_model import FleetRun
from transforms.report.run_standing import RunStanding, standing_of, why_gate_is_shut
from transforms.report.text import render_text

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
VERDICTS = ("go", "no_go", "unknown", "not_applicable")
LIMIT = 48.0


def run(hours_ago: float, sequence: int, verdict: str = "clean", failure: str = "") -> FleetRun:
    ended = NOW - timedelta(hours=hours_ago)
    return FleetRun("c", f"run-{sequence}", ended - timedelta(minutes=1), ended, verdict, failure, sequence=sequence)


GIVEN, OLD, FUTURE = run(1, 5), run(49, 5), run(-2, 5)
FAILED = run(0.5, 6, "failed", "there is no folder /nowhere")
STATES: dict[str, list[FleetRun]] = {
    "given": [GIVEN],
    "given, an earlier one failed": [run(2, 4, "failed", "once"), GIVEN],
    "missing": [],
    "missing, one failed": [FAILED],
    "stale": [OLD],
    "dated in the future": [FUTURE],
    "newest failed": [GIVEN, FAILED],
    "newest failed, before by the clock": [GIVEN, replace(FAILED, started_at=NOW - timedelta(days=9))],
}
OPEN_STATES = ("given", "given, an earlier one failed")
CELLS = list(product(GATES, VERDICTS, STATES, (False, True)))


def gate(verdict: str) -> Gate:
    return {
        "no_go": Gate("no_go", ["DUR-05"], "rows were lost"),
        "unknown": Gate("unknown", ["CAP-01"], "too little was collected to decide"),
    }.get(verdict, Gate(verdict, [], ""))


@pytest.mark.parametrize(("name", "verdict", "state", "lenient"), CELLS)
def test_a_stored_gate_opens_by_evidence_only(name: str, verdict: str, state: str, lenient: bool) -> None:
    gates = {each: gate("go") for each in GATES} | {name: gate(verdict)}
    report = replace(healthy(), gates=gates, checks=[])
    shut = why_gate_is_shut(name, report, standing_of(STATES[state], None, NOW), LIMIT, allow_unknown=lenient)
    allowed = ("go", "unknown", "not_applicable") if lenient else ("go",)
    assert (shut == "") == (state in OPEN_STATES and verdict in allowed)
    if shut:
        assert shut.startswith(f"gate {name} is ")


@pytest.mark.parametrize(("name", "verdict", "lenient"), list(product(GATES, VERDICTS, (False, True))))
def test_a_runs_own_gate_opens_by_evidence_only(name: str, verdict: str, lenient: bool) -> None:
    gates = {each: gate("go") for each in GATES} | {name: gate(verdict)}
    is_open = verdict == "go" or (lenient and verdict != "no_go")
    assert (asked_of(gates, name, [], allow_unknown=lenient) == "") is is_open
    said = summary.verdict(Divergences(), [], gates, Phase.DUAL_WRITE, name, allow_unknown=lenient)
    assert said == ("clean" if is_open else "errors")
    # Nobody asked: a gate that could not be judged decides nothing.
    assert summary.verdict(Divergences(), [], gates, Phase.DUAL_WRITE) == "clean"


def test_a_gate_that_no_run_has_judged_is_shut_and_a_wrong_name_is_said() -> None:
    assert why_shut("finalize", None, allow_unknown=True) == "gate finalize is UNKNOWN, not GO: no run has judged it"
    assert asked_of({}, None, []) == ""
    with pytest.raises(ValueError, match="finalise is not a gate"):
        asked_of({}, "finalise", [])


def test_the_reason_is_told() -> None:
    assert why_shut("finalize", gate("unknown")) == (
        "gate finalize is UNKNOWN, not GO (CAP-01: too little was collected to decide)"
    )
    newest = standing_of(STATES["newest failed"], None, NOW)
    assert why_gate_is_shut("finalize", None, newest, LIMIT) == (
        "gate finalize is closed: the newest run, run-6, failed: there is no folder /nowhere"
    )
    old = why_gate_is_shut("finalize", None, standing_of([OLD], None, NOW), LIMIT)
    assert old == "gate finalize is closed: run run-5 is 2.0 days old, 48 h is the limit"
    future = why_gate_is_shut("finalize", None, standing_of([FUTURE], None, NOW), LIMIT)
    assert future.endswith("is dated in the future (2026-11-24 14:00 UTC): its age is unknown")
    assert why_gate_is_shut("finalize", None, None, LIMIT) == "gate finalize is closed: no run has finished"


def lines(runs: list[FleetRun], run_id: str | None = None) -> list[str]:
    standing = standing_of(runs, run_id, NOW)
    assert isinstance(standing, RunStanding)
    return standing.lines(LIMIT)


def test_an_answer_says_of_which_run_it_is() -> None:
    assert lines([GIVEN]) == ["Run run-5 of cluster c, finished 2026-11-24 11:00 UTC (60 min ago)"]
    assert lines([OLD])[0].endswith("(2.0 days ago), OLD")
    assert lines([GIVEN, run(0.6, 6, "failed", "x"), replace(FAILED, sequence=7)])[1] == (
        "  since then 2 runs failed, the last one at 2026-11-24 11:30 UTC: there is no folder /nowhere"
    )
    assert lines([GIVEN, run(0.2, 6)], "run-5")[1] == "  since then 1 run finished: this is not the newest"
    assert standing_of([GIVEN, FAILED], "run-6", NOW) is None
    assert standing_of([GIVEN], "another", NOW) is None


def test_what_an_error_says_moves_no_terminal() -> None:
    loud = run(0.5, 6, "failed", "\x1b[2JCLEAN")
    assert "\x1b" not in "".join(lines([GIVEN, loud]))
    assert "\x1b" not in why_gate_is_shut("finalize", None, standing_of([GIVEN, loud], None, NOW), LIMIT)


@pytest.mark.parametrize("make", [healthy, clean])
def test_a_report_says_that_it_is_an_error_for_the_gate_that_was_asked_for(make: Callable[[], Report]) -> None:
    gates = {each: gate("go") for each in GATES} | {"rollback": gate("unknown")}
    shut = asked_of(gates, "rollback", [])
    told = replace(make(), verdict="errors", exit_code=20, checks=[], gates=gates, notes=["the rest", shut])
    text = " ".join(render_text(told).split())
    assert text.startswith("ERRORS: The requested gate is not open")
    assert f"Requested gate: {shut}." in text
    assert shut_gate_in(told.notes) == shut
    assert shut_gate_in(["gate rollback is open", "no gate at all, not GO"]) == ""


@pytest.mark.parametrize("verdict", VERDICTS)
def test_a_failed_check_that_can_close_the_gate_is_never_allowed(verdict: str) -> None:
    """The phase of a log that can't be read is a guess: its gates look as if they did not apply."""
    failed = CheckResult("CAP-11", "fail", 1, [], list(GATES), "error", "", "", "")
    shut = why_shut("upgrade", gate(verdict), allow_unknown=True, checks=[failed])
    assert bool(shut) == (verdict != "go")
    assert ("CAP-11 failed" in shut) == (verdict == "not_applicable")
    other = replace(failed, gates=["start"])
    assert bool(why_shut("upgrade", gate(verdict), allow_unknown=True, checks=[other])) == (verdict == "no_go")
