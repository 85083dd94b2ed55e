"""What a run over many rows holds in memory: read once for all questions, and let go when the run ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.audit.run import open_run
from jobs.settings import validated
from schemas.entities.acls import ACLS
from schemas.entities.topics import TOPICS
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.audits import settings_content


def test_rows_that_were_cached_are_let_go_when_the_run_ends(spark: SparkSession, tmp_path: Path) -> None:
    with open_run(
        validated(settings_content(capture("3.9.1", "5"), tmp_path, spark={"profile": "local"}), "test")
    ) as run:
        part = run.part(["test"], "part")
        held = [run.cache_now(spark.range(3).toDF("n")), part.cache_now(spark.range(4).toDF("n"))]
        assert [rows.storageLevel.useMemory for rows in held] == [True, True]
    # The session goes on: a notebook's would fill up with what every audit has held.
    assert [rows.storageLevel.useMemory for rows in held] == [False, False]


def test_the_error_of_a_run_is_told_where_its_rows_cannot_be_let_go(spark: SparkSession, tmp_path: Path) -> None:
    content = settings_content(capture("3.9.1", "5"), tmp_path, spark={"profile": "local"})
    with pytest.raises(RuntimeError, match="of the run"):
        _run_that_ends_with_java(content, spark)


def _run_that_ends_with_java(content: dict[str, Any], spark: SparkSession) -> None:
    with open_run(validated(content, "test")) as run:
        run.cache(spark.range(3).toDF("n")).unpersist = _refused  # type: ignore[method-assign]
        raise RuntimeError("of the run")


def _refused(blocking: bool = False) -> None:
    raise ConnectionError("Java has come to an end")


def test_few_rows_of_a_large_run_are_held_once_written_and_many_are_read_where_they_are(
    spark: SparkSession, tmp_path: Path
) -> None:
    content = settings_content(capture("3.9.1", "5"), tmp_path, spark={"profile": "local"})
    with open_run(validated(content, "test")) as run:
        assert run.keep(TOPICS.table, _one_row(spark, TOPICS.table), few=True).storageLevel.useMemory
        assert not run.keep(ACLS.table, _one_row(spark, ACLS.table)).storageLevel.useMemory
        assert [run.rows(table).count() for table in (TOPICS.table, ACLS.table)] == [1, 1]


def _one_row(spark: SparkSession, table: Table) -> DataFrame:
    values = [tuple("test" if name == "cluster" else None for name in table.column_names)]
    return spark.createDataFrame(values, table.struct).drop("run_id")
