"""How old the records in no snapshot are, when a run has read only the newest of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.reconcile.kraft_clusters import HOUR, NODES, NOW, kraft
from transforms.properties import PropertyFiles, node_properties
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


@pytest.mark.parametrize(
    ("lines", "files", "hours", "megabytes", "said"),
    [
        ("", 3, 3, 1, "warn"),
        ("metadata.log.max.snapshot.interval.ms=0", 3, 48, 1, "pass"),
        ("metadata.log.max.snapshot.interval.ms=0", 3, 48, 41, "warn"),
        ("metadata.log.max.snapshot.interval.ms=21600000", 3, 11, 1, "pass"),
        ("metadata.log.max.snapshot.interval.ms=21600000", 3, 13, 1, "warn"),
        # The controller whose file is missing makes one each hour, as far as is known.
        ("metadata.log.max.snapshot.interval.ms=21600000", 2, 11, 1, "warn"),
        ("metadata.log.max.record.bytes.between.snapshots=104857600", 3, 1, 150, "pass"),
        ("metadata.log.max.record.bytes.between.snapshots=104857600", 3, 1, 201, "warn"),
        ("metadata.log.max.record.bytes.between.snapshots=9223372036854775807", 3, 1, 201, "pass"),
    ],
)
def test_how_often_a_checkpoint_is_made_is_in_the_controllers_files(
    lines: str, files: int, hours: int, megabytes: int, said: str
) -> None:
    given = tuple(node_properties(f"/c{node}", f"node.id={node}\n{lines}") for node in NODES[:files])
    old = replace(activity_of(NEWEST, SIDE, NOW - hours * HOUR), bytes=megabytes << 20)
    facts = kraft(activity=old, properties=PropertyFiles(controllers=given))
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
