"""An audit every hour: what the hundredth run costs beside the tenth, and what maintenance gives back.

`python -m tests.benchmarks.year --runs 500 --every 24` audits one small cluster 500 times at pretended hours. Between two runs its log gets
a changed configuration and a partition whose ISR shrinks and grows. With `--every` maintenance follows each so many runs, at the pretended
time; without it none does. At the marks: seconds and executions of the run (the median of the last five), and what lies on the disk.

What a pretended clock can't show: VACUUM takes removed files at once, where a real one waits for `vacuum_hours`; and Delta's own log
files, which go by the real clock, all stay.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from jobs.audit.run import new_run_id, open_run
from jobs.pipeline import run_all
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, validated
from jobs.sinks.delta import Warehouse
from jobs.steps.maintain import Upkeep, maintain
from tests.benchmarks.pipeline import Memory
from tests.captures import capture
from tests.pipeline.audits import executions
from tests.pipeline.logs import append, record, writable_copy
from transforms.retention import Retention

MARKS = (1, 10, 20, 25, 40, 50, 60, 100, 250, 500)
HOUR = timedelta(hours=1)
CLUSTER = "small"
_HEAD = ("run", "seconds", "executions", "files", "MB", "log files", "log MB", "bytes a run")


@dataclass(frozen=True)
class Disk:
    """What lies in a warehouse: all files and bytes, and of these what Delta's logs take."""

    files: int
    bytes: int
    log_files: int
    log_bytes: int


def on_disk(folder: Path) -> Disk:
    """Look at every file; those that disappear meanwhile do not count."""
    sizes = [("_delta_log" in path.parts, path.stat().st_size) for path in folder.rglob("*") if path.is_file()]
    log = [size for is_log, size in sizes if is_log]
    return Disk(len(sizes), sum(size for _, size in sizes), len(log), sum(log))


class Year:
    """One small cluster, its warehouse, and the hour that it is."""

    def __init__(self, spark: SparkSession, folder: Path, details_days: float) -> None:
        healthy = capture("4.3.1-kraft", "1-healthy")
        self.spark, self.folder, self.rules = spark, folder, Retention(details_days=details_days)
        self.logs = writable_copy(healthy / "kraft", folder / "kraft")
        state = json.loads((healthy / "expected.json").read_text())["state"]
        self.topic_id = next(each["value"] for each in state["topics"] if each["key"] == "orders")
        self.isr: list[int] = next(each["value"]["isr"] for each in state["partitions"] if each["key"] == ["orders", 0])
        self.now = datetime.now(UTC)
        self.number = 0

    @property
    def tables(self) -> Path:
        """Folder of the tables."""
        return self.folder / "tables"

    @property
    def settings(self) -> Settings:
        """Everything as a user has it by default."""
        content: dict[str, object] = {
            "cluster": CLUSTER,
            "warehouse": str(self.tables),
            "kraft": {"folders": [str(self.logs)]},
            "report": {"folder": str(self.folder / "reports")},
            "spark": {"profile": "small"},
        }
        return validated(content, "benchmark")

    def run(self) -> tuple[float, int]:
        """An hour later: the cluster changes and is audited; seconds and executions."""
        self.number += 1
        self.now += HOUR
        self._change()
        before, started = executions(self.spark), time.monotonic()
        with open_run(self.settings, new_run_id(self.now), self.now) as run:
            for outcome in run_all(run).values():
                if outcome.failure is not None:
                    raise SystemExit(f"run {self.number} failed: {outcome.failure.reason}")
        return time.monotonic() - started, executions(self.spark) - before - 1

    def _change(self) -> None:
        at, isr = round(self.now.timestamp() * 1000), self.isr
        value = str(3_600_000 + self.number)
        changed = record("CONFIG_RECORD", resourceType=2, resourceName="orders", name="retention.ms", value=value)
        append(self.logs, [changed], at - 9000)
        for wanted in (isr[:-1], isr):
            append(self.logs, [self._isr(wanted)], at - 5000)

    def _isr(self, isr: Sequence[int]) -> tuple[bytes | None, bytes]:
        unchanged = {"leader": -2, "leaderRecoveryState": -1}
        mine = {"partitionId": 0, "topicId": self.topic_id, "isr": list(isr)}
        return record("PARTITION_CHANGE_RECORD", **mine, **unchanged)

    def tend(self) -> float:
        """Maintenance at the pretended time; seconds."""
        started = time.monotonic()
        found = maintain(Warehouse(self.spark, str(self.tables)), Upkeep({CLUSTER: self.rules}, self.now, 24.0))
        problems = [f"{each.table}: {each.problem}" for each in found if each.problem]
        if problems:
            raise SystemExit("\n".join(problems))
        return time.monotonic() - started


def live(year: Year, runs: int, every: int) -> None:
    """Run by run, with a line at each mark and around each maintenance."""
    print("  ".join(f"{name:>11}" for name in _HEAD), flush=True)
    lately: list[tuple[float, int]] = []
    first = 0
    for number in range(1, runs + 1):
        lately = [*lately[-4:], year.run()]
        if number == 1:
            first = on_disk(year.tables).bytes
        if number in MARKS or number == runs:
            _line(str(number), lately, on_disk(year.tables), first, number)
        if every and number % every == 0:
            _line(f"{number} before", lately, on_disk(year.tables), first, number)
            seconds = year.tend()
            _line(f"{number} after", [(seconds, 0)], on_disk(year.tables), first, number)


def _line(name: str, lately: Sequence[tuple[float, int]], disk: Disk, first: int, number: int) -> None:
    each = (disk.bytes - first) / max(1, number - 1)
    cells = (
        name,
        f"{statistics.median(seconds for seconds, _ in lately):.1f}",
        str(statistics.median_low([count for _, count in lately])),
        f"{disk.files:,}",
        f"{disk.bytes / 1e6:.1f}",
        f"{disk.log_files:,}",
        f"{disk.log_bytes / 1e6:.1f}",
        f"{each:,.0f}",
    )
    print("  ".join(f"{cell:>11}" for cell in cells), flush=True)


def main(argv: list[str] | None = None) -> int:
    """Print the table, and the memory of all processes at most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="how many hours (default 500)")
    parser.add_argument("--every", type=int, default=0, help="maintenance after each so many runs (default: never)")
    parser.add_argument("--details-days", type=float, default=30.0, help="how long details stay (default 30)")
    parser.add_argument("--driver-memory", default="2g", help="Java heap (default 2g)")
    arguments = parser.parse_args(argv)
    memory_of = arguments.driver_memory
    with tempfile.TemporaryDirectory() as place, Memory() as memory:
        with spark_session("small", "year", driver_memory=memory_of) as spark:
            live(Year(spark, Path(place), arguments.details_days), arguments.runs, arguments.every)
        print(f"peak memory of all processes {memory.peak / 2**30:.1f} GiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
