"""A Delta table in a local folder, added to without Spark: columns, comments, properties and protocol are those that Spark gives it.

Spark takes three SQL executions to make a table and tenths of a second for a commit, however few the rows are; delta-rs takes
a hundredth. Both continue the other's tables. `jobs.sinks.delta` handles the lock and errors of the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import (
    CommitProperties,
    DeltaTable,
    PostCommitHookProperties,
    Schema,
    Transaction,
    WriterProperties,
    write_deltalake,
)
from deltalake.exceptions import DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, create_table_with_add_actions
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.sinks.conditions import Condition
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
# Smallest and largest run of a file, as delta-rs names what Delta's log says of it.
_RANGE = ("min.run_id", "max.run_id")
_WRITTEN = WriterProperties(compression="ZSTD", statistics_truncate_length=_LONGEST_BOUND)
_NO_HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)


def arrow_rows(table: Table, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows as the table has them; a column that a row lacks is null. Raises pyarrow.ArrowInvalid for a value of another type."""
    return pa.Table.from_pylist(list(rows), arrow_schema(table))


def arrow_schema(table: Table) -> pa.Schema:
    """The table's columns in Arrow's types, with their comments."""
    types: pa.Schema = to_arrow_schema(table.struct, timezone="UTC")
    return pa.schema([types.field(each.name).with_metadata(each.metadata) for each in table.columns])


def properties(table: Table) -> dict[str, str]:
    """Delta's properties of a new table."""
    columns = ",".join(table.skipping_columns)
    return {"delta.dataSkippingStatsColumns": columns} if columns else {}


@dataclass(frozen=True)
class FolderTable:
    """A table that this release creates or has created; `_there` is None until its first commit.

    What adds to it raises OSError and deltalake.exceptions.DeltaError with what the disk says.
    """

    folder: Path
    table: Table
    _there: DeltaTable | None

    @staticmethod
    def at(folder: Path, table: Table) -> FolderTable | None:
        """The table in the `folder`. None if Spark has to write: the table is not as this release creates it (another release did, or
        it was altered), or delta-rs cannot express the folder's name.
        """
        if _ADDRESSABLE.fullmatch(str(folder)) is None:
            return None
        try:
            there = DeltaTable(folder, storage_options=_STORAGE)
        except TableNotFoundError:
            return FolderTable(folder, table, None)
        except DeltaError:
            # Such as a log whose newest checkpoint is gone: Delta itself goes on without, or says what is wrong.
            return None
        return FolderTable(folder, table, there) if _as_made(there, table) else None

    @staticmethod
    def tended(folder: Path, table: Table) -> FolderTable | None:
        """The table in the `folder`, whatever its columns, to remove rows and files. None if it is missing or Spark has to do it."""
        if _ADDRESSABLE.fullmatch(str(folder)) is None:
            return None
        try:
            there = DeltaTable(folder, storage_options=_STORAGE)
        except DeltaError:
            return None
        return FolderTable(folder, table, there) if _is_plain(there) else None

    def files_of(self, runs: Collection[str] | None) -> list[str] | None:
        """Paths of the files that can hold rows of these runs, or of any.

        None for a table without a commit, and for one that is cut by partitions: its files lack those columns.
        """
        if self._there is None or self.table.partition_columns:
            return None
        files = self._there.get_add_actions(flatten=True)
        ranges = [files[name].to_pylist() if name in files.schema.names else [None] * files.num_rows for name in _RANGE]
        return [
            str(self.folder / unquote(path))
            for path, low, high in zip(files["path"].to_pylist(), *ranges, strict=True)
            if runs is None or low is None or high is None or any(low <= run <= high for run in runs)
        ]

    def has(self, transaction: Transaction | None) -> bool:
        """True if a transaction of this id with the same or a higher version was committed."""
        if self._there is None or transaction is None:
            return False
        newest = self._there.transaction_version(transaction.app_id)
        return newest is not None and newest >= transaction.version

    def add_rows(self, rows: pa.Table, transaction: Transaction | None) -> None:
        """Add rows in one commit, which creates the table if it is missing. Raises pyarrow.ArrowInvalid for rows of another shape."""
        wanted = arrow_schema(self.table) if self._there is None else self._described(self._there)
        with self._check_pointed():
            write_deltalake(
                self._there or self.folder,
                rows.select(self.table.column_names).cast(wanted),
                partition_by=self.table.partition_columns or None,
                mode="append",
                description=self.table.comment,
                configuration=properties(self.table),
                storage_options=_STORAGE,
                writer_properties=_WRITTEN,
                commit_properties=_commit_of(transaction),
                post_commithook_properties=_NO_HOOKS,
            )

    def add_files(self, files: Sequence[AddAction], transaction: Transaction | None) -> None:
        """Add files of rows in one commit, which creates the table if it is missing. Without files and a transaction there is none."""
        if self._there is None:
            create_table_with_add_actions(
                str(self.folder),
                Schema.from_arrow(arrow_schema(self.table)),
                [*files],
                description=self.table.comment,
                configuration=properties(self.table),
                storage_options=_STORAGE,
                commit_properties=_commit_of(transaction),
                post_commithook_properties=_NO_HOOKS,
            )
        elif files or transaction is not None:
            with self._check_pointed():
                self._there.create_write_transaction(
                    [*files],
                    "append",
                    self._there.schema(),
                    commit_properties=_commit_of(transaction),
                    post_commithook_properties=_NO_HOOKS,
                )

    def remove_rows(self, condition: Condition) -> None:
        """Remove rows in one commit, if there are any."""
        with self._check_pointed():
            self._made.delete(condition.sql(), writer_properties=_WRITTEN, post_commithook_properties=_NO_HOOKS)

    def merge_files(self, large: int) -> None:
        """Merge files smaller than `large` bytes into files of at most about this size, in one commit."""
        with self._check_pointed():
            self._made.optimize.compact(
                target_size=large, writer_properties=_WRITTEN, post_commithook_properties=_NO_HOOKS
            )

    def remove_files(self, hours: int, *, dry_run: bool) -> list[str]:
        """Remove files that no version of the last `hours` needs, those that no commit names among them; their paths."""
        with self._check_pointed():
            found = self._made.vacuum(
                hours,
                dry_run=dry_run,
                enforce_retention_duration=False,
                full=True,
                post_commithook_properties=_NO_HOOKS,
            )
        return [str(self.folder / unquote(path)) for path in found]

    def set_property(self, name: str, value: str) -> None:
        """Set one of Delta's properties, in a commit."""
        with self._check_pointed():
            self._made.alter.set_table_properties({name: value}, post_commithook_properties=_NO_HOOKS)

    @property
    def size(self) -> tuple[int, int]:
        """How many files the table has, and their bytes."""
        sizes = self._made.get_add_actions()["size_bytes"].to_pylist()
        return len(sizes), sum(sizes)

    @property
    def properties(self) -> Mapping[str, str]:
        """Delta's properties of the table."""
        return self._made.metadata().configuration

    @property
    def _made(self) -> DeltaTable:
        if self._there is None:
            raise TableNotFoundError(f"no table in {self.folder}")
        return self._there

    @contextmanager
    def _check_pointed(self) -> Iterator[None]:
        """Sum up Delta's log after every so many commits, such as those that the block makes."""
        there = self._there
        before = 0 if there is None else there.version()
        yield
        if there is not None and there.version() // _CHECKPOINT_EVERY > before // _CHECKPOINT_EVERY:
            there.create_checkpoint()
            there.cleanup_metadata()

    def _described(self, there: DeltaTable) -> pa.Schema:
        """The table's columns in Arrow's types with the comments that they have there: delta-rs refuses others."""
        comments = {field.name: field.metadata for field in there.schema().fields}
        return pa.schema([field.with_metadata(comments[field.name]) for field in arrow_schema(self.table)])


def _commit_of(transaction: Transaction | None) -> CommitProperties:
    return CommitProperties(app_transactions=None if transaction is None else [transaction])


def _as_made(there: DeltaTable, table: Table) -> bool:
    """True if it has this release's columns (descriptions may differ) and requires no more of writers than its tables."""
    return (
        _is_plain(there)
        and there.metadata().partition_columns == table.partition_columns
        and _undescribed(there.schema().to_json()) == _undescribed(table.struct.json())
    )


def _is_plain(there: DeltaTable) -> bool:
    """True if it requires no more features of writers than tables that this release creates."""
    protocol = there.protocol()
    return (protocol.min_reader_version, protocol.min_writer_version) == _PROTOCOL


def _undescribed(schema: str) -> list[dict[str, Any]]:
    """The columns of a schema (JSON, as Delta's log has it) without their comments."""
    return [{**field, "metadata": {}} for field in json.loads(schema)["fields"]]
