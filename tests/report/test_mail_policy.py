"""Whom a run tells: always, when red, or on change; a mail that was not sent stays owed, and what persists is told again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.report.fleets import NOW, failed, run_of
from tests.report.samples import defective, healthy, lagging, not_ready
from transforms.report.fleet_model import FleetRun
from transforms.report.mail_policy import LastMail, Policy, changes, decide

ALWAYS, RED, CHANGE = Policy("always", 24), Policy("when_red", 24), Policy("on_change", 24)
FINE, LATE, LOSING = run_of(healthy(), "c"), run_of(lagging(), "c"), run_of(defective(), "c")
WAITING = run_of(not_ready(), "c", verdict="clean", label="Not ready")
GONE = failed("c")


def earlier(run: FleetRun, hours: float = 12) -> FleetRun:
    """The same, found a run ago: what was new then persists now."""
    return replace(run, run_id="before", started_at=run.started_at - timedelta(hours=hours))


def settled(run: FleetRun) -> FleetRun:
    return replace(run, statuses={"persisting": sum(run.statuses.values())} if run.statuses else {})


@pytest.mark.parametrize("run", [FINE, LATE, LOSING, WAITING, GONE])
def test_always_is_always(run: FleetRun) -> None:
    assert decide(ALWAYS, run, [earlier(run)], None).wanted


@pytest.mark.parametrize(("run", "red"), [(FINE, False), (LATE, True), (LOSING, True), (WAITING, True), (GONE, True)])
def test_red_is_warnings_errors_a_blocked_start_and_a_failed_audit(run: FleetRun, red: bool) -> None:
    assert decide(RED, run, [earlier(run)], LastMail("before", NOW)).wanted == red


@pytest.mark.parametrize("run", [FINE, LATE, LOSING, WAITING, GONE])
def test_nothing_changed_is_not_told_until_it_is_time_to_remind(run: FleetRun) -> None:
    before = [earlier(run)]
    soon, later = LastMail("before", NOW - timedelta(hours=23)), LastMail("before", NOW - timedelta(hours=26))
    assert not decide(CHANGE, settled(run), before, soon).wanted
    again = decide(CHANGE, settled(run), before, later)
    assert again.reason == ("" if run is FINE else "reminder")


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (FINE, LOSING, "Verdict: clean → errors."),
        (LOSING, FINE, "Verdict: errors → clean."),
        (LATE, replace(FINE, statuses={}), "Gate rollback: NO-GO → GO."),
        (LATE, GONE, "The audit failed: there is no folder /nowhere"),
        (GONE, FINE, "This is the first run that came to its end."),
        (LOSING, replace(LOSING, statuses={"new": 1, "persisting": 4}), "1 new defect."),
        (LOSING, replace(LOSING, statuses={"persisting": 3, "resolved": 2}), "2 defects resolved."),
        (LOSING, replace(settled(LOSING), defects=5000), "Defects: 5 → 5,000."),
        (FINE, replace(FINE, open_checks=(*FINE.open_checks, "SEC-03")), "Checks that fail or warn now: SEC-03."),
        (replace(FINE, open_checks=("SEC-03", *FINE.open_checks)), FINE, "Checks that no longer do: SEC-03."),
        (replace(FINE, phase="waiting"), FINE, "Phase: waiting → dual write."),
    ],
)
def test_what_turned_is_a_change_and_is_said(then: FleetRun, now: FleetRun, said: str) -> None:
    decision = decide(CHANGE, now, [earlier(then)], LastMail("before", NOW))
    assert decision.reason == "change"
    assert said in decision.changes


def test_lag_that_comes_and_goes_is_no_change() -> None:
    then = replace(FINE, lag_records=0, divergences=0)
    assert changes(replace(then, lag_records=4, divergences=4), [earlier(then)]) == []


def test_a_first_run_is_told() -> None:
    assert decide(CHANGE, FINE, [], None).changes == ("This is the first run.",)


def test_after_a_failed_audit_the_last_judged_run_counts() -> None:
    past = [earlier(FINE, 24), earlier(GONE, 12)]
    assert decide(CHANGE, LOSING, past, LastMail("x", NOW)).changes[:2] == (
        "The audit works again.",
        "Verdict: clean → errors.",
    )


def test_a_mail_that_was_not_sent_is_owed() -> None:
    owed = LastMail("before", NOW, "nothing listens there")
    assert decide(RED, FINE, [earlier(LATE)], owed).reason == "change"
    decision = decide(CHANGE, FINE, [earlier(FINE)], owed)
    assert decision.reason == "change"
    assert decision.changes == ("The mail of run before was not sent: nothing listens there.",)


def test_what_stands_and_was_never_told_is_told() -> None:
    assert decide(CHANGE, settled(LOSING), [earlier(LOSING)], None).reason == "reminder"


def test_a_run_of_an_earlier_release_does_not_make_everything_new() -> None:
    old = replace(earlier(FINE), label="", headline="", phase="", gates={}, open_checks=())
    assert changes(replace(FINE, open_checks=("FIN-01",)), [old]) == []
