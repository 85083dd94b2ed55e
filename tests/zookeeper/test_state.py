"""State rows of real trees against what the cluster's own tools said about them."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from tests.captures import capture
from tests.zookeeper.malformed import GOOD_STATE, GOOD_TOPIC, MALFORMED, TOKEN, js
from tests.zookeeper.trees import (
    EVERY_STAGE,
    FINGERPRINT,
    HEALTHY,
    codes,
    dump_batches,
    of,
    raw_dump,
    state_of,
    state_rows,
    znode,
)
from transforms.secrets import is_sensitive_config
from transforms.zookeeper.read import routes
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.reading import ZnodeView
from transforms.zookeeper.read.state import STATE, cluster_state

RESOURCE_TYPES = {2: "TOPIC", 3: "GROUP", 4: "CLUSTER", 5: "TRANSACTIONAL_ID", 6: "DELEGATION_TOKEN", 7: "USER"}
PATTERN_TYPES = {3: "LITERAL", 4: "PREFIXED"}
OPERATIONS = dict(
    enumerate(
        [
            "ALL",
            "READ",
            "WRITE",
            "CREATE",
            "DELETE",
            "ALTER",
            "DESCRIBE",
            "CLUSTER_ACTION",
            "DESCRIBE_CONFIGS",
            "ALTER_CONFIGS",
            "IDEMPOTENT_WRITE",
            "CREATE_TOKENS",
            "DESCRIBE_TOKENS",
        ],
        start=2,
    )
)
PERMISSIONS = {2: "DENY", 3: "ALLOW"}
COUNTED = {
    "topics": "topics",
    "partitions": "partition_states",
    "configs": "configs",
    "quotas": "client_quotas",
    "scram": "scram_credentials",
    "acls": "acls",
    "tokens": "delegation_tokens",
}


def expected(version: str, stage: str) -> dict[str, Any]:
    return json.loads((capture(version, stage) / "expected.json").read_text())


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_every_stage_has_the_counts_of_its_live_tree(version: str, stage: str) -> None:
    rows = state_rows(dump_batches(version, stage))
    counts = Counter(row["entity"] for row in rows)
    assert {name: counts[entity] for name, entity in COUNTED.items()} == expected(version, stage)["zk_counts"]
    assert counts["partition_assignments"] == counts["partition_states"]
    assert counts["findings"] == 0
    brokers = sorted(row["broker_id"] for row in of(rows, "brokers"))
    assert brokers == expected(version, stage).get("zk_brokers", brokers)


@pytest.mark.parametrize(("version", "stage"), HEALTHY)
def test_healthy_dual_write_equals_the_replayed_log(version: str, stage: str) -> None:
    rows = state_rows(dump_batches(version, stage))
    truth = expected(version, stage)["state"]
    assert {row["topic"]: row["topic_id"] for row in of(rows, "topics")} == pairs(truth["topics"])
    assert partitions(rows) == {
        tuple(item["key"]): without(item["value"], "partition_epoch") for item in truth["partitions"]
    }
    assert configs(rows) == expected_configs(truth)
    assert quotas(rows) == {json.dumps(item["key"]): item["value"] for item in truth["quotas"]}
    assert acls(rows) == Counter(acl_names(item) for item in truth["acls"])
    assert scram(rows) == expected_scram(truth)
    assert tokens(rows) == pairs(truth["tokens"])
    assert [row["next_producer_id"] for row in of(rows, "producer_ids")] == [truth["next_producer_id"]]


@pytest.mark.parametrize(("version", "stage"), HEALTHY)
def test_migration_znodes_say_what_the_client_saw(version: str, stage: str) -> None:
    merged: dict[str, Any] = {}
    for row in of(state_rows(dump_batches(version, stage)), "migration"):
        assert not merged.keys() & row.keys()
        merged |= row
    seen = {key: merged[key] for key in merged if key.startswith("kraft_")}
    assert {"version": 0, **seen} == expected(version, stage)["migration"]
    assert merged["controller_persistent"]
    assert merged["controller_id"] == merged["kraft_controller_id"]
    assert merged["controller_kraft_epoch"] == merged["kraft_controller_epoch"]
    assert merged["controller_czxid"] == merged["controller_epoch_mzxid"]
    meta = (capture(version, stage) / "kraft" / "3001" / "meta.properties").read_text()
    assert f"cluster.id={merged['cluster_id']}" in meta


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_the_fast_way_equals_the_readers(version: str, stage: str) -> None:
    def plain(rows: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps({k: v for k, v in row.items() if v is not None}, sort_keys=True) for row in rows)

    batches = dump_batches(version, stage)
    fast = [
        {"entity": row["entity"], "zk_path": row["zk_path"], **(row["row"] or typed(row))}
        for row in state_rows(batches)
    ]
    slow = []
    for batch in batches:
        for values in zip(*(batch[name].to_pylist() for name in ZnodeView._fields), strict=True):
            view = ZnodeView(*values)
            slow += [{"entity": fact.entity, "zk_path": view.path, **fact.row} for fact in routes.read(view)]
    assert plain(fast) == plain(slow)


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_no_secret_is_left_in_any_row(version: str, stage: str) -> None:
    batches = dump_batches(version, stage)
    written = json.dumps([batch.to_pylist() for batch in batches]) + json.dumps(state_rows(batches))
    for secret in secrets_of(version, stage):
        assert secret not in written


def secrets_of(version: str, stage: str) -> set[str]:
    secrets = {
        "alice-secret",
        "bob-secret",
        "carol-secret",
        "dave-secret",
        "svc-secret",
        "encoder-secret",
        "token-secret",
    }
    for path, entry in raw_dump(capture(version, stage)).items():
        if not path.startswith("/config/users/") or not entry["data"]:
            continue
        for name, value in json.loads(entry["data"])["config"].items():
            if name.startswith("SCRAM"):
                secrets |= {part.split("=", 1)[1] for part in value.split(",") if not part.startswith("iterations")}
    assert len(secrets) > 7
    return secrets | {base64.b64decode(value).hex() for value in secrets if value.endswith("=")}


def pairs(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {item["key"]: item["value"] for item in items}


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: cell for key, cell in value.items() if key not in names}


def typed(row: dict[str, Any]) -> dict[str, Any]:
    return {key: cell for key, cell in row.items() if not key.startswith("zk_")}


def partitions(rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    result: dict[tuple[str, int], dict[str, Any]] = {}
    for row in of(rows, "partition_assignments"):
        names = {"replicas": "replicas", "adding": "adding_replicas", "removing": "removing_replicas"}
        result[row["topic"], row["partition"]] = {name: row[column] for name, column in names.items()}
    for row in of(rows, "partition_states"):
        result[row["topic"], row["partition"]] |= {
            "isr": row["isr"],
            "leader": row["leader"],
            "leader_epoch": row["leader_epoch"],
            "recovery": row["leader_recovery_state"],
        }
    return result


def configs(rows: list[dict[str, Any]]) -> dict[tuple[str, ...], str]:
    assert all(row["comparable"] for row in of(rows, "configs"))
    return {
        (row["resource_type"].lower(), row["resource_name"], row["config"]): row["value"] for row in of(rows, "configs")
    }


def expected_configs(truth: dict[str, Any]) -> dict[tuple[str, ...], str]:
    return {
        tuple(item["key"]): FINGERPRINT.text(item["value"]) if is_sensitive_config(item["key"][2]) else item["value"]
        for item in truth["configs"]
    }


def quotas(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {
        json.dumps([[[part["type"], part["name"]] for part in row["entity"]], row["quota"]]): row["value"]
        for row in of(rows, "client_quotas")
    }


def acls(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    names = ("resource_type", "resource_name", "pattern_type", "principal", "host", "operation", "permission")
    return Counter(tuple(row[name] for name in names) for row in of(rows, "acls"))


def acl_names(item: list[Any]) -> tuple[str, ...]:
    kind, name, pattern, principal, host, operation, permission = item
    enums = (RESOURCE_TYPES[kind], name, PATTERN_TYPES[pattern], principal, host)
    return (*enums, OPERATIONS[operation], PERMISSIONS[permission])


def scram(rows: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {
        (row["user"], row["mechanism"]): (row["salt"], row["stored_key"], row["server_key"], row["iterations"])
        for row in of(rows, "scram_credentials")
    }


def expected_scram(truth: dict[str, Any]) -> dict[tuple[str, str], tuple[Any, ...]]:
    mechanisms = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
    result = {}
    for item in truth["scram"]:
        user, mechanism = item["key"]
        *keys, iterations = item["value"]
        hidden = tuple(FINGERPRINT.bytes(base64.b64decode(key)) for key in keys)
        result[user, mechanisms[mechanism]] = (*hidden, iterations)
    return result


def tokens(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    columns = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp")
    return {row["token_id"]: [row[column] for column in columns] for row in of(rows, "delegation_tokens")}


@pytest.mark.parametrize(("path", "data", "found"), MALFORMED)
def test_malformed_znodes_become_findings(path: str, data: bytes | None, found: list[str]) -> None:
    assert codes(state_of(path, data)) == sorted(found)


def test_a_malformed_znode_costs_its_neighbours_nothing() -> None:
    paths = [f"/brokers/topics/t/partitions/{number}/state" for number in range(5)]
    batch = znode_batch([znode(path, b"{" if path.endswith("3/state") else js(GOOD_STATE)) for path in paths])
    rows = state_rows([batch])
    assert sorted(row["partition"] for row in of(rows, "partition_states")) == [0, 1, 2, 4]
    assert codes(rows) == ["START-04"]


def test_trees_in_one_batch_are_each_read_as_they_are_alone() -> None:
    """The same topic can be in both trees: rows that lie between another tree's change nothing, nor do odd ones."""
    odd = znode_batch([znode("/brokers/topics/wide", b"{"), znode("/config/topics/wide", b"[]")])
    trees = {
        None: [*dump_batches("3.6.2", "5-dual-write-changed"), odd],
        BARRIER: dump_batches("3.9.1", "5-dual-write-changed"),
        NEWEST: dump_batches("3.9.1", "12-finalized"),
    }
    named = [of_tree(tree, batches) for tree, batches in trees.items()]
    mixed = pa.concat_tables(named).sort_by("path").combine_chunks()
    together = cluster_state(mixed.to_batches()).to_dicts()
    assert {row[TREE] for row in together} == trees.keys()
    for tree, batches in trees.items():
        alone = [{name: value for name, value in row.items() if name != TREE} for row in together if row[TREE] == tree]
        assert in_order(alone) == in_order(state_rows(batches, parsed=False))


def test_without_znodes_there_is_no_state() -> None:
    empty = of_tree(None, [znode_batch([znode("/a", b"")])]).to_batches()[0].slice(0, 0)
    assert cluster_state([]).schema == cluster_state([empty]).schema == STATE


def of_tree(tree: str | None, batches: list[pa.RecordBatch]) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return table.append_column(TREE, pa.array([tree] * table.num_rows, pa.string()))


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def test_names_are_decoded_as_kafka_does() -> None:
    quota = b'{"version":1,"config":{"request_percentage":"1.5E1"}}'
    rows = state_of("/config/users/%3Cdefault%3E/clients/<default>", quota)
    assert of(rows, "client_quotas") == [
        {
            "entity": [{"type": "client-id", "name": None}, {"type": "user", "name": "<default>"}],
            "quota": "request_percentage",
            "value": 15.0,
        }
    ]
    assert of(state_of("/config/clients/a%20b+c%2Ad", quota), "client_quotas")[0]["entity"] == [
        {"type": "client-id", "name": "a b c*d"}
    ]


def test_older_payloads() -> None:
    old_topic = of(state_of("/brokers/topics/t", b'{"version":1,"partitions":{"3":[7]}}'), "partition_assignments")
    assert [(row["partition"], row["replicas"], row["adding_replicas"]) for row in old_topic] == [(3, [7], [])]
    moving = js(GOOD_TOPIC, adding_replicas={"0": [2]}, removing_replicas={"0": [1]})
    row = of(state_of("/brokers/topics/t", moving), "partition_assignments")[0]
    assert (row["adding_replicas"], row["removing_replicas"]) == ([2], [1])
    token = of(state_of("/delegation_token/tokens/id", js(TOKEN, version=1)), "delegation_tokens")[0]
    assert (token["owner"], token["requester"], token["renewers"]) == ("User:a", "User:a", ["User:c"])
    broker = of(state_of("/brokers/ids/4", b'{"version":1,"host":"h","port":9}', czxid=77), "brokers")[0]
    assert (broker["broker_epoch"], broker["endpoints"][0]["host"], broker["znode_version"]) == (77, "h", 1)
    # Of a link-local address with its network interface (`Utils.HOST_PORT_PATTERN`), too.
    for host in ("::1", "fe80::a1%eth0", "fe80::a1%br-lan_2.100"):
        six = f'{{"version":3,"endpoints":["PLAINTEXT://[{host}]:9092"],"host":null,"port":-1}}'.encode()
        assert of(state_of("/brokers/ids/4", six), "brokers")[0]["endpoints"] == [
            {"name": "PLAINTEXT", "host": host, "port": 9092, "security_protocol": "PLAINTEXT"}
        ]
    feature = of(
        state_of(
            "/feature", b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":4}}}'
        ),
        "features",
    )
    assert feature == [{"feature": "f", "level": 4, "min_level": 1}]


def test_requests_under_way() -> None:
    plan = b'{"version":1,"partitions":[{"topic":"t","partition":1,"replicas":[1,2]}]}'
    assert of(state_of("/admin/reassign_partitions", plan), "admin_operations") == [
        {"kind": "reassign_partitions", "subject": "t-1", "detail": "to [1, 2]"}
    ]
    assert of(state_of("/admin/delete_topics/t", None), "admin_operations")[0]["kind"] == "delete_topic"
    assert of(state_of("/isr_change_notification/isr_change_1", plan), "admin_operations")[0]["kind"] == "isr_change"
    legacy = b'{"version":1,"entity_type":"topics","entity_name":"t"}'
    assert of(state_of("/config/changes/config_change_1", legacy), "admin_operations")[0]["subject"] == "topics/t"
    changed = of(state_of("/kafka-acl-changes/acl_changes_1", b"TOPIC:a:b"), "admin_operations")
    assert changed[0]["subject"] == "LITERAL:TOPIC:a:b"
