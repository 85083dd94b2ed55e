"""The pass over a cluster in a worker of Spark's: each piece that it makes becomes a row of silver `examined`.

Many rows of a table in a local folder go to a file of that table at once, and the row names the file: as bytes in `examined` they would
be written twice and read once more, a sixth of a large cluster's run (`tests/benchmarks/README.md`, "Where the time of a large run
goes"). Imported by workers, so that it needs no more than a pass does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.sinks.parquet import DataFile, DataFileWriter, NewFiles
from schemas.examined import EXAMINED
from transforms.examination.examine import examine
from transforms.examination.made import ANSWERS, ROWS, Made
from transforms.examination.task import ClusterTask
from transforms.units import Feed

# Rows in a piece as small as this come to the driver with the answers: to read their table again takes Python's workers longer than
# they are worth, a seventh of a small audit's queries (`tests/pipeline/test_queries.py`).
FEW_ROWS = "few_rows"
_FEW_BYTES = 32 * 1024
# A file of a table, which has the cluster's rows of it that are not in other pieces.
FILE = "file"
_OUTCOME: pa.Schema = to_arrow_schema(EXAMINED.struct)


def passing(
    run_id: str, tasks: Mapping[str, ClusterTask], new_files: NewFiles
) -> Callable[[str, Feed], Iterator[pa.RecordBatch]]:
    """What examines a cluster, for `jobs.evidence.feed.each_cluster`."""

    def examine_one(cluster: str, feed: Feed) -> Iterator[pa.RecordBatch]:
        with _Files(new_files) as files:
            for made in examine(tasks[cluster], feed):
                if made.kind == ANSWERS:
                    # They come last, and only where nothing has failed.
                    for file in files.ended():
                        yield _row(cluster, run_id, file)
                if not files.take(made):
                    yield _row(cluster, run_id, made)

    return examine_one


def _row(cluster: str, run_id: str, made: Made) -> pa.RecordBatch:
    payload = made.payload
    kind = FEW_ROWS if made.kind == ROWS and len(payload) <= _FEW_BYTES else made.kind
    values = (cluster, run_id, kind, made.name, made.part, payload)
    return pa.RecordBatch.from_pylist([dict(zip(_OUTCOME.names, values, strict=True))], _OUTCOME)


class _Files:
    """The files that a cluster has of its own; those that were not ended when the block ends are removed."""

    def __init__(self, new_files: NewFiles) -> None:
        self._new = new_files
        self._open: dict[str, DataFileWriter] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for writer in self._open.values():
            writer.drop()

    def take(self, made: Made) -> bool:
        """Write a piece to its table's file; False, and nothing done, where it has to go another way."""
        name = made.name or ""
        if made.kind != ROWS or name not in self._new.schemas:
            return False
        rows = made.rows
        if name not in self._open:
            if rows.nbytes < self._new.begun_by:
                return False
            self._open[name] = self._new.begin(name)
        for batch in rows.to_batches():
            self._open[name].add(batch)
        return True

    def ended(self) -> Iterator[Made]:
        """End the files, and name each."""
        for name in [*self._open]:
            file = self._open[name].close()
            if file is None:
                raise AssertionError(f"a file of {name} was begun without rows")
            yield Made(FILE, name, 0, json.dumps(file._asdict()).encode())
        self._open.clear()


def file_of(payload: bytes) -> DataFile:
    """The file that a row of this kind names."""
    return DataFile(**json.loads(payload))
