"""What leaves this client, held to another library's reading of it; and what of kafka-python is relied on.

A minor version of kafka-python that moves one of its internals fails here, and not in a user's audit.
"""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from jobs.sources.kraft.live import messages
from jobs.sources.kraft.live.messages import ForbiddenRequestError, GarbledAnswerError, OffsetAndEpoch, WireRequest

EVERY_REQUEST = [
    messages.api_versions(),
    messages.sasl_handshake("PLAIN"),
    messages.sasl_authenticate(b"token"),
    *(messages.fetch(version, "cluster", 3, 17, 2, 1 << 20) for version in range(13, 18)),
    *(messages.fetch_snapshot(version, "cluster", 3, OffsetAndEpoch(400, 2), 7, 1 << 20) for version in (0, 1)),
    *(messages.describe_quorum(version) for version in (0, 1, 2)),
]


def read_by_kio(request: WireRequest) -> tuple[Any, Any]:
    """The request's header and body as kio reads them from the bytes that would be sent."""
    data = messages.frame(request, 5)
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    schema = load_request_schema(request.key, request.version)
    header, used = entity_reader(schema.__header_schema__)(data[4:], 0)
    body, size = entity_reader(schema)(data[4:], used)
    assert used + size == len(data) - 4, "bytes that the other library does not know"
    return header, body


@pytest.mark.parametrize("request_", EVERY_REQUEST, ids=repr)
def test_another_library_reads_what_is_sent(request_: WireRequest) -> None:
    header, _ = read_by_kio(request_)
    assert (header.request_api_key, header.request_api_version, header.correlation_id) == (
        request_.key,
        request_.version,
        5,
    )


@pytest.mark.parametrize("request_", [each for each in EVERY_REQUEST if each.key in (1, 59)], ids=repr)
def test_no_replica_id_but_a_consumers_ever_leaves(request_: WireRequest) -> None:
    """With any other the leader would count this client among the observers."""
    _, body = read_by_kio(request_)
    state = getattr(body, "replica_state", None)
    ids = {getattr(body, "replica_id", -1), -1 if state is None else state.replica_id}
    assert ids == {-1} == {messages.REPLICA_ID}


def test_another_library_reads_the_fetch_as_it_was_meant() -> None:
    _, body = read_by_kio(messages.fetch(17, "cluster", 3, 17, 2, 1 << 20))
    [topic] = body.topics
    [partition] = topic.partitions
    assert (body.cluster_id, topic.topic_id.int) == ("cluster", 1)
    assert (partition.current_leader_epoch, partition.fetch_offset, partition.last_fetched_epoch) == (3, 17, 2)


def test_another_library_reads_the_snapshots_request_as_it_was_meant() -> None:
    _, body = read_by_kio(messages.fetch_snapshot(1, "cluster", 3, OffsetAndEpoch(400, 2), 7, 1 << 20))
    [topic] = body.topics
    [partition] = topic.partitions
    assert (topic.name, body.cluster_id, partition.position) == ("__cluster_metadata", "cluster", 7)
    assert (partition.snapshot_id.end_offset, partition.snapshot_id.epoch) == (400, 2)


def test_a_piece_of_a_snapshot_that_another_library_wrote_is_read() -> None:
    schema = load_response_schema(59, 1)
    module = sys.modules[schema.__module__]
    part = module.PartitionSnapshot(
        index=0,
        error_code=ErrorCode.none,
        snapshot_id=module.SnapshotId(end_offset=400, epoch=2),
        current_leader=module.LeaderIdAndEpoch(leader_id=3000, leader_epoch=3),
        size=9,
        position=4,
        unaligned_records=b"bytes",
    )
    body = schema(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        topics=(module.TopicSnapshot(name="__cluster_metadata", partitions=(part,)),),
    )
    buffer = io.BytesIO()
    entity_writer(schema.__header_schema__)(buffer, schema.__header_schema__(correlation_id=5))
    entity_writer(schema)(buffer, body)
    request = messages.fetch_snapshot(1, "cluster", 3, OffsetAndEpoch(400, 2), 4, 1 << 20)
    answer = messages.snapshot_answer(messages.decode(request, 5, buffer.getvalue()))
    assert (answer.error, answer.size, answer.position, answer.data) == (0, 9, 4, b"bytes")


@pytest.mark.parametrize(
    "message", [ProduceRequest(version=9), MetadataRequest(version=9)], ids=["Produce", "Metadata"]
)
def test_a_request_that_is_not_listed_never_leaves(message: Any) -> None:
    with pytest.raises(ForbiddenRequestError):
        messages.frame(WireRequest(message.API_KEY, 9, message), 1)
    with pytest.raises(ForbiddenRequestError):
        messages.frame(WireRequest(messages.FETCH, 9, message), 1)


def test_only_these_six_are_listed() -> None:
    assert frozenset({1, 17, 18, 36, 55, 59}) == messages.ALLOWED_KEYS


@pytest.mark.parametrize("version", [14, 17])
def test_a_fetch_with_another_replica_id_never_leaves(version: int) -> None:
    state = FetchRequest.ReplicaState(replica_id=3001) if version >= 15 else None
    message = FetchRequest(replica_id=3001 if version < 15 else -1, replica_state=state, version=version)
    with pytest.raises(ForbiddenRequestError, match="replica id"):
        messages.frame(WireRequest(messages.FETCH, version, message), 1)


def test_bytes_that_are_no_answer_are_not_shown() -> None:
    with pytest.raises(GarbledAnswerError) as error:
        messages.decode(messages.api_versions(), 1, b"secret and more bytes")
    assert "secret" not in str(error.value)


def test_an_answer_to_another_request_is_refused() -> None:
    with pytest.raises(GarbledAnswerError):
        messages.decode(messages.sasl_handshake("PLAIN"), 2, b"\0\0\0\1" + b"\0\0" + b"\0\0\0\0")


def test_a_request_shows_no_token() -> None:
    assert "token" not in repr(messages.sasl_authenticate(b"token"))
    assert repr(replace(messages.api_versions(), version=2)) == "Request(key=18, version=2)"


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_librarys_mechanisms_are_driven_as_it_drives_them(name: str) -> None:
    mechanism = messages.sasl_mechanism(name, "ann", "pencil", "localhost")
    first = mechanism.auth_bytes()
    assert first == b"\0".join([b"ann", b"ann", b"pencil"]) if name == "PLAIN" else first.startswith(b"n,,n=ann,r=")
    assert not mechanism.is_done()
    if name == "PLAIN":
        mechanism.receive(b"")
        assert mechanism.is_done()
        assert mechanism.is_authenticated()


def test_names_with_commas_are_escaped_for_scram() -> None:
    mechanism = messages.sasl_mechanism("SCRAM-SHA-256", "a,b=c", "pencil", "localhost")
    assert mechanism.auth_bytes().startswith(b"n,,n=a=2Cb=3Dc,r=")
