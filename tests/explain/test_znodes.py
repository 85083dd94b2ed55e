"""Which znodes a row is in, and what their data says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from transforms.explain.keys import parse_key
from transforms.explain.znodes import row_in_znode, znode_paths
from transforms.reconcile.compare.home import sanitized


def acl(pattern: str) -> dict[str, Any]:
    return {
        "resource_type": "TRANSACTIONAL_ID",
        "resource_name": "tx",
        "pattern_type": pattern,
        "principal": "User:x",
        "host": "*",
        "operation": "DESCRIBE_CONFIGS",
        "permission": "ALLOW",
    }


def quota(**parts: str | None) -> dict[str, Any]:
    return {"entity": {name.replace("_", "-"): value for name, value in parts.items()}, "quota": "q"}


@pytest.mark.parametrize(
    ("entity", "key", "paths"),
    [
        ("topics", "orders", ["/brokers/topics/orders"]),
        ("partitions", "a-b/3", ["/brokers/topics/a-b/partitions/3/state", "/brokers/topics/a-b"]),
        ("configs", "TOPIC/orders/retention.ms", ["/config/topics/orders"]),
        ("configs", "BROKER//x", ["/config/brokers/<default>"]),
        ("configs", "CLIENT_METRICS/m/x", []),
        ("client_quotas", quota(user="carol@corp"), ["/config/users/carol%40corp"]),
        ("client_quotas", quota(user=None, client_id="a b"), ["/config/users/<default>/clients/a%20b"]),
        ("client_quotas", quota(client_id=None), ["/config/clients/<default>"]),
        ("client_quotas", quota(ip="10.0.0.9"), ["/config/ips/10.0.0.9"]),
        ("client_quotas", quota(ip="::1"), ["/config/ips/%3A%3A1", "/config/ips/::1"]),
        ("scram_credentials", "a*~/SCRAM-SHA-256", ["/config/users/a%2A%7E"]),
        ("delegation_tokens", "abc", ["/delegation_token/tokens/abc"]),
        ("acls", acl("LITERAL"), ["/kafka-acl/TransactionalId/tx"]),
        ("acls", acl("PREFIXED"), ["/kafka-acl-extended/prefixed/TransactionalId/tx"]),
        ("producer_ids", None, ["/latest_producer_id_block"]),
        ("features", "metadata.version", ["/feature"]),
        ("brokers", "1", ["/brokers/ids/1"]),
        ("controllers", "3000", []),
    ],
)
def test_paths_are_kafkas(entity: str, key: Any, paths: list[str]) -> None:
    assert znode_paths(parse_key(entity, key)) == paths


def test_sanitized_keeps_what_java_keeps() -> None:
    assert sanitized("aZ09.-_") == "aZ09.-_"
    assert sanitized("ü") == "%C3%BC"


def test_a_znode_of_many_rows_tells_only_the_one_asked_for() -> None:
    data = json.dumps({"version": 1, "config": {"a": "1", "retention.ms": "5"}})
    path = "/config/topics/orders"
    told = row_in_znode(parse_key("configs", "TOPIC/orders/retention.ms"), path, data, 3)
    assert told is not None
    assert told["value"] == "5"
    assert row_in_znode(parse_key("configs", "TOPIC/orders/b"), path, data, 3) is None
    assert row_in_znode(parse_key("configs", "TOPIC/orders/a"), path, "{", 3) is None
    assert row_in_znode(parse_key("configs", "TOPIC/orders/a"), path, None, 3) is None


def test_a_partitions_two_znodes_each_tell_their_columns() -> None:
    row = parse_key("partitions", "orders/1")
    topic = json.dumps({"version": 3, "topic_id": "JOKACK-_RL2w8xcHx-nMNg", "partitions": {"0": [0], "1": [2, 1]}})
    assert row_in_znode(row, "/brokers/topics/orders", topic, 0) == {
        "topic_id": "JOKACK-_RL2w8xcHx-nMNg",
        "replicas": [2, 1],
        "adding_replicas": [],
        "removing_replicas": [],
    }
    state = json.dumps({"controller_epoch": 1, "leader": 2, "version": 1, "leader_epoch": 4, "isr": [2]})
    told = row_in_znode(row, "/brokers/topics/orders/partitions/1/state", state, 7)
    assert told is not None
    assert (told["leader"], told["leader_epoch"], told["partition_epoch"]) == (2, 4, 7)
