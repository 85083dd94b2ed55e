"""Every pair of stages i < j of a cluster: run i, run j that is killed, run j again says what run j says that reads the whole log.

    python -m tests.reliability.pairs --distances 1 2 3 --seed 1 --out figures.json

Many clusters are audited in one run: each stage i is a cluster of its own, so that all pairs of one distance take three runs. A
state is kept by each run, however short the log is. The run of the whole log is made in a copy of the tables as run i left them, so
that both know the same earlier run. Death is simulated (`tests.reliability.killing`), at a commit that the seed draws.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from jobs.runtime.spark import spark_session
from jobs.sinks.delta import Warehouse
from jobs.sources.kraft.folder import read_copies
from schemas.bronze import KRAFT_LOG_COPIES
from tests.captures import KRAFT_VERSIONS, VERSIONS, capture, stages
from tests.conftest import LONG_LIVED
from tests.reliability.killing import (
    AFTER,
    BEFORE,
    WHOLE_LOG,
    Dead,
    Killer,
    audit,
    configuration,
    copied,
    differences,
    killed_by,
    recorded,
    said,
)

# It tells how fast the part of the log grew that a run has read.
OF_THE_PART = ("LOG-01",)


@dataclass(frozen=True)
class Pair:
    """Two captures of one cluster, the later one `distance` stages after the earlier."""

    version: str
    earlier: str
    later: str

    @property
    def cluster(self) -> str:
        """Its name in the tables."""
        return f"{self.version}-{self.earlier}"


@dataclass
class Compared:
    """What became of a pair: whether run j continued from the state of run i, and where it does not say the same."""

    pair: Pair
    continued: bool
    differs: list[str] = field(default_factory=list)


def pairs(versions: Collection[str] = (*VERSIONS, *KRAFT_VERSIONS)) -> dict[int, list[Pair]]:
    """All pairs by distance: stages in their order, with a log, and of one cluster.id."""
    found: dict[int, list[Pair]] = {}
    for version in versions:
        numbered = [
            name for name in stages(version) if name[0].isdigit() and (capture(version, name) / "kraft").is_dir()
        ]
        ids = {name: _cluster_id(version, name) for name in numbered}
        for place, earlier in enumerate(numbered):
            for distance, later in enumerate(numbered[place + 1 :], 1):
                if ids[earlier] == ids[later]:
                    found.setdefault(distance, []).append(Pair(version, earlier, later))
    return found


def _cluster_id(version: str, stage: str) -> str | None:
    return next((copy.row()["cluster_id"] for copy in read_copies(str(capture(version, stage) / "kraft"))), None)


def compared(
    spark: SparkSession, folder: Path, base: Path, mine: Sequence[Pair], chosen: random.Random
) -> list[Compared]:
    """Pairs of one distance, the runs of whose earlier stages are in `base`."""
    whole = copied(base, folder / "whole")
    wanted = audit([_later(whole, pair, full=True) for pair in mine])
    continued = copied(base, folder / "continued")
    confs = [_later(continued, pair) for pair in mine]
    _killed(confs, chosen)
    reports = audit(confs)
    tables = Warehouse(spark, str(continued / "tables"))
    run_id = next(report["run_id"] for report in reports.values())
    rows = tables.read(KRAFT_LOG_COPIES).where((F.col("run_id") == run_id) & F.col("base_run").isNotNull()).collect()
    based = {row["cluster"] for row in rows}
    changes, changes_wanted = recorded(tables), recorded(Warehouse(spark, str(whole / "tables")))
    found = []
    for pair in mine:
        name = pair.cluster
        differing = differences(_told(reports[name], continued), _told(wanted[name], whole))
        differing += differences(changes.get(name), changes_wanted.get(name), "changes")
        found.append(Compared(pair, name in based, differing))
    for each in (whole, continued):
        shutil.rmtree(each, ignore_errors=True)
    spark.catalog.clearCache()
    return found


def _later(folder: Path, pair: Pair, *, full: bool = False) -> Path:
    more = {"full": True} if full else {}
    return configuration(folder, pair.cluster, capture(pair.version, pair.later), **more)


def _killed(confs: Sequence[Path], chosen: random.Random) -> None:
    """A run that dies at a commit; when it has fewer than was drawn, at the last of all."""
    try:
        with killed_by(Killer(chosen.randint(2, 24), chosen.choice((BEFORE, AFTER)))):
            audit(confs)
    except Dead:
        return
    raise AssertionError("the run has fewer commits than were thought and came to its end")


def _told(report: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    told = said(report, folder)
    told["checks"] = [check for check in told["checks"] if check["id"] not in OF_THE_PART]
    told["notes"] = [note for note in told["notes"] if WHOLE_LOG not in note]
    return told


def tried(
    spark: SparkSession, folder: Path, chosen: Mapping[int, Sequence[Pair]], seed: int
) -> Iterator[tuple[int, list[Compared]]]:
    """Each distance with what became of its pairs."""
    base = folder / "base"
    earlier = {pair.cluster: pair for mine in chosen.values() for pair in mine}
    audit([configuration(base, name, capture(pair.version, pair.earlier)) for name, pair in sorted(earlier.items())])
    for distance, mine in sorted(chosen.items()):
        draw = random.Random(f"{seed} {distance}")  # noqa: S311 - the seed makes a failure repeatable
        yield distance, compared(spark, folder, base, mine, draw)


def main(argv: Sequence[str] | None = None) -> int:
    """Try the pairs and print the figures; 1 when a run that went on says something else."""
    parser = argparse.ArgumentParser(prog="tests.reliability.pairs", description=__doc__)
    parser.add_argument("--distances", type=int, nargs="*", help="of j from i (default: all)")
    parser.add_argument("--versions", nargs="*", default=[*VERSIONS, *KRAFT_VERSIONS])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file for the results (JSON)")
    arguments = parser.parse_args(argv)
    every = pairs(arguments.versions)
    chosen = {
        distance: mine for distance, mine in every.items() if not arguments.distances or distance in arguments.distances
    }
    results: list[Compared] = []
    lines = ["| stages apart | pairs | continued from the kept state | said the same |", "|---|---|---|---|"]
    with (
        tempfile.TemporaryDirectory(prefix="kraft-audit-pairs-") as folder,
        spark_session("small", "kraft-audit-pairs", cores=2, driver_memory="3g", settings=LONG_LIVED) as spark,
    ):
        for distance, found in tried(spark, Path(folder), chosen, arguments.seed):
            results += found
            lines.append(_line(str(distance), found))
            print(lines[-1], flush=True)
            for each in found:
                for line in each.differs[:8]:
                    print(f"        {each.pair.cluster} -> {each.pair.later}: {line}", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(each) for each in results], indent=1))
    print("\n".join([*lines, _line("all", results)]))
    return 0 if results and not any(each.differs for each in results) else 1


def _line(name: str, found: Sequence[Compared]) -> str:
    same = sum(not each.differs for each in found)
    return f"| {name} | {len(found)} | {sum(each.continued for each in found)} | {same} |"


if __name__ == "__main__":
    sys.exit(main())
