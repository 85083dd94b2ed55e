"""Only Kafka's own subtrees are stored: other applications' znodes, and their secrets, are left where they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.sources.zookeeper.folder import DataFolder
from jobs.sources.zookeeper.writes import read_writes
from jobs.steps.ingest_zookeeper import TreeFiles
from schemas.zookeeper.paths import NEEDED_ROOTS
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.trees import REDACTOR, znode
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.read.znode import unreadable
from transforms.zookeeper.storage.chroot import needed
from transforms.zookeeper.storage.transactions import OpCode

SECRET = b'{"credentials":{"solr":"S3cr3t-Zebra"}}'
FOREIGN = (
    "/solr/security.json",
    "/solr",
    "/consumers/g",
    "/zookeeper/quota",
    "/configs",
    "/brokers2/ids/1",
    "/adm",
    "/ config",
)


@pytest.mark.parametrize("root", NEEDED_ROOTS)
def test_what_an_audit_needs_is_kept(root: str) -> None:
    batch = znode_batch([znode(path, b"x") for path in ("/", root, f"{root}/a", f"{root}/a/b\n/c", f"{root}2")])
    assert needed(batch)["path"].to_pylist() == ["/", root, f"{root}/a", f"{root}/a/b\n/c"]


def test_all_else_is_not_and_rows_about_files_are() -> None:
    batch = znode_batch([*(znode(path, SECRET) for path in FOREIGN), unreadable("log.5", "it is torn")])
    assert needed(batch)["path"].to_pylist() == ["log.5"]


def files(folder: Path, chroot: str = "") -> TreeFiles:
    """A data folder in which another application has its znodes beside and, with a chroot, above Kafka's."""
    data = folder / "version-2"
    data.mkdir(parents=True)
    nodes = [Node("/"), Node("/solr", SECRET)]
    parts = chroot.split("/")[1:] if chroot else []
    nodes += [Node("/" + "/".join(parts[: count + 1])) for count in range(len(parts))]
    nodes += [Node(f"{chroot}/{path}") for path in ("brokers", "brokers/topics", "other")]
    (data / "snapshot.0").write_bytes(journal.snapshot(nodes))
    log = Log()
    log.add(OpCode.CREATE, journal.create("/solr/security.json", SECRET))
    log.add(OpCode.SET_DATA, journal.set_data(f"{chroot}/other", SECRET, 1))
    mixed = ((OpCode.SET_DATA, journal.set_data(f"{chroot}{path}", SECRET, 1)) for path in ("/other", "/brokers"))
    log.add(OpCode.MULTI, journal.multi(*mixed))
    log.add(OpCode.CREATE, journal.create(f"{chroot}/brokers/ids"))
    (data / "log.1").write_bytes(log.padded())
    return TreeFiles("c", "s", REDACTOR, folder=folder)


@pytest.mark.parametrize("chroot", ["", "/prod", "/a/b"])
def test_of_a_data_folder_and_its_logs_nothing_of_others_is_stored(tmp_path: Path, chroot: str) -> None:
    source = files(tmp_path, chroot)
    read = [row for _, batch in source.trees() for row in batch.to_pylist()]
    # What is said of the folder itself is no znode.
    stored = {row["path"]: row["data"] for row in read if row["problem"] is None}
    assert stored.keys() == {"/", "/brokers", "/brokers/ids", "/brokers/topics"}
    operations = [row["operation"] for batch in source.history() for row in batch.to_pylist() if row["operation"]]
    # What is above a chroot has paths of its own, and no data.
    assert [(row["zxid"], row["path"], row["data"]) for row in operations] == [
        (3, "/other", None),
        (3, "/brokers", SECRET.decode()),
        (4, "/brokers/ids", ""),
    ]
    assert len([*read_writes(DataFolder(tmp_path), REDACTOR)]) == len([*source.history()])


def test_of_a_dump_nothing_of_others_is_stored(tmp_path: Path) -> None:
    stat = dict.fromkeys(("czxid", "mzxid", "pzxid", "ctime", "mtime", "version", "cversion", "aversion"), 1)
    stat |= dict.fromkeys(("ephemeral_owner", "num_children", "data_length"), 0)
    lines = [json.dumps({"path": path, "data": SECRET.decode(), **stat}) for path in ("/", "/brokers", *FOREIGN)]
    lines += [f'{{"path":"/brokers/\\ud800","data":"\\ud800",{json.dumps(stat)[1:]}', '{"path":"no znode"}']
    dump = tmp_path / "zookeeper.jsonl"
    dump.write_text("\n".join(lines))
    rows = [row for _, batch in TreeFiles("c", "s", REDACTOR, dump=dump).trees() for row in batch.to_pylist()]
    assert [row["path"] for row in rows] == ["/", "/brokers", "/brokers/?", "zookeeper.jsonl: line 12"]
    assert rows[2]["data"] == "?"
