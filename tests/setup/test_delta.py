"""The warehouse on real Delta tables: comments, repetition, replacement, hostile names, races."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType

from jobs.exit import CRASH, guarded
from jobs.sinks.conditions import Equal
from jobs.sinks.delta import Warehouse, in_parallel
from jobs.sinks.delta_errors import ConcurrentWriteError
from jobs.sinks.shape import SchemaMismatchError
from jobs.sinks.storage import WarehouseError
from schemas.table import Layer, Table, column
from tests.warehouses import BySpark

NUMBERS = Table(
    Layer.GOLD,
    "numbers",
    "Numbers; not `letters`, isn't it?",
    (
        column("cluster", StringType(), "Which cluster's."),
        column("run_id", StringType(), "Run that wrote it."),
        column("number", LongType(), "The number's value."),
    ),
    replaced=True,
)
ADDED = replace(NUMBERS, name="added", replaced=False)
both_kinds = pytest.mark.parametrize("table", [NUMBERS, ADDED], ids=["replaced", "added"])


def _rows(spark: SparkSession, *numbers: int, cluster: str = "c", run_id: str = "r") -> DataFrame:
    made = {"cluster": [cluster] * len(numbers), "run_id": [run_id] * len(numbers), "number": [*numbers]}
    return spark.createDataFrame(pa.table(made), NUMBERS.struct).coalesce(1)


def _numbers(warehouse: Warehouse, version: int | None = None, table: Table = NUMBERS) -> list[int]:
    return sorted(
        row["number"]
        for row in BySpark(warehouse.spark, warehouse.root, warehouse.catalog).read(table, version).collect()
    )


@both_kinds
def test_first_write_makes_the_table_with_its_comments_in_one_commit(
    spark: SparkSession, warehouse: Warehouse, table: Table
) -> None:
    assert warehouse.version(table) is None
    assert _numbers(warehouse, table=table) == []
    warehouse.append(table, _rows(spark, 1).select("number", "run_id", "cluster"), "run-1")
    assert warehouse.version(table) == 0
    told = DeltaTable(warehouse.location(table)).metadata()
    assert (told.description, told.partition_columns) == (table.comment, ["cluster"] if table.replaced else [])
    skipping = "run_id" if table.replaced else "cluster,run_id"
    assert told.configuration["delta.dataSkippingStatsColumns"] == skipping
    written = spark.read.table(warehouse.identifier(table)).schema
    assert [(field.name, field.metadata.get("comment")) for field in written] == [
        (field.name, field.metadata["comment"]) for field in NUMBERS.columns
    ]


def test_an_append_that_is_repeated_adds_nothing(spark: SparkSession, warehouse: Warehouse) -> None:
    for transaction, number in [("run-1", 1), ("run-1", 1), ("run-2", 2), ("run-2", 2), ("run-1", 1)]:
        warehouse.append(NUMBERS, _rows(spark, number), transaction)
    assert _numbers(warehouse) == [1, 2]
    warehouse.append(NUMBERS, _rows(spark, 3), "run-1", 2)
    assert _numbers(warehouse) == [1, 2, 3]
    assert _numbers(warehouse, version=0) == [1]
    with pytest.raises(WarehouseError, match=r"gold\.numbers can't be read: .*99"):
        warehouse.read(NUMBERS, version=99)


def test_an_append_without_an_id_is_made_as_often_as_it_is_asked_for(spark: SparkSession, warehouse: Warehouse) -> None:
    for _ in range(2):
        warehouse.append(NUMBERS, _rows(spark, 1))
    assert _numbers(warehouse) == [1, 1]


@both_kinds
def test_rows_of_some_clusters_are_replaced_and_removed_and_no_others(
    spark: SparkSession, warehouse: Warehouse, table: Table
) -> None:
    warehouse.append(table, _rows(spark, 1, cluster="a"))
    warehouse.append(table, _rows(spark, 2, cluster="b").unionByName(_rows(spark, 3, cluster="c")))
    new = _rows(spark, 4, cluster="a").unionByName(_rows(spark, 5, cluster="b"))
    warehouse.replace_where(table, new, {"cluster": ["a", "b"]})
    assert _numbers(warehouse, table=table) == [3, 4, 5]
    before = warehouse.version(table)
    warehouse.delete(table, Equal("cluster", "b") | Equal("number", 3))
    assert _numbers(warehouse, table=table) == [4]
    assert _numbers(warehouse, before, table) == [3, 4, 5]


def test_a_run_over_many_clusters_adds_one_file_and_reads_those_of_a_cluster(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    clusters = [f"c{n:02}" for n in range(40)]
    together = spark.createDataFrame([(name, "r", 1) for name in clusters], ADDED.struct).coalesce(1)
    warehouse.append(ADDED, together)
    warehouse.append(ADDED, _rows(spark, 2, cluster="alone"))
    rows = BySpark(spark, warehouse.root).read(ADDED)
    files = {name: _files(rows.where(F.col("cluster") == name)) for name in (*clusters, "alone")}
    assert len(set.union(*files.values())) == 2
    assert all(len(read) == 1 for read in files.values()), "ranges of the clusters leave the other file out"


def _files(rows: DataFrame) -> set[str]:
    return set(rows.inputFiles())


def test_rows_that_vacuum_removed_are_one_clear_line(
    spark: SparkSession, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in (1, 2):
        warehouse.replace_where(NUMBERS, _rows(spark, number), {"cluster": "c"})
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    spark.sql(f"VACUUM {warehouse.identifier(NUMBERS)} RETAIN 0 HOURS")
    assert _numbers(warehouse) == [2]

    def look() -> int:
        return _numbers(warehouse, version=0)[0]

    assert guarded(look) == CRASH
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("kraft-audit: rows of an earlier run are gone from a table (VACUUM")


def test_another_error_of_spark_is_not_taken_for_it(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    assert guarded(lambda: spark.sql("SELECT missing").count()) == CRASH
    line = next(line for line in capsys.readouterr().err.splitlines() if line.startswith("kraft-audit: "))
    assert line.startswith("kraft-audit: AnalysisException at jobs/exit.py:")
    assert "VACUUM" not in line


def test_replacing_touches_only_the_rows_it_names(spark: SparkSession, warehouse: Warehouse) -> None:
    hostile = "it's \\ `x` %41 / ${y} -- ; DROP"
    warehouse.replace_where(NUMBERS, _rows(spark, 1, 2), {"cluster": "c", "run_id": "r"})
    warehouse.replace_where(
        NUMBERS, _rows(spark, 7, cluster=hostile, run_id=hostile), {"cluster": hostile, "run_id": hostile}
    )
    warehouse.replace_where(NUMBERS, _rows(spark, 3, run_id="other"), {"cluster": "c", "run_id": "other"})
    assert _numbers(warehouse) == [1, 2, 3, 7]
    warehouse.replace_where(
        NUMBERS, _rows(spark, 8, cluster=hostile, run_id=hostile), {"cluster": hostile, "run_id": hostile}
    )
    warehouse.replace_where(NUMBERS, _rows(spark, 4), {"cluster": "c"})
    assert _numbers(warehouse) == [4, 8]
    assert {row["cluster"] for row in warehouse.read(NUMBERS).collect()} == {"c", hostile}
    warehouse.replace_where(NUMBERS, warehouse.empty(NUMBERS), {"cluster": "c"})
    assert _numbers(warehouse) == [8]


def test_rows_outside_the_replaced_part_are_refused(spark: SparkSession, warehouse: Warehouse) -> None:
    warehouse.replace_where(NUMBERS, _rows(spark, 1), {"cluster": "c"})
    with pytest.raises(Exception, match="DELTA_REPLACE_WHERE_MISMATCH"):
        warehouse.replace_where(NUMBERS, _rows(spark, 2, cluster="d"), {"cluster": "c"})
    with pytest.raises(ValueError, match="can't be chosen by"):
        warehouse.replace_where(NUMBERS, _rows(spark, 2), {"nope": "c"})
    with pytest.raises(ValueError, match="can't be chosen by nothing"):
        warehouse.replace_where(NUMBERS, _rows(spark, 2), {})
    assert _numbers(warehouse) == [1]


def test_rows_of_another_shape_are_refused_by_name(spark: SparkSession, warehouse: Warehouse) -> None:
    wrong = spark.createDataFrame([("c", 1, "x")], "cluster string, number int, letter string")
    with pytest.raises(SchemaMismatchError) as refused:
        warehouse.append(NUMBERS, wrong, "run-1")
    assert str(refused.value) == (
        "rows for gold.numbers don't fit: run_id is missing; letter is not a column of it; number is int, not bigint"
    )
    assert warehouse.version(NUMBERS) is None


def test_a_column_added_by_a_newer_release_is_null_in_older_rows(spark: SparkSession, warehouse: Warehouse) -> None:
    older = Table(NUMBERS.layer, NUMBERS.name, NUMBERS.comment, NUMBERS.columns[:2])
    warehouse.append(older, _rows(spark, 1).drop("number"), "run-1")
    assert [row["number"] for row in warehouse.read(NUMBERS).collect()] == [None]
    warehouse.append(NUMBERS, _rows(spark, 2), "run-2")
    assert {row["number"] for row in warehouse.read(NUMBERS).collect()} == {None, 2}


def test_lists_are_written_and_read_as_they_are(
    spark: SparkSession, warehouse: Warehouse, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan that makes every list of a large table anew is a third of the time in which it is read."""
    ids = column("ids", ArrayType(IntegerType()), "Some ids.")
    later = column("names", ArrayType(StringType()), "A newer release's.")
    lists = replace(NUMBERS, name="lists", columns=(*NUMBERS.columns, ids))
    rows = spark.createDataFrame([("c", "r", 1, [3, 1]), ("c", "r", 2, None)], lists.struct)
    warehouse.append(lists, rows)
    newer = replace(lists, columns=(*lists.columns, later))
    warehouse.append(newer, warehouse.read(newer))
    found = warehouse.read(newer).select("number", "ids", "names")
    assert sorted(map(tuple, found.distinct().collect())) == [(1, [3, 1], None), (2, None, None)]
    assert found.count() == 4
    written = spark.read.table(warehouse.identifier(newer)).schema
    assert [field.metadata.get("comment") for field in written] == [each.metadata["comment"] for each in newer.columns]
    warehouse.read(newer).explain()
    assert "transform(" not in capsys.readouterr().out


def test_a_column_that_an_older_release_wrote_narrower_is_read_as_it_is_declared(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    narrow = replace(NUMBERS, columns=(*NUMBERS.columns[:2], column("number", IntegerType(), "The number's value.")))
    wider = replace(NUMBERS, columns=(*NUMBERS.columns, column("ids", ArrayType(IntegerType()), "Some ids.")))
    warehouse.append(narrow, spark.createDataFrame([("c", "r", 1)], narrow.struct))
    assert warehouse.read(wider).schema == wider.struct
    assert warehouse.read(wider).collect() == [("c", "r", 1, None)]


def test_runs_that_replace_the_same_rows_at_a_time_do_so_one_after_the_other(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    warehouse.replace_where(NUMBERS, _rows(spark, 0), {"cluster": "c"})
    in_parallel([lambda n=n: warehouse.replace_where(NUMBERS, _rows(spark, n), {"cluster": "c"}) for n in range(1, 5)])
    assert len(_numbers(warehouse)) == 1
    assert warehouse.version(NUMBERS) == 4
    assert sorted(_numbers(warehouse, version=n)[0] for n in range(5)) == [0, 1, 2, 3, 4]


def test_where_nothing_locks_one_of_two_runs_that_replace_the_same_rows_is_told(
    spark: SparkSession, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On an object store or in a catalog: Delta finds out when it commits."""
    warehouse.replace_where(NUMBERS, _rows(spark, 0), {"cluster": "c"})
    monkeypatch.setattr(Warehouse, "folder", None)
    writes = [lambda n=n: warehouse.replace_where(NUMBERS, _rows(spark, n), {"cluster": "c"}) for n in range(1, 5)]
    with pytest.raises(ConcurrentWriteError, match=r"^table gold\.numbers was changed by another run .*; run again"):
        in_parallel(writes)
    assert len(_numbers(warehouse)) == 1


def test_runs_of_different_clusters_and_racing_first_writes_do_not_disturb_each_other(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    in_parallel([lambda n=n: warehouse.append(NUMBERS, _rows(spark, n, cluster=f"c{n}"), f"run-{n}") for n in range(4)])
    assert _numbers(warehouse) == [0, 1, 2, 3]
    replacements = [(n, {"cluster": f"c{n}"}) for n in range(4)]
    in_parallel(
        [
            lambda n=n, part=part: warehouse.replace_where(NUMBERS, _rows(spark, n + 10, cluster=f"c{n}"), part)
            for n, part in replacements
        ]
    )
    assert _numbers(warehouse) == [10, 11, 12, 13]


def test_rows_of_old_runs_are_removed_while_other_clusters_add_theirs(
    spark: SparkSession, warehouse: Warehouse
) -> None:
    both = _rows(spark, 1, cluster="a").unionByName(_rows(spark, 2, cluster="b")).coalesce(1)
    warehouse.append(ADDED, both)
    old = Equal("cluster", "a") & Equal("number", 1)
    adding = [lambda n=n: warehouse.append(ADDED, _rows(spark, n, cluster="b"), f"run-{n}") for n in range(3, 6)]
    in_parallel([lambda: warehouse.delete(ADDED, old), *adding])
    assert _numbers(warehouse, table=ADDED) == [2, 3, 4, 5]


def test_a_table_that_an_earlier_release_partitioned_is_gone_on_with(spark: SparkSession, warehouse: Warehouse) -> None:
    older = replace(ADDED, replaced=True)
    warehouse.append(older, _rows(spark, 1, cluster="a").unionByName(_rows(spark, 2, cluster="b")))
    warehouse.append(ADDED, _rows(spark, 3, cluster="a").unionByName(_rows(spark, 4, cluster="c")).coalesce(1))
    warehouse.delete(ADDED, Equal("cluster", "a") & Equal("number", 1))
    assert _numbers(warehouse, table=ADDED) == [2, 3, 4]
    assert len(_files(warehouse.read(ADDED))) == 3


def test_a_table_may_be_clustered_and_compacted_from_outside(spark: SparkSession, warehouse: Warehouse) -> None:
    """What docs/sizing.md tells the keepers of a warehouse to do."""
    for number, cluster in enumerate(("a", "b", "a")):
        warehouse.append(ADDED, _rows(spark, number, cluster=cluster))
    spark.sql(f"ALTER TABLE {warehouse.identifier(ADDED)} CLUSTER BY (cluster)")
    spark.sql(f"OPTIMIZE {warehouse.identifier(ADDED)}")
    assert len(_files(warehouse.read(ADDED))) == 1
    warehouse.append(ADDED, _rows(spark, 3, cluster="b"))
    warehouse.delete(ADDED, Equal("cluster", "a"))
    assert _numbers(warehouse, table=ADDED) == [1, 3]


def test_parallel_writes_all_run_and_the_first_error_is_raised() -> None:
    done = []

    def fail() -> None:
        raise WarehouseError("first")

    with pytest.raises(WarehouseError, match="first"):
        in_parallel([fail, lambda: done.append(1), lambda: done.append(2)], at_once=2)
    assert sorted(done) == [1, 2]
    in_parallel([])


def test_location_and_name_follow_the_root(spark: SparkSession, tmp_path: Path) -> None:
    assert Warehouse(spark, "s3a://bucket/audit/").location(NUMBERS) == "s3a://bucket/audit/gold/numbers"
    assert Warehouse(spark, "/data/it`s").identifier(NUMBERS) == "delta.`/data/it``s/gold/numbers`"
    assert Warehouse(spark, "main.audit", catalog=True).identifier(NUMBERS) == "`main`.`audit`.`gold_numbers`"


def test_tables_in_a_catalog_schema(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql(f"CREATE DATABASE audit_test LOCATION '{tmp_path / 'db'}'")
    try:
        warehouse = Warehouse(spark, "spark_catalog.audit_test", catalog=True)
        assert (warehouse.version(NUMBERS), _numbers(warehouse)) == (None, [])
        warehouse.append(NUMBERS, _rows(spark, 1), "run-1")
        warehouse.replace_where(NUMBERS, _rows(spark, 2), {"cluster": "c"})
        assert (warehouse.version(NUMBERS), _numbers(warehouse)) == (1, [2])
        assert spark.catalog.tableExists("audit_test.gold_numbers")
    finally:
        spark.sql("DROP DATABASE audit_test CASCADE")
