"""A live ZooKeeper tree, walked with kazoo: gentle on the ensemble, and it only ever reads.

Data, stat and ACL of every needed znode are asked for without waiting for the answers before, never more than
`window` at once. Only the needed subtrees are read (`schemas.zookeeper.paths`). This module imports neither Spark nor
Arrow: `snapshot-zookeeper` runs it on hosts that have kazoo alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState

from jobs.sources.zookeeper_handler import PipeliningHandler
from schemas.zookeeper.paths import NEEDED_ROOTS
from transforms.zookeeper.redact import Redactor
from transforms.zookeeper.znode import AclEntry, Znode, unreadable

# The answer got lost with the connection: ask again once there is one.
_RETRIABLE = (ConnectionLoss, ConnectionClosedError, OperationTimeoutError, SessionExpiredError, SessionMovedError)
_RECONNECT_POLL_SECONDS = 0.05


class ZooKeeperWalkError(Exception):
    """The walk can't start or go on. One line: which server, what happened, what to do."""


@dataclass(frozen=True)
class TlsSettings:
    """TLS to the ensemble. Paths are PEM files; `cert_file` and `key_file` are for mutual TLS."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_certificates: bool = True
    check_hostname: bool = False


@dataclass(frozen=True)
class SaslSettings:
    """SASL to the ensemble: DIGEST-MD5 with user and password, or GSSAPI with the ticket of the environment."""

    mechanism: str = "DIGEST-MD5"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    service: str = "zookeeper"


@dataclass(frozen=True)
class LiveSettings:
    """Where and how to walk.

    `connect` is ZooKeeper's connect string, `host:port,host:port/chroot`. `digest` is `user:password` of a digest
    identity. `window` bounds the requests under way, `requests_per_second` their rate (None: no limit).
    `reconnect_seconds` is how long a lost connection may stay lost. `read_only` accepts a server without a quorum.
    """

    connect: str
    tls: TlsSettings | None = None
    sasl: SaslSettings | None = None
    digest: str | None = field(default=None, repr=False)
    read_only: bool = False
    window: int = 400
    requests_per_second: float | None = None
    session_timeout_seconds: float = 15.0
    connect_timeout_seconds: float = 30.0
    reconnect_seconds: float = 120.0
    roots: tuple[str, ...] = NEEDED_ROOTS


@dataclass
class WalkSummary:
    """What a walk saw, complete once its znodes are used up. zxids are the server's newest as the walk knew it."""

    first_zxid: int = 0
    last_zxid: int = 0
    znodes: int = 0
    denied: int = 0
    vanished: int = 0
    reconnects: int = 0
    read_only: bool = False


def walk(
    settings: LiveSettings,
    redactor: Redactor,
    summary: WalkSummary | None = None,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Znode]:
    """Yield every needed znode, secrets fingerprinted; `progress` hears the number of znodes so far.

    A znode that may not be read is a row with `problem`; one that vanishes between listing and reading is counted and
    left out. Raises ZooKeeperWalkError when the ensemble can't be reached, refuses the identity, or stays lost.
    """
    client = _client(settings)
    try:
        _start(client, settings)
        yield from _Walk(client, settings, redactor, summary or WalkSummary(), progress or _silent).znodes()
    finally:
        client.stop()
        client.close()


def _silent(_: int) -> None:
    """Ignore progress."""


def _client(settings: LiveSettings) -> KazooClient:
    options: dict[str, Any] = {
        "hosts": settings.connect,
        "timeout": settings.session_timeout_seconds,
        "read_only": settings.read_only,
        "handler": PipeliningHandler(),
    }
    if settings.digest:
        options["auth_data"] = [("digest", settings.digest)]
    if settings.sasl:
        options["sasl_options"] = {
            "mechanism": settings.sasl.mechanism,
            "service": settings.sasl.service,
            "username": settings.sasl.username,
            "password": settings.sasl.password,
        }
    if settings.tls:
        options |= {
            "use_ssl": True,
            "ca": settings.tls.ca_file,
            "certfile": settings.tls.cert_file,
            "keyfile": settings.tls.key_file,
            "keyfile_password": settings.tls.key_password,
            "verify_certs": settings.tls.verify_certificates,
            "check_hostname": settings.tls.check_hostname,
        }
    return KazooClient(**options)


def _start(client: KazooClient, settings: LiveSettings) -> None:
    try:
        client.start(timeout=settings.connect_timeout_seconds)
    except KazooTimeoutError:
        raise ZooKeeperWalkError(
            f"ZooKeeper at {settings.connect} did not answer within {settings.connect_timeout_seconds:g} s: check the "
            "address, the port (TLS or not) and the identity"
        ) from None
    except (KazooException, OSError) as error:
        raise ZooKeeperWalkError(f"ZooKeeper at {settings.connect}: {type(error).__name__}: {error}") from None


@dataclass
class _Request:
    """One znode under way: its answers come in the order the requests were sent."""

    path: str
    data: Any
    acl: Any
    children: Any = None


class _Walk:
    """One walk: paths still to ask for, requests under way in the order they were sent."""

    def __init__(
        self,
        client: KazooClient,
        settings: LiveSettings,
        redactor: Redactor,
        summary: WalkSummary,
        progress: Callable[[int], None],
    ) -> None:
        self._client = client
        self._settings = settings
        self._redactor = redactor
        self._summary = summary
        self._progress = progress
        self._paths = list(reversed(settings.roots))
        self._under_way: deque[_Request] = deque()
        self._pace = _Pace(settings.requests_per_second)
        self._acls: dict[tuple[Any, ...], list[AclEntry]] = {}
        client.add_listener(self._note_state)

    def _note_state(self, state: str) -> None:
        # Called by kazoo's own thread; the walk began connected, so every later connection is a new one.
        if state == KazooState.CONNECTED:
            self._summary.reconnects += 1

    def znodes(self) -> Iterator[Znode]:
        """Yield the znodes; fills the summary."""
        self._summary.first_zxid = self._newest_zxid()
        self._summary.read_only = self._client.client_state == KeeperState.CONNECTED_RO
        while self._paths or self._under_way:
            # Two requests a znode, so half the window in znodes.
            while self._paths and len(self._under_way) * 2 < self._settings.window:
                self._ask(self._paths.pop())
            self._wait()
            for _ in range(len(self._under_way) // 2 + 1):
                znode = self._answer(self._under_way.popleft())
                if znode is not None:
                    self._summary.znodes += 1
                    self._progress(self._summary.znodes)
                    yield znode
        self._summary.last_zxid = self._newest_zxid()

    def _wait(self) -> None:
        """Wait for half of the answers at once: waking up for each would cost more than the answer itself."""
        last = self._under_way[len(self._under_way) // 2]
        (last.children or last.acl).wait()

    def _newest_zxid(self) -> int:
        while True:
            try:
                self._client.exists("/")
                return int(self._client.last_zxid)
            except _RETRIABLE:
                self._reconnect()
            except AuthFailedError:
                raise self._refused() from None

    def _ask(self, path: str) -> None:
        self._pace.wait(2)
        self._under_way.append(_Request(path, self._client.get_async(path), self._client.get_acls_async(path)))

    def _answer(self, request: _Request) -> Znode | None:
        """Return the znode of a request; None when it vanished, was a list of children, or must be asked for again."""
        try:
            if request.children is not None:
                self._paths.extend(_join(request.path, name) for name in request.children.get())
                return None
            data, stat = request.data.get()
            acl, _ = request.acl.get()
        except NoNodeError:
            self._summary.vanished += request.path not in self._settings.roots
            return None
        except NoAuthError:
            return self._denied(request.path, "children" if request.children is not None else "znode")
        except AuthFailedError:
            raise self._refused() from None
        except _RETRIABLE:
            self._again(request)
            return None
        if stat.numChildren:
            self._pace.wait(1)
            self._under_way.append(_Request(request.path, None, None, self._client.get_children_async(request.path)))
        return self._znode(request.path, data, stat, acl)

    def _again(self, request: _Request) -> None:
        """Wait for a connection and ask again for what got lost."""
        self._reconnect()
        if request.children is not None:
            self._under_way.append(_Request(request.path, None, None, self._client.get_children_async(request.path)))
        else:
            self._paths.append(request.path)

    def _reconnect(self) -> None:
        deadline = time.monotonic() + self._settings.reconnect_seconds
        while not self._client.connected:
            if self._client.client_state == KeeperState.AUTH_FAILED:
                raise self._refused()
            if time.monotonic() > deadline:
                raise ZooKeeperWalkError(
                    f"ZooKeeper at {self._settings.connect} was lost after {self._summary.znodes} znodes and did not "
                    f"come back within {self._settings.reconnect_seconds:g} s"
                )
            time.sleep(_RECONNECT_POLL_SECONDS)

    def _refused(self) -> ZooKeeperWalkError:
        return ZooKeeperWalkError(f"ZooKeeper at {self._settings.connect} refused the identity")

    def _denied(self, path: str, what: str) -> Znode:
        self._summary.denied += 1
        return unreadable(path, f"NoAuth: the {what} may not be read with this identity")

    def _znode(self, path: str, data: bytes | None, stat: Any, acl: list[Any]) -> Znode:
        text, redacted, problem = self._redactor.data(path, data)
        return Znode(
            path,
            text,
            data is None,
            stat.dataLength,
            stat.czxid,
            stat.mzxid,
            stat.pzxid,
            stat.ctime,
            stat.mtime,
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.ephemeralOwner,
            stat.numChildren,
            self._entries(tuple(acl)),
            redacted,
            problem,
        )

    def _entries(self, acl: tuple[Any, ...]) -> list[AclEntry]:
        if acl not in self._acls:
            self._acls[acl] = [
                AclEntry(entry.perms, entry.id.scheme, self._redactor.acl_id(entry.id.scheme, entry.id.id))
                for entry in acl
            ]
        return self._acls[acl]


class _Pace:
    """Keeps requests at or below a rate by sleeping."""

    def __init__(self, per_second: float | None) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self, requests: int) -> None:
        """Sleep until `requests` more may be sent."""
        if not self._interval:
            return
        now = time.monotonic()
        if self._next > now:
            time.sleep(self._next - now)
        self._next = max(self._next, now) + requests * self._interval


def _join(parent: str, name: str) -> str:
    return f"{parent.rstrip('/')}/{name}"
