"""How many queries an audit takes: Spark's cost is per query, so this number only falls, or a commit says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.sinks.delta import Warehouse
from jobs.steps.fleet import fleet_runs
from tests.captures import capture
from tests.pipeline.audits import Audit, audit_all, settings_content

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

# Measured: 99 for one small cluster in a new warehouse, of which 84 are the creation of 28 tables, three each.
MOST = 100


def executions(spark: SparkSession) -> int:
    """The number of the newest SQL execution: Spark's own events count them in one sequence."""
    spark.range(1).collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    store = spark._jsparkSession.sharedState().statusStore()
    return int(store.executionsList().last().executionId())


def begun_by(spark: SparkSession, warehouse: Path, stages: list[str]) -> int:
    contents = [settings_content(capture("3.9.1", stage), warehouse, cluster=f"c{stage}") for stage in stages]
    before = executions(spark)
    found = audit_all(list(contents))
    after = executions(spark)
    assert all(isinstance(each, Audit) for each in found.values())
    return after - before - 1


def test_an_audit_takes_few_queries_and_a_fleet_hardly_more(spark: SparkSession, tmp_path: Path) -> None:
    alone = begun_by(spark, tmp_path / "one", ["8"])
    assert alone <= MOST
    together = begun_by(spark, tmp_path / "three", ["8", "5", "quota-removal"])
    # A second look at what ZooKeeper lacks is the only question that some clusters raise and others don't.
    assert together <= alone + 5
    before = executions(spark)
    runs = fleet_runs(Warehouse(spark, str(tmp_path / "three")))
    assert len(runs) == 3
    # The fleet's page and the mails' policies, whatever the number of clusters and runs.
    assert executions(spark) - before - 1 <= 4
