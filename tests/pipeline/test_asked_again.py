"""A run in steps that meets what seems lost for the first time: it reads all that earlier runs have read."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.settings import load_settings
from jobs.sinks.conditions import Below, Equal
from jobs.sinks.delta import Warehouse
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, QUARANTINE
from schemas.examined import EXAMINED
from tests.captures import capture
from tests.reliability.killing import audit, audit_in_steps, configuration, copied
from transforms.examination.made import AGAIN, ANSWERS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
LOST = capture("3.9.1", "quota-removal")
NAME = "lost"
AGAIN_ID, FULL_ID = "20300101T000000Z-again", "20300102T000000Z-full"


def without_zookeeper(path: Path) -> Path:
    """A configuration of the log alone: nothing is compared, and nothing seems lost yet."""
    content = yaml.safe_load(path.read_text())
    del content["zookeeper"]
    path.write_text(yaml.safe_dump(content))
    return path


class Place:
    """The tables of a cluster whose log was audited once, by the run `begun`; `first` is a report on both sides, from tables of its own."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.warehouse, self.folder = Warehouse(spark, str(folder / "tables")), folder
        self.begun = audit([without_zookeeper(configuration(folder, NAME, LOST))])[NAME]
        self.first = audit([configuration(folder.with_name(f"{folder.name}-whole"), NAME, LOST)])[NAME]
        # The tables before any other run of the tests.
        self.untouched = copied(folder, folder.with_name(f"{folder.name}-untouched"))

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
    assert place.based_on(AGAIN_ID) == {place.begun["run_id"]}
    kinds = {row["kind"] for row in place.warehouse.read(EXAMINED).where(F.col("run_id") == AGAIN_ID).collect()}
    assert {AGAIN, ANSWERS} <= kinds
    assert defects(found) == defects(place.first)
    assert found["divergences"]["by_status"] == {"new": 2}
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


@pytest.fixture
def aged(place: Place, spark: SparkSession, tmp_path: Path) -> Place:
    """A copy of the tables as the first run left them, and what a person may do to them."""
    mine = object.__new__(Place)
    mine.folder, mine.first = copied(place.untouched, tmp_path / "aged"), place.first
    mine.begun = place.begun
    mine.warehouse = Warehouse(spark, str(mine.folder / "tables"))
    return mine


def rows_deleted(place: Place) -> None:
    """By hand, or by a rule of how long rows are kept."""
    mine = Equal("run_id", place.begun["run_id"]) & Equal("offset", Below(100))
    place.warehouse.delete(KRAFT_RECORDS, mine)


def file_removed(place: Place) -> None:
    """A disk's fault, or a hand's."""
    for path in (place.folder / "tables/bronze/kraft_records").rglob("*.parquet"):
        path.unlink()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (rows_deleted, "230 records are there instead of 330 of offsets 0 to 329 of run "),
        (file_removed, "a file of the tables is gone or damaged: file:/"),
    ],
)
def test_of_a_log_of_which_earlier_rows_are_gone_nothing_is_judged(
    aged: Place, tmp_path: Path, harm: Callable[[Place], None], said: str
) -> None:
    """The cluster fails alone and says why; the whole log, read again, is judged as before."""
    fine = configuration(aged.folder, "fine", capture("3.9.1", "5-dual-write-changed"))
    audit([fine])
    harm(aged)
    lost = configuration(aged.folder, NAME, LOST)
    with open_run([load_settings(path) for path in (lost, fine)]) as run:
        outcomes = run_all(run)
    assert [name for name, outcome in outcomes.items() if outcome.report is not None] == ["fine"]
    failure = outcomes[NAME].failure
    assert failure is not None
    assert said in failure.reason
    assert "kraft-audit run --full" in failure.reason
    found = audit([configuration(aged.folder, NAME, LOST, full=True)])[NAME]
    assert defects(found) == defects(aged.first)
