"""One connection to a controller: TCP, TLS, SASL, then one request at a time.

A controller that is frozen, killed or needs credentials fails in different ways, and each has its own message.
No text of this module contains a password or a token.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jobs.addresses import host_and_port
from jobs.sources.kraft.live import messages
from jobs.sources.kraft.live.errors import ConnectionLostError, QuorumError, RefusedError
from jobs.sources.kraft.live.messages import GarbledAnswerError, WireRequest

# Controllers answer with 8 MiB at most; a frame that claims more than this is not one of theirs.
MOST_ANSWER_BYTES = 64 * 1024 * 1024
# An answer that comes slower than this is one that may never end.
LEAST_BYTES_A_SECOND = 16 * 1024
_SASL_ROUNDS = 10
_PART_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Endpoint:
    """Host and port of a controller's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Security:
    """Security of a connection to a controller: protocol as in `security.protocol`; with a client certificate TLS is mutual."""

    protocol: str = "PLAINTEXT"
    mechanism: str | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    certificate_file: Path | None = None
    key_file: Path | None = None
    key_password: str | None = field(default=None, repr=False)
    verify: bool = True
    verify_hostname: bool = True

    @property
    def tls(self) -> bool:
        """True when the connection is encrypted."""
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        """True when the client names itself by SASL."""
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")


def parse_endpoint(text: str) -> Endpoint:
    """Read `host:port` or `[address]:port`. Raises ValueError."""
    try:
        return Endpoint(*host_and_port(text))
    except ValueError:
        raise ValueError(f"{text!r} is not host:port") from None


class _TooSlowError(TimeoutError):
    """An answer comes, and would take too long."""


class Connection:
    """An open connection. `versions` are least and greatest version by API key, as the controller offers them."""

    def __init__(
        self, endpoint: Endpoint, sock: socket.socket, seconds: float, *, sasl: bool, answer_seconds: float = 300.0
    ) -> None:
        self.endpoint = endpoint
        self.versions: dict[int, tuple[int, int]] = {}
        self._socket = sock
        self._seconds = seconds
        self._answer_seconds = answer_seconds
        self._sasl = sasl
        self._correlation_id = 0
        self._answers = 0

    @staticmethod
    def open(endpoint: Endpoint, security: Security, seconds: float, answer_seconds: float = 300.0) -> Connection:
        """Connect and authenticate. `seconds` bound a silence, `answer_seconds` an answer.

        Raises ConnectionLostError, RefusedError.
        """
        sock = _connected(endpoint, security, seconds)
        connection = Connection(endpoint, sock, seconds, sasl=security.sasl, answer_seconds=answer_seconds)
        try:
            connection._ask_versions()
            if security.sasl:
                connection._authenticate(security)
        except BaseException:
            connection.close()
            raise
        return connection

    def ask(self, request: WireRequest) -> Any:
        """Send a request and wait for its answer (the library's message).

        Raises ConnectionLostError on a timeout; the connection cannot be used after that. A large answer may take longer than a
        controller may be silent, as long as it arrives at `LEAST_BYTES_A_SECOND`, up to a limit.
        """
        self._correlation_id += 1
        try:
            self._socket.settimeout(self._seconds)
            self._socket.sendall(messages.frame(request, self._correlation_id))
            size = int.from_bytes(self._read(4), "big")
            if size > MOST_ANSWER_BYTES:
                raise ConnectionLostError(
                    f"{self.endpoint} did not answer in Kafka's protocol ({size} bytes); does it expect TLS?"
                )
            answer = messages.decode(request, self._correlation_id, self._read(size))
        except _TooSlowError as error:
            raise ConnectionLostError(f"{self.endpoint} {error}") from None
        except TimeoutError:
            raise ConnectionLostError(f"{self.endpoint} did not answer within {self._seconds:g} s") from None
        except ssl.SSLError as error:
            # Since TLS 1.3 a server refuses a client's certificate only after the handshake.
            kind = RefusedError if self._answers == 0 else ConnectionLostError
            raise kind(f"{self.endpoint} ended TLS: {_tls_reason(error)}") from None
        except OSError:
            raise ConnectionLostError(f"{self.endpoint} {self._why_lost()}") from None
        except GarbledAnswerError as error:
            raise ConnectionLostError(f"{self.endpoint} sent {error}") from None
        self._answers += 1
        return answer

    def close(self) -> None:
        """Close the connection; nothing is raised."""
        with contextlib.suppress(OSError):
            self._socket.close()

    def version(self, key: int, least: int, most: int) -> int:
        """The greatest version of a request that both sides support. Raises RefusedError when there is none."""
        low, high = self.versions.get(key, (0, -1))
        if high < least or low > most or high < low:
            raise RefusedError(
                f"{self.endpoint} does not offer what reading the quorum needs (API key {key}, version {least} to "
                f"{most}): is it a controller's listener, of Kafka 3.5 or newer?"
            )
        return min(high, most)

    def _read(self, size: int) -> bytes:
        """Exactly `size` bytes; room is made as they come. Raises TimeoutError when none come for a while, or too slowly."""
        data = bytearray()
        started = time.monotonic()
        while len(data) < size:
            allowed = min(self._seconds + len(data) / LEAST_BYTES_A_SECOND, self._answer_seconds)
            left = started + allowed - time.monotonic()
            if left <= 0:
                raise _TooSlowError(f"did not answer within {allowed:.2g} s: its answer comes too slowly")
            self._socket.settimeout(min(self._seconds, left))
            try:
                part = self._socket.recv(min(size - len(data), _PART_BYTES))
            except TimeoutError:
                if not data or left >= self._seconds:
                    raise
                continue
            if not part:
                raise ConnectionLostError(f"{self.endpoint} {self._why_lost()}")
            data += part
        return bytes(data)

    def _why_lost(self) -> str:
        """What a closed connection means: before the first answer it is mostly the wrong protocol."""
        if self._answers == 0:
            return "closed the connection without an answer; does its listener speak another security protocol?"
        if self._answers == 1 and not self._sasl:
            return "closed the connection at the first request; does its listener want SASL?"
        return "closed the connection"

    def _ask_versions(self) -> None:
        error, self.versions = messages.offered(self.ask(messages.api_versions()))
        if error not in (messages.NONE, messages.UNSUPPORTED_VERSION):
            raise ConnectionLostError(f"{self.endpoint} answered ApiVersions with {messages.error_name(error)}")

    def _authenticate(self, security: Security) -> None:
        mechanism, name = security.mechanism or "", security.username or ""
        shaken = messages.sasl_answer(self.ask(messages.sasl_handshake(mechanism)))
        if shaken.error != messages.NONE:
            offers = ", ".join(shaken.mechanisms) or "none"
            raise RefusedError(f"{self.endpoint} does not take SASL mechanism {mechanism}; it offers {offers}")
        try:
            self._exchange_tokens(mechanism, name, security.password or "")
        except QuorumError:
            raise
        except Exception:
            # The mechanism refused the other side's token; its message could show parts of it.
            raise RefusedError(
                f"{self.endpoint} did not prove that it knows the password of {name!r} ({mechanism})"
            ) from None

    def _exchange_tokens(self, mechanism: str, name: str, password: str) -> None:
        client = messages.sasl_mechanism(mechanism, name, password, self.endpoint.host)
        for _ in range(_SASL_ROUNDS):
            if client.is_done():
                break
            answer = messages.sasl_answer(self.ask(messages.sasl_authenticate(client.auth_bytes())))
            if answer.error == messages.SASL_AUTHENTICATION_FAILED:
                raise RefusedError(f"{self.endpoint} refused user {name!r} or the password ({mechanism})")
            if answer.error != messages.NONE:
                raise RefusedError(f"{self.endpoint} refused user {name!r}: {messages.error_name(answer.error)}")
            client.receive(answer.token)
        if not client.is_authenticated():
            raise RefusedError(f"{self.endpoint} refused user {name!r} ({mechanism})")


def _connected(endpoint: Endpoint, security: Security, seconds: float) -> socket.socket:
    context = tls_context(security) if security.tls else None
    try:
        sock = socket.create_connection((endpoint.host, endpoint.port), timeout=seconds)
    except (socket.gaierror, UnicodeError):
        # Python itself refuses names with an empty or too long part.
        raise ConnectionLostError(f"{endpoint}: no such host") from None
    except TimeoutError:
        raise ConnectionLostError(f"{endpoint} could not be reached within {seconds:g} s") from None
    except OSError as error:
        raise ConnectionLostError(f"{endpoint}: {(error.strerror or str(error)).lower()}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if context is None:
        return sock
    try:
        return context.wrap_socket(sock, server_hostname=endpoint.host)
    except BaseException as error:
        sock.close()
        raise _tls_error(endpoint, error, seconds) from None


def _tls_error(endpoint: Endpoint, error: BaseException, seconds: float) -> BaseException:
    if isinstance(error, ssl.SSLCertVerificationError):
        return RefusedError(f"{endpoint}: its certificate is not accepted: {error.verify_message}")
    if isinstance(error, ssl.SSLError):
        return RefusedError(f"{endpoint}: no TLS connection: {_tls_reason(error)}")
    if isinstance(error, TimeoutError):
        return ConnectionLostError(f"{endpoint} did not answer TLS within {seconds:g} s")
    if isinstance(error, OSError):
        return ConnectionLostError(f"{endpoint} closed the connection at TLS; does its listener speak TLS?")
    return error


def tls_context(security: Security) -> ssl.SSLContext:
    """The TLS settings. Raises RefusedError naming the file that can't be used."""
    file: Path | None = security.ca_file
    try:
        context = ssl.create_default_context(cafile=None if file is None else str(file))
        if not security.verify_hostname or not security.verify:
            context.check_hostname = False
        if not security.verify:
            context.verify_mode = ssl.CERT_NONE
        if security.certificate_file is not None:
            file = security.certificate_file
            key = security.key_file
            # Never ask a terminal for a password.
            context.load_cert_chain(file, key, password=security.key_password or "")
    except (OSError, ssl.SSLError) as error:
        reason = _tls_reason(error) if isinstance(error, ssl.SSLError) else error.strerror
        raise RefusedError(f"{file}: can't be used for TLS: {reason}") from None
    return context


def _tls_reason(error: ssl.SSLError) -> str:
    return (error.reason or "the handshake failed").lower().replace("_", " ")
