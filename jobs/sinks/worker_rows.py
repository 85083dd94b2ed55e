"""Rows that Spark's workers make, added to a table in a local folder by the workers themselves.

Each task writes one Parquet file, and the driver names them all in one commit. As rows of Java's they would cost five times as much,
and a small audit's tables the time that Delta takes to begin (`tests/benchmarks/README.md`, "What a run costs"). The table is the same, and
Spark and delta-rs can write to it as well. A file that no commit names is not part of the table: those of a query that failed are
removed at once, those of a process that was killed by VACUUM.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from deltalake import Transaction
from deltalake.transaction import AddAction
from pyspark.sql.types import LongType, StringType, StructField, StructType

from jobs.runtime.workers import WorkerRows
from jobs.sinks.folder_table import FolderTable, arrow_schema
from jobs.sinks.parquet import DataFile, data_file, remove_files
from jobs.sinks.storage import WarehouseError

_FILES = StructType(
    [
        StructField("name", StringType()),
        StructField("size", LongType()),
        StructField("statistics", StringType()),
        StructField("rows", LongType()),
    ]
)


def add(there: FolderTable, rows: WorkerRows, transaction: Transaction | None) -> None:
    """Add the rows in one commit, to a table without partitions. Raises WarehouseError where the workers have another folder."""
    folder = there.folder
    folder.mkdir(parents=True, exist_ok=True)
    prefix = new_prefix()
    try:
        files = _written(there, prefix, rows)
        actions = [_action(folder, file) for file in files]
    except BaseException:
        remove_files(folder, prefix)
        raise
    remove_files(folder, prefix, {file.name for file in files})
    # From here on the files may be the table's, also where an error is reported.
    there.add_files(actions, transaction)


def name_files(there: FolderTable, files: Sequence[DataFile], transaction: Transaction | None) -> None:
    """Make files that workers have written part of the table, in one commit; raises as `add`."""
    there.add_files([_action(there.folder, file) for file in files], transaction)


def new_prefix() -> str:
    """How the names of new files begin, so that they can be told from all others."""
    return f"part-{uuid4().hex}-"


def _written(there: FolderTable, prefix: str, rows: WorkerRows) -> list[DataFile]:
    table = there.table
    write = _writing(str(there.folder), prefix, arrow_schema(table), table.skipping_columns)
    return [DataFile(*row) for row in rows.then(write, _FILES).rows.collect()]


def _writing(
    folder: str, prefix: str, schema: pa.Schema, ranged: Collection[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        file = data_file(Path(folder), prefix, batches, schema, ranged)
        if file is not None:
            yield pa.RecordBatch.from_pylist([file._asdict()])

    return write


def _action(folder: Path, file: DataFile) -> AddAction:
    there = folder / file.name
    if not there.is_file() or there.stat().st_size != file.size:
        raise WarehouseError(
            f"{there}, which a worker of Spark's has written, is not there: let all machines have the warehouse's folder under this "
            "path, or name one on a storage that all of them reach (docs/storage.md)"
        )
    changed = int(there.stat().st_mtime * 1000)
    values: Mapping[str, str | None] = {}
    return AddAction(file.name, file.size, values, changed, True, file.statistics)
