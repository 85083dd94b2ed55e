"""How far ZooKeeper's clock is from the controllers', measured on mirrored changes (S§7.3, DUR-04)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.entities.configs import CONFIGS
from schemas.entities.entity import Entity
from schemas.entities.partitions import PARTITIONS
from schemas.entities.producer_ids import PRODUCER_IDS
from transforms.reconcile.compare.context import Clocks

# Fewer changes than this prove nothing about a clock: one late retry would count as skew.
_ENOUGH = 5
# Entities whose znodes KRaft writes once for each change, and otherwise in a full sync only.
_MEASURED: tuple[Entity, ...] = (PARTITIONS, CONFIGS, PRODUCER_IDS)
# The newest changes are as good as all of them.
_NEWEST = 1_000
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
# A large change takes seconds to be mirrored, however near to each other the others are.
_LEAST_MARGIN_MS = 5_000
_MARGIN_OF_FURTHEST = 3


@dataclass(frozen=True)
class OneByOne:
    """The changes that were mirrored one by one: the offsets after which (exclusive) and up to which (inclusive).

    What the load or a full sync wrote is as old as these, not as its record; what was written after `/migration`'s last
    write, transaction `mzxid`, was not mirrored.
    """

    after: int
    until: int
    mzxid: int


@dataclass(frozen=True)
class ClockSkew:
    """ZooKeeper's clock minus the controllers', in milliseconds: the median over `pairs` changes and its spread.

    `spread` is how far half of the changes lie from the median, `furthest` how far nine in ten of them do. The time that
    mirroring takes is part of the median, so it is an upper bound of the skew by some milliseconds in a healthy cluster,
    by more in one that lags.
    """

    median: float
    spread: float
    pairs: int
    furthest: float = 0.0

    @property
    def clocks(self) -> Clocks:
        """What the comparison of single times needs."""
        return Clocks(round(self.median), round(max(_LEAST_MARGIN_MS, _MARGIN_OF_FURTHEST * self.furthest)))


def clock_skew(quantiles: Sequence[float] | None, pairs: int) -> ClockSkew | None:
    """The skew from a row of `mirroring_times`; None if too few changes were mirrored."""
    if quantiles is None or pairs < _ENOUGH:
        return None
    lowest, low, middle, high, highest = quantiles
    return ClockSkew(middle, (high - low) / 2, pairs, max(highest - middle, middle - lowest))


def mirroring_times(tables: Mapping[str, pl.DataFrame], mirrored: OneByOne) -> list[dict[str, Any]]:
    """How much later a znode's mtime is than the append time of the record it mirrors: one row of quantiles (ms) and pairs.

    `tables` are silver rows of both sides by entity. There is no row where nothing was mirrored.
    """
    apart = pl.concat([_of_entity(entity, tables[entity.name], mirrored) for entity in _MEASURED])
    if apart.is_empty():
        return []
    known = sorted(apart.drop_nulls())
    quantiles = [_quantile(known, part) for part in _QUANTILES] if known else None
    return [{"quantiles": quantiles, "pairs": len(apart)}]


def _quantile(ordered: Sequence[int], part: float) -> float:
    """The value at a part of the way through, between its neighbours in proportion."""
    position = (len(ordered) - 1) * part
    low, high = math.floor(position), math.ceil(position)
    if ordered[low] == ordered[high]:
        return float(ordered[low])
    return (high - position) * ordered[low] + (position - low) * ordered[high]


def _of_entity(entity: Entity, rows: pl.DataFrame, mirrored: OneByOne) -> pl.Series:
    key, offset = list(entity.key), pl.col("kraft_offset")
    changed = rows.filter((pl.col("source") == "kraft") & (offset > mirrored.after) & (offset <= mirrored.until))
    newest = changed.top_k(_NEWEST, by="kraft_offset").select(*key, "kraft_append_time")
    znodes = rows.filter((pl.col("source") == "zookeeper") & (pl.col("zk_mzxid") <= mirrored.mzxid)).select(
        *key, "zk_path", "zk_mtime"
    )
    both = znodes.join(newest, on=key) if key else znodes.join(newest, how="cross")
    # Of the rows that one znode holds, the one that changed last had it written last.
    written = both.group_by("zk_path").agg(pl.col("zk_mtime").max(), pl.col("kraft_append_time").max())
    return written.select(apart=pl.col("zk_mtime") - pl.col("kraft_append_time"))["apart"]
