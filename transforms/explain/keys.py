"""A row's key as a person types it: `orders`, `orders/3`, `TOPIC/orders/retention.ms`, or the report's JSON object."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import IntegerType

from schemas.entities import ENTITIES, Entity
from schemas.entities.migration import MIGRATION
from schemas.kraft.enums import CONFIG_RESOURCE_TYPES, SCRAM_MECHANISMS
from transforms.kraft.replay.entities.event import UPSERT, Event
from transforms.kraft.replay.keys import canonical_key
from transforms.nearest import suggestion
from transforms.reconcile.compare.classify import report_key
from transforms.report.printable import key_text

# The migration's own state has no key; the report shows its history.
EXPLAINED: Mapping[str, Entity] = {entity.name: entity for entity in ENTITIES if entity is not MIGRATION}
_LARGEST, _DIGITS = 2**31 - 1, 10
_QUOTA_TYPES = ("client-id", "ip", "user")

FORMS: Mapping[str, str] = {
    "topics": "TOPIC, e.g. orders",
    "partitions": "TOPIC/PARTITION, e.g. orders/3",
    "configs": "TYPE/NAME/CONFIG, e.g. TOPIC/orders/retention.ms, BROKER/1/log.cleaner.threads, "
    "or BROKER//log.cleaner.threads for the cluster-wide default",
    "client_quotas": 'a JSON object, e.g. {"entity": {"client-id": "app-9"}, "quota": "producer_byte_rate"}; '
    "a name of null is the default entity",
    "acls": 'a JSON object, e.g. {"resource_type": "TOPIC", "resource_name": "orders", "pattern_type": "LITERAL", '
    '"principal": "User:alice", "host": "*", "operation": "READ", "permission": "ALLOW"}',
    "scram_credentials": "USER/MECHANISM, e.g. alice/SCRAM-SHA-256",
    "delegation_tokens": "TOKEN_ID",
    "producer_ids": "no key: there is one row",
    "features": "FEATURE, e.g. metadata.version",
    "brokers": "BROKER_ID, e.g. 1",
    "controllers": "CONTROLLER_ID, e.g. 3000",
}


def form_of(entity: Entity) -> str:
    """How a key of the entity is written; every entity takes the report's JSON object."""
    return FORMS.get(entity.name) or f"a JSON object with {', '.join(entity.key)}"


class KeyFormError(ValueError):
    """The text is not a key of the entity; the message is one line with the form of a key."""


@dataclass(frozen=True)
class RowKey:
    """One row. `key` holds the entity's key columns with silver's values, `report` the key as report.json spells it."""

    entity: Entity
    key: dict[str, Any]

    @property
    def canonical(self) -> str:
        """The key as the text by which both sides are compared (`canonical.key_json`)."""
        return canonical_key(Event(self.entity.name, (), UPSERT, self.key)) or "{}"

    @property
    def report(self) -> dict[str, Any]:
        """The key as report.json spells it."""
        return report_key(self.entity.name, self.key)

    @property
    def gold(self) -> str:
        """The key as gold `divergences` spells it."""
        return json.dumps(self.report, ensure_ascii=False)

    @property
    def shown(self) -> str:
        """The key as reports show it."""
        return key_text(self.entity.name, self.report)

    @property
    def typed(self) -> str:
        """The key in the form `parse_key` takes, in its shortest spelling where that is certain to be read back as the same key."""
        typed_form = _TYPED_FORM.get(self.entity.name)
        text = "" if typed_form is None else typed_form(self.key)
        try:
            known = typed_form is not None and parse_key(self.entity.name, text).key == self.key
        except KeyFormError:
            known = False
        return text if known else self.gold


def known_entity(name: str) -> Entity:
    """The entity of that name. Raises KeyFormError naming the nearest one."""
    if name not in EXPLAINED:
        raise KeyFormError(f"unknown entity `{name}`; {suggestion(name, EXPLAINED)}")
    return EXPLAINED[name]


def parse_key(entity_name: str, given: str | Mapping[str, Any] | None) -> RowKey:
    """Read a key that a person wrote: a text in the entity's form, or the report's object (as JSON text or mapping).

    Raises KeyFormError for an unknown entity, and for a key that is not in the entity's form.
    """
    entity = known_entity(entity_name)
    if isinstance(given, Mapping):
        return RowKey(entity, _from_object(entity, given))
    text = given or ""
    if not entity.key:
        if text not in ("", "{}"):
            raise _wrong_form(entity, text)
        return RowKey(entity, {})
    if text.startswith("{"):
        return RowKey(entity, _from_object(entity, _json(entity, text)))
    reader = _READERS.get(entity.name)
    found = reader(text) if reader is not None and text else None
    if found is None:
        raise _wrong_form(entity, text)
    return RowKey(entity, found)


def _wrong_form(entity: Entity, text: str, why: str = "") -> KeyFormError:
    reason = f" ({why})" if why else ""
    what = f"`{text}` is not a key of {entity.name}{reason}" if text else f"{entity.name} needs a key"
    return KeyFormError(f"{what}; a key of {entity.name} is {form_of(entity)}")


def _json(entity: Entity, text: str) -> Mapping[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _wrong_form(entity, text, "not valid JSON") from None
    return dict(document)


def _from_object(entity: Entity, given: Mapping[str, Any]) -> dict[str, Any]:
    text = json.dumps(given, ensure_ascii=False, default=str)
    odd = [str(name) for name in given if name not in entity.key]
    if odd:
        raise _wrong_form(entity, text, f"it has no part `{odd[0]}`; {suggestion(odd[0], entity.key)}")
    missing = [name for name in entity.key if name not in given]
    if missing:
        raise _wrong_form(entity, text, f"`{missing[0]}` is missing")
    key = {name: given[name] for name in entity.key}
    if entity.name == "client_quotas":
        key["entity"] = _quota_entity(entity, text, given["entity"])
    whole = {field.name for field in entity.columns if isinstance(field.dataType, IntegerType)}
    for name, value in key.items():
        wanted = list if name == "entity" else int if name in whole else str
        if type(value) is not wanted:
            raise _wrong_form(entity, text, f"`{name}` must be a {'number' if wanted is int else 'text'}")
    return key


def _quota_entity(entity: Entity, text: str, parts: Any) -> list[dict[str, Any]]:
    if not isinstance(parts, Mapping) or not parts:
        raise _wrong_form(entity, text, "`entity` must be an object from type to name")
    for kind, name in parts.items():
        if kind not in _QUOTA_TYPES:
            raise _wrong_form(entity, text, f"no entity type `{kind}`; {suggestion(str(kind), _QUOTA_TYPES)}")
        if name is not None and not isinstance(name, str):
            raise _wrong_form(entity, text, f"the name of `{kind}` must be a text, or null for the default")
    return [{"type": kind, "name": parts[kind]} for kind in sorted(parts)]


def _partition(text: str) -> dict[str, Any] | None:
    # Reports write orders-3; a topic's name may hold '-', never '/'.
    topic, _, number = text.rpartition("/" if "/" in text else "-")
    return {"topic": topic, "partition": int(number)} if topic and _is_number(number) else None


def _config(text: str) -> dict[str, Any] | None:
    kind, _, rest = text.partition("/")
    name, slash, config = rest.rpartition("/")
    if kind.upper() not in CONFIG_RESOURCE_TYPES.values() or not slash or not config:
        return None
    return {"resource_type": kind.upper(), "resource_name": name, "config": config}


def _credential(text: str) -> dict[str, Any] | None:
    user, _, mechanism = text.rpartition("/")
    known = user and mechanism.upper() in SCRAM_MECHANISMS.values()
    return {"user": user, "mechanism": mechanism.upper()} if known else None


def _number(name: str) -> Callable[[str], dict[str, Any] | None]:
    return lambda text: {name: int(text)} if _is_number(text) else None


def _is_number(text: str) -> bool:
    # Beyond 32 bits no id is one; of longer texts Python makes no number at all.
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS and int(text) <= _LARGEST


_READERS: Mapping[str, Callable[[str], dict[str, Any] | None]] = {
    "topics": lambda text: {"topic": text},
    "partitions": _partition,
    "configs": _config,
    "scram_credentials": _credential,
    "delegation_tokens": lambda text: {"token_id": text},
    "features": lambda text: {"feature": text},
    "brokers": _number("broker_id"),
    "controllers": _number("controller_id"),
}
_TYPED_FORM: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "topics": lambda key: str(key["topic"]),
    "partitions": lambda key: f"{key['topic']}/{key['partition']}",
    "configs": lambda key: f"{key['resource_type']}/{key['resource_name']}/{key['config']}",
    "scram_credentials": lambda key: f"{key['user']}/{key['mechanism']}",
    "delegation_tokens": lambda key: str(key["token_id"]),
    "producer_ids": lambda _key: "",
    "features": lambda key: str(key["feature"]),
    "brokers": lambda key: str(key["broker_id"]),
    "controllers": lambda key: str(key["controller_id"]),
}
