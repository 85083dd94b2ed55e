"""What the project says that a request is answered and what it writes; an expectation is of one state of the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.live.fire.log import Row
from tests.live.fire.wire import Part, PartAnswer
from tests.live.fire.world import METADATA_VERSION, World
from transforms.features.matrix import BROKER, CONTROLLER, Node
from transforms.features.update import Cluster, FeatureVerdict, RequestKind, Update, dry_run
from transforms.isr.partition import Ids, PartitionState, change_of, merged
from transforms.isr.validate import AlterPartitionAnswer, AlterPartitionRequest, Controller, Error, validate

CHANGE = "PARTITION_CHANGE_RECORD"
CLOSED = "closed"


@dataclass(frozen=True)
class Question:
    """One partition of an AlterPartition request as `isr validate` is asked it."""

    key: tuple[str, int]
    controller: Controller
    request: AlterPartitionRequest
    answer: AlterPartitionAnswer


@dataclass(frozen=True)
class AlterPartition:
    """A request to be sent, and what it is held to."""

    version: int
    sender: int
    sender_epoch: int
    parts: tuple[Part, ...]
    ids: tuple[str, ...]

    def questions(self, world: World) -> list[Question]:
        """Each partition's question and the project's answer."""
        found = []
        for part, topic_id in zip(self.parts, self.ids, strict=True):
            known = topic_id if self.version >= 2 else world.topics.get(part.topic, "")
            controller = world.controller(known, part.partition)
            request = AlterPartitionRequest(
                part.leader_epoch,
                part.partition_epoch,
                tuple(member for member, _ in part.isr),
                self.sender,
                self.sender_epoch,
                dict(part.isr),
                part.recovery,
                self.version,
            )
            found.append(Question((known, part.partition), controller, request, validate(request, controller)))
        return found


def agrees(questions: Sequence[Question], answer: Any, rows: Sequence[Row]) -> bool:
    """Whether the answer is the predicted one, and the records are those that follow first in the log."""
    first = questions[0].answer
    if answer == CLOSED or first.error is Error.UNSUPPORTED_VERSION:
        return answer == CLOSED and first.error is Error.UNSUPPORTED_VERSION
    error, parts = answer
    if first.error is Error.STALE_BROKER_EPOCH or error:
        return bool(error == first.code)
    if not all(_same(question, part) for question, part in zip(questions, parts, strict=True)):
        return False
    return _written(questions, rows)


def _same(question: Question, part: PartAnswer) -> bool:
    if part.error or question.answer.code:
        return part.error == question.answer.code
    state = question.answer.result
    assert state is not None
    told = (part.leader, part.leader_epoch, part.isr, part.partition_epoch)
    # Version 0 has no recovery state to tell of.
    recovery = question.request.version == 0 or part.recovery == state.leader_recovery_state
    return recovery and told == (state.leader, state.leader_epoch, state.isr, state.partition_epoch)


def _written(questions: Sequence[Question], rows: Sequence[Row]) -> bool:
    wanted = [question for question in questions if question.answer.writes]
    changes = [row for row in rows if row["type"] == CHANGE]
    for question, row in zip(wanted, changes, strict=False):
        if (row["topic_id"], row["partition_id"]) != question.key:
            return False
        if merged(question.controller.partition, change_of(row, whole=False)) != question.answer.result:
            return False
    # What is written later is another event's; a change of a partition that should have none is not.
    # A silent broker's session may have ended since: what its fencing takes from partitions that it leads or is in sync with.
    fenced = set(map(_fenced, rows))
    mine = {
        question.key
        for question in questions
        if not question.answer.writes and not question.answer.code and fenced.isdisjoint(_members(question))
    }
    stray = any((row["topic_id"], row["partition_id"]) in mine for row in changes[len(wanted) :])
    return len(changes) >= len(wanted) and not stray


def _members(question: Question) -> Ids:
    state = question.controller.partition
    return () if state is None else (state.leader, *state.isr)


def _fenced(row: Row) -> int | None:
    """The broker that a record fences."""
    if row["type"] == "FENCE_BROKER_RECORD":
        return int(row["body"]["id"])
    if row["type"] == "BROKER_REGISTRATION_CHANGE_RECORD" and row["body"].get("fenced") == 1:
        return int(row["body"]["brokerId"])
    return None


@dataclass(frozen=True)
class FeatureUpdate:
    """An UpdateFeatures request: (feature, level, upgrade type 1 to 3), and what it is held to."""

    updates: tuple[tuple[str, int, int], ...]
    validate_only: bool


_KINDS = {1: RequestKind.UPGRADE, 2: RequestKind.SAFE_DOWNGRADE, 3: RequestKind.UNSAFE_DOWNGRADE}
_CODES = {"NONE": 0, "INVALID_REQUEST": 42, "INVALID_UPDATE_VERSION": 95, "UNKNOWN_SERVER_ERROR": -1}
FeatureAnswers = tuple[tuple[str, int, str], ...]


def cluster_of(world: World, local: int) -> Cluster:
    """The world in the words of `features`. The only adapter between the harness and `transforms.features`."""
    finalised = {name: level for name, level in world.features.items() if level}
    nodes = [Node(BROKER, number, broker.ranges) for number, broker in world.brokers.items()]
    nodes += [Node(CONTROLLER, number, ranges) for number, ranges in world.controllers.items()]
    voters = frozenset({local})
    return Cluster(world.release, finalised, nodes, voters, local, directory_ids=voters)


def feature_answers(asked: FeatureUpdate, world: World, local: int) -> list[FeatureAnswers] | None:
    """Every answer that would be right: (feature, code, text); in 4.x one of '' for the request. None: not predicted.

    Kafka asks brokers in the order of a hash table, and the features of a request, too: any of them may be named.
    """
    updates = [Update(name, level, _KINDS[kind]) for name, level, kind in asked.updates]
    found = dry_run(updates, cluster_of(world, local))
    if any(answer.verdict is FeatureVerdict.UNKNOWN for answer in found.answers):
        return None
    if world.release < (4, 0):
        each = [_texts(answer.message, answer.blocking) for answer in found.answers]
        return _combinations(
            [
                [(answer.update.feature, _CODES[answer.error], text) for text in texts]
                for answer, texts in zip(found.answers, each, strict=True)
            ]
        )
    failed = [answer for answer in found.answers if answer.verdict is FeatureVerdict.NO]
    if not failed:
        return [(("", 0, ""),)]
    alone = [one for update in updates for one in _alone(update, updates, world, local)]
    texts = [(answer.error, answer.message) for answer in failed] + alone
    return [(("", _CODES[error], text),) for error, text in dict.fromkeys(texts)]


# What a request is told in 4.x before what is wrong with the first feature.
REQUEST_PREFIX = "The update failed for all features since the following feature had an error: "


def _alone(update: Update, updates: Sequence[Update], world: World, local: int) -> list[tuple[str, str]]:
    """What the request would be answered if this feature were asked for first."""
    ordered = [update, *(each for each in updates if each is not update)]
    answer = dry_run(ordered, cluster_of(world, local)).answers[0]
    if answer.verdict is not FeatureVerdict.NO:
        return []
    message = answer.message.removeprefix(REQUEST_PREFIX)
    return [(answer.error, REQUEST_PREFIX + text) for text in _texts(message, answer.blocking)]


def _texts(message: str, blocking: Sequence[str]) -> list[str]:
    """The message with each of the nodes that are in the way in the place of the one that is named."""
    named = next((each for each in blocking if message.endswith(each)), None)
    if named is None:
        return [message]
    return [message.removesuffix(named) + each for each in blocking]


def _combinations(choices: Sequence[Sequence[tuple[str, int, str]]]) -> list[FeatureAnswers]:
    combined: list[FeatureAnswers] = [()]
    for options in choices:
        combined = [(*done, option) for done in combined for option in options]
    return combined


def level(world: World) -> int:
    """The finalised metadata.version."""
    return world.features.get(METADATA_VERSION, 1)


def told(state: PartitionState | None) -> str:
    """A state in few words."""
    if state is None:
        return "none"
    return " ".join(f"{name}={value}" for name, value in vars(replace(state)).items() if value not in ((), None))
