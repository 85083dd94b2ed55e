"""Tables of a warehouse in a folder, after a kill, on a bad disk, and with several processes at a time; on real Delta."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType

from jobs.exit import UsageError
from jobs.runtime.spark import java_of
from jobs.sinks import delta, lock
from jobs.sinks.conditions import Equal
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.storage import WarehouseError
from schemas.table import Layer, Table, column
from tests.reliability.two_processes import COUNTED, READY, commit, look, start

ADDED = Table(
    Layer.GOLD,
    "added",
    "Numbers; isn't it \\n?",
    (
        column("cluster", StringType(), "Which cluster's."),
        column("run_id", StringType(), "Run that wrote it."),
        column("number", LongType(), "The number's value."),
    ),
)
REPLACED = replace(ADDED, name="replaced", replaced=True)
both_kinds = pytest.mark.parametrize("table", [ADDED, REPLACED], ids=["added", "replaced"])
Left = Callable[[Path], None]


def rows(spark: SparkSession, *numbers: int) -> DataFrame:
    # Of Arrow's rows, because plain ones pass through a Python worker of another kind, which takes a second to begin.
    made = pa.table({"cluster": ["c"] * len(numbers), "run_id": ["r"] * len(numbers), "number": [*numbers]})
    return spark.createDataFrame(made, ADDED.struct).coalesce(1)


def numbers(warehouse: Warehouse, table: Table) -> list[int]:
    return sorted(row["number"] for row in warehouse.read(table).collect())


def data_files_only(folder: Path) -> None:
    shutil.rmtree(folder / "_delta_log")


def a_log_without_a_commit(folder: Path) -> None:
    for path in (folder / "_delta_log").iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def a_commit_half_written(folder: Path) -> None:
    a_log_without_a_commit(folder)
    (folder / "_delta_log" / ".00000000000000000000.json.0c1f.tmp").write_text('{"commitInfo":')


def an_empty_folder(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.fixture(scope="module")
def elsewhere(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Both tables after a first write, to be copied."""
    made = Warehouse(spark, str(tmp_path_factory.mktemp("elsewhere")))
    for table in (ADDED, REPLACED):
        made.append(table, rows(spark, 99))
    return made


def unfinished(elsewhere: Warehouse, warehouse: Warehouse, table: Table, left: Left) -> None:
    """What a first write leaves that came as far as `left` says; this process has never seen the table."""
    folder = Path(warehouse.location(table))
    shutil.copytree(elsewhere.location(table), folder)
    left(folder)


@both_kinds
@pytest.mark.parametrize("left", [data_files_only, a_log_without_a_commit, a_commit_half_written, an_empty_folder])
def test_what_a_killed_first_write_left_counts_for_nothing_and_is_written_over(
    spark: SparkSession,
    elsewhere: Warehouse,
    warehouse: Warehouse,
    table: Table,
    left: Left,
    caplog: pytest.LogCaptureFixture,
) -> None:
    unfinished(elsewhere, warehouse, table, left)
    assert (warehouse.version(table), numbers(warehouse, table)) == (None, [])
    write = warehouse.append if table is ADDED else lambda *a: warehouse.replace_where(*a, {"cluster": "c"})
    write(table, rows(spark, 1))
    write(table, rows(spark, 2))
    assert numbers(warehouse, table) == ([1, 2] if table is ADDED else [2])
    told = DeltaTable(warehouse.location(table)).metadata()
    assert (told.description, told.partition_columns) == (table.comment, ["cluster"] if table.replaced else [])
    assert told.configuration["delta.dataSkippingStatsColumns"] == ",".join(table.skipping_columns)
    comments = [field.metadata["comment"] for field in spark.read.table(warehouse.identifier(table)).schema]
    assert comments == [field.metadata["comment"] for field in table.columns]
    lines = (
        []
        if left is an_empty_folder
        else [f"unfinished table {table.full_name}: an earlier first write did not finish; it is repeated"]
    )
    assert [record.getMessage() for record in caplog.records if record.name == "kraft-audit"] == lines


def test_an_unfinished_table_is_created_empty_and_removed_from(elsewhere: Warehouse, warehouse: Warehouse) -> None:
    unfinished(elsewhere, warehouse, ADDED, a_commit_half_written)
    warehouse.create(ADDED)
    warehouse.delete(ADDED, Equal("number", 99))
    assert numbers(warehouse, ADDED) == []


def test_elsewhere_than_in_a_folder_it_may_be_another_runs_and_is_waited_for(
    spark: SparkSession, elsewhere: Warehouse, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an object store: nothing tells whether the other is alive, and both must end with all rows."""
    unfinished(elsewhere, warehouse, ADDED, data_files_only)
    monkeypatch.setattr(Warehouse, "folder", None)
    monkeypatch.setattr(delta, "CREATE_ATTEMPTS", 3)
    in_parallel([lambda n=n: warehouse.append(ADDED, rows(spark, n)) for n in (1, 2)])
    assert numbers(warehouse, ADDED) == [1, 2]


def test_a_table_that_comes_when_it_has_just_been_given_up_is_written_to(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real HDFS another run's first write ended between the last try to make the table and the look for it."""
    monkeypatch.setattr(Warehouse, "folder", None)
    monkeypatch.setattr(delta, "CREATE_ATTEMPTS", 1)
    create, mine = Warehouse._create, rows(spark, 2)

    def late(self: Warehouse, *arguments: Any) -> None:
        create(self, ADDED, rows(spark, 1), {})
        create(self, *arguments)

    monkeypatch.setattr(Warehouse, "_create", late)
    warehouse.append(ADDED, mine)
    assert numbers(warehouse, ADDED) == [1, 2]


def test_in_a_catalog_somebody_has_to_remove_it_and_is_told_so(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta, "CREATE_ATTEMPTS", 2)
    spark.sql(f"CREATE DATABASE unfinished_test LOCATION '{tmp_path / 'db'}'")
    try:
        (tmp_path / "db" / "gold_added").mkdir(parents=True)
        (tmp_path / "db" / "gold_added" / "part-0.parquet").write_text("x")
        warehouse = Warehouse(spark, "spark_catalog.unfinished_test", catalog=True)
        with pytest.raises(WarehouseError, match=r"^unfinished table gold\.added: .*remove that folder and run again"):
            warehouse.append(ADDED, rows(spark, 1))
    finally:
        spark.sql("DROP DATABASE unfinished_test CASCADE")


def test_a_catalog_has_no_lock_and_a_folder_has(spark: SparkSession, warehouse: Warehouse) -> None:
    assert Warehouse(spark, "main.audit", catalog=True).folder is None
    assert Warehouse(spark, "abfss://c@a.dfs.core.windows.net/x").folder is None
    assert Warehouse(spark, "file:///data/a%20b").folder == Path("/data/a b")
    assert warehouse.folder == Path(warehouse.root)
    os.kill(java_of(spark) or -1, 0)


def test_on_s3_two_drivers_are_refused_unless_somebody_has_seen_to_it(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Warehouse(spark, "s3a://bucket/audit")
    with pytest.raises(
        UsageError, match=r"^warehouse s3a://bucket/audit: .*set spark\.delta\.logStore\.s3a\.impl"
    ) as said:
        there.append(ADDED, rows(spark, 1))
    assert "`warehouse_single_driver: true`" in str(said.value)
    replace(there, single_driver=True).refuse_unsafe_storage()
    Warehouse(spark, "abfss://c@a.dfs.core.windows.net/x").refuse_unsafe_storage()
    Warehouse(spark, "s3.audit", catalog=True).refuse_unsafe_storage()
    key = "spark.delta.logStore.s3a.impl"
    try:
        spark.conf.set(key, "io.delta.storage.S3SingleDriverLogStore")
        with pytest.raises(UsageError):
            there.refuse_unsafe_storage()
        spark.conf.set(key, "io.delta.storage.S3DynamoDBLogStore")
        there.refuse_unsafe_storage()
    finally:
        spark.conf.unset(key)


def test_a_warehouse_is_prepared_for_its_owner_only(spark: SparkSession, tmp_path: Path) -> None:
    Warehouse(spark, str(tmp_path / "a" / "w")).prepare()
    assert (tmp_path / "a" / "w").stat().st_mode & 0o777 == 0o700
    Warehouse(spark, "main.audit", catalog=True).prepare()
    (tmp_path / "file").write_text("")
    with pytest.raises(WarehouseError, match=r"^the warehouse .*/file/w can't be written: "):
        Warehouse(spark, str(tmp_path / "file" / "w")).prepare()
    with pytest.raises(UsageError):
        Warehouse(spark, "s3a://bucket/audit").prepare()


def test_a_folder_that_cannot_be_made_is_the_warehouses_fault(spark: SparkSession, warehouse: Warehouse) -> None:
    gold = Path(warehouse.root) / "gold"
    gold.mkdir(parents=True)
    (gold / "added").symlink_to("/proc/nothing/here")
    with pytest.raises(WarehouseError) as said:
        warehouse.append(ADDED, rows(spark, 1))
    assert str(said.value).startswith(f"the warehouse {warehouse.root} can't be written: ")
    (gold / "added").unlink()
    warehouse.append(ADDED, rows(spark, 2))
    assert numbers(warehouse, ADDED) == [2]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
def test_a_full_or_failing_disk_is_named_and_nobody_else_is_blamed(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Java's errors bring the words of the C library, deep in a text."""
    trace = f"An error occurred while calling o1.append.\n: [TASK_WRITE_FAILED]\nCaused by: {os.strerror(number)}\n"

    def fails(*_: Any) -> Any:
        raise RuntimeError(trace)

    with monkeypatch.context() as patched:
        patched.setattr(Warehouse, "_writer", fails)
        for write in (
            lambda: warehouse.append(ADDED, rows(spark, 1)),
            lambda: warehouse.replace_where(REPLACED, rows(spark, 1), {"cluster": "c"}),
            lambda: warehouse.create(ADDED),
        ):
            with pytest.raises(WarehouseError) as said:
                write()
            text = str(said.value)
            assert text.startswith(f"the warehouse {warehouse.root} can't be written: {os.strerror(number)}; ")
            assert text.endswith(" and run again")
            assert "another" not in text
    warehouse.append(ADDED, rows(spark, 2))
    assert numbers(warehouse, ADDED) == [2]


def test_another_error_stays_what_it_is(
    warehouse: Warehouse, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ZeroDivisionError("x")

    monkeypatch.setattr(Warehouse, "_writer", fails)
    with pytest.raises(ZeroDivisionError):
        warehouse.append(ADDED, rows(spark, 1))


@pytest.mark.slow
def test_two_processes_create_and_fill_one_table_and_a_kill_in_the_midst_costs_no_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Both begin on nothing; one is killed, and this one goes on for both. Real Delta, a Java for each."""
    root, several = tmp_path / "w", 4
    other = start(root, "b", 10_000)
    assert other.stdout is not None
    assert other.stdout.readline() == READY
    mine, until = 0, time.monotonic() + 300
    while numbers_of_the_other(spark, root) < several or mine < several:
        assert time.monotonic() < until
        commit(spark, str(root), "a", [mine])
        mine += 1
    other.send_signal(signal.SIGKILL)
    other.communicate()
    # Its Java may have been about to commit; whoever takes the lock next waits for its end.
    with lock.only_writer(root, COUNTED.full_name):
        pass
    done = numbers_of_the_other(spark, root)
    commit(spark, str(root), "b", range(done, done + several))
    found = look(spark, root, mine + done + several)
    assert (found.lost, found.problem) == (0, None)
    assert found.versions == found.rows, "a commit each"


def numbers_of_the_other(spark: SparkSession, root: Path) -> int:
    return Warehouse(spark, str(root)).read(COUNTED).where("cluster = 'b'").count()


def test_another_processs_write_is_waited_for_and_then_made(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock, "SAY_AFTER_SECONDS", 0.1)
    file = lock.lock_file(Path(warehouse.root), ADDED.full_name)
    file.parent.mkdir(parents=True)
    held = subprocess.Popen(["flock", str(file), "sleep", "1.5"])
    while subprocess.run(["flock", "--nonblock", str(file), "true"], check=False).returncode == 0:
        time.sleep(0.01)
    warehouse.append(ADDED, rows(spark, 1))
    assert held.poll() is not None or held.wait(1) == 0
    assert [record.getMessage() for record in caplog.records if "waiting to write" in record.getMessage()]
    assert numbers(warehouse, ADDED) == [1]
