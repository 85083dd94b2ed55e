"""The embedded server serves a capture's tree as it was, also encrypted and authenticated, and ends with its owner."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError

from jobs.commands.demo.zookeeper_server import ZooKeeperServerError, zookeeper_server
from jobs.runtime.java import packaged_home
from tests.captures import capture
from tests.certificates import self_signed

pytestmark = pytest.mark.java

ROOT = Path(__file__).parents[2]
JAAS = 'Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_auditor="open-sesame"; };'


@pytest.fixture
def packaged_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime that machines without a Java get: it is cut down, so it must prove that it can do this."""
    monkeypatch.setenv("JAVA_HOME", str(packaged_home()))


def _client(address: str, **options: object) -> KazooClient:
    client = KazooClient(address, timeout=10, **options)
    client.start(15)
    return client


def _tree(client: KazooClient, path: str = "/") -> dict[str, tuple[int, int]]:
    _, stat = client.get(path)
    found = {path: (stat.mzxid, stat.ephemeralOwner)}
    for name in client.get_children(path):
        found |= _tree(client, f"{path.rstrip('/')}/{name}")
    return found


@pytest.mark.parametrize("stage", ["1-zookeeper-only", "8-zookeeper-behind"])
def test_the_tree_is_the_captured_one_with_its_ephemerals(stage: str, packaged_java: None) -> None:
    folder = capture("3.9.1", stage)
    before = {path.name: path.read_bytes() for path in (folder / "zookeeper" / "version-2").iterdir()}
    with gzip.open(folder / "zookeeper.jsonl.gz", "rt") as lines:
        captured = [json.loads(line) for line in lines]
    with zookeeper_server(folder / "zookeeper") as server:
        client = _client(server.address)
        served = _tree(client)
        client.stop()
    expected = {znode["path"]: (znode["mzxid"], znode["ephemeral_owner"]) for znode in captured}
    assert {path: stat for path, stat in served.items() if not path.startswith("/zookeeper")} == {
        path: stat for path, stat in expected.items() if not path.startswith("/zookeeper")
    }
    assert any(owner for _, owner in served.values())
    assert before == {path.name: path.read_bytes() for path in (folder / "zookeeper" / "version-2").iterdir()}
    with pytest.raises(ProcessLookupError):
        os.kill(server.process_id, 0)


def test_tls_and_sasl_work_with_the_packaged_java(tmp_path: Path, packaged_java: None) -> None:
    certificate = self_signed(tmp_path)
    jaas = tmp_path / "jaas.conf"
    jaas.write_text(JAAS)
    config = {
        "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "ssl.keyStore.location": str(certificate.both),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(certificate.file),
        "ssl.trustStore.type": "PEM",
        "ssl.clientAuth": "want",
    }
    options = [f"-Djava.security.auth.login.config={jaas}"]
    tls = {"use_ssl": True, "ca": str(certificate.file), "verify_certs": False}
    sasl = {"mechanism": "DIGEST-MD5", "username": "auditor", "password": "open-sesame"}
    with zookeeper_server(config=config, jvm_options=options, secure=True) as server:
        assert server.secure_address
        client = _client(server.secure_address, sasl_options=sasl, **tls)
        assert client.get_children("/") == ["zookeeper"]
        client.stop()
        stranger = KazooClient(server.secure_address, timeout=10, sasl_options=sasl | {"password": "wrong"}, **tls)
        # The refusal may come before kazoo has said that there is a connection, which then is a time-out to it.
        with pytest.raises((AuthFailedError, ConnectionClosedError, SessionExpiredError, KazooTimeoutError)):
            stranger.start(15)
            stranger.get_children("/")
        stranger.stop()


def test_a_server_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(ZooKeeperServerError, match=r"(?s)did not come up: .*nonsense"),
        zookeeper_server(config={"tickTime": "nonsense"}),
    ):
        pytest.fail("it must not serve")


def test_it_dies_with_the_process_that_started_it() -> None:
    program = "\n".join(
        [
            "import time",
            "from jobs.commands.demo.zookeeper_server import zookeeper_server",
            "with zookeeper_server() as server:",
            "    print(server.process_id, flush=True)",
            "    time.sleep(600)",
        ]
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment) as owner:
        assert owner.stdout
        server = int(owner.stdout.readline())
        owner.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while _alive(server) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _alive(server)


def _alive(process_id: int) -> bool:
    """True unless the process is gone or waits as a zombie for whoever adopted it."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process_id)], capture_output=True, text=True, check=False)
    return done.stdout.strip() not in ("",) and not done.stdout.startswith("Z")
