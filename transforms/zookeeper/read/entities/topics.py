"""`/brokers/topics/<topic>`: topics and the assignments of their partitions (`TopicZNode`, S§1.1).

Payload versions 1 (partitions), 2 (+ adding_replicas, removing_replicas), 3 (+ topic_id); the number is not checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    brokers,
    duplicate_keys,
    finding,
    parse_object,
)

_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
# Uuid.RESERVED: ZERO_UUID and ONE_UUID (the metadata topic's id).
_RESERVED_IDS = {"AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"}
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_PARTITION = re.compile(r"[0-9]{1,9}")


def read_topic(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the topic's row, one `partition_assignments` row per partition, and findings about them."""
    topic = parts[2]
    try:
        document = parse_object(znode)
        partitions, adding, removing = (_moves(document, key) for key in _MOVES)
    except MalformedError as problem:
        yield finding("TOPIC-DATA", znode.path, str(problem))
        return
    yield StateRow("topics", {"topic": topic, "topic_id": valid_topic_id(document.get("topic_id"))})
    yield from check_topic(znode.path, topic, document.get("topic_id"))
    yield from duplicate_keys(znode, document)
    for key, replicas in partitions.items():
        yield from _assignment(znode.path, topic, key, [replicas, adding.get(key, []), removing.get(key, [])], document)


_MOVES = ("partitions", "adding_replicas", "removing_replicas")


def _moves(document: dict[str, Any], key: str) -> dict[str, Any]:
    value = document.get(key)
    if value is None and key != "partitions":
        return {}
    if not isinstance(value, dict):
        raise MalformedError(f"'{key}' is not an object")
    return value


def valid_topic_id(value: Any) -> str | None:
    """Return a topic id that Kafka's `Uuid.fromString` takes for a user's topic, else None."""
    return value if isinstance(value, str) and _TOPIC_ID.fullmatch(value) and value not in _RESERVED_IDS else None


def check_topic(path: str, topic: str, topic_id: Any) -> Iterator[StateRow]:
    """Yield findings about a topic's name and id."""
    if topic_id is None:
        yield finding("START-03", path, f"topic '{topic}' has no topic_id")
    elif valid_topic_id(topic_id) is None:
        yield finding("TOPIC-ID", path, f"topic_id of '{topic}' is not a valid uuid of a topic")
    if not _TOPIC_NAME.fullmatch(topic) or topic in (".", ".."):
        yield finding("TOPIC-NAME", path, f"'{topic}' is not a legal topic name")


def _assignment(path: str, topic: str, key: str, lists: list[Any], document: dict[str, Any]) -> Iterator[StateRow]:
    if not _PARTITION.fullmatch(key):
        yield finding("PARTITION-KEY", path, f"partition '{key}' is not a number")
        return
    try:
        replicas, adding, removing = (
            brokers(value, f"{name} of partition {key}") for name, value in zip(_MOVES, lists, strict=True)
        )
    except MalformedError as problem:
        yield finding("ASSIGNMENT", path, str(problem))
        return
    yield from check_replicas(path, key, replicas)
    yield StateRow(
        "partition_assignments",
        {
            "topic": topic,
            "partition": int(key),
            "topic_id": valid_topic_id(document.get("topic_id")),
            "replicas": replicas,
            "adding_replicas": adding,
            "removing_replicas": removing,
        },
    )


def check_replicas(path: str, partition: str, replicas: list[int]) -> Iterator[StateRow]:
    """Yield what KRaft's rules reject in an assignment (`ReplicationControlManager`)."""
    if not replicas or len(set(replicas)) != len(replicas) or min(replicas) < 0:
        yield finding("ASSIGNMENT", path, f"partition {partition} is assigned to {replicas}")
