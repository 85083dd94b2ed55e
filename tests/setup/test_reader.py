"""Tables read with and without Spark: the same rows, and the same words about what can't be read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    TimestampType,
)

from jobs.exit import GONE
from jobs.sinks.conditions import PRESENT
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder, Reader, records
from jobs.sinks.storage import WarehouseError
from schemas.gold import RUNS
from schemas.table import Layer, Table, column
from tests.warehouses import BySpark

NOON = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
KINDS = Table(
    Layer.SILVER,
    "kinds",
    "A column of every type that tables have.",
    (
        column("cluster", StringType(), "Which cluster's."),
        column("number", LongType(), "A number."),
        column("small", IntegerType(), "A small number."),
        column("share", DoubleType(), "A share."),
        column("sure", BooleanType(), "Whether."),
        column("at", TimestampType(), "When."),
        column("ids", ArrayType(IntegerType()), "Several."),
        column("counts", MapType(StringType(), LongType()), "By name."),
    ),
    replaced=True,
)
ROWS = [
    ("a b/ü", 1, 1, 0.5, True, NOON, [1, 2], {"x": 1}),
    ("a b/ü", None, None, None, None, None, None, None),
    ("c", 2, -2, float("inf"), False, datetime(1999, 1, 1, 1, tzinfo=timezone(timedelta(hours=5))), [], {}),
]


@pytest.fixture(scope="module")
def place(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two versions, one of an older release, which lacks a column, and files of a first write that did not end."""
    root = tmp_path_factory.mktemp("reader")
    warehouse = Warehouse(spark, str(root))
    warehouse.append(KINDS, spark.createDataFrame(ROWS[:2], KINDS.struct))
    warehouse.append(KINDS, spark.createDataFrame(ROWS[2:], KINDS.struct))
    older = replace(KINDS, name="older", columns=KINDS.columns[:3])
    warehouse.append(older, spark.createDataFrame([row[:3] for row in ROWS], older.struct))
    (root / "silver" / "unfinished").mkdir()
    shutil.copy(next((root / "silver" / "kinds").rglob("*.parquet")), root / "silver" / "unfinished")
    return root


@pytest.fixture(params=["spark", "folder", "store"])
def reader(request: pytest.FixtureRequest, spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch) -> Reader:
    if request.param == "store":
        # Read as what has no path on this machine is.
        monkeypatch.setattr("jobs.sinks.reader.folder_of", lambda _: None)
    return BySpark(spark, str(place)) if request.param == "spark" else Folder(str(place))


def told(reader: Reader, table: Table = KINDS, **asked: Any) -> list[dict[str, Any]]:
    found = list(records(reader.rows(table, **asked), table))
    return sorted(found, key=lambda row: (row.get("cluster") or "", row.get("number") or 0))


def test_every_type_comes_as_it_was_written(reader: Reader) -> None:
    names = KINDS.column_names
    expected = [dict(zip(names, row, strict=True)) for row in (ROWS[1], ROWS[0], ROWS[2])]
    assert told(reader) == expected
    assert all(row["at"] is None or row["at"].utcoffset() == timedelta(0) for row in told(reader))


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ({"cluster": "a b/ü"}, [None, 1]),
        ({"cluster": ["c", "none"]}, [2]),
        ({"number": None}, [None]),
        ({"number": PRESENT}, [1, 2]),
        ({"number": [1, 2], "sure": False}, [2]),
        ({"cluster": "nobody"}, []),
        ({"cluster": 'it\'s "c"'}, []),
        ({"cluster": []}, []),
    ],
)
def test_rows_are_chosen_by_any_column(reader: Reader, where: dict[str, Any], numbers: list[int | None]) -> None:
    assert [row["number"] for row in told(reader, columns=["cluster", "number"], where=where)] == numbers
    assert [row["number"] for row in told(reader, columns=["number"], where=where)] == numbers


def test_an_earlier_version_has_the_rows_of_then(reader: Reader) -> None:
    assert [row["number"] for row in told(reader, version=0)] == [None, 1]
    assert [row["number"] for row in told(reader, version=1)] == [None, 1, 2]


def test_what_an_older_release_did_not_write_is_null_and_may_be_asked_for(reader: Reader) -> None:
    older = replace(KINDS, name="older")
    assert [(row["number"], row["at"], row["counts"]) for row in told(reader, older)] == [
        (None, None, None),
        (1, None, None),
        (2, None, None),
    ]
    assert told(reader, older, where={"sure": PRESENT}) == []


@pytest.mark.parametrize("name", ["missing", "unfinished"])
def test_a_table_without_a_commit_has_no_rows(reader: Reader, name: str) -> None:
    found = reader.rows(replace(KINDS, name=name), ["cluster", "ids"])
    assert found.is_empty()
    assert found.schema == pl.Schema({"cluster": pl.String, "ids": pl.List(pl.Int32)})


def _protocol(place: Path, protocol: dict[str, Any]) -> None:
    (place / "_delta_log" / "00000000000000000002.json").write_text(json.dumps({"protocol": protocol}) + "\n")


def _newer(place: Path) -> None:
    _protocol(place, {"minReaderVersion": 99, "minWriterVersion": 99, "readerFeatures": [], "writerFeatures": []})


def _with_a_new_feature(place: Path) -> None:
    features = {"readerFeatures": ["somethingNew"], "writerFeatures": ["somethingNew"]}
    _protocol(place, {"minReaderVersion": 3, "minWriterVersion": 7, **features})


UNKNOWN = "table silver.kinds can't be read: it has features of Delta that this release does not know; use a newer kraft-audit"
NO_VERSION = (
    "table silver.kinds can't be read: its version 9 is gone; look at a newer run, or let `kraft-audit run --full` "
    "read everything again"
)


@pytest.mark.parametrize("way", ["spark", "folder"])
@pytest.mark.parametrize(
    ("spoil", "version", "said"),
    [(_newer, None, UNKNOWN), (_with_a_new_feature, None, UNKNOWN), (lambda _: None, 9, NO_VERSION)],
    ids=["newer", "feature", "version"],
)
def test_a_table_that_can_not_be_read_is_said_to_be_so_in_the_same_words(
    spark: SparkSession,
    place: Path,
    tmp_path: Path,
    way: str,
    spoil: Callable[[Path], None],
    version: int | None,
    said: str,
) -> None:
    shutil.copytree(place, tmp_path / "tables")
    spoil(tmp_path / "tables" / "silver" / "kinds")
    root = str(tmp_path / "tables")
    reader: Reader = BySpark(spark, root) if way == "spark" else Folder(root)
    with pytest.raises(WarehouseError) as error:
        reader.rows(KINDS, version=version)
    assert str(error.value) == said


def test_files_that_are_gone_or_damaged_are_told_in_one_line(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "tables")
    file = next((tmp_path / "tables" / "silver" / "kinds").rglob("*.parquet"))
    whole = file.stat().st_size
    file.write_bytes(b"")
    with pytest.raises(WarehouseError) as error:
        Folder(str(tmp_path / "tables")).rows(KINDS)
    assert str(error.value) == f"table silver.kinds can't be read: {file} is damaged, it has 0 of {whole} bytes"
    file.unlink()
    with pytest.raises(WarehouseError) as error:
        Folder(str(tmp_path / "tables")).rows(KINDS)
    assert str(error.value) == GONE


def test_the_newest_runs_are_the_same_beside_rows_that_have_no_number(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    made = [
        ("a", "old-b", 2, None),
        ("a", "old-a", 1, None),
        ("a", "future", 99_999, 3),
        ("a", "newest", 5, 4),
        ("b", "old-b", 2, None),
        ("b", "newest", 5, 1),
    ]
    rows = [
        {"cluster": cluster, "run_id": run_id, "sequence": sequence, "started_at": NOON + timedelta(hours=hour)}
        | {"finished_at": NOON + timedelta(hours=hour, minutes=1), "gates": {"start": "go"}}
        for cluster, run_id, hour, sequence in made
    ]
    values = [tuple(row.get(name) for name in RUNS.column_names) for row in rows]
    warehouse.append(RUNS, spark.createDataFrame(values, RUNS.struct))
    columns = ["cluster", "run_id", "gates", "sequence"]
    expected = {1: 2, 2: 4, 3: 5, None: 6}
    for most, number in expected.items():
        ways = [
            each.newest_runs(columns, most).sort("cluster", "run_id") for each in (warehouse, Folder(warehouse.root))
        ]
        assert_frame_equal(*ways)
        assert ways[0].height == number
    one = [each.newest_runs(columns, 1, {"cluster": "a"}, ["old-a"]) for each in (warehouse, Folder(warehouse.root))]
    assert [sorted(each["run_id"]) for each in one] == [["newest", "old-a"]] * 2
