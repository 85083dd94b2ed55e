"""Every check of the catalogue: a cluster in which it fails, and one in which it passes.

The clusters are made from four healthy ones, a moment of a migration each; a case changes what its check is about.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from schemas.checks import CHECKS, KRAFT, ZOOKEEPER, Phase
from schemas.checks.codes import BROKER_REPLACED, CLEAR_REMOVED, HALF_LOADED, ISR_ORDER, TO_DECODE, UNDER_REPLICATED
from schemas.report import CheckResult, DivergenceRow
from tests.reconcile import between_runs, kraft_clusters
from transforms.kraft.quorum import Checkpoint, CommittedEnd, LogCopy, committed_end, last_stable, plan_read
from transforms.kraft.replay.transactions import Marker, TransactionLog, read_transactions
from transforms.outcome import EVIDENCE_LIMIT, found
from transforms.properties import MetaProperties, NodeProperties, NodeSettings, PropertyFiles, ensemble
from transforms.reconcile.compare.exposure import affecting
from transforms.reconcile.judge.absent import absent
from transforms.reconcile.judge.checks import FUNCTIONS
from transforms.reconcile.judge.facts import (
    Facts,
    Identities,
    LagMeasure,
    LeaderEpoch,
    LevelChange,
    LogActivity,
    PartitionCounts,
    Protection,
    Quorum,
    ReplicaUse,
    Sample,
    StateChange,
    known_identities,
)
from transforms.reconcile.judge.gates import judge_gates, run_checks
from transforms.reconcile.judge.summary import notes
from transforms.reconcile.judge.zookeeper_writes import Election, ZooKeeperWrites

CLUSTER_ID = "4fGkGQ8UQrWJxrkiL2NvRg"
NONE, MIGRATION, PRE_MIGRATION, POST_MIGRATION = 0, 1, 2, 3
NOW = 1_795_233_171_000
LOAD_BEGIN, LOAD_STATE, LOAD_END = 26, 161, 162
OFFSET, EPOCH, CLAIM = 390, 1, 700
ONE = Sample(1, ("the one example",))
LEVEL_3_9 = 21


def copy(controller: int, **values: Any) -> LogCopy:
    whole = LogCopy(
        controller_id=controller,
        location=f"/logs/{controller}",
        cluster_id=CLUSTER_ID,
        log_start=0,
        log_end=OFFSET + 1,
        last_epoch=EPOCH,
        last_append_time=NOW,
        epoch_starts=((EPOCH, 0),),
        checkpoints=(),
        voters=(3000, 3001, 3002),
        leader_id=3000,
        leader_epoch=EPOCH,
        problem=None,
    )
    return replace(whole, **values)


def broker(broker_id: int, **values: Any) -> dict[str, Any]:
    return {
        "broker_id": broker_id,
        "broker_epoch": 13 + broker_id,
        "is_migrating_zk_broker": True,
        "fenced": False,
        "in_controlled_shutdown": False,
        "endpoints": [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 19100 + broker_id}],
        "features": [{"name": "metadata.version", "min_level": LEVEL_3_9, "max_level": LEVEL_3_9}],
        "log_dirs": [f"directory-of-{broker_id}"],
        **values,
    }


def controllers(*, unready: int | None = None) -> list[dict[str, Any]]:
    supports = [{"name": "metadata.version", "min_level": 1, "max_level": LEVEL_3_9}]
    return [
        {"controller_id": node, "zk_migration_ready": node != unready, "features": supports}
        for node in (3000, 3001, 3002)
    ]


def zookeeper(**values: Any) -> dict[str, Any]:
    return {
        "migration_present": True,
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": EPOCH,
        "kraft_metadata_offset": OFFSET,
        "kraft_metadata_epoch": EPOCH,
        "controller_id": 3000,
        "controller_kraft_epoch": EPOCH,
        "controller_persistent": True,
        "controller_czxid": CLAIM,
        "controller_epoch": 4,
        "controller_epoch_mzxid": CLAIM,
        "cluster_id": CLUSTER_ID,
        **values,
    }


def load(*extra: Marker) -> Any:
    begin = Marker(LOAD_BEGIN, "BEGIN_TRANSACTION_RECORD", "ZK Migration", NOW)
    return read_transactions([begin, Marker(LOAD_END, "END_TRANSACTION_RECORD", None, NOW), *extra])


def counts(*, running: int, registered: int = 3, loaded: int = 2) -> dict[str, dict[str, int | None]]:
    """Rows of both sides, `running` brokers in ZooKeeper and `registered` ones in KRaft among them; `loaded` of each kind in KRaft."""
    both = ("topics", "partitions", "producer_ids", "scram_credentials", "delegation_tokens")
    return {
        **{name: {ZOOKEEPER: 2, KRAFT: loaded} for name in both},
        "brokers": {ZOOKEEPER: running, KRAFT: registered},
        "controllers": {ZOOKEEPER: 0, KRAFT: 3},
        "features": {ZOOKEEPER: 0, KRAFT: 1},
    }


def dual_write() -> Facts:
    copies = [copy(3000), copy(3001), copy(3002)]
    plan = plan_read(copies)
    brokers = [broker(0), broker(1), broker(2, is_migrating_zk_broker=False)]
    return Facts(
        phase=Phase.DUAL_WRITE,
        collected=frozenset({ZOOKEEPER, KRAFT}),
        kafka_version="3.9.1",
        zookeeper=zookeeper(),
        copies=copies,
        plan=plan,
        committed=committed_end(copies, plan, OFFSET, EPOCH),
        transactions=load(),
        states=[StateChange(3, PRE_MIGRATION, NOW), StateChange(LOAD_STATE, MIGRATION, NOW)],
        epochs=[LeaderEpoch(EPOCH, 0, 3000, (3000, 3001, 3002), NOW - 60_000)],
        brokers_in_zookeeper=[{"broker_id": 0}, {"broker_id": 1}],
        brokers_in_kraft=brokers,
        controllers=controllers(),
        features={"metadata.version": LEVEL_3_9},
        replicas=[ReplicaUse(node, 10, ()) for node in (0, 1, 2)],
        brokers_with_config=frozenset({0, 1, 2}),
        configured_in_kraft=frozenset({0, 1, 2}),
        findings={},
        divergences={},
        duplicated=Sample(),
        compared=True,
        lag=LagMeasure(0, 0.0, 0.1, 0),
        counts=counts(running=2),
        levels=[LevelChange(2, LEVEL_3_9)],
        next_producer_id=2000,
        producer_block_end=2999,
        protection=Protection(100, 10),
        identities=Identities(frozenset({"sasl:kafka"}), frozenset({"sasl:kafka"})),
        newest_znode_time_ms=NOW,
        quorum=Quorum(),
        activity=LogActivity(NOW - 60_000, NOW, 100_000, {"NO_OP_RECORD": 100}),
        broker_configs=(),
        zookeeper_features={},
        partition_counts={ZOOKEEPER: PartitionCounts(2), KRAFT: PartitionCounts(2)},
        out_of_sync={ZOOKEEPER: {}, KRAFT: {}},
    )


def waiting() -> Facts:
    return replace(
        dual_write(),
        phase=Phase.WAITING,
        zookeeper=zookeeper(
            kraft_controller_id=-1,
            kraft_controller_epoch=-1,
            kraft_metadata_offset=-1,
            kraft_metadata_epoch=-1,
            controller_id=0,
            controller_kraft_epoch=-1,
            controller_persistent=False,
        ),
        states=[StateChange(3, PRE_MIGRATION, NOW)],
        transactions=read_transactions([]),
        brokers_in_zookeeper=[{"broker_id": node} for node in (0, 1, 2)],
        brokers_in_kraft=[broker(node) for node in (0, 1, 2)],
        compared=False,
        lag=None,
        counts=counts(running=3, loaded=0),
    )


def zookeeper_alone() -> Facts:
    """Before the controllers exist: the brokers run, and there is no log."""
    return replace(
        waiting(),
        phase=Phase.ZOOKEEPER,
        collected=frozenset({ZOOKEEPER}),
        zookeeper={**(waiting().zookeeper or {}), "migration_present": False, "kraft_metadata_offset": None},
        copies=(),
        plan=None,
        committed=None,
        transactions=None,
        states=(),
        epochs=(),
        brokers_in_kraft=(),
        controllers=(),
        features={},
        levels=(),
        next_producer_id=None,
        kafka_version=None,
        quorum=None,
        activity=None,
    )


def in_kraft_mode() -> Facts:
    """Dual write with every broker rolled: ready to be finalised."""
    kraft = [broker(node, is_migrating_zk_broker=False) for node in (0, 1, 2)]
    return replace(dual_write(), brokers_in_zookeeper=[], brokers_in_kraft=kraft, counts=counts(running=0))


def finalized() -> Facts:
    states = [*dual_write().states, StateChange(OFFSET - 5, POST_MIGRATION, NOW)]
    frozen = zookeeper(kraft_metadata_offset=OFFSET - 6)
    after = replace(in_kraft_mode(), phase=Phase.FINALIZED, states=states, zookeeper=frozen)
    return replace(after, controllers=[{**entry, "zk_migration_ready": False} for entry in after.controllers])


def rolled_back() -> Facts:
    by_broker = {"controller_id": 0, "controller_kraft_epoch": -1, "controller_persistent": False}
    removed = {"migration_present": False, "kraft_metadata_offset": None}
    back = [{"broker_id": node} for node in (0, 1, 2)]
    return replace(
        dual_write(),
        phase=Phase.ROLLED_BACK,
        compared=False,
        zookeeper=zookeeper(**by_broker, **removed),
        brokers_in_zookeeper=back,
        newest_znode_time_ms=NOW + 600_000,
    )


COMMON = NodeSettings(
    zookeeper=ensemble("zk1,zk2/kafka"),
    voters=frozenset(f"{node}@host:9093" for node in (3000, 3001, 3002)),
    controller_listeners=("CONTROLLER",),
    security_map={"PLAINTEXT": "PLAINTEXT", "CONTROLLER": "PLAINTEXT"},
    inter_broker_listener="PLAINTEXT",
)
CONTROLLER = replace(COMMON, process_roles=frozenset({"controller"}), listeners=frozenset({"CONTROLLER"}))
BROKER = replace(COMMON, listeners=frozenset({"PLAINTEXT"}), inter_broker_protocol="3.9")


def node(node_id: int, *, secret: bool = True, migration: bool = True, **settings: Any) -> NodeProperties:
    usual = CONTROLLER if node_id >= 3000 else BROKER
    return NodeProperties(f"/etc/{node_id}.properties", node_id, secret, migration, replace(usual, **settings))


def property_files(**values: Any) -> PropertyFiles:
    whole = PropertyFiles(
        controllers=tuple(node(controller) for controller in (3000, 3001, 3002)),
        broker_meta=tuple(MetaProperties(f"/data/{broker}/meta.properties", broker, 0) for broker in (0, 1, 2)),
        clear_text_accepted=True,
    )
    return replace(whole, **values)


def row(entity: str, class_: str = "lost_write", **values: Any) -> DivergenceRow:
    made = DivergenceRow(entity, {}, None, "kraft_only", None, None, class_, "error", kraft_offset=300)
    return replace(made, **values)


@dataclass(frozen=True)
class Case:
    """Two clusters and the verdict in the first; the second passes."""

    fails: Facts
    passes: Facts
    verdict: str = "fail"


def case(healthy: Facts, verdict: str = "fail", **broken: Any) -> Case:
    return Case(replace(healthy, **broken), healthy, verdict)


def znodes(healthy: Facts, verdict: str = "fail", **broken: Any) -> Case:
    return case(healthy, verdict, zookeeper={**(healthy.zookeeper or {}), **broken})


def tables(healthy: Facts, code: str, verdict: str = "fail") -> Case:
    return case(healthy, verdict, findings={code: ONE})


def _capture() -> Iterator[tuple[str, Case]]:
    yield "CAP-01", case(dual_write(), copies=[copy(3000, cluster_id="another")])
    yield "CAP-02", tables(dual_write(), "CAP-02")
    covered_by_none = "the log starts at offset 90 and no complete .checkpoint covers it"
    unusable = {"plan": None, "committed": None, "collected": frozenset({ZOOKEEPER}), "phase": Phase.ZOOKEEPER}
    yield "CAP-03", case(dual_write(), plan_problem=covered_by_none, **unusable)
    yield "CAP-04", znodes(dual_write(), kraft_metadata_offset=OFFSET + 1)
    yield "CAP-05", case(dual_write(), "warn", newest_znode_time_ms=NOW + 61_000)
    yield "CAP-06", case(dual_write(), transactions=load(Marker(380, "BEGIN_TRANSACTION_RECORD", "again", NOW)))
    yield "CAP-07", tables(dual_write(), "CAP-07")
    yield "CAP-08", tables(dual_write(), "CAP-08")
    yield "CAP-09", tables(dual_write(), "ACL-DATA", "warn")
    yield "CAP-10", case(dual_write(), "warn", levels=())
    yield "CAP-12", tables(dual_write(), "CAP-12", "unknown")
    folder = replace(dual_write(), reads_data_folder=True, zookeeper_writes=ZooKeeperWrites())
    yield "CAP-20", case(replace(folder, findings={"TREE-PROVED": ONE}), findings={"TREE-PROVED": ONE, "CAP-20": ONE})


def aborted_loads(times: int) -> TransactionLog:
    """Loads whose controllers stopped in them, each aborted by the next leader."""
    markers = []
    for begin in range(30, 30 + 40 * times, 40):
        markers.append(Marker(begin, "BEGIN_TRANSACTION_RECORD", "ZK Migration", NOW))
        markers.append(Marker(begin + 30, "ABORT_TRANSACTION_RECORD", "Controller failover", NOW))
    return read_transactions(markers)


def _start() -> Iterator[tuple[str, Case]]:
    begin = waiting()
    yield "START-01", case(begin, brokers_in_kraft=[broker(0), broker(1)])
    yield "START-02", case(begin, replicas=[ReplicaUse(9, 4, ("orders/0",))])
    yield "START-03", tables(begin, "START-03")
    yield "START-04", tables(begin, "START-04")
    yield "START-05", case(begin, controllers=controllers(unready=3001))
    yield "START-06", case(begin, features={"metadata.version": 13})
    yield "START-07", znodes(begin, kraft_metadata_offset=326)
    yield "START-08", znodes(begin, controller_id=3001, controller_kraft_epoch=9, controller_persistent=True)
    yield "START-09", case(begin, phase=Phase.ZOOKEEPER, states=[])
    older = [{"name": "metadata.version", "min_level": 14, "max_level": 14}]
    yield "START-10", case(begin, brokers_in_kraft=[broker(0, features=older)])
    yield "START-11", case(begin, replicas=[ReplicaUse(3000, 1, ("orders/0",))])
    yield "START-12", tables(begin, "START-12", "warn")
    yield "START-13", tables(begin, "START-13")
    yield "START-14", tables(begin, "START-14")
    encrypted = replace(begin, findings={TO_DECODE: ONE}, properties=property_files())
    able = replace(encrypted.properties, controllers=(node(3000, secret=False), *encrypted.properties.controllers[1:]))
    yield "START-15", case(encrypted, properties=able)
    yield "START-16", tables(begin, "START-16")
    yield "START-17", case(begin, "warn", kafka_version="3.6.0")
    yield "START-18", znodes(begin, controller_epoch=None)
    yield "START-19", tables(begin, "DUR-06")
    yield "START-20", tables(begin, "TOPIC-DATA")
    yield "START-21", tables(begin, UNDER_REPLICATED, "warn")
    yield "START-22", case(begin, transactions=aborted_loads(2))


def _configuration() -> Iterator[tuple[str, Case]]:
    files = property_files(brokers=tuple(node(broker) for broker in (0, 1, 2)))
    begin = replace(waiting(), properties=files)

    def controller(**values: Any) -> PropertyFiles:
        return replace(files, controllers=(node(3000, **values), *files.controllers[1:]))

    def one_broker(**values: Any) -> PropertyFiles:
        return replace(files, brokers=(node(0, **values), *files.brokers[1:]))

    yield "CONF-01", case(begin, properties=controller(process_roles=frozenset({"broker", "controller"})))
    yield "CONF-02", case(begin, properties=one_broker(security_map=None))
    yield "CONF-03", case(begin, properties=one_broker(zookeeper=ensemble("zk1,zk2/kafka2")))
    now = replace(dual_write(), properties=files)
    yield "CONF-04", case(now, properties=controller(migration=False))
    yield "CONF-05", case(finalized(), "warn", controllers=controllers(unready=3000))


def _dual_write() -> Iterator[tuple[str, Case]]:
    now = dual_write()
    yield "DUR-01", znodes(now, kraft_metadata_offset=-1)
    yield "DUR-02", znodes(now, controller_id=3002)
    yield "DUR-03", znodes(now, kraft_controller_id=3002)
    yield "DUR-04", case(now, lag=LagMeasure(200, 75.0, 75.0, 40))
    yield "DUR-05", case(now, divergences={"lost_write": ONE})
    yield "DUR-06", tables(now, "DUR-06")
    again = [*now.states, StateChange(300, PRE_MIGRATION, NOW), StateChange(350, MIGRATION, NOW)]
    yield "DUR-07", case(now, states=again)
    second = [
        Marker(300, "BEGIN_TRANSACTION_RECORD", "ZK Migration", NOW),
        Marker(350, "END_TRANSACTION_RECORD", None, NOW),
    ]
    yield "DUR-08", case(now, transactions=load(*second))
    yield "DUR-09", case(now, features={"metadata.version": 13})
    yield "DUR-10", case(now, levels=[LevelChange(2, 20), LevelChange(200, LEVEL_3_9)])
    yield "DUR-11", case(now, brokers_in_zookeeper=[{"broker_id": node} for node in (0, 1, 7)])
    yield "DUR-12", tables(now, "DUR-12")
    yield "DUR-13", tables(now, "DUR-13", "warn")
    one = {"divergences": {"lost_write": ONE}}
    other_id = row("topics", column="topic_id", kind="differs", key={"topic": "orders"})
    yield "DUR-14", case(now, defect_rows=(other_id,), **one)
    yield "DUR-15", case(now, defect_rows=(row("producer_ids", column="next_producer_id", kind="differs"),), **one)
    yield "DUR-16", tables(now, "DUR-16", "warn")
    yield "DUR-17", tables(now, "DUR-17", "warn")
    behind = (row("client_quotas", kind="zk_only"), row("acls", kraft_offset=302))
    four = [{"name": "metadata.version", "min_level": 7, "max_level": 25}]
    of_kafka_4 = broker(2, is_migrating_zk_broker=False, features=four)
    yield "DUR-20", case(now, brokers_in_kraft=[*now.brokers_in_kraft[:2], of_kafka_4])
    yield "DUR-21", case(now, duplicated=ONE)
    started = [{"broker_id": 0, "zk_mtime": NOW - 100_000}, {"broker_id": 1, "zk_mtime": NOW - 500_000}]
    fenced = broker(0, fenced=True, in_controlled_shutdown=True, kraft_append_time=NOW - 110_000)
    yield "DUR-22", case(now, brokers_in_zookeeper=started, brokers_in_kraft=[fenced, *now.brokers_in_kraft[1:]])
    yield "DUR-18", case(now, "warn", defect_rows=behind, divergences={"lost_write": Sample(2, ("two",))})
    yield "DUR-19", tables(now, "DUR-19", "warn")


def election(zxid: int, number: int, writer: str, epoch: int | None = None, **values: Any) -> Election:
    """A transaction that set `/controller_epoch` to `number`; with a KRaft `epoch` a claim by `writer`."""
    node = None if epoch is None else int(writer.rpartition(" ")[2])
    whole = Election(
        zxid, NOW - 60_000, 0x1000, writer, "zookeeper_mode" if epoch is None else "claim", number, node, epoch
    )
    return replace(whole, **values)


def with_transactions(healthy: Facts, **values: Any) -> Facts:
    """The cluster, ZooKeeper read from a data folder: elected in ZooKeeper mode thrice, and claimed by the KRaft leader."""
    elections = [election(30 * n, n, f"broker {n % 3}") for n in (1, 2, 3)]
    writes = ZooKeeperWrites(1, (*elections, election(CLAIM, 4, "controller 3000", EPOCH)))
    return replace(healthy, reads_data_folder=True, zookeeper_writes=replace(writes, **values))


def _transactions() -> Iterator[tuple[str, Case]]:
    healthy = with_transactions(dual_write())
    by_hand = (1, ("transaction 1200, session 0x1000: setData /config/topics/orders",))
    stranger = election(CLAIM, 4, "controller 3001", EPOCH)
    fallen = [election(30, 7, "broker 1"), election(CLAIM, 4, "controller 3000", EPOCH)]
    yield "TXN-01", Case(with_transactions(dual_write(), foreign=by_hand), healthy, "warn")
    yield "TXN-02", Case(with_transactions(dual_write(), refused=by_hand), healthy, "warn")
    yield "TXN-03", Case(with_transactions(dual_write(), elections=(stranger,)), healthy)
    yield "TXN-04", Case(with_transactions(dual_write(), elections=tuple(fallen)), healthy)
    before, after = election(30, 3, "controller 3000", EPOCH), election(CLAIM, 5, "controller 3000", EPOCH + 1)
    yield (
        "TXN-05",
        Case(with_transactions(dual_write(), elections=(before, election(60, 4, "broker 1"), after)), healthy),
    )


def _finish() -> Iterator[tuple[str, Case]]:
    now, after = in_kraft_mode(), finalized()
    yield "FIN-01", case(now, brokers_in_kraft=[broker(0)])
    yield "FIN-02", case(now, brokers_in_zookeeper=[{"broker_id": 0}], counts=counts(running=1))
    yield "FIN-03", case(now, brokers_in_kraft=[broker(0, is_migrating_zk_broker=False, fenced=True)])
    yield "FIN-04", case(now, lag=LagMeasure(200, 75.0, 0.1, 40))
    yield "FIN-05", tables(now, "FIN-05")
    yield "FIN-06", far_behind(now)
    yield "FIN-07", case(dual_write(), controllers=controllers(unready=3001))
    yield "FIN-08", tables(now, UNDER_REPLICATED, "warn")
    yield "POST-01", case(after, states=[*after.states, StateChange(OFFSET, POST_MIGRATION, NOW)])
    yield "POST-02", znodes(after, kraft_metadata_offset=OFFSET)
    yield "POST-04", tables(after, "POST-04", "warn")
    yield "POST-03", case(after, brokers_in_kraft=[broker(0, broker_epoch=OFFSET)])


def far_behind(healthy: Facts) -> Case:
    copies = [copy(node, log_end=20_000 if node != 3002 else 400) for node in (3000, 3001, 3002)]
    return case(healthy, copies=copies, plan=plan_read(copies))


def _rollback() -> Iterator[tuple[str, Case]]:
    now = dual_write()
    yield "RB-01", Case(finalized(), now)
    yield "RB-02", case(now, divergences={"lag": ONE}, lag=LagMeasure(11, 6.0, 6.0, 8))
    yield "RB-03", znodes(now, controller_epoch=None)
    yield "RB-04", case(now, features={"metadata.version": 25})
    yield "RB-05", Case(replace(rolled_back(), zookeeper=zookeeper(controller_persistent=False)), rolled_back(), "warn")
    yield "RB-06", case(now, producer_block_end=999)
    yield "RB-07", tables(now, "RB-07", "warn")
    stopped = plan_read([copy(controller, producer_snapshot=OFFSET + 1) for controller in (3000, 3001, 3002)])
    yield "RB-08", case(now, plan=stopped, lag=LagMeasure(9, 1.0, 0.1, 2))
    given = replace(now, properties=property_files())
    formatted = (MetaProperties("/data/0/meta.properties", 0, 1), *given.properties.broker_meta[1:])
    yield "RB-09", case(given, properties=replace(given.properties, broker_meta=formatted))


def _after_rollback() -> Iterator[tuple[str, Case]]:
    now = rolled_back()
    yield "RB-10", case(now, "warn", brokers_in_zookeeper=[{"broker_id": 0}, {"broker_id": 1}])
    yield "RB-11", tables(now, "RB-11")
    yield "RB-12", case(now, "warn", newest_znode_time_ms=NOW + 1000)
    told = {**(now.zookeeper or {}), "migration_present": True, "kraft_metadata_offset": OFFSET}
    mirrored = replace(now, zookeeper=told, left_behind=Sample())
    yield "RB-13", case(mirrored, "warn", left_behind=ONE)
    anew = {**(now.zookeeper or {}), "migration_present": True, "kraft_metadata_offset": -1}
    yield "RB-14", case(now, "warn", zookeeper=anew)


def _security() -> Iterator[tuple[str, Case]]:
    yield "SEC-01", tables(dual_write(), "SEC-01", "warn")
    yield "SEC-02", tables(dual_write(), "SEC-02", "warn")
    yield "SEC-03", tables(dual_write(), "SEC-03", "warn")
    yield "SEC-04", tables(dual_write(), "SEC-04")
    yield "SEC-05", tables(dual_write(), "SEC-05")
    same = Identities(frozenset({"sasl:kafka"}), frozenset({"sasl:kafka"}))
    secured = replace(dual_write(), identities=same)
    yield "SEC-06", case(secured, "warn", identities=replace(same, controllers=frozenset({"sasl:kraft"})))


def _kraft() -> Iterator[tuple[str, Case]]:
    for check_id, (fails, passes, verdict) in (*kraft_clusters.failing(), *between_runs.cases()):
        yield check_id, Case(fails, passes, verdict)
    checked = copy(3000, checkpoints=(Checkpoint("300.checkpoint", 300, EPOCH, True),))
    with_checkpoint = replace(dual_write(), copies=[checked])
    yield "ISR-05", tables(waiting(), "ISR-05", "warn")
    yield "ISR-06", tables(with_checkpoint, "ISR-06")
    # What it tells means nothing: it is told, and is no violation.
    yield "ISR-10", case(dual_write(), "pass", findings={ISR_ORDER: ONE})
    yield "ISR-13", tables(dual_write(), "ISR-13", "warn")
    yield "ISR-14", tables(waiting(), "RB-11", "warn")
    earlier = replace(dual_write(), previous_partitions=True)
    yield "ISR-15", tables(earlier, "ISR-15", "warn")
    yield "ISR-17", tables(dual_write(), "ISR-17", "warn")
    yield "FEAT-04", case(dual_write(), "warn", zookeeper_features={"kraft.feature": 2})
    yield "FEAT-11", case(dual_write(), zookeeper_features={"x": 1})
    older = [{"name": "metadata.version", "min_level": 20, "max_level": 20}]
    yield "FEAT-05", case(dual_write(), "warn", brokers_in_kraft=[broker(0, features=older), broker(1)])


LISTED = [
    *_capture(),
    *_start(),
    *_configuration(),
    *_dual_write(),
    *_transactions(),
    *_finish(),
    *_rollback(),
    *_after_rollback(),
    *_security(),
    *_kraft(),
]
CASES: Mapping[str, Case] = dict(LISTED)
HEALTHY = {
    "waiting": waiting(),
    "dual_write": dual_write(),
    "in_kraft_mode": in_kraft_mode(),
    "finalized": finalized(),
    "rolled_back": rolled_back(),
    "zookeeper_alone": zookeeper_alone(),
    "kraft": kraft_clusters.kraft(),
}


def verdicts(facts: Facts) -> dict[str, CheckResult]:
    return {result.id: result for result in run_checks(facts)}


def test_an_acl_that_zookeeper_has_no_place_for_stops_every_full_sync() -> None:
    """`ZkAclMigrationClient.writeResourceAcls`: the name's first part is no folder, so that the create fails, each time."""
    facts = tables(dual_write(), "RB-07").fails
    assert (verdicts(facts)["DUR-06"].verdict, verdicts(facts)["RB-07"].verdict) == ("fail", "warn")


def test_every_check_has_a_function_and_both_cases() -> None:
    ids = [check.id for check in CHECKS]
    assert len(set(ids)) == len(ids)
    assert set(FUNCTIONS) == set(ids)
    # One case each: of two, the first would be looked at by nobody.
    assert sorted(check_id for check_id, _ in LISTED) == sorted(ids)


@pytest.mark.parametrize("check_id", list(CASES))
def test_it_fails_where_it_must_and_says_what(check_id: str) -> None:
    result = verdicts(CASES[check_id].fails)[check_id]
    verdict = CASES[check_id].verdict
    assert (result.verdict, result.violations > 0) == (verdict, verdict in ("fail", "warn"))
    assert result.evidence
    assert all(result.evidence)
    assert result.remedy
    assert result.title


@pytest.mark.parametrize("check_id", list(CASES))
def test_it_passes_where_it_must(check_id: str) -> None:
    assert verdicts(CASES[check_id].passes)[check_id].verdict == "pass"


@pytest.mark.parametrize("name", list(HEALTHY))
def test_a_healthy_migration_has_nothing_to_say(name: str) -> None:
    spoken = {
        id_ for id_, result in verdicts(HEALTHY[name]).items() if result.verdict not in ("pass", "not_applicable")
    }
    known = {
        "dual_write": {"FIN-01", "FIN-02", "RB-09"},
        "in_kraft_mode": {"RB-09"},
        "finalized": {"RB-01"},
        "waiting": {"CONF-01", "CONF-02", "CONF-03"},
        "zookeeper_alone": {"CONF-01", "CONF-02", "CONF-03"},
    }
    assert not absent(HEALTHY[name])
    without_log = {check.id for check in CHECKS if KRAFT in check.needs} | {"CAP-03", "START-01", "START-02"}
    expected = known.get(name, set())
    assert spoken - (without_log if name == "zookeeper_alone" else set()) == expected


@pytest.mark.parametrize(
    "check_id", [check.id for check in CHECKS if check.gates and CASES[check.id].verdict == "fail"]
)
def test_a_failure_closes_the_gates_it_names_and_a_warning_none(check_id: str) -> None:
    facts = CASES[check_id].fails
    result = verdicts(facts)[check_id]
    for name, gate in judge_gates(run_checks(facts), facts).items():
        if name in result.gates and gate.verdict != "not_applicable":
            assert gate.verdict == "no_go"
            assert check_id in gate.blocking


@pytest.mark.parametrize("check_id", [id_ for id_, case in CASES.items() if case.verdict == "warn"])
def test_a_warning_blocks_nothing(check_id: str) -> None:
    facts = CASES[check_id].fails
    assert all(check_id not in gate.blocking for gate in judge_gates(run_checks(facts), facts).values())


def test_what_was_not_collected_is_never_a_pass() -> None:
    without_log = zookeeper_alone()
    for check_id in ("CAP-03", "START-01", "START-02"):
        assert verdicts(without_log)[check_id].verdict == "unknown"
    for check in CHECKS:
        if KRAFT in check.needs and without_log.phase in check.phases:
            assert verdicts(without_log)[check.id].verdict == "unknown"
    assert judge_gates(run_checks(without_log), without_log)["start"].verdict == "unknown"


@pytest.mark.parametrize(
    ("found_codes", "expected"),
    [
        ({"TREE-PROVED"}, "pass"),
        (set(), "unknown"),
        ({"TREE-UNPROVED"}, "unknown"),
        ({"TREE-PROVED", "TREE-UNPROVED"}, "unknown"),
        ({"TREE-UNPROVED", "CAP-20"}, "fail"),
    ],
)
def test_a_tree_that_no_digest_proves_is_not_taken_for_whole(found_codes: set[str], expected: str) -> None:
    folder = replace(CASES["CAP-20"].passes, findings=dict.fromkeys(found_codes, ONE))
    assert verdicts(folder)["CAP-20"].verdict == expected
    assert verdicts(replace(folder, reads_data_folder=False, findings={}))["CAP-20"].verdict == "not_applicable"


@pytest.mark.parametrize(("offset", "expected"), [(-1, "fail"), (0, "fail"), (1, "pass")])
def test_a_load_is_done_once_migrations_offset_is_above_0(offset: int, expected: str) -> None:
    """`ZkMigrationLeadershipState.initialZkMigrationComplete` (S§4.1)."""
    facts = replace(dual_write(), zookeeper=zookeeper(kraft_metadata_offset=offset))
    assert verdicts(facts)["DUR-01"].verdict == expected


@pytest.mark.parametrize(
    ("level", "rows", "expected"),
    [
        # 3.4-IV0 is the first that can migrate; below 11 a checkpoint drops credentials, below 14 tokens, and below 13 the load
        # is no transaction (S§2.6, S§3.4).
        (7, {}, "fail"),
        (8, {}, "warn"),
        (10, {"scram_credentials": 2}, "fail"),
        (11, {"scram_credentials": 2}, "warn"),
        (12, {"delegation_tokens": 1}, "fail"),
        (13, {}, "pass"),
        (13, {"delegation_tokens": 1}, "fail"),
        (14, {"scram_credentials": 2, "delegation_tokens": 1}, "pass"),
    ],
)
def test_what_the_load_needs_of_the_level(level: int, rows: dict[str, int], expected: str) -> None:
    none = {name: {ZOOKEEPER: 0} for name in ("scram_credentials", "delegation_tokens")}
    of_zookeeper = {name: {ZOOKEEPER: number} for name, number in rows.items()}
    facts = replace(waiting(), features={"metadata.version": level})
    result = verdicts(replace(facts, counts={**facts.counts, **none, **of_zookeeper}))["START-06"]
    assert result.verdict == expected


def test_a_load_that_ended_halfway_is_in_the_way_of_the_next_one() -> None:
    """Without a transaction what was loaded stays: 3.6 and later end at its topics, and 3.5 stores its ACLs twice."""
    assert verdicts(waiting())["START-06"].verdict == "pass"
    halfway = replace(waiting(), findings={HALF_LOADED: ONE})
    assert (verdicts(halfway)["START-06"].verdict, verdicts(halfway)["START-06"].violations) == ("fail", 1)


def test_defects_that_harm_nothing_are_no_reason_to_wait() -> None:
    for defect, _ in affecting("3.6.0"):
        named = any(
            text.startswith(f"{defect.jira}:") for text in verdicts(CASES["START-17"].fails)["START-17"].evidence
        )
        assert named == bool(defect.fixed and defect.harms), defect.jira


def test_a_missing_controllers_log_leaves_finalising_open() -> None:
    facts = replace(in_kraft_mode(), copies=[copy(3000)])
    assert verdicts(facts)["FIN-06"].verdict == "unknown"
    assert judge_gates(run_checks(facts), facts)["finalize"].verdict == "unknown"


def test_a_given_log_that_shows_no_lag_is_not_said_to_be_missing() -> None:
    disks = tuple((node, f"disk-of-{node}") for node in (3000, 3001, 3002))
    *most, last = [replace(copy(node), directory_id=disk, voter_directories=disks) for node, disk in disks]

    def judged(*copies: LogCopy) -> tuple[str, list[str]]:
        result = verdicts(replace(in_kraft_mode(), copies=[*copies], plan=plan_read(copies)))["FIN-06"]
        return result.verdict, result.evidence

    assert judged(*most, last) == ("pass", [])
    for other, why in (
        (replace(last, directory_id="formatted-again"), "has another directory id than the voter"),
        (replace(last, problem="torn", log_end=None), "can't be read (torn)"),
    ):
        assert judged(*most, other) == ("unknown", [f"{last.location} {why}: the lag of controller 3002 is unknown"])
    assert judged(*most) == ("unknown", ["give the log of controller 3002: its lag is unknown"])


def test_the_leaders_word_of_its_voters_stands_for_copies_of_them() -> None:
    fetched = replace(
        copy(3000), fetched_at=NOW, high_watermark=OFFSET, voter_ends=((3000, OFFSET), (3001, OFFSET), (3002, OFFSET))
    )
    facts = replace(dual_write(), copies=[fetched], plan=plan_read([fetched]))
    assert verdicts(facts)["FIN-06"].verdict == "pass"
    behind = replace(fetched, voter_ends=((3000, 40_000), (3001, 40_000), (3002, 7)))
    far = verdicts(replace(facts, copies=[behind]))["FIN-06"]
    assert (far.verdict, far.evidence) == (
        "fail",
        ["the log of controller 3002 ends at offset 6, the longest at 39999"],
    )
    unseen = replace(fetched, voter_ends=((3000, OFFSET), (3001, OFFSET)))
    assert verdicts(replace(facts, copies=[unseen]))["FIN-06"].verdict == "unknown"


def test_a_leadership_that_just_began_may_not_have_written_yet() -> None:
    moved = [LeaderEpoch(2, OFFSET, 3001, (3000, 3001, 3002), NOW - 1000)]
    assert verdicts(replace(dual_write(), epochs=moved))["DUR-03"].verdict == "warn"


def test_a_broker_shut_down_in_order_is_no_surprise() -> None:
    down = broker(2, fenced=True, in_controlled_shutdown=True)
    facts = replace(dual_write(), brokers_in_kraft=[broker(0), broker(1), down])
    assert (verdicts(facts)["FIN-03"].verdict, verdicts(facts)["DUR-11"].verdict) == ("pass", "pass")


def test_a_broker_between_two_modes_is_a_warning() -> None:
    assert verdicts(replace(dual_write(), brokers_in_zookeeper=[{"broker_id": n} for n in (0, 1, 2)]))[
        "DUR-11"
    ].verdict == ("warn")
    assert verdicts(replace(dual_write(), brokers_in_zookeeper=[{"broker_id": 0}]))["DUR-11"].verdict == "warn"


def test_finalising_on_purpose_is_a_warning_and_by_accident_a_failure() -> None:
    unready = controllers(unready=3000)
    assert verdicts(replace(in_kraft_mode(), controllers=unready))["FIN-07"].verdict == "warn"
    assert verdicts(replace(dual_write(), controllers=unready))["FIN-07"].verdict == "fail"


def test_a_voter_that_is_not_registered_may_finalise() -> None:
    """It is down since before 3.7-IV0, or was never started: the first leader without the flag finalises (S§7.4)."""
    facts = replace(dual_write(), controllers=controllers()[:2])
    result = verdicts(facts)["FIN-07"]
    assert (result.verdict, "controller 3002 is not registered" in result.evidence[0]) == ("unknown", True)
    assert judge_gates(run_checks(facts), facts)["dual_write"].verdict != "go"
    files = property_files(controllers=(node(3002),))
    assert verdicts(replace(facts, properties=files))["FIN-07"].verdict == "pass", "its file tells"
    without = property_files(controllers=(node(3002, migration=False),))
    assert verdicts(replace(facts, properties=without))["CONF-04"].verdict == "fail"


def test_controllers_below_3_7_are_not_asked_for_a_registration() -> None:
    older = replace(waiting(), features={"metadata.version": 14}, controllers=[])
    result = verdicts(older)["START-05"]
    assert (result.verdict, len(result.evidence)) == ("not_applicable", 1)
    assert judge_gates(run_checks(older), older)["start"].blocking == ["START-10"]


def test_a_load_without_a_transaction_at_a_level_that_has_them() -> None:
    facts = replace(dual_write(), transactions=read_transactions([]))
    assert verdicts(facts)["DUR-07"].evidence == [f"the load ended at offset {LOAD_STATE} outside a transaction"]
    at_checkpoint = copy(
        3000, log_start=350, epoch_starts=((EPOCH, 350),), checkpoints=(Checkpoint("350.checkpoint", 350, EPOCH, True),)
    )
    begins_later = replace(facts, plan=plan_read([at_checkpoint]))
    assert verdicts(begins_later)["DUR-07"].verdict == "pass"


def test_the_claim_of_the_leader_that_loads_is_its_own() -> None:
    claimed = zookeeper(kraft_metadata_offset=-1)
    assert verdicts(replace(waiting(), zookeeper=claimed))["START-08"].verdict == "pass"


def test_an_open_zookeeper_is_not_a_secured_one() -> None:
    facts = replace(dual_write(), protection=Protection(100, 60), findings={"SEC-01": ONE})
    assert verdicts(facts)["SEC-01"].verdict == "not_applicable"
    log_alone = replace(facts, protection=None, identities=None, collected=frozenset({KRAFT}))
    assert verdicts(log_alone)["SEC-01"].verdict == "not_applicable"


def test_after_finalising_zookeeper_may_be_gone() -> None:
    facts = replace(finalized(), collected=frozenset({KRAFT}), zookeeper=None)
    assert verdicts(facts)["POST-02"].verdict == "not_applicable"


def test_evidence_is_bounded_and_the_count_is_not() -> None:
    outcome = found(f"row {number}" for number in range(1000))
    assert (outcome.violations, len(outcome.evidence)) == (1000, EVIDENCE_LIMIT)


def test_files_that_were_not_given_close_no_gate_and_are_asked_for() -> None:
    facts = dual_write()
    result = verdicts(facts)["RB-09"]
    assert (result.verdict, result.violations) == ("unknown", 0)
    assert "properties.broker_meta" in result.evidence[0]
    gate = judge_gates(run_checks(facts), facts)["rollback"]
    assert (gate.verdict, gate.blocking) == ("go", [])
    assert "RB-09" in gate.explanation


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (PropertyFiles(), "unknown"),
        (property_files(controllers=(node(3000), node(3001))), "unknown"),
        (property_files(controllers=(node(3000), node(3001, secret=False))), "fail"),
        (property_files(clear_text_accepted=False), "warn"),
        (property_files(), "pass"),
    ],
)
def test_encrypted_passwords_need_the_secret_on_every_controller(given: PropertyFiles, verdict: str) -> None:
    facts = replace(waiting(), findings={TO_DECODE: ONE}, properties=given)
    result = verdicts(facts)["START-15"]
    assert result.verdict == verdict
    assert bool(result.evidence) is (verdict != "pass")
    assert judge_gates(run_checks(facts), facts)["start"].verdict == ("no_go" if verdict == "fail" else "go")


def test_without_encrypted_passwords_no_file_is_asked_for() -> None:
    assert verdicts(waiting())["START-15"].verdict == "pass"


def test_a_broker_with_the_migration_enabled_reads_both_versions() -> None:
    newer = (MetaProperties("/data/0/meta.properties", 0, 1),)
    for migration, verdict in ((True, "warn"), (False, "fail")):
        given = property_files(broker_meta=newer, brokers=(node(0, migration=migration),))
        assert verdicts(replace(dual_write(), properties=given))["RB-09"].verdict == verdict


@pytest.mark.parametrize("version", [0, 1])
def test_a_file_of_another_cluster_is_none_to_go_back_to(version: int) -> None:
    given = property_files(
        broker_meta=(MetaProperties("/data/0/meta.properties", 0, version, "another"),),
        brokers=(node(0, migration=True),),
    )
    own = {**(dual_write().zookeeper or {}), "cluster_id": "own"}
    result = verdicts(replace(dual_write(), properties=given, zookeeper=own, copies=[]))["RB-09"]
    assert (result.verdict, result.evidence) == (
        "fail",
        ["/data/0/meta.properties belongs to cluster another, but this is cluster own"],
    )


def test_a_broker_whose_file_is_missing_stays_open() -> None:
    given = property_files(broker_meta=property_files().broker_meta[:2])
    result = verdicts(replace(dual_write(), properties=given))["RB-09"]
    assert (result.verdict, result.evidence) == (
        "unknown",
        ["give meta.properties of broker 2 (properties.broker_meta)"],
    )


def test_changes_on_their_way_while_the_controllers_run_are_no_loss() -> None:
    facts = replace(dual_write(), lag=LagMeasure(9, 1.0, 0.1, 2))
    assert verdicts(facts)["RB-08"].verdict == "unknown"
    assert judge_gates(run_checks(facts), facts)["rollback"].verdict == "go"


def test_what_a_stopped_quorum_adds_last_is_nothing_to_lose() -> None:
    stopped = plan_read([copy(3000, producer_snapshot=OFFSET + 1)])
    facts = replace(dual_write(), plan=stopped, lag=LagMeasure(3, 0.4, 0.1, 0))
    assert verdicts(facts)["RB-08"].verdict == "pass"


def in_both_modes(written: int, registered: int, **values: Any) -> Facts:
    znode = {"broker_id": 2, "zk_mtime": written}
    registration = broker(2, is_migrating_zk_broker=False, incarnation_id="b", kraft_append_time=registered, **values)
    return replace(dual_write(), brokers_in_zookeeper=[znode], brokers_in_kraft=[registration])


def test_a_broker_at_work_in_both_modes_is_two_processes() -> None:
    result = verdicts(in_both_modes(NOW - 900_000, NOW - 61_000))["DUR-12"]
    assert (result.verdict, result.violations) == ("fail", 1)
    assert result.evidence[0].endswith("both for 61 s")
    assert verdicts(in_both_modes(NOW - 61_000, NOW - 900_000))["DUR-12"].verdict == "fail"


@pytest.mark.parametrize(
    "facts",
    [
        in_both_modes(NOW - 900_000, NOW - 20_000),
        in_both_modes(NOW - 20_000, NOW - 900_000),
        in_both_modes(NOW - 900_000, NOW - 900_000, fenced=True),
        in_both_modes(NOW - 900_000, NOW - 900_000, in_controlled_shutdown=True),
        replace(in_both_modes(NOW - 900_000, NOW - 90_000), newest_znode_time_ms=NOW - 80_000),
    ],
    ids=["session not over", "just started", "fenced", "shutting down", "tree older than the registration"],
)
def test_a_broker_on_its_way_from_one_mode_to_the_other_is_one(facts: Facts) -> None:
    assert verdicts(facts)["DUR-12"].verdict == "pass"


def test_a_registration_in_the_place_of_one_not_fenced_may_be_a_crash() -> None:
    facts = replace(dual_write(), findings={BROKER_REPLACED: ONE})
    result = verdicts(facts)["DUR-12"]
    assert (result.verdict, result.violations) == ("warn", 1)
    assert judge_gates(run_checks(facts), facts)["dual_write"].verdict == "go"


def test_records_of_the_load_that_it_would_not_write() -> None:
    result = verdicts(replace(dual_write(), findings={"DUR-07": ONE}))["DUR-07"]
    assert (result.verdict, result.evidence) == ("fail", list(ONE.examples))


def test_a_load_that_nobody_waited_for() -> None:
    facts = replace(dual_write(), states=[StateChange(LOAD_STATE, MIGRATION, NOW)])
    assert verdicts(facts)["DUR-07"].evidence == [f"the load ended at offset {LOAD_STATE}, from state NONE"]
    checkpoint = (Checkpoint("350.checkpoint", 350, EPOCH, True),)
    later = copy(3000, log_start=350, epoch_starts=((EPOCH, 350),), checkpoints=checkpoint)
    assert verdicts(replace(facts, plan=plan_read([later])))["DUR-07"].verdict == "pass"


def test_a_load_of_3_4_is_recorded_by_its_begin_alone() -> None:
    """Controllers of 3.4.1 that loaded were upgraded to 3.6.2 in dual write: the state's byte means MIGRATION from then on."""
    begun = [StateChange(LOAD_STATE, MIGRATION, NOW)]
    facts = replace(dual_write(), states=begun, levels=[LevelChange(1, 8)], features={"metadata.version": 8})
    assert verdicts(facts)["DUR-07"].verdict == "pass"
    newer = replace(facts, levels=[LevelChange(1, 9)])
    assert verdicts(newer)["DUR-07"].evidence == [f"the load ended at offset {LOAD_STATE}, from state NONE"]


def test_a_rollback_is_not_judged_by_what_was_not_read() -> None:
    nothing = replace(rolled_back(), replicas=(), newest_znode_time_ms=None, zookeeper=zookeeper(controller_epoch=None))
    found = verdicts(nothing)
    assert [found[name].verdict for name in ("RB-10", "RB-11", "RB-12")] == ["unknown"] * 3
    assert found["RB-13"].verdict == "unknown"


def test_a_stopped_quorum_may_have_ended_just_now() -> None:
    stopped = plan_read([copy(3000, producer_snapshot=OFFSET + 1)])
    facts = replace(rolled_back(), newest_znode_time_ms=NOW, plan=stopped)
    assert verdicts(facts)["RB-12"].verdict == "pass"


def test_after_finalising_a_zookeeper_that_is_gone_was_left_alone() -> None:
    for facts in (
        replace(finalized(), collected=frozenset({KRAFT}), zookeeper=None),
        replace(finalized(), zookeeper=zookeeper(migration_present=False, kraft_metadata_offset=None)),
    ):
        assert verdicts(facts)["POST-04"].verdict == "not_applicable"


def test_different_identities_are_told_with_the_command_that_lets_both_in() -> None:
    rows = [
        ("/migration", "sasl", "kraft"),
        ("/brokers/topics", "sasl", "old"),
        ("/brokers/ids/0", "digest", "kafka:hmac:0af1"),
    ]
    result = verdicts(replace(dual_write(), identities=known_identities(rows)))["SEC-06"]
    assert result.verdict == "warn"
    assert "setAcl /migration digest:kafka:HASH:cdrwa,sasl:kraft:cdrwa,world:anyone:r" in result.evidence[0]
    alone = known_identities([("/brokers/topics", "sasl", "kafka"), ("/migration", "sasl", "kafka")])
    assert verdicts(replace(dual_write(), identities=alone))["SEC-06"].verdict == "pass"
    assert verdicts(replace(dual_write(), identities=Identities()))["SEC-06"].verdict == "not_applicable"


def test_what_was_mirrored_together_is_told_by_the_barriers() -> None:
    lost = (row("client_quotas", kind="zk_only", kraft_offset=300), row("acls", kraft_offset=302))
    together = replace(dual_write(), defect_rows=lost, deltas={300: (290, 305), 302: (290, 305)})
    assert verdicts(together)["DUR-18"].evidence == [
        "acls changed at offset 302, mirrored together with a lost quota change (offsets 291 to 305)"
    ]
    apart = replace(together, deltas={300: (290, 301), 302: (301, 305)})
    assert verdicts(apart)["DUR-18"].verdict == "pass"
    half_known = replace(together, deltas={302: (301, 305)})
    assert verdicts(half_known)["DUR-18"].evidence == ["acls changed at offset 302, near a lost quota change"]


def test_rows_that_were_not_listed_may_be_the_ones_that_a_check_looks_for() -> None:
    """Of each class and entity at least one row is listed, so that what is not listed at all does not exist."""
    many = replace(dual_write(), divergences={"lost_write": Sample(2_000, ("one",))})
    missing = replace(many, defect_rows=(row("topics"), row("client_quotas", kraft_offset=1), row("acls")))
    cut = "the report lists 3 of 2000 rows that are defects: raise report.rows"
    for check_id in ("DUR-14", "DUR-18"):
        assert (verdicts(missing)[check_id].verdict, verdicts(missing)[check_id].evidence) == ("unknown", [cut])
    other = replace(many, defect_rows=(row("partitions"), row("client_quotas")))
    assert {verdicts(other)[check_id].verdict for check_id in ("DUR-14", "DUR-15", "DUR-18")} == {"pass"}
    assert judge_gates(run_checks(missing), missing)["dual_write"].verdict == "no_go"
    listed = replace(missing, divergences={"lost_write": Sample(3, ("one",))})
    assert {verdicts(listed)[check_id].verdict for check_id in ("DUR-14", "DUR-18")} == {"pass"}


def test_a_feature_level_beyond_the_controllers_kills_the_next_one_that_starts() -> None:
    whole = kraft_clusters.kraft()
    late = LevelChange(1900, 2, "share.version")
    result = verdicts(replace(whole, other_levels=[*whole.other_levels, late]))["LOG-02"]
    assert (result.verdict, result.violations) == ("fail", 1)
    said = "share.version was finalised at level 2, the controllers support 0 to 1 (offset 1900)"
    assert result.evidence[0].startswith(said)
    unregistered = replace(whole, controllers=(), other_levels=[*whole.other_levels, late])
    assert verdicts(unregistered)["LOG-02"].evidence[0].startswith(said), "by the release, where none is registered"
    below_the_snapshot = replace(whole, other_levels=[*whole.other_levels, replace(late, offset=1400)])
    assert verdicts(below_the_snapshot)["LOG-02"].verdict == "pass"
    older = kraft_clusters.copy(3002, checkpoints=(Checkpoint("1300.checkpoint", 1300, EPOCH, True),))
    one_behind = replace(below_the_snapshot, copies=[*whole.copies[:2], older])
    assert verdicts(one_behind)["LOG-02"].verdict == "fail", "each node starts from its own newest checkpoint"


def test_whoever_accepts_interruptions_is_warned_of_them_and_may_upgrade() -> None:
    facts = replace(CASES["UPG-04"].fails, interruption_accepted=True)
    assert verdicts(facts)["UPG-04"].verdict == "warn"
    assert judge_gates(run_checks(facts), facts)["upgrade"].verdict == "go"


@pytest.mark.parametrize(
    ("version", "verdict"), [("4.0", "fail"), ("4.1", "fail"), ("4.2", "pass"), ("4.3", "pass"), (None, "unknown")]
)
def test_4_0_and_4_1_throw_on_a_clearing_after_a_removal(version: str | None, verdict: str) -> None:
    facts = replace(kraft_clusters.kraft(), findings={CLEAR_REMOVED: ONE}, kafka_version=version)
    assert verdicts(facts)["LOG-02"].verdict == verdict


def test_a_load_whose_end_only_the_leaders_copy_has_is_no_open_transaction() -> None:
    """Of copies taken one after the other the majority ends inside it: that is no fault of the cluster."""
    transactions = load()
    proved = last_stable(CommittedEnd(LOAD_BEGIN + 2, "majority", "two have it"), transactions)
    result = verdicts(replace(dual_write(), committed=proved))["CAP-06"]
    assert (result.verdict, result.evidence) == (
        "unknown",
        [
            f"transaction ZK Migration, open since offset {LOAD_BEGIN}, ends at offset {LOAD_END}, which is not proved "
            "committed: give the logs of a majority of the voters, copied at one time"
        ],
    )
    whole = last_stable(CommittedEnd(LOAD_END + 1, "majority", "two have it"), transactions)
    assert verdicts(replace(dual_write(), committed=whole))["CAP-06"].verdict == "pass"
    before = last_stable(CommittedEnd(LOAD_BEGIN, "checkpoint", "one has it"), transactions)
    assert verdicts(replace(dual_write(), committed=before))["CAP-06"].verdict == "pass"


def test_records_of_an_open_transaction_are_not_called_unproved() -> None:
    transactions = load(Marker(380, "BEGIN_TRANSACTION_RECORD", "again", NOW))
    facts = dual_write()
    assert facts.plan is not None
    proved = last_stable(CommittedEnd(facts.plan.leading.end, "high_watermark", "the leader said so"), transactions)
    assert proved.end_exclusive == 380
    assert not [text for text in notes(replace(facts, committed=proved, transactions=transactions)) if "proved" in text]
