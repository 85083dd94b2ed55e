"""Queries about one partition's ISR: its changes, and the controller that would answer an AlterPartition request."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.kraft.records import CLEAR_ELR, PARTITION, PARTITION_TYPES
from transforms.features.update import ELR
from transforms.isr.builder import bumps_on_shrink
from transforms.isr.history import ClassifiedChange, Record, step_of, steps
from transforms.isr.hourly import RECORD
from transforms.isr.partition import CLEARED, change_of, state_of
from transforms.isr.validate import Controller, ControllerMode, Registration, offline_replicas
from transforms.kraft.replay.entities import DELETE

Row = Mapping[str, Any]
# By partition and topic id: a topic that was made again has a history for each of its lives.
Histories = dict[tuple[int, str], list[ClassifiedChange]]
_MIN_ISR, _UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def recorded(changes: pl.DataFrame) -> Histories:
    """Changes of one topic that finished runs have recorded: rows of gold isr_history with run_id.

    Two runs at the same time may both have found a change new. A later run has a later part of a log, or another log.
    """
    record = [name for name in RECORD if name in changes.columns]
    in_order = changes.sort("run_id", "offset").unique(record, keep="first", maintain_order=True)
    found: Histories = {}
    for row in in_order.iter_rows(named=True):
        found.setdefault((row["partition"], row["topic_id"]), []).append(step_of(row))
    return found


def of_topic(lives: Sequence[Row], partition: int | None = None) -> pl.Expr:
    """The records (bronze kraft_records) that change a topic's partitions, or one of them, and all that clear ELR lists.

    `lives` are the topic's own events (`transforms.explain.records`).
    """
    kinds = [kind.name for kind in PARTITION_TYPES]
    mine = pl.col("type").is_in(kinds) & pl.col("topic_id").is_in(
        sorted({_topic_id(event) for event in lives if event["op"] != DELETE})
    )
    if partition is not None:
        mine = mine & (pl.col("partition_id") == partition)
    return mine | (pl.col("type") == CLEAR_ELR.name)


def histories(records: pl.DataFrame, topic: str, lives: Sequence[Row]) -> Histories:
    """What the applied records `of_topic` made of its partitions: every change of each."""
    gone = {_topic_id(event): event["offset"] for event in lives if event["op"] == DELETE}
    found: dict[tuple[int, str], list[Record]] = {}
    for row in records.sort("offset", maintain_order=True).iter_rows(named=True):
        if row["type"] == CLEAR_ELR.name:
            if json.loads(row["data"])["topicName"] not in ("", topic):
                continue
            for (_, topic_id), changes in found.items():
                if row["offset"] < gone.get(topic_id, row["offset"] + 1):
                    changes.append(Record(row["offset"], row["append_time"], CLEARED, clears_elr=True))
        else:
            change = change_of(row, whole=row["type"] == PARTITION.name)
            key = (row["partition_id"], row["topic_id"])
            found.setdefault(key, []).append(Record(row["offset"], row["append_time"], change))
    return {key: list(steps(changes)) for key, changes in found.items()}


def _topic_id(event: Row) -> str:
    [topic_id] = json.loads(event["replay_key"])
    return str(topic_id)


def controller_of(
    mode: ControllerMode,
    release: tuple[int, int],
    brokers: Sequence[Row],
    partitions: Sequence[Row],
    configs: Sequence[Row],
    partition: int,
) -> Controller | None:
    """The controller of a mode that would answer for a partition; None where that side has no brokers.

    All are silver rows of that side: `partitions` those of the topic, `configs` the topic's own, those of the active controller (BROKER
    with its id) and the cluster-wide ones (with an empty name), which the log alone holds: static ones are not stored.
    """
    registered = {
        row["broker_id"]: Registration(row["broker_epoch"], bool(row["fenced"]), bool(row["in_controlled_shutdown"]))
        for row in brokers
    }
    if not registered:
        return None
    mine = next((row for row in partitions if row["partition"] == partition), None)
    state = None if mine is None else state_of(mine)
    if mode is ControllerMode.ZOOKEEPER or mine is None:
        return Controller(mode, release, registered, state, bool(partitions))
    directories = {row["broker_id"]: row["log_dirs"] or () for row in brokers}
    settings = _settings(configs)
    return Controller(
        mode,
        release,
        registered,
        state,
        topic_known=True,
        offline=offline_replicas(mine["replicas"], mine["directories"] or (), directories),
        min_isr=_min_isr(settings.get(_MIN_ISR), partitions),
        unclean=settings.get(_UNCLEAN, "").lower() == "true",
    )


def at_levels(controller: Controller, finalised: Mapping[str, int], *, migrating: bool) -> Controller:
    """A KRaft controller with the properties that the finalised levels decide: whether a shrinking ISR raises the leader epoch, and ELR."""
    level = finalised.get(FEATURE_NAME)
    return replace(
        controller,
        bumps_on_shrink=bumps_on_shrink(controller.release, level, migrating),
        elr=finalised.get(ELR, 0) > 0,
    )


def _settings(configs: Sequence[Row]) -> dict[str, str]:
    """Configurations by name: the topic's own, else the active controller's, else the cluster-wide ones
    (`KafkaConfigSchema.resolveEffectiveTopicConfig`)."""
    ordered = sorted(configs, key=lambda row: (row["resource_type"] == "TOPIC", row["resource_name"] != ""))
    return {row["config"]: row["value"] for row in ordered if row["value"] is not None}


def _min_isr(least: str | None, partitions: Sequence[Row]) -> int | None:
    """The setting as it counts: no more than the replicas of the topic's first partition."""
    if least is None or not least.isdecimal():
        return None
    first = min(partitions, key=lambda row: int(row["partition"]))
    return min(int(least), len(first["replicas"]))
