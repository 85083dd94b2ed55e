"""Copying the log of a running quorum, beside a plain copy of the same files: `python -m tests.benchmarks.live_copy`.

Starts three controllers and a broker of Kafka 3.9.1 on loopback, fills the log with ACLs, and prints the speed of a whole
copy, of the next one, of a file copy, the peak memory, and what the quorum noticed of continuous copying. With `--log` it
copies the segments of a folder, however large, from one controller that the tests' fake plays.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient, ResourcePattern, ResourceType

from jobs.commands.demo.kafka_servers import DEMO_JARS, KafkaServers, kafka_jars, kafka_servers
from jobs.sources.kraft.live.connection import parse_endpoint
from jobs.sources.kraft.live.copy import copy_quorum
from jobs.sources.kraft.live.quorum import QuorumClient, QuorumSettings
from tests.live.fake import CLUSTER_ID, FakeQuorum, fake_controllers

_AT_ONCE = 2000
_SECONDS = 10


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--acls", type=int, default=50_000)
    parser.add_argument("--log", type=Path, help="folder of segments that a faked controller serves, instead of Kafka")
    parser.add_argument("--only-copy", nargs=3, metavar=("CONTROLLERS", "ID", "DIR"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_copy:
        _only_copy(*arguments.only_copy)
        return
    if arguments.log:
        _measure_large(arguments.log)
        return
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    }
    broker = {"process.roles": "broker"}
    with (
        kafka_servers(kafka_jars(DEMO_JARS), brokers=1, common=authorizer, broker=broker) as servers,
        tempfile.TemporaryDirectory() as scratch,
    ):
        servers.start(servers.controllers)
        servers.start(servers.brokers)
        _fill(servers, arguments.acls)
        _measure(servers, Path(scratch))


def _fill(servers: KafkaServers, count: int) -> None:
    client = KafkaAdminClient(bootstrap_servers=servers.brokers[0].address)
    for start in range(0, count, _AT_ONCE):
        client.create_acls(
            [
                ACL(
                    f"User:user-{number}",
                    "*",
                    ACLOperation.READ,
                    ACLPermissionType.ALLOW,
                    ResourcePattern(ResourceType.TOPIC, f"topic-{number}"),
                )
                for number in range(start, min(start + _AT_ONCE, count))
            ]
        )
    client.close()


def _measure(servers: KafkaServers, scratch: Path) -> None:
    settings = QuorumSettings(tuple(map(parse_endpoint, servers.bootstrap)), servers.cluster_id)
    whole, files, again = [], [], []
    for number in range(5):
        folder = scratch / str(number)
        copied = copy_quorum(settings, folder)
        log = sum(segment.bytes for segment in copied.proof.segments)
        whole.append(log / copied.seconds / 1e6)
        next_one = copy_quorum(settings, folder)
        again.append((next_one.bytes_received, next_one.seconds))
        source = next(node for node in servers.controllers if node.node_id == copied.proof.leader_id).log_folder
        started = time.monotonic()
        shutil.copytree(source, scratch / f"files-{number}")
        size = sum(path.stat().st_size for path in source.glob("*.log"))
        files.append(size / (time.monotonic() - started) / 1e6)
    print(f"log: {copied.proof.log_end} records, {log / 1e6:.1f} MB")
    print(
        f"whole copy: {statistics.median(whole):.0f} MB/s; plain copy of the files: {statistics.median(files):.0f} MB/s"
    )
    print(f"next copy: {again[-1][0] / 1e3:.1f} kB in {again[-1][1] * 1000:.0f} ms")
    peak = _peak_of_copying(servers.bootstrap, servers.cluster_id, scratch / "memory")
    print(f"peak memory of a process that copies: {peak}")
    _disturbance(settings, scratch)


def _measure_large(source: Path) -> None:
    log = b"".join(path.read_bytes() for path in sorted(source.glob("*.log")))
    with fake_controllers(FakeQuorum.of_log(log), 1) as quorum, tempfile.TemporaryDirectory() as scratch:
        quorum.answer_bytes = 8 * 1024 * 1024
        started = time.monotonic()
        shutil.copytree(source, Path(scratch) / "files")
        files = time.monotonic() - started
        started = time.monotonic()
        peak = _peak_of_copying([str(quorum.controllers[0].endpoint)], CLUSTER_ID, Path(scratch) / "copy")
        seconds = time.monotonic() - started
        copied = b"".join(path.read_bytes() for path in sorted((Path(scratch) / "copy").rglob("*.log")))
    same = "the same bytes" if copied == log else "OTHER BYTES"
    print(f"log: {quorum.end} records, {len(log) / 1e6:.1f} MB; {same}")
    print(
        f"whole copy: {len(log) / seconds / 1e6:.0f} MB/s; plain copy of the files: {len(log) / files / 1e6:.0f} MB/s"
    )
    print(f"peak memory of a process that copies: {peak}")


def _peak_of_copying(controllers: list[str], cluster_id: str, folder: Path) -> str:
    command = [sys.executable, "-m", "tests.benchmarks.live_copy", "--only-copy"]
    command += [",".join(controllers), cluster_id, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _only_copy(controllers: str, cluster_id: str, folder: str) -> None:
    settings = QuorumSettings(tuple(map(parse_endpoint, controllers.split(","))), cluster_id)
    before = _peak_mb()
    copy_quorum(settings, Path(folder))
    print(f"{_peak_mb()} MB, {before} MB before it begins")


def _peak_mb() -> int:
    """What the process held at most; `getrusage` would begin with what its parent held."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def _disturbance(settings: QuorumSettings, scratch: Path) -> None:
    for phase, busy in (("idle", False), ("copying", True), ("idle", False)):
        with QuorumClient(settings) as quorum:
            before, end, copies = quorum.describe(), time.monotonic() + _SECONDS, 0
            while time.monotonic() < end:
                if busy:
                    shutil.rmtree(scratch / "again", ignore_errors=True)
                    copy_quorum(settings, scratch / "again")
                    copies += 1
                else:
                    time.sleep(0.2)
            after = quorum.describe()
        print(
            f"{phase:<8} {copies:>4} copies; epoch {before.leader_epoch} → {after.leader_epoch}; observers "
            f"{[each.replica_id for each in after.observers]}; high watermark +{after.high_watermark - before.high_watermark}"
        )


if __name__ == "__main__":
    main()
