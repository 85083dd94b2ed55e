"""A log's state as the shortest log that replays to it.

Replay goes on from it as if nothing was left out: `replay(prefix)` and then the rest is `replay(all)`, with the same
provenance. One run compacts what is below `/migration`'s offset once and works on the short log; the next run starts
there and reads only what is new.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.replayed import EVENT_COLUMNS, PARTITION_COLUMNS
from transforms.clusters import CLUSTER
from transforms.kraft.replay.entities.event import DELETE, UPSERT
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.partitions import fold_all_partitions
from transforms.kraft.replay.rows import fold_all


def compacted_below(log: Log, offsets: Mapping[str, int]) -> Log:
    """State of `log` below each cluster's offset as a log of its own: one record a row, at the offset of the row's last change.

    Removed rows stay, because a later verdict may ask what was removed and where. Broker registrations stay whole:
    they are few, and a change of one is checked against all that there ever were.
    """
    below = log.below(offsets)
    return Log(_rows(below.events), _partitions(below.partition_records))


def _rows(events: DataFrame) -> DataFrame:
    names = [CLUSTER, *(field.name for field in EVENT_COLUMNS)]
    folded = fold_all(events.where("entity <> 'brokers'"))
    rows = folded.withColumn("op", F.when(F.col("removed"), DELETE).otherwise(UPSERT))
    return rows.select(*names).unionByName(events.where("entity = 'brokers'").select(*names))


def _partitions(records: DataFrame) -> DataFrame:
    rows = fold_all_partitions(records).withColumn("whole", F.col("created_offset").isNotNull())
    return rows.select(CLUSTER, *[field.name for field in PARTITION_COLUMNS])


def compacted_then(state: Log, log: Log, offsets: Mapping[str, int]) -> Log:
    """The records of `log` from each cluster's offset on, after the state below it."""
    return state.union(log.since(offsets))
