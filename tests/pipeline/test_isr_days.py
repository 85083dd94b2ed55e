"""Changes of partitions that are too old become sums by day: each change is in one of the two tables, whenever maintenance was killed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.run.run import new_run_id
from jobs.sinks.delta import Warehouse
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from schemas.gold import ISR_BY_DAY, ISR_HISTORY, RUNS
from tests.pipeline.sums import by_day, day_of, told
from tests.pipeline.test_maintain import by_table, kept_by, left_in, stored
from tests.reliability.killing import Dead, Killer, killed_by
from transforms.isr.partition import LISTS
from transforms.retention import Retention

NOW = datetime(2027, 6, 1, 12, tzinfo=UTC)
KINDS = (["created"], ["shrink"], ["expand"], ["unclean_election", "shrink"], ["leader_lost"], ["epoch_bump"])
# Days ago that a run began; the newest one stays.
AGES = {"a": 800, "b": 300, "c": 299.6, "d": 120, "new": 1}
IDS = {name: new_run_id(NOW - timedelta(days=days)) for name, days in AGES.items()}


def change(run: str, offset: int, days: float, partition: int = 0) -> dict[str, Any]:
    """A change, its record appended so many days ago."""
    state = {**{name: [1, 2] for name in LISTS}, "leader": 1, "leader_recovery_state": 0, "leader_epoch": 1}
    before = {f"{name}_before": value for name, value in state.items()}
    return {
        "cluster": "c",
        "run_id": IDS.get(run, run),
        "topic": "orders",
        "topic_id": "id",
        "partition": partition,
        "offset": offset,
        "append_time": round((NOW - timedelta(days=days)).timestamp() * 1000),
        "kinds": KINDS[offset % len(KINDS)],
        **state,
        "partition_epoch": offset,
        **({} if offset == 0 else {**before, "partition_epoch_before": offset - 1}),
    }


def some_changes() -> list[dict[str, Any]]:
    """Of five runs: `b` and `c` have read the halves of one day, and one change both; `dead` never finished."""
    halves = [change("b", 10 + n, 301.2) for n in range(7)] + [change("c", 20 + n, 300.9) for n in range(5)]
    return [
        *[change("a", n, 801) for n in range(4)],
        *halves,
        change("c", 16, 301.2),
        *[change("d", 40 + n, 120.5 + n / 4, partition=n % 2) for n in range(9)],
        *[change("new", 60 + n, 2) for n in range(3)],
        change(new_run_id(NOW - timedelta(days=310)), 99, 311),
    ]


def filled(spark: SparkSession, folder: Path, phase: str = "kraft") -> Warehouse:
    warehouse = Warehouse(spark, str(folder))
    rows = [
        {
            "cluster": "c",
            "run_id": IDS[name],
            "started_at": NOW - timedelta(days=AGES[name]),
            "finished_at": NOW - timedelta(days=AGES[name]),
            "verdict": "clean",
            "phase": phase,
            "sequence": number,
            "cluster_id": "id",
            "log_end_offset": number,
            "goes_on": True,
            "kept": kept_by(IDS["new"]),
            "table_versions": {},
        }
        for number, name in enumerate(AGES)
    ]
    stored(warehouse, RUNS, rows)
    stored(warehouse, ISR_HISTORY, some_changes())
    return warehouse


def tend(warehouse: Warehouse, days_later: float = 0, **rules: Any) -> Any:
    upkeep = Upkeep({"c": Retention(**rules)}, NOW + timedelta(days=days_later), files=False)
    found = by_table(maintain(warehouse, upkeep))
    assert not any(each.problem for each in found.values())
    return found


WANTED = by_day(some_changes(), IDS.values())


def test_old_changes_become_sums_and_no_change_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = filled(spark, tmp_path / "w")
    assert told(warehouse.root) == WANTED
    looked = maintain(warehouse, Upkeep({"c": Retention(judged_days=9000)}, NOW, files=False, dry_run=True))
    assert told(warehouse.root) == WANTED
    found = tend(warehouse, judged_days=9000)
    assert found["gold.isr_history"].rows == by_table(looked)["gold.isr_history"].rows > 20
    assert left_in(warehouse, ISR_HISTORY) == {IDS["new"]}
    assert told(warehouse.root) == WANTED
    rows = warehouse.read(ISR_BY_DAY).where("partition = 0").orderBy("day").collect()
    halves = next(row for row in rows if IDS["b"] in row["runs"])
    # A change that two runs have read at the same time is one.
    assert (halves["changes"], halves["runs"], halves["run_id"]) == (12, [IDS["b"], IDS["c"]], IDS["c"])
    assert halves["lossy_elections"] == halves["elections"] == 2
    assert tend(warehouse, judged_days=9000)["gold.isr_history"].rows == 0


def test_the_halves_of_a_day_come_one_after_the_other(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = filled(spark, tmp_path / "w")
    # Between the begin of the one and of the other; then a held run keeps its rows.
    tend(warehouse, isr_days=299.8, judged_days=9000, hold=(IDS["a"],))
    assert left_in(warehouse, ISR_HISTORY) >= {IDS["a"], IDS["c"], IDS["d"]}
    assert IDS["b"] not in left_in(warehouse, ISR_HISTORY)
    assert told(warehouse.root) == WANTED
    tend(warehouse, isr_days=200, judged_days=9000)
    assert left_in(warehouse, ISR_HISTORY) == {IDS["d"], IDS["new"]}
    assert told(warehouse.root) == WANTED


def test_sums_go_with_what_was_judged(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = filled(spark, tmp_path / "w")
    tend(warehouse)
    assert told(warehouse.root) == WANTED
    # Days are looked at before this maintenance's are written: the oldest one goes the next time.
    assert tend(warehouse)["gold.isr_by_day"].rows == 1
    left = {place: sums for place, sums in WANTED.items() if place[3] >= "2025-06-01"}
    assert told(warehouse.root) == left != WANTED


def test_of_a_migration_that_is_held_all_changes_stay(spark: SparkSession, tmp_path: Path) -> None:
    warehouse = filled(spark, tmp_path / "w", phase="dual_write")
    assert tend(warehouse, hold=("until-finalised",))["gold.isr_history"].rows == 1
    assert left_in(warehouse, ISR_HISTORY) == set(IDS.values())
    assert warehouse.version(ISR_BY_DAY) is None


@pytest.mark.parametrize(
    ("commit", "when"),
    [
        ("replace_where gold.isr_by_day", "before"),
        ("replace_where gold.isr_by_day", "after"),
        ("delete gold.isr_history", "before"),
        ("delete gold.isr_history", "after"),
    ],
)
def test_a_maintenance_that_was_killed_neither_loses_nor_doubles_a_day(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str], commit: str, when: str
) -> None:
    warehouse = filled(spark, tmp_path / "w")
    with killed_by(Killer(commit, when)), pytest.raises(Dead):
        tend(warehouse, judged_days=9000)
    assert told(warehouse.root) == WANTED
    # The next one is later: more runs are old by then.
    tend(warehouse, 200, judged_days=9000)
    assert told(warehouse.root) == WANTED
    assert (
        warehouse.read(ISR_BY_DAY)
        .groupBy("cluster", "topic_id", "partition", "day")
        .count()
        .where("count > 1")
        .isEmpty()
    )


def test_the_command_tells_days_where_single_changes_are_gone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = filled(spark, tmp_path / "w")
    tend(warehouse, judged_days=9000)
    capsys.readouterr()
    assert main(["isr", "orders/0", "--warehouse", warehouse.root, "--cluster", "c"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert last.startswith("Nothing newer is known: run ")
    older = sum(sums["changes"] for (*_, partition, day), sums in WANTED.items() if partition == 0 and day < "2027-05")
    assert lines[0] == f"Partition 0 of topic id id: 3 changes, and {older} older ones by day (UTC)"
    assert lines[1] == f"  {day_of(some_changes()[0]['append_time'])}  4 changes: 2 shrinks, 1 expansion, " + (
        "1 election, 1 election that may have lost data"
    )
    assert len(lines) == 1 + len([place for place in WANTED if place[2] == 0 and place[3] < "2027-05"]) + 3
