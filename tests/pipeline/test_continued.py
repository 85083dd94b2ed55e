"""A run that goes on from the state of the run before says what a run of the whole log says."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.audit.past import Finished, past_run
from jobs.audit.past_state import migration_znodes, past_kraft
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS
from schemas.entities import ENTITIES
from schemas.replayed import REPLAYED_STATES
from schemas.silver import FINDINGS
from tests.captures import capture
from tests.pipeline.audits import Audit, audit, settings_content
from transforms.report.json import to_json

OF_THE_RUN = {"run_id", "started_at", "finished_at", "cluster", "history", "notes", "resolved"}


def kept_audit(stage: str, warehouse: Path, version: str = "3.9.1") -> Audit:
    """An audit that keeps its state and continues one, however short the log is."""
    folder = capture(version, stage)
    kraft = {"folders": [str(folder / "kraft")], "keep_state_every": 1}
    return audit(settings_content(folder, warehouse, kraft=kraft))


def said(found: Audit) -> dict[str, Any]:
    """What a report says of the cluster, without what it says of the run and of the runs before."""
    report = json.loads(to_json(found.report))
    for name in OF_THE_RUN:
        report.pop(name, None)
    report["divergences"].pop("by_status", None)
    for row in report["divergences"]["rows"]:
        row.pop("status")
    return report


def silver(found: Audit) -> set[str]:
    """The rows of a run's silver tables."""
    tables = [*(entity.table for entity in ENTITIES), FINDINGS]
    return {f"{table.name} {_text(row)}" for table in tables for row in _plain(found, table)}


def _text(row: dict[str, Any]) -> str:
    """The two warehouses have fingerprint keys of their own."""
    return re.sub("hmac:[0-9a-f]+", "hmac", str(sorted(row.items())))


def _plain(found: Audit, table: Any) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in ("run_id", "cluster")} for row in found.rows(table)]


def base_runs(found: Audit) -> set[str | None]:
    return {row["base_run"] for row in found.rows(KRAFT_LOG_COPIES)}


# One warehouse, one migration, stage after stage: fresh dual write, changes, ZooKeeper down (nothing is mirrored), done.
STAGES = ("4-dual-write-fresh", "5-dual-write-changed", "8-zookeeper-behind", "12-finalized")


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Audit]:
    """Audits of the same stages that read the whole log."""
    made = {}
    for stage in STAGES[1:]:
        made[stage] = audit(settings_content(capture("3.9.1", stage), tmp_path_factory.mktemp("whole")))
        spark.catalog.clearCache()
    return made


@pytest.fixture(scope="module")
def series(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Audit, set[str]]]:
    warehouse = tmp_path_factory.mktemp("continued")
    made = {}
    for stage in STAGES:
        found = kept_audit(stage, warehouse)
        made[stage] = found, silver(found)
        spark.catalog.clearCache()
    return made


@pytest.mark.parametrize("stage", STAGES[1:])
def test_it_says_the_same_as_a_run_of_the_whole_log(
    series: dict[str, tuple[Audit, set[str]]], whole: dict[str, Audit], stage: str
) -> None:
    before, _ = series[STAGES[STAGES.index(stage) - 1]]
    found, rows = series[stage]
    assert base_runs(found) == {before.run_id}
    assert said(found) == said(whole[stage])
    assert rows ^ silver(whole[stage]) == set()


@pytest.mark.parametrize("stage", STAGES[1:])
def test_it_reads_only_what_is_new(series: dict[str, tuple[Audit, set[str]]], stage: str) -> None:
    before, now = series[STAGES[STAGES.index(stage) - 1]][0], series[stage][0]
    [(mirrored,)] = before.frame(KRAFT_LOG_COPIES).selectExpr("max(log_end_offset)").collect()
    offsets = [row["offset"] for row in now.rows(KRAFT_RECORDS, "checkpoint_offset IS NULL")]
    assert 0 < min(offsets) < mirrored
    assert len(offsets) == max(offsets) - min(offsets) + 1


def test_the_whole_log_is_still_there_to_be_asked(series: dict[str, tuple[Audit, set[str]]]) -> None:
    """`explain` and `diff --as-of` ask for any offset, whichever run read it."""
    last = series[STAGES[-1]][0]
    past = past_run(Finished(last.warehouse, last.cluster), last.run_id)
    kraft = past_kraft(past, migration_znodes(past))
    assert kraft is not None
    offsets = sorted(row["offset"] for row in kraft.records.select("offset").collect())
    assert offsets == list(range(kraft.side.plan.leading.end))


def test_another_log_is_read_from_its_start(spark: SparkSession, tmp_path: Path) -> None:
    """A quorum that was formatted anew has the same cluster id and may have the same epochs and offsets."""
    kept_audit("9-caught-up", tmp_path)
    other = kept_audit("retry-after-join", tmp_path)
    assert base_runs(other) == {None}


def test_a_log_with_findings_keeps_nothing(spark: SparkSession, tmp_path: Path) -> None:
    damaged = capture("3.9.1", "9-caught-up")
    copy = tmp_path / "copy"
    shutil.copytree(damaged, copy)
    for segment in copy.glob("kraft/*/__cluster_metadata-0/*.log"):
        content = bytearray(segment.read_bytes())
        content[len(content) // 2] ^= 1
        segment.write_bytes(content)
    folder = {"folders": [str(copy / "kraft")], "keep_state_every": 1}
    first = audit(settings_content(copy, tmp_path / "warehouse", kraft=folder))
    kept = first.warehouse.read(REPLAYED_STATES).collect()
    assert [row["offset"] for row in kept] == [-1]
