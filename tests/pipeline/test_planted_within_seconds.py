"""Somebody writes ZooKeeper within seconds of KRaft's last change, and dual write goes on: no clock tells, nor `/migration`.

There are no transaction logs. What KRaft never wrote was not lost on the way: the log knows every value a row ever had.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from schemas.report import DivergenceRow, Report
from tests.pipeline.audits import Audit, Content, in_fleet, settings_content
from tests.pipeline.rows import HEALTHY, entry
from tests.pipeline.test_planted_faults import LAST_TIME, LAST_ZXID, OTHER_ID, merged, missed, setting, state_path
from tests.pipeline.trees import At, Tree, create_topic

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

STATE = state_path("orders", 3)


def at(number: int) -> At:
    return At(LAST_ZXID + number, LAST_TIME + 100 * number)


def interfere(tree: Tree) -> None:
    """Seven edits in two seconds, each as a client would make it."""
    tree.change("/config/topics/orders", setting("retention.ms", "1"), at(1))
    tree.change("/config/topics/payments", setting("flush.ms", "5"), at(2))
    tree.delete("/config/clients/app-9", at(3))
    tree.change(STATE, merged(leader=1), at(4))
    tree.write("/kafka-acl/Topic/wide", json.dumps({"version": 1, "acls": [entry("User:erin", "Write")]}), at(5))
    create_topic(tree, "by-hand", OTHER_ID, {"0": [0, 1]}, at(6))
    tree.delete("/brokers/topics/audit.log_v1-raw", at(15))


@in_fleet("within-seconds")
def within_seconds(folder: Path) -> Content:
    tree = Tree(HEALTHY / "zookeeper.jsonl.gz")
    if "/config/topics/payments" not in tree.nodes:
        tree.create("/config/topics/payments", '{"version":1,"config":{}}', at(0))
    # Two of KRaft's own writes that never arrived, beside them.
    missed(state_path("orders", 4), merged(isr=[0, 1]))(tree)
    missed("/config/users/alice", setting("producer_byte_rate", "1048576"))(tree)
    interfere(tree)
    tree.write("/migration", tree.text("/migration"), at(20))
    dump = tree.save(folder / "zookeeper.jsonl.gz")
    return {**settings_content(HEALTHY, folder), "zookeeper": {"dump": str(dump)}}


@pytest.fixture
def report(audited: Callable[[str], Audit]) -> Report:
    return audited("within-seconds").report


def rows(report: Report, entity: str, name: str) -> list[DivergenceRow]:
    return [
        row for row in report.divergences.rows if row.entity == entity and name in json.dumps(row.key, sort_keys=True)
    ]


EDITS = {
    "a configuration set to another value": ("configs", "retention.ms"),
    "a configuration added": ("configs", "flush.ms"),
    "a quota removed": ("client_quotas", "app-9"),
    "a leader set": ("partitions", '"partition": 3, "topic": "orders"'),
    "a topic made": ("topics", "by-hand"),
    "a topic deleted": ("topics", "audit.log_v1-raw"),
    "the partitions of a topic deleted": ("partitions", "audit.log_v1-raw"),
}


@pytest.mark.parametrize("edit", list(EDITS))
def test_what_kraft_never_wrote_was_somebodys_work(report: Report, edit: str) -> None:
    found = rows(report, *EDITS[edit])
    assert found
    assert {row.class_ for row in found} == {"foreign_write"}, [row.explanation for row in found]


def test_what_cannot_be_told_says_so(report: Report) -> None:
    """The ACL was alone in its znode when KRaft had made it and not yet its neighbour: that is what a lost write leaves too."""
    [row] = rows(report, "acls", "User:dave")
    assert row.class_ == "foreign_write" or "lost, or removed by hand" in row.explanation


def test_a_lost_write_beside_them_is_still_one(report: Report) -> None:
    lost = [row for row in report.divergences.rows if row.class_ == "lost_write" and row.entity != "acls"]
    assert {(row.entity, row.column) for row in lost} == {("partitions", "isr"), ("client_quotas", "value")}
    assert {json.dumps(row.zk_value) for row in lost} == {"[0, 1]", "1048576.0"}


def test_each_is_a_defect(report: Report) -> None:
    assert report.exit_code == 20
    assert report.gates["rollback"].verdict == "no_go"
