"""Two trees of one data folder: rows are compared at a barrier, the rest is judged on the newest tree (S§5.5)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.sources.zookeeper.folder import DataFolder, read_folder
from jobs.sources.zookeeper.writes import judge
from schemas.zookeeper.findings import TREE_DIGEST
from schemas.zookeeper.trees import BARRIER, NEWEST
from tests.captures import capture
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.trees import REDACTOR, state_rows
from transforms.zookeeper.storage.transactions import OpCode

Tree = dict[str, dict[str, Any]]


def two_trees(folder: Path, barrier: int) -> tuple[Tree, Tree, list[str | None]]:
    """The tree at the barrier, the newest one, and the marks of all rows; no path is twice in a tree."""
    then: Tree = {}
    now: Tree = {}
    marks = []
    for mark, batch in DataFolder(folder).trees(REDACTOR, barrier):
        for row in batch.to_pylist():
            if row["path"] == TREE_DIGEST:
                assert mark is None
                continue
            marks.append(mark)
            for tree, its in ((then, BARRIER), (now, NEWEST)):
                if mark in (None, its):
                    assert row["path"] not in tree
                    tree[row["path"]] = row
    return then, now, marks


def tree(folder: Path, zxid: int | None = None) -> Tree:
    return {row["path"]: row for batch in read_folder(folder, REDACTOR, zxid=zxid) for row in batch.to_pylist()}


@pytest.mark.parametrize("stage", ["5-dual-write-changed", "7-dual-write-failover", "12-finalized"])
def test_both_are_the_trees_that_are_read_alone(stage: str) -> None:
    folder = capture("3.9.1", stage) / "zookeeper"
    barriers = judge(DataFolder(folder)).census.barriers
    for barrier in {barriers[0], barriers[len(barriers) // 2], barriers[-1]}:
        then, now, _ = two_trees(folder, barrier.zxid)
        assert then == tree(folder, barrier.zxid)
        assert now == tree(folder)


def test_znodes_that_did_not_change_are_read_once() -> None:
    folder = capture("3.9.1", "5-dual-write-changed") / "zookeeper"
    newest = judge(DataFolder(folder)).census.barriers[-1]
    then, _, marks = two_trees(folder, newest.zxid)
    assert len(then) <= len(marks) <= len(then) + 5


def claim(controller: int, epoch: int) -> bytes:
    text = {"version": 2, "brokerid": controller, "timestamp": "1", "kraftControllerEpoch": epoch}
    return json.dumps(text).encode()


def migration(controller: int, epoch: int, offset: int) -> bytes:
    return json.dumps(
        {
            "version": 0,
            "kraft_controller_id": controller,
            "kraft_controller_epoch": epoch,
            "kraft_metadata_offset": offset,
            "kraft_metadata_epoch": 1,
        }
    ).encode()


NODES = [
    Node("/"),
    Node("/brokers"),
    Node("/brokers/ids"),
    Node("/brokers/ids/1", b"{}", owner=9),
    Node("/brokers/topics"),
    Node("/controller_epoch", b"4"),
    Node("/migration", migration(3000, 1, 10)),
    Node("/controller", claim(3000, 1)),
]


def after_a_failover(folder: Path) -> Path:
    """A folder whose newest tree names controller 3001, while the last barrier is controller 3000's."""
    folder.mkdir()
    (folder / "snapshot.5").write_bytes(journal.snapshot(NODES))
    log = Log(zxid=5)
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(3000, 1, 20), 1))
    log.add(
        OpCode.MULTI,
        journal.multi(
            (OpCode.SET_DATA, journal.set_data("/controller_epoch", b"5", 1)),
            (OpCode.DELETE, journal.string("/controller")),
            (OpCode.CREATE, journal.create("/controller", claim(3001, 2))),
        ),
    )
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(3001, 2, 20), 2))
    log.add(OpCode.CLOSE_SESSION, session=9)
    (folder / "log.6").write_bytes(log.padded())
    return folder


def test_a_failover_after_the_barrier_is_in_the_newest_tree(tmp_path: Path) -> None:
    then, now, _ = two_trees(after_a_failover(tmp_path / "zookeeper"), 6)
    assert json.loads(then["/controller"]["data"])["brokerid"] == 3000
    assert json.loads(now["/controller"]["data"])["brokerid"] == 3001
    assert (then["/controller_epoch"]["data"], now["/controller_epoch"]["data"]) == ("4", "5")
    assert json.loads(then["/migration"]["data"])["kraft_controller_id"] == 3000
    assert json.loads(now["/migration"]["data"])["kraft_controller_id"] == 3001


def test_a_broker_that_went_away_after_the_barrier_is_not_in_the_newest_tree(tmp_path: Path) -> None:
    then, now, _ = two_trees(after_a_failover(tmp_path / "zookeeper"), 6)
    assert "/brokers/ids/1" in then
    assert "/brokers/ids/1" not in now
    assert (then["/brokers/ids"]["num_children"], now["/brokers/ids"]["num_children"]) == (1, 0)


def test_a_gap_in_the_logs_does_not_hide_the_newest_snapshot(tmp_path: Path) -> None:
    """A server that was away took the leader's snapshot: its own log does not lead there."""
    folder = after_a_failover(tmp_path / "zookeeper")
    later = [*NODES[:-1], Node("/controller", claim(3002, 3), czxid=90, mzxid=90)]
    (folder / "snapshot.5a").write_bytes(journal.snapshot(later))
    log = Log(zxid=0x5A).add(OpCode.SET_DATA, journal.set_data("/controller_epoch", b"6", 1))
    (folder / "log.5b").write_bytes(log.padded())
    then, now, marks = two_trees(folder, 6)
    assert json.loads(then["/controller"]["data"])["brokerid"] == 3000
    assert json.loads(now["/controller"]["data"])["brokerid"] == 3002
    assert now["/controller_epoch"]["data"] == "6"
    assert None not in marks


def test_damage_after_the_barrier_is_told(tmp_path: Path) -> None:
    folder = after_a_failover(tmp_path / "zookeeper")
    whole = (folder / "log.6").read_bytes()
    at = whole.index(b"kraftControllerEpoch")
    (folder / "log.6").write_bytes(whole[:at] + b"X" + whole[at + 1 :])
    then, now, _ = two_trees(folder, 6)
    assert then == tree(folder, 6) | {path: row for path, row in now.items() if row["problem"]}
    assert [row["path"] for row in now.values() if row["problem"]] == ["log.6"]
    shutil.rmtree(folder)


@pytest.mark.parametrize("barrier", [None, 6])
def test_a_torn_last_entry_is_told_and_no_fault(tmp_path: Path, barrier: int | None) -> None:
    """A running server leaves one behind when its files are copied."""
    folder = after_a_failover(tmp_path / "zookeeper")
    whole = (folder / "log.6").read_bytes().rstrip(b"\0")
    (folder / "log.6").write_bytes(whole[:-20])
    rows = [batch for _, batch in DataFolder(folder).trees(REDACTOR, barrier)]
    findings = [row["row"] for row in state_rows(rows) if row["entity"] == "findings"]
    told = [finding["code"] for finding in findings if finding["subject"] == "log.6"]
    assert told == ["TORN-ENTRY"]
