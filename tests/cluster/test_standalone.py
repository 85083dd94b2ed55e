"""The pipeline on a real Spark cluster: a standalone master with two workers on loopback, submitted as users do."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
import yaml

from jobs.runtime.java import java_home, java_without_vectors
from jobs.runtime.spark import SMALL_SETTINGS
from tests.captures import capture

pytestmark = pytest.mark.live
ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
WORKERS = 2
UP_SECONDS = 120


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its address, the workers' folders, and the environment that its programs need."""

    master: str
    folders: list[Path]
    environment: dict[str, str]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with ExitStack() as stack:
        home = stack.enter_context(java_without_vectors(java_home()))
        # Jobs run without the checkout in the path: the code must come by --py-files.
        environment = os.environ | {
            "JAVA_HOME": str(home),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": LOOPBACK,
            "PYSPARK_PYTHON": sys.executable,
        }
        for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "PYTHONPATH"):
            environment.pop(name, None)
        port = _free_port()
        master = f"spark://{LOOPBACK}:{port}"
        log = tmp_path / "master.log"
        stack.enter_context(_daemon("master.Master", ["-h", LOOPBACK, "-p", str(port)], environment, log))
        _wait_for(log, "I have been elected leader", 1)
        folders = [tmp_path / f"worker{number}" for number in range(WORKERS)]
        for folder in folders:
            arguments = ["-h", LOOPBACK, "-c", "1", "-m", "1g", "-d", str(folder), master]
            stack.enter_context(_daemon("worker.Worker", arguments, environment, folder.with_suffix(".log")))
        _wait_for(log, "Registering worker", WORKERS)
        yield Cluster(master, folders, environment)


def test_the_pipeline_runs_on_two_workers_and_finds_the_lost_writes(cluster: Cluster, tmp_path: Path) -> None:
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
    settings = {
        # On so few rows all that takes time is compiling; what is judged here is that the work is spread.
        **SMALL_SETTINGS,
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.executor.memory": "700m",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        # A short run is over before the second compiler pays off.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", cluster.master, *options]
    program = [str(tmp_path / "pipeline.py"), "--conf", str(configuration)]
    shutil.copyfile(ROOT / "jobs" / "pipeline.py", program[0])
    done = subprocess.run(
        [*submit, "--py-files", str(_packages(tmp_path)), *program],
        cwd=tmp_path,
        env=cluster.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 20, done.stderr[-4000:]
    (report_file,) = (tmp_path / "reports").rglob("report.json")
    report = json.loads(report_file.read_text())
    assert report["divergences"]["by_class"] == {"lost_write": len(expected["divergences"])}
    assert report["counts"]["partitions"] == {
        "zookeeper": expected["zk_counts"]["partitions"],
        "kraft": expected["counts"]["partitions"],
    }
    ran = [re.findall(r"Finished task \S+ in stage (\S+)", _executor_log(worker)) for worker in cluster.folders]
    assert all(ran), "a worker did nothing"


def _packages(folder: Path) -> Path:
    """The code as a zip for --py-files, as a scheduler would ship it."""
    staged = folder / "staged"
    for name in ("jobs", "transforms", "schemas"):
        shutil.copytree(ROOT / name, staged / name, ignore=shutil.ignore_patterns("__pycache__"))
    return Path(shutil.make_archive(str(folder / "packages"), "zip", staged))


def _executor_log(worker: Path) -> str:
    return "".join(file.read_text(errors="replace") for file in worker.rglob("stderr"))


@contextmanager
def _daemon(name: str, arguments: list[str], environment: dict[str, str], log: Path) -> Iterator[None]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--webui-port", "0"]
    with log.open("wb") as output:
        process = subprocess.Popen([*command, *arguments], env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(log: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + UP_SECONDS
    while log.read_text(errors="replace").count(text) < times:
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])
