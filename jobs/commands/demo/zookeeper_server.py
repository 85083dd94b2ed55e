"""The real ZooKeeper server on a copy of a data folder: for the demonstration and the tests, never for production.

Its jars come with pyspark. It listens on loopback only, and it ends with the process that started it, however that
ends.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from jobs.exit import AuditError
from jobs.runtime.java import java_home

LOOPBACK = "127.0.0.1"
JARS = (
    "zookeeper*",
    "slf4j-api*",
    "log4j-*",
    "netty-*",
    "metrics-core*",
    "snappy-java*",
    "commons-io*",
    "commons-cli*",
)
SERVER_CLASS = "org.apache.zookeeper.server.ZooKeeperServerMain"
LOG_CONFIGURATION = Path(__file__).parents[2] / "runtime" / "log4j2.properties"
# Sessions in the data folder are long dead, and with them would go the brokers' ephemeral znodes: they expire at the
# end of the tick they fall into, so the tick lasts ten days.
TEN_DAYS_MS = 864_000_000
BASE_CONFIGURATION = {
    "clientPortAddress": LOOPBACK,
    "tickTime": str(TEN_DAYS_MS),
    "minSessionTimeout": "4000",
    "maxSessionTimeout": str(TEN_DAYS_MS),
    "admin.enableServer": "false",
    "4lw.commands.whitelist": "srvr",
    "maxClientCnxns": "0",
    "autopurge.purgeInterval": "0",
}
# A pipe from this process to the server: when it closes, by a normal end or by a kill, the server stops.
LEASHED = 'exec 3<&0; ( cat <&3 >/dev/null; kill $$ 2>/dev/null ) >/dev/null 2>&1 & exec "$@" 3<&- </dev/null'
ATTEMPTS = 3
STOP_SECONDS = 10


class ZooKeeperServerError(AuditError):
    """The server did not come up; the text holds the first error in its log."""


@dataclass(frozen=True)
class ZooKeeperServer:
    """A running server. `address` is `host:port`; `secure_address` likewise, for TLS, if asked for."""

    address: str
    secure_address: str | None
    data_folder: Path
    process_id: int


@contextmanager
def zookeeper_server(
    data_folder: Path | None = None,
    *,
    config: Mapping[str, str] | None = None,
    jvm_options: Sequence[str] = (),
    secure: bool = False,
    timeout_seconds: float = 60,
) -> Iterator[ZooKeeperServer]:
    """Start a server on a copy of `data_folder` (which holds `version-2`; None for an empty tree) and yield it.

    config: further lines of zoo.cfg, e.g. `authProvider.sasl`. jvm_options: e.g.
    `-Djava.security.auth.login.config=…`. secure: open a TLS port as well; its key store belongs into `config`
    (`ssl.keyStore.location`, …). Raises `ZooKeeperServerError` when it does not serve within `timeout_seconds`,
    `JavaNotFoundError` without a Java.
    """
    with tempfile.TemporaryDirectory(prefix="kraft-audit-zookeeper-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch)
        _copy(data_folder, home / "data")
        process, server = _start(home, dict(config or {}), jvm_options, secure, timeout_seconds)
        try:
            yield server
        finally:
            _stop(process)


def _copy(source: Path | None, target: Path) -> None:
    (target / "version-2").mkdir(parents=True)
    for path in sorted((source / "version-2").iterdir()) if source else ():
        shutil.copyfile(path, target / "version-2" / path.name)


def _start(
    home: Path, config: Mapping[str, str], jvm_options: Sequence[str], secure: bool, timeout_seconds: float
) -> tuple[subprocess.Popen[bytes], ZooKeeperServer]:
    """Start on free ports; somebody else may take one meanwhile, so a server that can't bind gets another try."""
    deadline = time.monotonic() + timeout_seconds
    for attempt in range(1, ATTEMPTS + 1):
        port, secure_port = free_ports(2)
        ports = {"clientPort": str(port)} | ({"secureClientPort": str(secure_port)} if secure else {})
        file = _write_configuration(home, {**BASE_CONFIGURATION, **ports, **config})
        process = _launch(home, file, jvm_options)
        try:
            if _wait_until_serving(process, port, deadline):
                secure_address = f"{LOOPBACK}:{secure_port}" if secure else None
                return process, ZooKeeperServer(f"{LOOPBACK}:{port}", secure_address, home / "data", process.pid)
        except BaseException:
            _stop(process)
            raise
        died = process.poll() is not None
        _stop(process)
        if not died or attempt == ATTEMPTS or "BindException" not in _log(home):
            break
    raise ZooKeeperServerError(f"the ZooKeeper server did not come up: {_first_error(_log(home))}")


def _write_configuration(home: Path, config: Mapping[str, str]) -> Path:
    lines = {"dataDir": (home / "data").as_posix(), **config}
    file = home / "zoo.cfg"
    file.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    return file


def _launch(home: Path, file: Path, jvm_options: Sequence[str]) -> subprocess.Popen[bytes]:
    jars = Path(pyspark.__file__).parent / "jars"
    class_path = os.pathsep.join(str(path) for pattern in JARS for path in sorted(jars.glob(f"{pattern}.jar")))
    java = [str(java_home() / "bin" / "java"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    options = [
        f"-Dlog4j2.configurationFile={LOG_CONFIGURATION.as_uri()}",
        "-Dzookeeper.jmx.log4j.disable=true",
        *jvm_options,
    ]
    command = ["/bin/sh", "-c", LEASHED, "sh", *java, *options, "-cp", class_path, SERVER_CLASS, str(file)]
    environment = os.environ | {"KRAFT_AUDIT_JAVA_LOG": "warn"}
    with (home / "server.log").open("wb") as log:
        return subprocess.Popen(  # noqa: S603 - the command is ours, its parts are no shell text
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _wait_until_serving(process: subprocess.Popen[bytes], port: int, deadline: float) -> bool:
    while time.monotonic() < deadline and process.poll() is None:
        if b"Mode:" in _four_letters(port, b"srvr"):
            return True
        time.sleep(0.05)
    return False


def _four_letters(port: int, command: bytes) -> bytes:
    """Answer to a four-letter command; empty while the server does not listen."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as connection:
            connection.sendall(command)
            return b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return b""


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin:
        process.stdin.close()


def free_ports(count: int) -> list[int]:
    """Free ports on loopback."""
    listeners = [socket.create_server((LOOPBACK, 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _first_error(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line for line in lines if "ERROR" in line or "Exception" in line]
    causes = [line for line in lines if line.startswith("Caused by:")]
    said = (errors or lines or ["it logged nothing"])[:1] + causes[-1:]
    return "; ".join(said)[:500]


def _log(home: Path) -> str:
    file = home / "server.log"
    return file.read_text(errors="replace") if file.exists() else ""
