"""Where a row stands in ZooKeeper, and the names that some releases get wrong."""

from __future__ import annotations

from typing import Any

import pytest

from transforms.reconcile.compare.home import homes, sanitized
from transforms.reconcile.compare.names import mangled, mangled_by_load
from transforms.zookeeper.read.reading import desanitize

USER, CLIENT = {"type": "user", "name": "a b"}, {"type": "client-id", "name": None}
ACL = {"resource_name": "pay", "principal": "User:x", "host": "*", "operation": "READ", "permission": "ALLOW"}


@pytest.mark.parametrize(
    ("entity", "key", "paths"),
    [
        ("topics", {"topic": "t"}, ["/brokers/topics/t"]),
        ("partitions", {"topic": "t", "partition": 4}, ["/brokers/topics/t/partitions/4/state", "/brokers/topics/t"]),
        ("configs", {"resource_type": "TOPIC", "resource_name": "t"}, ["/config/topics/t"]),
        ("configs", {"resource_type": "BROKER", "resource_name": "7"}, ["/config/brokers/7"]),
        ("configs", {"resource_type": "BROKER", "resource_name": ""}, ["/config/brokers/<default>"]),
        ("configs", {"resource_type": "CLIENT_METRICS", "resource_name": "m"}, []),
        ("client_quotas", {"entity": [USER]}, ["/config/users/a%20b"]),
        ("client_quotas", {"entity": [CLIENT]}, ["/config/clients/<default>"]),
        ("client_quotas", {"entity": [CLIENT, USER]}, ["/config/users/a%20b/clients/<default>"]),
        ("client_quotas", {"entity": [{"type": "ip", "name": "::1"}]}, ["/config/ips/%3A%3A1"]),
        ("client_quotas", {"entity": [{"type": "users", "name": "x"}]}, []),
        ("client_quotas", {"entity": [USER, {"type": "ip", "name": "::1"}]}, []),
        ("client_quotas", {"entity": []}, []),
        ("scram_credentials", {"user": "a@b"}, ["/config/users/a%40b"]),
        ("acls", {**ACL, "resource_type": "TOPIC", "pattern_type": "LITERAL"}, ["/kafka-acl/Topic/pay"]),
        (
            "acls",
            {**ACL, "resource_type": "TRANSACTIONAL_ID", "pattern_type": "PREFIXED"},
            ["/kafka-acl-extended/prefixed/TransactionalId/pay"],
        ),
        ("acls", {**ACL, "resource_type": "GROUP", "pattern_type": "LITERAL", "resource_name": "team/app"}, []),
        ("delegation_tokens", {"token_id": "x"}, ["/delegation_token/tokens/x"]),
        ("producer_ids", {}, ["/latest_producer_id_block"]),
        ("features", {"feature": "f"}, []),
    ],
)
def test_every_row_has_its_znode(entity: str, key: dict[str, Any], paths: list[str]) -> None:
    assert list(homes(entity, key)) == paths


@pytest.mark.parametrize("name", ["alice", "a b+c*d~e%f/g", "Jürgen@corp", "<default>", "a.b-c_d"])
def test_a_sanitized_name_is_read_back(name: str) -> None:
    assert desanitize(sanitized(name)) == name
    assert not set(sanitized(name)) & set(" +*~/<>@")


def test_the_default_is_not_a_user_of_that_name() -> None:
    assert sanitized(None) == "<default>"
    assert sanitized("<default>") == "%3Cdefault%3E"


def quota(kind: str, name: str | None) -> dict[str, Any]:
    return {"entity": [{"type": kind, "name": name}], "quota": "producer_byte_rate"}


@pytest.mark.parametrize(
    ("key", "cause"),
    [
        (quota("user", "carol%40corp"), "KAFKA-16222"),
        (quota("user", ""), "KAFKA-16411"),
        (quota("users", "carol"), "Kafka 3.4"),
        (quota("user", "carol"), None),
        (quota("user", None), None),
    ],
)
def test_names_that_only_a_load_makes(key: dict[str, Any], cause: str | None) -> None:
    told = mangled("client_quotas", key)
    assert told is None if cause is None else cause in (told or "")


@pytest.mark.parametrize(
    ("name", "cause"), [("carol@corp", "KAFKA-16222"), (None, "KAFKA-16411"), ("carol", None), ("a%b", "KAFKA-16222")]
)
def test_names_that_such_a_load_stores_under_another(name: str | None, cause: str | None) -> None:
    told = mangled_by_load("client_quotas", quota("user", name))
    assert told is None if cause is None else cause in (told or "")


def test_other_rows_have_no_such_names() -> None:
    assert mangled("topics", {"topic": "a%40b"}) is None
    assert mangled_by_load("configs", {"resource_type": "BROKER", "resource_name": ""}) is None
