"""The width that tables and lines are fitted to: that of the terminal, none where output goes to a file or a program."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios

import pytest

from jobs.runtime.output import terminal_width

ASK = "from jobs.runtime.output import terminal_width; import sys; print(terminal_width(), file=sys.stderr)"


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminals_width_is_found(columns: int) -> None:
    reader, terminal = pty.openpty()
    try:
        termios.tcsetwinsize(terminal, (24, columns))
        done = subprocess.run([sys.executable, "-c", ASK], stdout=terminal, stderr=subprocess.PIPE, check=True)
    finally:
        os.close(reader)
        os.close(terminal)
    assert done.stderr == f"{columns}\n".encode()


def test_a_pipe_and_what_is_caught_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whatever a shell exports: a program that reads lines gets them whole.
    monkeypatch.setenv("COLUMNS", "80")
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, check=True)
    assert done.stderr == b"None\n"
    assert terminal_width() is None


SAY = "from jobs.runtime.output import say; say('  reason  all its replicas are running, twenty-two'); say(''); say('end')"


def test_a_line_is_broken_between_words_and_its_rest_stands_further_in() -> None:
    reader, terminal = pty.openpty()
    try:
        termios.tcsetwinsize(terminal, (24, 24))
        subprocess.run([sys.executable, "-c", SAY], stdout=terminal, check=True)
        shown = os.read(reader, 1000).decode().splitlines()
    finally:
        os.close(reader)
        os.close(terminal)
    assert shown == ["  reason  all its", "    replicas are", "    running, twenty-two", "", "end"]


def test_a_program_gets_the_line_whole() -> None:
    done = subprocess.run([sys.executable, "-c", SAY], capture_output=True, text=True, check=True)
    assert done.stdout == "  reason  all its replicas are running, twenty-two\n\nend\n"
