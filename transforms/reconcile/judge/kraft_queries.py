"""Aggregates and rules about KRaft's own health (S§8.3, S§8.4), as column expressions over all clusters of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.checks.codes import (
    CORDONED,
    DIRECTORY_LOST,
    DIRECTORY_UNKNOWN,
    ISR_ORDER,
    NO_LEADER_FOR_GOOD,
    RECOVERING_LONG,
    RESTART_REFUSED,
    UNCLEAN_LEADERLESS,
)
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.isr.violations import Present, history_violations
from transforms.reconcile.judge.partition_health import lacking
from transforms.reconcile.judge.rules import RowRule, broken

HOUR = 3_600_000
REGISTER_BROKER = "REGISTER_BROKER_RECORD"
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
# What brokers' own dynamic configurations are asked for: they are few, a row for each broker at most.
ASKED_CONFIGS = (MIN_ISR, UNCLEAN)
# Gone in 4.0 (KIP-724, KIP-937): a resource that still has one can't be changed any more, because all of it is validated.
REMOVED_IN_4_0 = (
    "message.format.version",
    "message.timestamp.difference.max.ms",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
)
# `DirectoryId`: ids that stand for no directory.
MIGRATING, UNASSIGNED, LOST = "AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
# The metadata.version that knows directories, 3.7-IV2.
DIRECTORIES_FROM = 17
# A leader that has not told of a grown ISR for so long is not healing (ISR-11).
RECOVERING_MS = 30 * 60_000


@dataclass(frozen=True)
class Health:
    """What is known of a cluster already and the rules below need.

    `brokers` are those in `/brokers/ids`, `directories` the log directory ids of each broker that names any, `cordoned` those
    that take no new replica, `racks` the rack of each broker that names one, `min_isr` the dynamic min.insync.replicas of
    brokers (key '' for the cluster's own). `reassigning` is true while a partition of KRaft is being reassigned, `unclean`
    when unclean elections are on for the whole cluster, `leaderless` when KRaft has partitions without a leader, `compared`
    when the two sides are, `zookeeper` while ZooKeeper decides the partitions. `level` is the finalised metadata.version,
    `present` what the partitions' history is held against.
    """

    brokers: Sequence[int] = ()
    directories: Mapping[int, Sequence[str]] = field(default_factory=dict)
    min_isr: Mapping[str, int] = field(default_factory=dict)
    cordoned: Mapping[int, Sequence[str]] = field(default_factory=dict)
    racks: Mapping[int, str] = field(default_factory=dict)
    reassigning: bool = False
    unclean: bool = False
    leaderless: bool = False
    compared: bool = False
    zookeeper: bool = False
    level: int | None = None
    present: Present = field(default_factory=Present)

    @property
    def at_work(self) -> tuple[int, ...]:
        """Brokers that are unfenced and not shutting down."""
        return self.present.at_work

    @property
    def log_end_ms(self) -> int | None:
        """Append time of the log's newest record, milliseconds since the epoch."""
        return self.present.log_end_ms


def activity(records: DataFrame, checkpoints: Mapping[str, int | None]) -> DataFrame:
    """Records of the log by type: cluster, type, records, bytes, first, last, below, behind.

    `below` is the append time of the newest record below the cluster's offset in `checkpoints` (exclusive), `behind` the
    bytes of those from it on. Records of checkpoints do not count.
    """
    log = records.where(F.col("checkpoint_offset").isNull() & F.col("problem").isNull())
    cut = by_cluster(checkpoints, "bigint") if checkpoints else F.lit(None).cast("bigint")
    offset = F.col("offset")
    return log.groupBy(CLUSTER, "type").agg(
        F.count("*").alias("records"),
        F.sum("length").alias("bytes"),
        F.min("append_time").alias("first"),
        F.max("append_time").alias("last"),
        F.max(F.when(offset < cut, F.col("append_time"))).alias("below"),
        F.sum(F.when(offset >= cut, F.col("length"))).alias("behind"),
    )


def first_append_time(records: DataFrame) -> DataFrame:
    """Append time (ms) of the log's oldest record among these: cluster, first. Records of checkpoints do not count."""
    log = records.where(F.col("checkpoint_offset").isNull() & F.col("problem").isNull())
    return log.groupBy(CLUSTER).agg(F.min("append_time").alias("first")).where(F.col("first").isNotNull())


def restarts(records: DataFrame, ends: Mapping[str, int | None]) -> DataFrame:
    """Registrations in the hour before the cluster's time in `ends` (ms): cluster, broker_id, restarts."""
    named = records.where(registered_lately(ends)).select(
        CLUSTER, F.get_json_object("data", "$.brokerId").cast("int").alias("broker_id")
    )
    return named.groupBy(CLUSTER, "broker_id").agg(F.count("*").alias("restarts"))


def registered_lately(ends: Mapping[str, int | None]) -> Column:
    """Records of the log, not of a checkpoint, by which a broker registered in the hour before its cluster's time (ms)."""
    mine = (F.col("type") == REGISTER_BROKER) & F.col("checkpoint_offset").isNull() & F.col("problem").isNull()
    return mine & (F.col("append_time") > by_cluster(ends, "bigint") - HOUR)


def broker_configs(configs: DataFrame) -> DataFrame:
    """Dynamic broker configurations that checks ask for: cluster, source, broker, name, value."""
    mine = (F.col("resource_type") == "BROKER") & F.col("config").isin(list(ASKED_CONFIGS))
    return configs.where(mine & F.col("value").isNotNull()).select(
        CLUSTER, "source", F.col("resource_name").alias("broker"), F.col("config").alias("name"), "value"
    )


def out_of_sync(partitions: DataFrame) -> DataFrame:
    """Replicas that are missing from their ISR (`lacking`), by broker: cluster, source, broker_id, replicas."""
    known = partitions.where(F.col("isr").isNotNull())
    missing = known.select(CLUSTER, "source", F.explode(lacking()).alias("broker_id"))
    return missing.groupBy(CLUSTER, "source", "broker_id").agg(F.count("*").alias("replicas"))


def partition_health(partitions: DataFrame) -> DataFrame:
    """Counts over each side's partitions with a state: cluster, source, partitions, leaderless, short, recovering, moved,
    reassigning.

    `short` lack a replica in the ISR (`lacking`), `recovering` have several replicas and have not recovered from an election
    that can lose data, `moved` are led by another replica than the preferred one.
    """
    known = partitions.where(F.col("isr").isNotNull() & F.col("leader").isNotNull())
    leader, several = F.col("leader"), F.size("replicas") > 1
    return known.groupBy(CLUSTER, "source").agg(
        F.count("*").alias("partitions"),
        F.count_if(leader == -1).alias("leaderless"),
        F.count_if(F.size(lacking()) > 0).alias("short"),
        F.count_if((F.col("leader_recovery_state") == 1) & several).alias("recovering"),
        F.count_if((leader >= 0) & (F.size("replicas") > 0) & (leader != F.col("replicas")[0])).alias("moved"),
        F.count_if(F.size("adding_replicas") + F.size("removing_replicas") > 0).alias("reassigning"),
    )


def violations(
    partitions: DataFrame, configs: DataFrame, history: DataFrame | None, health: Mapping[str, Health]
) -> list[DataFrame]:
    """What more than one row, or a row's lists, show of KRaft's health: frames of (cluster, code, text).

    `partitions` and `configs` are this run's silver rows, `history` is `transforms.isr.frames.isr_history` of its logs; a frame
    that no cluster needs is left out.
    """
    frames = []
    if any(each.level is not None for each in health.values()):
        frames.append(directories(partitions, health))
    if health:
        frames.append(under_min(partitions, configs, health))
    both = [cluster for cluster, each in health.items() if each.compared]
    if both:
        frames.append(between_sides(partitions, both))
    if any(each.present.log_end_ms is not None for each in health.values()) and history is not None:
        kraft = partitions.where(F.col("source") == KRAFT)
        frames.append(history_violations(history, kraft, {cluster: each.present for cluster, each in health.items()}))
    if any(each.leaderless for each in health.values()):
        frames.append(unclean_leaderless(partitions, configs, health))
    return frames


def listed(ids: Column) -> Column:
    """Ids as a text, `[0, 1]`."""
    return F.concat(F.lit("["), F.array_join(ids.cast("array<string>"), ", "), F.lit("]"))


def partition_rules(health: Mapping[str, Health]) -> list[RowRule]:
    """The rules that one partition's row shows (`transforms.isr.checks` has each for a single partition)."""
    name = F.format_string("%s/%d: ", "topic", "partition")
    isr, replicas, leader = F.col("isr"), F.col("replicas"), F.col("leader")
    strangers = F.array_except(isr, replicas)
    twice = F.size(F.array_distinct(isr)) < F.size(isr)
    of_replicas = F.when(
        F.size(strangers) > 0,
        F.concat(
            name,
            listed(strangers),
            F.lit(" of the ISR "),
            listed(isr),
            F.lit(" is no replica of "),
            listed(replicas),
        ),
    ).otherwise(F.concat(name, F.lit("the ISR "), listed(isr), F.lit(" names a broker twice")))
    led_by = F.concat(name, F.format_string("leader %d ", leader))
    slow = _recovering_long(health, name) if health else []
    return [
        *slow,
        RowRule("ISR-01", (F.size(strangers) > 0) | twice, of_replicas),
        RowRule(
            "ISR-02",
            (leader >= 0) & ~F.array_contains(isr, leader),
            F.concat(led_by, F.lit("is not in the ISR "), listed(isr)),
        ),
        RowRule(
            "ISR-03",
            (leader >= 0) & ~F.array_contains(replicas, leader),
            F.concat(led_by, F.lit("is no replica of "), listed(replicas)),
        ),
        *_members(health, name),
        *_leaderless(health, name),
    ]


def _each(health: Mapping[str, Health], name: str, sql_type: str) -> Column:
    values = {cluster: getattr(each, name) for cluster, each in health.items()}
    return by_cluster(
        {cluster: list(v) if isinstance(v, list | tuple) else v for cluster, v in values.items()}, sql_type
    )


def _members(health: Mapping[str, Health], name: Column) -> list[RowRule]:
    """ISR-04: in KRaft each member of an ISR is at work; ISR-05: in ZooKeeper each is in /brokers/ids."""
    if not health:
        return []
    isr, leader = F.col("isr"), F.col("leader")
    idle = F.array_except(isr, _each(health, "at_work", "array<int>"))
    gone = F.array_except(isr, _each(health, "brokers", "array<int>"))
    last = (leader == -1) & (F.size(isr) == 1)
    by_zookeeper = _each(health, "zookeeper", "boolean")
    kraft = F.col("source") == KRAFT
    of_the_isr = F.concat(F.lit(" of the ISR "), listed(isr))
    return [
        RowRule(
            "ISR-04",
            kraft & ~last & (F.size(idle) > 0),
            F.concat(name, listed(idle), of_the_isr, F.lit(" is not registered, fenced, or shutting down")),
        ),
        RowRule(
            "ISR-05",
            (F.col("source") == ZOOKEEPER) & by_zookeeper & (leader >= 0) & (F.size(gone) > 0),
            F.concat(name, listed(gone), of_the_isr, F.lit(" is not in /brokers/ids")),
        ),
    ]


def _leaderless(health: Mapping[str, Health], name: Column) -> list[RowRule]:
    """ISR-16: no partition is without a leader, and whether one has anybody who may become it."""
    if not health:
        return []
    isr = F.col("isr")
    elr = F.coalesce(F.col("eligible_leader_replicas"), F.array().cast("array<int>"))
    known = F.coalesce(F.col("last_known_elr"), F.array().cast("array<int>"))
    candidates = F.array_union(isr, elr)
    waiting = F.when(F.size(candidates) > 0, candidates).otherwise(known)
    alive = F.size(F.array_except("replicas", _each(health, "at_work", "array<int>"))) == 0
    kraft = (F.col("source") == KRAFT) & (F.col("leader") == -1) & isr.isNotNull()
    for_good = F.size(waiting) == 0
    though = F.when(alive, F.lit(", though all its replicas are at work")).otherwise(F.lit(""))
    return [
        RowRule(
            "ISR-16",
            kraft,
            F.when(
                for_good,
                F.concat(name, F.lit("no leader for good"), though, F.lit(": only an unclean election helps")),
            ).otherwise(F.concat(name, F.lit("no leader, waiting for one of "), listed(waiting))),
        ),
        RowRule(
            NO_LEADER_FOR_GOOD,
            kraft & for_good,
            F.concat(name, F.lit("no leader for good"), though),
        ),
    ]


def _recovering_long(health: Mapping[str, Health], name: Column) -> list[RowRule]:
    """ISR-11: a leader that recovers sends a change of the ISR as soon as a replica has caught up.

    A one-replica partition has none to wait for and stays RECOVERING for ever. The last record on the partition is not
    older than the election.
    """
    age = _each(health, "log_end_ms", "bigint") - F.col("kraft_append_time")
    recovering = (F.col("source") == KRAFT) & (F.col("leader_recovery_state") == 1) & (F.col("leader") >= 0)
    text = F.format_string("leader %d RECOVERING for %d min or longer", "leader", (age / 60_000).cast("int"))
    slow = recovering & (F.size("replicas") > 1) & (age > RECOVERING_MS)
    return [RowRule(RECOVERING_LONG, slow, F.concat(name, text))]


def under_min(partitions: DataFrame, configs: DataFrame, health: Mapping[str, Health]) -> DataFrame:
    """Partitions with a leader held against min.insync.replicas: (cluster, code, text).

    ISR-09: the ISR has fewer members. RESTART_REFUSED: it has as many as all replicas, so that acks=all is refused while one
    of them restarts.

    The topic's own configuration counts, else its leader's dynamic one, else the cluster's; what only property files tell
    is not known. No partition needs more than its replicas (`ReplicationControlManager.getTopicEffectiveMinIsr`).
    """
    topic = configs.where((F.col("resource_type") == "TOPIC") & (F.col("config") == MIN_ISR))
    own = topic.select(
        CLUSTER, "source", F.col("resource_name").alias("topic"), F.col("value").cast("int").alias("own")
    )
    values = {cluster: dict(each.min_isr) for cluster, each in health.items()}
    of_brokers = by_cluster(values, "map<string,int>") if values else F.lit(None).cast("map<string,int>")
    least = F.coalesce(
        F.col("own"), F.element_at(of_brokers, F.col("leader").cast("string")), F.element_at(of_brokers, F.lit(""))
    )
    # `least` skips nulls: where no value is known, nothing is too few.
    short = least.isNotNull() & (F.size("isr") < F.least(least, F.size("replicas")))
    every = (F.col("source") == KRAFT) & least.isNotNull() & (F.size("replicas") > 1) & (least >= F.size("replicas"))
    rows = partitions.where(F.col("leader") >= 0).join(F.broadcast(own), [CLUSTER, "source", "topic"], "left")
    text = F.concat(
        F.format_string("%s/%d: ISR ", "topic", "partition"),
        listed(F.col("isr")),
        F.format_string(", min.insync.replicas %d", least),
    )
    refused = F.format_string(
        "%s/%d: min.insync.replicas %d of %d replicas", "topic", "partition", least, F.size("replicas")
    )
    return broken(
        rows, [RowRule("ISR-09", F.coalesce(short, F.lit(False)), text), RowRule(RESTART_REFUSED, every, refused)]
    )


def between_sides(partitions: DataFrame, clusters: Sequence[str]) -> DataFrame:
    """ISR-10 and ISR-17 over the clusters whose two sides are there: (cluster, code, text)."""
    sides = partitions.where(of_clusters(clusters))
    fields = F.struct("isr", "leader_epoch")
    both = sides.groupBy(CLUSTER, "topic", "partition").agg(
        F.max(F.when(F.col("source") == ZOOKEEPER, fields)).alias("z"),
        F.max(F.when(F.col("source") == KRAFT, fields)).alias("k"),
    )
    name = F.format_string("%s/%d: ", "topic", "partition")
    reordered = (F.col("z.isr") != F.col("k.isr")) & (F.sort_array("z.isr") == F.sort_array("k.isr"))
    order = F.concat(name, listed(F.col("z.isr")), F.lit(" in ZooKeeper, "), listed(F.col("k.isr")), F.lit(" in KRaft"))
    ahead = F.col("z.leader_epoch") > F.col("k.leader_epoch")
    epochs = F.concat(
        name, F.format_string("leader epoch %d in ZooKeeper, %d in KRaft", "z.leader_epoch", "k.leader_epoch")
    )
    found = F.array(
        F.when(reordered, F.struct(F.lit(ISR_ORDER).alias("code"), order.alias("text"))),
        F.when(ahead, F.struct(F.lit("ISR-17").alias("code"), epochs.alias("text"))),
    )
    return (
        both.where(reordered | ahead)
        .select(CLUSTER, F.explode(F.array_compact(found)).alias("found"))
        .select(CLUSTER, "found.*")
    )


def fallen_epochs(now: DataFrame, earlier: DataFrame) -> DataFrame:
    """ISR-15: partitions of ZooKeeper with an epoch below the one of an earlier run: (cluster, code, text).

    Both are silver rows of ZooKeeper. A partition that was made again has another czxid, and epochs of its own.
    """
    then = earlier.select(
        CLUSTER,
        "topic",
        "partition",
        "zk_czxid",
        F.col("leader_epoch").alias("leader_epoch_then"),
        F.col("partition_epoch").alias("version_then"),
    )
    both = now.join(then, [CLUSTER, "topic", "partition", "zk_czxid"])
    leader = F.col("leader_epoch") < F.col("leader_epoch_then")
    version = F.col("partition_epoch") < F.col("version_then")
    name = F.format_string("%s/%d: ", "topic", "partition")
    text = F.when(leader, F.format_string("leader epoch %d after %d", "leader_epoch", "leader_epoch_then")).otherwise(
        F.format_string("znode version %d after %d", "partition_epoch", "version_then")
    )
    return both.where(leader | version).select(
        CLUSTER, F.lit("ISR-15").alias("code"), F.concat(name, text).alias("text")
    )


def directories(partitions: DataFrame, health: Mapping[str, Health]) -> DataFrame:
    """DIR-01 to DIR-04: replicas in a directory that is lost or not their broker's, or known below the level for it; in one
    that is cordoned; and those whose directory nobody has named for an hour, where their broker has several.

    Directories are known from metadata.version 3.7-IV2 (17) on; a broker that names none is not asked.
    """
    rows = partitions.where((F.col("source") == KRAFT) & (F.size("directories") == F.size("replicas")))
    of_brokers = {
        cluster: {str(broker): list(mine) for broker, mine in each.directories.items()}
        for cluster, each in health.items()
    }
    known = by_cluster(of_brokers, "map<string,array<string>>") if of_brokers else F.lit(None)
    cordoned = {c: sorted({one for mine in each.cordoned.values() for one in mine}) for c, each in health.items()}
    closed = by_cluster(cordoned, "array<string>") if cordoned else F.lit(None).cast("array<string>")
    end = _each(health, "log_end_ms", "bigint") if health else F.lit(None).cast("bigint")
    level = _each(health, "level", "int") if health else F.lit(None).cast("int")
    each = rows.select(
        CLUSTER,
        "topic",
        "partition",
        level.alias("level"),
        closed.alias("closed"),
        (end - F.col("kraft_append_time")).alias("age"),
        F.explode(F.arrays_zip("replicas", "directories")).alias("one"),
    )
    pair = each.select(
        CLUSTER,
        "level",
        "closed",
        "age",
        F.format_string("%s/%d: ", "topic", "partition").alias("name"),
        F.col("one.replicas").alias("broker"),
        F.col("one.directories").alias("directory"),
    ).withColumn("mine", F.element_at(known, F.col("broker").cast("string")) if of_brokers else F.lit(None))
    reserved = F.col("directory").isin(UNASSIGNED, LOST, MIGRATING)
    early = (F.col("level") < DIRECTORIES_FROM) & (F.col("directory") != MIGRATING)
    lost = (F.col("level") >= DIRECTORIES_FROM) & (F.col("directory") == LOST)
    strange = (
        (F.col("level") >= DIRECTORIES_FROM)
        & ~reserved
        & (F.size("mine") > 0)
        & ~F.array_contains("mine", F.col("directory"))
    )
    text = F.when(lost, F.format_string("%sbroker %d's directory is lost", "name", "broker")).otherwise(
        F.format_string("%sdirectory %s is none of broker %d's", "name", "directory", "broker")
    )
    unnamed = F.col("directory").isin(UNASSIGNED, MIGRATING) & (F.size("mine") > 1) & (F.col("age") > HOUR)
    silent = F.coalesce((F.col("level") >= DIRECTORIES_FROM) & unnamed, F.lit(False))
    shut = F.coalesce(F.array_contains("closed", F.col("directory")), F.lit(False))
    nowhere = F.format_string("%sbroker %d has not said which of its directories", "name", "broker")
    behind = F.format_string("%sbroker %d's directory %s is cordoned", "name", "broker", "directory")
    too_early = F.format_string("%sbroker %d has directory %s", "name", "broker", "directory")
    found = F.array(
        F.when(early, F.struct(F.lit("DIR-01").alias("code"), too_early.alias("text"))),
        F.when(lost | strange, F.struct(F.lit(DIRECTORY_LOST).alias("code"), text.alias("text"))),
        F.when(silent, F.struct(F.lit(DIRECTORY_UNKNOWN).alias("code"), nowhere.alias("text"))),
        F.when(shut, F.struct(F.lit(CORDONED).alias("code"), behind.alias("text"))),
    )
    return (
        pair.where(early | lost | strange | silent | shut)
        .select(CLUSTER, F.explode(F.array_compact(found)).alias("found"))
        .select(CLUSTER, "found.*")
    )


def unclean_leaderless(partitions: DataFrame, configs: DataFrame, health: Mapping[str, Health]) -> DataFrame:
    """CFG-02: partitions without a leader though unclean elections are allowed for them: (cluster, code, text)."""
    allowed = configs.where(
        (F.col("source") == KRAFT) & (F.col("resource_type") == "TOPIC") & (F.col("config") == UNCLEAN)
    ).select(CLUSTER, F.col("resource_name").alias("topic"), F.col("value").rlike(r"(?i)\Atrue\z").alias("own"))
    everywhere = _each(health, "unclean", "boolean") if health else F.lit(False)
    rows = partitions.where((F.col("source") == KRAFT) & (F.col("leader") == -1))
    joined = rows.join(F.broadcast(allowed), [CLUSTER, "topic"], "left")
    text = F.format_string("%s/%d has no leader, and unclean elections are allowed", "topic", "partition")
    return joined.where(F.coalesce(F.col("own"), everywhere)).select(
        CLUSTER, F.lit(UNCLEAN_LEADERLESS).alias("code"), text.alias("text")
    )


def removed_config() -> RowRule:
    """CFG-01: a configuration that 4.0 removed, in KRaft."""
    text = F.format_string("%s %s: %s", "resource_type", "resource_name", "config")
    return RowRule("CFG-01", (F.col("source") == KRAFT) & F.col("config").isin(list(REMOVED_IN_4_0)), text)
