"""While a run works: a live line with counts on a terminal, log lines elsewhere, nothing when asked to be quiet."""

from __future__ import annotations

import io
import logging
import time

import pytest
from rich.console import Console

from jobs.runtime.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def worked(progress: Progress, seconds: float = 0.0) -> None:
    with progress, progress.step("reading ZooKeeper"):
        progress.counted("a", 12_000, "znodes")
        progress.counted("b", 400, "znodes")
        time.sleep(seconds)


def test_elsewhere_a_step_is_a_log_line_with_what_was_read(caplog: pytest.LogCaptureFixture) -> None:
    stream = io.StringIO()
    with caplog.at_level(logging.INFO, logger="kraft-audit"):
        worked(Progress.for_terminal(stream))
    (record,) = caplog.records
    assert record.getMessage().startswith("reading ZooKeeper: ")
    assert record.getMessage().endswith("(12,400 znodes of 2 sources)")
    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["file", "terminal"])
def test_quiet_says_nothing(stream: io.StringIO, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="kraft-audit"):
        worked(Progress.for_terminal(stream, quiet=True))
    assert caplog.records == []
    assert stream.getvalue() == ""


def on_terminal(monkeypatch: pytest.MonkeyPatch, *, color: bool) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    progress = Progress.for_terminal(stream, color=color)
    assert isinstance(progress._console, Console)
    progress._tasks = lambda: (3, 16)
    worked(progress, 0.8)
    return stream.getvalue()


def test_a_terminal_shows_a_bar_and_counts_while_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = on_terminal(monkeypatch, color=True)
    assert "reading ZooKeeper" in shown
    assert "12,400 znodes of 2 sources" in shown
    assert "━" in shown
    assert "\x1b[3" in shown, "colours"


@pytest.mark.parametrize("variable", [False, True])
def test_colours_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, variable: bool) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable:
        monkeypatch.setenv("NO_COLOR", "1")
    shown = on_terminal(monkeypatch, color=variable)
    assert "\x1b[3" not in shown
    assert "\x1b[9" not in shown
