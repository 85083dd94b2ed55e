"""A run that has begun leaves a file that is locked while it lives: killed, it is found; ended, it is gone."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jobs.evidence.journal import Begun, begin, died, died_runs
from jobs.exit import CRASH, INTERRUPTED, TERMINATED, AuditError, guarded
from jobs.pipeline import _note
from jobs.runtime import stopping
from jobs.runtime.stopping import Stopped, Stopping, not_halfway
from jobs.settings import Settings
from jobs.sinks.mail import send
from jobs.steps.maintenance.left_behind import left_behind, sweep
from tests.report.test_smtp import NO_LOGIN, Mailbox, letter, running, settings_for
from transforms.report.fleet_model import FleetRun

BEGAN = datetime(2026, 11, 24, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]
# A run of another process, which is under way until it is killed.
RUNNING = """
import sys, time
from datetime import UTC, datetime
from jobs.evidence.journal import begin
begun = begin(sys.argv[1], catalog=False, clusters=["b", "a"], run_id="r1", started_at=datetime(2026, 11, 24, 12, tzinfo=UTC))
print("begun" if begun else "not begun", flush=True)
time.sleep(600)
"""


def found(root: Path) -> list[str]:
    with died(str(root), catalog=False) as dead:
        return [each.why for each, _ in dead]


def runs(root: Path, *known: FleetRun, cluster: str | None = None) -> list[FleetRun]:
    return died_runs(SimpleNamespace(root=str(root), catalog=False), known, cluster)  # type: ignore[arg-type]


def test_a_run_that_is_killed_died_and_one_that_lives_did_not(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RUNNING, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    assert found(tmp_path) == []
    process.kill()
    process.wait()
    process.stdout.close()
    (why,) = found(tmp_path)
    assert why.startswith("died: ")
    made = runs(tmp_path)
    assert [(run.cluster, run.run_id, run.verdict, run.sequence) for run in made] == [
        ("a", "r1", "failed", 1),
        ("b", "r1", "failed", 1),
    ]
    assert made[0].started_at == BEGAN
    # It is the newest of its cluster, and told once: not where the run or a part of it has a row.
    other = FleetRun("a", "r0", BEGAN.replace(year=2036), BEGAN, "clean", sequence=7)
    assert [run.sequence for run in runs(tmp_path, other, cluster="a")] == [8]
    assert runs(tmp_path, FleetRun("a", "r1", BEGAN.replace(hour=1), BEGAN, "clean"), cluster="a") == []
    assert runs(tmp_path, FleetRun("a", "part", BEGAN, BEGAN, "clean"), cluster="a") == []


def test_who_may_only_read_sees_a_run_that_died(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a gate that the run before opened would stay open for them."""
    begun = begin(str(tmp_path), catalog=False, clusters=["a"], run_id="r1", started_at=BEGAN)
    assert begun is not None
    real = os.open

    def reading(path: Any, flags: int, *rest: Any) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError(errno.EACCES, "Permission denied")
        return real(path, flags, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", reading)
        assert runs(tmp_path) == []
        begun.leave()
        assert [run.run_id for run in runs(tmp_path)] == ["r1"]
        # Two who look at the same time both see it.
        with died(str(tmp_path), catalog=False, only_look=True) as dead:
            assert len(dead) == 1
            assert [run.run_id for run in runs(tmp_path)] == ["r1"]


@pytest.mark.parametrize("name", ["listdir", "open"])
def test_who_may_not_even_read_is_told_so(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = begin(str(tmp_path), catalog=False, clusters=["a"], run_id="r1", started_at=BEGAN)
    assert begun is not None
    begun.leave()

    def refused(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, name, refused)
        with pytest.raises(
            AuditError, match=r"can't be read: Permission denied; it shows whether the newest run has died$"
        ):
            runs(tmp_path)


def test_a_run_that_ended_leaves_nothing_and_one_that_was_stopped_says_why(tmp_path: Path) -> None:
    ended, stopped = (
        begin(str(tmp_path), catalog=False, clusters=["a"], run_id=name, started_at=BEGAN) for name in ("r1", "r2")
    )
    assert ended is not None
    assert stopped is not None
    ended.end()
    assert not ended.running
    stopped.stopped("stopped by SIGTERM", TERMINATED)
    assert found(tmp_path) == []
    stopped.leave()
    assert found(tmp_path) == ["stopped by SIGTERM"]
    assert [path.name for path in (tmp_path / ".begun").iterdir()] == ["r2.json"]


@pytest.mark.parametrize("root", ["s3a://bucket/warehouse", "/proc/nowhere"])
def test_where_no_file_can_be_there_is_none(root: str) -> None:
    assert begin(root, catalog=False, clusters=["a"], run_id="r", started_at=BEGAN) is None
    assert found(Path("/proc/nowhere")) == []


def test_a_note_that_can_not_be_written_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    before = os.listdir("/proc/self/fd")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        assert begin(str(tmp_path), catalog=False, clusters=["a"], run_id="r1", started_at=BEGAN) is None
    assert [*(tmp_path / ".begun").iterdir()] == []
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_what_a_run_leaves_that_is_killed_before_its_note_is_whole_goes_a_day_later(tmp_path: Path) -> None:
    killed = RUNNING.replace(
        "begun = ", "import os, pathlib; pathlib.Path.rename = lambda *_: os.kill(os.getpid(), 9)\nbegun = "
    )
    process = subprocess.run([sys.executable, "-c", killed, str(tmp_path)], cwd=ROOT, check=False, timeout=60)
    assert process.returncode == -signal.SIGKILL
    (left,) = (tmp_path / ".begun").iterdir()
    several = [Settings(cluster="a", warehouse=str(tmp_path), kraft={"folders": ["k"]}, report={"folder": tmp_path})]
    now = datetime.now(UTC)
    assert left_behind(several, now)[0] == []
    later = now + timedelta(days=2)
    assert [each.left for each in left_behind(several, later)[0]] == [str(left)]
    assert sweep(several, later) == []
    assert [*(tmp_path / ".begun").iterdir()] == []


def test_what_is_no_entry_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / ".begun").mkdir()
    (tmp_path / ".begun" / "x.json").write_text("{")
    assert found(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "why", "code"),
    [
        (signal.SIGTERM, "stopped by SIGTERM", TERMINATED),
        (signal.SIGINT, "interrupted (SIGINT)", INTERRUPTED),
        (signal.SIGALRM, "stopped after 7 minutes, as --timeout says", CRASH),
    ],
)
def test_a_signal_is_noted_and_raised_once(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, why: str, code: int
) -> None:
    watched: list[Stopped] = []
    noted: list[tuple[str, int]] = []
    monkeypatch.setattr(Stopping, "_watch", lambda _self, stopped: watched.append(stopped))
    before = signal.getsignal(signal.SIGTERM)
    stop = Stopping(7.0, lambda *said: noted.append(said))

    def stopped() -> None:
        with stop.armed():
            # A Spark session takes SIGINT when it starts.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            stop.arm()
            os.kill(os.getpid(), number)
            signal.pause()

    with pytest.raises(Stopped) as raised:
        stopped()
    assert (raised.value.why, raised.value.exit_code) == (why, code)
    assert noted == [(why, code)]
    assert watched == [raised.value]
    assert raised.value.timed_out is (number == signal.SIGALRM)
    assert signal.getsignal(signal.SIGTERM) == before


def test_signals_that_a_session_has_taken_are_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while a run opens its tables was PySpark's: it broke off a call to Java, and the run was one whose Java was killed."""
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    stop = Stopping()

    def interrupted() -> None:
        with stop.armed():
            with not_halfway():
                signal.signal(signal.SIGINT, signal.default_int_handler)
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()

    with pytest.raises(Stopped) as raised:
        interrupted()
    assert (raised.value.why, raised.value.exit_code) == ("interrupted (SIGINT)", INTERRUPTED)


def test_an_interrupt_that_broke_off_a_call_to_java_is_noted_as_one() -> None:
    noted: list[tuple[str, int]] = []
    begun: Any = SimpleNamespace(running=True, stopped=lambda *said: noted.append(said))
    error = KeyboardInterrupt()
    error.__context__ = type("Py4JError", (Exception,), {})("An error occurred while calling o1.cancelAllJobs")
    _note(begun, error)
    assert noted == [("interrupted (SIGINT)", INTERRUPTED)]


def test_time_that_was_given_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    stop = Stopping(0.05 / 60)
    with pytest.raises(Stopped), stop.armed():
        signal.pause()
    with Stopping(1000).armed():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_what_must_not_be_left_halfway_comes_to_its_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    done = []

    def stopped(*, halfway: bool) -> None:
        with Stopping().armed():
            with not_halfway():
                if halfway:
                    os.kill(os.getpid(), signal.SIGTERM)
                    signal.sigtimedwait([], 0.01)
                done.append("java")
            if not halfway:
                os.kill(os.getpid(), signal.SIGTERM)
                signal.pause()
            done.append("session")

    for halfway in (True, False):
        with pytest.raises(Stopped):
            stopped(halfway=halfway)
    assert done == ["java", "java"]


def test_what_fails_meanwhile_hides_no_stop_and_another_thread_is_not_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    done = []

    def failing() -> None:
        with not_halfway():
            os.kill(os.getpid(), signal.SIGTERM)
            raise AuditError("the warehouse can't be written")

    def leave_rows() -> None:
        with not_halfway():
            done.append("row")
        done.append("end")

    with Stopping().armed():
        with pytest.raises(Stopped):
            failing()
        # A thread stores the rows of the run that was stopped.
        thread = threading.Thread(target=leave_rows)
        thread.start()
        thread.join()
    assert done == ["row", "end"]


def begun(root: Path) -> Begun:
    made = begin(str(root), catalog=False, clusters=["a"], run_id="r1", started_at=BEGAN)
    assert made is not None
    return made


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """SIGTERM comes while the block runs."""
    timer = threading.Timer(seconds, lambda: os.kill(os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_a_signal_after_the_rows_are_stored_stops_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[Stopped] = []
    monkeypatch.setattr(Stopping, "_watch", lambda _self, stopped: watched.append(stopped))
    run, stop = begun(tmp_path), Stopping()
    stop.noted = run.stopped
    run.end()
    # The steps after the rows report what fails, and the run continues: only a stop is no Exception.
    with pytest.raises(Stopped, match="SIGTERM"), stop.armed(), stopped_after(0.1), suppress(Exception):
        time.sleep(30)
    assert len(watched) == 1
    assert found(tmp_path) == []


def test_a_signal_while_a_mail_is_sent_stops_the_run_and_doubles_no_mail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Scanning(Mailbox):
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
            taken = await super().handle_DATA(server, session, envelope)
            # It has the mail, and looks for viruses before it says so.
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(1)
            return taken

    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    mailbox, run, stop = Scanning(), begun(tmp_path), Stopping()
    stop.noted = run.stopped
    run.end()
    mail = letter()
    with running(mailbox) as port:
        settings = settings_for(port, security="none", attempts=3, **NO_LOGIN)
        with pytest.raises(Stopped, match="SIGTERM"), stop.armed():
            send(mail, settings, pause=lambda _: None)
    assert len(mailbox.received) == 1


def test_a_full_disk_hides_no_signal_and_no_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    run, stop = begun(tmp_path), Stopping()
    stop.noted = run.stopped
    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(Stopped, match="SIGTERM"), stop.armed(), stopped_after(0.1), suppress(Exception):
        time.sleep(30)
    # What ended the run is noted so, and stays what is raised.
    run.stopped("the warehouse can't be written", CRASH)
    run.leave()
    (why,) = found(tmp_path)
    assert why.startswith("died: ")


HANGING = """
import sys, threading
from jobs.runtime import stopping
stopping.GRACE_SECONDS = 0.5
stop = stopping.Stopping()
with stop.armed():
    said = False
    while True:
        try:
            if not said:
                said = True
                print("armed", flush=True)
            threading.Event().wait(600)
        except BaseException:
            pass
"""


def test_what_hangs_is_ended_all_the_same() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HANGING], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "armed\n"
    process.terminate()
    _, err = process.communicate(timeout=60)
    assert process.returncode == TERMINATED
    assert err == "kraft-audit: stopped by SIGTERM; earlier runs and their reports stand\n"


def test_it_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    end = Stopped("stopped by SIGTERM", TERMINATED)
    stopping.print_reason(end)
    stopping.print_reason(end)
    assert capsys.readouterr().err.count("stopped by SIGTERM") == 1


def test_errors_move_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise AuditError("the controller offers \x1b[2J\x1b[1;1HCLEAN \u202e")

    assert guarded(fail) == CRASH
    err = capsys.readouterr().err
    assert err == "kraft-audit: the controller offers \\x1b[2J\\x1b[1;1HCLEAN \\u202e\n"


def test_ctrl_c_outside_a_run_has_the_code_that_shells_know(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert guarded(interrupted) == INTERRUPTED
    assert capsys.readouterr().err.count("\n") == 1
