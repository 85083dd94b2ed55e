"""Whom a run tells: always, when red, or on change; a mail that was not sent stays owed, and what persists is told again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.report.fleets import NOW, failed, run_of
from tests.report.samples import defective, healthy, lagging, not_ready, uncompared
from transforms.report.fleet_model import FleetRun
from transforms.report.mail_policy import Decision, LastMail, Policy, changes, decide, last_mail

ALWAYS, RED, CHANGE = Policy("always", 24), Policy("when_red", 24), Policy("on_change", 24)
FINE, LATE, LOSING = run_of(healthy(), "c"), run_of(lagging(), "c"), run_of(defective(), "c")
WAITING = run_of(not_ready(), "c", verdict="clean", label="Not ready")
GONE = failed("c")
# Of one check that FINE did not judge.
PASSING = replace(FINE, passed_checks=(*(FINE.passed_checks or ()), "SEC-03"))
OPEN = replace(FINE, open_checks=(*FINE.open_checks, "SEC-03"))
BLIND = run_of(uncompared(), "c")


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
        (GONE, FINE, "This is the first finished run."),
        (LOSING, replace(LOSING, statuses={"new": 1, "persisting": 4}), "1 new defect."),
        (LOSING, replace(LOSING, statuses={"persisting": 3, "resolved": 2}), "2 defects resolved."),
        (LOSING, replace(settled(LOSING), defects=5000), "Defects: 5 → 5,000."),
        (PASSING, OPEN, "Checks that newly fail or warn: SEC-03."),
        (OPEN, PASSING, "Checks that pass again: SEC-03."),
        (FINE, OPEN, "Checks that fail or warn and were not judged before: SEC-03."),
        (OPEN, FINE, "Checks that failed or warned and are no longer judged: SEC-03."),
        (replace(FINE, phase="waiting"), FINE, "Phase: waiting → dual write."),
    ],
)
def test_what_turned_is_a_change_and_is_said(then: FleetRun, now: FleetRun, said: str) -> None:
    decision = decide(CHANGE, now, [earlier(then)], LastMail("before", NOW))
    assert decision.reason == "change"
    assert said in decision.changes


def test_a_run_that_could_not_compare_repairs_nothing_and_what_persists_is_not_new() -> None:
    """The log's copy was older than ZooKeeper for one run: the same five defects were there before, and are after it."""
    told = changes(BLIND, [earlier(LOSING)], LastMail("before", NOW))
    assert "Defects: 5 → not compared." in told
    assert "Checks that failed or warned and are no longer judged: DUR-05, " in " ".join(told)
    assert not [line for line in told if "pass again" in line or "resolved" in line]
    again = replace(LOSING, statuses={"persisting": 5})
    told = changes(again, [at(LOSING, "a", 24), at(BLIND, "b", 12)], mailed("b"))
    assert "Defects: not compared → 5." in told
    assert "Checks that fail or warn and were not judged before: DUR-05, " in " ".join(told)
    assert not [line for line in told if "new" in line]


def test_a_run_of_a_release_that_stored_no_passed_checks_is_compared_by_its_open_ones() -> None:
    old = replace(FINE, passed_checks=None)
    assert changes(OPEN, [earlier(old)], LastMail("before", NOW)) == ["Checks that newly fail or warn: SEC-03."]


def test_lag_that_comes_and_goes_is_no_change() -> None:
    then = replace(FINE, lag_records=0, divergences=0)
    assert changes(replace(then, lag_records=4, divergences=4), [earlier(then)], LastMail("before", NOW)) == []


def test_a_first_run_is_told() -> None:
    assert decide(CHANGE, FINE, [], None).changes == ("This is the first run.",)


def test_after_a_failed_audit_the_last_judged_run_counts() -> None:
    past = [at(FINE, "a", 24), at(GONE, "b", 12)]
    assert decide(CHANGE, LOSING, past, mailed("b")).changes[:2] == (
        "The audit works again.",
        "Verdict: clean → errors.",
    )


def test_a_mail_that_was_not_sent_is_owed() -> None:
    owed = LastMail("before", NOW, "nothing listens there")
    assert decide(RED, FINE, [earlier(LATE)], owed).reason == "change"
    decision = decide(CHANGE, FINE, [earlier(FINE)], owed)
    assert decision.reason == "change"
    assert decision.changes == ("The mail of run before was not sent: nothing listens there.",)


def test_what_was_owed_is_compared_with_what_was_told() -> None:
    """The mail about the defects could not be sent: who has the next one has not heard of them."""
    past = [at(FINE, "a", 24), at(LOSING, "b", 12)]
    owed = LastMail("b", NOW, "nothing listens there", mailed("a"))
    assert decide(CHANGE, settled(LOSING), past, owed).changes[:2] == (
        "The mail of run b was not sent: nothing listens there.",
        "Verdict: clean → errors.",
    )


def test_what_stands_and_was_never_told_is_told() -> None:
    decision = decide(CHANGE, settled(LOSING), [earlier(LOSING)], None)
    assert (decision.reason, decision.changes) == ("change", ("This is the first mail about this cluster.",))


def test_a_run_of_an_earlier_release_does_not_make_everything_new() -> None:
    old = replace(earlier(FINE), label="", headline="", phase="", gates={}, open_checks=())
    assert changes(replace(FINE, open_checks=("FIN-01",)), [old], LastMail("before", NOW)) == []


# What was told is what the newest mail that was sent told of, not the run before: that one may have told nobody.


def at(run: FleetRun, run_id: str, hours: float) -> FleetRun:
    ended = NOW - timedelta(hours=hours)
    return replace(run, run_id=run_id, started_at=ended - timedelta(seconds=40), finished_at=ended)


def mailed(run_id: str, hours: float = 3) -> LastMail:
    return LastMail(run_id, NOW - timedelta(hours=hours))


@pytest.mark.parametrize("policy", [CHANGE, RED, ALWAYS])
def test_a_change_whose_run_was_stopped_before_its_mail_is_told_by_the_next(policy: Policy) -> None:
    """Clean was told; the run that found lost writes was killed after gold `runs`; the next one finds them persisting."""
    past = [at(FINE, "told", 3), at(LOSING, "killed", 2)]
    decision = decide(policy, settled(LOSING), past, mailed("told"))
    assert decision.wanted
    assert "Verdict: clean → errors." in decision.changes
    assert "3 new defects." in decision.changes


def test_no_reminder_says_that_nothing_changed_when_something_did() -> None:
    """A day later still: what is told is the change, and when it comes round, what has not changed since."""
    past = [
        at(FINE, "told", 30),
        *(at(LOSING if n == 29 else settled(LOSING), f"killed-{n}", n) for n in range(29, 1, -1)),
    ]
    decision = decide(CHANGE, settled(LOSING), past, mailed("told", 30))
    assert (decision.reason, decision.changes[0]) == ("change", "Verdict: clean → errors.")
    assert not any("has changed since" in change for change in decision.changes)


def test_the_next_run_is_quiet_once_the_change_was_told() -> None:
    past = [at(FINE, "old", 4), at(LOSING, "killed", 3), at(settled(LOSING), "told", 2)]
    assert decide(CHANGE, settled(LOSING), past, mailed("told", 2)) == Decision()


def test_a_reminder_names_the_mail_whose_words_still_stand() -> None:
    past = [at(LOSING, "told", 26), *(at(settled(LOSING), f"quiet-{n}", n) for n in (20, 10))]
    decision = decide(CHANGE, settled(LOSING), past, mailed("told", 26))
    assert (decision.reason, decision.changes) == (
        "reminder",
        ("No verdict, gate, check or defect has changed since the mail of 2026-11-20 05:00 UTC.",),
    )


@pytest.mark.parametrize("policy", [CHANGE, RED])
def test_what_came_and_went_untold_is_told(policy: Policy) -> None:
    past = [at(FINE, "told", 3), at(LOSING, "killed", 2)]
    decision = decide(policy, replace(FINE, statuses={"resolved": 5}), past, mailed("told"))
    assert decision.reason == "change"
    assert f"No mail reported run killed of 2026-11-21 04:59 UTC: errors, {LOSING.headline}." in decision.changes
    assert {"3 new defects.", "5 defects resolved."} <= set(decision.changes)


def test_as_many_new_defects_as_resolved_ones_are_a_change() -> None:
    """Five defects as before, and yet one of them is another: the run that found that out told nobody."""
    past = [
        at(LOSING, "told", 3),
        at(replace(LOSING, statuses={"new": 1, "persisting": 4, "resolved": 1}), "killed", 2),
    ]
    decision = decide(CHANGE, settled(LOSING), past, mailed("told"))
    assert decision.changes == ("1 new defect.", "1 defect resolved.")


def test_a_failure_that_came_and_went_untold_is_told() -> None:
    past = [at(FINE, "told", 3), at(GONE, "killed", 2)]
    assert decide(CHANGE, FINE, past, mailed("told")).changes == (
        "No mail reported run killed of 2026-11-21 04:59 UTC: there is no folder /nowhere.",
    )


def test_what_was_found_between_two_equal_failures_is_told() -> None:
    past = [at(FINE, "a", 4), at(GONE, "told", 3), at(LOSING, "killed", 2)]
    (said,) = decide(CHANGE, GONE, past, mailed("told")).changes
    assert said.startswith("No mail reported run killed of ")


def test_what_a_failure_hid_is_told_after_it() -> None:
    past = [at(GONE, "told", 3), at(LOSING, "killed", 2)]
    assert decide(CHANGE, settled(LOSING), past, mailed("told")).changes == (
        "The audit works again.",
        "Verdict: errors.",
    )


def test_quiet_runs_are_not_untold_ones() -> None:
    """Lag alone came and went between two mails; nothing of it was to be told."""
    past = [at(FINE, "told", 3), at(replace(FINE, lag_records=9, divergences=9), "quiet", 2)]
    assert decide(CHANGE, FINE, past, mailed("told")) == Decision()


def test_a_told_run_that_is_kept_no_more_is_told_anew() -> None:
    decision = decide(CHANGE, FINE, [at(FINE, "b", 3)], mailed("gone"))
    assert decision.reason == "change"
    assert decision.changes == ("Run gone, the subject of the mail of 2026-11-21 04:00 UTC, is not in the warehouse.",)


@pytest.mark.parametrize("policy", [CHANGE, RED, ALWAYS])
def test_a_notice_is_told_whatever_the_policy(policy: Policy) -> None:
    decision = decide(policy, FINE, [at(FINE, "told", 3)], mailed("told"), ["The report could not be written."])
    assert decision.wanted
    assert decision.changes == ("The report could not be written.",)


def test_the_last_mail_is_the_newest_and_remembers_what_was_sent() -> None:
    sent, sent_later = LastMail("a", NOW - timedelta(hours=5)), LastMail("b", NOW - timedelta(hours=4))
    owed = LastMail("c", NOW - timedelta(hours=1), "nothing listens there")
    assert last_mail([], NOW) is None
    assert last_mail([owed], NOW) == owed
    assert last_mail([sent_later, sent], NOW).sent.run_id == "b"  # type: ignore[union-attr]
    found = last_mail([owed, sent, sent_later], NOW)
    assert found is not None
    assert (found.run_id, found.problem, found.sent and found.sent.run_id) == ("c", "nothing listens there", "b")


def test_a_mail_of_a_clock_that_was_ahead_is_none() -> None:
    """Else it would be the newest for years, and what it told of the measure of every run."""
    ahead, sent = LastMail("2036", NOW + timedelta(days=3650)), LastMail("a", NOW - timedelta(hours=4))
    assert last_mail([ahead, sent], NOW) == sent
