"""Two trees of one data folder: rows are compared at a barrier, everything else is judged on the newest tree (S§5.5)."""

from __future__ import annotations

from pyspark.sql.types import StringType

from schemas.table import column

TREE, BARRIER, NEWEST = "tree", "barrier", "newest"
TREE_COLUMN = column(
    TREE,
    StringType(),
    "Of a data folder that is compared at a barrier: `barrier` for what was there then and is gone or changed since, "
    "`newest` for what came after it; null for what is the same in both, and wherever there is one tree only.",
)
