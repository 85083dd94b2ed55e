"""Where a ZooKeeper tree shows each persistent format, and what `/feature` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transforms.downgrade.ledger import FeatureZnode
from transforms.zookeeper.read.reading import MalformedError, parse_text

FEATURE_PATH = "/feature"
_BROKER = r"^/brokers/ids/[0-9]{1,10}$"
MESSAGE_FORMAT = "message.format.version"


@dataclass(frozen=True)
class Trace:
    """Znodes that have a format: by path, and by a key of their JSON that is there and not empty, or at least `least`."""

    pattern: str
    key: str | None = None
    least: int | None = None


_TOPIC = r"^/brokers/topics/[^/]+$"
TRACES: Mapping[str, tuple[Trace, ...]] = {
    "broker_znode_v5": (Trace(_BROKER, "version", 5),),
    "reassignment_keys": (Trace(_TOPIC, "adding_replicas"), Trace(_TOPIC, "removing_replicas")),
    "topic_id": (Trace(_TOPIC, "topic_id"),),
    "leader_recovery_state": (Trace(r"^/brokers/topics/[^/]+/partitions/[0-9]+/state$", "leader_recovery_state"),),
    "prefixed_acls": (Trace(r"^/kafka-acl-extended/prefixed/[^/]+/.+$"),),
    "token_v3": (Trace(r"^/delegation_token/tokens/[^/]+$", "version", 3),),
    "controller_v2": (Trace(r"^/controller$", "version", 2),),
}


def document_of(data: str | None) -> Mapping[str, Any] | None:
    """The JSON object of a znode; None for anything else, which is another check's to name."""
    try:
        return parse_text(data) if data else None
    except MalformedError:
        return None


def feature_znode(document: Mapping[str, Any]) -> FeatureZnode | None:
    """`/feature` as the ledger needs it; None when it is not what Kafka writes."""
    version, features = document.get("version"), document.get("features")
    if not isinstance(version, int) or not isinstance(features, dict):
        return None
    said = {name: value.get("max_version_level", 0) for name, value in features.items() if isinstance(value, dict)}
    levels = {name: level for name, level in said.items() if isinstance(level, int)}
    return FeatureZnode(version, document.get("status") == 1, levels)
