"""Sums of partitions' changes by day: what stays of rows of gold isr_history once they are older than `isr_days`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import polars as pl

from transforms.isr.history import ELECTIONS, LOSSY, ChangeKind

# The kinds of change that each sum of gold isr_by_day counts: a change counts once, even if it has several of these kinds.
SUMMED: Mapping[str, Sequence[ChangeKind]] = {
    "shrinks": (ChangeKind.SHRINK,),
    "expansions": (ChangeKind.EXPAND,),
    "elections": ELECTIONS,
    "lossy_elections": LOSSY,
    "leader_losses": (ChangeKind.LEADER_LOST,),
    "reassignments": (
        ChangeKind.REASSIGNMENT_STARTED,
        ChangeKind.REASSIGNMENT_CHANGED,
        ChangeKind.REASSIGNMENT_COMPLETED,
        ChangeKind.REASSIGNMENT_CANCELLED,
    ),
    "elr_changes": (ChangeKind.ELR_GAINED, ChangeKind.ELR_LOST, ChangeKind.ELR_CLEARED),
}
PARTITION = ("topic_id", "partition")
DAY_MS = 86_400_000
# Rows of gold isr_by_day by partition and topic id, as the single changes are (`transforms.isr.partition_questions`).
Days = dict[tuple[int, str], list[Mapping[str, Any]]]


def days_of(rows: pl.DataFrame) -> Days:
    """Rows of gold isr_by_day, the oldest day of each partition first."""
    found: Days = {}
    for row in rows.sort("day").iter_rows(named=True):
        found.setdefault((row["partition"], row["topic_id"]), []).append(row)
    return found


def not_summed(changes: pl.DataFrame, days: pl.DataFrame) -> pl.DataFrame:
    """Rows of gold isr_history without those that are in the sums of gold isr_by_day: a maintenance has not removed them yet."""
    summed = days.select(*PARTITION, "day", run_id="runs").explode("run_id")
    mine = changes.with_columns(day=pl.from_epoch("append_time", "ms").dt.strftime("%Y-%m-%d"))
    return mine.join(summed, on=[*PARTITION, "day", "run_id"], how="anti").drop("day")


def summed_between(days: Sequence[Mapping[str, Any]], first: int, last: int) -> bool:
    """Whether changes between two times (ms since the epoch) are in sums."""
    begin, end = (f"{datetime.fromtimestamp(each / 1000, UTC):%Y-%m-%d}" for each in (first, last))
    return any(begin <= row["day"] <= end for row in days)
