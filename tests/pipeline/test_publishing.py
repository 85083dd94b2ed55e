"""What a run tells by mail whatever befalls it: killed before its mail, no page, no warehouse; with a real SMTP server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.evidence import verified
from jobs.exit import UsageError
from jobs.run import failures
from jobs.run.run import ClusterRun, Run
from jobs.runtime.stopping import Stopped, Stopping
from jobs.settings import Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.folder_table import arrow_rows
from jobs.sinks.storage import WarehouseError
from jobs.steps import gold, mails, publishing
from jobs.steps.publishing import Published, publish
from schemas.gold import MAILS, RUNS, VERIFICATIONS
from schemas.report import Report
from tests.report.samples import defective, healthy
from tests.report.test_html import Page
from tests.report.test_mail import body
from tests.report.test_smtp import Mailbox, running
from transforms.reconcile.judge.earlier import LogKnown
from transforms.secrets import Fingerprinter

pytestmark = pytest.mark.slow


def persisting() -> Report:
    """The defects of the sample, found again: none of them is new to the run before."""
    report = defective()
    rows = [replace(row, status="persisting") for row in report.divergences.rows]
    return replace(report, divergences=replace(report.divergences, rows=rows), resolved=[])


@dataclass
class Cluster:
    """A cluster with mail, audited once a second: runs are made of reports, and stored and told as real ones are."""

    spark: SparkSession
    warehouse: Warehouse
    mailbox: Mailbox
    settings: Settings
    runs: int = 0
    told: list[EmailMessage] = field(default_factory=list)
    # Now, and not when the tests were collected: to a run of an hour ago the mails of now are another clock's.
    began: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1))

    def run(self) -> Run:
        self.runs += 1
        began = self.began + timedelta(seconds=self.runs)
        clusters = {"c": ClusterRun(self.settings)}
        run = Run(clusters, f"run-{self.runs}", began, self.spark, self.warehouse, Fingerprinter(b"k" * 32))
        # A run learns its number where it asks for those before it.
        run.sequences = {"c": self.runs}
        # Nothing of its state is stored here: its own rows would be all of it.
        run.chains = {"c": [run.run_id]}
        return run

    def audited(self, report: Report | None, *, stored: bool = True) -> Run:
        """A run up to its row in gold `runs`."""
        run = self.run()
        mails.note_owed(run)
        if report is None:
            run.fail("c", UsageError("there is no folder /nowhere"))
        if stored and report is None:
            failures.write_failures(run)
        elif stored and report is not None:
            gold.write_runs(
                run, {"c": replace(report, cluster="c", run_id=run.run_id)}, {"c": LogKnown().row()}, {}, ()
            )
        return run

    def tell(self, run: Run, report: Report | None, **more: Any) -> Published:
        reports = {} if report is None else {"c": replace(report, cluster="c", run_id=run.run_id)}
        made = publish(run, reports, {}, **more)
        run.close()
        return made

    def mails(self) -> list[str]:
        """The texts that came in since the last look, subject first."""
        received, self.mailbox.received = self.mailbox.received, []
        messages = [message_from_bytes(content, policy=SMTP) for _, _, content in received]
        return [f"{message['Subject']}\n{body(message, 'plain')}" for message in messages]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[Mailbox, int]]:
    mailbox = Mailbox()
    with running(mailbox) as port:
        yield mailbox, port


@pytest.fixture
def cluster(spark: SparkSession, warehouse: Warehouse, tmp_path: Path, server: tuple[Mailbox, int]) -> Cluster:
    mailbox, port = server
    mailbox.received = []
    return Cluster(spark, warehouse, mailbox, configured(tmp_path, port))


def configured(folder: Path, port: int, **more: Any) -> Settings:
    mail = {
        "host": "127.0.0.1",
        "port": port,
        "security": "none",
        "sender": "audit@example.com",
        "recipients": ["team@example.com"],
        "send": "on_change",
        "attempts": 1,
        **more,
    }
    return Settings.model_validate(
        {
            "cluster": "c",
            "warehouse": str(folder / "warehouse"),
            "kraft": {"folders": ["x"]},
            "report": {"folder": str(folder / "reports"), "mail": mail},
        }
    )


def rows(cluster: Cluster) -> list[tuple[str, str | None]]:
    found = cluster.warehouse.read(MAILS).orderBy("run_id").select("run_id", "problem").collect()
    return [(row["run_id"], row["problem"]) for row in found]


def test_a_run_killed_before_its_mail_is_told_by_the_next(cluster: Cluster) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    [first] = cluster.mails()
    assert first.startswith("[kraft-audit] CLEAN c")
    # Stored, and killed right after: nothing of it was told, and nothing is noted.
    cluster.audited(defective()).close()
    made = cluster.tell(cluster.audited(persisting()), persisting())
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] ERRORS c")
    assert "Since the last mail Verdict: clean → errors." in " ".join(mail.split())
    assert "3 new defects." in mail
    assert "has changed since" not in mail
    assert (made.problems, rows(cluster)) == ([], [("run-1", None), ("run-3", None)])
    # Told now; the next run, which finds the same, has nothing to tell.
    cluster.tell(cluster.audited(persisting()), persisting())
    assert cluster.mails() == []


def test_killed_between_the_mail_and_its_note_it_is_told_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = cluster.audited(defective())

    class KilledError(BaseException):
        pass

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(mails, "store", killed)
        with pytest.raises(KilledError):
            cluster.tell(run, defective())
    # The same mail of the same run has the same id: a reader's program shows it once.
    cluster.tell(run, defective())
    first, second = (message_from_bytes(content)["Message-ID"] for _, _, content in cluster.mailbox.received)
    assert first == second
    cluster.mails()
    cluster.tell(cluster.audited(persisting()), persisting())
    assert cluster.mails() == []


def test_stopped_between_the_mail_and_its_note_it_is_not_told_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = mails.store

    def stopped(run: Run, rows: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        store(run, rows)

    # It would end the process of the tests.
    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    run = cluster.audited(defective())
    with monkeypatch.context() as patched:
        patched.setattr(mails, "store", stopped)
        with Stopping().armed(), pytest.raises(Stopped):
            cluster.tell(run, defective())
    assert len(cluster.mails()) == 1
    cluster.tell(cluster.audited(persisting()), persisting())
    assert cluster.mails() == []


def test_a_page_that_can_t_be_written_keeps_no_mail_back(cluster: Cluster) -> None:
    cluster.settings.report.folder.parent.mkdir(parents=True, exist_ok=True)
    cluster.settings.report.folder.write_text("a file is in the way")
    made = cluster.tell(
        cluster.audited(defective()), defective(), unwritten={"c": "cannot write the report: disk full"}
    )
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] ERRORS c")
    assert "The report is not there: cannot write the report: disk full" in mail
    assert made.pages == []
    assert [problem for problem in made.problems if "cannot write the fleet's page" in problem]
    assert rows(cluster) == [("run-1", None)]


def test_a_place_that_is_not_reached_keeps_no_other_page_back(cluster: Cluster, tmp_path: Path) -> None:
    gone, here = tmp_path / "a-file" / "below", tmp_path / "here"
    (tmp_path / "a-file").write_text("in the way")
    run = cluster.audited(healthy())
    for name, folder in (("a", gone), ("z", here)):
        report = cluster.settings.report.model_copy(update={"folder": folder, "mail": None})
        run.clusters[name] = ClusterRun(cluster.settings.model_copy(update={"cluster": name, "report": report}))
    made = cluster.tell(run, healthy())
    assert made.pages == [here / "fleet.html", cluster.settings.report.folder / "fleet.html"]
    [problem] = made.problems
    assert problem.startswith(f"cannot write the fleet's page {gone}/fleet.html: ")


def test_the_mail_is_sent_before_the_page_is_written(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    order = []
    written, sent = publishing.write_fleet_page, mails.deliver
    monkeypatch.setattr(publishing, "write_fleet_page", lambda *a: (order.append("page"), written(*a))[1])
    monkeypatch.setattr(mails, "deliver", lambda *a: (order.append("mail"), sent(*a))[1])
    made = cluster.tell(cluster.audited(healthy()), healthy())
    assert order == ["mail", "page"]
    assert made.pages == [cluster.settings.report.folder / "fleet.html"]


def test_a_failed_run_is_told_without_any_report_and_once(cluster: Cluster) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    cluster.tell(cluster.audited(None), None)
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] FAILED")
    assert "there is no folder /nowhere" in mail
    cluster.tell(cluster.audited(None), None)
    assert cluster.mails() == []
    cluster.tell(cluster.audited(healthy()), healthy())
    [mail] = cluster.mails()
    assert "The audit works again." in mail


def test_a_run_that_read_nothing_at_all_knows_what_was_told(cluster: Cluster) -> None:
    """A run that fails before its first step has not looked up the earlier mails: it does so for its own."""
    cluster.tell(cluster.audited(None), None)
    assert len(cluster.mails()) == 1
    run = cluster.run()
    run.fail("c", UsageError("there is no folder /nowhere"))
    failures.write_failures(run)
    cluster.tell(run, None)
    assert cluster.mails() == []


def full(*_: object, **__: object) -> None:
    raise WarehouseError("table gold.runs can't be written: no space left on device")


def test_a_full_disk_is_told_by_mail(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    monkeypatch.setattr(Warehouse, "append", full)
    run = cluster.run()
    mails.note_owed(run)
    run.fail("c", WarehouseError("table silver.topics can't be written: no space left on device"))
    with pytest.raises(WarehouseError):
        failures.write_failures(run)
    made = cluster.tell(run, None)
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] FAILED")
    for words in ("silver.topics can't be written: no space left on device", "This run is not in the warehouse"):
        assert words in " ".join(mail.split())
    assert made.lines == ["Mail         team@example.com"]
    monkeypatch.undo()
    # That it was told could not be noted either: the run after the repair is as the last noted mail told, and adds nothing.
    cluster.tell(cluster.audited(healthy()), healthy())
    assert cluster.mails() == []


def test_a_report_is_told_though_its_row_could_not_be_written(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    cluster.tell(cluster.audited(defective(), stored=False), defective())
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] ERRORS c")
    assert "Verdict: clean → errors." in mail
    assert "This run is not in the warehouse, which could not be written" in " ".join(mail.split())


def test_an_unreadable_warehouse_is_told_by_mail(cluster: Cluster) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    run = cluster.audited(defective())
    log = Path(cluster.warehouse.location(RUNS)) / "_delta_log"
    for commit in log.glob("*.json"):
        os.truncate(commit, 10)
    for check in log.glob(".*.crc"):
        check.unlink()
    run.mails_looked_up = False
    made = cluster.tell(run, defective())
    [mail] = cluster.mails()
    assert mail.startswith("[kraft-audit] ERRORS c")
    assert "The warehouse can't be read (" in mail
    assert [problem for problem in made.problems if "the fleet's page stays as it was" in problem]
    assert made.pages == []


def test_a_letter_that_can_t_be_made_keeps_the_others_going(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> EmailMessage:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr(mails, "message_of", broken)
    made = cluster.tell(cluster.audited(healthy()), healthy())
    assert made.mail_failed
    assert made.problems[0].startswith("mail not sent: ZeroDivisionError")
    assert "hunter2" not in "".join(made.problems)
    assert made.pages, "the page is none of the mail's concern"
    [(_, problem)] = rows(cluster)
    assert problem is not None
    assert problem.startswith("ZeroDivisionError")


def test_what_verify_finds_wrong_is_told_once_and_stays_on_the_page_until_all_is_well(cluster: Cluster) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    verified.store(cluster.warehouse, "c", "run-1", verified.EQUAL)
    cluster.tell(cluster.audited(healthy()), healthy())
    assert cluster.mails() == []
    problem = "does NOT match its evidence: 2 rows of silver.topics"
    verified.store(cluster.warehouse, "c", "run-2", verified.DIFFERS, problem)
    words = f"run run-2 {problem}. Restore the tables, or read the whole log again with `kraft-audit run --full`."
    page = cluster.tell(cluster.audited(healthy()), healthy()).pages[0]
    [mail] = cluster.mails()
    assert words in " ".join(mail.split())
    assert words in Page(page.read_text()).words
    page = cluster.tell(cluster.audited(healthy()), healthy()).pages[0]
    assert cluster.mails() == [], "told once"
    assert words in Page(page.read_text()).words
    verified.store(cluster.warehouse, "c", "run-4", verified.EQUAL)
    page = cluster.tell(cluster.audited(healthy()), healthy()).pages[0]
    assert cluster.mails() == []
    assert "its evidence" not in Page(page.read_text()).words


def test_a_verification_with_a_clock_ahead_is_told_once_and_the_next_one_counts(cluster: Cluster) -> None:
    cluster.tell(cluster.audited(healthy()), healthy())
    cluster.mails()
    ahead = {
        "cluster": "c",
        "run_id": "run-1",
        "verified_at": datetime.now(UTC) + timedelta(days=3650),
        "verdict": verified.DIFFERS,
        "problem": "does NOT match its evidence: 2 rows of silver.topics",
    }
    cluster.warehouse.append(VERIFICATIONS, arrow_rows(VERIFICATIONS, [ahead]))
    cluster.tell(cluster.audited(healthy()), healthy())
    [mail] = cluster.mails()
    assert "run run-1 does NOT match its evidence" in " ".join(mail.split())
    page = cluster.tell(cluster.audited(healthy()), healthy()).pages[0]
    assert cluster.mails() == [], "told once"
    assert "its evidence" in Page(page.read_text()).words
    verified.store(cluster.warehouse, "c", "run-3", verified.EQUAL)
    page = cluster.tell(cluster.audited(healthy()), healthy()).pages[0]
    assert cluster.mails() == []
    assert "its evidence" not in Page(page.read_text()).words
