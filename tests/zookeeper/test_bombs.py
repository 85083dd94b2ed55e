"""Files that are small and claim much: refused early, or read piece by piece, never all at once."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs.runtime.spark import COMMON_SETTINGS
from jobs.sources.zookeeper import decompress
from jobs.sources.zookeeper.dump import MAX_LINE_BYTES, read_dump
from jobs.sources.zookeeper.folder import DataFolder, ZooKeeperFolderError, read_folder
from tests.zookeeper import journal
from tests.zookeeper.journal import Log, Node
from tests.zookeeper.trees import REDACTOR, codes, state_rows, znode
from transforms.zookeeper.read.arrow import znode_batch
from transforms.zookeeper.storage import limits
from transforms.zookeeper.storage.limits import BATCH_BYTES, MAX_ZNODE_BYTES
from transforms.zookeeper.storage.snapshot import SnapshotError, open_snapshot, read_batches
from transforms.zookeeper.storage.transactions import OpCode

MIB = 1024 * 1024
STAT = dict.fromkeys(("czxid", "mzxid", "pzxid", "ctime", "mtime", "ephemeral_owner"), 1)
STAT |= dict.fromkeys(("version", "cversion", "aversion", "num_children"), 0)


def line(path: str, data: bytes) -> bytes:
    return json.dumps({"path": path, "data_base64": base64.b64encode(data).decode(), **STAT}).encode() + b"\n"


def peak(work: Callable[[], object]) -> tuple[object, int]:
    tracemalloc.start()
    try:
        result = work()
        return result, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def zipped(folder: Path, start: bytes, zeros: int) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "snapshot.1.gz"
    with gzip.open(file, "wb") as out:
        out.write(start)
        for _ in range(zeros // MIB):
            out.write(bytes(MIB))
    return file


def test_a_snapshot_that_grows_out_of_proportion_is_refused(tmp_path: Path) -> None:
    head = journal.snapshot([Node("/")])[:20]
    for start, refusal in (
        (b"", "it does not start as a snapshot"),
        (head, "it grows to more than 200 times its size"),
    ):
        file = zipped(tmp_path, start, 300 * MIB)
        assert file.stat().st_size < MIB

        def read(refusal: str = refusal) -> None:
            with pytest.raises(ZooKeeperFolderError) as refused:
                list(read_folder(tmp_path, REDACTOR))
            assert refusal in str(refused.value)
            assert "\n" not in str(refused.value)

        _, memory = peak(read)
        assert memory < 16 * MIB


def test_a_snapshot_that_compresses_well_is_read(tmp_path: Path) -> None:
    nodes = [Node("/"), *(Node(f"/n{number:04d}", b"{}" * 5000) for number in range(1000))]
    (tmp_path / "snapshot.1.gz").write_bytes(gzip.compress(journal.snapshot(nodes)))
    (tmp_path / "log.2").write_bytes(Log(zxid=1).padded())
    assert sum(batch.num_rows for batch in read_folder(tmp_path, REDACTOR)) == 1001


def test_a_snappy_block_that_claims_much_is_refused_before_room_is_made() -> None:
    head = b"\x82SNAPPY\x00" + journal.i32(1) + journal.i32(1)
    claims = (
        journal.i32(2**31 - 1),
        journal.i32(-1),
        journal.i32(6) + b"\xff\xff\xff\xff\x07x",
        journal.i32(20) + b"ab",
    )
    for claim in claims:

        def read(data: bytes = head + claim) -> None:
            with pytest.raises(SnapshotError, match="its snappy block at byte 16 is damaged"):
                decompress.unsnap(io.BytesIO(data), len(data), io.BytesIO())

        _, memory = peak(read)
        assert memory < MIB


def test_batches_of_a_dump_are_closed_by_bytes(tmp_path: Path) -> None:
    file = tmp_path / "dump.jsonl.gz"
    with gzip.open(file, "wb") as out:
        for number in range(120):
            out.write(line(f"/n{number}", b"x" * MIB))
    assert file.stat().st_size < 2 * MIB
    rows = 0
    for batch in read_dump(file, REDACTOR):
        assert batch.nbytes <= BATCH_BYTES + MIB
        rows += batch.num_rows
    assert rows == 120


def test_a_line_and_a_znode_that_are_too_long_are_rows_and_not_read(tmp_path: Path) -> None:
    file = tmp_path / "dump.jsonl.gz"
    with gzip.open(file, "wb", compresslevel=1) as out:
        out.write(line("/before", b"1"))
        out.write(line("/large", bytes(MAX_ZNODE_BYTES + 1)))
        out.write(b'{"path": "/endless", "data": "' + b"x" * (3 * MAX_LINE_BYTES) + b'"}\n')
        out.write(line("/after", b"2"))
    rows = [row for batch in read_dump(file, REDACTOR) for row in batch.to_pylist()]
    assert [row["path"] for row in rows] == ["/before", "/large", "dump.jsonl.gz: line 3", "/after"]
    assert rows[1]["problem"] == "its 16777217 bytes are more than the 16777216 that are read of a znode"
    assert rows[1]["data"] is None
    assert rows[1]["data_length"] == MAX_ZNODE_BYTES + 1
    assert rows[2]["problem"] == f"not a znode: longer than {MAX_LINE_BYTES} bytes"
    assert codes(state_rows(list(read_dump(file, REDACTOR)))).count("CAP-07") == 2


def test_a_large_znode_of_a_data_folder_is_a_finding(tmp_path: Path) -> None:
    nodes = [
        Node("/", cversion=3),
        Node("/a", b"1"),
        Node("/large", bytes(MAX_ZNODE_BYTES + 1), owner=5),
        Node("/z", b"2"),
    ]
    (tmp_path / "snapshot.1").write_bytes(journal.snapshot(nodes))
    log = Log(zxid=1).add(OpCode.CREATE, journal.create("/written", bytes(MAX_ZNODE_BYTES + 2), cversion=4))
    (tmp_path / "log.2").write_bytes(log.padded())
    rows = {row["path"]: row for _, batch in DataFolder(tmp_path).trees(REDACTOR, None) for row in batch.to_pylist()}
    assert {"/", "/a", "/large", "/written", "/z"} <= rows.keys()
    for path, size in (("/large", MAX_ZNODE_BYTES + 1), ("/written", MAX_ZNODE_BYTES + 2)):
        assert rows[path]["problem"].startswith(f"its {size} bytes are more than")
        assert (rows[path]["data"], rows[path]["data_length"]) == (None, size)
    assert (rows["/large"]["ephemeral_owner"], rows["/large"]["acl"]) == (5, rows["/a"]["acl"])
    state = state_rows([batch for _, batch in DataFolder(tmp_path).trees(REDACTOR, None)])
    assert codes(state).count("CAP-07") == 2


def test_batches_of_a_snapshot_are_closed_by_bytes() -> None:
    nodes = [Node("/"), *(Node(f"/n{number:03d}", b"y" * MIB) for number in range(100))]
    batches = list(read_batches(open_snapshot(journal.snapshot(nodes)), REDACTOR))
    assert sum(batch.num_rows for batch in batches) == 101
    assert len(batches) >= 3
    assert max(batch.nbytes for batch in batches) <= BATCH_BYTES + 2 * MIB


def test_a_tree_that_spark_could_not_hand_on_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """However its rows are shuffled: no 16,384 of what passes have 2 GiB."""
    assert limits.LARGE_ZNODES_BYTES + BATCH_OF_SPARK * limits.SMALL_ZNODE_BYTES < 2**31
    monkeypatch.setattr(limits, "LARGE_ZNODES_BYTES", 10 * MIB)
    small = znode_batch([znode(f"/n{number}", b"x" * limits.SMALL_ZNODE_BYTES) for number in range(400)])
    large = znode_batch([znode(f"/l{number}", b"x" * MIB) for number in range(4)])
    seen = limits.LargeZnodes()
    for batch in (small, large, small, large):
        assert seen.add(batch) is batch
    with pytest.raises(limits.TooLargeError, match="znodes above 64 KiB have more than 10 MiB together") as refused:
        seen.add(large)
    assert "\n" not in str(refused.value)


BATCH_OF_SPARK = int(COMMON_SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
