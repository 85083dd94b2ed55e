"""A run in steps that goes on from a kept state and meets what seems lost: it reads all that earlier runs have read."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.sinks.delta import Warehouse
from schemas.bronze import KRAFT_LOG_COPIES, QUARANTINE
from schemas.examined import EXAMINED
from tests.captures import capture
from tests.reliability.killing import audit, audit_in_steps, configuration
from transforms.examination.made import AGAIN, ANSWERS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
LOST = capture("3.9.1", "quota-removal")
NAME = "lost"
AGAIN_ID, FULL_ID = "20300101T000000Z-again", "20300102T000000Z-full"


class Place:
    """The tables of a cluster that was audited once."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.warehouse, self.folder = Warehouse(spark, str(folder / "tables")), folder
        self.first = audit([configuration(folder, NAME, LOST)])[NAME]

    def in_steps(self, run_id: str, source: Path = LOST, **kraft: object) -> dict[str, Any]:
        """The report of a run in steps."""
        conf = configuration(self.folder, NAME, source, **kraft)
        return audit_in_steps([conf], run_id, lambda: self.warehouse)[NAME]

    def based_on(self, run_id: str) -> set[str | None]:
        rows = self.warehouse.read(KRAFT_LOG_COPIES).where(F.col("run_id") == run_id).collect()
        return {row["base_run"] for row in rows}


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(spark, tmp_path_factory.mktemp("again"))


def torn(folder: Path) -> Path:
    """The same log, at whose end a batch is not written whole."""
    shutil.copytree(LOST, folder)
    for segment in folder.glob("kraft/*/__cluster_metadata-0/*.log"):
        content = segment.read_bytes()
        segment.write_bytes(content + content[:100])
    return folder


def defects(report: dict[str, Any]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    rows = report["divergences"]["rows"]
    return report["divergences"]["by_class"], sorted((row["entity"], str(row["key"])) for row in rows)


def test_what_seems_lost_is_judged_and_what_this_run_has_read_itself_is_told(place: Place, tmp_path: Path) -> None:
    found = place.in_steps(AGAIN_ID, torn(tmp_path / "torn"))
    assert place.based_on(AGAIN_ID) == {place.first["run_id"]}
    kinds = {row["kind"] for row in place.warehouse.read(EXAMINED).where(F.col("run_id") == AGAIN_ID).collect()}
    assert {AGAIN, ANSWERS} <= kinds
    assert defects(found) == defects(place.first)
    assert found["divergences"]["by_status"] == {"persisting": 2}
    # The torn batch is in this run's rows alone.
    damage = place.warehouse.read(QUARANTINE).where(F.col("run_id") == AGAIN_ID).collect()
    assert {row["source"] for row in damage} == {"kraft"}
    assert len(damage) > 0
    assert place.first["quarantined"] == 0


def test_a_run_that_reads_the_log_from_its_start_takes_no_kept_state_in_any_step(place: Place) -> None:
    found = place.in_steps(FULL_ID, full=True)
    assert place.based_on(FULL_ID) == {None}
    kinds = {row["kind"] for row in place.warehouse.read(EXAMINED).where(F.col("run_id") == FULL_ID).collect()}
    assert AGAIN not in kinds
    assert defects(found) == defects(place.first)
    assert found["divergences"]["by_status"] == {"persisting": 2}
