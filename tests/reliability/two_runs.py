"""Two processes audit the same clusters in one warehouse at the same time, and then a third run: does each say what it should?

    python -m tests.reliability.two_runs --rounds 3 --out figures.json

In each round the warehouse has one finished run. Two processes, each with a Java of its own, audit a later stage at the same time;
then one run audits the stage after that. The two must say what one run says that is alone, the third what it says when only one run
came before it, but for the points of the history, of which there is one more; and all changes of partitions are recorded.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from schemas.gold import RUNS
from tests.conftest import LONG_LIVED
from tests.reliability.kill import EARLIER, NEXT
from tests.reliability.killing import Reports, audit, copied, differences, recorded, said, stages

ROOT = Path(__file__).parents[2]
LAST = {"migration": ("3.9.1", "9"), "unclean": ("4.3.1-kraft", "9-unclean-healed")}
_PATIENCE_SECONDS = 900
_EXIT_CODES = (0, 10, 20)
Sources = Mapping[str, tuple[str, str]]
Told = dict[str, dict[str, Any]]


@dataclass
class Round:
    """One round: how many reports were compared with what they should be, whether the two runs overlapped, what differs."""

    reports: int = 0
    overlapped: bool = False
    differs: list[str] = field(default_factory=list)


class World:
    """A warehouse with one finished run, copies of it, and what runs say there that are alone."""

    def __init__(
        self, spark: SparkSession, folder: Path, earlier: Sources = EARLIER, later: Sources = NEXT, last: Sources = LAST
    ) -> None:
        self.spark, self.folder, self.later, self.last = spark, folder, later, last
        self.base = folder / "base"
        self.base.mkdir()
        audit(stages(self.base, earlier))
        alone = copied(self.base, folder / "alone")
        self.wanted = self._told(audit(stages(alone, later)), alone)
        self.wanted_last = self._told(audit(stages(alone, last)), alone)
        self.changes = recorded(self._warehouse(alone))

    def round(self, number: int) -> Round:
        """Two runs at a time, and a third."""
        folder = copied(self.base, self.folder / f"round-{number}")
        before = {row["run_id"] for row in self._runs(folder)}
        _both([str(path) for path in stages(folder, self.later)], folder)
        rows = [row for row in self._runs(folder) if row["run_id"] not in before]
        found = Round(overlapped=max(row["started_at"] for row in rows) < min(row["finished_at"] for row in rows))
        for row in rows:
            name, report = row["cluster"], said(json.loads(row["report"]), folder)
            self._hold(found, f"{name}, of two", report, self.wanted[name])
        if len(rows) != 2 * len(self.later):
            found.differs.append(f"{len(rows)} reports of two runs over {len(self.later)} clusters")
        for name, report in self._told(audit(stages(folder, self.last)), folder).items():
            self._hold(found, f"{name}, third", report, self.wanted_last[name])
        self._hold_changes(found, folder)
        return found

    def _hold(self, found: Round, what: str, report: dict[str, Any], wanted: dict[str, Any]) -> None:
        """The other of two runs may be in the history already; it says the same."""
        found.reports += 1
        points = {json.dumps(point, sort_keys=True) for point in report["history"]}
        expected = {json.dumps(point, sort_keys=True) for point in wanted["history"]}
        found.differs += [f"{what}: {point} is in the history" for point in sorted(points - expected)]
        found.differs += [f"{what}: {point} is not in the history" for point in sorted(expected - points)]
        mine, other = {**report, "history": None}, {**wanted, "history": None}
        found.differs += [f"{what}: {line}" for line in differences(mine, other)]

    def _hold_changes(self, found: Round, folder: Path) -> None:
        """Each of two runs may have recorded what both have read: whoever asks is told it once."""
        mine = recorded(self._warehouse(folder))
        for name, wanted in self.changes.items():
            if set(mine.get(name, ())) != set(wanted):
                found.differs.append(f"{name}: {len(set(mine.get(name, ())))} changes are recorded, not {len(wanted)}")

    def _warehouse(self, folder: Path) -> Warehouse:
        return Warehouse(self.spark, str(folder / "tables"))

    def _runs(self, folder: Path) -> list[Row]:
        return self._warehouse(folder).read(RUNS).where("report IS NOT NULL").collect()

    def _told(self, reports: Reports, folder: Path) -> Told:
        return {name: said(report, folder) for name, report in reports.items()}


def _both(confs: Sequence[str], folder: Path) -> None:
    """Two processes, begun at once, that both come to their end."""
    command = [sys.executable, "-m", "jobs.cli", "run", "--conf", *confs]
    logs = [(folder / f"process-{number}.log").open("w") for number in range(2)]
    running = [subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) for log in logs]
    codes = [process.wait(_PATIENCE_SECONDS) for process in running]
    for log in logs:
        log.close()
    if any(code not in _EXIT_CODES for code in codes):
        raise AssertionError(f"exit codes {codes}: " + "; ".join(Path(log.name).read_text()[-800:] for log in logs))


def main(argv: Sequence[str] | None = None) -> int:
    """Play the rounds, print the figures; 1 when a run said something else."""
    parser = argparse.ArgumentParser(prog="tests.reliability.two_runs", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    arguments = parser.parse_args(argv)
    results: list[Round] = []
    with (
        tempfile.TemporaryDirectory(prefix="kraft-audit-two-runs-") as folder,
        spark_session("small", "kraft-audit-two-runs", cores=2, driver_memory="2g", settings=LONG_LIVED) as spark,
    ):
        world = World(spark, Path(folder))
        for number in range(arguments.rounds):
            results.append(world.round(number))
            print(f"round {number + 1}: {asdict(results[-1])}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    reports, wrong = sum(each.reports for each in results), sum(bool(each.differs) for each in results)
    overlapped = sum(each.overlapped for each in results)
    print(f"{len(results)} rounds, {overlapped} with runs that overlapped, {reports} reports, {wrong} rounds differ")
    return 0 if results and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
