"""Copies of real quorums on loopback: Kafka 3.9.1 over SASL_PLAINTEXT and 4.3.1 over mutual SASL_SSL, both with an authorizer.

Run by `make test-live`: the servers are started and ended here, their jars fetched once and held to a checksum.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from jobs.commands.demo.kafka_servers import DEMO_JARS, KafkaNode, KafkaServers, kafka_jars, kafka_servers
from jobs.sources.kraft.folder import read_copies
from jobs.sources.kraft.live.connection import Security, parse_endpoint
from jobs.sources.kraft.live.copy import CopyResult, copy_quorum
from jobs.sources.kraft.live.copy_folder import LOG_FOLDER
from jobs.sources.kraft.live.errors import QuorumError, RefusedError
from jobs.sources.kraft.live.messages import QuorumAnswer
from jobs.sources.kraft.live.quorum import QuorumClient, QuorumSettings
from tests.certificates import self_signed
from transforms.kraft.quorum import LogCopy, committed_end, plan_read

pytestmark = pytest.mark.live

PASSWORD = "open-sesame-4711"
KILLS = 10
SECONDS_OF_COPYING = 20
PINS = {"3.9.1": DEMO_JARS, "4.3.1": Path(__file__).with_name("kafka-4.3.1.sha256")}
# `admin` is what the controllers are to each other; `eve` has no right.
_PLAIN = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="admin" password="{PASSWORD}" user_admin="{PASSWORD}" user_eve="{PASSWORD}";'
)
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"


@dataclass
class Real:
    """A running quorum and how to read it."""

    servers: KafkaServers
    settings: QuorumSettings

    def copy(self, folder: Path, **values: Any) -> CopyResult:
        return copy_quorum(replace(self.settings, **values), folder)

    def describe(self) -> QuorumAnswer:
        with QuorumClient(self.settings) as quorum:
            return quorum.describe()

    def node(self, node_id: int) -> KafkaNode:
        return next(node for node in self.servers.controllers if node.node_id == node_id)

    def leader(self) -> KafkaNode:
        return self.node(self.describe().leader_id)

    def whole_again(self) -> None:
        """Every controller runs, and each voter follows."""
        gone = [n for n in self.servers.controllers if n.process is None or n.process.poll() is not None]
        self.servers.start(gone)
        until(lambda: all(v.log_end for v in self.describe().voters) and self.spread() < 100)

    def spread(self) -> int:
        ends = [voter.log_end or 0 for voter in self.describe().voters]
        return max(ends) - min(ends)


def until(there: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


@pytest.fixture(scope="module", params=sorted(PINS))
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    tls = request.param == "4.3.1"
    certificate = self_signed(tmp_path_factory.mktemp("certificate"))
    protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
    properties = {
        "listener.security.protocol.map": f"CONTROLLER:{protocol}",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "listener.name.controller.plain.sasl.jaas.config": _PLAIN,
        "listener.name.controller.scram-sha-256.sasl.jaas.config": _SCRAM,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:carol",
        # A log that grows, and snapshots soon.
        "metadata.max.idle.interval.ms": "10",
        "metadata.log.max.record.bytes.between.snapshots": "20000",
    }
    if tls:
        properties |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificate.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(certificate.file),
            "listener.name.controller.ssl.client.auth": "required",
        }
    scram = ("--add-scram", f"SCRAM-SHA-256=[name=carol,password={PASSWORD}]")
    with kafka_servers(kafka_jars(PINS[request.param]), common=properties, format_arguments=scram) as servers:
        servers.start(servers.controllers)
        security = Security(protocol, "PLAIN", "admin", PASSWORD)
        if tls:
            files = {"ca_file": certificate.file, "certificate_file": certificate.file, "key_file": certificate.key}
            security = replace(security, **files)
        endpoints = tuple(parse_endpoint(address) for address in servers.bootstrap)
        found = Real(servers, QuorumSettings(endpoints, servers.cluster_id, security, request_seconds=3))
        until(lambda: any(found.leader().log_folder.glob("*.checkpoint")) and found.describe().high_watermark > 300)
        yield found


def log_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def assert_is_the_nodes(copied: CopyResult, node: KafkaNode) -> None:
    """The copy's log is the node's, byte for byte, from where it begins."""
    mine, theirs = log_of(copied.folder / LOG_FOLDER), log_of(node.log_folder)
    begins = theirs.index(mine[:61])
    assert begins < 200, "at most the first batch can't be had"
    assert theirs[begins : begins + len(mine)] == mine
    assert len(mine) > 1000


def test_copies_are_the_leaders_files_up_to_the_high_watermark(real: Real, tmp_path: Path) -> None:
    real.whole_again()
    copied = real.copy(tmp_path)
    leader = real.node(copied.proof.leader_id)
    assert_is_the_nodes(copied, leader)
    checkpoints = list((tmp_path / LOG_FOLDER).glob("*.checkpoint"))
    assert checkpoints
    for path in checkpoints:
        assert path.read_bytes() == (leader.log_folder / path.name).read_bytes()
    [copy] = read_copies(tmp_path)
    assert (copy.problem, copy.notes, copy.torn_tail_bytes, copy.log_start_offset) == (None, (), 0, 0)
    facts = LogCopy.from_row(copy.row())
    assert committed_end([facts], plan_read([facts]), None, None).end_exclusive == copied.proof.log_end
    assert copied.proof.log_end <= real.describe().high_watermark
    assert copied.proof.voter_ids == (3000, 3001, 3002)


def test_the_next_copy_is_the_new_records_alone(real: Real, tmp_path: Path) -> None:
    first = real.copy(tmp_path)
    time.sleep(1)
    second = real.copy(tmp_path)
    assert second.resumed_at == first.proof.log_end < second.proof.log_end
    assert_is_the_nodes(second, real.node(second.proof.leader_id))


def test_the_leader_is_killed_in_mid_snapshot(real: Real, tmp_path: Path) -> None:
    random.seed(7)
    for number in range(KILLS):
        real.whole_again()
        leader = real.leader()
        timer = threading.Timer(random.uniform(0.05, 0.6), real.servers.signal, (leader, signal.SIGKILL))  # noqa: S311
        timer.start()
        copied = real.copy(tmp_path / str(number), snapshot_bytes=100, bytes_per_second=20_000.0)
        timer.join()
        assert_is_the_nodes(copied, real.node(copied.proof.leader_id))
    real.whole_again()


def test_the_leader_is_frozen(real: Real, tmp_path: Path) -> None:
    real.whole_again()
    leader = real.leader()
    real.servers.signal(leader, signal.SIGSTOP)
    try:
        copied = real.copy(tmp_path)
        assert copied.proof.leader_id != leader.node_id
        assert_is_the_nodes(copied, real.node(copied.proof.leader_id))
    finally:
        real.servers.signal(leader, signal.SIGCONT)
    real.whole_again()


def test_what_a_leader_without_followers_appends_is_not_taken(real: Real, tmp_path: Path) -> None:
    real.whole_again()
    leader = real.leader()
    followers = [node for node in real.servers.controllers if node is not leader]

    def thaw() -> None:
        for node in followers:
            real.servers.signal(node, signal.SIGCONT)

    for node in followers:
        real.servers.signal(node, signal.SIGSTOP)
    # Without followers the leader resigns after some seconds: then the copy needs another one.
    timer = threading.Timer(4, thaw)
    timer.start()
    before = len(log_of(leader.log_folder))
    until(lambda: len(log_of(leader.log_folder)) > before, 3)
    copied = real.copy(tmp_path)
    timer.join()
    real.whole_again()
    mine = log_of(tmp_path / LOG_FOLDER)
    assert copied.proof.log_end <= copied.proof.high_watermark
    for node in real.servers.controllers:
        assert mine in log_of(node.log_folder), f"{node.node_id} does not have what was called committed"


def test_a_user_without_rights_is_told_what_is_missing(real: Real, tmp_path: Path) -> None:
    security = replace(real.settings.security, username="eve")
    with pytest.raises(RefusedError, match="does not let user 'eve' fetch the metadata log: it needs CLUSTER_ACTION"):
        real.copy(tmp_path, security=security)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_called_so(real: Real, tmp_path: Path, mechanism: str) -> None:
    security = replace(real.settings.security, mechanism=mechanism, username="carol", password="wrong")
    for _ in range(5):
        with pytest.raises(RefusedError, match="refused user 'carol' or the password"):
            real.copy(tmp_path, security=security)


def test_scram_is_spoken(real: Real, tmp_path: Path) -> None:
    security = replace(real.settings.security, mechanism="SCRAM-SHA-256", username="carol")
    assert real.copy(tmp_path, security=security).proof.log_end > 0


def test_no_sasl_is_guessed(real: Real, tmp_path: Path) -> None:
    plain = replace(real.settings.security, protocol=real.settings.security.protocol.removeprefix("SASL_"))
    with pytest.raises(QuorumError, match="does its listener want SASL"):
        real.copy(
            tmp_path,
            security=plain if plain.tls else replace(plain, protocol="PLAINTEXT"),
            patience_seconds=1.0,
        )


def test_an_unknown_authority_is_refused(real: Real, tmp_path: Path) -> None:
    if not real.settings.security.tls:
        real.copy(tmp_path)
        return
    with pytest.raises(RefusedError, match="its certificate is not accepted"):
        real.copy(tmp_path, security=replace(real.settings.security, ca_file=None))


def test_a_client_without_a_certificate_is_refused(real: Real, tmp_path: Path) -> None:
    security = replace(real.settings.security, certificate_file=None, key_file=None)
    if not security.tls:
        real.copy(tmp_path, security=security)
        return
    with pytest.raises(RefusedError, match=r"ended TLS|no TLS connection"):
        real.copy(tmp_path, security=security)


def test_another_cluster_is_refused(real: Real, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="is a controller of another cluster than"):
        real.copy(tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAA")


def test_the_quorum_does_not_notice(real: Real, tmp_path: Path) -> None:
    real.whole_again()
    before = real.describe()
    end = time.monotonic() + SECONDS_OF_COPYING
    copies = 0
    while time.monotonic() < end:
        real.copy(tmp_path / str(copies))
        copies += 1
    after = real.describe()
    assert copies > 20
    assert (after.leader_id, after.leader_epoch) == (before.leader_id, before.leader_epoch)
    assert [voter.replica_id for voter in after.voters] == [voter.replica_id for voter in before.voters]
    assert after.observers == before.observers == ()
    assert after.high_watermark > before.high_watermark
