"""What is counted while the records of a log go by, however they are cut, and where a run reads only the newest of them."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from tests.reconcile.planted import Row, log_read, record, registration, table
from transforms.kraft.coverage import PlannedLog
from transforms.kraft.quorum import Slice
from transforms.reconcile.judge.load import Load
from transforms.reconcile.judge.log_look import APPENDED, REGISTRATIONS, LogLook, LogParams
from transforms.reconcile.judge.mirror import Mirrored
from transforms.reconcile.judge.questions import LogRows

HOUR = 3_600_000
AT_ONCE = pytest.mark.parametrize("at_once", [1, 2, 1000])
KINDS = {5: "NO_OP_RECORD", 6: "TOPIC_RECORD", 7: "NO_OP_RECORD", 8: "TOPIC_RECORD"}
LOG = [record(offset, kind, append_time=100 * offset, length=offset) for offset, kind in KINDS.items()]
# Neither is one of the log's: one is in a checkpoint, one is no record.
BESIDE = [
    record(7, "TOPIC_RECORD", append_time=9000, length=50, checkpoint_offset=7),
    {"offset": 7, "append_time": 9000, "length": 50, "problem": "its checksum does not match", "controller_id": 1},
]


def look(rows: list[Row], at_once: int = 1000, **params: Any) -> LogLook:
    read: LogRows = log_read(rows, LogParams(**params), at_once)
    return read.look


@AT_ONCE
@pytest.mark.parametrize(
    ("mirrored", "told"),
    [
        (Mirrored(5, 9, 750), (800, 600, 500, 2, 7)),
        (Mirrored(7, 8), (700, None, 700, 0, None)),
        # What an aborted transaction holds changes nothing anywhere (`MetadataBatchLoader`).
        (Mirrored(5, 9, aborted=((6, 7),)), (800, 600, 500, 1, None)),
    ],
)
def test_times_of_the_records_behind_migration(at_once: int, mirrored: Mirrored, told: tuple[int | None, ...]) -> None:
    [row] = look([*LOG, *BESIDE], at_once, mirrored=mirrored).answers()["append_times"]
    assert tuple(row[n] for n in ("newest", "oldest_behind", "at_migration", "changes", "before_written")) == told


def test_nothing_is_told_of_migration_where_it_says_nothing_or_there_is_no_record() -> None:
    assert look(LOG).answers()["append_times"] == []
    assert look(BESIDE, mirrored=Mirrored(5, 9)).answers()["append_times"] == []


@AT_ONCE
def test_what_is_past_the_committed_end_is_counted_by_type(at_once: int) -> None:
    names = ("type", "unproved", "unproved_first")
    rows = look([*LOG, *BESIDE], at_once, committed=7).answers()["activity"]
    assert [tuple(row[name] for name in names) for row in rows] == [("NO_OP_RECORD", 1, 700), ("TOPIC_RECORD", 1, 800)]
    rows = look([*LOG, *BESIDE], at_once, committed=9).answers()["activity"]
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("NO_OP_RECORD", 0, None),
        ("TOPIC_RECORD", 0, None),
    ]


@AT_ONCE
def test_records_of_the_log_are_counted_by_type(at_once: int) -> None:
    names = ("type", "records", "bytes", "first", "last", "below", "behind")
    rows = look([*LOG, *BESIDE], at_once, checkpoint=7).answers()["activity"]
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("NO_OP_RECORD", 2, 12, 500, 700, 500, 7),
        ("TOPIC_RECORD", 2, 14, 600, 800, 600, 8),
    ]
    without = look(LOG, at_once).answers()["activity"]
    assert [(row["below"], row["behind"]) for row in without] == [(None, None), (None, None)]


@AT_ONCE
def test_the_time_without_a_leader_ends_with_its_election(at_once: int) -> None:
    times = [
        ("NO_OP_RECORD", 10),
        ("LEADER_CHANGE", 40),
        ("NO_OP_RECORD", 90),
        ("LEADER_CHANGE", 95),
        ("LEADER_CHANGE", 94),
    ]
    log = [record(offset, kind, append_time=time) for offset, (kind, time) in enumerate(times)]
    for checkpoint, told in ((None, 35), (1, 35), (2, 5), (4, 0)):
        rows = look(log, at_once, checkpoint=checkpoint).answers()["activity"]
        assert sum(row["leaderless"] for row in rows) == told


def test_only_registrations_of_the_last_hour_count_as_restarts() -> None:
    times = {1: 0, 2: HOUR, 3: HOUR + 1, 4: 2 * HOUR}
    log = [registration(offset, 7, "i", append_time=0) | {"append_time": time} for offset, time in times.items()]
    log += [registration(5, 8, "i") | {"append_time": 2 * HOUR}, registration(6, 9, "i") | {"checkpoint_offset": 9}]
    found = look(log, 2, end_ms=2 * HOUR)
    assert found.answers()["restarts"] == [{"broker_id": 7, "restarts": 2}, {"broker_id": 8, "restarts": 1}]
    assert found.registrations.rows() == [(3, HOUR + 1, 7), (4, 2 * HOUR, 7), (5, 2 * HOUR, 8)]
    assert look(log).answers()["restarts"] == []


def test_registrations_that_an_earlier_run_has_read_count_where_this_one_goes_on() -> None:
    known = pl.DataFrame([(1, 10, 7), (3, HOUR, 7), (4, HOUR + 2, 8), (9, HOUR, 9)], schema=REGISTRATIONS, orient="row")
    # The record just before is read again.
    log = [registration(4, 8, "i") | {"append_time": HOUR + 2}, registration(5, 8, "i") | {"append_time": HOUR + 3}]
    rows = table("records", log)
    for read_from, restarts in ((5, {7: 1, 8: 2}), (None, {8: 2})):
        found = LogLook(LogParams(end_ms=HOUR + 10, read_from=read_from), known)
        found.add(rows)
        assert {row["broker_id"]: row["restarts"] for row in found.answers()["restarts"]} == restarts


@AT_ONCE
def test_append_times_are_told_of_the_offsets_that_are_asked_for(at_once: int) -> None:
    found = look([*LOG, *BESIDE], at_once, offsets=frozenset({6, 7, 99}))
    assert found.append_times == {6: 600, 7: 700}


BATCHES = [(0, 10), (1, 10), (2, 20), (3, 20), (4, 20), (5, 30), (6, 30)]
IN_BATCHES = [record(offset, "NO_OP_RECORD", append_time=time) for offset, time in BATCHES]


@AT_ONCE
def test_what_is_in_no_snapshot_is_remembered_by_when_it_was_appended(at_once: int) -> None:
    assert look(IN_BATCHES, at_once).appended.rows() == [(0, 10), (2, 20), (5, 30)]
    assert look(IN_BATCHES, at_once, checkpoint=3).appended.rows() == [(3, 20), (5, 30)]
    assert look(IN_BATCHES, at_once, checkpoint=7).appended.rows() == []


def goes_on(read_from: int, checkpoint: int | None, remembered: pl.DataFrame) -> LogLook:
    """A run's look that continues from a state below `read_from`, and reads the record just before it again."""
    found = LogLook(LogParams(checkpoint=checkpoint, read_from=read_from), None, remembered)
    for some in table("records", IN_BATCHES[read_from - 1 :]).iter_slices(2):
        found.add(some)
    return found


@pytest.mark.parametrize("checkpoint", [None, 0, 1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("read_from", [2, 3, 5])
def test_a_run_that_goes_on_tells_of_what_it_did_not_read(read_from: int, checkpoint: int | None) -> None:
    remembered = look(IN_BATCHES[:read_from]).appended
    found = goes_on(read_from, checkpoint, remembered)
    below = [time for offset, time in BATCHES if (checkpoint or 0) <= offset < read_from]
    assert found.answers()["in_no_snapshot"] == ([{"first": min(below)}] if below else [])
    assert found.appended.equals(look(IN_BATCHES, checkpoint=checkpoint).appended), "as if all had been read"
    assert found.appended.equals(found.appended)


def test_a_run_that_reads_all_of_a_log_needs_nobodys_memory() -> None:
    remembered = pl.DataFrame([(0, 1)], schema=APPENDED, orient="row")
    found = LogLook(LogParams(), None, remembered)
    found.add(table("records", IN_BATCHES))
    assert found.answers()["in_no_snapshot"] == []
    assert found.appended.rows() == [(0, 10), (2, 20), (5, 30)]


def test_what_was_read_is_counted_against_the_plan() -> None:
    planned = PlannedLog(None, (Slice("copy", 5, 9),))
    assert [(row["slice"], row["rows"]) for row in look(LOG, planned=planned).slices()] == [(0, 4)]
    assert look(LOG).slices() == []


def test_the_load_is_judged_by_where_it_is_found_to_be() -> None:
    early, late = Load(0, 4), Load(4, 9)
    log = [record(offset, "TOPIC_RECORD", {"name": "a"}, version=1) for offset in (1, 2, 5)]
    found = look(log, 1, loads=[early, late])
    totals = {load: found.violations_by(load).total("DUR-07") for load in (early, late, None, Load(7, 8))}
    assert totals == {early: 2, late: 1, None: 0, Load(7, 8): 0}
    assert found.violations.total("DUR-07") == 2
    assert look(log, loads=[None, late]).violations.total("DUR-07") == 0, "only by the states of 3.4"


def test_damage_and_secrets_show_whatever_the_load_is() -> None:
    secret = record(3, "CONFIG_RECORD", {"name": "ssl.key.password", "value": "clear"})
    damage = {"controller_id": 1, "file": "a.log", "position": 9, "problem": "its checksum does not match"}
    torn = {**damage, "problem": "torn tail: 5 bytes"}
    assert look([secret, damage, torn]).violations.rows() == [
        {
            "code": "CAP-02",
            "total": 1,
            "text": "controller 1, a.log at byte 9: its checksum does not match",
            "number": 1,
        },
        {"code": "SEC-05", "total": 1, "text": "kraft_records: 3", "number": 1},
    ]
    assert json.loads(json.dumps(look([secret, damage], mirrored=Mirrored(1, 9)).answers()))["activity"]
