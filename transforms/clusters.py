"""The column with the cluster of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

CLUSTER = "cluster"


def of_clusters(clusters: Iterable[str]) -> Column:
    """True for the rows of these clusters."""
    from pyspark.sql import functions as F  # noqa: PLC0415 - who only reads tables needs no Spark

    return F.col(CLUSTER).isin(sorted(clusters))
