"""Conditions on a table's rows, as values: Spark, Polars, delta-rs and Arrow each get them in their own words.

A row meets a condition if that is true for it. As in SQL a comparison with null is neither true nor false, and so is its negation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from pyspark.sql import Column


class _Any(Enum):
    """One value, also where it was sent to another process."""

    PRESENT = "present"


# As a condition on a column: any value, but no null.
PRESENT: Final = _Any.PRESENT


@dataclass(frozen=True)
class NoneOf:
    """As a condition on a column: null, or any value but these."""

    values: Collection[Any]


@dataclass(frozen=True)
class Below:
    """As a condition on a column: any value that is smaller than this one."""

    value: Any


# The value that a column must have, by its name; or one of several, None for null, PRESENT, NoneOf or Below. All of them hold.
Where = Mapping[str, Any]


class Condition:
    """Which rows of a table are meant; conditions are joined with `&` and `|`, and negated with `~`."""

    def sql(self) -> str:
        """As Polars and delta-rs both read it."""
        raise NotImplementedError

    def column(self) -> Column:
        """As Spark has it."""
        raise NotImplementedError

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """For each of Arrow's rows whether it is met; null where that is unknown."""
        raise NotImplementedError

    def __and__(self, other: Condition) -> Condition:
        return _Both(self, other)

    def __or__(self, other: Condition) -> Condition:
        return _Either(self, other)

    def __invert__(self) -> Condition:
        return _Not(self)


@dataclass(frozen=True)
class Equal(Condition):
    """A column has this value, or one of several; `value` is as in Where."""

    name: str
    value: Any

    def sql(self) -> str:
        """As `Condition.sql`."""
        column = f'"{self.name}"'
        if isinstance(self.value, NoneOf):
            return (~Equal(self.name, self.value.values) | Equal(self.name, None)).sql()
        if isinstance(self.value, Below):
            return f"{column} < {_literal(self.value.value)}"
        if self.value is PRESENT or self.value is None:
            return f"{column} is null" if self.value is None else f"{column} is not null"
        if _is_several(self.value):
            return f"{column} in ({', '.join(map(_literal, self.value))})" if self.value else "false"
        return f"{column} = {_literal(self.value)}"

    def column(self) -> Column:
        """As `Condition.column`."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - who reads without Spark does without

        column = F.col(self.name)
        if isinstance(self.value, NoneOf):
            return (~Equal(self.name, self.value.values) | Equal(self.name, None)).column()
        if isinstance(self.value, Below):
            return column < F.lit(self.value.value)
        if self.value is PRESENT or self.value is None:
            return column.isNull() if self.value is None else column.isNotNull()
        return column.isin([*self.value]) if _is_several(self.value) else column == F.lit(self.value)

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """As `Condition.of`."""
        column, value = rows.column(self.name), self.value
        if isinstance(value, NoneOf):
            return pc.invert(_is_one_of(column, value.values))
        if isinstance(value, Below):
            return pc.less(column, value.value)
        if value is PRESENT or value is None:
            return pc.is_null(column) if value is None else pc.is_valid(column)
        if _is_several(value):
            found = _is_one_of(column, value)
            return pc.if_else(pc.is_valid(column), found, pa.scalar(None, pa.bool_())) if value else found
        return pc.equal(column, value)


@dataclass(frozen=True)
class Between(Condition):
    """A column's value lies from the `first` to the `last`, both included."""

    name: str
    first: Any
    last: Any

    def sql(self) -> str:
        """As `Condition.sql`."""
        return f'"{self.name}" between {_literal(self.first)} and {_literal(self.last)}'

    def column(self) -> Column:
        """As `Condition.column`."""
        from pyspark.sql import functions as F  # noqa: PLC0415 - who reads without Spark does without

        return F.col(self.name).between(self.first, self.last)

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """As `Condition.of`."""
        column = rows.column(self.name)
        return pc.and_kleene(pc.greater_equal(column, self.first), pc.less_equal(column, self.last))


@dataclass(frozen=True)
class _Both(Condition):
    one: Condition
    other: Condition

    def sql(self) -> str:
        return f"({self.one.sql()}) and ({self.other.sql()})"

    def column(self) -> Column:
        return self.one.column() & self.other.column()

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """As `Condition.of`."""
        return pc.and_kleene(self.one.of(rows), self.other.of(rows))


@dataclass(frozen=True)
class _Either(Condition):
    one: Condition
    other: Condition

    def sql(self) -> str:
        return f"({self.one.sql()}) or ({self.other.sql()})"

    def column(self) -> Column:
        return self.one.column() | self.other.column()

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """As `Condition.of`."""
        return pc.or_kleene(self.one.of(rows), self.other.of(rows))


@dataclass(frozen=True)
class _Not(Condition):
    one: Condition

    def sql(self) -> str:
        return f"not ({self.one.sql()})"

    def column(self) -> Column:
        return ~self.one.column()

    def of(self, rows: pa.RecordBatch) -> pa.BooleanArray:
        """As `Condition.of`."""
        return pc.invert(self.one.of(rows))


def all_of(where: Where) -> Condition:
    """All of these hold. Raises TypeError without any."""
    parts: list[Condition] = [Equal(name, value) for name, value in where.items()]
    return reduce(and_, parts)


def any_of(conditions: Collection[Condition]) -> Condition:
    """At least one of them holds. Raises TypeError without any."""
    return reduce(or_, conditions)


def _is_one_of(column: pa.Array, values: Collection[Any]) -> pa.BooleanArray:
    """Never null: a null is none of them."""
    return pc.is_in(column, pa.array([*values], column.type))


def _is_several(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, bool | int):
        return str(value).lower()
    raise TypeError(f"{type(value).__name__} is not compared in SQL here")
