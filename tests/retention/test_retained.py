"""What retention lets go: by age, and never what the next run continues from, what is held, or what is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transforms.retention import (
    NEWEST_RUNS,
    UNTIL_FINALISED,
    Chosen,
    KnownRun,
    Part,
    Retained,
    Retention,
    begun_at,
    chosen,
    is_on_hold,
    retained,
)

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def run(days: float, **more: object) -> KnownRun:
    """A finished run that began so many days ago."""
    at = NOW - timedelta(days=days)
    values: dict[str, object] = {"phase": "dual_write", "end": ("c", round(days), 1), **more}
    return KnownRun(f"{at:%Y%m%dT%H%M%SZ}-abcdef", at, finished=True, **values)  # type: ignore[arg-type]


def staying(found: Retained, part: Part, runs: Sequence[KnownRun]) -> list[int]:
    """Ages in days of the runs whose rows of this part stay."""
    return [round((NOW - each.started_at) / timedelta(days=1)) for each in runs if found.stays(part, each.run_id, None)]


HOURLY_YEARS = [run(days) for days in range(900, 0, -1)]


def test_what_was_read_stays_for_a_month_and_what_was_judged_for_two_years() -> None:
    found = retained(HOURLY_YEARS, Retention(), NOW)
    assert staying(found, Part.DETAILS, HOURLY_YEARS) == list(range(30, 0, -1))
    assert staying(found, Part.JUDGED, HOURLY_YEARS) == list(range(730, 0, -1))


def test_single_changes_of_partitions_stay_for_a_quarter_and_no_longer_than_what_was_judged() -> None:
    found = retained(HOURLY_YEARS, Retention(hold=(HOURLY_YEARS[0].run_id,)), NOW)
    assert staying(found, Part.CHANGES, HOURLY_YEARS) == [900, *range(90, 0, -1)]
    assert found.days_from == "2025-01-01"
    short = retained(HOURLY_YEARS, Retention(judged_days=40), NOW)
    assert staying(short, Part.CHANGES, HOURLY_YEARS) == list(range(40, 0, -1))
    held = retained(HOURLY_YEARS, Retention(hold=(UNTIL_FINALISED,)), NOW)
    assert not held.days_from
    assert held.stays(Part.CHANGES, HOURLY_YEARS[0].run_id, None)


def test_the_newest_finished_run_and_the_newest_of_the_own_log_stay_whatever_their_age() -> None:
    own, foreign = run(5000), run(4000, end=None)
    failed = replace(run(3000), finished=False, end=None)
    found = retained([run(6000), own, foreign, failed], Retention(), NOW)
    for part in Part:
        assert staying(found, part, [run(6000), own, foreign])[-2:] == [5000, 4000], part
    assert staying(found, Part.DETAILS, [run(6000), failed]) == []


def test_the_newest_run_that_read_the_log_stays_beside_later_ones_that_were_given_none() -> None:
    """The next run's log is compared with its end (`jobs.run.earlier_runs.earlier_run`)."""
    read, *of_zookeeper = run(5000), *(run(4000 - days, end=("c", None, None)) for days in range(NEWEST_RUNS + 5))
    found = retained([run(6000), read, *of_zookeeper], Retention(), NOW)
    for part in Part:
        assert staying(found, part, [run(6000), read]) == [5000], part


def test_rows_that_a_report_shows_the_course_of_stay_in_runs_alone() -> None:
    runs = [run(2000 + days) for days in range(200, 0, -1)]
    found = retained(runs, Retention(), NOW)
    assert staying(found, Part.RUN, runs) == list(range(2000 + NEWEST_RUNS, 2000, -1))
    assert staying(found, Part.JUDGED, runs) == [2001]


def test_what_the_newest_run_goes_on_from_stays_and_the_records_below_it() -> None:
    first, second = run(900), run(800)
    second = replace(second, builds_on=frozenset({first.run_id}))
    middle = run(700)
    newest = run(40, needs=frozenset({second.run_id}), builds_on=frozenset({second.run_id}))
    runs = [first, second, middle, newest]
    found = retained(runs, Retention(), NOW)
    assert staying(found, Part.STATE, runs) == [800, 40]
    assert staying(found, Part.LOG, runs) == [900, 800, 40]
    assert staying(found, Part.RUN, [first, second]) == [900, 800]
    assert staying(found, Part.DETAILS, runs) == [40]


def test_rows_stay_that_the_state_of_a_run_is_made_of_whose_details_stay() -> None:
    bases = [run(900), run(800), run(700)]
    ids = [each.run_id for each in bases]
    old = run(60, chain=frozenset(ids[:2]))
    held = run(50, chain=frozenset({ids[0], ids[2]}))
    newest = run(40, chain=frozenset({ids[1]}))
    runs = [*bases, old, held, newest]
    found = retained(runs, Retention(), NOW)
    assert staying(found, Part.CHAIN, runs) == [800, 40]
    assert staying(found, Part.DETAILS, runs) == [40]
    # Rows of runs that gold does not know are taken for those of runs that died.
    assert 800 in staying(found, Part.RUN, runs)
    found = retained(runs, Retention(hold=(held.run_id,)), NOW)
    assert staying(found, Part.CHAIN, runs) == [900, 800, 700, 50, 40]
    assert staying(found, Part.CHAIN, [old]) == []


def test_since_when_a_log_stands_still_is_remembered() -> None:
    stands = ("c", 7, 7)
    runs = [run(5000, end=("c", 6, 6)), *[run(days, end=stands) for days in range(1000, 900, -1)]]
    found = retained(runs, Retention(), NOW)
    assert staying(found, Part.RUN, runs) == [1000, *range(900 + NEWEST_RUNS, 900, -1)]


@pytest.mark.parametrize(
    ("phase", "held"),
    [
        *[(name, True) for name in ("zookeeper", "waiting", "dual_write", "rolled_back", None)],
        *[(name, False) for name in ("finalized", "kraft")],
    ],
)
def test_a_migration_is_held_until_it_is_finalised(phase: str | None, held: bool) -> None:
    runs = [run(900), run(800, phase=phase)]
    found = retained(runs, Retention(hold=(UNTIL_FINALISED,)), NOW)
    assert is_on_hold((UNTIL_FINALISED,), phase) == held
    assert staying(found, Part.DETAILS, runs) == ([900, 800] if held else [800])
    assert not is_on_hold((), phase)


def test_a_cluster_without_a_finished_run_is_held_too() -> None:
    failed = replace(run(900), finished=False)
    assert staying(retained([failed], Retention(hold=(UNTIL_FINALISED,)), NOW), Part.DETAILS, [failed]) == [900]


def test_a_run_that_is_held_by_name_stays_whole_with_what_it_builds_on() -> None:
    base = run(1000)
    wanted = run(900, builds_on=frozenset({base.run_id}))
    runs = [base, wanted, run(800), run(1)]
    found = retained(runs, Retention(hold=(wanted.run_id,)), NOW)
    for part in (Part.DETAILS, Part.JUDGED, Part.RUN):
        assert 900 in staying(found, part, runs), part
    assert staying(found, Part.LOG, runs) == [1000, 900, 1]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_failed_row_of_a_run_that_finished_hides_nothing_of_what_it_builds_on(order: tuple[int, int]) -> None:
    base = run(100)
    newest = run(1, builds_on=frozenset({base.run_id}))
    failed = replace(newest, finished=False, end=None, builds_on=frozenset())
    rows = [(newest, failed)[number] for number in order]
    assert staying(retained([base, *rows], Retention(), NOW), Part.LOG, [base, newest]) == [100, 1]


def test_a_run_that_a_mail_told_of_stays_in_gold() -> None:
    told = run(1000)
    runs = [told, run(900), run(1)]
    found = retained(runs, Retention(), NOW, mailed=[told.run_id])
    assert staying(found, Part.JUDGED, runs) == [1000, 1]


def test_rows_of_runs_that_never_ended_go_after_a_day_unless_they_are_under_way_or_nobody_can_tell() -> None:
    found = retained([run(1)], Retention(), NOW, running={"under-way": NOW})
    old, young = NOW - timedelta(days=2), NOW - timedelta(hours=20)
    assert not found.stays(Part.DETAILS, "x", old)
    assert found.stays(Part.DETAILS, "x", young)
    assert found.stays(Part.DETAILS, "x", None)
    assert found.stays(Part.DETAILS, "under-way", old)


def test_what_a_run_under_way_goes_on_from_stays_though_a_newer_one_has_ended() -> None:
    kept = run(900)
    base = replace(run(100), needs=frozenset({kept.run_id}), chain=frozenset({kept.run_id}))
    runs = [kept, run(200), base, run(60), run(40, end=None)]
    begun = base.started_at + timedelta(days=1)
    found = retained(runs, Retention(), NOW, running={"under-way": begun})
    assert staying(found, Part.DETAILS, runs) == [100, 60, 40], "it may have looked when others had ended, too"
    assert staying(found, Part.STATE, runs) == [900, 100, 60, 40]
    assert staying(found, Part.CHAIN, runs) == [900, 100, 60, 40]
    assert staying(retained(runs, Retention(), NOW), Part.STATE, runs) == [60, 40]


def test_a_run_that_had_begun_but_not_ended_is_not_all_that_one_under_way_may_go_on_from() -> None:
    begun = NOW - timedelta(days=50)
    long = replace(run(60), finished_at=NOW - timedelta(days=45))
    runs = [run(90), run(80), long, run(40)]
    found = retained(runs, Retention(), NOW, running={"under-way": begun})
    assert staying(found, Part.STATE, runs) == [80, 60, 40]


def test_a_run_id_tells_when_it_began_if_it_is_one_of_the_tools_own() -> None:
    assert begun_at("20261120T123000Z-abcdef") == datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
    assert begun_at("nightly-7") is None
    assert begun_at("20261340T993000Z-abcdef") is None


def test_ids_of_one_time_become_one_range_and_those_between_break_it() -> None:
    a, b, c, d = (f"2026010{number}T000000Z-a" for number in range(1, 5))
    assert chosen({a, b, "mine"}, {c, d}) == Chosen(((a, b),), ("mine",))
    assert chosen({a, c, d}, {b}) == Chosen(((a, a), (c, d)), ())


IDS = st.sampled_from(
    [
        *(f"202601{day:02}T000000Z-{end}" for day in range(1, 9) for end in "ab"),
        "mine",
        "20260102",
        "202601020",
        "zz",
        "A",
    ]
)


@given(st.sets(IDS), st.sets(IDS))
def test_what_is_chosen_is_what_goes_and_nothing_else(going: set[str], others: set[str]) -> None:
    others -= going
    found = chosen(going, others)
    matched = {
        each
        for each in going | others
        if each in found.ids or any(first <= each <= last for first, last in found.ranges)
    }
    assert matched == going
