"""Kafka's own checkpoint as a witness: the state at its offset must equal it (CAP-08).

A checkpoint is Kafka's own replay of the same records. It lacks metadata for which its metadata.version has no record (S§3.4),
the broker of the producer ids, and the history of rows; everything else must be the same, row by row.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from schemas.checks.codes import CONFIG_LEFT, CONFIG_SKIPPED, SCRAM_LEFT_OUT
from schemas.kraft.kept_configs import KEPT_CONFIGS
from schemas.kraft.metadata_versions import DEFAULT_LEVEL, SNAPSHOT_KEEPS_FROM
from transforms.kernel.cold import Row
from transforms.kernel.fold import Fold, findings_table
from transforms.kernel.layout import MADE, NAME, REMOVED, Longs
from transforms.kernel.partitions import Partitions
from transforms.kernel.topics import Finding

MISMATCH = "CAP-08"
_DIFFERENT = "the replay and the checkpoint differ"
_MISSING = "in the checkpoint, not in the replay"
_MORE = "in the replay, not in the checkpoint"
_OF_A_BROKER = ("broker_epoch", "incarnation_id", "is_migrating_zk_broker", "fenced", "rack")
_LISTS_OF_A_BROKER = ("endpoints", "features", "cordoned_log_dirs")
_PRODUCER_IDS, _CONFIGS, _CREDENTIALS = "producer_ids", "configs", "scram_credentials"
# Compared as partitions and brokers are, or not at all: no checkpoint of 4.x has the state of the migration.
_ELSEWHERE = ("brokers", "migration")


def differences(replayed: Fold, checkpoint: Fold, offset: int, level: int | None, *, elr: bool) -> pa.Table:
    """Rows in which the state below a checkpoint's offset is not the checkpoint: columns of `transforms.kernel.fold.FINDINGS`.

    Both are of one shard. `offset` is the checkpoint's (exclusive), `level` its metadata.version, `elr` whether
    eligible leader replicas are on: without, a checkpoint has none (`PartitionRegistration.toRecord`). Equal states give no row. A
    configuration that Kafka skips from 4.3 on has a code of its own (CONFIG_SKIPPED), and so has one that a removed topic left
    behind (CONFIG_LEFT), and a credential that a node lost when it started (SCRAM_LEFT_OUT).
    """
    known = DEFAULT_LEVEL if level is None else level
    found = [
        *_partitions(replayed.partitions, checkpoint.partitions, known, elr=elr),
        *_rows("topics", _topics(replayed), _topics(checkpoint)),
        *_rows("brokers", _brokers(replayed), _brokers(checkpoint)),
        *_cold(replayed, checkpoint, known),
    ]
    place = f"checkpoint {offset}"
    return findings_table(
        replayed.cluster, [Finding(code, f"{entity} {key}", detail, place) for code, entity, key, detail in found]
    )


Found = Iterator[tuple[str, str, str, str]]


def _partitions(mine: Partitions, theirs: Partitions, level: int, *, elr: bool) -> Found:
    """A checkpoint holds the partitions of living topics only; a removed topic's are in the log alone."""
    found = mine.against(theirs, directories=level >= SNAPSHOT_KEEPS_FROM["directories"], elr=elr)
    differing: list[tuple[Partitions, Longs, str]] = [
        (theirs, found.different, _DIFFERENT),
        (theirs, found.missing, _MISSING),
        (mine, found.more, _MORE),
    ]
    for side, slots, detail in differing:
        for key in side.keys(slots):
            yield MISMATCH, "partitions", key, detail


def _rows(entity: str, mine: Mapping[str, str | None], theirs: Mapping[str, str | None]) -> Found:
    for key in sorted(mine.keys() | theirs.keys()):
        if key not in mine:
            yield MISMATCH, entity, key, _MISSING
        elif key not in theirs:
            yield CONFIG_SKIPPED if entity == _CONFIGS and _is_skipped(mine[key]) else MISMATCH, entity, key, _MORE
        elif mine[key] != theirs[key]:
            yield MISMATCH, entity, key, _DIFFERENT


def _is_skipped(row: str | None) -> bool:
    """A configuration of a name that Kafka 4.3 does not know (`DefaultSupportedConfigChecker`)."""
    columns = json.loads(row or "{}")
    names = KEPT_CONFIGS.get(columns["resource_type"])
    return names is not None and columns["config"] not in names


def _topics(fold: Fold) -> dict[str, str | None]:
    numbers = np.flatnonzero(fold.topics.here)
    names = fold.topics.names.column(fold.topics.longs[numbers, NAME]).to_pylist()
    ids = fold.topics.ids.column(numbers).to_pylist()
    return {json.dumps([topic_id]): name for topic_id, name in zip(ids, names, strict=True)}


def _brokers(fold: Fold) -> dict[str, str | None]:
    rows: dict[str, str | None] = {}
    for broker in fold.brokers.registered():
        columns = {name: broker.get(name) for name in _OF_A_BROKER}
        columns |= {name: broker.get(name) or [] for name in _LISTS_OF_A_BROKER}
        rows[str(broker["broker_id"])] = json.dumps(columns)
    return rows


def _cold(replayed: Fold, checkpoint: Fold, level: int) -> Found:
    mine, theirs = _by_entity(replayed, level), _by_entity(checkpoint, level)
    for entity in sorted(mine.keys() | theirs.keys()):
        for code, _, key, detail in _rows(entity, mine.get(entity, {}), theirs.get(entity, {})):
            sides = (checkpoint, replayed) if detail == _MISSING else (replayed, checkpoint)
            left = entity == _CONFIGS and detail != _DIFFERENT and _is_left(key, *sides)
            lost = entity == _CREDENTIALS and detail == _MORE and _had_a_removal(key, replayed)
            yield CONFIG_LEFT if left else SCRAM_LEFT_OUT if lost else code, entity, key, detail


def _had_a_removal(key: str, replayed: Fold) -> bool:
    """Another credential of the mechanism was removed: a node that reads both in one delta can lose this one (`ScramDelta.apply`)."""
    _, mechanism = json.loads(key)
    rows = replayed.cold.rows.items()
    return any(
        row.removed and entity == _CREDENTIALS and json.loads(other)[1] == mechanism for (entity, other), row in rows
    )


def _is_left(key: str, side: Fold, other: Fold) -> bool:
    """A configuration of one side alone that a removed topic left behind: its topic is not there, or was made after it.

    `ConfigurationsDelta.replay(RemoveTopicRecord)` keeps what the same delta set, as when a node starts; `other` is a log in which
    the topic was removed with it.
    """
    kind, topic, _ = json.loads(key)
    if kind != "TOPIC":
        return False
    row, topics = side.cold.rows[_CONFIGS, key], other.topics
    before = other.cold.rows.get((_CONFIGS, key))
    made = side.topics.longs[side.topics.living(topic), MADE]
    went = topics.longs[: len(topics.ids), REMOVED]
    return bool((row.at.offset < made).all()) or (
        before is not None and before.text == row.text and before.at.offset in went
    )


def _by_entity(fold: Fold, level: int) -> dict[str, dict[str, str | None]]:
    """Rows that are there and that a checkpoint of this level keeps, as text, by entity and key."""
    found: dict[str, dict[str, str | None]] = {}
    for (entity, key), row in fold.cold.rows.items():
        if row.removed or entity in _ELSEWHERE or level < SNAPSHOT_KEEPS_FROM.get(entity, 0):
            continue
        found.setdefault(entity, {})["" if entity == _PRODUCER_IDS else key] = _compared(entity, row)
    return found


def _compared(entity: str, row: Row) -> str | None:
    return str(json.loads(row.text or "{}")["next_producer_id"]) if entity == _PRODUCER_IDS else row.text
