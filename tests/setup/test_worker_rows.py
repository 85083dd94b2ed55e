"""Rows that workers write themselves: the same table, the same rows, Spark goes on with it, and of a query that fails nothing stays."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Transaction
from deltalake.transaction import AddAction
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from jobs.runtime.workers import WorkerRows, with_texts
from jobs.sinks import parquet, worker_rows
from jobs.sinks.conditions import Below, Equal
from jobs.sinks.delta import Warehouse
from jobs.sinks.delta_errors import UnreadableError
from jobs.sinks.folder_table import FolderTable, arrow_rows, arrow_schema
from jobs.sinks.parquet import DataFile, data_file
from jobs.sinks.shape import SchemaMismatchError
from jobs.sinks.storage import WarehouseError
from tests.setup.test_folder_table import FULL, KINDS, PARTED, ROWS, by_spark, first_commit, numbers, one
from tests.warehouses import BySpark

SCHEMA = arrow_schema(KINDS)


def made(spark: SparkSession, *tasks: pa.Table) -> WorkerRows:
    """Rows that as many tasks make as there are tables."""
    given = [table.to_batches() for table in tasks]

    def make(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from given[number]

    return WorkerRows(spark.range(0, len(tasks), 1, len(tasks)), make, KINDS.struct)


def numbered(*values: int | None, run_id: str = "r") -> pa.Table:
    return arrow_rows(KINDS, [{"cluster": "c", "run_id": run_id, "large": value} for value in values])


def files(warehouse: Warehouse) -> list[Path]:
    return sorted(Path(warehouse.location(KINDS)).glob("*.parquet"))


def test_it_is_the_table_that_spark_makes_with_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    mine, sparks = Warehouse(spark, str(tmp_path / "mine")), Warehouse(spark, str(tmp_path / "spark"))
    mine.append(KINDS, made(spark, arrow_rows(KINDS, ROWS[:1]), arrow_rows(KINDS, ROWS[1:])))
    sparks.append(KINDS, by_spark(spark, ROWS))
    assert first_commit(mine, KINDS) == first_commit(sparks, KINDS)
    found = {place: sorted(place.read(KINDS).collect(), key=lambda row: row["cluster"]) for place in (mine, sparks)}
    assert found[mine] == found[sparks]
    assert found[mine][-1]["epochs"][0].asDict() == FULL["epochs"][0]
    assert len(files(mine)) == 2, "a file for each task"
    assert sorted(row["cluster"] for row in DeltaTable(mine.location(KINDS)).to_pyarrow_table().to_pylist()) == [
        "c",
        "d",
        FULL["cluster"],
    ]


def test_spark_and_the_driver_go_on_with_what_workers_wrote(spark: SparkSession, warehouse: Warehouse) -> None:
    for number in range(0, 24, 3):
        warehouse.append(KINDS, made(spark, numbered(number), numbered()))
        warehouse.append(KINDS, one(number + 1))
        warehouse.append(KINDS, by_spark(spark, [{"cluster": "c", "large": number + 2}]))
    warehouse.delete(KINDS, Equal("large", Below(3)))
    warehouse.append(KINDS, made(spark, numbered(24)))
    assert numbers(warehouse) == list(range(3, 25))
    assert warehouse.version(KINDS) == 25


def test_without_rows_there_is_a_table_and_no_file(spark: SparkSession, warehouse: Warehouse) -> None:
    for _ in range(2):
        warehouse.append(KINDS, made(spark, numbered(), numbered()))
    assert (numbers(warehouse), files(warehouse), warehouse.version(KINDS)) == ([], [], 0)


def test_one_that_is_repeated_adds_nothing_and_asks_no_worker(spark: SparkSession, warehouse: Warehouse) -> None:
    def never(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise AssertionError("a worker was asked")

    warehouse.append(KINDS, made(spark, numbered(1)), "a")
    warehouse.append(KINDS, made(spark, numbered()), "empty")
    for name in ("a", "empty"):
        warehouse.append(KINDS, made(spark, numbered(2)).then(never, KINDS.struct), name)
        warehouse.append(KINDS, by_spark(spark, [{"cluster": "c", "large": 3}]), name)
    warehouse.append(KINDS, made(spark, numbered(4)), "a", 2)
    assert numbers(warehouse) == [1, 4]


def test_of_a_query_that_fails_nothing_stays(spark: SparkSession, warehouse: Warehouse) -> None:
    def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if 2 in batch["large"].to_pylist():
                raise ValueError("the second task's")

    warehouse.append(KINDS, made(spark, numbered(0)))
    before = files(warehouse)
    with pytest.raises(Exception, match="the second task's"):
        warehouse.append(KINDS, made(spark, numbered(1), numbered(2)).then(failing, KINDS.struct))
    assert (numbers(warehouse), files(warehouse), warehouse.version(KINDS)) == ([0], before, 0)


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO, errno.EACCES])
def test_a_disk_that_does_not_take_a_workers_file_is_named(
    spark: SparkSession, warehouse: Warehouse, fault: int
) -> None:
    def failing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise OSError(fault, os.strerror(fault), "part-1.parquet")

    with pytest.raises(WarehouseError, match=f"^the warehouse .* can't be written: {os.strerror(fault)}; "):
        warehouse.append(KINDS, made(spark, numbered(1)).then(failing, KINDS.struct))
    assert files(warehouse) == []


def test_after_the_commit_no_file_is_removed_whatever_fails(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = FolderTable.add_files

    def full(self: FolderTable, files: Sequence[AddAction], transaction: Transaction | None) -> None:
        committed(self, files, transaction)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FolderTable, "add_files", full)
    with pytest.raises(WarehouseError, match="No space left on device"):
        warehouse.append(KINDS, made(spark, numbered(1)), "a")
    monkeypatch.undo()
    warehouse.append(KINDS, made(spark, numbered(1)), "a")
    assert numbers(warehouse) == [1]


def test_rows_of_another_shape_are_refused_before_a_worker_is_asked(spark: SparkSession, warehouse: Warehouse) -> None:
    rows = made(spark, numbered(1))
    more = rows.then(with_texts({"more": "x"}), StructType([StructField("more", StringType()), *KINDS.columns]))
    with pytest.raises(SchemaMismatchError, match=r"^rows for gold\.kinds don't fit: more is not a column of it$"):
        warehouse.append(KINDS, more)
    assert warehouse.version(KINDS) is None


def test_tables_that_only_spark_can_write_get_the_rows_too(spark: SparkSession, warehouse: Warehouse) -> None:
    older = replace(KINDS, name="older", columns=KINDS.columns[:-1])
    warehouse.append(older, one(1, older))
    warehouse.append(replace(KINDS, name="older"), made(spark, numbered(2)))
    assert numbers(warehouse, replace(KINDS, name="older")) == [1, 2]
    warehouse.append(PARTED, made(spark, numbered(3)))
    assert numbers(warehouse, PARTED) == [3]


def test_a_file_that_the_driver_does_not_see_is_no_row_of_the_table(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers on machines of their own, each with a folder of that name."""
    monkeypatch.setattr(worker_rows, "_written", lambda *_: [DataFile("part-elsewhere.parquet", 1, "{}", 1)])
    with pytest.raises(WarehouseError, match=r"part-elsewhere\.parquet, which a worker of Spark's has written, is not"):
        warehouse.append(KINDS, made(spark, numbered(1)))
    assert warehouse.version(KINDS) is None


def test_ranges_leave_no_row_out(spark: SparkSession, warehouse: Warehouse) -> None:
    """Of files with texts, long ones, nulls alone, and some nulls; each is found by its own value and by null."""
    long = "r" * 300
    runs: list[list[str | None]] = [["a", "b"], [long, "a"], [None, None], ["c", None], ["ü", "${r}"]]
    tasks = [
        arrow_rows(KINDS, [{"cluster": "c", "run_id": run, "large": place} for run in mine])
        for place, mine in enumerate(runs)
    ]
    warehouse.append(KINDS, made(spark, *tasks))
    for run in ("a", "b", "c", long, "ü", "${r}", "none of them"):
        wanted = sorted(place for place, mine in enumerate(runs) if run in mine)
        found = [BySpark(spark, warehouse.root).read(KINDS), warehouse.read(KINDS, runs=[run])]
        assert [sorted(row["large"] for row in rows.where(F.col("run_id") == run).collect()) for rows in found] == [
            wanted
        ] * 2
    assert {row["large"] for row in warehouse.read(KINDS).where("run_id IS NULL").collect()} == {2, 3}
    actions = DeltaTable(warehouse.location(KINDS)).get_add_actions(flatten=True)
    ranges = [actions[f"{what}.run_id"].to_pylist() for what in ("min", "max", "null_count")]
    told = {low: (high, nulls) for low, high, nulls in zip(*ranges, strict=True) if low is not None}
    assert told == {"a": ("b", 0), "c": ("c", 1), "${r}": ("ü", 0)}


def test_only_the_files_that_can_hold_a_runs_rows_are_read(spark: SparkSession, warehouse: Warehouse) -> None:
    for run in ("1", "2", "3"):
        warehouse.append(KINDS, made(spark, numbered(int(run), run_id=run)))
    warehouse.append(KINDS, numbered(4, run_id="3"))
    assert sorted(row["large"] for row in warehouse.read(KINDS, runs=["3"]).collect()) == [3, 4]
    assert sorted(row["large"] for row in warehouse.read(KINDS, runs=["1", "2"]).collect()) == [1, 2]
    assert sorted(row["large"] for row in warehouse.read(KINDS).collect()) == [1, 2, 3, 4]
    assert warehouse.read(KINDS, runs=["4"]).collect() == []
    assert warehouse.read(KINDS, runs=["3"]).schema == BySpark(spark, warehouse.root).read(KINDS).schema
    # What was replaced is in files that are still there, and no row of the table.
    warehouse.delete(KINDS, Equal("large", 3))
    assert [row["large"] for row in warehouse.read(KINDS, runs=["3"]).collect()] == [4]


def test_a_file_that_is_gone_is_told_as_when_delta_reads(spark: SparkSession, warehouse: Warehouse) -> None:
    warehouse.append(KINDS, made(spark, numbered(1)))
    files(warehouse)[0].unlink()
    with pytest.raises(UnreadableError, match=r"a file of the tables is gone or damaged: .*\.parquet; restore it"):
        warehouse.append(replace(KINDS, name="copied"), warehouse.read(KINDS, runs=["r"]))


def test_what_does_not_exist_or_is_cut_by_clusters_is_read_as_ever(spark: SparkSession, warehouse: Warehouse) -> None:
    assert warehouse.read(KINDS, runs=["r"]).collect() == []
    warehouse.append(PARTED, one(1, PARTED))
    [row] = warehouse.read(PARTED, runs=["r"]).collect()
    assert (row["cluster"], row["large"]) == ("c", 1)


def test_a_reader_holds_no_more_than_a_group_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_BYTES", 1000)
    large = [arrow_rows(KINDS, [{"large": n, "bytes": b"x" * 400}]).to_batches()[0] for n in range(9)]
    single = arrow_rows(KINDS, [{"large": 9, "bytes": b"y" * 5000}]).to_batches()[0]
    file = data_file(tmp_path, "some-", [*large, single], SCHEMA, ())
    assert file is not None
    read = pq.ParquetFile(tmp_path / file.name)
    groups = [read.read_row_group(number)["large"].to_pylist() for number in range(read.num_row_groups)]
    assert [value for group in groups for value in group] == list(range(10))
    assert groups[-1] == [9]
    assert all(len(group) <= 2 for group in groups)
    assert json.loads(file.statistics)["numRecords"] == 10
    assert file.size == (tmp_path / file.name).stat().st_size


def test_a_range_is_that_of_all_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 2)
    batches = [numbered(*values).to_batches()[0] for values in [(5, 9), (None, None), (1, None), (2**62,)]]
    file = data_file(tmp_path, "some-", batches, SCHEMA, ["large", "names", "real"])
    assert file is not None
    assert json.loads(file.statistics) == {
        "numRecords": 7,
        "minValues": {"large": 1},
        "maxValues": {"large": 2**62},
        "nullCount": {"large": 3, "real": 7},
    }


def test_a_file_that_was_not_written_to_its_end_is_removed(tmp_path: Path) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from [numbered(1).to_batches()[0]] * 2
        yield pa.RecordBatch.from_pydict({"large": ["many"]})

    with pytest.raises(pa.ArrowInvalid):
        data_file(tmp_path, "some-", batches(), SCHEMA, ())
    assert list(tmp_path.iterdir()) == []
