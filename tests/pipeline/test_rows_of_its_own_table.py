"""Runs over many rows write their tables at once, and must not be refused because of what another run writes meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.audit.compare import keep_differences
from jobs.audit.run import Run, open_run
from jobs.settings import validated
from schemas.gold import DIVERGENCES
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.audits import settings_content


def test_differences_that_follow_earlier_ones_are_made_before_they_are_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[str]] = []
    write = Run.append

    def noted(run: Run, table: Table, rows: DataFrame, **how: Any) -> None:
        read.append(rows.inputFiles())
        write(run, table, rows, **how)

    content = settings_content(capture("3.9.1", "5"), tmp_path, spark={"profile": "local"})
    with open_run(validated(content, "test")) as run:
        assert not run.small
        earlier = {"cluster": "test", "run_id": "earlier", "entity": "topics"}
        values = [tuple(earlier.get(name) for name in DIVERGENCES.column_names)]
        run.warehouse.append(DIVERGENCES, spark.createDataFrame(values, DIVERGENCES.struct))
        followed = run.warehouse.read(DIVERGENCES).drop("run_id")
        assert followed.inputFiles()
        monkeypatch.setattr(Run, "append", noted)
        assert keep_differences(run, followed).count() == 1
    assert read == [[]]
