"""Tiny logs and tables in which every rule that single rows show is broken once, beside healthy neighbours.

The findings they lead to are made by the very functions that make a run's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES
from schemas.entities import ENTITIES
from schemas.replayed import ROW_VERSION
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from schemas.zookeeper.findings import TREE_DIGEST, TREE_UNPROVED
from tests.held import held, held_log, hold
from tests.zookeeper.malformed import MALFORMED
from tests.zookeeper.trees import of, state_of, state_rows, znode
from transforms.clusters import CLUSTER
from transforms.kraft.replay import rows as replay
from transforms.kraft.replay.events import applied
from transforms.kraft.replay.extent import Extent
from transforms.kraft.replay.findings import log_findings
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.verify import checkpoint_differences, checkpoint_records
from transforms.reconcile.judge import queries
from transforms.reconcile.judge.facts import Sample
from transforms.zookeeper.read.arrow import znode_batch

Row = dict[str, Any]
# The cluster of rows that name none.
ALONE = "c"
TABLES: dict[str, StructType] = {entity.name: entity.table.struct for entity in ENTITIES} | {
    "findings": FINDINGS.struct,
    "admin_operations": ADMIN_OPERATIONS.struct,
    "row_versions": ROW_VERSION,
}


def frame(spark: SparkSession, columns: StructType, rows: Sequence[Row]) -> DataFrame:
    """Rows with these columns; what is not given is null, but for the cluster."""
    values = [tuple({CLUSTER: ALONE, **row}.get(name) for name in columns.fieldNames()) for row in rows]
    return spark.createDataFrame(values, columns)


def of_cluster(cluster: str, rows: Sequence[Row]) -> list[Row]:
    """The rows as another cluster has them."""
    return [{**row, CLUSTER: cluster} for row in rows]


def record(offset: int, type_: str, body: Mapping[str, Any] | None = None, **columns: Any) -> Row:
    """One record of the log in bronze; `body` as Kafka's dump has it."""
    data = None if body is None else json.dumps(body)
    head: Row = {"offset": offset, "type": type_, "data": data, "control": False, "version": 0}
    return {**head, "epoch": 1, "append_time": 1000 * offset, **columns}


def registration(offset: int, broker: int, incarnation: str, **values: Any) -> Row:
    """A broker's registration, fenced as a new one is."""
    body = {"brokerId": broker, "brokerEpoch": offset, "incarnationId": incarnation, "fenced": True, "rack": None}
    return record(offset, "REGISTER_BROKER_RECORD", {**body, "endPoints": [], "features": [], **values})


def change(offset: int, broker: int, epoch: int, **values: int) -> Row:
    """A change of a registration: `fenced` (1, -1) or `inControlledShutdown` (1)."""
    body = {"brokerId": broker, "brokerEpoch": epoch, **values}
    return record(offset, "BROKER_REGISTRATION_CHANGE_RECORD", body)


def partition(offset: int, number: int, isr: list[int], **columns: Any) -> Row:
    """A PartitionRecord of topic `t`."""
    whole: Row = {"topic_id": "t", "partition_id": number, "replicas": [0, 1, 2], "isr": isr, "leader": isr[0]}
    return record(offset, "PARTITION_RECORD", **{**whole, "leader_epoch": 0, "partition_epoch": 0, **columns})


def isr_change(offset: int, number: int, isr: list[int] | None, leader: int = -2) -> Row:
    """A change of topic `t`'s partition; the leader -2 is 'unchanged'."""
    columns: Row = {"topic_id": "t", "partition_id": number, "isr": isr, "leader": leader, "leader_recovery_state": -1}
    return record(offset, "PARTITION_CHANGE_RECORD", **columns)


def topic(offset: int, name: str, topic_id: str) -> Row:
    return record(offset, "TOPIC_RECORD", {"name": name, "topicId": topic_id})


def config(offset: int, name: str) -> Row:
    """A configuration of topic `orders`."""
    return record(offset, "CONFIG_RECORD", {"resourceType": 2, "resourceName": "orders", "name": name, "value": "1"})


def producer_ids(offset: int, following: int) -> Row:
    return record(offset, "PRODUCER_IDS_RECORD", {"brokerId": 0, "brokerEpoch": 1, "nextProducerId": following})


def acl_and_credential(offset: int) -> list[Row]:
    """An ACL, a SCRAM credential and a controller, each made and removed."""
    acl = {"id": "gone", "resourceType": 2, "resourceName": "t", "patternType": 3, "principal": "User:a"}
    acl |= {"host": "*", "operation": 3, "permissionType": 3}
    scram = {"name": "alice", "mechanism": 1, "salt": "s", "storedKey": "k", "serverKey": "k", "iterations": 4096}
    controller = {
        "controllerId": 3009,
        "incarnationId": "i",
        "zkMigrationReady": False,
        "endPoints": [],
        "features": [],
    }
    steps = [
        ("ACCESS_CONTROL_ENTRY_RECORD", acl),
        ("USER_SCRAM_CREDENTIAL_RECORD", scram),
        ("REGISTER_CONTROLLER_RECORD", controller),
        ("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "gone"}),
        ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "alice", "mechanism": 1}),
        ("UNREGISTER_CONTROLLER_RECORD", {"controllerId": 3009}),
    ]
    return [record(offset + at, kind, body) for at, (kind, body) in enumerate(steps)]


# Dual write is from offset 20 to 90.
DUAL_WRITE = (20, 90)
HEALTHY_LOG: list[Row] = [
    # Registered, shut down in order and back; then killed, fenced for its silence, and back; told again by the same.
    registration(1, 0, "a"),
    change(2, 0, 1, fenced=-1),
    change(3, 0, 1, inControlledShutdown=1),
    change(4, 0, 1, fenced=1),
    registration(5, 0, "b"),
    change(6, 0, 5, fenced=-1),
    change(7, 0, 5, fenced=1),
    registration(8, 0, "c"),
    change(9, 0, 8, fenced=-1),
    registration(10, 0, "c", fenced=False),
    # Gone for good, and its id given to another.
    registration(11, 1, "d"),
    change(12, 1, 11, fenced=-1),
    record(13, "UNREGISTER_BROKER_RECORD", {"brokerId": 1, "brokerEpoch": 11}),
    registration(14, 1, "e"),
    change(15, 1, 14, fenced=-1),
    topic(16, "orders", "t"),
    partition(17, 0, [0, 1, 2]),
    partition(18, 1, [0, 1, 2]),
    # Before dual write, and after it, an ISR may shrink quietly.
    isr_change(19, 1, [0, 1]),
    isr_change(21, 1, [0, 1, 2]),
    isr_change(22, 0, [0], leader=0),
    isr_change(23, 0, [0, 1]),
    isr_change(24, 0, [0, 2, 1]),
    isr_change(25, 0, None, leader=1),
    isr_change(26, 0, [1, 2, 0]),
    # Replaced as a whole: no change of what was.
    partition(27, 0, [1]),
    producer_ids(30, 1000),
    producer_ids(31, 2000),
    isr_change(95, 0, [1, 2]),
    isr_change(96, 0, [2]),
    # Made, cleared and removed in order; its partition goes with it.
    topic(80, "removed", "removed-id"),
    partition(81, 0, [0], topic_id="removed-id"),
    record(82, "CLEAR_ELR_RECORD", {"topicName": "removed"}),
    record(83, "REMOVE_TOPIC_RECORD", {"topicId": "removed-id"}),
    *acl_and_credential(97),
]
BROKEN_LOG: list[Row] = [
    *HEALTHY_LOG,
    # Of a name that Kafka does not know: from 4.3 on it is in no checkpoint.
    config(29, "vendor.key"),
    # The first process of broker 7 registers again after the second one did.
    registration(32, 7, "first"),
    change(33, 7, 32, fenced=-1),
    change(34, 7, 32, fenced=1),
    registration(35, 7, "second"),
    change(36, 7, 35, fenced=-1),
    change(37, 7, 35, fenced=1),
    registration(38, 7, "first"),
    change(39, 7, 38, fenced=-1),
    # Broker 8 was taken for alive when another registered.
    registration(40, 8, "one"),
    change(41, 8, 40, fenced=-1),
    registration(42, 8, "other"),
    change(43, 8, 42, fenced=-1),
    # The same, but shut down since; the same, but replaced again in order.
    registration(44, 9, "one"),
    change(45, 9, 44, fenced=-1),
    registration(46, 9, "other"),
    registration(47, 6, "one"),
    change(48, 6, 47, fenced=-1),
    registration(49, 6, "other"),
    registration(50, 6, "third"),
    change(51, 6, 50, fenced=-1),
    change(52, 0, 99, fenced=1),
    # Out of the ISR, and the leader epoch stays; twice in one partition, once after it grew.
    partition(60, 5, [0, 1, 2]),
    isr_change(61, 5, [0, 1]),
    isr_change(62, 5, [0, 1, 2]),
    isr_change(63, 5, [2, 0]),
    isr_change(64, 5, [2], leader=2),
    isr_change(65, 6, [0]),
    partition(66, 7, [0], directories=["one"]),
    topic(70, "orders", "another"),
    record(71, "REMOVE_TOPIC_RECORD", {"topicId": "never"}),
    producer_ids(72, 1500),
    # Gone already, never there, or there with another epoch.
    record(73, "UNREGISTER_BROKER_RECORD", {"brokerId": 5, "brokerEpoch": 11}),
    record(74, "UNREGISTER_BROKER_RECORD", {"brokerId": 9, "brokerEpoch": 44}),
    record(75, "REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "nobody", "mechanism": 1}),
    record(76, "UNREGISTER_CONTROLLER_RECORD", {"controllerId": 3003}),
    record(78, "CLEAR_ELR_RECORD", {"topicName": "nowhere"}),
    partition(79, 0, [0], topic_id="of-no-topic"),
    isr_change(86, 0, [0]) | {"topic_id": "removed-id"},
    record(103, "REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": "gone"}),
    # Of all topics, after one that was made and removed since the snapshot.
    topic(104, "again", "again-id"),
    record(105, "REMOVE_TOPIC_RECORD", {"topicId": "again-id"}),
    record(106, "CLEAR_ELR_RECORD", {"topicName": ""}),
]
CHECKPOINT = 31


def checkpoint(log: Sequence[Row], *, without: int | None = None) -> list[Row]:
    """What a checkpoint at CHECKPOINT holds of the living rows, but for one offset's."""
    kept = {10: {"fenced": False}, 14: {"fenced": False}, 16: {}, 27: {}, 30: {}}
    latest = [row for row in log if row["offset"] in kept and row["offset"] != without]
    made = []
    for position, row in enumerate(latest):
        data = row["data"] and json.dumps({**json.loads(row["data"]), **kept[row["offset"]]})
        made.append({**row, "data": data, "offset": position, "checkpoint_offset": CHECKPOINT})
    # Partition 1 changed twice since it was made.
    changed = partition(len(made), 1, [0, 1, 2], partition_epoch=2)
    return [*made, {**changed, "checkpoint_offset": CHECKPOINT}]


def log_rows(
    spark: SparkSession,
    log: Sequence[Row],
    snapshot: Sequence[Row],
) -> DataFrame:
    """Rows of silver findings that the logs and checkpoints of one cluster or several lead to."""
    bronze = hold(frame(spark, KRAFT_RECORDS.struct, [*log, *snapshot]))
    clusters = {row.get(CLUSTER, ALONE) for row in log}
    extents = {cluster: Extent(1000) for cluster in clusters}
    replayed = held_log(bronze.where("checkpoint_offset IS NULL"), extents)
    found = log_findings(replayed, replayed, hold(replay.fold(replayed.events)), applied(bronze, extents), {})
    levels: dict[str, dict[int, int | None]] = defaultdict(dict)
    for row in snapshot:
        levels[row.get(CLUSTER, ALONE)][row["checkpoint_offset"]] = 13
    offsets = {cluster: sorted(mine) for cluster, mine in levels.items()}
    own = held(Log.of_checkpoints(checkpoint_records(bronze, offsets)))
    return hold(found.unionByName(checkpoint_differences(replayed, own, levels)))


def znode_findings() -> list[Row]:
    """Rows of silver findings of every malformed znode, of what could not be read, and of what a tree's digest says."""
    facts = [fact for path, data, _ in MALFORMED for fact in of(state_of(path, data), "findings")]
    for path in ("/config/users/denied", "snapshot.9", "log.9"):
        unread = znode(path, b"x")._replace(data=None, data_is_null=False, problem="not readable")
        facts += of(state_rows([znode_batch([unread])]), "findings")
    for said in (b"it has it", TREE_UNPROVED.encode()):
        facts += of(state_of(TREE_DIGEST, said), "findings")
    return [{"source": "zookeeper", "place": fact["subject"], **fact} for fact in facts]


def samples(found: DataFrame) -> dict[str, dict[str, Sample]]:
    """What `queries.violations` found, as the facts of a run have it, by cluster."""
    totals: dict[tuple[str, str], int] = {}
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in sorted(queries.samples(found).collect(), key=lambda row: int(row["number"])):
        totals[row[CLUSTER], row["code"]] = row["total"]
        texts[row[CLUSTER], row["code"]].append(row["text"])
    by_cluster: dict[str, dict[str, Sample]] = defaultdict(dict)
    for (cluster, code), total in totals.items():
        by_cluster[cluster][code] = Sample(total, tuple(texts[cluster, code]))
    return dict(by_cluster)


def gathered(
    spark: SparkSession,
    tables: Mapping[str, Sequence[Row]],
    findings: DataFrame,
    bronze: tuple[Sequence[Row], Sequence[Row]],
    known: Mapping[str, queries.Known],
) -> dict[str, dict[str, Sample]]:
    """Violations by cluster and code of silver rows, of findings and of bronze (znodes, records)."""
    silver = {name: frame(spark, columns, tables.get(name, ())) for name, columns in TABLES.items()}
    silver["findings"] = silver["findings"].unionByName(findings, allowMissingColumns=True)
    znodes, records = frame(spark, ZK_ZNODES.struct, bronze[0]), frame(spark, KRAFT_RECORDS.struct, bronze[1])
    return samples(queries.violations(silver, znodes, records, known))
