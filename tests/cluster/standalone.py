"""A standalone Spark cluster on loopback, a master and two workers, and the pipeline submitted to it as users do."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from jobs.runtime.java import java_home, java_without_vectors
from jobs.runtime.spark import LOOPBACK, SMALL_SETTINGS
from tests.cluster.stores import stop

ROOT = Path(__file__).parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
WORKERS = 2
UP_SECONDS = 120
_SETTINGS = {
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


@dataclass(frozen=True)
class Cluster:
    """A running cluster: its address, the workers' folders, the environment that its programs need, and the code to submit."""

    master: str
    folders: list[Path]
    environment: dict[str, str]
    program: Path
    packages: Path

    def submit(self, configuration: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
        """Submit the pipeline; driver and executors get `environment`, too."""
        settings = _SETTINGS | {f"spark.executorEnv.{name}": value for name, value in environment.items()}
        options = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
        submit = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.master, *options]
        return subprocess.run(
            [*submit, "--py-files", str(self.packages), str(self.program), "--conf", str(configuration)],
            cwd=self.program.parent,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def finished_tasks(self) -> list[int]:
        """How many tasks each worker has done so far."""
        return [len(re.findall(r"Finished task \S+ in stage", _executor_log(folder))) for folder in self.folders]


@contextmanager
def standalone(folder: Path) -> Iterator[Cluster]:
    """Start it, with its logs and the workers' folders in `folder`, and stop it."""
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
        log = folder / "master.log"
        stack.enter_context(_daemon("master.Master", ["-h", LOOPBACK, "-p", str(port)], environment, log))
        _wait_for(log, "I have been elected leader", 1)
        folders = [folder / f"worker{number}" for number in range(WORKERS)]
        for worker in folders:
            arguments = ["-h", LOOPBACK, "-c", "1", "-m", "1g", "-d", str(worker), master]
            stack.enter_context(_daemon("worker.Worker", arguments, environment, worker.with_suffix(".log")))
        _wait_for(log, "Registering worker", WORKERS)
        program = folder / "pipeline.py"
        shutil.copyfile(ROOT / "jobs" / "pipeline.py", program)
        yield Cluster(master, folders, environment, program, _packages(folder))


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
            stop(process)


def _wait_for(log: Path, text: str, times: int) -> None:
    deadline = time.monotonic() + UP_SECONDS
    while log.read_text(errors="replace").count(text) < times:
        assert time.monotonic() < deadline, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])
