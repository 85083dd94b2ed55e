"""Rows of a table in a local folder, as Spark's workers read them from the table's files.

On their way through Java each row would be made three times: of a large cluster's first run that is a fifth
(`tests/benchmarks/README.md`, "Where the time of a large run goes").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from jobs.runtime.workers import WorkerRows, in_workers
from jobs.sinks.conditions import Where, all_of
from jobs.sinks.parquet import shaped
from jobs.sinks.storage import file_of_tables
from schemas.table import Table
from transforms.clusters import CLUSTER

# Rows that a pass takes at a time: as many as Spark would send to a worker (`jobs.runtime.spark`).
_BATCH_ROWS = 16_384
# Columns by which whole groups of a file are left out.
_RANGED = (CLUSTER, "run_id", "kind")


class _Part(NamedTuple):
    """A group of rows of a file; None for all of them, where the file's own list of them cannot be read here."""

    file: str
    group: int | None
    size: int


def stored_rows(spark: SparkSession, table: Table, files: Sequence[str], schema: pa.Schema, where: Where) -> WorkerRows:
    """The rows that meet all conditions, in any order, with the table's columns (`schema` in Arrow).

    A file that is gone or damaged is an error of the query, as Spark has it (`jobs.sinks.storage.unreadable_file`).
    """
    parts = [part for file in files for part in _parts(file, where)]
    read: Callable[[_Part], Iterator[pa.RecordBatch]] = partial(_read, schema, where)
    return in_workers(spark, parts, read, table.struct, sum(part.size for part in parts))


def _parts(file: str, where: Where) -> Iterator[_Part]:
    try:
        metadata = pq.read_metadata(file)
    except (OSError, pa.ArrowException):
        # The worker says what is wrong with it.
        yield _Part(file, None, 0)
        return
    ranged = [place for place in range(metadata.num_columns) if metadata.schema.column(place).path in _RANGED]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if all(_may_have(group.column(place), where) for place in ranged):
            yield _Part(file, number, group.total_byte_size)


def _may_have(chunk: Any, where: Where) -> bool:
    """Whether some of a group's values may be wanted, by the smallest and the largest of them."""
    wanted, known = where.get(chunk.path_in_schema), chunk.statistics
    values = [wanted] if isinstance(wanted, str) else wanted
    if known is None or not known.has_min_max or not isinstance(values, list | tuple | set):
        return True
    return any(known.min <= value <= known.max for value in values)


def _read(schema: pa.Schema, where: Where, part: _Part) -> Iterator[pa.RecordBatch]:
    with file_of_tables(part.file), pq.ParquetFile(part.file) as file:
        groups = None if part.group is None else [part.group]
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, use_threads=False):
            rows = shaped(batch, schema)
            found = rows.filter(all_of(where).of(rows)) if where else rows
            if found.num_rows:
                yield found
