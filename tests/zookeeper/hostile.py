"""A ZooKeeper server that does what none should: hangs up, drips, never ends, claims a giant reply."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from transforms.zookeeper.storage.wire import GET_ACL, GET_CHILDREN, GET_DATA

STAT = struct.pack(">qqqqiiiqiiq", 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1)
PING = 11
# Kazoo waits two thirds of it for the rest of a reply.
SESSION_MILLISECONDS = 6_000


@dataclass
class Hostile:
    """`children` of any znode; `hangs_up_at` a path, `drips` a byte in so many seconds, `claims` a length of a reply;
    `pause` is what every reply takes.
    """

    children: int = 1
    hangs_up_at: str | None = None
    drips: float | None = None
    claims: int | None = None
    silent: bool = False
    pause: float = 0.0
    connections: int = 0
    requests: int = 0
    address: str = ""
    _open: list[socket.socket] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                self._open.append(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError, struct.error), connection:
            _frame(connection)
            self.connections += 1
            connection.sendall(
                _framed(struct.pack(">iiqi", 0, SESSION_MILLISECONDS, self.connections, 16) + bytes(16) + b"\0")
            )
            while (request := _frame(connection)) is not None:
                self.requests += 1
                if not self._answer(connection, *struct.unpack_from(">ii", request), request[8:]):
                    return

    def _answer(self, connection: socket.socket, xid: int, kind: int, body: bytes) -> bool:
        """Answer a request; False to hang up."""
        if kind not in (GET_DATA, GET_ACL, GET_CHILDREN):
            # exists, ping, close: what kazoo asks by itself.
            connection.sendall(_framed(struct.pack(">iqi", xid, 1, 0) + (b"" if kind == PING else STAT)))
            return True
        path = body[4 : 4 + int.from_bytes(body[:4], "big")].decode()
        if path == self.hangs_up_at:
            return False
        if self.claims is not None:
            connection.sendall(struct.pack(">ii", self.claims, xid) + bytes(100))
            return True
        time.sleep(self.pause)
        reply = _framed(struct.pack(">iqi", xid, 1, 0) + self._body(kind))
        if self.drips is not None:
            for byte in reply:
                connection.sendall(bytes([byte]))
                time.sleep(self.drips)
        elif not self.silent:
            connection.sendall(reply)
        return True

    def _body(self, kind: int) -> bytes:
        if kind == GET_DATA:
            return struct.pack(">i", -1) + STAT
        if kind == GET_ACL:
            return struct.pack(">i", 0) + STAT
        names = [f"c{number}".encode() for number in range(self.children)]
        return struct.pack(">i", len(names)) + b"".join(struct.pack(">i", len(name)) + name for name in names)


def _framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def _frame(connection: socket.socket) -> bytes | None:
    head = _exactly(connection, 4)
    return None if head is None else _exactly(connection, int.from_bytes(head, "big"))


def _exactly(connection: socket.socket, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        part = connection.recv(size - len(data))
        if not part:
            return None
        data += part
    return data


@contextmanager
def hostile_server(**values: object) -> Iterator[Hostile]:
    """Serve until the block ends."""
    server = Hostile(**values)  # type: ignore[arg-type]
    listener = socket.create_server(("127.0.0.1", 0))
    server.address = f"127.0.0.1:{listener.getsockname()[1]}"
    threading.Thread(target=server.serve, args=(listener,), daemon=True).start()
    try:
        yield server
    finally:
        listener.close()
        for connection in server._open:
            with suppress(OSError):
                connection.close()
