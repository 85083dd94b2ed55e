"""How old the records in no snapshot are, when a run has read only the newest of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.reconcile.kraft_clusters import HOUR, NOW, kraft
from transforms.reconcile.judge.gates import run_checks
from transforms.reconcile.judge.kraft_health import activity_of

ROW = {"type": "NO_OP_RECORD", "records": 7, "bytes": 700, "first": NOW - HOUR // 60, "last": NOW, "below": None}
NEWEST = [{**ROW, "behind": 700}]
SIDE: Any = SimpleNamespace(copies=(), plan=SimpleNamespace(leading=SimpleNamespace(last_append_time=NOW)))


def verdict(rows: list[dict[str, Any]], earlier_ms: int | None) -> str:
    facts = replace(kraft(), activity=activity_of(rows, SIDE, earlier_ms))
    return next(check.verdict for check in run_checks(facts) if check.id == "LOG-01")


def test_kafka_3_3_makes_snapshots_by_size_alone() -> None:
    old = activity_of(NEWEST, SIDE, NOW - 7 * 24 * HOUR)
    for facts, said in (
        (kraft(activity=old, kafka_version="3.3"), "pass"),
        (kraft(activity=old, kafka_version="3.4"), "warn"),
        (kraft(activity=replace(old, bytes=50 << 20), kafka_version="3.3"), "warn"),
    ):
        assert next(check.verdict for check in run_checks(facts) if check.id == "LOG-01") == said


def test_records_without_a_time_are_counted_with_those_that_have_one() -> None:
    untimed = {**NEWEST[0], "type": "TOPIC_RECORD", "first": None, "last": None}
    found = activity_of([*NEWEST, untimed], SIDE)
    assert (found.first_time_ms, found.last_time_ms, found.bytes) == (NOW - HOUR // 60, NOW, 1400)


def test_records_of_earlier_runs_are_in_no_snapshot_either() -> None:
    week = NOW - 7 * 24 * HOUR
    assert verdict(NEWEST, None) == "pass"
    assert verdict(NEWEST, week) == "warn"
    assert verdict([], week) == "warn"
    assert verdict([], None) == "pass"


def test_controllers_that_were_stopped_made_no_snapshot_meanwhile() -> None:
    """A node that starts counts from its start (`SnapshotGenerator`), and an older record is in no snapshot for up to an hour."""
    night = {**NEWEST[0], "type": "LEADER_CHANGE", "leaderless": 9 * HOUR}
    assert verdict([*NEWEST, night], NOW - 10 * HOUR) == "pass"
    assert verdict([*NEWEST, night], NOW - 12 * HOUR) == "warn"
