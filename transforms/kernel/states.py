"""States of partitions as columns, and two of them side by side: the compiled part."""

# mypy: disable-error-code="no-any-return,return-value"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.kernel.layout import (
    DIRECTORIES,
    ELR,
    KEY,
    LAST_ELR,
    LENGTHS,
    LISTS,
    NUMBERS,
    SLOTS,
    START,
    Ints,
    Longs,
    Slots,
)
from transforms.kernel.lists import compiled
from transforms.kernel.slots import find, key_of

# What `compare` finds of a slot.
EQUAL, DIFFERENT, ALONE = range(3)


@compiled
def list_ends(slots: Slots, picked: Longs, k: int, ends: Ints) -> None:
    """Where list `k` of each of the slots ends, one after the other."""
    ends[0] = 0
    for at in range(picked.size):
        ends[at + 1] = ends[at] + max(slots.ints[picked[at], LENGTHS + k], 0)


@compiled
def list_values(slots: Slots, picked: Longs, k: int, ends: Ints, values: Ints) -> None:
    """List `k` of each of the slots, one after the other."""
    for at in range(picked.size):
        start = _start(slots, picked[at], k)
        for index in range(ends[at + 1] - ends[at]):
            values[ends[at] + index] = slots.pool[start + index]


@compiled
def put_lists(slots: Slots, k: int, ends: Ints, values: Ints) -> None:
    """Put list `k` of each slot behind those before it; their lengths are there."""
    for slot in range(slots.used[SLOTS]):
        start = _start(slots, slot, k)
        for index in range(ends[slot + 1] - ends[slot]):
            slots.pool[start + index] = values[ends[slot] + index]


@compiled
def _start(slots: Slots, slot: int, k: int) -> int:
    start = slots.longs[slot, START]
    for before in range(k):
        start += max(slots.ints[slot, LENGTHS + before], 0)
    return start


@compiled
def compare(
    mine: Slots,
    theirs: Slots,
    picked: Longs,
    topic_of: Longs,
    directory_of: Longs,
    elr: bool,
    partners: Longs,
    found: Ints,
) -> None:
    """What each picked slot of `theirs` is to the slot of the same partition in `mine`, and which that is (-1: none).

    `topic_of` and `directory_of` say by which number `mine` knows theirs (-1: not at all); without directories
    `directory_of` is empty, and they are not compared; nor are the ELR lists without `elr`.
    """
    for at in range(picked.size):
        key = theirs.longs[picked[at], KEY]
        topic, partition = topic_of[key >> 32], key & 0xFFFFFFFF
        partners[at] = -1
        if topic >= 0:
            partners[at] = mine.table[find(mine, key_of(topic, partition)), 1] - 1
        if partners[at] < 0:
            found[at] = ALONE
        else:
            equal = _is_equal(mine, partners[at], theirs, picked[at], directory_of, elr)
            found[at] = EQUAL if equal else DIFFERENT


@compiled
def _is_equal(mine: Slots, slot: int, theirs: Slots, other: int, directory_of: Longs, elr: bool) -> bool:
    for k in range(NUMBERS):
        if mine.ints[slot, k] != theirs.ints[other, k]:
            return False
    for k in range(LISTS if directory_of.size > 0 else DIRECTORIES):
        if not elr and k in (ELR, LAST_ELR):
            continue
        size = max(mine.ints[slot, LENGTHS + k], 0)
        if size != max(theirs.ints[other, LENGTHS + k], 0):
            return False
        first, start = _start(mine, slot, k), _start(theirs, other, k)
        for index in range(size):
            value = theirs.pool[start + index]
            if mine.pool[first + index] != (directory_of[value] if k == DIRECTORIES else value):
                return False
    return True
