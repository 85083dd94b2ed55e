"""Progress of a run: on a terminal a live line with a bar and counts, otherwise log lines, nothing with `--quiet`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TextIO

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from jobs.runtime.spark import tasks_of_queries

LOG = logging.getLogger("kraft-audit")
_LOOK_SECONDS = 0.3
# What Spark does at the moment: tasks done, and tasks in all.
Tasks = Callable[[], tuple[int, int]]


class Progress:
    """Shows the running step and how far it is. Entered around all steps; `step` around each.

    `counted` may be called from any thread while a step runs: it adds the number of items read so far, by reader.
    """

    def __init__(self, console: Console | None, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._bar: Bar | None = None
        self._title = ""
        self._counts: dict[str, tuple[int, str]] = {}
        self._tasks: Tasks | None = None
        self._stopped = threading.Event()
        self._watcher: threading.Thread | None = None

    @staticmethod
    def for_terminal(stream: TextIO, *, quiet: bool = False, color: bool = True) -> Progress:
        """A live line when the stream is a terminal, log lines otherwise; `quiet` prints nothing.

        Colours are left out with `color` false, and where NO_COLOR is set.
        """
        live = stream.isatty() and not quiet
        return Progress(Console(file=stream, no_color=None if color else True) if live else None, quiet=quiet)

    def follow(self, spark: SparkSession) -> None:
        """Show the tasks of this session's running queries in the bar; a remote session reports none."""
        self._tasks = lambda: tasks_of_queries(spark)

    def counted(self, source: str, number: int, noun: str) -> None:
        """Record that `source` has given `number` of something (`znodes`) so far."""
        self._counts[source] = (number, noun)

    def __enter__(self) -> Progress:
        if self._console is not None:
            self._bar = Bar(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[counts]}"),
                TimeElapsedColumn(),
                console=self._console,
                transient=True,
            )
            self._bar.add_task("starting", total=None, counts="")
            self._bar.start()
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        if self._watcher is not None:
            self._watcher.join(timeout=2)
        if self._bar is not None:
            self._bar.stop()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Announce a step, and how long it took."""
        started = time.monotonic()
        self._counts.clear()
        self._title = title
        if self._bar is not None:
            self._bar.reset(self._bar.task_ids[0], description=title, total=None, counts="")
        yield
        seconds = time.monotonic() - started
        said = f" ({text})" if (text := self._count_text()) else ""
        if self._bar is not None:
            self._bar.console.print(f"{title}: {seconds:.1f} s{said}", highlight=False)
        elif not self._quiet:
            LOG.info("%s: %.1f s%s", title, seconds, said)

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            self._draw()

    def _draw(self) -> None:
        if self._bar is None:
            return
        done, total = self._tasks() if self._tasks is not None else (0, 0)
        counts = self._count_text() or (f"{done:,} of {total:,} tasks" if total > 1 else "")
        with suppress(KeyError):
            self._bar.update(self._bar.task_ids[0], completed=done, total=total if total > 1 else None, counts=counts)

    def _count_text(self) -> str:
        found = list(self._counts.values())
        if not found:
            return ""
        of = "" if len(found) == 1 else f" of {len(found):,} sources"
        return f"{sum(number for number, _ in found):,} {found[0][1]}{of}"
