"""Six captures through Spark Connect, under the refusals of serverless compute: what a session of this process finds, and nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from schemas import bronze, gold, silver
from schemas.gold import RUNS
from schemas.table import Table
from tests.captures import capture
from tests.cluster.connect import ROOT, connect_server, through
from tests.cluster.stores import packages
from tests.conftest import KEY_ENV

pytestmark = pytest.mark.live
CAPTURES = (
    ("3.9.1", "8"),
    ("3.9.1", "quota-removal"),
    ("3.9.1", "blocked-by-missing-broker"),
    ("3.9.1", "rolled-back"),
    ("4.3.1-kraft", "8"),
    ("4.4.0-kraft", "11"),
)
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
_TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
# Whose rows hold a time, an id or the order in which workers came to an end in what they are about.
_OF_ONE_RUN = {"gold.runs", "gold.run_steps", "silver.examined", "gold.mails"}
# What another run of the same files says otherwise.
_TIMES = re.compile(
    r'"(started_at|finished_at|seconds|duration_ms|run_id|snapshot_id|time|at|read_at_ms|seen_at_ms)": [^,}\]]+'
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server") / "server.log") as address:
        yield address


@pytest.fixture(scope="module")
def folders(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same run in a session of its own and through the server: where each of them left its tables and reports."""
    made, seconds = {}, {}
    for name in ("classic", "connect"):
        folder = tmp_path_factory.mktemp(name)
        arguments = ["run", "--conf", *_configurations(folder)]
        begun = time.monotonic()
        done = through(server, arguments, folder) if name == "connect" else _classic(arguments, folder)
        seconds[name] = time.monotonic() - begun
        assert done.returncode == 20, done.stderr[-3000:]
        made[name] = folder
    print(f"\nsix captures: classic {seconds['classic']:.0f} s, Spark Connect {seconds['connect']:.0f} s")
    return made


def _configurations(folder: Path) -> list[str]:
    """Files in the folder, their paths relative to it, as somebody writes them by hand."""
    for version, stage in CAPTURES:
        files = capture(version, stage)
        name = f"{version}-{stage}"
        content: dict[str, Any] = {
            "cluster": name,
            "warehouse": "warehouse",
            "report": {"folder": "reports"},
            "secrets": {"fingerprint_key_env": KEY_ENV},
        }
        if (files / "zookeeper.jsonl.gz").exists():
            content["zookeeper"] = {"folder": str(files / "zookeeper")}
        if (files / "kraft").is_dir():
            content["kraft"] = {"folders": [str(files / "kraft")]}
        (folder / f"{name}.yml").write_text(yaml.safe_dump(content))
    return [f"{version}-{stage}.yml" for version, stage in CAPTURES]


def _classic(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "jobs.cli", *arguments]
    return subprocess.run(
        command, check=False, env=environment, cwd=folder, capture_output=True, text=True, timeout=900
    )


@pytest.mark.parametrize("name", [f"{version}-{stage}" for version, stage in CAPTURES])
def test_reports_are_equal(folders: dict[str, Path], name: str) -> None:
    told = {where: _report(folder / "reports" / name / "report.json") for where, folder in folders.items()}
    assert told["connect"]["checks"]
    assert told["connect"] == told["classic"]


def _report(file: Path) -> dict[str, Any]:
    text = file.read_text()
    run_id = json.loads(text)["run_id"]
    found: dict[str, Any] = json.loads(_TIMES.sub(r'"\1": null', text.replace(run_id, "RUN")))
    return found


@pytest.mark.parametrize("table", _TABLES, ids=lambda table: table.full_name)
def test_tables_are_equal_and_open_to_every_reader(folders: dict[str, Path], table: Table) -> None:
    there = {where: _folder(folder, table).exists() for where, folder in folders.items()}
    assert there["connect"] == there["classic"]
    if not there["connect"]:
        return
    made = DeltaTable(str(_folder(folders["connect"], table)))
    protocol = made.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert not protocol.reader_features
    assert not protocol.writer_features
    assert "collate" not in made.schema().to_json()
    if table.full_name not in _OF_ONE_RUN:
        rows = {where: _rows(_folder(folder, table)) for where, folder in folders.items()}
        assert rows["connect"] == rows["classic"]


def test_runs_are_all_there(folders: dict[str, Path]) -> None:
    rows = DeltaTable(str(_folder(folders["connect"], RUNS))).to_pyarrow_table().to_pylist()
    assert {row["cluster"] for row in rows} == {f"{version}-{stage}" for version, stage in CAPTURES}
    assert all(row["verdict"] != "failed" for row in rows)


def _folder(folder: Path, table: Table) -> Path:
    return folder / "warehouse" / table.layer.value / table.name


def _rows(folder: Path) -> Counter[str]:
    rows = DeltaTable(str(folder)).to_pyarrow_table().to_pylist()
    return Counter(json.dumps(_lasting(row), default=str, sort_keys=True) for row in rows)


_OF_A_READING = ("run_id", "first_seen_run", "snapshot_id", "measured_at", "read_at", "started_at", "finished_at")


def _lasting(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _OF_A_READING}


def test_pyspark_client_alone_is_enough_here(server: str, tmp_path: Path) -> None:
    """Without Spark's Java part, and without Java."""
    client, files = packages(Path(__file__).with_name("pyspark-client.lock")), capture("3.9.1", "8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {
        "SPARK_REMOTE": server,
        "JAVA_HOME": "/nowhere",
        "PYTHONPATH": os.pathsep.join([str(client), str(ROOT)]),
    }
    where = "import pyspark; print(pyspark.__file__)"
    shown = [sys.executable, "-c", where]
    found = subprocess.run(shown, check=True, env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert found.stdout.startswith(str(client))
    arguments = ["check", "--zookeeper", str(files / "zookeeper"), "--kraft", str(files / "kraft"), "--out", "out"]
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", *arguments],
        check=False,
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 10, done.stderr[-3000:]
    assert json.loads((tmp_path / "out" / "report.json").read_text())["verdict"] == "warnings"


def test_a_run_whose_time_is_over_leaves_its_rows(server: str, tmp_path: Path) -> None:
    """The session is the server's: only this run's queries end."""
    conf = Path(_configurations(tmp_path)[0])
    for minutes in ("0.05", "0.1", "0.2", "0.4"):
        done = through(server, ["run", "--conf", str(conf), "--timeout", minutes], tmp_path)
        assert done.returncode == 1, done.stderr[-3000:]
        said = f"stopped after {minutes} minutes, as --timeout says"
        assert done.stderr.count(said) == 1
        if (tmp_path / "warehouse" / "gold" / "runs" / "_delta_log").exists():
            break
    rows = DeltaTable(str(_folder(tmp_path, RUNS))).to_pyarrow_table().to_pylist()
    assert {(row["cluster"], row["verdict"], row["failure"]) for row in rows} == {("3.9.1-8", "failed", said)}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_through_it(server: str, folders: dict[str, Path], notebook: Path) -> None:
    environment = {"warehouse": str(folders["connect"] / "warehouse"), "cluster": "3.9.1-8"}
    arguments = ["--notebook", str(notebook), *(f"{name}={value}" for name, value in environment.items())]
    done = through(server, arguments, folders["connect"])
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
