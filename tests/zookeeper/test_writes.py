"""Barriers, writers and the census of writes, on real transaction logs and on logs with a stranger in them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jobs.sources.zookeeper.folder import DataFolder, FolderSummary, read_folder
from jobs.sources.zookeeper.writes import (
    BARRIER,
    OPERATION,
    WRITE,
    judge,
    last_barrier,
    read_writes,
)
from tests.captures import capture
from tests.reconcile.kraft_clusters import copy
from tests.zookeeper import journal
from tests.zookeeper.journal import Log
from tests.zookeeper.test_state import secrets_of
from tests.zookeeper.trees import EVERY_STAGE, HEALTHY, REDACTOR
from transforms.zookeeper.storage.chroot import needed_part
from transforms.zookeeper.storage.transactions import HEADER_BYTES, Hole, OpCode, read_transactions
from transforms.zookeeper.storage.writes import WriteCensus, transaction_batch


def history(version: str, stage: str) -> WriteCensus:
    problems: list[str] = []
    result = WriteCensus()
    for _ in result.read(DataFolder(capture(version, stage) / "zookeeper").transactions(problems)):
        pass
    assert problems == []
    return result


def of_log(log: Log) -> WriteCensus:
    result = WriteCensus()
    for _ in result.read(read_transactions(log.padded())):
        pass
    return result


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_nothing_foreign_in_any_capture(version: str, stage: str) -> None:
    seen = history(version, stage)
    assert seen.foreign == []
    numbered = stage.split("-", maxsplit=1)[0]
    if numbered in ("1", "2", "3", "blocked"):
        assert (seen.first_claim_zxid, seen.barriers, dict(seen.census)) == (None, [], {})
    else:
        assert seen.first_claim_zxid is not None
        assert seen.barriers


def test_census_of_the_real_run_up_to_the_failover() -> None:
    seen = history("3.9.1", "7-dual-write-failover")
    shapes = seen.shapes
    assert shapes["envelope", "check+check+setData"] == 231
    assert shapes["envelope", "check+check+delete"] + shapes["envelope", "check+setData+delete"] == 26 + 5
    assert shapes["claim", "setData+delete+create"] == seen.census["claim"] == 2
    assert seen.census["foreign"] == 0
    # Version 3.9 writes /migration once at each claim without moving its offset.
    assert seen.census["migration"] == len(seen.barriers) + 2
    assert {"controller 3000", "controller 3001", "broker 0", "broker 1", "broker 2"} == set(seen.writers.values())


@pytest.mark.parametrize(("version", "stage"), HEALTHY)
def test_data_version_of_migration_is_the_writes_that_succeeded(version: str, stage: str) -> None:
    """S§5.1: stand-alone and multi writes count, those inside failed multis do not."""
    log = list(DataFolder(capture(version, stage) / "zookeeper").transactions())
    writes = sum(
        operation.type == OpCode.SET_DATA and operation.path == "/migration" and not transaction.failed
        for transaction in log
        for operation in transaction.operations
    )
    batches = list(read_folder(capture(version, stage) / "zookeeper", REDACTOR))
    assert znode(batches, "/migration")["version"] == writes


@pytest.mark.parametrize(("version", "stage"), [pair for pair in HEALTHY if pair[1].startswith(("7", "11"))])
def test_a_tree_at_a_barrier_ends_with_the_barrier(version: str, stage: str) -> None:
    folder = capture(version, stage) / "zookeeper"
    barriers = history(version, stage).barriers
    assert [barrier.kraft_metadata_offset for barrier in barriers] == sorted(
        {barrier.kraft_metadata_offset for barrier in barriers}
    )
    for barrier in barriers[:: len(barriers) // 8]:
        batches = list(read_folder(folder, REDACTOR, zxid=barrier.zxid))
        migration = znode(batches, "/migration")
        assert migration["mzxid"] == barrier.zxid
        assert migration["mtime"] == barrier.time
        assert json.loads(migration["data"]) == {
            "version": 0,
            "kraft_metadata_offset": barrier.kraft_metadata_offset,
            "kraft_metadata_epoch": barrier.kraft_metadata_epoch,
            "kraft_controller_id": barrier.kraft_controller_id,
            "kraft_controller_epoch": barrier.kraft_controller_epoch,
        }
        # S§5.6: nothing but notifications and brokers' own znodes is newer than a barrier.
        newest = max(row["mzxid"] for batch in batches for row in batch.to_pylist())
        assert newest == barrier.zxid


@pytest.mark.parametrize(("version", "stage"), [("3.9.1", "12-finalized"), ("3.5.2", "7-dual-write-failover")])
def test_transactions_table(version: str, stage: str) -> None:
    log = list(DataFolder(capture(version, stage) / "zookeeper").transactions())
    rows = transaction_batch(log, REDACTOR).to_pylist()
    assert len(rows) == sum(len(transaction.operations) for transaction in log)
    assert len({row["zxid"] for row in rows}) == len(log)
    multis = [row for row in rows if row["multi_size"]]
    assert {row["multi_index"] for row in multis} == {0, 1, 2}
    assert all(row["failed"] == (row["type"] == "error") for row in rows if row["multi_size"] is None)
    shown = json.dumps(rows)
    assert not [secret for secret in secrets_of(version, stage) if secret in shown]
    assert "hmac:" in shown


def znode(batches: list[pa.RecordBatch], path: str) -> dict[str, Any]:
    return next(row for batch in batches for row in batch.to_pylist() if row["path"] == path)


CLAIM = journal.multi(
    (OpCode.SET_DATA, journal.set_data("/controller_epoch", b"4", 4)),
    (OpCode.DELETE, journal.string("/controller")),
    (OpCode.CREATE, journal.create("/controller", b'{"version":2,"brokerid":3000,"kraftControllerEpoch":1}')),
)


def migration(offset: int, epoch: int = 1) -> bytes:
    document = {
        "version": 0,
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": 1,
        "kraft_metadata_offset": offset,
        "kraft_metadata_epoch": epoch,
    }
    return json.dumps(document).encode()


def enveloped(*change: Any, write: bytes | None = None) -> bytes:
    check = (OpCode.CHECK, journal.string("/controller_epoch") + journal.i32(4))
    second = (OpCode.CHECK, journal.string("/migration") + journal.i32(1))
    if write is not None:
        second = (OpCode.SET_DATA, journal.set_data("/migration", write, 2))
    return journal.multi(check, second, change)


def dual_write() -> Log:
    log = Log()
    log.add(OpCode.CREATE, journal.create("/brokers/ids/1", b"{}", ephemeral=True), session=11)
    log.add(OpCode.CREATE, journal.create("/migration", migration(-1, -1)), session=30)
    log.add(OpCode.MULTI, CLAIM, session=30)
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(-1, -1), 1), session=30)
    return log


def test_barriers_are_stand_alone_writes_that_move_the_offset() -> None:
    log = dual_write()
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(100), 2), session=30)
    change = (OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1))
    log.add(OpCode.MULTI, enveloped(*change, write=migration(100)), session=30)
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(100), 4), session=30)
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(100, 2), 5), session=30)
    seen = of_log(log)
    assert [
        (barrier.zxid, barrier.kraft_metadata_offset, barrier.kraft_metadata_epoch) for barrier in seen.barriers
    ] == [
        (5, 100, 1),
        (8, 100, 2),
    ]
    assert seen.barrier_batch().to_pylist()[0]["time"] == 10_005


@pytest.mark.parametrize(
    ("kind", "record", "session", "expected"),
    [
        (OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1), 11, "foreign"),
        (OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1), 30, "foreign"),
        (OpCode.DELETE, journal.string("/brokers/topics/t"), 99, "foreign"),
        (OpCode.SET_ACL, journal.set_acl("/config", [(1, "world", "anyone")], 1), 99, "access"),
        (OpCode.CREATE, journal.create("/config/users", b""), 30, "parent"),
        (OpCode.CREATE, journal.create("/config/users", b""), 99, "foreign"),
        (OpCode.CREATE, journal.create("/config/changes/config_change_1", b"{}"), 30, "notification"),
        (OpCode.DELETE, journal.string("/config/changes/config_change_1"), 11, "notification"),
        (OpCode.CREATE, journal.create("/brokers/ids/2", b"{}", ephemeral=True), 12, "broker"),
        (OpCode.SET_DATA, journal.set_data("/migration", migration(5), 1), 30, "migration"),
        (OpCode.DELETE, journal.string("/controller"), 99, "rollback"),
        (OpCode.MULTI, CLAIM, 31, "claim"),
        (OpCode.ERROR, journal.i32(-110), 11, "refused"),
        (OpCode.MULTI, enveloped(OpCode.DELETE, journal.string("/config/topics/t")), 30, "envelope"),
        (OpCode.MULTI, enveloped(OpCode.ERROR, journal.i32(-101)), 30, "envelope_failed"),
        (OpCode.CREATE_SESSION, journal.i32(1), 50, "session"),
    ],
)
def test_kinds_of_writes_after_the_claim(kind: int, record: bytes, session: int, expected: str) -> None:
    seen = of_log(dual_write().add(kind, record, session=session))
    before = of_log(dual_write())
    assert (seen.census - before.census) == {expected: 1}
    assert len(seen.foreign) == (expected == "foreign")


@pytest.mark.parametrize(
    "path", ["/hbase/rs/1", "/kafka2/config/topics/t", "/consumers/g/offsets/t/0", "/zookeeper/config"]
)
def test_writes_outside_kafkas_subtrees_are_nobodys_work_on_its_metadata(path: str) -> None:
    """A cluster without a chroot may share its ensemble: with other applications, and with old consumers' offsets."""
    log = dual_write().add(OpCode.SET_DATA, journal.set_data(path, b"1", 1), session=99)
    both = ((OpCode.SET_DATA, journal.set_data(name, b"1", 1)) for name in (path, "/config/topics/t"))
    log.add(OpCode.MULTI, journal.multi(*both), session=99)
    seen = list(WriteCensus().read(read_transactions(log.padded())))
    assert [write.kind for write in seen[-2:]] == ["other", "foreign"]


def test_a_stranger_is_named_by_its_session() -> None:
    log = dual_write().add(OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1), session=11)
    seen = of_log(log)
    row = seen.write_batch(seen.foreign).to_pylist()[0]
    assert (row["writer"], row["path"], row["type"], row["kind"]) == (
        "broker 1",
        "/config/topics/t",
        "setData",
        "foreign",
    )


def test_after_a_rollback_brokers_write_rightly() -> None:
    log = dual_write().add(OpCode.DELETE, journal.string("/controller"), session=99)
    election = journal.multi(
        (OpCode.CREATE, journal.create("/controller", b'{"version":2,"brokerid":1}', ephemeral=True)),
        (OpCode.SET_DATA, journal.set_data("/controller_epoch", b"5", 5)),
    )
    log.add(OpCode.MULTI, election, session=11)
    log.add(OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1), session=11)
    assert of_log(log).foreign == []


def test_the_tables_that_workers_make() -> None:
    folder = capture("3.9.1", "rolled-back") / "zookeeper"
    rows = tree_rows(read_writes(DataFolder(folder), REDACTOR))
    assert all(sum(value is not None for value in row.values()) == 1 for row in rows)
    made = {kind: [row[kind] for row in rows if row[kind] is not None] for kind in (OPERATION, BARRIER, WRITE)}
    # One operation is on a znode of ZooKeeper's own, which is not stored.
    needed = [part for part in map(needed_part, DataFolder(folder).transactions()) if part is not None]
    assert len(made[OPERATION]) == sum(len(transaction.operations) for transaction in needed)
    assert (
        len(made[OPERATION])
        == sum(len(transaction.operations) for transaction in DataFolder(folder).transactions()) - 1
    )
    assert len(made[BARRIER]) == 31
    assert made[BARRIER][-1]["kraft_metadata_offset"] == 326
    rollbacks = [(row["kind"], row["writer"]) for row in made[WRITE] if row["kind"] == "rollback"]
    assert rollbacks == [("rollback", "unknown")]
    claims = {row["writer"] for row in made[WRITE] if row["kind"] == "claim"}
    assert claims == {"controller 3000", "controller 3001"}


@pytest.mark.parametrize(("version", "stage"), [("3.9.1", "7-dual-write-failover"), ("3.6.2", "11-brokers-kraft")])
def test_a_folder_that_is_asked_again_answers_as_if_it_were_read_anew(version: str, stage: str) -> None:
    """Its logs are parsed once: no tree, no census and no barrier may change what the next question reads."""
    path = capture(version, stage) / "zookeeper"
    folder = DataFolder(path)
    zxids = [barrier.zxid for barrier in judge(folder).census.barriers]
    for zxid in (zxids[0], None, zxids[-1], zxids[0]):
        assert tree_rows(folder.tree(REDACTOR, zxid)) == tree_rows(read_folder(path, REDACTOR, zxid=zxid))
    assert list(folder.transactions()) == list(DataFolder(path).transactions())
    assert [barrier.zxid for barrier in judge(folder).census.barriers] == zxids


def tree_rows(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in batches for row in batch.to_pylist()]


SECOND_CLAIM = journal.multi(
    (OpCode.SET_DATA, journal.set_data("/controller_epoch", b"5", 5)),
    (OpCode.DELETE, journal.string("/controller")),
    (OpCode.CREATE, journal.create("/controller", b'{"version":2,"brokerid":3001,"kraftControllerEpoch":2}')),
)
# The first check fails, and everything behind it because of it.
FENCED = journal.multi(*[(OpCode.ERROR, journal.i32(code)) for code in (-103, -2, -2)])
# Somebody wrote /migration under the controller (KAFKA-16171): the second check fails.
OVERTAKEN = journal.multi(
    (OpCode.CHECK, journal.string("/controller_epoch") + journal.i32(4)),
    *[(OpCode.ERROR, journal.i32(code)) for code in (-103, -2)],
)


def test_a_controller_that_is_no_longer_in_office_is_fenced_and_the_one_in_office_refused() -> None:
    log = dual_write().add(OpCode.MULTI, SECOND_CLAIM, session=31)
    log.add(OpCode.MULTI, FENCED, session=30).add(OpCode.MULTI, FENCED, session=31)
    log.add(OpCode.MULTI, OVERTAKEN, session=30).add(OpCode.MULTI, OVERTAKEN, session=31)
    log.add(OpCode.MULTI, FENCED, session=99)
    seen = list(WriteCensus().read(read_transactions(log.padded())))
    assert [(write.kind, write.error) for write in seen[-5:]] == [
        *[("fenced", -103), ("envelope_failed", -103)] * 2,
        ("refused", -103),
    ]


def test_a_controllers_later_session_is_known_by_its_changes() -> None:
    """A session that expires is followed by another one, and /controller is not claimed again."""
    change = (OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1))
    log = dual_write().add(OpCode.MULTI, enveloped(*change, write=migration(5)), session=40)
    assert of_log(log).writers[40] == "controller 3000"


def test_a_controllers_later_session_is_known_before_its_first_change() -> None:
    """Twice a second it moves /migration; its first change of a user's client may begin with the parents of the znode."""
    log = dual_write()
    log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(7), 2), session=40)
    for path in ("/config/users/u", "/config/users/u/clients"):
        log.add(OpCode.CREATE, journal.create(path, b""), session=40)
    seen = list(WriteCensus().read(read_transactions(log.padded())))
    assert [write.kind for write in seen[-3:]] == ["migration", "parent", "parent"]


def test_who_restores_migration_by_hand_is_no_controller() -> None:
    log = dual_write().add(OpCode.SET_DATA, journal.set_data("/migration", migration(7), 2), session=99)
    log.add(OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", 1), session=99)
    seen = of_log(log)
    assert [row["writer"] for row in seen.write_batch(seen.foreign).to_pylist()] == ["unknown"]


def test_claims_and_elections_say_what_they_set() -> None:
    log = dual_write().add(OpCode.MULTI, SECOND_CLAIM, session=31)
    log.add(OpCode.SET_DATA, journal.set_data("/controller_epoch", b"garbage", 6), session=99)
    log.add(OpCode.CREATE, journal.create("/controller_epoch", b"1"), session=99)
    seen = [
        write for write in WriteCensus().read(read_transactions(log.padded())) if write.path.startswith("/controller")
    ]
    said = [(w.kind, w.controller_epoch, w.kraft_controller_id, w.kraft_controller_epoch) for w in seen]
    assert said == [
        ("claim", 4, 3000, 1),
        ("claim", 5, 3001, 2),
        ("broker", None, None, None),
        ("broker", 1, None, None),
    ]


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_a_healthy_controller_is_refused_only_what_it_then_writes_another_way(version: str, stage: str) -> None:
    judged = judge(DataFolder(capture(version, stage) / "zookeeper"), elections=True)
    refused = [write for write in judged.writes if write.kind in ("envelope_failed", "fenced")]
    assert {write.error for write in refused} <= {-101, -110}
    epochs = [write.controller_epoch for write in judged.writes if write.controller_epoch is not None]
    assert epochs == list(range(len(epochs)))


def in_files(folder: Path, log: Log, *begins: int) -> Path:
    """The log cut into files that begin with these transactions, and a snapshot before the first of each."""
    whole, marks = log.content, [each.position for each in read_transactions(log.content)]
    first = next(iter(read_transactions(whole))).zxid
    for begin, end in pairwise([*begins, log.zxid + 1]):
        until = len(whole) if end > log.zxid else marks[end - first]
        (folder / f"log.{begin:x}").write_bytes(
            whole[:HEADER_BYTES] + whole[marks[begin - first] : until] + bytes(4096)
        )
        (folder / f"snapshot.{begin - 1:x}").write_bytes(journal.snapshot([journal.Node("/")]))
    return folder


def kraft_at_work(changes: int) -> Log:
    """Dual write from transaction 3 on; from 5 on /migration moves with each."""
    log = dual_write()
    for number in range(changes):
        log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(100 + number), 2 + number), session=30)
    return log


@pytest.mark.parametrize(
    ("level", "later", "barrier"),
    [(8, ("change",), None), (None, ("change",), None), (8, (), 5), (14, ("change",), 5), (8, ("change", 104), 7)],
)
def test_3_4_writes_no_barrier_but_the_loads(
    tmp_path: Path, level: int | None, later: tuple[str | int, ...], barrier: int | None
) -> None:
    """The tree at the load's lacks what 3.4 mirrored since: a topic made in dual write with 3.4.1 was said to be lost."""
    log = kraft_at_work(1)
    for each in later:
        if each == "change":
            log.add(
                OpCode.MULTI,
                enveloped(OpCode.CREATE, journal.create("/brokers/topics/v"), write=migration(100)),
                session=30,
            )
        else:
            log.add(OpCode.SET_DATA, journal.set_data("/migration", migration(int(each)), 3), session=30)
    leading = replace(copy(3000, log_end=200, epoch_starts=((1, 0),)), bootstrap_level=level)
    assert last_barrier(DataFolder(in_files(tmp_path, log, 1)), leading) == barrier


def holes(folder: Path) -> list[tuple[int, int | None, str]]:
    return [(part.after, part.until, part.file) for part in DataFolder(folder).history() if isinstance(part, Hole)]


def test_behind_a_log_that_is_not_there_the_history_goes_on(tmp_path: Path) -> None:
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    assert holes(folder) == []
    whole = [each.zxid for each in DataFolder(folder).transactions()]
    (folder / "log.8").unlink()
    assert holes(folder) == [(7, 12, "log.c")]
    problems: list[str] = []
    assert [each.zxid for each in DataFolder(folder).transactions(problems)] == [*whole[:7], *whole[11:]]
    assert problems == ["log.c: transactions between 0x7 and 0xc are missing: a log file is not there"]


def test_behind_a_damaged_entry_the_history_goes_on_with_the_next_log(tmp_path: Path) -> None:
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    content = bytearray((folder / "log.8").read_bytes())
    content[content.index(b'"kraft_metadata_offset": 105')] ^= 1
    (folder / "log.8").write_bytes(content)
    assert holes(folder) == [(9, 12, "log.8")]
    (folder / "log.c").unlink()
    assert holes(folder) == [(9, 16, "log.8")], "one hole"
    (folder / "log.10").unlink()
    assert holes(folder) == [(9, 15, "log.8")], "the snapshot has what came after it"


def test_a_history_that_the_purge_began_or_that_ends_in_a_torn_entry_has_no_hole(tmp_path: Path) -> None:
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    (folder / "log.1").unlink()
    last = folder / "log.10"
    last.write_bytes(last.read_bytes().rstrip(b"\0")[:-9])
    assert holes(folder) == []
    for snapshot in ("snapshot.0", "snapshot.7", "snapshot.f"):
        (folder / snapshot).unlink()
    assert holes(folder) == [], "the logs may begin before the oldest snapshot"


def test_logs_that_end_before_the_snapshot_that_the_tree_begins_with_have_a_hole(tmp_path: Path) -> None:
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    for name in ("log.c", "log.10"):
        (folder / name).unlink()
    assert holes(folder) == [(11, 15, "transaction logs")]
    (folder / "snapshot.f").unlink()
    assert holes(folder) == [], "as far as the tree goes they are whole"


def test_an_epoch_begins_with_its_first_transaction(tmp_path: Path) -> None:
    (tmp_path / "snapshot.0").write_bytes(journal.snapshot([journal.Node("/")]))
    (tmp_path / "log.1").write_bytes(Log().add(OpCode.CREATE, journal.create("/a")).padded())
    for begin, expected in ((1 << 32, []), ((1 << 32) + 3, [(1, (1 << 32) + 4)])):
        later = Log(zxid=begin).add(OpCode.CREATE, journal.create("/b"))
        (tmp_path / f"log.{begin + 1:x}").write_bytes(later.padded())
        assert [each[:2] for each in holes(tmp_path)] == expected
        (tmp_path / f"log.{begin + 1:x}").unlink()


def test_the_end_of_an_epoch_shows_in_the_snapshot_of_the_next_leader(tmp_path: Path) -> None:
    """A server that begins to lead, or to follow, saves a snapshot by the name of the last transaction that it has."""
    later = 1 << 32
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    (folder / f"log.{later + 1:x}").write_bytes(Log(zxid=later).add(OpCode.CREATE, journal.create("/b")).padded())
    (folder / f"snapshot.{later:x}").write_bytes(journal.snapshot([journal.Node("/")]))
    assert holes(folder) == [], "the snapshot of a new epoch has no transaction of its own"
    (folder / "log.10").unlink()
    assert holes(folder) == [], "nothing shows that there was more"
    (folder / "snapshot.14").write_bytes(journal.snapshot([journal.Node("/")]))
    assert holes(folder) == [(15, later + 1, f"log.{later + 1:x}")]
    for snapshot in folder.glob("snapshot.*"):
        snapshot.write_bytes(b"" if int(snapshot.suffix[1:], 16) > 15 else snapshot.read_bytes())
    summary = FolderSummary()
    assert list(DataFolder(folder).tree(REDACTOR, None, summary))
    assert any("missing" in problem and "the tree ends at zxid 0xf" in problem for problem in summary.problems)


def test_the_first_write_of_migration_behind_a_hole_is_no_barrier(tmp_path: Path) -> None:
    """It may repeat an offset of the hole, as a claim's does."""
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12)
    (folder / "log.8").unlink()
    found = judge(DataFolder(folder)).census
    assert [barrier.zxid for barrier in found.barriers] == [5, 6, 7, *range(13, 21)]
    assert (found.unbroken_from, found.kraft_owns) == (12, True)
    rows = [row[WRITE] for row in tree_rows(read_writes(DataFolder(folder), REDACTOR)) if row[WRITE]]
    told = [(row["zxid"], row["kind"], row["path"]) for row in rows]
    assert told == [(3, "claim", "/controller"), (8, "missing", "log.c")]


def test_who_took_over_in_a_hole_does_not_write_behind_kraft(tmp_path: Path) -> None:
    log = kraft_at_work(4).add(OpCode.DELETE, journal.string("/controller"), session=99)
    for number in range(4):
        log.add(OpCode.SET_DATA, journal.set_data("/config/topics/t", b"{}", number), session=11)
    folder = in_files(tmp_path, log, 1, 9, 11)
    (folder / "log.9").unlink()
    assert judge(DataFolder(folder)).census.foreign == []


def test_a_tree_behind_a_hole_is_exact_where_a_snapshot_behind_it_was_complete(tmp_path: Path) -> None:
    """A snapshot may hold changes made while it was written; where it ends, its digest tells, or the next snapshot."""
    folder = in_files(tmp_path, kraft_at_work(16), 1, 8, 12, 16)
    assert all(DataFolder(folder).is_exact_at(zxid) for zxid in (6, 9, 13, 20)), "nothing is missing"
    (folder / "log.8").unlink()
    exact = DataFolder(folder)
    assert [exact.is_exact_at(zxid) for zxid in (6, 13, 15, 20)] == [True, False, True, True]
    (folder / "snapshot.b").write_bytes(journal.snapshot([journal.Node("/")], digest=True, last_zxid=True))
    sealed = DataFolder(folder).is_exact_at(13)
    assert sealed, "its digest is of no later transaction"
    for name in ("snapshot.b", "snapshot.f"):
        (folder / name).unlink()
    assert not DataFolder(folder).is_exact_at(20), "none leads there"
