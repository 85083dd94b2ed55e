"""Every write, flush, rename and new folder that Java makes in a warehouse fails once in turn, on real Delta.

    python -m tests.reliability.failing_spark                 needs a C compiler; some minutes

For a table's first write, a later one and a replacement, with ENOSPC and EIO: the text names the warehouse and what the disk
says, the table can be read as it was before or after the write, and the write after the repair is there. Prints the figures and
exits with 1 when one of it is not so.
"""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from jobs.runtime.spark import spark_session
from jobs.runtime.workers import WorkerRows
from jobs.sinks.delta import Warehouse
from jobs.sinks.storage import WarehouseError
from schemas.table import Table
from tests.reliability.java_disk import Control, environment, prepared
from tests.reliability.two_processes import COUNTED

BEFORE, FAILED, REPAIRED = 0, 1, 2
Write = Callable[[Warehouse, Table, DataFrame], None]


def _append(warehouse: Warehouse, table: Table, rows: DataFrame) -> None:
    warehouse.append(table, rows)


def _by_workers(warehouse: Warehouse, table: Table, rows: DataFrame) -> None:
    warehouse.append(table, WorkerRows(rows, iter, COUNTED.struct))


def _replace(warehouse: Warehouse, table: Table, rows: DataFrame) -> None:
    warehouse.replace_where(table, rows, {"cluster": "c"})


# A name, the write, and whether the table is there before.
CASES: tuple[tuple[str, Write, bool], ...] = (
    ("first write", _append, False),
    ("later write", _append, True),
    ("first write by workers", _by_workers, False),
    ("later write by workers", _by_workers, True),
    ("first replacement", _replace, False),
    ("replacement", _replace, True),
)


def _rows(spark: SparkSession, number: int) -> DataFrame:
    return spark.createDataFrame([("c", "r", number)], COUNTED.struct).coalesce(1)


def _numbers(warehouse: Warehouse, table: Table) -> set[int]:
    return {row["number"] for row in warehouse.read(table).collect()}


def _once(warehouse: Warehouse, control: Control, case: int, fails_at: int, number: int) -> tuple[bool, list[str]]:
    """One write whose call `fails_at` fails: whether there was such a call, and what is wrong with what came of it."""
    name, write, there = CASES[case]
    spark = warehouse.spark
    table = replace(COUNTED, name=f"t{case}_{number}_{fails_at}", replaced=write is _replace)
    if there:
        write(warehouse, table, _rows(spark, BEFORE))
    control.set(fails_at, number)
    said = None
    try:
        write(warehouse, table, _rows(spark, FAILED))
    except WarehouseError as error:
        said = str(error)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    failed = control.failed
    control.set()
    problems = []
    if said is not None and not (
        said.startswith(f"the warehouse {warehouse.root} can't be written: ")
        and "run again" in said
        and "another" not in said
    ):
        problems.append(f"{name}, call {fails_at}, {os.strerror(number)}: {said[:300]}")
    kept = {BEFORE} if there and write is not _replace else set()
    try:
        after = _numbers(warehouse, table)
        write(warehouse, table, _rows(spark, REPAIRED))
        repaired = _numbers(warehouse, table)
    except Exception as error:
        return failed, [*problems, f"{name}, call {fails_at}: afterwards: {str(error).splitlines()[0][:300]}"]
    if not kept <= after or (said is None and FAILED not in after):
        problems.append(f"{name}, call {fails_at}: {sorted(after)} after the failure")
    if not kept | {REPAIRED} <= repaired:
        problems.append(f"{name}, call {fails_at}: {sorted(repaired)} after the repair")
    return failed, problems


def main() -> int:
    """Entry point."""
    bad: list[str] = []
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "w"
        control, variables = prepared(root, Path(work))
        with environment(variables), spark_session("small", cores=1, driver_memory="1g") as spark:
            warehouse = Warehouse(spark, str(root))
            for case, (name, _, _) in enumerate(CASES):
                for number in (errno.ENOSPC, errno.EIO):
                    fails_at, failed = 1, True
                    while failed:
                        failed, problems = _once(warehouse, control, case, fails_at, number)
                        bad += problems
                        fails_at += 1
                    print(f"{name}: {fails_at - 2} calls failed with {os.strerror(number)}", flush=True)
    for problem in bad:
        print(problem)
    print(f"{len(bad)} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
