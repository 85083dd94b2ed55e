"""Kill maintenance at its commits, and hold the next run and the next maintenance against those after one that nobody disturbed.

    python -m tests.reliability.kill_maintain --points 40 --seed 1 --out figures.json
    python -m tests.reliability.kill_maintain --how sigkill --points 6
    python -m tests.reliability.kill_maintain --how two --points 2        two processes at the same time

The tables are those of `tests.tables`, three years later, so that all goes that may. A point is a commit of the maintenance (rows
of a table removed, its files put together, old files removed, its properties set, a line in gold `maintenance`) and a moment. After
death every table can be read and has its rows as they were or as they are to be; the next run says what it says after an
undisturbed maintenance; the next two maintenances end, and leave what undisturbed ones leave. A run goes by the rows of the tables
alone, so after deaths that leave the same rows one next run is held for all of them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.sql import SparkSession

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from jobs.steps.maintenance import files
from jobs.steps.maintenance.alone import BusyError
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Tended, Upkeep
from schemas.gold import MAINTENANCE
from tests.conftest import LONG_LIVED
from tests.reliability.kill_child import kill_all
from tests.reliability.killing import (
    AFTER,
    BEFORE,
    DURING,
    Dead,
    Killer,
    copied,
    differences,
    killed_by,
    recorded,
    said,
)
from tests.tables import NEWEST, STAGES, gone_on, unpacked
from transforms.retention import Retention

SIMULATED, SIGKILL, TWO = "simulated", "sigkill", "two"
# As if so many days had passed: of what may go nothing is young, and of files nothing is needed that is not of now.
LATER = timedelta(days=1000)
NOW = datetime(2026, 11, 25, tzinfo=UTC) + LATER
_CHILD_SECONDS = 900
# Their rows come and go in more than one commit.
IN_PARTS = ("silver.examined", MAINTENANCE.full_name)
_BUSY = 75


@dataclass(frozen=True)
class Point:
    """Where a maintenance dies."""

    commit: str
    when: str
    how: str


@dataclass
class Result:
    """What came after: `differs` says where the next run or the next maintenance is not as it should be."""

    point: Point
    differs: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def equal(self) -> bool:
        """Whether both are as after an undisturbed maintenance."""
        return not self.differs


Rows = Mapping[str, str]


@dataclass(frozen=True)
class Wanted:
    """After an undisturbed maintenance: its commits, the tables' rows as digests, and what the next run says and has recorded.

    `settled` are the rows after one more: sums by day that were written and are too old already go then.
    """

    commits: Sequence[str]
    rows: Rows
    settled: Rows
    said: Mapping[str, Any]
    recorded: Mapping[str, Sequence[str]]


def rows_of(tables: Path) -> dict[str, str]:
    """A digest of each table's rows, in any order; of gold `maintenance` each row once, because what is repeated is noted again."""
    found = {}
    for log in sorted(tables.glob("*/*/_delta_log")):
        name = f"{log.parent.parent.name}.{log.parent.name}"
        try:
            there = DeltaTable(log.parent)
        except TableNotFoundError:
            # A first write that did not end: there is no table yet.
            continue
        rows = [json.dumps(row, sort_keys=True, default=repr) for row in there.to_pyarrow_table().to_pylist()]
        counted = sorted(set(rows) if name == MAINTENANCE.full_name else rows)
        found[name] = hashlib.sha256("\n".join(counted).encode()).hexdigest()
    return found


def tend(spark: SparkSession, folder: Path) -> list[Tended]:
    """Maintenance of the tables below a folder, also of tables with few files. Raises BusyError."""
    fewest, files._FEWEST_FILES = files._FEWEST_FILES, 1
    try:
        return maintain(Warehouse(spark, str(folder / "tables")), Upkeep(dict.fromkeys(STAGES, Retention()), NOW))
    finally:
        files._FEWEST_FILES = fewest


class Harness:
    """Tables with two runs of two clusters, and copies of them."""

    def __init__(
        self, spark: SparkSession, folder: Path, name: str = NEWEST, clusters: Collection[str] = tuple(STAGES)
    ) -> None:
        self.spark, self.folder, self.base, self.clusters = spark, folder, folder / "base", clusters
        unpacked(name, self.base)
        self._next: dict[str, list[str]] = {}

    def begin(self, name: str) -> Path:
        """A copy of the tables."""
        return copied(self.base, self.folder / f"{name}-{time.monotonic_ns()}")

    @cached_property
    def wanted(self) -> Wanted:
        """What comes of it when nobody dies."""
        folder = self.begin("undisturbed")
        with killed_by(Killer()) as counted:
            problems = [each.problem for each in tend(self.spark, folder) if each.problem]
        if problems:
            raise AssertionError(problems)
        rows = rows_of(folder / "tables")
        again = copied(folder, folder.with_name(f"{folder.name}-again"))
        tend(self.spark, again)
        told, changes = self._next_run(folder)
        return Wanted(counted.commits, rows, rows_of(again / "tables"), told, changes)

    def _next_run(self, folder: Path) -> tuple[dict[str, Any], dict[str, list[str]]]:
        reports = gone_on(folder, self.clusters)
        told = {name: said(report, folder) for name, report in reports.items()}
        return told, recorded(Warehouse(self.spark, str(folder / "tables")))

    def points(self, how: str) -> list[Point]:
        """Every point there is."""
        if how == TWO:
            return [Point("two at once", str(number), how) for number in range(100)]
        moments = (BEFORE, AFTER) if how == SIMULATED else (BEFORE, DURING, AFTER)
        return [Point(each, when, how) for each in self.wanted.commits for when in moments]

    def held(self, point: Point, die: Callable[[Path], list[str]]) -> Result:
        """Let `die` disturb a maintenance (it says what is wrong with how it ended), and hold what comes after."""
        wanted, started = self.wanted, time.monotonic()
        folder = self.begin("point")
        result = Result(point, die(folder))
        try:
            before, now = rows_of(self.base / "tables"), rows_of(folder / "tables")
            result.differs += [
                f"{name}: rows are neither as before nor as after"
                for name, digest in now.items()
                if digest not in (before.get(name), wanted.rows.get(name)) and name not in IN_PARTS
            ]
            result.differs += self._said_next(folder, now)
            for _ in range(2):
                result.differs += [f"{each.table}: {each.problem}" for each in tend(self.spark, folder) if each.problem]
            result.differs += differences(rows_of(folder / "tables"), wanted.settled, "rows")
        except Exception as error:
            result.differs.append(f"{type(error).__name__}: {str(error)[:300]}")
        shutil.rmtree(folder, ignore_errors=True)
        self.spark.catalog.clearCache()
        result.seconds = round(time.monotonic() - started, 1)
        return result

    def _said_next(self, folder: Path, rows: Rows) -> list[str]:
        """Where a run on tables with these rows says something else; run once for all that have the same."""
        key = json.dumps(rows, sort_keys=True)
        if key not in self._next:
            mine = copied(folder, folder.with_name(f"{folder.name}-next"))
            told, changes = self._next_run(mine)
            # Changes of runs whose rows have gone are gone, or not yet.
            gone = [name for name, each in self.wanted.recorded.items() if not {*each} <= {*changes.get(name, ())}]
            self._next[key] = differences(told, self.wanted.said) + [f"changes of {name} are missing" for name in gone]
            shutil.rmtree(mine, ignore_errors=True)
        return self._next[key]

    @property
    def next_runs(self) -> int:
        """How many next runs there were: one for all deaths that left the same rows."""
        return len(self._next)

    def tried(self, point: Point, seed: int = 1) -> Result:
        """Disturb a maintenance as the point says, and hold what comes after."""
        ways = {SIMULATED: self._simulated, SIGKILL: self._sigkill, TWO: self._two}
        return self.held(point, lambda folder: ways[point.how](point, folder, seed))

    def _simulated(self, point: Point, folder: Path, _seed: int) -> list[str]:
        try:
            with killed_by(Killer(point.commit, point.when)):
                tend(self.spark, folder)
        except Dead:
            return []
        return [f"{point} never came"]

    def _sigkill(self, point: Point, folder: Path, seed: int) -> list[str]:
        delay = random.Random(f"{seed} {point}").uniform(0, 0.4)  # noqa: S311 - the seed makes a failure repeatable
        code = _child(folder, "--at", point.commit, "--when", point.when, "--delay", str(delay)).wait(_CHILD_SECONDS)
        return [] if code < 0 else [f"the child was not killed, it ended with {code}"]

    def _two(self, _point: Point, folder: Path, _seed: int) -> list[str]:
        codes = sorted(each.wait(_CHILD_SECONDS) for each in [_child(folder), _child(folder)])
        return [] if codes in ([0, 0], [0, _BUSY]) else [f"the two ended with {codes}"]


def _child(folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.reliability.kill_maintain", "--child", str(folder), *more]
    with (folder / "child.log").open("a") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, env=dict(os.environ))


def _be_child(arguments: argparse.Namespace) -> int:
    """Maintain in a process of its own, and be killed at a commit if one is named; 75 when another one is running."""

    def kill() -> None:
        if arguments.when == DURING:
            threading.Timer(arguments.delay, kill_all).start()
        else:
            kill_all()

    with (
        spark_session("small", "kraft-audit-kill", cores=2) as spark,
        killed_by(Killer(arguments.at, arguments.when, kill)),
    ):
        try:
            return 1 if any(each.problem for each in tend(spark, arguments.child)) else 0
        except BusyError:
            return _BUSY


def table(results: Sequence[Result]) -> list[str]:
    """The figures, by what is done to the tables and how it dies."""
    kinds = [(each.point.how, each.point.commit.split()[0]) for each in results]
    equal = Counter(kind for kind, each in zip(kinds, results, strict=True) if each.equal)
    lines = ["| death | in | points | next run and maintenance equal |", "|---|---|---|---|"]
    lines += [f"| {how} | {what} | {n} | {equal[how, what]} |" for (how, what), n in sorted(Counter(kinds).items())]
    return [*lines, f"| all | | {len(results)} | {equal.total()} |"]


def _tries(arguments: argparse.Namespace, folder: Path) -> Iterator[tuple[Harness, Result]]:
    memory = "3g" if arguments.how == SIMULATED else "2g"
    with spark_session("small", "kraft-audit-kill", cores=2, driver_memory=memory, settings=LONG_LIVED) as spark:
        harness = Harness(spark, folder)
        points = harness.points(arguments.how)
        print(f"{len(harness.wanted.commits)} commits, {len(points)} points", flush=True)
        random.Random(arguments.seed).shuffle(points)  # noqa: S311 - the seed makes a failure repeatable
        for point in points[: arguments.points or len(points)]:
            yield harness, harness.tried(point, arguments.seed)


def main(argv: Sequence[str] | None = None) -> int:
    """Try the points, print the figures; 1 when something is not as after an undisturbed maintenance."""
    parser = argparse.ArgumentParser(
        prog="tests.reliability.kill_maintain",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--points", type=int, default=40, help="how many, drawn from all (default 40; 0: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--how", choices=(SIMULATED, SIGKILL, TWO), default=SIMULATED)
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--at", help=argparse.SUPPRESS)
    parser.add_argument("--when", default=BEFORE, help=argparse.SUPPRESS)
    parser.add_argument("--delay", type=float, default=0.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.child is not None:
        return _be_child(arguments)
    results: list[Result] = []
    runs = 0
    with tempfile.TemporaryDirectory(prefix="kraft-audit-kill-") as folder:
        for harness, result in _tries(arguments, Path(folder)):
            results.append(result)
            runs = harness.next_runs
            word = "equal" if result.equal else "DIFFERS"
            print(f"{word:8}{result.point.how} {result.point.when} {result.point.commit} {result.seconds}s", flush=True)
            for line in result.differs[:8]:
                print(f"        {line}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    print("\n".join([*table(results), f"{runs} next runs"]))
    return 0 if results and all(each.equal for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
