"""Trees read from data folders: the same as the live ones, whatever the files' form, and never from damaged ones."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.sources.zookeeper.folder import DataFolder, FolderSummary, ZooKeeperFolderError, read_folder
from tests.captures import capture
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.test_state import secrets_of
from tests.zookeeper.trees import ENCODER_SECRET, EVERY_STAGE, REDACTOR, codes, dump_batches, state_rows
from transforms.zookeeper.storage import scan
from transforms.zookeeper.storage.jute import JuteReader
from transforms.zookeeper.storage.snapshot import open_snapshot, warm_up
from transforms.zookeeper.storage.transactions import CONTAINER_OWNER, OpCode

Tree = dict[str, dict[str, Any]]


def tree(folder: Path, **options: Any) -> Tree:
    return by_path(list(read_folder(folder, REDACTOR, **options)))


def by_path(batches: list[Any]) -> Tree:
    rows = [row for batch in batches for row in batch.to_pylist()]
    found = {row["path"]: row for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_the_folder_of_every_capture_holds_its_live_tree(version: str, stage: str) -> None:
    summary = FolderSummary()
    assert tree(capture(version, stage) / "zookeeper", summary=summary) == by_path(dump_batches(version, stage))
    assert summary.problems == []


@pytest.mark.parametrize(("version", "stage"), EVERY_STAGE)
def test_no_secret_is_left_in_a_tree_read_from_files(version: str, stage: str) -> None:
    shown = repr(tree(capture(version, stage) / "zookeeper"))
    assert not [secret for secret in secrets_of(version, stage) if secret in shown]
    assert ENCODER_SECRET not in shown


@pytest.mark.parametrize("stage", ["7-dual-write-failover", "12-finalized", "retry-after-join"])
def test_every_snapshot_of_a_folder_leads_to_the_same_tree(stage: str, tmp_path: Path) -> None:
    source = capture("3.9.1", stage) / "zookeeper" / "version-2"
    final = by_path(dump_batches("3.9.1", stage))
    snapshots = sorted(source.glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    folder = copied(source, tmp_path)
    for path in reversed(snapshots):
        summary = FolderSummary()
        assert tree(folder, summary=summary) == final
        assert summary.snapshot == path.name
        (folder / path.name).unlink()
    with pytest.raises(ZooKeeperFolderError, match="no usable snapshot"):
        tree(folder)


def test_a_tree_of_the_past_is_the_tree_of_an_earlier_capture() -> None:
    late = capture("3.9.1", "12-finalized") / "zookeeper"
    for stage in ("2-pre-migration", "5-dual-write-changed", "7-dual-write-failover", "9-caught-up"):
        early = FolderSummary()
        expected = tree(capture("3.9.1", stage) / "zookeeper", summary=early)
        assert tree(late, zxid=early.last_zxid) == expected


def test_forms_of_a_snapshot_file(tmp_path: Path) -> None:
    source = capture("3.9.1", "1-zookeeper-only") / "zookeeper" / "version-2"
    final = by_path(dump_batches("3.9.1", "1-zookeeper-only"))
    newest = max(source.glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    for suffix, content in {
        ".gz": gzip.compress(newest.read_bytes()),
        ".snappy": journal.snappy(newest.read_bytes(), block=5000),
    }.items():
        folder = copied(source, tmp_path / suffix)
        (folder / newest.name).unlink()
        (folder / (newest.name + suffix)).write_bytes(content)
        summary = FolderSummary()
        assert tree(folder, summary=summary) == final
        assert summary.snapshot == newest.name + suffix


def test_a_broken_newest_snapshot_is_passed_over(tmp_path: Path) -> None:
    source = capture("3.9.1", "9-caught-up") / "zookeeper" / "version-2"
    folder = copied(source, tmp_path)
    newest = max(folder.glob("snapshot.*"), key=lambda path: int(path.suffix[1:], 16))
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    summary = FolderSummary()
    found = tree(folder, summary=summary)
    told = found.pop(newest.name)["problem"]
    assert found == by_path(dump_batches("3.9.1", "9-caught-up"))
    assert summary.snapshot != newest.name
    assert summary.problems == [f"{newest.name}: {told}"]
    assert codes(state_rows(list(read_folder(folder, REDACTOR)))) == ["SOURCE-FALLBACK"]


def test_logs_may_lie_elsewhere(tmp_path: Path) -> None:
    source = capture("3.9.1", "1-zookeeper-only") / "zookeeper" / "version-2"
    data, logs = tmp_path / "data" / "version-2", tmp_path / "logs" / "version-2"
    for path in source.iterdir():
        target = logs if path.name.startswith("log") else data
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    assert tree(tmp_path / "data", log_location=tmp_path / "logs") == by_path(dump_batches("3.9.1", "1-zookeeper-only"))


def test_a_missing_log_is_noticed(tmp_path: Path) -> None:
    folder = copied(capture("3.9.1", "9-caught-up") / "zookeeper" / "version-2", tmp_path)
    for path in folder.glob("snapshot.*"):
        if path.name != "snapshot.0":
            path.unlink()
    logs = sorted(folder.glob("log.*"), key=lambda path: int(path.suffix[1:], 16))
    logs[1].unlink()
    summary = FolderSummary()
    tree(folder, summary=summary)
    assert "missing" in summary.problems[0]
    assert summary.last_zxid < int(logs[1].suffix[1:], 16)


def copied(source: Path, target: Path) -> Path:
    return Path(shutil.copytree(source, target / "version-2"))


def written(folder: Path, nodes: list[Node], log: Log | bytes | None, zxid: int = 0, **form: bool) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"snapshot.{zxid:x}").write_bytes(journal.snapshot(nodes, **form))
    if log is not None:
        (folder / f"log.{zxid + 1:x}").write_bytes(log if isinstance(log, bytes) else log.padded())
    return folder


ROOT = Node("/", cversion=2)
BASE = [ROOT, Node("/a", b"x"), Node("/b", None, cversion=1), Node("/b/c")]


@pytest.mark.parametrize("digest", [False, True])
@pytest.mark.parametrize("last_zxid", [False, True])
def test_snapshots_of_every_release(tmp_path: Path, digest: bool, last_zxid: bool) -> None:
    found = tree(written(tmp_path, BASE, Log(), digest=digest, last_zxid=last_zxid))
    assert {path: row["data"] for path, row in found.items()} == {"/": "", "/a": "x", "/b": None, "/b/c": ""}
    assert (found["/"]["num_children"], found["/"]["cversion"]) == (2, 2)
    assert found["/b"]["acl"] == [{"perms": 31, "scheme": "world", "id": "anyone"}]


@pytest.mark.parametrize("digest", [False, True])
def test_every_type_of_transaction(tmp_path: Path, digest: bool) -> None:
    log = Log(digest=digest)
    log.add(OpCode.CREATE_SESSION, journal.i32(18000))
    log.add(OpCode.CREATE, journal.create("/a/new", b"1", cversion=1))
    log.add(OpCode.CREATE2, journal.create("/a/two", b"2", cversion=2))
    log.add(OpCode.CREATE_CONTAINER, journal.create_container("/box"))
    log.add(OpCode.CREATE_TTL, journal.create_ttl("/ttl", 5000))
    log.add(OpCode.SET_DATA, journal.set_data("/a", b"changed", 1))
    log.add(OpCode.SET_ACL, journal.set_acl("/a", [(1, "digest", "u:hash")], 3))
    log.add(OpCode.DELETE, journal.string("/b/c"))
    log.add(
        OpCode.MULTI,
        journal.multi((OpCode.CREATE, journal.create("/m", b"")), (OpCode.DELETE, journal.string("/a/two"))),
    )
    log.add(
        OpCode.MULTI,
        journal.multi(
            (OpCode.SET_DATA, journal.set_data("/a", b"never", 10)),
            (OpCode.ERROR, journal.i32(-101)),
            (OpCode.ERROR, journal.i32(-2)),
        ),
    )
    log.add(OpCode.MULTI, journal.multi((OpCode.CHECK, journal.set_data("/a", b"", 9)[:6] + journal.i32(9))))
    log.add(OpCode.ERROR, journal.i32(-110))
    log.add(OpCode.CREATE, journal.create("/mine", b"", ephemeral=True))
    log.add(OpCode.CREATE, journal.create("/a/mine", b"", ephemeral=True))
    log.add(OpCode.CREATE, journal.create("/others", b"", ephemeral=True), session=78)
    log.add(OpCode.DELETE_CONTAINER, journal.string("/box"))
    log.add(OpCode.RECONFIG, journal.set_data("/b", b"servers", 1))
    log.add(OpCode.CLOSE_SESSION, journal.paths("/mine", "/a/mine") if not digest else b"")
    found = tree(written(tmp_path, BASE, log))
    assert {path: row["data"] for path, row in found.items()} == {
        "/": "",
        "/a": "changed",
        "/a/new": "1",
        "/b": "servers",
        "/m": "",
        "/others": "",
        "/ttl": None,
    }
    assert (found["/a"]["version"], found["/a"]["aversion"], found["/a"]["mzxid"], found["/a"]["mtime"]) == (
        1,
        3,
        6,
        10_006,
    )
    assert found["/a"]["acl"][0]["id"].startswith("u:hmac:")
    assert found["/ttl"]["ephemeral_owner"] == -(2**56) + 5000
    assert found["/others"]["ephemeral_owner"] == 78
    assert (found["/a"]["num_children"], found["/a"]["cversion"], found["/a"]["pzxid"]) == (1, 5, 18)
    assert found["/"]["num_children"] == 5
    assert found["/b"]["pzxid"] == 8
    assert [entry.type for entry in DataFolder(tmp_path).transactions()].count(OpCode.MULTI) == 3
    before = tree(tmp_path, zxid=5)
    assert before["/box"]["ephemeral_owner"] == CONTAINER_OWNER


def test_changes_that_a_fuzzy_snapshot_already_holds(tmp_path: Path) -> None:
    """The snapshot's name says zxid 0, but it was still being written at zxid 4."""
    nodes = [Node("/", cversion=3, pzxid=2), Node("/a", b"late", mzxid=4, version=2), Node("/kept", czxid=1)]
    log = Log()
    log.add(OpCode.CREATE, journal.create("/kept", b"", cversion=1))
    log.add(OpCode.CREATE, journal.create("/gone", b"", cversion=2))
    log.add(OpCode.SET_DATA, journal.set_data("/a", b"early", 1))
    log.add(OpCode.SET_DATA, journal.set_data("/a", b"late", 2))
    log.add(OpCode.DELETE, journal.string("/gone"))
    log.add(OpCode.DELETE, journal.string("/never"))
    found = tree(written(tmp_path, nodes, log))
    assert found.keys() == {"/", "/a", "/kept"}
    assert (found["/a"]["data"], found["/a"]["version"], found["/a"]["mzxid"]) == ("late", 2, 4)
    assert (found["/"]["num_children"], found["/"]["cversion"]) == (2, 4)


def test_a_session_that_ends_takes_the_snapshots_ephemerals_along(tmp_path: Path) -> None:
    nodes = [Node("/", cversion=1), Node("/ids", None, cversion=1), Node("/ids/0", b"", owner=55)]
    found = tree(written(tmp_path, nodes, Log().add(OpCode.CLOSE_SESSION, session=55)))
    assert found.keys() == {"/", "/ids"}
    assert (found["/ids"]["num_children"], found["/ids"]["pzxid"], found["/ids"]["cversion"]) == (0, 1, 2)


def test_torn_and_damaged_logs(tmp_path: Path) -> None:
    log = Log()
    for number in range(5):
        log.add(OpCode.CREATE, journal.create(f"/n{number}", b""))
    whole = log.content
    torn = FolderSummary()
    assert len(tree(written(tmp_path / "torn", [ROOT], whole[:-7]), summary=torn)) == 5
    assert torn.problems == []
    preallocated = FolderSummary()
    assert len(tree(written(tmp_path / "pre", [ROOT], whole[:-7] + bytes(5000)), summary=preallocated)) == 5
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    broken = FolderSummary()
    found = tree(written(tmp_path / "bad", [ROOT], bytes(damaged)), summary=broken)
    assert "checksum" in found.pop("log.1")["problem"]
    assert "checksum" in broken.problems[0]
    assert len(found) < 5
    assert "/n4" not in found
    assert codes(state_rows(list(read_folder(tmp_path / "bad", REDACTOR)))).count("CAP-20") == 1


def test_a_time_that_the_logs_do_not_reach_is_told(tmp_path: Path) -> None:
    folder = written(tmp_path, BASE, Log().add(OpCode.CREATE, journal.create("/x")), zxid=4)
    summary = FolderSummary()
    assert "transaction logs" in tree(folder, zxid=99, summary=summary)
    assert "before 0x63" in summary.problems[0]


def test_the_compiled_loops_can_be_made_ready() -> None:
    warm_up()
    assert scan.scan_tree.signatures
    assert scan.extract.signatures


def moved(data: bytes, chroot: str) -> bytes:
    """The same snapshot with every path below a chroot, sealed anew."""
    snapshot = open_snapshot(data)
    head = data[: snapshot.positions[0]]
    stat = journal.i64(1) + journal.i64(1) * 4 + journal.i32(0) * 3 + journal.i64(0) + journal.i64(1)
    tree = [journal.string("") + journal.buffer(None) + stat]
    ends = [*snapshot.positions[1:].tolist(), None]
    for position, end in zip(snapshot.positions.tolist(), ends, strict=True):
        reader = JuteReader(data, position)
        path = reader.string()
        held = max(JuteReader(data, reader.position).i32(), 0)
        stop = end or reader.position + 4 + held + 68
        tree.append(journal.string(chroot + path) + data[reader.position : stop])
    return journal.seal(head + b"".join(tree) + journal.string("/"))


def test_a_cluster_below_a_chroot(tmp_path: Path) -> None:
    version, stage = "3.9.1", "10-brokers-rolling"
    source = capture(version, stage) / "zookeeper" / "version-2" / "snapshot.6d8"
    (tmp_path / "plain").mkdir()
    shutil.copy(source, tmp_path / "plain" / "snapshot.6d8")
    folder = tmp_path / "chroot"
    folder.mkdir()
    (folder / "snapshot.6d8").write_bytes(moved(source.read_bytes(), "/prod"))
    summary = FolderSummary()
    found = tree(folder, summary=summary)
    assert summary.chroot == "/prod"
    assert found == tree(tmp_path / "plain")
    shown = repr([batch.to_pylist() for batch in read_folder(folder, REDACTOR, chroot="")])
    assert "/prod/config/users/alice" in shown
    assert not [secret for secret in secrets_of(version, stage) if secret in shown]


def test_several_clusters_in_one_ensemble(tmp_path: Path) -> None:
    log = Log()
    for name in ("/a", "/b"):
        for path in (name, f"{name}/brokers", f"{name}/brokers/topics", f"{name}/brokers/topics/of{name[1:]}"):
            log.add(OpCode.CREATE, journal.create(path, None))
    for path in ("/kafka-acl", "/kafka-acl/Topic", "/kafka-acl/Topic/x", "/kafka-acl/Topic/x/brokers"):
        log.add(OpCode.CREATE, journal.create(path, None))
    log.add(OpCode.CREATE, journal.create("/kafka-acl/Topic/x/brokers/topics", None))
    folder = written(tmp_path, [ROOT], log)
    # No option takes a folder's chroot: what is advised must be there to do.
    with pytest.raises(
        ZooKeeperFolderError, match=r"holds 2 Kafka clusters, at '/a', '/b'; .*`kraft-audit snapshot-zookeeper`"
    ):
        tree(folder)
    assert tree(folder, chroot="/b").keys() == {"/", "/brokers", "/brokers/topics", "/brokers/topics/ofb"}
    paths = [
        operation.path for entry in DataFolder(folder, chroot="/a").transactions() for operation in entry.operations
    ]
    assert paths == ["/", "/brokers", "/brokers/topics", "/brokers/topics/ofa"]


def test_a_cluster_that_was_removed_since_the_snapshot_is_none(tmp_path: Path) -> None:
    """As of a broker that was started with a wrong chroot, and of a cluster that is gone, until the next snapshot."""
    nodes = [ROOT, *(Node(f"/old{path}") for path in ("", "/brokers", "/brokers/topics"))]
    log = Log()
    for name in ("/prod", "/wrong"):
        for path in (name, f"{name}/brokers", f"{name}/brokers/topics"):
            log.add(OpCode.CREATE, journal.create(path, None))
    for name in ("/wrong", "/old"):
        for path in (f"{name}/brokers/topics", f"{name}/brokers", name):
            log.add(OpCode.DELETE, journal.string(path))
    # Nothing of it was applied.
    topics = (OpCode.CREATE, journal.create("/refused/brokers/topics", None))
    log.add(OpCode.MULTI, journal.multi(topics, (OpCode.ERROR, journal.i32(-101))))
    assert tree(written(tmp_path, nodes, log)).keys() == {"/", "/brokers", "/brokers/topics"}


def test_what_is_no_folder_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ZooKeeperFolderError, match="no such folder"):
        tree(tmp_path / "nowhere")
    logs = copied(capture("3.9.1", "7-dual-write-failover") / "zookeeper" / "version-2", tmp_path / "logs")
    for snapshot in logs.glob("snapshot.*"):
        snapshot.unlink()
    with pytest.raises(ZooKeeperFolderError, match=f"^no usable snapshot in {logs}; give ZooKeeper's dataDir"):
        tree(logs, zxid=10)
    with pytest.raises(ZooKeeperFolderError, match=f"no usable snapshot in {tmp_path}; give ZooKeeper's dataDir"):
        tree(tmp_path)
    (tmp_path / "snapshot.5").write_bytes(b"hello")
    # There is no older one.
    with pytest.raises(ZooKeeperFolderError, match=rf"in {tmp_path}; snapshot\.5: its head is damaged[^;]*$"):
        tree(tmp_path)
