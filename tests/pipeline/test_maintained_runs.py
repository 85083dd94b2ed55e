"""All that retention may remove is removed, and the next run of a migration and of a KRaft cluster says what it would have said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.cli import main
from jobs.sinks.conditions import Between, all_of
from jobs.sinks.delta import Warehouse
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, ZK_ZNODES
from schemas.gold import ISR_HISTORY, MAINTENANCE, RUNS
from tests.captures import capture
from tests.reliability.killing import Reports, audit, configuration, copied, differences, recorded, said
from transforms.retention import Retention

pytestmark = pytest.mark.slow
MIGRATION, KRAFT = "migration", "unclean"
# A dual write that changes, fails over and falls behind; a partition whose ELR is cleared, elected uncleanly and healed.
STAGES = {
    MIGRATION: ("5-dual-write-changed", "7-dual-write-failover", "8-zookeeper-behind"),
    KRAFT: ("7-elr-cleared", "8-unclean", "9-unclean-healed"),
}
RELEASES = {MIGRATION: "3.9.1", KRAFT: "4.3.1-kraft"}


def run(folder: Path, number: int) -> Reports:
    return audit(
        [configuration(folder, name, capture(RELEASES[name], stages[number])) for name, stages in STAGES.items()]
    )


class Lives:
    """The same two runs in two warehouses, then a third one: `plain` was left alone, from `tended` all that may go has gone."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.plain = folder / "plain"
        self.plain.mkdir()
        self.earlier = [run(self.plain, 0), run(self.plain, 1)]
        self.tended = copied(self.plain, folder / "tended")
        self.warehouse = Warehouse(spark, str(self.tended / "tables"))
        # As if three years had passed: of what may go nothing is young.
        later = datetime.now(UTC) + timedelta(days=1000)
        self.done: list[Tended] = maintain(self.warehouse, Upkeep(dict.fromkeys(STAGES, Retention()), later))
        self.wanted, self.found = run(self.plain, 2), run(self.tended, 2)

    @property
    def ends(self) -> list[int]:
        """Where the migration's log ended in the first two runs, exclusive."""
        return [reports[MIGRATION]["migration"]["committed_end_offset"] + 1 for reports in self.earlier]


@pytest.fixture(scope="module")
def lives(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Lives:
    return Lives(spark, tmp_path_factory.mktemp("lives"))


def test_old_rows_have_gone(lives: Lives) -> None:
    assert [each.problem for each in lives.done if each.problem] == []
    first = lives.earlier[0][MIGRATION]["run_id"]
    removed = {each.table: each.rows for each in lives.done}
    assert removed["bronze.zk_znodes"] > 0
    assert removed["silver.examined"] > 0
    # The state of the second run is made of the first one's rows.
    assert removed["silver.partitions"] == 0
    assert removed["gold.isr_history"] > 0
    assert lives.warehouse.read(ZK_ZNODES).where(f"run_id = '{first}'").isEmpty()
    # The second run continues from the first one's state: its records are the log's.
    assert not lives.warehouse.read(KRAFT_RECORDS).where(f"run_id = '{first}'").isEmpty()
    assert lives.warehouse.read(RUNS).count() == 6


@pytest.mark.parametrize("cluster", STAGES)
def test_the_next_run_says_the_same(lives: Lives, cluster: str) -> None:
    found, wanted = said(lives.found[cluster], lives.tended), said(lives.wanted[cluster], lives.plain)
    assert differences(found, wanted) == []
    assert wanted["notes"] == [] or not any("the whole log was read" in note for note in wanted["notes"])


def test_later_changes_of_partitions_are_recorded_as_ever(spark: SparkSession, lives: Lives) -> None:
    plain = Warehouse(spark, str(lives.plain / "tables"))
    for name in STAGES:
        assert set(recorded(lives.warehouse)[name]) < set(recorded(plain)[name])
        found = changes(lives.warehouse, lives.found[name])
        assert found == changes(plain, lives.wanted[name])


def changes(warehouse: Warehouse, report: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """What a run has recorded of one cluster."""
    mine = (F.col("cluster") == report["cluster"]) & (F.col("run_id") == report["run_id"])
    rows = warehouse.read(ISR_HISTORY).where(mine).select("topic_id", "partition", "offset", "append_time", "kinds")
    return sorted(tuple(str(value) for value in row) for row in rows.collect())


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (["explain", "topics", "orders"], "details of run {} were removed on"),
        (["diff", "--as-of", "100"], "details of run {} were removed on"),
        (["isr", "orders"], "details of run {} were removed on"),
        (["diff"], "run {} was removed on"),
    ],
)
def test_a_run_whose_rows_have_gone_is_told_in_one_line(
    lives: Lives, capsys: pytest.CaptureFixture[str], command: list[str], line: str
) -> None:
    first = lives.earlier[0][MIGRATION]["run_id"]
    place = ["--warehouse", lives.warehouse.root, "--cluster", MIGRATION]
    assert main([*command, *place, "--run", first]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert line.format(first) in told[0]
    assert "by retention" in told[0]


def asked(capsys: pytest.CaptureFixture[str], warehouse: Path, *argv: str) -> tuple[int, list[str], list[str]]:
    """Exit code, output and trouble of a command about the migration."""
    capsys.readouterr()
    code = main([*argv, "--warehouse", str(warehouse), "--cluster", MIGRATION])
    told = capsys.readouterr()
    return code, told.out.splitlines(), told.err.splitlines()


REMOVED, MISSING = "were removed by retention, last on ", "and retention did not remove them; "
NOT_WHOLE = (REMOVED, MISSING, "log records of run")


def test_the_newest_run_is_explained_from_the_log_s_beginning(lives: Lives, capsys: pytest.CaptureFixture[str]) -> None:
    plain, tended = (
        asked(capsys, each / "tables", "explain", "topics", "orders") for each in (lives.plain, lives.tended)
    )
    assert (plain[0], plain[2]) == (tended[0], tended[2]) == (0, [])
    ids = [reports[MIGRATION]["run_id"] for reports in (lives.wanted, lives.found)]
    # The last line has the time of the run.
    stories = [
        [line.replace(own, "RUN") for line in each[1][:-1]] for own, each in zip(ids, (plain, tended), strict=True)
    ]
    assert stories[0] == stories[1]
    assert all(each[1][-1].startswith(f"Run {own} of") for own, each in zip(ids, (plain, tended), strict=True))
    assert not any(words in line for line in plain[1] for words in NOT_WHOLE)


@pytest.mark.parametrize("argv", [["history", "topics", "orders"], ["isr", "orders"]])
def test_of_a_log_that_is_whole_nothing_is_said_to_be_missing(
    lives: Lives, capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    code, out, trouble = asked(capsys, lives.plain / "tables", *argv)
    assert (code, trouble) == (0, [])
    assert not any(words in line for line in out for words in NOT_WHOLE)
    # What the newest run builds on stays, so that retention takes nothing of the story either.
    if argv[0] != "isr":
        assert len(asked(capsys, lives.tended / "tables", *argv)[1]) == len(out)


def test_changes_of_partitions_that_retention_took_are_shown_by_day(
    lives: Lives, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(capsys, lives.tended / "tables", "isr", "orders")
    assert code == 0
    assert out[0].startswith("Partition 0 of topic id ")
    assert out[0].endswith(" changes, and 2 older ones by day (UTC)")
    assert not any(REMOVED in line for line in out)


def test_rows_that_are_gone_without_retention_are_told_in_a_line(
    spark: SparkSession, lives: Lives, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = copied(lives.plain, tmp_path / "harmed") / "tables"
    first = lives.earlier[0][MIGRATION]["run_id"]
    mine = all_of({"cluster": MIGRATION, "run_id": first, "checkpoint_offset": None})
    Warehouse(spark, str(tables)).delete(KRAFT_RECORDS, mine & Between("offset", 150, 159))
    said = f"10 of {lives.ends[0]} log records of run {first} are missing, {MISSING}"
    for argv in (["history", "topics", "orders"], ["explain", "topics", "orders"]):
        code, out, _ = asked(capsys, tables, *argv)
        assert code == 0
        assert out[0].startswith(said), argv
        assert not any(MISSING in line for line in out[1:])
    code, out, trouble = asked(capsys, tables, "diff", "--as-of", "200")
    assert (code, out) == (1, [])
    assert trouble[0].startswith(f"kraft-audit: {said}")
    # All of the run's: nothing but gold `runs` tells that they were there.
    Warehouse(spark, str(tables)).delete(KRAFT_RECORDS, mine)
    code, out, trouble = asked(capsys, tables, "history", "topics", "orders")
    assert f"{lives.ends[0]} of {lives.ends[0]} log records of run {first} are missing" in [*out, *trouble][0]


def test_rows_that_retention_took_from_below_a_full_read_are_told_in_a_line(
    spark: SparkSession, lives: Lives, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As after `run --full` with what the controllers still have: the log begins later, and what was before has gone by age."""
    tables = copied(lives.plain, tmp_path / "aged") / "tables"
    warehouse = Warehouse(spark, str(tables))
    gone = [reports[MIGRATION]["run_id"] for reports in lives.earlier]
    mine = all_of({"cluster": MIGRATION, "run_id": gone})
    for table in (KRAFT_RECORDS, KRAFT_LOG_COPIES):
        warehouse.delete(table, mine)
    marks = [(MIGRATION, run_id, datetime(2027, 1, 2, tzinfo=UTC), "details") for run_id in gone]
    warehouse.append(MAINTENANCE, spark.createDataFrame(marks, MAINTENANCE.struct))
    _, out, trouble = asked(capsys, tables, "history", "topics", "orders")
    line = "log records of 2 earlier runs were removed by retention, last on 2027-01-02: changes that only they had are not shown"
    assert line in [*out, *trouble][0]
    assert not any("are missing" in each for each in [*out, *trouble])
