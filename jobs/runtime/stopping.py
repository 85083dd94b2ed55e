"""The end of a run from outside: SIGTERM, SIGINT and the time that it was given become one exception, and seconds."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from jobs.exit import CRASH, INTERRUPTED, TERMINATED

# How long running work may take to finish; then the process ends, even if something hangs.
GRACE_SECONDS = 10.0
GRACE_SECONDS_OF_TIMEOUT = 60.0
INTERRUPT = ("interrupted (SIGINT)", INTERRUPTED)
_WORDS = {signal.SIGTERM: ("stopped by SIGTERM", TERMINATED), signal.SIGINT: INTERRUPT}


class Stopped(BaseException):
    """Not an Exception: code that continues after errors must not continue after this. `why` is one line."""

    def __init__(self, why: str, exit_code: int, *, timed_out: bool = False) -> None:
        """`timed_out` is true if the run exceeded its time limit: then nobody waits for the process."""
        super().__init__(why)
        self.why, self.exit_code, self.timed_out = why, exit_code, timed_out
        self.told = False


@dataclass
class Stopping:
    """Turns `signals` into `Stopped`, in the main thread. `noted` is called at once with what the run ends by."""

    minutes: float | None = None
    noted: Callable[[str, int], None] = lambda _why, _code: None
    stopped: Stopped | None = None
    put_off: bool = False
    signals: tuple[signal.Signals, ...] = (*_WORDS, signal.SIGALRM)
    _before: dict[int, Any] = field(default_factory=dict)

    @contextmanager
    def armed(self) -> Iterator[None]:
        """Handle signals and the time limit while the block runs; works in a process's main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._before = {each: signal.getsignal(each) for each in self.signals}
        self.arm()
        _armed.append(self)
        if self.minutes is not None:
            signal.setitimer(signal.ITIMER_REAL, self.minutes * 60)
        try:
            yield
        finally:
            if self.minutes is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
            _armed.remove(self)
            for each, handler in self._before.items():
                # None: it was not Python's.
                signal.signal(each, signal.SIG_DFL if handler is None else handler)

    def arm(self) -> None:
        """Take the signals, again when somebody else has: a Spark session takes SIGINT."""
        if threading.current_thread() is threading.main_thread():
            for each in self.signals:
                signal.signal(each, self._heed)

    def _heed(self, number: int, _frame: FrameType | None) -> None:
        if self.stopped is not None:
            # A second signal: the sender does not want to wait.
            os._exit(self.stopped.exit_code)
        if number == signal.SIGALRM:
            why, code = f"stopped after {self.minutes:g} minutes, as --timeout says", CRASH
        else:
            why, code = _WORDS[signal.Signals(number)]
        self.stopped = Stopped(why, code, timed_out=number == signal.SIGALRM)
        self._watch(self.stopped)
        # An error out of a handler would be taken for one of the code that was interrupted, and the stop be lost.
        with suppress(Exception):
            self.noted(why, code)
        if not self.put_off:
            raise self.stopped

    def _watch(self, stopped: Stopped) -> None:
        """End the process after a while even if something hangs, or an exception in a handler was lost."""
        grace = GRACE_SECONDS_OF_TIMEOUT if stopped.timed_out else GRACE_SECONDS
        watch = threading.Timer(grace, _end, (stopped,))
        watch.daemon = True
        watch.start()


_armed: list[Stopping] = []


@contextmanager
def not_halfway() -> Iterator[None]:
    """Delay a stop until this block is done, or has failed: a Java process that is abandoned while it starts never ends.

    The grace period counts from the signal on, here as elsewhere. Only the main thread is stopped.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    for each in _armed:
        each.put_off = True
    try:
        yield
    finally:
        for each in _armed:
            each.put_off = False
            # A session that was started has taken SIGINT.
            each.arm()
        for each in _armed:
            if each.stopped is not None:
                raise each.stopped


def is_stop_due() -> bool:
    """True if a stop was asked for that `not_halfway` delays: what has not begun must not begin."""
    return any(each.put_off and each.stopped is not None for each in _armed)


def _end(stopped: Stopped) -> None:
    print_reason(stopped)
    sys.stderr.flush()
    os._exit(stopped.exit_code)


def print_reason(stopped: Stopped) -> None:
    """Say once, in one line, why the run ended."""
    if not stopped.told:
        stopped.told = True
        print(f"kraft-audit: {stopped.why}; earlier runs and their reports stand", file=sys.stderr)
