"""What a step of its own takes over from those before it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.run.run import ClusterRun, Run
from jobs.run.steps import begin, finish
from jobs.settings import validated
from jobs.sinks.delta import Warehouse
from schemas.bronze import QUARANTINE
from transforms.secrets import Fingerprinter

SETTINGS = validated(
    {"cluster": "c", "warehouse": "w", "zookeeper": {"connect": "zk:2181"}, "kraft": {"folders": ["log"]}}, "test"
)


def a_process(spark: SparkSession, folder: Path) -> Run:
    """The run as every step finds it, which is a process of its own."""
    warehouse = Warehouse(spark, str(folder / "warehouse"))
    return Run({"c": ClusterRun(SETTINGS)}, "r", datetime.now(UTC), spark, warehouse, Fingerprinter(b"0" * 32))


@pytest.fixture
def process(spark: SparkSession, tmp_path: Path) -> Iterator[Run]:
    run = a_process(spark, tmp_path)
    yield run
    run.close()


def test_a_step_takes_over_what_those_before_it_left(spark: SparkSession, tmp_path: Path, process: Run) -> None:
    begin(process, "ingest_zookeeper")
    walked = process.clusters["c"]
    walked.notes, walked.walks, walked.walked_at_ms = ["said"], ["walk"], 5
    finish(process, "ingest_zookeeper")
    following = a_process(spark, tmp_path)
    begin(following, "ingest_kraft")
    taken = following.clusters["c"]
    assert (taken.notes, taken.walks, taken.walked_at_ms) == (["said"], ["walk"], 5)
    assert set(taken.rows_read.values()) == {0}
    assert following.started_at == process.started_at
    following.close()


def test_what_earlier_steps_of_the_run_stored_is_its_own(process: Run) -> None:
    def store(run_id: str) -> None:
        rows = [("c", run_id, "kraft", "a.log", 0, 61, position, "cut off") for position in range(3)]
        process.warehouse.append(QUARANTINE, process.spark.createDataFrame(rows, QUARANTINE.struct))

    process.in_steps = True
    store("r")
    store("another")
    assert process.rows(QUARANTINE).count() == 3
