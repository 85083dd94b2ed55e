"""Records planted in a healthy dual-write log: past `/migration`'s offset, past the committed end, after finalising.

`/migration` is moved back to offset 262 besides, so that real records lie past it too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.report import Report
from tests.captures import capture
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from tests.pipeline.logs import append, record, writable_copy
from tests.pipeline.planted import Fault, Row, assert_nothing_else, assert_shown
from tests.pipeline.rows import (
    HEALTHY,
    PRISTINE,
    STATED,
    acl,
    cell,
    config,
    only_zk,
    partition,
    place,
    quota,
    topic_id,
    whole,
)
from tests.pipeline.trees import At, Tree, create_topic, topic

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

MIGRATION_OFFSET = 262
# The log's last record is of 1795233159; what is appended is a second younger, and far from late.
NOW = 1_795_233_160_500
AFTER = At(1400, NOW + 20)
BEFORE_CLAIM = At(400, 1_795_233_090_000)
TOPIC, BROKER, LITERAL, ALLOW = 2, 4, 3, 3
OTHER_ID, FRESH_ID, HALF_ID = "AAECAwQFBgcICQoLDA0ODw", "AAECAwQFBgcICQoLDA0OEA", "AAECAwQFBgcICQoLDA0OEQ"
TOKEN = "flgpRDLITEGY7_-2pdrkQA"
DAVE_WRITES, ERIN_WRITES = "HL779lGJSxmyOkz5jZ7zEw", "e4F4JDyHSNiIk5aJs9M4gQ"
PLACED = topic_id("placed")
NONE: dict[str, list[int]] = {"removingReplicas": [], "addingReplicas": []}


def new_partition(topic_uuid: str, replicas: list[int]) -> tuple[bytes | None, bytes]:
    return record(
        "PARTITION_RECORD",
        partitionId=0,
        topicId=topic_uuid,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leaderEpoch=0,
        partitionEpoch=0,
        **NONE,
    )


def set_config(kind: int, name: str, key: str, value: str | None) -> tuple[bytes | None, bytes]:
    return record("CONFIG_RECORD", resourceType=kind, resourceName=name, name=key, value=value)


def set_quota(
    kind: str, name: str | None, key: str, value: float, *, remove: bool = False
) -> tuple[bytes | None, bytes]:
    entity = [{"entityType": kind, "entityName": name}]
    return record("CLIENT_QUOTA_RECORD", entity=entity, key=key, value=value, remove=remove)


COMMITTED = [
    set_config(TOPIC, "orders", "retention.ms", "1"),
    set_config(TOPIC, "orders", "max.message.bytes", "3000000"),
    set_config(TOPIC, "orders", "max.message.bytes", "4000000"),
    set_quota("user", "alice", "producer_byte_rate", 1.0),
    set_quota("client-id", None, "request_percentage", 0.0, remove=True),
    record(
        "ACCESS_CONTROL_ENTRY_RECORD",
        id=FRESH_ID,
        resourceType=TOPIC,
        resourceName="fresh",
        patternType=LITERAL,
        principal="User:new",
        host="*",
        operation=3,
        permissionType=ALLOW,
    ),
    record("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", id=ERIN_WRITES),
    record("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", name="alice", mechanism=1),
    record("REMOVE_DELEGATION_TOKEN_RECORD", tokenId=TOKEN),
    record("PRODUCER_IDS_RECORD", brokerId=0, brokerEpoch=1, nextProducerId=3000),
    record("TOPIC_RECORD", name="fresh", topicId=FRESH_ID),
    new_partition(FRESH_ID, [0, 1]),
    record("TOPIC_RECORD", name="half", topicId=HALF_ID),
    new_partition(HALF_ID, [1, 2]),
    record("REMOVE_TOPIC_RECORD", topicId=PLACED),
    record("TOPIC_RECORD", name="placed", topicId=OTHER_ID),
    new_partition(OTHER_ID, [2, 1]),
    record("PARTITION_CHANGE_RECORD", partitionId=7, topicId=topic_id("orders"), isr=[0, 1]),
]
TAIL = [
    set_config(TOPIC, "orders", "min.insync.replicas", "1"),
    set_config(TOPIC, "payments", "flush.ms", "9"),
    record("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", id=DAVE_WRITES),
]


def half_written(tree: Tree) -> None:
    tree.create("/brokers/topics/half", topic(HALF_ID, {"0": [1, 2]}), AFTER)


def written_once(tree: Tree) -> None:
    """The first of two changes is mirrored already."""

    def edit(document: dict[str, dict[str, str]]) -> None:
        document["config"]["max.message.bytes"] = "3000000"

    tree.change("/config/topics/orders", edit, AFTER)


def unmirrored(path: str, key: str, value: str | None):  # type: ignore[no-untyped-def]
    def edit(document: dict[str, dict[str, str]]) -> None:
        document["config"].pop(key)
        if value is not None:
            document["config"][key] = value

    return lambda tree: tree.miss(path, edit)


def queue_deletion(tree: Tree) -> None:
    create_topic(tree, "queued", FRESH_ID, {"0": [0, 1]}, BEFORE_CLAIM)
    tree.create("/admin/delete_topics/queued", None, At(450, BEFORE_CLAIM.time))


def nothing(tree: Tree) -> None:
    """What the log alone shows."""


def mild(row: Row) -> Row:
    return Row(**{**vars(row), "severity": "info"})


def only_kraft(entity: str, key: dict[str, object], value: object, class_: str) -> Row:
    return Row(entity, key, None, "kraft_only", None, value, class_, "info")


def moved_partition() -> list[Row]:
    """Partition 0 of a topic that was removed and made again: in ZooKeeper it is the old one."""
    old, new = partition("placed", 0), whole([2, 1], 2, [2, 1])
    rows = []
    for column, there in old.items():
        if there != new[column]:
            class_ = "in_sync" if column == "isr" else "lag"
            rows.append(cell("partitions", place("placed", 0), column, there, new[column], class_, "info"))
    return rows


FAULTS = [
    Fault(
        "a changed configuration",
        nothing,
        (cell("configs", config("TOPIC", "orders", "retention.ms"), "value", "172800000", "1", "lag", "info"),),
    ),
    Fault(
        "a configuration changed twice, mirrored once",
        written_once,
        (
            cell(
                "configs",
                config("TOPIC", "orders", "max.message.bytes"),
                "value",
                "3000000",
                "4000000",
                "in_flight",
                "info",
            ),
        ),
    ),
    Fault(
        "a changed quota",
        nothing,
        (cell("client_quotas", quota("producer_byte_rate", user="alice"), "value", 4194304.0, 1.0, "lag", "info"),),
    ),
    Fault(
        "a removed quota",
        nothing,
        (mild(only_zk("client_quotas", quota("request_percentage", client_id=None), 55.0, "lag")),),
    ),
    Fault("a new ACL", nothing, (only_kraft("acls", acl("TOPIC", "fresh", "User:new", "READ"), {}, "lag"),)),
    Fault(
        "an ACL made and removed past the offset",
        nothing,
        (mild(only_zk("acls", acl("TOPIC", "wide", "User:erin", "WRITE"), {}, "in_flight")),),
    ),
    Fault(
        "a removed credential",
        nothing,
        (
            Row(
                "scram_credentials",
                {"user": "alice", "mechanism": "SCRAM-SHA-256"},
                None,
                "zk_only",
                {"salt": "hidden", "stored_key": "hidden", "server_key": "hidden", "iterations": 4096},
                None,
                "lag",
                "info",
            ),
        ),
    ),
    Fault(
        "a removed token",
        nothing,
        (
            mild(
                only_zk(
                    "delegation_tokens",
                    {"token_id": TOKEN},
                    {
                        "owner": "User:alice",
                        "requester": "User:alice",
                        "renewers": ["User:renewer"],
                        "issue_timestamp": 1_795_233_085_982,
                        "max_timestamp": 1_795_319_485_982,
                        "expiry_timestamp": 1_795_319_485_982,
                    },
                    "lag",
                )
            ),
        ),
    ),
    Fault(
        "producer ids taken twice, mirrored once",
        nothing,
        (cell("producer_ids", {}, "next_producer_id", 2000, 3000, "in_flight", "info"),),
    ),
    Fault(
        "a new topic",
        nothing,
        (
            only_kraft("topics", {"topic": "fresh"}, FRESH_ID, "lag"),
            only_kraft("partitions", place("fresh", 0), whole([0, 1], 0, [0, 1]), "lag"),
        ),
    ),
    Fault(
        "a new topic, half written",
        half_written,
        tuple(
            cell("partitions", place("half", 0), name, None, whole([1, 2], 1, [1, 2])[name], "in_flight", "info")
            for name in STATED
        ),
    ),
    Fault(
        "a topic removed and made again with another id",
        nothing,
        (
            cell("topics", {"topic": "placed"}, "topic_id", PLACED, OTHER_ID, "lag", "info"),
            *moved_partition(),
            *[mild(only_zk("partitions", place("placed", n), partition("placed", n), "lag")) for n in (1, 2)],
        ),
    ),
    Fault(
        "an ISR that shrank",
        nothing,
        (cell("partitions", place("orders", 7), "isr", [0, 1, 2], [0, 1], "lag", "info"),),
    ),
    Fault(
        "a real record past the offset, unmirrored",
        unmirrored("/config/users/dave", "request_percentage", None),
        (only_kraft("client_quotas", quota("request_percentage", user="dave"), 12.5, "lag"),),
    ),
    Fault(
        "the last record that the offset has passed, lost",
        unmirrored("/config/brokers/2", "follower.replication.throttled.rate", None),
        (
            Row(
                "configs",
                config("BROKER", "2", "follower.replication.throttled.rate"),
                None,
                "kraft_only",
                None,
                "2000000",
                "lost_write",
                "error",
            ),
        ),
    ),
    Fault(
        "a topic on its way out",
        queue_deletion,
        (
            mild(only_zk("topics", {"topic": "queued"}, FRESH_ID, "pending_delete")),
            mild(only_zk("partitions", place("queued", 0), whole([0, 1], 0, [0, 1]), "pending_delete")),
        ),
    ),
    Fault(
        "a change that is not committed",
        nothing,
        (
            cell(
                "configs",
                config("TOPIC", "orders", "min.insync.replicas"),
                "value",
                "2",
                "1",
                "uncommitted_tail",
                "info",
            ),
        ),
    ),
    Fault(
        "a new row that is not committed",
        nothing,
        (only_kraft("configs", config("TOPIC", "payments", "flush.ms"), "9", "uncommitted_tail"),),
    ),
    Fault(
        "a removal that is not committed",
        nothing,
        (mild(only_zk("acls", acl("TOPIC", "wide", "User:dave", "WRITE"), {}, "uncommitted_tail")),),
    ),
]


@in_fleet("planted-records")
def planted_records(folder: Path) -> Content:
    logs = writable_copy(HEALTHY / "kraft", folder / "kraft")
    append(logs, COMMITTED, NOW)
    append(logs, TAIL, NOW + 10, controllers=["3000"])
    tree = Tree(HEALTHY / "zookeeper.jsonl.gz")
    for fault in FAULTS:
        fault.plant(tree)
    tree.miss("/migration", lambda document: document.update(kraft_metadata_offset=MIGRATION_OFFSET))
    dump = {"dump": str(tree.save(folder / "tree.jsonl.gz"))}
    return settings_content(HEALTHY, folder, kraft={"folders": [str(logs)]}, zookeeper=dump)


@pytest.fixture
def behind(audited: Callable[[str], Audit]) -> Report:
    return audited("planted-records").report


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_record_is_judged_by_where_it_stands(behind: Report, fault: Fault) -> None:
    assert_shown(behind, fault)


def test_nothing_else_is_found_beside_them(behind: Report) -> None:
    assert_nothing_else(behind, FAULTS)


def test_what_is_not_committed_counts_as_lag_and_is_told(behind: Report) -> None:
    migration = behind.migration
    assert migration.log_end_offset is not None
    assert migration.committed_end_offset == migration.log_end_offset - len(TAIL)
    assert behind.lag.records == migration.log_end_offset - MIGRATION_OFFSET
    assert any(f"the last {len(TAIL)} records of the log are not proved committed" in note for note in behind.notes)


def test_a_replica_that_left_the_isr_without_a_new_leader_epoch_is_told(behind: Report) -> None:
    """Its record, the last one that is committed, names no leader, as no controller of a migration writes it."""
    check = next(check for check in behind.checks if check.id == "DUR-13")
    changed = f"{topic_id('orders')} partition 7: 2 left the ISR, the leader epoch stayed"
    assert (check.verdict, check.evidence) == ("warn", [f"{changed} (offset {behind.migration.committed_end_offset})"])


@in_fleet("planted-finalised")
def planted_finalised(folder: Path) -> Content:
    finalised = capture("3.9.1", "12")
    tree = Tree(finalised / "zookeeper.jsonl.gz")
    unmirrored("/config/brokers/2", "follower.replication.throttled.rate", None)(tree)
    return settings_content(finalised, folder, zookeeper={"dump": str(tree.save(folder / "tree.jsonl.gz"))})


def test_after_finalising_only_what_was_lost_before_is_a_defect(audited: Callable[[str], Audit]) -> None:
    report = audited("planted-finalised").report
    assert report.divergences.by_class == {"expected_stale": 8, "lost_write": 1}
    assert [row.key["resource_name"] for row in report.divergences.rows if row.class_ == "lost_write"] == ["2"]


LOADED_AGAIN = [
    record("BEGIN_TRANSACTION_RECORD", name="ZK Migration"),
    record("TOPIC_RECORD", name="orders", topicId=topic_id("orders")),
    record("TOPIC_RECORD", name="payments", topicId=OTHER_ID),
    record("ZK_MIGRATION_STATE_RECORD", zkMigrationState=1),
    record("END_TRANSACTION_RECORD"),
]


@in_fleet("planted-second-load")
def planted_second_load(folder: Path) -> Content:
    logs = writable_copy(HEALTHY / "kraft", folder / "kraft")
    append(logs, LOADED_AGAIN, NOW)
    return settings_content(HEALTHY, folder, kraft={"folders": [str(logs)]})


def test_a_second_load_is_told(audited: Callable[[str], Audit]) -> None:
    """The records of a load come again, in a transaction of their own, after the first one ended."""
    report = audited("planted-second-load").report
    assert report.migration.log_end_offset is not None
    begun = report.migration.log_end_offset - len(LOADED_AGAIN) + 1
    check = next(check for check in report.checks if check.id == "DUR-08")
    assert (check.verdict, check.violations) == ("fail", 3)
    told = "\n".join(check.evidence)
    assert f"a load began at offset {begun}" in told
    assert "orders: made 2 times with the same id" in told
    assert "payments: a topic of this name was made while another was still there" in told
    assert "DUR-08" in report.gates["dual_write"].blocking


def test_the_capture_is_as_it_is_described() -> None:
    assert PRISTINE.json("/migration")["kraft_metadata_offset"] == 306
