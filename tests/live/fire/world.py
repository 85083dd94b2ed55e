"""The cluster's state as its metadata log tells it: what a controller has in memory, so far as requests depend on it."""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.kraft import control
from schemas.kraft.enums import DIRECTORY_MIGRATING
from schemas.kraft.feature_levels import KRAFT_VERSION
from tests.live.fire.log import Row
from transforms.features.update import ELR
from transforms.isr.builder import bumps_on_shrink
from transforms.isr.history import ClassifiedChange, classify
from transforms.isr.partition import CLEARED, Change, PartitionState, change_of, merged
from transforms.isr.validate import Controller, ControllerMode, Registration, offline_replicas

METADATA_VERSION = "metadata.version"
_TOPIC, _BROKER = 2, 4
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
Ranges = Mapping[str, tuple[int, int]]
Key = tuple[str, int]


@dataclass(frozen=True)
class Broker:
    """A registered broker."""

    registration: Registration
    incarnation: str
    directories: tuple[str, ...]
    ranges: Ranges


@dataclass(frozen=True)
class Partition:
    """A partition, its replicas' directories, and its last change."""

    state: PartitionState
    directories: tuple[str, ...] = ()


@dataclass
class World:
    """Everything by Kafka's own keys: brokers by id, topics by name, partitions by topic id and number."""

    release: tuple[int, int]
    brokers: dict[int, Broker] = field(default_factory=dict)
    controllers: dict[int, Ranges] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    partitions: dict[Key, Partition] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)

    def apply(self, row: Row) -> list[tuple[Key, ClassifiedChange]]:
        """Take one record; the steps of the partitions that it changes."""
        if row["control"]:
            # Before 4.1 UpdateFeatures writes a FeatureLevelRecord instead.
            if row["type"] == control.KRAFT_VERSION.name and self.release >= (4, 1):
                self.features[KRAFT_VERSION] = row["body"]["kRaftVersion"]
            return []
        if row["type"] in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD"):
            return [self._partition(row)]
        if row["type"] == "CLEAR_ELR_RECORD":
            return self._clear_elr(row)
        reader = getattr(self, "_" + row["type"].removesuffix("_RECORD").lower(), None)
        if reader is not None:
            reader(row["body"])
        return []

    def _partition(self, row: Row) -> tuple[Key, ClassifiedChange]:
        whole = row["type"] == "PARTITION_RECORD"
        key = (row["topic_id"], row["partition_id"])
        before = self.partitions.get(key)
        change = change_of(row, whole=whole)
        return key, self._change(key, before, change, row)

    def _change(self, key: Key, before: Partition | None, change: Change, row: Row) -> ClassifiedChange:
        old = None if before is None else before.state
        state = merged(old, change)
        directories = row.get("directories")
        if directories is None:
            kept = () if before is None or change.whole else before.directories
            # `PartitionRegistration`: where the record has none, each is MIGRATING.
            directories = kept if len(kept) == len(state.replicas) else [DIRECTORY_MIGRATING] * len(state.replicas)
        self.partitions[key] = Partition(state, tuple(directories))
        return ClassifiedChange(row["offset"], row["append_time"], old, state, classify(old, change, state))

    def _clear_elr(self, row: Row) -> list[tuple[Key, ClassifiedChange]]:
        name = row["body"]["topicName"]
        held = [
            (key, each)
            for key, each in self.partitions.items()
            if name in ("", self.names[key[0]]) and (each.state.elr or each.state.last_known_elr)
        ]
        return [(key, self._change(key, each, CLEARED, row)) for key, each in held]

    def _register_broker(self, body: Mapping[str, Any]) -> None:
        known = Registration(body["brokerEpoch"], body["fenced"], body.get("inControlledShutdown", False))
        self.brokers[body["brokerId"]] = Broker(
            known, body["incarnationId"], tuple(body.get("logDirs", ())), _ranges(body)
        )

    def _unregister_broker(self, body: Mapping[str, Any]) -> None:
        del self.brokers[body["brokerId"]]

    def _broker_registration_change(self, body: Mapping[str, Any]) -> None:
        broker = self.brokers[body["brokerId"]]
        known = broker.registration
        fenced = {1: True, -1: False}.get(body.get("fenced", 0), known.fenced)
        leaving = known.in_controlled_shutdown or body.get("inControlledShutdown", 0) == 1
        self.brokers[body["brokerId"]] = replace(
            broker,
            registration=replace(known, fenced=fenced, in_controlled_shutdown=leaving),
            directories=tuple(body.get("logDirs") or broker.directories),
        )

    def _fence_broker(self, body: Mapping[str, Any]) -> None:
        self._broker_registration_change({"brokerId": body["id"], "fenced": 1})

    def _unfence_broker(self, body: Mapping[str, Any]) -> None:
        self._broker_registration_change({"brokerId": body["id"], "fenced": -1})

    def _register_controller(self, body: Mapping[str, Any]) -> None:
        self.controllers[body["controllerId"]] = _ranges(body)

    def _topic(self, body: Mapping[str, Any]) -> None:
        self.topics[body["name"]] = body["topicId"]
        self.names[body["topicId"]] = body["name"]

    def _remove_topic(self, body: Mapping[str, Any]) -> None:
        name = self.names.pop(body["topicId"])
        del self.topics[name]
        self.configs.pop((_TOPIC, name), None)
        for key in [key for key in self.partitions if key[0] == body["topicId"]]:
            del self.partitions[key]

    def _config(self, body: Mapping[str, Any]) -> None:
        settings = self.configs.setdefault((body["resourceType"], body["resourceName"]), {})
        if body["value"] is None:
            settings.pop(body["name"], None)
        else:
            settings[body["name"]] = body["value"]

    def _feature_level(self, body: Mapping[str, Any]) -> None:
        if body["name"] == KRAFT_VERSION and self.release >= (4, 0):
            # From 4.0.1 on it is skipped (KAFKA-18979).
            return
        self.features[body["name"]] = body["featureLevel"]
        if body["featureLevel"] == 0:
            del self.features[body["name"]]

    def setting(self, topic: str, name: str, default: str) -> str:
        """A topic's effective configuration (`KafkaConfigSchema.resolveEffectiveTopicConfig`); no node has one of its own."""
        return self.configs.get((_TOPIC, topic), {}).get(name) or self.configs.get((_BROKER, ""), {}).get(name, default)

    def controller(self, topic_id: str, number: int) -> Controller:
        """The controller as `isr validate` is told of it, for a question on one partition."""
        found = self.partitions.get((topic_id, number))
        name = self.names.get(topic_id, "")
        common = Controller(
            ControllerMode.KRAFT,
            self.release,
            {number: broker.registration for number, broker in self.brokers.items()},
            None if found is None else found.state,
            topic_known=topic_id in self.names,
            bumps_on_shrink=bumps_on_shrink(self.release, self.features.get(METADATA_VERSION), migrating=False),
            elr=self.features.get(ELR, 0) > 0,
        )
        if found is None:
            return common
        online = {number: broker.directories for number, broker in self.brokers.items()}
        first = self.partitions.get((topic_id, 0), found)
        return replace(
            common,
            offline=offline_replicas(found.state.replicas, found.directories, online),
            min_isr=min(int(self.setting(name, MIN_ISR, "1")), len(first.state.replicas)),
            unclean=self.setting(name, UNCLEAN, "false") == "true",
        )


def _ranges(body: Mapping[str, Any]) -> Ranges:
    return {each["name"]: (each["minSupportedVersion"], each["maxSupportedVersion"]) for each in body["features"]}


def as_uuid(text: str) -> uuid.UUID:
    """An id in Kafka's spelling."""
    return uuid.UUID(bytes=urlsafe_b64decode(text + "=="))
