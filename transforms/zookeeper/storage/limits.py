"""Limits of the part of a tree that is in memory, for any files and znodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from transforms.zookeeper.read.znode import Znode

# No server takes a request above jute.maxbuffer (1 MiB unless raised), and Kafka's largest znodes are far below.
MAX_ZNODE_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 32 * 1024 * 1024
# Spark hands 16,384 rows to Python at once, and no column of them can have 2 GiB (`jobs.runtime.spark`). What is no larger
# than this may come in any number, and larger ones may have so much together: then no 16,384 of them reach that.
SMALL_ZNODE_BYTES = 64 * 1024
LARGE_ZNODES_BYTES = 768 * 1024 * 1024

_Item = TypeVar("_Item")


class TooLargeError(Exception):
    """A tree that can't be handed on: one line."""

    for_the_user = True


class LargeZnodes:
    """Counts the data of a tree's large znodes as its batches pass."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch. Raises TooLargeError when that is more than Kafka's znodes ever have."""
        lengths = pc.fill_null(pc.binary_length(batch["data"]), 0)
        large = lengths.filter(pc.greater(lengths, SMALL_ZNODE_BYTES))
        self._bytes += pc.sum(large).as_py() or 0 if len(large) else 0
        if self._bytes > LARGE_ZNODES_BYTES:
            raise TooLargeError(
                f"znodes above {SMALL_ZNODE_BYTES // 1024} KiB have more than {LARGE_ZNODES_BYTES // 1024**2} MiB together: "
                "Kafka's never do; read Kafka's chroot alone"
            )
        return batch


def too_large(length: int) -> str:
    """The message for a znode whose data is left out."""
    return f"its {length} bytes are more than the {MAX_ZNODE_BYTES} that are read of a znode"


def groups(items: Iterable[_Item], rows: int, size: Callable[[_Item], int]) -> Iterator[list[_Item]]:
    """Yield items in groups of at most `rows` and, but for a single larger one, of at most BATCH_BYTES."""
    group: list[_Item] = []
    total = 0
    for item in items:
        length = size(item)
        if group and (len(group) == rows or total + length > BATCH_BYTES):
            yield group
            group, total = [], 0
        group.append(item)
        total += length
    if group:
        yield group


def znode_bytes(znode: Znode) -> int:
    """About how much a znode takes in a batch."""
    # A text may take three times its bytes where those were no UTF-8.
    return len(znode.path) + len(znode.data or "") + 100
