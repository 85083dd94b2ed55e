"""ZooKeeper's own digest of its tree: real folders have it, and what is missing in them is found out."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyspark
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from jobs.commands.demo.zookeeper_server import zookeeper_server
from jobs.runtime.java import java_home
from jobs.sources.zookeeper.folder import DataFolder, FolderSummary, read_folder
from jobs.sources.zookeeper.writes import judge
from schemas.zookeeper.findings import TREE_DIGEST, TREE_UNPROVED
from tests.captures import capture
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.model import Model
from tests.zookeeper.trees import EVERY_STAGE, REDACTOR, codes, state_rows
from transforms.zookeeper.storage.digest import DigestVerdict, TreeDigest
from transforms.zookeeper.storage.replay import Replay
from transforms.zookeeper.storage.snapshot import Snapshot, open_snapshot, owned_paths, read_batches
from transforms.zookeeper.storage.transactions import OpCode, ZkTransaction, read_transactions


def summary_of(folder: Path, zxid: int | None = None) -> FolderSummary:
    summary = FolderSummary()
    for _ in read_folder(folder, REDACTOR, zxid=zxid, summary=summary):
        pass
    return summary


def replayed(snapshot: Snapshot, zxid: int, transactions: list[ZkTransaction]) -> TreeDigest:
    digest = TreeDigest.of(snapshot, zxid, transactions)
    replay = Replay(transactions, REDACTOR, digest)
    for _ in replay.run(read_batches(snapshot, REDACTOR), owned_paths(snapshot)):
        pass
    return digest


def parts(folder: Path) -> Iterator[tuple[Snapshot, int, list[ZkTransaction]]]:
    """Each snapshot of a folder with the transactions after it."""
    logs = sorted(folder.glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    whole = [transaction for path in logs for transaction in read_transactions(path.read_bytes())]
    for path in sorted(folder.glob("snapshot.*")):
        zxid = int(path.suffix[1:], 16)
        yield open_snapshot(path.read_bytes()), zxid, [each for each in whole if each.zxid > zxid]


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_the_tree_of_every_capture_has_the_digest_that_its_server_wrote(version: str, stage: str) -> None:
    for snapshot, zxid, transactions in parts(capture(version, stage) / "zookeeper" / "version-2"):
        digest = replayed(snapshot, zxid, transactions)
        last = transactions[-1].zxid if transactions else zxid
        judgement = digest.judge(last)
        assert judgement.verdict is DigestVerdict.PROVED
        newest_change = max((each.zxid for each in transactions if not each.failed), default=zxid)
        assert digest.agreed_at is not None
        assert digest.agreed_at >= newest_change


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_without_digests_versions_and_parents_of_every_capture_follow_each_other(version: str, stage: str) -> None:
    for snapshot, zxid, transactions in parts(capture(version, stage) / "zookeeper" / "version-2"):
        plain = [replace(each, digest=None) for each in transactions]
        digest = replayed(replace(snapshot, digest=None), zxid, plain)
        assert digest.doubts == {}
        judgement = digest.judge(zxid)
        assert judgement.verdict is DigestVerdict.UNPROVED
        assert "have no digest (ZooKeeper before 3.6" in judgement.text


def rows_of(
    snapshot: Snapshot, zxid: int, transactions: list[ZkTransaction]
) -> tuple[DigestVerdict, dict[str, object]]:
    digest = TreeDigest.of(snapshot, zxid, transactions)
    replay = Replay(transactions, REDACTOR, digest)
    batches = list(replay.run(read_batches(snapshot, REDACTOR), owned_paths(snapshot)))
    rows = {row["path"]: row for batch in batches for row in batch.to_pylist()}
    # What lies below /zookeeper is the server's own, and no digest tells of it.
    mine = {path: row for path, row in rows.items() if not path.startswith("/zookeeper/")}
    return digest.judge(transactions[-1].zxid).verdict, mine


@pytest.mark.parametrize("stage", ["5-dual-write-changed", "rolled-back"])
def test_a_tree_without_one_of_a_captures_transactions_is_proved_where_it_is_the_same_and_only_there(
    stage: str,
) -> None:
    (snapshot, zxid, transactions), *_ = parts(capture("3.9.1", stage) / "zookeeper" / "version-2")
    verdict, whole = rows_of(snapshot, zxid, transactions)
    assert verdict is DigestVerdict.PROVED
    missed = 0
    for index in range(0, len(transactions) - 1, 23):
        verdict, rows = rows_of(snapshot, zxid, [*transactions[:index], *transactions[index + 1 :]])
        assert verdict is (DigestVerdict.PROVED if rows == whole else DigestVerdict.BROKEN)
        missed += verdict is DigestVerdict.BROKEN
    assert missed > 5


@pytest.mark.slow
def test_the_folder_of_a_busy_server_has_its_digest(tmp_path: Path) -> None:
    """Multis that fail, sessions that end, containers and znodes that expire, and snapshots taken while all of that goes on."""
    options = [
        "-Dzookeeper.extendedTypesEnabled=true",
        "-Dzookeeper.snapCount=150",
        "-Dznode.container.checkIntervalMs=500",
    ]
    with zookeeper_server(jvm_options=options) as server:
        threads = [threading.Thread(target=_work, args=(server.address, number)) for number in range(4)]
        for thread in threads:
            thread.start()
        commands = "create -c /box\ncreate -c /box2\ncreate /box2/in x\ndelete /box2/in\ncreate -t 300 /brief x\ncreate -t 900000 /long x\n"
        jars = Path(pyspark.__file__).parent / "jars" / "*"
        subprocess.run(
            [
                str(java_home() / "bin" / "java"),
                *options,
                "-cp",
                str(jars),
                "org.apache.zookeeper.ZooKeeperMain",
                "-server",
                server.address,
            ],
            input=commands + "set /long y\nquit\n",
            text=True,
            capture_output=True,
            check=False,
            timeout=60,
        )
        for thread in threads:
            thread.join()
        # The last snapshot is still being written.
        time.sleep(2)
        folder = Path(shutil.copytree(server.data_folder / "version-2", tmp_path / "version-2"))
    kinds = set()
    found = list(parts(folder))
    for snapshot, zxid, transactions in found:
        kinds |= {operation.type for each in transactions for operation in each.operations}
        last = transactions[-1].zxid if transactions else zxid
        assert replayed(snapshot, zxid, transactions).judge(last).verdict is DigestVerdict.PROVED
        plain = replayed(replace(snapshot, digest=None), zxid, [replace(each, digest=None) for each in transactions])
        assert plain.doubts == {}
    assert len(found) > 3
    assert {
        OpCode.CREATE_CONTAINER,
        OpCode.CREATE_TTL,
        OpCode.DELETE_CONTAINER,
        OpCode.CLOSE_SESSION,
        OpCode.ERROR,
    } <= kinds


def _work(address: str, number: int) -> None:
    client = KazooClient(address)
    client.start(30)
    client.ensure_path(f"/w{number}/kids")
    for turn in range(200):
        client.create(f"/w{number}/kids/k", b"x" * (turn % 50), sequence=True, ephemeral=turn % 3 == 0)
        client.set(f"/w{number}", str(turn).encode())
        multi = client.transaction()
        multi.create(f"/w{number}/kids/m{turn}", b"m")
        multi.set_data(f"/w{number}/kids", b"d")
        if turn % 2:
            multi.delete("/nowhere")
        multi.commit()
        try:
            client.delete(f"/w{number}/kids/m{turn - 2}", version=turn % 4 - 1)
        except KazooException:
            continue
        if turn % 20 == 7:
            client.stop()
            client.start(30)
    client.stop()
    client.close()


def a_model(zxid: int = 0, *, digested: bool = True) -> Model:
    model = Model(Log(zxid=zxid), digested=digested)
    for path in ("/brokers", "/brokers/topics", "/config"):
        model.create(path, None)
    return model


def next_log(model: Model, folder: Path, zxid: int) -> None:
    """End the log, write it into the folder, and begin another one after `zxid`."""
    folder.mkdir(exist_ok=True)
    first = int.from_bytes(model.log.content[16 + 12 + 12 : 16 + 12 + 20], "big")
    (folder / f"log.{first:x}").write_bytes(model.log.padded())
    model.log = Log(zxid=zxid)


def two_epochs(folder: Path, *, digested: bool = True) -> Model:
    """A folder with a snapshot of nothing and three logs, of two epochs."""
    model = Model(Log(), digested=digested)
    folder.mkdir()
    (folder / "snapshot.0").write_bytes(model.snapshot(digest=(0, 0)))
    for path in ("/brokers", "/brokers/topics", "/brokers/topics/a"):
        model.create(path, b"1")
    next_log(model, folder, model.log.zxid)
    model.create("/brokers/topics/b", b"2").set("/brokers/topics/a", b"3")
    next_log(model, folder, 1 << 32)
    model.create("/brokers/topics/c", b"4").set("/brokers/topics/a", b"5").create("/config")
    next_log(model, folder, model.log.zxid)
    return model


def test_a_folder_that_is_whole_is_proved(tmp_path: Path) -> None:
    two_epochs(tmp_path / "zk")
    summary = summary_of(tmp_path / "zk")
    assert summary.problems == []
    assert [(each.verdict, each.text) for each in summary.proofs] == [
        (DigestVerdict.PROVED, "the tree has ZooKeeper's own digest after transaction 0x100000003")
    ]


def test_a_log_that_is_missing_before_a_new_epoch_is_found_out(tmp_path: Path) -> None:
    """zxids begin anew with an epoch: nothing but the tree tells."""
    two_epochs(tmp_path / "zk")
    (tmp_path / "zk" / "log.4").unlink()
    summary = summary_of(tmp_path / "zk")
    assert summary.problems == [
        "transaction logs: the tree does not match ZooKeeper's own digest after transaction 0x100000001, and had it after 0x3: "
        "transactions are missing, or the files come from different servers"
    ]
    found = codes(state_rows([batch for _, batch in DataFolder(tmp_path / "zk").trees(REDACTOR, None)]))
    assert found.count("CAP-20") == 1
    assert "TREE-PROVED" not in found


@pytest.mark.parametrize("barrier", [None, 5])
def test_a_log_that_is_missing_without_digests_is_found_out_by_what_follows(
    tmp_path: Path, barrier: int | None
) -> None:
    two_epochs(tmp_path / "zk", digested=False)
    whole = summary_of(tmp_path / "zk")
    assert whole.problems == []
    assert [each.verdict for each in whole.proofs] == [DigestVerdict.UNPROVED]
    (tmp_path / "zk" / "log.4").unlink()
    problem = summary_of(tmp_path / "zk").problems[0]
    assert problem == (
        "transaction logs: transaction 0x100000001 makes child 3, not 2, below /brokers/topics: earlier transactions are missing"
    )
    found = codes(state_rows([batch for _, batch in DataFolder(tmp_path / "zk").trees(REDACTOR, barrier)]))
    assert "CAP-20" in found


def test_a_hole_of_zeros_with_entries_behind_it_is_found_out(tmp_path: Path) -> None:
    two_epochs(tmp_path / "zk")
    last = tmp_path / "zk" / "log.100000001"
    content = bytearray(last.read_bytes())
    start, end = 16, content.index(b"/brokers/topics/a")
    content[start : end - 60] = bytes(end - 60 - start)
    last.write_bytes(content)
    (problem,) = summary_of(tmp_path / "zk").problems
    assert problem.startswith("log.100000001: the zeros from byte 16 on are a hole: byte ")
    assert problem.endswith("the tree ends at zxid 0x5")


def test_a_folder_without_logs_is_a_finding(tmp_path: Path) -> None:
    source = capture("3.9.1", "1-zookeeper-only") / "zookeeper" / "version-2"
    for path in source.glob("snapshot.*"):
        shutil.copy(path, tmp_path)
    newest = max(tmp_path.iterdir(), key=lambda path: int(path.suffix[1:], 16))
    rows = [row for _, batch in DataFolder(tmp_path).trees(REDACTOR, None) for row in batch.to_pylist()]
    told = [row["problem"] for row in rows if row["path"] == "transaction logs"]
    assert told[0] == f"there are none, so the tree is only as new as {newest.name}"
    # It is fuzzy, and what it may hold of later transactions can't be told from what it lacks.
    assert told[1].startswith("the snapshot at 0x101 may hold changes up to 0x10a")


def test_a_fuzzy_snapshot_is_proved_once_its_last_change_was_replayed(tmp_path: Path) -> None:
    """Written from 0x4 to 0x8: it holds what was made at 0x7, and neither what was written at 0x5 nor at 0x6."""
    folder = tmp_path / "zk"
    folder.mkdir()
    model = a_model()
    model.create("/config/a", b"1")
    early = dict(model.nodes)
    model.set("/config/a", b"2").delete("/config/a").create("/brokers/topics/t", b"3").set("/brokers/topics/t", b"4")
    mixed = {path: node for path, node in early.items() if path != "/config/a"}
    mixed |= {path: model.nodes[path] for path in ("/brokers/topics", "/brokers/topics/t")}
    (folder / "snapshot.4").write_bytes(model.snapshot(of=mixed))
    model.create("/config/b", b"5")
    next_log(model, folder, model.log.zxid)
    for zxid in (8, 9):
        assert [each.verdict for each in summary_of(folder, zxid).proofs] == [DigestVerdict.PROVED]
    early_summary = summary_of(folder, 5)
    assert early_summary.proofs == []
    assert "the snapshot at 0x4 may hold changes up to 0x8" in early_summary.problems[0]


def test_a_fuzzy_snapshot_without_digests_is_no_fault(tmp_path: Path) -> None:
    folder = tmp_path / "zk"
    folder.mkdir()
    model = a_model(digested=False)
    model.create("/config/a", b"1").create("/config/a/b")
    early = {path: node for path, node in model.nodes.items() if not path.startswith("/config/a")}
    model.set("/config/a", b"2").set("/config/a/b", b"3").delete("/config/a/b").delete("/config/a")
    # It listed the znode as a child, and came to it when it was gone.
    (folder / "snapshot.5").write_bytes(model.snapshot(of=early))
    next_log(model, folder, model.log.zxid)
    summary = summary_of(folder)
    assert summary.problems == []
    assert [each.verdict for each in summary.proofs] == [DigestVerdict.UNPROVED]


def test_a_digest_of_another_version_proves_nothing(tmp_path: Path) -> None:
    log = Log(digest=True).add(OpCode.CREATE, journal.create("/a", cversion=1))
    (tmp_path / "snapshot.0").write_bytes(journal.snapshot([Node("/")], digest=True))
    (tmp_path / "log.1").write_bytes(log.padded())
    (judgement,) = summary_of(tmp_path).proofs
    assert judgement.verdict is DigestVerdict.UNPROVED
    assert judgement.text.startswith("its digests have version 3, which this audit does not support")
    found = [row for _, batch in DataFolder(tmp_path).trees(REDACTOR, None) for row in batch.to_pylist()]
    assert [row["data"] for row in found if row["path"] == TREE_DIGEST] == [f"{TREE_UNPROVED}{judgement.text}"]


def test_digests_that_begin_later_prove_the_tree_all_the_same(tmp_path: Path) -> None:
    """An ensemble that was upgraded: its newest snapshot is still the old release's."""
    model = a_model(digested=False)
    (tmp_path / "snapshot.3").write_bytes(model.snapshot())
    model.digested = True
    model.create("/config/a")
    next_log(model, tmp_path, model.log.zxid)
    assert [each.verdict for each in summary_of(tmp_path).proofs] == [DigestVerdict.PROVED]


def test_paths_that_a_server_may_have_encoded_otherwise_are_no_fault(tmp_path: Path) -> None:
    """A Java without UTF-8 takes a question mark for each character that it can't write."""
    model = a_model()
    model.create("/config/größe", b"1")
    (tmp_path / "snapshot.4").write_bytes(model.snapshot())
    model.create("/config/b")
    next_log(model, tmp_path, model.log.zxid)
    assert [each.verdict for each in summary_of(tmp_path).proofs] == [DigestVerdict.PROVED]
    other = tmp_path / "other"
    other.mkdir()
    asked = a_model()
    asked.create("/config/größe", b"1")
    (other / "snapshot.4").write_bytes(asked.snapshot(digest=(4, 1)))
    asked.digested = False
    asked.create("/config/b")
    next_log(asked, other, asked.log.zxid)
    assert summary_of(other).problems == []
    (judgement,) = summary_of(other).proofs
    assert "not ASCII" in judgement.text


def test_a_snapshot_that_is_younger_than_the_copied_logs_is_left_for_an_older_one(tmp_path: Path) -> None:
    """rsync takes log.* before snapshot.*, and the server wrote on in between."""
    model = a_model()
    (tmp_path / "snapshot.3").write_bytes(model.snapshot())
    model.create("/config/a", b"1").create("/config/b", b"2")
    (tmp_path / "log.1").write_bytes(model.log.padded())
    expected = [row for batch in read_folder(tmp_path, REDACTOR) for row in batch.to_pylist()]
    before = dict(model.nodes)
    model.create("/config/c", b"3")
    (tmp_path / "snapshot.5").write_bytes(model.snapshot(of=before))
    summary = FolderSummary()
    rows = [row for batch in read_folder(tmp_path, REDACTOR, summary=summary) for row in batch.to_pylist()]
    assert [row for row in rows if row["path"].startswith("/")] == expected
    assert summary.problems == ["snapshot.5: the logs end before 0x6, up to which it was written; an older one is used"]
    assert [each.verdict for each in summary.proofs] == [DigestVerdict.PROVED]
    (tmp_path / "snapshot.3").unlink()
    assert "the snapshot at 0x5 may hold changes up to 0x6" in summary_of(tmp_path).problems[0]


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_both_trees_of_every_capture_are_proved(version: str, stage: str) -> None:
    folder = DataFolder(capture(version, stage) / "zookeeper")
    barriers = judge(folder).census.barriers
    found = codes(state_rows([batch for _, batch in folder.trees(REDACTOR, barriers[-1].zxid if barriers else None)]))
    assert "TREE-PROVED" in found
    assert not {"TREE-UNPROVED", "CAP-20", "CAP-07", "SOURCE-FALLBACK"} & set(found)
