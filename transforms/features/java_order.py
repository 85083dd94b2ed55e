"""The order in which Kafka goes through nodes and features: it decides which one a message names.

Controllers keep registrations in a `TimelineHashMap`, and a request's features and `controller.quorum.voters` in a
`java.util.HashMap`: both are ordered by hash, not by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_FIBONACCI, _MASK = -7046029254386353131, (1 << 64) - 1
_LOAD_FACTOR = 0.75


def registered_order(ids: Iterable[int]) -> list[int]:
    """Ids as a `TimelineHashMap` gives them (`BaseHashTable.findSlot`): by the hash's highest bits.

    The table's size is that of a table into which each was put again after its registration, as it is. Elements of one slot
    come in the reverse order of registration, which is assumed to be the order of ids.
    """
    listed = sorted(ids)
    bits = 1
    while (len(listed) + 1) * _LOAD_FACTOR > 1 << bits:
        bits += 1
    return sorted(listed, key=lambda number: (((number * _FIBONACCI) & _MASK) >> (64 - bits), -number))


def hash_map_order(ids: Sequence[int]) -> list[int]:
    """Ids as a `HashMap<Integer, …>` made for as many gives them."""
    return sorted(ids, key=lambda number: _bucket(number, _slots(len(ids), _power_of_two(len(ids)))))


def feature_order(names: Sequence[str]) -> list[str]:
    """Names as a `HashMap<String, …>` of the default size gives them; those of one bucket as they were put in."""
    slots = _slots(len(names), 16)
    return sorted(names, key=lambda name: _bucket(string_hash(name), slots))


def string_hash(text: str) -> int:
    """`String.hashCode`, as 32 bits without a sign."""
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value


def _bucket(value: int, slots: int) -> int:
    value &= 0xFFFFFFFF
    return (value ^ (value >> 16)) & (slots - 1)


def _power_of_two(least: int) -> int:
    return 1 << max(0, least - 1).bit_length()


def _slots(size: int, first: int) -> int:
    slots = first
    while size > slots * _LOAD_FACTOR:
        slots *= 2
    return slots
