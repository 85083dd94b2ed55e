"""The width that tables are fitted to: that of the terminal, none where output goes to a file or a program."""

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
