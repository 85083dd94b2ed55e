"""The few requests that are sent to a controller, and the parts of their responses that count.

This is the only module that uses kafka-python, for the encoding of messages and for SASL's mechanisms. Neither is part of that
library's public interface, so `tests/live/test_messages.py` tests the parts that are used here. Its client is not used: a
lock-step socket (`connection`) distinguishes refusals from lost connections and bounds what is in memory.

Read-only by construction: `frame` refuses any API key outside `ALLOWED_KEYS`, and any replica id but `REPLICA_ID`. A
fetch with another id would make this client an observer of the quorum, and with a voter's could move the high watermark.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobs.exit import UsageError

try:
    from kafka.net.sasl import get_sasl_mechanism
    from kafka.protocol.admin import DescribeQuorumRequest, DescribeQuorumResponse
    from kafka.protocol.api_message import ApiMessage
    from kafka.protocol.consumer import FetchRequest, FetchResponse
    from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse
    from kafka.protocol.sasl import (
        SaslAuthenticateRequest,
        SaslAuthenticateResponse,
        SaslHandshakeRequest,
        SaslHandshakeResponse,
    )
except ModuleNotFoundError as error:
    raise UsageError(
        "reading controllers live needs kafka-python: pip install 'kraft-migration-audit[live]', or give folders"
    ) from error

FETCH, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, DESCRIBE_QUORUM, FETCH_SNAPSHOT = 1, 17, 18, 36, 55, 59
ALLOWED_KEYS = frozenset({FETCH, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE, DESCRIBE_QUORUM, FETCH_SNAPSHOT})
# A consumer's: the leader keeps no state of who fetches so.
REPLICA_ID = -1
CLIENT_ID = "kraft-audit"
TOPIC = "__cluster_metadata"
TOPIC_ID = uuid.UUID(int=1)
# Below 13 a fetch of the metadata log is refused although it is offered; above 17 nothing was tried.
FETCH_VERSIONS = (13, 17)

NONE, UNKNOWN_SERVER_ERROR, NOT_LEADER, INVALID_REQUEST = 0, -1, 6, 42
UNSUPPORTED_SASL_MECHANISM, UNSUPPORTED_VERSION, SASL_AUTHENTICATION_FAILED = 33, 35, 58
CLUSTER_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID, INCONSISTENT_CLUSTER_ID = 31, 100, 104
FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH = 74, 75
ERROR_NAMES = {
    UNKNOWN_SERVER_ERROR: "UNKNOWN_SERVER_ERROR",
    NOT_LEADER: "NOT_LEADER_OR_FOLLOWER",
    7: "REQUEST_TIMED_OUT",
    8: "BROKER_NOT_AVAILABLE",
    CLUSTER_AUTHORIZATION_FAILED: "CLUSTER_AUTHORIZATION_FAILED",
    UNSUPPORTED_SASL_MECHANISM: "UNSUPPORTED_SASL_MECHANISM",
    34: "ILLEGAL_SASL_STATE",
    UNSUPPORTED_VERSION: "UNSUPPORTED_VERSION",
    INVALID_REQUEST: "INVALID_REQUEST",
    SASL_AUTHENTICATION_FAILED: "SASL_AUTHENTICATION_FAILED",
    FENCED_LEADER_EPOCH: "FENCED_LEADER_EPOCH",
    UNKNOWN_LEADER_EPOCH: "UNKNOWN_LEADER_EPOCH",
    98: "SNAPSHOT_NOT_FOUND",
    99: "POSITION_OUT_OF_RANGE",
    UNKNOWN_TOPIC_ID: "UNKNOWN_TOPIC_ID",
    INCONSISTENT_CLUSTER_ID: "INCONSISTENT_CLUSTER_ID",
}


class FetchSnapshotRequest(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """kafka-python has no schema of it; this one is in FetchSnapshotRequest.json (KIP-630, KIP-853)."""


class FetchSnapshotResponse(ApiMessage, load_json=__package__):  # type: ignore[call-arg, misc]
    """Likewise; the registry of answers holds classes weakly, this module keeps it."""


_ANSWERS = {
    FETCH: FetchResponse,
    SASL_HANDSHAKE: SaslHandshakeResponse,
    API_VERSIONS: ApiVersionsResponse,
    SASL_AUTHENTICATE: SaslAuthenticateResponse,
    DESCRIBE_QUORUM: DescribeQuorumResponse,
    FETCH_SNAPSHOT: FetchSnapshotResponse,
}


class ForbiddenRequestError(AssertionError):
    """A request that this client must never send was about to be sent: an error of the program."""


class GarbledAnswerError(ValueError):
    """Bytes that are not an answer to the request; the text shows none of them."""


@dataclass(frozen=True)
class WireRequest:
    """One request: `message` is the library's. Its repr may hold a password, so it is not shown."""

    key: int
    version: int
    message: Any

    def __repr__(self) -> str:
        return f"Request(key={self.key}, version={self.version})"


@dataclass(frozen=True)
class OffsetAndEpoch:
    """A snapshot's id, or where two logs part: an offset (exclusive) and the epoch of the record before it."""

    offset: int
    epoch: int


@dataclass(frozen=True)
class LeaderHint:
    """The leader according to a response: id (-1 if unknown), epoch, and its address if the response has it."""

    leader_id: int
    epoch: int
    host: str | None = None
    port: int | None = None


@dataclass(frozen=True)
class FetchAnswer:
    """An answer to a fetch. `high_watermark` is exclusive, -1 while the leader has none.

    `records` are whole batches and perhaps the beginning of another one, of the leader's own segment.
    """

    error: int
    high_watermark: int
    log_start: int
    leader: LeaderHint
    diverging: OffsetAndEpoch | None
    snapshot: OffsetAndEpoch | None
    records: bytes


@dataclass(frozen=True)
class SnapshotAnswer:
    """A piece of a snapshot: `data` begins at byte `position` of `size`."""

    error: int
    size: int
    position: int
    data: bytes


@dataclass(frozen=True)
class Replica:
    """A voter or observer as the leader sees it. Times are the leader's clock in milliseconds, None if unknown."""

    replica_id: int
    log_end: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None
    directory_id: str | None


@dataclass(frozen=True)
class QuorumAnswer:
    """An answer to DescribeQuorum. With an `error` nothing else in it may be believed."""

    error: int
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]


@dataclass(frozen=True)
class SaslAnswer:
    """An answer to a handshake or to a token."""

    error: int
    token: bytes
    mechanisms: tuple[str, ...] = ()


def error_name(code: int) -> str:
    """Kafka's name of an error code, with the number."""
    return f"{ERROR_NAMES.get(code, 'error')} ({code})"


def api_versions() -> WireRequest:
    """Ask which requests the listener offers, in which versions."""
    message = ApiVersionsRequest(client_software_name=CLIENT_ID, client_software_version="1", version=3)
    return WireRequest(API_VERSIONS, 3, message)


def sasl_handshake(mechanism: str) -> WireRequest:
    """Ask for a mechanism."""
    return WireRequest(SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism=mechanism, version=1))


def sasl_authenticate(token: bytes) -> WireRequest:
    """Send a mechanism's token."""
    return WireRequest(SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=token, version=2))


def fetch(
    version: int, cluster_id: str | None, epoch: int, offset: int, last_epoch: int, max_bytes: int
) -> WireRequest:
    """Ask for the log from `offset` on: of the leader of `epoch`, after a record of `last_epoch`; answered at once."""
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0,
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=max_bytes,
    )
    message = FetchRequest(
        cluster_id=cluster_id,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=max_bytes,
        topics=[FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        version=version,
    )
    return WireRequest(FETCH, version, message)


def fetch_snapshot(
    version: int, cluster_id: str | None, epoch: int, snapshot: OffsetAndEpoch, position: int, max_bytes: int
) -> WireRequest:
    """Ask for a piece of a snapshot from byte `position` on."""
    topic = FetchSnapshotRequest.TopicSnapshot
    partition = topic.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=topic.PartitionSnapshot.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch),
        position=position,
    )
    message = FetchSnapshotRequest(
        cluster_id=cluster_id,
        replica_id=REPLICA_ID,
        max_bytes=max_bytes,
        topics=[topic(name=TOPIC, partitions=[partition])],
        version=version,
    )
    return WireRequest(FETCH_SNAPSHOT, version, message)


def describe_quorum(version: int) -> WireRequest:
    """Ask for leader, epoch, high watermark, voters and observers."""
    topic = DescribeQuorumRequest.TopicData
    message = DescribeQuorumRequest(
        topics=[topic(topic_name=TOPIC, partitions=[topic.PartitionData(partition_index=0)])], version=version
    )
    return WireRequest(DESCRIBE_QUORUM, version, message)


def frame(request: WireRequest, correlation_id: int) -> bytes:
    """The bytes of a request, length first. Raises ForbiddenRequestError for what must never be sent."""
    message = request.message
    if request.key not in ALLOWED_KEYS or request.key != message.API_KEY:
        raise ForbiddenRequestError(f"API key {message.API_KEY} is not one that this client sends")
    if request.key in (FETCH, FETCH_SNAPSHOT):
        state = getattr(message, "replica_state", None)
        ids = {message.replica_id, REPLICA_ID if state is None else state.replica_id}
        if ids != {REPLICA_ID}:
            raise ForbiddenRequestError(f"a fetch with a replica id other than {REPLICA_ID}")
    message.with_header(correlation_id=correlation_id, client_id=CLIENT_ID)
    return bytes(message.encode(version=request.version, header=True, framed=True))


def decode(request: WireRequest, correlation_id: int, data: bytes) -> Any:
    """The library's answer in a frame's bytes (without the length). Raises GarbledAnswerError."""
    try:
        answer = _ANSWERS[request.key].decode(data, version=request.version, header=True)
    except Exception:
        # The library's text is not shown: it could contain bytes of the answer.
        raise GarbledAnswerError(f"{len(data)} bytes that are not an answer to API key {request.key}") from None
    if answer.header.correlation_id != correlation_id:
        raise GarbledAnswerError(f"an answer to another request than the one of API key {request.key}")
    return answer


def offered(answer: Any) -> tuple[int, dict[int, tuple[int, int]]]:
    """Error, and least and greatest version by API key."""
    keys = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys or ()}
    return answer.error_code, keys


def sasl_answer(answer: Any) -> SaslAnswer:
    """What a handshake or a token was answered."""
    mechanisms = tuple(getattr(answer, "mechanisms", None) or ())
    return SaslAnswer(answer.error_code, bytes(getattr(answer, "auth_bytes", None) or b""), mechanisms)


def fetch_answer(answer: Any) -> FetchAnswer:
    """What a fetch was answered."""
    parts = [part for topic in answer.responses or () for part in topic.partitions]
    if answer.error_code != NONE or not parts:
        error = answer.error_code if answer.error_code != NONE else UNKNOWN_SERVER_ERROR
        return FetchAnswer(error, -1, -1, LeaderHint(-1, -1), None, None, b"")
    part = parts[0]
    return FetchAnswer(
        error=part.error_code,
        high_watermark=part.high_watermark,
        log_start=part.log_start_offset,
        leader=_leader(part.current_leader, getattr(answer, "node_endpoints", None)),
        diverging=_offset_and_epoch(part.diverging_epoch),
        snapshot=_offset_and_epoch(part.snapshot_id),
        records=bytes(part.records or b""),
    )


def snapshot_answer(answer: Any) -> SnapshotAnswer:
    """What a request for a piece of a snapshot was answered."""
    parts = [part for topic in answer.topics or () for part in topic.partitions]
    if answer.error_code != NONE or not parts:
        error = answer.error_code if answer.error_code != NONE else UNKNOWN_SERVER_ERROR
        return SnapshotAnswer(error, -1, -1, b"")
    part = parts[0]
    return SnapshotAnswer(part.error_code, part.size, part.position, bytes(part.unaligned_records or b""))


def quorum_answer(answer: Any) -> QuorumAnswer:
    """What DescribeQuorum was answered."""
    parts = [part for topic in answer.topics or () for part in topic.partitions]
    if answer.error_code != NONE or not parts or parts[0].error_code != NONE:
        code = answer.error_code or (parts[0].error_code if parts else UNKNOWN_SERVER_ERROR)
        return QuorumAnswer(code, -1, -1, -1, (), ())
    part = parts[0]
    voters, observers = (tuple(map(_replica, each)) for each in (part.current_voters, part.observers))
    return QuorumAnswer(NONE, part.leader_id, part.leader_epoch, part.high_watermark, voters, observers)


def sasl_mechanism(name: str, username: str, password: str, host: str) -> Any:
    """A client of a SASL mechanism: `auth_bytes()`, `receive(bytes)`, `is_done()`, `is_authenticated()`."""
    if name.startswith("SCRAM"):
        # RFC 5802, section 5.1; the library sends names as they are.
        username = username.replace("=", "=3D").replace(",", "=2C")
    settings: Mapping[str, object] = {
        "sasl_mechanism": name,
        "sasl_plain_username": username,
        "sasl_plain_password": password,
        "host": host,
    }
    return get_sasl_mechanism(name)(**settings)


def _replica(state: Any) -> Replica:
    directory = getattr(state, "replica_directory_id", None)
    return Replica(
        replica_id=state.replica_id,
        log_end=_known(state.log_end_offset),
        last_fetch_ms=_known(getattr(state, "last_fetch_timestamp", None)),
        last_caught_up_ms=_known(getattr(state, "last_caught_up_timestamp", None)),
        directory_id=_spelled(directory) if directory is not None and directory.int else None,
    )


def _spelled(identity: uuid.UUID) -> str:
    """As Kafka spells a Uuid: base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(identity.bytes).rstrip(b"=").decode()


def _known(number: int | None) -> int | None:
    return None if number is None or number < 0 else number


def _leader(leader: Any, endpoints: Any) -> LeaderHint:
    if leader is None:
        return LeaderHint(-1, -1)
    for node in endpoints or ():
        if node.node_id == leader.leader_id and node.host:
            return LeaderHint(leader.leader_id, leader.leader_epoch, node.host, node.port)
    return LeaderHint(leader.leader_id, leader.leader_epoch)


def _offset_and_epoch(found: Any) -> OffsetAndEpoch | None:
    return None if found is None or found.end_offset < 0 else OffsetAndEpoch(found.end_offset, found.epoch)
