"""A server cut off from its quorum: it serves reads to sessions that accept that, and the walk accepts it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from jobs.commands.demo.zookeeper_server import JARS, zookeeper_server
from jobs.runtime.java import java_home
from jobs.sources.zookeeper.walk import LiveSettings, WalkSummary, ZooKeeperWalkError, walk
from tests.zookeeper import journal
from tests.zookeeper.journal import Node
from tests.zookeeper.trees import REDACTOR

pytestmark = pytest.mark.java


def free_ports(count: int) -> list[int]:
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


@contextmanager
def minority(folder: Path) -> Iterator[str]:
    """One of three servers, the other two never started."""
    client, *others = free_ports(7)
    data = folder / "data"
    (data / "version-2").mkdir(parents=True)
    (data / "myid").write_text("1")
    nodes = [Node("/", cversion=1), Node("/controller_epoch", b"5")]
    (data / "version-2" / "snapshot.0").write_bytes(journal.snapshot(nodes))
    lines = [f"dataDir={data}", f"clientPort={client}", "clientPortAddress=127.0.0.1", "tickTime=500"]
    # Without a quorum there are only local sessions.
    lines += ["localSessionsEnabled=true", "localSessionsUpgradingEnabled=true"]
    lines += ["initLimit=4", "syncLimit=4", "admin.enableServer=false"]
    lines += [f"server.{n + 1}=127.0.0.1:{others[2 * n]}:{others[2 * n + 1]}" for n in range(3)]
    (folder / "zoo.cfg").write_text("\n".join(lines))
    jars = Path(pyspark.__file__).parent / "jars"
    class_path = os.pathsep.join(str(path) for pattern in JARS for path in jars.glob(f"{pattern}.jar"))
    java = [str(java_home() / "bin" / "java"), "-Xmx128m", "-Dreadonlymode.enabled=true", "-cp", class_path]
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*java, main, str(folder / "zoo.cfg")], stdout=log, stderr=log)
    try:
        yield f"127.0.0.1:{client}"
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_a_minority_server_is_read_when_that_is_accepted(tmp_path: Path) -> None:
    with minority(tmp_path) as address:
        settings = LiveSettings(address, read_only=True, connect_timeout_seconds=20)
        deadline = time.monotonic() + 40
        while True:
            summary = WalkSummary()
            try:
                found = {znode.path: znode.data for znode in walk(settings, REDACTOR, summary)}
                break
            except ZooKeeperWalkError:
                assert time.monotonic() < deadline
        assert found == {"/controller_epoch": "5"}
        assert summary.read_only
        with pytest.raises(ZooKeeperWalkError, match="did not answer"):
            list(walk(LiveSettings(address, connect_timeout_seconds=2), REDACTOR))


def test_accepting_a_minority_changes_nothing_with_a_quorum() -> None:
    with zookeeper_server() as server:
        summary = WalkSummary()
        assert list(walk(LiveSettings(server.address, read_only=True), REDACTOR, summary)) == []
        assert not summary.read_only
