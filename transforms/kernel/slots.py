"""Slots of partitions, compiled: found by topic and number, entered, and looked at before they are needed."""

# mypy: disable-error-code="no-any-return,return-value,arg-type"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.kernel.layout import (
    AHEAD,
    FIRST_SLOT,
    KEY,
    LEADER,
    LENGTHS,
    LISTS,
    LOOKED_AHEAD,
    MADE,
    NEXT,
    NULL,
    SLOTS,
    START,
    Longs,
    Records,
    Slots,
    Step,
)
from transforms.kernel.lists import compiled, inlined

PARTITION_BITS = 32
PARTITION_MASK = (1 << PARTITION_BITS) - 1


@inlined
def key_of(topic: int, partition: int) -> int:
    """What a slot is found by."""
    return (topic << PARTITION_BITS) | (partition & PARTITION_MASK)


@inlined
def _mixed(key: int) -> int:
    mixed = key * -7046029254386353131
    return mixed ^ (mixed >> 32)


@inlined
def find(slots: Slots, key: int) -> int:
    """The row of the table where a key stands, or is to stand."""
    mask = slots.table.shape[0] - 1
    place = _mixed(key) & mask
    while slots.table[place, 1] != 0 and slots.table[place, 0] != key:
        place = (place + 1) & mask
    return place


@inlined
def _enter(slots: Slots, topics: Longs, slot: int) -> None:
    key = slots.longs[slot, KEY]
    place, topic = find(slots, key), key >> PARTITION_BITS
    slots.table[place, 0] = key
    slots.table[place, 1] = slot + 1
    slots.longs[slot, NEXT] = topics[topic, FIRST_SLOT]
    topics[topic, FIRST_SLOT] = slot


@compiled
def enter_all(slots: Slots, topics: Longs) -> None:
    """Enter all slots into an empty table, and chain those of each topic."""
    for slot in range(slots.used[SLOTS]):
        _enter(slots, topics, slot)


@compiled
def fill_table(slots: Slots) -> None:
    """Enter all slots into an empty table."""
    for slot in range(slots.used[SLOTS]):
        place = find(slots, slots.longs[slot, KEY])
        slots.table[place, 0] = slots.longs[slot, KEY]
        slots.table[place, 1] = slot + 1


@inlined
def add(slots: Slots, topics: Longs, key: int) -> int:
    """A new slot, of a partition that is not made yet."""
    slot = slots.used[SLOTS]
    slots.used[SLOTS] = slot + 1
    slots.longs[slot, :] = -1
    slots.ints[slot, :] = 0
    slots.longs[slot, KEY] = key
    slots.longs[slot, START] = 0
    for k in range(LISTS):
        slots.ints[slot, LENGTHS + k] = NULL
    _enter(slots, topics, slot)
    return slot


@compiled
def look_ahead(records: Records, first: int, slots: Slots, topics: Longs, step: Step) -> None:
    """Look at what the next records need, in loops so short that the processor waits for many of them at once.

    Memory is some hundred times slower than all else here, if each record waits for its own.
    """
    count, mask, seen = min(AHEAD, records.rows.size - first), slots.table.shape[0] - 1, 0
    for at in range(count):
        key = key_of(records.topics[first + at], records.partition[records.rows[first + at]])
        step.ahead[at] = slots.table[_mixed(key) & mask, 1] - 1
    for at in range(count):
        seen += topics[max(records.topics[first + at], 0), MADE]
        if step.ahead[at] >= 0:
            seen += slots.longs[step.ahead[at], KEY] + slots.ints[step.ahead[at], LEADER]
    for at in range(count):
        if step.ahead[at] >= 0:
            seen += slots.pool[slots.longs[step.ahead[at], START]]
    # Otherwise the compiler leaves out what nobody needs.
    step.facts[LOOKED_AHEAD] = seen
