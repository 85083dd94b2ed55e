"""Which changes of partitions are summed up, and which are judged."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from tests.isr.told import CHANGES
from transforms.examination.task import Recorded
from transforms.frames import frame
from transforms.isr.audit import recent_of
from transforms.isr.history import HOUR
from transforms.isr.recorded import judged_of, once

BEGUN = 1000
END = 100 * HOUR


def change(offset: int, time: int, **columns: Any) -> dict[str, Any]:
    return {"topic_id": "id", "partition": 0, "offset": offset, "append_time": time, "kinds": ["shrink"], **columns}


def frame_of(*rows: dict[str, Any]) -> pl.DataFrame:
    return frame([{"departed": [1], "joined": [], **row} for row in rows], CHANGES)


def offsets(changes: pl.DataFrame | None) -> list[int] | None:
    return None if changes is None else changes["offset"].to_list()


def test_recent_changes_reach_as_far_back_as_is_asked() -> None:
    found = frame_of(change(20, END - 30 * HOUR), change(30, END - HOUR // 2), change(40, END))
    assert offsets(recent_of(found, END, 24)) == [30, 40]
    assert offsets(recent_of(found, END, 31)) == [20, 30, 40]
    assert offsets(recent_of(found, None, 24)) == []


def test_of_recent_changes_only_those_are_held_that_may_count() -> None:
    same = {"departed": [], "replicas": [1, 2], "replicas_before": [1, 2], "leader": 1, "leader_before": 1}
    still = change(1, END, **same, isr=[1, 2], isr_before=[2, 1])
    smaller = change(2, END, **same, isr=[1], isr_before=[1, 2])
    fewer = change(3, END, **{**same, "replicas": [1]}, isr=[1, 2], isr_before=[1, 2])
    elected = change(4, END, **same, isr=[1, 2], isr_before=[1, 2], election="clean_election")
    assert offsets(recent_of(frame_of(still, smaller, fewer, elected), END, 24)) == [2, 3, 4]


def test_a_change_that_two_runs_remembered_counts_once() -> None:
    found = frame_of(change(40, END), change(40, END), change(41, END))
    assert offsets(once(judged_of(found, END))) == [40, 41]


def test_old_changes_are_judged_only_where_they_tell() -> None:
    old = END - 50 * HOUR
    elected = change(1, old, election="unclean_election")
    quiet = change(2, old, leader_epoch=4, leader_epoch_before=4)
    loud = change(3, old, leader_epoch=5, leader_epoch_before=4)
    healed = change(5, old, departed=[], joined=[2], kinds=["expand", "recovered"])
    found = frame_of(elected, quiet, loud, change(4, END), healed)
    assert offsets(judged_of(found, END)) == [1, 2, 4, 5]
    assert offsets(judged_of(found, None)) == [1, 2, 5]


@pytest.mark.parametrize(
    ("begun", "now", "append_time", "resumed", "same"),
    [
        (BEGUN, BEGUN, None, False, True),
        (BEGUN, BEGUN + 1, None, False, False),
        (BEGUN, BEGUN + 1, END, True, False),
        (BEGUN, BEGUN, END, False, True),
        (BEGUN, BEGUN, END + 1, False, False),
        # Pruned since: its records are past those that are recorded, or show that they are the same.
        (BEGUN, None, None, False, False),
        (BEGUN, None, END, False, True),
        # Stored by a release that knew the beginning by offset 0 alone.
        (0, BEGUN, None, False, False),
        (0, BEGUN, None, True, True),
        (0, BEGUN, END, False, True),
        (0, None, None, False, True),
        (0, None, END + 1, True, False),
        # Stored by a release that did not say when the log began.
        (None, BEGUN, None, True, False),
        (None, BEGUN, END, False, True),
        (None, None, END + 1, False, False),
    ],
)
def test_recorded_changes_are_of_a_log(
    begun: int | None, now: int | None, append_time: int | None, resumed: bool, same: bool
) -> None:
    assert Recorded(500, END, begun).is_of(now, append_time, resumed=resumed) is same
