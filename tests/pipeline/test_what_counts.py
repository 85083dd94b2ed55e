"""Nothing of a run counts before its row in gold runs; what is kept for the next run is believed when it is there, whole."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.exit import OK, USAGE
from jobs.run.kept import FOLD, FORMAT
from jobs.sinks.conditions import all_of
from jobs.sinks.delta import Warehouse
from jobs.steps import ingest_kraft
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.gold import CHECKS, ISR_HISTORY, RUNS
from schemas.table import Table
from tests.captures import capture
from tests.reliability.killing import (
    AFTER,
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
from transforms.runs import newest_first

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

EARLIER, LATER = capture("4.3.1-kraft", "7-elr-cleared"), capture("4.3.1-kraft", "8-unclean")
# They tell how fast the part of the log grew that a run has read.
OF_THE_PART = ("LOG-01",)
PLAIN = "plain"
Run = tuple[dict[str, Any], dict[str, list[str]]]


@dataclass(frozen=True)
class Place:
    """A warehouse with one finished run of several clusters, all of one log as it was then; `run` audits what became of it."""

    spark: SparkSession
    folder: Path

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.spark, str(self.folder / "tables"))

    def conf(self, cluster: str = PLAIN, source: Path = LATER) -> Path:
        return configuration(self.folder, cluster, source)

    def run(self, *clusters: str) -> dict[str, dict[str, Any]]:
        """One run over these clusters, the log as it was later; what is said of each, whatever its name."""
        reports = audit([self.conf(name) for name in clusters or (PLAIN,)])
        return {name: of_any_name(said(report, self.folder)) for name, report in reports.items()}

    def based_on(self) -> dict[str, str | None]:
        """The run whose kept state the newest run continued from, by cluster."""
        runs = self.warehouse.read(RUNS).where("report IS NOT NULL")
        newest = runs.orderBy(*newest_first()).select("run_id").first()
        assert newest is not None
        rows = self.warehouse.read(KRAFT_LOG_COPIES).where(F.col("run_id") == newest["run_id"]).collect()
        return {row["cluster"]: row["base_run"] for row in rows}


def of_any_name(report: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in report.items() if name != "cluster"}


def of_the_whole(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says whether its run continued from a kept state or read the whole log."""
    checks = [check for check in report["checks"] if check["id"] not in OF_THE_PART]
    notes = [note for note in report["notes"] if WHOLE_LOG not in note]
    return {**report, "checks": checks, "notes": notes}


# What becomes of each cluster's kept state, and what the report says then; None where the state is continued all the same.
BROKEN: dict[str, str | None] = {
    "replaced, by a run that never finished": "0 of its 1 pieces are in silver.examined",
    "a piece more": "2 of its 1 pieces are in silver.examined",
    "another byte": "its bytes in silver.examined have changed since they were written",
    "of another form": "another release stored it in another format",
    "in other tables": "another release stored it in another format",
    "with another key": "its secrets were masked with another key",
    "rewritten": None,
    "a file removed": f"a file of {EXAMINED.full_name} is gone or damaged",
}
NAMES = {text: f"c{number}" for number, text in enumerate(BROKEN)}


@pytest.fixture(scope="module")
def base(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    audit([configuration(folder, name, EARLIER) for name in (PLAIN, *NAMES.values())])
    return folder


@pytest.fixture
def place(spark: SparkSession, base: Path, tmp_path: Path) -> Place:
    return Place(spark, copied(base, tmp_path / "place"))


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, base: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """What the later run says when nothing happens, and the changes that are recorded then."""
    place = Place(spark, copied(base, tmp_path_factory.mktemp("undisturbed") / "place"))
    with killed_by(Killer()) as counted:
        report = place.run()[PLAIN]
    assert counted.commits[-1] == "append gold.runs", "nothing comes after gold runs"
    assert place.based_on()[PLAIN] is not None
    found = next(check for check in report["checks"] if check["id"] == "ISR-12")
    assert (found["verdict"], found["violations"]) == ("warn", 4)
    return report, recorded(place.warehouse)


def told_of(topic: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert main(["isr", topic, "--warehouse", str(folder / "tables"), "--cluster", PLAIN]) == OK
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if not line.startswith("Nothing newer is known: the newest run, ")]


def test_what_a_killed_run_has_kept_and_recorded_counts_for_nobody(
    place: Place, base: Path, undisturbed: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has written a newer state and all changes: commands tell none of them, the next run continues from the older state."""
    with pytest.raises(Dead), killed_by(Killer("append gold.runs")) as killer:
        audit([place.conf()])
    assert {"append silver.examined", "append gold.isr_history"} <= set(killer.commits)
    finished = {row["run_id"] for row in place.warehouse.read(RUNS).collect()}
    dead = place.warehouse.read(ISR_HISTORY).where(~F.col("run_id").isin(list(finished))).first()
    assert dead is not None
    assert told_of(dead["topic"], place.folder, capsys) == told_of(dead["topic"], base, capsys)
    report, changes = undisturbed
    assert differences(place.run()[PLAIN], report) == []
    assert {place.based_on()[PLAIN]} == finished
    assert recorded(place.warehouse) == changes


Change = Callable[[DataFrame], DataFrame]


def changed(place: Place, table: Table, changes: Mapping[str, Change]) -> None:
    """Write clusters' rows of a table anew, as another run or hand would."""
    of = {NAMES.get(case, case): change for case, change in changes.items()}
    rows = [change(place.warehouse.read(table).where(F.col("cluster") == name)) for name, change in of.items()]
    made = reduce(DataFrame.unionByName, rows).localCheckpoint()
    place.warehouse.delete(table, all_of({"cluster": [*of]}))
    place.warehouse.append(table, made)


def of_another_run(rows: DataFrame) -> DataFrame:
    return rows.withColumn("run_id", F.lit("another"))


def of_kept_bytes(change: Change) -> Change:
    """A change of the kept state of the log alone."""
    mine = F.col("kind") == FOLD
    return lambda rows: rows.where(~mine).unionByName(change(rows.where(mine)))


def another_byte(rows: DataFrame) -> DataFrame:
    payload = F.concat(F.substring("payload", 1, 100), F.lit(b"!"), F.expr("substring(payload, 102)"))
    return rows.withColumn("payload", payload)


def with_said(name: str, value: str) -> Change:
    """A change of what gold runs says of the kept bytes."""
    return lambda rows: rows.withColumn("kept", F.regexp_replace("kept", f'"{name}": [^,]+', f'"{name}": {value}'))


def break_all(place: Place) -> None:
    kept = {
        "replaced, by a run that never finished": of_kept_bytes(of_another_run),
        "a piece more": of_kept_bytes(lambda rows: rows.unionByName(rows.withColumn("part", F.col("part") + 1))),
        "another byte": of_kept_bytes(another_byte),
        "rewritten": lambda rows: rows,
    }
    changed(place, EXAMINED, kept)
    of_runs = {
        "of another form": with_said("format", str(FORMAT + 1)),
        "in other tables": lambda rows: rows.withColumn("kept", F.lit(None).cast("string")),
        "with another key": with_said("fingerprint", '"another"'),
    }
    changed(place, RUNS, of_runs)
    # In a file of its own.
    changed(place, EXAMINED, {"a file removed": lambda rows: rows})
    of_it = place.warehouse.read(EXAMINED).where(F.col("cluster") == NAMES["a file removed"])
    for file in of_it.select(F.input_file_name().alias("file")).distinct().collect():
        Path(urlparse(file["file"]).path).unlink()


def test_a_state_is_continued_where_it_is_as_it_was_written_else_the_whole_log_is_read_and_the_report_says_why(
    place: Place, undisturbed: Run
) -> None:
    break_all(place)
    reports = place.run(*NAMES.values())
    based, changes = place.based_on(), recorded(place.warehouse)
    for case, why in BROKEN.items():
        name = NAMES[case]
        notes = [note for note in reports[name]["notes"] if WHOLE_LOG in note]
        assert (based[name] is not None, len(notes)) == ((why is None), (why is not None)), (case, notes)
        assert (why or "") in "".join(notes), case
        assert differences(of_the_whole(reports[name]), of_the_whole(undisturbed[0])) == [], case
        assert changes[name] == undisturbed[1][PLAIN], case


def test_a_clock_that_was_ahead_once_hides_no_later_state(place: Place) -> None:
    ahead = F.lit("2036-01-01 00:00:00").cast("timestamp")
    changed(place, RUNS, {PLAIN: lambda rows: rows.withColumns({"started_at": ahead, "finished_at": ahead})})
    place.run()
    first = place.based_on()[PLAIN]
    assert first is not None
    place.run()
    assert place.based_on()[PLAIN] not in (None, first)


RUN_ID = "20200101T000000Z-repeat"


def step(conf: Path, name: str) -> int:
    return main([name, "--conf", str(conf), "--run-id", RUN_ID])


def test_a_step_that_is_repeated_never_mixes_two_readings(place: Place, undisturbed: Run, tmp_path: Path) -> None:
    """The log has grown when the step is repeated under the same id: copies, records and report are of the second reading."""
    source = shutil.copytree(EARLIER, tmp_path / "source")
    conf = place.conf(source=source)
    assert step(conf, STEPS[0]) == OK
    with pytest.raises(Dead), killed_by(Killer("append bronze.kraft_records", AFTER)):
        step(conf, STEPS[1])
    shutil.rmtree(source)
    shutil.copytree(LATER, source)
    [repeated] = audit_in_steps([conf], RUN_ID, lambda: place.warehouse, first=1).values()
    found = json.loads(json.dumps(said(repeated, place.folder)).replace(str(source), str(LATER)))
    assert differences(of_any_name(found), undisturbed[0]) == []
    assert recorded(place.warehouse) == undisturbed[1]


def test_rows_that_are_not_those_that_were_read_are_never_judged(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier attempt that was thought dead goes on writing."""
    conf = place.conf()
    for name in STEPS[:2]:
        assert step(conf, name) == OK
    late = place.warehouse.read(KRAFT_RECORDS).where((F.col("run_id") == RUN_ID) & (F.col("offset") % 100 == 7))
    place.warehouse.append(KRAFT_RECORDS, late.localCheckpoint())
    capsys.readouterr()
    assert step(conf, "materialize") == USAGE
    [line] = [text for text in capsys.readouterr().err.splitlines() if text.startswith("kraft-audit:")]
    assert "the tables lack rows that the run has read: " in line
    assert re.search(r"\d+ rows are in bronze.kraft_records instead of \d+", line)
    assert "start another run" in line
    assert step(conf, "reconcile") == USAGE
    assert place.warehouse.read(CHECKS).where(F.col("run_id") == RUN_ID).count() == 0


def test_a_reader_that_gives_too_few_records_fails_its_cluster(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ingest_kraft._read_group

    def losing(group: Any) -> Any:
        for batch in read(group):
            yield batch.slice(0, batch.num_rows - 1)

    monkeypatch.setattr(ingest_kraft, "_read_group", losing)
    with pytest.raises(AssertionError, match=r"the tables lack rows that the run has read: .* records are there"):
        place.run()
    assert place.warehouse.read(CHECKS).select("run_id").distinct().count() == 1
