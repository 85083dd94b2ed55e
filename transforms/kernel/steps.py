"""The compiled fold: record after record to state and changes (S§3.2, `PartitionRegistration.merge`).

Nothing can be allocated in here. Where a record finds no room, `fold` stops at it and says how much it needs; the caller makes
room and calls again. What was begun is done or not begun: a record that clears many partitions finds those that are cleared
already as they are.
"""


# ruff: noqa: SIM110 - what is compiled is loops

# mypy: disable-error-code="no-any-return,return-value,arg-type"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

import numpy as np

from transforms.isr.partition import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, RECOVERING
from transforms.kernel.layout import (
    AFTER,
    AHEAD,
    ALIVE,
    APPEND_TIME,
    AT_EPOCH,
    AT_OFFSET,
    AT_TIME,
    BEFORE,
    BROKER_LISTS,
    BROKERS,
    C_BEFORE_TIME,
    C_EPOCH,
    C_KINDS,
    C_LEADERLESS,
    C_MADE,
    C_NAME,
    C_NUMBERS,
    C_OFFSET,
    C_PARTITION,
    C_TIME,
    C_TOPIC,
    CAPACITY,
    CHANGE,
    CLEAR,
    CLEARS,
    CREATED,
    DEPARTED,
    DIRECTORIES,
    ELR,
    EPOCH,
    FIRST_SLOT,
    IS_MADE,
    IS_WHOLE,
    ISR,
    JOINED,
    KEY,
    LAST_ELR,
    LAST_EPOCH,
    LAST_OFFSET,
    LAST_TIME,
    LEADER,
    LEADER_EPOCH,
    LENGTHS,
    LISTS,
    LISTS_AFTER,
    LISTS_BEFORE,
    LOOKED_AHEAD,
    LOST_AT,
    MADE,
    MADE_LAST,
    MINE,
    MOST,
    NAME,
    NAMES_LEADER,
    NAMESAKE,
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
    TIMES,
    TOTAL,
    UNMADE,
    WHOLE,
    Bools,
    Changes,
    Ints,
    Longs,
    Records,
    Slots,
    Step,
    Window,
)
from transforms.kernel.lists import append, compiled, copy, has, inlined, is_one
from transforms.kernel.rules import kinds_of

_PARTITION_BITS = 32
_PARTITION_MASK = (1 << _PARTITION_BITS) - 1
_SLACK = 12
_MIGRATING = 0


@compiled
def fold(
    records: Records, first: int, slots: Slots, topics: Longs, step: Step, changes: Changes, window: Window
) -> int:
    """Apply the records at the places from `first` on; returns the place of the first that found no room, or the number of places."""
    for place in range(first, records.rows.size):
        if (place - first) % AHEAD == 0:
            _look_ahead(records, place, slots, topics, step)
        row, topic = records.rows[place], records.topics[place]
        if records.does[row] == CLEAR:
            done = _clear(records, row, topic, slots, topics, step, changes, window)
        else:
            done = _read(records, row, topic, slots, topics, step, changes, window)
        if not done:
            return place
    return records.rows.size


@compiled
def _look_ahead(records: Records, first: int, slots: Slots, topics: Longs, step: Step) -> None:
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


@inlined
def _mixed(key: int) -> int:
    mixed = key * -7046029254386353131
    return mixed ^ (mixed >> 32)


@compiled
def place_lists(offsets: Ints, there: Bools, k: int, start: int, starts: Longs, sizes: Ints, said: Ints) -> None:
    """Enter list `k` of each record that has it: its values stand from `start` on, after those of other lists.

    A PartitionRecord of before directories means one for each replica: there must be room for them.
    """
    for row in range(there.size):
        if there[row]:
            size = offsets[row + 1] - offsets[row]
            starts[row, k] = start + offsets[row]
            sizes[row, k] = size
            said[row] = max(said[row], 0) + size * (2 if k == REPLICAS else 1)


@compiled
def make_topics(topics: Longs, newest: Longs, numbers: Longs, names: Longs, places: Longs) -> None:
    """TopicRecords: numbers of ids and names (NULL where it is another shard's), and offset, epoch and time of each.

    An id keeps the name that it has.
    """
    for at in range(numbers.size):
        topic = topics[numbers[at]]
        if topic[MADE] < 0:
            topic[MADE] = places[at, 0]
            topic[MINE] = names[at] != NULL
            if names[at] != NULL:
                topic[NAME] = names[at]
                topic[NAMESAKE] = newest[names[at]]
                newest[names[at]] = numbers[at]
        topic[MADE_LAST] = places[at, 0]
        topic[TIMES] = max(topic[TIMES], 0) + 1
        topic[ALIVE] = 1
        topic[LAST_OFFSET] = places[at, 0]
        topic[LAST_EPOCH] = places[at, 1]
        topic[LAST_TIME] = places[at, 2]


@inlined
def key_of(topic: int, partition: int) -> int:
    """What a slot is found by."""
    return (topic << _PARTITION_BITS) | (partition & _PARTITION_MASK)


@inlined
def find(slots: Slots, key: int) -> int:
    """The row of the table where a key stands, or is to stand."""
    mask = slots.table.shape[0] - 1
    place = _mixed(key) & mask
    while slots.table[place, 1] != 0 and slots.table[place, 0] != key:
        place = (place + 1) & mask
    return place


@compiled
def enter_all(slots: Slots, topics: Longs) -> None:
    """Enter all slots into an empty table, and chain those of each topic."""
    for slot in range(slots.used[SLOTS]):
        _enter(slots, topics, slot)


@inlined
def _enter(slots: Slots, topics: Longs, slot: int) -> None:
    key = slots.longs[slot, KEY]
    place, topic = find(slots, key), key >> _PARTITION_BITS
    slots.table[place, 0] = key
    slots.table[place, 1] = slot + 1
    slots.longs[slot, NEXT] = topics[topic, FIRST_SLOT]
    topics[topic, FIRST_SLOT] = slot


@compiled
def fill_table(slots: Slots) -> None:
    """Enter all slots into an empty table."""
    for slot in range(slots.used[SLOTS]):
        place = find(slots, slots.longs[slot, KEY])
        slots.table[place, 0] = slots.longs[slot, KEY]
        slots.table[place, 1] = slot + 1


@compiled
def _read(
    records: Records, row: int, topic: int, slots: Slots, topics: Longs, step: Step, changes: Changes, window: Window
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
        slot = _add(slots, topics, key)
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

    The pool takes what the record says, the lists after it as they are put together, and the slot where it grows.
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


@inlined
def _add(slots: Slots, topics: Longs, key: int) -> int:
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
def _clear(
    records: Records, row: int, topic: int, slots: Slots, topics: Longs, step: Step, changes: Changes, window: Window
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
    records: Records, row: int, topic: int, slots: Slots, topics: Longs, step: Step, changes: Changes, window: Window
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
        _tell(slot, slots, step, changes)
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
    facts[OF_TOPIC] = slots.longs[slot, KEY] >> _PARTITION_BITS


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
        if does == WHOLE and step.sizes[LISTS + DIRECTORIES] < 0:
            _migrate(step)


@inlined
def _migrate(step: Step) -> None:
    """A PartitionRecord without directories means MIGRATING for each replica."""
    first, size = step.starts[LISTS + DIRECTORIES], max(step.sizes[LISTS + REPLICAS], 0)
    for at in range(size):
        step.pool[first + at] = _MIGRATING
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


@inlined
def _tell(slot: int, slots: Slots, step: Step, changes: Changes) -> None:
    """Add the step to the changes."""
    row, longs, ints = np.uint32(changes.used[ROWS]), changes.longs, changes.ints
    longs[C_OFFSET, row] = step.facts[AT_OFFSET]
    longs[C_TIME, row] = step.facts[AT_TIME]
    longs[C_BEFORE_TIME, row] = slots.longs[slot, APPEND_TIME]
    longs[C_LEADERLESS, row] = slots.longs[slot, LOST_AT]
    ints[C_TOPIC, row] = step.facts[OF_TOPIC]
    ints[C_NAME, row] = step.facts[OF_NAME]
    ints[C_PARTITION, row] = slots.longs[slot, KEY] & _PARTITION_MASK
    ints[C_EPOCH, row] = step.facts[AT_EPOCH]
    ints[C_KINDS, row] = kinds_of(step)
    ints[C_MADE, row] = step.facts[IS_MADE]
    for k in range(NUMBERS):
        ints[C_NUMBERS + k, row] = step.numbers[AFTER, k]
        ints[C_NUMBERS + NUMBERS + k, row] = step.numbers[BEFORE, k]
    _tell_brokers(step, changes, row)
    _end(changes, DEPARTED, row, _only_in(step, ISR, LISTS + ISR, changes, DEPARTED, changes.ends[DEPARTED, row]))
    _end(changes, JOINED, row, _only_in(step, LISTS + ISR, ISR, changes, JOINED, changes.ends[JOINED, row]))
    most = changes.ends[BROKERS, row + 1] - changes.ends[BROKERS, row]
    for k in range(BROKER_LISTS):
        most = max(most, _tell_list(step, LISTS + k, changes, LISTS_AFTER + k, row))
        most = max(most, _tell_list(step, k, changes, LISTS_BEFORE + k, row))
    changes.used[ROWS] = row + 1
    changes.used[MOST] += most


@inlined
def _end(changes: Changes, column: int, row: int, end: int) -> None:
    changes.ends[column, row + 1] = end


@inlined
def _tell_list(step: Step, k: int, changes: Changes, column: int, row: int) -> int:
    """Append a list, and return how long it is."""
    at, size = changes.ends[column, row], max(step.sizes[k], 0)
    append(step.pool, step.starts[k], size, changes.values[column], at)
    changes.ends[column, row + 1] = at + size
    return size


@inlined
def _only_in(step: Step, k: int, other: int, changes: Changes, column: int, end: int) -> int:
    """Append the ids of a list that another lacks, in their order."""
    if is_one(step, k, other):
        return end
    first = step.starts[k]
    for at in range(first, first + step.sizes[k]):
        if not has(step, other, step.pool[at]):
            changes.values[column, end] = step.pool[at]
            end += 1
    return end


@inlined
def _tell_brokers(step: Step, changes: Changes, row: int) -> None:
    """Brokers that joined or left one of the lists, and both leaders of a record that names one; each once, ascending."""
    first = changes.ends[BROKERS, row]
    end = first
    for k in (ISR, ELR, REPLICAS):
        end = _concern(step, k, LISTS + k, changes, first, end)
        end = _concern(step, LISTS + k, k, changes, first, end)
    if step.facts[NAMES_LEADER] or step.facts[IS_WHOLE]:
        for half in (BEFORE, AFTER):
            if step.numbers[half, LEADER] >= 0:
                end = _insert(changes, first, end, step.numbers[half, LEADER])
    changes.ends[BROKERS, row + 1] = end


@inlined
def _concern(step: Step, k: int, other: int, changes: Changes, first: int, end: int) -> int:
    if is_one(step, k, other):
        return end
    start = step.starts[k]
    for at in range(start, start + step.sizes[k]):
        if not has(step, other, step.pool[at]):
            end = _insert(changes, first, end, step.pool[at])
    return end


@inlined
def _insert(changes: Changes, first: int, end: int, broker: int) -> int:
    """Put a broker into the sorted ids of a row; returns their new end."""
    at = first
    while at < end and changes.values[BROKERS, at] < broker:
        at += 1
    if at < end and changes.values[BROKERS, at] == broker:
        return end
    for index in range(end, at, -1):
        changes.values[BROKERS, index] = changes.values[BROKERS, index - 1]
    changes.values[BROKERS, at] = broker
    return end + 1
