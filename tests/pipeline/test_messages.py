"""Messages of one run after the other, to a real server: told once, owed when it was not taken, and kept apart from mails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs.cli import main
from jobs.exit import UsageError
from jobs.run.run import Run
from jobs.settings import Settings
from jobs.sinks.delta import Warehouse
from jobs.sinks.storage import WarehouseError
from jobs.steps import messages
from jobs.steps.publishing import Published, publish_unopened
from schemas.gold import MAILS
from schemas.report import Report
from tests.pipeline.test_publishing import Cluster, persisting
from tests.report.samples import defective, healthy
from tests.report.test_message import Hook, serving
from tests.report.test_smtp import Mailbox

pytestmark = pytest.mark.slow
URL = "TEST_WEBHOOK_URL"


@dataclass
class Told(Cluster):
    """A cluster that a webhook is told of."""

    hook: Hook | None = None

    def audited(self, report: Report | None, *, stored: bool = True) -> Run:
        run = super().audited(report, stored=stored)
        messages.note_owed(run)
        return run

    def again(self, report: Report) -> tuple[Published, list[dict[str, Any]]]:
        """One more run: what was made of it, and the clusters that the webhook was told of."""
        assert self.hook is not None
        made = self.tell(self.audited(report), report)
        received, self.hook.received = self.hook.received, []
        return made, [cluster for _, body, _ in received for cluster in json.loads(body)["clusters"]]


def configured(folder: Path) -> Settings:
    return Settings.model_validate(
        {
            "cluster": "c",
            "warehouse": str(folder / "warehouse"),
            "kraft": {"folders": ["x"]},
            "report": {"folder": str(folder / "reports")},
            "notify": [{"url_env": URL, "attempts": 1}],
        }
    )


@pytest.fixture
def cluster(
    spark: SparkSession, warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Told]:
    hook = Hook()
    with serving(hook) as url:
        monkeypatch.setenv(URL, url)
        yield Told(spark, warehouse, Mailbox(), configured(tmp_path), hook=hook)


def rows(cluster: Told) -> list[tuple[str, str, bool]]:
    found = cluster.warehouse.rows(MAILS, ["run_id", "channel", "problem"]).sort("run_id").iter_rows()
    return [(run_id, channel, problem is None) for run_id, channel, problem in found]


def test_what_is_new_is_told_once_and_what_was_not_taken_is_owed(cluster: Told) -> None:
    assert cluster.hook is not None
    _, [first] = cluster.again(healthy())
    assert (first["verdict"], first["changes"]) == ("clean", ["This is the first run."])
    assert cluster.again(healthy())[1] == []
    # A server that does not take it.
    cluster.hook.answers = [500]
    made, _ = cluster.again(defective())
    assert made.problems == [f"message by {URL} not sent: it answered 500; check the address"]
    assert made.mail_failed
    cluster.hook.answers = [200]
    run = cluster.audited(persisting())
    assert [note for note in run.clusters["c"].notes if "was not sent" in note] == [
        f"The message of run run-3 was not sent: {made.problems[0]}"
    ]
    run.close()
    made, [owed] = cluster.again(persisting())
    assert (
        owed["changes"][0]
        == f"The message of run run-3 was not sent: message by {URL} not sent: it answered 500; check the address."
    )
    assert "Verdict: clean → errors." in owed["changes"]
    assert made.problems == []
    assert cluster.again(persisting())[1] == []
    assert rows(cluster) == [("run-1", URL, True), ("run-3", URL, False), ("run-5", URL, True)]
    assert cluster.mails() == []


def test_a_run_that_could_not_begin_is_told(cluster: Told) -> None:
    assert cluster.hook is not None
    made = publish_unopened([cluster.settings], UsageError("there is no folder /nowhere"))
    [(_, body, _)] = cluster.hook.received
    [told] = json.loads(body)["clusters"]
    assert (told["verdict"], told["failure"]) == ("failed", "there is no folder /nowhere")
    assert (made.problems, made.mail_failed) == ([], False)


def test_a_failure_at_the_start_is_told_once(cluster: Told, tmp_path: Path) -> None:
    assert cluster.hook is not None
    conf = tmp_path / "conf.yml"
    conf.write_text(
        f"cluster: c\nwarehouse: {tmp_path}/tables\nkraft: {{folders: ['{tmp_path}/nowhere']}}\n"
        f"report: {{folder: '{tmp_path}/reports'}}\nspark: {{profile: small}}\n"
        f"notify: [{{url_env: {URL}, attempts: 1}}]\n"
    )
    codes = [main(["run", "--conf", str(conf), "--quiet"]) for _ in range(3)]
    assert codes == [2, 2, 2]
    [(_, body, _)] = cluster.hook.received
    [told] = json.loads(body)["clusters"]
    assert (told["verdict"], told["changes"]) == ("failed", ["This is the first run."])


def test_earlier_messages_that_could_not_be_read_at_the_start_are_looked_up_again(
    cluster: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise WarehouseError("the warehouse can't be read: Input/output error")

    assert len(cluster.again(healthy())[1]) == 1
    with monkeypatch.context() as patched:
        patched.setattr(messages, "newest_messages", unreadable)
        run = cluster.audited(healthy())
    assert cluster.hook is not None
    made = cluster.tell(run, healthy())
    assert (made.problems, cluster.hook.received) == ([], [])
    # If that fails, too, it is unknown what was told.
    run = cluster.run()
    monkeypatch.setattr(messages, "newest_messages", unreadable)
    cluster.tell(run, defective())
    [(_, body, _)] = cluster.hook.received
    [told] = json.loads(body)["clusters"]
    assert any("the changes since the last mail are unknown" in each for each in told["changes"])
