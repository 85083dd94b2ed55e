"""Which run is the newest is counted, also beside rows of releases that did not count; and runs that died become rows once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from jobs.evidence.journal import begin
from jobs.evidence.past_run import runs_of
from jobs.run import earlier_runs, failures
from jobs.run.run import Failure
from jobs.sinks.conditions import Where
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from schemas.gold import RUNS
from schemas.table import Table
from transforms.reconcile.judge.earlier import LogKnown

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER_COLUMNS = {
    "sequence",
    "cluster_id",
    "committed_end_offset",
    "log_end_offset",
    "newest_append_time",
    "leader_epochs",
}
OLD = StructType([field for field in RUNS.columns if field.name not in LATER_COLUMNS | {"goes_on"}])
KNOWN = LogKnown("id", 99, 120, 1_795_000_000_000, ((1, 0), (3, 50)))


def row(run_id: str, hour: int, verdict: str = "clean", **more: Any) -> dict[str, Any]:
    at = NOON + timedelta(hours=hour)
    times = {"started_at": at, "finished_at": at + timedelta(minutes=1)}
    return {"cluster": "c", "run_id": run_id, "verdict": verdict, **times, "report": "{}", **more}


def counted(run_id: str, hour: int, sequence: int, known: LogKnown = KNOWN, **more: Any) -> dict[str, Any]:
    return row(run_id, hour, sequence=sequence, **{"goes_on": True, **known.row(), **more})


def stored(warehouse: Warehouse, rows: list[dict[str, Any]]) -> None:
    warehouse.append(RUNS, arrow_rows(RUNS, rows))


def a_run(warehouse: Warehouse, run_id: str = "now", failure: Failure | None = None) -> Any:
    def append(table: Any, rows: Any, series: str = "") -> None:
        warehouse.append(table, rows)

    return SimpleNamespace(
        clusters={"c": SimpleNamespace(failure=failure)},
        previous=None,
        run_id=run_id,
        started_at=NOON + timedelta(hours=50),
        warehouse=warehouse,
        spark=warehouse.spark,
        sequences={},
        recorded=set(),
        append=append,
    )


@pytest.fixture
def filled(spark: SparkSession, warehouse: Warehouse) -> Warehouse:
    """Two rows of an earlier release, then a run dated years ahead, then one that failed, and two more."""
    old = [row("old-b", 2), row("old-a", 1)]
    values = [tuple(each.get(name) for name in OLD.fieldNames()) for each in old]
    spark.createDataFrame(values, OLD).write.format("delta").save(warehouse.location(RUNS))
    stored(
        warehouse,
        [
            counted("future", 99_999, 3),
            row("failed", 4, "failed", failure="gone", report=None, sequence=4),
            counted("same-end", 5, 5, leader_epochs=None),
            counted("foreign", 6, 6, LogKnown("other", 7, 7, 1, ()), goes_on=False),
        ],
    )
    return warehouse


def test_runs_are_in_the_order_of_their_numbers(filled: Warehouse) -> None:
    run = a_run(filled)
    previous = earlier_runs.previous_runs(run)["c"]
    assert [each["run_id"] for each in previous] == ["old-a", "old-b", "future", "same-end", "foreign"]
    assert run.sequences == {"c": 7}
    assert previous[-1]["finished"] == 5
    assert [each.run_id for each in runs_of(filled, "c")] == [
        "old-a", "old-b", "future", "failed", "same-end", "foreign",
    ]  # fmt: skip


def test_a_run_is_held_against_the_newest_whose_log_was_the_clusters_own(filled: Warehouse) -> None:
    previous = earlier_runs.previous_runs(a_run(filled))["c"]
    earlier = earlier_runs.earlier_run(previous)
    assert earlier is not None
    assert (earlier.run_id, earlier.log.cluster_id, earlier.log.committed_end_offset) == ("same-end", "id", 99)
    assert earlier.unmoved_since == int((NOON + timedelta(hours=5)).timestamp() * 1000)
    assert earlier_runs.run_before(previous)["run_id"] == "same-end"
    assert earlier_runs.log_end_before(previous) == 120
    assert earlier_runs.clock_notes(a_run(filled), previous) == []
    (note,) = earlier_runs.clock_notes(a_run(filled), previous[:3])
    assert "run future" in note


def test_a_run_that_retention_removes_meanwhile_is_not_there(
    filled: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Warehouse.rows

    def rows(self: Warehouse, table: Table, columns: Sequence[str], where: Where) -> pl.DataFrame:
        found = real(self, table, columns, where)
        return found.filter(~pl.col("run_id").is_in(["old-a", "same-end"])) if "run_id" in where else found

    monkeypatch.setattr(Warehouse, "rows", rows)
    previous = earlier_runs.previous_runs(a_run(filled))["c"]
    assert [each["run_id"] for each in previous] == ["old-b", "future", "foreign"]
    assert earlier_runs.run_before(previous)["run_id"] == "foreign"


def test_rows_of_earlier_releases_alone_hold_nothing_against_a_run(spark: SparkSession, warehouse: Warehouse) -> None:
    values = [tuple(row("old", 1).get(name) for name in OLD.fieldNames())]
    spark.createDataFrame(values, OLD).write.format("delta").save(warehouse.location(RUNS))
    run = a_run(warehouse)
    previous = earlier_runs.previous_runs(run)["c"]
    assert earlier_runs.earlier_run(previous) is None
    assert earlier_runs.run_before(previous)["run_id"] == "old"
    assert run.sequences == {"c": 2}


def test_a_failure_is_counted_and_stored_once(filled: Warehouse) -> None:
    run = a_run(filled, failure=Failure("no folder", 2))
    failures.write_failures(run)
    failures.write_failures(run)
    assert [(each.run_id, each.sequence) for each in runs_of(filled, "c")][-1] == ("now", 7)
    assert len(runs_of(filled, "c")) == 7


def test_a_run_that_died_is_a_row_once_unless_it_has_one(filled: Warehouse) -> None:
    for run_id, at in (("dead", NOON), ("part-of-it-finished", NOON + timedelta(hours=5))):
        begun = begin(filled.root, catalog=False, clusters=["c"], run_id=run_id, started_at=at)
        assert begun is not None
        begun.leave()
    for _ in range(2):
        assert [(each.run_id, each.sequence) for each in runs_of(filled, "c")][-1] == ("dead", 7)
        failures.settle_died(a_run(filled))
    assert len(runs_of(filled, "c")) == 7
    assert runs_of(filled, "c")[-1].failure.startswith("died: ")
