"""`/feature`: finalised features of ZooKeeper mode (`FeatureZNode`, S§9.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from transforms.zookeeper.read.reading import MalformedError, StateRow, ZnodeView, finding, integer, parse_object

_STATUSES = (0, 1)


def read_features(znode: ZnodeView, _: list[str]) -> Iterator[StateRow]:
    """Yield one row per finalised feature."""
    try:
        document = parse_object(znode)
        version = integer(document, "version")
        features = document.get("features")
        if version not in (1, 2) or integer(document, "status") not in _STATUSES or not isinstance(features, dict):
            raise MalformedError("Kafka does not support its version, status or features")
        rows = [_feature(name, levels, version) for name, levels in features.items()]
    except MalformedError as problem:
        yield finding("FEATURE-DATA", znode.path, str(problem))
        return
    yield from (StateRow("features", row) for row in rows)


def _feature(name: str, levels: Any, version: int) -> dict[str, Any]:
    if not isinstance(levels, dict):
        raise MalformedError(f"the levels of '{name}' are not an object")
    level = integer(levels, "max_version_level")
    lowest = integer(levels, "min_version_level") if version == 1 else None
    if level < 1 or (lowest is not None and not 1 <= lowest <= level):
        raise MalformedError(f"the levels of '{name}' are out of range")
    return {"feature": name, "level": level, "min_level": lowest}
