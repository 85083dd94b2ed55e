"""What comes out of the pass over a cluster, piece by piece: rows of tables, answers, state, or why there is none."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema

from schemas.table import Table
from transforms.units import batches_of, stream

ROWS, ANSWERS, FAILURE, FOLD, MEMORY = "rows", "answers", "failure", "fold", "memory"
# What the rows come to that this run has stored of its cluster's state (`transforms.chain.index`), in pieces of whole rows.
INDEX = "index"
# Kinds that the next run continues from.
KEPT_KINDS = (FOLD, MEMORY, INDEX)
# Instead of all else: the whole log is needed, and the cluster examined again with it.
AGAIN = "again"
# A piece passes through Java as one value.
_PIECE_BYTES = 4 * 1024 * 1024
_PIECE_ROWS = 25_000


class Made(NamedTuple):
    """One piece: its kind, the table that rows belong to, its number among those of its kind and name, and its rows or bytes."""

    kind: str
    name: str | None
    part: int
    content: pa.Table | bytes

    @property
    def payload(self) -> bytes:
        """The bytes; of rows those of an Arrow stream."""
        return self.content if isinstance(self.content, bytes) else stream(self.content)

    @property
    def packed(self) -> Made:
        """The same piece as bytes, which take less memory until they are needed."""
        return self._replace(content=self.payload)

    @property
    def rows(self) -> pa.Table:
        """The rows of a piece of a table."""
        return pa.Table.from_batches(batches_of(self.content)) if isinstance(self.content, bytes) else self.content


@dataclass
class Making:
    """Counts what was made so far: rows by table, digests of the pieces of kept bytes by kind."""

    cluster: str
    run_id: str
    rows: Counter[str] = field(default_factory=Counter)
    parts: Counter[str] = field(default_factory=Counter)
    digests: dict[str, list[str]] = field(default_factory=dict)

    def table(self, table: Table, rows: pl.DataFrame | Iterable[pa.RecordBatch | pa.Table]) -> Iterator[Made]:
        """Rows of a table, without the run's columns."""
        schema: pa.Schema = to_arrow_schema(table.struct)
        pieces: Iterable[pa.RecordBatch | pa.Table] = slices(rows) if isinstance(rows, pl.DataFrame) else rows
        for piece in pieces:
            if piece.num_rows:
                self.rows[table.full_name] += piece.num_rows
                yield self._made(ROWS, table.full_name, self._whole(piece, schema))

    def _whole(self, rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> pa.Table:
        of_run = {"cluster": self.cluster, "run_id": self.run_id}
        columns = [
            pa.repeat(pa.scalar(of_run[each.name], pa.string()), rows.num_rows)
            if each.name in of_run
            else _column(rows, each)
            for each in schema
        ]
        return pa.table(columns, schema=schema)

    def kept(self, kind: str, payload: bytes) -> Iterator[Made]:
        """Bytes for the next run, in pieces."""
        return self.kept_pieces(
            kind, (payload[begin : begin + _PIECE_BYTES] for begin in range(0, len(payload), _PIECE_BYTES))
        )

    def kept_pieces(self, kind: str, pieces: Iterable[bytes]) -> Iterator[Made]:
        """Pieces of bytes for the next run, as they are."""
        self.digests[kind] = []
        for piece in pieces:
            self.digests[kind].append(hashlib.sha256(piece).hexdigest())
            yield self._made(kind, None, piece)

    def answers(self, answers: Mapping[str, Any]) -> Made:
        """The answers, which come last: with the number of rows for each table, and the digests of the kept bytes."""
        document = {"answers": {**answers, "digests": self.digests}, "rows": dict(self.rows)}
        return self._made(ANSWERS, None, json.dumps(document).encode())

    def _made(self, kind: str, name: str | None, content: pa.Table | bytes) -> Made:
        key = name or kind
        self.parts[key] += 1
        return Made(kind, name, self.parts[key] - 1, content)


def failure(error: Exception) -> Made:
    """Why a cluster could not be examined. Only texts that are written for people are kept: another may hold a secret."""
    for_people = getattr(error, "for_the_user", False)
    said = {"for_people": for_people, "text": str(error) if for_people else type(error).__name__}
    return Made(FAILURE, None, 0, json.dumps(said).encode())


def slices(rows: pl.DataFrame) -> Iterator[pa.Table]:
    """Rows as Arrow's, piece by piece; none without rows."""
    for begin in range(0, len(rows), _PIECE_ROWS):
        yield rows.slice(begin, _PIECE_ROWS).to_arrow(compat_level=pl.CompatLevel.oldest())


def _column(rows: pa.Table | pa.RecordBatch, wanted: pa.Field) -> pa.Array | pa.ChunkedArray:
    """A column in the type that the table has; null where the rows lack it."""
    if wanted.name not in rows.schema.names:
        return pa.nulls(rows.num_rows, wanted.type)
    return rows.column(wanted.name).cast(wanted.type)
