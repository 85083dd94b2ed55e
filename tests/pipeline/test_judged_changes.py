"""Changes of partitions that two runs recorded at the same time: what is counted of them must not be counted twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.audit.isr_history import judged_changes
from jobs.audit.run import open_run
from jobs.settings import validated
from schemas.gold import ISR_CHANGE
from tests.captures import capture
from tests.pipeline.audits import settings_content

MOVED = {
    "cluster": "test",
    "topic_id": "id",
    "partition": 0,
    "offset": 7,
    "append_time": 5,
    "kinds": ["shrink"],
    "departed": [1],
}


@pytest.mark.parametrize("profile", ["small", "local"])
def test_a_change_that_is_there_twice_is_judged_once(spark: SparkSession, tmp_path: Path, profile: str) -> None:
    rows = [tuple(MOVED.get(name) for name in ISR_CHANGE.fieldNames())]
    recorded = spark.createDataFrame(rows, ISR_CHANGE)
    # A run over few rows judges what it made itself; one over many reads it back from where others write, too.
    found = recorded if profile == "small" else recorded.unionByName(recorded)
    with open_run(
        validated(settings_content(capture("3.9.1", "5"), tmp_path, spark={"profile": profile}), "test")
    ) as run:
        assert judged_changes(run, found, {}, {"test": 6}).count() == 1
