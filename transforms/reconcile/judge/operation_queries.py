"""Rules about a KRaft cluster in operation (S§8.6): restarts, reassignments, racks, directories, share groups, security.

They are what single rows show, as column expressions over all clusters of a run; the checks of the group `operation` and
those of security judge what they find.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from schemas.checks import KRAFT
from schemas.checks.codes import (
    CIDR_DENY,
    DEAD_LETTERS,
    ELR_NO_REPLICA,
    ELR_WAITING,
    FEW_ITERATIONS,
    ONE_RACK,
    REASSIGNING,
    REASSIGNING_LONG,
    RESTART_INTERNAL,
    RESTART_OFFLINE,
    SHARE_STATE,
    THROTTLE_LEFT,
    TOKEN_EXPIRED,
)
from transforms.clusters import CLUSTER, by_cluster
from transforms.reconcile.judge.kraft_queries import HOUR, Health, listed
from transforms.reconcile.judge.rules import RowRule

SHARE_STATE_TOPIC = "__share_group_state"
# Topics that Kafka itself makes and whose partitions every client of a kind needs.
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", SHARE_STATE_TOPIC, "__remote_log_metadata")
# KIP-1191: the topic that a share group sends what it could not process to.
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
# The replicas that a reassignment with a throttle slows down. A broker's rate alone slows down nobody.
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
# `ScramMechanism.minIterations`, of both mechanisms.
LEAST_ITERATIONS = 4096
# From 4.4-IV1 on the host of an ACL may be a range of addresses (KIP-1276); below it is compared as a text.
CIDR_FROM = 32
# A reassignment whose partition has no record for so long does not come to its end by itself.
REASSIGNING_MS = 24 * HOUR


def partition_rules(health: Mapping[str, Health]) -> list[RowRule]:
    """Rules of one partition's row in KRaft; `health` is by cluster."""
    if not health:
        return []
    name = F.format_string("%s/%d: ", "topic", "partition")
    return [*_restart_rules(name), *_reassignment_rules(health, name), *_state_rules(health, name)]


def _kraft() -> Column:
    return F.col("source") == KRAFT


def _each(health: Mapping[str, Health], name: str, sql_type: str) -> Column:
    return by_cluster({cluster: getattr(each, name) for cluster, each in health.items()}, sql_type)


def _restart_rules(name: Column) -> list[RowRule]:
    """A partition with one replica has no leader while that broker restarts."""
    alone = _kraft() & (F.size("replicas") == 1) & (F.col("leader") >= 0)
    internal = F.col("topic").isin(*INTERNAL_TOPICS)
    text = F.concat(name, F.format_string("its only replica is on broker %d", F.col("replicas")[0]))
    return [RowRule(RESTART_INTERNAL, alone & internal, text), RowRule(RESTART_OFFLINE, alone & ~internal, text)]


def _reassignment_rules(health: Mapping[str, Health], name: Column) -> list[RowRule]:
    moving = _kraft() & (F.size("adding_replicas") + F.size("removing_replicas") > 0)
    age = _each(health, "log_end_ms", "bigint") - F.col("kraft_append_time")
    steps = F.concat(F.lit("adding "), listed(F.col("adding_replicas")), F.lit(", removing "))
    what = F.concat(name, steps, listed(F.col("removing_replicas")))
    hours = F.format_string(", without any change for %d h", (age / HOUR).cast("int"))
    return [
        RowRule(REASSIGNING, moving, what),
        RowRule(REASSIGNING_LONG, moving & (age > REASSIGNING_MS), F.concat(what, hours)),
    ]


def _state_rules(health: Mapping[str, Health], name: Column) -> list[RowRule]:
    elr = F.coalesce(F.col("eligible_leader_replicas"), F.array().cast("array<int>"))
    last_known = F.coalesce(F.col("last_known_elr"), F.array().cast("array<int>"))
    strangers = F.array_except(F.array_union(elr, last_known), F.col("replicas"))
    no_leader = _kraft() & (F.col("leader") == -1)
    waiting = no_leader & (F.size("isr") == 0) & (F.size(elr) > 0)
    racks = by_cluster({cluster: _by_text(each.racks) for cluster, each in health.items()}, "map<string,string>")
    of_replicas = F.transform("replicas", lambda replica: F.element_at(racks, replica.cast("string")))
    known = F.size(F.array_compact(of_replicas)) == F.size("replicas")
    several = by_cluster({cluster: len(set(each.racks.values())) > 1 for cluster, each in health.items()}, "boolean")
    together = _kraft() & several & (F.size("replicas") > 1) & known & (F.size(F.array_distinct(of_replicas)) == 1)
    return [
        RowRule(ELR_WAITING, waiting, F.concat(name, F.lit("the ISR is empty, waiting for one of "), listed(elr))),
        RowRule(
            ELR_NO_REPLICA,
            _kraft() & (F.size(strangers) > 0),
            F.concat(name, F.lit("ELR or last known leaders that are no replicas: "), listed(strangers)),
        ),
        RowRule(SHARE_STATE, no_leader & (F.col("topic") == SHARE_STATE_TOPIC), F.concat(name, F.lit("no leader"))),
        RowRule(ONE_RACK, together, F.concat(name, F.lit("all replicas are in rack "), of_replicas[0])),
    ]


def _by_text(racks: Mapping[int, str]) -> dict[str, str]:
    return {str(broker): rack for broker, rack in racks.items()}


def config_rules(health: Mapping[str, Health]) -> list[RowRule]:
    """Throttles of a cluster in which no partition is being reassigned."""
    if not health:
        return []
    text = F.format_string("%s %s: %s", "resource_type", "resource_name", "config")
    idle = ~F.coalesce(_each(health, "reassigning", "boolean"), F.lit(True))
    return [RowRule(THROTTLE_LEFT, _kraft() & F.col("config").isin(*THROTTLES) & idle, text)]


def acl_rules(health: Mapping[str, Health]) -> list[RowRule]:
    """A DENY for a range of addresses below the level that knows ranges: it denies nobody."""
    if not health:
        return []
    low = F.coalesce(_each(health, "level", "int") < CIDR_FROM, F.lit(False))
    ranged = _kraft() & F.col("host").contains("/") & (F.col("permission") == "DENY")
    text = F.format_string("%s %s: DENY %s from %s", "resource_type", "resource_name", "principal", "host")
    return [RowRule(CIDR_DENY, ranged & low, text)]


def credential_rules() -> list[RowRule]:
    """SCRAM credentials with fewer iterations than Kafka accepts for a new one."""
    few = F.col("iterations") < LEAST_ITERATIONS
    text = F.format_string("%s of %s: %d iterations", "mechanism", "user", "iterations")
    return [RowRule(FEW_ITERATIONS, _kraft() & few, text)]


def token_rules(health: Mapping[str, Health]) -> list[RowRule]:
    """Delegation tokens that had expired an hour before the log's end: the controller removes them every hour."""
    if not health:
        return []
    age = _each(health, "log_end_ms", "bigint") - F.col("expiry_timestamp")
    text = F.format_string("token %s expired %d h before the log's end", "token_id", (age / HOUR).cast("int"))
    return [RowRule(TOKEN_EXPIRED, _kraft() & (age > 2 * HOUR), text)]


def dead_letters(partitions: DataFrame, configs: DataFrame) -> DataFrame:
    """Dead letter topics that a share group names and that are not there, or lack a leader: (cluster, code, text)."""
    named = configs.where(_kraft() & (F.col("config") == DEAD_LETTER_TOPIC) & F.col("value").isNotNull()).select(
        CLUSTER, F.col("resource_name").alias("group"), F.col("value").alias("topic")
    )
    topics = partitions.where(_kraft()).groupBy(CLUSTER, "topic").agg(F.count_if(F.col("leader") == -1).alias("lost"))
    asked = topics.join(F.broadcast(named.select(CLUSTER, "topic").distinct()), [CLUSTER, "topic"], "left_semi")
    found = named.where("topic <> ''").join(asked, [CLUSTER, "topic"], "left")
    missing = F.col("lost").isNull()
    text = F.when(missing, F.format_string("group %s: its dead letter topic %s does not exist", "group", "topic"))
    told = text.otherwise(F.format_string("group %s: %d partitions of %s have no leader", "group", "lost", "topic"))
    return found.where(missing | (F.col("lost") > 0)).select(
        CLUSTER, F.lit(DEAD_LETTERS).alias("code"), told.alias("text")
    )
