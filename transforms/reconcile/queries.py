"""Aggregates over silver and bronze that facts are made of: every result is bounded, whatever the cluster's size."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms.reconcile.difference import union_all

SAMPLE = 20
# What a running controller leaves at the end of its log: space not written yet, a batch not written whole.
_UNFINISHED = "problem LIKE 'torn tail:%' OR problem LIKE 'zero-filled:%'"


def samples(violations: DataFrame) -> DataFrame:
    """Exact totals and SAMPLE examples a code: (code, text) in, (code, total, text) out, the same total on each row."""
    by_code = Window.partitionBy("code")
    numbered = violations.withColumns(
        {"total": F.count("*").over(by_code), "number": F.row_number().over(by_code.orderBy("text"))}
    )
    return numbered.where(F.col("number") <= SAMPLE).select("code", "total", "text").orderBy("code", "number")


def violations(silver: Mapping[str, DataFrame], records: DataFrame) -> DataFrame:
    """Everything that is a violation by itself, as (code, text).

    `silver` are this run's rows of topics, partitions, configs and findings; `records` those of bronze.
    """
    zk_topics = silver["topics"].where("source = 'zookeeper'")
    zk_partitions = silver["partitions"].where("source = 'zookeeper'")
    kraft_configs = silver["configs"].where("source = 'kraft'")
    findings = silver["findings"].where(~F.col("code").isin("START-03", "START-04"))
    frames = [
        _coded(zk_topics.where("topic_id IS NULL"), "START-03", F.col("topic")),
        _coded(zk_partitions.where("leader IS NULL"), "START-04", F.format_string("%s/%d", "topic", "partition")),
        _coded(
            kraft_configs.where("resource_type NOT IN ('TOPIC', 'BROKER')"),
            "DUR-06",
            F.format_string("%s %s: %s", "resource_type", "resource_name", "config"),
        ),
        findings.select("code", F.format_string("%s: %s (%s)", "subject", "detail", "place").alias("text")),
        _coded(
            records.where(f"problem IS NOT NULL AND NOT ({_UNFINISHED})"),
            "CAP-02",
            F.format_string("controller %s, %s at byte %s: %s", "controller_id", "file", "position", "problem"),
        ),
        _coded(kraft_configs.where("NOT comparable"), "SEC-04", F.format_string("%s: %s", "resource_name", "config")),
        _coded(
            silver["configs"].where("source = 'zookeeper' AND NOT comparable"),
            "CIPHERTEXT",
            F.format_string("%s %s: %s", "resource_type", "resource_name", "config"),
        ),
    ]
    return union_all(frames)


def _coded(rows: DataFrame, code: str, text: object) -> DataFrame:
    return rows.select(F.lit(code).alias("code"), text.alias("text"))  # type: ignore[attr-defined]


def replica_counts(partitions: DataFrame, pending_deletes: DataFrame) -> DataFrame:
    """Replicas per broker of one side's partitions, topics pending deletion left out: broker_id, replicas."""
    kept = partitions.join(F.broadcast(pending_deletes), "topic", "left_anti")
    return (
        kept.select(F.explode("replicas").alias("broker_id")).groupBy("broker_id").agg(F.count("*").alias("replicas"))
    )


def partitions_on(partitions: DataFrame, broker_ids: list[int], limit: int) -> DataFrame:
    """A few topics a broker holds replicas of, users' topics before internal ones: (broker_id, text).

    The text is the topic's first partition there, and how many more of the topic it holds.
    """
    held = partitions.select("topic", "partition", F.explode("replicas").alias("broker_id"))
    by_topic = (
        held.where(F.col("broker_id").isin(broker_ids))
        .groupBy("broker_id", "topic")
        .agg(F.min("partition").alias("partition"), F.count("*").alias("held"))
    )
    order = Window.partitionBy("broker_id").orderBy(F.col("topic").startswith("__"), "topic")
    numbered = by_topic.withColumn("number", F.row_number().over(order)).where(F.col("number") <= limit)
    more = F.when(F.col("held") > 1, F.format_string(" and %d more", F.col("held") - 1)).otherwise("")
    return numbered.select("broker_id", F.concat(F.format_string("%s/%d", "topic", "partition"), more).alias("text"))


def row_counts(silver: Mapping[str, DataFrame]) -> DataFrame:
    """Rows per entity and side: entity, source, rows."""
    return union_all(
        [
            rows.groupBy("source").agg(F.count("*").alias("rows")).select(F.lit(name).alias("entity"), "source", "rows")
            for name, rows in silver.items()
        ]
    )


def append_times(records: DataFrame, migration_offset: int, committed_end: int) -> DataFrame:
    """One row: append time of the newest committed record, and of the first one past `/migration`'s offset."""
    log = records.where(F.col("checkpoint_offset").isNull() & (F.col("offset") < committed_end))
    behind = F.col("offset") > migration_offset
    return log.agg(
        F.max("append_time").alias("newest"),
        F.min(F.when(behind, F.col("append_time"))).alias("oldest_behind"),
    )
