"""Suites against rows whose faults are known: who fails, how many rows exactly, and which."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.exit import UsageError
from jobs.expectations import engine
from jobs.expectations.validate import RunRows, check_conditions, judge
from schemas.entities.partitions import PARTITIONS
from schemas.report import ExpectationResult
from transforms.expectations.sql import by_itself, failing_rows
from transforms.expectations.suite import Expectation, Suite
from transforms.report.expectations import expectation_lines

TABLE = PARTITIONS.table
ROOT = Path(__file__).parents[2]
QUERY = "unexpected_rows_expectation"


def expected(*entries: tuple[str, dict[str, Any]], where: str | None = None) -> Suite:
    numbered = [Expectation(place, type_, kwargs) for place, (type_, kwargs) in enumerate(entries, 1)]
    return Suite("mine", TABLE, tuple(numbered), where)


def row(cluster: str, partition: int, **more: Any) -> dict[str, Any]:
    state = {"replicas": [1, 2, 3], "leader": 1, "leader_epoch": 4, "topic_id": "x"}
    return (
        {"cluster": cluster, "run_id": "r", "source": "kraft", "topic": "orders", "partition": partition} | state | more
    )


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> DataFrame:
    """`good` has forty rows as they should be, `bad` the same with a few faults, `none` no row at all."""
    faults: dict[int, dict[str, Any]] = {
        0: {"leader_epoch": -1},
        3: {"leader": 9},
        5: {"replicas": [1]},
        7: {"partition": 6},
        8: {"topic_id": None},
        9: {"topic_id": None, "topic": "it's\\"},
    }
    made = [row("good", number) for number in range(40)]
    made += [row("bad", number) | faults.get(number, {}) for number in range(40)]
    values = [tuple(each.get(name) for name in TABLE.column_names) for each in made]
    return spark.createDataFrame(values, TABLE.struct).localCheckpoint()


# Each with the rows of `bad` that fail it, by partition.
CASES: list[tuple[str, dict[str, Any], list[int]]] = [
    ("expect_column_values_to_not_be_null", {"column": "topic_id"}, [8, 9]),
    ("expect_column_values_to_be_null", {"column": "isr"}, []),
    ("expect_column_values_to_be_between", {"column": "leader_epoch", "min_value": 0, "max_value": 4}, [0]),
    ("expect_column_values_to_be_between", {"column": "leader", "max_value": 9, "strict_max": True}, [3]),
    ("expect_column_values_to_be_in_set", {"column": "leader", "value_set": [1, 2]}, [3]),
    ("expect_column_values_to_not_be_in_set", {"column": "topic", "value_set": ["it's\\"]}, [9]),
    ("expect_column_values_to_match_regex", {"column": "topic", "regex": "^[a-z]{6}$"}, [9]),
    ("expect_column_values_to_not_match_regex", {"column": "topic", "regex": "\\\\$"}, [9]),
    ("expect_column_value_lengths_to_equal", {"column": "topic", "value": 6}, [9]),
    ("expect_column_value_lengths_to_be_between", {"column": "topic", "min_value": 6}, [9]),
    ("expect_compound_columns_to_be_unique", {"column_list": ["source", "topic", "partition"]}, [6, 6]),
    ("expect_column_values_to_be_unique", {"column": "partition"}, [6, 6]),
    (QUERY, {"unexpected_rows_query": "SELECT * FROM {batch} WHERE size(replicas) < 3"}, [5]),
    (QUERY, {"unexpected_rows_query": "SELECT * FROM {batch} WHERE NOT array_contains(replicas, leader);"}, [3]),
    (
        "expect_column_values_to_be_between",
        {"column": "leader_epoch", "min_value": 0, "row_condition": "leader = 1", "condition_parser": "spark"},
        [0],
    ),
]


@pytest.fixture(scope="module")
def judged(rows: DataFrame) -> dict[str, list[ExpectationResult]]:
    suite = expected(*((type_, kwargs) for type_, kwargs, _ in CASES))
    return judge(dict.fromkeys(("good", "bad"), (suite,)), tables(rows))


def tables(rows: DataFrame) -> RunRows:
    return RunRows(lambda _table: rows, lambda _table: "silver_partitions", dict.fromkeys(("good", "bad", "none"), "r"))


def partitions_of(result: ExpectationResult) -> list[int]:
    return sorted(json.loads(each)["partition"] for each in result.sample)


def test_a_cluster_without_a_fault_meets_everything_beside_one_that_does_not(
    judged: dict[str, list[ExpectationResult]],
) -> None:
    assert [each.expectation for each in judged["good"] if not each.success] == []
    assert {each.rows for each in judged["good"]} == {40}


@pytest.mark.parametrize("place", range(len(CASES)), ids=[f"{n}-{type_}" for n, (type_, *_) in enumerate(CASES)])
def test_the_rows_shown_are_those_that_fail_and_the_statement_gives_them(
    judged: dict[str, list[ExpectationResult]], rows: DataFrame, place: int
) -> None:
    _, _, failing = CASES[place]
    result = judged["bad"][place]
    assert result.problem is None
    assert result.unexpected == len(failing)
    assert result.success is (not failing)
    if failing:
        assert partitions_of(result) == failing
        assert result.sql is not None
        rows.createOrReplaceTempView("silver_partitions")
        assert sorted(each["partition"] for each in rows.sparkSession.sql(result.sql).collect()) == failing


def alone(rows: DataFrame, suite: Suite, clusters: Sequence[str] = ("bad",)) -> list[ExpectationResult]:
    return judge(dict.fromkeys(clusters, (suite,)), tables(rows))["bad"]


def test_what_is_not_about_single_rows_is_judged_by_the_clusters_own(rows: DataFrame) -> None:
    suite = expected(
        ("expect_table_row_count_to_be_between", {"min_value": 40, "max_value": 40}),
        ("expect_column_max_to_be_between", {"column": "leader", "max_value": 3}),
        (QUERY, {"unexpected_rows_query": "SELECT topic FROM {batch} GROUP BY topic HAVING count(*) < 2"}),
    )
    count, largest, grouped = alone(rows, suite, ("good", "bad"))
    assert count.success
    assert (largest.success, largest.observed, largest.unexpected) == (False, "9", None)
    assert (grouped.unexpected, grouped.sample) == (1, ['{"topic":"it\'s\\\\"}'])


def test_that_there_was_nothing_to_judge_by_is_told(rows: DataFrame) -> None:
    suite = expected(("expect_column_values_to_not_be_null", {"column": "topic_id"}))
    (result,) = judge({"none": (suite,)}, tables(rows))["none"]
    assert (result.rows, result.success) == (0, True)
    assert expectation_lines([result])[-1].endswith("no rows to judge by")


def test_some_rows_may_be_tolerated(rows: DataFrame) -> None:
    nulls = {"column": "topic_id", "mostly": 0.9}
    (tolerated,) = alone(rows, expected(("expect_column_values_to_not_be_null", nulls)), ("good", "bad"))
    assert (tolerated.success, tolerated.unexpected, tolerated.percent) == (True, 2, 5.0)


def test_what_cannot_be_judged_is_not_met(rows: DataFrame) -> None:
    suite = expected(
        ("expect_column_values_to_not_be_null", {"column": "nope"}),
        (QUERY, {"unexpected_rows_query": "SELECT * FROM {batch} WHERE nope > 1"}),
        ("expect_column_values_to_not_be_null", {"column": "topic"}),
    )
    missing, query, fine = alone(rows, suite)
    assert not missing.success
    assert "nope" in str(missing.problem)
    assert not query.success
    assert query.problem
    assert fine.success


def test_a_suite_of_which_nothing_can_be_judged_is_not_met() -> None:
    suite = expected(("expect_column_values_to_not_be_null", {"column": "topic"}))

    def broken(_table: object) -> DataFrame:
        raise RuntimeError("no table")

    (result,) = judge({"bad": (suite,)}, RunRows(broken, str, {"bad": "r"}))["bad"]
    assert (result.success, result.severity, result.problem) == (False, "error", "no table")


def test_a_suites_own_condition_is_read_before_anything_is_asked(rows: DataFrame) -> None:
    empty = rows.limit(0)
    check_conditions([expected(where="source = 'kraft'")], lambda _table: empty)
    for wrong in ("sourc = 'kraft'", "source = "):
        with pytest.raises(UsageError, match=r"expectations `mine`: `meta\.where`: "):
            check_conditions([expected(where=wrong)], lambda _table: empty)


def test_a_million_failing_rows_are_counted_exactly_and_twenty_shown(spark: SparkSession, rows: DataFrame) -> None:
    million = spark.range(1_000_000).select(
        *(F.lit(None).cast(field.dataType).alias(field.name) for field in TABLE.columns if field.name not in _MADE),
        F.lit("bad").alias("cluster"),
        F.col("id").cast("int").alias("partition"),
        F.lit(-1).alias("leader_epoch"),
    )
    suite = expected(("expect_column_values_to_be_between", {"column": "leader_epoch", "min_value": 0}))
    (result,) = alone(million, suite)
    assert (result.unexpected, result.percent) == (1_000_000, 100.0)
    assert partitions_of(result) == list(range(20))
    assert len(json.dumps(result.sample)) < 5_000


_MADE = ("cluster", "partition", "leader_epoch")


def test_the_library_connects_to_nothing(rows: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    connect = socket.socket.connect

    def watched(self: socket.socket, address: Any) -> None:
        # Python speaks with its own Java over a local port.
        if not (isinstance(address, tuple) and address[0] in ("127.0.0.1", "::1", "localhost")):
            asked.append(address)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", watched)
    engine._batches.cache_clear()
    alone(rows, expected(("expect_column_values_to_not_be_null", {"column": "topic"})))
    assert asked == []


@pytest.mark.parametrize(
    ("query", "alone"),
    [
        ("SELECT * FROM {batch} WHERE size(replicas) < 3;", True),
        ("select * from {batch}\nwhere topic = 'a'", True),
        ("SELECT topic FROM {batch} WHERE true", False),
        ("SELECT * FROM {batch} WHERE topic IN (SELECT topic FROM {batch})", False),
        ("SELECT * FROM {batch} WHERE true LIMIT 3", False),
        ("SELECT * FROM {batch} b JOIN {batch} c USING (topic)", False),
    ],
)
def test_only_a_plain_condition_judges_each_row_by_itself(query: str, alone: bool) -> None:
    assert by_itself(Expectation(1, QUERY, {"unexpected_rows_query": query})) is alone


def test_there_is_no_statement_for_what_only_the_library_knows() -> None:
    assert (
        failing_rows(Expectation(1, "expect_column_mean_to_be_between", {"column": "leader", "max_value": 1})) is None
    )
    condition = {"column": "leader", "row_condition": 'col("leader") > 1', "condition_parser": "great_expectations"}
    assert failing_rows(Expectation(1, "expect_column_values_to_not_be_null", condition)) is None
