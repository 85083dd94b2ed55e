"""Silver rows of one cluster, as few as a test needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from schemas.entities import ENTITIES
from schemas.replayed import ROW_VERSION_COLUMNS
from transforms.frames import columns_of, frame

VERSIONS = columns_of(ROW_VERSION_COLUMNS, "cluster")
_COLUMNS = {entity.name: columns_of(entity.row_columns) for entity in ENTITIES}
Row = Mapping[str, Any]


def tables(**rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
    """Silver tables by entity; what a row does not name is null, and what nobody names is empty."""
    return {name: frame(rows.get(name, ()), columns) for name, columns in _COLUMNS.items()}


def zk(**columns: Any) -> Row:
    """A row of ZooKeeper's side."""
    return {"source": "zookeeper", **columns}


def kraft(**columns: Any) -> Row:
    """A row of KRaft's side."""
    return {"source": "kraft", **columns}


def version(entity: str, key: str, offset: int, row: str = "{}", *, removed: bool = False) -> Row:
    """A state of a row in the log from an offset on."""
    return {"entity": entity, "key": key, "row": row, "removed": removed, "from_offset": offset}


def versions(*rows: Row) -> pl.DataFrame:
    """ROW_VERSION rows."""
    return frame(rows, VERSIONS)
