"""Which runs count: those with a row in gold `runs`, which is written after everything else of a run.

Rows that a killed or failed run has left in other tables are ignored everywhere.
"""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.sinks.delta import Warehouse
from schemas.gold import RUNS
from transforms.clusters import CLUSTER, of_clusters
from transforms.runs import CLEAN, ERRORS, WARNINGS

_RUN = (CLUSTER, "run_id")


def finished_runs(warehouse: Warehouse, clusters: Collection[str]) -> DataFrame:
    """The finished runs of these clusters (cluster, run_id): those that came to a verdict."""
    rows = warehouse.read(RUNS).where(of_clusters(clusters) & F.col("verdict").isin(CLEAN, WARNINGS, ERRORS))
    return rows.select(*_RUN)


def of_finished(rows: DataFrame, finished: DataFrame) -> DataFrame:
    """Those of the rows (with cluster and run_id) that a finished run has written."""
    return rows.join(F.broadcast(finished), [*_RUN], "left_semi")
