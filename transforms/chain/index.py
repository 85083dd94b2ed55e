"""A compact index of a chain's rows: a key and a hash for each row, by which a run finds the rows that have changed.

Each run of a chain stores the entries of its own rows. A change is never guessed: if the bytes are not those that were written,
there is no index, and the run stores all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from schemas.entities import ENTITIES, Entity
from schemas.zookeeper.trees import TREE
from transforms.chain.hashes import Numbers, row_hashes

INDEX: pa.Schema = pa.schema(
    [("entity", pa.int8()), ("row_key", pa.int64()), ("row_hash", pa.int64()), ("gone", pa.bool_())]
)
# Bytes of one piece of it, uncompressed: nine to seventeen million.
_PIECE_ROWS = 500_000
_APART = np.uint64(0x9E3779B97F4A7C15)
_NOTHING: Numbers = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Hashed:
    """Rows of one entity as numbers: `keys`, each once, and `hashes` of what the rows hold, in the keys' order."""

    keys: Numbers = field(default_factory=lambda: _NOTHING)
    hashes: Numbers = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True)
class Changed:
    """The difference of one entity's rows to an earlier state: `rows` to store, with `row_key` and `gone`, and their `hashes`.

    Of a removed row only its key is known.
    """

    entity: Entity
    rows: pl.DataFrame
    hashes: Numbers


def states_of(batches: Iterable[pa.RecordBatch]) -> dict[str, Hashed]:
    """The state that a chain's indexes (INDEX, the base's first) come to, by entity; keys ascend."""
    rows = pa.Table.from_batches(batches, INDEX)
    numbers = rows["entity"].to_numpy()
    keys, hashes = (rows[name].to_numpy().view(np.uint64) for name in ("row_key", "row_hash"))
    there = ~rows["gone"].to_numpy(zero_copy_only=False).astype(bool)
    return {
        entity.name: _newest(keys[mine], hashes[mine], there[mine])
        for number, entity in enumerate(ENTITIES)
        for mine in [numbers == number]
    }


def _newest(keys: Numbers, hashes: Numbers, there: npt.NDArray[np.bool_]) -> Hashed:
    # Backwards, so that the first one of a key is the newest.
    found, places = np.unique(keys[::-1], return_index=True)
    stays = there[::-1][places]
    return Hashed(found[stays], hashes[::-1][places][stays])


def hashed_in(tables: Mapping[str, pl.DataFrame]) -> dict[str, Hashed]:
    """Each entity's rows as numbers."""
    return {entity.name: hashed(entity, tables[entity.name]) for entity in ENTITIES}


def changed_in(
    tables: Mapping[str, pl.DataFrame], now: Mapping[str, Hashed], before: Mapping[str, Hashed]
) -> list[Changed]:
    """What has changed in each entity's rows, as they are `now`, since an earlier state: all of them are new where there was none."""
    return [
        changed(entity, tables[entity.name], now[entity.name], before.get(entity.name, Hashed())) for entity in ENTITIES
    ]


def hashed(entity: Entity, rows: pl.DataFrame) -> Hashed:
    """An entity's rows as numbers, in the rows' order.

    Rows with the same key, which a healthy cluster does not have, are distinguished by their content.
    """
    if rows.is_empty():
        return Hashed()
    names = [each.name for each in entity.row_columns]
    # Of two trees that are read each has its row.
    of_tree = [TREE] if TREE in names else []
    contents = row_hashes(rows, names)
    return Hashed(_apart(row_hashes(rows, ["source", *entity.key, *of_tree]), contents), contents)


def _apart(keys: Numbers, contents: Numbers) -> Numbers:
    while len(np.unique(keys)) < len(keys):
        order = np.lexsort((contents, keys))
        ranked = keys[order]
        first = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
        place = np.arange(len(keys)) - np.repeat(first, np.diff([*first, len(keys)]))
        keys = keys.copy()
        keys[order] = ranked + place.astype(np.uint64) * _APART
    return keys


def changed(entity: Entity, rows: pl.DataFrame, now: Hashed, before: Hashed) -> Changed:
    """The rows that an earlier state has not, or otherwise, and those that have gone since."""
    same = np.zeros(len(now.keys), np.bool_)
    if len(before.keys):
        places = np.minimum(np.searchsorted(before.keys, now.keys), len(before.keys) - 1)
        same = (before.keys[places] == now.keys) & (before.hashes[places] == now.hashes)
    mine = rows.with_columns(_key(now.keys), pl.lit(None, pl.Boolean).alias("gone"))
    # A base is not copied: it may be most of what a worker holds.
    mine = mine.filter(pl.Series(~same)) if same.any() else mine
    gone = before.keys[~np.isin(before.keys, now.keys, assume_unique=True)]
    if not len(gone):
        return Changed(entity, mine, now.hashes[~same])
    without = pl.DataFrame([_key(gone)]).with_columns(pl.lit(value=True).alias("gone"))
    hashes = np.concatenate([now.hashes[~same], np.zeros(len(gone), np.uint64)])
    return Changed(entity, pl.concat([mine, without], how="diagonal"), hashes)


def _key(keys: Numbers) -> pl.Series:
    return pl.Series("row_key", keys.view(np.int64))


def pieces(several: Iterable[Changed]) -> Iterator[pa.RecordBatch]:
    """The index of rows that are stored (INDEX), in batches of a bounded size."""
    numbers: Mapping[str, int] = {entity.name: number for number, entity in enumerate(ENTITIES)}
    parts = [
        pl.DataFrame(
            [
                pl.Series("entity", np.full(each.rows.height, numbers[each.entity.name], np.int8)),
                each.rows["row_key"],
                pl.Series("row_hash", each.hashes.view(np.int64)),
                each.rows["gone"].fill_null(value=False),
            ]
        )
        for each in several
        if each.rows.height
    ]
    if parts:
        yield from pl.concat(parts).to_arrow().cast(INDEX).to_batches(_PIECE_ROWS)
