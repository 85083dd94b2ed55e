"""A divergence over runs: it appears, persists, disappears and comes back."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.gold import DIVERGENCES
from transforms.reconcile.compare.divergences import DIVERGENCE, fingerprint, followed, ranked


def found(spark: SparkSession, *topics: str) -> DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "fingerprint": fingerprint("topics", topic, None, "lost_write"),
            "entity": "topics",
            "key": topic,
            "class": "lost_write",
        }
        for topic in topics
    ]
    return spark.createDataFrame([tuple(row.get(name) for name in DIVERGENCE.fieldNames()) for row in rows], DIVERGENCE)


def stored(run: DataFrame, run_id: str) -> DataFrame:
    return run.withColumns({"cluster": F.lit("c"), "run_id": F.lit(run_id)}).localCheckpoint()


def told(run: DataFrame) -> dict[str, tuple[str, str]]:
    return {row["key"]: (row["status"], row["first_seen_run"]) for row in run.collect()}


def test_a_divergence_appears_persists_disappears_and_comes_back(spark: SparkSession) -> None:
    before = spark.createDataFrame([], StructType(list(DIVERGENCES.columns)))
    first = stored(followed(found(spark, "a", "b"), before, "run-1"), "run-1")
    assert told(first) == {"a": ("new", "run-1"), "b": ("new", "run-1")}
    second = stored(followed(found(spark, "a", "b", "c"), first, "run-2"), "run-2")
    assert told(second) == {"a": ("persisting", "run-1"), "b": ("persisting", "run-1"), "c": ("new", "run-2")}
    third = stored(followed(found(spark, "b"), second, "run-3"), "run-3")
    assert told(third) == {"a": ("resolved", "run-1"), "b": ("persisting", "run-1"), "c": ("resolved", "run-2")}
    fourth = stored(followed(found(spark, "a", "b"), third, "run-4"), "run-4")
    assert told(fourth) == {"a": ("new", "run-4"), "b": ("persisting", "run-1")}, "resolved once is said once"


def test_another_class_of_the_same_row_is_another_divergence() -> None:
    of_row = {fingerprint("topics", "k", None, name) for name in ("lag", "lost_write")}
    assert len(of_row | {fingerprint("topics", "k", "topic_id", "lag")}) == 3


@pytest.mark.parametrize("order", [("lost_write", "lag"), ("lag", "lost_write")])
def test_defects_come_first(spark: SparkSession, order: tuple[str, ...]) -> None:
    rows = [(name, "info", "topics", "k", None) for name in order]
    frame = spark.createDataFrame(rows, "class string, severity string, entity string, key string, column string")
    assert [row["class"] for row in ranked(frame).orderBy("rank").collect()] == ["lost_write", "lag"]
