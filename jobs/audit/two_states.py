"""The KRaft states of two finished runs held against each other in a worker: neither comes to the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from jobs.audit.feed import Pass, SpooledFeed, each_cluster, in_order
from jobs.audit.past import PastRun
from schemas.checks import KRAFT
from schemas.entities import Entity
from schemas.examined import FEED
from transforms.clusters import CLUSTER
from transforms.examination.made import slices
from transforms.frames import columns_of, from_arrow
from transforms.reconcile.compare.states import Rules, differing_states
from transforms.units import packed

_TOLD = StructType([StructField(name, StringType()) for name in ("entity", "key", "zk_row", "kraft_row")])
_OF_A_RUN = (CLUSTER, "run_id")
_LEFT, _RIGHT = 0, 1


def differing(left: PastRun, right: PastRun, rules: Rules) -> list[dict[str, Any]]:
    """Rows that are not the same in both runs, by entity and key (`transforms.reconcile.compare.states.differing_states`)."""
    feeds = [
        _rows(past, entity).mapInArrow(packed(_kind(place, state)), FEED)
        for state, past in ((_LEFT, left), (_RIGHT, right))
        for place, entity in enumerate(rules.entities)
    ]
    rows = in_order(feeds, 1).mapInArrow(each_cluster(_pass(rules)), _TOLD).collect()
    return [row.asDict() for row in rows]


def _kind(place: int, state: int) -> int:
    """The number by which the worker knows a state's rows of an entity."""
    return 2 * place + state


def _rows(past: PastRun, entity: Entity) -> DataFrame:
    """What is compared of the run's silver rows. Both states are those of one cluster: of none that has a name."""
    flag = () if entity.comparable_flag is None else (entity.comparable_flag,)
    rows = past.read(entity.table).where(F.col("source") == KRAFT)
    return rows.select(F.lit("").alias(CLUSTER), *dict.fromkeys((*entity.key, *entity.compared, *flag)))


def _pass(rules: Rules) -> Pass:
    schema: pa.Schema = to_arrow_schema(_TOLD)

    def compare(_cluster: str, feed: SpooledFeed) -> Iterator[pa.RecordBatch]:
        found = differing_states(_state(feed, rules, _LEFT), _state(feed, rules, _RIGHT), rules)
        for piece in slices(found):
            yield from piece.select(schema.names).cast(schema).to_batches()

    return compare


def _state(feed: SpooledFeed, rules: Rules, state: int) -> dict[str, pl.DataFrame]:
    return {
        entity.name: from_arrow(feed.batches(_kind(place, state)), columns_of(entity.table.columns, *_OF_A_RUN))
        for place, entity in enumerate(rules.entities)
    }
