"""Choose a tree from rows with the column `tree`: that of the barrier, or the newest one (S§5.5)."""

from __future__ import annotations

import polars as pl

from schemas.zookeeper.trees import BARRIER, NEWEST, TREE


def at_barrier() -> pl.Expr:
    """True for rows of the tree that is compared with the log."""
    return pl.col(TREE).is_null() | (pl.col(TREE) == BARRIER)


def newest() -> pl.Expr:
    """True for rows of the tree as it was when it was read."""
    return pl.col(TREE).is_null() | (pl.col(TREE) == NEWEST)
