"""`/config/users`, `/config/clients`, `/config/ips`: quotas, and the SCRAM credentials beside them (S§1.2, S§4.2)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from schemas.zookeeper.quotas import QUOTA_KEYS, SCRAM_MECHANISMS
from transforms.zookeeper.read.entities.configs import read_entries
from transforms.zookeeper.read.entities.scram_credentials import read_scram
from transforms.zookeeper.read.reading import MalformedError, StateRow, ZnodeView, entity_name, finding, java_double

# What `Long.parseLong` of a broker in ZooKeeper mode takes (`QuotaConfigHandler`); the load and KRaft read a double.
_WHOLE = re.compile(r"[+-]?[0-9]+")
# Path segments after /config: the entity types of the names at index 2, or 2 and 4.
_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}


def read_quotas(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the quotas of a user, client, ip, or user with client, and the user's SCRAM credentials."""
    names = {_TYPES[parts[1]]: parts[2]}
    if len(parts) == 5:
        names["client-id"] = parts[4]
    try:
        entity = [{"type": kind, "name": entity_name(segment)} for kind, segment in sorted(names.items())]
    except MalformedError as problem:
        yield finding("START-13", znode.path, str(problem))
        return
    problems: list[StateRow] = []
    for key, value in read_entries(znode, problems).items():
        yield from _read_entry(znode.path, entity, key, value)
    yield from problems


def _read_entry(path: str, entity: list[dict[str, str | None]], key: str, value: Any) -> Iterator[StateRow]:
    if not isinstance(value, str):
        yield finding("START-13", path, f"the value of '{key}' is not a string")
    elif key in SCRAM_MECHANISMS:
        yield from _credential(path, entity, key, value)
    else:
        yield from _quota(path, entity, key, value)


def _credential(path: str, entity: list[dict[str, str | None]], mechanism: str, value: str) -> Iterator[StateRow]:
    if [part["type"] for part in entity] != ["user"]:
        yield finding("START-13", path, f"'{mechanism}' belongs to a user alone")
    elif entity[0]["name"] is None:
        yield finding("START-13", path, f"'{mechanism}' of the default user")
    else:
        yield from read_scram(path, entity[0]["name"], mechanism, value)


def _quota(path: str, entity: list[dict[str, str | None]], key: str, value: str) -> Iterator[StateRow]:
    number = java_double(value)
    if number is None:
        yield finding("START-13", path, f"quota '{key}' is not a number")
        return
    yield StateRow("client_quotas", {"entity": entity, "quota": key, "value": number})
    whole = QUOTA_KEYS[str(entity[-1]["type"])].get(key)
    if whole is None:
        yield finding("QUOTA-KEY", path, f"'{key}' is not a quota of this entity")
    elif (whole and not number.is_integer()) or math.isnan(number):
        yield finding("QUOTA-VALUE", path, f"'{key}' is {value}")
    elif whole and not _WHOLE.fullmatch(value):
        yield finding("QUOTA-SPELLING", path, f"'{key}' is spelled {value}")
