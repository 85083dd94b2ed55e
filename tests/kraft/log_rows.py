"""Rows of a log as bronze has them, one record each: topics, their partitions, and what clears ELR lists."""

from __future__ import annotations

import json
from typing import Any

Row = dict[str, Any]


def row(offset: int, kind: str, body: Row | None = None, **columns: Any) -> Row:
    data = None if body is None else json.dumps(body)
    common = {"offset": offset, "epoch": 1, "append_time": 1000 + offset, "control": False, "version": 0}
    return {**common, "type": kind, "data": data, **columns}


def topic(offset: int, name: str, topic_id: str, **columns: Any) -> Row:
    return row(offset, "TOPIC_RECORD", {"name": name, "topicId": topic_id}, **columns)


def removal(offset: int, topic_id: str) -> Row:
    return row(offset, "REMOVE_TOPIC_RECORD", {"topicId": topic_id})


def made(offset: int, topic_id: str, partition: int = 0, **more: Any) -> Row:
    whole = {"replicas": [1, 2], "isr": [1], "adding_replicas": [], "removing_replicas": [], "leader": 1}
    whole |= {"leader_epoch": 5, "partition_epoch": 10, "leader_recovery_state": 0}
    return row(offset, "PARTITION_RECORD", topic_id=topic_id, partition_id=partition, **{**whole, **more})


def change(offset: int, topic_id: str, partition: int = 0, **more: Any) -> Row:
    same = {"leader": -2, "leader_recovery_state": -1}
    return row(offset, "PARTITION_CHANGE_RECORD", topic_id=topic_id, partition_id=partition, **{**same, **more})


def clear(offset: int, name: str = "") -> Row:
    return row(offset, "CLEAR_ELR_RECORD", {"topicName": name})
