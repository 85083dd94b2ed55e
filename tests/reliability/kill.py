"""Kill audits at their commits, run again, and hold the next report against that of a warehouse in which nobody died.

    python -m tests.reliability.kill --points 100 --seed 1 --out figures.json

A point is a run (the first of a warehouse, or a later one that continues from a kept state), how it is called (whole, or in steps
that are repeated under the same id), a commit, and a moment (before, after; SIGKILL also within it). The audited clusters are a
migration and a cluster with unclean elections. Two deaths: `tests.reliability.killing`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from tests.conftest import LONG_LIVED
from tests.reliability.killing import (
    AFTER,
    BEFORE,
    DURING,
    IN_STEPS,
    WHOLE,
    Dead,
    Killer,
    Reports,
    audit,
    audit_in_steps,
    copied,
    differences,
    killed_by,
    recorded,
    said,
    stages,
)

FIRST, LATER = "first", "later"
SIMULATED, SIGKILL = "simulated", "sigkill"
EARLIER = {"migration": ("3.9.1", "6"), "unclean": ("4.3.1-kraft", "7-elr-cleared")}
NEXT = {"migration": ("3.9.1", "8"), "unclean": ("4.3.1-kraft", "8-unclean")}
RUN_ID = "20200101T000000Z-killed"
_CHILD_SECONDS = 600


@dataclass(frozen=True)
class Point:
    """Where an audit dies."""

    kind: str
    mode: str
    commit: int
    when: str
    how: str


@dataclass
class Result:
    """What became of the next run: `survived` it came to its end, `equal` it says what it should; `differs` where not."""

    point: Point
    table: str
    survived: bool
    equal: bool
    differs: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Harness:
    """Warehouses in which nobody died, and copies of them in which somebody does."""

    def __init__(self, spark: SparkSession, folder: Path, *, earlier: Any = None, following: Any = None) -> None:
        self.spark, self.folder = spark, folder
        self.earlier, self.following = earlier or EARLIER, following or NEXT
        self._bases: dict[str, Path] = {}
        self._wanted: dict[tuple[str, str], tuple[dict[str, Any], dict[str, list[str]]]] = {}
        self.commits: dict[tuple[str, str], list[str]] = {}

    def base(self, kind: str) -> Path:
        """The warehouse before the run that is killed: empty, or with one finished run."""
        if kind not in self._bases:
            base = self._bases[kind] = self.folder / f"base-{kind}"
            base.mkdir()
            if kind == LATER:
                audit(stages(base, self.earlier))
        return self._bases[kind]

    def _begin(self, kind: str, name: str) -> tuple[Path, list[Path]]:
        folder = copied(self.base(kind), self.folder / name)
        return folder, stages(folder, self.following)

    def _run(self, confs: Sequence[Path], folder: Path, mode: str, first: int = 0) -> Reports:
        return audit(confs) if mode == WHOLE else audit_in_steps(confs, RUN_ID, lambda: self.warehouse(folder), first)

    def warehouse(self, folder: Path) -> Warehouse:
        """The tables of a copy."""
        return Warehouse(self.spark, str(folder / "tables"))

    def undisturbed(self, kind: str, mode: str) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """What the run says when nobody dies, and the changes recorded then; its commits are counted on the way."""
        key = (kind, mode)
        if key not in self._wanted:
            folder, confs = self._begin(kind, f"undisturbed-{kind}-{mode}")
            with killed_by(Killer()) as counted:
                reports = self._run(confs, folder, mode)
            self.commits[key] = counted.commits
            told = {name: said(report, folder) for name, report in reports.items()}
            self._wanted[key] = told, recorded(self.warehouse(folder))
        return self._wanted[key]

    def points(self, kinds: Sequence[str], modes: Sequence[str], how: str) -> list[Point]:
        """Every point there is."""
        moments = (BEFORE, AFTER) if how == SIMULATED else (BEFORE, DURING, AFTER)
        found = []
        for kind in kinds:
            for mode in modes:
                self.undisturbed(kind, mode)
                numbers = range(1, len(self.commits[kind, mode]) + 1)
                found += [Point(kind, mode, number, when, how) for number in numbers for when in moments]
        return found

    def tried(self, point: Point, seed: int) -> Result:
        """Die at the point, run again, and compare."""
        wanted, changes = self.undisturbed(point.kind, point.mode)
        started = time.monotonic()
        folder, confs = self._begin(point.kind, f"point-{time.monotonic_ns()}")
        table, step = self._die(point, confs, folder, seed)
        result = Result(point, table, survived=False, equal=False)
        try:
            reports = self._run(confs, folder, point.mode, step)
            result.survived = True
            told = {name: said(report, folder) for name, report in reports.items()}
            result.differs = differences(told, wanted) + differences(
                recorded(self.warehouse(folder)), changes, "changes"
            )
        except Exception as error:
            result.differs = [f"{type(error).__name__}: {str(error)[:300]}"]
        result.equal = result.survived and not result.differs
        result.seconds = round(time.monotonic() - started, 1)
        shutil.rmtree(folder, ignore_errors=True)
        self.spark.catalog.clearCache()
        return result

    def _die(self, point: Point, confs: Sequence[Path], folder: Path, seed: int) -> tuple[str, int]:
        """The commit that was the last one, and the step that must be repeated."""
        if point.how == SIGKILL:
            return self._kill_child(point, confs, folder, seed)
        step = [0]
        killer = Killer(point.commit, point.when)
        try:
            with killed_by(killer):
                if point.mode == WHOLE:
                    audit(confs)
                else:
                    audit_in_steps(
                        confs, RUN_ID, lambda: self.warehouse(folder), begun=lambda n: step.__setitem__(0, n)
                    )
        except Dead:
            return killer.commits[-1], step[0]
        raise AssertionError(f"{point} never came: {len(killer.commits)} commits")

    def _kill_child(self, point: Point, confs: Sequence[Path], folder: Path, seed: int) -> tuple[str, int]:
        delay = random.Random(f"{seed} {point}").uniform(0, 0.4)  # noqa: S311 - the seed makes a failure repeatable
        step_file = folder / "step"
        command = [sys.executable, "-m", "tests.reliability.kill_child", "--conf", *map(str, confs)]
        command += ["--at", str(point.commit), "--when", point.when, "--delay", str(delay)]
        command += ["--run-id", RUN_ID, "--step-file", str(step_file)] if point.mode == IN_STEPS else []
        with (folder / "child.log").open("w") as log:
            child = subprocess.run(
                command,
                stdout=log,
                stderr=log,
                start_new_session=True,
                timeout=_CHILD_SECONDS,
                env=dict(os.environ),
                check=False,
            )
        if child.returncode >= 0:
            tail = (folder / "child.log").read_text()[-1500:]
            raise AssertionError(f"{point}: the child was not killed, it ended with {child.returncode}: {tail}")
        names = self.commits[point.kind, point.mode]
        return f"(about) {names[point.commit - 1]}", int(step_file.read_text()) if step_file.exists() else 0


def table(results: Sequence[Result]) -> list[str]:
    """The figures: points, survived, next report equal, for each kind of run, call and death."""
    asked = Counter((r.point.kind, r.point.mode, r.point.how) for r in results)
    survived = Counter((r.point.kind, r.point.mode, r.point.how) for r in results if r.survived)
    equal = Counter((r.point.kind, r.point.mode, r.point.how) for r in results if r.equal)
    lines = ["| run | called | death | points | survived | next report equal |", "|---|---|---|---|---|---|"]
    lines += [f"| {k[0]} | {k[1]} | {k[2]} | {n} | {survived[k]} | {equal[k]} |" for k, n in sorted(asked.items())]
    return [*lines, f"| all | | | {len(results)} | {survived.total()} | {equal.total()} |"]


def main(argv: Sequence[str] | None = None) -> int:
    """Try the points, print the figures; 1 when a next run did not come to its end or said something else."""
    parser = argparse.ArgumentParser(prog="tests.reliability.kill", description=__doc__)
    parser.add_argument("--points", type=int, default=100, help="how many, drawn from all (default 100; 0: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=(FIRST, LATER, "all"), default="all")
    parser.add_argument("--mode", choices=(WHOLE, IN_STEPS, "all"), default="all")
    parser.add_argument("--how", choices=(SIMULATED, SIGKILL), default=SIMULATED)
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    arguments = parser.parse_args(argv)
    kinds = (FIRST, LATER) if arguments.kind == "all" else (arguments.kind,)
    modes = (WHOLE, IN_STEPS) if arguments.mode == "all" else (arguments.mode,)
    results: list[Result] = []
    with (
        tempfile.TemporaryDirectory(prefix="kraft-audit-kill-") as folder,
        spark_session("small", "kraft-audit-kill", cores=2, driver_memory="3g", settings=LONG_LIVED) as spark,
    ):
        harness = Harness(spark, Path(folder))
        points = harness.points(kinds, modes, arguments.how)
        chosen = random.Random(arguments.seed)  # noqa: S311 - the seed makes a failure repeatable
        chosen.shuffle(points)
        for point in points[: arguments.points or len(points)]:
            result = harness.tried(point, arguments.seed)
            results.append(result)
            word = "equal" if result.equal else "DIFFERS" if result.survived else "DEAD"
            print(
                f"{word:8}{point.kind} {point.mode} {point.when} {point.commit} {result.table} {result.seconds}s",
                flush=True,
            )
            for line in result.differs[:8]:
                print(f"        {line}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    print("\n".join(table(results)))
    return 0 if all(result.equal for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
