"""Records that were read are counted against the plan: one too few, one twice, one astray, a slice or a checkpoint that is not there."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from schemas.bronze import LOG_COPY_COLUMNS
from transforms.kraft.coverage import CHECKPOINT, NOWHERE, Counted, PlannedLog, planned_log, shortfall
from transforms.kraft.quorum import Slice

PLAN = PlannedLog(40, (Slice("old", 40, 100), Slice("new", 100, 250)))
Rows = dict[int, list[int]]


Record = tuple[int | None, int | None, str | None]
RECORD = pl.Schema({"offset": pl.Int64, "checkpoint_offset": pl.Int64, "problem": pl.String})


def counted(rows: Rows, damaged: int = 0, plan: PlannedLog = PLAN) -> list[dict[str, Any]]:
    """What is counted of offsets by slice, read in any order a few at once; the damage is in the last slice."""
    records: list[Record] = [
        (offset, plan.base if place == CHECKPOINT else None, None)
        for place, offsets in rows.items()
        for offset in offsets
    ]
    records += [(plan.slices[-1].from_offset_inclusive, None, "damaged")] * damaged
    chance = random.Random(len(records))  # noqa: S311
    chance.shuffle(records)
    seen = Counted(plan)
    for some in pl.DataFrame(records, schema=RECORD, orient="row").iter_slices(chance.choice([1, 7, 1000])):
        seen.add(some)
    return seen.rows()


def whole() -> Rows:
    return {CHECKPOINT: list(range(7)), 0: list(range(40, 100)), 1: list(range(100, 250))}


def without(place: int, offset: int) -> Rows:
    rows = whole()
    rows[place].remove(offset)
    return rows


def twice(place: int, offset: int) -> Rows:
    rows = whole()
    rows[place].append(offset)
    return rows


def instead(place: int, offset: int, other: int) -> Rows:
    rows = without(place, offset)
    rows[place].append(other)
    return rows


def lacking(place: int) -> Rows:
    rows = whole()
    del rows[place]
    return rows


def test_all_that_was_to_be_read_is_there() -> None:
    assert shortfall(PLAN, counted(whole())) is None


BROKEN: dict[str, tuple[Callable[[], Rows], str]] = {
    "the first": (lambda: without(0, 40), "59 records are there instead of 60 of offsets 40 to 99 of old"),
    "the last": (lambda: without(1, 249), "149 records are there instead of 150 of offsets 100 to 249 of new"),
    "twice": (lambda: twice(1, 200), "151 records are there instead of 150 of offsets 100 to 249 of new"),
    "one for another": (
        lambda: instead(1, 200, 201),
        "150 records are there, some twice and others not at all, of offsets 100 to 249 of new",
    ),
    "no slice": (lambda: lacking(0), "no record is there, 60 were to be read, of offsets 40 to 99 of old"),
    "beyond": (
        lambda: twice(1, 250),
        "records of offsets 100 to 250 are there, beyond the 150 of offsets 100 to 249 of new",
    ),
    "astray": (lambda: whole() | {NOWHERE: [3]}, "1 records are there that should not have been read"),
    "no checkpoint": (
        lambda: lacking(CHECKPOINT),
        "no record is there, 1 were to be read, of the checkpoint at offset 40",
    ),
    "in the checkpoint": (
        lambda: without(CHECKPOINT, 3),
        "6 records are there instead of 7 of the checkpoint at offset 40",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_missing_or_too_much_is_said(case: str) -> None:
    rows, said = BROKEN[case]
    assert shortfall(PLAN, counted(rows())) == said


def test_of_a_damaged_log_fewer_are_expected_and_never_more_nor_others() -> None:
    assert shortfall(PLAN, counted(without(1, 120), damaged=1)) is None
    assert shortfall(PLAN, counted(without(0, 50), damaged=1)) is None, "where damage says that it lies may be damaged"
    assert shortfall(PLAN, counted(lacking(0), damaged=1)) is None
    assert shortfall(PLAN, counted(twice(1, 120), damaged=1)) is not None
    assert shortfall(PLAN, counted(instead(1, 120, 250), damaged=1)) is not None
    assert shortfall(PLAN, counted(whole() | {NOWHERE: [3]}, damaged=1)) is not None


def test_a_fetched_copy_may_lack_offset_0_and_nothing_else() -> None:
    slices = (Slice("copy", 0, 250),)
    fetched, own = PlannedLog(None, slices, frozenset({"copy"})), PlannedLog(None, slices)
    lacking_0, lacking_1 = list(range(1, 250)), [0, *range(2, 250)]
    assert shortfall(fetched, counted({0: lacking_0}, plan=fetched)) is None
    assert shortfall(fetched, counted({0: list(range(250))}, plan=fetched)) is None
    assert shortfall(fetched, counted({0: lacking_1}, plan=fetched)) is not None
    assert shortfall(own, counted({0: lacking_0}, plan=own)) is not None


def test_what_is_read_is_counted_slice_by_slice() -> None:
    records: list[Record] = [
        (3, None, None),
        (40, None, None),
        (99, None, None),
        (2**63 - 1, None, None),
        (2**63 - 2, None, None),
    ]
    records += [(0, 40, None), (1, 40, None), (0, 30, None), (None, None, "no batch"), (50, None, "its checksum")]
    seen = Counted(PLAN)
    seen.add(pl.DataFrame(records, schema=RECORD, orient="row"))
    seen.add(pl.DataFrame(schema=RECORD))
    assert [tuple(row.values()) for row in seen.rows()] == [
        (CHECKPOINT, 2, 0, 0, 1, "1"),
        (NOWHERE, 1, 1, 3, 3, "3"),
        (0, 2, 1, 40, 99, "139"),
        (1, 2, 0, 2**63 - 2, 2**63 - 1, str(2**64 - 3)),
    ]


def copy(**more: object) -> dict[str, Any]:
    row: dict[str, Any] = {field.name: None for field in LOG_COPY_COLUMNS}
    ends = {
        "log_start_offset": 0,
        "log_end_offset": 250,
        "last_epoch": 1,
        "epoch_starts": [{"epoch": 1, "start_offset": 0}],
    }
    return {**row, "location": "only", "chosen_from": 0, "checkpoints": [], **ends, **more}


def test_the_plan_begins_where_the_run_did() -> None:
    assert planned_log([copy()]) == PlannedLog(None, (Slice("only", 0, 250),))
    assert planned_log([copy(chosen_from=199, base_run="before")]) == PlannedLog(None, (Slice("only", 199, 250),))
    assert planned_log([copy(log_end_offset=None, problem="no batch")]) is None
