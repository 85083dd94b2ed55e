"""Pending requests and notifications: `/admin`, `/config/changes`, ISR, log dir, ACL and token changes (S§1.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    admin_operation,
    finding,
    integer,
    parse_object,
    text,
)


def read_delete_topic(_: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield a topic's pending deletion."""
    yield admin_operation("delete_topic", parts[2], "deletion pending")


def read_reassignments(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/admin/reassign_partitions`: one row per partition. KRaft never reads it: it is lost at the migration."""
    yield from _partitions(znode, "reassign_partitions")


def read_preferred_election(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield `/admin/preferred_replica_election`: one row per partition. Lost at the migration too."""
    yield from _partitions(znode, "preferred_replica_election")


def read_isr_change(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield an ISR change notification (brokers below IBP 2.7-IV2): one row per partition."""
    yield from _partitions(znode, "isr_change")


def read_log_dir_event(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield a failed log directory's notification."""
    try:
        document = parse_object(znode)
        yield admin_operation("log_dir_event", str(integer(document, "broker")), f"event {integer(document, 'event')}")
    except MalformedError as problem:
        yield finding("ADMIN-DATA", znode.path, str(problem))


def read_config_change(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield a config change notification: version 2 names a path, version 1 a type and a name."""
    try:
        document = parse_object(znode)
        if document.get("version") == 2:
            subject = text(document, "entity_path")
        else:
            subject = f"{text(document, 'entity_type')}/{text(document, 'entity_name')}"
        yield admin_operation("config_change", subject, parts[2])
    except MalformedError as problem:
        yield finding("ADMIN-DATA", znode.path, str(problem))


def read_acl_change(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield an ACL change notification: `TYPE:name`."""
    if znode.problem or ":" not in (znode.data or ""):
        yield finding("ADMIN-DATA", znode.path, znode.problem or "its data is not TYPE:name")
        return
    yield admin_operation("acl_change", f"LITERAL:{znode.data}", parts[1])


def read_extended_acl_change(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield an extended ACL change notification: JSON version 1."""
    try:
        document = parse_object(znode)
        subject = ":".join(text(document, key) for key in ("patternType", "resourceType", "name"))
        yield admin_operation("acl_change", subject, parts[1])
    except MalformedError as problem:
        yield finding("ADMIN-DATA", znode.path, str(problem))


def read_token_change(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield a token change notification: the token's id."""
    yield admin_operation("token_change", znode.data or "", parts[2])


def _partitions(znode: ZnodeView, kind: str) -> Iterator[StateRow]:
    try:
        listed = parse_object(znode).get("partitions")
        if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
            raise MalformedError("'partitions' is not an array of objects")
        for item in listed:
            yield _partition(kind, item)
    except MalformedError as problem:
        yield finding("ADMIN-DATA", znode.path, str(problem))


def _partition(kind: str, item: dict[str, Any]) -> StateRow:
    replicas = f"to {item['replicas']}" if "replicas" in item else ""
    return admin_operation(kind, f"{text(item, 'topic')}-{integer(item, 'partition')}", replicas)
