"""FeatureLevelRecord: level 0 removes a feature, except metadata.version (`FeatureControlManager.replay`, KIP-584)."""

from __future__ import annotations

from collections.abc import Iterable

from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader

METADATA_VERSION = "metadata.version"


def _level(body: Body) -> Iterable[Event]:
    name, level = body["name"], body["featureLevel"]
    if level == 0 and name != METADATA_VERSION:
        yield Event("features", (name,), DELETE)
    else:
        yield Event("features", (name,), UPSERT, {"feature": name, "level": level})


READERS: dict[str, EventReader] = {"FEATURE_LEVEL_RECORD": _level}
