"""A quorum that answers as Kafka's controllers were measured to, from a real log's batches, and fails on demand.

Each controller is a thread with a socket. The messages are encoded by the library that the client uses as well;
`test_messages` holds both to another library's encoding.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.admin import DescribeQuorumRequest, DescribeQuorumResponse
from kafka.protocol.consumer import FetchRequest, FetchResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from jobs.sources.kraft.live import messages
from jobs.sources.kraft.live.connection import Endpoint
from jobs.sources.kraft.live.messages import FetchSnapshotRequest, FetchSnapshotResponse
from jobs.sources.kraft.live.quorum import QuorumSettings
from transforms.kraft.decode.framing import BatchHeader, frames

CLUSTER_ID = "fakefakefakefakefakefa"
_REQUESTS = {
    1: FetchRequest,
    17: SaslHandshakeRequest,
    18: ApiVersionsRequest,
    36: SaslAuthenticateRequest,
    55: DescribeQuorumRequest,
    59: FetchSnapshotRequest,
}
_TOPIC = FetchResponse.FetchableTopicResponse
_PART = _TOPIC.PartitionData
_SNAPSHOT_TOPIC = FetchSnapshotResponse.TopicSnapshot
_QUORUM_TOPIC = DescribeQuorumResponse.TopicData


class Hangup(Exception):  # noqa: N818 - no error: what a controller was told to do
    """Close the connection without an answer."""


@dataclass
class FakeQuorum:
    """What all controllers agree on. `batches` are bytes with their headers; offsets as in the log they come from.

    `serve_uncommitted` lets answers run past the high watermark, as Kafka's do. `four` answers as Kafka 4 does.
    """

    batches: list[tuple[BatchHeader, bytes]]
    snapshots: dict[tuple[int, int], bytes] = field(default_factory=dict)
    leader: int = 0
    epoch: int = 0
    high_watermark: int = 0
    log_start: int = 0
    answer_bytes: int = 8 * 1024 * 1024
    four: bool = False
    denied: frozenset[int] = frozenset()
    controllers: list[FakeController] = field(default_factory=list)

    @staticmethod
    def of_log(log: bytes, snapshots: dict[tuple[int, int], bytes] | None = None) -> FakeQuorum:
        batches = [
            (each, log[each.position : each.position + each.size])
            for each in frames(log)
            if isinstance(each, BatchHeader)
        ]
        last = batches[-1][0]
        return FakeQuorum(
            batches,
            snapshots or {},
            epoch=last.epoch,
            high_watermark=last.next_offset,
            log_start=batches[0][0].base_offset,
            # An answer holds at least one whole batch, and mostly the beginning of another.
            answer_bytes=max(batch.size for batch, _ in batches) + 100,
        )

    @property
    def end(self) -> int:
        return self.batches[-1][0].next_offset

    def committed(self, since: int = 0) -> bytes:
        """The bytes of the committed batches from the one with offset `since` on."""
        return b"".join(data for batch, data in self.batches if since < batch.next_offset <= self.high_watermark)

    def from_offset(self, offset: int) -> bytes:
        """The batches from the one with `offset` on, as many bytes as an answer has: the last one may be cut."""
        pieces, size, most = [], 0, max(self.answer_bytes, 1)
        for _, data in self.batches[bisect_right(self.batches, offset, key=lambda each: each[0].next_offset) :]:
            pieces.append(data)
            size += len(data)
            if size >= most:
                break
        return b"".join(pieces)[:most]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The newest epoch not above `epoch`, and its end. A leader begins its epoch with a record, so it always has it."""
        if epoch == self.epoch:
            return epoch, self.end
        known = [batch for batch, _ in self.batches if batch.epoch <= epoch]
        return (known[-1].epoch, known[-1].next_offset) if known else (-1, self.log_start)

    def settings(self, **values: Any) -> QuorumSettings:
        endpoints = tuple(controller.endpoint for controller in self.controllers)
        given = {"request_seconds": 1.0, "patience_seconds": 3.0, **values}
        return QuorumSettings(endpoints, given.pop("cluster_id", CLUSTER_ID), **given)


@dataclass
class FakeController:
    """One controller. `behaviour` may change an answer, delay it or raise Hangup: (API key, request, answer) -> answer."""

    node_id: int
    quorum: FakeQuorum
    endpoint: Endpoint
    listener: socket.socket
    tls: ssl.SSLContext | None = None
    password: str | None = None
    behaviour: Callable[[int, Any, Any], Any] | None = None
    requests: list[tuple[int, Any]] = field(default_factory=list)
    frozen: bool = False
    cut_after: int | None = None
    slow: bool = False
    drips: bool = False

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def kill(self) -> None:
        self.listener.close()
        self.behaviour = _hang_up

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError, ssl.SSLError, Hangup), connection:
            wrapped = connection if self.tls is None else self.tls.wrap_socket(connection, server_side=True)
            authenticated = self.password is None
            while True:
                size = int.from_bytes(_read(wrapped, 4), "big")
                data = _read(wrapped, size)
                while self.frozen:
                    time.sleep(0.05)
                key, version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
                request = _REQUESTS[key].decode(data, version=version, header=True)
                self.requests.append((key, request))
                if not authenticated and key not in (17, 18, 36):
                    raise Hangup
                answer = self._answer(key, version, request)
                if self.behaviour is not None:
                    answer = self.behaviour(key, request, answer)
                if key == 36 and answer.error_code == 0:
                    authenticated = True
                answer.with_header(correlation_id=int.from_bytes(data[4:8], "big"))
                frame = bytes(answer.encode(header=True, framed=True))
                self._send(wrapped, key, frame)

    def _send(self, connection: socket.socket, key: int, frame: bytes) -> None:
        if self.drips:
            for byte in frame:
                connection.sendall(bytes([byte]))
                time.sleep(0.1)
        elif self.slow and key == 1 and len(frame) > 1000:
            for start in range(0, len(frame), len(frame) // 4):
                connection.sendall(frame[start : start + len(frame) // 4])
                time.sleep(0.1)
        elif self.cut_after is not None:
            connection.sendall(frame[: self.cut_after])
            raise Hangup
        else:
            connection.sendall(frame)

    def _answer(self, key: int, version: int, request: Any) -> Any:
        if key == 18:
            entry = ApiVersionsResponse.ApiVersion
            ranges = {1: (0, 17), 17: (0, 1), 18: (0, 3), 36: (0, 2), 55: (0, 2), 59: (0, 1)}
            return ApiVersionsResponse(
                api_keys=[entry(api_key=k, min_version=a, max_version=b) for k, (a, b) in ranges.items()],
                version=version,
            )
        if key == 17:
            return SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"], version=version)
        if key == 36:
            right = bytes(request.auth_bytes).split(b"\0")[-1] == (self.password or "").encode()
            return SaslAuthenticateResponse(
                error_code=0 if right else 58,
                error_message=None if right else "Authentication failed",
                auth_bytes=b"",
                version=version,
            )
        if key == 55:
            return self._described(version)
        return self._fetched(version, request) if key == 1 else self._snapshot(version, request)

    def _fetched(self, version: int, request: Any) -> Any:
        quorum = self.quorum
        if 1 in quorum.denied:
            return FetchResponse(error_code=31, version=version)
        if request.cluster_id not in (None, CLUSTER_ID):
            return FetchResponse(error_code=104, version=version)
        asked = request.topics[0].partitions[0]
        part = self._part(asked)
        topic = _TOPIC(topic_id=messages.TOPIC_ID, partitions=[part])
        return FetchResponse(error_code=0, responses=[topic], version=version)

    def _part(self, asked: Any) -> Any:
        quorum = self.quorum
        leader = _PART.LeaderIdAndEpoch(leader_id=quorum.leader, leader_epoch=quorum.epoch)

        def part(error: int = 0, **values: Any) -> Any:
            return _PART(
                partition_index=0,
                error_code=error,
                high_watermark=quorum.high_watermark if error == 0 else -1,
                log_start_offset=quorum.log_start,
                **{"records": b"", "current_leader": leader, **values},
            )

        leads = quorum.leader == self.node_id
        if not leads and not quorum.four:
            return part(6)
        if asked.current_leader_epoch != quorum.epoch:
            return part(74 if asked.current_leader_epoch < quorum.epoch else 75)
        if not leads:
            return part(6)
        return self._records(asked, part)

    def _records(self, asked: Any, part: Callable[..., Any]) -> Any:
        quorum, offset, epoch = self.quorum, asked.fetch_offset, asked.last_fetched_epoch
        newest = max(quorum.snapshots, default=None)
        oldest = min(quorum.snapshots, default=None)
        if newest is not None and oldest is not None:
            behind = offset < quorum.log_start or (offset == quorum.log_start and offset > 0 and epoch != oldest[1])
            if offset == 0 or behind or epoch < oldest[1]:
                return part(snapshot_id=_PART.SnapshotId(end_offset=newest[0], epoch=newest[1]))
        found, end = quorum.epoch_end(epoch)
        if offset > 0 and (found != epoch or end < offset) and not (offset == quorum.log_start and oldest):
            return part(diverging_epoch=_PART.EpochEndOffset(epoch=found, end_offset=end))
        return part(records=quorum.from_offset(offset))

    def _snapshot(self, version: int, request: Any) -> Any:
        quorum = self.quorum
        if 59 in quorum.denied:
            return FetchSnapshotResponse(error_code=31, version=version)
        asked = request.topics[0].partitions[0]
        wanted = (asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        data = quorum.snapshots.get(wanted)
        leads = quorum.leader == self.node_id and asked.current_leader_epoch == quorum.epoch
        if data is None or not leads:
            return FetchSnapshotResponse(error_code=-1, topics=[], version=version)
        part = _SNAPSHOT_TOPIC.PartitionSnapshot(
            index=0,
            error_code=0,
            snapshot_id=_SNAPSHOT_TOPIC.PartitionSnapshot.SnapshotId(end_offset=wanted[0], epoch=wanted[1]),
            size=len(data),
            position=asked.position,
            unaligned_records=data[asked.position : asked.position + min(request.max_bytes, quorum.answer_bytes)],
        )
        topic = _SNAPSHOT_TOPIC(name=messages.TOPIC, partitions=[part])
        return FetchSnapshotResponse(error_code=0, topics=[topic], version=version)

    def _described(self, version: int) -> Any:
        quorum = self.quorum
        if 55 in quorum.denied:
            return DescribeQuorumResponse(error_code=31, version=version)
        leads = quorum.leader == self.node_id
        state = _QUORUM_TOPIC.PartitionData.ReplicaState
        voters = [
            state(
                replica_id=each.node_id, log_end_offset=quorum.end, last_fetch_timestamp=1, last_caught_up_timestamp=1
            )
            for each in quorum.controllers
        ]
        part = _QUORUM_TOPIC.PartitionData(
            partition_index=0,
            error_code=0 if leads else 6,
            leader_id=quorum.leader if leads else 0,
            leader_epoch=quorum.epoch if leads else 0,
            high_watermark=quorum.high_watermark if leads else 0,
            current_voters=voters if leads else [],
            observers=[],
        )
        return DescribeQuorumResponse(
            error_code=0, topics=[_QUORUM_TOPIC(topic_name=messages.TOPIC, partitions=[part])], version=version
        )


def _hang_up(key: int, request: Any, answer: Any) -> Any:
    raise Hangup


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise Hangup
        data += piece
    return data


@contextmanager
def fake_controllers(
    quorum: FakeQuorum, count: int = 3, *, tls: ssl.SSLContext | None = None, password: str | None = None
) -> Iterator[FakeQuorum]:
    """Serve the quorum from `count` controllers with ids from 3000; the first one leads."""
    for number in range(count):
        listener = socket.create_server(("127.0.0.1", 0))
        endpoint = Endpoint("127.0.0.1", listener.getsockname()[1])
        controller = FakeController(3000 + number, quorum, endpoint, listener, tls, password)
        quorum.controllers.append(controller)
        threading.Thread(target=controller.serve, daemon=True).start()
    quorum.leader = 3000
    try:
        yield quorum
    finally:
        for controller in quorum.controllers:
            controller.listener.close()
