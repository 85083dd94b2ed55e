"""Random schedules: two processes audit one cluster in one warehouse, step by step, and things happen in between.

    python -m tests.reliability.schedules --seeds 10 --ticks 30 --out figures.json

A seed draws what happens: the log grows; an older copy comes back; a process does its next step (each run is a run id of its own), is
killed in it, goes on with the same id or begins another run; a whole run; the clock jumps; VACUUM takes what Delta may forget. After
each run that finishes, its report is compared with that of a fresh warehouse for the same files: no check may pass that fails or warns
there, and none may say something else, but for those that hold a run against the one before. Both processes live in one JVM and die
as `tests.reliability.killing` simulates it; two real processes that write at once are `tests.reliability.two_processes`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import jobs.run.run
from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from schemas import bronze, gold, silver
from schemas.gold import RUNS
from tests.captures import capture
from tests.conftest import LONG_LIVED
from tests.reliability.killing import (
    AFTER,
    BEFORE,
    STEPS,
    Dead,
    Killer,
    audit,
    audit_in_steps,
    configuration,
    copied,
    killed_by,
    said,
)

VERSION, STAGES = "3.9.1", ("4", "5", "6", "7", "8", "9")
# Checks that hold a run against the ones before it, or tell of the part of the log that a run has read.
OF_TWO_RUNS = {"ISR-15", "LOG-01", "LOG-04", *(f"RUN-0{number}" for number in range(1, 6))}
CLUSTER = "migration"
_TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
# What may happen, and how often of all times.
WEIGHTS = {
    "step": 8,
    "killed step": 3,
    "whole run": 2,
    "grows": 3,
    "older copy": 1,
    "clock": 1,
    "vacuum": 1,
    "backup": 1,
    "restored": 1,
}
JUMPS = (timedelta(hours=1), timedelta(hours=-1), timedelta(days=3650), timedelta(days=-3650), timedelta())


@dataclass
class Process:
    """One of two: the run it is in the middle of, of which files, and the number of its next step."""

    run_id: str | None = None
    stage: str = ""
    step: int = 0


@dataclass
class Schedule:
    """What happened under a seed, how many reports were compared with a fresh warehouse's, and what was wrong."""

    seed: int
    events: list[str] = field(default_factory=list)
    reports: int = 0
    wrong: list[str] = field(default_factory=list)


@contextmanager
def clock_ahead(by: Callable[[], timedelta]) -> Iterator[None]:
    """The clock that tells when a run begins, as far ahead as `by` says."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + by()

    jobs.run.run.datetime = Clock  # type: ignore[attr-defined]
    try:
        yield
    finally:
        jobs.run.run.datetime = datetime  # type: ignore[attr-defined]


class World:
    """The warehouse of one seed, its two processes, and what a fresh warehouse says of each stage."""

    def __init__(self, spark: SparkSession, folder: Path, seed: int, fresh: Callable[[str], Mapping[str, Any]]) -> None:
        self.spark, self.folder, self.fresh = spark, folder, fresh
        self.random = random.Random(seed)  # noqa: S311 - the seed makes a failure repeatable
        self.told = Schedule(seed)
        self.stage = 0
        self.ahead = timedelta()
        self.processes = (Process(), Process())
        self.runs = 0

    def tick(self) -> None:
        """Let one thing happen."""
        event = self.random.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        process = self.random.choice(self.processes)
        self.told.events.append(event)
        if event == "grows":
            self.stage = min(self.stage + 1, len(STAGES) - 1)
        elif event == "older copy":
            self.stage = max(self.stage - self.random.randint(1, 2), 0)
        elif event == "clock":
            self.ahead = self.random.choice(JUMPS)
        elif event == "vacuum":
            self._vacuum()
        elif event == "backup":
            self._backup()
        elif event == "restored":
            self._restored()
        elif event == "whole run":
            stage = STAGES[self.stage]
            self._hold(audit([self._conf(stage)])[CLUSTER], stage)
        else:
            self._step(process, killed=event == "killed step")

    def _conf(self, stage: str) -> Path:
        """All stages are audited into the same tables, as the same cluster."""
        path = configuration(self.folder, CLUSTER, capture(VERSION, stage))
        return path.rename(path.with_name(f"{CLUSTER}-{stage}.yml"))

    def _step(self, process: Process, *, killed: bool) -> None:
        if process.run_id is None:
            self.runs += 1
            begun = datetime.now(UTC) + self.ahead
            process.run_id, process.stage = f"{begun:%Y%m%dT%H%M%SZ}-{self.runs:06x}", STAGES[self.stage]
            process.step = 0
        confs, run_id = [self._conf(process.stage)], process.run_id
        killer = Killer(self.random.randint(1, 12), self.random.choice((BEFORE, AFTER))) if killed else Killer()
        try:
            with killed_by(killer):
                audit_in_steps(confs, run_id, self._tables, first=process.step, last=process.step)
        except Dead:
            if self.random.random() < 0.4:
                process.run_id = None
            return
        process.step += 1
        if process.step == len(STEPS):
            process.run_id = None
            self._hold(self._report(run_id), process.stage)

    def _tables(self) -> Warehouse:
        return Warehouse(self.spark, str(self.folder / "tables"))

    def _report(self, run_id: str) -> Mapping[str, Any]:
        rows = self._tables().read(RUNS).where(f"run_id = '{run_id}' AND report IS NOT NULL").collect()
        if len(rows) != 1:
            raise AssertionError(f"run {run_id} has {len(rows)} reports")
        report: Mapping[str, Any] = json.loads(rows[0]["report"])
        return report

    def _hold(self, report: Mapping[str, Any], stage: str) -> None:
        self.told.reports += 1
        wrong = false_words(said(report, self.folder), self.fresh(stage))
        self.told.wrong += [f"tick {len(self.told.events)}, stage {stage}: {line}" for line in wrong]

    def _backup(self) -> None:
        if (self.folder / "tables").is_dir():
            shutil.rmtree(self.folder / "backup", ignore_errors=True)
            copied(self.folder / "tables", self.folder / "backup")

    def _restored(self) -> None:
        """The tables as the newest backup has them; runs under way end with what they were writing to."""
        if (self.folder / "backup").is_dir():
            restored(self.spark, self.folder / "backup", self.folder / "tables")
            self.processes = (Process(), Process())

    def _vacuum(self) -> None:
        self.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        warehouse = self._tables()
        for table in _TABLES:
            if warehouse.version(table) is not None:
                self.spark.sql(f"VACUUM {warehouse.identifier(table)} RETAIN 0 HOURS")


def restored(spark: SparkSession, backup: Path, tables: Path, only: Collection[str] | None = None) -> None:
    """Put tables (`layer.name`; all of them by default) back as a backup has them; those that it has not go."""
    if only is None:
        shutil.rmtree(tables)
        copied(backup, tables)
    for name in only or ():
        place = tables / name.replace(".", "/")
        shutil.rmtree(place, ignore_errors=True)
        if (backup / name.replace(".", "/")).is_dir():
            copied(backup / name.replace(".", "/"), place)
    # Who does so has stopped what runs there: a Java that knows of later commits is none that a run starts.
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    spark.catalog.clearCache()


def false_words(report: Mapping[str, Any], fresh: Mapping[str, Any]) -> list[str]:
    """Where a report says something else than that of a fresh warehouse, and does not say why."""
    found, wanted = ({check["id"]: check for check in each["checks"]} for each in (report, fresh))
    wrong = []
    for name in sorted(found.keys() | wanted.keys()):
        mine, other = ((each.get(name) or {}) for each in (found, wanted))
        told = mine.get("verdict"), mine.get("violations")
        if told != (other.get("verdict"), other.get("violations")) and name not in OF_TWO_RUNS:
            wrong.append(f"{name}: {told} instead of {other.get('verdict')}, {other.get('violations')}")
    for name in ("counts", "migration", "lag", "mode"):
        if report[name] != fresh[name]:
            wrong.append(f"{name}: {str(report[name])[:160]} instead of {str(fresh[name])[:160]}")
    if report["divergences"]["by_class"] != fresh["divergences"]["by_class"]:
        wrong.append(f"divergences: {report['divergences']['by_class']} instead of {fresh['divergences']['by_class']}")
    return wrong


class Fresh:
    """Reports of fresh warehouses by stage, each made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, Mapping[str, Any]] = {}

    def __call__(self, stage: str) -> Mapping[str, Any]:
        if stage not in self._known:
            folder = self.folder / f"fresh-{stage}"
            report = audit([configuration(folder, CLUSTER, capture(VERSION, stage))])[CLUSTER]
            self._known[stage] = said(report, folder)
        return self._known[stage]


def main(argv: Sequence[str] | None = None) -> int:
    """Let things happen under each seed and print the figures; 1 when a report said a false word or a run broke."""
    parser = argparse.ArgumentParser(prog="tests.reliability.schedules", description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--ticks", type=int, default=30, help="how many things happen under a seed")
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    arguments = parser.parse_args(argv)
    results: list[Schedule] = []
    with (
        tempfile.TemporaryDirectory(prefix="kraft-audit-schedules-") as folder,
        spark_session("small", "kraft-audit-schedules", cores=2, driver_memory="3g", settings=LONG_LIVED) as spark,
    ):
        fresh = Fresh(Path(folder))
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            world = World(spark, Path(folder) / f"seed-{seed}", seed, fresh)
            results.append(world.told)
            with clock_ahead(lambda world=world: world.ahead):  # type: ignore[misc]
                try:
                    for _ in range(arguments.ticks):
                        world.tick()
                except Exception as error:
                    world.told.wrong.append(
                        f"tick {len(world.told.events)}: {type(error).__name__}: {str(error)[:300]}"
                    )
            print(line(world.told), flush=True)
            for wrong in world.told.wrong[:10]:
                print(f"        {wrong}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
            spark.catalog.clearCache()
    return 0 if results and not any(each.wrong for each in results) else 1


def line(told: Schedule) -> str:
    """One seed's figures."""
    happened = ", ".join(f"{count} {name}" for name, count in sorted(Counter(told.events).items()))
    return f"| {told.seed} | {happened} | {told.reports} reports | {len(told.wrong)} false words |"


if __name__ == "__main__":
    sys.exit(main())
