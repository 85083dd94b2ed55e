"""A healthy KRaft cluster, and what is wrong with it in each check of its own health."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from schemas.checks import KRAFT, Phase
from schemas.checks.codes import (
    ACL_PRINCIPAL,
    ACL_TWICE,
    CHURN,
    CIDR_DENY,
    CORDONED,
    DEAD_LETTERS,
    DIRECTORY_LOST,
    DIRECTORY_UNKNOWN,
    ELR_NO_REPLICA,
    ELR_WAITING,
    ENCODED_NAME,
    FEW_ITERATIONS,
    LAST_KNOWN_FENCED,
    LOSSY_ELECTION,
    ONE_RACK,
    QUIET_SHRINK,
    REASSIGNING_LONG,
    RECOVERING_LONG,
    RESTART_OFFLINE,
    SCRAM_LEFT_OUT,
    SHARE_STATE,
    THROTTLE_LEFT,
    TOKEN_EXPIRED,
    UNCLEAN_LEADERLESS,
    UNDER_REPLICATED,
)
from schemas.kraft.feature_levels import HIGHEST_LEVELS
from transforms.kraft.quorum import Checkpoint, LogCopy, committed_end, plan_read
from transforms.kraft.replay.transactions import read_transactions
from transforms.properties import NodeProperties, NodeSettings, PropertyFiles
from transforms.reconcile.judge.facts import (
    BrokerConfig,
    Facts,
    LeaderEpoch,
    LevelChange,
    LogActivity,
    PartitionCounts,
    Quorum,
    ReplicaUse,
    Sample,
    Voter,
    VoterSet,
)

NOW = 1_795_299_000_000
END, EPOCH, LEVEL = 2000, 3, 30
NODES = (3000, 3001, 3002)
HOUR = 3_600_000
DEFAULTS = {name: level for name, level in HIGHEST_LEVELS["4.3"].items() if name != "kraft.version"}
EXAMPLE = Sample(1, ("the one example",))


def supported(lowest: int, highest: int) -> list[dict[str, Any]]:
    return [
        {"name": "metadata.version", "min_level": lowest, "max_level": highest},
        *({"name": name, "min_level": 0, "max_level": level} for name, level in HIGHEST_LEVELS["4.3"].items()),
    ]


def broker(node: int, **values: Any) -> dict[str, Any]:
    return {
        "broker_id": node,
        "broker_epoch": 20 + node,
        "kraft_offset": 40 + node,
        "kraft_append_time": NOW - HOUR,
        "is_migrating_zk_broker": False,
        "fenced": False,
        "in_controlled_shutdown": False,
        "log_dirs": [f"directory-of-{node}"],
        "features": supported(1, LEVEL),
        **values,
    }


def controller(node: int, highest: int = LEVEL) -> dict[str, Any]:
    endpoint = {"name": "CONTROLLER", "host": "127.0.0.1", "port": node}
    return {
        "controller_id": node,
        "zk_migration_ready": False,
        "features": supported(7, highest),
        "endpoints": [endpoint],
    }


def voter(node: int, **values: Any) -> Voter:
    return replace(Voter(node, f"disk-of-{node}", (("CONTROLLER", "127.0.0.1", node),)), **values)


def voters(*nodes: int, at: int = 2, time_ms: int = NOW - HOUR) -> VoterSet:
    return VoterSet(at, time_ms, tuple(voter(node) for node in nodes))


def copy(node: int, **values: Any) -> LogCopy:
    whole = LogCopy(
        controller_id=node,
        location=f"/logs/{node}",
        cluster_id="c",
        log_start=0,
        log_end=END,
        last_epoch=EPOCH,
        last_append_time=NOW,
        epoch_starts=((EPOCH, 0),),
        checkpoints=(Checkpoint("1500.checkpoint", 1500, EPOCH, True),),
        voters=NODES,
        leader_id=3000,
        leader_epoch=EPOCH,
        problem=None,
        directory_id=f"disk-of-{node}",
        largest_batch=4000,
        bootstrap_level=LEVEL,
    )
    return replace(whole, **values)


def kraft(**values: Any) -> Facts:
    """Three controllers, three brokers, Kafka 4.3 at its newest level, everything in order."""
    copies = [copy(node) for node in NODES]
    plan = plan_read(copies)
    whole = Facts(
        phase=Phase.KRAFT,
        collected=frozenset({KRAFT}),
        kafka_version="4.3",
        copies=copies,
        plan=plan,
        committed=committed_end(copies, plan, None, None),
        transactions=read_transactions([]),
        epochs=[LeaderEpoch(EPOCH, 0, 3000, NODES, NOW - HOUR)],
        brokers_in_kraft=[broker(node) for node in (0, 1, 2)],
        controllers=[controller(node) for node in NODES],
        features={"metadata.version": LEVEL, **DEFAULTS},
        replicas=[ReplicaUse(node, 10, ()) for node in (0, 1, 2)],
        brokers_with_config=frozenset(),
        configured_in_kraft=frozenset(),
        findings={},
        counts={
            "brokers": {KRAFT: 3},
            "controllers": {KRAFT: 3},
            "features": {KRAFT: 2},
            "partitions": {KRAFT: 10},
            "producer_ids": {KRAFT: 0},
        },
        levels=[LevelChange(2, LEVEL)],
        other_levels=[LevelChange(3, level, name) for name, level in DEFAULTS.items()],
        quorum=Quorum(1, (voters(*NODES),)),
        activity=LogActivity(NOW - HOUR, NOW, 100_000, {"NO_OP_RECORD": 1800}, 1500, NOW - HOUR // 2, 30_000),
        broker_configs=(BrokerConfig(KRAFT, "", "min.insync.replicas", "2"),),
        partition_counts={KRAFT: PartitionCounts(10)},
        out_of_sync={KRAFT: {}},
    )
    return replace(whole, **values)


def found(code: str, **values: Any) -> Facts:
    return kraft(findings={code: EXAMPLE}, **values)


def ghost(highest: int = LEVEL) -> list[dict[str, Any]]:
    return [*(controller(node) for node in NODES), controller(3003, highest)]


def behind(level: int = 21, **values: Any) -> Facts:
    """At the level of the release before the one its nodes run."""
    return kraft(features={"metadata.version": level}, levels=[LevelChange(2, level)], **values)


def files(*, named: bool) -> PropertyFiles:
    settings = NodeSettings(voters=frozenset({"3000@host:9093"} if named else ()))
    return PropertyFiles(controllers=(NodeProperties("/etc/3000.properties", 3000, False, False, settings),))


def leaderless(**values: Any) -> Facts:
    return found("ISR-16", partition_counts={KRAFT: PartitionCounts(10, leaderless=1)}, **values)


Failing = tuple[Facts, Facts, str]


def _in_sync_replicas() -> Iterator[tuple[str, Failing]]:
    for code in ("ISR-01", "ISR-02", "ISR-03"):
        yield code, (found(code), kraft(), "fail")
    yield "ISR-04", (found("ISR-04"), kraft(), "warn")
    old = {"kafka_version": "3.5", "levels": [LevelChange(2, 11)], "features": {"metadata.version": 11}}
    yield "ISR-07", (found(QUIET_SHRINK, **old), kraft(**old), "warn")
    yield "ISR-08", (found(CHURN), kraft(), "warn")
    yield "ISR-09", (found("ISR-09"), kraft(), "warn")
    yield "ISR-11", (found(RECOVERING_LONG), kraft(), "warn")
    yield "ISR-12", (found(LOSSY_ELECTION), kraft(), "warn")
    yield "ISR-16", (leaderless(), kraft(), "fail")


def _features() -> Iterator[tuple[str, Failing]]:
    old = [broker(0), broker(1, features=supported(1, 21))]
    yield "FEAT-01", (kraft(brokers_in_kraft=old), kraft(), "fail")
    yield "FEAT-02", (kraft(controllers=ghost(21)), kraft(), "fail")
    yield "FEAT-03", (kraft(features={"metadata.version": 99}), kraft(), "warn")
    yield "FEAT-06", (kraft(features={"metadata.version": LEVEL, "group.version": 0}), kraft(), "fail")
    yield "FEAT-07", (kraft(features={"group.version": 1}), kraft(), "fail")
    copies = [copy(3000, bootstrap_level=4), copy(3001)]
    yield "FEAT-08", (kraft(copies=copies, kafka_version="3.9"), kraft(kafka_version="3.9"), "warn")
    kept_down = {"metadata.version": LEVEL, **DEFAULTS, "share.version": 0}
    yield "FEAT-09", (kraft(features=kept_down), kraft(), "warn")
    mute = [
        {**controller(node), "features": [{"name": "metadata.version", "min_level": 7, "max_level": LEVEL}]}
        for node in NODES
    ]
    yield "FEAT-10", (kraft(quorum=Quorum(), controllers=mute), kraft(quorum=Quorum()), "warn")


def _upgrade() -> Iterator[tuple[str, Failing]]:
    yield "UPG-01", (behind(controllers=ghost(21)), behind(), "fail")
    yield "UPG-02", (found(UNDER_REPLICATED), kraft(), "fail")
    yield "UPG-03", (behind(6, kafka_version="3.9"), behind(21, kafka_version="3.9"), "fail")


def _quorum() -> Iterator[tuple[str, Failing]]:
    yield "QRM-01", (kraft(controllers=ghost()), kraft(), "warn")
    drained = [broker(0), broker(1), broker(2), broker(3, fenced=True)]
    yield "QRM-02", (kraft(brokers_in_kraft=drained), kraft(), "warn")
    yield "QRM-03", (kraft(copies=[copy(3000, directory_id="another")]), kraft(), "fail")
    moved = Quorum(1, (VoterSet(2, NOW, (voter(3000, endpoints=(("CONTROLLER", "127.0.0.9", 3000),)),)),))
    yield "QRM-04", (kraft(quorum=moved), kraft(), "warn")
    shrunk = Quorum(1, (voters(*NODES), voters(3000, 3001, at=900)))
    yield "QRM-05", (kraft(quorum=shrunk), kraft(), "warn")
    yield "QRM-06", (kraft(properties=files(named=True)), kraft(properties=files(named=False)), "warn")
    many = [LeaderEpoch(epoch, epoch * 10, 3000, NODES, NOW - epoch * 60_000) for epoch in range(1, 13)]
    yield "QRM-07", (kraft(epochs=many), kraft(), "warn")


def _log() -> Iterator[tuple[str, Failing]]:
    stale = LogActivity(NOW - 9 * HOUR, NOW, 100_000, {"NO_OP_RECORD": 9}, 1500, NOW - 3 * HOUR, 30_000)
    yield "LOG-01", (kraft(activity=stale), kraft(), "warn")
    poison = Sample(1, ("t partition 0: a change of a partition that was never made (offset 50)",))
    yield "LOG-02", (kraft(findings={"PARTITION-UNKNOWN": poison}), kraft(), "fail")
    yield "LOG-03", (kraft(copies=[copy(3000, largest_batch=8_000_000)]), kraft(), "warn")
    later = [copy(node, log_start=900) for node in NODES]
    yield "LOG-04", (kraft(copies=later, plan=plan_read(later), previous_end=500), kraft(previous_end=500), "warn")


def _configurations() -> Iterator[tuple[str, Failing]]:
    own = (
        (*kraft().broker_configs, BrokerConfig(KRAFT, "1", "min.insync.replicas", "1"))
        if kraft().broker_configs
        else ()
    )
    yield "ELR-01", (kraft(broker_configs=own), kraft(), "warn")
    yield "ELR-02", (found(LAST_KNOWN_FENCED), kraft(), "warn")
    yield "CFG-01", (found("CFG-01", kafka_version="3.9"), kraft(kafka_version="4.2"), "warn")
    yield "CFG-04", (found("CFG-04"), kraft(), "fail")
    yield "CFG-02", (found(UNCLEAN_LEADERLESS), kraft(), "warn")
    low = {"features": {"metadata.version": 14}, "levels": [LevelChange(2, 14)], "kafka_version": "3.7"}
    yield "DIR-01", (found("DIR-01", **low), kraft(**low), "fail")
    yield "DIR-02", (found(DIRECTORY_LOST), kraft(), "warn")


def _operation() -> Iterator[tuple[str, Failing]]:
    yield "UPG-04", (found(RESTART_OFFLINE), kraft(), "fail")
    yield "UPG-05", (kraft(controllers=[controller(3000), controller(3001)]), kraft(), "fail")
    away = [broker(0), broker(1), broker(2, fenced=True, kraft_append_time=NOW - 2 * HOUR)]
    yield "BRK-01", (kraft(brokers_in_kraft=away), kraft(), "warn")
    cloned = [broker(0), broker(1, log_dirs=["directory-of-0"])]
    yield "BRK-02", (kraft(brokers_in_kraft=cloned), kraft(), "fail")
    yield "BRK-03", (kraft(brokers_in_kraft=[broker(0, rack="a"), broker(1)]), kraft(), "warn")
    for code, check_id in (
        (ONE_RACK, "BRK-04"),
        (REASSIGNING_LONG, "RAS-01"),
        (THROTTLE_LEFT, "RAS-02"),
        (ELR_WAITING, "ELR-03"),
        (ELR_NO_REPLICA, "ELR-05"),
        (DEAD_LETTERS, "SHR-02"),
        (CORDONED, "DIR-03"),
        (DIRECTORY_UNKNOWN, "DIR-04"),
        (FEW_ITERATIONS, "SEC-08"),
        (ENCODED_NAME, "CFG-05"),
        (TOKEN_EXPIRED, "SEC-09"),
    ):
        yield check_id, (found(code), kraft(), "warn")
    yield "SEC-07", (found(CIDR_DENY), kraft(), "fail")
    yield "SEC-10", (found(ACL_TWICE), kraft(), "fail")
    yield "SEC-11", (found(ACL_PRINCIPAL), kraft(), "fail")
    yield "SEC-12", (found(SCRAM_LEFT_OUT), kraft(), "fail")
    yield "ELR-04", (kraft(features={"metadata.version": LEVEL}), kraft(), "warn")
    shared = {"features": {"metadata.version": LEVEL, "share.version": 1, "eligible.leader.replicas.version": 1}}
    yield "SHR-01", (found(SHARE_STATE, **shared), kraft(**shared), "warn")
    yield "CFG-03", (kraft(configured_in_kraft=frozenset({0, 9})), kraft(brokers_with_config=frozenset({9})), "warn")
    old = PropertyFiles(
        brokers=(NodeProperties("/etc/0.properties", 0, False, False, NodeSettings(dropped=("zookeeper.connect",))),)
    )
    yield "CONF-06", (kraft(properties=old), kraft(properties=files(named=False)), "warn")


def failing() -> Iterator[tuple[str, Failing]]:
    """Check, a cluster in which it fails, one in which it passes, and the verdict in the first."""
    for part in (_in_sync_replicas(), _features(), _upgrade(), _quorum(), _log(), _configurations(), _operation()):
        yield from part
