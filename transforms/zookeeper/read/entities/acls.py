"""`/kafka-acl` and `/kafka-acl-extended/prefixed`: ACLs (`ResourceZNode`, `AclEntry.fromBytes`, S§1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from schemas.zookeeper.acls import OPERATIONS, PERMISSIONS, RESOURCE_TYPES
from transforms.zookeeper.read.reading import (
    MalformedError,
    StateRow,
    ZnodeView,
    duplicate_keys,
    finding,
    parse_object,
    text,
)

_UNKNOWN = "UNKNOWN"


def read_literal_acls(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the ACLs of `/kafka-acl/<Type>/<name>`."""
    yield from _read(znode, "LITERAL", parts[1:])


def read_prefixed_acls(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the ACLs of `/kafka-acl-extended/prefixed/<Type>/<name>`."""
    yield from _read(znode, "PREFIXED", parts[2:])


def _read(znode: ZnodeView, pattern_type: str, parts: list[str]) -> Iterator[StateRow]:
    resource_type = RESOURCE_TYPES.get(parts[0])
    if len(parts) == 1:
        if resource_type is None:
            yield finding("ACL-TYPE", znode.path, f"'{parts[0]}' is not a resource type: its ACLs are not migrated")
    elif len(parts) > 2:
        yield finding("START-14", znode.path, "a resource name with '/': Kafka never reads it")
    elif resource_type is not None:
        yield from _entries(
            znode, {"resource_type": resource_type, "resource_name": parts[1], "pattern_type": pattern_type}
        )


def _entries(znode: ZnodeView, resource: dict[str, str]) -> Iterator[StateRow]:
    if znode.data_is_null or znode.data == "":
        return
    try:
        document = parse_object(znode)
    except MalformedError as problem:
        yield finding("ACL-DATA", znode.path, str(problem))
        return
    yield from duplicate_keys(znode, document)
    entries = document.get("acls", [])
    if document.get("version") != 1 or not isinstance(entries, list):
        yield finding("START-14", znode.path, "its version is not 1, or 'acls' is not an array")
        return
    seen: set[tuple[str, ...]] = set()
    for entry in entries:
        yield from _entry(znode.path, resource, entry, seen)


def _entry(path: str, resource: dict[str, str], entry: Any, seen: set[tuple[str, ...]]) -> Iterator[StateRow]:
    try:
        if not isinstance(entry, dict):
            raise MalformedError("an entry is not an object")
        principal, host = text(entry, "principal"), text(entry, "host")
        operation, permission = text(entry, "operation"), text(entry, "permissionType")
        if ":" not in principal:
            raise MalformedError("a principal is not type:name")
    except MalformedError as problem:
        yield finding("START-14", path, str(problem))
        return
    row = {
        "principal": principal,
        "host": host,
        "operation": _enum(operation, OPERATIONS),
        "permission": _enum(permission, PERMISSIONS),
    }
    if _UNKNOWN in (row["operation"], row["permission"]):
        yield finding("START-14", path, f"unknown operation or permission '{operation}', '{permission}'")
    # An ACL znode is a set: entries written twice are one.
    identity = tuple(row.values())
    if identity not in seen:
        seen.add(identity)
        yield StateRow("acls", {**resource, **row, "acl_id": None})


def _enum(name: str, names: dict[str, str]) -> str:
    return names.get(name) or (name if name in names.values() else _UNKNOWN)
