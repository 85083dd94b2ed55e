"""What is known of each cluster of a run, looked up by the column `cluster` inside a query over all of them.

Spark's cost is per query, not per row: a run asks each question once for all its clusters, and what differs from
cluster to cluster (an offset, a list of broker ids) is a small value in the query's plan.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F

CLUSTER = "cluster"


def by_cluster(values: Mapping[str, object], sql_type: str) -> Column:
    """The value of a row's cluster, as `sql_type`; null for a cluster that is not in `values`.

    Values are what JSON can spell: numbers, texts, booleans, None, lists and objects of these.
    """
    if len(values) == 1:
        ((cluster, value),) = values.items()
        return F.when(F.col(CLUSTER) == F.lit(cluster), _literal(value, sql_type))
    # One literal for the whole map, whatever the number of clusters; it is parsed once, when the query is planned.
    return F.from_json(F.lit(json.dumps(values)), f"map<string,{sql_type}>")[F.col(CLUSTER)]


def _literal(value: object, sql_type: str) -> Column:
    if value is None or isinstance(value, bool | int | float | str):
        return F.lit(value).cast(sql_type)
    return F.from_json(F.lit(json.dumps({"value": value})), f"value {sql_type}")["value"]


def of_clusters(clusters: Iterable[str]) -> Column:
    """True for the rows of these clusters."""
    return F.col(CLUSTER).isin(sorted(clusters))
