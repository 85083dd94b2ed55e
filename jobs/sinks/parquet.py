"""A worker's rows as one Parquet file of a Delta table, and what Delta's log has to say of it.

Imported by Spark's workers, which need no more than Arrow for it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

# A reader holds a group whole: it ends at this many rows or bytes.
_GROUP_ROWS, _GROUP_BYTES = 128 * 1024, 32 * 1024 * 1024
# A longer text has no range: cut short it would be none of the largest.
_LONGEST_BOUND = 64


class DataFile(NamedTuple):
    """A file that was written: its name in the table's folder, its bytes, Delta's statistics of it as JSON, and how many rows it has."""

    name: str
    size: int
    statistics: str
    rows: int


class DataFileWriter:
    """A new file, which begins with its first rows; `drop` removes it, and so does the end of a block that an error ends.

    Its name begins with `prefix`. A column of `schema` that the rows lack is null. `ranged` are the columns whose smallest and largest
    values Delta keeps. Raises OSError, pyarrow.ArrowInvalid for rows of other types.
    """

    def __init__(self, folder: Path, prefix: str, schema: pa.Schema, ranged: Collection[str]) -> None:
        self._path = folder / f"{prefix}{uuid4().hex}.parquet"
        self._schema, self._ranged = schema, ranged
        self._writer: pq.ParquetWriter | None = None
        self._held: list[pa.RecordBatch] = []
        self._rows = self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Add rows: in groups that are not larger than one may be, but for a single batch that is."""
        if not rows.num_rows:
            return
        if self._rows + rows.num_rows > _GROUP_ROWS or self._bytes + rows.nbytes > _GROUP_BYTES:
            self._write()
        self._held.append(shaped(rows, self._schema))
        self._rows, self._bytes = self._rows + rows.num_rows, self._bytes + rows.nbytes

    def close(self) -> DataFile | None:
        """End the file; None, and no file, without rows."""
        self._write()
        if self._writer is None:
            return None
        self._writer.close()
        path = self._path
        metadata = pq.read_metadata(path)
        return DataFile(path.name, path.stat().st_size, _statistics(metadata, self._ranged), metadata.num_rows)

    def drop(self) -> None:
        """Remove what was written so far."""
        with suppress(OSError, pa.ArrowException):
            if self._writer is not None:
                self._writer.close()
        with suppress(OSError):
            self._path.unlink()

    def __enter__(self) -> DataFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.drop()

    def _write(self) -> None:
        if not self._held:
            return
        if self._writer is None:
            plain = [each.name for each in self._schema if not pa.types.is_binary(each.type)]
            self._writer = pq.ParquetWriter(
                self._path,
                self._schema,
                compression="zstd",
                use_dictionary=plain,
                write_statistics=plain,
                store_schema=False,
            )
        self._writer.write_table(pa.Table.from_batches(self._held))
        self._held, self._rows, self._bytes = [], 0, 0


@dataclass(frozen=True)
class NewFiles:
    """Where files of tables go that no commit names yet: the warehouse's folder, how their names begin, and each table's columns.

    Tables go by their full name. Without any no file is written. A piece of rows of at least `begun_by` bytes, uncompressed, begins one.
    """

    folder: str = ""
    prefix: str = ""
    schemas: Mapping[str, pa.Schema] = field(default_factory=dict)
    ranged: Mapping[str, Collection[str]] = field(default_factory=dict)
    begun_by: int = 0

    def begin(self, table: str) -> DataFileWriter:
        """A new file of a table."""
        place = self._place(table)
        place.mkdir(parents=True, exist_ok=True)
        return DataFileWriter(place, self.prefix, self.schemas[table], self.ranged[table])

    def drop(self) -> None:
        """Remove the files; no commit may name any of them."""
        for table in self.schemas:
            remove_files(self._place(table), self.prefix)

    def _place(self, table: str) -> Path:
        return Path(self.folder, *table.split("."))


def remove_files(folder: Path, prefix: str, kept: Collection[str] = ()) -> None:
    """Remove the files of attempts that do not count: those whose names begin so, but for what is kept."""
    for path in folder.glob(f"{prefix}*"):
        if path.name not in kept:
            with suppress(OSError):
                path.unlink()


def data_file(
    folder: Path, prefix: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, ranged: Collection[str]
) -> DataFile | None:
    """Write rows to a new file (`DataFileWriter`); None, and no file, without rows."""
    with DataFileWriter(folder, prefix, schema, ranged) as file:
        for batch in batches:
            file.add(batch)
        return file.close()


def shaped(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with these columns, types and order; a column that they lack is null."""
    there = {*batch.schema.names}
    columns = [
        batch.column(each.name).cast(each.type) if each.name in there else pa.nulls(batch.num_rows, each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
