"""The difference engine: joins each entity's two sides by key; only differing rows are judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.entities import MIRRORED, Entity
from transforms.frames import shaped
from transforms.reconcile.compare.canonical import ASSIGNMENT_PROVENANCE, comparable, compared, key_json, row_json

_ROW = ("entity", "key")
_VERSION = pl.Schema(
    {
        "from_offset": pl.Int64,
        "row": pl.String,
        "removed": pl.Boolean,
        "from_append_time": pl.Int64,
        "created_offset": pl.Int64,
    }
)
VERSION_FIELDS = tuple(_VERSION)
# Keys that one side has more than once, which are listed.
_LISTED = 20
_IN_ZOOKEEPER = ("zk_czxid", "zk_mzxid", "zk_mtime", *ASSIGNMENT_PROVENANCE)
_IN_KRAFT = ("kraft_offset", "kraft_created_offset", "kraft_append_time")
# What a verdict needs of a differing row. `zk_row` and `kraft_row` are JSON objects of the compared columns, null where a
# side lacks the row; `zk_rows` and `kraft_rows` say how many rows of a side had this key; `versions` are by offset.
DIFFERING = pl.Schema(
    {
        "entity": pl.String(),
        "key": pl.String(),
        "zk_row": pl.String(),
        "zk_rows": pl.Int64(),
        "kraft_row": pl.String(),
        "kraft_rows": pl.Int64(),
        "comparable": pl.Boolean(),
        "zk_path": pl.String(),
        **dict.fromkeys((*_IN_ZOOKEEPER, *_IN_KRAFT), pl.Int64()),
        "versions": pl.List(pl.Struct(_VERSION)),
    }
)


@dataclass(frozen=True)
class Ends:
    """Where a cluster's log ends: `committed` (exclusive), and the copy's own end; None when there is no tail to look at."""

    committed: int
    log: int | None = None

    @property
    def has_tail(self) -> bool:
        """True if the log continues past the proved committed end."""
        return self.log is not None and self.log > self.committed


@dataclass(frozen=True)
class Sides:
    """Rows of one entity on both sides, with the columns of its silver table."""

    entity: Entity
    zk: pl.DataFrame
    kraft: pl.DataFrame


def sides_of(tables: Mapping[str, pl.DataFrame]) -> list[Sides]:
    """The two sides of each mirrored entity, from silver rows by entity."""
    return [
        Sides(
            entity,
            tables[entity.name].filter(pl.col("source") == ZOOKEEPER),
            tables[entity.name].filter(pl.col("source") == KRAFT),
        )
        for entity in MIRRORED
    ]


def differing_rows(both: Iterable[Sides], versions: pl.DataFrame, ends: Ends) -> pl.DataFrame:
    """Rows that are not the same on both sides, with all inputs of a verdict: columns DIFFERING.

    `versions` are ROW_VERSION rows. Rows whose newest version starts at the committed end or later are kept too, because
    their difference may be in the tail only; so are rows that neither side has, when the log goes on past it, and keys
    that a side has more than once, whose other rows nobody compares (`duplicated`).
    """
    in_tail = versions.filter(pl.col("from_offset") >= ends.committed).select(_ROW).unique()
    found = [pl.DataFrame(schema=DIFFERING)]
    for sides in both:
        name = sides.entity.name
        mine = in_tail.filter(pl.col("entity") == name)
        pairs = _pairs(sides)
        keys = _kept(sides, pairs, mine["key"])
        if not keys.is_empty():
            found.append(_differing(sides, keys))
        if ends.has_tail:
            # Without a tail, what neither side has is history.
            found.append(shaped(mine.join(pairs, on="key", how="anti"), DIFFERING))
    return shaped(_with_timelines(pl.concat(found).drop("versions"), versions, "versions"), DIFFERING)


def with_earlier(differing: pl.DataFrame, versions: pl.DataFrame) -> pl.DataFrame:
    """`differing_rows` with `earlier`: what `versions` (ROW_VERSION) have of a row, by offset; null where they have nothing."""
    return _with_timelines(differing, versions, "earlier")


def without_moved(differing: pl.DataFrame, moved: pl.DataFrame | None) -> pl.DataFrame:
    """Leave out rows whose znode changed between the two walks of a bracket (column path of `moved`)."""
    if moved is None:
        return differing
    return differing.join(moved.select(pl.col("path").alias("zk_path")), on="zk_path", how="anti")


def _pairs(sides: Sides) -> pl.DataFrame:
    """Each key once, with the number of its rows and the place of the first one on each side: {zk,kraft}_{rows,at}."""
    zk, kraft = (_keys(sides.entity, rows, name) for rows, name in ((sides.zk, "zk"), (sides.kraft, "kraft")))
    return zk.join(kraft, on="key", how="full", coalesce=True)


def _keys(entity: Entity, rows: pl.DataFrame, name: str) -> pl.DataFrame:
    keys = _keyed(entity, rows).select("key").with_row_index(f"{name}_at")
    return keys.group_by("key").agg(pl.len().alias(f"{name}_rows"), pl.col(f"{name}_at").first())


def _keyed(entity: Entity, rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(key_json(entity).alias("key"))


def _kept(sides: Sides, pairs: pl.DataFrame, in_tail: pl.Series) -> pl.DataFrame:
    """The keys of the pairs to judge, in their order."""
    twice = (pl.col("zk_rows") > 1) | (pl.col("kraft_rows") > 1)
    again = twice.fill_null(False) | pl.col("key").is_in(in_tail.implode())
    return pairs.filter(_unequal(sides, pairs) | again).select("key").sort("key")


def _unequal(sides: Sides, pairs: pl.DataFrame) -> pl.Series:
    """Column by column, so that equal rows are not written as text."""
    found = pairs["zk_at"].is_null() | pairs["kraft_at"].is_null()
    for name in sides.entity.compared:
        column = compared(sides.entity, name)
        zk = sides.zk.select(column).to_series().gather(pairs["zk_at"])
        found |= zk.ne_missing(sides.kraft.select(column).to_series().gather(pairs["kraft_at"]))
    return found


def _differing(sides: Sides, keys: pl.DataFrame) -> pl.DataFrame:
    zk, kraft = (_side(sides.entity, rows, keys, name) for rows, name in ((sides.zk, "zk"), (sides.kraft, "kraft")))
    rows = keys.join(zk, on="key", how="left").join(kraft, on="key", how="left")
    left, right = pl.col("zk_comparable"), pl.col("kraft_comparable")
    prefixed = rows.with_columns(
        pl.lit(sides.entity.name).alias("entity"),
        pl.col("zk_rows", "kraft_rows").fill_null(0),
        (left.fill_null(right) & right.fill_null(left)).alias("comparable"),
    )
    return shaped(prefixed, DIFFERING)


def _side(entity: Entity, rows: pl.DataFrame, keys: pl.DataFrame, name: str) -> pl.DataFrame:
    """A side's rows with these keys: the first one of each, and where it was written, prefixed by the side's name."""
    asked = _keyed(entity, rows).join(keys, on="key", how="semi")
    provenance = [column for column in (_IN_ZOOKEEPER if name == "zk" else _IN_KRAFT) if column in asked.columns]
    path = [pl.col("zk_path").drop_nulls().first()] if name == "zk" else []
    spelled = asked.with_columns(row_json(entity).alias("row"), comparable(entity).alias("may_compare"))
    return spelled.group_by("key").agg(
        pl.col("row").first().alias(f"{name}_row"),
        pl.len().alias(f"{name}_rows"),
        pl.col("may_compare").min().alias(f"{name}_comparable"),
        *path,
        pl.col(provenance).max(),
    )


def _with_timelines(rows: pl.DataFrame, versions: pl.DataFrame, name: str) -> pl.DataFrame:
    """Rows with their versions by offset as a list `name`; null for a row without any."""
    mine = versions.join(rows, on=_ROW, how="semi").select(*_ROW, *VERSION_FIELDS).sort(VERSION_FIELDS)
    timelines = mine.group_by(_ROW, maintain_order=True).agg(pl.struct(VERSION_FIELDS).alias(name))
    return rows.join(timelines, on=_ROW, how="left", maintain_order="left")


def duplicated(differing: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of `differing_rows` whose key is on a side more than once, in one row: total, texts (a few); none without any.

    Which of their rows is compared is arbitrary, so the comparison proves nothing about them.
    """
    text = pl.format("{} {}: {} rows in ZooKeeper, {} in KRaft", "entity", "key", "zk_rows", "kraft_rows")
    texts = differing.filter((pl.col("zk_rows") > 1) | (pl.col("kraft_rows") > 1)).select(text).to_series().sort()
    return [{"total": len(texts), "texts": texts.head(_LISTED).to_list()}] if len(texts) else []
