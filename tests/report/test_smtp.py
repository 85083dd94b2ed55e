"""Mail goes through a real SMTP server on loopback: encrypted, logged in, and with one clear line when it can't."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, Envelope, LoginPassword, Session

from jobs.exit import UsageError
from jobs.settings import MailSettings
from jobs.sinks.mail import MailError, SentMail, addressed, recipients_of, send
from jobs.steps import mails
from schemas.report import Report
from tests.certificates import Certificate, self_signed
from tests.report.fleets import run_of
from tests.report.samples import defective, healthy, lagging
from transforms.report.mail import render_mail
from transforms.report.mail_policy import Decision

PASSWORD = "correct horse battery"
USER = "audit"
Received = list[tuple[str, list[str], bytes]]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("tls"))


class Mailbox:
    """Keeps what the server took; refuses recipients of `refused.example`."""

    def __init__(self) -> None:
        self.received: Received = []

    async def handle_RCPT(  # noqa: N802 - the server's own hook
        self, server: Any, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if address.endswith("@refused.example"):
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        self.received.append((envelope.mail_from or "", envelope.rcpt_tos, envelope.content))
        return "250 taken"


def authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    known = isinstance(data, LoginPassword) and (data.login, data.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


@contextmanager
def running(mailbox: Mailbox, **options: Any) -> Iterator[int]:
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port(), **options)
    controller.start()
    try:
        yield controller.port
    finally:
        controller.stop()


@contextmanager
def secured(mailbox: Mailbox, certificate: Certificate) -> Iterator[int]:
    """A server that takes mail only after STARTTLS and a login."""
    with running(
        mailbox, tls_context=certificate.server(), require_starttls=True, auth_required=True, authenticator=authenticate
    ) as port:
        yield port


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings_for(port: int, **changes: Any) -> MailSettings:
    return MailSettings(
        **{
            "host": "127.0.0.1",
            "port": port,
            "username_env": "SMTP_USER",
            "password_env": "SMTP_PASSWORD",
            "sender": "Kafka audit <audit@example.com>",
            "recipients": ["team@example.com"],
            "error_recipients": ["oncall@example.com", "team@example.com"],
            "attempts": 1,
            **changes,
        }
    )


def send_report(
    report: Report,
    settings: MailSettings,
    *,
    location: str = "",
    context: ssl.SSLContext | None = None,
    timeout_seconds: float = 30.0,
) -> SentMail:
    """Send a cluster's own mail as a run does."""
    about = {report.cluster: report.run_id}
    message = addressed(render_mail(report, location), recipients_of(report, settings), settings, about)
    return send(message, settings, context=context, timeout_seconds=timeout_seconds)


@pytest.fixture(autouse=True)
def _login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_USER", USER)
    monkeypatch.setenv("SMTP_PASSWORD", PASSWORD)


def test_starttls_and_login_deliver_the_report(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with secured(mailbox, certificate) as port:
        sent = send_report(defective(), settings_for(port), location="/srv/r.html", context=certificate.client())
    assert sent.recipients == ["team@example.com", "oncall@example.com"]
    assert sent.refused == []
    [(sender, recipients, content)] = mailbox.received
    assert sender == "audit@example.com"
    assert recipients == ["team@example.com", "oncall@example.com"]
    assert len(content) <= 100_000
    message = message_from_bytes(content, policy=SMTP_POLICY)
    assert str(message["Subject"]).startswith("[kraft-audit] ERRORS prod-us ")
    assert message["From"] == "Kafka audit <audit@example.com>"
    assert message["Bcc"] is None
    assert str(message["Message-ID"]).endswith("@example.com>")
    assert PASSWORD.encode() not in content


def test_implicit_tls_delivers(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with _implicit_tls(mailbox, certificate) as port:
        send_report(healthy(), settings_for(port, security="tls", **NO_LOGIN), context=certificate.client())
    assert [recipients for _, recipients, _ in mailbox.received] == [["team@example.com"]]


def test_the_same_run_has_the_same_message_id(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with secured(mailbox, certificate) as port:
        for _ in range(2):
            send_report(healthy(), settings_for(port), context=certificate.client())
    first, second = (message_from_bytes(content)["Message-ID"] for _, _, content in mailbox.received)
    assert first == second


def test_a_refused_recipient_is_named_and_the_others_get_it(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with secured(mailbox, certificate) as port:
        settings = settings_for(port, recipients=["team@example.com", "gone@refused.example"])
        sent = send_report(healthy(), settings, context=certificate.client())
    assert sent.refused == ["gone@refused.example"]
    assert [recipients for _, recipients, _ in mailbox.received] == [["team@example.com"]]


def failure(report: Report, settings: MailSettings, context: ssl.SSLContext | None = None) -> str:
    with pytest.raises(MailError) as caught:
        send_report(report, settings, context=context, timeout_seconds=1.0)
    message = str(caught.value)
    assert "\n" not in message
    assert PASSWORD not in message
    assert caught.value.__cause__ is None
    # The cause may repeat what was sent to the server.
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return message


def test_a_wrong_password_names_the_variables(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "wrong-secret")
    with secured(Mailbox(), certificate) as port:
        message = failure(healthy(), settings_for(port), certificate.client())
    assert message.endswith("the server refused the login; check the variables SMTP_USER and SMTP_PASSWORD")
    assert "wrong-secret" not in message


def test_an_untrusted_certificate_is_refused(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with secured(mailbox, certificate) as port:
        message = failure(healthy(), settings_for(port))
    assert "its certificate is not trusted; name your CA's file in SSL_CERT_FILE" in message
    assert mailbox.received == []


def test_a_server_without_starttls_gets_no_password() -> None:
    mailbox = Mailbox()
    with running(mailbox) as port:
        assert "offers no STARTTLS" in failure(healthy(), settings_for(port))
        assert "a password needs `security: starttls` or `tls`" in failure(
            healthy(), settings_for(port, security="none")
        )
    assert mailbox.received == []


def test_every_recipient_refused(certificate: Certificate) -> None:
    with secured(Mailbox(), certificate) as port:
        message = failure(healthy(), settings_for(port, recipients=["gone@refused.example"]), certificate.client())
    assert "the server refused every recipient (gone@refused.example)" in message


def test_nothing_listens() -> None:
    assert "nothing listens there" in failure(healthy(), settings_for(free_port()))


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "did not answer in time" in failure(healthy(), settings_for(port, security="none", **NO_LOGIN))


def test_a_server_that_drips_its_greeting_keeps_no_run_waiting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection = server.accept()[0]
            with suppress(OSError):
                while True:
                    connection.sendall(b"2")
                    time.sleep(0.05)

        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(MailError, match="did not answer in time") as refused:
            send_report(
                healthy(),
                settings_for(server.getsockname()[1], security="none", attempts=3, **NO_LOGIN),
                timeout_seconds=0.2,
            )
    assert not refused.value.passing


def test_no_such_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_arguments: object, **_options: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert failure(healthy(), settings_for(25, host="mail.invalid")) == (
        "mail to mail.invalid:25 not sent: unknown host; check `host`"
    )


def test_an_unset_variable_is_named(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMTP_PASSWORD")
    with secured(Mailbox(), certificate) as port, pytest.raises(UsageError, match="SMTP_PASSWORD is not set"):
        send_report(healthy(), settings_for(port), context=certificate.client())


NO_LOGIN: dict[str, Any] = {"username_env": None, "password_env": None}


@contextmanager
def _implicit_tls(mailbox: Mailbox, certificate: Certificate) -> Iterator[int]:
    with running(mailbox, ssl_context=certificate.server()) as port:
        yield port


class Busy(Mailbox):
    """Says "later" a few times before it takes a mail."""

    def __init__(self, refusals: int) -> None:
        super().__init__()
        self.refusals = refusals

    async def handle_DATA(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.refusals -= 1
        if self.refusals >= 0:
            return "451 try again later"
        return await super().handle_DATA(server, session, envelope)


class Parting(Mailbox):
    """Answers QUIT in a way of its own."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer

    async def handle_QUIT(self, server: Any, session: Session, envelope: Envelope) -> str:  # noqa: N802
        return self.answer


def letter() -> EmailMessage:
    settings = settings_for(1)
    return addressed(render_mail(healthy()), ["team@example.com"], settings, {"prod-eu": "r"})


@pytest.mark.parametrize(("attempts", "is_sent"), [(3, True), (2, False)])
def test_a_server_that_says_later_is_tried_again_with_growing_pauses(attempts: int, is_sent: bool) -> None:
    mailbox, pauses = Busy(2), list[float]()
    with running(mailbox) as port:
        settings = settings_for(port, security="none", attempts=attempts, **NO_LOGIN)
        if is_sent:
            assert send(letter(), settings, pause=pauses.append).recipients == ["team@example.com"]
        else:
            with pytest.raises(MailError, match="the server answered 451 try again later"):
                send(letter(), settings, pause=pauses.append)
    assert pauses == [2.0, 4.0][: attempts - 1]
    assert len(mailbox.received) == int(is_sent)


def test_what_will_not_pass_is_not_tried_again(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = list[float]()
    monkeypatch.setenv("SMTP_PASSWORD", "wrong")
    with secured(Mailbox(), certificate) as port, pytest.raises(MailError, match="refused the login"):
        send(letter(), settings_for(port, attempts=5), context=certificate.client(), pause=pauses.append)
    gone = addressed(render_mail(healthy()), ["x@refused.example"], settings_for(1), {"prod-eu": "r"})
    with running(Mailbox()) as port, pytest.raises(MailError, match="refused every recipient"):
        send(gone, settings_for(port, security="none", attempts=5, **NO_LOGIN), pause=pauses.append)
    assert pauses == []


def test_a_fleet_goes_out_as_one_mail_for_those_who_share_it(certificate: Certificate) -> None:
    mailbox = Mailbox()
    with secured(mailbox, certificate) as port:
        shared = settings_for(port, send="on_change")
        changed = Decision("change", ("Verdict: clean → errors.",))
        found = [
            mails.Candidate(shared, run_of(report, name), report, decision, "")
            for name, report, decision in (
                ("losing", defective(), changed),
                ("late", lagging(), changed),
                ("fine", healthy(), Decision()),
            )
        ]

        def sender(message: EmailMessage, settings: MailSettings) -> SentMail:
            return send(message, settings, context=certificate.client())

        delivery = mails.deliver(mails.letters(found), "", None, sender)
    assert delivery.problems == []
    assert sorted(recipients for _, recipients, _ in mailbox.received) == [["oncall@example.com"], ["team@example.com"]]
    to_team = next(content for _, recipients, content in mailbox.received if recipients == ["team@example.com"])
    message = message_from_bytes(to_team, policy=SMTP_POLICY)
    assert str(message["Subject"]) == "[kraft-audit] ERRORS 1 of 3 clusters needs repair: losing"
    assert {row["cluster"] for row in delivery.rows} == {"losing", "late"}


@pytest.mark.parametrize("answer", ["421 4.4.2 timeout", "500 what"])
def test_a_mail_that_was_taken_is_sent_whatever_the_server_says_at_parting(answer: str) -> None:
    mailbox = Parting(answer)
    with running(mailbox) as port:
        settings = settings_for(port, security="none", attempts=3, **NO_LOGIN)
        assert send(letter(), settings, pause=lambda _: None).recipients == ["team@example.com"]
    assert len(mailbox.received) == 1


def test_what_the_server_says_at_parting_hides_no_reason() -> None:
    with running(Parting("500 what")) as port:
        settings = settings_for(port, recipients=["gone@refused.example"], security="none", **NO_LOGIN)
        assert "the server refused every recipient (gone@refused.example)" in failure(healthy(), settings)
