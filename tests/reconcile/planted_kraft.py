"""Rows of a KRaft cluster that each break one rule of its health, beside a healthy one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from tests.reconcile.planted import ALONE, TABLES, Row, frame, samples
from transforms.isr.violations import Present
from transforms.reconcile.judge import kraft_queries
from transforms.reconcile.judge.facts import Sample
from transforms.reconcile.judge.kraft_queries import LOST, Health

END_MS = 10_000_000
DISKS = {0: ["d0"], 1: ["d1"], 2: ["d2"]}
HEALTH = Health(
    brokers=[0, 1, 2],
    directories=DISKS,
    leaderless=True,
    compared=True,
    zookeeper=True,
    level=21,
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
    )
]
FINDINGS: list[Row] = [
    {
        "source": "kraft",
        "code": "CAP-08",
        "subject": 'partitions {"topic":"t"}',
        "detail": "differ",
        "place": "checkpoint 5",
    }
]
OPERATIONS: list[Row] = [
    {"kind": "isr_change", "subject": "t-0", "zk_path": "/isr_change_notification/1", "zk_mtime": END_MS - 90_000}
]


def other_samples(spark: SparkSession) -> Mapping[str, Sample]:
    """Rules that need another cluster than HEALTH, or an earlier run."""
    columns = TABLES["partitions"]
    low = kraft_queries.directories(frame(spark, columns, [row("early")]), {ALONE: Health(level=14)})
    earlier = [in_zookeeper("in-order", leader_epoch=9), in_zookeeper("in-order", partition_epoch=1)]
    now = [in_zookeeper("in-order"), in_zookeeper("made-again", zk_czxid=6)]
    made_again = in_zookeeper("made-again", leader_epoch=9, zk_czxid=1)
    fallen = kraft_queries.fallen_epochs(frame(spark, columns, now), frame(spark, columns, [*earlier, made_again]))
    return samples(low.unionByName(fallen))[ALONE]
