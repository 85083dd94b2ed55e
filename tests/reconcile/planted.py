"""Tiny logs and tables in which every rule that single rows show is broken once, beside healthy neighbours.

The findings they lead to are made by the very functions that make a run's.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from schemas.bronze import KRAFT_RECORDS, ZK_TRANSACTIONS, ZK_ZNODES
from schemas.entities import ENTITIES
from schemas.replayed import ROW_VERSION_COLUMNS
from schemas.silver import ADMIN_OPERATIONS, BARRIERS, FINDINGS, ZOOKEEPER_WRITES
from schemas.zookeeper.findings import TREE_DIGEST, TREE_UNPROVED
from tests.isr.told import batch
from tests.zookeeper.malformed import MALFORMED
from tests.zookeeper.trees import of, state_of, state_rows, znode
from transforms.frames import columns_of, frame, from_arrow
from transforms.kernel.replay import DecodedCheckpoint, Plan, TableKind, replay
from transforms.kraft.replay.extent import Extent
from transforms.reconcile.judge import queries
from transforms.reconcile.judge.facts import Sample
from transforms.reconcile.judge.log_look import LogLook, LogParams
from transforms.reconcile.judge.questions import broken_rules
from transforms.reconcile.judge.samples import Samples
from transforms.reconcile.judge.znode_look import TransactionLook, ZnodeLook
from transforms.reconcile.judge.zookeeper_writes import Logged
from transforms.zookeeper.read.arrow import znode_batch

Row = dict[str, Any]
_OF_A_RUN = ("cluster", "run_id", "snapshot_id")
TABLES: dict[str, pl.Schema] = {entity.name: columns_of(entity.row_columns) for entity in ENTITIES} | {
    "findings": columns_of(FINDINGS.columns, *_OF_A_RUN),
    "admin_operations": columns_of(ADMIN_OPERATIONS.columns, *_OF_A_RUN),
    "row_versions": columns_of(ROW_VERSION_COLUMNS, *_OF_A_RUN),
    "barriers": columns_of(BARRIERS.columns, *_OF_A_RUN),
    "zookeeper_writes": columns_of(ZOOKEEPER_WRITES.columns, *_OF_A_RUN),
    "records": columns_of(KRAFT_RECORDS.columns, *_OF_A_RUN),
    "znodes": columns_of(ZK_ZNODES.columns, *_OF_A_RUN),
    "transactions": columns_of(ZK_TRANSACTIONS.columns, *_OF_A_RUN),
}


def table(name: str, rows: Sequence[Row]) -> pl.DataFrame:
    """Rows of one of TABLES; what is not given is null."""
    return frame(rows, TABLES[name])


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
    steps: list[tuple[str, Row]] = [
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


def log_findings(log: Sequence[Row], snapshot: Sequence[Row] = ()) -> pl.DataFrame:
    """Silver findings that a log and its checkpoints lead to."""
    in_order = sorted(log, key=lambda row: int(row["offset"]))
    checkpoints = {
        offset: DecodedCheckpoint(13, True, lambda offset=offset: [batch(_of_checkpoint(snapshot, offset))])  # type: ignore[misc]
        for offset in {row["checkpoint_offset"] for row in snapshot}
    }
    told = replay(Plan("one", Extent(1000), checkpoints=checkpoints), [batch(in_order)])
    found = [each.rows for each in told if each.kind in (TableKind.FINDINGS, TableKind.DIFFERENCES)]
    return pl.concat([table("findings", ()), *(from_arrow(rows, TABLES["findings"]) for rows in found)])


def _of_checkpoint(snapshot: Sequence[Row], offset: int) -> list[Row]:
    return [row for row in snapshot if row["checkpoint_offset"] == offset]


def znode_findings() -> list[Row]:
    """Rows of silver findings of every malformed znode, of what could not be read, and of what a tree's digest says."""
    facts = [fact for path, data, _ in MALFORMED for fact in of(state_of(path, data), "findings")]
    for path in ("/config/users/denied", "snapshot.9", "log.9"):
        unread = znode(path, b"x")._replace(data=None, data_is_null=False, problem="not readable")
        facts += of(state_rows([znode_batch([unread])]), "findings")
    for said in (b"it has it", TREE_UNPROVED.encode()):
        facts += of(state_of(TREE_DIGEST, said), "findings")
    return [{"source": "zookeeper", "place": fact["subject"], **fact} for fact in facts]


def samples(*found: pl.DataFrame | Samples) -> dict[str, Sample]:
    """What broke a rule, as the facts of a run have it."""
    every = Samples()
    for each in found:
        every.merge(each if isinstance(each, Samples) else Samples([each]))
    totals: dict[str, int] = {}
    texts: dict[str, list[str]] = defaultdict(list)
    for row in every.rows():
        totals[row["code"]] = row["total"]
        texts[row["code"]].append(row["text"])
    return {code: Sample(total, tuple(texts[code])) for code, total in totals.items()}


@dataclass(frozen=True)
class Sides:
    """Both sides as tables."""

    tables: Mapping[str, pl.DataFrame]
    findings: pl.DataFrame
    admin_operations: pl.DataFrame
    row_versions: pl.DataFrame


@dataclass(frozen=True)
class Trees:
    """Znodes without their data, and what all of them showed."""

    znodes: pl.DataFrame
    look: ZnodeLook


@dataclass(frozen=True)
class LogRead:
    """What all records showed."""

    look: LogLook


@dataclass(frozen=True)
class Written:
    """ZooKeeper's transaction logs; of a dump there are none."""

    barriers: pl.DataFrame = field(default_factory=lambda: table("barriers", ()))
    writes: pl.DataFrame = field(default_factory=lambda: table("zookeeper_writes", ()))
    logged: Logged = field(default_factory=Logged)
    look: TransactionLook = field(default_factory=TransactionLook)
    born: int | None = None


def trees_of(rows: Sequence[Row], at_once: int = 1000) -> Trees:
    """Znodes of both trees as a run reads them, so many at once."""
    znodes, look = table("znodes", rows), ZnodeLook()
    for some in znodes.iter_slices(at_once):
        look.add(some)
    return Trees(znodes.drop("data", "data_is_null"), look)


def log_read(rows: Sequence[Row], params: LogParams, at_once: int = 1000) -> LogRead:
    """Records as a run reads them, so many at once."""
    look = LogLook(params)
    for some in table("records", rows).iter_slices(at_once):
        look.add(some)
    return LogRead(look)


def sides_of(tables: Mapping[str, Sequence[Row]], *findings: pl.DataFrame) -> Sides:
    """Silver rows by table, and findings beside those among them."""
    silver = {name: table(name, tables.get(name, ())) for name in TABLES}
    return Sides(
        {entity.name: silver[entity.name] for entity in ENTITIES},
        pl.concat([silver["findings"], *findings]),
        silver["admin_operations"],
        silver["row_versions"],
    )


def gathered(
    tables: Mapping[str, Sequence[Row]],
    findings: Sequence[pl.DataFrame],
    bronze: tuple[Sequence[Row], Sequence[Row]],
    known: queries.Known,
    at_once: int = 1000,
) -> Samples:
    """What breaks a rule in silver rows, in findings and in bronze (znodes, records), so many of which are read at once."""
    loads = [] if known.load is None else [known.load]
    trees, read = trees_of(bronze[0], at_once), log_read(bronze[1], LogParams(loads=loads), at_once)
    return broken_rules(known, sides_of(tables, *findings), trees, read, Written(), None)
