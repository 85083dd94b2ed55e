"""What a finished run holds of a row becomes its story: both sides, what ZooKeeper's transactions did, barriers, notes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from schemas.silver import BARRIERS
from tests.explain.test_timeline import PATH, config, operation
from transforms.explain.keys import parse_key
from transforms.explain.records import VersionAfter
from transforms.explain.row_evidence import RowEvidence, barriers_passed, explanation_of, znode_writes
from transforms.explain.text import render
from transforms.frames import columns_of, frame
from transforms.kraft.quorum import CommittedEnd
from transforms.kraft.replay.transactions import Marker, TransactionLog, read_transactions

CONFIG = parse_key("configs", "TOPIC/orders/retention.ms")
BARRIER = columns_of(BARRIERS.columns, "cluster", "run_id")
KNOWN = pl.DataFrame({"zxid": [7, 4], "kind": ["foreign", "claim"]})
VERSIONS = [
    VersionAfter(10, 1, 1000, "CONFIG_RECORD", {"value": "1"}),
    VersionAfter(30, 1, 1000, "CONFIG_RECORD", {"value": "2"}),
]


def side(log: TransactionLog | None = None) -> Any:
    committed = CommittedEnd(25, "majority", "two of three have it")
    return SimpleNamespace(committed=committed, transactions=log or read_transactions([]))


def found(**values: Any) -> RowEvidence:
    return replace(RowEvidence("c", "r", "single", 20, side(), VERSIONS), **values)


def barrier(zxid: int, offset: int | None) -> dict[str, Any]:
    return {"zxid": zxid, "time": zxid, "kraft_metadata_offset": offset, "kraft_controller_id": 3000}


def test_the_first_barrier_that_covers_a_record_is_told_once() -> None:
    rows = frame([barrier(5, 40), barrier(3, 12), barrier(4, 11), barrier(1, -1), barrier(2, None)], BARRIER)
    assert [(b.zxid, b.offset) for b in barriers_passed(rows, [10, 12, 13, 40, 41])] == [(3, 12), (5, 40)]
    assert barriers_passed(rows, []) == []
    assert barriers_passed(rows.clear(), [10]) == []


def test_of_the_transactions_the_rows_own_and_who_owns_their_sessions_are_read() -> None:
    logged = pl.DataFrame(
        [
            operation(1, "create", "/brokers/ids/1", "{}", session=7),
            operation(2, "create", "/brokers/ids/2", "{}", session=8),
            operation(3, "setData", PATH, config("1"), session=7),
            operation(5, "setData", "/brokers/topics/orders", "{}", session=7),
            operation(7, "setData", PATH, config("2"), session=9),
        ],
        schema_overrides={"multi_index": pl.Int32},
    )
    written = znode_writes(CONFIG, logged, KNOWN)
    assert [(write.zxid, write.writer, write.kind) for write in written] == [
        (3, "broker 1", "ZooKeeper mode"),
        (7, "session 0x9", "FOREIGN: behind KRaft's back"),
    ]
    assert znode_writes(CONFIG, logged.filter(pl.col("zxid") == 5), KNOWN) == []


def test_both_sides_are_told_and_what_is_not_proved() -> None:
    now = {"zookeeper": {"value": "2", "zk_path": PATH, "zk_mzxid": 7, "zk_mtime": 0}}
    told = explanation_of(CONFIG, found(now=now), as_of=30)
    assert [side.value for side in told.sides] == ["2", "1"]
    assert told.sides[0].place.startswith(f"{PATH}, written last by zxid 0x7")
    assert told.sides[1].name == "KRaft after offset 24 (inclusive)"
    assert told.as_of is not None
    assert (told.as_of.name, told.as_of.value) == ("KRaft after offset 30 (inclusive, not proved committed)", "2")
    assert "Records from offset 25 on are not proved committed." in told.notes
    assert any("no transaction logs" in note for note in told.notes)


def test_sides_that_were_not_compared_are_not_said_to_be_equal() -> None:
    now = {"zookeeper": {"value": "2", "comparable": True, "zk_path": PATH, "zk_mzxid": 7, "zk_mtime": 0}}
    assert "\nNo difference in this run\n" in render(explanation_of(CONFIG, found(now=now)))
    text = render(explanation_of(CONFIG, found(now=now, compared=False)))
    assert "\nNot compared: this run did not compare the two sides\n" in text
    assert "No difference" not in text
    secret = {"zookeeper": {**now["zookeeper"], "comparable": False}}
    text = render(explanation_of(CONFIG, found(now=secret)))
    assert "\nNot comparable: at least one side holds ciphertext\n" in text
    assert "No difference" not in text


def test_records_of_an_open_transaction_are_said_to_wait() -> None:
    log = read_transactions([Marker(9, "BEGIN_TRANSACTION_RECORD", "x", 1)])
    told = explanation_of(CONFIG, found(side=side(log)))
    assert told.sides[1].place == "its records from offset 9 on were not in force: their transaction is open"


def test_a_transaction_that_was_aborted_before_is_not_the_rows() -> None:
    """Seen in 3.8.1: a row made in dual write, after loads that had broken off."""
    log = read_transactions(
        [Marker(2, "BEGIN_TRANSACTION_RECORD", "x", 1), Marker(4, "ABORT_TRANSACTION_RECORD", "y", 2)]
    )
    told = explanation_of(CONFIG, found(side=side(log)))
    assert told.sides[1].place.startswith("since offset ")
    assert "in force" not in told.sides[1].place


def test_a_side_that_was_not_read_is_not_collected() -> None:
    assert explanation_of(CONFIG, found(mode="kraft_only")).sides[0].value == "not collected"
    alone = found(mode="zookeeper_only", side=None, versions=(), has_transactions=True)
    told = explanation_of(CONFIG, alone, as_of=3)
    assert (told.sides[0].value, told.sides[1].value, told.as_of) == ("absent", "not collected", None)
    assert told.notes == ["ZooKeeper's transactions are listed from where the copied transaction logs begin."]


@pytest.mark.parametrize(
    ("values", "ever"), [({}, True), ({"versions": ()}, False), ({"versions": (), "now": {"kraft": {}}}, True)]
)
def test_a_row_that_nothing_tells_of_never_was(values: dict[str, Any], ever: bool) -> None:
    assert found(**values).ever is ever


def test_a_znode_that_could_not_be_read_is_not_an_absent_row() -> None:
    """`explain` said "ZooKeeper absent" and "No difference in this run" of a topic beside a value in KRaft."""
    unread = [f"{PATH} (not authorised)"]
    told = render(explanation_of(CONFIG, found(unread=unread)))
    assert (
        f"ZooKeeper                          unknown\n                                   could not be read: {unread[0]}\n"
        in told
    )
    assert "absent" not in told
    assert "\nNot compared: a znode of this row could not be read\n" in told
    # A partition has two znodes.
    now = {"zookeeper": {"value": "2", "zk_path": PATH, "zk_mzxid": 7, "zk_mtime": 0}}
    notes = explanation_of(CONFIG, found(now=now, unread=unread)).notes
    assert f"Not all of ZooKeeper's row could be read: {unread[0]}." in notes
