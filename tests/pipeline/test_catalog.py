"""Whole audits whose tables are in a catalog: they report what those in a folder do, and views have the state as of each run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.exit import ERRORS, OK, WARNINGS
from jobs.sinks.chained import state_rows
from jobs.sinks.delta import Warehouse
from schemas.entities import ENTITIES
from schemas.gold import RUNS
from tests.captures import capture
from tests.reliability.killing import configuration

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
SCHEMA = "audited_twice"
KEY_NAME = "KEY_OF_THE_CATALOG_TEST"
STAGES = ("5", "8")


def audited(path: Path) -> None:
    assert main(["run", "--conf", str(path)]) in (OK, WARNINGS, ERRORS)


def configured(folder: Path, name: str, stage: str, **content: object) -> Path:
    path = configuration(folder, name, capture("3.9.1", stage))
    path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("catalog")


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, folder: Path) -> Iterator[Warehouse]:
    """The tables of a cluster that was audited at two stages, as a user does it; the same in a folder beside them."""
    os.environ[KEY_NAME] = "a key of this test, long as one must be"
    spark.sql(f"CREATE DATABASE {SCHEMA} LOCATION '{folder / 'db'}'")
    content = {"warehouse": f"spark_catalog.{SCHEMA}", "catalog": True, "secrets": {"fingerprint_key_env": KEY_NAME}}
    try:
        for stage in STAGES:
            audited(configured(folder, "c", stage, **content))
            audited(configured(folder, "d", stage))
        yield Warehouse(spark, f"spark_catalog.{SCHEMA}", catalog=True)
    finally:
        del os.environ[KEY_NAME]
        spark.sql(f"DROP DATABASE {SCHEMA} CASCADE")


def counts(warehouse: Warehouse) -> list[tuple[str, dict[str, int]]]:
    reports = [json.loads(row["report"]) for row in warehouse.read(RUNS).orderBy("sequence").collect()]
    return [(report["verdict"], report["divergences"]["by_class"]) for report in reports]


def test_runs_report_what_those_with_tables_in_a_folder_do(
    warehouse: Warehouse, spark: SparkSession, folder: Path
) -> None:
    found = counts(warehouse)
    assert len(found) == len(STAGES)
    assert found == counts(Warehouse(spark, str(folder / "tables")))


def test_views_have_the_state_as_of_each_run(warehouse: Warehouse, spark: SparkSession) -> None:
    runs = warehouse.read(RUNS).select("run_id", "state_runs").collect()
    assert len(runs) == len(STAGES)
    wanted, found = [], []
    for entity in ENTITIES:
        stored = warehouse.read(entity.table)
        names = [name for name in entity.table.column_names if name not in ("row_key", "gone")]
        view = spark.table(f"{SCHEMA}.silver_{entity.name}_as_of")
        assert view.columns == ["as_of_run", *names]
        for run in runs:
            of_run = view.where(F.col("as_of_run") == run["run_id"])
            found.append(told(of_run, entity.name, run["run_id"], names))
            wanted.append(told(state_rows(stored, {"c": run["state_runs"]}), entity.name, run["run_id"], names))
    # All in two queries, because each takes a quarter of a second.
    state = collected(found)
    assert state == collected(wanted)
    assert len(state) > 500
    assert {run_id for _, run_id, _ in state} == {run["run_id"] for run in runs}


def told(rows: DataFrame, entity: str, run_id: str, names: Sequence[str]) -> DataFrame:
    return rows.select(F.lit(entity), F.lit(run_id), F.to_json(F.struct(*names), {"ignoreNullFields": "false"}))


def collected(frames: Sequence[DataFrame]) -> list[tuple[str, ...]]:
    return sorted(tuple(row) for row in reduce(DataFrame.unionAll, frames).collect())
