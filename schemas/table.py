"""How a Delta table is declared: its layer, its columns with comments, and nothing that runs."""

from __future__ import annotations

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


# Columns by which rows are selected and whose ranges files have: runs follow each other, and logs are read in order.
_CHOSEN_BY = ("cluster", "run_id", "started_at", "offset", "append_time", "zxid", "time")


@dataclass(frozen=True)
class Table:
    """One Delta table. `struct` is its exact schema, in order.

    `replaced`: rows of a cluster take the place of earlier ones, so that each cluster has files of its own (a partition) and
    two of them can be replaced at the same time. Rows of all other tables are added, and a run adds a few files for all its
    clusters: a file for each would be thousands in a run over a fleet.

    `chained`: a run adds what has changed since an earlier one, so that a state is made of several runs' rows (`transforms.chain`).
    """

    layer: Layer
    name: str
    comment: str
    columns: tuple[StructField, ...]
    replaced: bool = False
    chained: bool = False

    @property
    def struct(self) -> StructType:
        """The columns as a Spark schema."""
        return StructType(list(self.columns))

    @property
    def column_names(self) -> list[str]:
        """The columns' names, in order."""
        return [field.name for field in self.columns]

    @property
    def skipping_columns(self) -> list[str]:
        """Columns whose smallest and largest values are kept for each file, so that queries leave files out.

        Delta's own choice, the first 32 columns, is a quarter of the time in which a large table is written.
        """
        return [name for name in _CHOSEN_BY if name in self.column_names and name not in self.partition_columns]

    @property
    def partition_columns(self) -> list[str]:
        """Columns whose values have files of their own."""
        return ["cluster"] if self.replaced else []

    @property
    def full_name(self) -> str:
        """`layer.name`, as messages and the runs table spell it."""
        return f"{self.layer.value}.{self.name}"
