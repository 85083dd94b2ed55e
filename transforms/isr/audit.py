"""What the history of partitions adds up to: churn, flapping, time without a leader or enough replicas, skew; the worst first.

Everything is one row a partition or broker and hour, of all clusters at once, and bounded for each of them. One sort puts the
changes in order; they are summed up on Arrow batches (`transforms.isr.hourly`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster
from transforms.isr.history import HOUR, LOSSY
from transforms.isr.hourly import COUNTS, KEY, PARTITION, READ, RECORD, SO, SUMS, TIMES, WORST, hourly_sums
from transforms.isr.partition import NO_LEADER

LEADERSHIP = "leadership"
MIN_ISR = "min.insync.replicas"
LINE = (
    "subject",
    "topic",
    "partition",
    "broker_id",
    "hour",
    *COUNTS,
    "flaps",
    *TIMES,
    "leads",
    "preferred",
)


def isr_audit(
    changes: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    ends: Mapping[str, int],
    hours: int,
    most: int,
) -> DataFrame:
    """The worst partitions and brokers of each cluster in the last `hours` before its log's end.

    `changes` are `schemas.gold.ISR_CHANGE` rows, each of which counts once even if it is there twice; `partitions` and
    `configs` silver rows of KRaft; `ends` the append time of each log's newest record (ms). At most `most` rows of each
    subject. Columns: cluster, LINE, `place` (1 is the worst of its subject) and `total` (how many rows there are of
    it). Of `hour` (its start, ms) null, a partition's row is what is so at the log's end and for how long; a broker's
    leadership has no hour.

    min.insync.replicas is the topic's or the cluster's dynamic default as it is now; where only property files set it,
    nothing is under it. A time is counted in the hour in which it ended.
    """
    end = by_cluster(ends, "bigint")
    least = _least(configs)
    recent = _telling(changes.where(F.col("append_time") >= end - hours * HOUR), least)
    in_order = recent.repartition(*KEY).sortWithinPartitions(*RECORD)
    sums = in_order.mapInArrow(partial(hourly_sums, most=most), SUMS)
    rows = [
        sums,
        _bad(partitions.where(of_ends(ends)), least),
        _leadership(partitions.where(of_ends(ends))),
    ]
    every = rows[0]
    for more in rows[1:]:
        every = every.unionByName(more, allowMissingColumns=True)
    return _worst(_added_up(every, end), most)


def of_ends(ends: Mapping[str, int]) -> Column:
    """True for rows of a cluster whose log was read."""
    return by_cluster(ends, "bigint").isNotNull()


def _least(configs: DataFrame) -> DataFrame:
    """min.insync.replicas by cluster and topic; the cluster's default has an empty topic."""
    named = configs.where((F.col("config") == MIN_ISR) & (F.col("resource_type").isin("TOPIC", "BROKER")))
    dynamic = named.where((F.col("resource_type") == "TOPIC") | (F.col("resource_name") == ""))
    return dynamic.select(
        CLUSTER, F.col("resource_name").alias("topic"), F.col("value").try_cast("int").alias("least")
    ).where("least IS NOT NULL")


def _with_least(rows: DataFrame, least: DataFrame) -> DataFrame:
    default = least.where("topic = ''").select(CLUSTER, F.col("least").alias("default_least"))
    joined = rows.join(F.broadcast(least.where("topic <> ''")), [CLUSTER, "topic"], "left")
    both = joined.join(F.broadcast(default), CLUSTER, "left")
    return both.withColumn("least", F.coalesce("least", "default_least")).drop("default_least")


def _short(suffix: str) -> Column:
    """Whether a replica that is not just being added is out of the ISR."""
    staying = F.array_except(f"replicas{suffix}", f"adding_replicas{suffix}")
    return F.coalesce(F.size(F.array_except(staying, f"isr{suffix}")) > 0, F.lit(False))


def _under(suffix: str) -> Column:
    # The smallest of several leaves out what is null: without a minimum it would be the number of replicas.
    least = F.when(F.col("least").isNotNull(), F.least("least", F.size(f"replicas{suffix}")))
    return F.coalesce(F.size(f"isr{suffix}") < least, F.lit(False))


def _telling(changes: DataFrame, least: DataFrame) -> DataFrame:
    """Changes that count, as `transforms.isr.hourly` reads them: with what was so before and after each."""
    marked = _with_least(changes, least).withColumns(
        {
            "made": F.col("leader_before").isNull(),
            "elected": F.col("election").isNotNull(),
            "lossy": _lossy(),
            "short": _short(""),
            "short_before": _short("_before"),
            "under": _under(""),
            "under_before": _under("_before"),
            "leaderless": F.col("leader") == NO_LEADER,
            "leaderless_before": F.coalesce(F.col("leader_before") == NO_LEADER, F.lit(False)),
        }
    )
    # What changed nothing that is counted need not be put in order: the load alone makes every partition.
    counts = (F.size("departed") > 0) | (F.size("joined") > 0) | F.col("elected")
    turned = [F.col(name) != F.col(f"{name}_before") for name in SO]
    return marked.where(reduce(or_, turned, counts)).select(*READ)


def _lossy() -> Column:
    return F.coalesce(F.col("election").isin([kind.value for kind in LOSSY]), F.lit(False))


def _bad(partitions: DataFrame, least: DataFrame) -> DataFrame:
    """Partitions that have no leader, too small an ISR, or replicas out of it at the end of the log."""
    now = _with_least(partitions, least).withColumns(
        {"short": _short(""), "under": _under(""), "leaderless": F.col("leader") == NO_LEADER}
    )
    return now.where(reduce(or_, [F.col(name) for name in SO])).select(
        CLUSTER,
        F.lit(PARTITION).alias("subject"),
        "topic_id",
        "topic",
        "partition",
        *SO,
        "kraft_append_time",
    )


def _leadership(partitions: DataFrame) -> DataFrame:
    """Brokers that lead another number of partitions than they are the preferred leader of."""
    both = F.array(
        F.struct(F.col("leader").alias("broker_id"), F.lit(1).alias("led"), F.lit(0).alias("first")),
        F.struct(
            F.try_element_at("replicas", F.lit(1)).alias("broker_id"), F.lit(0).alias("led"), F.lit(1).alias("first")
        ),
    )
    each = partitions.select(CLUSTER, F.explode(both).alias("each")).select(CLUSTER, "each.*").where("broker_id >= 0")
    counted = each.groupBy(CLUSTER, "broker_id").agg(F.sum("led").alias("leads"), F.sum("first").alias("preferred"))
    return counted.where("leads <> preferred").withColumn("subject", F.lit(LEADERSHIP))


def _added_up(every: DataFrame, end: Column) -> DataFrame:
    """One row a subject and hour; what is so of a partition at the end of the log, with how long it has been so."""
    largest = ("topic", "flaps", "leads", "preferred", *SO, *[f"{name}_since" for name in SO], "kraft_append_time")
    summed = every.groupBy(CLUSTER, "subject", "topic_id", "partition", "broker_id", "hour").agg(
        *[F.max(name).alias(name) for name in largest],
        *[F.sum(name).alias(name) for name in (*COUNTS, *TIMES, "left_out")],
    )

    def so_far(name: str, so: str) -> Column:
        since = F.coalesce(f"{so}_since", "kraft_append_time")
        return F.when(F.col(so), F.greatest(F.lit(0), end - since)).otherwise(F.col(name))

    return summed.withColumns({name: so_far(name, so) for name, so in TIMES.items()})


def _worst(every: DataFrame, most: int) -> DataFrame:
    scored = every.withColumns(
        {
            "moves": F.coalesce("shrinks", F.lit(0)) + F.coalesce("expansions", F.lit(0)),
            "skew": F.abs(F.coalesce("leads", F.lit(0)) - F.coalesce("preferred", F.lit(0))),
        }
    )
    of_subject = Window.partitionBy(CLUSTER, "subject")
    worst = [F.coalesce(F.col(name), F.lit(0)) for name in (*WORST, "skew")]
    telling = reduce(or_, [each > 0 for each in (*worst, F.coalesce(F.col("elections"), F.lit(0)))])
    # Lines that were left out before are counted, and have no place.
    ordered = of_subject.orderBy(
        telling.desc(), *[each.desc() for each in worst], "topic", "partition", "broker_id", "hour"
    )
    total = F.count_if(telling).over(of_subject) + F.coalesce(F.sum("left_out").over(of_subject), F.lit(0))
    placed = scored.withColumns({"telling": telling, "place": F.row_number().over(ordered), "total": total})
    return placed.where(F.col("telling") & (F.col("place") <= most)).select(
        CLUSTER, *[_typed(name) for name in LINE], "place", "total"
    )


def _typed(name: str) -> Column:
    kind = {"subject": "string", "topic": "string", "partition": "int", "broker_id": "int"}.get(name, "bigint")
    return F.col(name).cast(kind).alias(name)
