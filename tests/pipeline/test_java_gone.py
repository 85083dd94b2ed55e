"""Spark's Java that is killed amid a run, as a machine without memory does: one line, a failed row, and the next run is right."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import out_of_memory
from jobs.exit import CRASH
from jobs.sinks.reader import Folder
from schemas.gold import RUNS
from tests.captures import capture
from tests.pipeline.audits import audit, settings_content
from tests.reliability.killing import differences, said
from transforms.report.json import to_json

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
# The run itself, whose Java is killed once it has got as far as the step named.
KILLED = """
import importlib, os, signal, sys
from jobs.cli import main
from jobs.runtime.spark import java_of
module, name = sys.argv[1].split(":")
step = importlib.import_module(module)
real = getattr(step, name)
def killed(run, *more):
    os.kill(java_of(run.spark), signal.SIGKILL)
    return real(run, *more)
setattr(step, name, killed)
sys.exit(main(["run", "--conf", sys.argv[2]]))
"""


def content(folder: Path) -> dict[str, Any]:
    return settings_content(capture("3.9.1", "8"), folder / "w", cluster="c")


def killed_at(step: str, folder: Path) -> tuple[int, list[str]]:
    """Exit code of a run whose Java is killed at a step, and its lines but for those about its steps."""
    conf = folder / "c.yml"
    conf.write_text(json.dumps(content(folder)))
    command = [sys.executable, "-c", KILLED, step, str(conf)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    return ended.returncode, [line for line in ended.stderr.splitlines() if not line.endswith(" s")]


def runs(folder: Path) -> list[tuple[str, str | None]]:
    return list(Folder(str(folder / "w")).rows(RUNS, ["verdict", "failure"]).iter_rows())


@pytest.fixture(scope="module")
def undisturbed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return said(json.loads(to_json(audit(content(folder)).report)), folder)


@pytest.mark.parametrize("step", ["jobs.steps.ingest_zookeeper:run_step", "jobs.steps.materialize:examined"])
def test_it_is_one_line_and_a_failed_row_and_the_next_run_is_right(
    spark: SparkSession, undisturbed: dict[str, Any], tmp_path: Path, step: str
) -> None:
    assert killed_at(step, tmp_path) == (CRASH, [f"kraft-audit: {out_of_memory.JAVA}"])
    assert runs(tmp_path) == [("failed", out_of_memory.JAVA)]
    assert list((tmp_path / "w" / ".begun").glob("*.json")) == []
    again = audit(content(tmp_path)).report
    assert differences(said(json.loads(to_json(again)), tmp_path), undisturbed) == []


def test_once_all_is_examined_nobody_needs_it(undisturbed: dict[str, Any], tmp_path: Path) -> None:
    """What is left to do is the driver's, and it writes to a local folder itself."""
    code, lines = killed_at("jobs.steps.reconcile:write", tmp_path)
    assert (code, lines) == (undisturbed["exit_code"], [])
    assert runs(tmp_path) == [(undisturbed["verdict"], None)]
