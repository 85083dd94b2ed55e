"""Which changes Kafka mirrored together: the deltas of its metadata image, bounded by the barriers (S§5.5, S§7.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from schemas.classes import LOST_WRITE
from schemas.report import DivergenceRow
from transforms.reconcile.compare.context import CLOCK_MARGIN_MS

QUOTAS = ("client_quotas",)
# Mirrored after quotas, so that a failure there skips them (`KRaftMigrationZkWriter.handleDelta`).
AFTER_QUOTAS = ("producer_ids", "acls", "delegation_tokens")
# Without ZooKeeper's transaction logs the deltas are unknown; changes this close to each other may have been one.
NEAR_RECORDS = 100
Delta = tuple[int, int]


def lost(rows: Iterable[DivergenceRow], entities: Sequence[str]) -> list[tuple[int, DivergenceRow]]:
    """Lost writes of the entities, with the offset of the change that was lost."""
    return [
        (row.kraft_offset, row)
        for row in rows
        if row.class_ == LOST_WRITE and row.entity in entities and row.kraft_offset is not None
    ]


def offsets_asked(rows: Sequence[DivergenceRow]) -> list[int]:
    """Offsets whose deltas decide whether a change was dropped behind a quota; none when no change can have been dropped."""
    quotas, later = lost(rows, QUOTAS), lost(rows, AFTER_QUOTAS)
    return sorted({offset for offset, _ in (*quotas, *later)}) if quotas and later else []


def deltas(barriers: pl.DataFrame, offsets: Sequence[int], loaded_at: int | None) -> dict[int, Delta]:
    """The delta of each offset, as (last barrier before it, first barrier at or after it); none where one is unknown.

    `barriers` are silver barriers. Those of an earlier migration, before this one's load ended (milliseconds), are left out.
    """
    since = 0 if loaded_at is None else loaded_at - CLOCK_MARGIN_MS
    passed = barriers.filter(pl.col("time") >= since)["kraft_metadata_offset"].sort().to_list()
    places = {offset: bisect_left(passed, offset) for offset in offsets}
    return {offset: (passed[at - 1], passed[at]) for offset, at in places.items() if 0 < at < len(passed)}


def dropped_behind(rows: Sequence[DivergenceRow], deltas: Mapping[int, Delta]) -> list[str]:
    """Lost changes of the same delta as a lost quota change, one text each.

    A delta ends at a barrier. Where an offset's barriers are unknown, changes within NEAR_RECORDS count as one delta;
    that can't raise a false alarm on a healthy cluster, which has no lost quota change.
    """
    quotas = [offset for offset, _ in lost(rows, QUOTAS)]
    texts = []
    for offset, row in lost(rows, AFTER_QUOTAS):
        what = f"{row.entity.replace('_', ' ')} changed at offset {offset}"
        mine = deltas.get(offset)
        if mine is not None and any(deltas.get(quota) == mine for quota in quotas):
            texts.append(f"{what}, mirrored together with a lost quota change (offsets {mine[0] + 1} to {mine[1]})")
        elif any(_near(offset, quota, deltas) for quota in quotas):
            texts.append(f"{what}, near a lost quota change")
    return texts


def _near(offset: int, quota: int, deltas: Mapping[int, Delta]) -> bool:
    known = offset in deltas and quota in deltas
    return not known and abs(offset - quota) <= NEAR_RECORDS
