"""Kafka's own checkpoint as a witness: the replay at its offset must equal it (CAP-08).

A checkpoint is what Kafka made of the same records. It leaves out what its metadata.version has no record for (S§3.4),
writes the producer ids without their broker, and knows nothing of row history; all else must be the same, row for row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.checks.codes import CONFIG_SKIPPED
from schemas.kraft.feature_levels import ELR_VERSION
from schemas.kraft.kept_configs import KEPT_CONFIGS
from schemas.kraft.metadata_versions import DEFAULT_LEVEL, SNAPSHOT_KEEPS_FROM
from transforms.clusters import CLUSTER, by_cluster
from transforms.kraft.replay import rows as replay
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.partitions import PARTITION_KEY, fold_partitions
from transforms.unions import union_all

_STATE = ("replicas", "adding_replicas", "removing_replicas", "isr", "leader", "leader_epoch", "partition_epoch")
_LATER = ("leader_recovery_state", "eligible_leader_replicas", "last_known_elr")


# Which checkpoint a row belongs to, by its offset, and whether it is the replay's or the checkpoint's own.
_CHECKPOINT, _REPLAYED = "checkpoint", "replayed"
_BY = (CLUSTER, _CHECKPOINT, _REPLAYED)
_ELR_IS_ON = "elr_is_on"
# Offset and metadata.version of each checkpoint, by cluster.
Levels = Mapping[str, Mapping[int, int | None]]


def checkpoint_records(records: DataFrame, offsets: Mapping[str, Sequence[int]]) -> DataFrame:
    """The good records of the checkpoints that end at each cluster's `offsets` (exclusive), each just before its end."""
    good = F.col("problem").isNull() & ~F.col("control") & F.col("checkpoint_offset").isNotNull()
    own = records.where(good).where(F.array_contains(_ends(offsets), F.col("checkpoint_offset")))
    return own.withColumn("offset", F.col("checkpoint_offset") - 1)


def checkpoint_differences(replayed: Log, checkpoints: Log, levels: Levels) -> DataFrame:
    """Rows in which the replay below a checkpoint's offset is not the checkpoint: cluster, source, code, subject, detail, place.

    `replayed` is a log, `checkpoints` the records of its checkpoints (`checkpoint_records`), `levels` the offset and the
    metadata.version of each, by cluster. Equal states give no row. A configuration that Kafka skips from
    4.3 on has a code of its own (CONFIG_SKIPPED). Every checkpoint has its own copy of the rows, in one query: give
    only checkpoints together that few records lie between.
    """
    ends = {cluster: sorted(mine) for cluster, mine in levels.items()}
    rows = _rows(_copies(replayed, ends).union(_own(checkpoints)), levels)
    paired = rows.groupBy(CLUSTER, _CHECKPOINT, "entity", "key").agg(
        F.expr("first(row) FILTER (WHERE replayed)").alias("ours"),
        F.expr("first(row) FILTER (WHERE NOT replayed)").alias("theirs"),
    )
    differing = paired.where(~F.col("ours").eqNullSafe(F.col("theirs")))
    detail = (
        F.when(F.col("ours").isNull(), "in the checkpoint, not in the replay")
        .when(F.col("theirs").isNull(), "in the replay, not in the checkpoint")
        .otherwise("the replay and the checkpoint differ")
    )
    return differing.select(
        CLUSTER,
        F.lit("kraft").alias("source"),
        F.when(_skipped(), CONFIG_SKIPPED).otherwise("CAP-08").alias("code"),
        F.format_string("%s %s", "entity", "key").alias("subject"),
        detail.alias("detail"),
        F.format_string("checkpoint %d", _CHECKPOINT).alias("place"),
    )


def _skipped() -> Column:
    """A configuration in the replay alone, of a name that Kafka 4.3 does not know (`DefaultSupportedConfigChecker`)."""
    row = F.col("ours")
    kind, name = F.get_json_object(row, "$.resource_type"), F.get_json_object(row, "$.config")
    known = F.lit(True)
    for resource, names in KEPT_CONFIGS.items():
        known = known & ((kind != resource) | name.isin(sorted(names)))
    return (F.col("entity") == "configs") & F.col("theirs").isNull() & ~known


def _ends(offsets: Mapping[str, Sequence[int]]) -> Column:
    return by_cluster({cluster: list(mine) for cluster, mine in offsets.items()}, "array<bigint>")


def _copies(log: Log, offsets: Mapping[str, Sequence[int]]) -> Log:
    """A copy of each cluster's log below each of its offsets."""

    def below(rows: DataFrame) -> DataFrame:
        later = F.filter(_ends(offsets), lambda end: end > F.col("offset"))
        return rows.withColumns({_CHECKPOINT: F.explode(later), _REPLAYED: F.lit(True)})

    return Log(below(log.events), below(log.partition_records))


def _own(checkpoints: Log) -> Log:
    def named(rows: DataFrame) -> DataFrame:
        return rows.withColumns({_CHECKPOINT: F.col("offset") + 1, _REPLAYED: F.lit(False)})

    return Log(named(checkpoints.events), named(checkpoints.partition_records))


def _rows(log: Log, levels: Levels) -> DataFrame:
    folded = replay.fold(log.events, _BY)
    current = folded.where(~F.col("removed") & ~F.col("entity").isin(["brokers", "producer_ids", "migration"]))
    lost = F.lit(False)
    for entity, first in SNAPSHOT_KEEPS_FROM.items():
        lost = lost | ((F.col("entity") == entity) & ~_keeps(levels, first))
    producer = folded.where("entity = 'producer_ids'")
    frames = [
        current.where(~lost).select(*_BY, "entity", F.col("replay_key").alias("key"), "row"),
        producer.select(
            *_BY, "entity", F.lit("").alias("key"), F.get_json_object("row", "$.next_producer_id").alias("row")
        ),
        _brokers(log, folded),
        _partitions(log.partition_records, folded, levels),
    ]
    return union_all(frames)


def _keeps(levels: Levels, first: int) -> Column:
    """Tell whether a row's checkpoint has a metadata.version of at least `first`."""
    keeping = {
        cluster: [offset for offset, level in mine.items() if (DEFAULT_LEVEL if level is None else level) >= first]
        for cluster, mine in levels.items()
    }
    return F.array_contains(_ends(keeping), F.col(_CHECKPOINT))


def _brokers(log: Log, folded: DataFrame) -> DataFrame:
    registered = ("broker_epoch", "incarnation_id", "is_migrating_zk_broker", "fenced")
    columns = (*registered, "rack", "endpoints", "features", "cordoned_log_dirs")
    rows = replay.brokers(log.events, folded, _BY)
    return rows.select(
        *_BY,
        F.lit("brokers").alias("entity"),
        F.col("broker_id").cast("string").alias("key"),
        F.to_json(F.struct(*columns)).alias("row"),
    )


def _partitions(records: DataFrame, folded: DataFrame, levels: Levels) -> DataFrame:
    """A checkpoint holds the partitions of living topics only; a removed topic's are in the log alone."""
    living = folded.where("entity = 'topics' AND NOT removed").select(
        *_BY, F.get_json_object("row", "$.topic_id").alias("topic_id")
    )
    rows = fold_partitions(records, (_CHECKPOINT, _REPLAYED)).join(F.broadcast(living), [*_BY, "topic_id"], "left_semi")
    rows = rows.join(F.broadcast(_with_elr(folded)), [*_BY], "left")
    directories = F.when(_keeps(levels, SNAPSHOT_KEEPS_FROM["directories"]), F.col("directories")).alias("directories")
    return rows.select(
        *_BY,
        F.lit("partitions").alias("entity"),
        F.concat_ws("/", *PARTITION_KEY).alias("key"),
        F.to_json(F.struct(*[_written(name) for name in (*_STATE, *_LATER)], directories)).alias("row"),
    )


def _with_elr(folded: DataFrame) -> DataFrame:
    """States in which eligible leader replicas are on: without, a checkpoint has no ELR lists (`PartitionRegistration.toRecord`)."""
    feature, level = (F.get_json_object("row", f"$.{name}") for name in ("feature", "level"))
    features = folded.where("entity = 'features' AND NOT removed").where(feature == ELR_VERSION)
    return features.where(level.cast("int") > 0).select(*_BY, F.lit(True).alias(_ELR_IS_ON))


def _written(name: str) -> Column:
    """ELR lists are absent in a record when they are empty."""
    if name in ("eligible_leader_replicas", "last_known_elr"):
        return F.when(F.col(_ELR_IS_ON) & (F.size(name) > 0), F.col(name)).alias(name)
    return F.col(name)
