"""Dual write is live, behind, silent or stopped, and every part of a report says the same of it (S§7.3)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.report import CheckResult, Divergences, Report
from tests.reconcile.test_checks import NOW, OFFSET, copy, dual_write
from tests.report.samples import healthy
from transforms.kraft.quorum import plan_read
from transforms.reconcile.judge import summary
from transforms.reconcile.judge.facts import Facts, LagMeasure, Sample
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.liveness import Liveness, LivenessState, liveness, measured_skew
from transforms.reconcile.judge.skew import ClockSkew
from transforms.report.banner import banner_of, is_stopped

SECOND = 1_000
seconds = st.floats(0, 10_000)


@st.composite
def clusters(draw: st.DrawFn) -> Facts:
    """Clusters in dual write with any lag, any silence, any clocks and any limits."""
    records = draw(st.integers(0, 500))
    lag = LagMeasure(
        records,
        draw(seconds) if records else 0.0,
        draw(st.none() | st.floats(-10_000, 10_000)),
        draw(st.integers(0, records)),
        draw(st.none() | seconds),
    )
    snapshot = draw(st.sampled_from([None, OFFSET + 1]))
    copies = [copy(node, producer_snapshot=snapshot) for node in (3000, 3001, 3002)]
    return replace(
        dual_write(),
        copies=copies,
        plan=plan_read(copies),
        lag=lag,
        divergences={"lag": Sample(1, ("a row",))} if lag.changes else {},
        alive_limit=draw(st.sampled_from([1.0, 5.0, 30.0])),
        lag_limit=draw(st.sampled_from([10.0, 60.0, 600.0])),
        captured_at_ms=draw(st.none() | st.integers(NOW - 10_000 * SECOND, NOW + 10_000 * SECOND)),
        written_while_read=draw(st.booleans()),
        reading_ms=draw(st.integers(0, 100 * SECOND)),
        newest_znode_time_ms=draw(st.integers(NOW - 10_000 * SECOND, NOW + 10_000 * SECOND)),
        skew=draw(st.none() | st.builds(ClockSkew, st.floats(-5e6, 5e6), st.floats(0, 1e4), st.just(9))),
    )


def reported(facts: Facts) -> Report:
    checks = run_checks(facts)
    gates = judge_gates(checks, facts)
    verdict = summary.verdict(Divergences(), checks, gates, facts.phase)
    return replace(
        healthy(),
        checks=checks,
        gates=gates,
        verdict=verdict,
        lag=summary.lag(facts),
        migration=summary.migration(facts),
    )


def check(report: Report, check_id: str) -> CheckResult:
    return next(result for result in report.checks if result.id == check_id)


def decided(facts: Facts) -> Liveness:
    now = liveness(facts)
    assert now is not None
    return now


@given(clusters())
def test_headline_gates_checks_and_numbers_never_contradict_each_other(facts: Facts) -> None:
    now, report = decided(facts), reported(facts)
    wrong = now.state in (LivenessState.STOPPED, LivenessState.BEHIND) and not now.in_order
    expected = "fail" if wrong else "pass" if now.state is LivenessState.LIVE else "warn"
    assert check(report, "DUR-04").verdict == expected
    assert (report.gates["dual_write"].verdict == "no_go") == wrong
    assert check(report, "FIN-04").verdict == ("fail" if wrong else "pass")
    if facts.differing("lag").total:
        assert (check(report, "RB-02").verdict == "pass") == (now.state is LivenessState.LIVE)
    assert report.lag.alive == now.alive == (now.state in (LivenessState.LIVE, LivenessState.BEHIND))
    assert is_stopped(report) == (now.state is LivenessState.STOPPED and not now.in_order)
    assert (banner_of(report).title == "Dual write has stopped") == is_stopped(report)


@given(
    zookeeper_ahead=st.integers(-7_200, 7_200),
    log_goes_on=st.sampled_from([0.0, 0.4, 130.0, 4_000.0]),
    read_later=st.sampled_from([0.0, 0.5, 130.0, 9_000.0]),
    measured=st.booleans(),
)
def test_no_clock_hides_a_dead_writer_or_makes_one(
    zookeeper_ahead: int, log_goes_on: float, read_later: float, measured: bool
) -> None:
    """The writer's last sign of life, how long the log went on without it, and how much later ZooKeeper was read."""
    last = NOW - round(log_goes_on * SECOND)
    facts = replace(
        dual_write(),
        lag=LagMeasure(
            records=round(log_goes_on * 2),
            seconds=log_goes_on,
            silence=log_goes_on - zookeeper_ahead,
            changes=0,
            mirrored_age=log_goes_on,
        ),
        zookeeper={**(dual_write().zookeeper or {}), "kraft_metadata_offset": OFFSET - round(log_goes_on * 2)},
        newest_znode_time_ms=last + zookeeper_ahead * SECOND,
        captured_at_ms=NOW + round(read_later * SECOND),
        skew=ClockSkew(zookeeper_ahead * SECOND, 10, 50) if measured else None,
    )
    silent_for = log_goes_on + read_later
    if silent_for < 1:
        assert decided(facts).state is LivenessState.LIVE
    else:
        assert decided(facts).state in (LivenessState.STOPPED, LivenessState.BEHIND)


def test_a_long_walk_makes_no_lag() -> None:
    """A large tree takes minutes to walk: /migration is read first, and the log's end is looked up when it is over."""
    took = 300
    facts = replace(
        dual_write(),
        lag=LagMeasure(600, 299.6, 299.9, 20, 300.0),
        captured_at_ms=NOW - took * SECOND,
        reading_ms=took * SECOND,
        newest_znode_time_ms=NOW - SECOND,
    )
    assert decided(facts).state is LivenessState.LIVE
    assert decided(replace(facts, reading_ms=0)).state is LivenessState.STOPPED


def test_a_writer_that_died_before_a_long_walk_is_not_alive() -> None:
    took = 300
    facts = replace(
        dual_write(),
        lag=LagMeasure(1_000, 499.0, 500.0, 20, 500.0),
        captured_at_ms=NOW - took * SECOND,
        reading_ms=took * SECOND,
        newest_znode_time_ms=NOW - SECOND,
    )
    assert decided(facts).state is LivenessState.STOPPED


def test_the_delay_of_a_mirror_that_lags_is_no_skew() -> None:
    facts = replace(dual_write(), lag=LagMeasure(900, 1_800.0, 0.3, 9), skew=ClockSkew(1_800_000, 10, 50))
    assert measured_skew(facts) is None
    assert decided(facts).state is LivenessState.BEHIND
    assert not any("clock" in note for note in summary.notes(facts))


@pytest.mark.parametrize("ahead", [-3_600, 70, 3_600])
def test_a_clock_of_the_audit_that_is_wrong_stops_nothing_that_wrote_while_it_was_read(ahead: int) -> None:
    """Between the two walks of a bracket `/migration` was written: no clock is needed to see that."""
    facts = replace(dual_write(), captured_at_ms=NOW + ahead * SECOND, written_while_read=True)
    assert decided(facts).state is LivenessState.LIVE
    report = reported(facts)
    assert (check(report, "DUR-04").verdict, check(report, "CAP-05").verdict) == ("pass", "pass")


def test_what_was_written_while_it_was_read_can_be_behind_all_the_same() -> None:
    facts = replace(dual_write(), lag=LagMeasure(900, 1_800.0, 0.3, 9), written_while_read=True)
    assert decided(facts).state is LivenessState.BEHIND


@pytest.mark.parametrize(
    ("silence", "expected"),
    [
        (-3_599.5, "/migration was written after that, so the copy of the log is old"),
        (0.1, "the controllers are not running"),
    ],
)
def test_a_log_that_ends_early_is_an_old_copy_or_a_dead_quorum(silence: float, expected: str) -> None:
    facts = replace(dual_write(), captured_at_ms=NOW + 3_600 * SECOND, skew=ClockSkew(0, 0, 50))
    facts = replace(facts, lag=LagMeasure(0, 0.0, silence, 0))
    (evidence,) = [text for text in check(reported(facts), "CAP-05").evidence if text.startswith("the log ends")]
    assert expected in evidence
