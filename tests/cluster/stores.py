"""An object store and a real HDFS on loopback, and audits whose sources, tables and reports are there.

What they take is fetched on first use, held to the hashes beside this file: Hadoop's jars from Maven Central (those of Spark's own
Hadoop client), moto, which answers as S3 does, and `hdfs-native` from PyPI.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import pyspark
import yaml
from pyarrow import fs

from jobs.commands.demo.kafka_servers import kafka_jars
from jobs.runtime.java import java_home
from jobs.runtime.spark import LOOPBACK
from schemas import bronze, gold, silver
from schemas.table import Table
from tests.captures import capture

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SPARK_JARS = Path(pyspark.__file__).parent / "jars"
HADOOP_AWS, MINICLUSTER = HERE / "hadoop-aws-3.5.0.sha256", HERE / "hadoop-minicluster-3.5.0.sha256"
BUCKET = "kraft-audit"
KEY_ENV = "KRAFT_AUDIT_STORES_KEY"
# Two stages of one migration, and what an audit of them exits with.
STAGES = {"earlier": "6", "later": "8"}
TABLES = (*bronze.TABLES, *silver.TABLES, *gold.TABLES)
_UP_SECONDS = 120
_RUN_SECONDS = 600
_TIMES = re.compile(
    r'"(started_at|finished_at|seconds|duration_ms|run_id|snapshot_id|time|at|read_at_ms|seen_at_ms)": [^,}\]]+'
)
# Whose rows hold a time, an id or the order in which workers came to an end in what they are about.
_OF_ONE_RUN = {"gold.runs", "gold.run_steps", "silver.examined", "gold.mails"}
_OF_A_READING = (
    "run_id",
    "first_seen_run",
    "snapshot_id",
    "measured_at",
    "read_at",
    "started_at",
    "finished_at",
    "location",
)


@dataclass(frozen=True)
class Store:
    """Where files can be: an address (or a folder), how Python gets there, and what programs must be told to."""

    root: str
    system: fs.FileSystem
    inner: str
    environment: Mapping[str, str] = field(default_factory=dict)
    single_driver: bool = False

    def put(self, folder: Path, name: str) -> None:
        """Copy a folder's files there."""
        target = f"{self.inner}/{name}"
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                there = f"{target}/{path.relative_to(folder).as_posix()}"
                if not isinstance(self.system, fs.S3FileSystem):
                    self.system.create_dir(there.rpartition("/")[0])
                with self.system.open_output_stream(there) as stream:
                    stream.write(path.read_bytes())

    def read(self, name: str) -> str:
        """The text of a file."""
        with self.system.open_input_stream(f"{self.inner}/{name}") as stream:
            return str(stream.readall().decode())

    def names(self, name: str) -> list[str]:
        """Files below a folder that need not be there."""
        found = self.system.get_file_info(fs.FileSelector(f"{self.inner}/{name}", recursive=True, allow_not_found=True))
        return [each.path for each in found if each.type == fs.FileType.File]


def packages(lock: Path) -> Path:
    """A folder with the packages of a lock file, for PYTHONPATH; installed when they are not there."""

    def install(draft: Path) -> None:
        # A lock file is complete; what `pyspark-client` takes beside itself is in the environment already.
        options = ["-q", "--disable-pip-version-check", "--require-hashes", "--no-deps", "--target", str(draft)]
        command = [sys.executable, "-m", "pip", "install", *options, "-r", str(lock)]
        subprocess.run(command, check=True, timeout=_RUN_SECONDS)

    return _installed(lock.stem, lock, install)


def python_with(lock: Path) -> Path:
    """The Python of a virtual environment that has the packages of a lock file and no others; made when it is not there."""

    def install(draft: Path) -> None:
        uv = [sys.executable, str(ROOT / "tools" / "run_uv.py")]
        subprocess.run([*uv, "venv", "-q", "--relocatable", "--python", sys.executable, str(draft)], check=True)
        sync = [*uv, "pip", "sync", "-q", "--require-hashes", "--python", str(draft / "bin" / "python"), str(lock)]
        subprocess.run(sync, check=True, timeout=_RUN_SECONDS)

    return _installed(f"{lock.stem}-environment", lock, install) / "bin" / "python"


def _installed(name: str, lock: Path, install: Callable[[Path], None]) -> Path:
    """The folder that is kept under a name for a lock file with this content."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kraft-audit"
    folder = base / f"{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"
    if not folder.is_dir():
        draft = folder.with_name(f"{folder.name}.{os.getpid()}.part")
        install(draft)
        draft.rename(folder)
    return folder


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """moto's server with one bucket; Spark gets there by hadoop-aws, Python by the environment."""
    port, jars = _free_port(), kafka_jars(HADOOP_AWS)
    address = f"http://{LOOPBACK}:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
    keys = {
        "AWS_ACCESS_KEY_ID": "of-the-tests",
        "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-tests",
        "AWS_REGION": "us-east-1",
    }
    defaults = {
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.executor.extraClassPath": f"{jars}/*",
        "spark.hadoop.fs.s3a.endpoint": address,
        "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }
    with _server(command, port, folder / "moto.log", {"PYTHONPATH": str(packages(HERE / "moto.lock"))}):
        system = fs.S3FileSystem(
            access_key=keys["AWS_ACCESS_KEY_ID"],
            secret_key=keys["AWS_SECRET_ACCESS_KEY"],
            region="us-east-1",
            endpoint_override=address,
            allow_bucket_creation=True,
        )
        system.create_dir(BUCKET)
        environment = {
            **keys,
            "AWS_ENDPOINT_URL": address,
            # delta-rs speaks to no store in clear text unless it is told to.
            "AWS_ALLOW_HTTP": "true",
            "SPARK_CONF_DIR": str(_spark_defaults(folder, defaults)),
        }
        yield Store(f"s3a://{BUCKET}", system, BUCKET, environment, single_driver=True)


@contextmanager
def hdfs(folder: Path) -> Iterator[Store]:
    """A name node and a data node; Spark's own jars get there, Python by hdfs-native."""
    port = _free_port()
    jars = f"{kafka_jars(MINICLUSTER)}/*{os.pathsep}{SPARK_JARS}/*"
    manager = ["org.apache.hadoop.test.MiniDFSClusterManager", "-nnport", str(port), "-datanodes", "1", "-format"]
    command = [
        *(str(java_home() / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars),
        *(*manager, "-D", f"hdfs.minidfs.basedir={folder / 'dfs'}"),
    ]
    python = packages(HERE / "hdfs.lock")
    # Hadoop's client sleeps this long when it closes a file whose block is not reported yet: by default 0.4 s, once for each file.
    delay = "spark.hadoop.dfs.client.block.write.locateFollowingBlock.initial.delay.ms"
    defaults = {"spark.hadoop.dfs.replication": "1", delay: "10"}
    with _server(command, port, folder / "hdfs.log", {}):
        system = _hdfs_system(python, port)
        _until(lambda: _writable(system), "HDFS takes no files")
        environment = {"PYTHONPATH": str(python), "SPARK_CONF_DIR": str(_spark_defaults(folder, defaults))}
        yield Store(f"hdfs://localhost:{port}/audit", system, "/audit", environment)


def _hdfs_system(python: Path, port: int) -> fs.FileSystem:
    sys.path.append(str(python))
    from hdfs_native.fsspec import HdfsFileSystem  # type: ignore[import-not-found] # noqa: PLC0415

    # As jobs/sources/remote.py: this process starts others.
    return fs.PyFileSystem(fs.FSSpecHandler(HdfsFileSystem("localhost", port, skip_instance_cache=True)))


def _writable(system: fs.FileSystem) -> bool:
    try:
        system.create_dir("/audit")
        with system.open_output_stream("/audit/.probe") as stream:
            stream.write(b"x")
    except (OSError, RuntimeError):
        return False
    return True


def configuration(folder: Path, store: Store, stage: str, **more: object) -> Path:
    """A configuration file for an audit of one stage that lies in the store, as its tables and reports do."""
    content: dict[str, object] = {
        "cluster": "c",
        "warehouse": f"{store.root}/tables",
        "warehouse_single_driver": store.single_driver,
        "zookeeper": {"folder": f"{store.root}/{stage}/zookeeper"},
        "kraft": {"folders": [f"{store.root}/{stage}/kraft"]},
        "report": {"folder": f"{store.root}/reports"},
        "secrets": {"fingerprint_key_env": KEY_ENV},
        "spark": {"profile": "small"},
        **more,
    }
    file = folder / f"{content['cluster']}-{stage}-{hashlib.sha256(str(more).encode()).hexdigest()[:6]}.yml"
    file.write_text(yaml.safe_dump(content))
    return file


def put_stages(store: Store) -> None:
    """Put both stages' sources into the store."""
    for name, stage in STAGES.items():
        for side in ("zookeeper", "kraft"):
            store.put(capture("3.9.1", stage) / side, f"{name}/{side}")


def local(folder: Path) -> Store:
    """A folder of this machine, for what an audit says where nothing is remote."""
    return Store(str(folder), fs.LocalFileSystem(), str(folder))


def start(arguments: Sequence[str], folder: Path, store: Store, **more: str) -> subprocess.Popen[str]:
    """Start `kraft-audit` in a process, and process group, of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "jobs.cli", *arguments],
        env=_environment(store) | more,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def done(started: subprocess.Popen[str]) -> subprocess.CompletedProcess[str]:
    """What became of it."""
    out, said = started.communicate(timeout=_RUN_SECONDS)
    return subprocess.CompletedProcess(started.args, started.returncode, out, said)


def run(arguments: Sequence[str], folder: Path, store: Store, **more: str) -> subprocess.CompletedProcess[str]:
    """Run `kraft-audit`."""
    return done(start(arguments, folder, store, **more))


def in_python(code: str, store: Store) -> None:
    """Run Python code that may go there; what has not ended after a minute is killed."""
    started = subprocess.Popen([sys.executable, "-c", code], env=_environment(store), start_new_session=True)
    try:
        assert started.wait(timeout=60) == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(started.pid, signal.SIGKILL)


def kill_when(started: subprocess.Popen[str], moment: Callable[[], bool]) -> None:
    """Kill Python and its Java at once, without a warning."""
    _until(lambda: moment() or started.poll() is not None, "the moment to kill did not come", _RUN_SECONDS)
    assert started.poll() is None, "the run ended before it could be killed"
    os.killpg(started.pid, signal.SIGKILL)
    started.communicate(timeout=60)


def _environment(store: Store) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SPARK_", "PYSPARK_", "AWS_", "HADOOP_"))
    }
    paths = os.pathsep.join(each for each in (str(ROOT), store.environment.get("PYTHONPATH")) if each)
    return {**kept, **environment_of(store), "PYTHONPATH": paths}


def environment_of(store: Store) -> dict[str, str]:
    """What whoever audits there sets: access to the store, and the fingerprint key."""
    return {KEY_ENV: "a key of the tests, as long as one is", **store.environment}


def report(store: Store, folder: str = "reports", *, cluster: str = "c") -> dict[str, Any]:
    """A cluster's report without what another run of the same files says otherwise."""
    text = store.read(f"{folder}/{cluster}/report.json")
    run_id = json.loads(text)["run_id"]
    text = text.replace(run_id, "RUN").replace(store.root, "ROOT").replace(f'"cluster": "{cluster}"', '"cluster": "c"')
    found: dict[str, Any] = json.loads(_TIMES.sub(r'"\1": null', text))
    return found


def table_rows(rows: pl.DataFrame, table: Table) -> Counter[str]:
    """A table's rows, without what is of one reading."""
    if table.full_name in _OF_ONE_RUN:
        return Counter({"rows": rows.height})
    kept = rows.drop([name for name in _OF_A_READING if name in rows.columns])
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in kept.iter_rows(named=True))


@contextmanager
def _server(command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    with log.open("wb") as said:
        server = subprocess.Popen(command, env=os.environ | environment, stdout=said, stderr=said, cwd=log.parent)
    try:
        _until(lambda: server.poll() is not None or _answers(port), f"{command[0]} does not answer")
        assert server.poll() is None, log.read_text(errors="replace")[-2000:]
        yield
    finally:
        stop(server)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process, by force where it does not end by itself."""
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _until(met: Callable[[], bool], otherwise: str, seconds: float = _UP_SECONDS) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, otherwise
        time.sleep(0.2)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("localhost", port), 1).close()
    except OSError:
        return False
    return True


def _spark_defaults(folder: Path, settings: Mapping[str, str]) -> Path:
    """A folder for SPARK_CONF_DIR."""
    made = folder / "spark-conf"
    made.mkdir()
    (made / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return made


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listener:
        return int(listener.getsockname()[1])
