"""The compiled fold: record after record to state and changes (S§3.2, `PartitionRegistration.merge`).

Nothing can be allocated in here. Where a record finds no room, `fold` stops at it and returns its place; the caller
makes room and calls again. A repeated record does no harm: one that clears many partitions leaves those that are
already cleared as they are.
"""

# ruff: noqa: SIM110 - what is compiled is loops

# mypy: disable-error-code="no-any-return,return-value,arg-type"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.isr.partition import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, RECOVERING
from transforms.kernel.changes import tell
from transforms.kernel.layout import (
    AFTER,
    AHEAD,
    ALIVE,
    APPEND_TIME,
    AT_EPOCH,
    AT_OFFSET,
    AT_TIME,
    BEFORE,
    CAPACITY,
    CHANGE,
    CLEAR,
    CLEARS,
    CREATED,
    DIRECTORIES,
    ELR,
    EPOCH,
    FIRST_SLOT,
    IS_MADE,
    IS_WHOLE,
    KEY,
    LAST_ELR,
    LEADER,
    LEADER_EPOCH,
    LENGTHS,
    LISTS,
    LOST_AT,
    MADE,
    MINE,
    MOST,
    NAME,
    NAMES_LEADER,
    NEED,
    NEXT,
    NULL,
    NUMBERS,
    OF_NAME,
    OF_TOPIC,
    OFFSET,
    PARTITION_EPOCH,
    POOL,
    RECOVERS,
    RECOVERY,
    REPLICAS,
    ROWS,
    SEEN_FIRST,
    SEEN_LAST,
    SLOTS,
    START,
    TOTAL,
    UNMADE,
    WHOLE,
    Changes,
    Longs,
    Records,
    Slots,
    Step,
    Window,
)
from transforms.kernel.lists import append, compiled, copy, inlined
from transforms.kernel.slots import PARTITION_BITS, add, find, key_of, look_ahead

_SLACK = 12
_MIGRATING = 0


@compiled
def fold(
    records: Records, first: int, slots: Slots, topics: Longs, step: Step, changes: Changes, window: Window
) -> int:
    """Apply the records at the places from `first` on; returns the place of the first that found no room, or the number of places."""
    for place in range(first, records.rows.size):
        if (place - first) % AHEAD == 0:
            look_ahead(records, place, slots, topics, step)
        row, topic = records.rows[place], records.topics[place]
        if records.does[row] == CLEAR:
            done = _clear(records, row, topic, slots, topics, step, changes, window)
        else:
            done = _read(records, row, topic, slots, topics, step, changes, window)
        if not done:
            return place
    return records.rows.size


@compiled
def _read(
    records: Records,
    row: int,
    topic: int,
    slots: Slots,
    topics: Longs,
    step: Step,
    changes: Changes,
    window: Window,
) -> bool:
    """Apply a record of a partition; False where there is no room for it."""
    offset = records.offset[row]
    named = topics[topic, MADE] >= 0 and topics[topic, MADE] <= offset
    if named and not topics[topic, MINE]:
        return True
    key = key_of(topic, records.partition[row])
    slot = slots.table[find(slots, key), 1] - 1
    need = max(records.said[row], 0) + (slots.ints[slot, TOTAL] if slot >= 0 else 0)
    if not _has_room(slots, changes, need):
        return False
    _see(topics, topic, offset)
    if slot < 0:
        slot = add(slots, topics, key)
    if records.does[row] == CHANGE and slots.longs[slot, CREATED] < 0:
        if slots.longs[slot, UNMADE] < 0:
            slots.longs[slot, UNMADE] = offset
        return True
    tells = window.first <= offset < window.end and (named or window.nameless)
    step.facts[OF_NAME] = topics[topic, NAME] if named else -1
    _apply(records, row, slot, slots, step, changes, tells)
    return True


@inlined
def _see(topics: Longs, topic: int, offset: int) -> None:
    if topics[topic, SEEN_FIRST] < 0:
        topics[topic, SEEN_FIRST] = offset
    topics[topic, SEEN_LAST] = offset


@inlined
def _has_room(slots: Slots, changes: Changes, need: int) -> bool:
    """Whether a step of so many ids finds room everywhere.

    The pool takes what the record says, the lists of the state after it, and the slot where it grows.
    """
    slots.used[NEED] = need
    most = 4 * need + _SLACK
    return (
        changes.used[ROWS] < changes.longs.shape[1]
        and changes.used[MOST] + most <= changes.values.shape[1]
        and slots.used[POOL] + most <= slots.pool.size
        and slots.used[SLOTS] < slots.longs.shape[0]
        and 2 * slots.used[SLOTS] < slots.table.shape[0]
    )


@compiled
def _clear(
    records: Records,
    row: int,
    topic: int,
    slots: Slots,
    topics: Longs,
    step: Step,
    changes: Changes,
    window: Window,
) -> bool:
    """Apply a CLEAR_ELR to the partitions of a topic, or of all that are there (`replayClearTopicElrs`)."""
    if topic >= 0:
        return _clear_topic(records, row, topic, slots, topics, step, changes, window)
    for each in range(topics.shape[0]):
        mine = topics[each, ALIVE] == 1 and topics[each, MINE] == 1
        if mine and not _clear_topic(records, row, each, slots, topics, step, changes, window):
            return False
    return True


@compiled
def _clear_topic(
    records: Records,
    row: int,
    topic: int,
    slots: Slots,
    topics: Longs,
    step: Step,
    changes: Changes,
    window: Window,
) -> bool:
    offset, slot = records.offset[row], topics[topic, FIRST_SLOT]
    step.facts[OF_NAME] = topics[topic, NAME]
    while slot >= 0:
        if slots.ints[slot, LENGTHS + ELR] > 0 or slots.ints[slot, LENGTHS + LAST_ELR] > 0:
            if not _has_room(slots, changes, slots.ints[slot, TOTAL]):
                return False
            _apply(records, row, slot, slots, step, changes, window.first <= offset < window.end)
        slot = slots.longs[slot, NEXT]
    return True


@compiled
def _apply(records: Records, row: int, slot: int, slots: Slots, step: Step, changes: Changes, tells: bool) -> None:
    _take_facts(records, row, slot, slots, step)
    _take_lists(records, row, slot, slots, step)
    _take_numbers(records, row, slot, slots, step)
    if tells:
        tell(slot, slots, step, changes)
    _store(slot, slots, step)


@inlined
def _take_facts(records: Records, row: int, slot: int, slots: Slots, step: Step) -> None:
    does, facts = records.does[row], step.facts
    facts[IS_MADE] = slots.longs[slot, CREATED] < 0
    facts[IS_WHOLE] = does == WHOLE
    facts[NAMES_LEADER] = does == CHANGE and records.numbers[row, LEADER] != NO_LEADER_CHANGE
    facts[RECOVERS] = does == CHANGE and records.numbers[row, RECOVERY] == RECOVERING
    facts[CLEARS] = does == CLEAR or (does == CHANGE and _only_clears(records, row))
    facts[AT_OFFSET] = records.offset[row]
    facts[AT_EPOCH] = records.epoch[row]
    facts[AT_TIME] = records.append_time[row]
    facts[OF_TOPIC] = slots.longs[slot, KEY] >> PARTITION_BITS


@inlined
def _only_clears(records: Records, row: int) -> bool:
    """Whether a change empties both ELR lists and does nothing else, as a CLEAR_ELR does."""
    for k in range(LISTS):
        if records.sizes[row, k] != (0 if k in (ELR, LAST_ELR) else NULL):
            return False
    return records.numbers[row, LEADER] == NO_LEADER_CHANGE and records.numbers[row, RECOVERY] == NO_RECOVERY_CHANGE


@inlined
def _take_lists(records: Records, row: int, slot: int, slots: Slots, step: Step) -> None:
    """Lists of both halves: null in a change keeps what was, null in a PartitionRecord says nothing."""
    at = slots.longs[slot, START]
    for k in range(LISTS):
        size = slots.ints[slot, LENGTHS + k]
        step.starts[k] = at
        step.sizes[k] = size
        step.starts[LISTS + k] = at
        step.sizes[LISTS + k] = size
        at += max(size, 0)
    # One further, so that no list that a record says is where an empty one of the last slot is.
    does, at = records.does[row], slots.used[POOL] + 1
    if does == CLEAR:
        for k in (ELR, LAST_ELR):
            step.starts[LISTS + k] = at
            step.sizes[LISTS + k] = 0
    elif does == WHOLE or records.said[row] >= 0:
        for k in range(LISTS):
            size = records.sizes[row, k]
            if size >= 0 or does == WHOLE:
                step.starts[LISTS + k] = at
                step.sizes[LISTS + k] = size
                at = append(records.values, records.starts[row, k], size, step.pool, at)
        _migrate(step, at)


@inlined
def _migrate(step: Step, at: int) -> None:
    """As long as no directory is known, each replica's is MIGRATING, however many there are (`defaultToMigrating`)."""
    first, known = step.starts[LISTS + DIRECTORIES], max(step.sizes[LISTS + DIRECTORIES], 0)
    size = max(step.sizes[LISTS + REPLICAS], 0)
    for k in range(known):
        if step.pool[first + k] != _MIGRATING:
            return
    if step.sizes[LISTS + DIRECTORIES] == size:
        return
    for k in range(size):
        step.pool[at + k] = _MIGRATING
    step.starts[LISTS + DIRECTORIES] = at
    step.sizes[LISTS + DIRECTORIES] = size


@inlined
def _take_numbers(records: Records, row: int, slot: int, slots: Slots, step: Step) -> None:
    before, after = step.numbers[BEFORE], step.numbers[AFTER]
    for k in range(NUMBERS):
        before[k] = slots.ints[slot, k]
        after[k] = slots.ints[slot, k]
    if step.facts[IS_MADE]:
        before[LEADER] = NO_LEADER
    if step.facts[IS_WHOLE]:
        for k in range(NUMBERS):
            after[k] = records.numbers[row, k]
        return
    after[PARTITION_EPOCH] += 1
    if step.facts[NAMES_LEADER]:
        after[LEADER] = records.numbers[row, LEADER]
        after[LEADER_EPOCH] += 1
    if records.does[row] == CHANGE and records.numbers[row, RECOVERY] != NO_RECOVERY_CHANGE:
        after[RECOVERY] = records.numbers[row, RECOVERY]


@inlined
def _store(slot: int, slots: Slots, step: Step) -> None:
    """Make the state after the step the slot's; times first, which ask what was."""
    longs, ints = slots.longs[slot], slots.ints[slot]
    led = step.facts[IS_MADE] or step.numbers[BEFORE, LEADER] != NO_LEADER
    if step.numbers[AFTER, LEADER] == NO_LEADER and led:
        longs[LOST_AT] = step.facts[AT_TIME]
    if step.facts[IS_WHOLE]:
        longs[CREATED] = step.facts[AT_OFFSET]
    longs[OFFSET] = step.facts[AT_OFFSET]
    longs[APPEND_TIME] = step.facts[AT_TIME]
    ints[EPOCH] = step.facts[AT_EPOCH]
    for k in range(NUMBERS):
        ints[k] = step.numbers[AFTER, k]
    if _says_lists(slots, step):
        _store_lists(slot, slots, step)


@inlined
def _says_lists(slots: Slots, step: Step) -> bool:
    """Whether a list of the step is one that its record says, behind all slots."""
    for k in range(LISTS, 2 * LISTS):
        if step.starts[k] > slots.used[POOL]:
            return True
    return False


@inlined
def _store_lists(slot: int, slots: Slots, step: Step) -> None:
    """Put the lists after the step together behind all else, then where the slot has room."""
    ints, total = slots.ints[slot], 0
    for k in range(LISTS, 2 * LISTS):
        total += max(step.sizes[k], 0)
    first = slots.used[POOL] + 1 + total
    at = first
    for k in range(LISTS):
        ints[LENGTHS + k] = step.sizes[LISTS + k]
        at = append(step.pool, step.starts[LISTS + k], step.sizes[LISTS + k], step.pool, at)
    ints[TOTAL] = total
    if total > ints[CAPACITY]:
        # Room to grow: one that grows again and again leaves less behind than it has.
        ints[CAPACITY] = total if ints[CAPACITY] == 0 else 2 * total
        slots.longs[slot, START] = slots.used[POOL]
        slots.used[POOL] += ints[CAPACITY]
    copy(step.pool, first, total, step.pool, slots.longs[slot, START])
