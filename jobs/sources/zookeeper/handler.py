"""A kazoo handler through which one session carries many reads at once.

kazoo opens, keeps and reopens the session: servers, TLS, SASL, pings. It gets its sockets and `select` from its handler
(`kazoo.interfaces.IHandler`), and there a walk's own requests join the stream: they are sent many to a system call, and their
replies, recognised by their xids, leave the stream before kazoo looks at it. kazoo's own way costs a new epoll and several system
calls a request.
"""

from __future__ import annotations

import select
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Iterable
from queue import SimpleQueue
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

from jobs.sources.zookeeper.tls import tls_connection

# kazoo numbers its requests of a connection from 1; it never sends a billion of them.
OWN_XIDS = 1 << 30
_READ_BYTES = 256 * 1024
_SEND_TIMEOUT_MS = 10_000
_HEAD = struct.Struct(">ii")
# A list of a million children fits; no znode is as large.
MAX_FRAME_BYTES = 64 * 1024 * 1024


class Link:
    """One connection. kazoo sees a non-blocking socket; a walk sees `ask` and `answers`.

    `answers` gives lists of reply frames (without their length) in the order of the requests, then None when the
    connection is gone. `fault` describes data that is not a reply: another connection would receive it again.
    """

    def __init__(self, connection: socket.socket, wake: WakeSocket) -> None:
        self.fault: str | None = None
        self.answers: SimpleQueue[list[bytes] | None] = SimpleQueue()
        self._connection = connection
        self._wake = wake
        self._asked: deque[bytes] = deque()
        self._unsent = bytearray()
        self._unsplit = bytearray()
        self._for_kazoo = bytearray()
        self._ended = False

    def ask(self, frames: bytes) -> None:
        """Send whole requests. May be called from any thread; all else belongs to kazoo's."""
        self._asked.append(frames)
        self._wake.nudge()

    def has_requests(self) -> bool:
        """True if requests wait to be sent."""
        return bool(self._asked)

    def recv(self, length: int) -> bytes:
        """Return up to `length` bytes of kazoo's replies; b"" when the peer closed the connection."""
        part = bytes(self._for_kazoo[:length])
        del self._for_kazoo[:length]
        return part

    def pending(self) -> int:
        """Bytes that kazoo can read without waiting."""
        return len(self._for_kazoo)

    def ready(self) -> bool:
        """True if kazoo should read: there is a reply, or the connection has ended."""
        return self._ended or bool(self._for_kazoo)

    def send(self, data: bytes) -> int:
        """Take in all of `data` to be sent."""
        self._unsent += data
        return len(data)

    def flush(self) -> None:
        """Send everything taken in. Raises OSError when the peer does not take it in time."""
        while self._asked:
            self._unsent += self._asked.popleft()
        while self._unsent:
            try:
                sent = self._connection.send(self._unsent)
                del self._unsent[:sent]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait_for(select.POLLOUT)
            except ssl.SSLWantReadError:
                self._wait_for(select.POLLIN)

    def feed(self) -> None:
        """Read what has come, and part the walk's replies from kazoo's. Raises OSError."""
        more = True
        while more:
            try:
                chunk = self._connection.recv(_READ_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                break
            self._ended = not chunk
            self._unsplit += chunk
            # What TLS has decrypted already would never wake a poll.
            more = isinstance(self._connection, ssl.SSLSocket) and self._connection.pending() > 0
        self._split()

    def _split(self) -> None:
        own: list[bytes] = []
        data, at = self._unsplit, 0
        while len(data) - at >= _HEAD.size:
            length, xid = _HEAD.unpack_from(data, at)
            if not _HEAD.size - 4 <= length <= MAX_FRAME_BYTES:
                self.fault = f"a reply of {length} bytes"
                raise OSError(f"ZooKeeper sent {self.fault}")
            end = at + 4 + length
            if end > len(data):
                break
            if xid >= OWN_XIDS:
                own.append(bytes(data[at + 4 : end]))
            else:
                self._for_kazoo += data[at:end]
            at = end
        del data[:at]
        if own:
            self.answers.put(own)

    def _wait_for(self, event: int) -> None:
        poll = select.poll()
        poll.register(self.fileno(), event)
        if not poll.poll(_SEND_TIMEOUT_MS):
            raise TimeoutError("ZooKeeper did not take a request in time")

    def fileno(self) -> int:
        """Return the descriptor. Raises OSError when the connection is closed."""
        number = self._connection.fileno()
        if number < 0:
            raise OSError("the connection to ZooKeeper is closed")
        return number

    def setblocking(self, flag: bool) -> None:
        """Pass the mode on."""
        self._connection.setblocking(flag)

    def close(self) -> None:
        """Close the connection; unsent data is lost."""
        self._connection.close()
        self.answers.put(None)


class WakeSocket:
    """The pair of sockets by which requests wake kazoo's thread, both ends in one: signals count in memory.

    A byte goes through a real pair only while the thread sleeps in `select`.
    """

    def __init__(self) -> None:
        self._signals: deque[bytes] = deque()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._asleep = False

    def send(self, data: bytes) -> int:
        """Signal a request of kazoo's."""
        self._signals.append(data)
        self.nudge()
        return len(data)

    def nudge(self) -> None:
        """End the sleep, if there is one."""
        if not self._asleep:
            return
        # One byte is enough; more would only cost system calls.
        self._asleep = False
        try:
            self._writer.send(b"\0")
        except (BlockingIOError, OSError):
            # The pipe is full of unread wake-ups, or closed because nobody waits.
            return

    def recv(self, _: int) -> bytes:
        """Take one signal; b"" when there is none."""
        return self._signals.popleft() if self._signals else b""

    def ready(self) -> bool:
        """True if a signal waits."""
        return bool(self._signals)

    def prepare_sleep(self) -> None:
        """Ask for a real byte at the next signal or nudge."""
        self._asleep = True

    def end_sleep(self) -> None:
        """Stop asking for real bytes and drop those that came."""
        self._asleep = False
        try:
            while self._reader.recv(4096):
                pass
        except BlockingIOError:
            return

    def fileno(self) -> int:
        """Return the descriptor of the reading end."""
        return self._reader.fileno()

    def close(self) -> None:
        """Close both ends."""
        self._reader.close()
        self._writer.close()


class PipeliningHandler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's threading handler with the sockets above. `link` is the newest connection, None before the first."""

    def __init__(self) -> None:
        super().__init__()
        self.link: Link | None = None
        self._wake = WakeSocket()

    def create_connection(self, *args: Any, **options: Any) -> Link:
        """Connect as kazoo does, but for whom TLS trusts (`jobs.sources.zookeeper.tls`)."""
        connect = tls_connection if options.get("use_ssl") else super().create_connection
        self.link = Link(connect(*args, **options), self._wake)
        return self.link

    def create_socket_pair(self) -> tuple[WakeSocket, WakeSocket]:
        """Return both ends of the wake-up pair."""
        self._wake = WakeSocket()
        return self._wake, self._wake

    def select(
        self, readers: Iterable[Any], writers: Iterable[Any], _: Iterable[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return who can be read; writing is always possible, into memory."""
        writers, readers = list(writers), list(readers)
        if writers:
            return [], writers, []
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            ready = [item for item in readers if item.ready()]
            links = [item for item in readers if isinstance(item, Link)]
            # kazoo hands over its requests one by one; they leave together, when it has no more.
            if not any(isinstance(item, WakeSocket) for item in ready):
                for link in links:
                    link.flush()
            left = None if deadline is None else deadline - time.monotonic()
            if ready or (left is not None and left <= 0):
                return ready, [], []
            _sleep(links, self._wake, left)


def _sleep(links: list[Link], wake: WakeSocket, seconds: float | None) -> None:
    """Wait until something comes, somebody nudges or the time is over; take in what came."""
    poll = select.poll()
    for number in (wake.fileno(), *(link.fileno() for link in links)):
        poll.register(number, select.POLLIN)
    wake.prepare_sleep()
    try:
        # Whoever signalled before the sleep was announced sent no byte.
        missed = wake.ready() or any(link.has_requests() for link in links)
        events = poll.poll(0 if missed else None if seconds is None else max(seconds, 0) * 1000)
    finally:
        wake.end_sleep()
    readable = {number for number, _ in events}
    for link in links:
        if link.fileno() in readable:
            link.feed()
