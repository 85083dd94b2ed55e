"""One mail tells of several clusters: worst first, in little room, and each recipient of what is theirs."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from jobs.exit import UsageError
from jobs.runtime.stopping import Stopped, Stopping, not_halfway
from jobs.settings import MailSettings, Settings
from jobs.sinks.mail import MailError, SentMail
from jobs.steps import mails
from schemas.report import Report
from tests.report.fleets import NOW, failed, run_of
from tests.report.samples import HOSTILE, HUGE, defective, healthy, lagging
from tests.report.test_html import Page
from tests.report.test_mail import body, received
from transforms.report.fleet_mail import MailEntry, render_fleet_mail
from transforms.report.fleet_model import FleetRun
from transforms.report.mail import SIZE_LIMIT
from transforms.report.mail_policy import Decision, LastMail

CHANGED = Decision("change", ("Verdict: clean → errors.",))


def entry(report: Report | None, name: str, location: str = "") -> MailEntry:
    run = failed(name) if report is None else run_of(report, name)
    return MailEntry(run, report, CHANGED, location)


def test_the_worst_come_first_each_with_its_own_story() -> None:
    told = [entry(lagging(), "late"), entry(defective(), "losing", "/srv/losing/report.html"), entry(None, "gone")]
    message = received(render_fleet_mail(told, [run_of(healthy(), "fine")], NOW, "/srv/fleet.html"))
    assert str(message["Subject"]) == "[kraft-audit] FAILED 2 of 4 clusters need repair: gone"
    assert str(message["X-Kraft-Audit-Verdict"]) == "failed"
    plain, words = body(message, "plain"), Page(body(message, "html")).words
    for text in (plain, words):
        assert text.index("gone") < text.index("losing") < text.index("late")
        assert "there is no folder /nowhere" in text
        assert "Set or remove the same quota" in text
        assert "Verdict: clean → errors." in text
        assert "/srv/losing/report.html" in text
        assert "/srv/fleet.html" in text
        assert "No news of 1 other cluster: 1 clean." in text
    assert "fine" not in plain


def test_five_hundred_clusters_fit_and_none_is_left_out() -> None:
    told = [entry(defective(), f"cluster-{number:03}") for number in range(500)]
    message = render_fleet_mail(told, [], NOW)
    assert len(message.as_bytes()) <= SIZE_LIMIT
    plain = body(received(message), "plain")
    assert "500 of 500 clusters need repair" in plain
    assert "Errors (500)" in plain
    assert " more" in plain


@pytest.mark.parametrize(
    "filler", [HUGE, HOSTILE, "東" * 100_000, '"' * 100_000], ids=["x", "hostile", "cjk", "quotes"]
)
def test_whatever_a_cluster_is_called_the_mail_is_a_mail(filler: str) -> None:
    report = replace(defective(), cluster=filler, kafka_version=filler)
    run = run_of(report, filler, failure="", headline=filler, to_do=filler)
    told = [MailEntry(run, report, Decision("change", (filler,) * 50), filler)] * 2
    message = render_fleet_mail([*told, entry(None, "gone")], [], NOW, filler)
    assert len(message.as_bytes()) <= SIZE_LIMIT
    parsed = received(message)
    assert parsed["Bcc"] is None
    assert str(parsed["Subject"]).isprintable()
    html = body(parsed, "html")
    assert "<script" not in html
    assert {tag for tag, _ in Page(html).tags} <= {
        "html", "head", "meta", "title", "body", "table", "tr", "td", "div", "span", "b", "br"
    }  # fmt: skip


def test_links_are_links_only_where_reports_are_served() -> None:
    served = render_fleet_mail([entry(defective(), "a", "https://x.example/a/report.html")], [], NOW)
    lying = render_fleet_mail([entry(defective(), "a", "javascript:alert(1)")], [], NOW)
    assert 'href="https://x.example/a/report.html"' in body(received(served), "html")
    assert "href" not in body(received(lying), "html")


def mail(*recipients: str, **more: Any) -> MailSettings:
    given = {"host": "smtp", "sender": "a@example.com", "recipients": list(recipients), "send": "on_change", **more}
    return MailSettings.model_validate(given)


def candidate(name: str, settings: MailSettings, *, told: bool = True, report: Report | None = None) -> mails.Candidate:
    report = healthy() if report is None else report
    decision = CHANGED if told else Decision()
    return mails.Candidate(settings, run_of(report, name), report, decision, f"/srv/{name}.html")


def test_clusters_that_share_recipients_are_told_in_one_mail() -> None:
    team = mail("team@example.com")
    made = mails.letters([candidate("a", team), candidate("b", team), candidate("c", team, told=False)])
    assert [([c.run.cluster for c in x.candidates], [c.run.cluster for c in x.others], x.recipients) for x in made] == [
        (["a", "b"], ["c"], ("team@example.com",))
    ]


def test_each_recipient_is_told_of_their_own_clusters() -> None:
    made = mails.letters(
        [
            candidate("a", mail("team@example.com", "ann@example.com")),
            candidate("b", mail("team@example.com")),
            candidate("c", mail("cai@example.com"), told=False),
        ]
    )
    assert {x.recipients: [c.run.cluster for c in x.candidates] for x in made} == {
        ("team@example.com",): ["a", "b"],
        ("ann@example.com",): ["a"],
    }


def test_error_recipients_are_told_of_errors_only() -> None:
    settings = mail("team@example.com", error_recipients=["oncall@example.com"])
    made = mails.letters([candidate("fine", settings), candidate("losing", settings, report=defective())])
    assert {x.recipients: [c.run.cluster for c in x.candidates] for x in made} == {
        ("team@example.com",): ["fine", "losing"],
        ("oncall@example.com",): ["losing"],
    }


def test_clusters_of_other_servers_are_other_mails() -> None:
    made = mails.letters([candidate("a", mail("t@example.com")), candidate("b", mail("t@example.com", host="other"))])
    assert [[c.run.cluster for c in x.candidates] for x in made] == [["a"], ["b"]]


def test_one_cluster_alone_has_the_full_mail_with_what_changed() -> None:
    (letter,) = mails.letters([candidate("a", mail("t@example.com"), report=defective())])
    message = received(mails.message_of(letter, "/srv/fleet.html"))
    assert "5 defects" in str(message["Subject"])
    assert "Since the last mail" in body(message, "plain")
    assert "Verdict: clean → errors." in Page(body(message, "html")).words


def settings_of(name: str, settings: MailSettings | None) -> Settings:
    content: dict[str, Any] = {"cluster": name, "warehouse": "w", "kraft": {"folders": ["x"]}}
    if settings is not None:
        content["report"] = {"mail": settings.model_dump()}
    return Settings.model_validate(content)


def test_the_policy_looks_at_this_run_and_the_ones_before() -> None:
    configured = {name: settings_of(name, mail("t@example.com")) for name in ("same", "turned", "gone")}
    configured["quiet"] = settings_of("quiet", None)
    past = [run_of(healthy(), name, 13) for name in configured]
    present = [run_of(healthy(), "same"), run_of(defective(), "turned"), failed("gone"), run_of(defective(), "quiet")]
    started = present[0].started_at
    present = [replace(run, started_at=started) for run in present]
    others: list[FleetRun] = [run_of(defective(), "of-another-run", 2)]
    reports = {"same": healthy(), "turned": defective(), "quiet": defective()}
    told = {"same": LastMail("same-13", NOW - timedelta(hours=12))}
    found = mails.candidates(configured, reports, [*past, *present, *others], started, told, {})
    assert {each.run.cluster: each.decision.reason for each in found} == {
        "gone": "change",
        "same": "",
        "turned": "change",
    }


def test_a_mail_that_fails_is_said_and_kept_and_the_others_go(tmp_path: Path) -> None:
    made = mails.letters([candidate("a", mail("t@example.com")), candidate("b", mail("t@example.com", host="down"))])

    def sender(message: Any, settings: MailSettings) -> SentMail:
        if settings.host == "down":
            raise MailError("mail to down:587 not sent: nothing listens there")
        return SentMail([str(message["To"])], [])

    delivery = mails.deliver(made, "", None, sender)
    assert delivery.lines == ["Mail         t@example.com"]
    assert delivery.problems == ["mail to down:587 not sent: nothing listens there"]
    assert [(row["cluster"], row["problem"]) for row in delivery.rows] == [
        ("a", None),
        ("b", "mail to down:587 not sent: nothing listens there"),
    ]


def test_after_a_stop_the_other_mails_about_the_same_cluster_still_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gold `mails` has one result for a cluster: with one of two mails sent, the next run would send both again."""
    made = mails.letters(
        [candidate("a", mail("both@example.com", "one@example.com")), candidate("b", mail("both@example.com"))]
    )
    made += mails.letters([candidate("c", mail("t@example.com", host="other"))])
    assert len(made) == 3

    def sender(message: Any, settings: MailSettings) -> SentMail:
        if not sent:
            os.kill(os.getpid(), signal.SIGTERM)
        sent.append(str(message["To"]))
        return SentMail([str(message["To"])], [])

    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    sent: list[str] = []
    kept = []
    with Stopping().armed(), pytest.raises(Stopped), not_halfway():
        kept.append(mails.deliver(made, "", None, sender))
    assert sorted(sent) == ["both@example.com", "one@example.com"]
    assert {row["cluster"] for row in kept[0].rows if row["problem"]} == {"c"}


def test_after_a_stop_no_more_mails_are_tried_and_they_stay_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped run has seconds: a mail on its way is finished, the next ones are for the next run."""
    made = mails.letters([candidate("a", mail("t@example.com")), candidate("b", mail("t@example.com", host="other"))])
    sent = []

    def sender(message: Any, settings: MailSettings) -> SentMail:
        os.kill(os.getpid(), signal.SIGTERM)
        sent.append(str(message["To"]))
        return SentMail(["t@example.com"], [])

    monkeypatch.setattr(Stopping, "_watch", lambda _self, _stopped: None)
    kept = []
    with Stopping().armed(), pytest.raises(Stopped), not_halfway():
        kept.append(mails.deliver(made, "", None, sender))
    assert len(sent) == 1
    assert [(row["cluster"], row["problem"]) for row in kept[0].rows] == [
        ("a", None),
        ("b", "mail not sent: the run was stopped"),
    ]


def test_an_unset_variable_fails_the_mail_and_not_the_run() -> None:
    def sender(message: Any, settings: MailSettings) -> SentMail:
        raise UsageError("mail settings: the environment variable P is not set")

    delivery = mails.deliver(mails.letters([candidate("a", mail("t@example.com"))]), "", None, sender)
    assert delivery.problems == ["mail not sent: mail settings: the environment variable P is not set"]


def test_a_dry_run_writes_the_mails_and_leaves_no_trace(tmp_path: Path) -> None:
    made = mails.letters([candidate("a", mail("t@example.com")), candidate("b", mail("t@example.com"))])

    def sender(message: Any, settings: MailSettings) -> SentMail:
        raise AssertionError("sent")

    delivery = mails.deliver(made, "", tmp_path / "mails", sender)
    (file,) = (tmp_path / "mails").iterdir()
    assert file.read_bytes().startswith(b"Subject: [kraft-audit] ")
    assert b"To: t@example.com" in file.read_bytes()
    assert (delivery.rows, delivery.problems) == ([], [])
    assert str(file) in delivery.lines[0]
