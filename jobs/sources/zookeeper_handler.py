"""A kazoo handler that spares system calls, so that one session can carry many requests at once.

kazoo asks its handler for sockets and for `select` (`kazoo.interfaces.IHandler`). Its own handler makes a new epoll
for every select and a system call for every four bytes read. This one reads in large pieces, sends what several
requests wrote at once, and lets requests wake the connection without a byte through a socket while it is awake.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any

from kazoo.handlers.threading import SequentialThreadingHandler

_READ_BYTES = 256 * 1024
# Enough requests for one system call; more would only let the server wait.
_SEND_BYTES = 16 * 1024
_SEND_TIMEOUT_MS = 10_000


class BufferedSocket:
    """A non-blocking connection that reads ahead and collects what is sent until `flush`."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._read = memoryview(b"")
        self._unsent = bytearray()

    def recv(self, length: int) -> bytes:
        """Return up to `length` bytes; b"" when the peer closed the connection."""
        if not self._read:
            self._read = memoryview(self._connection.recv(_READ_BYTES))
        part = self._read[:length]
        self._read = self._read[len(part) :]
        return part.tobytes()

    def pending(self) -> int:
        """Bytes that can be read without waiting; kazoo then asks for no select."""
        inner = self._connection.pending() if isinstance(self._connection, ssl.SSLSocket) else 0
        return len(self._read) + inner

    def send(self, data: bytes) -> int:
        """Take in all of `data` to be sent."""
        self._unsent += data
        if len(self._unsent) >= _SEND_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Send what was taken in. Raises OSError when the peer does not take it in time."""
        while self._unsent:
            try:
                sent = self._connection.send(self._unsent)
                del self._unsent[:sent]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait_for(select.POLLOUT)
            except ssl.SSLWantReadError:
                self._wait_for(select.POLLIN)

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
        """Close the connection; what was not sent is gone."""
        self._connection.close()


class WakeSocket:
    """The pair of sockets by which requests wake the connection, both ends in one: signals count in memory.

    A byte goes through a real pair only while the connection sleeps in `select`.
    """

    def __init__(self) -> None:
        self._signals: deque[bytes] = deque()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._asleep = False

    def send(self, data: bytes) -> int:
        """Signal once."""
        self._signals.append(data)
        if self._asleep:
            # One byte ends the sleep; more would only cost system calls.
            self._asleep = False
            self._wake()
        return len(data)

    def _wake(self) -> None:
        try:
            self._writer.send(b"\0")
        except BlockingIOError:
            # So many unread wake-ups are enough of them.
            return

    def recv(self, _: int) -> bytes:
        """Take one signal; b"" when there is none."""
        return self._signals.popleft() if self._signals else b""

    def signalled(self) -> bool:
        """Tell whether a signal waits."""
        return bool(self._signals)

    def prepare_sleep(self) -> bool:
        """Ask for a real byte at the next signal; False when a signal came meanwhile and sleeping would miss it."""
        self._asleep = True
        return not self._signals

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
    """kazoo's threading handler with the sockets above."""

    def create_connection(self, *args: Any, **options: Any) -> BufferedSocket:
        """Connect as kazoo does."""
        return BufferedSocket(super().create_connection(*args, **options))

    def create_socket_pair(self) -> tuple[WakeSocket, WakeSocket]:
        """Return both ends of the wake-up pair."""
        wake = WakeSocket()
        return wake, wake

    def select(
        self, readers: Iterable[Any], writers: Iterable[Any], _: Iterable[Any], timeout: float | None = None
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """Return who can be read; writing is always possible, into memory."""
        writers = list(writers)
        if writers:
            return [], writers, []
        connections = [item for item in readers if isinstance(item, BufferedSocket)]
        wakes = [item for item in readers if isinstance(item, WakeSocket)]
        waiting = [item for item in wakes if item.signalled()]
        if not waiting:
            for connection in connections:
                connection.flush()
        ready = [item for item in connections if item.pending()] + waiting
        return (ready or _sleep(connections, wakes, timeout)), [], []


def _sleep(connections: list[BufferedSocket], wakes: list[WakeSocket], timeout: float | None) -> list[Any]:
    """Wait until one of them can be read or `timeout` (seconds) is over."""
    poll = select.poll()
    items: list[BufferedSocket | WakeSocket] = [*connections, *wakes]
    for item in items:
        poll.register(item.fileno(), select.POLLIN)
    try:
        calm = not [wake for wake in wakes if not wake.prepare_sleep()]
        limit = None if timeout is None else max(timeout, 0) * 1000
        events = poll.poll(limit if calm else 0)
    finally:
        for wake in wakes:
            wake.end_sleep()
    readable = {number for number, _ in events}
    found = [connection for connection in connections if connection.fileno() in readable]
    return [*found, *(wake for wake in wakes if wake.signalled())]
