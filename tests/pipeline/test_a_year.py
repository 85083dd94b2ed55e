"""A year of runs at pretended times, from which all goes that retention lets go: later runs say what they would have said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.pipeline import run_all
from jobs.run.run import new_run_id, open_run
from jobs.settings import load_settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.gold import CHECKS, DIVERGENCES, GATES, ISR_BY_DAY, ISR_HISTORY
from schemas.table import Table
from tests.benchmarks.year import small_log
from tests.captures import capture
from tests.pipeline.sums import told
from tests.reliability.killing import Reports, configuration, copied, differences, said
from transforms.report.json import to_json
from transforms.retention import Retention

pytestmark = pytest.mark.slow
MIGRATION, KRAFT = "migration", "quiet"
BEGUN = datetime(2027, 1, 1, 3, tzinfo=UTC)
DAYS = (0, 180, 365, 366)
# A difference is new on day 180, persists on day 365, and is resolved the day after.
STAGES = ("7-dual-write-failover", "8-zookeeper-behind", "8-zookeeper-behind", "9-caught-up")
APART = 2


class Year:
    """Two runs in one warehouse, then two more in it and in a copy from which all went that may go before each."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.log = small_log(folder / KRAFT)
        self.plain, self.tended = folder / "plain", folder / "tended"
        self.ids = [new_run_id(BEGUN + timedelta(days=day)) for day in DAYS]
        self.removed: list[int] = []
        self.reports: dict[Path, list[Reports]] = {self.plain: [], self.tended: []}
        for number in range(len(DAYS)):
            now = BEGUN + timedelta(days=DAYS[number])
            self.log.an_hour(number + 1, now, topic=number == 1)
            if number == APART:
                copied(self.plain, self.tended)
            self.reports[self.plain].append(self.run(self.plain, number, now))
            if number >= APART:
                self.tend(now)
                self.reports[self.tended].append(self.run(self.tended, number, now))

    def run(self, folder: Path, number: int, now: datetime) -> Reports:
        confs = [
            configuration(folder, MIGRATION, capture("3.9.1", STAGES[number])),
            configuration(folder, KRAFT, self.folder / KRAFT),
        ]
        with open_run([load_settings(path) for path in confs], self.ids[number], now) as run:
            outcomes = run_all(run)
        assert {name: each.failure for name, each in outcomes.items() if each.failure is not None} == {}
        return {name: json.loads(to_json(each.report)) for name, each in outcomes.items() if each.report is not None}

    def tend(self, now: datetime) -> None:
        warehouse = Warehouse(self.spark, str(self.tended / "tables"))
        rules = dict.fromkeys((MIGRATION, KRAFT), Retention(details_days=1, isr_days=30))
        found = maintain(warehouse, Upkeep(rules, now, files=False))
        assert [each.problem for each in found if each.problem] == []
        self.removed.append(sum(each.rows for each in found))

    def rows(self, folder: Path, table: Table, columns: Sequence[str]) -> list[Any]:
        return sorted(Folder(str(folder / "tables")).rows(table, columns).rows(), key=repr)


@pytest.fixture(scope="module")
def year(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Year:
    return Year(spark, tmp_path_factory.mktemp("year"))


def test_something_has_gone(year: Year) -> None:
    assert min(year.removed) > 100
    there = {row[0] for row in year.rows(year.tended, ISR_HISTORY, ["run_id"])}
    assert there == set(year.ids[APART:])
    assert year.rows(year.tended, ISR_BY_DAY, ["day"])
    assert not year.rows(year.plain, ISR_BY_DAY, ["day"])


@pytest.mark.parametrize("cluster", [MIGRATION, KRAFT])
def test_each_report_says_the_same(year: Year, cluster: str) -> None:
    plain, tended = year.reports[year.plain][APART:], year.reports[year.tended]
    for wanted, found in zip(plain, tended, strict=True):
        assert differences(said(found[cluster], year.tended), said(wanted[cluster], year.plain)) == []


def test_differences_are_new_persist_and_are_resolved_as_they_were(year: Year) -> None:
    columns = ["cluster", "run_id", "fingerprint", "status", "first_seen_run"]
    found = year.rows(year.tended, DIVERGENCES, columns)
    assert found == year.rows(year.plain, DIVERGENCES, columns)
    assert {row[3] for row in found} == {"new", "persisting", "resolved"}
    assert {row[4] for row in found if row[1] == year.ids[APART]} - {year.ids[APART]}, "seen before anything went"


def test_verdicts_of_checks_and_gates_are_as_they_were(year: Year) -> None:
    for table, columns in ((CHECKS, ["check_id", "verdict", "violations"]), (GATES, ["gate", "verdict", "blocking"])):
        names = ["cluster", "run_id", *columns]
        assert year.rows(year.tended, table, names) == year.rows(year.plain, table, names)


def test_the_history_by_day_is_whole(year: Year) -> None:
    found = told(str(year.tended / "tables"))
    assert found == told(str(year.plain / "tables"))
    assert {place[0] for place in found} == {MIGRATION, KRAFT}
    assert sum(sums["changes"] for sums in found.values()) > 50


def test_isr_tells_days_and_then_changes(year: Year, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    for folder in (year.plain, year.tended):
        capsys.readouterr()
        assert main(["isr", "orders", "--warehouse", str(folder / "tables"), "--cluster", KRAFT]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert not any("are not there" in line or "removed" in line for line in lines)
        heads = [line.split() for line in lines if line.startswith("Partition ")]
        assert heads
        numbers = [
            [int(word.replace(",", "")) for word in head[5:] if word.replace(",", "").isdigit()] for head in heads
        ]
        counts.append([sum(each) for each in numbers])
    assert counts[0] == counts[1]
