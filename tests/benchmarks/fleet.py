"""One run over many generated clusters beside an audit of one: seconds, queries, and whether each found what was planted in it.

`python -m tests.benchmarks.fleet --clusters FOLDER`, with FOLDER holding a folder for each cluster as `tests.benchmarks.pipeline`
takes it. With `--faulty` three more are audited with them, one whose snapshot is cut, one that is missing and one that holds no log.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.pipeline import ClusterResult, run_all
from jobs.run.run import open_run
from jobs.runtime.spark import spark_session
from jobs.settings import Settings, validated
from schemas.classes import DEFECTS
from tests.benchmarks.pipeline import _planted, _seen
from tests.pipeline.audits import executions


def settings_of(name: str, folder: Path, warehouse: Path) -> Settings:
    """Settings of the audit of one generated cluster."""
    return validated(
        {
            "cluster": name,
            "warehouse": str(warehouse),
            "zookeeper": {"folder": str(folder / "zookeeper")},
            "kraft": {"folders": [str(folder / "kraft")]},
            "report": {"folder": str(warehouse / "reports")},
            "spark": {"profile": "small"},
        },
        "benchmark",
    )


def faulty(folder: Path) -> dict[str, Path]:
    """Folders of clusters that can't be audited."""
    cut, no_log = folder / "cut", folder / "no-log"
    (cut / "zookeeper" / "version-2").mkdir(parents=True)
    (cut / "zookeeper" / "version-2" / "snapshot.1").write_bytes(b"ZKSN cut")
    (cut / "kraft").mkdir()
    (no_log / "zookeeper" / "version-2").mkdir(parents=True)
    (no_log / "kraft" / "3000" / "__cluster_metadata-0").mkdir(parents=True)
    return {"cut": cut, "missing": folder / "nowhere", "no-log": no_log}


def audited(
    spark: SparkSession, folders: dict[str, Path], warehouse: Path
) -> tuple[float, int, dict[str, ClusterResult]]:
    """Seconds, SQL executions and outcomes of one run."""
    before, started = executions(spark), time.monotonic()
    with open_run([settings_of(name, folder, warehouse) for name, folder in folders.items()]) as run:
        outcomes = run_all(run)
    return time.monotonic() - started, executions(spark) - before - 1, outcomes


def compared(folder: Path, outcome: ClusterResult) -> tuple[int, int, int]:
    """How many objects were planted, how many of these found, and how many others."""
    planted = {_planted(each) for each in json.loads((folder / "truth.json").read_text())["divergences"]}
    topics = {name for kind, name in planted if kind == "topic"}
    rows = [] if outcome.report is None else outcome.report.divergences.rows
    seen = {_seen(row.entity, row.key, topics) for row in rows if row.class_ in DEFECTS}
    return len(planted), len(planted & seen), len(seen - planted)


def main(argv: Sequence[str] | None = None) -> int:
    """Print both runs and what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=Path, required=True, help="folder of folders of generated clusters")
    parser.add_argument("--faulty", action="store_true", help="audit clusters that can't be read with them")
    arguments = parser.parse_args(argv)
    folders = {path.name: path for path in sorted(arguments.clusters.iterdir()) if (path / "truth.json").is_file()}
    with tempfile.TemporaryDirectory() as place, spark_session("small", driver_memory="4g") as spark:
        work = Path(place)
        first = next(iter(folders))
        alone, queries, _ = audited(spark, {first: folders[first]}, work / "cold")
        print(f"one cluster, cold process   {alone:7.1f} s  {queries} executions", flush=True)
        alone, queries, _ = audited(spark, {first: folders[first]}, work / "alone")
        print(f"one cluster, warm process   {alone:7.1f} s  {queries} executions", flush=True)
        asked = {**folders, **(faulty(work) if arguments.faulty else {})}
        seconds, queries, outcomes = audited(spark, asked, work / "fleet")
        each = seconds / len(asked)
        print(f"{len(asked)} clusters in one run   {seconds:7.1f} s  {queries} executions, {each:.2f} s a cluster")
        print(f"a cluster in the fleet / alone: {each / alone:.3f}")
        _print(folders, asked, outcomes)
    return 0


def _print(folders: dict[str, Path], asked: dict[str, Path], outcomes: dict[str, ClusterResult]) -> None:
    sums: list[Any] = [
        sum(column) for column in zip(*[compared(folders[n], outcomes[n]) for n in folders], strict=True)
    ]
    wrong = [name for name in folders if (found := compared(folders[name], outcomes[name]))[0] != found[1] or found[2]]
    print(f"planted {sums[0]}, found {sums[1]}, others {sums[2]}; clusters that differ: {wrong or 'none'}")
    for name in sorted(set(asked) - set(folders)):
        failure = outcomes[name].failure
        print(f"{name}: {'no failure' if failure is None else failure.reason}")


if __name__ == "__main__":
    sys.exit(main())
