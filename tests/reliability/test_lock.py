"""The lock of a table: between threads, between processes, and after a death. The commits are Delta's protocol, in Python."""

from __future__ import annotations

import json
import logging
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from jobs.sinks import lock
from jobs.sinks.lock import LockError, Owner, lock_file, only_writer

NAME = "gold.numbers"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process is, and has flock(1)")
SPAWN = multiprocessing.get_context("spawn")


def commit(root: Path, text: str, pause: float, number: int) -> int:
    """As Delta does in a local folder: write, look whether the next number is free, rename. Returns the number after it."""
    log = root / "log"
    part = log / f".{text}.tmp"
    part.write_text(text)
    while (target := log / f"{number:020}.json").exists():
        number += 1
    time.sleep(pause)
    part.replace(target)
    return number + 1


def commits(root: Path, name: str, many: int, locked: bool, pause: float) -> None:
    following = 0
    for number in range(many):
        with only_writer(root, NAME) if locked else nullcontext():
            following = commit(root, f"{name}-{number}", pause, following)


def found_after(root: Path, workers: list[Any]) -> set[str]:
    for each in workers:
        each.start()
    for each in workers:
        each.join(120)
        assert not getattr(each, "exitcode", 0)
    return {path.read_text() for path in (root / "log").glob("*.json")}


@pytest.mark.parametrize("kind", [SPAWN.Process, threading.Thread], ids=["processes", "threads"])
def test_of_thousands_of_commits_by_two_at_a_time_none_is_lost(tmp_path: Path, kind: Any) -> None:
    (tmp_path / "log").mkdir()
    many = 1000
    workers = [kind(target=commits, args=(tmp_path, name, many, True, 0)) for name in "ab"]
    assert found_after(tmp_path, workers) == {f"{name}-{number}" for name in "ab" for number in range(many)}


def test_without_the_lock_they_are(tmp_path: Path) -> None:
    """The test above can fail: a rename that comes late replaces what another process has committed."""
    (tmp_path / "log").mkdir()
    workers = [SPAWN.Process(target=commits, args=(tmp_path, name, 100, False, 0.005)) for name in "ab"]
    assert len(found_after(tmp_path, workers)) < 200


HOLD = """
import sys, time
from pathlib import Path
from jobs.sinks.lock import only_writer
with only_writer(Path(sys.argv[1]), "gold.numbers", int(sys.argv[2]) or None):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def holder(root: Path, java: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    call = [sys.executable, "-c", HOLD, str(root), str(java)]
    with subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def taking(root: Path, java: int | None = None) -> threading.Thread:
    def take() -> None:
        with only_writer(root, NAME, java):
            pass

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def test_whoever_waits_says_once_for_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lock, "SAY_AFTER_SECONDS", 0.1)
    with holder(tmp_path) as other:
        waiting = taking(tmp_path)
        time.sleep(1)
        assert waiting.is_alive()
        other.kill()
        waiting.join(10)
        assert not waiting.is_alive(), "the kernel lets go of what a dead process held"
    [said] = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said.startswith(
        f"waiting to write to table gold.numbers of {tmp_path}: process {other.pid} on {socket.gethostname()}, since 20"
    )
    assert said.endswith(" UTC writes to it")


def test_a_lock_soon_free_is_nothing_to_speak_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with only_writer(tmp_path, NAME):
        waiting = taking(tmp_path)
        time.sleep(0.1)
    waiting.join(10)
    assert not caplog.records


def test_tables_do_not_wait_for_each_other(tmp_path: Path) -> None:
    with only_writer(tmp_path, NAME), only_writer(tmp_path, "gold.letters"):
        pass


@on_linux
def test_the_java_of_a_killed_process_is_waited_for(tmp_path: Path) -> None:
    """It may still be about to rename."""
    # `exec -a`: the shell's successor calls itself Java.
    java = subprocess.Popen(["bash", "-c", "exec -a java sleep 600"])
    try:
        while b"java" not in Path(f"/proc/{java.pid}/cmdline").read_bytes():
            time.sleep(0.01)
        with holder(tmp_path, java.pid) as other:
            other.kill()
            other.wait()
        waiting = taking(tmp_path, java=1)
        time.sleep(0.5)
        assert waiting.is_alive()
        java.kill()
        # Nobody has asked for its exit code: it counts as ended all the same.
        waiting.join(10)
        assert not waiting.is_alive()
    finally:
        java.kill()
        java.wait()


@pytest.mark.parametrize(
    "left",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\x00",
        b'{"host": 1}',
        b'{"host": "elsewhere", "pid": 1, "java": 1, "since": "x"}',
        json.dumps({"host": socket.gethostname(), "pid": 2**22, "java": 2**22, "since": "x"}).encode(),
        # A number that was given to a process that is no Java since.
        json.dumps({"host": socket.gethostname(), "pid": 2**22, "java": os.getpid(), "since": "x"}).encode(),
    ],
    # Two processes that share the tests must call them the same: no number of one of them.
    ids=["nothing", "half", "a-list", "no-text", "less", "elsewhere", "gone", "reused"],
)
@on_linux
def test_what_stands_in_the_file_of_a_lock_that_is_free_holds_nobody_up(tmp_path: Path, left: bytes) -> None:
    path = lock_file(tmp_path, NAME)
    path.parent.mkdir()
    path.write_bytes(left)
    waiting = taking(tmp_path)
    waiting.join(5)
    assert not waiting.is_alive()
    assert path.read_bytes() == b""


def test_a_write_that_failed_is_over_and_an_interrupted_one_may_go_on_in_java(tmp_path: Path) -> None:
    for error, over in ((ValueError, True), (KeyboardInterrupt, False)):
        with suppress(error), only_writer(tmp_path, NAME, 7):
            raise error
        assert (lock_file(tmp_path, NAME).read_bytes() == b"") is over
    assert taking(tmp_path, java=7).join(5) is None, "its own Java is nobody to wait for"


def test_the_file_names_its_holder(tmp_path: Path) -> None:
    with only_writer(tmp_path, NAME, 7):
        held = Owner(**json.loads(lock_file(tmp_path, NAME).read_text()))
    assert (held.host, held.pid, held.java) == (socket.gethostname(), os.getpid(), 7)


@on_linux
def test_a_shells_flock_takes_the_same_lock(tmp_path: Path) -> None:
    """What docs/reliability.md tells the keepers of a warehouse to put around OPTIMIZE."""
    call = ["flock", "--nonblock", str(lock_file(tmp_path, NAME)), "true"]
    with only_writer(tmp_path, NAME):
        assert subprocess.run(call, check=False).returncode == 1
    assert subprocess.run(call, check=False).returncode == 0


def test_a_folder_that_the_lock_makes_is_its_owners_and_one_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(0o755)
    shared.chmod(0o775)
    for root, mode in ((tmp_path / "above" / "new", 0o700), (shared, 0o775)):
        with only_writer(root, NAME):
            assert root.stat().st_mode & 0o777 == mode


def test_a_place_that_cannot_be_locked_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LockError, match=r"^the warehouse .*/file/w can't be written: .*(File exists|Not a directory)"):
        only_writer(tmp_path / "file" / "w", NAME).__enter__()
