"""Counts and rules about KRaft's own health (S§8.3, S§8.4), as expressions over the rows of one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from schemas.checks import KRAFT, ZOOKEEPER
from schemas.checks.codes import (
    ISR_ORDER,
    NO_LEADER_FOR_GOOD,
    RECOVERING_LONG,
    RESTART_REFUSED,
    UNCLEAN_LEADERLESS,
)
from transforms.frames import except_ids, listed
from transforms.isr.violations import Present, history_violations
from transforms.reconcile.judge.directory_rules import directories
from transforms.reconcile.judge.partition_health import lacking, named, staying
from transforms.reconcile.judge.rules import RowRule, broken, said

HOUR = 3_600_000
REGISTER_BROKER = "REGISTER_BROKER_RECORD"
MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"
# Dynamic broker configurations that checks need: they are few, at most one row per broker.
ASKED_CONFIGS = (MIN_ISR, UNCLEAN)
# Topics' configurations that 4.0 removed (KIP-724, KIP-937): a topic that still has one can't be changed any more, because
# all of it is validated. A broker with such a configuration can: only the names that a change sets are.
REMOVED_IN_4_0 = ("message.downconversion.enable", "message.format.version", "message.timestamp.difference.max.ms")
# The least `segment.bytes` of a topic from 4.1 on (KIP-1030, PR 19371).
LEAST_SEGMENT_BYTES = 1 << 20
# A leader that has not reported a grown ISR for this long is not recovering (ISR-11).
RECOVERING_MS = 30 * 60_000


@dataclass(frozen=True)
class Health:
    """Known facts of a cluster that the rules below need.

    `brokers` are those in `/brokers/ids`, `directories` the log directory ids of each broker that names any, `cordoned` those
    that take no new replica, `racks` the rack of each broker that names one, `min_isr` the dynamic min.insync.replicas of
    brokers on the side that decides the partitions, `deciding` (key '' for the cluster's own), `static_min_isr` the largest in
    brokers' property files, None without any;
    `capped_min_isr` is false in releases in which a partition may need more members of its ISR than it has replicas.
    `elr_off` is true where eligible leader replicas are known to be turned off,
    `endless_swaps` in releases in which a reassignment that both adds and removes a replica never completes.
    `unclean` is true when unclean elections are on for the whole cluster, `leaderless` when KRaft has partitions without a
    leader, `compared` when the two sides are, `zookeeper` while ZooKeeper decides the partitions. `level` is the finalised
    metadata.version, `present` what the partitions' history is compared with.
    """

    brokers: Sequence[int] = ()
    directories: Mapping[int, Sequence[str]] = field(default_factory=dict)
    deciding: str = KRAFT
    min_isr: Mapping[str, int] = field(default_factory=dict)
    static_min_isr: int | None = None
    capped_min_isr: bool = True
    elr_off: bool = False
    endless_swaps: bool = False
    cordoned: Mapping[int, Sequence[str]] = field(default_factory=dict)
    racks: Mapping[int, str] = field(default_factory=dict)
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


def broker_configs(configs: pl.DataFrame) -> pl.DataFrame:
    """Dynamic broker configurations that checks need: source, broker, name, value."""
    mine = (pl.col("resource_type") == "BROKER") & pl.col("config").is_in(ASKED_CONFIGS)
    return configs.filter(mine & pl.col("value").is_not_null()).select(
        "source", pl.col("resource_name").alias("broker"), pl.col("config").alias("name"), "value"
    )


def out_of_sync(partitions: pl.DataFrame) -> pl.DataFrame:
    """Replicas that are missing from their ISR (`lacking`), by broker: source, broker_id, replicas."""
    missing = partitions.select("source", lacking().alias("broker_id")).filter(pl.col("broker_id").list.len() > 0)
    counts = missing.explode("broker_id").group_by("source", "broker_id").agg(pl.len().alias("replicas"))
    return counts.sort("source", "broker_id")


def partition_health(partitions: pl.DataFrame) -> pl.DataFrame:
    """Counts over each side's partitions with a state: source, partitions, leaderless, short, recovering, moved.

    `short` lack a replica in the ISR (`lacking`), `recovering` have several replicas and have not recovered from an election
    that can lose data, `moved` are led by another replica than the preferred one.
    """
    known = partitions.filter(pl.col("isr").is_not_null() & pl.col("leader").is_not_null())
    leader, replicas = pl.col("leader"), pl.col("replicas").list.len()
    recovering = (pl.col("leader_recovery_state") == 1) & (replicas > 1)
    counts = known.group_by("source").agg(
        pl.len().alias("partitions"),
        (leader == -1).sum().alias("leaderless"),
        (lacking().list.len() > 0).sum().alias("short"),
        recovering.sum().alias("recovering"),
        ((leader >= 0) & (leader != pl.col("replicas").list.first())).sum().alias("moved"),
    )
    return counts.sort("source")


def violations(
    partitions: pl.DataFrame, configs: pl.DataFrame, history: pl.DataFrame | None, health: Health
) -> Iterator[pl.DataFrame]:
    """What more than one row, or a row's lists, show of KRaft's health: frames of VIOLATIONS.

    `partitions` and `configs` are silver rows of both sides, `history` the changes of the log's partitions
    (`transforms.isr.violations.JUDGED`), None without a log.
    """
    kraft = partitions.filter(pl.col("source") == KRAFT)
    if health.level is not None:
        yield directories(
            kraft,
            health.level,
            health.directories,
            {one for mine in health.cordoned.values() for one in mine},
            health.log_end_ms,
        )
    # The other side's are a copy, or what they were when the sides parted.
    deciding = partitions.filter(pl.col("source") == health.deciding)
    yield under_min(deciding, configs, health.min_isr, health.static_min_isr, capped=health.capped_min_isr)
    if health.compared:
        yield between_sides(partitions)
    if health.log_end_ms is not None and history is not None:
        yield history_violations(history, kraft, health.present)
    if health.leaderless:
        yield unclean_leaderless(kraft, configs, health.at_work, everywhere=health.unclean)


def _isr_rules() -> list[RowRule]:
    """ISR-01 to ISR-03, of both sides."""
    name, isr, replicas, leader = named(), pl.col("isr"), pl.col("replicas"), pl.col("leader")
    strangers = except_ids(isr, replicas)
    foreign = pl.concat_str(
        name,
        listed(strangers),
        pl.lit(" of the ISR "),
        listed(isr),
        pl.lit(" is not a replica of "),
        listed(replicas),
    )
    repeated = pl.concat_str(name, pl.lit("the ISR "), listed(isr), pl.lit(" names a broker twice"))
    twice = isr.list.n_unique() < isr.list.len()
    led_by = pl.concat_str(name, said("leader {} ", leader))
    return [
        RowRule(
            "ISR-01",
            (strangers.list.len() > 0) | twice,
            pl.when(strangers.list.len() > 0).then(foreign).otherwise(repeated),
        ),
        RowRule(
            "ISR-02",
            (leader >= 0) & ~isr.list.contains(leader),
            pl.concat_str(led_by, pl.lit("is not in the ISR "), listed(isr)),
        ),
        RowRule(
            "ISR-03",
            (leader >= 0) & ~replicas.list.contains(leader),
            pl.concat_str(led_by, pl.lit("is not a replica of "), listed(replicas)),
        ),
    ]


def zookeeper_rules(health: Health) -> list[RowRule]:
    """What one partition's row of ZooKeeper shows. ISR-05: each member of an ISR is in /brokers/ids."""
    if not health.zookeeper:
        return _isr_rules()
    gone = except_ids("isr", health.brokers)
    text = pl.concat_str(named(), listed(gone), _of_the_isr(), pl.lit(" is not in /brokers/ids"))
    return [*_isr_rules(), RowRule("ISR-05", (pl.col("leader") >= 0) & (gone.list.len() > 0), text)]


def kraft_rules(health: Health) -> list[RowRule]:
    """What one partition's row of KRaft shows. ISR-04: each member of an ISR is running."""
    idle = except_ids("isr", health.at_work)
    last = (pl.col("leader") == -1) & (pl.col("isr").list.len() == 1)
    why = pl.lit(" is not registered, fenced, or shutting down")
    text = pl.concat_str(named(), listed(idle), _of_the_isr(), why)
    return [
        *_recovering_long(health.log_end_ms),
        *_isr_rules(),
        RowRule("ISR-04", ~last & (idle.list.len() > 0), text),
        *_leaderless(health.at_work, elr_off=health.elr_off),
    ]


def _of_the_isr() -> pl.Expr:
    return pl.concat_str(pl.lit(" of the ISR "), listed("isr"))


def waits_for(eligible: pl.Expr, *, elr_off: bool) -> pl.Expr:
    """The end of a sentence on a partition that waits for a member of its ISR or ELR."""
    waits = pl.concat_str(pl.lit("waiting for one of "), listed(eligible))
    if not elr_off:
        return waits
    fading = (pl.col("isr").list.len() == 0) & (eligible.list.len() > 0)
    since = ", which a controller no longer elects if it started after eligible leader replicas were turned off"
    return pl.when(fading).then(pl.concat_str(waits, pl.lit(since))).otherwise(waits)


def forgotten(eligible: pl.Expr, at_work: Sequence[int], *, elr_off: bool) -> pl.Expr:
    """Whether the active controller has lost the ELR: a member runs and was not elected.

    While eligible leader replicas are off, a checkpoint leaves the lists out (`PartitionRegistration.toRecord`), so that a controller
    that starts with one has none.
    """
    runs = eligible.list.set_intersection(pl.lit(list(at_work), pl.List(pl.Int32))).list.len() > 0
    return pl.lit(elr_off) & (pl.col("isr").list.len() == 0) & runs


def _leaderless(at_work: Sequence[int], *, elr_off: bool) -> list[RowRule]:
    """ISR-16: every partition has a leader; for one without, whether any replica may become leader.

    Kafka elects a replica of the ISR or the ELR; only if both are empty the last known leader (`PartitionChangeBuilder`). Either
    list may have a broker that can't lead: one that is not a replica, or -1 (docs/faults.md).
    """
    isr, none = pl.col("isr"), pl.lit([], pl.List(pl.Int32))
    candidates = isr.list.set_union(pl.col("eligible_leader_replicas").fill_null(none))
    known = except_ids(pl.col("last_known_elr").fill_null(none), [-1])
    able = except_ids(candidates, except_ids(candidates, "replicas"))
    # The last known leader is elected only while the feature is on (`canElectLastKnownLeader`).
    waiting = pl.when(candidates.list.len() > 0).then(able).otherwise(none if elr_off else known)
    alive = except_ids("replicas", at_work).list.len() == 0
    leaderless = (pl.col("leader") == -1) & isr.is_not_null()
    for_good = (waiting.list.len() == 0) | forgotten(able, at_work, elr_off=elr_off)
    though = pl.when(alive).then(pl.lit(", although all its replicas are running")).otherwise(pl.lit(""))
    lost = pl.concat_str(named(), pl.lit("no leader for good"), though)
    sentence = pl.concat_str(lost, pl.lit(": only an unclean election helps"))
    waits = pl.concat_str(named(), pl.lit("no leader, "), waits_for(waiting, elr_off=elr_off))
    return [
        RowRule("ISR-16", leaderless, pl.when(for_good).then(sentence).otherwise(waits)),
        RowRule(NO_LEADER_FOR_GOOD, leaderless & for_good, lost),
    ]


def _recovering_long(log_end_ms: int | None) -> list[RowRule]:
    """ISR-11: a leader that recovers sends a change of the ISR as soon as a replica has caught up.

    A one-replica partition has none to wait for and stays RECOVERING forever. The last record on the partition is not older
    than the election.
    """
    if log_end_ms is None:
        return []
    age = log_end_ms - pl.col("kraft_append_time")
    recovering = (pl.col("leader_recovery_state") == 1) & (pl.col("leader") >= 0)
    text = said("{}/{}: leader {} RECOVERING for {} min or longer", "topic", "partition", "leader", age // 60_000)
    return [RowRule(RECOVERING_LONG, recovering & (pl.col("replicas").list.len() > 1) & (age > RECOVERING_MS), text)]


def under_min(
    partitions: pl.DataFrame,
    configs: pl.DataFrame,
    of_brokers: Mapping[str, int],
    static: int | None = None,
    *,
    capped: bool = True,
) -> pl.DataFrame:
    """Partitions with a leader compared with min.insync.replicas: columns VIOLATIONS.

    ISR-09: the ISR has fewer members. RESTART_REFUSED: it has as many as all replicas, so that acks=all is refused while one
    of them restarts; replicas that a reassignment is adding are not in sync yet and can't stand in.

    The topic's own configuration counts, else its leader's dynamic one, else the cluster's (key '' of `of_brokers`), else `static`, the
    largest of property files: after a restart another broker leads. Without any it is not known. `capped`: from Kafka 3.7 on no
    partition needs more than its replicas (`Partition.effectiveMinIsr`).
    """
    topic = configs.filter((pl.col("resource_type") == "TOPIC") & (pl.col("config") == MIN_ISR))
    # `ConfigDef.parseType` trims what it parses.
    own = pl.col("value").str.strip_chars().cast(pl.Int32, strict=False).alias("own")
    topic = topic.select("source", pl.col("resource_name").alias("topic"), own)
    leaders = pl.col("leader").cast(pl.String).replace_strict(of_brokers, default=None, return_dtype=pl.Int32)
    cluster, of_files = (pl.lit(value, pl.Int32) for value in (of_brokers.get(""), static))
    least = pl.coalesce("own", leaders, cluster, of_files).alias("least")
    led = partitions.filter(pl.col("leader") >= 0).join(topic, on=["source", "topic"], how="left")
    # Where no value is known, nothing is too few.
    rows = led.with_columns(least).filter(pl.col("least").is_not_null())
    replicas, members = (pl.col(name).list.len().cast(pl.Int32) for name in ("replicas", "isr"))
    steady = staying().list.len().cast(pl.Int32)
    every = (pl.col("source") == KRAFT) & (steady > 1) & (pl.col("least") >= steady)
    text = pl.concat_str(
        said("{}/{}: ISR ", "topic", "partition"), listed("isr"), said(", min.insync.replicas {}", "least")
    )
    refused = said("{}/{}: min.insync.replicas {} of {} replicas", "topic", "partition", "least", steady)
    return broken(
        rows,
        [
            RowRule("ISR-09", members < (pl.min_horizontal("least", replicas) if capped else pl.col("least")), text),
            RowRule(RESTART_REFUSED, every, refused),
        ],
    )


def between_sides(partitions: pl.DataFrame) -> pl.DataFrame:
    """ISR-10 and ISR-17: the two sides' ISRs in another order, and ZooKeeper's leader epoch ahead: columns VIOLATIONS."""
    of_zookeeper, of_kraft = (_one_each(partitions.filter(pl.col("source") == side)) for side in (ZOOKEEPER, KRAFT))
    both = of_zookeeper.join(of_kraft, on=["topic", "partition"], suffix="_kraft")
    known = both.filter(pl.col("isr").is_not_null() & pl.col("isr_kraft").is_not_null())
    other = known.filter(pl.col("isr") != pl.col("isr_kraft"))
    order = pl.concat_str(named(), listed("isr"), pl.lit(" in ZooKeeper, "), listed("isr_kraft"), pl.lit(" in KRaft"))
    epochs = said(
        "{}/{}: leader epoch {} in ZooKeeper, {} in KRaft", "topic", "partition", "leader_epoch", "leader_epoch_kraft"
    )
    reordered = pl.col("isr").list.sort() == pl.col("isr_kraft").list.sort()
    ahead = pl.col("leader_epoch") > pl.col("leader_epoch_kraft")
    return pl.concat(
        [
            broken(other, [RowRule(ISR_ORDER, reordered, order)]),
            broken(both, [RowRule("ISR-17", ahead, epochs)]),
        ]
    )


def _one_each(partitions: pl.DataFrame) -> pl.DataFrame:
    """One row of each partition of a side: of those that are there twice, the one whose ISR and leader epoch are greatest."""
    rows = partitions.select("topic", "partition", "isr", "leader_epoch")
    twice = rows.select(pl.struct("topic", "partition").is_duplicated()).to_series()
    if not twice.any():
        return rows
    ordered = sorted(rows.filter(twice).to_dicts(), key=lambda row: (_rank(row["isr"]), _rank(row["leader_epoch"])))
    one_each = {(row["topic"], row["partition"]): row for row in ordered}
    return pl.concat([rows.filter(~twice), pl.DataFrame([*one_each.values()], schema=rows.schema)])


def _rank(value: object) -> tuple[object, ...]:
    """Nothing comes before anything."""
    return () if value is None else (value,)


def fallen_epochs(now: pl.DataFrame, earlier: pl.DataFrame) -> pl.DataFrame:
    """ISR-15: partitions of ZooKeeper with an epoch below the one of an earlier run: columns VIOLATIONS.

    Both are silver rows of ZooKeeper. A partition that was made again has another czxid, and epochs of its own.
    """
    both = now.join(earlier, on=["topic", "partition", "zk_czxid"], suffix="_then")
    leader = pl.col("leader_epoch") < pl.col("leader_epoch_then")
    version = pl.col("partition_epoch") < pl.col("partition_epoch_then")
    by_leader = said("leader epoch {} after {}", "leader_epoch", "leader_epoch_then")
    by_version = said("znode version {} after {}", "partition_epoch", "partition_epoch_then")
    text = pl.concat_str(named(), pl.when(leader).then(by_leader).otherwise(by_version))
    return broken(both, [RowRule("ISR-15", leader | version, text)])


def unclean_leaderless(
    partitions: pl.DataFrame, configs: pl.DataFrame, at_work: Sequence[int], *, everywhere: bool
) -> pl.DataFrame:
    """CFG-02: KRaft's partitions without a leader though unclean elections are allowed for them: columns VIOLATIONS.

    A replica is running: else there is nobody to elect (`PartitionChangeBuilder.electAnyLeader`). `everywhere` is true if the
    cluster allows them for topics without their own setting.
    """
    of_topics = (pl.col("resource_type") == "TOPIC") & (pl.col("config") == UNCLEAN)
    own = configs.filter((pl.col("source") == KRAFT) & of_topics).select(
        pl.col("resource_name").alias("topic"),
        (pl.col("value").str.strip_chars().str.to_lowercase() == "true").alias("own"),
    )
    idle = except_ids("replicas", at_work).list.len() == pl.col("replicas").list.len()
    rows = partitions.filter((pl.col("leader") == -1) & ~idle).join(own, on="topic", how="left")
    text = said("{}/{} has no leader, and unclean elections are allowed", "topic", "partition")
    return broken(rows, [RowRule(UNCLEAN_LEADERLESS, pl.col("own").fill_null(everywhere), text)])


def topic_config_rules() -> list[RowRule]:
    """CFG-01 and CFG-04: a topic's configuration in KRaft that 4.0 removed, or whose value 4.1 no longer takes."""
    of_topic = (pl.col("source") == KRAFT) & (pl.col("resource_type") == "TOPIC")
    removed = said("topic {}: {}", "resource_name", "config")
    size = pl.col("value").str.strip_chars().cast(pl.Int64, strict=False)
    small = said(
        f"topic {{}}: segment.bytes is {{}}, and Kafka 4.1 and later start with {LEAST_SEGMENT_BYTES} or more only",
        "resource_name",
        "value",
    )
    return [
        RowRule("CFG-01", of_topic & pl.col("config").is_in(REMOVED_IN_4_0), removed),
        RowRule("CFG-04", of_topic & (pl.col("config") == "segment.bytes") & (size < LEAST_SEGMENT_BYTES), small),
    ]
