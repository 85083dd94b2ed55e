"""What a Kafka 3.4 controller writes: its load of a tree (`ZkMigrationClient` of 3.4.1), and its checkpoints (S§4.3)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

from tests.kraft.encoder import batch, control_record
from tests.pipeline.logs import Record, record
from tests.pipeline.trees import Tree

TOPIC, BROKER = 2, 4
LEVEL_3_4 = 8
DEFAULT = "<default>"
Batch = list[Record]


def bootstrap() -> Batch:
    return [record("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=LEVEL_3_4)]


def registrations(brokers: Sequence[int], first_offset: int) -> Batch:
    """ZooKeeper brokers, ready to migrate, unfenced."""
    return [
        record(
            "REGISTER_BROKER_RECORD",
            2,
            brokerId=broker,
            isMigratingZkBroker=True,
            incarnationId="AAECAwQFBgcICQoLDA0OD" + "wgQ"[index],
            brokerEpoch=first_offset,
            endPoints=[{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 19100 + broker, "securityProtocol": 0}],
            features=[{"name": "metadata.version", "minSupportedVersion": LEVEL_3_4, "maxSupportedVersion": LEVEL_3_4}],
            rack=None,
            fenced=False,
            inControlledShutdown=False,
        )
        for index, broker in enumerate(brokers)
    ]


def begin() -> Batch:
    return [record("ZK_MIGRATION_STATE_RECORD", zkMigrationState=1)]


def topics(tree: Tree) -> Iterator[Batch]:
    """A batch a topic: TopicRecord, its partitions, its configurations."""
    for name in _children(tree, "/brokers/topics"):
        document = tree.json(f"/brokers/topics/{name}")
        topic = record("TOPIC_RECORD", name=name, topicId=document["topic_id"])
        partitions = [
            partition(tree, name, document["topic_id"], int(number), replicas)
            for number, replicas in document["partitions"].items()
        ]
        yield [topic, *partitions, *_configs(tree, f"/config/topics/{name}", TOPIC, name)]


def partition(tree: Tree, name: str, topic_id: str, number: int, replicas: list[int]) -> Record:
    node = tree.nodes[f"/brokers/topics/{name}/partitions/{number}/state"]
    state = tree.json(node["path"])
    return record(
        "PARTITION_RECORD",
        partitionId=number,
        topicId=topic_id,
        replicas=replicas,
        isr=state["isr"],
        leader=state["leader"],
        leaderEpoch=state["leader_epoch"],
        partitionEpoch=node["version"],
    )


def brokers(tree: Tree) -> Batch:
    return [
        item
        for name in _children(tree, "/config/brokers")
        for item in _configs(tree, f"/config/brokers/{name}", BROKER, "" if name == DEFAULT else name)
    ]


def quotas(tree: Tree) -> Iterator[Batch]:
    """The folders' names stand for the entities' types, and names stay encoded; a SCRAM user ends the load."""
    for folder in ("users", "clients"):
        for name in _children(tree, f"/config/{folder}"):
            yield _quotas(tree, f"/config/{folder}/{name}", [(folder, name)])
    for user in _children(tree, "/config/users"):
        for client in _children(tree, f"/config/users/{user}/clients"):
            path = f"/config/users/{user}/clients/{client}"
            yield _quotas(tree, path, [("users", user), ("clients", client)])
    for name in _children(tree, "/config/ips"):
        yield _quotas(tree, f"/config/ips/{name}", [("ips", name)])


def producer_ids(tree: Tree) -> Batch:
    block = tree.json("/latest_producer_id_block")
    return [
        record(
            "PRODUCER_IDS_RECORD", brokerId=block["broker"], brokerEpoch=-1, nextProducerId=int(block["block_start"])
        )
    ]


def checkpoint(log: Path, offset: int, records: Batch, time: int) -> None:
    """A complete `.checkpoint` of everything below `offset`, beside a controller's segments."""
    head = control_record("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": time})
    foot = control_record("SNAPSHOT_FOOTER", {"version": 0})
    data = batch([head], 0, 1, time, attributes=0x20) + batch(records, 1, 1, time)
    data += batch([foot], 1 + len(records), 1, time, attributes=0x20)
    (log / f"{offset:020}-{1:010}.checkpoint").write_bytes(data)


def _quotas(tree: Tree, path: str, entity: list[tuple[str, str]]) -> Batch:
    parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
    return [
        record("CLIENT_QUOTA_RECORD", entity=parts, key=key, value=float(value), remove=False)
        for key, value in _config(tree, path).items()
    ]


def _configs(tree: Tree, path: str, kind: int, name: str) -> Batch:
    return [
        record("CONFIG_RECORD", resourceType=kind, resourceName=name, name=key, value=value)
        for key, value in _config(tree, path).items()
    ]


def _config(tree: Tree, path: str) -> dict[str, str]:
    node = tree.nodes.get(path)
    if node is None or node["data_base64"] is None:
        return {}
    found: dict[str, str] = json.loads(tree.text(path))["config"]
    return found


def _children(tree: Tree, path: str) -> list[str]:
    prefix = f"{path}/"
    return sorted(
        name.removeprefix(prefix) for name in tree.nodes if name.startswith(prefix) and "/" not in name[len(prefix) :]
    )


def decoded(segment: str) -> str | None:
    """The name behind a znode's name; None for the default."""
    return None if segment == DEFAULT else unquote_plus(segment)


def quota_keys(tree: Tree) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Keys of all quotas: as ZooKeeper means them, and as 3.4 loads them."""
    types = {"users": "user", "clients": "client-id", "ips": "ip"}
    found = []
    for path in tree.nodes:
        parts = path.split("/")[2:]
        if not path.startswith("/config/") or parts[0] not in types or len(parts) not in (2, 4):
            continue
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        right = {types[kind]: decoded(name) for kind, name in sorted(pairs, key=lambda pair: types[pair[0]])}
        wrong = dict(sorted(pairs))
        found += [({"entity": right, "quota": key}, {"entity": wrong, "quota": key}) for key in _config(tree, path)]
    return found
