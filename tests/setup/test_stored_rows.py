"""Rows that workers read from a table's files: those that Spark reads, of any writer; files and groups without wanted rows stay closed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from jobs.runtime.workers import WorkerRows
from jobs.sinks import parquet, stored_rows
from jobs.sinks.conditions import PRESENT, Where
from jobs.sinks.delta import Warehouse
from jobs.sinks.delta_errors import UnreadableError, readable
from jobs.sinks.folder_table import arrow_rows
from tests.setup.test_folder_table import KINDS, PARTED, ROWS, by_spark
from tests.setup.test_worker_rows import files, made, numbered


def found(rows: WorkerRows) -> list[dict[str, Any]]:
    with readable():
        return sorted((row.asDict(recursive=True) for row in rows.rows.collect()), key=str)


def by_sparks_reader(warehouse: Warehouse, where: Where) -> list[dict[str, Any]]:
    rows = warehouse.read(KINDS)
    for name, value in where.items():
        column = rows[name]
        rows = rows.where(column.isNotNull() if value is PRESENT else column.isin(value))
    return sorted((row.asDict(recursive=True) for row in rows.collect()), key=str)


def test_they_are_the_rows_that_spark_reads_whoever_wrote_them(spark: SparkSession, warehouse: Warehouse) -> None:
    warehouse.append(KINDS, arrow_rows(KINDS, ROWS))
    warehouse.append(KINDS, by_spark(spark, ROWS))
    warehouse.append(KINDS, made(spark, arrow_rows(KINDS, ROWS), numbered(*range(40_000))))
    everything = found(warehouse.in_workers(KINDS, {}))
    assert len(everything) == 40_000 + 3 * len(ROWS)
    assert everything == by_sparks_reader(warehouse, {})
    for where in ({"cluster": ["c"]}, {"large": PRESENT}, {"cluster": ["d", "c"], "run_id": ["r"]}):
        assert found(warehouse.in_workers(KINDS, where)) == by_sparks_reader(warehouse, where), where


def test_a_table_that_only_spark_can_read_is_read_by_spark(spark: SparkSession, warehouse: Warehouse) -> None:
    assert found(warehouse.in_workers(KINDS, {"cluster": ["c"]})) == [], "there is none yet"
    parted = arrow_rows(PARTED, [{"cluster": name, "run_id": "r", "value": 1} for name in ("c", "d")])
    warehouse.append(PARTED, parted)
    assert [row["cluster"] for row in found(warehouse.in_workers(PARTED, {"cluster": ["d"]}))] == ["d"]


def test_groups_of_rows_that_cannot_be_wanted_are_not_read(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "_GROUP_ROWS", 10)
    rows = pa.concat_tables([numbered(*range(10), run_id=name) for name in ("a", "b", "c")])
    [file] = _written(warehouse, rows)
    assert pq.read_metadata(file).num_row_groups == 3
    for wanted, groups in ((["b"], [1]), (["a", "c"], [0, 2]), ("b", [1]), (["aa", "z"], []), (["bb", "b"], [1])):
        parts = list(stored_rows._parts(str(file), {"run_id": wanted}))
        assert [part.group for part in parts] == groups, wanted
        assert all(part.size > 0 for part in parts)
    assert [part.group for part in stored_rows._parts(str(file), {"large": 3})] == [0, 1, 2]


def _written(warehouse: Warehouse, rows: pa.Table) -> list[Path]:
    """A file as a worker writes it, here."""
    new = warehouse.new_files([KINDS])
    with new.begin(KINDS.full_name) as writer:
        for begin in range(0, rows.num_rows, 10):
            for batch in rows.slice(begin, 10).to_batches():
                writer.add(batch)
        file = writer.close()
    assert file is not None
    assert file.rows == rows.num_rows
    warehouse.append(KINDS, [file])
    return files(warehouse)


@pytest.mark.parametrize("fault", ["gone before it is looked at", "gone meanwhile", "cut", "no Parquet at all"])
def test_a_file_that_cannot_be_read_is_named(spark: SparkSession, warehouse: Warehouse, fault: str) -> None:
    warehouse.append(KINDS, made(spark, numbered(*range(1000))))
    [file] = files(warehouse)
    whole = file.read_bytes()
    if fault == "gone before it is looked at":
        # Delta's own reader says so; the worker's would too.
        rows = stored_rows.stored_rows(spark, KINDS, [f"{file}.gone.parquet"], pq.read_schema(file), {})
    elif fault == "no Parquet at all":
        file.write_bytes(b"x" * 100)
        rows = warehouse.in_workers(KINDS, {})
    else:
        rows = warehouse.in_workers(KINDS, {})
        if fault == "cut":
            file.write_bytes(whole[: len(whole) // 2])
        else:
            file.unlink()
    with pytest.raises(
        UnreadableError, match=rf"a file of the tables is gone or damaged: {file.parent}/part-.*parquet;"
    ):
        found(rows)


def test_new_files_are_part_of_the_table_only_once_they_are_named(spark: SparkSession, warehouse: Warehouse) -> None:
    new = warehouse.new_files([KINDS, PARTED])
    assert [*new.schemas] == [KINDS.full_name], "files of a partition have a place of their own"
    writer = new.begin(KINDS.full_name)
    writer.add(_batch(1))
    file = writer.close()
    assert file is not None
    assert found(warehouse.in_workers(KINDS, {})) == []
    warehouse.append(KINDS, [file], "a")
    warehouse.append(KINDS, [file], "a")
    assert [row["large"] for row in found(warehouse.in_workers(KINDS, {}))] == [1]
    dropped = warehouse.new_files([KINDS])
    for _ in range(2):
        left = dropped.begin(KINDS.full_name)
        left.add(_batch(2))
        left.close()
    dropped.drop()
    assert [path.name for path in files(warehouse)] == [file.name]


def _batch(number: int) -> pa.RecordBatch:
    return numbered(number).to_batches()[0]


def test_a_file_of_a_table_that_was_altered_meanwhile_is_added_by_spark(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    warehouse.append(KINDS, made(spark, numbered(1)))
    new = warehouse.new_files([KINDS])
    writer = new.begin(KINDS.full_name)
    writer.add(_batch(2))
    file = writer.close()
    assert file is not None
    spark.sql(f"ALTER TABLE {warehouse.identifier(KINDS)} CLUSTER BY (cluster)")
    warehouse.append(KINDS, [file])
    assert sorted(row["large"] for row in warehouse.read(KINDS).collect()) == [1, 2]


def test_an_error_of_who_uses_the_rows_is_no_damaged_file(spark: SparkSession, warehouse: Warehouse) -> None:
    def failing(batches: Any) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            raise OSError("mine")
        yield from ()

    warehouse.append(KINDS, made(spark, numbered(1)))
    with pytest.raises(Exception, match="mine") as raised:
        found(warehouse.in_workers(KINDS, {}).then(failing, KINDS.struct))
    assert not isinstance(raised.value, UnreadableError)
