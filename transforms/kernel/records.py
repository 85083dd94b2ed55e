"""A batch of decoded records as arrays: what the compiled fold reads of it, where Arrow has it."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from schemas.kraft.records import CLEAR_ELR, PARTITION, PARTITION_TYPES
from transforms.isr.partition import NO_LEADER, NO_LEADER_CHANGE, NO_RECOVERY_CHANGE, RECOVERED
from transforms.kernel.entries import place_lists
from transforms.kernel.layout import (
    CHANGE,
    CLEAR,
    LIST_NAMES,
    NULL,
    NUMBER_NAMES,
    WHOLE,
    Ints,
    Longs,
    Records,
    read_only,
)
from transforms.kernel.lists import COPIED
from transforms.kernel.texts import Texts

_PARTITION_TYPES = pa.array([kind.name for kind in PARTITION_TYPES])
# What null means in a column of NUMBER_NAMES: in a PartitionRecord, and in a change of one.
_UNSAID = {"leader": (NO_LEADER, NO_LEADER_CHANGE), "leader_recovery_state": (RECOVERED, NO_RECOVERY_CHANGE)}


class _Lists(NamedTuple):
    """Where each list of each record starts, how long it is, how many ids a record holds, and all of them."""

    starts: Longs
    sizes: Ints
    said: Ints
    values: Ints


class Batch:
    """Records of a log in their order. `offsets` stand in place of those of the batch, where they are given."""

    def __init__(self, rows: pa.RecordBatch, offsets: Longs | None = None) -> None:
        self.rows = rows
        self.offsets: Longs = read_only(_longs(rows["offset"], -1) if offsets is None else offsets)

    @cached_property
    def good(self) -> npt.NDArray[np.bool_]:
        """Records that can be applied: whole ones, and no control records."""
        fine = pc.and_(pc.is_null(self.rows["problem"]), pc.invert(pc.fill_null(self.rows["control"], False)))
        found: npt.NDArray[np.bool_] = fine.to_numpy(zero_copy_only=False).astype(np.bool_)
        return found

    @cached_property
    def of_partitions(self) -> npt.NDArray[np.bool_]:
        """Records of the two types that make and change partitions."""
        found: npt.NDArray[np.bool_] = pc.is_in(self.rows["type"], value_set=_PARTITION_TYPES).to_numpy(
            zero_copy_only=False
        )
        return found

    @cached_property
    def does(self) -> Ints:
        """What each record does to partitions; of others than those that do anything it says CHANGE."""
        does = np.full(len(self.offsets), CHANGE, np.int32)
        for name, number in ((PARTITION.name, WHOLE), (CLEAR_ELR.name, CLEAR)):
            does[pc.fill_null(pc.equal(self.rows["type"], name), False).to_numpy(zero_copy_only=False)] = number
        return does

    def records(self, rows: Longs, topics: Longs, directories: Texts) -> Records:
        """The records in some rows, whose topics have these numbers."""
        return Records(self.does, *self._fixed, *self._lists(directories), rows, topics)

    @cached_property
    def _fixed(self) -> tuple[Ints, Longs, Ints, Longs, Ints]:
        whole = self.does == WHOLE
        numbers = np.empty((len(whole), len(NUMBER_NAMES)), np.int32)
        for at, name in enumerate(NUMBER_NAMES):
            column, (in_whole, in_change) = self.rows[name], _UNSAID.get(name, (0, 0))
            numbers[:, at] = _ints(column, in_change)
            if column.null_count:
                numbers[whole, at] = _ints(column, in_whole)[whole]
        return (
            read_only(_ints(self.rows["partition_id"], 0)),
            self.offsets,
            read_only(_ints(self.rows["epoch"], 0)),
            read_only(_longs(self.rows["append_time"], 0)),
            numbers,
        )

    def _lists(self, directories: Texts) -> _Lists:
        if self._read_lists is None:
            columns = [*[self.rows[name] for name in LIST_NAMES], self.rows["directories"]]
            ids = [column.values.to_numpy() for column in columns[:-1]]
            ids.append(directories.numbers(columns[-1].values).astype(np.int32))
            ends = np.cumsum([0, *map(len, ids)])
            count = len(self.offsets)
            lists = _Lists(
                np.zeros((count, len(ids)), np.int64),
                np.full((count, len(ids)), NULL, np.int32),
                np.full(count, NULL, np.int32),
                np.concatenate([*ids, np.zeros(COPIED, np.int32)]),
            )
            for k, column in enumerate(columns):
                if column.null_count < len(column):
                    there = column.is_valid().to_numpy(zero_copy_only=False)
                    place_lists(
                        column.offsets.to_numpy(), there, k, int(ends[k]), lists.starts, lists.sizes, lists.said
                    )
            self._read_lists = lists
        return self._read_lists

    _read_lists: _Lists | None = None


def _longs(column: pa.Array, null: int) -> Longs:
    """A column of numbers, with something in place of null."""
    filled: Longs = pc.fill_null(column, null).to_numpy().astype(np.int64, copy=False)
    return filled


def _ints(column: pa.Array, null: int) -> Ints:
    filled: Ints = pc.fill_null(column, null).to_numpy().astype(np.int32, copy=False)
    return filled
