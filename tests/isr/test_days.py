"""Sums of changes by day: which changes are in them already, and how `isr` tells of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl

from jobs.commands.isr import _SUMS, _shown
from schemas.gold import ISR_BY_DAY, ISR_HISTORY
from transforms.frames import columns_of, frame
from transforms.isr.days import SUMMED, days_of, not_summed, summed_between
from transforms.isr.history import ChangeKind, ClassifiedChange
from transforms.isr.partition import PartitionState

HISTORY, DAYS = columns_of(ISR_HISTORY.columns), columns_of(ISR_BY_DAY.columns)
NOON = round(datetime(2027, 1, 2, 12, tzinfo=UTC).timestamp() * 1000)
DAY = 86_400_000


def changes(*rows: tuple[str, int]) -> pl.DataFrame:
    """Changes of one partition: run and append time."""
    values = [
        {"topic_id": "id", "partition": 0, "run_id": run_id, "append_time": at, "offset": offset}
        for offset, (run_id, at) in enumerate(rows)
    ]
    return frame(values, HISTORY)


def day(name: str, *runs: str, **sums: int) -> dict[str, Any]:
    return {"topic_id": "id", "partition": 0, "day": name, "runs": [*runs], **dict.fromkeys(SUMMED, 0), **sums}


def test_a_change_is_in_a_sum_if_its_run_and_its_day_are() -> None:
    rows = changes(("one", NOON), ("one", NOON + DAY), ("two", NOON), ("three", NOON - DAY // 2))
    sums = frame([day("2027-01-02", "one", "three"), day("2027-01-09", "two")], DAYS)
    assert not_summed(rows, sums)["offset"].to_list() == [1, 2]
    another = sums.with_columns(partition=pl.lit(1, pl.Int32))
    assert not_summed(rows, another)["offset"].to_list() == [0, 1, 2, 3]
    assert not_summed(rows, frame([], DAYS)).columns == rows.columns


def test_every_kind_that_tells_of_replicas_or_leaders_is_in_a_sum() -> None:
    of_no_sum = {kind for kind in ChangeKind if not any(kind in kinds for kinds in SUMMED.values())}
    assert {kind.value for kind in of_no_sum} == {
        "created",
        "replaced",
        "reordered",
        "leader_move",
        "epoch_bump",
        "recovered",
        "directories",
    }
    assert {*SUMMED} <= {*ISR_BY_DAY.column_names}
    assert [*_SUMS] == [*SUMMED]


def test_days_between_two_changes() -> None:
    days = [day("2027-01-02", "one")]
    assert summed_between(days, NOON, NOON)
    assert summed_between(days, NOON - 9 * DAY, NOON + 9 * DAY)
    assert not summed_between(days, NOON + DAY, NOON + 9 * DAY)
    assert not summed_between([], NOON, NOON)


def test_days_are_told_before_the_changes_that_are_there_singly() -> None:
    found = frame(
        [
            day("2027-01-03", "b", changes=1, elr_changes=1),
            day("2027-01-02", "a", changes=1200, shrinks=600, expansions=600, lossy_elections=1, elections=2),
            {**day("2027-01-02", "a", changes=1), "partition": 1},
        ],
        DAYS,
    )
    state = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1, leader_epoch=1, partition_epoch=9)
    single = ClassifiedChange(7, NOON + 9 * DAY, state, state, (ChangeKind.EPOCH_BUMP,))
    lines = _shown({(0, "id"): [single]}, None, days_of(found))
    assert lines[:3] == [
        "Partition 0 of topic id id: 1 change, and 1,201 older ones by day (UTC)",
        "  2027-01-02  1,200 changes: 600 shrinks, 600 expansions, 2 elections, 1 election that may have lost data",
        "  2027-01-03  1 change: 1 change of the ELR",
    ]
    assert "epoch bump" in lines[3]
    assert lines[4:] == [
        "Partition 1 of topic id id: 0 changes, and 1 older ones by day (UTC)",
        "  2027-01-02  1 change",
    ]
