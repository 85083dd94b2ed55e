"""What hostile servers and small files that claim much cost until they are refused.

    python -m tests.reliability.hostile

Prints tables for docs/reliability.md: seconds, connections and requests of each server; seconds and memory of each file.
"""

from __future__ import annotations

import gzip
import logging
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

from jobs.sources.zookeeper.dump import read_dump
from jobs.sources.zookeeper.folder import read_folder
from tests.zookeeper import journal
from tests.zookeeper.journal import Node
from tests.zookeeper.test_bombs import MIB, line, zipped
from tests.zookeeper.test_hostile import CASES, PATIENCE, ended
from tests.zookeeper.trees import REDACTOR


def main() -> int:
    """Print the tables."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)
    print(
        f"| server, patience {PATIENCE:g} s | seconds | connections | requests | what is said |\n|---|---:|---:|---:|---|"
    )
    for name, server, settings, _ in CASES:
        seconds, said, connections, requests = ended(server, settings)
        print(f"| {name} | {seconds:.1f} | {connections} | {requests:,} | {said.partition(': ')[2] or said} |")
    print(
        "\n| file | bytes | decompressed | seconds | peak MB of Python | what is said |\n|---|---:|---:|---:|---:|---|"
    )
    for name, make in BOMBS.items():
        with tempfile.TemporaryDirectory() as scratch:
            file, size, read = make(Path(scratch))
            print(f"| {name} | {file.stat().st_size:,} | {size:,} | {_cost(read)} |")
    return 0


def _cost(read: Callable[[], str]) -> str:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        said = read()
    except Exception as error:
        said = str(error).rpartition("; ")[0] or str(error)
    seconds, memory = time.perf_counter() - started, tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{seconds:.1f} | {memory / MIB:.0f} | {said.rpartition('/')[2]}"


Bomb = tuple[Path, int, Callable[[], str]]


def _zeros(folder: Path) -> Bomb:
    return zipped(folder, b"", 400 * MIB), 400 * MIB, lambda: _rows(read_folder(folder, REDACTOR))


def _head_and_zeros(folder: Path) -> Bomb:
    head = journal.snapshot([Node("/")])[:20]
    return zipped(folder, head, 400 * MIB), 400 * MIB, lambda: _rows(read_folder(folder, REDACTOR))


def _large_lines(folder: Path) -> Bomb:
    file = folder / "dump.jsonl.gz"
    with gzip.open(file, "wb") as out:
        for number in range(200):
            out.write(line(f"/n{number}", b"x" * MIB))
    return file, 200 * 4 * MIB // 3, lambda: _rows(read_dump(file, REDACTOR))


def _endless_line(folder: Path) -> Bomb:
    file = folder / "dump.jsonl.gz"
    with gzip.open(file, "wb") as out:
        out.write(b'{"path": "/endless", "data": "')
        for _ in range(400):
            out.write(b"x" * MIB)
    return file, 400 * MIB, lambda: _rows(read_dump(file, REDACTOR))


def _rows(batches: object) -> str:
    return f"read: {sum(batch.num_rows for batch in batches)} rows"  # type: ignore[attr-defined]


BOMBS: dict[str, Callable[[Path], Bomb]] = {
    "snapshot.gz of zeros": _zeros,
    "snapshot.gz, a head and zeros": _head_and_zeros,
    "dump.jsonl.gz of lines of 1.3 MiB": _large_lines,
    "dump.jsonl.gz of one line": _endless_line,
}


if __name__ == "__main__":
    sys.exit(main())
