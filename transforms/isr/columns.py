"""Columns of sorted Arrow batches as NumPy arrays: flags, where another partition begins, what came last."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.isr.id_lists import Flags, Numbers


def flags(column: pa.Array) -> Flags:
    """A column of booleans without nulls."""
    found: Flags = column.to_numpy(zero_copy_only=False).astype(np.bool_)
    return found


def begins(rows: pa.RecordBatch, key: Sequence[str]) -> Flags:
    """Which rows are the first ones of another key, in rows that are sorted by it."""
    first = np.ones(rows.num_rows, np.bool_)
    first[1:] = False
    for name in key:
        column = rows[name]
        first[1:] |= flags(pc.not_equal(column.slice(1), column.slice(0, max(len(column) - 1, 0))))
    return first


def latest(flagged: Flags) -> Numbers:
    """The last flagged row up to each row; -1 before the first of all."""
    return np.maximum.accumulate(np.where(flagged, np.arange(len(flagged)), -1))
