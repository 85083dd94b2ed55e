"""Live walks of a real ZooKeeper server."""

from __future__ import annotations

import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from jobs.commands.demo.zookeeper_server import ZooKeeperServer, zookeeper_server
from jobs.sources.zookeeper.folder import read_folder
from jobs.sources.zookeeper.live import read_live
from jobs.sources.zookeeper.walk import LiveSettings, SaslSettings, TlsSettings, WalkSummary, ZooKeeperWalkError, walk
from schemas.zookeeper.paths import NEVER_READ
from tests.captures import capture
from tests.certificates import self_signed
from tests.zookeeper import journal
from tests.zookeeper.journal import Node
from tests.zookeeper.trees import REDACTOR, codes, dump_batches, of, state_rows
from transforms.zookeeper.read.arrow import znode_batch

pytestmark = pytest.mark.java

STAGE = ("3.9.1", "5-dual-write-changed")


def rows(batches: list[Any]) -> dict[str, dict[str, Any]]:
    return {row["path"]: row for batch in batches for row in batch.to_pylist()}


def walked(settings: LiveSettings, summary: WalkSummary | None = None) -> dict[str, dict[str, Any]]:
    return rows(list(read_live(settings, REDACTOR, summary)))


@contextmanager
def client(address: str, **options: Any) -> Iterator[KazooClient]:
    connection = KazooClient(address, **options)
    connection.start(30)
    try:
        yield connection
    finally:
        connection.stop()
        connection.close()


@pytest.fixture(scope="module")
def server() -> Iterator[ZooKeeperServer]:
    with zookeeper_server() as running:
        yield running


def test_a_walk_equals_the_dump_of_the_same_tree() -> None:
    summary = WalkSummary()
    with zookeeper_server(capture(*STAGE) / "zookeeper") as server:
        seen = rows(list(read_live(LiveSettings(server.address), REDACTOR, summary, batch_rows=100)))
    dumped = rows(dump_batches(*STAGE))
    unneeded = {path for path in dumped if path == "/" or path.startswith(NEVER_READ)}
    assert seen == {path: row for path, row in dumped.items() if path not in unneeded}
    newest = max(row["pzxid"] for row in dumped.values())
    assert summary.znodes == len(seen)
    assert summary.first_zxid == summary.last_zxid >= newest
    assert (summary.denied, summary.vanished, summary.reconnects, summary.read_only) == (0, 0, 0, False)


def test_the_folder_of_a_running_server_equals_its_walk(server: ZooKeeperServer) -> None:
    with client(server.address) as writer, client(server.address) as passing:
        writer.ensure_path("/config/topics")
        for name in ("plain", "ünï", "gone"):
            writer.create(f"/config/topics/{name}", f'{{"version":1,"config":{{"retention.ms":"{name}🗝"}}}}'.encode())
        writer.delete("/config/topics/gone")
        writer.set("/config/topics/plain", b"\xff\xfe")
        writer.set_acls("/config/topics/plain", [*OPEN_ACL_UNSAFE, make_digest_acl("u", "secret", read=True)])
        writer.ensure_path("/brokers/ids")
        writer.create("/brokers/ids/1", b"{}", ephemeral=True)
        passing.create("/brokers/ids/2", b"{}", ephemeral=True)
        passing.stop()
        for _ in range(3):
            writer.create("/config/changes_", b"", sequence=True)
        writer.create("/admin", os.urandom(900_000).hex()[:900_000].encode())
        transaction = writer.transaction()
        transaction.set_data("/config", b"never")
        transaction.delete("/nowhere")
        transaction.commit()
        live = walked(LiveSettings(server.address))
        stored = rows(list(read_folder(server.data_folder, REDACTOR)))
    assert live.keys() == {path for path in stored if path != "/" and not path.startswith(NEVER_READ)}
    assert {path: stored[path] for path in live} == live
    assert "/brokers/ids/1" in live
    assert "/brokers/ids/2" not in live
    assert live["/config/topics/ünï"]["data"] == '{"version":1,"config":{"retention.ms":"ünï🗝"}}'
    assert live["/config/topics/plain"]["problem"]
    assert live["/admin"]["data_length"] == 900_000
    assert "secret" not in repr(live)


def test_znodes_that_may_not_be_read_are_findings(server: ZooKeeperServer) -> None:
    digest = "auditor:pa55word"
    with client(server.address, auth_data=[("digest", digest)]) as owner:
        owner.ensure_path("/feature/below")
        owner.set_acls("/feature", [make_digest_acl("auditor", "pa55word", all=True)])
    summary = WalkSummary()
    roots = ("/feature", "/controller_epoch")
    znodes = list(walk(LiveSettings(server.address, roots=roots), REDACTOR, summary))
    assert summary.denied == 1
    assert codes(state_rows([znode_batch(znodes)])) == ["CAP-07"]
    allowed = walked(LiveSettings(server.address, roots=roots, digest=digest))
    assert allowed.keys() == {"/feature", "/feature/below"}
    assert allowed["/feature"]["acl"][0]["id"].startswith("auditor:")
    assert "pa55word" not in repr(LiveSettings(server.address, digest=digest))


def test_znodes_that_vanish_are_left_out(server: ZooKeeperServer) -> None:
    with client(server.address) as writer:
        for number in range(40):
            writer.create(f"/kafka-acl/Topic/t{number:02d}", b"", makepath=True)
        summary = WalkSummary()
        settings = LiveSettings(server.address, roots=("/kafka-acl",), window=4)
        paths = []
        for znode in walk(settings, REDACTOR, summary):
            paths.append(znode.path)
            if len(paths) == 10:
                writer.delete("/kafka-acl/Topic/t00")
                writer.delete("/kafka-acl/Topic/t01")
    assert summary.vanished == 2
    assert len(paths) == 40
    assert summary.last_zxid >= summary.first_zxid + 2


def test_a_chroot_and_a_slow_pace(server: ZooKeeperServer) -> None:
    with client(server.address) as writer:
        for number in range(20):
            writer.create(f"/prod/kafka/admin/delete_topics/t{number}", b"", makepath=True)
    started = time.monotonic()
    seen = walked(LiveSettings(f"{server.address}/prod/kafka", requests_per_second=100))
    assert time.monotonic() - started > 0.35
    assert len(seen) == 22
    assert "/admin/delete_topics/t7" in seen


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    settings = LiveSettings(f"127.0.0.1:{port}", connect_timeout_seconds=1)
    with pytest.raises(ZooKeeperWalkError, match=r"did not answer within 1 s: check the address"):
        walked(settings)


def test_sasl_digest_md5(tmp_path: Path) -> None:
    login = tmp_path / "jaas.conf"
    login.write_text('Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_auditor="pa55"; };\n')
    with zookeeper_server(
        config={"authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
        jvm_options=[f"-Djava.security.auth.login.config={login}"],
    ) as server:
        identity = SaslSettings(username="auditor", password="pa55")
        options = {"mechanism": "DIGEST-MD5", "username": "auditor", "password": "pa55"}
        with client(server.address, sasl_options=options) as owner:
            owner.create("/controller_epoch", b"7")
            acl = owner.get_acls("/controller_epoch")[0][0]
            owner.set_acls("/controller_epoch", [acl._replace(id=acl.id._replace(scheme="sasl", id="auditor"))])
        assert "pa55" not in repr(identity)
        seen = walked(LiveSettings(server.address, sasl=identity))
        assert seen["/controller_epoch"]["data"] == "7"
        assert walked(LiveSettings(server.address))["/controller_epoch"]["problem"].startswith("NoAuth")
        wrong = LiveSettings(
            server.address, sasl=SaslSettings(username="auditor", password="no"), connect_timeout_seconds=5
        )
        with pytest.raises(ZooKeeperWalkError):
            walked(wrong)


def test_tls_in_both_directions(tmp_path: Path) -> None:
    certificate = self_signed(tmp_path)
    config = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "ssl.keyStore.location": str(certificate.both),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(certificate.file),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "need",
        "ssl.hostnameVerification": "false",
    }
    with zookeeper_server(capture(*STAGE) / "zookeeper", config=config, secure=True) as server:
        assert server.secure_address
        tls = TlsSettings(ca_file=str(certificate.file), cert_file=str(certificate.file), key_file=str(certificate.key))
        assert len(walked(LiveSettings(server.secure_address, tls=tls))) == len(walked(LiveSettings(server.address)))
        nobody = TlsSettings(ca_file=str(certificate.file))
        with pytest.raises((ZooKeeperWalkError, ssl.SSLError)):
            walked(LiveSettings(server.secure_address, tls=nobody, connect_timeout_seconds=3))


@contextmanager
def relay(target: list[str]) -> Iterator[str]:
    """A port that leads to `target[0]`, which may change: a server that comes back at the same address."""
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                host, port = target[0].split(":")
                try:
                    far = socket.create_connection((host, int(port)), timeout=5)
                except OSError:
                    near.close()
                    continue
                far.settimeout(None)
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=copy, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def many(folder: Path, count: int) -> Path:
    """A data folder with `count` topic configs below one parent, and a znode of a megabyte."""
    nodes = [Node("/", cversion=1), Node("/config", None, cversion=1), Node("/config/topics", None, cversion=count)]
    nodes += [Node(f"/config/topics/t{number:06d}", b'{"version":1,"config":{}}') for number in range(count)]
    nodes.append(Node("/config/topics/wide", b"x" * 1_000_000))
    target = folder / "version-2"
    target.mkdir(parents=True)
    (target / "snapshot.0").write_bytes(journal.snapshot(nodes))
    return folder


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back_in_the_middle_of_a_walk(tmp_path: Path) -> None:
    count = 4000
    with zookeeper_server(many(tmp_path, count)) as first:
        target = [first.address]
        with relay(target) as address:
            summary = WalkSummary()
            settings = LiveSettings(address, roots=("/config",), window=50, patience_seconds=60)
            paths = []
            znodes = walk(settings, REDACTOR, summary)
            for znode in znodes:
                paths.append(znode.path)
                if len(paths) == count // 2:
                    break
            os.kill(first.process_id, signal.SIGKILL)
            with zookeeper_server(first.data_folder) as second:
                target[0] = second.address
                paths += [znode.path for znode in znodes]
    assert summary.reconnects >= 1
    assert len(paths) == len(set(paths)) == count + 3


def test_a_server_that_stays_away_is_told_in_one_line(tmp_path: Path) -> None:
    with zookeeper_server(many(tmp_path, 2000)) as server:
        settings = LiveSettings(server.address, roots=("/config",), window=20, patience_seconds=1)
        znodes = walk(settings, REDACTOR)
        for _ in range(100):
            next(znodes)
        os.kill(server.process_id, signal.SIGKILL)
        with pytest.raises(ZooKeeperWalkError, match=r"was lost after \d+ znodes and did not come back within 1 s"):
            list(znodes)


@pytest.mark.slow
def test_a_hundred_thousand_znodes_below_one_parent(tmp_path: Path) -> None:
    count = 100_000
    told: list[int] = []
    with zookeeper_server(many(tmp_path, count)) as server:
        total = 0
        for batch in read_live(LiveSettings(server.address, window=1000), REDACTOR, progress=told.append):
            assert batch.num_rows <= 10_000
            total += batch.num_rows
    assert total == told[-1] == count + 3


def test_quotas_of_a_walk_are_rows(server: ZooKeeperServer) -> None:
    with client(server.address) as writer:
        writer.create("/config/users/u", b'{"version":1,"config":{"request_percentage":"5"}}', makepath=True)
    found = of(state_rows(list(read_live(LiveSettings(server.address), REDACTOR))), "client_quotas")
    assert [row["value"] for row in found] == [5.0]
