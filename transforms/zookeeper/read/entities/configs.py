"""`/config/topics/<topic>` and `/config/brokers/<id>`: dynamic configurations (`ConfigEntityZNode`, S§1.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from schemas.zookeeper.paths import DEFAULT_ENTITY
from transforms.secrets import CIPHERTEXT_PREFIX, is_sensitive_config
from transforms.zookeeper.read.reading import MalformedError, StateRow, ZnodeView, duplicate_keys, finding, parse_object
from transforms.zookeeper.read.redact import CLEAR_PREFIX, COSTLY_PREFIX, OLDER_PREFIX, UNDECODABLE_PREFIX, unmarked

_BROKER_ID = re.compile(r"[0-9]{1,10}")
_MARKED = (
    (CLEAR_PREFIX, "START-13", "is in clear text: no broker can decode it"),
    # KRaft's controllers have no password.encoder.old.secret (`ControllerServer`).
    (
        OLDER_PREFIX,
        "START-13",
        "does not decode with the first encoder secret given, only with a later one: a controller has one",
    ),
    (UNDECODABLE_PREFIX, "START-13", "does not decode with the encoder secrets given"),
    (COSTLY_PREFIX, "CONFIG-COST", "takes too long to decode: it is not compared"),
)


def read_topic_config(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the configurations of one topic."""
    yield from _read(znode, "TOPIC", parts[2])


def read_broker_config(znode: ZnodeView, parts: list[str]) -> Iterator[StateRow]:
    """Yield the configurations of one broker, or of all of them (`<default>`, resource_name '')."""
    name = parts[2]
    if name != DEFAULT_ENTITY and not _BROKER_ID.fullmatch(name):
        yield finding("START-13", znode.path, "its name is not a broker id")
        return
    yield from _read(znode, "BROKER", "" if name == DEFAULT_ENTITY else name)


def read_entries(znode: ZnodeView, problems: list[StateRow]) -> dict[str, Any]:
    """Return the `config` object of a znode as Kafka sees it, {} where Kafka sees none; findings go to `problems`."""
    if znode.data_is_null:
        return {}
    try:
        document = parse_object(znode)
    except MalformedError as problem:
        if znode.data or znode.problem:
            problems.append(finding("CONFIG-DATA", znode.path, str(problem)))
        return {}
    problems.extend(duplicate_keys(znode, document))
    config = document.get("config")
    return config if isinstance(config, dict) else {}


def _read(znode: ZnodeView, resource_type: str, resource_name: str) -> Iterator[StateRow]:
    problems: list[StateRow] = []
    for name, value in read_entries(znode, problems).items():
        if not isinstance(value, str):
            problems.append(finding("START-13", znode.path, f"the value of '{name}' is not a string"))
            continue
        problems.extend(_about(znode.path, name, value))
        yield StateRow(
            "configs",
            {
                "resource_type": resource_type,
                "resource_name": resource_name,
                "config": name,
                "value": unmarked(value),
                "sensitive": is_sensitive_config(name),
                "comparable": not value.startswith((CIPHERTEXT_PREFIX, UNDECODABLE_PREFIX, COSTLY_PREFIX)),
            },
        )
    yield from problems


def _about(path: str, name: str, value: str) -> Iterator[StateRow]:
    """Yield what the redactor found out about a value that brokers encrypt."""
    for prefix, code, what in _MARKED:
        if value.startswith(prefix):
            yield finding(code, path, f"'{name}' {what}")
