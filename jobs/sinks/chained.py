"""The rows of a state in a chained table, in Spark: of the rows that a chain's runs have stored, the newest of each key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, of_clusters

_PLACE, _NEWEST = "chain_place", "chain_newest"


def state_rows(rows: DataFrame, chains: Mapping[str, Sequence[str]]) -> DataFrame:
    """Of a chained table's rows those of each cluster's state: `chains` are the runs that make it up, the base's first.

    The same as `transforms.chain.chain.newest_rows` of one cluster's.
    """
    ids = sorted({run_id for runs in chains.values() for run_id in runs})
    mine = rows.where(of_clusters(chains) & F.col("run_id").isin(ids))
    if len({tuple(runs) for runs in chains.values()}) > 1 or len(ids) > 1:
        mine = _newest(mine, chains)
    return mine.where(F.col("gone").isNull()).select(*rows.columns)


def _newest(rows: DataFrame, chains: Mapping[str, Sequence[str]]) -> DataFrame:
    # As one look-up, so that the plan does not grow with the number of runs.
    places = {f"{name}\n{run_id}": place for name, runs in chains.items() for place, run_id in enumerate(runs)}
    look_up = F.from_json(F.lit(json.dumps(places)), "map<string,int>")
    placed = rows.withColumn(_PLACE, look_up[F.concat(F.col(CLUSTER), F.lit("\n"), F.col("run_id"))])
    placed = placed.where(F.col(_PLACE).isNotNull())
    # What came after the bases is little: no row of a base is sorted or sent about.
    later = placed.where(F.col(_PLACE) > 0).groupBy(CLUSTER, "row_key").agg(F.max(_PLACE).alias(_NEWEST))
    joined = placed.join(later, [CLUSTER, "row_key"], "left")
    return joined.where(F.col(_PLACE) == F.coalesce(_NEWEST, F.lit(0)))
