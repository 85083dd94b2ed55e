"""FeatureLevelRecord: level 0 removes a feature, except metadata.version (`FeatureControlManager.replay`, KIP-584).

One of kraft.version has no effect: only a control record sets that (KIP-853). 3.9 and 4.0 wrote such records and kept them,
from 4.0.1 on replay passes over them, so that no later snapshot has them (KAFKA-18979).
"""

from __future__ import annotations

from collections.abc import Iterable

from schemas.kraft.feature_levels import KRAFT_VERSION
from transforms.kraft.replay.entities.event import DELETE, UPSERT, Body, Event, EventReader

METADATA_VERSION = "metadata.version"


def _level(body: Body) -> Iterable[Event]:
    name, level = body["name"], body["featureLevel"]
    if name == KRAFT_VERSION:
        return
    if level == 0 and name != METADATA_VERSION:
        yield Event("features", (name,), DELETE)
    else:
        yield Event("features", (name,), UPSERT, {"feature": name, "level": level})


READERS: dict[str, EventReader] = {"FEATURE_LEVEL_RECORD": _level}
