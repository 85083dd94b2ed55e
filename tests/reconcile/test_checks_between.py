"""Between runs: a stale copy, a restored backup and lost metadata are told apart, and nothing else is called so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from schemas.checks import Phase
from schemas.gates import GATES
from tests.reconcile.between_runs import CLAIM, NOW_TOO, again, copies, earlier, two_clusters
from tests.reconcile.kraft_clusters import END, EPOCH, HOUR, NODES, NOW, copy, kraft
from transforms.kraft.quorum import NoUsableLogError, plan_read
from transforms.reconcile.judge.checks.between import cluster_id, known_of
from transforms.reconcile.judge.earlier import EarlierRun, LogKnown, is_comparable
from transforms.reconcile.judge.facts import Facts
from transforms.reconcile.judge.gates import judge_gates, run_checks

BETWEEN = ("RUN-01", "RUN-02", "RUN-03", "RUN-04", "RUN-05")


def verdicts(facts: Facts) -> dict[str, str]:
    return {check.id: check.verdict for check in run_checks(facts) if check.id in (*BETWEEN, "CAP-11")}


def evidence(facts: Facts, check_id: str) -> str:
    return "; ".join(next(check for check in run_checks(facts) if check.id == check_id).evidence)


def not_passed(facts: Facts) -> dict[str, str]:
    return {name: said for name, said in verdicts(facts).items() if said not in ("pass", "not_applicable")}


def test_a_first_run_and_a_single_audit_of_files_are_held_against_nothing() -> None:
    assert set(verdicts(kraft()).values()) == {"pass", "not_applicable"}
    once = again(earlier(cluster_id="another", committed_end_offset=9999), replace(CLAIM, one_off=True, current=False))
    assert all(verdicts(once)[name] == "not_applicable" for name in BETWEEN)


def test_a_cluster_that_went_on_has_nothing_to_say() -> None:
    assert set(verdicts(again()).values()) == {"pass"}


def test_another_cluster_is_said_once_and_its_offsets_are_compared_with_nothing() -> None:
    facts = again(earlier(cluster_id="another", committed_end_offset=9999))
    assert not_passed(facts) == {"RUN-01": "fail"}
    assert "cluster.id is c, but was another up to run 20261122T100000Z-aaaaaa" in evidence(facts, "RUN-01")


def test_an_id_that_nothing_names_any_more_is_unknown_and_one_that_was_never_known_is_nothing() -> None:
    nameless = again(**copies(cluster_id=None))
    assert verdicts(nameless)["RUN-01"] == "unknown"
    assert verdicts(again(earlier(cluster_id=None)))["RUN-01"] == "not_applicable"


def test_a_copy_that_is_older_than_the_last_one_closes_every_gate() -> None:
    facts = again(earlier(committed_end_offset=END + 500, log_end_offset=END + 500, newest_append_time=NOW + HOUR))
    assert not_passed(facts) == {"RUN-02": "fail"}
    assert "the copy is older than that run's copy, or a backup was restored" in evidence(facts, "RUN-02")
    assert "RUN-02" in judge_gates(run_checks(facts), facts)["upgrade"].blocking
    for check in run_checks(facts):
        if check.id in BETWEEN:
            assert tuple(check.gates) == GATES


def test_less_that_is_proved_committed_is_no_falling_end() -> None:
    """One controller's copy proves less than three: the log has what was committed, and more."""
    alone = [copy(3000, checkpoints=())]
    facts = again(earlier(committed_end_offset=END - 1), copies=alone, plan=plan_read(alone), committed=None)
    assert verdicts(facts)["RUN-02"] == "pass"


@pytest.mark.parametrize(("dated", "verdict"), [(False, "fail"), (True, "warn")])
def test_an_older_copy_that_the_configuration_dates_is_a_warning(dated: bool, verdict: str) -> None:
    facts = again(earlier(committed_end_offset=END), replace(CLAIM, dated=dated))
    assert verdicts(facts)["RUN-02"] == verdict


def test_metadata_that_was_lost_and_written_anew_has_other_epochs() -> None:
    was = earlier(committed_end_offset=1700, leader_epochs=((EPOCH, 0), (EPOCH + 1, 1200)))
    longer = again(was)
    assert not_passed(longer) == {"RUN-03": "fail"}
    assert "at offset 1700 has epoch 3; in run 20261122T100000Z-aaaaaa it had epoch 4" in evidence(longer, "RUN-03")
    shorter = again(replace(was, log=replace(was.log, committed_end_offset=END + 9)))
    assert not_passed(shorter) == {"RUN-02": "fail", "RUN-03": "fail"}
    assert "metadata was lost and written again" in evidence(shorter, "RUN-02")


def test_epochs_that_either_run_does_not_know_tell_nothing() -> None:
    assert verdicts(again(earlier(leader_epochs=())))["RUN-03"] == "pass"
    pruned = [copy(node, log_start=1450, epoch_starts=((EPOCH + 1, 1450),), last_epoch=EPOCH + 1) for node in NODES]
    assert verdicts(again(copies=pruned, plan=plan_read(pruned)))["RUN-03"] == "pass"


def begun_anew(phase: Phase, **was: int) -> Facts:
    """The log began after all that the earlier run had read."""
    before = earlier(newest_append_time=NOW - 2 * HOUR, **was)
    return replace(again(before, log_begun_ms=NOW - HOUR), phase=phase)


@pytest.mark.parametrize(
    ("phase", "verdict"),
    [(Phase.KRAFT, "fail"), (Phase.FINALIZED, "fail"), (Phase.DUAL_WRITE, "warn"), (Phase.WAITING, "warn")],
)
def test_controllers_that_were_formatted_anew_may_be_so_only_beside_zookeeper(phase: Phase, verdict: str) -> None:
    longer, shorter = begun_anew(phase), begun_anew(phase, committed_end_offset=END + 1)
    assert not_passed(longer) == {"RUN-03": verdict}
    assert not_passed(shorter) == {"RUN-02": verdict, "RUN-03": verdict}
    assert "the log was started again at" in evidence(shorter, "RUN-02")


def test_a_rolled_back_clusters_controllers_are_stopped() -> None:
    stopped = replace(again(earlier(NOW_TOO), replace(CLAIM, now=NOW + 99 * HOUR)), phase=Phase.ROLLED_BACK)
    assert not_passed(stopped) == {}


@pytest.mark.parametrize(
    ("hours", "dated", "verdict"),
    [(0, False, "pass"), (47, False, "pass"), (49, False, "fail"), (49, True, "not_applicable")],
)
def test_a_log_stands_still_when_runs_hours_apart_see_the_same_end(hours: int, dated: bool, verdict: str) -> None:
    claim = replace(CLAIM, now=NOW + hours * HOUR, dated=dated)
    before = EarlierRun("earlier", NOW_TOO, NOW)
    assert verdicts(again(before, claim))["RUN-04"] == verdict
    # One record more, and it has moved.
    moved = EarlierRun("earlier", replace(NOW_TOO, log_end_offset=END - 2), NOW)
    assert verdicts(again(moved, claim))["RUN-04"] == ("not_applicable" if dated else "pass")


@pytest.mark.parametrize("level", [None, 4, 5])
def test_before_no_ops_an_idle_log_stands_still(level: int | None) -> None:
    features = {} if level is None else {"metadata.version": level}
    facts = again(
        EarlierRun("earlier", NOW_TOO, NOW), replace(CLAIM, now=NOW + 99 * HOUR), features=features, levels=()
    )
    expected = "not_applicable" if level == 4 else "fail"
    assert (verdicts(facts)["RUN-04"], verdicts(facts)["RUN-05"]) == (expected, expected)


@pytest.mark.parametrize(
    ("hours", "changes", "verdict"),
    [
        (47, {}, "pass"),
        (49, {}, "fail"),
        (49, {"current": False}, "not_applicable"),
        (49, {"dated": True}, "not_applicable"),
        (49, {"one_off": True}, "not_applicable"),
        (49, {"stale_after": 72 * 3600.0}, "pass"),
    ],
)
def test_only_a_log_that_claims_to_be_of_now_is_too_old(hours: int, changes: dict[str, object], verdict: str) -> None:
    claim = replace(CLAIM, now=NOW + hours * HOUR, **changes)  # type: ignore[arg-type]
    assert verdicts(kraft(claim=claim))["RUN-05"] == verdict


@pytest.mark.parametrize(
    ("seconds", "changes", "verdict"),
    [
        (299, {}, "pass"),
        (301, {}, "unknown"),
        (30 * 86_400, {}, "unknown"),
        # Records that were appended while the sources were read are newer than the run.
        (1_800, {"read_by": NOW - 200_000}, "pass"),
        (1_800, {"read_by": NOW - 400_000}, "unknown"),
        (30 * 86_400, {"current": False}, "not_applicable"),
        (30 * 86_400, {"dated": True}, "not_applicable"),
    ],
)
def test_a_record_of_the_future_does_not_show_how_old_the_log_is(
    seconds: int, changes: dict[str, object], verdict: str
) -> None:
    claim = replace(CLAIM, now=NOW - seconds * 1_000, **changes)  # type: ignore[arg-type]
    assert verdicts(kraft(claim=claim))["RUN-05"] == verdict


def test_whose_clock_is_wrong_is_not_known() -> None:
    facts = kraft(claim=replace(CLAIM, now=NOW - 30 * 86_400_000))
    assert "720 hours after this machine's clock: one of the two clocks is wrong" in evidence(facts, "RUN-05")
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "unknown"
    early = replace(facts, features={"metadata.version": 4}, levels=())
    assert verdicts(early)["RUN-05"] == "not_applicable"


@pytest.mark.parametrize(
    ("minutes", "told"),
    [
        (1, "1 minute ago"),
        (40, "40 minutes ago"),
        (90, "90 minutes ago"),
        (120, "2 hours ago"),
        (2_940, "49 hours ago"),
    ],
)
def test_how_long_ago_is_told_in_a_unit_that_fits(minutes: int, told: str) -> None:
    claim = replace(CLAIM, now=NOW + minutes * 60_000, stale_after=30.0)
    assert f", {told} by this machine's clock" in evidence(kraft(claim=claim), "RUN-05")
    still = again(EarlierRun("earlier", NOW_TOO, NOW), claim)
    assert f"as it did {told}:" in evidence(still, "RUN-04")


def test_a_copy_of_another_log_with_the_same_cluster_id_closes_every_gate() -> None:
    """Two of three controllers were formatted and began again: the log that is read is not the one that the quorum has."""
    why = "it ends at offset 44 in epoch 2, and so is of another log"

    def of(**how: Any) -> Facts:
        copies = kraft().copies
        return kraft(copies=tuple(each if each.controller_id == NODES[0] else replace(each, **how) for each in copies))

    assert verdicts(of(problem=why))["CAP-11"] == "pass", "a copy that can't be used for another reason"
    facts = of(problem=why, other_log=True)
    assert verdicts(facts)["CAP-11"] == "fail"
    assert evidence(facts, "CAP-11") == f"/logs/{NODES[1]}: {why}; /logs/{NODES[2]}: {why}"
    assert "CAP-11" in judge_gates(run_checks(facts), facts)["upgrade"].blocking


def test_copies_of_two_clusters_make_no_plan_and_no_majority() -> None:
    facts = two_clusters()
    with pytest.raises(NoUsableLogError, match=r"cluster.id another in /logs/other; cluster.id c in /logs/3000"):
        plan_read(facts.copies)
    assert cluster_id(facts) is None
    assert verdicts(facts)["CAP-11"] == "fail"
    assert verdicts(replace(facts, earlier=earlier(), claim=CLAIM))["RUN-01"] == "not_applicable"
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "no_go"


def test_a_run_leaves_what_the_next_one_is_held_against() -> None:
    left = known_of(kraft())
    assert left == LogKnown("c", END - 1, END - 1, NOW, ((EPOCH, 0),))
    row = {**left.row(), "run_id": "r", "unmoved_since": None}
    assert EarlierRun.of_row(row) == EarlierRun("r", left)


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({}, True),
        ({"RUN-04": "fail", "RUN-05": "fail"}, True),
        ({"RUN-01": "fail"}, False),
        ({"RUN-02": "fail"}, False),
        ({"RUN-03": "fail"}, False),
        ({"CAP-11": "fail"}, False),
        ({"RUN-02": "warn", "RUN-03": "pass"}, False),
        ({"RUN-02": "warn", "RUN-03": "warn"}, True),
        ({"RUN-02": "pass", "RUN-03": "warn"}, True),
    ],
)
def test_later_runs_are_held_against_the_last_one_whose_log_was_the_clusters_own(
    found: dict[str, str], kept: bool
) -> None:
    assert is_comparable(found) is kept
