"""What a warehouse's address says of its storage, and what is made of what a disk says."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.exit import UsageError
from jobs.sinks import storage
from jobs.sinks.storage import folder_of, known_safe, refuse_unsafe, storage_problem, unreadable_file, unsafe_scheme

FULL = os.strerror(errno.ENOSPC)


@pytest.mark.parametrize(
    ("root", "catalog", "folder", "unsafe", "safe"),
    [
        ("/data/w", False, "/data/w", None, False),
        ("file:///data/a%20b", False, "/data/a b", None, False),
        ("s3a://bucket/w", False, None, "s3a", False),
        ("s3://bucket/w", False, None, "s3", False),
        ("s3n://bucket/w", False, None, "s3n", False),
        ("s3a://bucket/w", True, None, None, False),
        ("main.audit", True, None, None, False),
        ("abfss://c@a.dfs.core.windows.net/w", False, None, None, True),
        ("gs://bucket/w", False, None, None, True),
        ("hdfs://name/w", False, None, None, True),
        ("oci://bucket/w", False, None, None, False),
    ],
)
def test_who_refuses_a_second_writer(
    root: str, catalog: bool, folder: str | None, unsafe: str | None, safe: bool
) -> None:
    assert folder_of(root, catalog) == (None if folder is None else Path(folder))
    assert unsafe_scheme(root, catalog) == unsafe
    assert known_safe(root) is safe


def test_a_relative_folder_is_this_processs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("tables") == tmp_path / "tables"


def test_databricks_commits_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABRICKS_RUNTIME_VERSION", "17.0")
    assert folder_of("/Volumes/main/audit/w") is None
    assert unsafe_scheme("s3a://bucket/w") is None


@pytest.mark.parametrize(
    ("settings", "single", "refused"),
    [
        ({}, False, True),
        ({}, True, False),
        ({"spark.delta.logStore.s3a.impl": "io.delta.storage.S3DynamoDBLogStore"}, False, False),
        ({"spark.delta.logStore.s3a.impl": "io.delta.storage.S3SingleDriverLogStore"}, False, True),
        ({"spark.delta.logStore.class": "org.example.OurStore"}, False, False),
        ({"spark.delta.logStore.s3.impl": "io.delta.storage.S3DynamoDBLogStore"}, False, True),
    ],
)
def test_s3_needs_a_log_store_for_several_drivers_or_somebodys_word(
    settings: dict[str, str], single: bool, refused: bool
) -> None:
    if not refused:
        refuse_unsafe("s3a://b/w", False, single, settings.get)
        return
    with pytest.raises(UsageError, match=r"^warehouse s3a://b/w: .*spark\.delta\.logStore\.s3a\.impl.*single_driver"):
        refuse_unsafe("s3a://b/w", False, single, settings.get)


def test_a_reason_is_found_wherever_spark_hides_it() -> None:
    said = f"the warehouse /w can't be written: {FULL}; free space and run again"
    inner = RuntimeError(f"x\nCaused by: java.io.IOException: {FULL}\n\tat y")
    traced = RuntimeError("SparkException: job aborted")
    traced._stackTrace = f"… Caused by: java.io.IOException: {FULL}"  # type: ignore[attr-defined]
    deep = RuntimeError("a")
    deep.__cause__ = RuntimeError("b")
    deep.__cause__.__cause__ = inner
    for error in (inner, traced, deep):
        assert storage_problem(error, "/w", None) == said
    # delta-rs says no more than that where a file could not be finished.
    aborted = "Failed to parse parquet: External: Generic LocalFileSystem error: Upload aborted"
    said = (
        "the warehouse /w can't be written: the disk does not take a file; free space or check the disk, and run again"
    )
    assert storage_problem(RuntimeError(aborted), "/w", None) == said
    assert storage_problem(RuntimeError("schema mismatch"), "/w", None) is None
    loop = RuntimeError("round")
    loop.__cause__ = loop
    assert storage_problem(loop, "/w", None) is None


def test_a_full_folder_for_temporary_files_is_not_the_warehouses_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary, tables = tmp_path / "tmp", tmp_path / "w"
    temporary.mkdir()
    tables.mkdir()
    devices = {temporary: 1, tables: 2}
    monkeypatch.setattr(storage.tempfile, "gettempdir", lambda: str(temporary))
    real = Path.stat
    monkeypatch.setattr(
        Path,
        "stat",
        lambda path, **more: (
            SimpleNamespace(st_dev=devices[path], st_mode=real(path).st_mode) if path in devices else real(path, **more)
        ),
    )
    for free, blamed in (
        ({temporary: 0, tables: 9}, "temporary files"),
        ({temporary: 9, tables: 0}, "the warehouse /w"),
    ):
        monkeypatch.setattr(storage.shutil, "disk_usage", lambda path, free=free: SimpleNamespace(free=free[path]))
        assert blamed in (storage_problem(RuntimeError(FULL), "/w", tables) or "")


@pytest.mark.parametrize(
    ("text", "file"),
    [
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:/w/bronze/t/a.parquet. File does not",
            "file:/w/bronze/t/a.parquet",
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file s3a://w/a.parquet.  SQLSTATE: KD001",
            "s3a://w/a.parquet",
        ),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:/w/a.parquet", "file:/w/a.parquet"),
        ("[DIVIDE_BY_ZERO] Division by zero.", None),
    ],
)
def test_which_file_of_a_table_can_t_be_read(text: str, file: str | None) -> None:
    """However deep in causes Spark says so."""
    error = RuntimeError("a stage failed")
    error.__cause__ = ValueError(f"org.apache.spark.SparkException: {text}")
    assert unreadable_file(error) == file
