"""Compares the records that were read with the plan: they are counted slice by slice before anything is judged.

A metadata log has one record for every offset (KRaft neither compacts nor skips), so a slice of the plan determines their
number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from transforms.kraft.quorum import LogCopy, NoUsableLogError, Slice, plan_read

# The place of the base checkpoint among the slices, and of rows that are in none.
CHECKPOINT, NOWHERE = -2, -1
# The message if rows of earlier runs are needed and have been removed.
GONE = "the tables no longer have all log records that earlier runs have read"


@dataclass(frozen=True)
class PlannedLog:
    """The part of a cluster's log to be read: the base checkpoint's offset, None without one, and slices in order.

    Copies at `fetched` were fetched from a leader, who gives no offset 0 once there is a snapshot.
    """

    base: int | None
    slices: tuple[Slice, ...]
    fetched: frozenset[str] = frozenset()


def planned_log(copies: Sequence[Mapping[str, Any]]) -> PlannedLog | None:
    """The plan by a cluster's rows of kraft_log_copies: from `chosen_from` on; None when its copies make no log."""
    facts = [LogCopy.from_row(row) for row in copies]
    try:
        plan = plan_read(facts)
    except NoUsableLogError:
        return None
    start = min((row["chosen_from"] for row in copies if row["chosen_from"] is not None), default=0)
    slices = tuple(
        Slice(each.location, max(each.from_offset_inclusive, start), each.to_offset_exclusive)
        for each in plan.slices
        if each.to_offset_exclusive > start
    )
    continued = any(row["base_run"] is not None for row in copies)
    base = None if continued or plan.base_checkpoint is None else plan.base_checkpoint[1].offset
    # Copies that fork have two checkpoints of one offset, and both are read.
    epochs = {each.epoch for copy in facts for each in copy.checkpoints if each.complete and each.offset == base}
    fetched = frozenset(copy.location for copy in facts if copy.fetched_at is not None)
    return PlannedLog(base if len(epochs) == 1 else None, slices, fetched)


class Counted:
    """What was read of a planned log, slice by slice, counted as its records go by in any order."""

    def __init__(self, planned: PlannedLog) -> None:
        """Nothing was read."""
        self._begins = pl.Series([each.from_offset_inclusive for each in planned.slices], dtype=pl.Int64)
        self._base = planned.base
        self._found: dict[int, dict[str, Any]] = {}

    def add(self, records: pl.DataFrame) -> None:
        """Take in rows of bronze kraft_records (offset, checkpoint_offset, problem)."""
        offset, good, of_log = pl.col("offset"), pl.col("problem").is_null(), pl.col("checkpoint_offset").is_null()
        wanted = of_log if self._base is None else of_log | (pl.col("checkpoint_offset") == self._base)
        rows = records.select("offset", "problem", "checkpoint_offset").filter(wanted)
        # Damage may lie where no offset can be read.
        place = pl.Series(self._begins.search_sorted(rows["offset"].fill_null(-1), side="right"), dtype=pl.Int64) - 1
        slices = rows.with_columns(pl.when(of_log).then(place).otherwise(CHECKPOINT).alias("slice"))
        mine = pl.when(good).then(offset)
        counts = slices.group_by("slice").agg(
            good.sum().cast(pl.Int64).alias("rows"),
            (~good).sum().cast(pl.Int64).alias("damaged"),
            mine.min().alias("first"),
            mine.max().alias("last"),
            mine.cast(pl.Int128).sum().alias("sum"),
        )
        for row in counts.iter_rows(named=True):
            self._merge(row)

    def _merge(self, row: dict[str, Any]) -> None:
        known = self._found.setdefault(row["slice"], row)
        if known is row:
            return
        for name in ("rows", "damaged", "sum"):
            known[name] += row[name]
        for name, chosen in (("first", min), ("last", max)):
            known[name] = chosen((each[name] for each in (known, row) if each[name] is not None), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """For each slice that has any: slice (place in the plan, CHECKPOINT or NOWHERE), rows, damaged, first, last, sum.

        `first`, `last` and `sum` (as text) are of the offsets of `rows`, the good ones.
        """
        return [{**row, "sum": str(row["sum"])} for _, row in sorted(self._found.items())]


def shortfall(planned: PlannedLog, rows: Iterable[Mapping[str, Any]]) -> str | None:
    """The first difference between the rows of `Counted` and the plan, in one line; None if there is none.

    A damaged log may have fewer good rows than planned, but none elsewhere: the damage is reported separately, and its recorded
    place may be damaged, too.
    """
    found = {row["slice"]: row for row in rows}
    damaged = any(row["damaged"] for row in found.values())
    for place, piece in enumerate(planned.slices):
        begin, end = piece.from_offset_inclusive, piece.to_offset_exclusive
        row = found.pop(place, None)
        if row is not None and (begin, row["first"]) == (0, 1) and piece.location in planned.fetched:
            begin = 1
        problem = _missing(row, begin, end, damaged=damaged)
        if problem is not None:
            return f"{problem} of offsets {begin} to {end - 1} of {piece.location}"
    if planned.base is not None:
        row = found.pop(CHECKPOINT, None)
        problem = _missing(row, 0, 1 if row is None or row["last"] is None else row["last"] + 1, damaged=damaged)
        if problem is not None:
            return f"{problem} of the checkpoint at offset {planned.base}"
    astray = sum(row["rows"] for row in found.values())
    return f"{astray} records are there that should not have been read" if astray else None


def _missing(row: Mapping[str, Any] | None, begin: int, end: int, *, damaged: bool) -> str | None:
    """What is wrong with the rows of offsets [begin, end)."""
    number = end - begin
    if row is None:
        return f"no record is there, {number} were to be read," if number and not damaged else None
    if row["rows"] and (row["first"] < begin or row["last"] >= end):
        return f"records of offsets {row['first']} to {row['last']} are there, beyond the {number}"
    if damaged:
        return None if row["rows"] <= number else f"{row['rows']} records are there instead of {number} at most"
    if row["rows"] != number:
        return f"{row['rows']} records are there instead of {number}"
    whole = (begin + end - 1) * number // 2
    return (
        None if int(row["sum"] or 0) == whole else f"{row['rows']} records are there, some twice and others not at all,"
    )
