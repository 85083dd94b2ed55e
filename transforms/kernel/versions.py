"""What compared rows were: every version of those that records touch from an offset on, and the removals of those that are gone.

This distinguishes lag from loss (`schemas.replayed.ROW_VERSION_COLUMNS`). A version is valid until the next one's offset. What a row
was at the offset is taken when a record touches it for the first time: most rows are never touched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from schemas.entities import MIRRORED
from schemas.entities.partitions import PARTITIONS
from schemas.entities.topics import TOPICS
from schemas.replayed import ROW_VERSION_COLUMNS
from transforms.clusters import CLUSTER
from transforms.frames import columns_of, frame, from_arrow, json_of
from transforms.isr.history import ChangeKind
from transforms.kernel.cold import Cold, Key, Row
from transforms.kernel.layout import (
    ALIVE,
    CREATED,
    ELR,
    LAST_ELR,
    LAST_EPOCH,
    LAST_OFFSET,
    LAST_TIME,
    LENGTHS,
    MADE,
    MINE,
    NAME,
    Longs,
)
from transforms.kernel.partitions import Partitions
from transforms.kernel.topics import At, Flags, Topics

VERSIONS = columns_of(ROW_VERSION_COLUMNS, CLUSTER)
_ENTITIES = {entity.name: entity for entity in MIRRORED}
_PARTITION = ("topic_id", "partition")
_AT = {"kraft_offset": "from_offset", "kraft_epoch": "from_epoch", "kraft_append_time": "from_append_time"}
_FIELDS = ("row", "removed", "from_offset", "from_epoch", "from_append_time", "created_offset")
_CHANGE = ("offset", "epoch", "append_time")
_WHOLE = (ChangeKind.CREATED.value, ChangeKind.REPLACED.value)


class _Version(NamedTuple):
    """A row as one record made it: its columns as JSON; of a removal, what was removed. `created` is its first record,
    if known."""

    text: str
    removed: bool
    at: At
    created: int | None


@dataclass
class Versions:
    """Versions that are valid just before offset `since` or later, as far as records go.

    With `whole`, rows that no record touches are included, so that the result has every row.
    """

    since: int
    whole: bool = False

    def __post_init__(self) -> None:
        self._rows: dict[Key, list[_Version]] = {}
        self._topics = np.zeros(0, np.bool_)
        self._before: list[pa.Table] = []
        self._changes: list[pa.RecordBatch] = []

    def row(self, key: Key, known: Row | None, made: Row) -> None:
        """A record on a row of no topic or partition, and what the row was before it."""
        if key[0] in _ENTITIES:
            self._add(key, known, made)

    def _add(self, key: Key, known: Row | None, made: Row | None) -> None:
        versions = self._rows.get(key)
        if versions is None:
            versions = self._rows[key] = []
            if known is not None and known.text is not None:
                versions.append(_Version(known.text, known.removed, known.at, known.created))
        if made is not None and made.text is not None:
            versions.append(_Version(made.text, made.removed, made.at, None))

    def topic(self, topics: Topics, topic_id: str, name: str | None, at: At) -> None:
        """A TopicRecord; without a name a removal, which is ignored if the topic is unknown."""
        if name is None:
            topics.settle_one(topic_id)
        named = topics.name_of(topic_id) if name is None else name
        if named is None or not topics.shard.owns(named):
            return
        number = topics.find(topic_id)
        known = _topic(topics, number) if number >= 0 and topics.longs[number, MADE] >= 0 else None
        self._add(_key(topic_id), known, Row(_text(topic_id, named), name is None, at, None))

    def touch(self, numbers: Longs, topics: Topics, partitions: Partitions) -> None:
        """Records on partitions of some topics, just before they are applied."""
        new = np.zeros(len(topics.ids), np.bool_)
        new[numbers] = True
        known = self._touched(topics)
        new &= ~known
        if new.any():
            self._topics = known | new
            self._before.append(_states(partitions, partitions.made(new)))

    def _touched(self, topics: Topics) -> Flags:
        return np.append(self._topics, np.zeros(len(topics.ids) - len(self._topics), np.bool_))

    def take(self, changes: pa.RecordBatch) -> None:
        """What records made of partitions: rows of `transforms.kernel.history.HISTORY`."""
        self._changes.append(changes.select([*_PARTITION, *PARTITIONS.compared, *_CHANGE, "kinds"]))

    def table(self, topics: Topics, partitions: Partitions, cold: Cold) -> pl.DataFrame:
        """All versions: columns VERSIONS, by entity, key and offset. The arguments are the state after the last record."""
        for key, row in cold.rows.items():
            self._untouched(key, row)
        for number in np.flatnonzero(topics.here | topics.gone if self.whole else topics.gone).tolist():
            topic = _topic(topics, number)
            if topic is not None:
                self._untouched(_key(topics.ids.text(number)), topic)
        rows = [*self._of_rows(), *self._of_partitions(topics, partitions)]
        return pl.concat([pl.DataFrame(schema=VERSIONS), *rows]).sort("entity", "key", "from_offset", "removed")

    def _untouched(self, key: Key, row: Row) -> None:
        """A row that no record touched: its removal is included even if it is older than `since`."""
        if key[0] in _ENTITIES and key not in self._rows and (self.whole or row.removed):
            self._add(key, row, None)

    def _of_rows(self) -> Iterable[pl.DataFrame]:
        by_entity: dict[str, list[_Version]] = {}
        for (name, _), versions in self._rows.items():
            by_entity.setdefault(name, []).extend(versions)
        for name, versions in by_entity.items():
            entity = _ENTITIES[name]
            columns = {key: kind for key, kind in columns_of(entity.columns).items() if key in entity.key}
            columns |= {each: VERSIONS[each] for each in _FIELDS}
            rows = frame(map(_as_row, versions), pl.Schema(columns))
            yield rows.select(pl.lit(name).alias("entity"), json_of(*entity.key).alias("key"), *_FIELDS)

    def _of_partitions(self, topics: Topics, partitions: Partitions) -> Iterable[pl.DataFrame]:
        """Versions of the partitions of touched topics, and what removing a topic removed with it (it has no record of its own)."""
        late = topics.gone & (topics.longs[: len(topics.ids), LAST_OFFSET] >= self.since)
        quiet = (topics.here | late if self.whole else late) & ~self._touched(topics)
        before = [*self._before, _states(partitions, partitions.made(quiet))]
        yield _spelled(self._versions(before), topics, removed=False)
        removed = _states(partitions, partitions.gone(), gone=True)
        yield _spelled(from_arrow(removed, _STATES), topics, removed=True)

    def _versions(self, before: Sequence[pa.Table]) -> pl.DataFrame:
        """States before the first change and after each: columns _STATES. One that was replaced before `since` is left out."""
        states = [from_arrow(rows, _STATES) for rows in before]
        if not self._changes:
            return pl.concat(states)
        changed = pl.DataFrame(pl.from_arrow(self._changes)).rename({name: f"kraft_{name}" for name in _CHANGE})
        whole = pl.col("kinds").list.set_intersection(pl.lit(pl.Series([_WHOLE]))).list.len() > 0
        changed = changed.with_columns(pl.when(whole).then("kraft_offset").alias("kraft_created_offset"))
        rows = pl.concat([*states, changed.select(_STATES.names())]).sort(*_PARTITION, "kraft_offset")
        following = pl.col("kraft_offset").shift(-1).over(_PARTITION)
        return rows.with_columns(pl.col("kraft_created_offset").forward_fill().over(_PARTITION)).filter(
            (pl.col("kraft_offset") >= self.since) | following.is_null() | (following >= self.since)
        )


_STATES = pl.Schema(
    {
        name: kind
        for name, kind in columns_of(PARTITIONS.table.columns).items()
        if name in (*_PARTITION, *PARTITIONS.compared, *_AT, "kraft_created_offset")
    }
)


def holding_elr(partitions: Partitions, topics: Topics, named: Longs | None = None) -> Longs:
    """Numbers of the topics that have something for a CLEAR_ELR to clear: of those that it named, or of all that are there now."""
    ints = partitions.slots.ints[: partitions.count]
    holds = (ints[:, LENGTHS + ELR] > 0) | (ints[:, LENGTHS + LAST_ELR] > 0)
    found: Longs = np.unique(partitions.topic()[holds & (partitions.longs(CREATED) >= 0)])
    rows = topics.longs[found]
    meant = (rows[:, ALIVE] == 1) & (rows[:, MINE] == 1) if named is None else np.isin(found, named)
    cleared: Longs = found[meant]
    return cleared


def _states(partitions: Partitions, slots: Longs, *, gone: bool = False) -> pa.Table:
    return partitions.table(slots, gone=gone).select(_STATES.names())


def _spelled(states: pl.DataFrame, topics: Topics, *, removed: bool) -> pl.DataFrame:
    """States of partitions as VERSIONS, those of topics that have a name."""
    named = topics.longs[: len(topics.ids), NAME]
    names = pl.DataFrame(
        {"topic_id": topics.ids.all(), "topic": topics.names.column(named)},
        schema={"topic_id": pl.String, "topic": pl.String},
    )
    rows = states.join(names.filter(pl.col("topic").is_not_null()), on="topic_id", maintain_order="left")
    return rows.select(
        pl.lit(PARTITIONS.name).alias("entity"),
        json_of(*PARTITIONS.key).alias("key"),
        json_of(*PARTITIONS.compared).alias("row"),
        pl.lit(removed).alias("removed"),
        *[pl.col(name).alias(alias) for name, alias in _AT.items()],
        pl.col("kraft_created_offset").alias("created_offset"),
    )


def _as_row(version: _Version) -> dict[str, object]:
    """A version as a row: the columns of the key, which are among those of its text, and _FIELDS."""
    values = (version.text, version.removed, *version.at, version.created)
    return {**json.loads(version.text), **dict(zip(_FIELDS, values, strict=True))}


def _key(topic_id: str) -> Key:
    return TOPICS.name, json.dumps([topic_id])


def _text(topic_id: str, name: str) -> str:
    return json.dumps({"topic": name, "topic_id": topic_id})


def _topic(topics: Topics, number: int) -> Row | None:
    """A topic as a row; None for another shard's."""
    longs = topics.longs[number]
    if longs[NAME] < 0:
        return None
    at = At(*(int(longs[column]) for column in (LAST_OFFSET, LAST_EPOCH, LAST_TIME)))
    text = _text(topics.ids.text(number), topics.names.text(int(longs[NAME])))
    return Row(text, longs[ALIVE] == 0, at, int(longs[MADE]))
