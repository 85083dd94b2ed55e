"""A run over several clusters: each is told what it would be told alone, and one cluster's fault is its own."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from jobs.exit import USAGE
from jobs.run.run import Failure
from schemas.bronze import ZK_ZNODES
from schemas.entities.topics import TOPICS
from schemas.gold import CHECKS, RUNS
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]
GOOD = capture("3.9.1", "5")


def faulty(name: str) -> Callable[[Callable[[Path], Content]], Callable[[Path], Content]]:
    """Have a cluster of good files but for one source in the run over all clusters of the tests."""

    def register(prepare: Callable[[Path], Content]) -> Callable[[Path], Content]:
        in_fleet(name)(lambda folder: settings_content(GOOD, folder, **prepare(folder)))
        return prepare

    return register


@faulty("missing")
def _missing(folder: Path) -> Content:
    return {"zookeeper": {"dump": str(folder / "nowhere.jsonl")}}


@faulty("empty")
def _empty(folder: Path) -> Content:
    (folder / "empty.jsonl").write_text("")
    return {"zookeeper": {"dump": str(folder / "empty.jsonl")}}


@faulty("text")
def _text(folder: Path) -> Content:
    (folder / "text.jsonl").write_text("<html>no dump</html>\n" * 10)
    return {"zookeeper": {"dump": str(folder / "text.jsonl")}}


@faulty("unreadable")
def _unreadable(folder: Path) -> Content:
    (folder / "version-2").mkdir()
    (folder / "version-2" / "snapshot.1").write_bytes(b"not a snapshot")
    return {"zookeeper": {"folder": str(folder)}}


@faulty("no-log")
def _no_log(folder: Path) -> Content:
    (folder / "3000" / "__cluster_metadata-0").mkdir(parents=True)
    return {"kraft": {"folders": [str(folder)]}}


@faulty("hostile")
def _hostile(folder: Path) -> Content:
    hostile = folder / "hostile.jsonl.gz"
    with gzip.open(GOOD / "zookeeper.jsonl.gz", "rt") as lines, gzip.open(hostile, "wt") as out:
        out.writelines(line.replace("orders", "<script>") for line in lines)
    return {"zookeeper": {"dump": str(hostile)}}


FAULTY = {
    "missing": "there is no file",
    "empty": "holds no Kafka metadata",
    "text": "holds no Kafka metadata",
    "unreadable": "no usable snapshot",
}


def test_one_clusters_fault_is_its_own(fleet: Mapping[str, Audit | Failure]) -> None:
    failed = {name: each for name, each in fleet.items() if isinstance(each, Failure)}
    assert failed.keys() == FAULTY.keys()
    for name, text in FAULTY.items():
        assert (failed[name].exit_code, text in failed[name].reason) == (USAGE, True), failed[name].reason
    good, hostile = fleet["3.9.1-5"], fleet["hostile"]
    assert isinstance(good, Audit)
    assert (good.report.verdict, good.report.divergences.total) == ("clean", 0)
    assert isinstance(hostile, Audit)
    assert hostile.report.verdict == "errors"
    bare = fleet["no-log"]
    assert isinstance(bare, Audit)
    assert bare.report.verdict == "errors"


def test_a_failed_cluster_is_in_gold_with_the_reason(fleet: Mapping[str, Audit | Failure]) -> None:
    good = fleet["3.9.1-5"]
    assert isinstance(good, Audit)
    [first] = [row["started_at"] for row in good.rows(RUNS)]
    rows = {row["cluster"]: row for row in good.warehouse.read(RUNS).where(F.col("started_at") == first).collect()}
    assert rows.keys() == fleet.keys()
    for name, each in fleet.items():
        if isinstance(each, Failure):
            assert (rows[name]["verdict"], rows[name]["failure"]) == ("failed", each.reason)
            assert rows[name]["report"] is None
        else:
            assert rows[name]["failure"] is None


def test_a_table_has_a_few_files_of_a_run_however_many_its_clusters(fleet: Mapping[str, Audit | Failure]) -> None:
    """A file for each cluster is thousands a day, and a fifth of the run that writes them."""
    warehouse = next(each.warehouse for each in fleet.values() if isinstance(each, Audit))
    assert warehouse.read(CHECKS, 0).select("cluster").distinct().count() > 20
    written = {
        table.full_name: len(warehouse.read(table, 0).inputFiles()) for table in (CHECKS, TOPICS.table, ZK_ZNODES)
    }
    assert all(1 <= files <= 6 for files in written.values()), written
