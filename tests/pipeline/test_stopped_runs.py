"""A run that is stopped from outside: by SIGTERM, by its time, by SIGKILL. It leaves a row, one line, and no doubt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import pipeline
from jobs.cli import main
from jobs.evidence.past_run import runs_of
from jobs.runtime.stopping import Stopping
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder
from schemas.gold import RUNS
from schemas.table import Table
from tests.captures import capture

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
# A run that stands still in the middle: everything before is as always.
STANDING_STILL = """
import sys, time
from jobs.steps import materialize
def stand_still(run, *_):
    print("standing", flush=True)
    run.spark.range(1).count()
    time.sleep(600)
materialize.run_step = stand_still
from jobs.cli import main
sys.exit(main(sys.argv[1:]))
"""


@dataclass
class Place:
    conf: Path
    root: Path

    def begin(self, *argv: str) -> subprocess.Popen[str]:
        """A run in a process of its own, which gets to the point where it stands still and no further."""
        command = [sys.executable, "-c", STANDING_STILL, "run", "--conf", str(self.conf), "--quiet", *argv]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ}
        )

    def start(self) -> subprocess.Popen[str]:
        """A run at the point where it stands still."""
        process = self.begin()
        assert process.stdout is not None
        assert process.stdout.readline() == "standing\n"
        return process


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = tmp_path_factory.mktemp("stopped")
    conf = root / "conf.yml"
    kraft = capture("4.3.1-kraft", "1-healthy") / "kraft"
    conf.write_text(
        f"cluster: stopped\nwarehouse: {root}/tables\nkraft: {{folders: ['{kraft}']}}\n"
        f"report: {{folder: '{root}/reports'}}\nspark: {{profile: small}}\n"
    )
    return Place(conf, root / "tables")


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("kraft-audit:")]


def test_every_end_from_outside_is_told_and_none_counts_as_finished(
    place: Place, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    process = place.start()
    asked = time.monotonic()
    process.terminate()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143
    assert time.monotonic() - asked < 60, "seconds, on a machine that has little to do"
    assert lines(err) == ["kraft-audit: stopped by SIGTERM; earlier runs and their reports stand"]
    warehouse = Warehouse(spark, str(place.root))
    assert [(run.verdict, run.failure, run.sequence) for run in runs_of(warehouse, "stopped")] == [
        ("failed", "stopped by SIGTERM", 1)
    ]

    # --timeout ends it in the same way, also while its Java starts. Java has its end of the pipes, so it is gone then, too.
    process = place.begin("--timeout", "0.02")
    _, err = process.communicate(timeout=180)
    assert process.returncode == 1
    said = "stopped after 0.02 minutes, as --timeout says"
    assert lines(err) == [f"kraft-audit: {said}; earlier runs and their reports stand"]

    process = place.start()
    assert runs_of(warehouse, "stopped")[-1].failure == said
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=120)
    died = runs_of(warehouse, "stopped")
    assert [run.sequence for run in died] == [1, 2, 3]
    assert died[-1].failure.startswith("died: ")
    where = ["--warehouse", str(place.root)]
    capsys.readouterr()
    assert main(["history", *where]) == 0
    assert "died: " in capsys.readouterr().out.splitlines()[1]
    assert main(["gates", *where, "--gate", "upgrade", "--allow-unknown"]) == 20
    assert "no run has finished" in capsys.readouterr().out
    assert main(["fleet", *where, "--json"]) == 0
    assert '"group": "failed"' in capsys.readouterr().out

    # The next run makes a row of it, and is the newest.
    assert main(["run", "--conf", str(place.conf), "--quiet"]) in (0, 10)
    runs = runs_of(warehouse, "stopped")
    assert [(run.failed, run.sequence) for run in runs] == [(True, 1), (True, 2), (True, 3), (False, 4)]
    assert runs[2].failure.startswith("died: ")
    assert list((place.root / ".begun").iterdir()) == []


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("failed", [False, True])
def test_a_run_that_is_stopped_while_its_row_is_stored_has_one(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: bool
) -> None:
    append, came = Warehouse.append, []

    def signalled(warehouse: Warehouse, table: Table, *rows: Any) -> None:
        append(warehouse, table, *rows)
        if table is RUNS and not came:
            came.append(True)
            # It came while the row was stored: Python gets to it afterwards.
            os.kill(os.getpid(), signal.SIGTERM)

    content = place.conf.read_text().replace(str(place.root), str(tmp_path / "tables"))
    conf = tmp_path / "conf.yml"
    conf.write_text(content.replace("/kraft'", "/nowhere'") if failed else content)
    # It would end the process of the tests.
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    monkeypatch.setattr(Warehouse, "append", signalled)
    assert main(["run", "--conf", str(conf), "--quiet"]) == 143
    (run,) = runs_of(Folder(str(tmp_path / "tables")), "stopped")
    assert run.failed == failed
    assert ("nowhere" in run.failure) == failed


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("step", ["publish", "after_run"])
def test_a_run_that_is_stopped_after_its_rows_ends_at_once_and_counts(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], step: str
) -> None:
    def stopped_here(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    conf = tmp_path / "conf.yml"
    conf.write_text(place.conf.read_text().replace(str(place.root), str(tmp_path / "tables")))
    # It would end the process of the tests.
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    monkeypatch.setattr(pipeline, step, stopped_here)
    assert main(["run", "--conf", str(conf), "--quiet"]) == 143
    assert lines(capsys.readouterr().err) == ["kraft-audit: stopped by SIGTERM; earlier runs and their reports stand"]
    (run,) = runs_of(Folder(str(tmp_path / "tables")), "stopped")
    assert (run.failed, run.sequence) == (False, 1)
    assert list((tmp_path / "tables" / ".begun").iterdir()) == []
