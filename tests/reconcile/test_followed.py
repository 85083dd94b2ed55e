"""A divergence over runs: it appears, persists, disappears and comes back."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.gold import DIVERGENCES
from transforms.clusters import CLUSTER
from transforms.reconcile.compare.between import located
from transforms.reconcile.compare.divergences import DIVERGENCE, fingerprint, followed, listed, ranked


def found(spark: SparkSession, *topics: str, cluster: str = "c") -> DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "cluster": cluster,
            "fingerprint": fingerprint("topics", topic, None, "lost_write"),
            "entity": "topics",
            "key": topic,
            "class": "lost_write",
        }
        for topic in topics
    ]
    values = [tuple(row.get(name) for name in DIVERGENCE.fieldNames()) for row in rows]
    return located(spark.createDataFrame(values, DIVERGENCE), None)


def stored(run: DataFrame, run_id: str) -> DataFrame:
    return run.withColumn("run_id", F.lit(run_id)).localCheckpoint()


def told(run: DataFrame, cluster: str = "c") -> dict[str, tuple[str, str]]:
    rows = run.where(F.col(CLUSTER) == cluster).collect()
    assert len({row["key"] for row in rows}) == len(rows)
    return {row["key"]: (row["status"], row["first_seen_run"]) for row in rows}


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


def test_the_same_divergence_in_two_clusters_has_two_stories(spark: SparkSession) -> None:
    """Clusters that one run audits were audited apart before: each goes on from its own run before, or from none."""
    nothing = spark.createDataFrame([], StructType(list(DIVERGENCES.columns)))
    ours = stored(followed(found(spark, "a", "b"), nothing, "ours-1"), "ours-1")
    theirs = stored(followed(found(spark, "a", "c", cluster="d"), nothing, "theirs-1"), "theirs-1")
    now = found(spark, "a").unionByName(found(spark, "b", "c", cluster="d")).unionByName(found(spark, "a", cluster="e"))
    both = followed(now, ours.unionByName(theirs), "both")
    assert told(both) == {"a": ("persisting", "ours-1"), "b": ("resolved", "ours-1")}
    assert told(both, "d") == {
        "a": ("resolved", "theirs-1"),
        "b": ("new", "both"),
        "c": ("persisting", "theirs-1"),
    }
    assert told(both, "e") == {"a": ("new", "both")}


def test_of_each_cluster_the_first_rows_are_listed_and_no_count_is_lost(spark: SparkSession) -> None:
    columns = "cluster string, class string, severity string, entity string, key string, column string, status string"
    rows = [("c", "lost_write", "error", "topics", f"{n}", None, "new") for n in range(4)]
    rows += [("c", "lag", "info", "topics", "9", None, "new"), ("c", "lag", "info", "topics", "8", None, "resolved")]
    both = [*rows, *[("d", *row[1:]) for row in rows]]
    limits = {"c": 2, "d": 4}
    kept: dict[str, list[tuple[str, str, int]]] = {"c": [], "d": []}
    for row in listed(spark.createDataFrame(both, columns), limits).orderBy("cluster", "key").collect():
        kept[row["cluster"]].append((row["key"], row["status"], row["total"]))
    small = [("8", "resolved", 1), ("9", "new", 1)]
    assert kept == {
        "c": [*[(f"{n}", "new", 4) for n in range(2)], *small],
        "d": [*[(f"{n}", "new", 4) for n in range(4)], *small],
    }


def test_another_class_of_the_same_row_is_another_divergence() -> None:
    of_row = {fingerprint("topics", "k", None, name) for name in ("lag", "lost_write")}
    assert len(of_row | {fingerprint("topics", "k", "topic_id", "lag")}) == 3


@pytest.mark.parametrize("order", [("lost_write", "lag"), ("lag", "lost_write")])
def test_defects_come_first(spark: SparkSession, order: tuple[str, ...]) -> None:
    rows = [(name, "info", "topics", "k", None) for name in order]
    frame = spark.createDataFrame(rows, "class string, severity string, entity string, key string, column string")
    assert [row["class"] for row in ranked(frame).orderBy("rank").collect()] == ["lost_write", "lag"]
