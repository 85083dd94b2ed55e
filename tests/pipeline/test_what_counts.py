"""Nothing of a run counts before its row in gold runs; what is kept for the next run is believed when it is there, whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.exit import OK, USAGE
from jobs.sinks.delta import Warehouse
from jobs.steps import ingest_kraft
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.gold import CHECKS, ISR_HISTORY, RUNS
from schemas.replayed import FORMAT, REPLAYED_PARTITIONS, REPLAYED_ROWS, REPLAYED_STATES
from schemas.table import Table
from tests.captures import capture
from tests.reliability.killing import (
    AFTER,
    BEFORE,
    STEPS,
    WHOLE_LOG,
    Dead,
    Killer,
    audit,
    audit_in_steps,
    configuration,
    copied,
    differences,
    killed_by,
    recorded,
    said,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

EARLIER, LATER = capture("4.3.1-kraft", "7-elr-cleared"), capture("4.3.1-kraft", "8-unclean")
# They tell how fast the part of the log grew that a run has read.
OF_THE_PART = ("LOG-01",)


@dataclass(frozen=True)
class Place:
    """A warehouse with one finished run of a cluster, its next audit, and what that says when nothing happens to it."""

    spark: SparkSession
    folder: Path
    conf: Path

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.spark, str(self.folder / "tables"))

    def next_run(self) -> dict[str, Any]:
        [report] = audit([self.conf]).values()
        return said(report, self.folder)

    def based_on(self) -> str | None:
        """The run whose kept state the newest one went on from."""
        newest = self.warehouse.read(RUNS).where("report IS NOT NULL").orderBy(F.col("finished_at").desc()).first()
        assert newest is not None
        rows = self.warehouse.read(KRAFT_LOG_COPIES).where(F.col("run_id") == newest["run_id"]).collect()
        [base] = {row["base_run"] for row in rows}
        return None if base is None else str(base)


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    audit([configuration(folder, "unclean", EARLIER)])
    return folder


@pytest.fixture
def place(spark: SparkSession, base: Path, tmp_path: Path) -> Place:
    folder = copied(base, tmp_path / "place")
    return Place(spark, folder, configuration(folder, "unclean", LATER))


@pytest.fixture(scope="module")
def undisturbed(
    spark: SparkSession, base: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    folder = copied(base, tmp_path_factory.mktemp("undisturbed") / "place")
    place = Place(spark, folder, configuration(folder, "unclean", LATER))
    report = place.next_run()
    assert place.based_on() is not None
    found = next(check for check in report["checks"] if check["id"] == "ISR-12")
    assert (found["verdict"], found["violations"]) == ("warn", 4)
    return report, recorded(place.warehouse)


def of_the_whole(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says whether its run went on from a kept state or read the whole log."""
    checks = [check for check in report["checks"] if check["id"] not in OF_THE_PART]
    notes = [note for note in report["notes"] if WHOLE_LOG not in note]
    return {**report, "checks": checks, "notes": notes}


@pytest.mark.parametrize("commit", ["append gold.runs", "append silver.replayed_states"])
def test_what_a_killed_run_has_kept_and_recorded_counts_for_nobody(
    place: Place, undisturbed: tuple[dict[str, Any], dict[str, list[str]]], commit: str
) -> None:
    """The killed run has written a newer state and all changes: the next one goes on from the older state and tells all."""
    with pytest.raises(Dead), killed_by(Killer(commit, BEFORE if commit.endswith("runs") else AFTER)) as killer:
        audit([place.conf])
    assert {"append silver.replayed_states", "append gold.isr_history"} <= set(killer.commits)
    assert killer.commits[-1] == commit
    report, changes = undisturbed
    assert differences(place.next_run(), report) == []
    assert recorded(place.warehouse) == changes
    twice = place.warehouse.read(REPLAYED_STATES).groupBy("run_id").count().collect()
    assert len(twice) == 3, "the state of the killed run is there, and was passed over"


def test_nothing_of_a_run_comes_after_its_row_in_gold_runs(place: Place) -> None:
    with killed_by(Killer()) as counted:
        audit([place.conf])
    assert counted.commits[-2:] == ["append silver.replayed_states", "append gold.runs"]


def told_of(topic: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["isr", topic, "--warehouse", str(folder / "tables"), "--cluster", "unclean"]) == OK
    return capsys.readouterr().out


def test_commands_tell_nothing_that_only_a_killed_run_recorded(
    place: Place, base: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Dead), killed_by(Killer("append gold.runs")):
        audit([place.conf])
    [finished] = place.warehouse.read(RUNS).where("report IS NOT NULL").collect()
    dead = place.warehouse.read(ISR_HISTORY).where(F.col("run_id") != finished["run_id"]).first()
    assert dead is not None
    assert told_of(dead["topic"], place.folder, capsys) == told_of(dead["topic"], base, capsys)


def changed(place: Place, table: Table, change: Callable[[DataFrame], DataFrame]) -> None:
    """Write a table's rows anew, as another run or hand would."""
    rows = change(place.warehouse.read(table)).localCheckpoint()
    place.warehouse.delete(table, F.lit(True))
    place.warehouse.append(table, rows)


def vacuumed(place: Place) -> None:
    place.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS):
        place.spark.sql(f"VACUUM {place.warehouse.identifier(table)} RETAIN 0 HOURS")


def of_another_run(rows: DataFrame) -> DataFrame:
    return rows.withColumn("run_id", F.lit("another"))


def version_of_now(place: Place) -> None:
    """The version that `versions` names is that of the other run's write: it was looked up too late."""
    now = {table.full_name: place.warehouse.version(table) for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS)}
    versions = F.create_map(*[F.lit(each) for pair in now.items() for each in pair]).cast("map<string,bigint>")
    changed(place, REPLAYED_STATES, lambda rows: rows.withColumn("versions", versions))


def replaced_and_looked_up_late(place: Place) -> None:
    changed(place, REPLAYED_PARTITIONS, of_another_run)
    version_of_now(place)


def replaced_and_vacuumed(place: Place) -> None:
    for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS):
        changed(place, table, of_another_run)
    vacuumed(place)


def with_one_row_less(place: Place) -> None:
    lost = place.warehouse.read(REPLAYED_PARTITIONS).agg(F.min(F.struct("topic_id", "partition_id"))).collect()[0][0]
    one = (F.col("topic_id") == lost["topic_id"]) & (F.col("partition_id") == lost["partition_id"])
    changed(place, REPLAYED_PARTITIONS, lambda rows: rows.where(~one))
    version_of_now(place)


def with_another_value(place: Place) -> None:
    changed(place, REPLAYED_PARTITIONS, lambda rows: rows.withColumn("leader", F.col("leader") + 1))
    version_of_now(place)


def of_an_older_release(place: Place) -> None:
    changed(place, REPLAYED_STATES, lambda rows: rows.withColumn("format", F.lit(FORMAT - 1)))


BROKEN: dict[str, tuple[Callable[[Place], None], str]] = {
    "another run's, by the version": (replaced_and_looked_up_late, "0 of its "),
    "gone": (replaced_and_vacuumed, "its rows can't be read, "),
    "a row less": (with_one_row_less, " rows are in silver.replayed_partitions"),
    "another value": (with_another_value, "its rows in silver.replayed_partitions are not those that were written"),
    "an older release's": (of_an_older_release, "another release kept it, in another form"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_without_the_rows_of_its_state_the_whole_log_is_read_and_the_report_says_why(
    place: Place, undisturbed: tuple[dict[str, Any], dict[str, list[str]]], case: str
) -> None:
    breaking, why = BROKEN[case]
    breaking(place)
    report = place.next_run()
    assert place.based_on() is None
    [note] = [note for note in report["notes"] if WHOLE_LOG in note]
    assert why in note
    wanted, changes = undisturbed
    assert differences(of_the_whole(report), of_the_whole(wanted)) == []
    assert recorded(place.warehouse) == changes


def rewritten_and_vacuumed(place: Place) -> None:
    for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS):
        changed(place, table, lambda rows: rows)
    vacuumed(place)


def replaced_by_a_run_that_never_finished(place: Place) -> None:
    for table in (REPLAYED_ROWS, REPLAYED_PARTITIONS):
        changed(place, table, of_another_run)


@pytest.mark.parametrize("happens", [rewritten_and_vacuumed, replaced_by_a_run_that_never_finished])
def test_a_state_is_continued_wherever_its_rows_are_found(
    place: Place, undisturbed: tuple[dict[str, Any], dict[str, list[str]]], happens: Callable[[Place], None]
) -> None:
    """As they are now, when the version is gone; as of that version, when another run has replaced them."""
    happens(place)
    report = place.next_run()
    assert place.based_on() is not None
    assert differences(report, undisturbed[0]) == []


RUN_ID = "20200101T000000Z-repeat"


def step(place: Place, name: str) -> int:
    return main([name, "--conf", str(place.conf), "--run-id", RUN_ID])


@pytest.mark.parametrize("commit", ["append bronze.kraft_log_copies", "append bronze.kraft_records"])
def test_a_step_that_is_repeated_never_mixes_two_readings(spark: SparkSession, tmp_path: Path, commit: str) -> None:
    """The log has grown when the step is repeated under the same id: copies, records and report are of the second reading."""
    folder = tmp_path / "place"
    source = shutil.copytree(EARLIER, tmp_path / "source")
    place = Place(spark, folder, configuration(folder, "unclean", source))
    assert step(place, STEPS[0]) == OK
    with pytest.raises(Dead), killed_by(Killer(commit, AFTER)):
        step(place, STEPS[1])
    shutil.rmtree(source)
    shutil.copytree(LATER, source)
    [repeated] = audit_in_steps([place.conf], RUN_ID, lambda: place.warehouse, first=1).values()
    fresh = Place(spark, tmp_path / "fresh", configuration(tmp_path / "fresh", "unclean", source))
    [wanted] = audit([fresh.conf]).values()
    assert differences(said(repeated, place.folder), said(wanted, fresh.folder)) == []
    for table in (KRAFT_LOG_COPIES, KRAFT_RECORDS):
        assert place.warehouse.read(table).count() == fresh.warehouse.read(table).count()


def test_rows_that_are_not_those_that_were_read_are_never_judged(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier attempt that was thought dead goes on writing."""
    for name in STEPS[:2]:
        assert step(place, name) == OK
    late = place.warehouse.read(KRAFT_RECORDS).where((F.col("run_id") == RUN_ID) & (F.col("offset") % 100 == 7))
    place.warehouse.append(KRAFT_RECORDS, late.localCheckpoint())
    capsys.readouterr()
    assert step(place, "materialize") == USAGE
    [line] = [text for text in capsys.readouterr().err.splitlines() if text.startswith("kraft-audit:")]
    assert "the tables do not hold what the run has read: " in line
    assert "records are there instead of" in line
    assert "begin another run" in line
    assert step(place, "reconcile") == USAGE
    assert place.warehouse.read(CHECKS).where(F.col("run_id") == RUN_ID).count() == 0


def test_a_reader_that_gives_too_few_records_fails_its_cluster(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ingest_kraft._read_group

    def losing(group: Any) -> Any:
        for batch in read(group):
            yield batch.slice(0, batch.num_rows - 1)

    monkeypatch.setattr(ingest_kraft, "_read_group", losing)
    with pytest.raises(
        AssertionError, match=r"the tables do not hold what the run has read: \d+ records are there instead of"
    ):
        place.next_run()
    assert place.warehouse.read(CHECKS).select("run_id").distinct().count() == 1


def test_a_clock_that_was_ahead_once_hides_no_later_state(place: Place) -> None:
    ahead = F.lit("2036-01-01 00:00:00").cast("timestamp")
    changed(place, REPLAYED_STATES, lambda rows: rows.withColumn("kept_at", ahead))
    [first] = place.warehouse.read(REPLAYED_STATES).collect()
    place.next_run()
    assert place.based_on() == first["run_id"]
    place.next_run()
    assert place.based_on() not in (None, first["run_id"])
