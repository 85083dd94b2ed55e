"""Which znodes hold a row, and what a znode's data says of it (S§1.1, S§5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from schemas.zookeeper.acls import RESOURCE_TYPES
from schemas.zookeeper.paths import DEFAULT_ENTITY
from transforms.explain.keys import RowKey
from transforms.reconcile.classify import row_path
from transforms.zookeeper.facts import Fact, ZnodeView
from transforms.zookeeper.routes import read

_ACL_TYPES = {kraft: zookeeper for zookeeper, kraft in RESOURCE_TYPES.items()}
# What a state row is called before the silver tables are assembled.
_FACTS = {"partitions": ("partition_assignments", "partition_states")}


def sanitized(name: str | None) -> str:
    """A name as Kafka puts it into a path (`org.apache.kafka.common.utils.Sanitizer`); None is `<default>`."""
    # Java's URLEncoder escapes '~', which Python keeps.
    return DEFAULT_ENTITY if name is None else quote(name, safe="", errors="replace").replace("~", "%7E")


def znode_paths(row: RowKey) -> list[str]:
    """Every path that could hold the row, the most telling one first; none for what ZooKeeper never held."""
    name, key = row.entity.name, row.key
    if name == "partitions":
        return [row_path(name, key) or "", f"/brokers/topics/{key['topic']}"]
    if name == "client_quotas":
        return _quota_paths({part["type"]: part["name"] for part in key["entity"]})
    if name == "scram_credentials":
        return [f"/config/users/{sanitized(key['user'])}"]
    if name == "acls":
        return _acl_paths(key)
    fixed = {"producer_ids": "/latest_producer_id_block", "features": "/feature"}
    if name in fixed:
        return [fixed[name]]
    if name == "brokers":
        return [f"/brokers/ids/{key['broker_id']}"]
    path = row_path(name, key)
    return [] if path is None else [path]


def _quota_paths(parts: Mapping[str, str | None]) -> list[str]:
    if "user" in parts:
        user = f"/config/users/{sanitized(parts['user'])}"
        return [f"{user}/clients/{sanitized(parts['client-id'])}" if "client-id" in parts else user]
    root, name = ("clients", parts["client-id"]) if "client-id" in parts else ("ips", parts.get("ip"))
    # kafka-configs.sh writes an IP address as it is, the KRaft controller sanitizes it: an IPv6 address has two spellings.
    return list(dict.fromkeys([f"/config/{root}/{sanitized(name)}", f"/config/{root}/{name or DEFAULT_ENTITY}"]))


def _acl_paths(key: Mapping[str, Any]) -> list[str]:
    root = {"LITERAL": "/kafka-acl", "PREFIXED": "/kafka-acl-extended/prefixed"}.get(key["pattern_type"])
    kind = _ACL_TYPES.get(key["resource_type"])
    return [] if root is None or kind is None else [f"{root}/{kind}/{key['resource_name']}"]


def row_in_znode(row: RowKey, path: str, data: str | None, version: int | None) -> dict[str, Any] | None:
    """What the data of a znode says of the row; None when it is not in there.

    A partition's two znodes give the columns each of them holds.
    """
    znode = ZnodeView(path, data, data is None, None, None, None, version, 0, None)
    wanted = _FACTS.get(row.entity.name, (row.entity.name,))
    for fact in read(znode):
        if fact.entity in wanted and _is_of(row, fact):
            return {name: value for name, value in fact.row.items() if name not in row.entity.key}
    return None


def _is_of(row: RowKey, fact: Fact) -> bool:
    return all(fact.row.get(name) == value for name, value in row.key.items())
