"""Two trees of one data folder: rows are compared at a barrier, everything else is judged on the newest tree (S§5.5)."""

from __future__ import annotations

from pyspark.sql.types import StringType

from schemas.table import column

TREE, BARRIER, NEWEST = "tree", "barrier", "newest"
TREE_COLUMN = column(
    TREE,
    StringType(),
    "For a data folder compared at a barrier: `barrier` for rows that are gone or changed since the barrier, "
    "`newest` for later ones; null for rows that are the same in both trees, and wherever there is only one tree.",
)
