"""Rows that the driver has in memory, added to a table in a local folder without Spark.

Spark takes three SQL executions to make a table and tenths of a second for a commit, however few the rows are; delta-rs takes
a hundredth. The table is the same: columns, comments, properties and protocol are those that Spark gives it, and both continue the
other's tables. `jobs.sinks.delta` handles the lock and errors of the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import TableNotFoundError
from pyspark.sql.pandas.types import to_arrow_schema

from schemas.table import Table

# As Spark does. delta-rs would wait for a hundred commits, which whoever opens the table reads one by one.
_CHECKPOINT_EVERY = 10
# As in Spark, a commit is a rename to a new name. Under the lock that is safe, and some mounts have no hard links.
_STORAGE = {"allow_unsafe_rename": "true"}
_PROTOCOL = (1, 2)
# Each file has the smallest and the largest value of every column at its end: in full, a report is there three times, twice uncompressed.
_LONGEST_BOUND = 64
# delta-rs takes a path for an address, and some characters for more than themselves.
_ADDRESSABLE = re.compile(r"[\w/. @+=,~-]+")


def arrow_rows(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table has them; a column that a row lacks is null. Raises pyarrow.ArrowInvalid for a value of another type."""
    return pa.Table.from_pylist(list(rows), arrow_schema(table))


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns in Arrow's types, with their comments."""
    types: pa.Schema = to_arrow_schema(table.struct, timezone="UTC")
    return pa.schema([types.field(each.name).with_metadata(each.metadata) for each in table.columns])


def added(
    folder: Path, table: Table, rows: pa.Table, properties: Mapping[str, str], transaction: Transaction | None
) -> bool:
    """Add rows in one commit, which creates the table in the `folder` if it is missing. Returns False, without a change, if Spark
    has to write.

    Spark has to if the table is not as this release creates it (another release did, or it was altered), and if delta-rs cannot
    express the folder's name. With a `transaction` a second call with the same or a lower version adds nothing. Raises OSError
    and deltalake.exceptions.DeltaError with what the disk says, pyarrow.ArrowInvalid for rows of another shape.
    """
    if _ADDRESSABLE.fullmatch(str(folder)) is None:
        return False
    there = _opened(folder)
    if there is not None and not _as_made(there, table):
        return False
    if there is not None and transaction is not None:
        newest = there.transaction_version(transaction.app_id)
        if newest is not None and newest >= transaction.version:
            return True
    write_deltalake(
        there or folder,
        rows.select(table.column_names).cast(arrow_schema(table) if there is None else _described(table, there)),
        partition_by=table.partition_columns or None,
        mode="append",
        description=table.comment,
        configuration=properties,
        storage_options=_STORAGE,
        writer_properties=WriterProperties(compression="ZSTD", statistics_truncate_length=_LONGEST_BOUND),
        commit_properties=CommitProperties(app_transactions=None if transaction is None else [transaction]),
        post_commithook_properties=PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False),
    )
    if there is not None and there.version() % _CHECKPOINT_EVERY == 0:
        there.create_checkpoint()
        there.cleanup_metadata()
    return True


def _opened(folder: Path) -> DeltaTable | None:
    """The table as it is; None if it has no commit."""
    try:
        return DeltaTable(folder, storage_options=_STORAGE)
    except TableNotFoundError:
        return None


def _described(table: Table, there: DeltaTable) -> pa.Schema:
    """The table's columns in Arrow's types with the comments that they have there: delta-rs refuses others."""
    comments = {field.name: field.metadata for field in there.schema().fields}
    return pa.schema([field.with_metadata(comments[field.name]) for field in arrow_schema(table)])


def _as_made(there: DeltaTable, table: Table) -> bool:
    """True if it has this release's columns (descriptions may differ) and requires no more features of writers than its tables."""
    protocol = there.protocol()
    return (
        (protocol.min_reader_version, protocol.min_writer_version) == _PROTOCOL
        and there.metadata().partition_columns == table.partition_columns
        and _undescribed(there.schema().to_json()) == _undescribed(table.struct.json())
    )


def _undescribed(schema: str) -> list[dict[str, Any]]:
    """The columns of a schema (JSON, as Delta's log has it) without their comments."""
    return [{**field, "metadata": {}} for field in json.loads(schema)["fields"]]
