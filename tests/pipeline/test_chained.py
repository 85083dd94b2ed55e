"""What runs store of a state and how it is read: as of each run it is what a run that stored everything has, whatever happened between."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.evidence.opening import Finished
from jobs.evidence.past_run import PastRun, past_run
from jobs.exit import AuditError, UsageError
from jobs.sinks.conditions import all_of
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder
from jobs.steps import materialize
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.entities import ENTITIES
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.examined import EXAMINED
from schemas.gold import RUNS
from tests.captures import capture
from tests.pipeline.test_verify import rewritten
from tests.reliability.killing import BEFORE, Dead, Killer, Reports, audit, configuration, differences, killed_by, said
from tests.warehouses import BySpark
from tools.docs import STATE_QUERY
from transforms.expectations.sql import state_rows
from transforms.frames import columns_of, from_arrow, shaped
from transforms.retention import Retention

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
PLAIN, INDEX, ROWS, KILLED, TWICE = "plain", "index", "rows", "killed", "twice"
BUILT_ON = "all rows of the state were stored: the rows of run {} can't be reused ({})"


@dataclass
class Lives:
    """Five clusters that change alike, in one warehouse, and what became of each; `ids` are the runs of the migration's stages."""

    spark: SparkSession
    folder: Path
    ids: dict[str, str]
    reports: dict[str, Reports]
    broken: str

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.spark, str(self.folder / "tables"))

    def past(self, cluster: str, run_id: str, *, in_spark: bool = False) -> PastRun:
        tables = BySpark(self.spark, self.warehouse.root) if in_spark else Folder(self.warehouse.root)
        return past_run(Finished(tables, cluster), run_id)

    def runs_of(self, cluster: str, run_id: str) -> list[str]:
        rows = Folder(self.warehouse.root).rows(RUNS, ["state_runs"], {"cluster": cluster, "run_id": run_id})
        return list(rows["state_runs"][0])


def run(folder: Path, stage: str, *clusters: str) -> Reports:
    return audit([configuration(folder, name, capture("3.9.1", stage)) for name in clusters])


def id_of(reports: Reports) -> str:
    [run_id] = {str(report["run_id"]) for report in reports.values()}
    return run_id


def told(rows: pl.DataFrame) -> list[str]:
    return sorted(str(row) for row in rows.iter_rows())


def states(past: PastRun) -> dict[str, list[str]]:
    """All rows of a run's state, by entity."""
    return {entity.name: told(past.rows(entity.table, [c.name for c in entity.row_columns])) for entity in ENTITIES}


def deleted(lives_warehouse: Warehouse, run_id: str) -> str:
    """A topic's row that an earlier run has stored is not there any more."""
    mine = {"cluster": ROWS, "run_id": run_id, "source": "kraft"}
    topic = Folder(lives_warehouse.root).rows(TOPICS.table, ["topic"], mine)["topic"].drop_nulls().sort()[0]
    where = all_of({"cluster": ROWS, "run_id": run_id, "topic": topic})
    lives_warehouse.delete(TOPICS.table, where)
    return str(topic)


def with_another_byte(row: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    if (row["cluster"], row["run_id"], row["kind"]) != (INDEX, run_id, "index"):
        return {**row}
    return {**row, "payload": row["payload"][:-1] + bytes([row["payload"][-1] ^ 1])}


@pytest.fixture(scope="module")
def lives(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lives:
    folder = tmp_path_factory.mktemp("lives")
    warehouse = Warehouse(spark, str(folder / "tables"))
    ours = (PLAIN, INDEX, ROWS, KILLED, TWICE)
    whole = [configuration(folder, f"whole{stage}", capture("3.9.1", stage)) for stage in "789"]
    first = audit([*(configuration(folder, name, capture("3.9.1", "6")) for name in ours), *whole])
    reports = {"6": first, "7": run(folder, "7", *ours), "quiet": run(folder, "7", PLAIN)}
    ids = {stage: id_of(found) for stage, found in reports.items()}
    deleted(warehouse, ids["6"])
    files = folder / "tables" / "silver" / "examined"
    assert rewritten(files, lambda row: with_another_byte(row, ids["7"])) == 1
    broken = ""
    try:
        past_run(Finished(Folder(warehouse.root), ROWS), ids["7"]).rows(TOPICS.table)
    except AuditError as error:
        broken = str(error)
    with pytest.raises(Dead), killed_by(Killer("append gold.runs", BEFORE)):
        run(folder, "8", KILLED)
    reports["8"] = run(folder, "8", PLAIN, INDEX, ROWS, KILLED)
    ids["8"] = id_of(reports["8"])
    return Lives(spark, folder, ids, reports, broken)


def test_the_state_as_of_each_run_is_that_of_a_run_that_stored_everything(lives: Lives) -> None:
    first = lives.ids["6"]
    for stage in ("7", "quiet", "8"):
        found = states(lives.past(PLAIN, lives.ids[stage]))
        assert found == states(lives.past(f"whole{stage.replace('quiet', '7')}", first)), stage
        assert len(found["partitions"]) > 10
    assert lives.runs_of(PLAIN, lives.ids["8"]) == [first, lives.ids["7"], lives.ids["8"]]


def test_spark_and_the_documented_query_read_what_is_read_without_spark(lives: Lives) -> None:
    run_id = lives.ids["8"]
    past, in_spark = lives.past(PLAIN, run_id), lives.past(PLAIN, run_id, in_spark=True)
    identifier = lives.warehouse.identifier
    query = STATE_QUERY.replace("prod-eu", PLAIN).replace("RUN", run_id)
    query = query.replace("gold.runs", identifier(RUNS)).replace("silver.partitions", identifier(PARTITIONS.table))
    for entity in (PARTITIONS, TOPICS):
        columns = columns_of(entity.row_columns)
        wanted = told(shaped(past.rows(entity.table), columns))
        assert told(from_arrow(in_spark.read(entity.table).toArrow(), columns)) == wanted
        assert told(shaped(in_spark.rows(entity.table), columns)) == wanted
        shown = state_rows(identifier(entity.table), PLAIN, past.state_runs)
        assert told(from_arrow(lives.spark.sql(shown).toArrow(), columns)) == wanted
        of_kraft = {"source": "kraft", "topic": ["orders"]}
        one = told(shaped(past.rows(entity.table, where=of_kraft), columns))
        assert one == told(shaped(in_spark.rows(entity.table, where=of_kraft), columns))
        assert 0 < len(one) < len(wanted)
        if entity is PARTITIONS:
            assert told(from_arrow(lives.spark.sql(query).toArrow(), columns)) == wanted


def test_a_quiet_run_stores_no_row_of_a_state_and_says_what_the_run_before_said(lives: Lives) -> None:
    quiet = lives.ids["quiet"]
    mine = {"cluster": PLAIN, "run_id": quiet}
    for entity in ENTITIES:
        assert lives.warehouse.counts(entity.table, mine) == {}
    kept = Folder(lives.warehouse.root).rows(EXAMINED, ["kind"], mine)["kind"].to_list()
    assert "index" not in kept
    assert lives.runs_of(PLAIN, quiet) == [lives.ids["6"], lives.ids["7"]]
    before, after = lives.reports["7"][PLAIN], lives.reports["quiet"][PLAIN]
    assert after["counts"] == before["counts"]
    assert after["migration"] == before["migration"]
    assert [note for note in after["notes"] if "stored" in note] == []


def test_few_changes_are_few_rows(lives: Lives) -> None:
    mine = {"cluster": PLAIN, "run_id": lives.ids["8"]}
    stored = sum(sum(lives.warehouse.counts(entity.table, mine).values()) for entity in ENTITIES)
    assert 0 < stored < 20


def test_a_damaged_index_and_rows_that_are_gone_make_a_base_and_are_said(lives: Lives) -> None:
    first, seventh = lives.ids["6"], lives.ids["7"]
    wanted = states(lives.past("whole8", first))
    said_of_it = {
        INDEX: BUILT_ON.format(seventh, "its bytes in silver.examined have changed since they were written"),
        ROWS: None,
    }
    for cluster, note in said_of_it.items():
        assert lives.runs_of(cluster, lives.ids["8"]) == [lives.ids["8"]]
        assert states(lives.past(cluster, lives.ids["8"])) == wanted
        notes = [each for each in lives.reports["8"][cluster]["notes"] if "stored" in each]
        assert len(notes) == 1
        assert note is None or notes == [note]
    [of_rows] = [each for each in lives.reports["8"][ROWS]["notes"] if "stored" in each]
    assert f"rows of run {first} are in silver.topics" in of_rows
    # The log was continued from all the same.
    assert not any("the whole log was read" in each for each in lives.reports["8"][INDEX]["notes"])
    # Whoever looks at the run whose rows are gone is told, and is shown no part of a state.
    assert f"the state of run {seventh} is incomplete: " in lives.broken
    assert f"rows of run {first} are in silver.topics; look at a newer run" in lives.broken


def test_rows_of_a_run_that_was_killed_are_in_no_state(lives: Lives) -> None:
    stored = lives.warehouse.read(PARTITIONS.table).where(F.col("cluster") == KILLED).select("run_id").distinct()
    dead = {row[0] for row in stored.collect()} - set(lives.ids.values())
    assert len(dead) == 1, "it had stored all its rows"
    assert not dead & set(lives.runs_of(KILLED, lives.ids["8"]))
    assert states(lives.past(KILLED, lives.ids["8"])) == states(lives.past("whole8", lives.ids["6"]))


def test_two_runs_at_a_time_go_on_from_the_same_one_and_do_not_mix(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, others = materialize.store_rows, []

    def overtaken(*given: Any) -> None:
        if not others:
            others.append("")
            others[0] = id_of(run(lives.folder, "9", TWICE))
        store(*given)

    monkeypatch.setattr(materialize, "store_rows", overtaken)
    slow = id_of(run(lives.folder, "8", TWICE))
    built_on = [lives.ids["6"], lives.ids["7"]]
    for run_id, stage in ((slow, "8"), (others[0], "9")):
        assert lives.runs_of(TWICE, run_id) == [*built_on, run_id]
        assert states(lives.past(TWICE, run_id)) == states(lives.past(f"whole{stage}", lives.ids["6"]))


def test_maintenance_leaves_the_state_of_what_stays_and_the_next_run_goes_on(lives: Lives, tmp_path: Path) -> None:
    shutil.copytree(lives.folder, folder := tmp_path / "tended")
    warehouse = Warehouse(lives.spark, str(folder / "tables"))
    tended = Lives(lives.spark, folder, lives.ids, lives.reports, "")
    wanted = states(lives.past(PLAIN, lives.ids["8"]))
    done = maintain(warehouse, Upkeep({PLAIN: Retention()}, datetime.now(UTC) + timedelta(days=1000)))
    assert [each.problem for each in done if each.problem] == []
    assert states(tended.past(PLAIN, lives.ids["8"])) == wanted
    with pytest.raises(UsageError, match="by retention"):
        tended.past(PLAIN, lives.ids["7"]).rows(TOPICS.table)
    next_one = id_of(run(folder, "9", PLAIN))
    assert tended.runs_of(PLAIN, next_one) == [*lives.runs_of(PLAIN, lives.ids["8"]), next_one]
    assert states(tended.past(PLAIN, next_one)) == states(lives.past("whole9", lives.ids["6"]))


@pytest.mark.parametrize("stage", ["quiet", "8"])
def test_runs_are_what_their_evidence_gives(lives: Lives, capsys: pytest.CaptureFixture[str], stage: str) -> None:
    conf = configuration(lives.folder, PLAIN, capture("3.9.1", "8"))
    assert main(["verify", "--conf", str(conf), "--run", lives.ids[stage]]) == 0
    assert capsys.readouterr().out == f"{PLAIN}: run {lives.ids[stage]} matches its evidence\n"


def test_reports_are_those_of_clusters_whose_rows_are_stored_whole(lives: Lives) -> None:
    """One that built on rows and one that stored all of them again were told the same of the same files."""
    plain, index = (said(lives.reports["8"][name], lives.folder) for name in (PLAIN, INDEX))
    for found in (plain, index):
        for name in ("cluster", "notes", "history"):
            found.pop(name)
    assert differences(index, plain) == []
