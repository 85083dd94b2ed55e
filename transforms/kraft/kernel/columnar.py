"""The kernel's buffers as Arrow batches of the bronze schema, without copying what is already in Arrow's layout."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.kraft.records import RECORD_TYPES
from transforms.kraft.decode.rows import COLUMN_NAMES, RECORD_SCHEMA, Origin
from transforms.kraft.kernel import partitions as layout
from transforms.kraft.kernel.wire import UUID_BYTES, UUID_TEXT, Bytes, Ints, Shorts

_LISTS_PER_ROW = 8
_DIRECTORIES_PER_ROW = 4
_TEXT_PER_ROW = 256
_TYPE_NAMES = pa.array([RECORD_TYPES[key].name if key in RECORD_TYPES else "" for key in range(max(RECORD_TYPES) + 1)])
_LIST_NAMES = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
)


def empty_columns(rows: int, batch_bytes: int) -> layout.Columns:
    """Make buffers for `rows` rows, large enough for any batch of `batch_bytes` bytes.

    The pages are only touched as far as they are used.
    """
    directories = rows * _DIRECTORIES_PER_ROW + batch_bytes // UUID_BYTES + 1
    columns = layout.Columns(
        longs=np.empty((layout.LONG_ROWS, rows), np.int64),
        ints=np.empty((layout.INT_ROWS, rows + 1), np.int32),
        shorts=np.empty((4, rows), np.int16),
        lists=np.empty((layout.LIST_COLUMNS, rows * _LISTS_PER_ROW + batch_bytes // 4), np.int32),
        topics=np.empty(rows * UUID_TEXT, np.uint8),
        directories=np.empty(directories * UUID_TEXT, np.uint8),
        text=np.empty(rows * _TEXT_PER_ROW + 4 * batch_bytes, np.uint8),
        used=np.zeros(2 * layout.USED_SAVED, np.int64),
    )
    columns.ints[layout.TOPIC_ENDS :, 0] = 0
    return columns


def to_batch(columns: layout.Columns, rows: int, origin: Origin, base: int, texts: dict[int, str]) -> pa.RecordBatch:
    """Wrap the first `rows` rows. `base` is added to positions; `texts` are bodies that the kernel left, by row."""
    longs, ints, shorts = columns.longs[:, :rows], columns.ints[:, :rows], columns.shorts[:, :rows]
    is_partition_record = _mask(shorts[layout.FLAGS], layout.IS_PARTITION_RECORD)
    partition = _mask(shorts[layout.FLAGS], layout.IS_WHOLE)
    types = pa.DictionaryArray.from_arrays(pa.array(shorts[layout.TYPE]), _TYPE_NAMES)
    arrays: dict[str, pa.Array] = {
        "controller_id": _constant(origin.controller_id, "controller_id", rows),
        "file": _constant(origin.file, "file", rows),
        "checkpoint_offset": _constant(origin.checkpoint_offset, "checkpoint_offset", rows),
        "control": _constant(False, "control", rows),
        "problem": _constant(None, "problem", rows),
        "position": _numbers(longs[layout.POSITION] + base, None),
        "length": _numbers(longs[layout.LENGTH], None),
        "offset": _numbers(longs[layout.OFFSET], None),
        "epoch": _numbers(ints[layout.EPOCH], None),
        "append_time": _numbers(longs[layout.APPEND_TIME], None),
        "type": types.cast(pa.string()),
        "version": _numbers(shorts[layout.VERSION], None),
        "partition_id": _numbers(ints[layout.PARTITION_ID], is_partition_record),
        "topic_id": _texts(columns.topics, columns.ints[layout.TOPIC_ENDS], rows, is_partition_record),
        "leader": _numbers(ints[layout.LEADER], is_partition_record),
        "leader_epoch": _numbers(ints[layout.LEADER_EPOCH], partition),
        "partition_epoch": _numbers(ints[layout.PARTITION_EPOCH], partition),
        "leader_recovery_state": _numbers(shorts[layout.RECOVERY].astype(np.int8), is_partition_record),
        "directories": _directories(columns, rows),
        "data": _data(columns, rows, texts),
    }
    for index, name in enumerate(_LIST_NAMES):
        arrays[name] = _list(columns, rows, index, RECORD_SCHEMA.field(name).type)
    return pa.RecordBatch.from_arrays([arrays[name] for name in COLUMN_NAMES], schema=RECORD_SCHEMA)


@lru_cache(maxsize=64)
def _constants(value: object, name: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, RECORD_SCHEMA.field(name).type), rows)


def _constant(value: object, name: str, rows: int) -> pa.Array:
    # Rounded up, so that nearly equal batches share one array.
    return _constants(value, name, 1 << max(rows - 1, 0).bit_length()).slice(0, rows)


def _mask(flags: Shorts, bit: int) -> pa.Buffer:
    return pa.py_buffer(np.packbits((flags & bit) != 0, bitorder="little"))


def _numbers(values: npt.NDArray[np.generic], validity: pa.Buffer | None) -> pa.Array:
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), values.size, [validity, pa.py_buffer(values)])


def _texts(text: Bytes, offsets: Ints, rows: int, validity: pa.Buffer | None) -> pa.Array:
    used = int(offsets[rows])
    buffers = [validity, pa.py_buffer(offsets[: rows + 1]), pa.py_buffer(text[:used])]
    return pa.Array.from_buffers(pa.string(), rows, buffers)


def _list(columns: layout.Columns, rows: int, index: int, data_type: pa.DataType) -> pa.Array:
    offsets = columns.ints[layout.LIST_ENDS + index, : rows + 1]
    values = _numbers(columns.lists[index, : offsets[rows]], None)
    validity = _mask(columns.shorts[layout.FLAGS, :rows], layout.LISTS << index)
    return pa.Array.from_buffers(data_type, rows, [validity, pa.py_buffer(offsets)], children=[values])


def _directories(columns: layout.Columns, rows: int) -> pa.Array:
    offsets = columns.ints[layout.DIRECTORY_ENDS, : rows + 1]
    count = int(offsets[rows])
    starts = np.arange(0, (count + 1) * UUID_TEXT, UUID_TEXT, dtype=np.int32)
    values = _texts(columns.directories, starts, count, None)
    validity = _mask(columns.shorts[layout.FLAGS, :rows], layout.DIRECTORIES)
    data_type = RECORD_SCHEMA.field("directories").type
    return pa.Array.from_buffers(data_type, rows, [validity, pa.py_buffer(offsets)], children=[values])


def _data(columns: layout.Columns, rows: int, texts: dict[int, str]) -> pa.Array:
    data = _texts(
        columns.text,
        columns.ints[layout.DATA_ENDS],
        rows,
        _mask(columns.shorts[layout.FLAGS, :rows], layout.DATA),
    )
    if not texts:
        return data
    replaced = np.zeros(rows, np.bool_)
    order = sorted(texts)
    replaced[order] = True
    return pc.replace_with_mask(data, pa.array(replaced), pa.array([texts[row] for row in order], pa.string()))
