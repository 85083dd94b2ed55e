"""What the harness is made of, without a controller: its encoding, its reading of a log, its mutants."""

from __future__ import annotations

import io
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from jobs.commands.demo.kafka_servers import KafkaNode
from tests.captures import capture
from tests.live.fire import audit, evidence, shrink, wire
from tests.live.fire.log import Follower
from tests.live.fire.moves import reassigned
from tests.live.fire.play import Brokers, Player
from tests.live.fire.predict import FeatureUpdate, Question, feature_answers
from tests.live.fire.servers import Running
from tests.live.fire.session import Asked, Session
from tests.live.fire.steps import Move, Reassign
from tests.live.fire.wire import Part
from tests.live.fire.world import World
from transforms.isr.partition import RECOVERING, PartitionState
from transforms.isr.validate import AlterPartitionRequest, Controller, ControllerMode, Registration, validate

TOPICS = (uuid.UUID(int=7), uuid.UUID(int=8))
PARTS = [
    Part("a", TOPICS[0], 0, 5, 10, ((1, 100), (2, -1)), 0),
    Part("a", TOPICS[0], 3, 6, 11, (), 1),
    Part("b", TOPICS[1], 2, 7, 12, ((3, 300),), 0),
]


@pytest.mark.parametrize("version", [2, 3])
def test_another_library_reads_the_requests_that_are_encoded_here(version: int) -> None:
    schema = load_request_schema(wire.ALTER_PARTITION, version)
    data = wire.alter_partition(version, 1, 42, PARTS)
    body, size = entity_reader(schema)(data, 0)
    assert size == len(data)
    assert (body.broker_id, body.broker_epoch) == (1, 42)
    told = [
        (topic.topic_id, part.partition_index, part.leader_epoch, part.partition_epoch, part.leader_recovery_state)
        for topic in body.topics
        for part in topic.partitions
    ]
    assert told == [
        (part.topic_id, part.partition, part.leader_epoch, part.partition_epoch, part.recovery) for part in PARTS
    ]
    members = [
        tuple((each.broker_id, each.broker_epoch) for each in part.new_isr_with_epochs)
        if version == 3
        else part.new_isr
        for topic in body.topics
        for part in topic.partitions
    ]
    assert members == [part.isr if version == 3 else tuple(member for member, _ in part.isr) for part in PARTS]


def test_what_old_versions_lack_is_left_out() -> None:
    sizes = [len(wire.alter_partition(version, 1, 42, PARTS)) for version in (0, 1)]
    assert sizes[1] - sizes[0] == len(PARTS)
    assert b"\x02a" in wire.alter_partition(0, 1, 42, PARTS)


def test_answers_of_another_library_are_read() -> None:
    schema = load_response_schema(wire.ALTER_PARTITION, 3)
    module = __import__(schema.__module__, fromlist=["x"])
    part = module.PartitionData(
        partition_index=3,
        error_code=ErrorCode.none,
        leader_id=1,
        leader_epoch=5,
        isr=(1, 2),
        leader_recovery_state=1,
        partition_epoch=9,
    )
    body = schema(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        topics=(module.TopicData(topic_id=TOPICS[0], partitions=(part, part)),),
    )
    data = io.BytesIO()
    entity_writer(schema)(data, body)
    error, answers = wire.read_answer(3, b"\0\0\0\0\0" + data.getvalue(), 5)
    assert (error, len(answers)) == (0, 2)
    assert answers[1] == wire.PartAnswer(0, 1, 5, (1, 2), 1, 9)


@pytest.mark.parametrize("stage", ["2", "6", "7", "12"])
def test_a_real_log_replays_to_the_controllers_own_snapshots(stage: str) -> None:
    folder = capture("4.3.1-kraft", stage) / "kraft"
    logs = [path for path in folder.rglob("*.log") if path.name.startswith("0000")]
    looked = 0
    for first in [path for path in logs if path.stem == "0" * 20]:
        rows = Follower(first.parent).new()
        assert rows, first
        assert audit.beside_snapshots(rows, first.parent, (4, 3)) == []
        looked += audit.snapshots(first.parent)
        world = World((4, 3))
        for row in rows:
            world.apply(row)
        assert audit.findings(world) == []
        assert world.partitions
    assert looked or stage == "2"


def test_a_log_that_grows_in_the_middle_of_a_batch_is_followed(tmp_path: Path) -> None:
    folder = next(path.parent for path in (capture("4.3.1-kraft", "2") / "kraft").rglob("0*0.log"))
    data = (folder / f"{0:020d}.log").read_bytes()
    copy = tmp_path / f"{0:020d}.log"
    follower, rows = Follower(tmp_path), []
    for size in [*range(0, len(data), 777), len(data)]:
        copy.write_bytes(data[:size])
        rows += follower.new()
    offsets = [row["offset"] for row in Follower(folder).new()]
    assert [row["offset"] for row in rows] == offsets[: len(rows)]
    assert len(rows) > 500


STATE = PartitionState(replicas=(1, 2, 3), isr=(1, 2), leader=1, leader_epoch=5, partition_epoch=10)
KNOWN = Controller(ControllerMode.KRAFT, (3, 9), {number: Registration(100 * number) for number in (1, 2, 3)}, STATE)
RIGHT = AlterPartitionRequest(5, 10, (1, 2, 3), 1, 100)


@pytest.mark.parametrize("rule", evidence.RULES)
def test_a_rule_that_is_left_out_is_seen_in_an_answer_that_rests_on_it(rule: int) -> None:
    moving = PartitionState((1, 2, 3), (1, 2), 1, 5, 10, adding=(3,), removing=(1,))
    recovering = PartitionState((1, 2, 3), (1,), 1, 5, 10, leader_recovery_state=RECOVERING)
    asked = {
        0: (replace(RIGHT, sender_epoch=99), KNOWN),
        1: (RIGHT, replace(KNOWN, topic_known=False)),
        2: (RIGHT, replace(KNOWN, partition=None)),
        3: (replace(RIGHT, leader_epoch=6), KNOWN),
        4: (replace(RIGHT, partition_epoch=11), KNOWN),
        5: (replace(RIGHT, leader_epoch=4), KNOWN),
        6: (replace(RIGHT, sender=2, sender_epoch=200), KNOWN),
        7: (replace(RIGHT, partition_epoch=9), KNOWN),
        8: (replace(RIGHT, isr=(1, 1)), KNOWN),
        9: (replace(RIGHT, isr=(2,)), KNOWN),
        10: (replace(RIGHT, leader_recovery_state=RECOVERING, isr=(1, 2)), replace(KNOWN, partition=recovering)),
        11: (replace(RIGHT, leader_recovery_state=RECOVERING, isr=(1,)), KNOWN),
        12: (RIGHT, replace(KNOWN, brokers={**KNOWN.brokers, 3: Registration(300, fenced=True)})),
        13: (RIGHT, replace(KNOWN, partition=moving)),
    }[rule]
    answer = validate(*asked)
    assert answer.rule == rule
    told = [Asked(Question(("t", 0), asked[1], asked[0], answer), answer.code, None)]
    assert evidence.seen(told, validate) is None
    with evidence.without(rule) as mutant:
        assert evidence.seen(told, mutant) == 0


@pytest.mark.parametrize("needed", [{9}, {3, 9}, {0, 4, 5, 9}, set(range(10))])
def test_a_sequence_shrinks_to_the_steps_that_it_needs(needed: set[int]) -> None:
    assert shrink.shortest(range(10), lambda steps: needed <= set(steps), tries=200) == sorted(needed)


def test_a_sequence_is_shrunk_no_longer_than_is_allowed() -> None:
    tried: list[int] = []

    def shows(steps: object) -> bool:
        tried.append(1)
        return False

    assert shrink.shortest(range(100), shows, tries=7) == list(range(100))
    assert len(tried) == 7


class Mute(wire.Connection):
    """A connection that encodes and does not send."""

    sent = 0

    def _exchange(self, key: int, version: int, body: bytes, flexible: bool) -> bytes:
        Mute.sent += 1
        raise wire.ClosedError


NEWEST = {
    19: 7,
    20: 6,
    30: 3,
    31: 3,
    33: 2,
    37: 3,
    43: 2,
    44: 1,
    45: 1,
    49: 1,
    51: 0,
    56: 3,
    57: 2,
    62: 4,
    63: 1,
    64: 0,
    73: 0,
}


def a_session(release: tuple[int, int]) -> Session:
    """A session over the state of a real log, with nobody who answers."""
    folder = next(path.parent for path in (capture("4.3.1-kraft", "7") / "kraft").rglob("0*0.log"))
    world = World(release)
    for row in Follower(folder).new():
        world.apply(row)
    connection = Mute(0, dict(NEWEST))
    players = [Player(number) for number in sorted(world.brokers)]
    node = KafkaNode(3000, 0, folder, {})
    follower = Follower(Path("/nowhere"))
    return Session(
        Running(release, node), 1, connection, Brokers(release, connection, "x" * 22, players), world, follower
    )


@pytest.mark.parametrize("release", [(3, 7), (3, 9), (4, 0), (4, 4)])
def test_every_request_that_is_made_can_be_sent_and_predicted(release: tuple[int, int]) -> None:
    session = a_session(release)
    kinds = set()
    for number in range(1500):
        action = session.maker(Random(f"7/{number}")).action()  # noqa: S311
        kinds.add(type(action).__name__)
        with suppress(wire.ClosedError):
            if isinstance(action, FeatureUpdate):
                assert feature_answers(action, session.world, 3000) != []
            if isinstance(action, Reassign):
                reassigned(action, session.world, 0, [])
            if not isinstance(action, Move):
                session.fire(action)
    assert kinds == {"AlterPartition", "FeatureUpdate", "Move", "Reassign", "Elect", "Other"}
    assert Mute.sent > 1000
