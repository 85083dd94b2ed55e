"""What the history of partitions adds up to: churn, flapping, time without a leader or enough replicas, skew; the worst first.

Everything is one row a partition or broker and hour, of all clusters at once, and bounded for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster
from transforms.isr.history import HOUR, LOSSY
from transforms.isr.partition import NO_LEADER
from transforms.kraft.replay.events import Cache, uncached

PARTITION, BROKER, LEADERSHIP = "partition", "broker", "leadership"
MIN_ISR = "min.insync.replicas"
_PARTITION = ["topic_id", "partition", CLUSTER]
_COUNTS = ("shrinks", "expansions", "elections", "lossy_elections")
_TIMES = ("leaderless_ms", "under_min_ms", "out_of_sync_ms")
_SO = ("short", "under", "leaderless")
_JUDGED = (
    *_PARTITION,
    "topic",
    "hour",
    "append_time",
    "made",
    "departed",
    "joined",
    "election",
    "leader",
    *[name + suffix for name in _SO for suffix in ("", "_before", "_since")],
)
# What makes one row worse than another, in this order.
_WORST = ("lossy_elections", "leaderless_ms", "under_min_ms", "flaps", "moves", "out_of_sync_ms", "skew")
LINE = (
    "subject",
    "topic",
    "partition",
    "broker_id",
    "hour",
    *_COUNTS,
    "flaps",
    *_TIMES,
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
    cache: Cache = uncached,
) -> DataFrame:
    """The worst partitions and brokers of each cluster in the last `hours` before its log's end.

    `changes` are `schemas.gold.ISR_CHANGE` rows, `partitions` and `configs` silver rows of KRaft; `ends` the append time of
    each log's newest record (ms). At most `most` rows of each subject. Columns: cluster, LINE, `place` (1 is the worst
    of its subject) and `total` (how many rows there are of it). Of `hour` (its start, ms) null, a partition's row is what
    is so at the log's end and for how long; a broker's leadership has no hour.

    min.insync.replicas is the topic's or the cluster's dynamic default as it is now; where only property files set it,
    nothing is under it. A time is counted in the hour in which it ended. `cache` keeps what several parts read.
    """
    end = by_cluster(ends, "bigint")
    least = _least(configs)
    recent = cache(_judged(changes.where(F.col("append_time") >= end - hours * HOUR), least))
    moves = cache(_moves(recent))
    rows = [
        _by_partition(recent, moves),
        _open(partitions.where(of_ends(ends)), recent, least, end),
        _by_broker(moves),
        _leadership(partitions.where(of_ends(ends))),
    ]
    every = rows[0]
    for more in rows[1:]:
        every = every.unionByName(more, allowMissingColumns=True)
    return _worst(every, most)


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
    few = F.size(f"isr{suffix}") < F.least("least", F.size(f"replicas{suffix}"))
    return F.coalesce(few, F.lit(False))


def _judged(changes: DataFrame, least: DataFrame) -> DataFrame:
    """Changes with what was so before and after each: `under`, `short`, and since when it was so (`..._since`)."""
    marked = _with_least(changes, least).withColumns(
        {
            "hour": F.col("append_time") - F.col("append_time") % HOUR,
            "made": F.col("leader_before").isNull(),
            "short": _short(""),
            "short_before": _short("_before"),
            "under": _under(""),
            "under_before": _under("_before"),
            "leaderless": F.col("leader") == NO_LEADER,
            "leaderless_before": F.coalesce(F.col("leader_before") == NO_LEADER, F.lit(False)),
        }
    )
    # What changed nothing that is counted need not be put in order: the load alone makes every partition.
    counts = (F.size("departed") > 0) | (F.size("joined") > 0) | F.col("election").isNotNull()
    turned = [F.col(name) != F.col(f"{name}_before") for name in _SO]
    telling = marked.where(reduce(or_, turned, counts))
    earlier = Window.partitionBy(*_PARTITION).orderBy("offset").rowsBetween(Window.unboundedPreceding, -1)

    def since(name: str, unseen: str) -> Column:
        begun = F.when(F.col(name) & ~F.col(f"{name}_before"), F.col("append_time"))
        return F.coalesce(F.last(begun, ignorenulls=True).over(earlier), F.col(unseen))

    dated = telling.withColumns(
        {
            "short_since": since("short", "before_time"),
            "under_since": since("under", "before_time"),
            "leaderless_since": since("leaderless", "leaderless_since"),
        }
    )
    return dated.select(*_JUDGED)


def _moves(recent: DataFrame) -> DataFrame:
    """What happened to a broker in a partition and hour: shrinks, expansions, elections, lossy_elections, flaps.

    `flaps` is how often at most the broker left or joined this ISR in the hour up to one of these times.
    """
    departed = F.transform(
        "departed", lambda broker: F.struct(broker.alias("broker_id"), F.lit("departed").alias("did"))
    )
    joined = F.transform("joined", lambda broker: F.struct(broker.alias("broker_id"), F.lit("joined").alias("did")))
    elected = F.when(
        F.col("election").isNotNull(),
        F.array(
            F.struct(
                F.col("leader").alias("broker_id"),
                F.when(_lossy(), "lossy").otherwise("elected").alias("did"),
            )
        ),
    )
    everything = F.concat(
        departed, joined, F.coalesce(elected, F.array().cast("array<struct<broker_id:int,did:string>>"))
    )
    rows = recent.where("NOT made").select(*_PARTITION, "hour", "append_time", F.explode(everything).alias("move"))
    within = Window.partitionBy(*_PARTITION, "broker_id").orderBy("append_time").rangeBetween(-HOUR, Window.currentRow)
    flat = rows.select(*_PARTITION, "hour", "append_time", "move.*")
    counted = flat.withColumn("flaps", F.count_if(F.col("did").isin("departed", "joined")).over(within))
    return counted.groupBy(*_PARTITION, "broker_id", "hour").agg(
        F.count_if(F.col("did") == "departed").alias("shrinks"),
        F.count_if(F.col("did") == "joined").alias("expansions"),
        F.count_if(F.col("did").isin("elected", "lossy")).alias("elections"),
        F.count_if(F.col("did") == "lossy").alias("lossy_elections"),
        F.max("flaps").alias("flaps"),
    )


def _lossy() -> Column:
    return F.coalesce(F.col("election").isin([kind.value for kind in LOSSY]), F.lit(False))


def _by_partition(recent: DataFrame, moves: DataFrame) -> DataFrame:
    key = [*_PARTITION, "hour"]
    ended = {
        "leaderless_ms": (F.col("leaderless_before") & ~F.col("leaderless"), "leaderless_since"),
        "under_min_ms": (F.col("under_before") & ~F.col("under"), "under_since"),
        "out_of_sync_ms": (F.col("short_before") & ~F.col("short"), "short_since"),
    }
    counted = (
        recent.where("NOT made")
        .groupBy(*key)
        .agg(
            F.max("topic").alias("topic"),
            F.count_if(F.size("departed") > 0).alias("shrinks"),
            F.count_if(F.size("joined") > 0).alias("expansions"),
            F.count("election").alias("elections"),
            F.count_if(_lossy()).alias("lossy_elections"),
            *[
                F.sum(F.when(over, F.greatest(F.lit(0), F.col("append_time") - F.col(since)))).alias(name)
                for name, (over, since) in ended.items()
            ],
        )
    )
    flaps = moves.groupBy(*key).agg(F.max("flaps").alias("flaps"))
    return counted.join(flaps, key, "left").withColumn("subject", F.lit(PARTITION)).drop("topic_id")


def _open(partitions: DataFrame, recent: DataFrame, least: DataFrame, end: Column) -> DataFrame:
    """What is so at the end of the log, of partitions that have no leader, too small an ISR, or replicas out of it."""
    begun = recent.groupBy(*_PARTITION).agg(
        *[
            F.max(F.when(F.col(name) & ~F.col(f"{name}_before"), F.col("append_time"))).alias(f"{name}_since")
            for name in _SO
        ],
    )
    now = _with_least(partitions, least).withColumns(
        {"short": _short(""), "under": _under(""), "leaderless": F.col("leader") == NO_LEADER}
    )
    bad = now.where("leaderless OR under OR short").join(begun, _PARTITION, "left")

    def so_far(name: str) -> Column:
        since = F.coalesce(f"{name}_since", "kraft_append_time")
        return F.when(F.col(name), F.greatest(F.lit(0), end - since))

    return bad.select(
        CLUSTER,
        F.lit(PARTITION).alias("subject"),
        "topic",
        "partition",
        so_far("leaderless").alias("leaderless_ms"),
        so_far("under").alias("under_min_ms"),
        so_far("short").alias("out_of_sync_ms"),
    )


def _by_broker(moves: DataFrame) -> DataFrame:
    return (
        moves.groupBy(CLUSTER, "broker_id", "hour")
        .agg(*[F.sum(name).alias(name) for name in _COUNTS], F.max("flaps").alias("flaps"))
        .withColumn("subject", F.lit(BROKER))
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


def _worst(every: DataFrame, most: int) -> DataFrame:
    scored = every.withColumns(
        {
            "moves": F.coalesce("shrinks", F.lit(0)) + F.coalesce("expansions", F.lit(0)),
            "skew": F.abs(F.coalesce("leads", F.lit(0)) - F.coalesce("preferred", F.lit(0))),
        }
    )
    counted = [F.coalesce(F.col(name), F.lit(0)) > 0 for name in (*_WORST, "elections")]
    of_subject = Window.partitionBy(CLUSTER, "subject")
    order = [F.coalesce(F.col(name), F.lit(0)).desc() for name in _WORST]
    ordered = of_subject.orderBy(*order, "topic", "partition", "broker_id", "hour")
    placed = scored.where(reduce(or_, counted)).withColumns(
        {"place": F.row_number().over(ordered), "total": F.count("*").over(of_subject)}
    )
    return placed.where(F.col("place") <= most).select(CLUSTER, *[_typed(name) for name in LINE], "place", "total")


def _typed(name: str) -> Column:
    kind = {"subject": "string", "topic": "string", "partition": "int", "broker_id": "int"}.get(name, "bigint")
    return F.col(name).cast(kind).alias(name)
