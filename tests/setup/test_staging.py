"""Remote logs are staged where nobody else can read them, and what a killed process left goes with the next one."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.settings import ReportSettings, Settings
from jobs.sources import remote
from jobs.sources.remote import RemoteError, left_staged, staged
from jobs.steps.maintenance.left_behind import Left, left_behind, sweep

NOW = datetime.now(UTC)
# Stages a folder, says where, and waits to be killed.
STAGING = "import sys, time; from jobs.sources.remote import staged\nwith staged(sys.argv[1]) as f: print(f, flush=True); time.sleep(60)"


@pytest.fixture
def uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of a log, and a place for temporary files."""
    folder = tmp_path / "bucket" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    (folder / "00000000000000000000.log").write_bytes(b"SCRAM")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(remote, "gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return folder.as_uri()


def left(tmp_path: Path) -> list[Path]:
    return [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()]


def test_it_is_private_while_it_is_there_and_gone_afterwards(uri: str, tmp_path: Path) -> None:
    with staged(uri) as folder:
        assert (folder.name, [path.name for path in folder.iterdir()]) == (
            "__cluster_metadata-0",
            ["00000000000000000000.log"],
        )
        (root,) = (tmp_path / "tmp").iterdir()
        assert folder.is_relative_to(root)
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert left(tmp_path) == []


def staging(uri: str) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", STAGING, uri], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_process_left_goes_with_the_next(uri: str, tmp_path: Path) -> None:
    process, folder = staging(uri)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    assert left_staged() == [folder.parent], "looking removes nothing"
    assert [path.name for path in folder.iterdir()] == ["00000000000000000000.log"]
    with staged(uri) as mine:
        assert not folder.exists()
        assert mine.exists()
    assert left(tmp_path) == []


def test_what_another_process_reads_stays(uri: str, tmp_path: Path) -> None:
    process, folder = staging(uri)
    try:
        with staged(uri) as mine:
            assert folder.exists()
            assert mine != folder
        assert folder.exists()
        assert left_staged() == []
    finally:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.parametrize("made", [lambda root: root.mkdir(mode=0o755), lambda root: root.symlink_to("/etc")])
def test_a_folder_that_others_made_or_can_read_is_refused(
    uri: str, tmp_path: Path, made: Callable[[Path], object]
) -> None:
    made(tmp_path / "tmp" / f"kraft-audit-staged-{os.getuid()}")
    with pytest.raises(RemoteError, match="is not a private folder of this user"), staged(uri):
        pass


def test_what_would_be_removed_is_told_with_its_bytes_and_stays(uri: str, tmp_path: Path) -> None:
    assert left_behind([], NOW) == ([], [])
    assert not [*(tmp_path / "tmp").iterdir()], "looking makes nothing"
    process, folder = staging(uri)
    process.kill()
    process.wait(timeout=30)
    reports = tmp_path / "reports"
    reports.mkdir()
    old, young = reports / ".r.html.1.0a1b2c3d.part", reports / ".r.html.2.part"
    for part in (old, young):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    several = [Settings.model_construct(report=ReportSettings(folder=reports), warehouse=str(tmp_path / "tables"))]
    found, problems = left_behind(several, NOW)
    assert (found, problems) == ([Left(str(folder.parent), len(b"SCRAM")), Left(str(old), len(b"half"))], [])
    assert old.exists()
    assert sweep(several, NOW) == []
    assert left_behind(several, NOW) == ([], [])
    assert young.exists()
