"""A fleet audited every hour: what the 500th run costs beside the tenth, and what maintenance gives back.

`python -m tests.benchmarks.year --small 20 --runs 500 --every 24` audits 20 small clusters in one run, 500 times at pretended hours.
Before each run every cluster changes: a configuration, a partition whose ISR shrinks and grows, and once in 24 hours a new topic. With
`--large FOLDER` a generated cluster (as `tests.benchmarks.pipeline` takes it) is audited with them; its log changes in the same way.
With `--every` maintenance follows each so many runs, at the pretended time; without it none does.

At the marks: seconds by the clock and of processors (Java and workers included), and SQL executions, of a run (the median of the last
five); what lies on the disk; bytes that a run wrote (the median of the last 24); and the memory of all processes at most since the mark
before.

Files are made older as the pretended hours go by, so that Delta removes files of its log as it would. What this can't show: removed
rows carry the real time, so VACUUM takes their files at once, where a real one waits for `vacuum_hours`; and a run in a process of its
own starts Spark, which takes ten seconds more.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import shutil
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import NAMESPACE_OID, uuid5

from pyspark.sql import SparkSession

from jobs.pipeline import run_all
from jobs.run.run import new_run_id, open_run
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, validated
from jobs.sinks.delta import Warehouse
from jobs.steps.maintenance.maintain import maintain
from jobs.steps.maintenance.upkeep import Upkeep
from jobs.steps.publishing import publish
from tests.benchmarks.pipeline import Memory
from tests.captures import capture
from tests.kraft.encoder import batch
from tests.pipeline.audits import executions
from tests.pipeline.logs import Record, next_offset, record, writable_copy
from transforms.retention import Retention

MARKS = (1, 10, 25, 50, 60, 100, 150, 200, 250, 300, 400, 500)
HOUR = timedelta(hours=1)
DAY = 24
LARGE = "large"
_HEAD = ("run", "seconds", "processor", "executions", "files", "MB", "log files", "log MB", "bytes a run", "peak GiB")
_UNCHANGED = {"leader": -2, "leaderRecoveryState": -1}


@dataclass(frozen=True)
class Cost:
    """Of one run: seconds by the clock and of processors, SQL executions, bytes of the files that it wrote."""

    seconds: float
    processor: float
    executions: int = 0
    written: int = 0


@dataclass
class Log:
    """A cluster's metadata log that grows: the segments of its controllers, and the topic that changes (ISR by partition)."""

    segments: Sequence[Path]
    topic: str
    topic_id: str
    isr: dict[int, list[int]]
    offset: int = 0
    epoch: int = 1

    def __post_init__(self) -> None:
        data = self.segments[0].read_bytes()
        self.offset, self.epoch = next_offset(data), _last_epoch(data)

    def append(self, at: int, *records: Record) -> None:
        """One batch at the end of each copy, with its append time (ms)."""
        data = batch(records, self.offset, self.epoch, at)
        for each in self.segments:
            with each.open("ab") as file:
                file.write(data)
        self.offset += len(records)

    def an_hour(self, number: int, now: datetime, *, topic: bool) -> None:
        """What an hour brings: a configuration, an ISR that shrinks and grows, with `topic` a new topic."""
        at, value = round(now.timestamp() * 1000), str(3_600_000 + number)
        config = {"resourceType": 2, "resourceName": self.topic, "name": "retention.ms", "value": value}
        self.append(at - 9000, record("CONFIG_RECORD", **config))
        partition = number % len(self.isr)
        isr = self.isr[partition]
        for wanted in (isr[:-1], isr):
            mine = {"partitionId": partition, "topicId": self.topic_id, "isr": wanted}
            self.append(at - 5000, record("PARTITION_CHANGE_RECORD", **mine, **_UNCHANGED))
        if topic:
            self.append(at - 3000, *_new_topic(f"hour-{number}", {0: isr}))


def _last_epoch(segment: bytes) -> int:
    position, epoch = 0, 1
    while position < len(segment):
        epoch = int.from_bytes(segment[position + 12 : position + 16], "big")
        position += 12 + int.from_bytes(segment[position + 8 : position + 12], "big")
    return epoch


def _id_of(topic: str) -> str:
    return base64.urlsafe_b64encode(uuid5(NAMESPACE_OID, topic).bytes).decode().rstrip("=")


def _new_topic(name: str, replicas: dict[int, list[int]]) -> Iterator[Record]:
    yield record("TOPIC_RECORD", name=name, topicId=_id_of(name))
    for number, mine in replicas.items():
        led = {"replicas": mine, "isr": mine, "leader": mine[0], "leaderEpoch": 0, "partitionEpoch": 0}
        yield record("PARTITION_RECORD", partitionId=number, topicId=_id_of(name), **led)


def small_log(folder: Path) -> Log:
    """A copy of a real cluster's log, of three controllers, in `folder`/kraft."""
    healthy = capture("4.3.1-kraft", "1-healthy")
    logs = writable_copy(healthy / "kraft", folder / "kraft")
    state = json.loads((healthy / "expected.json").read_text())["state"]
    topic_id = next(each["value"] for each in state["topics"] if each["key"] == "orders")
    orders = {each["key"][1]: each["value"]["isr"] for each in state["partitions"] if each["key"][0] == "orders"}
    return Log(_segments(logs), "orders", topic_id, {number: orders[number] for number in range(len(orders))})


def _large(source: Path, folder: Path) -> Log:
    """The log of a generated cluster, as each of its voters has it, with a topic of its own that changes."""
    [written] = (source / "kraft").iterdir()
    voters = json.loads((written / "__cluster_metadata-0" / "quorum-state").read_text())["currentVoters"]
    for node in (str(voter["voterId"]) for voter in voters):
        # Of one copy of three nothing is proved committed: no state of it is kept, and each run stores the whole log.
        shutil.copytree(written, folder / "kraft" / node)
        properties = folder / "kraft" / node / "meta.properties"
        of_node = properties.read_text().replace(f"node.id={written.name}", f"node.id={node}")
        properties.write_text(re.sub("directory.id=.*\n", "", of_node))
    isr = {number: [number % 3 + 1, (number + 1) % 3 + 1, (number + 2) % 3 + 1] for number in range(12)}
    log = Log(_segments(folder / "kraft"), "hourly", _id_of("hourly"), isr)
    log.append(round(time.time() * 1000), *_new_topic("hourly", isr))
    return log


def _segments(logs: Path) -> list[Path]:
    return [max(each.glob("*.log")) for each in sorted(logs.glob("*/__cluster_metadata-0"))]


def on_disk(folder: Path) -> dict[Path, int]:
    """Bytes of every file; those that disappear meanwhile do not count."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(OSError):
            if path.is_file():
                found[path] = path.stat().st_size
    return found


@dataclass
class Year:
    """The clusters by name, their warehouse below `folder`, and the hour that it is."""

    spark: SparkSession
    folder: Path
    profile: str
    rules: Retention
    logs: dict[str, Log]
    memory: Memory
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    number: int = 0

    @property
    def tables(self) -> Path:
        """Folder of the tables."""
        return self.folder / "tables"

    def settings(self) -> list[Settings]:
        """Everything as a user has it by default."""
        return [
            validated(
                {
                    "cluster": name,
                    "warehouse": str(self.tables),
                    "kraft": {"folders": [str(self.folder / name / "kraft")]},
                    "report": {"folder": str(self.folder / "reports")},
                    "spark": {"profile": self.profile},
                },
                "benchmark",
            )
            for name in self.logs
        ]

    def run(self) -> Cost:
        """An hour later: the clusters change and are audited in one run."""
        self.number += 1
        self.now += HOUR
        for place, log in enumerate(self.logs.values()):
            log.an_hour(self.number, self.now, topic=self.number % DAY == place % DAY)
        there, counted = on_disk(self.tables), executions(self.spark)
        processor, started = self.memory.processor_seconds(), time.monotonic()
        with open_run(self.settings(), new_run_id(self.now), self.now) as run:
            outcomes = run_all(run)
            reports = {name: each.report for name, each in outcomes.items() if each.report is not None}
            written = {name: each.paths.html for name, each in outcomes.items() if each.paths is not None}
            problems = publish(run, reports, written).problems
        seconds, processor = time.monotonic() - started, self.memory.processor_seconds() - processor
        failed = [f"{name}: {each.failure.reason}" for name, each in outcomes.items() if each.failure is not None]
        if failed or problems:
            raise SystemExit(f"run {self.number}: " + "; ".join([*failed, *problems]))
        new = sum(size for path, size in on_disk(self.tables).items() if path not in there)
        return Cost(seconds, processor, executions(self.spark) - counted - 1, new)

    def tend(self) -> Cost:
        """Maintenance at the pretended time."""
        processor, started = self.memory.processor_seconds(), time.monotonic()
        upkeep = Upkeep(dict.fromkeys(self.logs, self.rules), self.now, 24.0)
        found = maintain(Warehouse(self.spark, str(self.tables)), upkeep)
        problems = [f"{each.table}: {each.problem}" for each in found if each.problem]
        if problems:
            raise SystemExit("\n".join(problems))
        return Cost(time.monotonic() - started, self.memory.processor_seconds() - processor)

    def age(self, hours: int) -> None:
        """Make all files of the tables so much older."""
        for path in on_disk(self.tables):
            with suppress(OSError):
                changed = path.stat().st_mtime - hours * 3600
                os.utime(path, (changed, changed))


def live(year: Year, runs: int, every: int) -> None:
    """Run by run, with a line at each mark and around maintenance."""
    _print(_HEAD)
    lately: deque[Cost] = deque(maxlen=DAY)
    for number in range(1, runs + 1):
        lately.append(year.run())
        # The table around maintenance is told at the first and the last one, and else as the run that it follows.
        tended = every > 0 and number % every == 0
        if number in MARKS or number == runs:
            _line(str(number), [*lately], year)
        if tended:
            cost = year.tend()
            if number == every or number + every > runs or number % (10 * every) == 0:
                _line(f"tended {number}", [cost], year)
        if number % DAY == 0:
            year.age(DAY)


def _line(name: str, costs: Sequence[Cost], year: Year) -> None:
    sizes = on_disk(year.tables)
    log = [size for path, size in sizes.items() if "_delta_log" in path.parts]
    newest = costs[-5:]
    cells = (
        name,
        f"{statistics.median(each.seconds for each in newest):.1f}",
        f"{statistics.median(each.processor for each in newest):.1f}",
        str(statistics.median_low([each.executions for each in newest])),
        f"{len(sizes):,}",
        f"{sum(sizes.values()) / 1e6:.1f}",
        f"{len(log):,}",
        f"{sum(log) / 1e6:.1f}",
        f"{statistics.median_low([each.written for each in costs]):,}",
        f"{year.memory.peak / 2**30:.2f}",
    )
    _print(cells)
    year.memory.peak = 0


def _print(cells: Sequence[str]) -> None:
    print("  ".join(f"{cell:>11}" for cell in cells), flush=True)


def _clusters(folder: Path, small: int, large: Path | None) -> dict[str, Log]:
    found = {}
    for number in range(1, small + 1):
        name = f"small-{number:02}"
        found[name] = small_log(folder / name)
    if large is not None:
        found[LARGE] = _large(large, folder / LARGE)
    return found


def main(argv: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=20, help="how many small clusters (default 20)")
    parser.add_argument("--large", type=Path, metavar="FOLDER", help="a generated cluster that is audited with them")
    parser.add_argument("--runs", type=int, default=500, help="how many hours (default 500)")
    parser.add_argument("--every", type=int, default=0, help="maintenance after each so many runs (default: never)")
    parser.add_argument("--details-days", type=float, default=30.0, help="how long details stay (default 30)")
    parser.add_argument("--driver-memory", default="2g", help="Java heap (default 2g)")
    arguments = parser.parse_args(argv)
    profile = "small" if arguments.large is None else "local"
    with tempfile.TemporaryDirectory() as place, Memory(every=5) as memory:
        logs = _clusters(Path(place), arguments.small, arguments.large)
        with spark_session(profile, "year", driver_memory=arguments.driver_memory) as spark:
            year = Year(spark, Path(place), profile, Retention(details_days=arguments.details_days), logs, memory)
            live(year, arguments.runs, arguments.every)
    return 0


if __name__ == "__main__":
    sys.exit(main())
