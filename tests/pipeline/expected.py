"""What an independent replay of Kafka's own dump says of a capture (`expected.json`), in the silver tables' terms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from schemas.kraft.enums import ACL_OPERATIONS, ACL_PERMISSIONS, ACL_RESOURCE_TYPES, PATTERN_TYPES

Row = dict[str, Any]


def load(folder: Path) -> Row:
    """The capture's expected.json."""
    content: Row = json.loads((folder / "expected.json").read_text())
    return content


def topics(state: Row) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in state["topics"]}


def partitions(state: Row) -> dict[tuple[str, int], Row]:
    return {(entry["key"][0], entry["key"][1]): entry["value"] for entry in state["partitions"]}


def configs(state: Row) -> dict[tuple[str, str, str], str]:
    return {(e["key"][0].upper(), e["key"][1], e["key"][2]): e["value"] for e in state["configs"]}


def quotas(state: Row) -> dict[tuple[tuple[tuple[str, str | None], ...], str], float]:
    return {(tuple((part[0], part[1]) for part in e["key"][0]), e["key"][1]): e["value"] for e in state["quotas"]}


def acls(state: Row) -> set[tuple[str, ...]]:
    return {
        (ACL_RESOURCE_TYPES[t], name, PATTERN_TYPES[p], principal, host, ACL_OPERATIONS[op], ACL_PERMISSIONS[perm])
        for t, name, p, principal, host, op, perm in state["acls"]
    }


def scram(state: Row) -> set[tuple[str, int, int]]:
    return {(e["key"][0], e["key"][1], e["value"][3]) for e in state["scram"]}


def tokens(state: Row) -> dict[str, Row]:
    names = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp")
    return {e["key"]: dict(zip(names, e["value"], strict=True)) for e in state["tokens"]}


def brokers(state: Row) -> dict[int, Row]:
    return {entry["key"]: entry["value"] for entry in state["brokers"]}


def features(state: Row) -> dict[str, int]:
    return {entry["key"]: entry["value"] for entry in state["features"]}
