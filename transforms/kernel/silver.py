"""Columns of silver rows as the kernel gives them: without the run's, and with where the log says so."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.bronze import RUN_COLUMNS
from schemas.entities import Entity
from schemas.entities.entity import PROVENANCE_COLUMNS

_PROVENANCE = tuple(column for column in PROVENANCE_COLUMNS if column.name.startswith("kraft_"))


def silver_schema(entity: Entity) -> pa.Schema:
    """`cluster`, the entity's own columns, and those of PROVENANCE_COLUMNS that are KRaft's."""
    return to_arrow_schema(StructType([RUN_COLUMNS[0], *entity.columns, *_PROVENANCE]))
