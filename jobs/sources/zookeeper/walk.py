"""A live ZooKeeper tree, walked with kazoo: with little load on the ensemble, and read-only.

Data, stat and ACL of every needed znode are asked for without waiting for the answers before, never more than
`window` at once. Only the needed subtrees are read (`schemas.zookeeper.paths`). A walk always ends, even if servers misbehave:
without progress for `patience_seconds` or over some reconnects, and at bounds of depth, number and time, each with one
line. This module imports neither Spark nor Arrow: `snapshot-zookeeper` runs it on hosts that have kazoo alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    OperationTimeoutError,
    SessionExpiredError,
    SessionMovedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState, KeeperState

from jobs.sources.zookeeper.client import (
    LiveSettings,
    SaslSettings,
    TlsSettings,
    ZooKeeperWalkError,
    make_client,
    start,
)
from jobs.sources.zookeeper.handler import OWN_XIDS, Link
from transforms.zookeeper.read.redact import Redactor
from transforms.zookeeper.read.znode import AclEntry, Znode, unreadable
from transforms.zookeeper.storage.jute import JuteError, JuteReader
from transforms.zookeeper.storage.wire import (
    GET_ACL,
    GET_CHILDREN,
    GET_DATA,
    NO_AUTH,
    NO_NODE,
    OK,
    acl_bytes,
    children,
    data_and_stat,
    reply,
    request,
)

# The answer was lost with the connection: the request is repeated after the reconnect.
_RETRIABLE = (ConnectionLoss, ConnectionClosedError, OperationTimeoutError, SessionExpiredError, SessionMovedError)
_RECONNECT_POLL_SECONDS = 0.05
# After this many connections in a row without a further znode, the walk ends.
RECONNECTS_WITHOUT_PROGRESS = 10
_LAST_XID = 2**31 - 1
_ZNODE_READS: tuple[int, ...] = (GET_DATA, GET_ACL)


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
    """Yield every needed znode, secrets fingerprinted; `progress` is called with the number of znodes so far.

    A znode that may not be read is a row with `problem`; one that vanishes between listing and reading is counted and
    left out. Raises ZooKeeperWalkError when the ensemble can't be reached, refuses the identity, stays lost, gets no
    further, or has more than the bounds of the settings.
    """
    client = make_client(settings)
    try:
        start(client, settings)
        summary = summary if summary is not None else WalkSummary()
        for znode in _Walk(client, settings, redactor, summary).znodes():
            if progress is not None:
                progress(summary.znodes)
            yield znode
    finally:
        client.stop()
        client.close()


# A pending request: what was requested, and for which path.
_Asked = tuple[int, str]


class _Walk:
    """One walk: paths and lists of children still to read, and pending requests in the order in which they were sent."""

    def __init__(self, client: KazooClient, settings: LiveSettings, redactor: Redactor, summary: WalkSummary) -> None:
        self._client = client
        self._settings = settings
        self._redactor = redactor
        self._summary = summary
        self._chroot = client.chroot
        self._paths = list(reversed(settings.roots))
        self._lists: list[str] = []
        self._under_way: deque[_Asked] = deque()
        self._xid = OWN_XIDS
        self._pace = _Pace(settings.requests_per_second)
        self._progress = _Progress(settings, summary)
        self._acls: dict[bytes, list[AclEntry]] = {}
        # The getData reply of the znode whose getACL reply comes next.
        self._data: bytes = b""
        client.add_listener(self._note_state)

    def _note_state(self, state: str) -> None:
        # Called by kazoo's own thread; the walk began connected, so every later connection is a new one.
        if state == KazooState.CONNECTED:
            self._summary.reconnects += 1
            self._progress.reconnects += 1

    def znodes(self) -> Iterator[Znode]:
        """Yield the znodes; fills the summary."""
        link = self._connect()
        self._summary.first_zxid = self._summary.last_zxid
        self._summary.read_only = self._client.client_state == KeeperState.CONNECTED_RO
        while self._paths or self._lists or self._under_way:
            self._ask(link)
            answers = self._wait(link)
            if answers is None:
                if link.fault is not None:
                    raise self._no_reply(link.fault)
                self._ask_again()
                self._progress.check(len(self._paths))
                link = self._connect()
                continue
            for frame in answers:
                znode = self._read(frame)
                if znode is not None:
                    self._summary.znodes += 1
                    given = time.monotonic()
                    yield znode
                    self._progress.paused(time.monotonic() - given)
            self._progress.check(len(self._paths))
        self._connect()

    def _connect(self) -> Link:
        """Return the connection, once the session is there and every identity was sent; notes the newest zxid."""
        deadline = self._progress.deadline()
        while True:
            try:
                # kazoo sends this only when its handshake is over.
                self._client.exists_async("/").get(timeout=max(deadline - time.monotonic(), 0.001))
                link: Link | None = self._client.handler.link
                if link is not None:
                    self._summary.last_zxid = max(self._summary.last_zxid, int(self._client.last_zxid))
                    return link
            except KazooTimeoutError:
                raise self._lost() from None
            except _RETRIABLE:
                self._progress.check(len(self._paths))
                self._await_connection(deadline)
            except AuthFailedError:
                raise self._refused() from None

    def _await_connection(self, deadline: float) -> None:
        while True:
            if time.monotonic() > deadline:
                raise self._lost()
            if self._client.connected:
                return
            if self._client.client_state == KeeperState.AUTH_FAILED:
                raise self._refused()
            time.sleep(_RECONNECT_POLL_SECONDS)

    def _ask(self, link: Link) -> None:
        frames = bytearray()
        asked = 0
        while len(self._under_way) < self._settings.window and (self._lists or self._paths):
            kinds = (GET_CHILDREN,) if self._lists else _ZNODE_READS
            path = (self._lists or self._paths).pop()
            for kind in kinds:
                self._xid = self._xid + 1 if self._xid < _LAST_XID else OWN_XIDS
                self._under_way.append((kind, path))
                frames += request(self._xid, kind, self._absolute(path))
                asked += 1
        if asked:
            self._progress.paused(self._pace.wait(asked))
            link.ask(bytes(frames))

    def _absolute(self, path: str) -> str:
        return f"{self._chroot}{path}" if path != "/" else self._chroot or "/"

    def _wait(self, link: Link) -> list[bytes] | None:
        try:
            return link.answers.get(timeout=max(self._progress.deadline() - time.monotonic(), 0.001))
        except Empty:
            raise ZooKeeperWalkError(
                f"ZooKeeper at {self._settings.connect} sent no further znode within "
                f"{self._settings.patience_seconds:g} s, after {self._summary.znodes}"
            ) from None

    def _ask_again(self) -> None:
        """Queue the pending requests again: their answers were lost with the connection."""
        for kind, path in self._under_way:
            if kind == GET_CHILDREN:
                self._lists.append(path)
            elif kind == GET_ACL:
                # Every getData is followed by its getACL.
                self._paths.append(path)
        self._under_way.clear()

    def _read(self, frame: bytes) -> Znode | None:
        try:
            return self._answer(frame)
        except JuteError as error:
            raise self._no_reply(str(error)) from None

    def _answer(self, frame: bytes) -> Znode | None:
        """Return the znode that is complete with this reply, if one is."""
        kind, path = self._under_way.popleft()
        head = reply(frame)
        self._summary.last_zxid = max(self._summary.last_zxid, head.zxid)
        if kind == GET_DATA:
            self._data = frame
            return None
        self._progress.made()
        if kind == GET_ACL:
            return self._complete(path, frame)
        if head.error == OK:
            self._add_children(path, children(frame))
            return None
        return self._failed(path, head.error, "list of children")

    def _add_children(self, path: str, names: list[str]) -> None:
        if names and path.count("/") >= self._settings.max_depth:
            raise ZooKeeperWalkError(
                f"ZooKeeper at {self._settings.connect}: the tree is deeper than {self._settings.max_depth} znodes "
                "(zookeeper.max_depth); Kafka's tree is not: is this another application's ZooKeeper?"
            )
        self._paths.extend(f"{path.rstrip('/')}/{name}" for name in names)

    def _complete(self, path: str, frame: bytes) -> Znode | None:
        for error in (reply(self._data).error, reply(frame).error):
            if error != OK:
                return self._failed(path, error, "znode")
        data, stat = data_and_stat(self._data)
        if stat.num_children:
            self._lists.append(path)
        text, redacted, problem = self._redactor.data(path, data)
        return Znode(
            path,
            text,
            data is None,
            stat.data_length,
            stat.czxid,
            stat.mzxid,
            stat.pzxid,
            stat.ctime,
            stat.mtime,
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.ephemeral_owner,
            stat.num_children,
            self._entries(acl_bytes(frame)),
            redacted,
            problem,
        )

    def _failed(self, path: str, error: int, what: str) -> Znode | None:
        if error == NO_NODE:
            self._summary.vanished += path not in self._settings.roots
            return None
        self._summary.denied += 1
        if error == NO_AUTH:
            return unreadable(path, f"NoAuth: the {what} may not be read with this identity")
        return unreadable(path, f"the {what} can't be read: ZooKeeper answered with error {error}")

    def _entries(self, encoded: bytes) -> list[AclEntry]:
        if encoded not in self._acls:
            self._acls[encoded] = [
                entry._replace(id=self._redactor.acl_id(entry.scheme, entry.id))
                for entry in JuteReader(encoded).acl() or []
            ]
        return self._acls[encoded]

    def _refused(self) -> ZooKeeperWalkError:
        return ZooKeeperWalkError(f"ZooKeeper at {self._settings.connect} refused the identity")

    def _no_reply(self, what: str) -> ZooKeeperWalkError:
        return ZooKeeperWalkError(f"ZooKeeper at {self._settings.connect} sent an invalid reply: {what}")

    def _lost(self) -> ZooKeeperWalkError:
        return ZooKeeperWalkError(
            f"ZooKeeper at {self._settings.connect} was lost after {self._summary.znodes} znodes and did not "
            f"come back within {self._settings.patience_seconds:g} s"
        )


class _Progress:
    """Distinguishes a walk that continues from one that does not, and a large tree from an endless one.

    Progress is a znode or a list of children that was read: it need not be requested again.
    """

    def __init__(self, settings: LiveSettings, summary: WalkSummary) -> None:
        self._settings = settings
        self._summary = summary
        self._ends = time.monotonic() + settings.max_minutes * 60
        self._since = time.monotonic()
        self.reconnects = 0

    def made(self) -> None:
        """Something was read."""
        self._since = time.monotonic()
        self.reconnects = 0

    def deadline(self) -> float:
        """When the next thing must have been read, by the monotonic clock."""
        return self._since + self._settings.patience_seconds

    def paused(self, seconds: float) -> None:
        """Do not count this time (seconds) as the server's: the caller was busy with znodes, or the rate limit made the
        walk wait."""
        self._since += seconds

    def check(self, waiting: int) -> None:
        """Raise ZooKeeperWalkError if the walk makes no progress; `waiting` znodes are known but not read yet."""
        settings, read = self._settings, self._summary.znodes
        where = f"ZooKeeper at {settings.connect}"
        if self.reconnects >= RECONNECTS_WITHOUT_PROGRESS:
            raise ZooKeeperWalkError(
                f"{where} closed the connection {self.reconnects} times in a row without a further znode, after {read}: "
                "check its log, and whether a znode is larger than its jute.maxbuffer"
            )
        if read + waiting > settings.max_znodes:
            raise ZooKeeperWalkError(
                f"{where} has more than {settings.max_znodes} znodes (zookeeper.max_znodes); is it Kafka's alone?"
            )
        if time.monotonic() > self._ends:
            raise ZooKeeperWalkError(
                f"{where} was walked for {settings.max_minutes:g} minutes and {read} znodes without reaching the end "
                "(zookeeper.max_minutes)"
            )


class _Pace:
    """Keeps requests at or below a rate by sleeping."""

    def __init__(self, per_second: float | None) -> None:
        self._interval = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()

    def wait(self, requests: int) -> float:
        """Sleep until `requests` more may be sent; returns the seconds that took."""
        if not self._interval:
            return 0.0
        now = time.monotonic()
        early = max(self._next - now, 0.0)
        time.sleep(early)
        self._next = max(self._next, now) + requests * self._interval
        return early


__all__ = ["LiveSettings", "SaslSettings", "TlsSettings", "WalkSummary", "ZooKeeperWalkError", "walk"]
