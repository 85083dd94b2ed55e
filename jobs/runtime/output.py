"""Standard output that ends no command: its reader may stop early, and its encoding may lack characters."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transforms.report.table import broken

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def terminal_width() -> int | None:
    """Columns of the terminal that shows standard output; None where it goes elsewhere, and lines may be as long as they are."""
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, AttributeError):
        # A process that was started with a closed output has none.
        return None


def say(line: str) -> None:
    """Print a line; a terminal that is too narrow gets it broken (`transforms.report.table.broken`)."""
    width = terminal_width()
    print(*([line] if width is None or len(line) <= width else broken(line, width)), sep="\n", flush=True)


class _ToReader(io.FileIO):
    """Once the reader (`head`, `less`) has closed the pipe, the rest goes nowhere."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            return super().write(data)


@contextmanager
def steady_output() -> Iterator[None]:
    """Print so in the block: the command goes on to its exit code, which a closed gate or a difference decides.

    Characters that the encoding lacks are printed as their escapes. Whoever has replaced standard output keeps it.
    """
    given = sys.stdout
    if given is not sys.__stdout__ or not isinstance(given, io.TextIOWrapper):
        yield
        return
    given.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(_ToReader(given.fileno(), "w", closefd=False)),
        given.encoding,
        "backslashreplace",
        line_buffering=given.line_buffering,
        write_through=given.write_through,
    )
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout = given
