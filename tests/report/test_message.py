"""Messages to chats, pagers and programs: what is sent in which form, to a real server, and what is said when it is not."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from jobs.exit import UsageError
from jobs.settings import NotifySettings, Settings
from jobs.sinks.webhook import NotifyError, by_apprise, post
from jobs.steps import messages, publishing
from jobs.steps.mails import Delivery
from jobs.steps.messages import Message
from tests.report.fleets import NOW, failed, run_of
from tests.report.samples import defective, healthy, lagging
from tests.report.test_mail import body
from transforms.report.fleet_mail import MailEntry, render_fleet_mail
from transforms.report.fleet_model import FleetRun, Verified
from transforms.report.mail import render_mail
from transforms.report.mail_policy import Decision, LastMail, Policy, decide
from transforms.report.message import SIZE_LIMIT, lines_of, payload_of, title_of

SECRET = "T0KEN-in-the-path"
URL = "TEST_WEBHOOK_URL"
LOSING = run_of(defective(), "losing")


@dataclass
class Hook:
    """A server that keeps what it is sent, and answers with these codes, the last one for ever."""

    answers: list[int] = field(default_factory=lambda: [200])
    received: list[tuple[str, bytes, str]] = field(default_factory=list)
    elsewhere: str = ""

    def answer(self) -> int:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def serving(hook: Hook) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.received.append((self.path, body, self.headers["Content-Type"]))
            self.send_response(hook.answer())
            if hook.elsewhere:
                self.send_header("Location", hook.elsewhere)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hooks/{SECRET}"
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def answering(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers as no server of HTTP does, until its event is set: its address, and what it was sent."""
    calls: list[bytes] = []
    over = threading.Event()

    def serve(server: socket.socket) -> None:
        while not over.is_set():
            connection, _ = server.accept()
            calls.append(connection.recv(100_000))
            with connection, suppress(OSError):
                answer(connection, over)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/hooks/{SECRET}", calls
        finally:
            over.set()


def entry(run: FleetRun, *changes: str, location: str = "") -> MailEntry:
    return MailEntry(run, None, Decision("change", changes), location)


def texts(form: str, body: bytes) -> list[str]:
    """What a person sees, line by line."""
    told = json.loads(body)
    if form == "slack":
        assert told["mrkdwn"] is False
        return str(told["text"]).splitlines()
    (card,) = told["attachments"]
    assert (told["type"], card["contentType"]) == ("message", "application/vnd.microsoft.card.adaptive")
    blocks = card["content"]["body"]
    assert {block["type"] for block in blocks} == {"RichTextBlock"}
    return [inline["text"] for block in blocks for inline in block["inlines"]]


@pytest.mark.parametrize("form", ["slack", "teams"])
def test_a_chat_is_told_the_worst_first_what_changed_and_what_to_do(form: str) -> None:
    late = run_of(lagging(), "late")
    told = [entry(late, "Verdict: clean → warnings."), entry(LOSING, "Verdict: clean → errors.", "5 new defects.")]
    lines = texts(form, payload_of(form, told, NOW, "https://reports.example.com/fleet.html"))
    assert lines[0].startswith("[kraft-audit] ERRORS 1 of 2 clusters needs repair: losing")
    assert lines.index("Verdict: clean → errors.") < lines.index("Verdict: clean → warnings.")
    assert f"losing: Errors, {LOSING.headline}" in lines
    assert f"Do first: {LOSING.to_do}"[:60] in "\n".join(lines)
    assert lines[-1] == "https://reports.example.com/fleet.html"


def test_a_program_is_told_everything_as_one_object() -> None:
    gone = failed("gone")
    body = json.loads(payload_of("json", [entry(LOSING, "1 new defect.", location="r.html"), entry(gone)], NOW))
    assert (body["source"], body["format"], body["page"]) == ("kraft-audit", 1, None)
    first, second = body["clusters"]
    assert (first["cluster"], first["failure"], first["verdict"]) == ("gone", gone.failure, "failed")
    assert (second["verdict"], second["defects"], second["gates"]) == ("errors", LOSING.defects, dict(LOSING.gates))
    assert (second["reason"], second["changes"], second["report"]) == ("change", ["1 new defect."], "r.html")


@pytest.mark.parametrize("form", ["slack", "teams", "json"])
def test_what_a_cluster_says_is_text_and_has_an_end(form: str) -> None:
    hostile = "<!channel> <https://evil.example|click> *b* [x](http://y) \ud800 \u202e" + "x" * 100_000
    runs = [replace(LOSING, cluster=f"c{n}", headline=hostile, to_do=hostile) for n in range(300)]
    body = payload_of(form, [entry(run, *[hostile] * 9) for run in runs], NOW)
    body.decode("utf-8")
    if form == "json":
        assert len(json.loads(body)["clusters"]) == 300
        return
    assert len(body) <= SIZE_LIMIT
    assert "\u202e" not in "\n".join(texts(form, body))
    if form == "slack":
        assert b"<" not in body
        assert "&lt;!channel&gt;" in texts(form, body)[2]


def settings(**more: Any) -> NotifySettings:
    return NotifySettings(url_env=URL, **{"form": "json", **more})


def test_it_is_posted_once_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = Hook()
    with serving(hook) as url:
        monkeypatch.setenv(URL, url)
        post(b'{"a": 1}', settings())
    assert hook.received == [(f"/hooks/{SECRET}", b'{"a": 1}', "application/json; charset=utf-8")]


def test_what_may_pass_is_tried_again_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    passing, refusing = Hook([503, 429, 200]), Hook([404])
    with serving(passing) as url:
        monkeypatch.setenv(URL, url)
        post(b"{}", settings(attempts=3), pause=pauses.append)
    assert (len(passing.received), pauses) == (3, [2.0, 4.0])
    with serving(refusing) as url:
        monkeypatch.setenv(URL, url)
        with pytest.raises(NotifyError) as said:
            post(b"{}", settings(attempts=3), pause=pauses.append)
    assert len(refusing.received) == 1
    assert str(said.value) == f"message by {URL} not sent: it answered 404; check the address"


def test_a_message_to_this_machine_passes_by_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    hook, proxy = Hook(), Hook()
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with serving(hook) as url, serving(proxy) as between:
        monkeypatch.setenv("http_proxy", between)
        for address in (url, url.replace("127.0.0.1", "localhost")):
            monkeypatch.setenv(URL, address)
            post(b"{}", settings())
    assert [path for path, _, _ in hook.received] == [f"/hooks/{SECRET}"] * 2
    assert proxy.received == []


def test_an_answer_that_never_ends_is_waited_for_once_and_not_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def drip(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while not over.wait(0.1):
            connection.sendall(b"a")

    with answering(drip) as (url, calls):
        monkeypatch.setenv(URL, url)
        began, pauses = time.monotonic(), list[float]()
        with pytest.raises(NotifyError, match=f"message by {URL} not sent: it did not answer in time"):
            post(b"{}", settings(attempts=3), timeout_seconds=0.5, pause=pauses.append)
        took = time.monotonic() - began
    assert took < 10
    # A call that was given up may still reach the server.
    assert (len(calls), pauses) == (1, [])


@pytest.mark.parametrize("rest", [b"Content-Length: 9\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nno chunk\r\n"])
def test_a_message_that_was_taken_is_sent_though_the_answer_breaks_off(
    monkeypatch: pytest.MonkeyPatch, rest: bytes
) -> None:
    def break_off(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + rest)
        over.wait(60)

    with answering(break_off) as (url, calls):
        monkeypatch.setenv(URL, url)
        post(b"{}", settings(attempts=3), timeout_seconds=0.5, pause=lambda _: None)
    assert len(calls) == 1


def test_no_answer_sends_the_secret_to_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Hook()
    with serving(other) as elsewhere, serving(Hook([307], elsewhere=elsewhere)) as url:
        monkeypatch.setenv(URL, url)
        with pytest.raises(NotifyError, match="it answered 307, a redirect; name the final address"):
            post(b"{}", settings())
    assert other.received == []


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("http://hooks.example.com/{}", "an address without TLS; give one with https://"),
        ("file:///etc/{}", "no address of the form https://…"),
        ("https:///{}", "no address of the form https://…"),
        ("https://[::1/{}", "no address of the form https://…"),
        ("https://a b/{}", "no address of the form https://…"),
        ("{}", "no address of the form https://…"),
    ],
)
def test_an_address_that_can_not_be_used_is_named_by_its_variable(
    monkeypatch: pytest.MonkeyPatch, address: str, why: str
) -> None:
    monkeypatch.setenv(URL, address.format(SECRET))
    with pytest.raises(NotifyError) as said:
        post(b"{}", settings())
    assert str(said.value) == f"message not sent: {URL} holds {why}"
    assert SECRET not in str(said.value)


def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(URL, raising=False)
    with pytest.raises(UsageError, match=f"notify: the environment variable {URL} is not set"):
        post(b"{}", settings())


def test_a_server_that_is_not_there_is_said_to_be_so_without_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Hook()) as url:
        pass
    monkeypatch.setenv(URL, url)
    pauses: list[float] = []
    with pytest.raises(NotifyError) as said:
        post(b"{}", settings(attempts=2), pause=pauses.append)
    assert str(said.value) == f"message by {URL} not sent: Connection refused"
    assert pauses == [2.0]


class Apprise:
    """What is used of Apprise's class of this name."""

    told: ClassVar[list[dict[str, Any]]] = []
    takes = True

    def add(self, url: str) -> bool:
        return url.startswith("pagerduty://")

    def notify(self, **said: Any) -> bool:
        self.told.append(said)
        return self.takes


@pytest.fixture
def apprise(monkeypatch: pytest.MonkeyPatch) -> type[Apprise]:
    fake = SimpleNamespace(Apprise=Apprise, NotifyFormat=SimpleNamespace(TEXT="text"))
    monkeypatch.setitem(sys.modules, "apprise", fake)
    monkeypatch.setattr(Apprise, "told", [])
    return Apprise


def test_apprise_is_given_title_and_text(apprise: type[Apprise], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, f"pagerduty://{SECRET}@key")
    by_apprise("title", "text", settings(form="apprise"))
    assert apprise.told == [{"body": "text", "title": "title", "body_format": "text"}]
    monkeypatch.setattr(apprise, "takes", False)
    pauses: list[float] = []
    with pytest.raises(NotifyError, match=f"^message by {URL} not sent: the service did not accept it$"):
        by_apprise("title", "text", settings(form="apprise", attempts=2), pause=pauses.append)
    assert pauses == [2.0]
    monkeypatch.setenv(URL, f"nothing://{SECRET}")
    with pytest.raises(NotifyError, match=f"^message not sent: {URL} has no address that Apprise accepts$"):
        by_apprise("title", "text", settings(form="apprise"))


def test_without_apprise_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(UsageError) as said:
        by_apprise("title", "text", settings(form="apprise"))
    assert str(said.value) == (
        "notify: form apprise needs the package apprise; pip install 'kraft-migration-audit[notify]'"
    )


def configured(*targets: dict[str, Any]) -> Settings:
    content = {"cluster": "c", "warehouse": "w", "kraft": {"folders": ["k"]}, "notify": list(targets)}
    return Settings.model_validate(content)


def test_an_address_is_told_once_of_all_clusters_by_each_ones_policy() -> None:
    runs = [run_of(healthy(), "fine"), LOSING, run_of(lagging(), "late")]
    told = {"fine": "fine-x", "losing": "losing-x", "late": "late-x"}
    before = [replace(run, run_id=told[run.cluster], started_at=run.started_at - timedelta(hours=9)) for run in runs]
    newest = {(URL, name): LastMail(run_id, NOW - timedelta(hours=9)) for name, run_id in told.items()}
    each = configured({"url_env": URL}, {"url_env": "OTHER", "send": "when_red", "form": "slack"})
    # What the other address was told of `fine` and `losing` is not known to be anything.
    newest |= {("OTHER", name): LastMail(told[name], NOW - timedelta(hours=9)) for name in ("fine", "late")}
    found = messages.messages(dict.fromkeys(told, each), [*before, *runs], LOSING.started_at, newest, {})
    assert {made.settings.url_env: [each.run.cluster for each in made.entries] for made in found} == {
        URL: ["losing"],
        "OTHER": ["late", "losing"],
    }
    other = next(made for made in found if made.settings.url_env == "OTHER")
    assert "This is the first message about this cluster." in other.entries[1].decision.changes


def test_changes_that_are_left_out_are_counted() -> None:
    many = [f"Change {number:02}." for number in range(30)]
    told = lines_of([entry(LOSING, *many)], NOW)
    assert told[1:6] == [*many[:4], "and 26 more changes"]
    [alone, several] = (
        body(message, "plain")
        for message in (
            render_mail(defective(), decision=Decision("change", tuple(many))),
            render_fleet_mail([entry(LOSING, *many), entry(run_of(lagging(), "late"), *many[:8])], [], NOW),
        )
    )
    assert "  Change 11.\n  and 18 more changes\n" in alone
    assert "* Change 07.\n    * and 22 more changes\n" in several
    assert several.count("more changes") == 1


@pytest.mark.parametrize("without", ["REMOVED", "DEAD"])
def test_what_verify_found_is_told_once_to_each_address(monkeypatch: pytest.MonkeyPatch, without: str) -> None:
    """Another address that was not told of it, because it is configured no longer or does not answer, makes nobody's message twice."""
    first, told, now = (
        run_of(healthy(), "c", ago, run_id=name, sequence=number)
        for number, (name, ago) in enumerate({"r1": 9, "r2": 5, "r3": 1}.items(), 1)
    )
    owed = replace(LastMail("r2", told.finished_at, "it answered 500"), earlier=LastMail("r1", first.finished_at))
    last = {"REMOVED": LastMail("r1", first.finished_at), "DEAD": owed}[without]
    run: Any = SimpleNamespace(
        clusters={"c": SimpleNamespace(settings=configured({"url_env": URL}, {"url_env": "DEAD"}))},
        started_at=now.started_at,
        newest_messages={(URL, "c"): LastMail("r2", told.finished_at), ("DEAD", "c"): owed, (without, "c"): last},
    )
    found = Verified("r1", first.finished_at + timedelta(hours=1), "does NOT match its evidence: 1 row of gold.checks")
    known = publishing._Known([first, told, now], verified={"c": found})
    given: list[Message] = []
    monkeypatch.setattr(publishing, "_kept", lambda *_: True)
    monkeypatch.setattr(messages, "deliver", lambda made, *_: given.extend(made) or Delivery())
    publishing._messages(publishing.Published(), run, known, {}, partial(publishing._notices, run, known, {}), None)
    assert [made.settings.url_env for made in given] == ["DEAD"]
    assert found.words in given[0].entries[0].decision.changes


def test_one_addresss_fault_is_its_own_and_what_was_tried_is_kept_without_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hook = Hook()
    with serving(hook) as url:
        monkeypatch.setenv(URL, url)
        monkeypatch.delenv("OTHER", raising=False)
        made = [
            Message(NotifySettings(url_env="OTHER"), (entry(LOSING),), {"losing": "always"}),
            Message(settings(form="teams"), (entry(LOSING),), {"losing": "on_change"}),
        ]
        delivery = messages.deliver(made, "page")
    assert delivery.problems == ["notify: the environment variable OTHER is not set"]
    assert delivery.lines == [f"Message      {URL}"]
    assert [(row["channel"], row["policy"], row["problem"]) for row in delivery.rows] == [
        ("OTHER", "always", "notify: the environment variable OTHER is not set"),
        (URL, "on_change", None),
    ]
    assert SECRET not in repr(delivery)
    assert "losing" in texts("teams", hook.received[0][1])[0]


def test_an_address_is_configured_once() -> None:
    with pytest.raises(ValueError, match="name each url_env once"):
        configured({"url_env": URL}, {"url_env": URL, "form": "slack"})


def test_a_subject_shows_that_there_is_a_notice_beside_the_verdict() -> None:
    """Tables that do not match their evidence are no verdict: a reader who looks at subjects alone would go on."""
    run, notice = run_of(healthy(), "prod"), "Verified 2026-11-28 10:00 UTC: run r differs."
    told = decide(Policy("on_change", 24.0), run, [run], LastMail(run.run_id, NOW), [notice])
    assert told == Decision("change", (notice,), has_notices=True)
    [quiet, noticed] = (
        [
            str(render_mail(healthy(), decision=decision)["Subject"]),
            str(render_fleet_mail([MailEntry(run, healthy(), decision)], [], NOW)["Subject"]),
            title_of([MailEntry(run, None, decision)], NOW),
        ]
        for decision in (replace(told, has_notices=False), told)
    )
    assert [each.startswith("[kraft-audit] CLEAN ") for each in quiet] == [True] * 3
    assert noticed == [each.replace(" CLEAN ", " CLEAN, WITH NOTICE ") for each in quiet]
    assert " ERRORS prod-us " in str(render_mail(defective(), decision=told)["Subject"])
