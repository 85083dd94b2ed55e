"""The compiled part of the decoder: whole batches straight into Arrow's buffers.

It takes only batches as a controller writes them: the CRC is right, offsets and epochs are in order, every record has a known
type and version, and the partition records have no unknown tag or code. At the first other batch it stops and leaves that batch
to the declaration-driven decoder (`transforms.kraft.decode.decode_pass`), which reports the fault. So both give the same rows, and
this module needs no error handling of its own. Numba compiles it once and keeps the machine code on disk.
"""

# ruff: noqa: PLR0913, PLR0917 - compiled code takes arrays, not objects

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from schemas.kraft.records import CONFIG, PARTITION, PARTITION_CHANGE
from transforms.kraft.decode.framing import MOST_OFFSET
from transforms.kraft.kernel.partitions import (
    APPEND_TIME,
    DATA,
    DATA_ENDS,
    DIRECTORY_ENDS,
    EPOCH,
    FLAGS,
    LENGTH,
    LIST_COLUMNS,
    LIST_ENDS,
    OFFSET,
    PARTITION_ID,
    PENDING,
    PENDING_END,
    POSITION,
    TOPIC_ENDS,
    TYPE,
    USED_DATA,
    USED_DIRECTORIES,
    USED_LISTS,
    USED_SAVED,
    USED_TOPICS,
    VERSION,
    read_change,
    read_partition,
)
from transforms.kraft.kernel.text import config_is_plain, run_program
from transforms.kraft.kernel.wire import (
    UUID_BYTES,
    UUID_TEXT,
    Bytes,
    Ints,
    Longs,
    Shorts,
    big,
    compiled,
    crc32c,
    int32_at,
    skip_varlong,
    take,
    uvarint,
    write_uuid,
)

DONE, FULL, NOT_MINE = 0, 1, 2

_PARTITION = PARTITION.key
_PARTITION_CHANGE = PARTITION_CHANGE.key
_CONFIG = CONFIG.key
_HEADER = 61
_SMALLEST_RECORD = 7
_UNORDINARY_ATTRIBUTES = 0x37


@compiled
def _record_value(data: Bytes, position: int, end: int, index: int) -> tuple[int, int, int]:
    """Read a record's frame: attributes, timestamp delta, offset delta, no key, value, no headers.

    Returns start and end of the value and the end of the record, or -1s.
    """
    size, position = uvarint(data, position, end)
    after = take(position, size >> 1, end)
    if after < 0 or size & 1:
        return -1, -1, -1
    position = skip_varlong(data, take(position, 1, after), after)
    delta, position = uvarint(data, position, after)
    key_size, position = uvarint(data, position, after)
    value_size, position = uvarint(data, position, after)
    value_end = take(position, value_size >> 1, after)
    # Zigzag: odd is negative, 1 is -1. One byte, the number of headers, may follow the value.
    if value_end < 0 or delta != 2 * index or key_size != 1 or value_size & 1:
        return -1, -1, -1
    if value_end + 1 != after or data[value_end] != 0:
        return -1, -1, -1
    return position, value_end, after


@compiled
def _read_batch(
    data: Bytes,
    start: int,
    end: int,
    count: int,
    first_row: int,
    instructions: Ints,
    types: Ints,
    names: Ints,
    blob: Bytes,
    longs: Longs,
    ints: Ints,
    shorts: Shorts,
    lists: Ints,
    topics: Bytes,
    directories: Bytes,
    text: Bytes,
    used: Longs,
) -> bool:
    """Read all records of a batch into rows from `first_row` on; False when it is not mine."""
    base_offset, append_time, epoch = big(data, start, 8), big(data, start + 35, 8), int32_at(data, start + 12)
    position, accounted = start + _HEADER, start
    for index in range(count):
        row = first_row + index
        body, value_end, position = _record_value(data, position, end, index)
        frame, body = uvarint(data, body, value_end)
        key, body = uvarint(data, body, value_end)
        version, body = uvarint(data, body, value_end)
        if body < 0 or frame != 1 or key >= types.shape[0] or version > types[key, 0]:
            return False
        longs[PENDING, row] = -1
        if key in (_PARTITION, _PARTITION_CHANGE):
            after = take(body, 4 + UUID_BYTES, value_end)
            if after < 0:
                return False
            ints[PARTITION_ID, row] = int32_at(data, body)
            write_uuid(data, body + 4, topics, UUID_TEXT * used[USED_TOPICS])
            used[USED_TOPICS] += 1
            if key == _PARTITION:
                body = read_partition(data, after, value_end, version, row, ints, shorts, lists, directories, used)
            else:
                body = read_change(data, after, value_end, version, row, ints, shorts, lists, directories, used)
            if body != value_end:
                return False
        else:
            shorts[FLAGS, row] = DATA
            first, at, after = types[key, 1 + 2 * version], used[USED_DATA], -1
            if first >= 0 and (key != _CONFIG or config_is_plain(data, body, value_end, names, blob)):
                last = types[key, 2 + 2 * version]
                after, at = run_program(data, body, value_end, first, last, instructions, blob, text, at, text.size)
            if after == value_end and at >= 0:
                used[USED_DATA] = at
            else:
                longs[PENDING, row] = body
                longs[PENDING_END, row] = value_end
        longs[POSITION, row] = start
        longs[LENGTH, row] = position - accounted
        longs[OFFSET, row] = base_offset + index
        longs[APPEND_TIME, row] = append_time
        ints[EPOCH, row] = epoch
        shorts[TYPE, row] = key
        shorts[VERSION, row] = version
        ints[TOPIC_ENDS, row + 1] = UUID_TEXT * used[USED_TOPICS]
        ints[DIRECTORY_ENDS, row + 1] = used[USED_DIRECTORIES]
        ints[DATA_ENDS, row + 1] = used[USED_DATA]
        for column in range(LIST_COLUMNS):
            ints[LIST_ENDS + column, row + 1] = used[USED_LISTS + column]
        accounted = position
    return bool(position == end)


@compiled
def _is_ordinary(data: Bytes, start: int, size: int, count: int, next_offset: int, epoch: int) -> bool:
    """Check the header and the CRC. `next_offset` and `epoch` are -1 when unknown."""
    base_offset = big(data, start, 8)
    if big(data, start + 21, 2) & _UNORDINARY_ATTRIBUTES or base_offset < 0 or base_offset > MOST_OFFSET:
        return False
    if count <= 0 or count > (size - _HEADER) // _SMALLEST_RECORD or int32_at(data, start + 23) != count - 1:
        return False
    named = int32_at(data, start + 12)
    if (next_offset >= 0 and base_offset != next_offset) or named < 0 or (epoch >= 0 and named != epoch):
        return False
    return bool(crc32c(data, start + 21, start + size) == big(data, start + 17, 4))


@compiled
def size_of_batch(data: Bytes, start: int) -> int:
    """Size of the batch at `start`; -1 when no whole batch can be there."""
    if data.size - start < _HEADER or data[start + 16] != 2:
        return -1
    size = int32_at(data, start + 8) + 12
    return size if _HEADER <= size <= data.size - start else -1


@compiled
def _fits(
    size: int, count: int, row: int, longs: Longs, lists: Ints, directories: Bytes, text: Bytes, used: Longs
) -> bool:
    """Whether a batch surely fits into the remaining room; a text that does not fit is left to the other decoder."""
    if row + count > longs.shape[1] or (used[USED_DIRECTORIES] + size // UUID_BYTES) * UUID_TEXT > directories.size:
        return False
    most = 0
    for column in range(LIST_COLUMNS):
        most = max(most, used[USED_LISTS + column])
    return bool(most + size // 4 <= lists.shape[1] and used[USED_DATA] + 4 * size <= text.size)


@compiled
def decode_batches(
    data: Bytes,
    position: int,
    next_offset: int,
    epoch: int,
    row: int,
    instructions: Ints,
    types: Ints,
    names: Ints,
    blob: Bytes,
    longs: Longs,
    ints: Ints,
    shorts: Shorts,
    lists: Ints,
    topics: Bytes,
    directories: Bytes,
    text: Bytes,
    used: Longs,
) -> tuple[int, int, int, int, int]:
    """Decode batches from `position` on, into rows from `row` on, until the end, a full buffer or one that is not mine.

    The arrays are those of a `Program` and a `Columns`. Returns the reason (DONE, FULL, NOT_MINE), the position and
    row reached, the next offset and the epoch.
    """
    while position < data.size:
        size = size_of_batch(data, position)
        if size < 0:
            return NOT_MINE, position, row, next_offset, epoch
        count = int32_at(data, position + 57)
        if not _is_ordinary(data, position, size, count, next_offset, epoch):
            return NOT_MINE, position, row, next_offset, epoch
        if not _fits(size, count, row, longs, lists, directories, text, used):
            return FULL, position, row, next_offset, epoch
        for index in range(USED_SAVED):
            used[USED_SAVED + index] = used[index]
        if not _read_batch(
            data, position, position + size, count, row, instructions, types, names, blob,
            longs, ints, shorts, lists, topics, directories, text, used,
        ):  # fmt: skip
            for index in range(USED_SAVED):
                used[index] = used[USED_SAVED + index]
            return NOT_MINE, position, row, next_offset, epoch
        next_offset = big(data, position, 8) + count
        epoch = int32_at(data, position + 12)
        position += size
        row += count
    return DONE, position, row, next_offset, epoch


@compiled
def scan_batches(data: Bytes, position: int, headers: Longs) -> tuple[int, int, int]:
    """Read headers of batches whose CRC is right, from `position` on, into the columns of `headers`.

    Rows of `headers`: position, size, base offset, next offset, epoch, max timestamp, control. Returns the reason to
    stop (DONE, FULL, NOT_MINE), the position and the number of batches.
    """
    row = 0
    while position < data.size:
        size = size_of_batch(data, position)
        if size < 0 or crc32c(data, position + 21, position + size) != big(data, position + 17, 4):
            return NOT_MINE, position, row
        if row == headers.shape[1]:
            return FULL, position, row
        headers[0, row] = position
        headers[1, row] = size
        headers[2, row] = big(data, position, 8)
        headers[3, row] = headers[2, row]
        if -MOST_OFFSET <= headers[2, row] <= MOST_OFFSET:
            headers[3, row] += int32_at(data, position + 23) + 1
        headers[4, row] = int32_at(data, position + 12)
        headers[5, row] = big(data, position + 35, 8)
        headers[6, row] = (big(data, position + 21, 2) & 0x20) >> 5
        position += size
        row += 1
    return DONE, position, row
