"""The log that a session leaves: beside the controller's own snapshots, and the checks of single partitions on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.isr import plain as checks
from tests.live.fire.log import Row, checkpoint
from tests.live.fire.world import Partition, World
from transforms.features.update import ELR
from transforms.isr.partition import PartitionState
from transforms.kraft.replay.entities import DELETE, PATCH, READERS
from transforms.kraft.replay.entities.event import EventReader

Entities = dict[tuple[str, tuple[Any, ...]], dict[str, Any]]
_NO_ROW = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "CLEAR_ELR_RECORD")


def entities(rows: Iterable[Row]) -> Entities:
    """What the project's readers make of records, partitions aside: rows by entity and replay key."""
    state: Entities = {}
    for row in rows:
        if row["control"] or row["type"] in _NO_ROW:
            continue
        reader: EventReader = READERS.get(row["type"], _nothing)
        for event in reader(row["body"]):
            key = (event.entity, event.key)
            if event.op == DELETE:
                state.pop(key, None)
                _cascade(state, event.entity, event.key)
            elif event.op == PATCH:
                state[key] = {**state[key], **(event.row or {})}
            else:
                state[key] = dict(event.row or {})
    return state


def _nothing(body: Any) -> tuple[()]:
    """What the brackets of a transaction do."""
    return ()


def _cascade(state: Entities, entity: str, key: tuple[Any, ...]) -> None:
    """With a topic go its configurations (`ReplicationControlManager.replay(RemoveTopicRecord)`)."""
    if entity != "topics":
        return
    names = {row["topic"] for (kind, _), row in state.items() if kind == "topics"}
    for other, row in list(state.items()):
        if other[0] == "configs" and row["resource_type"] == "TOPIC" and row["resource_name"] not in names:
            del state[other]


def beside_snapshots(rows: Sequence[Row], folder: Path, release: tuple[int, int]) -> list[str]:
    """Where the replay of the log and a snapshot of the controller differ; each snapshot is looked at."""
    found = []
    for path in sorted(folder.glob("*.checkpoint")):
        end = int(path.stem.split("-")[0])
        if end == 0:
            continue
        before = [row for row in rows if row["offset"] < end]
        theirs = checkpoint(path)
        ours, snapshot = World(release), World(release)
        for row in before:
            ours.apply(row)
        for row in theirs:
            snapshot.apply(row)
        found += [f"{path.name}: {text}" for text in _unlike(ours, snapshot)]
        found += [f"{path.name}: {text}" for text in _entities_unlike(entities(before), entities(theirs))]
    return found


def snapshots(folder: Path) -> int:
    """How many snapshots a session left, the one of the beginning aside."""
    return sum(int(path.stem.split("-")[0]) > 0 for path in folder.glob("*.checkpoint"))


def _unlike(ours: World, theirs: World) -> Iterator[str]:
    elr = bool(theirs.features.get(ELR))
    for key in sorted({*ours.partitions, *theirs.partitions}):
        mine, their = _compared(ours.partitions.get(key), elr=elr), _compared(theirs.partitions.get(key), elr=elr)
        if mine != their:
            yield f"partition {key}: replay {mine}, snapshot {their}"


def _compared(partition: Partition | None, *, elr: bool) -> Partition | None:
    """Without the ELR feature a snapshot has no ELR lists (`PartitionRegistration.toRecord`)."""
    if partition is None or elr:
        return partition
    return replace(partition, state=replace(partition.state, elr=(), last_known_elr=()))


def _entities_unlike(ours: Entities, theirs: Entities) -> Iterator[str]:
    for key in sorted({*ours, *theirs}, key=repr):
        if _kept(key[0], ours.get(key)) != _kept(key[0], theirs.get(key)):
            yield f"{key}: replay {ours.get(key)}, snapshot {theirs.get(key)}"


def _kept(entity: str, row: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a snapshot keeps of a row.

    Of producer ids only the next one (`ProducerIdsImage`); and a migration that never was is one in state NONE there
    (`FeaturesImage.write`), also where the log was begun below the level that has migrations.
    """
    if row is None or (entity == "migration" and row["state_code"] == 0):
        return None
    return {"next_producer_id": row["next_producer_id"]} if entity == "producer_ids" else row


def findings(world: World) -> list[str]:
    """What the checks of single partitions say of the state that is left."""
    states: dict[str, PartitionState] = {
        f"{world.names[topic_id]}/{number}": each.state for (topic_id, number), each in world.partitions.items()
    }
    outcomes = [checks.isr_of_replicas(states), checks.leader_in_isr(states), checks.leader_of_replicas(states)]
    return [text for outcome in outcomes for text in outcome.evidence]
