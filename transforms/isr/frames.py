"""Every change of every partition of all clusters as rows, by the rules that `transforms.isr.history` states in Python.

One shuffle and one sort for all of it; the rest is done on Arrow batches (`transforms.isr.kernel`): as columns of a query
the same rules took more than twice as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from schemas.gold import ISR_CHANGE
from transforms.clusters import CLUSTER, by_cluster
from transforms.isr.history import Kind, Step
from transforms.isr.id_lists import NOTHING
from transforms.isr.kernel import HISTORY, LISTS, READ, STATE, histories
from transforms.isr.partition import PartitionState
from transforms.kraft.replay.partitions import KEY

_CHANGES = StructType([ISR_CHANGE[name] for name in HISTORY])


def isr_history(
    partition_records: DataFrame, topics: DataFrame | None = None, since: Mapping[str, int] | None = None
) -> DataFrame:
    """Every change of a partition as one row, of all clusters at once.

    `partition_records` are those of a log (`transforms.kraft.replay.image.Log.partition_records`): what CLEAR_ELR cleared
    is among them, and the rows of a kept state, which are where a history begins and no changes. `since` has each
    cluster's first offset (inclusive) that is reported; a base checkpoint's records stand below its log's first one.
    `topics` (cluster, topic_id, topic) are all that there ever were: a topic that was made again has another id.

    Columns: cluster, topic (null where `topics` does not name it), topic_id, partition, offset, epoch (of the record's
    batch), append_time (ms); kinds (the weightiest first), election (its kind, null when no leader was made), brokers
    (whom it concerns, sorted), departed and joined (of the ISR); each column of STATE after the record, and with the
    suffix `_before` before it (null where the partition was made); before_time, the append time of the record before it;
    leaderless_since, that of the record by which a partition lost the leader that this record finds missing. A kept
    state's row has the time of its last change only.
    """
    records = partition_records.withColumns(
        {
            "leader_recovery_state": F.col("leader_recovery_state").cast("int"),
            "directories": F.col("directories").isNotNull(),
            **{name: F.coalesce(name, F.lit(NOTHING)) for name in LISTS},
        }
    ).select(*READ)
    in_order = records.repartition(*KEY).sortWithinPartitions(*KEY, "offset")
    changed = in_order.mapInArrow(histories, _CHANGES)
    if since:
        changed = changed.where(F.coalesce(F.col("offset") >= by_cluster(since, "bigint"), F.lit(True)))
    if topics is None:
        named = changed.withColumn("topic", F.lit(None).cast("string"))
    else:
        named = changed.join(topics.select(CLUSTER, "topic_id", "topic"), [CLUSTER, "topic_id"], "left")
    return named.select(*ISR_CHANGE.fieldNames())


def step_of(row: Mapping[str, Any]) -> Step:
    """A collected row of `isr_history` as a step."""
    after = _state(row, "")
    if after is None:
        raise ValueError("a row of the history has a state after it")
    return Step(row["offset"], row["append_time"], _state(row, "_before"), after, tuple(map(Kind, row["kinds"])))


_SHORT = {"adding_replicas": "adding", "removing_replicas": "removing", "eligible_leader_replicas": "elr"}


def _state(row: Mapping[str, Any], suffix: str) -> PartitionState | None:
    if row[f"leader{suffix}"] is None:
        return None
    values: dict[str, Any] = {_SHORT.get(name, name): tuple(row[name + suffix]) for name in LISTS}
    return PartitionState(**values, **{name: row[name + suffix] for name in STATE if name not in LISTS})
