"""Partitions without a leader, or without all their replicas in sync, counted by the broker that is missing (S§7.2, S§7.4)."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from schemas.checks.codes import OFFLINE_BY_BROKER, UNDER_REPLICATED
from transforms.frames import except_ids
from transforms.reconcile.judge.rules import said


def by_broker(partitions: pl.DataFrame, down: Sequence[int]) -> pl.DataFrame:
    """One side's silver partitions to VIOLATIONS, one for each broker but those `down` on purpose.

    UNDER_REPLICATED: partitions with a leader whose ISR lacks the broker (`lacking`). OFFLINE_BY_BROKER: partitions without a leader
    that have a replica on it.
    """
    offline = pl.col("leader") == -1
    missing = pl.when(offline).then("replicas").otherwise(lacking())
    known = partitions.filter(pl.col("isr").is_not_null() & pl.col("leader").is_not_null())
    brokers = known.select(offline.alias("off"), except_ids(missing, down).alias("broker_id"))
    each = brokers.filter(pl.col("broker_id").list.len() > 0).explode("broker_id")
    counts = each.group_by("off", "broker_id").agg(pl.len().alias("partitions"))
    code = pl.when("off").then(pl.lit(OFFLINE_BY_BROKER)).otherwise(pl.lit(UNDER_REPLICATED))
    return counts.select(code.alias("code"), _text().alias("text"))


def lacking() -> pl.Expr:
    """The replicas that a partition's ISR lacks, except those that a current reassignment adds: they are still catching up."""
    return except_ids(staying(), "isr")


def moving() -> pl.Expr:
    """True for a partition that is being reassigned."""
    return pl.col("adding_replicas").list.len() + pl.col("removing_replicas").list.len() > 0


def named() -> pl.Expr:
    """The partition's name, at the beginning of what is said about it."""
    return said("{}/{}: ", "topic", "partition")


def staying() -> pl.Expr:
    """The replicas of a partition, except those that a current reassignment adds."""
    return except_ids("replicas", pl.col("adding_replicas").fill_null(pl.lit([], pl.List(pl.Int32))))


def _text() -> pl.Expr:
    plural = pl.when(pl.col("partitions") == 1).then(pl.lit("partition")).otherwise(pl.lit("partitions"))
    number = said("{} {}", "partitions", plural)
    without_leader = said("broker {} has replicas of {} without a leader", "broker_id", number)
    out_of_sync = said("broker {} is not in the ISR of {}", "broker_id", number)
    return pl.when("off").then(without_leader).otherwise(out_of_sync)


def without_pending(partitions: pl.DataFrame, admin_operations: pl.DataFrame) -> pl.DataFrame:
    """Partitions without those of topics queued for deletion: the load leaves those topics out (S§4.2)."""
    queued = admin_operations.filter(pl.col("kind") == "delete_topic").select(pl.col("subject").alias("topic"))
    return partitions.join(queued, on="topic", how="anti")
