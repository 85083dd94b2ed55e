"""Rules about a KRaft cluster in operation (S§8.6): restarts, reassignments, racks, directories, share groups, security.

They are what single rows show, as expressions over the rows of one cluster; the checks of the group `operation` and those of
security judge what they find.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from schemas.checks import KRAFT
from schemas.checks.codes import (
    ACL_PRINCIPAL,
    ACL_TWICE,
    CIDR_DENY,
    DEAD_LETTER_MISSING,
    DEAD_LETTER_PREFIX,
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
from schemas.entities.acls import ACLS
from transforms.frames import except_ids, listed
from transforms.properties import DEAD_LETTERS_CREATED
from transforms.reconcile.judge.kraft_queries import HOUR, Health, forgotten, waits_for
from transforms.reconcile.judge.partition_health import moving, named, staying
from transforms.reconcile.judge.rules import RowRule, broken, said

SHARE_STATE_TOPIC = "__share_group_state"
# Topics that Kafka itself makes and whose partitions every client of a kind needs.
INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", SHARE_STATE_TOPIC, "__remote_log_metadata")
# KIP-1191: the topic for records that a share group could not process.
DEAD_LETTER_TOPIC = "errors.deadletterqueue.topic.name"
# The required setting of that topic, and those of the cluster: whether brokers create it, and the prefix of its name.
DEAD_LETTERS_ENABLED = "errors.deadletterqueue.group.enable"
DEAD_LETTERS_PREFIX = "errors.deadletterqueue.topic.name.prefix"
DEFAULT_PREFIX = "dlq."
# The replicas that a reassignment with a throttle slows down. A broker's rate alone has no effect.
THROTTLES = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
# `ScramMechanism.minIterations`, of both mechanisms.
LEAST_ITERATIONS = 4096
# From 4.4-IV1 on the host of an ACL may be a range of addresses (KIP-1276); below it is compared as a text.
CIDR_FROM = 32
# A reassignment whose partition has had no record for this long does not finish on its own.
REASSIGNING_MS = 24 * HOUR


def partition_rules(health: Health) -> list[RowRule]:
    """Rules of one partition's row in KRaft."""
    return [
        *_restart_rules(),
        *_reassignment_rules(health.log_end_ms, endless_swaps=health.endless_swaps),
        *_state_rules(health),
        *_rack_rules(health.racks),
    ]


def _kraft() -> pl.Expr:
    return pl.col("source") == KRAFT


def _restart_rules() -> list[RowRule]:
    """A partition with one replica has no leader while that broker restarts; one that is being added does not count yet."""
    replicas = staying()
    alone = (replicas.list.len() == 1) & (pl.col("leader") >= 0)
    internal = pl.col("topic").is_in(INTERNAL_TOPICS)
    which = pl.when(pl.col("replicas").list.len() > 1).then(pl.lit("its only replica that is not being added"))
    only = which.otherwise(pl.lit("its only replica"))
    text = said("{}/{}: {} is on broker {}", "topic", "partition", only, replicas.list.first())
    return [RowRule(RESTART_INTERNAL, alone & internal, text), RowRule(RESTART_OFFLINE, alone & ~internal, text)]


def _reassignment_rules(log_end_ms: int | None, *, endless_swaps: bool) -> list[RowRule]:
    """A second reassignment can leave a replica both adding and removing: it must be in the ISR, and does not count there (S§3.3)."""
    steps = [pl.lit("adding "), listed("adding_replicas"), pl.lit(", removing "), listed("removing_replicas")]
    what = pl.concat_str(named(), *steps)
    rules = [RowRule(REASSIGNING, moving(), what)]
    both = pl.col("adding_replicas").list.set_intersection("removing_replicas")
    stuck = pl.lit(endless_swaps) & (both.list.len() > 0)
    never = pl.concat_str(what, pl.lit(": "), listed(both), pl.lit(" is both, so that it never completes"))
    rules.append(RowRule(REASSIGNING_LONG, stuck, never))
    if log_end_ms is not None:
        age = log_end_ms - pl.col("kraft_append_time")
        hours = said(", no change in the {} h before the log's end", age // HOUR)
        rules.append(RowRule(REASSIGNING_LONG, moving() & ~stuck & (age > REASSIGNING_MS), pl.concat_str(what, hours)))
    return rules


def _state_rules(health: Health) -> list[RowRule]:
    none = pl.lit([], pl.List(pl.Int32))
    elr, last_known = (pl.col(name).fill_null(none) for name in ("eligible_leader_replicas", "last_known_elr"))
    strangers = except_ids(elr.list.set_union(last_known), "replicas")
    no_leader = pl.col("leader") == -1
    eligible = except_ids(elr, strangers)
    waiting = no_leader & (pl.col("isr").list.len() == 0) & (eligible.list.len() > 0)
    waiting &= ~forgotten(eligible, health.at_work, elr_off=health.elr_off)
    no_replicas = pl.lit("ELR or last known leaders that are not replicas: ")
    return [
        RowRule(
            ELR_WAITING,
            waiting,
            pl.concat_str(named(), pl.lit("the ISR is empty, "), waits_for(eligible, elr_off=health.elr_off)),
        ),
        RowRule(ELR_NO_REPLICA, strangers.list.len() > 0, pl.concat_str(named(), no_replicas, listed(strangers))),
        RowRule(
            SHARE_STATE,
            no_leader & (pl.col("topic") == SHARE_STATE_TOPIC),
            pl.concat_str(named(), pl.lit("no leader")),
        ),
    ]


def _rack_rules(racks: Mapping[int, str]) -> list[RowRule]:
    """All replicas in one rack, if the racks of all are known and the cluster has several."""
    numbers = {rack: number for number, rack in enumerate(sorted(set(racks.values())))}
    if len(numbers) < 2:
        return []
    replicas = pl.col("replicas")
    places = {broker: numbers[rack] for broker, rack in racks.items()}
    of_replicas = replicas.list.eval(pl.element().replace_strict(places, default=None, return_dtype=pl.Int32))
    known = of_replicas.list.drop_nulls().list.len() == replicas.list.len()
    together = (replicas.list.len() > 1) & known & (of_replicas.list.n_unique() == 1)
    rack = replicas.list.first().replace_strict(racks, default=None, return_dtype=pl.String)
    return [RowRule(ONE_RACK, together, pl.concat_str(named(), pl.lit("all replicas are in rack "), rack))]


def config_rules(partitions: pl.DataFrame) -> list[RowRule]:
    """Throttles of topics of which no partition is being reassigned, and of brokers that have no part in any reassignment."""
    moved = partitions.filter(_kraft() & moving())
    brokers = moved.select(pl.col("replicas").explode().drop_nulls().unique().cast(pl.String)).to_series()
    kind, name = pl.col("resource_type"), pl.col("resource_name")
    at_work = ((kind == "TOPIC") & name.is_in(moved["topic"].unique().to_list())) | (
        (kind == "BROKER") & name.is_in(brokers.to_list())
    )
    text = said("{} {}: {}", "resource_type", "resource_name", "config")
    # An empty list has no effect (`TopicConfigHandler.parseThrottledPartitions`).
    some = pl.col("config").is_in(THROTTLES) & (pl.col("value").str.strip_chars() != "")
    return [RowRule(THROTTLE_LEFT, _kraft() & some & ~at_work, text)]


def acl_rules(health: Health) -> list[RowRule]:
    """An ACL that several records hold, each under an id of its own, as after a second load; one whose principal has no type; and a
    DENY for a range of addresses below the level that supports ranges: it denies nobody.

    `AclControlManager` keeps a set of the ACLs beside the ids: removing the last one of several equal ones throws. Before 3.9.1 it accepts
    any principal (KAFKA-18051), and `StandardAcl.kafkaPrincipal` throws on one without a colon.
    """
    acl = pl.struct("source", *ACLS.key)
    again = _kraft() & acl.is_duplicated() & acl.is_first_distinct()
    twice = RowRule(
        ACL_TWICE, again, said("{} {}: {} {} of {} from {}", *ACLS.key[:2], "permission", "operation", *_WHO)
    )
    untyped = _kraft() & ~pl.col("principal").str.contains(":", literal=True)
    rules = [twice, RowRule(ACL_PRINCIPAL, untyped, said("{} {}: {}", *ACLS.key[:2], "principal"))]
    if health.level is None or health.level >= CIDR_FROM:
        return rules
    ranged = _kraft() & pl.col("host").str.contains("/", literal=True) & (pl.col("permission") == "DENY")
    return [*rules, RowRule(CIDR_DENY, ranged, said("{} {}: DENY {} from {}", *ACLS.key[:2], *_WHO))]


_WHO = ("principal", "host")


def credential_rules() -> list[RowRule]:
    """SCRAM credentials with fewer iterations than Kafka accepts for a new one."""
    few = pl.col("iterations") < LEAST_ITERATIONS
    text = said("{} of {}: {} iterations", "mechanism", "user", "iterations")
    return [RowRule(FEW_ITERATIONS, _kraft() & few, text)]


def token_rules(health: Health) -> list[RowRule]:
    """Delegation tokens that had expired two hours before the log's end: the controller removes them every hour."""
    if health.log_end_ms is None:
        return []
    age = health.log_end_ms - pl.col("expiry_timestamp")
    text = said("token {} expired {} h before the log's end", "token_id", age // HOUR)
    return [RowRule(TOKEN_EXPIRED, _kraft() & (age > 2 * HOUR), text)]


def dead_letters(partitions: pl.DataFrame, configs: pl.DataFrame) -> pl.DataFrame:
    """Dead letter topics of share groups that Kafka refuses to write to, or that lack a leader: columns VIOLATIONS.

    In the order of Kafka (`ShareGroupDLQStateManager.ProduceRequestHandler.validateDlqTopic`). Settings without a dynamic value
    may be in property files: brokers may create a missing topic or not (DEAD_LETTER_MISSING), and a name without the default prefix
    of `GroupCoordinatorConfig` may be right or wrong (DEAD_LETTER_PREFIX).
    """
    mine = configs.filter(_kraft())
    names = mine.filter((pl.col("resource_type") == "GROUP") & (pl.col("config") == DEAD_LETTER_TOPIC))
    topic = pl.col("value").str.strip_chars().alias("topic")
    named = names.select(pl.col("resource_name").alias("group"), topic).filter(pl.col("topic") != "")
    enabled = mine.filter(
        (pl.col("resource_type") == "TOPIC") & (pl.col("config") == DEAD_LETTERS_ENABLED) & _is_true()
    )
    open_to = pl.col("topic").is_in(enabled["resource_name"].to_list()).alias("enabled")
    asked = partitions.filter(_kraft() & pl.col("topic").is_in(named["topic"].unique().to_list()))
    lost = asked.group_by("topic").agg((pl.col("leader") == -1).sum().alias("lost"))
    return broken(named.join(lost, on="topic", how="left").with_columns(open_to), _dead_letter_rules(mine))


def _dead_letter_rules(configs: pl.DataFrame) -> list[RowRule]:
    cluster = configs.filter((pl.col("resource_type") == "BROKER") & (pl.col("resource_name") == ""))
    created = cluster.filter(pl.col("config") == DEAD_LETTERS_CREATED)
    refused = not created.is_empty() and created.filter(_is_true()).is_empty()
    dynamic = next(iter(cluster.filter(pl.col("config") == DEAD_LETTERS_PREFIX)["value"]), None)
    prefix = dynamic or ""
    topic, there = pl.col("topic"), pl.col("lost").is_not_null()
    missing = said("group {}: its dead letter topic {} does not exist", "group", "topic")
    faults = [
        (topic.str.starts_with("__"), said("group {}: its dead letter topic {} is an internal one", "group", "topic")),
        (
            there & ~pl.col("enabled"),
            said(
                "group {}: {} is not set for its dead letter topic {}", "group", pl.lit(DEAD_LETTERS_ENABLED), "topic"
            ),
        ),
        (
            ~topic.str.starts_with(prefix.strip()),
            said("group {}: its dead letter topic {} does not begin with {}", "group", "topic", pl.lit(prefix)),
        ),
        (~there & refused, missing),
        (
            pl.col("lost").fill_null(0) > 0,
            said("group {}: {} partitions of {} have no leader", "group", "lost", "topic"),
        ),
    ]
    text = pl.coalesce(pl.when(fault).then(sentence) for fault, sentence in faults)
    faulty = pl.any_horizontal(fault for fault, _ in faults)
    default = said(
        "group {}: its dead letter topic {} does not begin with {}", "group", "topic", pl.lit(DEFAULT_PREFIX)
    )
    unsure = ~faulty & ~topic.str.starts_with(DEFAULT_PREFIX) if dynamic is None else pl.lit(False)
    return [
        RowRule(DEAD_LETTERS, faulty, text),
        RowRule(DEAD_LETTER_PREFIX, unsure, default),
        RowRule(DEAD_LETTER_MISSING, ~faulty & ~there & created.is_empty(), missing),
    ]


def _is_true() -> pl.Expr:
    """A boolean as `ConfigDef.parseType` takes it."""
    return pl.col("value").str.strip_chars().str.to_lowercase() == "true"
