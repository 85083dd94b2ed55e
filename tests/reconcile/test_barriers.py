"""Which barriers a loss lies between, and how long changes waited at each: from ZooKeeper's transaction logs."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from schemas.silver import BARRIERS
from transforms.reconcile.compare.between import located
from transforms.reconcile.judge.lag_series import MOST_POINTS, Waited, lag_series, points

pytestmark = pytest.mark.slow

# Two clusters; `b` keeps a barrier of the quorum that was there before.
MARKS = {"a": [(10, 500, 1_000), (20, 510, 2_000), (30, 530, 9_000)], "b": [(5, 900, 10), (50, 12, 60_000)]}
APPENDED = {"a": {501: 1_900, 511: 2_500, 512: 2_600}, "b": {13: 50_000, 901: 40_000}}


def barriers(spark: SparkSession, marks: dict[str, list[tuple[int, int, int]]]) -> DataFrame:
    rows = [(name, "r", zxid, time, offset, 1, 3000, 1) for name, mine in marks.items() for zxid, offset, time in mine]
    return spark.createDataFrame(rows, BARRIERS.struct)


def located_rows(spark: SparkSession, lost: list[tuple[str, int | None]]) -> dict[tuple[str, int | None], Any]:
    rows = [(cluster, offset, "it is lost") for cluster, offset in lost]
    frame = spark.createDataFrame(rows, "cluster string, lost_offset bigint, explanation string")
    return {(row["cluster"], row["lost_offset"]): row for row in located(frame, barriers(spark, MARKS)).collect()}


def test_a_loss_lies_between_the_barriers_around_its_record(spark: SparkSession) -> None:
    asked = [("a", 505), ("a", 510), ("a", 511), ("a", 499), ("a", 531), ("a", None), ("b", 12)]
    found = located_rows(spark, asked)
    around = {key: (row["lost_after_zxid"], row["lost_until_zxid"]) for key, row in found.items()}
    assert around == {
        ("a", 505): (10, 20),
        ("a", 510): (10, 20),  # the barrier at the record's own offset must have it
        ("a", 511): (20, 30),
        ("a", 499): (None, 10),
        ("a", 531): (30, None),
        ("a", None): (None, None),
        ("b", 12): (None, 50),
    }
    assert found["a", 505]["explanation"] == (
        "it is lost; the record at offset 505 was lost after transaction 10 and by transaction 20"
    )
    assert found["a", 499]["explanation"].endswith("was lost before transaction 10")
    assert found["a", 531]["explanation"] == found["a", None]["explanation"] == "it is lost"


def test_each_barrier_tells_how_long_the_oldest_record_it_brought_had_waited(spark: SparkSession) -> None:
    rows = [(name, offset, time, None, None) for name, mine in APPENDED.items() for offset, time in mine.items()]
    schema = "cluster string, offset bigint, append_time bigint, checkpoint_offset bigint, problem string"
    records = spark.createDataFrame(rows, schema)
    found = lag_series(barriers(spark, MARKS), records, {"a": 0, "b": 100}).collect()
    series = {name: [row.asDict() for row in found if row["cluster"] == name] for name in ("a", "b")}
    for row in series["a"]:
        row.pop("cluster")
    assert points(series["a"], 0.0) == [Waited(20, 2_000, 510, 10, 0.1), Waited(30, 9_000, 530, 20, 6.5)]
    assert points(series["a"], 500.0)[0].seconds == 0.0
    assert series["b"] == [], "its only barrier of this log has none before it"


def test_a_long_series_keeps_its_worst_point_and_its_last(spark: SparkSession) -> None:
    count, worst = 5_000, 3_217
    marks = {"a": [(n, n, 1_000 * n) for n in range(1, count + 1)]}
    rows = [("a", n, 1_000 * n - (60_000 if n == worst else 5), None, None) for n in range(2, count + 1)]
    schema = "cluster string, offset bigint, append_time bigint, checkpoint_offset bigint, problem string"
    found = lag_series(barriers(spark, marks), spark.createDataFrame(rows, schema), {"a": 0}).drop("cluster").collect()
    series = points([row.asDict() for row in found], 0.0)
    assert 100 < len(series) <= MOST_POINTS
    assert series[-1].zxid == count
    assert max(series, key=lambda point: point.seconds).zxid == worst
