"""Frames of one cluster: their columns by the declarations of `schemas`, and the spellings that all rules share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

_KINDS: dict[str, pl.DataType] = {
    "string": pl.String(),
    "long": pl.Int64(),
    "integer": pl.Int32(),
    "short": pl.Int16(),
    "byte": pl.Int8(),
    "boolean": pl.Boolean(),
    "double": pl.Float64(),
    "binary": pl.Binary(),
    "timestamp": pl.Datetime("us", "UTC"),
}


def columns_of(columns: Iterable[StructField], *without: str) -> pl.Schema:
    """Names and types of declared columns, but for some."""
    return pl.Schema({field.name: _kind(field.dataType) for field in columns if field.name not in without})


def _kind(declared: DataType) -> pl.DataType:
    """Polars' type for a declared one."""
    if isinstance(declared, ArrayType):
        return pl.List(_kind(declared.elementType))
    if isinstance(declared, MapType):
        return pl.Map(_kind(declared.keyType), _kind(declared.valueType))
    if isinstance(declared, StructType):
        return pl.Struct(columns_of(declared.fields))
    return _KINDS[declared.typeName()]


def frame(rows: Iterable[Mapping[str, Any]], columns: pl.Schema) -> pl.DataFrame:
    """Rows as a frame with these columns; what a row does not name is null."""
    return pl.DataFrame([{name: row.get(name) for name in columns} for row in rows], schema=columns)


def from_arrow(rows: pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch], columns: pl.Schema) -> pl.DataFrame:
    """Arrow's rows with these columns in this order; what they lack is null."""
    batches = rows.to_batches() if isinstance(rows, pa.Table) else [rows] if isinstance(rows, pa.RecordBatch) else rows
    filled = [each for each in batches if each.num_rows]
    found = pl.from_arrow(filled) if filled else pl.DataFrame(schema=columns)
    return shaped(pl.DataFrame(found), columns)


def copied(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows in memory of their own: a few that were filtered from many may be a window into all of them, and keep them."""
    return pl.read_ipc_stream(rows.write_ipc_stream(None).getvalue()) if rows.height else rows


def shaped(rows: pl.DataFrame, columns: pl.Schema) -> pl.DataFrame:
    """The same rows with these columns, types and order; what they lack is null."""
    return rows.select(
        pl.col(name).cast(kind) if name in rows.columns else pl.lit(None, kind).alias(name)
        for name, kind in columns.items()
    )


def json_of(*columns: str | pl.Expr) -> pl.Expr:
    """Columns as the text of one JSON object, nulls spelled out; `{}` without any."""
    return pl.struct(*columns).struct.json_encode() if columns else pl.lit("{}")


def listed(ids: pl.Expr | str) -> pl.Expr:
    """A list of broker ids as a text such as `[1, 2]`."""
    column = pl.col(ids) if isinstance(ids, str) else ids
    return pl.format("[{}]", column.cast(pl.List(pl.String)).list.join(", "))


def except_ids(left: pl.Expr | str, right: pl.Expr | str | Iterable[int]) -> pl.Expr:
    """Ids of the left list that are not in the right one, each once, in the left one's order; null when a list is null."""
    column = pl.col(left) if isinstance(left, str) else left
    if not isinstance(right, str | pl.Expr):
        return column.list.filter(~pl.element().is_in([*right])).list.unique(maintain_order=True)
    other = pl.col(right) if isinstance(right, str) else right
    # A union has the right one's ids first and what the left one adds in its order; a difference of sets has none.
    return other.list.set_union(column).list.slice(other.list.n_unique())
