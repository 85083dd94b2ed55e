"""The whole audit of a generated cluster, step by step: seconds, rates, memory, and whether it found what was planted.

`python -m tests.benchmarks.pipeline --cluster FOLDER`, with FOLDER made by a generator of clusters: a data folder in
`zookeeper`, controllers' log folders in `kraft`, and `truth.json` with what was planted. The second run continues from what
the first one kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from jobs.pipeline import run_all
from jobs.run.run import open_run
from jobs.settings import Settings, validated
from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES
from schemas.classes import DEFECTS
from schemas.gold import DIVERGENCES


@dataclass
class Memory:
    """Peak of the memory of this process and all its children (proportional set size), in bytes; and their processor time.

    Looked at each `every` seconds; a look takes a tenth of a second.
    """

    every: float = 2.0
    peak: int = 0
    _done: threading.Event = field(default_factory=threading.Event)
    # Ticks by process: what its workers took is lost with a process that does not wait for them.
    _ticks: dict[tuple[int, str], int] = field(default_factory=dict)
    _watching: float = 0.0

    def __enter__(self) -> Memory:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(self.every):
            family = _family(os.getpid())
            self.peak = max(self.peak, sum(_memory(process) for process in family))
            self._count(family)
            self._watching = time.thread_time()

    def processor_seconds(self) -> float:
        """Seconds of processor time of all these processes so far, but for what each that has ended took in its last moment.

        Watching is not counted: a slow machine is watched for longer.
        """
        self._count(_family(os.getpid()))
        return sum([*self._ticks.values()]) / os.sysconf("SC_CLK_TCK") - self._watching

    def _count(self, family: Sequence[int]) -> None:
        for process in family:
            with suppress(OSError):
                fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
                # utime and stime of proc(5), and the start, because numbers of processes come again.
                self._ticks[process, fields[19]] = int(fields[11]) + int(fields[12])


def _family(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family = {root}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    return sorted(family)


def _memory(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def settings_of(cluster: Path, warehouse: Path, driver_memory: str) -> Settings:
    """Settings of an audit of a generated cluster."""
    content: Mapping[str, Any] = {
        "cluster": "generated",
        "warehouse": str(warehouse),
        "zookeeper": {"folder": str(cluster / "zookeeper")},
        "kraft": {"folders": [str(cluster / "kraft")]},
        "report": {"folder": str(warehouse / "reports")},
        "spark": {"profile": "local", "driver_memory": driver_memory},
    }
    return validated(dict(content), "benchmark")


def measure(settings: Settings, truth: Mapping[str, Any]) -> float:
    """One run: prints a line a step, and what was found beside what was planted; returns its seconds."""
    started = time.monotonic()
    with Memory() as memory, open_run(settings) as run:
        print(f"  {'Spark session':<26}{time.monotonic() - started:8.1f} s")
        outcomes = run_all(run)
        seconds = time.monotonic() - started
        for name, took in run.durations.items():
            print(f"  {name:<26}{took:8.1f} s", flush=True)
        for outcome in outcomes.values():
            if outcome.failure is not None:
                raise SystemExit(f"the audit did not finish: {outcome.failure.reason}")
        records, znodes = run.rows(KRAFT_RECORDS).count(), run.rows(ZK_ZNODES).count()
        stored = run.warehouse.read(DIVERGENCES).where(F.col("run_id") == run.run_id)
        rows = stored.where("status <> 'resolved'").select("entity", "key", "class").collect()
    print(f"  {'all':<26}{seconds:8.1f} s   {records:,} records and {znodes:,} znodes read")
    print(f"  peak memory of all processes {memory.peak / 2**30:.1f} GiB")
    _compare([row.asDict() for row in rows if row["class"] in DEFECTS], truth)
    return seconds


def _compare(found: list[dict[str, Any]], truth: Mapping[str, Any]) -> None:
    """Planted objects against found ones: a topic counts with its partitions and its configs."""
    planted = {_planted(divergence) for divergence in truth["divergences"]}
    whole_topics = {name for kind, name in planted if kind == "topic"}
    seen = {_seen(row["entity"], json.loads(row["key"]), whole_topics) for row in found}
    print(f"  planted {len(planted)}, found {len(planted & seen)}, others {len(seen - planted)}\n")


_WHOLE_TOPIC = ("extra_topic_in_zookeeper", "missing_topic_in_zookeeper", "wrong_topic_id")
_ACL = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation")


def _planted(divergence: Mapping[str, Any]) -> tuple[str, str]:
    kind = divergence["kind"]
    if kind in _WHOLE_TOPIC:
        return "topic", divergence["topic"]
    if "partition" in divergence:
        return "partition", f"{divergence['topic']}/{divergence['partition']}"
    if "acl" in kind:
        acl = divergence["kraft"] if isinstance(divergence["kraft"], dict) else divergence["zookeeper"]
        return "acl", " ".join([*(str(acl[name]) for name in _ACL), acl["permission_type"]])
    if "entity" in divergence:
        return "quota", f"{sorted(divergence['entity'].items())} {divergence['quota']}"
    return "config", f"{divergence['topic']} {divergence['config']}"


def _seen(entity: str, key: Mapping[str, Any], whole_topics: set[str]) -> tuple[str, str]:
    topic = key.get("topic") or (key.get("resource_name") if entity == "configs" else None)
    if topic in whole_topics or entity == "topics":
        return "topic", str(topic)
    if entity == "partitions":
        return "partition", f"{topic}/{key['partition']}"
    if entity == "acls":
        return "acl", " ".join([*(str(key[name]) for name in _ACL), key["permission"]])
    if entity == "client_quotas":
        return "quota", f"{sorted(key['entity'].items())} {key['quota']}"
    return "config", f"{topic} {key.get('config')}"


def main(argv: list[str] | None = None) -> int:
    """Print the two runs and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cluster", type=Path, required=True, help="folder of a generated cluster")
    parser.add_argument("--driver-memory", default="4g", help="Java heap (default 4g)")
    arguments = parser.parse_args(argv)
    truth = json.loads((arguments.cluster / "truth.json").read_text())
    with tempfile.TemporaryDirectory() as warehouse:
        settings = settings_of(arguments.cluster, Path(warehouse), arguments.driver_memory)
        print("first run")
        first = measure(settings, truth)
        print("next run, from what the first one kept")
        following = measure(settings, truth)
    print(f"next run / first run: {following / first:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
