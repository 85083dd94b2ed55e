"""A Spark Connect server of the tests' own, on loopback, and an audit through it under the refusals of serverless compute."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

from jobs.runtime.java import java_home
from jobs.runtime.spark import DELTA_CATALOG, DELTA_EXTENSION, LOOPBACK

ROOT = Path(__file__).parents[2]
_START_SECONDS = 180
# As few tasks as a cluster of the tests has rows for; nothing else of the profiles: the server is somebody else's.
_SETTINGS = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    "spark.ui.enabled": "false",
    "spark.sql.extensions": DELTA_EXTENSION,
    "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "1",
    # A server keeps its own time zone: the audit asks for UTC.
    "spark.sql.session.timeZone": "America/New_York",
}


@contextmanager
def connect_server(log: Path) -> Iterator[str]:
    """Start the server, yield its address (`sc://…`), stop it; what it says goes to `log`."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port = probe.getsockname()[1]
    home = Path(pyspark.__file__).parent
    options = [part for key, value in _SETTINGS.items() for part in ("--conf", f"{key}={value}")]
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g", "--name", "connect"),
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *("--conf", f"spark.connect.grpc.binding.port={port}", *options, "spark-internal"),
    ]
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "JAVA_HOME": str(java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    with log.open("wb") as said:
        server = subprocess.Popen(command, env=environment, stdout=said, stderr=said, cwd=log.parent)
    try:
        _await(server, port, log)
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.terminate()
        server.wait(60)


def _await(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and server.poll() is None:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def through(address: str, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `kraft-audit` in a process of its own through the server, as serverless compute would let it."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_REMOTE": address,
        "PYTHONPATH": os.pathsep.join([str(ROOT), *(path for path in sys.path if path)]),
    }
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.serverless", *arguments],
        check=False,
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
