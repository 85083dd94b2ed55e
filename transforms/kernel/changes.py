"""Appends a step to the columns of changes, compiled; `transforms.kernel.history` turns these into Arrow."""

# mypy: disable-error-code="no-any-return,return-value,arg-type"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

import numpy as np

from transforms.kernel.layout import (
    AFTER,
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
    DEPARTED,
    ELR,
    IS_MADE,
    IS_WHOLE,
    ISR,
    JOINED,
    KEY,
    LEADER,
    LISTS,
    LISTS_AFTER,
    LISTS_BEFORE,
    LOST_AT,
    MOST,
    NAMES_LEADER,
    NUMBERS,
    OF_NAME,
    OF_TOPIC,
    REPLICAS,
    ROWS,
    Changes,
    Slots,
    Step,
)
from transforms.kernel.lists import append, has, inlined, is_one
from transforms.kernel.rules import kinds_of
from transforms.kernel.slots import PARTITION_MASK


@inlined
def tell(slot: int, slots: Slots, step: Step, changes: Changes) -> None:
    """Add the step to the changes."""
    row, longs, ints = np.uint32(changes.used[ROWS]), changes.longs, changes.ints
    longs[C_OFFSET, row] = step.facts[AT_OFFSET]
    longs[C_TIME, row] = step.facts[AT_TIME]
    longs[C_BEFORE_TIME, row] = slots.longs[slot, APPEND_TIME]
    longs[C_LEADERLESS, row] = slots.longs[slot, LOST_AT]
    ints[C_TOPIC, row] = step.facts[OF_TOPIC]
    ints[C_NAME, row] = step.facts[OF_NAME]
    ints[C_PARTITION, row] = slots.longs[slot, KEY] & PARTITION_MASK
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
