"""Sends messages to chats, pagers and programs by HTTP: retries if that may help; a failure is one line.

An address holds a secret: it comes from an environment variable, which messages name instead, goes over TLS unless it is this very
machine's, which no proxy gets, and is never sent to the target of a redirect.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from http.client import HTTPException
from ipaddress import ip_address
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from jobs.exit import UsageError
from jobs.settings import NotifySettings, secret_from_environment
from jobs.sinks.attempts import NotSentError, repeated
from jobs.sinks.deadline import within

TIMEOUT_SECONDS = 15.0
# A call may take so many times the timeout of its single steps.
_WHOLE_CALL = 2.0
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_NO_ANSWER = "it did not answer in time; check the address and the firewall"
_EXTRA = "pip install 'kraft-migration-audit[notify]'"


class NotifyError(NotSentError):
    """The message was not sent; the text is one line: by which variable, why, what to do."""


class NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: another server must not get a secret that is meant for this one."""

    def redirect_request(self, *_: Any) -> None:
        """Refuse it: the answer then counts as an error."""


def post(
    body: bytes,
    settings: NotifySettings,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """POST a JSON text, `settings.attempts` times at most, with pauses of 2, 4, 8 … seconds.

    Only what may pass is tried again: no answer, a broken connection, "later" (408, 425, 429) and a server's own faults (500 to
    504). `timeout_seconds` is one of each step of a call; the whole call may take twice as long, and is not tried again then. Raises
    NotifyError, and UsageError when the variable is not set.
    """
    url = _address(settings)
    repeated(lambda: _post_once(body, url, settings, timeout_seconds), settings.attempts, pause)


def by_apprise(title: str, text: str, settings: NotifySettings, *, pause: Callable[[float], None] = time.sleep) -> None:
    """Send a text by Apprise, whose form of address the variable holds. Raises NotifyError and UsageError."""
    try:
        import apprise  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError(f"notify: form apprise needs the package apprise; {_EXTRA}") from None
    service = apprise.Apprise()
    if not service.add(secret_from_environment(settings.url_env, "notify")):
        raise NotifyError(f"message not sent: {settings.url_env} has no address that Apprise accepts")

    def once() -> None:
        if not service.notify(body=text, title=title, body_format=apprise.NotifyFormat.TEXT):
            raise NotifyError(f"message by {settings.url_env} not sent: the service did not accept it", passing=True)

    repeated(once, settings.attempts, pause)


def _address(settings: NotifySettings) -> str:
    url = secret_from_environment(settings.url_env, "notify")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host or not url.isascii() or not url.isprintable() or " " in url:
        raise NotifyError(f"message not sent: {settings.url_env} holds no address of the form https://…")
    if parts.scheme == "http" and not _is_this_machine(host):
        raise NotifyError(f"message not sent: {settings.url_env} holds an address without TLS; give one with https://")
    return url


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _post_once(body: bytes, url: str, settings: NotifySettings, timeout_seconds: float) -> None:
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "kraft-audit"}
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - `_address` lets http and https pass
    # To a proxy, this machine's own address is another machine's, and the secret would go to it in clear.
    direct = [ProxyHandler({})] if _is_this_machine(urlsplit(url).hostname or "") else []

    def call() -> Exception | None:
        try:
            # An answer of 2xx says that the message was taken. Its text is not read: that may fail, and changes nothing.
            build_opener(NoRedirect, *direct).open(request, timeout=timeout_seconds).close()
        except (OSError, HTTPException, ValueError) as error:
            return error
        return None

    try:
        error = within(_WHOLE_CALL * timeout_seconds, call)
    except TimeoutError:
        # Not `passing`: this call may still reach the server, and a second one beside it would send the message twice.
        raise NotifyError(f"message by {settings.url_env} not sent: {_NO_ANSWER}") from None
    if error is not None:
        raise NotifyError(f"message by {settings.url_env} not sent: {_reason(error)}", passing=_is_passing(error))


def _is_passing(error: Exception) -> bool:
    if isinstance(error, HTTPError):
        return error.code in _LATER
    cause = error.reason if isinstance(error, URLError) else error
    return isinstance(cause, OSError | HTTPException) and not isinstance(cause, ssl.SSLError)


def _reason(error: Exception) -> str:
    # The server's own words are left out: some repeat what they were sent. The address is a secret.
    if isinstance(error, HTTPError):
        if 300 <= error.code < 400:
            return f"it answered {error.code}, a redirect; name the final address"
        return f"it answered {error.code}; check the address"
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return "its certificate is not trusted; name your CA's file in SSL_CERT_FILE"
    if isinstance(cause, ssl.SSLError):
        return "the encrypted connection failed"
    if isinstance(cause, TimeoutError):
        return _NO_ANSWER
    return (isinstance(cause, OSError) and cause.strerror) or type(cause).__name__
