"""Rows in the shape of their table: its columns in its order, with its comments; nothing is cast, added or dropped."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from jobs.runtime.spark import is_connect
from jobs.sinks.storage import WarehouseError
from schemas.table import Table


class SchemaMismatchError(WarehouseError):
    """The rows to write don't have exactly the table's columns and types."""


def in_shape(table: Table, rows: DataFrame) -> DataFrame:
    """The rows with the table's columns in its order and with its comments; nothing is cast, added or dropped."""
    check_fit(table, rows.schema)
    given = with_columns(rows, table)
    return _with_plain_texts(given, table) if is_connect(rows.sparkSession) else given


def check_fit(table: Table, given_columns: StructType) -> None:
    """Raise SchemaMismatchError unless the columns are the table's, each of its type."""
    wanted = {field.name: field.dataType.simpleString() for field in table.columns}
    given = {field.name: field.dataType.simpleString() for field in given_columns}
    problems = [f"{name} is missing" for name in wanted if name not in given]
    problems += [f"{name} is not a column of it" for name in given if name not in wanted]
    problems += [
        f"{name} is {given[name]}, not {kind}" for name, kind in wanted.items() if given.get(name, kind) != kind
    ]
    if problems:
        raise SchemaMismatchError(f"rows for {table.full_name} don't fit: {'; '.join(problems)}")


def _with_plain_texts(rows: DataFrame, table: Table) -> DataFrame:
    """The rows with texts of Spark's default type.

    Spark Connect sends the text columns of a schema as "string collate UTF8_BINARY". A table that is made of such
    columns has them so in its schema, and readers other than Spark refuse it.
    """
    return rows.select(
        [
            F.col(quoted(field.name)).cast(field.dataType.simpleString()).alias(field.name, metadata=field.metadata)
            for field in table.columns
        ]
    )


def with_columns(rows: DataFrame, table: Table) -> DataFrame:
    """Rows with the table's columns in its order and with its comments; a column that they lack is null.

    Raises AnalysisException for a column whose type can't be made the table's without loss.
    """
    given = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    differs = any(given.get(field.name) not in (None, field.dataType.simpleString()) for field in table.columns)
    if differs or not any(isinstance(field.dataType, ArrayType) for field in table.columns):
        return rows.to(table.struct)
    # `DataFrame.to` builds each list again, element by element and uncompiled, where its type is the table's already.
    return rows.select([_column(field, there=field.name in given) for field in table.columns])


def _column(field: StructField, *, there: bool) -> Column:
    values = F.col(quoted(field.name)) if there else F.lit(None).cast(field.dataType)
    return values.alias(field.name, metadata=field.metadata)


def quoted(name: str) -> str:
    """A name as SQL spells it."""
    return f"`{name.replace('`', '``')}`"
