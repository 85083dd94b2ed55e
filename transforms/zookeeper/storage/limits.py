"""How much of a tree is held at once, whatever its files and its znodes say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from transforms.zookeeper.read.znode import Znode

# No server takes a request above jute.maxbuffer (1 MiB unless raised), and Kafka's largest znodes are far below.
MAX_ZNODE_BYTES = 16 * 1024 * 1024
BATCH_BYTES = 32 * 1024 * 1024

_Item = TypeVar("_Item")


def too_large(length: int) -> str:
    """What to say of a znode whose data is left out."""
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
