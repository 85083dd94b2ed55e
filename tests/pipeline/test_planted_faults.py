"""Faults planted in a healthy dual-write tree: each is found as what it is, row for row, and nothing else is.

Two trees are audited: one in which writes were lost and rows never loaded, one that somebody else wrote after the KRaft
controller. Spellings that mean nothing are in both.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.report import Report
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from tests.pipeline.planted import Fault, assert_nothing_else, assert_shown
from tests.pipeline.rows import (
    HEALTHY,
    STATED,
    acl,
    cell,
    config,
    entry,
    only_kraft,
    only_zk,
    partition,
    place,
    quota,
    topic_id,
    whole,
)
from tests.pipeline.trees import At, Tree, create_topic

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

# The last write of /migration in the capture, the claim, and a moment before the load.
LAST_ZXID, LAST_TIME = 1341, 1_795_233_159_294
BEFORE_CLAIM = At(400, 1_795_233_090_000)
_zxid = LAST_ZXID


def later() -> At:
    """The next transaction after the last write of `/migration`."""
    global _zxid  # noqa: PLW0603 - transactions are numbered as they are made
    _zxid += 10
    return At(_zxid, LAST_TIME + _zxid - LAST_ZXID)


def state_path(name: str, number: int) -> str:
    return f"/brokers/topics/{name}/partitions/{number}/state"


def setting(key: str, value: str | None) -> Callable[[Any], None]:
    """Edit one key of a configuration's document; None removes it."""

    def edit(document: Any) -> None:
        document["config"].pop(key, None)
        if value is not None:
            document["config"][key] = value

    return edit


def merged(**values: Any) -> Callable[[Any], None]:
    return lambda document: document.update(values)


def nested(name: str, key: str, value: Any) -> Callable[[Any], None]:
    return lambda document: document[name].update({key: value})


def without(name: str, key: Any) -> Callable[[Any], object]:
    return lambda document: document[name].pop(key)


def missed(path: str, edit: Callable[[Any], Any]) -> Callable[[Tree], None]:
    return lambda tree: tree.miss(path, edit)


def changed(path: str, edit: Callable[[Any], Any]) -> Callable[[Tree], None]:
    return lambda tree: tree.change(path, edit, later())


def iterations(value: str) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        old = document["config"]["SCRAM-SHA-512"]
        document["config"]["SCRAM-SHA-512"] = old.rpartition("=")[0] + f"={value}"

    return edit


DEAD_ID = "JGOsC5vgTC-qm3jXDg7Vzw"
OTHER_ID = "AAECAwQFBgcICQoLDA0ODw"
TOKEN = "lhbli9vySw6YxQpCpTs9-g"
TOKENS = "/delegation_token/tokens"
TOKEN_ROW = {
    "owner": "User:alice",
    "requester": "User:alice",
    "renewers": ["User:renewer"],
    "issue_timestamp": 1_795_233_152_143,
    "max_timestamp": 1_795_319_552_143,
    "expiry_timestamp": 1_795_319_552_143,
}
IN_DUAL_WRITE = At(1200, 1_795_233_150_400)

# What no clock and no transaction after /migration's last write tells: the log's own story decides.
LOST = [
    Fault(
        "a topic that the load made up, and partitions added to it since",
        lambda tree: tree.never_made("/brokers/topics/audit.log_v1-raw"),
        (
            only_kraft("topics", {"topic": "audit.log_v1-raw"}, topic_id("audit.log_v1-raw"), "load_extra"),
            *[
                only_kraft("partitions", place("audit.log_v1-raw", n), partition("audit.log_v1-raw", n), class_)
                for n, class_ in enumerate(("load_extra", "lost_write", "lost_write"))
            ],
        ),
    ),
    Fault(
        "a removed topic that stayed",
        lambda tree: create_topic(tree, "dual-short", DEAD_ID, {"0": [2, 0], "1": [0, 1]}, IN_DUAL_WRITE),
        (
            only_zk("topics", {"topic": "dual-short"}, DEAD_ID, "lost_write"),
            only_zk("partitions", place("dual-short", 0), whole([2, 0], 2, [2, 0]), "lost_write"),
            only_zk("partitions", place("dual-short", 1), whole([0, 1], 0, [0, 1]), "lost_write"),
        ),
    ),
    Fault(
        "a topic that the load gave another id",
        missed("/brokers/topics/placed", merged(topic_id=OTHER_ID)),
        (cell("topics", {"topic": "placed"}, "topic_id", OTHER_ID, topic_id("placed"), "load_loss", "critical"),),
    ),
    Fault(
        "an election",
        missed(state_path("payments", 5), merged(leader=1, leader_epoch=2)),
        (
            cell("partitions", place("payments", 5), "leader", 1, 2, "lost_write"),
            cell("partitions", place("payments", 5), "leader_epoch", 2, 3, "lost_write"),
        ),
    ),
    Fault(
        "an election that KRaft never held",
        missed(state_path("orders", 3), merged(leader=2, leader_epoch=3)),
        (
            cell("partitions", place("orders", 3), "leader", 2, 0, "foreign_write"),
            cell("partitions", place("orders", 3), "leader_epoch", 3, 4, "foreign_write"),
        ),
    ),
    Fault(
        "an unclean election that KRaft never held",
        missed(state_path("orders", 6), merged(leader_recovery_state=1)),
        (cell("partitions", place("orders", 6), "leader_recovery_state", 1, 0, "foreign_write"),),
    ),
    Fault(
        "an ISR that grew",
        missed(state_path("orders", 4), merged(isr=[0, 1])),
        (cell("partitions", place("orders", 4), "isr", [0, 1], [0, 1, 2], "lost_write", "warning"),),
    ),
    Fault(
        "an ISR in another order",
        missed(state_path("orders", 5), merged(isr=[2, 0, 1])),
        (cell("partitions", place("orders", 5), "isr", [2, 0, 1], [0, 1, 2], "in_sync", "info"),),
    ),
    Fault(
        "replicas that the load put in another order",
        missed("/brokers/topics/payments", nested("partitions", "0", [1, 0])),
        (cell("partitions", place("payments", 0), "replicas", [1, 0], [0, 1], "load_loss", "warning"),),
    ),
    Fault(
        "replicas that the load did not take over",
        missed("/brokers/topics/payments", nested("partitions", "1", [1, 0])),
        (cell("partitions", place("payments", 1), "replicas", [1, 0], [1, 2], "load_loss"),),
    ),
    Fault(
        "replicas being added that the load left out",
        missed("/brokers/topics/payments", nested("adding_replicas", "2", [1])),
        (cell("partitions", place("payments", 2), "adding_replicas", [1], [], "load_loss", "warning"),),
    ),
    Fault(
        "replicas being removed that the load left out",
        missed("/brokers/topics/payments", nested("removing_replicas", "3", [2])),
        (cell("partitions", place("payments", 3), "removing_replicas", [2], [], "load_loss", "warning"),),
    ),
    Fault(
        "a partition that the load made up",
        missed("/brokers/topics/payments", without("partitions", "8")),
        (only_kraft("partitions", place("payments", 8), partition("payments", 8), "load_extra"),),
    ),
    Fault(
        "a state znode that the load made up",
        lambda tree: tree.never_made(state_path("wide", 7)),
        tuple(
            cell("partitions", place("wide", 7), name, None, partition("wide", 7)[name], "load_extra", severity)
            for name, severity in zip(STATED, ("warning", "error", "error", "error"), strict=True)
        ),
    ),
    Fault(
        "a topic's configuration that changed",
        missed("/config/topics/orders", setting("retention.ms", "86400000")),
        (cell("configs", config("TOPIC", "orders", "retention.ms"), "value", "86400000", "172800000", "lost_write"),),
    ),
    Fault(
        "a topic's configuration that was set",
        missed("/config/topics/orders", setting("max.message.bytes", None)),
        (only_kraft("configs", config("TOPIC", "orders", "max.message.bytes"), "2000000", "lost_write"),),
    ),
    Fault(
        "a topic's configuration that was removed",
        lambda tree: tree.create(
            "/config/topics/payments", '{"version":1,"config":{"cleanup.policy":"compact"}}', BEFORE_CLAIM
        ),
        (only_zk("configs", config("TOPIC", "payments", "cleanup.policy"), "compact", "lost_write"),),
    ),
    Fault(
        "a broker's configuration that KRaft never had",
        missed("/config/brokers/2", setting("follower.replication.throttled.rate", "1")),
        (
            cell(
                "configs",
                config("BROKER", "2", "follower.replication.throttled.rate"),
                "value",
                "1",
                "2000000",
                "foreign_write",
            ),
        ),
    ),
    Fault(
        "the brokers' default",
        missed("/config/brokers/<default>", setting("log.cleaner.threads", "1")),
        (cell("configs", config("BROKER", "", "log.cleaner.threads"), "value", "1", "2", "lost_write"),),
    ),
    Fault(
        "a user's quota",
        missed("/config/users/alice", setting("producer_byte_rate", "1048576")),
        (
            cell(
                "client_quotas", quota("producer_byte_rate", user="alice"), "value", 1048576.0, 4194304.0, "lost_write"
            ),
        ),
    ),
    Fault(
        "a client's quota",
        lambda tree: tree.never_made("/config/clients/app-9"),
        (only_kraft("client_quotas", quota("producer_byte_rate", client_id="app-9"), 11.0, "lost_write"),),
    ),
    Fault(
        "a quota of a user's client that KRaft never had",
        missed("/config/users/alice/clients/app-1", setting("request_percentage", "99")),
        (
            cell(
                "client_quotas",
                quota("request_percentage", client_id="app-1", user="alice"),
                "value",
                99.0,
                25.0,
                "foreign_write",
            ),
        ),
    ),
    Fault(
        "an address's quota that KRaft never had",
        missed("/config/ips/10.1.2.4", setting("connection_creation_rate", "4")),
        (cell("client_quotas", quota("connection_creation_rate", ip="10.1.2.4"), "value", 4.0, 3.0, "foreign_write"),),
    ),
    Fault(
        "the default user's quota that KRaft never had",
        missed("/config/users/<default>", setting("producer_byte_rate", "5000001")),
        (
            cell(
                "client_quotas", quota("producer_byte_rate", user=None), "value", 5000001.0, 5000000.0, "foreign_write"
            ),
        ),
    ),
    Fault(
        "an ACL",
        missed("/kafka-acl/Topic/wide", merged(acls=[entry("User:erin", "Write")])),
        (only_kraft("acls", acl("TOPIC", "wide", "User:dave", "WRITE"), {}, "lost_write"),),
    ),
    Fault(
        "a prefixed ACL that the load made up",
        lambda tree: tree.never_made("/kafka-acl-extended/prefixed/TransactionalId/tx-"),
        (only_kraft("acls", acl("TRANSACTIONAL_ID", "tx-", "User:bob", "ALL", "PREFIXED"), {}, "load_extra"),),
    ),
    Fault(
        "an ACL that the load left out",
        lambda tree: tree.create(
            "/kafka-acl/Group/left-out",
            json.dumps({"version": 1, "acls": [entry("User:zoe", "Read")]}),
            BEFORE_CLAIM,
        ),
        (only_zk("acls", acl("GROUP", "left-out", "User:zoe", "READ"), {}, "load_loss"),),
    ),
    Fault(
        "a credential that KRaft never had",
        missed("/config/users/dave", iterations("8192")),
        (
            cell(
                "scram_credentials",
                {"user": "dave", "mechanism": "SCRAM-SHA-512"},
                "iterations",
                8192,
                4096,
                "foreign_write",
                "critical",
            ),
        ),
    ),
    Fault(
        "a token's renewal that KRaft never had",
        missed(f"{TOKENS}/flgpRDLITEGY7_-2pdrkQA", merged(expiryTimestamp=1)),
        (
            cell(
                "delegation_tokens",
                {"token_id": "flgpRDLITEGY7_-2pdrkQA"},
                "expiry_timestamp",
                1,
                1_795_319_485_982,
                "foreign_write",
            ),
        ),
    ),
    Fault(
        "a token",
        lambda tree: tree.never_made(f"{TOKENS}/{TOKEN}"),
        (only_kraft("delegation_tokens", {"token_id": TOKEN}, TOKEN_ROW, "lost_write"),),
    ),
    Fault(
        "producer ids",
        missed("/latest_producer_id_block", merged(block_start="1000", block_end="1999")),
        (cell("producer_ids", {}, "next_producer_id", 1000, 2000, "lost_write", "critical"),),
    ),
    Fault(
        "a topic that the load left out",
        lambda tree: create_topic(tree, "left-out", OTHER_ID, {"0": [0, 1]}, BEFORE_CLAIM),
        (
            only_zk("topics", {"topic": "left-out"}, OTHER_ID, "load_loss"),
            only_zk("partitions", place("left-out", 0), whole([0, 1], 0, [0, 1]), "load_loss"),
        ),
    ),
]

FOREIGN = [
    Fault(
        "a topic made by hand",
        lambda tree: create_topic(tree, "by-hand", OTHER_ID, {"0": [0, 1]}, later()),
        (
            only_zk("topics", {"topic": "by-hand"}, OTHER_ID, "foreign_write"),
            only_zk("partitions", place("by-hand", 0), whole([0, 1], 0, [0, 1]), "foreign_write"),
        ),
    ),
    Fault(
        "a topic deleted by hand",
        lambda tree: tree.delete("/brokers/topics/audit.log_v1-raw", later()),
        (
            only_kraft("topics", {"topic": "audit.log_v1-raw"}, topic_id("audit.log_v1-raw"), "foreign_write"),
            *[
                only_kraft(
                    "partitions", place("audit.log_v1-raw", n), partition("audit.log_v1-raw", n), "foreign_write"
                )
                for n in range(3)
            ],
        ),
    ),
    Fault(
        "a leader set by hand",
        changed(state_path("orders", 3), merged(leader=1)),
        (cell("partitions", place("orders", 3), "leader", 1, 0, "foreign_write"),),
    ),
    Fault(
        "a state znode deleted by hand",
        lambda tree: tree.delete(state_path("wide", 7), later()),
        tuple(
            cell("partitions", place("wide", 7), name, None, partition("wide", 7)[name], "foreign_write", severity)
            for name, severity in zip(STATED, ("warning", "error", "error", "error"), strict=True)
        ),
    ),
    Fault(
        "replicas written by hand",
        changed("/brokers/topics/payments", nested("partitions", "1", [1, 0])),
        (cell("partitions", place("payments", 1), "replicas", [1, 0], [1, 2], "foreign_write"),),
    ),
    Fault(
        "a partition taken out by hand",
        changed("/brokers/topics/payments", without("partitions", "8")),
        (only_kraft("partitions", place("payments", 8), partition("payments", 8), "foreign_write"),),
    ),
    Fault(
        "a state that was lost before the topic was written by hand",
        missed(state_path("payments", 2), merged(leader=0, leader_epoch=2)),
        (
            cell("partitions", place("payments", 2), "leader", 0, 2, "lost_write"),
            cell("partitions", place("payments", 2), "leader_epoch", 2, 3, "lost_write"),
        ),
    ),
    Fault(
        "a topic's configuration added by hand",
        changed("/config/topics/orders", setting("flush.ms", "5")),
        (only_zk("configs", config("TOPIC", "orders", "flush.ms"), "5", "foreign_write"),),
    ),
    Fault(
        "a topic's configuration removed by hand",
        changed("/config/topics/wide", setting("compression.type", None)),
        (only_kraft("configs", config("TOPIC", "wide", "compression.type"), "zstd", "foreign_write"),),
    ),
    Fault(
        "a topic's configurations deleted by hand",
        lambda tree: tree.delete("/config/topics/born-in-dual-write", later()),
        (only_kraft("configs", config("TOPIC", "born-in-dual-write", "retention.ms"), "3600000", "foreign_write"),),
    ),
    Fault(
        "a broker's configuration written by a broker",
        changed("/config/brokers/0", setting("follower.replication.throttled.rate", "7")),
        (
            cell(
                "configs",
                config("BROKER", "0", "follower.replication.throttled.rate"),
                "value",
                "7",
                "1000000",
                "foreign_write",
            ),
        ),
    ),
    Fault(
        "a user's quota removed by hand",
        changed("/config/users/alice", setting("producer_byte_rate", None)),
        (only_kraft("client_quotas", quota("producer_byte_rate", user="alice"), 4194304.0, "foreign_write"),),
    ),
    Fault(
        "a quota with a name that needs encoding, deleted by hand",
        lambda tree: tree.delete("/config/clients/batch%20job%2F7%20%25x", later()),
        (only_kraft("client_quotas", quota("consumer_byte_rate", client_id="batch job/7 %x"), 777.0, "foreign_write"),),
    ),
    Fault(
        "an address's quota made by hand",
        lambda tree: tree.create(
            "/config/ips/10.9.9.9", '{"version":1,"config":{"connection_creation_rate":"1"}}', later()
        ),
        (only_zk("client_quotas", quota("connection_creation_rate", ip="10.9.9.9"), 1.0, "foreign_write"),),
    ),
    Fault(
        "an ACL added and one removed by hand",
        changed("/kafka-acl/Topic/wide", merged(acls=[entry("User:erin", "Write"), entry("User:eve", "All")])),
        (
            only_kraft("acls", acl("TOPIC", "wide", "User:dave", "WRITE"), {}, "foreign_write"),
            only_zk("acls", acl("TOPIC", "wide", "User:eve", "ALL"), {}, "foreign_write"),
        ),
    ),
    Fault(
        "a prefixed ACL deleted by hand",
        lambda tree: tree.delete("/kafka-acl-extended/prefixed/Topic/pay", later()),
        (only_kraft("acls", acl("TOPIC", "pay", "User:bob", "WRITE", "PREFIXED"), {}, "foreign_write"),),
    ),
    Fault(
        "a credential written by hand",
        changed("/config/users/dave", iterations("8192")),
        (
            cell(
                "scram_credentials",
                {"user": "dave", "mechanism": "SCRAM-SHA-512"},
                "iterations",
                8192,
                4096,
                "foreign_write",
                "critical",
            ),
        ),
    ),
    Fault(
        "a token deleted by hand",
        lambda tree: tree.delete(f"{TOKENS}/{TOKEN}", later()),
        (only_kraft("delegation_tokens", {"token_id": TOKEN}, TOKEN_ROW, "foreign_write"),),
    ),
    Fault(
        "producer ids taken by a broker in the old way",
        changed("/latest_producer_id_block", merged(broker=1, block_start="3000", block_end="3999")),
        (cell("producer_ids", {}, "next_producer_id", 4000, 2000, "foreign_write", "critical"),),
    ),
]


def respelled(path: str, spell: Callable[[Any], str]) -> Callable[[Tree], None]:
    def plant(tree: Tree) -> None:
        node = tree.nodes[path]
        version, mzxid = node["version"], node["mzxid"]
        tree.write(path, spell(tree.json(path)), At(mzxid, node["mtime"]))
        node["version"] = version

    return plant


def backwards(document: Any) -> str:
    return json.dumps(dict(reversed(document.items())))


def newer_version(tree: Tree) -> None:
    for number in range(10, 16):
        tree.nodes[state_path("wide", number)]["version"] += 40


NO_FAULTS = [
    Fault("keys in another order", respelled("/brokers/topics/wide", backwards), ()),
    Fault("white space", respelled(state_path("orders", 0), lambda d: "\n" + json.dumps(d, indent=3) + "\n"), ()),
    Fault("keys that nobody reads", respelled(state_path("orders", 1), lambda d: json.dumps({**d, "x": [1]})), ()),
    Fault(
        "another schema number",
        respelled("/brokers/topics/born-in-dual-write", lambda d: json.dumps({**d, "version": 2})),
        (),
    ),
    Fault("no configuration znode instead of an empty one", lambda t: t.never_made("/config/topics/placed"), ()),
    Fault(
        "null data instead of an empty configuration",
        lambda tree: tree.write("/config/topics/audit.log_v1-raw", None, At(168, 1_795_233_083_195)),
        (),
    ),
    Fault(
        "an empty configuration instead of none",
        lambda tree: tree.create("/config/users/nobody", '{"version":1,"config":{}}', At(1250, LAST_TIME - 5000)),
        (),
    ),
    Fault(
        "a quota as a decimal", respelled("/config/ips/10.1.2.3", lambda d: json.dumps(d).replace('"9"', '"9.0"')), ()
    ),
    Fault(
        "a quota with an exponent",
        respelled("/config/clients/<default>", lambda d: json.dumps(d).replace("55.0", "5.5E1")),
        (),
    ),
    Fault(
        "ACLs in another order, and one twice",
        respelled("/kafka-acl/Topic/orders", lambda d: json.dumps({**d, "acls": [*d["acls"][::-1], d["acls"][0]]})),
        (),
    ),
    Fault("state znodes written more often than KRaft's partition epoch rose", newer_version, ()),
    Fault(
        "a credential's parts in another order",
        respelled(
            "/config/users/bob",
            lambda d: json.dumps(
                {
                    **d,
                    "config": {
                        key: ",".join(sorted(value.split(","))) if key.startswith("SCRAM") else value
                        for key, value in d["config"].items()
                    },
                }
            ),
        ),
        (),
    ),
]


def planted(faults: list[Fault], folder: Path) -> Content:
    tree = Tree(HEALTHY / "zookeeper.jsonl.gz")
    for fault in faults:
        fault.plant(tree)
    return settings_content(HEALTHY, folder, zookeeper={"dump": str(tree.save(folder / "tree.jsonl.gz"))})


@in_fleet("planted-lost")
def planted_lost(folder: Path) -> Content:
    return planted([*LOST, *NO_FAULTS], folder)


@in_fleet("planted-foreign")
def planted_foreign(folder: Path) -> Content:
    return planted([*FOREIGN, *NO_FAULTS], folder)


@pytest.fixture
def lost(audited: Callable[[str], Audit]) -> Report:
    return audited("planted-lost").report


@pytest.fixture
def foreign(audited: Callable[[str], Audit]) -> Report:
    return audited("planted-foreign").report


@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.name)
def test_what_was_lost_made_up_or_written_before_migrations_last_write_is_found(lost: Report, fault: Fault) -> None:
    assert_shown(lost, fault)


@pytest.mark.parametrize("fault", FOREIGN, ids=lambda fault: fault.name)
def test_a_foreign_write_is_found(foreign: Report, fault: Fault) -> None:
    assert_shown(foreign, fault)


def test_nothing_else_is_found_beside_lost_writes(lost: Report) -> None:
    assert_nothing_else(lost, LOST)


def test_nothing_else_is_found_beside_foreign_writes(foreign: Report) -> None:
    assert_nothing_else(foreign, FOREIGN)


def test_the_verdict_counts_every_defect(lost: Report, foreign: Report) -> None:
    for report, faults in ((lost, LOST), (foreign, FOREIGN)):
        defects = sum(row.class_ != "in_sync" for fault in faults for row in fault.rows)
        assert report.exit_code == 20
        assert {check.id: check.violations for check in report.checks}["DUR-05"] == defects
        assert "DUR-05" in report.gates["rollback"].blocking


def test_ciphertext_is_told_and_not_compared(lost: Report) -> None:
    assert any("1 encrypted configuration could not be compared" in note for note in lost.notes)
