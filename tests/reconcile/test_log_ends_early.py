"""A log that ends before the offset in `/migration`: nobody knows what it would have shown, and nothing says otherwise.

Only the rows of a data folder are compared all the same, at the barrier that the log reaches.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from schemas.report import Divergences, Report
from tests.reconcile.test_checks import NOW, OFFSET, dual_write, in_kraft_mode, with_transactions, zookeeper
from tests.reconcile.test_checks_gates import SECOND, check, gate
from tests.report.samples import healthy
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, LagMeasure, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.report.banner import banner_of

PAST = OFFSET + 3
REASON = f"the log ends at offset {OFFSET}, /migration is at {PAST}: copy the logs again, after ZooKeeper"


def ends_early(facts: Facts | None = None, *, seconds: float = 2) -> Facts:
    """ZooKeeper was copied so long after the log."""
    return replace(
        with_transactions(facts or dual_write()),
        zookeeper=zookeeper(kraft_metadata_offset=PAST),
        compared_at=zookeeper(),
        at_barrier=True,
        newest_znode_time_ms=NOW + round(seconds * SECOND),
        lag=LagMeasure(None, 0.0, -float(seconds), 0),
    )


def reported(facts: Facts) -> Report:
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    found = summary.verdict(Divergences(), checks, gates, facts.phase)
    of_migration = summary.migration(facts)
    return replace(healthy(), checks=checks, gates=gates, verdict=found, lag=summary.lag(facts), migration=of_migration)


@pytest.mark.parametrize("seconds", [1, 2, 3_600])
def test_no_way_back_and_no_end_over_records_that_were_not_read(seconds: float) -> None:
    ready = ends_early(in_kraft_mode(), seconds=seconds)
    assert (gate(ready, "rollback"), gate(ready, "finalize")) == ("unknown", "unknown")
    for check_id in ("RB-02", "RB-08", "FIN-04"):
        assert (check(ready, check_id).verdict, check(ready, check_id).evidence) == ("unknown", [REASON])
    # The same with a log that reaches it.
    assert (gate(in_kraft_mode(), "rollback"), gate(in_kraft_mode(), "finalize")) == ("go", "go")


def test_dual_write_is_judged_by_a_log_that_is_seconds_older() -> None:
    """Files that are copied while they grow: rows are compared at a barrier for this."""
    facts = ends_early()
    assert gate(facts, "dual_write") == "go"
    assert check(facts, "CAP-04").evidence == [
        f"the log ends at offset {OFFSET}, /migration is at {PAST}: rows are compared as of offset {OFFSET}"
    ]
    assert reported(facts).verdict == summary.CLEAN


def test_dual_write_is_not_judged_by_a_log_that_is_minutes_older() -> None:
    facts = ends_early(seconds=61)
    assert gate(facts, "dual_write") == "unknown"
    for check_id in ("CAP-04", "DUR-04"):
        assert (check(facts, check_id).verdict, check(facts, check_id).evidence) == ("unknown", [REASON])
    assert banner_of(reported(facts)).title != "Dual write is healthy"
    patient = replace(facts, capture_skew_limit=120.0)
    assert gate(patient, "dual_write") == "go"


def test_what_was_found_before_the_log_ends_counts() -> None:
    lost = replace(ends_early(), divergences={"lost_write": Sample(2, ("a", "b"))})
    assert (check(lost, "RB-02").verdict, check(lost, "FIN-04").verdict) == ("fail", "fail")
    assert gate(lost, "rollback") == "no_go"


@pytest.mark.parametrize("seconds", [2, 3_600])
def test_the_lag_is_unknown_and_not_zero(seconds: float) -> None:
    report = reported(ends_early(seconds=seconds))
    assert (report.lag.records, report.lag.seconds, report.lag.alive) == (None, None, True)
    assert report.lag.explanation == REASON
    told = " ".join(banner_of(report).sentences)
    assert "ZooKeeper holds every committed record" not in told
    assert f"How far ZooKeeper is behind is unknown: {REASON}." in told


def test_who_has_stopped_to_write_is_told_without_a_number_of_records() -> None:
    """ZooKeeper's other znodes went on for minutes."""
    facts = replace(ends_early(seconds=120), lag=LagMeasure(None, 0.0, -2.0, 0))
    stopped = check(facts, "DUR-04")
    assert stopped.verdict == "fail"
    assert "None" not in stopped.evidence[0]
    assert "0 records" not in stopped.evidence[0]


def test_a_missing_lag_is_no_fault_of_the_audit() -> None:
    assert check(ends_early(), "CAP-10").verdict == "pass"
