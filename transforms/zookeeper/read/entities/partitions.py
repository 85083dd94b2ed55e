"""`/brokers/topics/<topic>/partitions/<partition>/state`: leader, epochs, ISR (`TopicPartitionStateZNode`, S§1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    brokers,
    duplicate_keys,
    finding,
    integer,
    parse_object,
)

DELETING = -2


def read_state(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the partition's state row, and findings about it."""
    topic, partition = parts[2], parts[4]
    if not partition.isdecimal() or len(partition) > 9:
        yield finding("PARTITION-KEY", znode.path, f"partition '{partition}' is not a number")
        return
    try:
        document = parse_object(znode)
        row: dict[str, Any] = {
            "topic": topic,
            "partition": int(partition),
            "isr": brokers(document.get("isr"), "isr"),
            "leader": integer(document, "leader"),
            "leader_epoch": integer(document, "leader_epoch"),
            "leader_recovery_state": integer({"leader_recovery_state": 0, **document}, "leader_recovery_state"),
            "partition_epoch": znode.version,
            "controller_epoch": integer(document, "controller_epoch"),
        }
    except MalformedError as problem:
        yield finding("START-04", znode.path, f"state of {topic}-{partition}: {problem}")
        return
    yield StateRow("partition_states", row)
    yield from duplicate_keys(znode, document)
    yield from check_state(znode.path, row["leader"], len(row["isr"]), row["leader_recovery_state"])


def check_state(path: str, leader: int, isr_size: int, recovery_state: int) -> Iterator[StateRow]:
    """Yield what is unusual about a state that parses."""
    if leader == DELETING:
        yield finding("STATE-DELETING", path, "leader is -2: the partition is being deleted")
    if isr_size == 0:
        yield finding("ISR-EMPTY", path, "the ISR is empty")
    if recovery_state not in (0, 1):
        yield finding("RECOVERY-STATE", path, f"leader_recovery_state is {recovery_state}")
