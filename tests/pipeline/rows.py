"""The rows of the capture that faults are planted in, and divergences about them, in report.json's terms."""

from __future__ import annotations

from typing import Any

from tests.captures import capture
from tests.pipeline.planted import Row
from tests.pipeline.trees import Tree

HEALTHY = capture("3.9.1", "5")
PRISTINE = Tree(HEALTHY / "zookeeper.jsonl.gz")
STATED = ("isr", "leader", "leader_epoch", "leader_recovery_state")
SEVERITIES = {
    "topics": "error",
    "partitions": "critical",
    "configs": "error",
    "client_quotas": "error",
    "acls": "critical",
    "delegation_tokens": "error",
    "producer_ids": "critical",
}


def cell(
    entity: str, key: dict[str, Any], column: str, zk: Any, kraft: Any, class_: str, severity: str = "error"
) -> Row:
    return Row(entity, key, column, "differs", zk, kraft, class_, severity)


def only_zk(entity: str, key: dict[str, Any], value: Any, class_: str) -> Row:
    return Row(entity, key, None, "zk_only", value, None, class_, SEVERITIES[entity])


def only_kraft(entity: str, key: dict[str, Any], value: Any, class_: str) -> Row:
    return Row(entity, key, None, "kraft_only", None, value, class_, SEVERITIES[entity])


def partition(name: str, number: int) -> dict[str, Any]:
    """A partition as both sides have it in the capture."""
    path = f"/brokers/topics/{name}"
    stated = PRISTINE.json(f"{path}/partitions/{number}/state")
    return whole(
        PRISTINE.json(path)["partitions"][str(number)], stated["leader"], stated["isr"], stated["leader_epoch"]
    )


def whole(replicas: list[int], leader: int, isr: list[int], leader_epoch: int = 0) -> dict[str, Any]:
    none: dict[str, Any] = {"adding_replicas": [], "removing_replicas": [], "leader_recovery_state": 0}
    return {"replicas": replicas, **none, "isr": isr, "leader": leader, "leader_epoch": leader_epoch}


def topic_id(name: str) -> Any:
    return PRISTINE.json(f"/brokers/topics/{name}")["topic_id"]


def place(name: str, number: int) -> dict[str, Any]:
    return {"topic": name, "partition": number}


def config(kind: str, name: str, key: str) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, "config": key}


def quota(key: str, **entity: str | None) -> dict[str, Any]:
    return {"entity": {kind.replace("_", "-"): name for kind, name in entity.items()}, "quota": key}


def acl(
    kind: str, name: str, principal: str, operation: str, pattern: str = "LITERAL", permission: str = "ALLOW"
) -> Any:
    return {
        "resource_type": kind,
        "resource_name": name,
        "pattern_type": pattern,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission": permission,
    }


def entry(principal: str, operation: str) -> dict[str, str]:
    return {"principal": principal, "permissionType": "Allow", "host": "*", "operation": operation}
