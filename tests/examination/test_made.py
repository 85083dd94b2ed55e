"""What a pass made comes out of its bytes as it went in, cut in pieces of a bounded size."""

from __future__ import annotations

import hashlib
import json

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, LongType, StringType

from schemas.table import Layer, Table, column
from transforms.examination import made
from transforms.examination.made import ANSWERS, FAILURE, FOLD, MEMORY, ROWS, Making, failure
from transforms.units import batches_of

TABLE = Table(
    Layer.SILVER,
    "some",
    "Rows.",
    (
        column("cluster", StringType(), "Whose."),
        column("run_id", StringType(), "The run's."),
        column("text", StringType(), "A text."),
        column("number", LongType(), "A number."),
        column("absent", IntegerType(), "Nobody says it."),
    ),
)
OTHER = Table(Layer.GOLD, "other", "Rows.", TABLE.columns)


def test_rows_come_out_with_the_runs_columns_in_the_tables_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_PIECE_ROWS", 2)
    making = Making("c", "r")
    rows = pl.DataFrame({"number": [1, 2, 3], "text": ["a", None, "ü"]}, schema_overrides={"number": pl.Int32})
    pieces = list(making.table(TABLE, rows))
    assert [(piece.kind, piece.name, piece.part) for piece in pieces] == [(ROWS, "silver.some", n) for n in range(2)]
    found = [batch for piece in pieces for batch in batches_of(piece.payload)]
    assert list(found[0].schema.names) == list(TABLE.column_names)
    assert found[0].schema.field("number").type == pa.int64()
    assert found[0].schema.field("absent").type == pa.int32()
    of_run = {"cluster": "c", "run_id": "r", "absent": None}
    assert [row for batch in found for row in batch.to_pylist()] == [
        {**row, **of_run} for row in rows.select("text", "number").to_dicts()
    ]


def test_pieces_are_counted_by_their_table_and_tables_without_rows_have_none() -> None:
    making = Making("c", "r")
    rows = pl.DataFrame({"number": [1, 2]})
    batches = [pa.RecordBatch.from_pylist([{"number": number}]) for number in range(3)]
    empty = pa.RecordBatch.from_pylist([], pa.schema({"number": pa.int64()}))
    parts = [piece.part for piece in (*making.table(TABLE, rows), *making.table(OTHER, [*batches, empty]))]
    parts += [piece.part for piece in making.table(TABLE, rows)]
    assert parts == [0, 0, 1, 2, 1]
    assert list(making.table(OTHER, rows.clear())) == []
    told = json.loads(making.answers({}).payload)
    assert told["rows"] == {"silver.some": 4, "gold.other": 3}


def test_what_is_kept_is_cut_and_each_piece_has_its_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "_PIECE_BYTES", 4)
    making = Making("c", "r")
    payload = bytes(range(10))
    pieces = list(making.kept(FOLD, payload))
    pieces += making.kept(MEMORY, b"abc")
    assert [(piece.kind, piece.part) for piece in pieces] == [(FOLD, 0), (FOLD, 1), (FOLD, 2), (MEMORY, 0)]
    assert b"".join(piece.payload for piece in pieces[:3]) == payload
    last = making.answers({"first": {"a": [{"b": None}]}})
    assert (last.kind, last.name, last.part) == (ANSWERS, None, 0)
    told = json.loads(last.payload)["answers"]
    assert told["first"] == {"a": [{"b": None}]}
    digests = [hashlib.sha256(piece.payload).hexdigest() for piece in pieces]
    assert told["digests"] == {FOLD: digests[:3], MEMORY: digests[3:]}


class _ForPeopleError(ValueError):
    for_the_user = True


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("a-secret"), {"for_people": False, "text": "KeyError"}),
        (_ForPeopleError("no record is there"), {"for_people": True, "text": "no record is there"}),
    ],
)
def test_of_a_failure_only_what_is_written_for_people_is_kept(error: Exception, said: dict[str, object]) -> None:
    piece = failure(error)
    assert (piece.kind, json.loads(piece.payload)) == (FAILURE, said)
