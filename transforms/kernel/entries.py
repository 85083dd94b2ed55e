"""What a batch holds, entered where the fold looks for it, compiled: lists of records, and topics that are made."""

# mypy: disable-error-code="no-any-return,return-value,arg-type"
# In compiled code numpy's integers are the integers.

from __future__ import annotations

from transforms.kernel.layout import (
    ALIVE,
    LAST_EPOCH,
    LAST_OFFSET,
    LAST_TIME,
    MADE,
    MADE_LAST,
    MINE,
    NAME,
    NAMESAKE,
    NULL,
    REPLICAS,
    TIMES,
    Bools,
    Ints,
    Longs,
)
from transforms.kernel.lists import compiled


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
