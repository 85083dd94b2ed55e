"""Every write, flush, rename and new folder of what Python writes fails once in turn.

The text names the disk's place and what it says, what was there before stays whole, and the next try succeeds.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.exit import AuditError, UsageError
from jobs.run.run import _generated_key
from jobs.sinks.lock import only_writer
from jobs.sinks.report_files import write_report
from jobs.sources.kraft.live.copy import copy_quorum
from jobs.sources.kraft.live.copy_folder import LOG_FOLDER
from jobs.sources.kraft.live.errors import QuorumError
from jobs.steps.fleet import write_fleet_page
from tests.live.fake import FakeQuorum, fake_controllers
from tests.live.test_copy import LOG, stored
from tests.reliability.failing import failing
from tests.reliability.failing_mail import failed_in_turn
from tests.report.samples import defective, healthy
from tests.report.test_smtp import Mailbox, running
from transforms.report.fleet_model import fleet

# Without a name in it the lock holds as well; where there are no links a copy is made; a folder that is there is there.
SPARED = {"pwrite", "link", "mkdir"}
TOLD = (AuditError, UsageError, QuorumError)
both_errors = pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["ENOSPC", "EIO"])


def fail_each(folder: Path, number: int, action: Callable[[], object], whole: Callable[[], None]) -> int:
    """Do it with its first call failing, then its second, …, until it succeeds; `whole` is asked after each. How many failed."""
    fails_at = 0
    while True:
        fails_at += 1
        with failing(folder, fails_at, number) as disk:
            try:
                action()
            except TOLD as error:
                said = str(error)
                assert disk.failed, said
                assert os.strerror(number) in said, said
                assert str(folder) in said, said
                assert len(said.splitlines()) == 1
                assert "another" not in said
            else:
                assert not disk.failed or disk.calls[fails_at - 1] in SPARED, (
                    f"{disk.calls[fails_at - 1]} failed unnoticed"
                )
                if not disk.failed:
                    return fails_at - 1
        whole()


@both_errors
def test_reports(tmp_path: Path, number: int) -> None:
    out = tmp_path / "a" / "out"

    def whole() -> None:
        for path in (out / "report.html", out / "report.json"):
            assert not path.exists() or path.read_bytes() in known
        assert not list(out.glob(".*.part"))

    first = write_report(healthy(), tmp_path / "first")
    second = write_report(defective(), tmp_path / "second")
    known = [path.read_bytes() for each in (first, second) for path in (each.html, each.json)]
    assert fail_each(tmp_path / "a", number, lambda: write_report(healthy(), out), whole) >= 8
    assert fail_each(tmp_path / "a", number, lambda: write_report(defective(), out), whole) >= 8
    assert (out / "report.json").read_bytes() == second.json.read_bytes()
    assert (out / "report.html").read_bytes() == second.html.read_bytes()


@both_errors
def test_the_fleets_page(tmp_path: Path, number: int) -> None:
    page = tmp_path / "page" / "fleet.html"
    standing = fleet([], datetime(2026, 1, 1, tzinfo=UTC), 48)
    failed = fail_each(tmp_path / "page", number, lambda: write_fleet_page(standing, page, {}), lambda: None)
    assert failed >= 4
    assert page.read_text().startswith("<!doctype html>")
    assert [path.name for path in page.parent.iterdir()] == ["fleet.html"]


@both_errors
def test_the_fingerprint_key(tmp_path: Path, number: int) -> None:
    path = tmp_path / "w" / ".fingerprint-key"

    def whole() -> None:
        assert not path.exists() or len(path.read_bytes()) == 32

    assert fail_each(tmp_path / "w", number, lambda: _generated_key(path), whole) >= 3
    assert len(_generated_key(path)) == 32
    assert [each.name for each in path.parent.iterdir()] == [".fingerprint-key"]
    assert path.parent.stat().st_mode & 0o777 == 0o700, "a warehouse that is made here is its owner's"


@both_errors
def test_the_lock_of_a_table(tmp_path: Path, number: int) -> None:
    def write() -> None:
        with only_writer(tmp_path / "w", "gold.runs"):
            pass

    assert fail_each(tmp_path / "w", number, write, lambda: None) >= 2


def test_the_mail_and_what_is_written_on_the_way_to_it(tmp_path: Path) -> None:
    """What Python writes; `tests.reliability.failing_mail` also fails the calls of delta-rs."""
    mailbox = Mailbox()
    with running(mailbox) as port:
        calls, problems = failed_in_turn(failing, tmp_path, errno.ENOSPC, mailbox, port)
    assert problems == []
    assert calls >= 15


@pytest.fixture
def quorum() -> Iterator[FakeQuorum]:
    with fake_controllers(FakeQuorum.of_log(LOG)) as served:
        yield served


@both_errors
def test_copies_of_a_quorum(quorum: FakeQuorum, tmp_path: Path, number: int) -> None:
    kept = tmp_path / "kept"
    some = quorum.batches[30][0].next_offset

    def copy() -> object:
        return copy_quorum(quorum.settings(), kept)

    def whole() -> None:
        log = kept / LOG_FOLDER
        assert not log.exists() or LOG.startswith(stored(kept))
        assert not list(kept.glob(".copying-*"))

    quorum.high_watermark = some
    assert fail_each(kept, number, copy, whole) >= 8
    first = stored(kept)
    assert LOG.startswith(first)

    def still_there() -> None:
        whole()
        assert stored(kept) in (first, LOG), "the copy that was there stays until the new one is whole"

    quorum.high_watermark = quorum.end
    assert fail_each(kept, number, copy, still_there) >= 8
    assert stored(kept) == LOG
