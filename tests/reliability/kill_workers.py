"""Kill Spark's Python workers in mid-run, as a system does that is short of memory, and hold what the audit says.

    python -m tests.reliability.kill_workers --kills 20 --seed 1 --out figures.json

A run over two clusters is under way; at a random moment one worker, or the process that starts them, or every worker for some
seconds is killed by SIGKILL. Where the run comes to its end, its report is the one that it writes undisturbed. A cluster that fails
has one line, which names memory and what to do, and the next run's report is that of an undisturbed run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs import out_of_memory
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.runtime.spark import java_of, spark_session
from jobs.settings import load_settings
from tests.conftest import LONG_LIVED
from tests.reliability.kill import LATER, Harness
from tests.reliability.killing import WHOLE, differences, recorded, said
from transforms.report.json import to_json

ONE, DAEMON, ALL = "one worker", "their parent", "all workers"
# How often each is chosen of all times, and for how many seconds it goes on.
WEIGHTS = {ONE: 3, DAEMON: 1, ALL: 2}
_SECONDS = {ONE: 0.0, DAEMON: 0.0, ALL: 6.0}
_PAUSE = 0.02
_PROC = Path("/proc")


@dataclass
class Result:
    """What became of a run whose workers were killed `after` so many seconds: `differs` says what is not as it should be."""

    victim: str
    after: float
    kills: int = 0
    failed: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    seconds: float = 0.0


def _children(parents: set[int]) -> list[int]:
    found = []
    for path in _PROC.iterdir():
        with suppress(OSError, ValueError, IndexError):
            if int((path / "stat").read_text().rpartition(")")[2].split()[1]) in parents:
                found.append(int(path.name))
    return found


def _daemons(java: int) -> list[int]:
    found = []
    for pid in _children({java}):
        with suppress(OSError):
            if b"pyspark.worker" in (_PROC / str(pid) / "cmdline").read_bytes():
                found.append(pid)
    return found


def victims(java: int, which: str) -> list[int]:
    """Numbers of the processes that a Java has Python run in: the workers, or those that start them."""
    daemons = _daemons(java)
    return daemons if which == DAEMON else _children(set(daemons))


class Killing:
    """A thread that kills, `after` so many seconds; `kills` counts."""

    def __init__(self, java: int, result: Result, chosen: random.Random) -> None:
        self._java, self._result, self._chosen = java, result, chosen
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Kill while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join()

    def _go(self) -> None:
        self._over.wait(self._result.after)
        ends = None
        while not self._over.is_set() and (ends is None or time.monotonic() < ends):
            there = victims(self._java, self._result.victim)
            if there and ends is None:
                ends = time.monotonic() + _SECONDS[self._result.victim]
            for pid in there if self._result.victim == ALL else [self._chosen.choice(there)] if there else []:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self._result.kills += 1
            self._over.wait(_PAUSE)


class Workers:
    """Runs over the clusters of `tests.reliability.kill`, whose workers are killed."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.harness = spark, Harness(spark, folder)
        java = java_of(spark)
        if java is None:
            raise SystemExit("it can't be told which process Spark is")
        self.java = java
        self.wanted, self.changes = self.harness.undisturbed(LATER, WHOLE)
        # What a run takes once Java has seen one.
        started = time.monotonic()
        copy, confs = self.harness._begin(LATER, "timed")
        self._run(confs, copy)
        self.seconds = time.monotonic() - started

    def _run(self, confs: Sequence[Path], folder: Path) -> tuple[dict[str, Mapping[str, Any]], dict[str, str]]:
        """What the reports say, and why there is none, by cluster."""
        with open_run([load_settings(path) for path in confs]) as run:
            outcomes = run_all(run)
        told = {n: said(json.loads(to_json(e.report)), folder) for n, e in outcomes.items() if e.report is not None}
        return told, {n: e.failure.reason for n, e in outcomes.items() if e.failure is not None}

    def tried(self, victim: str, seed: str) -> Result:
        """One run, killed at a moment that the seed says, and the next one if a cluster failed."""
        chosen = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        result = Result(victim, round(chosen.uniform(0, 0.9 * self.seconds), 2))
        folder, confs = self.harness._begin(LATER, f"workers-{time.monotonic_ns()}")
        started = time.monotonic()
        try:
            with Killing(self.java, result, chosen).under_way():
                told, failed = self._run(confs, folder)
            self._hold(result, told, failed)
            if not failed:
                self.seconds = min(self.seconds, time.monotonic() - started)
            else:
                told, failed = self._run(confs, folder)
                result.differs += [f"next run: {name}: {why}" for name, why in failed.items()]
                result.differs += self._differs({name: told[name] for name in result.failed if name in told})
            result.differs += differences(recorded(self.harness.warehouse(folder)), self.changes, "changes")
        except Exception as error:
            result.differs.append(f"{type(error).__name__}: {str(error)[:600]}")
        result.seconds = round(time.monotonic() - started, 1)
        shutil.rmtree(folder, ignore_errors=True)
        self.spark.catalog.clearCache()
        return result

    def _hold(self, result: Result, told: Mapping[str, Any], failed: Mapping[str, str]) -> None:
        result.failed = sorted(failed)
        result.differs += [f"{name}: {why}" for name, why in failed.items() if why != out_of_memory.WORKER]
        result.differs += self._differs(told)

    def _differs(self, told: Mapping[str, Any]) -> list[str]:
        return differences(told, {name: self.wanted[name] for name in told})


def table(results: Sequence[Result]) -> list[str]:
    """The figures, by what was killed."""
    lines = [
        "| killed | runs | processes killed | runs that came to their end | as they should be |",
        "|---|---|---|---|---|",
    ]
    for victim in WEIGHTS:
        mine = [each for each in results if each.victim == victim]
        counts = (sum(each.kills for each in mine), sum(not each.failed for each in mine))
        lines.append(
            f"| {victim} | {len(mine)} | {counts[0]} | {counts[1]} | {sum(not each.differs for each in mine)} |"
        )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Kill and print the figures; 1 when something is not as it should be."""
    parser = argparse.ArgumentParser(
        prog="tests.reliability.kill_workers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=20, help="how many runs (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    arguments = parser.parse_args(argv)
    results: list[Result] = []
    chosen = random.Random(arguments.seed)  # noqa: S311 - the seed makes a failure repeatable
    with (
        tempfile.TemporaryDirectory(prefix="kraft-audit-workers-") as folder,
        spark_session("small", "kraft-audit-kill", cores=2, driver_memory="3g", settings=LONG_LIVED) as spark,
    ):
        workers = Workers(spark, Path(folder))
        for number in range(arguments.kills):
            victim = chosen.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
            result = workers.tried(victim, f"{arguments.seed} {number}")
            results.append(result)
            word = "DIFFERS" if result.differs else "failed" if result.failed else "equal"
            print(
                f"{word:8}{victim} after {result.after}s: {result.kills} killed, failed: {result.failed} {result.seconds}s",
                flush=True,
            )
            for line in result.differs[:8]:
                print(f"        {line}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    kinds = Counter(each.victim for each in results if each.differs)
    print("\n".join(table(results)))
    return 1 if kinds or not results else 0


if __name__ == "__main__":
    sys.exit(main())
