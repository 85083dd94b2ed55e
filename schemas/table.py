"""How a Delta table is declared: its layer, its columns with comments, and nothing that runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pyspark.sql.types import DataType, StructField, StructType


class Layer(StrEnum):
    """The medallion a table belongs to; also the folder or the name prefix it is stored under."""

    BRONZE = "bronze"
    SILVER = "silver"
    GOLD = "gold"


def column(name: str, data_type: DataType, comment: str) -> StructField:
    """Declare a nullable column; the comment becomes the Delta column comment."""
    return StructField(name, data_type, nullable=True, metadata={"comment": comment})


@dataclass(frozen=True)
class Table:
    """One Delta table. `struct` is its exact schema, in order."""

    layer: Layer
    name: str
    comment: str
    columns: tuple[StructField, ...]

    @property
    def struct(self) -> StructType:
        """The columns as a Spark schema."""
        return StructType(list(self.columns))

    @property
    def column_names(self) -> list[str]:
        """The columns' names, in order."""
        return [field.name for field in self.columns]

    @property
    def full_name(self) -> str:
        """`layer.name`, as messages and the runs table spell it."""
        return f"{self.layer.value}.{self.name}"


def by_name(tables: Sequence[Table]) -> dict[str, Table]:
    """Index tables by `Table.name`."""
    return {table.name: table for table in tables}
