"""Many rows of a table go to a file of the cluster's own: the same rows, and of a pass that does not end no file stays."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from jobs.run.cluster_pass import FILE, file_of, passing
from jobs.run.examine import TABLES
from jobs.sinks.folder_table import arrow_schema
from jobs.sinks.parquet import DataFile, NewFiles
from tests.captures import capture
from tests.examination.one_pass import NAME, Files, Outcome, Payloads, spooled
from transforms.examination.made import ANSWERS, FAILURE, ROWS
from transforms.examination.task import ClusterTask

BEHIND = capture("3.9.1", "8")
PLAIN = [table for table in TABLES if not table.partition_columns]


def new_files(folder: Path, begun_by: int = 0) -> NewFiles:
    return NewFiles(
        str(folder),
        "part-mine-",
        {table.full_name: arrow_schema(table) for table in PLAIN},
        {table.full_name: table.skipping_columns for table in PLAIN},
        begun_by,
    )


def passed(task: ClusterTask, payloads: Payloads, new: NewFiles) -> list[dict[str, Any]]:
    """The rows that a pass sends back, as the driver finds them."""
    with spooled(payloads) as feed:
        return [row for batch in passing("r1", {NAME: task}, new)(NAME, feed) for row in batch.to_pylist()]


def left_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def whole() -> Outcome:
    return Files(BEHIND).examined()


def test_the_rows_are_the_same_and_each_file_is_named_before_the_answers(tmp_path: Path, whole: Outcome) -> None:
    files = Files(BEHIND)
    told = passed(files.asked("r1"), files.payloads(), new_files(tmp_path))
    named = {row["name"]: file_of(row["payload"]) for row in told if row["kind"] == FILE}
    assert {*named} == whole.tables
    assert [row["kind"] for row in told][-1] == ANSWERS
    assert json.loads(told[-1]["payload"])["rows"] == {name: file.rows for name, file in named.items()}
    for table, file in named.items():
        assert rows_of(tmp_path, table, file) == whole.rows(table), table
    assert len(left_in(tmp_path)) == len(named), "no other file"


def rows_of(folder: Path, table: str, file: DataFile) -> list[dict[str, Any]]:
    path = Path(folder, *table.split("."), file.name)
    assert path.stat().st_size == file.size
    found = pq.read_table(path)
    assert json.loads(file.statistics)["numRecords"] == found.num_rows == file.rows
    return [{name: value for name, value in row.items() if name != "run_id"} for row in found.to_pylist()]


def test_only_many_rows_have_a_file(tmp_path: Path, whole: Outcome) -> None:
    """As soon as one piece of a table is large, all that follow are in its file."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for piece in whole.pieces:
        if piece.kind == ROWS:
            sizes[str(piece.name)].append(piece.rows.nbytes)
    limit = sorted(max(each) for each in sizes.values())[len(sizes) // 2]
    files = Files(BEHIND)
    told = passed(files.asked("r1"), files.payloads(), new_files(tmp_path, limit))
    assert {row["name"] for row in told if row["kind"] == FILE} == {
        name for name, each in sizes.items() if max(each) >= limit
    }
    rows = {row["name"]: file_of(row["payload"]).rows for row in told if row["kind"] == FILE}
    counted = json.loads(told[-1]["payload"])["rows"]
    assert all(number <= counted[name] for name, number in rows.items())
    assert passed(files.asked("r1"), files.payloads(), new_files(tmp_path / "none", 1 << 40))[-1] == told[-1]
    assert left_in(tmp_path / "none") == set()


def test_of_a_pass_that_fails_no_file_stays(tmp_path: Path) -> None:
    files = Files(BEHIND)
    short = (batch.slice(0, batch.num_rows - 1) for batch in files.records())
    told = passed(files.asked("r1"), files.payloads(short), new_files(tmp_path))
    assert [row["kind"] for row in told] == [FAILURE], "the changes of partitions were written before it was noticed"
    assert left_in(tmp_path) == set()


def test_of_a_pass_that_nobody_reads_to_its_end_no_file_stays(tmp_path: Path) -> None:
    files = Files(BEHIND)
    with spooled(files.payloads()) as feed:
        rows = passing("r1", {NAME: files.asked("r1")}, new_files(tmp_path))(NAME, feed)
        assert any(batch["kind"].to_pylist() == [FILE] for batch in rows), "one of several files was ended"
        assert left_in(tmp_path)
        rows.close()  # type: ignore[attr-defined]
    assert left_in(tmp_path) == set()


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_takes_no_more_ends_the_pass_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int
) -> None:
    written = pq.ParquetWriter.write_table
    calls = []

    def failing(self: pq.ParquetWriter, *given: Any, **more: Any) -> None:
        calls.append(self)
        if len(calls) == 3:
            raise OSError(fault, os.strerror(fault))
        written(self, *given, **more)

    monkeypatch.setattr(pq.ParquetWriter, "write_table", failing)
    files = Files(BEHIND)
    with pytest.raises(OSError, match=os.strerror(fault)):
        passed(files.asked("r1"), files.payloads(), new_files(tmp_path))
    assert left_in(tmp_path) == set()
