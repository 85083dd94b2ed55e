"""A sample of what `tests.reliability.kill_maintain` tries in full."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.reliability.kill_maintain import SIMULATED, Harness, Point
from tests.reliability.killing import AFTER

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


def test_after_a_maintenance_that_was_killed_the_next_run_and_the_next_maintenance_are_as_ever(
    spark: SparkSession, tmp_path: Path
) -> None:
    harness = Harness(spark, tmp_path, clusters=["migration"])
    commits = harness.wanted.commits
    assert {each.split()[0] for each in commits} == {
        "append",
        "replace_where",
        "delete",
        "compact",
        "vacuum",
        "keep_log",
    }
    assert harness.tried(Point("compact bronze.kraft_records", AFTER, SIMULATED)).differs == []
