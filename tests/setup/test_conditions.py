"""Conditions on rows: Spark, Polars, delta-rs and Arrow mean by each what is said of it, for nulls and quotes as well."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import deltalake
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.sinks.conditions import PRESENT, Below, Between, Condition, Equal, NoneOf, all_of, any_of

TEXTS = [None, "", "a", "b", "o'clock", 'a "b"', "back\\slash", "a\\'b", "%", "b_"]
NUMBERS = [None, -1, 0, 1, 2]
ROWS = [{"text": text, "number": number} for text in TEXTS for number in NUMBERS]
Truth = bool | None


def simple(seed: random.Random) -> tuple[Condition, Any]:
    """A condition on one column, and a function of a row that says whether it holds: True, False or None for unknown."""
    name = seed.choice(["text", "number"])
    values: list[Any] = [each for each in (TEXTS if name == "text" else NUMBERS) if each is not None]
    one, other = seed.choice(values), seed.choice(values)
    some = tuple(seed.sample(values, seed.randrange(3)))

    def known(test: Any) -> Any:
        return lambda row: None if row[name] is None else test(row[name])

    return seed.choice(
        [
            (Equal(name, one), known(lambda value: value == one)),
            (Equal(name, None), lambda row: row[name] is None),
            (Equal(name, PRESENT), lambda row: row[name] is not None),
            (Equal(name, some), known(lambda value: value in some) if some else lambda _row: False),
            (Equal(name, NoneOf(some)), lambda row: row[name] is None or row[name] not in some),
            (Between(name, one, other), known(lambda value: one <= value <= other)),
            (Equal(name, Below(one)), known(lambda value: value < one)),
        ]
    )


def joined(seed: random.Random, depth: int) -> tuple[Condition, Any]:
    if depth == 0:
        return simple(seed)
    (one, first), (other, second) = joined(seed, depth - 1), joined(seed, seed.randrange(depth))

    def both(row: Any) -> Truth:
        found = {first(row), second(row)}
        return False if False in found else None if None in found else True

    def either(row: Any) -> Truth:
        found = {first(row), second(row)}
        return True if True in found else None if None in found else False

    def negated(row: Any) -> Truth:
        found = first(row)
        return None if found is None else not found

    return seed.choice([(one & other, both), (one | other, either), (~one, negated)])


CASES = [joined(random.Random(number), number % 4) for number in range(120)]  # noqa: S311 - the seed makes a failure repeatable


def wanted(meets: Any) -> list[bool]:
    return [meets(row) is True for row in ROWS]


def test_polars_means_what_is_said() -> None:
    rows = pl.DataFrame(ROWS)
    for condition, meets in CASES:
        found = rows.select(pl.sql_expr(condition.sql()).fill_null(value=False).alias("met"))["met"].to_list()
        assert found * (len(ROWS) // len(found)) == wanted(meets), condition


def test_spark_means_what_is_said(spark: SparkSession) -> None:
    rows = spark.createDataFrame(
        [(number, *row.values()) for number, row in enumerate(ROWS)], "n long, text string, number long"
    )
    met = [F.coalesce(condition.column(), F.lit(False)).alias(f"c{n}") for n, (condition, _) in enumerate(CASES)]
    found = rows.select("n", *met).orderBy("n").collect()
    for number, (condition, meets) in enumerate(CASES):
        assert [row[f"c{number}"] for row in found] == wanted(meets), condition


def test_arrow_means_what_is_said() -> None:
    rows = pa.RecordBatch.from_pylist(ROWS)
    for condition, meets in CASES:
        again = pickle.loads(pickle.dumps(condition))  # noqa: S301 - as Spark sends it to a worker
        assert [met is True for met in again.of(rows).to_pylist()] == wanted(meets), condition


def test_delta_removes_the_rows_that_are_meant_and_no_other(tmp_path: Path) -> None:
    rows = pl.DataFrame(ROWS, schema={"text": pl.String, "number": pl.Int64}).with_row_index("n").cast({"n": pl.Int64})
    for number, (condition, meets) in enumerate(CASES[:60]):
        place = str(tmp_path / str(number))
        # Two files, so that their statistics decide too.
        for part in (rows[: len(ROWS) // 2], rows[len(ROWS) // 2 :]):
            deltalake.write_deltalake(place, part.to_arrow(), mode="append")
        deltalake.DeltaTable(place).delete(condition.sql())
        left = deltalake.DeltaTable(place).to_pyarrow_table()["n"].to_pylist()
        assert sorted(left) == [n for n, met in enumerate(wanted(meets)) if not met], condition


def test_several_columns_are_all_asked_for() -> None:
    assert all_of({"text": "a", "number": 1}) == Equal("text", "a") & Equal("number", 1)
    assert any_of([Equal("text", "a")]) == Equal("text", "a")
    with pytest.raises(TypeError):
        Equal("text", 1.5).sql()
