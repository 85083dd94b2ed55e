"""Progress of a run: a live line on a terminal, log lines otherwise."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.status import Status

LOG = logging.getLogger("kraft-audit")


class Progress:
    """Says which step runs. Entered around all steps; `step` around each."""

    def __init__(self, console: Console | None) -> None:
        self._console = console
        self._status: Status | None = None

    @staticmethod
    def for_terminal(stream: TextIO) -> Progress:
        """A live line when the stream is a terminal, log lines otherwise."""
        return Progress(Console(file=stream) if stream.isatty() else None)

    def __enter__(self) -> Progress:
        if self._console is not None:
            self._status = self._console.status("starting")
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._status is not None:
            self._status.stop()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, and how long it took."""
        started = time.monotonic()
        if self._status is not None:
            self._status.update(title)
        yield
        seconds = time.monotonic() - started
        if self._console is not None:
            self._console.print(f"{title}: {seconds:.1f} s", highlight=False)
        else:
            LOG.info("%s: %.1f s", title, seconds)
