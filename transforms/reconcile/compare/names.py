"""Names that a load of some releases stored wrongly: quotas and SCRAM credentials (S§4.2, S§12.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from transforms.reconcile.compare.home import sanitized

# Kafka 3.4 writes the name of the ZooKeeper folder where the entity's type belongs.
FOLDERS = ("users", "clients", "ips")


def mangled(entity: str, key: Mapping[str, Any]) -> str | None:
    """Name the defect when a KRaft key is one that such a load made; None when the key looks right."""
    if any(kind in FOLDERS for kind, _ in _parts(entity, key)):
        return "Kafka 3.4 stored the quota under the folder's name instead of the entity's type"
    names = [name for _, name in _parts(entity, key)]
    if any(name == "" for name in names):
        return "the load stored a default entity as an empty name (KAFKA-16411)"
    if any(name and "%" in name for name in names):
        return "the load kept the percent-encoded name (KAFKA-16222)"
    return None


def mangled_by_load(entity: str, key: Mapping[str, Any]) -> str | None:
    """Name the defect when a ZooKeeper key is one that such a load stores under another; None when it keeps it."""
    names = [name for _, name in _parts(entity, key)]
    if any(name is None for name in names):
        return "the load stored the default entity under an empty name (KAFKA-16411)"
    if any(name is not None and sanitized(name) != name for name in names):
        return "the load stored it under its percent-encoded name (KAFKA-16222)"
    return None


def _parts(entity: str, key: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    if entity == "scram_credentials":
        yield "user", key["user"]
    elif entity == "client_quotas":
        for part in key["entity"]:
            yield part["type"], part["name"]
