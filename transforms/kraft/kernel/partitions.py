"""The compiled decoder's typed columns: bodies of Partition and PartitionChange straight into Arrow's buffers.

A returned position of -1 means that the record is not as a controller writes it; then the declaration-driven decoder takes its
batch.
"""

# ruff: noqa: PLR0913, PLR0917 - compiled code takes arrays, not objects

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from typing import NamedTuple

from transforms.kraft.kernel.wire import (
    UUID_BYTES,
    UUID_TEXT,
    Bytes,
    Ints,
    Longs,
    Shorts,
    compiled,
    int32_at,
    signed,
    take,
    uvarint,
    write_uuid,
)

# Rows of Columns.longs, .ints (values, then ends of variable-length values) and .shorts.
# A body that the kernel left is `data[PENDING:PENDING_END]`; PENDING is -1 for one that it did not.
POSITION, LENGTH, OFFSET, APPEND_TIME, PENDING, PENDING_END = range(6)
LONG_ROWS = 6
EPOCH, PARTITION_ID, LEADER, LEADER_EPOCH, PARTITION_EPOCH = range(5)
TOPIC_ENDS, DIRECTORY_ENDS, DATA_ENDS, LIST_ENDS = 5, 6, 7, 8
TYPE, VERSION, FLAGS, RECOVERY = range(4)
# Lists, in the order of Columns.lists.
LIST_COLUMNS = 6
REPLICAS, ISR, REMOVING, ADDING, ELR, LAST_ELR = range(LIST_COLUMNS)
INT_ROWS = LIST_ENDS + LIST_COLUMNS
# Bits of FLAGS: which columns of a row are not null; a list's bit is LISTS << its column.
IS_PARTITION_RECORD, IS_WHOLE, LISTS, DIRECTORIES, DATA = 1, 2, 4, 256, 512
# Entries of Columns.used: how much of each buffer is filled, lists from USED_LISTS on; then the same before a batch.
USED_TOPICS, USED_DIRECTORIES, USED_DATA, USED_LISTS = range(4)
USED_SAVED = USED_LISTS + LIST_COLUMNS

_NO_RECOVERY_CHANGE = -1
_NO_LEADER_CHANGE = -2


class Columns(NamedTuple):
    """Buffers of the bronze columns; the constants above name their rows."""

    longs: Longs
    ints: Ints
    shorts: Shorts
    lists: Ints
    topics: Bytes
    directories: Bytes
    text: Bytes
    used: Longs


@compiled
def _read_list(data: Bytes, position: int, end: int, column: int, lists: Ints, used: Longs) -> int:
    """Append a non-null int32 array to a list column; -1 for null, too."""
    stored, position = uvarint(data, position, end)
    count = stored - 1
    if position < 0 or count < 0 or count > (end - position) // 4:
        return -1
    at = used[USED_LISTS + column]
    for index in range(count):
        lists[column, at + index] = int32_at(data, position + 4 * index)
    used[USED_LISTS + column] = at + count
    return position + 4 * count


@compiled
def _read_directories(data: Bytes, position: int, end: int, directories: Bytes, used: Longs) -> int:
    stored, position = uvarint(data, position, end)
    count = stored - 1
    if position < 0 or count < 0 or count > (end - position) // UUID_BYTES:
        return -1
    at = used[USED_DIRECTORIES]
    for index in range(count):
        write_uuid(data, position + UUID_BYTES * index, directories, UUID_TEXT * (at + index))
    used[USED_DIRECTORIES] = at + count
    return position + UUID_BYTES * count


@compiled
def _read_recovery(data: Bytes, position: int, end: int, row: int, lowest: int, shorts: Shorts) -> int:
    if take(position, 1, end) < 0:
        return -1
    value = signed(data, position, 1)
    if value < lowest or value > 1:
        return -1
    shorts[RECOVERY, row] = value
    return position + 1


@compiled
def read_partition(
    data: Bytes,
    position: int,
    end: int,
    version: int,
    row: int,
    ints: Ints,
    shorts: Shorts,
    lists: Ints,
    directories: Bytes,
    used: Longs,
) -> int:
    """Read a Partition body after partitionId and topicId."""
    for column in range(REPLICAS, ADDING + 1):
        position = _read_list(data, position, end, column, lists, used)
    after = take(position, 12, end)
    if after < 0:
        return -1
    ints[LEADER, row] = int32_at(data, position)
    ints[LEADER_EPOCH, row] = int32_at(data, position + 4)
    ints[PARTITION_EPOCH, row] = int32_at(data, position + 8)
    position = after
    shorts[RECOVERY, row] = 0
    shorts[FLAGS, row] = IS_PARTITION_RECORD | IS_WHOLE | (15 * LISTS)
    if version >= 1:
        position = _read_directories(data, position, end, directories, used)
        shorts[FLAGS, row] |= DIRECTORIES
    tags, position = uvarint(data, position, end)
    for _ in range(tags):
        tag, position = uvarint(data, position, end)
        size, position = uvarint(data, position, end)
        after = take(position, size, end)
        if after < 0:
            return -1
        if tag == 0:
            position = _read_recovery(data, position, after, row, 0, shorts)
        elif version >= 2 and 1 <= tag <= 2:
            position = _read_tagged_list(data, position, after, ELR + tag - 1, row, shorts, lists, used)
        else:
            return -1
        if position != after:
            return -1
    return position


@compiled
def _read_tagged_list(
    data: Bytes, position: int, end: int, column: int, row: int, shorts: Shorts, lists: Ints, used: Longs
) -> int:
    """Read a list behind a tag; a tag that comes twice is not mine."""
    if column < 0 or shorts[FLAGS, row] & (LISTS << column):
        return -1
    shorts[FLAGS, row] |= LISTS << column
    return _read_list(data, position, end, column, lists, used)


@compiled
def read_change(
    data: Bytes,
    position: int,
    end: int,
    version: int,
    row: int,
    ints: Ints,
    shorts: Shorts,
    lists: Ints,
    directories: Bytes,
    used: Longs,
) -> int:
    """Read a PartitionChange body after partitionId and topicId."""
    shorts[FLAGS, row] = IS_PARTITION_RECORD
    shorts[RECOVERY, row] = _NO_RECOVERY_CHANGE
    ints[LEADER, row] = _NO_LEADER_CHANGE
    tags, position = uvarint(data, position, end)
    for _ in range(tags):
        tag, position = uvarint(data, position, end)
        size, position = uvarint(data, position, end)
        after = take(position, size, end)
        if after < 0:
            return -1
        if tag == 1 and size == 4:
            ints[LEADER, row] = int32_at(data, position)
            position = after
        elif tag == 5:
            position = _read_recovery(data, position, after, row, _NO_RECOVERY_CHANGE, shorts)
        elif tag == 8 and version >= 1 and not shorts[FLAGS, row] & DIRECTORIES:
            shorts[FLAGS, row] |= DIRECTORIES
            position = _read_directories(data, position, after, directories, used)
        else:
            column = _column_of_change_tag(tag, version)
            position = _read_tagged_list(data, position, after, column, row, shorts, lists, used)
        if position != after:
            return -1
    return position


@compiled
def _column_of_change_tag(tag: int, version: int) -> int:
    if tag == 0:
        return ISR
    if 2 <= tag <= 4:
        return REPLICAS if tag == 2 else (REMOVING if tag == 3 else ADDING)
    if version >= 2 and 6 <= tag <= 7:
        return ELR if tag == 6 else LAST_ELR
    return -1
