"""Rows that come to a table without Spark: the same table, the same rows, and Spark goes on with it."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from jobs.sinks.conditions import Below, Equal
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.reader import Folder
from jobs.sinks.shape import SchemaMismatchError
from jobs.sinks.storage import WarehouseError
from schemas import bronze, gold, silver
from schemas.table import Layer, Table, column
from tests.warehouses import BySpark

EPOCH = StructType([StructField("epoch", IntegerType()), StructField("start", LongType())])
KINDS = Table(
    Layer.GOLD,
    "kinds",
    "Every type that a table has; isn't it \\n `so`?",
    (
        column("cluster", StringType(), "Which cluster's."),
        column("run_id", StringType(), "Run that wrote it."),
        column("started_at", TimestampType(), "When."),
        column("small", IntegerType(), "A small number."),
        column("large", LongType(), "A large number."),
        column("real", DoubleType(), "A real number."),
        column("yes", BooleanType(), "Yes or no."),
        column("bytes", BinaryType(), "Some bytes."),
        column("names", ArrayType(StringType()), "Some names."),
        column("counts", MapType(StringType(), LongType()), "Some counts."),
        column("epochs", ArrayType(EPOCH), "Some epochs."),
    ),
)
PARTED = replace(KINDS, name="parted", replaced=True)
FULL: dict[str, Any] = {
    "cluster": "it's ${c} \\ü",
    "run_id": "r",
    "started_at": datetime(2026, 11, 25, 12, 30, 1, 123456, UTC),
    "small": -(2**31),
    "large": 2**63 - 1,
    "real": 0.1,
    "yes": False,
    "bytes": b"\x00\xff",
    "names": ["a", None, ""],
    "counts": {"a": 1, "": None},
    "epochs": [{"epoch": 1, "start": 2**40}, {"epoch": None, "start": 0}],
}
ROWS: list[dict[str, Any]] = [
    FULL,
    {"cluster": "c", "run_id": "r", "names": [], "counts": {}, "epochs": []},
    {"cluster": "d"},
]
both_kinds = pytest.mark.parametrize("table", [KINDS, PARTED], ids=["added", "replaced"])


def without_spark(root: Path) -> Warehouse:
    """A warehouse that would say so if it asked Spark for anything."""
    return Warehouse(None, str(root))  # type: ignore[arg-type]


def one(number: int, table: Table = KINDS) -> pa.Table:
    return arrow_rows(table, [{"cluster": "c", "run_id": "r", "large": number}])


def by_spark(spark: SparkSession, rows: Sequence[dict[str, Any]], table: Table = KINDS) -> Any:
    values = [tuple(row.get(name) for name in table.column_names) for row in rows]
    return spark.createDataFrame(values, table.struct).coalesce(1)


def first_commit(warehouse: Warehouse, table: Table) -> dict[str, Any]:
    """What the table's first commit says of the table, without what is of the moment."""
    log = Path(warehouse.location(table)) / "_delta_log" / "00000000000000000000.json"
    actions = {name: value for line in log.read_text().splitlines() for name, value in json.loads(line).items()}
    told = {
        name: value
        for name, value in actions["metaData"].items()
        if name not in ("id", "createdTime") and value is not None
    }
    return {**told, "schemaString": json.loads(told["schemaString"]), "protocol": actions["protocol"]}


def numbers(warehouse: Warehouse, table: Table = KINDS) -> list[int]:
    return sorted(
        row["large"] for row in BySpark(warehouse.spark, warehouse.root, warehouse.catalog).read(table).collect()
    )


@both_kinds
def test_it_makes_the_table_that_spark_makes_with_the_same_rows(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    mine, sparks = Warehouse(spark, str(tmp_path / "mine")), Warehouse(spark, str(tmp_path / "spark"))
    assert mine.read(table).collect() == []
    mine.append(table, arrow_rows(table, ROWS))
    sparks.append(table, by_spark(spark, ROWS, table))
    assert first_commit(mine, table) == first_commit(sparks, table)
    found = {place: sorted(place.read(table).collect(), key=lambda row: row["cluster"]) for place in (mine, sparks)}
    assert found[mine] == found[sparks]
    assert found[mine][-1]["epochs"][0].asDict() == FULL["epochs"][0]
    assert mine.read(table).schema == sparks.read(table).schema
    chosen = f"started_at = timestamp'{FULL['started_at'].isoformat()}'"
    assert mine.read(table).where(chosen).count() == 1, "ranges of times leave no row out"


def test_long_values_are_in_a_file_once(tmp_path: Path) -> None:
    """By default a file's end repeats the smallest and the largest value of each column in full: of one report two more."""
    warehouse = without_spark(tmp_path)
    long = {"cluster": "c" * 300, "run_id": "r", "bytes": os.urandom(100_000)}
    warehouse.append(KINDS, arrow_rows(KINDS, [long, {**long, "cluster": "d", "bytes": b""}]))
    [file] = Path(warehouse.location(KINDS)).glob("*.parquet")
    assert file.stat().st_size < 115_000
    # Ranges that are cut short still hold their values.
    for name in ("c" * 300, "d"):
        found = Folder(warehouse.root).rows(KINDS, ["cluster"], {"cluster": name})
        assert found["cluster"].to_list() == [name]


def test_every_table_is_made_as_it_is_declared(tmp_path: Path) -> None:
    warehouse = without_spark(tmp_path)
    for table in (*bronze.TABLES, *silver.TABLES, *gold.TABLES):
        warehouse.append(table, arrow_rows(table, [{"cluster": "c", "run_id": "r"}]))
        told = first_commit(warehouse, table)
        assert told["schemaString"] == json.loads(table.struct.json())
        assert told["protocol"] == {"minReaderVersion": 1, "minWriterVersion": 2}
        assert (told["description"], told["partitionColumns"]) == (table.comment, table.partition_columns)
        assert told["configuration"] == {"delta.dataSkippingStatsColumns": ",".join(table.skipping_columns)}


def test_one_that_is_repeated_adds_nothing_whoever_made_the_first(spark: SparkSession, warehouse: Warehouse) -> None:
    for application, number in [("a", 1), ("a", 1), ("b", 2), ("b", 2), ("a", 1)]:
        warehouse.append(KINDS, one(number), application)
    warehouse.append(KINDS, by_spark(spark, [{"cluster": "c", "large": 1}]), "a")
    assert numbers(warehouse) == [1, 2]
    warehouse.append(KINDS, by_spark(spark, [{"cluster": "c", "large": 3}]), "a", 2)
    warehouse.append(KINDS, one(3), "a", 2)
    warehouse.append(KINDS, one(4), "a", 3)
    assert numbers(warehouse) == [1, 2, 3, 4]


def test_spark_and_it_go_on_with_what_the_other_wrote(spark: SparkSession, warehouse: Warehouse) -> None:
    warehouse.append(KINDS, by_spark(spark, [{"cluster": "a", "large": 0}]))
    for number in range(1, 13):
        warehouse.append(KINDS, one(number))
    assert numbers(warehouse) == list(range(13))
    warehouse.delete(KINDS, Equal("large", Below(3)))
    warehouse.append(KINDS, one(13))
    assert (numbers(warehouse), warehouse.version(KINDS)) == (list(range(3, 14)), 14)
    # Somebody who opens the table anew, where older commits are gone, as Delta lets them go.
    copy = Path(warehouse.root) / "gold" / "copy"
    shutil.copytree(warehouse.location(KINDS), copy)
    for commit in range(10):
        (copy / "_delta_log" / f"{commit:020}.json").unlink()
    assert sorted(row["large"] for row in spark.read.format("delta").load(str(copy)).collect()) == list(range(3, 14))


def test_a_table_whose_columns_were_described_otherwise_is_written_all_the_same(tmp_path: Path) -> None:
    """Comments are words: a release that changes them finds the tables of the one before as it would make them."""
    warehouse = without_spark(tmp_path)
    earlier = replace(KINDS, columns=tuple(column(each.name, each.dataType, "Before.") for each in KINDS.columns))
    warehouse.append(earlier, one(1, earlier))
    warehouse.append(KINDS, arrow_rows(KINDS, [FULL]))
    rows = DeltaTable(warehouse.location(KINDS))
    assert sorted(rows.to_pyarrow_table()["large"].to_pylist()) == [1, FULL["large"]]
    assert {field.metadata["comment"] for field in rows.schema().fields} == {"Before."}


def test_a_table_that_is_not_as_this_release_makes_it_is_left_to_spark(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    older = replace(KINDS, name="older", columns=KINDS.columns[:-1])
    warehouse.append(older, one(1, older))
    newer = replace(KINDS, name="older")
    warehouse.append(newer, arrow_rows(newer, [FULL]))
    assert {row["epochs"] is None for row in warehouse.read(newer).collect()} == {True, False}
    parted = replace(PARTED, name="once")
    warehouse.append(parted, one(1, parted))
    once = replace(KINDS, name="once")
    warehouse.append(once, one(2, once))
    assert numbers(warehouse, once) == [1, 2]
    warehouse.append(KINDS, one(1))
    spark.sql(f"ALTER TABLE {warehouse.identifier(KINDS)} CLUSTER BY (cluster)")
    warehouse.append(KINDS, one(2))
    assert numbers(warehouse) == [1, 2]


@pytest.mark.parametrize("name", ["it's `a` #b ü?", "a%41b", "x:y\\z[1]*{a}"])
def test_a_folder_of_any_name_is_written(spark: SparkSession, tmp_path: Path, name: str) -> None:
    warehouse = Warehouse(spark, str(tmp_path / name))
    for number in (1, 2):
        warehouse.append(KINDS, one(number))
    assert (warehouse.version(KINDS), len(list((tmp_path / name / "gold" / "kinds").glob("*.parquet")))) == (1, 2)


def test_elsewhere_than_in_a_folder_spark_writes_the_same(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Warehouse, "folder", None)
    warehouse.append(KINDS, arrow_rows(KINDS, ROWS), "a")
    warehouse.append(KINDS, arrow_rows(KINDS, ROWS), "a")
    [full] = warehouse.read(KINDS).where("small IS NOT NULL").collect()
    assert (full["counts"], full["names"], full["large"]) == (FULL["counts"], FULL["names"], FULL["large"])
    assert (warehouse.read(KINDS).count(), warehouse.version(KINDS)) == (3, 0)


UNFINISHED = {
    "files": ["part-0.parquet"],
    "log": ["part-0.parquet", "_delta_log/"],
    "half": ["part-0.parquet", "_delta_log/.00000000000000000000.json.0c1f.tmp"],
    "its own half": ["_delta_log/00000000000000000000.json#1"],
    "empty": [],
}


@pytest.mark.parametrize("left", UNFINISHED)
def test_what_a_killed_first_write_left_is_written_over(
    tmp_path: Path, left: str, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse = without_spark(tmp_path)
    folder = tmp_path / "gold" / "kinds"
    folder.mkdir(parents=True)
    for name in UNFINISHED[left]:
        (folder / name).parent.mkdir(exist_ok=True)
        if name.endswith("/"):
            (folder / name).mkdir()
        else:
            (folder / name).write_text("{")
    with caplog.at_level(logging.WARNING, "kraft-audit"):
        for number in (1, 2):
            warehouse.append(KINDS, one(number))
    assert warehouse.version(KINDS) == 1
    told = [record.getMessage() for record in caplog.records if record.name == "kraft-audit"]
    said = "unfinished table gold.kinds: an earlier first write did not finish; it is repeated"
    assert told == ([said] if any(not name.endswith("/") for name in UNFINISHED[left]) else [])


def test_a_folder_that_can_t_be_made_is_the_warehouses_fault(tmp_path: Path) -> None:
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "kinds").symlink_to("/proc/nothing/here")
    warehouse = without_spark(tmp_path)
    with pytest.raises(
        WarehouseError, match=rf"^the warehouse {tmp_path} can't be written: a folder can't be created there"
    ):
        warehouse.append(KINDS, one(1))
    (tmp_path / "gold" / "kinds").unlink()
    warehouse.append(KINDS, one(1))
    assert warehouse.version(KINDS) == 0


def test_rows_of_another_shape_are_refused(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowInvalid):
        arrow_rows(KINDS, [{"large": "many"}])
    with pytest.raises(SchemaMismatchError, match=r"^rows for gold\.kinds don't fit: small is missing$"):
        without_spark(tmp_path).append(KINDS, one(1).drop_columns(["small"]))


ADDING = """
import sys
from tests.setup.test_folder_table import KINDS, one, without_spark
from pathlib import Path
for number in range(int(sys.argv[2]), int(sys.argv[2]) + 60):
    without_spark(Path(sys.argv[1])).append(KINDS, one(number))
"""


def test_of_two_processes_and_threads_none_loses_a_commit(spark: SparkSession, warehouse: Warehouse) -> None:
    """Each begins on nothing; Spark writes between them."""
    root = str(warehouse.root)
    others = [subprocess.Popen([sys.executable, "-c", ADDING, root, str(first)]) for first in (0, 100)]
    in_parallel([partial(warehouse.append, KINDS, one(n)) for n in range(200, 240)])
    warehouse.append(KINDS, by_spark(spark, [{"cluster": "c", "large": 300}]))
    assert [other.wait(120) for other in others] == [0, 0]
    assert numbers(warehouse) == [*range(60), *range(100, 160), *range(200, 240), 300]
    assert warehouse.version(KINDS) == 160
