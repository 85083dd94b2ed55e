"""Every write, flush, rename and new folder on a run's way to its mail fails once in turn, and the mail is sent all the same.

    python -m tests.reliability.failing_mail                 needs a C compiler; no Spark, a minute or two

A run that has judged its cluster writes its row in gold `runs`, its report, the mail's row in gold `mails`, the file of metrics and
the fleet's page. Each call of Python and delta-rs below that folder fails once, with ENOSPC and EIO. Exactly one mail comes, which
says what the run knows: its verdict, or that it could not be stored; one line names what the disk says, or nothing is missing; and
the next run repeats no mail that is noted, loses none, and leaves everything whole. Prints the figures and exits with 1 when one of
it is not so.
"""

from __future__ import annotations

import argparse
import errno
import io
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, redirect_stderr
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import SMTP
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from jobs import pipeline
from jobs.exit import guarded
from jobs.run.rows import append_rows
from jobs.run.run import LOG, ClusterRun, Run
from jobs.settings import Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.reader import Folder
from jobs.steps import gold
from schemas.gold import MAILS, RUNS
from schemas.report import Report
from tests.reliability.java_disk import Control, prepared
from tests.report.samples import defective, healthy
from tests.report.test_mail import body
from tests.report.test_smtp import Mailbox, running
from transforms.reconcile.judge.earlier import LogKnown
from transforms.report.mail_policy import LastMail, last_mail
from transforms.secrets import Fingerprinter

NUMBERS = (errno.ENOSPC, errno.EIO)
# Where delta-rs keeps what the disk said to itself.
_UNSAID = "the disk does not take a file"
_FOLDER = "DISK_FOLDER"
_BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


class Tables(Warehouse):
    """Tables in a folder, read and written without Spark."""

    def rows(self, *args: Any, **more: Any) -> pl.DataFrame:
        """As the reader of folders."""
        return Folder(self.root).rows(*args, **more)

    def newest_runs(self, *args: Any, **more: Any) -> pl.DataFrame:
        """As the reader of folders."""
        return Folder(self.root).newest_runs(*args, **more)


@dataclass
class Told:
    """What a run said, and what it left: lines, mails, whether it is stored and noted, and which files are missing."""

    lines: str
    mails: list[str]
    stored: bool
    noted: bool
    missing: list[str]


@dataclass
class Cluster:
    """A cluster whose mails go to a server on loopback."""

    root: Path
    mailbox: Mailbox
    port: int
    runs: int = 0
    lines: list[str] = field(default_factory=list)

    def settings(self) -> Settings:
        """Its configuration."""
        mail = {"host": "127.0.0.1", "port": self.port, "security": "none", "sender": "audit@example.com"}
        mail |= {"recipients": ["team@example.com"], "send": "on_change", "attempts": 1}
        return Settings.model_validate(
            {
                "cluster": "c",
                "warehouse": str(self.root / "warehouse"),
                "kraft": {"folders": ["x"]},
                "metrics": {"textfile": str(self.root / "metrics")},
                "report": {"folder": str(self.root / "reports"), "mail": mail},
            }
        )

    def run(self, report: Report) -> Told:
        """A run that has judged this report: its row, its files, its mail."""
        self.runs += 1
        settings, run_id = self.settings(), f"run-{self.runs}"
        # No Spark is asked here.
        spark: Any = None
        warehouse = Tables(spark, settings.warehouse)
        began = _BEGAN + timedelta(hours=self.runs)
        run = Run({"c": ClusterRun(settings)}, run_id, began, spark, warehouse, Fingerprinter(b"k" * 32))
        run.sequences, run.chains, run.mails_looked_up = {"c": self.runs}, {"c": [run_id]}, True
        run.newest_mails = self._newest(began)
        mine = replace(report, cluster="c", run_id=run_id)
        with _judged(mine), _heard() as heard:
            guarded(lambda: pipeline._audit(run, None, pipeline.OutputOptions(quiet=True), None))
        run.close()
        return self._told(run_id, heard.getvalue())

    def _newest(self, as_of: datetime) -> dict[str, LastMail]:
        rows = Folder(str(self.root / "warehouse")).rows(MAILS, ["run_id", "tried_at", "problem"]).rows()
        found = last_mail(
            [LastMail(run_id, tried_at, problem or "") for run_id, tried_at, problem in rows], datetime.now(UTC)
        )
        return {} if found is None else {"c": found}

    def _told(self, run_id: str, lines: str) -> Told:
        received, self.mailbox.received = self.mailbox.received, []
        messages = [message_from_bytes(content, policy=SMTP) for _, _, content in received]
        mails = [f"{each['Subject']}\n{body(each, 'plain')}" for each in messages]
        tables = Folder(str(self.root / "warehouse"))
        stored = tables.rows(RUNS, ["verdict"], {"run_id": run_id})["verdict"].to_list()
        noted = tables.rows(MAILS, ["problem"], {"run_id": run_id})["problem"].to_list()
        reports = self.root / "reports"
        files = {
            reports / "c" / "report.html": run_id,
            reports / "c" / "report.json": run_id,
            reports / "fleet.html": ">c<",
            self.root / "metrics" / "kraft_audit.prom": 'cluster="c"',
        }
        missing = [path.name for path, text in files.items() if not (path.exists() and text in path.read_text())]
        return Told(lines, mails, "failed" not in stored and bool(stored), noted == [None], missing)


@contextmanager
def _judged(report: Report) -> Iterator[None]:
    """All steps of a run have been: its row in gold `runs` is what is left to be written."""

    def steps(run: Run, _progress: object) -> dict[str, Report]:
        append_rows(run, RUNS, [gold._run_row(run, report, LogKnown().row(), None)])
        run.recorded |= {"c"}
        return {"c": report}

    before, pipeline._steps = pipeline._steps, steps
    try:
        yield
    finally:
        pipeline._steps = before


@contextmanager
def _heard() -> Iterator[io.StringIO]:
    """What a user sees of it."""
    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    LOG.addHandler(handler)
    try:
        with redirect_stderr(heard):
            yield heard
    finally:
        LOG.removeHandler(handler)


def persisting() -> Report:
    """The defects of the sample, found again."""
    report = defective()
    rows = [replace(row, status="persisting") for row in report.divergences.rows]
    return replace(report, divergences=replace(report.divergences, rows=rows), resolved=[])


def _has(text: str, words: Sequence[str]) -> bool:
    return any(each in " ".join(text.split()) for each in words)


def wrong(told: Told, after: Told, number: int) -> list[str]:
    """What is not as it should be with a run during which the disk failed, and with the next one."""
    said, problems = (os.strerror(number), _UNSAID), []
    if len(told.mails) != 1:
        problems.append(f"{len(told.mails)} mails")
    for mail in told.mails:
        words = (
            [("[kraft-audit] ERRORS c",), ("clean → errors.",)] if told.stored else [("[kraft-audit] FAILED",), said]
        )
        problems += [f"the mail lacks {each}" for each in words if not _has(mail, each)]
        if told.stored and "report.html" in told.missing and "The report is not there" not in mail:
            problems.append("the mail says nothing of the report that is not there")
    if (told.missing or not told.stored or not told.noted) and not _has(told.lines, said):
        problems.append(f"no line names the disk: {told.lines[:300]!r}")
    if "another" in told.lines or "fault of kraft-audit" in told.lines:
        problems.append(told.lines[:300])
    # What was told and noted is not told again; what was not noted may be, and what was not told must be.
    must = 0 if told.stored and told.noted else 1
    if len(after.mails) != must or any(not mail.startswith("[kraft-audit] ERRORS c") for mail in after.mails):
        problems.append(f"then {len(after.mails)} mails instead of {must}: {[mail[:60] for mail in after.mails]}")
    if after.missing or not after.stored or (must and not after.noted) or after.lines:
        problems.append(
            f"then: {after.missing} missing, stored {after.stored}, noted {after.noted}: {after.lines[:200]}"
        )
    return problems


class Failing(Protocol):
    """A disk one of whose calls is to fail."""

    @property
    def failed(self) -> bool:
        """True when it was made."""
        ...


def failed_in_turn(
    disk: Callable[[Path, int, int], AbstractContextManager[Failing]],
    root: Path,
    number: int,
    mailbox: Mailbox,
    port: int,
) -> tuple[int, list[str]]:
    """Let each call fail, as `disk` (the folder, the number of the call, that of the error) does: how many, and what was wrong."""
    base, problems, call = root / "base", [], 0
    (base / "metrics").mkdir(parents=True, exist_ok=True)
    first = Cluster(base, mailbox, port)
    if len(first.run(healthy()).mails) != 1:
        return 0, ["the undisturbed run sent no mail"]
    while True:
        call += 1
        place = root / "place"
        shutil.copytree(base, place)
        cluster = Cluster(place, mailbox, port, runs=1)
        with disk(place, call, number) as failing:
            told = cluster.run(defective())
            failed = failing.failed
        after = cluster.run(persisting())
        problems += [f"call {call}, {os.strerror(number)}: {each}" for each in wrong(told, after, number)]
        shutil.rmtree(place)
        if not failed:
            shutil.rmtree(base)
            return call - 1, problems


@contextmanager
def _below(control: Control, _folder: Path, call: int, number: int) -> Iterator[Control]:
    control.set(call, number)
    yield control
    control.set()


def _inside(control_file: Path, root: Path, numbers: Sequence[int]) -> int:
    control, mailbox, bad = Control(control_file), Mailbox(), []
    with running(mailbox) as port:
        for number in numbers:
            calls, problems = failed_in_turn(partial(_below, control), root, number, mailbox, port)
            bad += problems if calls else ["no call was counted", *problems]
            print(f"{calls} calls failed with {os.strerror(number)}", flush=True)
    for problem in bad:
        print(problem)
    print(f"{len(bad)} wrong")
    return 1 if bad else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point: starts itself again with a disk that fails below it."""
    parser = argparse.ArgumentParser(
        prog="tests.reliability.failing_mail", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--numbers", type=int, nargs="+", default=NUMBERS, help="numbers of the errors (default: ENOSPC, EIO)"
    )
    arguments = parser.parse_args(argv)
    if _FOLDER in os.environ:
        return _inside(Path(os.environ["DISK_CONTROL"]), Path(os.environ[_FOLDER]), arguments.numbers)
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "disk"
        root.mkdir()
        _, variables = prepared(root, Path(work))
        command = [sys.executable, "-m", "tests.reliability.failing_mail", "--numbers", *map(str, arguments.numbers)]
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
