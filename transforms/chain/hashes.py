"""Rows as numbers: 64 bits of what a row holds, the same in every process, machine and release.

Two rows that differ have the same number once in 2^64 comparisons. A changed row is missed then, until it changes again.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from transforms.compiled import compiler

Numbers = npt.NDArray[np.uint64]
_Places = npt.NDArray[np.int64]
_Bytes = npt.NDArray[np.uint8]

_SOURCES = ["chain/hashes.py"]
_compiled = compiler(_SOURCES)
_inlined = compiler(_SOURCES, inlined=True)

# FNV-1a's, and those of SplitMix64's last step.
_START, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_FIRST, _SECOND, _GOLDEN = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB), np.uint64(0x9E3779B97F4A7C15)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_NULL = np.uint64(0x6E756C6C)


def row_hashes(rows: pl.DataFrame, columns: Iterable[str]) -> Numbers:
    """A number for what each row holds in these columns, in their order. Raises TypeError for a column of a type that no table has."""
    found = np.full(rows.height, _START, np.uint64)
    for name in columns:
        _add(found, _cells(rows[name].to_arrow(compat_level=pl.CompatLevel.oldest())))
    return found


def warm_up() -> None:
    """Compile the functions and store the machine code in numba's cache on disk, so that no run has to."""
    row_hashes(pl.DataFrame({"text": ["a"], "list": [[1]]}), ("text", "list"))


@_inlined
def _mixed(value: np.uint64) -> np.uint64:
    value = (value ^ (value >> _30)) * _FIRST
    value = (value ^ (value >> _27)) * _SECOND
    return value ^ (value >> _31)


@_compiled
def _add(found: Numbers, cells: Numbers) -> None:
    for row in range(found.size):
        found[row] = _mixed((found[row] + _GOLDEN) ^ cells[row])


@_compiled
def _add_bytes(ends: _Places, data: _Bytes, found: Numbers) -> None:
    for row in range(found.size):
        value = _START
        for at in range(ends[row], ends[row + 1]):
            value = (value ^ np.uint64(data[at])) * _PRIME
        found[row] = _mixed(value)


@_compiled
def _add_elements(ends: _Places, elements: Numbers, found: Numbers) -> None:
    for row in range(found.size):
        value = _START
        for at in range(ends[row], ends[row + 1]):
            value = _mixed((value + _GOLDEN) ^ elements[at])
        found[row] = value


def _cells(values: pa.Array) -> Numbers:
    """A number for each value of a column; null is another one than anything else, an empty list and text too."""
    found = np.full(len(values), _NULL)
    if values.null_count == len(values):
        return found
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        ends, data = _text(values)
        _add_bytes(ends, data, found)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _add_elements(values.offsets.to_numpy().astype(np.int64), _cells(values.values), found)
    elif pa.types.is_struct(kind):
        found[:] = 0
        for part in values.flatten():
            _add(found, _cells(part))
    else:
        found = _of_numbers(values)
    if values.null_count:
        found[values.is_null().to_numpy(zero_copy_only=False)] = _NULL
    return found


def _text(values: pa.Array) -> tuple[_Places, _Bytes]:
    """Where each text ends, after where the first one begins, and the bytes of all."""
    _, places, data = values.cast(pa.large_string()).buffers()
    ends = np.frombuffer(places, np.int64)[values.offset : values.offset + len(values) + 1]
    return ends.copy(), np.frombuffer(data or b"\0", np.uint8)


def _of_numbers(values: pa.Array) -> Numbers:
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind)):
        raise TypeError(f"a column of type {kind} has no hash")
    wide = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    numbers: npt.NDArray[np.generic] = values.cast(wide).fill_null(0).to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(numbers).view(np.uint64).copy()
