"""Which znodes hold a row (S§1.1): where to look for who wrote, or removed, what KRaft has and ZooKeeper does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from schemas.zookeeper.acls import RESOURCE_TYPES
from schemas.zookeeper.paths import DEFAULT_ENTITY

_ACL_FOLDERS: Mapping[str, str] = {name: folder for folder, name in RESOURCE_TYPES.items()}
# Part of a path that ZooKeeper refuses, or takes for two (`PathUtils.validatePath`); beyond 16 bits Java has surrogates.
NO_ZNODE_NAME = "[/\0-\x1f\x7f-\x9f\ue000-\uf8ff\ufff0-\U0010ffff]|^[.]{1,2}$"
_no_znode_name = re.compile(NO_ZNODE_NAME).search
_QUOTA_ROOTS: Mapping[str, str] = {"user": "users", "client-id": "clients", "ip": "ips"}


def homes(entity: str, key: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of the znodes a row is read from, the one that decides whether it exists last; none for what has no place.

    A partition's state has a znode of its own; that the partition exists, and its replicas, stand in the topic's.
    """
    if entity == "topics":
        return (topic_path(key["topic"]),)
    if entity == "partitions":
        topic = topic_path(key["topic"])
        return (f"{topic}/partitions/{key['partition']}/state", topic)
    if entity == "configs":
        return _config(key)
    if entity == "client_quotas":
        return _quota({part["type"]: part["name"] for part in key["entity"]})
    if entity == "scram_credentials":
        return (f"/config/users/{sanitized(key['user'])}",)
    if entity == "acls":
        return _acl(key)
    if entity == "delegation_tokens":
        return (f"/delegation_token/tokens/{key['token_id']}",)
    return ("/latest_producer_id_block",) if entity == "producer_ids" else ()


def topic_path(topic: str) -> str:
    """The znode of a topic and of its partitions' replicas."""
    return f"/brokers/topics/{topic}"


def parent(path: str) -> str:
    """The znode above."""
    return path.rpartition("/")[0]


def ancestors(path: str) -> Iterator[str]:
    """The znodes above, the lowest first, but for the root."""
    while path := parent(path):
        yield path


def sanitized(name: str | None) -> str:
    """A user, client or address as a path segment (`org.apache.kafka.common.utils.Sanitizer`); None is the default."""
    if name is None:
        return DEFAULT_ENTITY
    return quote(name, safe="._-", errors="replace").replace("~", "%7E")


def _config(key: Mapping[str, Any]) -> tuple[str, ...]:
    if key["resource_type"] not in ("TOPIC", "BROKER"):
        return ()
    name = key["resource_name"] if key["resource_type"] == "TOPIC" else key["resource_name"] or DEFAULT_ENTITY
    return (f"/config/{key['resource_type'].lower()}s/{name}",)


def _quota(names: Mapping[str, str | None]) -> tuple[str, ...]:
    if set(names) == {"user", "client-id"}:
        return (f"/config/users/{sanitized(names['user'])}/clients/{sanitized(names['client-id'])}",)
    if len(names) != 1 or not names.keys() <= _QUOTA_ROOTS.keys():
        return ()
    [(kind, name)] = names.items()
    return (f"/config/{_QUOTA_ROOTS[kind]}/{sanitized(name)}",)


def _acl(key: Mapping[str, Any]) -> tuple[str, ...]:
    folder = _ACL_FOLDERS.get(key["resource_type"])
    root = "/kafka-acl" if key["pattern_type"] == "LITERAL" else f"/kafka-acl-extended/{key['pattern_type'].lower()}"
    # Names are not encoded: ZooKeeper has no place for some.
    return (
        () if folder is None or _no_znode_name(key["resource_name"]) else (f"{root}/{folder}/{key['resource_name']}",)
    )
