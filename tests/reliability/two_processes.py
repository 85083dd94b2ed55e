"""Two processes, each with a Java of its own, commit to one table at the same time: is every commit there, can it be read?

    python -m tests.reliability.two_processes --commits 1000
    python -m tests.reliability.two_processes --commits 20 --delay-ms 300              every rename comes late (needs a C compiler)
    python -m tests.reliability.two_processes --commits 20 --delay-ms 300 --unlocked   the same without the lock: commits get lost

Prints commits asked for, found and lost, and exits with 1 when one is lost or the table can't be read.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType

from jobs.runtime.spark import spark_session
from jobs.sinks import delta
from jobs.sinks.delta import Warehouse
from schemas.table import Layer, Table, column
from tests.reliability.java_disk import environment, prepared

ROOT = Path(__file__).parents[2]
COUNTED = Table(
    Layer.GOLD,
    "counted",
    "Rows that two processes count.",
    (
        column("cluster", StringType(), "Which process's."),
        column("run_id", StringType(), "The same for all."),
        column("number", LongType(), "One for each commit."),
    ),
)
_MEMORY = "1g"


@dataclass(frozen=True)
class Found:
    """What is in the table afterwards; `problem` when it can't be read, with the reader's first line."""

    asked: int
    rows: int
    versions: int
    problem: str | None = None

    @property
    def lost(self) -> int:
        """Commits that are not there."""
        return self.asked - self.rows


READY = "ready\n"


def commit(spark: SparkSession, root: str, name: str, numbers: Iterable[int]) -> None:
    """Add a row for each number."""
    warehouse = Warehouse(spark, root)
    for number in numbers:
        warehouse.append(COUNTED, spark.createDataFrame([(name, "r", number)], COUNTED.struct).coalesce(1))


def start(root: Path, name: str, *more: object) -> subprocess.Popen[str]:
    """A process that commits; `more` are how many times, and options. It says READY before it begins."""
    call = [sys.executable, "-m", __spec__.name if __name__ == "__main__" else __name__]
    own = ["--root", str(root), "--writer", name, "--commits", *map(str, more)]
    return subprocess.Popen(
        [*call, *own],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def look(spark: Any, root: Path, asked: int) -> Found:
    """Count what is in the table."""
    warehouse = Warehouse(spark, str(root))
    versions = (warehouse.version(COUNTED) or 0) + 1
    try:
        rows = warehouse.read(COUNTED).select("cluster", "number").distinct().count()
    except Exception as error:
        return Found(asked, 0, versions, str(error).strip().splitlines()[0][:200])
    return Found(asked, rows, versions)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=20, help="of each process")
    parser.add_argument("--root", help="the warehouse; by default a temporary folder")
    parser.add_argument("--delay-ms", type=int, default=0)
    parser.add_argument("--unlocked", action="store_true")
    parser.add_argument("--writer", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measure(root: Path, arguments: argparse.Namespace) -> Found:
    more = [arguments.commits, *(["--unlocked"] if arguments.unlocked else [])]
    late: Mapping[str, str] = {}
    with tempfile.TemporaryDirectory() as work:
        if arguments.delay_ms:
            control, late = prepared(root, Path(work))
            control.set(delay_ms=arguments.delay_ms)
        with environment(late):
            writers = [start(root, name, *more) for name in ("a", "b")]
        failed = [text for each in writers for text in [each.communicate()[1]] if each.returncode]
    for text in failed:
        print("a process failed:", next((line for line in reversed(text.splitlines()) if line.strip()), "")[:200])
    with spark_session("small", cores=1, driver_memory=_MEMORY) as spark:
        return look(spark, root, 2 * arguments.commits)


def main() -> int:
    """Entry point."""
    arguments = _arguments()
    if arguments.unlocked:
        delta.only_writer = lambda *_: nullcontext()  # type: ignore[assignment]
    if arguments.writer:
        with spark_session("small", cores=1, driver_memory=_MEMORY) as spark:
            print(READY, end="", flush=True)
            commit(spark, arguments.root, arguments.writer, range(arguments.commits))
        return 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = _measure(Path(arguments.root or folder), arguments)
    print(
        f"{found.asked} commits by two processes in {time.monotonic() - started:.0f} s: {found.versions} versions, "
        f"{found.rows} rows found, {found.lost} lost" + (f"; can't be read: {found.problem}" if found.problem else "")
    )
    return 1 if found.lost or found.problem else 0


if __name__ == "__main__":
    sys.exit(main())
