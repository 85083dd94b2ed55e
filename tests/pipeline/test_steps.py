"""What a step of its own takes over from those before it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.audit.run import ClusterRun, Run
from jobs.audit.steps import begin, finish
from jobs.settings import validated
from jobs.sinks.delta import Warehouse
from schemas.bronze import QUARANTINE
from schemas.gold import RUN_STEPS
from transforms.secrets import Fingerprinter

SETTINGS = validated(
    {"cluster": "c", "warehouse": "w", "zookeeper": {"connect": "zk:2181"}, "kraft": {"folders": ["log"]}}, "test"
)


def a_process(spark: SparkSession, folder: Path) -> Run:
    """The run as every step finds it, which is a process of its own."""
    warehouse = Warehouse(spark, str(folder / "warehouse"))
    run = Run({"c": ClusterRun(SETTINGS)}, "r", datetime.now(UTC), spark, warehouse, Fingerprinter(b"0" * 32))
    run.expect_few_rows()
    return run


@pytest.fixture
def process(spark: SparkSession, tmp_path: Path) -> Iterator[Run]:
    run = a_process(spark, tmp_path)
    yield run
    run.close()


@pytest.mark.parametrize("few", [True, False])
def test_a_step_expects_as_many_rows_as_those_before_it_have_read(
    spark: SparkSession, tmp_path: Path, process: Run, few: bool
) -> None:
    begin(process, "ingest_zookeeper")
    assert process.small, "nothing is read yet"
    if not few:
        process.znodes_walked = 200_000
        process.measure()
    finish(process, "ingest_zookeeper")
    following = a_process(spark, tmp_path)
    begin(following, "ingest_kraft")
    assert following.small is few


def test_steps_of_a_release_that_did_not_say_it_may_have_read_many(process: Run) -> None:
    finish(process, "ingest_zookeeper")
    unsaid = process.warehouse.read(RUN_STEPS).withColumn("few_rows", F.lit(None).cast("boolean"))
    process.warehouse.append(RUN_STEPS, unsaid)
    begin(process, "ingest_kraft")
    assert not process.small


def test_what_earlier_steps_stored_is_read_once(process: Run) -> None:
    def store(run_id: str) -> None:
        rows = [("c", run_id, "kraft", "a.log", 0, 61, position, "cut off") for position in range(3)]
        process.warehouse.append(QUARANTINE, process.spark.createDataFrame(rows, QUARANTINE.struct))

    process.in_steps = True
    store("r")
    store("another")
    assert process.rows(QUARANTINE).count() == 3
    # A step that is repeated meanwhile changes nothing for this one.
    store("r")
    assert process.rows(QUARANTINE).count() == 3
    assert process.stored(QUARANTINE).count() == 6
