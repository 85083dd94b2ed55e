"""A tree's persistent formats in the plainest way: znode by znode. What the counts over columns are compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from transforms.downgrade.evidence import FEATURE_PATH, MESSAGE_FORMAT, TRACES, Trace, document_of, feature_znode
from transforms.downgrade.ledger import FeatureZnode, Seen

_EMPTY: tuple[object, ...] = ({}, [])
_BROKER = r"^/brokers/ids/[0-9]{1,10}$"
_TOPIC_CONFIG = r"^/config/topics/[^/]+$"


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
            if any(shows(trace, path, document) for trace in traces):
                totals[name] += 1
                examples[name] = min(examples[name] or path, path)
        if document is None:
            continue
        if path == FEATURE_PATH:
            feature = feature_znode(document)
        elif re.search(_BROKER, path):
            versions[int(path.rpartition("/")[2])] = document.get("version", 0)
        elif re.search(_TOPIC_CONFIG, path) and isinstance(_message_format(document), str):
            formats[path.rpartition("/")[2]] = str(_message_format(document))
    seen = {name: Seen(total, examples[name]) for name, total in totals.items()}
    return TreeEvidence(seen, feature, versions, formats)


def _message_format(document: Mapping[str, Any]) -> Any:
    config = document.get("config")
    return config.get(MESSAGE_FORMAT) if isinstance(config, dict) else None


def shows(trace: Trace, path: str, document: Mapping[str, Any] | None) -> bool:
    """Tell whether a znode has the format."""
    if re.search(trace.pattern, path) is None:
        return False
    if trace.key is None:
        return True
    value = None if document is None else document.get(trace.key)
    if value is None:
        return False
    if trace.least is not None:
        return isinstance(value, int) and value >= trace.least
    return value not in _EMPTY
