"""How fast a live tree is walked, beside a plain kazoo walk of the same tree.

    python -m tests.benchmarks.zookeeper_walk [--znodes 20000] [--repeat 3]

The plain walk asks for data and children one after the other; ours brings data, stat and ACL. Runs alternate, so that
a busy machine slows both; the ratio is of the best runs.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from kazoo.client import KazooClient

from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.sources.zookeeper.walk import LiveSettings, walk
from transforms.secrets import Fingerprinter
from transforms.zookeeper.read.redact import Redactor

_ROOT = "/config/topics"
_OPERATIONS_PER_MULTI = 500


def fill(address: str, znodes: int) -> None:
    """Make a flat tree of topic configurations."""
    client = KazooClient(address)
    client.start()
    client.ensure_path(_ROOT)
    for first in range(0, znodes, _OPERATIONS_PER_MULTI):
        transaction = client.transaction()
        for number in range(first, min(first + _OPERATIONS_PER_MULTI, znodes)):
            transaction.create(f"{_ROOT}/topic-{number:07d}", b'{"version":1,"config":{"retention.ms":"86400000"}}')
        transaction.commit()
    client.stop()
    client.close()


def plain(address: str) -> int:
    """Walk as one would without thinking: get, get_children, down."""
    client = KazooClient(address)
    client.start()
    count, paths = 0, [_ROOT]
    while paths:
        path = paths.pop()
        client.get(path)
        paths.extend(f"{path}/{name}" for name in client.get_children(path))
        count += 1
    client.stop()
    client.close()
    return count


def ours(address: str) -> int:
    """Walk with data, stat and ACL."""
    redactor = Redactor(Fingerprinter(b"benchmark"))
    return sum(1 for _ in walk(LiveSettings(address, roots=(_ROOT,), window=1000), redactor))


def main(argv: list[str] | None = None) -> int:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--znodes", type=int, default=20_000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args(argv)
    walls: dict[str, list[float]] = {"plain": [], "ours": []}
    processors: dict[str, list[float]] = {"plain": [], "ours": []}
    with zookeeper_server() as server:
        fill(server.address, options.znodes)
        for _ in range(options.repeat):
            for name, run in (("plain", plain), ("ours", ours)):
                wall, processor = time.perf_counter(), time.process_time()
                if run(server.address) != options.znodes + 1:
                    raise AssertionError(f"the {name} walk lost znodes")
                walls[name].append(time.perf_counter() - wall)
                processors[name].append(time.process_time() - processor)
    print("| walk over loopback | kazoo, get and get_children | ours: data, stat, ACL | ratio |")
    print("|---|---:|---:|---:|")
    for what, times in (("znodes/s", walls), ("znodes per processor second of the client", processors)):
        rates = {name: options.znodes / min(seconds) for name, seconds in times.items()}
        print(f"| {what} | {rates['plain']:,.0f} | {rates['ours']:,.0f} | {rates['ours'] / rates['plain']:.1f} |")
    print(f"\nMemory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
