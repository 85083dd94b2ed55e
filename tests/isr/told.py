"""Histories of partitions out of rows of bronze kraft_records: what the kernel tells, as a frame of one cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa

from schemas.gold import ISR_CHANGE_COLUMNS
from transforms.frames import columns_of, from_arrow
from transforms.kernel.replay import Plan, TableKind, replay
from transforms.kraft.decode.rows import RECORD_SCHEMA
from transforms.kraft.replay.extent import Extent

CHANGES = columns_of(ISR_CHANGE_COLUMNS)
Row = Mapping[str, Any]


def batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Rows as a batch of records; what a row does not name is null."""
    return pa.RecordBatch.from_pylist(
        [{name: row.get(name) for name in RECORD_SCHEMA.names} for row in rows], RECORD_SCHEMA
    )


def history_of(rows: Iterable[Row], plan: Plan | None = None, kept: bytes | None = None) -> pl.DataFrame:
    """Every change of a partition in a log, with the columns of gold isr_history but the run's, in the order of the log."""
    in_order = sorted(rows, key=lambda row: int(row["offset"]))
    end = int(in_order[-1]["offset"]) + 1 if in_order else 0
    told = replay(Plan("one", Extent(end)) if plan is None else plan, [batch(in_order)], kept)
    changes = [each.rows for each in told if each.kind == TableKind.HISTORY]
    return from_arrow([one for rows in changes for one in _batches(rows)], CHANGES)


def _batches(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    return [rows] if isinstance(rows, pa.RecordBatch) else rows.to_batches()
