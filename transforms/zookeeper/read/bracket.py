"""Two walks around a copy of the log: keep what both agree on (S§5.5 (b)).

A walk reads each znode at another zxid. What has the same mzxid, czxid and ACL version before and after the log was
copied had that value all the time between, so it may be compared with the log without tolerance.
"""

from __future__ import annotations

import polars as pl

_SAME = ("czxid", "mzxid", "aversion")


def bracket(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the znodes that stood still, as the later walk has them, and what moved.

    Both walks have the columns path, czxid, mzxid and aversion of `ZNODE_COLUMNS` (others are kept). The second result has path,
    moved (appeared, vanished, recreated, data, acl), mzxid_before and mzxid_after.
    """
    old = before.select("path", *(pl.col(name).alias(f"{name}_before") for name in _SAME), _before=True)
    joined = after.with_columns(_after=True).join(old, on="path", how="full", coalesce=True)
    both = pl.col("_before").is_not_null() & pl.col("_after").is_not_null()
    stood = pl.all_horizontal(both, *(pl.col(name).eq_missing(pl.col(f"{name}_before")) for name in _SAME))
    kept = joined.filter(stood).select(after.columns)
    moved = joined.filter(~stood).select("path", _moved(), "mzxid_before", pl.col("mzxid").alias("mzxid_after"))
    return kept, moved.sort("path")


def moved_znodes(before: pl.DataFrame, after: pl.DataFrame | None) -> pl.DataFrame | None:
    """Znodes that changed between two walks around the log, as `bracket` has them; None when there was no second walk."""
    return None if after is None else bracket(before, after)[1]


def _moved() -> pl.Expr:
    return (
        pl.when(pl.col("_before").is_null())
        .then(pl.lit("appeared"))
        .when(pl.col("_after").is_null())
        .then(pl.lit("vanished"))
        .when(pl.col("czxid").ne_missing(pl.col("czxid_before")))
        .then(pl.lit("recreated"))
        .when(pl.col("mzxid").ne_missing(pl.col("mzxid_before")))
        .then(pl.lit("data"))
        .otherwise(pl.lit("acl"))
        .alias("moved")
    )
