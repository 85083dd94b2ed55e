"""Audits that die at a commit of their choice, and what a report says apart from what is of the run alone.

There are two deaths. SIGKILL is the real one: the process group, Java included, is killed (`tests.reliability.kill_child`). The
simulated one costs a third: from the commit on, nothing of the audit reaches the warehouse any more, all its threads end with an
exception that no handler of the product catches, and all objects of the run are let go; a write that another thread has under
way comes to its end, as one that Java has under way may. What a simulation can't show is a commit that is cut in two.
"""

from __future__ import annotations

import gc
import json
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from jobs.cli import main
from jobs.exit import CRASH, USAGE
from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.settings import load_settings
from jobs.sinks.delta import Warehouse
from schemas.gold import ISR_HISTORY, RUNS
from schemas.table import Table
from tests.captures import capture
from tests.pipeline.audits import settings_content
from transforms.report.json import to_json

WRITES = ("append", "replace_where", "delete", "create", "compact", "vacuum", "keep_log")
READS = ("read", "version")
STEPS = ("ingest-zookeeper", "ingest-kraft", "materialize", "reconcile")
BEFORE, DURING, AFTER = "before", "during", "after"
WHOLE, IN_STEPS = "whole", "steps"
Reports = dict[str, dict[str, Any]]


class Dead(BaseException):
    """The audit is dead; no handler of the product's catches it."""


class Killer:
    """Counts commits, one for each call that writes, and kills just `before`, `during` or `after` one of them.

    `at` is its number from 1, or what is done to which table: `append gold.runs`, and `append gold.runs (2)` the second time.
    """

    def __init__(self, at: int | str | None = None, when: str = BEFORE, kill: Callable[[], None] | None = None) -> None:
        self.at, self.when = at, when
        self.kill = kill or self._die
        self.commits: list[str] = []
        self.dead = False
        self._lock = threading.Lock()
        self._inside = threading.local()

    def _die(self) -> None:
        self.dead = True

    def _label(self, commit: str) -> str:
        before = sum(each.partition(" (")[0] == commit for each in self.commits)
        return commit if not before else f"{commit} ({before + 1})"

    def alive(self) -> None:
        """Raise Dead after death."""
        if self.dead:
            raise Dead

    def call(self, name: str, table: Table, write: Callable[[], Any]) -> Any:
        """Let a write through, or die."""
        self.alive()
        if getattr(self._inside, "write", False):
            return write()
        with self._lock:
            self.alive()
            commit = self._label(f"{name} {table.full_name}")
            self.commits.append(commit)
            mine = self.at in (commit, len(self.commits))
            if mine and self.when in (BEFORE, DURING):
                self.kill()
                self.alive()
        self._inside.write = True
        try:
            made = write()
        finally:
            self._inside.write = False
        if mine and self.when == AFTER:
            self.kill()
            self.alive()
        return made


@contextmanager
def killed_by(killer: Killer) -> Iterator[Killer]:
    """Every warehouse of this process obeys the killer, until the block ends."""
    originals = {name: getattr(Warehouse, name) for name in (*WRITES, *READS)}

    def writing(name: str) -> Callable[..., Any]:
        def call(self: Warehouse, table: Table, *args: Any, **more: Any) -> Any:
            return killer.call(name, table, lambda: originals[name](self, table, *args, **more))

        return call

    def reading(name: str) -> Callable[..., Any]:
        def call(self: Warehouse, *args: Any, **more: Any) -> Any:
            killer.alive()
            return originals[name](self, *args, **more)

        return call

    for name in originals:
        setattr(Warehouse, name, (writing if name in WRITES else reading)(name))
    try:
        yield killer
    finally:
        for name, original in originals.items():
            setattr(Warehouse, name, original)
        gc.collect()


def configuration(folder: Path, cluster: str, source: Path, **kraft: object) -> Path:
    """Write the configuration of one cluster's audit, which keeps its state however short the log is; the file."""
    settings = {"folders": [str(source / "kraft")], "keep_state_every": 1, **kraft}
    content = settings_content(source, folder / "tables", cluster=cluster, kraft=settings)
    content["report"] = {"folder": str(folder / "reports")}
    path = folder / f"{cluster}.yml"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    return path


def stages(folder: Path, sources: Mapping[str, tuple[str, str]], **kraft: object) -> list[Path]:
    """Configurations of clusters, each (version, stage) of a capture."""
    return [configuration(folder, name, capture(*source), **kraft) for name, source in sorted(sources.items())]


def audit(confs: Sequence[Path]) -> Reports:
    """One run over all clusters; what gold runs has of it then, or AssertionError with what a user is told."""
    with open_run([load_settings(path) for path in confs]) as run:
        run_id = run.run_id
        outcomes = run_all(run)
    failed = {name: each.failure.reason for name, each in outcomes.items() if each.failure is not None}
    if failed:
        raise AssertionError(f"failed: {failed}")
    found = {name: json.loads(to_json(each.report)) for name, each in outcomes.items() if each.report is not None}
    if {report["run_id"] for report in found.values()} != {run_id} or len(found) != len(confs):
        raise AssertionError(f"{len(found)} reports of {len(confs)} clusters")
    return found


def _unheard(_number: int) -> None:
    """Nobody asks which step it is."""


def audit_in_steps(
    confs: Sequence[Path],
    run_id: str,
    warehouse: Callable[[], Warehouse],
    first: int = 0,
    last: int = len(STEPS) - 1,
    begun: Callable[[int], None] = _unheard,
) -> Reports:
    """The steps of a run from number `first` to `last`, as a scheduler calls them; the reports that gold runs has then."""
    for number, step in enumerate(STEPS[first : last + 1], first):
        begun(number)
        code = main([step, "--conf", *map(str, confs), "--run-id", run_id])
        if code in (CRASH, USAGE):
            raise AssertionError(f"step {number} {step} exited with {code}")
    rows = warehouse().read(RUNS).where((F.col("run_id") == run_id) & F.col("report").isNotNull()).collect()
    return {row["cluster"]: json.loads(row["report"]) for row in rows}


_OF_THE_RUN = ("run_id", "started_at", "finished_at")
WHOLE_LOG = "the whole log was read"


def said(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """What a report says of the cluster and of the runs before, without names and times of runs and the place of the tables."""
    told = json.loads(json.dumps(report).replace(str(folder), "<folder>"))
    for name in _OF_THE_RUN:
        told.pop(name, None)
    for point in told.get("history", ()):
        for name in _OF_THE_RUN:
            point.pop(name, None)
    return told


def differences(found: Any, wanted: Any, place: str = "") -> list[str]:
    """Where two reports differ, as paths with both values, short."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        names = sorted(found.keys() | wanted.keys())
        return [line for name in names for line in differences(found.get(name), wanted.get(name), f"{place}/{name}")]
    if isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        pairs = enumerate(zip(found, wanted, strict=True))
        return [line for number, (a, b) in pairs for line in differences(a, b, f"{place}/{_name(a, number)}")]
    return [] if found == wanted else [f"{place}: {str(found)[:120]} != {str(wanted)[:120]}"]


def _name(item: Any, number: int) -> str:
    return str(item.get("id", number)) if isinstance(item, dict) else str(number)


def recorded(warehouse: Warehouse) -> dict[str, list[str]]:
    """Changes in gold isr_history that finished runs have recorded, by cluster, each as often as it is there."""
    runs = warehouse.read(RUNS).where("report IS NOT NULL").select("cluster", "run_id").distinct()
    rows = warehouse.read(ISR_HISTORY).join(runs, ["cluster", "run_id"], "left_semi")
    found: dict[str, list[str]] = {}
    for row in rows.select("cluster", "topic_id", "partition", "offset", "append_time").collect():
        found.setdefault(row["cluster"], []).append(str(tuple(row)[1:]))
    return {name: sorted(mine) for name, mine in found.items()}


def copied(base: Path, folder: Path) -> Path:
    """A copy of a folder of tables, configurations and reports."""
    shutil.copytree(base, folder)
    return folder
