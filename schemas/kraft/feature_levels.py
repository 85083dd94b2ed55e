"""The levels of each feature that each release supports, and when they are its defaults (`Feature` and its enums, KIP-1022).

One table for all uses: levels that a release can replay, defaults by metadata.version, and what a level depends on.
metadata.version itself is in `schemas.kraft.metadata_versions`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.kraft.metadata_versions import FEATURE_NAME

KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"


@dataclass(frozen=True)
class FeatureLevel:
    """One level above 0: the metadata.version from which it is the default (`bootstrapMetadataVersion`), what it needs.

    `requires` are levels of other features that must be finalised with it (`FeatureVersion.dependencies`).
    """

    feature: str
    level: int
    default_from: int
    requires: Mapping[str, int] = field(default_factory=dict)


# In the order of the enum, which is the order in which Kafka's tool prints them.
FEATURE_LEVELS: tuple[FeatureLevel, ...] = (
    FeatureLevel(KRAFT_VERSION, 1, 21),
    FeatureLevel(TRANSACTION_VERSION, 1, 24),
    FeatureLevel(TRANSACTION_VERSION, 2, 24),
    FeatureLevel(GROUP_VERSION, 1, 22),
    FeatureLevel(ELR_VERSION, 1, 26, {FEATURE_NAME: 23}),
    FeatureLevel(SHARE_VERSION, 1, 28),
    FeatureLevel(SHARE_VERSION, 2, 31),
    FeatureLevel(STREAMS_VERSION, 1, 29),
)
BY_FEATURE_LEVEL: Mapping[tuple[str, int], FeatureLevel] = {(each.feature, each.level): each for each in FEATURE_LEVELS}

_4_0 = {KRAFT_VERSION: 1, TRANSACTION_VERSION: 2, GROUP_VERSION: 1, ELR_VERSION: 1}
_4_2 = {**_4_0, SHARE_VERSION: 1, STREAMS_VERSION: 1}
# Highest level that a release runs in production (`latestProduction`, unless unstable features are enabled), by feature in
# the order of its enum. 0: it knows the name, and no level of it. A feature that is not there: not even the name.
HIGHEST_LEVELS: Mapping[str, Mapping[str, int]] = {
    "3.3": {},
    "3.4": {},
    "3.5": {},
    "3.6": {},
    "3.7": {},
    "3.8": {},
    "3.9": {KRAFT_VERSION: 1},
    "4.0": _4_0,
    "4.1": {**_4_0, SHARE_VERSION: 1, STREAMS_VERSION: 0},
    "4.2": _4_2,
    "4.3": _4_2,
    "4.4": {**_4_2, SHARE_VERSION: 2},
}
