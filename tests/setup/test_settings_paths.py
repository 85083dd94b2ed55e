"""Which folders of a configuration are looked for on this machine, and which belong to another file system."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.exit import UsageError
from jobs.run.run import open_run
from jobs.settings import Settings, check_files, validated


def settings(folder: str) -> Settings:
    return validated({"cluster": "c", "warehouse": "w", "kraft": {"folders": [folder]}}, "test")


@pytest.mark.parametrize("folder", ["s3a://bucket/logs", "s3a:/bucket/logs", "hdfs://node/logs", "abfss://c@a/logs"])
def test_another_file_systems_folder_is_not_looked_for_here(folder: str) -> None:
    check_files(settings(folder))


@pytest.mark.parametrize("folder", ["/nowhere/logs", "nowhere", "dbfs:/nowhere/logs"])
def test_a_folder_of_this_machine_must_be_there(folder: str) -> None:
    with pytest.raises(UsageError, match=r"test: `kraft\.folders`: there is no folder .*nowhere"):
        check_files(settings(folder))
    # Said before Spark is started.
    with pytest.raises(UsageError, match="there is no folder"), open_run(settings(folder)):
        pytest.fail("a run was opened")


def test_a_folder_that_is_there(tmp_path: Path) -> None:
    check_files(settings(str(tmp_path)))
