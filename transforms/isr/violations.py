"""What the history of the partitions shows that is wrong (ISR-07, ISR-08, ISR-11, ISR-12, ELR-02, S§8.3; DUR-13): bounded rules.

What is healed is told and warns no more: each rule holds a partition's past against its present state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.checks.codes import (
    CHURN,
    CHURN_PAST,
    FLAPPING,
    HEALED_ELECTION,
    LAST_KNOWN_FENCED,
    LOSSY_ELECTION,
    QUIET_SHRINK,
)
from transforms.clusters import CLUSTER, by_cluster
from transforms.isr.history import HOUR, LOSSY, Kind
from transforms.isr.partition import RECOVERED

# Departures and returns of one broker and partition in an hour, beyond those that its restarts account for.
FLAPPING_FROM = 6
_KEY = (CLUSTER, "topic_id", "partition")
_WORDS = {
    Kind.UNCLEAN_ELECTION: "unclean election",
    Kind.LAST_KNOWN_LEADER_ELECTION: "election of the last known leader",
}


@dataclass(frozen=True)
class Present:
    """What is known of a cluster now: its log's newest append time (ms), brokers at work, those that some ISR lacks, the
    registrations of each in the log's last hour, whether a shrinking ISR must raise the leader epoch, and the offsets of
    the records of MIGRATION and of POST_MIGRATION (None: not yet), where there is one of MIGRATION.
    """

    log_end_ms: int | None = None
    at_work: tuple[int, ...] = ()
    out_of_sync: tuple[int, ...] = ()
    restarts: Mapping[int, int] = field(default_factory=dict)
    bumps_on_shrink: bool = False
    dual_write: tuple[int, int | None] | None = None


# What the rules below read of a history.
JUDGED = (
    *_KEY,
    "topic",
    "offset",
    "append_time",
    "kinds",
    "election",
    "departed",
    "joined",
    "leader",
    "leader_epoch",
    "leader_epoch_before",
    "leader_recovery_state",
    "isr",
    "isr_before",
    "eligible_leader_replicas_before",
)


def may_tell(ends: Mapping[str, int]) -> Column:
    """Changes that `history_violations` looks at, by the newest append time of each cluster's log (ms)."""
    recent = F.col("append_time") > by_cluster(ends, "bigint") - HOUR if ends else F.lit(False)
    return F.coalesce(recent, F.lit(False)) | F.coalesce(_lossy(), F.lit(False)) | _epoch_stayed()


def _epoch_stayed() -> Column:
    """Somebody left the ISR, and the leader epoch is what it was."""
    return (F.size("departed") > 0) & (F.col("leader_epoch") == F.col("leader_epoch_before"))


def _lossy() -> Column:
    return F.col("election").isin([kind.value for kind in LOSSY])


def history_violations(history: DataFrame, partitions: DataFrame, present: Mapping[str, Present]) -> DataFrame:
    """What breaks a rule, or is to be told of the past: (cluster, code, text).

    `history` is `transforms.isr.frames.isr_history` (of its columns only JUDGED is looked at), `partitions` KRaft's silver rows:
    but for DUR-13, only partitions that are still there count.
    """
    recent = F.col("append_time") > _each(present, "log_end_ms", "bigint") - HOUR
    moved = ~F.array_contains("kinds", Kind.CREATED.value) & ((F.size("departed") > 0) | (F.size("joined") > 0))
    quiet = _epoch_stayed() & _each(present, "bumps_on_shrink", "boolean")
    telling = history.withColumns({"moved": moved & recent, "lossy": _lossy(), "quiet": quiet}).where(
        "moved OR lossy OR quiet"
    )
    now = partitions.select(
        CLUSTER,
        "topic_id",
        "partition",
        F.col("topic").alias("name"),
        F.struct("replicas", "isr", "leader", "leader_epoch", "leader_recovery_state").alias("now"),
    )
    rows = (
        telling.drop("topic").join(now, list(_KEY)).withColumn("shown", F.format_string("%s/%d", "name", "partition"))
    )
    # Every use of `rows` plans the join again: what a row tells by itself is one use, what is counted over rows another.
    reports = F.array_compact(F.array(_election(present), _fenced(present), _quiet_shrink()))
    found = rows.select(CLUSTER, F.explode(reports).alias("report")).select(CLUSTER, "report.*")
    members = _members(rows.where("moved"))
    found = found.unionByName(_flapping(members, present)).unionByName(_churn(members, present))
    if any(each.dual_write for each in present.values()):
        found = found.unionByName(_quiet_in_dual_write(history, present))
    return found


def _each(present: Mapping[str, Present], name: str, sql_type: str) -> Column:
    values = {cluster: getattr(each, name) for cluster, each in present.items()}
    return by_cluster({cluster: list(v) if isinstance(v, tuple) else v for cluster, v in values.items()}, sql_type)


def _found(rows: DataFrame, code: Column | str, text: Column) -> DataFrame:
    return rows.select(CLUSTER, (F.lit(code) if isinstance(code, str) else code).alias("code"), text.alias("text"))


def _reports(condition: Column, code: Column | str, text: Column) -> Column:
    """What a row tells (code, text) where a condition holds, else null."""
    return F.when(
        condition, F.struct((F.lit(code) if isinstance(code, str) else code).alias("code"), text.alias("text"))
    )


def _unhealed() -> Column:
    return F.col("now.leader_recovery_state") != RECOVERED


def _election_text() -> Column:
    kind = F.when(F.col("election") == Kind.UNCLEAN_ELECTION.value, _WORDS[Kind.UNCLEAN_ELECTION])
    return F.format_string(
        "%s: %s of broker %d at offset %d; before it ISR %s, ELR %s",
        "shown",
        kind.otherwise(_WORDS[Kind.LAST_KNOWN_LEADER_ELECTION]),
        # A cancelled reassignment chooses a broker that need not be there to lead.
        F.when(F.col("leader") < 0, F.try_element_at("isr", F.lit(1))).otherwise(F.col("leader")),
        "offset",
        listed("isr_before"),
        listed("eligible_leader_replicas_before"),
    )


def _election(present: Mapping[str, Present]) -> Column:
    """An election that can have lost data, open or healed (ISR-12).

    It is open until the leader has told the controller of an ISR that grew (RECOVERED). The leader of a one-replica
    partition never does: there it is open while it still leads, until its broker is in sync in all its partitions again.
    An election that sets no RECOVERING, as that of a cancelled reassignment, is open until the ISR has another member.
    """
    alone = F.size("now.replicas") == 1
    unmarked = F.col("leader_recovery_state") == RECOVERED
    behind = F.array_contains(_each(present, "out_of_sync", "array<int>"), F.col("leader"))
    is_open = F.when(alone, behind & (F.col("now.leader_epoch") == F.col("leader_epoch"))).otherwise(
        _unhealed() | (F.col("now.leader") < 0) | (unmarked & (F.size("now.isr") < 2))
    )
    return _reports(F.col("lossy"), F.when(is_open, LOSSY_ELECTION).otherwise(HEALED_ELECTION), _election_text())


def _fenced(present: Mapping[str, Present]) -> Column:
    """A last known leader that was elected, still leads and is not at work (ELR-02)."""
    leads = (F.col("now.leader") == F.col("leader")) & _unhealed()
    idle = ~F.array_contains(_each(present, "at_work", "array<int>"), F.col("leader"))
    last_known = F.col("election") == Kind.LAST_KNOWN_LEADER_ELECTION.value
    return _reports(F.col("lossy") & last_known & leads & idle, LAST_KNOWN_FENCED, _election_text())


def _quiet_shrink() -> Column:
    text = F.format_string(
        "%s: %s left the ISR at offset %d, the leader epoch stayed %d",
        "shown",
        listed("departed"),
        "offset",
        "leader_epoch",
    )
    return _reports(F.col("quiet"), QUIET_SHRINK, text)


def _quiet_in_dual_write(history: DataFrame, present: Mapping[str, Present]) -> DataFrame:
    """Changes in dual write by which a replica left the ISR and the leader epoch stayed (S§3.3; DUR-13).

    A migration's controller names the leader in every such change, which raises the epoch; only an ISR that grows leaves it.
    """
    begin, end = (_each(present, "dual_write", "array<bigint>")[place] for place in (0, 1))
    during = (F.col("offset") > begin) & (end.isNull() | (F.col("offset") < end))
    changed = ~F.array_contains("kinds", Kind.REPLACED.value)
    text = F.format_string(
        "%s partition %d: %s left the ISR, the leader epoch stayed (offset %d)",
        "topic_id",
        "partition",
        F.array_join(F.col("departed").cast("array<string>"), ", "),
        "offset",
    )
    return _found(history.where(_epoch_stayed() & changed & during), "DUR-13", text)


def _members(moved: DataFrame) -> DataFrame:
    """Departures and moves (either way) of each broker and partition."""
    each = moved.select(
        CLUSTER,
        "shown",
        F.explode(F.array_union("departed", "joined")).alias("broker_id"),
        "departed",
    )
    return each.groupBy(CLUSTER, "shown", "broker_id").agg(
        F.count("*").alias("moves"), F.count_if(F.array_contains("departed", F.col("broker_id"))).alias("departures")
    )


def _restarts(present: Mapping[str, Present]) -> Column:
    values = {cluster: {str(broker): n for broker, n in each.restarts.items()} for cluster, each in present.items()}
    return F.coalesce(F.element_at(by_cluster(values, "map<string,int>"), F.col("broker_id").cast("string")), F.lit(0))


def _times(number: Column) -> Column:
    return F.when(number == 1, "once").when(number == 2, "twice").otherwise(F.format_string("%d times", number))


def _flapping(members: DataFrame, present: Mapping[str, Present]) -> DataFrame:
    """A process that starts leaves an ISR once and comes back once; what is more is a broker that can't keep up."""
    beyond = F.col("moves") - 2 * _restarts(present)
    text = F.format_string(
        "%s: broker %d left or joined the ISR %d times in the log's last hour, and was started %s",
        "shown",
        "broker_id",
        "moves",
        _times(_restarts(present)),
    )
    return _found(members.where(beyond >= FLAPPING_FROM), FLAPPING, text)


def _churn(members: DataFrame, present: Mapping[str, Present]) -> DataFrame:
    """Brokers that left ISRs in the log's last hour: again and again and still out, or not so."""
    brokers = members.where("departures > 0").groupBy(CLUSTER, "broker_id")
    counted = brokers.agg(F.count("*").alias("partitions"), F.max("departures").alias("times"))
    out = F.array_contains(_each(present, "out_of_sync", "array<int>"), F.col("broker_id"))
    again = out & (F.col("times") > 1)
    text = F.format_string(
        "broker %d left the ISR of %d partition%s%s in the log's last hour, was started %s, and is %s in sync",
        "broker_id",
        "partitions",
        F.when(F.col("partitions") == 1, "").otherwise("s"),
        F.when(F.col("times") > 1, F.format_string(", %d times at most", "times")).otherwise(""),
        _times(_restarts(present)),
        F.when(out, "not").otherwise("back"),
    )
    return _found(counted, F.when(again, CHURN).otherwise(CHURN_PAST), text)


def listed(ids: str) -> Column:
    """A list of broker ids as a text such as `[1, 2]`."""
    return F.concat(F.lit("["), F.array_join(F.col(ids).cast("array<string>"), ", "), F.lit("]"))
