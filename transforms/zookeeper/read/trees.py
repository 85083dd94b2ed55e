"""Choose a tree from rows with the column `tree`: that of the barrier, or the newest one (S§5.5)."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from schemas.zookeeper.trees import BARRIER, NEWEST, TREE


def at_barrier() -> Column:
    """True for rows of the tree that is compared with the log."""
    return F.col(TREE).isNull() | (F.col(TREE) == BARRIER)


def newest() -> Column:
    """True for rows of the tree as it was when it was read."""
    return F.col(TREE).isNull() | (F.col(TREE) == NEWEST)
