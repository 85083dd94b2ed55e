"""Rows of a KRaft cluster that each break one rule of its health, beside a healthy one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.reconcile.planted import Row, samples, table
from transforms.isr.violations import Present
from transforms.reconcile.judge import kraft_queries
from transforms.reconcile.judge.directory_rules import LOST, MIGRATING, directories
from transforms.reconcile.judge.facts import Sample
from transforms.reconcile.judge.kraft_queries import Health

HOUR = 3_600_000
END_MS = 40 * HOUR
DISKS = {0: ["d0"], 1: ["d1"], 2: ["d2"], 4: ["d4", "d4-closed"]}
HEALTH = Health(
    brokers=[0, 1, 2],
    directories=DISKS,
    leaderless=True,
    compared=True,
    zookeeper=True,
    level=21,
    racks={0: "a", 1: "b", 2: "a", 4: "b"},
    cordoned={4: ["d4-closed"]},
    present=Present(END_MS, at_work=(0, 1), bumps_on_shrink=False),
)


def row(topic: str, **values: Any) -> Row:
    whole: Row = {
        "source": "kraft",
        "topic": topic,
        "topic_id": topic,
        "partition": 0,
        "replicas": [0, 1],
        "adding_replicas": [],
        "removing_replicas": [],
        "isr": [0, 1],
        "leader": 0,
        "leader_epoch": 4,
        "leader_recovery_state": 0,
        "partition_epoch": 7,
        "directories": ["d0", "d1"],
        "eligible_leader_replicas": [],
        "last_known_elr": [],
        "kraft_append_time": END_MS - 1,
    }
    return {**whole, **values}


def in_zookeeper(topic: str, **values: Any) -> Row:
    return row(topic, **{"source": "zookeeper", "directories": None, "zk_czxid": 5, **values})


HEALTHY = [row("in-order"), in_zookeeper("in-order")]
PARTITIONS: list[Row] = [
    *HEALTHY,
    row("of-a-stranger", isr=[0, 9]),
    row("led-from-outside", leader=1, isr=[0]),
    row("led-by-a-stranger", leader=9, isr=[0, 9], replicas=[0, 9], directories=["d0", "x"]),
    row("with-a-stopped-one", replicas=[0, 2], isr=[0, 2], directories=["d0", "d2"]),
    in_zookeeper("with-one-gone", replicas=[0, 7], isr=[0, 7]),
    row("short", isr=[0]),
    in_zookeeper("in-another-order"),
    row("in-another-order", isr=[1, 0]),
    in_zookeeper("ahead", leader_epoch=5),
    row("ahead"),
    row("recovering", leader_recovery_state=1, kraft_append_time=END_MS - 40 * 60_000),
    row("for-good", leader=-1, isr=[]),
    row("on-a-lost-disk", directories=["d0", LOST]),
    row("alone", replicas=[0], isr=[0], directories=["d0"]),
    row("__consumer_offsets", replicas=[0], isr=[0], directories=["d0"]),
    row("all-needed"),
    row("moving", adding_replicas=[1], kraft_append_time=END_MS - 30 * HOUR),
    row("in-one-rack", replicas=[0, 2], isr=[0], directories=["d0", "d2"]),
    row("waits-for-one", leader=-1, isr=[], eligible_leader_replicas=[1]),
    row("__share_group_state", leader=-1, isr=[], eligible_leader_replicas=[1]),
    row("left-behind", eligible_leader_replicas=[1, 5], last_known_elr=[7]),
    row("letters", leader=-1, isr=[], eligible_leader_replicas=[1]),
    row("not-placed", replicas=[0, 4], isr=[0], directories=["d0", MIGRATING], kraft_append_time=END_MS - 2 * HOUR),
    row("closed-in", replicas=[0, 4], isr=[0], directories=["d0", "d4-closed"]),
]
CONFIGS: list[Row] = [
    {
        "source": "kraft",
        "resource_type": "TOPIC",
        "resource_name": name,
        "config": key,
        "value": value,
        "comparable": True,
    }
    for name, key, value in (
        ("short", "min.insync.replicas", "2"),
        ("for-good", "unclean.leader.election.enable", "true"),
        ("old", "message.format.version", "2.8"),
        ("all-needed", "min.insync.replicas", "2"),
        ("throttled", "leader.replication.throttled.replicas", "*"),
        ("old", "message.downconversion.enable", "true"),
        ("old", "segment.bytes", "1048575"),
        ("in-order", "segment.bytes", "1048576"),
    )
]
CONFIGS += [
    {
        "source": "kraft",
        "resource_type": "GROUP",
        "resource_name": group,
        "config": "errors.deadletterqueue.topic.name",
        "value": topic,
        "comparable": True,
    }
    for group, topic in (
        ("reads", "letters"),
        ("reads-too", "nowhere"),
        ("reads-well", "in-order"),
        ("reads-shut", "moving"),
        ("reads-within", "__consumer_offsets"),
        ("reads-none", " "),
    )
]
CONFIGS += [
    {
        "source": "kraft",
        "resource_type": "TOPIC",
        "resource_name": topic,
        "config": "errors.deadletterqueue.group.enable",
        "value": value,
        "comparable": True,
    }
    for topic, value in (("letters", "true"), ("in-order", " TRUE "), ("moving", "false"))
]
ACLS: list[Row] = [
    {
        "source": "kraft",
        "resource_type": "TOPIC",
        "resource_name": "t",
        "pattern_type": "LITERAL",
        "principal": "User:a",
        "host": host,
        "operation": "READ",
        "permission": permission,
    }
    for host, permission in (("10.1.0.0/16", "DENY"), ("10.1.0.0/16", "ALLOW"), ("10.1.0.1", "DENY"))
]
ACLS += [{**ACLS[2], "acl_id": "of the second load"}, {**ACLS[2], "source": "zookeeper", "acl_id": None}]
ACLS += [{**ACLS[2], "resource_name": "u", "principal": "a"}, {**ACLS[2], "source": "zookeeper", "principal": "b"}]
CREDENTIALS: list[Row] = [
    {
        "source": "kraft",
        "user": user,
        "mechanism": "SCRAM-SHA-256",
        "salt": "hmac:0a",
        "stored_key": "hmac:0b",
        "server_key": "hmac:0c",
        "iterations": number,
        "kraft_offset": 3,
    }
    for user, number in (("weak", 1024), ("as-asked", 4096), ("carol%40corp", 4096))
]
TOKENS: list[Row] = [
    {"source": "kraft", "token_id": name, "expiry_timestamp": END_MS - age}
    for name, age in (("old", 5 * HOUR), ("new", -HOUR))
]
FINDINGS: list[Row] = [
    {
        "source": "kraft",
        "code": "CAP-08",
        "subject": 'partitions {"topic":"t"}',
        "detail": "differ",
        "place": "checkpoint 5",
    },
    {
        "source": "kraft",
        "code": "CONFIG-LEFT",
        "subject": 'configs ["TOPIC", "gone", "retention.ms"]',
        "detail": "in the checkpoint, not in the replay",
        "place": "checkpoint 5",
    },
    {
        "source": "kraft",
        "code": "CONFIG-ALONE",
        "subject": 'configs ["TOPIC", "gone", "retention.ms"]',
        "detail": "its topic is not there",
        "place": "offset 4",
    },
    {
        "source": "kraft",
        "code": "SCRAM-LEFT-OUT",
        "subject": 'scram_credentials ["weak", "SCRAM-SHA-256"]',
        "detail": "in the replay, not in the checkpoint",
        "place": "checkpoint 5",
    },
    {"source": "zookeeper", "code": "CONFIG-COST", "subject": "0", "detail": "too dear", "place": "/config/brokers/0"},
]
OPERATIONS: list[Row] = [
    {"kind": "isr_change", "subject": "t-0", "zk_path": "/isr_change_notification/1", "zk_mtime": END_MS - 90_000}
]


def other_samples() -> Mapping[str, Sample]:
    """Rules that need another cluster than HEALTH, or an earlier run."""
    low = directories(table("partitions", [row("early")]), 14, {})
    earlier = [in_zookeeper("in-order", leader_epoch=9), in_zookeeper("in-order", partition_epoch=1)]
    now = [in_zookeeper("in-order"), in_zookeeper("made-again", zk_czxid=6)]
    made_again = in_zookeeper("made-again", leader_epoch=9, zk_czxid=1)
    then = table("partitions", [*earlier, made_again])
    return samples(low, kraft_queries.fallen_epochs(table("partitions", now), then))
