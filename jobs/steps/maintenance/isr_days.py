"""Sums of partitions' changes by day, before the changes are removed: gold isr_history to gold isr_by_day."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.evidence.finished import finished_runs, of_finished
from jobs.sinks.delta import Warehouse
from schemas.gold import ISR_BY_DAY, ISR_HISTORY
from transforms.clusters import CLUSTER, of_clusters
from transforms.isr.days import DAY_MS, SUMMED
from transforms.isr.hourly import RECORD

_KEY = (CLUSTER, "topic", "topic_id", "partition", "day")
_SUMS = ("changes", *SUMMED)


def sum_up(warehouse: Warehouse, clusters: Collection[str], going: Column) -> None:
    """Add rows of gold isr_history of these clusters to the sums, those that meet `going`; nothing is removed.

    The days' sums are replaced as a whole, in one commit, and name the runs that they are made of. So the same rows are
    never added twice, even if this is repeated. Rows of runs that never finished are ignored. Raises what the
    warehouse raises.
    """
    stored = warehouse.read(ISR_HISTORY).where(of_clusters(clusters)).withColumn("day", _day())
    rows = of_finished(stored, finished_runs(warehouse, clusters))
    places = rows.where(going).select(CLUSTER, "day").distinct().collect()
    if not places:
        return
    touched = {CLUSTER: sorted({row[CLUSTER] for row in places}), "day": sorted({row["day"] for row in places})}
    there = warehouse.read(ISR_BY_DAY).where(F.col(CLUSTER).isin(touched[CLUSTER]) & F.col("day").isin(touched["day"]))
    summed = there.select(CLUSTER, "day", F.explode("runs").alias("run_id")).distinct()
    # Two runs at the same time may both have recorded a change: it counts when the last of its rows goes.
    staying = rows.where(~going).select(CLUSTER, *RECORD)
    new = rows.where(going).join(summed, [CLUSTER, "day", "run_id"], "left_anti").dropDuplicates([CLUSTER, *RECORD])
    made = _sums(_counted(new.join(staying, [CLUSTER, *RECORD], "left_anti")).unionByName(there.drop("run_id")))
    warehouse.replace_where(ISR_BY_DAY, made.select(*ISR_BY_DAY.column_names), touched)


def _day() -> Column:
    """The UTC day of a change, by no time zone of the session's."""
    days = F.floor(F.col("append_time") / DAY_MS).cast("int")
    return F.date_add(F.lit("1970-01-01").cast("date"), days).cast("string")


def _counted(changes: DataFrame) -> DataFrame:
    """A row of sums for each change."""

    def is_one_of(kinds: Collection[str]) -> Column:
        return F.coalesce(F.arrays_overlap("kinds", F.array(*[F.lit(str(kind)) for kind in kinds])), F.lit(False))

    return changes.select(
        *_KEY,
        F.lit(1).cast("long").alias("changes"),
        *[is_one_of(kinds).cast("long").alias(name) for name, kinds in SUMMED.items()],
        F.array("run_id").alias("runs"),
    )


def _sums(rows: DataFrame) -> DataFrame:
    runs = F.array_sort(F.array_distinct(F.flatten(F.collect_list("runs"))))
    added = rows.groupBy(*_KEY).agg(*[F.sum(name).alias(name) for name in _SUMS], runs.alias("runs"))
    return added.withColumn("run_id", F.array_max("runs"))
