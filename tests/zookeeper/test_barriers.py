"""ZooKeeper at every barrier equals KRaft at the barrier's offset (S§5.5), to the last comparable row.

KRaft's side is what Kafka's own `kafka-dump-log` printed, replayed here in the plainest way: this is the yardstick, so
it shares no code with the product's own replay.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from jobs.sources.zookeeper.folder import DataFolder, read_folder
from tests.captures import capture
from tests.zookeeper.test_state import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES, acls, configs, partitions
from tests.zookeeper.trees import FINGERPRINT, REDACTOR, of, state_rows
from transforms.secrets import is_sensitive_config
from transforms.zookeeper.storage.writes import WriteCensus

MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
Records = Iterator[tuple[int, str, dict[str, Any]]]


def records(version: str, stage: str, controller: int) -> Records:
    """(offset, type, data) of the segments that kafka-dump-log printed; not of the snapshots."""
    in_segment = False
    with gzip.open(capture(version, stage) / f"dump-log-{controller}.txt.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("# "):
                in_segment = line.strip().endswith(".log")
            elif in_segment and " payload: " in line:
                head, payload = line.split(" payload: ", 1)
                record = json.loads(payload)
                yield int(head.split()[2]), record["type"], record["data"]


class Kraft:
    """KRaft's state in the form of the tests' ZooKeeper helpers."""

    def __init__(self) -> None:
        self.topics: dict[str, str] = {}
        self.partitions: dict[tuple[str, int], dict[str, Any]] = {}
        self.configs: dict[tuple[str, ...], str] = {}
        self.quotas: dict[str, float] = {}
        self.scram: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.acls: dict[str, tuple[str, ...]] = {}
        self.tokens: dict[str, list[Any]] = {}
        self.next_producer_id: int | None = None

    def apply(self, kind: str, data: dict[str, Any]) -> None:
        handler = getattr(self, "_" + kind.lower().removesuffix("_record"), None)
        if handler is not None:
            handler(data)

    def _topic(self, data: dict[str, Any]) -> None:
        self.topics[data["topicId"]] = data["name"]

    def _remove_topic(self, data: dict[str, Any]) -> None:
        name = self.topics.pop(data["topicId"])
        self.partitions = {key: row for key, row in self.partitions.items() if key[0] != data["topicId"]}
        self.configs = {key: value for key, value in self.configs.items() if key[:2] != ("topic", name)}

    def _partition(self, data: dict[str, Any]) -> None:
        self.partitions[data["topicId"], data["partitionId"]] = {
            "replicas": data["replicas"],
            "adding": data["addingReplicas"],
            "removing": data["removingReplicas"],
            "isr": data["isr"],
            "leader": data["leader"],
            "leader_epoch": data["leaderEpoch"],
            "recovery": data.get("leaderRecoveryState", 0),
        }

    def _partition_change(self, data: dict[str, Any]) -> None:
        row = self.partitions[data["topicId"], data["partitionId"]]
        names = {"replicas": "replicas", "adding": "addingReplicas", "removing": "removingReplicas", "isr": "isr"}
        row |= {name: data[field] for name, field in names.items() if data.get(field) is not None}
        if data.get("leader", -2) != -2:
            row |= {"leader": data["leader"], "leader_epoch": row["leader_epoch"] + 1}
        if data.get("leaderRecoveryState", -1) != -1:
            row["recovery"] = data["leaderRecoveryState"]

    def _config(self, data: dict[str, Any]) -> None:
        key = ({2: "topic", 4: "broker"}[data["resourceType"]], data["resourceName"], data["name"])
        if data["value"] is None:
            self.configs.pop(key, None)
        else:
            self.configs[key] = FINGERPRINT.text(data["value"]) if is_sensitive_config(key[2]) else data["value"]

    def _client_quota(self, data: dict[str, Any]) -> None:
        key = quota_key([(part["entityType"], part["entityName"]) for part in data["entity"]], data["key"])
        if data["remove"]:
            self.quotas.pop(key, None)
        else:
            self.quotas[key] = data["value"]

    def _user_scram_credential(self, data: dict[str, Any]) -> None:
        secrets = (FINGERPRINT.bytes(base64.b64decode(data[name])) for name in ("salt", "storedKey", "serverKey"))
        self.scram[data["name"], MECHANISMS[data["mechanism"]]] = (*secrets, data["iterations"])

    def _remove_user_scram_credential(self, data: dict[str, Any]) -> None:
        del self.scram[data["name"], MECHANISMS[data["mechanism"]]]

    def _access_control_entry(self, data: dict[str, Any]) -> None:
        resource = (RESOURCE_TYPES[data["resourceType"]], data["resourceName"], PATTERN_TYPES[data["patternType"]])
        who = (data["principal"], data["host"], OPERATIONS[data["operation"]], PERMISSIONS[data["permissionType"]])
        self.acls[data["id"]] = (*resource, *who)

    def _remove_access_control_entry(self, data: dict[str, Any]) -> None:
        del self.acls[data["id"]]

    def _delegation_token(self, data: dict[str, Any]) -> None:
        times = [data["issueTimestamp"], data["maxTimestamp"], data["expirationTimestamp"]]
        self.tokens[data["tokenId"]] = [data["owner"], data["requester"], sorted(data["renewers"]), *times]

    def _remove_delegation_token(self, data: dict[str, Any]) -> None:
        del self.tokens[data["tokenId"]]

    def _producer_ids(self, data: dict[str, Any]) -> None:
        self.next_producer_id = data["nextProducerId"]

    def comparable(self) -> dict[str, Any]:
        return {
            "topics": {name: topic_id for topic_id, name in self.topics.items()},
            "partitions": {(self.topics[key[0]], key[1]): row for key, row in self.partitions.items()},
            "configs": self.configs,
            "quotas": self.quotas,
            "scram": self.scram,
            "acls": Counter(self.acls.values()),
            "tokens": self.tokens,
            "next_producer_id": self.next_producer_id,
        }


def quota_key(entity: list[tuple[str, str | None]], quota: str) -> str:
    return json.dumps([sorted(entity, key=lambda part: part[0]), quota])


def zookeeper(rows: list[dict[str, Any]]) -> dict[str, Any]:
    secrets = ("salt", "stored_key", "server_key", "iterations")
    times = ("owner", "requester", "renewers", "issue_timestamp", "max_timestamp", "expiry_timestamp")
    blocks = [row["next_producer_id"] for row in of(rows, "producer_ids")]
    return {
        "topics": {row["topic"]: row["topic_id"] for row in of(rows, "topics")},
        "partitions": partitions(rows),
        "configs": configs(rows),
        "quotas": {
            quota_key([(part["type"], part["name"]) for part in row["entity"]], row["quota"]): row["value"]
            for row in of(rows, "client_quotas")
        },
        "scram": {
            (row["user"], row["mechanism"]): tuple(row[name] for name in secrets)
            for row in of(rows, "scram_credentials")
        },
        "acls": acls(rows),
        "tokens": {row["token_id"]: [row[name] for name in times] for row in of(rows, "delegation_tokens")},
        "next_producer_id": blocks[0] if blocks else None,
    }


@pytest.mark.parametrize(
    ("version", "stage", "controller", "at_least"),
    [
        ("3.9.1", "11-brokers-kraft", 3001, 105),
        ("3.6.2", "11-brokers-kraft", 3001, 109),
    ],
)
@pytest.mark.slow
def test_every_barrier_is_exact(version: str, stage: str, controller: int, at_least: int) -> None:
    history, folder = WriteCensus(), DataFolder(capture(version, stage) / "zookeeper")
    for _ in history.read(folder.transactions()):
        pass
    log = list(records(version, stage, controller))
    assert log[0][0] <= 1
    kraft, position, compared = Kraft(), 0, 0
    for barrier in history.barriers:
        while position < len(log) and log[position][0] <= barrier.kraft_metadata_offset:
            kraft.apply(*log[position][1:])
            position += 1
        if log[-1][0] < barrier.kraft_metadata_offset:
            break
        batches = list(folder.tree(REDACTOR, barrier.zxid))
        assert zookeeper(state_rows(batches)) == kraft.comparable(), barrier
        compared += 1
    assert compared >= at_least


def test_the_yardstick_sees_a_difference() -> None:
    """A row changed on one side only is a difference: the comparison above can fail."""
    folder = capture("3.9.1", "7-dual-write-failover") / "zookeeper"
    history = WriteCensus()
    for _ in history.read(DataFolder(folder).transactions()):
        pass
    early, late = history.barriers[0], history.barriers[-1]
    kraft = Kraft()
    for offset, kind, data in records("3.9.1", "7-dual-write-failover", 3001):
        if offset <= late.kraft_metadata_offset:
            kraft.apply(kind, deepcopy(data))
    assert zookeeper(state_rows(list(read_folder(folder, REDACTOR, zxid=late.zxid)))) == kraft.comparable()
    zookeeper_then = zookeeper(state_rows(list(read_folder(folder, REDACTOR, zxid=early.zxid))))
    kraft_now = kraft.comparable()
    same = {name for name in kraft_now if zookeeper_then[name] == kraft_now[name]}
    assert same == set()
