"""Partitions without a leader, or without all their replicas in sync, counted by the broker that is missing (S§7.2, S§7.4)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.checks.codes import OFFLINE_BY_BROKER, UNDER_REPLICATED
from transforms.clusters import CLUSTER, by_cluster, of_clusters


def by_broker(partitions: DataFrame, down: Mapping[str, Sequence[int]]) -> DataFrame:
    """One side's silver partitions to (cluster, code, text), one for each broker but those `down` on purpose.

    UNDER_REPLICATED: partitions with a leader whose ISR lacks the broker (`lacking`). OFFLINE_BY_BROKER: partitions without a leader
    that have a replica on it.
    """
    offline = F.col("leader") == -1
    on_purpose = by_cluster({name: list(nodes) for name, nodes in down.items()}, "array<int>")
    missing = F.when(offline, F.col("replicas")).otherwise(lacking())
    brokers = F.explode(F.array_except(missing, on_purpose)).alias("broker_id")
    each = partitions.where(F.col("isr").isNotNull() & F.col("leader").isNotNull()).select(
        CLUSTER, offline.alias("off"), brokers
    )
    counts = each.groupBy(CLUSTER, "off", "broker_id").agg(F.count("*").alias("partitions"))
    code = F.when(F.col("off"), OFFLINE_BY_BROKER).otherwise(UNDER_REPLICATED).alias("code")
    return counts.select(CLUSTER, code, _text().alias("text"))


def lacking() -> Column:
    """The replicas that a partition's ISR lacks, but for those that a reassignment under way adds: they are still catching up."""
    adding = F.coalesce("adding_replicas", F.array().cast("array<int>"))
    return F.array_except(F.array_except("replicas", adding), F.col("isr"))


def _text() -> Column:
    plural = F.when(F.col("partitions") == 1, "partition").otherwise("partitions")
    number = F.concat_ws(" ", F.col("partitions").cast("string"), plural)
    without_leader = F.format_string("broker %d has replicas of %s without a leader", F.col("broker_id"), number)
    out_of_sync = F.format_string("broker %d is not in the ISR of %s", F.col("broker_id"), number)
    return F.when(F.col("off"), without_leader).otherwise(out_of_sync)


def without_pending(partitions: DataFrame, admin_operations: DataFrame, clusters: Collection[str]) -> DataFrame:
    """Partitions without those of topics queued for deletion in `clusters`: the load leaves those topics out (S§4.2)."""
    queued = admin_operations.where(F.col("kind") == "delete_topic").where(of_clusters(clusters))
    pending = queued.select(CLUSTER, F.col("subject").alias("topic")).distinct()
    return partitions.join(F.broadcast(pending), [CLUSTER, "topic"], "left_anti")
