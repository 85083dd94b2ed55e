"""Writes in mid-maintenance fail once in turn, and what is left is whole.

    python -m tests.reliability.failing_maintain --calls 40 --seed 1       needs a C compiler

The tables are those of `tests.reliability.kill_maintain`, a few of them, from which rows and files go in more than one commit. A
write, flush, rename or new folder fails, with ENOSPC or EIO: what is said of it is one line with the disk's words, each
table can be read and has its rows as before or as after, and the next maintenance does the rest: it leaves the rows that an
undisturbed one leaves. Prints the figures and exits with 1 when one of it is not so.
"""

from __future__ import annotations

import argparse
import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.exit import AuditError
from jobs.runtime.spark import spark_session
from jobs.steps.maintenance import maintain, old_rows
from schemas.bronze import KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.gold import CHECKS, MAINTENANCE, RUNS
from tests.reliability.java_disk import Control, prepared
from tests.reliability.kill_maintain import IN_PARTS, rows_of, tend
from tests.reliability.killing import copied
from tests.tables import NEWEST, unpacked

TABLES = [EXAMINED, KRAFT_RECORDS, CHECKS, RUNS]
NUMBERS = (errno.ENOSPC, errno.EIO)


class Maintenance:
    """Copies of tables below a disk that fails."""

    def __init__(self, spark: SparkSession, root: Path, control: Control) -> None:
        self.spark, self.root, self.control = spark, root, control
        self.base = root / "base"
        unpacked(NEWEST, self.base)
        for each in (*(self.base / "tables").glob("*/*"), *(self.base / "tables").glob("*/*/_delta_log")):
            if each.name != "_delta_log" and f"{each.parent.name}.{each.name}" not in _names():
                shutil.rmtree(each)
        self.before = rows_of(self.base / "tables")
        folder = copied(self.base, root / "undisturbed")
        control.set()
        problems = [each.problem for each in tend(spark, folder) if each.problem]
        # The session's first queries make what later ones find.
        self.calls, self.after = control.calls, rows_of(folder / "tables")
        if problems or not self.calls or self.after == self.before:
            raise AssertionError((problems, self.calls))

    def tried(self, call: int, number: int) -> tuple[bool, bool, list[str]]:
        """Whether the call was made, whether anything was said of it, and what is wrong."""
        folder = copied(self.base, self.root / f"call-{call}-{number}")
        self.control.set(call, number)
        try:
            said = [each.problem for each in tend(self.spark, folder) if each.problem]
        except AuditError as error:
            said = [str(error)]
        failed = self.control.failed
        self.control.set()
        words = os.strerror(number)
        wrong = [
            f"said: {each[:300]}"
            for each in said
            if words not in each or len(each.splitlines()) != 1 or "another" in each
        ]
        wrong += self._whole(folder)
        shutil.rmtree(folder)
        self.spark.catalog.clearCache()
        return failed, bool(said), [f"call {call}, {words}: {each}" for each in wrong]

    def _whole(self, folder: Path) -> list[str]:
        try:
            there = rows_of(folder / "tables")
            wrong = [
                f"{name}: rows are neither as before nor as after"
                for name, digest in there.items()
                if name not in IN_PARTS and digest not in (self.before.get(name), self.after.get(name))
            ]
            wrong += [f"then: {each.problem}" for each in tend(self.spark, folder) if each.problem]
            return wrong + _differing(rows_of(folder / "tables"), self.after)
        except Exception as error:
            return [f"then: {type(error).__name__}: {str(error)[:300]}"]


def _names() -> set[str]:
    return {table.full_name for table in (*TABLES, MAINTENANCE)}


def _differing(found: Mapping[str, str], wanted: Mapping[str, str]) -> list[str]:
    return [
        f"then: rows of {name} differ" for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)
    ]


def _below_the_disk(argv: Sequence[str] | None) -> int:
    """The same in a process whose disk fails: both Python and Java write to it."""
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "w"
        root.mkdir()
        _, variables = prepared(root, Path(work))
        command = [
            sys.executable,
            "-m",
            "tests.reliability.failing_maintain",
            *(sys.argv[1:] if argv is None else argv),
        ]
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="tests.reliability.failing_maintain",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--calls", type=int, default=40, help="how many, drawn from all (default 40; 0: all, with each error)"
    )
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    if "DISK_CONTROL" not in os.environ:
        return _below_the_disk(argv)
    bad: list[str] = []
    made: Counter[str] = Counter()
    all_tables = old_rows.tended_tables
    for module in (old_rows, maintain):
        module.tended_tables = lambda: list(TABLES)
    try:
        with spark_session("small", cores=2, driver_memory="2g") as spark:
            maintenance = Maintenance(spark, Path(os.environ["DISK_FOLDER"]), Control(Path(os.environ["DISK_CONTROL"])))
            every = [(call, number) for call in range(1, maintenance.calls + 1) for number in NUMBERS]
            print(f"{maintenance.calls} calls", flush=True)
            random.Random(arguments.seed).shuffle(every)  # noqa: S311 - the seed makes a failure repeatable
            for call, number in every[: arguments.calls or len(every)]:
                failed, said, wrong = maintenance.tried(call, number)
                bad += wrong
                made.update({"failed": failed, "told": failed and said})
                outcome = "told" if said else "tried again" if failed else "never came"
                print("\n".join([f"call {call}, {os.strerror(number)}: {outcome}", *wrong]), flush=True)
    finally:
        for module in (old_rows, maintain):
            module.tended_tables = all_tables
    print(f"{made['failed']} calls failed, {made['told']} were told of, {len(bad)} wrong")
    return 1 if bad or not made["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
