"""Sends mails by SMTP: who gets a report, tries again when that may help, and one clear line when it can't be sent.

The password comes from an environment variable and is sent to the server only, never without encryption. A private
certificate authority is named by the usual SSL_CERT_FILE variable.
"""

from __future__ import annotations

import hashlib
import smtplib
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from jobs.addresses import mail_domain
from jobs.settings import MailSettings, secret_from_environment
from jobs.sinks.attempts import NotSentError, repeated
from jobs.sinks.deadline import within
from schemas.report import Report
from transforms.report.printable import visible

TIMEOUT_SECONDS = 30.0
# A mail may take so many times the timeout of its single steps.
_WHOLE_MAIL = 10.0
_NO_ANSWER = "the server did not answer in time; check `host`, `port` and the firewall"


class MailError(NotSentError):
    """The mail was not sent; the text is one line: which server, why, what to do."""


@dataclass(frozen=True)
class SentMail:
    """A mail the server took: for whom, and whom it refused."""

    recipients: list[str]
    refused: list[str]


def send(
    message: EmailMessage,
    settings: MailSettings,
    *,
    context: ssl.SSLContext | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> SentMail:
    """Send an addressed message, `settings.attempts` times at most, with pauses of 2, 4, 8 … seconds.

    Only temporary errors are tried again: a server that does not answer, breaks off or answers "later" (4xx). `timeout_seconds`
    is one of each step; the whole mail may take ten times as long, and is not tried again then. Raises MailError
    when the server can't be reached, trusted or satisfied, and UsageError when an environment variable the settings name is not
    set.
    """

    def once() -> SentMail:
        try:
            return within(
                _WHOLE_MAIL * timeout_seconds, lambda: _send_once(message, settings, context, timeout_seconds)
            )
        except TimeoutError:
            # Not tried again: the server may still take this one.
            raise MailError(f"mail to {settings.host}:{settings.port} not sent: {_NO_ANSWER}") from None

    return repeated(once, settings.attempts, pause)


def _send_once(
    message: EmailMessage, settings: MailSettings, context: ssl.SSLContext | None, timeout_seconds: float
) -> SentMail:
    server = f"{settings.host}:{settings.port}"
    with _one_line_errors(server, settings), _connect(settings, context, timeout_seconds) as connection:
        _log_in(connection, settings, server)
        refused = connection.send_message(message)
    recipients = [str(address) for address in message["To"].addresses]
    return SentMail(recipients, [visible(address, 200) for address in sorted(refused)])


def recipients_of(report: Report | None, settings: MailSettings) -> list[str]:
    """The addresses that get this report: the recipients, and with errors also the error recipients, each once.

    Errors that are only suppressed differences do not count: the audit was judged without them as well. An audit that failed
    has no report and is an error.
    """
    alarming = report is None or (report.unsuppressed_verdict or report.verdict) == "errors"
    wanted = [*settings.recipients, *(settings.error_recipients if alarming else [])]
    return list(dict.fromkeys(wanted))


def addressed(
    message: EmailMessage, recipients: Sequence[str], settings: MailSettings, about: Mapping[str, str]
) -> EmailMessage:
    """Add sender, recipients, date and a message id that is the same when one mail is sent twice.

    `about` are the ids of its runs, by cluster.
    """
    message["From"] = settings.sender
    message["To"] = ", ".join(recipients)
    message["Date"] = format_datetime(datetime.now(UTC))
    which = "\0".join(f"{cluster}\0{run_id}" for cluster, run_id in sorted(about.items()))
    whom = "\0".join(recipients)
    name = hashlib.sha256(f"{which}\0{whom}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
    message["Message-ID"] = f"<kraft-audit-{name}@{mail_domain(settings.sender)}>"
    return message


@contextmanager
def _connect(settings: MailSettings, context: ssl.SSLContext | None, timeout: float) -> Iterator[smtplib.SMTP]:
    trusted = context or ssl.create_default_context()
    if settings.security == "tls":
        connection: smtplib.SMTP = smtplib.SMTP_SSL(settings.host, settings.port, timeout=timeout, context=trusted)
    else:
        connection = smtplib.SMTP(settings.host, settings.port, timeout=timeout)
    # Not smtplib's own `with`: there an unexpected answer to QUIT is an error, although the server has taken the mail.
    try:
        if settings.security == "starttls":
            connection.starttls(context=trusted)
        yield connection
    except Exception:
        _quit(connection)
        raise
    else:
        _quit(connection)
    finally:
        connection.close()


def _quit(connection: smtplib.SMTP) -> None:
    """Say goodbye. The answer changes nothing about the mail."""
    with suppress(smtplib.SMTPException, OSError):
        connection.quit()


def _log_in(connection: smtplib.SMTP, settings: MailSettings, server: str) -> None:
    if settings.username_env is None or settings.password_env is None:
        return
    if settings.security == "none":
        raise MailError(
            f"mail to {server} not sent: a password needs `security: starttls` or `tls` in the mail settings"
        )
    username = secret_from_environment(settings.username_env, "mail settings")
    connection.login(username, secret_from_environment(settings.password_env, "mail settings"))


@contextmanager
def _one_line_errors(server: str, settings: MailSettings) -> Iterator[None]:
    try:
        yield
    except (smtplib.SMTPException, OSError, UnicodeError) as error:
        raise MailError(f"mail to {server} not sent: {_reason(error, settings)}", passing=_is_passing(error)) from None


def _is_passing(error: Exception) -> bool:
    """Whether the mail may go through later: no answer, a broken connection, an answer of 4xx."""
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return all(400 <= code < 500 for code, _ in error.recipients.values())
    if isinstance(error, smtplib.SMTPResponseException):
        return 400 <= error.smtp_code < 500
    if isinstance(error, smtplib.SMTPServerDisconnected):
        return True
    return isinstance(error, OSError) and not isinstance(error, ssl.SSLError | smtplib.SMTPException)


def _reason(error: Exception, settings: MailSettings) -> str:
    # smtplib reports a time-out while it waits for an answer as a lost connection.
    cause = error.__context__ if isinstance(error.__context__, TimeoutError) else error
    for kind, words in _REASONS:
        if isinstance(cause, kind):
            return words(error, settings)
    return f"{type(error).__name__}; check `host`, `port` and `security` in the mail settings"


def _refused(error: Exception, _settings: MailSettings) -> str:
    refused = error.recipients if isinstance(error, smtplib.SMTPRecipientsRefused) else {}
    return f"the server refused every recipient ({visible(', '.join(sorted(refused)), 200)}); check `recipients`"


def _answer(error: Exception, _settings: MailSettings) -> str:
    code, text = (error.smtp_code, error.smtp_error) if isinstance(error, smtplib.SMTPResponseException) else (0, b"")
    said = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return f"the server answered {code} {visible(said, 200)}"


def _authentication(_error: Exception, settings: MailSettings) -> str:
    # The server's own words are left out: some repeat what they were sent.
    return f"the server refused the login; check the variables {settings.username_env} and {settings.password_env}"


def _fixed(words: str) -> Callable[[Exception, MailSettings], str]:
    return lambda _error, _settings: words


# First match wins: the special before the general.
_REASONS: tuple[tuple[type[Exception], Callable[[Exception, MailSettings], str]], ...] = (
    (smtplib.SMTPAuthenticationError, _authentication),
    (smtplib.SMTPRecipientsRefused, _refused),
    (smtplib.SMTPResponseException, _answer),
    (smtplib.SMTPNotSupportedError, _fixed("the server offers no STARTTLS or login; check `port` and `security`")),
    (smtplib.SMTPServerDisconnected, _fixed("the server closed the connection; check `port` and `security`")),
    (ssl.SSLCertVerificationError, _fixed("its certificate is not trusted; name your CA's file in SSL_CERT_FILE")),
    (ssl.SSLError, _fixed("the encrypted connection failed; check `port` and `security`")),
    (socket.gaierror, _fixed("unknown host; check `host`")),
    (TimeoutError, _fixed(_NO_ANSWER)),
    (ConnectionRefusedError, _fixed("nothing listens there; check `host` and `port`")),
)
