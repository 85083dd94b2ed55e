"""Arrow forms of the ZooKeeper tables, and the way from plain znodes into them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from schemas.bronze import ZNODE_COLUMNS
from schemas.zookeeper.state import ZNODE_STATE
from transforms.zookeeper.read.znode import Znode

ZNODE_SCHEMA: pa.Schema = to_arrow_schema(StructType(list(ZNODE_COLUMNS)))
STATE_SCHEMA: pa.Schema = to_arrow_schema(ZNODE_STATE)


def znode_batch(znodes: Sequence[Znode]) -> pa.RecordBatch:
    """Return znodes as one batch of `ZNODE_COLUMNS`."""
    columns = list(zip(*znodes, strict=True)) or [()] * len(ZNODE_SCHEMA)
    arrays = [_array(column, field) for column, field in zip(columns, ZNODE_SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ZNODE_SCHEMA)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    if field.name != "acl":
        return pa.array(values, type=field.type)
    # Nearly every znode of a tree has one of a handful of ACLs, so they are converted once each.
    distinct: dict[tuple[Any, ...] | None, int] = {}
    codes = [distinct.setdefault(None if acl is None else tuple(acl), len(distinct)) for acl in values]
    forms = [None if acl is None else [entry._asdict() for entry in acl] for acl in distinct]
    return pa.array(forms, type=field.type).take(pa.array(codes, type=pa.int32()))


def one_batch(table: pa.Table) -> pa.RecordBatch:
    """Return a table as one batch; an empty table is a batch without rows."""
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
