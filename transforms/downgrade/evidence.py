"""Where a ZooKeeper tree shows each persistent format: one declaration for what reads znodes one by one and for Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transforms.downgrade.ledger import FeatureZnode, Seen
from transforms.zookeeper.read.reading import MalformedError, parse_text

_EMPTY: tuple[object, ...] = ({}, [])
FEATURE_PATH = "/feature"
BROKER_PATTERN = r"^/brokers/ids/[0-9]{1,10}$"
TOPIC_CONFIG_PATTERN = r"^/config/topics/[^/]+$"
MESSAGE_FORMAT = "message.format.version"


@dataclass(frozen=True)
class Trace:
    """Znodes that have a format: by path, and by a key of their JSON that is there and not empty, or at least `least`."""

    pattern: str
    key: str | None = None
    least: int | None = None

    def shown_by(self, path: str, document: Mapping[str, Any] | None) -> bool:
        """Tell whether a znode has the format."""
        if re.search(self.pattern, path) is None:
            return False
        if self.key is None:
            return True
        value = None if document is None else document.get(self.key)
        if value is None:
            return False
        if self.least is not None:
            return isinstance(value, int) and value >= self.least
        return value not in _EMPTY


_TOPIC = r"^/brokers/topics/[^/]+$"
TRACES: Mapping[str, tuple[Trace, ...]] = {
    "broker_znode_v5": (Trace(BROKER_PATTERN, "version", 5),),
    "reassignment_keys": (Trace(_TOPIC, "adding_replicas"), Trace(_TOPIC, "removing_replicas")),
    "topic_id": (Trace(_TOPIC, "topic_id"),),
    "leader_recovery_state": (Trace(r"^/brokers/topics/[^/]+/partitions/[0-9]+/state$", "leader_recovery_state"),),
    "prefixed_acls": (Trace(r"^/kafka-acl-extended/prefixed/[^/]+/.+$"),),
    "token_v3": (Trace(r"^/delegation_token/tokens/[^/]+$", "version", 3),),
    "controller_v2": (Trace(r"^/controller$", "version", 2),),
}


@dataclass(frozen=True)
class TreeEvidence:
    """What a whole tree shows; a format that no znode has is there with a total of 0."""

    seen: Mapping[str, Seen]
    feature_znode: FeatureZnode | None = None
    znode_versions: Mapping[int, int] = field(default_factory=dict)
    topic_formats: Mapping[str, str] = field(default_factory=dict)


def of_tree(znodes: Iterable[tuple[str, str | None]]) -> TreeEvidence:
    """The evidence of a tree's znodes (path, data as text). Give all of them: a missing znode counts as absent."""
    totals, examples = dict.fromkeys(TRACES, 0), dict.fromkeys(TRACES, "")
    feature, versions, formats = None, {}, {}
    for path, data in znodes:
        document = document_of(data)
        for name, traces in TRACES.items():
            if any(trace.shown_by(path, document) for trace in traces):
                totals[name] += 1
                examples[name] = min(examples[name] or path, path)
        if document is None:
            continue
        if path == FEATURE_PATH:
            feature = feature_znode(document)
        elif re.search(BROKER_PATTERN, path):
            versions[int(path.rpartition("/")[2])] = document.get("version", 0)
        elif re.search(TOPIC_CONFIG_PATTERN, path) and isinstance(_message_format(document), str):
            formats[path.rpartition("/")[2]] = str(_message_format(document))
    seen = {name: Seen(total, examples[name]) for name, total in totals.items()}
    return TreeEvidence(seen, feature, versions, formats)


def _message_format(document: Mapping[str, Any]) -> Any:
    config = document.get("config")
    return config.get(MESSAGE_FORMAT) if isinstance(config, dict) else None


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
