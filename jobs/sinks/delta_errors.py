"""Errors of Delta's and Spark's about tables, by their names, as errors of the warehouse."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from pyspark.errors import AnalysisException, PySparkException

from jobs.exit import AuditError
from jobs.sinks.reader import first_line, newer_table
from jobs.sinks.storage import WarehouseError, unreadable_file
from schemas.table import Table

# In this process an error of Delta's has a name only when its Python package is there and has been imported.
with suppress(ImportError):
    importlib.import_module("delta.exceptions")
# Another run's commit came first: how Delta begins the names of these errors, in this process and through Spark Connect.
CONFLICTS = ("DELTA_CONCURRENT_", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED")
MISSING = (
    "PATH_NOT_FOUND",
    "TABLE_OR_VIEW_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_PATH_DOES_NOT_EXIST",
    # Files without a commit are there: an unfinished table.
    "DELTA_TABLE_ONLY_OPERATION",
)
# The table exists; or only files of a first write exist, which is in progress or did not end, without its commit.
EXISTS = (
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "DELTA_TABLE_ALREADY_EXISTS",
    "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
    "LOCATION_ALREADY_EXISTS",
)
# A later Delta made the table, or somebody upgraded it.
NEWER = (
    "DELTA_INVALID_PROTOCOL_VERSION",
    "DELTA_UNSUPPORTED_FEATURES_FOR_READ",
    "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE",
)
GONE_VERSION = ("DELTA_VERSION_NOT_FOUND",)


class ConcurrentWriteError(WarehouseError):
    """Another run changed the same rows of the table at the same time; its write stands, this one left no trace."""


class UnreadableError(WarehouseError):
    """A file of a table is gone or damaged."""


@contextmanager
def readable() -> Iterator[None]:
    """While the block runs, report a missing or damaged file of a table as UnreadableError, with a message for users."""
    try:
        yield
    except AuditError:
        raise
    except Exception as error:
        file = unreadable_file(error)
        if file is None:
            raise
        raise UnreadableError(
            f"a file of the tables is gone or damaged: {file}; restore it, or read the whole log again with "
            "`kraft-audit run --full`"
        ) from error


@contextmanager
def typed_errors(table: Table) -> Iterator[None]:
    """While the block runs, report that another run changed the table as ConcurrentWriteError."""
    try:
        yield
    except PySparkException as error:
        if is_conflict(error) or (isinstance(error, AnalysisException) and is_one_of(error, EXISTS)):
            raise ConcurrentWriteError(_conflict(table, error)) from error
        raise


def refuse_newer(table: Table, error: Exception) -> None:
    """Raise WarehouseError if the table has a format that this release of Delta does not support."""
    if any(condition in str(error) for condition in NEWER):
        raise WarehouseError(newer_table(table)) from error


def _conflict(table: Table, error: Exception) -> str:
    reason = f"was changed by another run at the same time ({first_line(error)})"
    return f"table {table.full_name} {reason}; run again when that one has finished"


def is_conflict(error: PySparkException) -> bool:
    """Whether another run's commit came first."""
    # An error that comes from Java in this process has its name in its text alone.
    return (error.getCondition() or str(error).removeprefix("[")).startswith(CONFLICTS)


def is_one_of(error: AnalysisException, conditions: Sequence[str]) -> bool:
    """Whether the error's name is one of these, such as `MISSING`."""
    return (error.getCondition() or "").split(".")[0] in conditions
