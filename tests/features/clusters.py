"""What the controllers of a capture know of features, from the dump that Kafka's own tool printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.captures import capture
from tests.isr.logs import log_records
from transforms.features.matrix import BROKER, CONTROLLER, KRAFT_VERSION, Node
from transforms.features.update import Cluster

_STATES = {0: "NONE", 1: "MIGRATION", 2: "PRE_MIGRATION", 3: "POST_MIGRATION"}


def ranges(features: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """The features of a registration record."""
    return {each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"]) for each in features}


def cluster(version: str, stage: str, controller: int = 3001) -> Cluster:
    """The cluster as its active controller knows it; the log must start at offset 0."""
    nodes: dict[tuple[str, int], Node] = {}
    finalised: dict[str, int] = {}
    state, local, voters = None, None, None
    for record in log_records(capture(version, stage), controller):
        data = record.data or {}
        if record.type == "REGISTER_BROKER_RECORD":
            node_id, zookeeper = data["brokerId"], data.get("isMigratingZkBroker", False)
            nodes[BROKER, node_id] = Node(BROKER, node_id, ranges(data["features"]), migrating_zk=zookeeper)
        elif record.type == "UNREGISTER_BROKER_RECORD":
            nodes.pop((BROKER, data["brokerId"]))
        elif record.type == "REGISTER_CONTROLLER_RECORD":
            node_id = data["controllerId"]
            nodes[CONTROLLER, node_id] = Node(CONTROLLER, node_id, ranges(data["features"]))
        elif record.type == "FEATURE_LEVEL_RECORD":
            finalised[data["name"]] = data["featureLevel"]
        elif record.type == "ZK_MIGRATION_STATE_RECORD":
            state = _STATES[data["zkMigrationState"]]
        elif record.type == "KRAFT_VERSION":
            finalised[KRAFT_VERSION] = data["kRaftVersion"]
        elif record.type == "KRAFT_VOTERS":
            voters = frozenset(each["voterId"] for each in data["voters"])
    quorum = admin(version, stage).get("quorum")
    if quorum is not None:
        local, voters = quorum["leader"], frozenset(each["id"] for each in quorum["voters"])
    major, minor = version.split(".")[:2]
    levels = {name: level for name, level in finalised.items() if level}
    return Cluster((int(major), int(minor)), levels, tuple(nodes.values()), voters, local, state)


def admin(version: str, stage: str) -> dict[str, Any]:
    """What the Admin API said."""
    content: dict[str, Any] = json.loads((Path(capture(version, stage)) / "admin-api.json").read_text())
    return content


def described(text: str) -> tuple[dict[str, int], dict[str, tuple[int, int]]]:
    """Finalised levels and supported ranges in the Admin client's own text."""
    found = re.findall(r"([\w.]+)=FinalizedVersionRange\[min_version_level:\d+, max_version_level:(\d+)\]", text)
    known = re.findall(r"([\w.]+)=SupportedVersionRange\[min_version:(\d+), max_version:(\d+)\]", text)
    return {name: int(level) for name, level in found}, {name: (int(low), int(high)) for name, low, high in known}
