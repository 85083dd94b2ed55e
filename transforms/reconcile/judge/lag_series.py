"""How long changes waited for ZooKeeper, at every barrier of its transaction logs (S§5.5): lag as a series, not a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from schemas.report import LagPoint

# Of as many parts of the series the worst point and the last one are kept.
_PARTS = 250


Holes = Sequence[Mapping[str, Any]]


def oldest_brought(barriers: pl.DataFrame, born: int, holes: Holes = ()) -> list[int]:
    """Offsets of the first record that each barrier brought: `lag_series` needs their append times."""
    return _moved(barriers, born, holes)["oldest"].to_list()


def lag_series(
    barriers: pl.DataFrame, append_times: Mapping[int, int], born: int, holes: Holes = ()
) -> list[dict[str, Any]]:
    """Points of the series, two for each part at most, in order: the worst of each part of it is among them, and the last.

    `barriers` are silver barriers, `append_times` those of the log's records (milliseconds) by offset; `born` is when the
    cluster's log began (append time of its first record): barriers before that are of another quorum. `holes` are where the
    transaction logs lack others (zxid). Rows have the fields of `LagPoint`; a barrier whose first record is not in `append_times` is
    left out.
    """
    times = {"oldest": list(append_times), "append_time": list(append_times.values())}
    known = pl.DataFrame(times, schema={"oldest": pl.Int64, "append_time": pl.Int64})
    waited = _moved(barriers, born, holes).join(known, on="oldest").sort("zxid")
    part = pl.int_range(pl.len()) * _PARTS // pl.max_horizontal(pl.len(), pl.lit(_PARTS))
    parts = waited.with_columns(part=part, apart=pl.col("time") - pl.col("append_time"))
    worst, last = (rows.group_by("part").last() for rows in (parts.sort("apart", "zxid"), parts))
    return [_point(row) for row in pl.concat([worst, last]).unique("zxid").sort("zxid").iter_rows(named=True)]


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    offset = row["kraft_metadata_offset"]
    of_barrier = {"zxid": row["zxid"], "time": row["time"], "kraft_metadata_offset": offset}
    return {**of_barrier, "records": offset - row["oldest"] + 1, "seconds": row["apart"] / 1000}


def _moved(barriers: pl.DataFrame, born: int, holes: Holes) -> pl.DataFrame:
    """Barriers that moved the offset, in order, with the offset of the first record that they brought (`oldest`).

    Behind a hole it is not known which barrier came before.
    """
    offset = pl.col("kraft_metadata_offset")
    mine = barriers.filter(pl.col("time") >= born).sort("zxid")
    missing = pl.Series([hole["zxid"] for hole in holes], dtype=pl.Int64).sort()
    part = missing.search_sorted(mine["zxid"], side="right")
    mine = mine.with_columns(before=pl.when(part == part.shift(1)).then(offset.shift(1)))
    return mine.filter(offset > pl.col("before")).with_columns(oldest=pl.col("before") + 1)


def points(rows: Iterable[Mapping[str, Any]], skew_ms: float) -> list[LagPoint]:
    """The series in order, from rows of `lag_series`; `skew_ms` is ZooKeeper's clock minus the controllers'."""
    found = [LagPoint(**row) for row in rows]
    return [
        replace(each, seconds=round(max(0.0, each.seconds - skew_ms / 1000), 3))
        for each in sorted(found, key=lambda each: each.zxid)
    ]
