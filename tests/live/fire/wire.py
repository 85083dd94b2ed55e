"""A connection to a controller: kio's messages, and AlterPartition of each version, which kio has of 2 and 3 only."""

from __future__ import annotations

import io
import socket
import struct
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

ALTER_PARTITION = 56
API_VERSIONS = 18
_CLIENT = b"fire"
_SECONDS = 30


class ClosedError(Exception):
    """The controller closed the connection: it has no such version of the request."""


@dataclass(frozen=True)
class Part:
    """One partition of an AlterPartition request; `isr` are ids with broker epochs."""

    topic: str
    topic_id: uuid.UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]
    recovery: int


@dataclass(frozen=True)
class PartAnswer:
    """What one partition was answered; the state is told with error 0 only."""

    error: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    recovery: int
    partition_epoch: int


@dataclass
class Connection:
    """One request after the other. `versions` are the newest that both sides have, by API key."""

    port: int
    versions: dict[int, int] = field(default_factory=dict)
    _socket: socket.socket | None = None
    _correlation: int = 0

    def close(self) -> None:
        """End it; the next request opens another one."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def negotiate(self) -> None:
        """Ask for the versions of all APIs."""
        answer = self.ask(API_VERSIONS, 0)
        self.versions = {int(each.api_key): int(each.max_version) for each in answer.api_keys}

    def version(self, key: int) -> int:
        """The newest version of an API that the controller and kio have. Raises LookupError when there is none."""
        return _newest(key, self.versions[key])

    def build(self, key: int, kind: str, /, **fields: Any) -> Any:
        """An entity of the request's module, of the version in use; fields that it lacks are left out."""
        schema = load_request_schema(key, self.version(key))
        module = __import__(schema.__module__, fromlist=[kind])
        entity = getattr(module, kind)
        return entity(**{name: value for name, value in fields.items() if name in entity.__dataclass_fields__})

    def ask(self, key: int, version: int | None = None, **fields: Any) -> Any:
        """Send a request of kio's and read the answer."""
        used = self.version(key) if version is None else version
        schema = load_request_schema(key, used)
        known = {name: value for name, value in fields.items() if name in schema.__dataclass_fields__}
        body = io.BytesIO()
        entity_writer(schema)(body, schema(**known))
        answer = load_response_schema(key, used)
        data = self._exchange(key, used, body.getvalue(), schema.__flexible__)
        # A correlation id, and tags where the header has them.
        start = 4 + (1 if answer.__header_schema__.__flexible__ else 0)
        return _reader(answer)(data, start)[0]

    def alter_partition(
        self, version: int, sender: int, sender_epoch: int, parts: Sequence[Part]
    ) -> tuple[int, list[PartAnswer]]:
        """Send an AlterPartition request; its error, and the answers in the order of the parts."""
        data = self._exchange(ALTER_PARTITION, version, alter_partition(version, sender, sender_epoch, parts), True)
        return read_answer(version, data, 5)

    def _exchange(self, key: int, version: int, body: bytes, flexible: bool) -> bytes:
        self._correlation += 1
        header = struct.pack(">hhih", key, version, self._correlation, len(_CLIENT)) + _CLIENT + b"\0" * flexible
        try:
            if self._socket is None:
                self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=_SECONDS)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(struct.pack(">i", len(header) + len(body)) + header + body)
            (size,) = struct.unpack(">i", self._read(4))
            data = self._read(size)
        except ConnectionError as error:
            self.close()
            raise ClosedError(str(error)) from None
        if struct.unpack_from(">i", data)[0] != self._correlation:
            raise AssertionError("an answer to another request")
        return data

    def _read(self, size: int) -> bytes:
        assert self._socket is not None
        pieces = []
        while size:
            piece = self._socket.recv(size)
            if not piece:
                raise ConnectionResetError("closed by the controller")
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


@cache
def _newest(key: int, most: int) -> int:
    for version in range(most, -1, -1):
        try:
            load_request_schema(key, version)
        except RuntimeError:
            continue
        return version
    raise LookupError(f"no version of API {key} in common")


@cache
def _reader(schema: Any) -> Any:
    return entity_reader(schema)


def alter_partition(version: int, sender: int, sender_epoch: int, parts: Sequence[Part]) -> bytes:
    """AlterPartitionRequest of version 0 to 3: topic names to 1, ids from 2, recovery from 1, broker epochs from 3."""
    topics: dict[tuple[str, uuid.UUID], list[Part]] = {}
    for part in parts:
        topics.setdefault((part.topic, part.topic_id), []).append(part)
    out = [struct.pack(">iq", sender, sender_epoch), _count(len(topics))]
    for (name, topic_id), group in topics.items():
        out.append(topic_id.bytes if version >= 2 else _count(len(name)) + name.encode())
        out.append(_count(len(group)))
        out += [_part(version, part) for part in group]
        out.append(b"\0")
    return b"".join([*out, b"\0"])


def _part(version: int, part: Part) -> bytes:
    out = [struct.pack(">ii", part.partition, part.leader_epoch), _count(len(part.isr))]
    for member, epoch in part.isr:
        out.append(struct.pack(">iqb", member, epoch, 0) if version >= 3 else struct.pack(">i", member))
    if version >= 1:
        out.append(struct.pack(">b", part.recovery))
    return b"".join([*out, struct.pack(">ib", part.partition_epoch, 0)])


def read_answer(version: int, data: bytes, position: int) -> tuple[int, list[PartAnswer]]:
    """AlterPartitionResponse of version 0 to 3: its error, and the partitions' answers in order."""
    _, error = struct.unpack_from(">ih", data, position)
    topics, position = _uvarint(data, position + 6)
    answers = []
    for _ in range(topics - 1):
        if version >= 2:
            position += 16
        else:
            length, position = _uvarint(data, position)
            position += length - 1
        count, position = _uvarint(data, position)
        for _ in range(count - 1):
            answer, position = _part_answer(version, data, position)
            answers.append(answer)
        position += 1
    return error, answers


def _part_answer(version: int, data: bytes, position: int) -> tuple[PartAnswer, int]:
    _, error, leader, leader_epoch = struct.unpack_from(">ihii", data, position)
    count, position = _uvarint(data, position + 14)
    isr = struct.unpack_from(f">{count - 1}i", data, position)
    position += 4 * (count - 1)
    recovery = 0
    if version >= 1:
        recovery, position = data[position], position + 1
    (epoch,) = struct.unpack_from(">i", data, position)
    return PartAnswer(error, leader, leader_epoch, isr, recovery, epoch), position + 5


def _count(number: int) -> bytes:
    """The length of a compact array or string, which may be one byte here."""
    assert number < 127
    return bytes([number + 1])


def _uvarint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
