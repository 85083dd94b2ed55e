"""The layout of the kernel's arrays.

A partition is a *slot*: a row of `Slots.longs` and one of `Slots.ints`, a cache line each, and its lists one after the other
in `Slots.pool`. A list whose length is -1 is null: the record that created the partition did not have it. Slots of a topic
are chained, for records that act on all of them. `table` finds a slot by its key: open addressing, rows of (key, slot + 1).

A *record* is a row of a batch, read in Arrow's own memory. A *step* is one change in progress: the state before it and after it.
All its lists are in the pool: unchanged ones at one place for both states, those of the record after all slots, in free space.
*Changes* are steps as columns, on the way to Arrow.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# Of what is never negative the compiler need not look whether it counts from the end of an array.
Places = npt.NDArray[np.uint32]

# Lists of a partition, and their columns; directories are numbers of texts.
REPLICAS, ADDING, REMOVING, ISR, ELR, LAST_ELR, DIRECTORIES = range(7)
LISTS = 7
BROKER_LISTS = 6
LIST_NAMES = ("replicas", "adding_replicas", "removing_replicas", "isr", "eligible_leader_replicas", "last_known_elr")
NULL = -1

# Columns of Slots.longs. KEY is topic << 32 | partition; CREATED is -1 while no PartitionRecord made it; LOST_AT, when it lost
# its leader (ms), counts while it has none; NEXT is the next slot of the topic; UNMADE the first change before it was made.
KEY, START, OFFSET, APPEND_TIME, CREATED, LOST_AT, NEXT, UNMADE = range(8)
SLOT_LONGS = 8
# Columns of Slots.ints, and of each half of Step.numbers. LENGTHS are of the
# lists, TOTAL is their sum, CAPACITY what there is room for in the pool.
LEADER, RECOVERY, LEADER_EPOCH, PARTITION_EPOCH = range(4)
NUMBERS = 4
NUMBER_NAMES = ("leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
EPOCH, CAPACITY, TOTAL, LENGTHS = 4, 5, 6, 7
SLOT_INTS = 16
# Entries of Slots.used. NEED: how many ids the record had that found no room.
SLOTS, POOL, NEED = range(3)

# Columns of a topic, the first of which each record on its partitions needs. MADE is its first TopicRecord, MADE_LAST its last,
# REMOVED its last removal (-1: none), TIMES the number of TopicRecords, MINE whether it is this shard's, NAME the number of its
# name, NAMESAKE the topic of that name before it; SEEN_FIRST and SEEN_LAST are offsets of records on its partitions; LAST_OFFSET,
# LAST_EPOCH and LAST_TIME are of its last event.
(
    MADE,
    MINE,
    NAME,
    SEEN_FIRST,
    SEEN_LAST,
    FIRST_SLOT,
    ALIVE,
    MADE_LAST,
    REMOVED,
    TIMES,
    NAMESAKE,
    LAST_OFFSET,
    LAST_EPOCH,
    LAST_TIME,
) = range(14)
TOPIC_LONGS = 16

# What a record does.
CHANGE, WHOLE, CLEAR = range(3)
EVERY_TOPIC = -1

# Entries of Step.facts.
IS_MADE, IS_WHOLE, NAMES_LEADER, RECOVERS, CLEARS, AT_OFFSET, AT_EPOCH, AT_TIME, OF_TOPIC, OF_NAME = range(10)
# Not looked at.
LOOKED_AHEAD = 10
FACTS = 11
# So many records are looked at together.
AHEAD = 256
# Halves of a step; lists of the second stand after those of the first.
BEFORE, AFTER = 0, 1

# Rows of Changes.longs and .ints, and its lists. After LISTS_AFTER come the lists after the change, then those before it.
C_OFFSET, C_TIME, C_BEFORE_TIME, C_LEADERLESS = range(4)
CHANGE_LONGS = 4
C_TOPIC, C_NAME, C_PARTITION, C_EPOCH, C_KINDS, C_MADE, C_NUMBERS = range(7)
CHANGE_INTS = C_NUMBERS + 2 * NUMBERS
BROKERS, DEPARTED, JOINED, LISTS_AFTER = range(4)
LISTS_BEFORE = LISTS_AFTER + BROKER_LISTS
CHANGE_LISTS = LISTS_BEFORE + BROKER_LISTS
# Entries of Changes.used: rows, and at least as many ids as any of the lists' columns has.
ROWS, MOST = range(2)


_Number = TypeVar("_Number", bound=np.generic)
_CACHE_LINE = 64


def room(shape: tuple[int, ...], dtype: type[_Number]) -> npt.NDArray[_Number]:
    """An array whose first row begins with a line of the processor's cache; pages that nobody fills cost nothing."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.empty(size + _CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % _CACHE_LINE
    return memory[start : start + size].view(dtype).reshape(shape)


def grown(array: npt.NDArray[_Number], least: int) -> npt.NDArray[_Number]:
    """A longer copy of an array, with room for at least so many rows."""
    longer = room((max(least, 2 * len(array)), *array.shape[1:]), array.dtype.type)
    longer[: len(array)] = array
    return longer


def read_only(array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """The same array for reading, as those of Arrow are: for another kind of array all would be compiled once more."""
    same = array.view()
    same.flags.writeable = False
    return same


class Slots(NamedTuple):
    """The state of all partitions."""

    longs: Longs
    ints: Ints
    pool: Ints
    table: Longs
    used: Longs


class Records(NamedTuple):
    """Records of a batch. `topics` has numbers of topics by place, all else is by row; `starts` and `sizes` are of the lists.

    `said` is how many ids a record holds, and NULL when it has no list at all.
    """

    does: Ints
    partition: Ints
    offset: Longs
    epoch: Ints
    append_time: Longs
    numbers: Ints
    starts: Longs
    sizes: Ints
    said: Ints
    values: Ints
    rows: Longs
    topics: Longs


class Step(NamedTuple):
    """One change: where in the pool each of its lists begins and how long it is, numbers before and after, what else is known.

    `ahead` are slots of the next records, which are looked at together.
    """

    pool: Ints
    starts: Places
    sizes: Ints
    numbers: Longs
    facts: Longs
    ahead: Longs


class Changes(NamedTuple):
    """Steps as columns."""

    longs: Longs
    ints: Ints
    ends: Places
    values: Ints
    used: Longs


class Window(NamedTuple):
    """Changes at offsets from `first` to `end` (exclusive) are returned; those of topics without a name only with `nameless`."""

    first: int
    end: int
    nameless: bool
