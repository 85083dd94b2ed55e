"""How fast a ZooKeeper snapshot becomes Arrow, beside ZooKeeper's own load of the same file.

    python -m tests.benchmarks.zookeeper_snapshot [--partitions 200000] [--repeat 5]

Prints a table. Seconds of a busy machine tell little; the ratio, measured side by side, does.
"""

from __future__ import annotations

import argparse
import resource
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.sources.zookeeper.folder import read_folder
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.state import znodes_to_state
from transforms.zookeeper.storage import scan
from transforms.zookeeper.storage.digest import UNCOUNTED, VERSION
from transforms.zookeeper.storage.snapshot import open_snapshot

_REPLICAS = 3
_PARTITIONS_PER_TOPIC = 20
_STATE = b'{"controller_epoch":1,"leader":%d,"version":1,"leader_epoch":4,"isr":[%d,%d,%d]}'


def nodes(partitions: int) -> Iterator[tuple[str, bytes | None]]:
    """Yield a cluster's znodes in depth-first order: path and data."""
    yield "", b""
    yield "/brokers", None
    yield "/brokers/topics", None
    for topic in range(partitions // _PARTITIONS_PER_TOPIC):
        path = f"/brokers/topics/team.events-{topic:06d}"
        brokers = [(topic + replica) % 60 for replica in range(_REPLICAS)]
        assignment = ",".join(f'"{number}":{brokers}'.replace(" ", "") for number in range(_PARTITIONS_PER_TOPIC))
        identity = f"{topic:021d}A"
        yield (
            path,
            f'{{"partitions":{{{assignment}}},"topic_id":"{identity}","adding_replicas":{{}},"version":3}}'.encode(),
        )
        yield f"{path}/partitions", None
        for number in range(_PARTITIONS_PER_TOPIC):
            yield f"{path}/partitions/{number}", None
            yield f"{path}/partitions/{number}/state", _STATE % (brokers[0], *brokers)
    yield "/config", None
    yield "/config/topics", None
    for topic in range(partitions // _PARTITIONS_PER_TOPIC):
        yield f"/config/topics/team.events-{topic:06d}", b'{"version":1,"config":{"retention.ms":"86400000"}}'


def write_snapshot(file: Path, partitions: int) -> int:
    """Write a snapshot of a cluster with so many partitions; returns its znodes."""
    stat = struct.pack(">qqqqqiiiqq", 1, 5, 9, 1_700_000_000_000, 1_700_000_000_001, 3, 1, 0, 0, 9)
    open_acl = struct.pack(">qiii", 1, 1, 31, 5) + b"world" + struct.pack(">i", 6) + b"anyone"
    parts = [struct.pack(">iiqii", 0x5A4B534E, 2, -1, 0, 1), open_acl]
    head = len(parts)
    for path, data in nodes(partitions):
        held = struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
        parts.append(struct.pack(">i", len(path)) + path.encode() + held + stat)
    parts.append(struct.pack(">i", 1) + b"/")
    content = b"".join(parts)
    sealed = content + struct.pack(">qi", zlib.adler32(content), 1) + b"/"
    snapshot = open_snapshot(sealed)
    # What ZooKeeper would write behind it, so that it is recomputed on reading.
    digests, _ = scan.crcs(snapshot.data, snapshot.positions, scan.as_bytes(UNCOUNTED.encode()))
    sealed += struct.pack(">qiq", 9, VERSION, int(digests.sum(dtype="uint64")))
    file.write_bytes(sealed + struct.pack(">qi", zlib.adler32(sealed), 1) + b"/")
    file.with_name("log.a").write_bytes(struct.pack(">iiq", 0x5A4B4C47, 2, 0))
    return len(parts) - head - 1


def best(repeat: int, work: Callable[[], object]) -> tuple[float, float]:
    """Return the best wall and processor seconds of several runs."""
    walls, processors = [], []
    for _ in range(repeat):
        wall, processor = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
    return min(walls), min(processors)


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--partitions", type=int, default=200_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(argv)
    redactor = Redactor(Fingerprinter(b"benchmark"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "version-2").mkdir()
        file = folder / "version-2" / "snapshot.9"
        znodes = write_snapshot(file, options.partitions)

        def read() -> int:
            return sum(batch.num_rows for batch in read_folder(folder, redactor))

        if read() != znodes:
            raise AssertionError("the reader lost znodes")
        wall, processor = best(options.repeat, read)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        batches = list(read_folder(folder, redactor))
        _, states = best(2, lambda: [znodes_to_state(batch) for batch in batches])
        empty = best(1, lambda: start(None))[0]
        server = best(1, lambda: start(folder))[0] - empty
    print("| what | znodes/s | beside ZooKeeper's own load |")
    print("|---|---:|---:|")
    own = znodes / max(server, 1e-3)
    print(f"| ZooKeeper server, load of {znodes:,} znodes | {own:,.0f} | 1 |")
    print(f"| snapshot to Arrow, wall clock | {znodes / wall:,.0f} | {znodes / wall / own:.1f} |")
    print(
        f"| snapshot to Arrow, processor time of one core | {znodes / processor:,.0f} | {znodes / processor / own:.1f} |"
    )
    print(f"| Arrow to state rows, processor time | {znodes / states:,.0f} | {znodes / states / own:.1f} |")
    print(f"\nMemory at most {memory:,.0f} MiB, numpy, numba and Spark's Python included.")
    return 0


def start(folder: Path | None) -> None:
    """Start ZooKeeper on a folder and stop it: it serves when it has loaded everything."""
    with zookeeper_server(folder, timeout_seconds=300):
        return


if __name__ == "__main__":
    sys.exit(main())
