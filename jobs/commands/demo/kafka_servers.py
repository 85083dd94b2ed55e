"""Real Kafka controllers and brokers on this machine: for the live demonstration and the tests, never for production.

Their jars come from Maven Central on first use, each held to a SHA-256. Servers listen on loopback only, and end with the
process that started them, however that ends.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from jobs.commands.demo.zookeeper_server import LEASHED, LOOPBACK, STOP_SECONDS, free_ports
from jobs.exit import AuditError
from jobs.runtime.java import java_home

DEMO_JARS = Path(__file__).with_name("kafka-3.9.1.sha256")
REPOSITORY = "https://repo1.maven.org/maven2"
_DOWNLOADS_AT_ONCE = 6
_DOWNLOAD_SECONDS = 120
_LOG4J = """log4j.rootLogger=WARN, stderr
log4j.logger.org.apache.kafka.metadata.migration=INFO
log4j.appender.stderr=org.apache.log4j.ConsoleAppender
log4j.appender.stderr.Target=System.err
log4j.appender.stderr.layout=org.apache.log4j.PatternLayout
log4j.appender.stderr.layout.ConversionPattern=%d %p %c{1}: %m%n
"""
_TELLING = re.compile(r"\b(WARN|ERROR|FATAL|KRaftMigrationDriver)\b")
_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class KafkaServerError(AuditError):
    """Jars could not be had, or a server did not come up; one line."""


def kafka_jars(pins: Path) -> Path:
    """The folder with the jars that a list of `SHA-256  repository path` names, fetched when they are not there.

    DEFAULT_ARTIFACT_REPOSITORY names a mirror of Maven Central, HTTPS_PROXY a proxy. Raises KafkaServerError.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kraft-audit" / pins.stem
    folder.mkdir(parents=True, exist_ok=True)
    wanted = [(digest, path) for digest, path in (line.split() for line in pins.read_text().splitlines())]
    with ThreadPoolExecutor(_DOWNLOADS_AT_ONCE) as pool:
        for done in [pool.submit(_have_jar, folder, digest, path) for digest, path in wanted]:
            done.result()
    return folder


def _have_jar(folder: Path, digest: str, path: str) -> None:
    target = folder / path.rpartition("/")[2]
    if target.is_file() and _sha256(target) == digest:
        return
    address = f"{os.environ.get('DEFAULT_ARTIFACT_REPOSITORY', REPOSITORY).rstrip('/')}/{path}"
    if not address.startswith("https://"):
        raise KafkaServerError("DEFAULT_ARTIFACT_REPOSITORY must be an https address")
    descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file, urllib.request.urlopen(address, timeout=_DOWNLOAD_SECONDS) as source:  # noqa: S310
            shutil.copyfileobj(source, file)
        if _sha256(Path(draft)) != digest:
            raise KafkaServerError(f"{target.name}: its SHA-256 is not the one that is pinned; not used")
        Path(draft).replace(target)
    except (urllib.error.URLError, OSError) as error:
        raise KafkaServerError(
            f"{target.name} could not be fetched from Maven Central ({getattr(error, 'reason', error)}); "
            "DEFAULT_ARTIFACT_REPOSITORY names a mirror, HTTPS_PROXY a proxy"
        ) from None
    finally:
        Path(draft).unlink(missing_ok=True)


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def random_uuid() -> str:
    """A new id in Kafka's spelling, never beginning with a dash."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        if not text.startswith("-"):
            return text


@dataclass
class KafkaNode:
    """A controller or broker: its properties, folder, further options of its JVM and, while it runs, its process."""

    node_id: int
    port: int
    folder: Path
    properties: dict[str, str]
    jvm_options: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Host and port of its listener."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log_folder(self) -> Path:
        """Its copy of the metadata log."""
        return self.folder / "data" / "__cluster_metadata-0"

    def said(self) -> str:
        """What it has logged."""
        file = self.folder / "server.log"
        return file.read_text(errors="replace") if file.exists() else ""

    @property
    def has_died(self) -> bool:
        """True if the process was started and has ended without being stopped."""
        return self.process is not None and self.process.poll() is not None

    def last_words(self) -> str:
        """One line: which node, whether it runs, and the newest thing it logged: a warning, an error, its migration's step."""
        found = [line for line in self.said().splitlines() if _TELLING.search(line)]
        state = "ended" if self.has_died else "runs" if self.process else "not started"
        return f"node {self.node_id} ({state}): {found[-1][:300] if found else 'logged nothing'}"


@dataclass
class KafkaServers:
    """A cluster's nodes on loopback. `jars` is what `kafka_jars` returned; `cluster_id` in Kafka's spelling."""

    jars: Path
    home: Path
    cluster_id: str
    controllers: list[KafkaNode] = field(default_factory=list)
    brokers: list[KafkaNode] = field(default_factory=list)

    @property
    def bootstrap(self) -> list[str]:
        """The controllers' addresses."""
        return [node.address for node in self.controllers]

    def start(self, nodes: Sequence[KafkaNode]) -> None:
        """Start nodes and wait until each listens. Raises KafkaServerError."""
        for node in nodes:
            self._launch(node)
        deadline = time.monotonic() + 90
        for node in nodes:
            self._wait(node, deadline)

    def signal(self, node: KafkaNode, number: signal.Signals) -> None:
        """Kill, freeze (SIGSTOP) or thaw (SIGCONT) a node's process."""
        if node.process is not None:
            os.kill(node.process.pid, number)
            if number == signal.SIGKILL:
                node.process.wait()

    def stop(self, nodes: Sequence[KafkaNode] | None = None) -> None:
        """Stop nodes (by default all), cleanly if possible."""
        chosen = [*self.brokers, *self.controllers] if nodes is None else nodes
        running = [node.process for node in chosen if node.process is not None and node.process.poll() is None]
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGCONT)
            process.terminate()
        for process in running:
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin:
                process.stdin.close()

    def run_tool(self, tool: str, *arguments: str) -> str:
        """Run one of Kafka's classes until it ends, and return its output. Raises KafkaServerError."""
        command = [*self._java(), tool, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603
        if done.returncode != 0:
            raise KafkaServerError(f"{tool} failed: {(done.stderr or done.stdout).strip().splitlines()[-1][:300]}")
        return done.stdout

    def _java(self) -> list[str]:
        log = self.home / "log4j.properties"
        if not log.exists():
            log.write_text(_LOG4J)
        java = str(java_home() / "bin" / "java")
        return [java, *_JVM, f"-Dlog4j.configuration={log.as_uri()}", "-cp", f"{self.jars}/*"]

    def _launch(self, node: KafkaNode) -> None:
        file = node.folder / "server.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in node.properties.items()))
        command = ["/bin/sh", "-c", LEASHED, "sh", *self._java(), *node.jvm_options, "kafka.Kafka", str(file)]
        with (node.folder / "server.log").open("ab") as log:
            node.process = subprocess.Popen(  # noqa: S603 - the command is ours, its parts are no shell text
                command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _wait(self, node: KafkaNode, deadline: float) -> None:
        while time.monotonic() < deadline and node.process is not None and node.process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, node.port), timeout=1):
                return
            time.sleep(0.1)
        errors = [line for line in node.said().splitlines() if "ERROR" in line or "Exception" in line]
        raise KafkaServerError(f"node {node.node_id} did not come up: {(errors or ['it logged nothing'])[0][:400]}")


@contextmanager
def kafka_servers(
    jars: Path,
    *,
    cluster_id: str | None = None,
    controllers: int = 3,
    brokers: int = 0,
    common: Mapping[str, str] | None = None,
    controller: Mapping[str, str] | None = None,
    broker: Mapping[str, str] | None = None,
    format_arguments: Sequence[str] = (),
) -> Iterator[KafkaServers]:
    """Prepare a cluster of controllers 3000… and brokers 0…, not started yet; everything ends and goes at the end.

    common, controller, broker: further properties. format_arguments: for `kafka-storage format`.
    """
    with tempfile.TemporaryDirectory(prefix="kraft-audit-kafka-", ignore_cleanup_errors=True) as scratch:
        servers = KafkaServers(jars, Path(scratch), cluster_id or random_uuid())
        ports = free_ports(controllers + brokers)
        ids = [3000 + number for number in range(controllers)]
        voters = ",".join(f"{node}@{LOOPBACK}:{port}" for node, port in zip(ids, ports, strict=False))
        base = {
            "controller.quorum.voters": voters,
            "controller.listener.names": "CONTROLLER",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            **(common or {}),
        }
        for node_id, port in zip(ids, ports, strict=False):
            own = {"process.roles": "controller", "listeners": f"CONTROLLER://{LOOPBACK}:{port}"}
            servers.controllers.append(_node(servers, node_id, port, {**base, **own, **(controller or {})}))
        for node_id, port in enumerate(ports[controllers:]):
            own = {"listeners": f"PLAINTEXT://{LOOPBACK}:{port}", "node.id": str(node_id)}
            servers.brokers.append(_node(servers, node_id, port, {**base, **own, **(broker or {})}))
        _format(servers, format_arguments)
        try:
            yield servers
        finally:
            servers.stop()


def _node(servers: KafkaServers, node_id: int, port: int, properties: dict[str, str]) -> KafkaNode:
    folder = servers.home / str(node_id)
    (folder / "data").mkdir(parents=True)
    named = {"node.id": str(node_id), "log.dirs": str(folder / "data"), **properties}
    named = {key: value.replace("{port}", str(port)) for key, value in named.items() if value != ""}
    return KafkaNode(node_id, port, folder, named)


def _format(servers: KafkaServers, arguments: Sequence[str]) -> None:
    """Let Kafka's own tool format the first controller, and give the others what it wrote, with ids of their own."""
    first, *others = [
        *servers.controllers,
        *(broker for broker in servers.brokers if "process.roles" in broker.properties),
    ]
    file = first.folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in first.properties.items()))
    servers.run_tool(
        "kafka.tools.StorageTool", "format", "-t", servers.cluster_id, "-c", str(file), "--ignore-formatted", *arguments
    )
    for node in others:
        shutil.copytree(first.folder / "data", node.folder / "data", dirs_exist_ok=True)
    for node in (first, *others):
        meta = node.folder / "data" / "meta.properties"
        kept = [line for line in meta.read_text().splitlines() if not line.startswith(("node.id=", "directory.id="))]
        meta.write_text("\n".join([*kept, f"node.id={node.node_id}", f"directory.id={random_uuid()}"]) + "\n")
