"""Kafka 3.4: a load that is repeated for ever, and dual write that mirrors little and does not say how far it is.

The tree is a real one from before a load; the log is what 3.4.1's code makes of it (`early_log`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from schemas.report import CheckResult, Report
from tests.captures import capture
from tests.pipeline import early_log
from tests.pipeline.audits import Audit, Content, in_fleet
from tests.pipeline.logs import Record, make_log, record
from tests.pipeline.trees import At, Tree, create_topic
from transforms.report.banner import banner_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

BEFORE = capture("3.5.2", "3") / "zookeeper.jsonl.gz"
CLUSTER_ID = "BkFLa0HAS1-wiMCcdevJcw"
BEGUN = 1_795_300_000_000
SECOND = 1000
LOADS = 40
CLAIM = At(1000, BEGUN)
FRESH_ID = "AAECAwQFBgcICQoLDA0OEA"
SCRAM = ("alice", "bob", "carol%40corp.example")


def claimed() -> Tree:
    """The tree after the KRaft controller took over."""
    tree = Tree(BEFORE)
    tree.write("/controller_epoch", "3", CLAIM)
    tree.delete("/controller", CLAIM)
    owner = {"version": 2, "brokerid": 3000, "timestamp": str(BEGUN), "kraftControllerEpoch": 1}
    tree.create("/controller", json.dumps(owner), CLAIM)
    return tree


def check(report: Report, check_id: str) -> CheckResult:
    return next(check for check in report.checks if check.id == check_id)


def content(folder: Path, tree: Tree, kraft: Path) -> dict[str, object]:
    return {
        "cluster": "early",
        "warehouse": str(folder / "tables"),
        "spark": {"profile": "small"},
        "report": {"folder": str(folder / "reports")},
        "zookeeper": {"dump": str(tree.save(folder / "tree.jsonl.gz"))},
        "kraft": {"folders": [str(kraft)]},
    }


@dataclass(frozen=True)
class Repeated:
    """The audit of a load that is begun again and again, and how many topics it copied each time."""

    report: Report
    topics: int
    checkpoint: int


def made_repeated(folder: Path) -> tuple[Content, tuple[int, int]]:
    """Topics and broker configurations come each time; the first SCRAM user ends the load (`clientQuotaPropsToDoubleMap`)."""
    tree = claimed()
    head = [(BEGUN, early_log.bootstrap()), (BEGUN, early_log.registrations([0, 1, 2], 2))]
    loaded: list[list[Record]] = [*early_log.topics(tree), early_log.brokers(tree), next(early_log.quotas(tree))]
    loads = [(BEGUN + n * SECOND, records) for n in range(LOADS) for records in (early_log.begin(), *loaded)]
    make_log(folder / "kraft", CLUSTER_ID, [*head, *loads])
    after = 1 + sum(len(records) for _, records in [*head, *loads[: 7 * (len(loaded) + 1)]])
    state = [*early_log.bootstrap(), *head[1][1], *[item for records in loaded for item in records]]
    early_log.checkpoint(folder / "kraft" / "3000" / "__cluster_metadata-0", after, state, BEGUN)
    return content(folder, tree, folder / "kraft"), (len(list(early_log.topics(tree))), after)


_TRUTH: dict[str, Any] = {}


@in_fleet("early-repeated")
def early_repeated(folder: Path) -> Content:
    made, _TRUTH["repeated"] = made_repeated(folder)
    return made


@pytest.fixture
def repeated(audited: Callable[[str], Audit]) -> Repeated:
    report = audited("early-repeated").report
    return Repeated(report, *_TRUTH["repeated"])


def test_a_repeated_load_is_3_4_and_still_waiting(repeated: Repeated) -> None:
    report = repeated.report
    assert report.kafka_version == "3.4"
    assert (report.migration.state, report.migration.phase) == ("PRE_MIGRATION", "waiting")
    assert report.migration.history == [
        {**report.migration.history[0], "state": "PRE_MIGRATION", "times": LOADS},
    ]
    assert report.divergences.total == 0


def test_a_repeated_load_is_said_to_never_complete(repeated: Repeated) -> None:
    report = repeated.report
    found = check(report, "DUR-08")
    assert (found.verdict, found.violations) == ("fail", LOADS - 1 + repeated.topics)
    assert f"the load started {LOADS} times" in found.evidence[0]
    assert "the load repeats and never completes" in found.evidence[0]
    assert any(f"orders: made {LOADS} times with the same id" in line for line in found.evidence)
    assert any("never completes" in note for note in report.notes)
    assert "DUR-08" in report.gates["start"].blocking
    assert report.exit_code == 20
    banner = banner_of(report)
    assert banner.title == "The load does not complete"
    assert any("never completes" in sentence for sentence in banner.sentences)
    assert {defect.jira for defect in report.defects if defect.evidence} >= {"KAFKA-14840"}


def test_the_replay_of_a_repeated_load_is_what_a_checkpoint_says(repeated: Repeated) -> None:
    assert check(repeated.report, "CAP-08").verdict == "pass", check(repeated.report, "CAP-08").evidence
    assert repeated.checkpoint > 0
    assert repeated.report.counts["topics"] == {"zookeeper": repeated.topics, "kraft": repeated.topics}
    partitions = repeated.report.counts["partitions"]
    assert partitions["zookeeper"] == partitions["kraft"] != 0


def test_a_repeated_load_raises_no_other_alarm_about_the_log(repeated: Repeated) -> None:
    failed = {result.id for result in repeated.report.checks if result.verdict == "fail"}
    # What the tree holds and 3.4 can't carry over: credentials, tokens (START-06).
    assert failed == {"DUR-08", "START-06"}


@dataclass(frozen=True)
class Early:
    """The audit of a 3.4 cluster in dual write, and the tree it was loaded from."""

    report: Report
    tree: Tree


@in_fleet("early-dual")
def early_dual(folder: Path) -> Content:
    """Loaded at 0 s; /migration was written last at 400 s, with a mirrored change; the log ends at 600 s."""
    tree = claimed()
    for user in SCRAM:
        tree.change(f"/config/users/{user}", _without_scram, At(490, BEGUN - 90 * SECOND))
    original = Tree(tree.save(folder / "original.jsonl.gz"))
    orders = tree.json("/brokers/topics/orders")["topic_id"]
    payments = tree.json("/brokers/topics/payments")["topic_id"]
    load = [early_log.begin(), *early_log.topics(tree), early_log.brokers(tree), *early_log.quotas(tree)]
    load.append(early_log.producer_ids(tree))
    before = [early_log.bootstrap(), early_log.registrations([0, 1, 2], 2), *[records for records in load if records]]
    later: list[tuple[int, list[Record]]] = [
        (100, [_config("wide", "compression.type", "gzip")]),  # lost
        (110, [_config("orders", "min.insync.replicas", "1")]),  # mirrored
        (150, [record("TOPIC_RECORD", name="fresh", topicId=FRESH_ID), _fresh_partition()]),  # mirrored
        (200, [record("REMOVE_TOPIC_RECORD", topicId=payments)]),  # never mirrored
        (210, [record("PARTITION_CHANGE_RECORD", partitionId=0, topicId=orders, replicas=[2, 1, 0])]),  # never mirrored
        (390, [_config("orders", "flush.ms", "7")]),  # mirrored, and /migration written
        (500, [_config("orders", "segment.ms", "8")]),  # on its way, and late
        (590, [_config("orders", "segment.bytes", "9")]),  # on its way
        (600, [record("NO_OP_RECORD")]),
    ]
    batches = [(BEGUN, records) for records in before]
    make_log(folder / "kraft", CLUSTER_ID, [*batches, *[(BEGUN + at * SECOND, records) for at, records in later]])
    _mirror(tree, loaded=sum(len(records) for records in before))
    _TRUTH["dual"] = original
    return content(folder, tree, folder / "kraft")


@pytest.fixture
def dual(audited: Callable[[str], Audit]) -> Early:
    report = audited("early-dual").report
    return Early(report, _TRUTH["dual"])


def _config(topic: str, key: str, value: str) -> Record:
    return record("CONFIG_RECORD", resourceType=early_log.TOPIC, resourceName=topic, name=key, value=value)


def _fresh_partition() -> Record:
    return record(
        "PARTITION_RECORD",
        partitionId=0,
        topicId=FRESH_ID,
        replicas=[0, 1],
        isr=[0, 1],
        leader=0,
        leaderEpoch=0,
        partitionEpoch=0,
    )


def _without_scram(document: dict[str, dict[str, str]]) -> None:
    document["config"] = {key: value for key, value in document["config"].items() if not key.startswith("SCRAM")}


def _mirror(tree: Tree, loaded: int) -> None:
    """What 3.4 writes after its load: /migration once with the load's offset, and with each change as it is."""
    migration = {
        "version": 0,
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": 1,
        "kraft_metadata_offset": loaded,
        "kraft_metadata_epoch": 1,
    }
    tree.change("/config/topics/orders", lambda d: d["config"].update({"min.insync.replicas": "1"}), _at(1010, 110))
    create_topic(tree, "fresh", FRESH_ID, {"0": [0, 1]}, _at(1020, 150))
    tree.change("/config/topics/orders", lambda d: d["config"].update({"flush.ms": "7"}), _at(1040, 400))
    tree.write("/migration", json.dumps(migration), _at(1040, 400))


def _at(zxid: int, seconds: int) -> At:
    return At(zxid, BEGUN + seconds * SECOND)


def test_3_4_is_compared_by_what_it_mirrors(dual: Early) -> None:
    rows = dual.report.divergences.rows
    configs = {row.key["config"]: (row.class_, row.severity) for row in rows if row.entity == "configs"}
    assert configs == {
        "compression.type": ("lost_write", "error"),
        "cleanup.policy": ("lost_write", "error"),
        "segment.ms": ("lag", "warning"),
        "segment.bytes": ("lag", "info"),
    }
    topics = [(row.key["topic"], row.kind, row.class_) for row in rows if row.entity == "topics"]
    assert topics == [("payments", "zk_only", "lost_write")]
    moved = [row for row in rows if row.entity == "partitions" and row.kind == "differs"]
    assert [(row.key["topic"], row.key["partition"], row.column, row.class_) for row in moved] == [
        ("orders", 0, "replicas", "lost_write")
    ]
    deleted = dual.tree.json("/brokers/topics/payments")["partitions"]
    gone = [row.key["partition"] for row in rows if row.entity == "partitions" and row.kind == "zk_only"]
    assert sorted(gone) == sorted(map(int, deleted))


def test_3_4_says_what_it_never_loaded_and_what_it_loaded_wrongly(dual: Early) -> None:
    rows = dual.report.divergences.rows
    unloaded = Counter(row.entity for row in rows if row.class_ == "load_loss")
    tree = dual.tree
    resources = [path for path in tree.nodes if path.startswith("/kafka-acl") and tree.nodes[path]["data_base64"]]
    acls = [len(tree.json(path)["acls"]) for path in resources if "-changes" not in path]
    keys = early_log.quota_keys(tree)
    assert unloaded == {
        "acls": sum(acls),
        "delegation_tokens": len([path for path in tree.nodes if path.startswith("/delegation_token/tokens/")]),
        "client_quotas": len(keys),
        "producer_ids": 1,
    }
    spelled = Counter(json.dumps(wrong, sort_keys=True) for _, wrong in keys)
    extra = [row for row in rows if row.class_ == "load_extra"]
    assert Counter(json.dumps(row.key, sort_keys=True) for row in extra) == spelled
    # KAFKA-15552: the first block comes again, by the load.
    producers = [(row.zk_value, row.kraft_value, row.class_) for row in rows if row.entity == "producer_ids"]
    assert producers == [(1000, 0, "load_loss")]


def test_3_4_in_dual_write_is_neither_all_well_nor_alarming_about_its_frozen_offset(dual: Early) -> None:
    report = dual.report
    assert (report.kafka_version, report.migration.phase) == ("3.4", "dual_write")
    assert (report.lag.records, report.lag.alive) == (None, None)
    assert check(report, "DUR-04").verdict == "unknown"
    assert check(report, "DUR-08").verdict == "pass"
    assert check(report, "DUR-03").verdict == "not_applicable"
    assert any("never moves the offset" in note for note in report.notes)
    assert "in_flight" not in report.divergences.by_class
    assert "foreign_write" not in report.divergences.by_class
