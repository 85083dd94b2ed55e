"""Columns of broker lists as matrices, so that a million of them are compared as fast as one: NumPy in, Arrow in and out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.int32]

# Stands where a row's list has ended; no broker has this id.
END = int(np.iinfo(np.int32).min)
# What stands for a null list on the way to a worker: Spark 4.2 looks through all the nulls before a row for each row that
# it puts into a batch, to learn how large the batch is.
NOTHING = [END]


@dataclass(frozen=True)
class IdLists:
    """One list of broker ids a row, each filled up with END to the width of the matrix; a null list is an empty one."""

    matrix: Matrix

    @staticmethod
    def of(column: pa.ListArray) -> IdLists:
        """The lists of an Arrow column; one that holds END alone (`NOTHING`) is empty."""
        offsets = column.offsets.to_numpy().astype(np.int64)
        lengths = np.where(column.is_valid().to_numpy(zero_copy_only=False), np.diff(offsets), 0)
        width = int(lengths.max(initial=0))
        matrix = np.full((len(column), width), END, np.int32)
        places = np.arange(width)
        inside = places < lengths[:, None]
        values = column.values.to_numpy()
        matrix[inside] = values[(offsets[:-1, None] + places)[inside]]
        return IdLists(matrix)

    @property
    def filled(self) -> Flags:
        """Where there is an id."""
        filled: Flags = self.matrix != END
        return filled

    @property
    def sizes(self) -> Numbers:
        """How many ids each list has."""
        sizes: Numbers = self.filled.sum(axis=1)
        return sizes

    def take(self, rows: Numbers) -> IdLists:
        """The lists of some rows, in that order."""
        return IdLists(self.matrix[rows])

    def only(self, rows: Flags) -> IdLists:
        """The lists of the rows that are flagged, and empty ones elsewhere."""
        return IdLists(np.where(rows[:, None], self.matrix, END))

    def has(self, ids: Numbers) -> Flags:
        """Whether each row's list holds the id of that row."""
        found: Flags = (self.matrix == ids[:, None]).any(axis=1)
        return found

    def same(self, other: IdLists) -> Flags:
        """Whether each row's two lists hold the same ids in the same order."""
        narrow, wide = sorted((self.matrix, other.matrix), key=lambda matrix: matrix.shape[1])
        width = narrow.shape[1]
        same: Flags = (narrow == wide[:, :width]).all(axis=1) & (wide[:, width:] == END).all(axis=1)
        return same

    def minus(self, other: IdLists) -> IdLists:
        """The ids that the other list of the row lacks, in their order; what is between them is left empty."""
        there = np.zeros(self.matrix.shape, np.bool_)
        for column in other.matrix.T:
            there |= self.matrix == column[:, None]
        return IdLists(np.where(there, END, self.matrix))

    def to_arrow(self, null: Flags | None = None) -> pa.ListArray:
        """As an Arrow column of lists of int; null where it is flagged."""
        return list_array(self.filled, pa.array(self.matrix[self.filled]), null)


def list_array(there: Flags, values: pa.Array, null: Flags | None = None) -> pa.ListArray:
    """Lists of the `values` of a matrix, row by row, of which there are some in each row; null where it is flagged."""
    offsets = np.zeros(len(there) + 1, np.int32)
    np.cumsum(there.sum(axis=1), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=None if null is None else pa.array(null))


def together(lists: Sequence[IdLists]) -> IdLists:
    """Every id of several lists of a row once, ascending."""
    matrix = np.sort(np.hstack([each.matrix for each in lists]), axis=1)
    again = np.zeros(matrix.shape, np.bool_)
    again[:, 1:] = matrix[:, 1:] == matrix[:, :-1]
    return IdLists(np.where(again, END, matrix))


def is_list(column: pa.ListArray) -> Flags:
    """Whether each row has a list: neither null nor NOTHING."""
    values, starts = column.values.to_numpy(), column.offsets.to_numpy()
    lengths = np.diff(starts)
    alone = np.flatnonzero(lengths == 1)
    found: Flags = column.is_valid().to_numpy(zero_copy_only=False).copy()
    found[alone] &= values[starts[alone]] != END
    return found
