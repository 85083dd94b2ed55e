"""The mail says what the report says, in little room, and nothing of a cluster reaches its headers or markup."""

from __future__ import annotations

from dataclasses import replace
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.report import CheckResult, DivergenceRow, Divergences, Report
from tests.report.samples import HUGE, SAMPLES, defective, healthy, lagging, runs, uncompared
from tests.report.test_html import Page
from transforms.report.mail import SIZE_LIMIT, render_mail

WIDE = "\U000e0001" * 1_000_000


def received(message: EmailMessage) -> EmailMessage:
    """The message as a client parses its bytes."""
    parsed = message_from_bytes(message.as_bytes(), policy=SMTP)
    assert isinstance(parsed, EmailMessage)
    return parsed


def body(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    assert isinstance(part, EmailMessage)
    return str(part.get_content())


@pytest.mark.parametrize("name", SAMPLES)
def test_structure_size_and_twin(name: str) -> None:
    message = received(render_mail(SAMPLES[name](), "/srv/report.html"))
    assert len(message.as_bytes()) <= SIZE_LIMIT
    assert [part.get_content_type() for part in message.walk()] == [
        "multipart/alternative",
        "text/plain",
        "multipart/related",
        "text/html",
        "image/png",
    ]
    assert "Full report: /srv/report.html" in body(message, "plain")
    html = body(message, "html")
    page = Page(html)
    assert "Full report: /srv/report.html" in page.words
    title = body(message, "plain").splitlines()[0].split(": ", 1)[1]
    assert title in page.words
    assert title in str(message["Subject"])
    picture = next(part for part in message.walk() if part.get_content_type() == "image/png")
    assert f"cid:{str(picture['Content-ID']).strip('<>')}" in html
    assert picture.get_content().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", SAMPLES)
def test_html_survives_mail_clients(name: str) -> None:
    page = Page(body(received(render_mail(SAMPLES[name]())), "html"))
    tags = {tag for tag, _ in page.tags}
    assert tags <= {"html", "head", "meta", "title", "body", "table", "tr", "td", "div", "span", "b", "img", "br"}
    for _tag, found in page.tags:
        assert not {"class", "id", "href", "onerror", "onload"} & set(found)
        assert not (found.get("src") or "cid:").startswith(("http", "//", "data:"))


def test_gates_checks_and_differences_are_told() -> None:
    words = Page(body(received(render_mail(lagging())), "html")).words
    assert "Roll back ZooKeeper lacks the last 11 records. RB-08 NO-GO" in words
    assert "warn DUR-04 ZooKeeper keeps up with KRaft (11 violations)" in words
    assert (
        "configs TOPIC orders · retention.ms value new ZooKeeper 86400000 zxid 0x32c KRaft 172800000 offset 1213"
        in words
    )
    assert "2 new, 2 persisting, 1 resolved" in words


def test_a_mail_about_sides_that_were_not_compared_tells_no_number() -> None:
    sent = received(render_mail(uncompared()))
    html = body(sent, "html")
    assert "not compared" in html
    assert "0 of 0 differences" not in html
    assert "0 new, 0 persisting" not in html


def test_a_cluster_name_cannot_add_a_header_or_markup() -> None:
    message = received(render_mail(defective()))
    assert message["Bcc"] is None
    assert len(message.get_all("Subject", [])) == 1
    subject = str(message["Subject"])
    assert "\\x0d\\x0aBcc: x@evil" in subject or "more characters" in subject
    assert subject.startswith("[kraft-audit] ERRORS prod-us ")
    assert "<script" not in body(message, "html")


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=200))
def test_any_cluster_name_makes_one_subject_line(name: str) -> None:
    message = render_mail(replace(healthy(), cluster=name, verdict=name, history=[]))
    parsed = received(message)
    assert set(parsed.keys()) == {"Subject", "Auto-Submitted", "X-Kraft-Audit-Verdict", "MIME-Version", "Content-Type"}
    assert str(parsed["Subject"]).isprintable()


@pytest.mark.parametrize(
    "filler", [HUGE, WIDE, '"' * 1_000_000, "\u6771" * 1_000_000], ids=["x", "tags", "quotes", "cjk"]
)
def test_the_largest_report_fits(filler: str) -> None:
    row = DivergenceRow(
        "topics", {"topic": filler, filler: filler}, filler, "differs", filler, filler, "lost_write", "error",
        filler, 1, 1, filler, filler, filler,
    )  # fmt: skip
    check = CheckResult(filler, "fail", 10**12, [filler] * 50, [filler] * 9, "error", filler, filler, filler)
    report: Report = replace(
        defective(),
        cluster=filler,
        run_id=filler,
        kafka_version=filler,
        mode=filler,
        tool_version=filler,
        migration=replace(defective().migration, state=filler),
        divergences=Divergences(10**12, {"lost_write": 10**12}, rows=[row] * 300),
        checks=[check] * 90,
        history=runs(60, [0, 10**12]),
    )
    message = render_mail(report, filler)
    assert len(message.as_bytes()) <= SIZE_LIMIT
    assert "Exit code 20" in body(received(message), "plain")


def test_without_history_there_is_no_picture() -> None:
    message = received(render_mail(replace(healthy(), history=[])))
    assert "image/png" not in [part.get_content_type() for part in message.walk()]
    assert "<img" not in body(message, "html")


def test_a_formula_in_a_run_s_time_does_not_break_the_picture() -> None:
    odd = replace(runs(1, [3])[0], started_at="$\\frac{1}")
    assert len(render_mail(replace(healthy(), history=[odd, odd])).as_bytes()) > 10_000
