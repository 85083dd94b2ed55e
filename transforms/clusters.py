"""The column that says whose a row is."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

CLUSTER = "cluster"


def of_clusters(clusters: Iterable[str]) -> Column:
    """True for the rows of these clusters."""
    return F.col(CLUSTER).isin(sorted(clusters))
