"""A worker's rows as one Parquet file of a Delta table, and what Delta's log has to say of it.

Imported by Spark's workers, which need no more than Arrow for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

# A reader holds a group whole: it ends at this many rows or bytes.
_GROUP_ROWS, _GROUP_BYTES = 128 * 1024, 32 * 1024 * 1024
# A longer text has no range: cut short it would be none of the largest.
_LONGEST_BOUND = 64


class DataFile(NamedTuple):
    """A file that was written: its name in the table's folder, its bytes, and Delta's statistics of it as JSON."""

    name: str
    size: int
    statistics: str


def data_file(
    folder: Path, prefix: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, ranged: Collection[str]
) -> DataFile | None:
    """Write rows to a new file whose name begins with `prefix`; None, and no file, without rows.

    A column of `schema` that the rows lack is null. `ranged` are the columns whose smallest and largest values Delta keeps. A file
    that could not be written to its end is removed. Raises OSError, pyarrow.ArrowInvalid for rows of other types.
    """
    groups = _groups(_shaped(batch, schema) for batch in batches)
    first = next(groups, None)
    if first is None:
        return None
    path = folder / f"{prefix}{uuid4().hex}.parquet"
    plain = [each.name for each in schema if not pa.types.is_binary(each.type)]
    try:
        with pq.ParquetWriter(
            path, schema, compression="zstd", use_dictionary=plain, write_statistics=plain, store_schema=False
        ) as writer:
            writer.write_table(first)
            for group in groups:
                writer.write_table(group)
        return DataFile(path.name, path.stat().st_size, _statistics(pq.read_metadata(path), ranged))
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def _shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    there = {*batch.schema.names}
    columns = [
        batch.column(each.name).cast(each.type) if each.name in there else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows in pieces that are not larger than a group, but for a single batch that is."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        if held and (rows + batch.num_rows > _GROUP_ROWS or size + batch.nbytes > _GROUP_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _statistics(metadata: pq.FileMetaData, ranged: Collection[str]) -> str:
    """Number of rows, and of each ranged column of texts or integers its smallest and largest value and how many are null."""
    said: dict[str, Any] = {"numRecords": metadata.num_rows, "minValues": {}, "maxValues": {}, "nullCount": {}}
    for place in range(metadata.num_columns):
        name = metadata.schema.column(place).path
        if name in ranged:
            _add_range(
                said, name, [metadata.row_group(group).column(place) for group in range(metadata.num_row_groups)]
            )
    return json.dumps(said)


def _add_range(said: dict[str, Any], name: str, chunks: list[Any]) -> None:
    found = [chunk.statistics for chunk in chunks]
    if any(each is None or not each.has_null_count for each in found):
        return
    said["nullCount"][name] = sum(each.null_count for each in found)
    bounds = [(each.min, each.max) for each in found if each.has_min_max]
    # A group without a range has nulls alone, or values that are too long to be kept.
    whole = len(bounds) == sum(each.num_values > 0 for each in found)
    if bounds and whole and all(_kept(value) for pair in bounds for value in pair):
        said["minValues"][name] = min(low for low, _ in bounds)
        said["maxValues"][name] = max(high for _, high in bounds)


def _kept(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= _LONGEST_BOUND)
