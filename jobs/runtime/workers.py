"""Reading sources in Spark's workers: many small files in few tasks; if one source fails, the others are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from jobs import out_of_memory
from jobs.exit import AuditError, UsageError

T = TypeVar("T")
Batches = Iterable[pa.RecordBatch]
# Tasks at least, where there are as many sources, and bytes of each, so that a fleet's small files make few files of a table.
_TASKS, _TASK_BYTES = 4, 16 * 1024 * 1024
# Rows with this in `problem` are not data: the source of the cluster could not be read.
FAILED = "kraft-audit could not read the source: "


@dataclass(frozen=True)
class WorkerRows:
    """Rows that Spark's workers make: `make` of the batches of `given`, with the columns of `struct`.

    A sink that the workers can reach takes them there and then (`jobs.sinks.worker_rows`): as rows of Java's they would cost
    five times as much.
    """

    given: DataFrame
    make: Callable[[Batches], Iterator[pa.RecordBatch]]
    struct: StructType

    @property
    def rows(self) -> DataFrame:
        """The rows as Spark's."""
        return self.given.mapInArrow(self.make, self.struct)

    def then(self, make: Callable[[Batches], Iterator[pa.RecordBatch]], struct: StructType) -> WorkerRows:
        """What `make` makes of these rows, in the same worker."""
        first = self.make
        return WorkerRows(self.given, lambda batches: make(first(batches)), struct)


def as_they_are(rows: DataFrame) -> WorkerRows:
    """Rows of Spark's, for what workers make of them."""
    return WorkerRows(rows, lambda batches: iter(batches), rows.schema)  # noqa: PLW0108 - Spark looks at its arguments


def in_workers(
    spark: SparkSession,
    sources: Sequence[T],
    read: Callable[[T], Iterator[pa.RecordBatch]],
    struct: StructType,
    size: int,
) -> WorkerRows:
    """Rows of the sources, each read by a worker, so that they never pass through the driver.

    In tasks by their `size` in bytes, all together: one takes some hundredths of a second to begin, so that small sources
    together in one cost less than one each.
    """
    tasks = min(len(sources), max(_TASKS, size // _TASK_BYTES))
    groups = [list(sources[start::tasks]) for start in range(tasks)]

    def read_groups(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                for source in groups[index]:
                    yield from read(source)

    return WorkerRows(spark.range(0, len(groups), 1, max(1, len(groups))), read_groups, struct)


def with_columns(batch: pa.RecordBatch, values: Mapping[str, str | None]) -> pa.RecordBatch:
    """The batch with columns of one text (or null) each before its own."""
    texts = [pa.repeat(pa.scalar(value, pa.string()), batch.num_rows) for value in values.values()]
    return pa.RecordBatch.from_arrays([*texts, *batch.columns], names=[*values, *batch.schema.names])


def with_texts(values: Mapping[str, str | None]) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """What gives each batch these columns, for `WorkerRows.then`."""
    return lambda batches: (with_columns(batch, values) for batch in batches)


def failure(schema: pa.Schema, values: Mapping[str, str | None], error: Exception) -> pa.RecordBatch:
    """One row whose `problem` is the reason why a source could not be read; `values` are the columns that identify it.

    Only texts written for users are stored: the text of another exception may contain a secret.
    """
    row = {
        **dict.fromkeys(schema.names),
        **values,
        "problem": f"{FAILED}{'usage' if _is_for_the_user(error) else 'crash'}|{reason_of(error)}",
    }
    return pa.RecordBatch.from_pylist([row], schema=schema)


def reason_of(error: Exception) -> str:
    """Why a source could not be read, in one line; without the text of an exception that may contain a secret."""
    return str(getattr(error, "args", ("",))[0]) if _is_for_the_user(error) else _why(error)


def unreadable(error: OSError) -> str:
    """What happened to a file that existed when the run began, in one line."""
    return (
        f"{error.filename or 'a file'}: {error.strerror or type(error).__name__}, while it was read: is somebody copying into this "
        "folder, or a server running in it? Run again when that has ended"
    )


def _why(error: Exception) -> str:
    return unreadable(error) if isinstance(error, OSError) else out_of_memory.said(error) or type(error).__name__


def _is_for_the_user(error: Exception) -> bool:
    return isinstance(error, UsageError | AuditError) or getattr(error, "for_the_user", False)


def is_failure(row: Mapping[str, Any]) -> bool:
    """True for a row, of those with a `problem`, that was made by `failure`."""
    return str(row["problem"]).startswith(FAILED)


def failure_of(problem: str) -> Exception:
    """The error that the `problem` of a failure stands for."""
    kind, _, text = problem.removeprefix(FAILED).partition("|")
    return UsageError(text) if kind == "usage" else AuditError(f"the source could not be read: {text}")
