"""Maintenance of a table in a local folder without Spark: rows, files and Delta's log go as they would by Spark, and no other."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs.sinks.conditions import Below, Equal
from jobs.sinks.delta import LOG_RETENTION, Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.lock import LOCKS
from jobs.sinks.reader import records
from jobs.sinks.storage import WarehouseError
from jobs.steps.maintenance.files import tend_files
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.table import Table
from tests.setup.test_folder_table import KINDS, PARTED, ROWS, both_kinds, by_spark, one, without_spark
from tests.warehouses import BySpark

HOUR = 3600
LARGE = 1 << 20


def folder(warehouse: Warehouse, table: Table = KINDS) -> Path:
    return Path(warehouse.location(table))


def data_files(warehouse: Warehouse, table: Table = KINDS) -> set[str]:
    return {str(path) for path in folder(warehouse, table).rglob("*.parquet") if "_delta_log" not in path.parts}


def numbers(warehouse: Warehouse) -> list[int]:
    return sorted(warehouse.rows(KINDS, ["large"])["large"].to_list())


def aged(warehouse: Warehouse, hours: float) -> None:
    for path in data_files(warehouse):
        os.utime(path, (time.time() - hours * HOUR,) * 2)


@both_kinds
def test_rows_that_are_meant_go_and_the_others_stay_as_they_were(tmp_path: Path, table: Table) -> None:
    warehouse = without_spark(tmp_path)
    warehouse.append(table, arrow_rows(table, ROWS))
    before = {row["cluster"]: row for row in records(warehouse.rows(table), table)}
    warehouse.delete(table, Equal("cluster", "c"))
    left = {row["cluster"]: row for row in records(warehouse.rows(table), table)}
    assert left == {name: row for name, row in before.items() if name != "c"}
    assert warehouse.version(table) == 1
    warehouse.delete(table, Equal("cluster", "nobody"))
    assert warehouse.version(table) == 1, "there was nothing to remove"


def test_small_files_become_one_and_large_ones_stay(tmp_path: Path) -> None:
    warehouse = without_spark(tmp_path)
    for number in range(12):
        warehouse.append(KINDS, one(number))
    assert warehouse.size(KINDS).files == 12
    warehouse.compact(KINDS, 1)
    assert warehouse.size(KINDS).files == 12, "none is smaller than a byte"
    warehouse.compact(KINDS, LARGE)
    size = warehouse.size(KINDS)
    assert (size.files, numbers(warehouse)) == (1, list(range(12)))
    assert size.bytes == sum(map(os.path.getsize, DeltaTable(folder(warehouse)).file_uris()))
    warehouse.compact(KINDS, LARGE)
    assert warehouse.version(KINDS) == 12, "there was nothing to merge"


def test_files_that_nothing_needs_any_more_go_when_they_are_old_enough(tmp_path: Path) -> None:
    warehouse = without_spark(tmp_path)
    for number in range(3):
        warehouse.append(KINDS, one(number))
    merged = data_files(warehouse)
    warehouse.compact(KINDS, LARGE)
    [needed] = data_files(warehouse) - merged
    orphan = folder(warehouse) / "part-of-a-killed-run.parquet"
    orphan.write_bytes(b"never finished")
    aged(warehouse, 48)
    young = folder(warehouse) / "part-of-a-run-under-way.parquet"
    young.write_bytes(b"not finished yet")
    # The merged files were needed until now; of the killed run nobody ever needed anything.
    assert warehouse.vacuum(KINDS, 24, dry_run=True) == [str(orphan)]
    assert orphan.exists()
    warehouse.vacuum(KINDS, 24)
    assert data_files(warehouse) == {*merged, needed, str(young)}
    aged(warehouse, 48)
    warehouse.vacuum(KINDS, 0)
    assert data_files(warehouse) == {needed}
    assert numbers(warehouse) == [0, 1, 2]


def test_deltas_log_is_kept_as_long_as_its_files_are_and_as_a_user_says(tmp_path: Path) -> None:
    warehouse = without_spark(tmp_path)
    warehouse.append(KINDS, one(1))

    def kept() -> str:
        return DeltaTable(folder(warehouse)).metadata().configuration[LOG_RETENTION]

    for days, wanted in ((9, 9), (8, 9), (20, 20)):
        warehouse.keep_log(KINDS, days)
        assert kept() == f"interval {wanted} days"
    table = DeltaTable(folder(warehouse), storage_options={"allow_unsafe_rename": "true"})
    table.alter.set_table_properties({LOG_RETENTION: "interval 2 weeks"})
    warehouse.keep_log(KINDS, 30)
    assert kept() == "interval 2 weeks"


def test_deltas_log_is_summed_up_whatever_makes_the_tenth_commit(tmp_path: Path) -> None:
    warehouse = without_spark(tmp_path)
    for number in range(9):
        warehouse.append(KINDS, one(number))
    warehouse.delete(KINDS, Equal("large", Below(2)))
    (folder(warehouse) / "left.parquet").write_bytes(b"x")
    aged(warehouse, 48)
    # Begins with version 10 and ends with version 11.
    warehouse.vacuum(KINDS, 24)
    assert warehouse.version(KINDS) == 11
    newest = json.loads((folder(warehouse) / "_delta_log" / "_last_checkpoint").read_text())
    assert newest["version"] == 11


def test_spark_reads_and_continues_what_was_tended(spark: SparkSession, warehouse: Warehouse) -> None:
    for table in (KINDS, PARTED):
        warehouse.append(table, by_spark(spark, ROWS, table))
        for number in range(4):
            warehouse.append(table, one(number, table))
        warehouse.delete(table, Equal("large", 2) | Equal("cluster", "d"))
        warehouse.keep_log(table, 12)
        warehouse.compact(table, LARGE)
        warehouse.vacuum(table, 0)
        alone = BySpark(spark, warehouse.root)
        found = sorted(str(row) for row in records(alone.rows(table), table))
        assert found == sorted(str(row) for row in records(warehouse.rows(table), table))
        assert len(found) == len(ROWS) - 1 + 3
        alone.append(table, by_spark(spark, ROWS[2:], table))
        alone.delete(table, Equal("cluster", "c"))
        assert sorted(str(row["cluster"]) for row in records(warehouse.rows(table), table)) == sorted(
            str(row["cluster"]) for row in ROWS if row["cluster"] != "c"
        )


def test_a_lock_that_can_not_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / LOCKS).write_text("where a folder has to be")
    with pytest.raises(
        WarehouseError, match=f"^the warehouse {re.escape(str(tmp_path))} can't be written: File exists$"
    ):
        maintain(without_spark(tmp_path), Upkeep({}, datetime.now(UTC)))


def cut(path: Path) -> None:
    os.truncate(path, 100)


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-6] + b"xxxxxx")


@pytest.mark.parametrize("harm", [Path.unlink, cut, changed], ids=["gone", "cut", "changed"])
def test_a_damaged_file_is_named_in_one_line(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    warehouse = without_spark(tmp_path)
    for number in range(4):
        warehouse.append(KINDS, one(number))
    file = sorted(data_files(warehouse))[1]
    harm(Path(file))
    for harmed in (
        lambda: warehouse.delete(KINDS, Equal("large", Below(9))),
        lambda: warehouse.compact(KINDS, LARGE),
    ):
        with pytest.raises(
            WarehouseError, match=f"^a file of the tables is gone or damaged: {re.escape(file)}; restore it"
        ):
            harmed()
    assert warehouse.version(KINDS) == 3, "nothing was changed"


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_file_that_an_audit_removes_meanwhile_ends_no_maintenance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    warehouse = without_spark(tmp_path)
    warehouse.append(KINDS, arrow_rows(KINDS, ROWS))
    attempt = folder(warehouse) / "part-of-an-attempt.parquet"
    listed = Path.rglob

    def and_then_gone(self: Path, pattern: str) -> list[Path]:
        attempt.write_bytes(b"PAR1")
        found = list(listed(self, pattern))
        attempt.unlink()
        assert attempt in found
        return found

    made = Tended(KINDS.full_name)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rglob", and_then_gone)
        tend_files(warehouse, Upkeep({}, datetime.now(UTC), dry_run=dry_run), KINDS, made, 168)
    assert (made.problem, made.removed_files) == ("", 0)
