"""Every change of every partition of all clusters as rows, by the rules that `transforms.isr.history` states in Python.

One shuffle and one sort for all of it: a partition's records in the order of the log, each with the state before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F

from transforms.clusters import CLUSTER, by_cluster
from transforms.isr.history import Kind, Step
from transforms.isr.partition import NO_LEADER, RECOVERED, RECOVERING, PartitionState
from transforms.kraft.replay.partitions import KEY

LISTS = ("replicas", "adding_replicas", "removing_replicas", "isr", "eligible_leader_replicas", "last_known_elr")
STATE = (*LISTS, "leader", "leader_recovery_state", "leader_epoch", "partition_epoch")
_WHERE = (*KEY, "offset", "epoch", "append_time")


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
    changed = with_before(partition_states(partition_records)).where("created_offset IS NULL")
    if since:
        changed = changed.where(F.coalesce(F.col("offset") >= by_cluster(since, "bigint"), F.lit(True)))
    told = classified(changed)
    if topics is None:
        named = told.withColumn("topic", F.lit(None).cast("string"))
    else:
        named = told.join(topics.select(CLUSTER, "topic_id", "topic"), [CLUSTER, "topic_id"], "left")
    return named.select(
        CLUSTER,
        "topic",
        "topic_id",
        F.col("partition_id").alias("partition"),
        "offset",
        "epoch",
        "append_time",
        "kinds",
        "election",
        "brokers",
        "departed",
        "joined",
        *STATE,
        *[f"{name}_before" for name in STATE],
        "before_time",
        "leaderless_since",
    )


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


def partition_states(partition_records: DataFrame) -> DataFrame:
    """The state after each record: key, offset, epoch, append_time, created_offset, whole, STATE, and what it says itself.

    That is `names_leader` (it names one, be it the same), `recovers` (it says RECOVERING) and `clears` (it does nothing
    but empty both ELR lists). Changes of a partition that was never made are not in it.
    """
    whole, leader = F.col("whole"), F.col("leader")
    spelled = partition_records.select(
        *_WHERE,
        "whole",
        "created_offset",
        *[F.when(whole, F.coalesce(name, _nobody())).otherwise(F.col(name)).alias(name) for name in LISTS],
        F.when(whole, F.coalesce(leader, F.lit(NO_LEADER))).otherwise(leader).alias("leader"),
        F.when(whole, F.coalesce(F.col("leader_recovery_state"), F.lit(RECOVERED)))
        .otherwise(F.col("leader_recovery_state"))
        .cast("int")
        .alias("leader_recovery_state"),
        "leader_epoch",
        "partition_epoch",
        (~whole & leader.isNotNull()).alias("names_leader"),
        F.coalesce(~whole & (F.col("leader_recovery_state") == RECOVERING), F.lit(False)).alias("recovers"),
        _clears().alias("clears"),
    )
    # Epochs count on from the last PartitionRecord, which restarts both: counted from the beginning, less what was there.
    counted = spelled.withColumns(
        {
            "leaders_named": F.count_if("names_leader").over(_in_order()),
            "changes": F.count_if(~F.col("whole")).over(_in_order()),
        }
    )
    merged = counted.select(
        *_WHERE,
        "whole",
        "created_offset",
        "names_leader",
        "recovers",
        "clears",
        # A PartitionRecord says everything, so that nothing of an earlier life is carried over.
        *[_carried(name).alias(name) for name in (*LISTS, "leader", "leader_recovery_state")],
        _counted_on("leader_epoch", "leaders_named"),
        _counted_on("partition_epoch", "changes"),
    )
    return merged.where("partition_epoch IS NOT NULL")


def _in_order() -> WindowSpec:
    return Window.partitionBy(*KEY).orderBy("offset")


def _nobody() -> Column:
    return F.array().cast("array<int>")


def _clears() -> Column:
    """What `transforms.kraft.replay.elr` makes of a CLEAR_ELR: nothing but two empty lists."""
    silent = [*[name for name in LISTS if name not in _ELR], "leader", "leader_recovery_state", "directories"]
    said = [F.coalesce(F.size(name) == 0, F.lit(False)) for name in _ELR]
    return _all([~F.col("whole"), *[F.col(name).isNull() for name in silent], *said])


_ELR = ("eligible_leader_replicas", "last_known_elr")


def _all(conditions: list[Column]) -> Column:
    found = conditions[0]
    for condition in conditions[1:]:
        found = found & condition
    return found


def _carried(name: str) -> Column:
    return F.last(name, ignorenulls=True).over(_in_order())


def _counted_on(epoch: str, count: str) -> Column:
    start = F.last(F.when(F.col("whole"), F.col(epoch) - F.col(count)), ignorenulls=True).over(_in_order())
    return (start + F.col(count)).cast("int").alias(epoch)


def with_before(states: DataFrame) -> DataFrame:
    """`partition_states` with each one's predecessor: STATE with the suffix `_before`, before_time, leaderless_since."""
    before = F.lag(F.struct(*STATE, "append_time")).over(_in_order())
    lost = (F.col("leader") == NO_LEADER) & (F.coalesce(F.col("before.leader"), F.lit(0)) != NO_LEADER)
    earlier = _in_order().rowsBetween(Window.unboundedPreceding, -1)
    since = F.last(F.when(lost, F.col("append_time")), ignorenulls=True).over(earlier)
    return (
        states.withColumn("before", before)
        .withColumn("leaderless_since", F.when(F.col("before.leader") == NO_LEADER, since))
        .select(
            *states.columns,
            *[F.col(f"before.{name}").alias(f"{name}_before") for name in STATE],
            F.col("before.append_time").alias("before_time"),
            "leaderless_since",
        )
    )


def classified(changed: DataFrame) -> DataFrame:
    """`with_before` with kinds, election, brokers, departed and joined (`transforms.isr.history.classify`)."""
    told = changed.withColumns(
        {
            "made": F.col("partition_epoch_before").isNull(),
            "departed": _missing("isr_before", "isr"),
            "joined": _missing("isr", "isr_before"),
            "elr_lost": _missing("eligible_leader_replicas_before", "eligible_leader_replicas"),
            "elr_gained": _missing("eligible_leader_replicas", "eligible_leader_replicas_before"),
            "was_reassigning": _reassigning("_before"),
            "reassigning": _reassigning(""),
        }
    ).withColumn("election", F.when(~F.col("made") & ~F.col("whole") & ~F.col("clears"), _election()))
    return told.withColumns({"kinds": _kinds(), "brokers": _brokers()})


def _missing(of: str, in_: str) -> Column:
    """Who is in one list and not in the other; all, where there is no other."""
    other = F.coalesce(F.col(in_), _nobody())
    return F.filter(F.coalesce(F.col(of), _nobody()), lambda member: ~F.array_contains(other, member))


def _reassigning(suffix: str) -> Column:
    return (F.size(f"adding_replicas{suffix}") > 0) | (F.size(f"removing_replicas{suffix}") > 0)


def _election() -> Column:
    """`transforms.isr.history.election_of`."""
    leader, lost = F.col("leader"), F.col("leader_before") == NO_LEADER
    in_isr = F.array_contains("isr_before", leader)
    in_elr = F.array_contains("eligible_leader_replicas_before", leader)
    in_time = F.array_contains("isr", leader) & ~lost & F.col("was_reassigning") & ~F.col("reassigning")
    last_known = F.array_contains("last_known_elr_before", leader) & ~in_isr & ~in_elr
    moves = F.col("names_leader") & (leader != NO_LEADER) & ((leader != F.col("leader_before")) | F.col("recovers"))
    lossy = F.col("recovers") | ~(in_isr | in_elr | in_time)
    return F.when(
        moves,
        F.when(lossy & last_known, Kind.LAST_KNOWN_LEADER_ELECTION.value)
        .when(lossy, Kind.UNCLEAN_ELECTION.value)
        .when(in_elr & ~in_isr, Kind.ELR_ELECTION.value)
        .otherwise(Kind.CLEAN_ELECTION.value),
    )


def _kinds() -> Column:
    parts = F.array_compact(
        F.array(
            F.col("election"),
            _leader(),
            _reassignment(),
            _when(F.size("departed") > 0, Kind.SHRINK),
            _when(F.size("joined") > 0, Kind.EXPAND),
            _when(_reordered(), Kind.REORDERED),
            _when(
                (F.col("leader_recovery_state_before") == RECOVERING) & (F.col("leader_recovery_state") == RECOVERED),
                Kind.RECOVERED,
            ),
            _when(F.size("elr_gained") > 0, Kind.ELR_GAINED),
            _when(F.size("elr_lost") > 0, Kind.ELR_LOST),
        )
    )
    return (
        F.when(F.col("made"), _only(Kind.CREATED))
        .when(F.col("whole"), _only(Kind.REPLACED))
        .when(F.col("clears"), _only(Kind.ELR_CLEARED))
        .when(F.size(parts) > 0, parts)
        .otherwise(_only(Kind.DIRECTORIES))
    )


def _only(kind: Kind) -> Column:
    return F.array(F.lit(kind.value))


def _when(condition: Column, kind: Kind) -> Column:
    return F.when(condition, kind.value)


def _reordered() -> Column:
    return (F.size("departed") == 0) & (F.size("joined") == 0) & (F.col("isr") != F.col("isr_before"))


def _leader() -> Column:
    same = F.col("leader") == F.col("leader_before")
    return F.when(
        F.col("names_leader"),
        F.when(same, Kind.EPOCH_BUMP.value)
        .when(F.col("leader") == NO_LEADER, Kind.LEADER_LOST.value)
        .otherwise(Kind.LEADER_MOVE.value),
    )


def _reassignment() -> Column:
    assigned = ("replicas", "adding_replicas", "removing_replicas")
    same = _all([F.col(name) == F.col(f"{name}_before") for name in assigned])
    target = _missing("replicas_before", "removing_replicas_before")
    done = (F.size(F.array_except("replicas", target)) == 0) & (F.size(F.array_except(target, "replicas")) == 0)
    begun = F.when(F.col("reassigning"), Kind.REASSIGNMENT_STARTED.value).otherwise(Kind.REASSIGNMENT_COMPLETED.value)
    ended = F.when(done, Kind.REASSIGNMENT_COMPLETED.value).otherwise(Kind.REASSIGNMENT_CANCELLED.value)
    return F.when(
        ~same,
        F.when(~F.col("was_reassigning"), begun)
        .when(F.col("reassigning"), Kind.REASSIGNMENT_CHANGED.value)
        .otherwise(ended),
    )


def _brokers() -> Column:
    """Brokers that joined or left one of the lists, and both leaders of a record that names one."""
    lists = ["departed", "joined", "elr_lost", "elr_gained"]
    replicas = [_missing("replicas", "replicas_before"), _missing("replicas_before", "replicas")]
    leaders = F.filter(F.array("leader_before", "leader"), lambda broker: broker >= 0)
    named = F.when(F.col("names_leader") | F.col("made") | F.col("whole"), leaders).otherwise(_nobody())
    everyone = F.concat(*[F.col(name) for name in lists], *replicas, F.coalesce(named, _nobody()))
    return F.array_sort(F.array_distinct(everyone))
