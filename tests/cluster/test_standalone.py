"""The pipeline on a real Spark cluster: a standalone master with two workers on loopback, submitted as users do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.captures import capture
from tests.cluster.standalone import standalone

pytestmark = pytest.mark.live


def test_the_pipeline_runs_on_two_workers_and_finds_the_lost_writes(tmp_path: Path) -> None:
    folder = capture("3.9.1", "quota-removal")
    expected = json.loads((folder / "expected.json").read_text())
    configuration = tmp_path / "audit.yml"
    content = {
        "cluster": "standalone",
        "warehouse": str(tmp_path / "warehouse"),
        "zookeeper": {"dump": str(folder / "zookeeper.jsonl.gz")},
        "kraft": {"folders": [str(folder / "kraft")]},
        "report": {"folder": str(tmp_path / "reports")},
        "spark": {"profile": "cluster"},
    }
    configuration.write_text(yaml.safe_dump(content))
    with standalone(tmp_path) as cluster:
        done = cluster.submit(configuration, {})
        assert done.returncode == 20, done.stderr[-4000:]
        assert all(cluster.finished_tasks()), "a worker did nothing"
    (report_file,) = (tmp_path / "reports").rglob("report.json")
    report = json.loads(report_file.read_text())
    assert report["divergences"]["by_class"] == {"lost_write": len(expected["divergences"])}
    assert report["counts"]["partitions"] == {
        "zookeeper": expected["zk_counts"]["partitions"],
        "kraft": expected["counts"]["partitions"],
    }
