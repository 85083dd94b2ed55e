"""Changes of partitions as Arrow batches of gold `isr_history`, without copying what is already in Arrow's layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from schemas.gold import ISR_CHANGE
from transforms.clusters import CLUSTER
from transforms.isr.history import ELECTIONS
from transforms.isr.partition import NO_LEADER
from transforms.kernel import layout
from transforms.kernel.layout import LIST_NAMES, NUMBER_NAMES, Changes
from transforms.kernel.rules import ORDER
from transforms.kernel.texts import Texts

HISTORY: pa.Schema = to_arrow_schema(ISR_CHANGE)
_LISTS_PER_ROW = 4
# Columns whose lengths are a power of two would all be in the way of each other in the processor's cache.
_PADDING = 80
_NAMES = np.array([kind.value for kind in ORDER])
_ELECTIONS = frozenset(kind.value for kind in ELECTIONS)


def empty_changes(rows: int, ids: int) -> Changes:
    """Room for so many changes, one of which may have as many ids; the pages are only touched as far as they are used."""
    rows += _PADDING
    changes = Changes(
        longs=np.empty((layout.CHANGE_LONGS, rows), np.int64),
        ints=np.empty((layout.CHANGE_INTS, rows), np.int32),
        ends=np.empty((layout.CHANGE_LISTS, rows + 1), np.uint32),
        values=np.empty((layout.CHANGE_LISTS, rows * _LISTS_PER_ROW + ids + _PADDING), np.int32),
        used=np.zeros(2, np.int64),
    )
    changes.ends[:, 0] = 0
    return changes


def history(changes: Changes, cluster: str, ids: Texts, names: Texts) -> pa.RecordBatch:
    """The changes as rows of HISTORY."""
    rows = int(changes.used[layout.ROWS])
    longs, ints = changes.longs[:, :rows], changes.ints[:, :rows]
    made = ints[layout.C_MADE] != 0
    led = made | (ints[layout.C_NUMBERS + layout.NUMBERS + layout.LEADER] != NO_LEADER)
    kinds = pa.array(ints[layout.C_KINDS])
    columns: dict[str, pa.Array] = {
        CLUSTER: pa.repeat(pa.scalar(cluster), rows),
        "topic": names.column(ints[layout.C_NAME]),
        "topic_id": ids.column(ints[layout.C_TOPIC]),
        "partition": _numbers(ints[layout.C_PARTITION]),
        "offset": _numbers(longs[layout.C_OFFSET]),
        "epoch": _numbers(ints[layout.C_EPOCH]),
        "append_time": _numbers(longs[layout.C_TIME]),
        "kinds": _by_mask(kinds, "kinds"),
        "election": _by_mask(kinds, "election"),
        "brokers": _lists(changes, layout.BROKERS, rows),
        "departed": _lists(changes, layout.DEPARTED, rows),
        "joined": _lists(changes, layout.JOINED, rows),
        "before_time": _numbers(longs[layout.C_BEFORE_TIME], made),
        "leaderless_since": _numbers(longs[layout.C_LEADERLESS], led),
    }
    for k, name in enumerate(LIST_NAMES):
        columns[name] = _lists(changes, layout.LISTS_AFTER + k, rows)
        columns[f"{name}_before"] = _lists(changes, layout.LISTS_BEFORE + k, rows, made)
    for k, name in enumerate(NUMBER_NAMES):
        columns[name] = _numbers(ints[layout.C_NUMBERS + k])
        columns[f"{name}_before"] = _numbers(ints[layout.C_NUMBERS + layout.NUMBERS + k], made)
    return pa.RecordBatch.from_arrays([columns[field.name] for field in HISTORY], schema=HISTORY)


def _by_mask(masks: pa.Array, name: str) -> pa.Array:
    """The names that belong to each row's kinds; there are few different ones."""
    encoded = masks.dictionary_encode()
    each = [_of_mask(mask) for mask in encoded.dictionary.to_pylist()]
    values: Sequence[object] = each
    if name == "election":
        values = [next((kind for kind in kinds if kind in _ELECTIONS), None) for kinds in each]
    return pa.array(values, HISTORY.field(name).type).take(encoded.indices)


def _of_mask(mask: int) -> list[str]:
    return [name for place, name in enumerate(_NAMES.tolist()) if mask >> place & 1]


def _lists(changes: Changes, column: int, rows: int, null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    ends = changes.ends[column, : rows + 1]
    values = _numbers(changes.values[column, : ends[rows]])
    return pa.Array.from_buffers(
        HISTORY.field("isr").type, rows, [_validity(null), pa.py_buffer(ends)], children=[values]
    )


def _numbers(values: npt.NDArray[np.generic], null: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [_validity(null), pa.py_buffer(values)]
    )


def _validity(null: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    return None if null is None or not null.any() else pa.py_buffer(np.packbits(~null, bitorder="little"))
