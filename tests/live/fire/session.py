"""One controller under fire: each request, its answer and what it wrote, beside what was predicted of the state it met."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random
from typing import Any

from tests.live.fire.log import Follower, Row
from tests.live.fire.moves import elected, reassigned
from tests.live.fire.play import Brokers, Player
from tests.live.fire.predict import CLOSED, AlterPartition, FeatureUpdate, Question, agrees, feature_answers, level
from tests.live.fire.servers import Running
from tests.live.fire.steps import (
    ELECT_LEADERS,
    REASSIGN,
    UPDATE_FEATURES,
    Action,
    Elect,
    Maker,
    Move,
    Other,
    Reassign,
)
from tests.live.fire.wire import ClosedError, Connection, PartAnswer
from tests.live.fire.world import Key, World, as_uuid
from transforms.isr.history import ClassifiedChange

# An answer may rest on a state that came about between the last look at the log and the request: at most so many records.
MOST_RACED = 200
NOT_CONTROLLER = 41
_SOON = timedelta(seconds=10)
Changed = list[tuple[Key, ClassifiedChange]]


@dataclass(frozen=True)
class Asked:
    """One partition's question and what was really answered, for mutants of the prediction."""

    question: Question
    error: int
    part: PartAnswer | None


@dataclass(frozen=True)
class Disagreement:
    """Where Kafka and the project differ: the step, what it was about, and both sides in words."""

    step: int
    kind: str
    about: str
    predicted: str
    real: str

    @property
    def signature(self) -> tuple[str, str]:
        """What makes two of them the same one."""
        return self.kind, self.about


@dataclass
class Session:
    """State of one session. `counts` says how many of what; `lossy` are elections that were called lossy, with reasons."""

    running: Running
    seed: int
    connection: Connection
    brokers: Brokers
    world: World
    follower: Follower
    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    keep_asked: bool = False
    steps: list[tuple[Key, ClassifiedChange]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    renounced: list[str] = field(default_factory=list)
    number: int = -1

    @staticmethod
    def of(running: Running, seed: int) -> Session:
        """A session on a controller that nobody else uses; brokers are registered and topics made."""
        chance = Random(f"{seed}/start")  # noqa: S311
        connection = Connection(running.node.port)
        connection.negotiate()
        players = [Player(number) for number in range(1, chance.randint(3, 6) + 1)]
        cluster = next(
            line.partition("=")[2]
            for line in (running.node.folder / "data" / "meta.properties").read_text().splitlines()
            if line.startswith("cluster.id=")
        )
        session = Session(
            running,
            seed,
            connection,
            Brokers(running.release, connection, cluster, players),
            World(running.release),
            Follower(running.log),
        )
        session._begin(chance)
        return session

    def _begin(self, chance: Random) -> None:
        deadline = time.monotonic() + 30
        while not self.world.features and time.monotonic() < deadline:
            self.take(self.follower.new())
        for player in self.brokers.players:
            while self.brokers.register(player, chance, level(self.world), clean=False):
                assert time.monotonic() < deadline, "a broker can't register"
                time.sleep(0.05)
            player.want_fence = False
        self.take(self.follower.new())
        for player in self.brokers.players:
            self.brokers.beat(player, self.follower.next_offset)
        self.take(self.follower.new())
        for _ in range(4):
            self._other(self.maker(chance).new_topic())

    def maker(self, chance: Random) -> Maker:
        """What makes the request of a step from its chance."""
        return Maker(chance, self.world, self.connection, [player.number for player in self.brokers.players])

    def run(self, numbers: Iterable[int]) -> None:
        """Fire the steps of these numbers: a step's chance is its number's, whatever came before."""
        for number in numbers:
            if self.renounced:
                return
            self.number = number
            for player in self.brokers.due():
                self.brokers.beat(player, self.follower.next_offset)
            self.take(self.follower.new())
            self.fire(self.maker(Random(f"{self.seed}/{number}")).action())  # noqa: S311

    def take(self, rows: Sequence[Row]) -> Changed:
        """Apply records to the world."""
        changed: Changed = []
        for row in rows:
            self.rows.append(row)
            changed += self.world.apply(row)
        self.steps += changed
        return changed

    def fire(self, action: Action) -> None:
        """Send a request and hold its answer to the prediction."""
        self.counts["requests"] += 1
        if isinstance(action, AlterPartition):
            self._alter_partition(action)
        elif isinstance(action, FeatureUpdate):
            self._update_features(action)
        elif isinstance(action, Reassign):
            self._reassign(action)
        elif isinstance(action, Elect):
            self._elect(action)
        elif isinstance(action, Move):
            self._move(action)
        else:
            self._other(action)

    def _alter_partition(self, action: AlterPartition) -> None:
        try:
            answer: Any = self.connection.alter_partition(
                action.version, action.sender, action.sender_epoch, action.parts
            )
        except ClosedError:
            answer = CLOSED
        rows = self.follower.new()
        if answer != CLOSED and self._given_up(answer[0], rows):
            return
        self.counts["AlterPartition"] += len(action.parts)
        first: list[Question] = []

        def wrong(left: Sequence[Row]) -> str | None:
            questions = action.questions(self.world)
            first.extend([] if first else questions)
            if not agrees(questions, answer, left):
                return "differs"
            if self.keep_asked and answer != CLOSED:
                error, parts = answer
                told = parts or [None] * len(questions)
                self.asked += [
                    Asked(one, error or (part.error if part else 0), part)
                    for one, part in zip(questions, told, strict=True)
                ]
            return None

        if self._raced(wrong, rows):
            self._differs_in_partition(first, answer, rows)

    def _given_up(self, error: int, rows: Sequence[Row]) -> bool:
        """Whether the controller is none at present: it gave up its leadership, for a reason that its own log has.

        No answer is a controller's from then on: the session is over.
        """
        if error != NOT_CONTROLLER:
            return False
        self.take(rows)
        self.counts["renounced"] += 1
        said = [line for line in self.running.node.said().splitlines() if "enouncing" in line or "ERROR" in line]
        self.renounced.append(f"step {self.number}: {said[-1][:400] if said else 'its log does not say why'}")
        return True

    def _differs_in_partition(self, questions: Sequence[Question], answer: Any, rows: Sequence[Row]) -> None:
        parts = [None] * len(questions) if answer == CLOSED or not answer[1] else answer[1]
        before = len(self.disagreements)
        for question, part in zip(questions, parts, strict=True):
            # Its own records, and those of no partition: who was fenced.
            whose = (question.key, (None, None))
            own = [row for row in rows if (row.get("topic_id"), row.get("partition_id")) in whose]
            if not agrees([question], answer if part is None else (answer[0], [part]), own):
                self._differs(question, answer if part is None else part, own)
        if len(self.disagreements) == before:
            self._disagree("AlterPartition", "each part is right alone", repr(questions), f"{answer}\n  {rows}")

    def _differs(self, question: Question, real: Any, rows: Sequence[Row]) -> None:
        code = real.error if isinstance(real, PartAnswer) else real
        written = [{name: value for name, value in row.items() if value is not None} for row in rows]
        self._disagree(
            "AlterPartition",
            f"{question.answer.error.value} rule {question.answer.rule}, real {code}",
            f"{question.request}\n  {question.controller}\n  {question.answer}",
            f"{real}\n  written: {written}",
        )

    def _update_features(self, action: FeatureUpdate) -> None:
        build = self.connection.build
        keys = tuple(
            build(
                UPDATE_FEATURES,
                "FeatureUpdateKey",
                feature=name,
                max_version_level=wanted,
                upgrade_type=kind,
            )
            for name, wanted, kind in action.updates
        )
        answer = self.connection.ask(
            UPDATE_FEATURES, timeout=_SOON, feature_updates=keys, validate_only=action.validate_only
        )
        rows = self.follower.new()
        if self._given_up(int(answer.error_code.value), rows):
            return
        self.counts["UpdateFeatures"] += 1
        real = _feature_answer(answer, self.world.release)
        predicted: list[Any] = []

        def wrong(left: Sequence[Row]) -> str | None:
            found = feature_answers(action, self.world, self.running.node.node_id)
            predicted.extend([] if predicted else [found])
            if found is None:
                self.counts["UpdateFeatures unknown"] += 1
                return None
            return None if any(sorted(each) == sorted(real) for each in found) else "differs"

        if self._raced(wrong, rows):
            about = f"{action.updates} at {dict(self.world.features)}"
            self._disagree("UpdateFeatures", about, repr(predicted[0]), repr(real))

    def _reassign(self, action: Reassign) -> None:
        build = self.connection.build
        part = build(REASSIGN, "ReassignablePartition", partition_index=action.key[1], replicas=action.target)
        topic = build(REASSIGN, "ReassignableTopic", name=action.topic, partitions=(part,))
        answer = self.connection.ask(REASSIGN, timeout=_SOON, topics=(topic,), allow_replication_factor_change=True)
        rows = self.follower.new()
        error = int(answer.error_code.value)
        if self._given_up(error, rows):
            return
        error = error or int(answer.responses[0].partitions[0].error_code.value)
        self.counts["cancel" if action.target is None else "reassign"] += 1
        if error == -1:
            self.counts["reassign UNKNOWN_SERVER_ERROR"] += 1
        said: list[str] = []

        def wrong(left: Sequence[Row]) -> str | None:
            found = None if error == -1 else reassigned(action, self.world, error, left)
            said.extend([] if said or found is None else [found])
            return found

        if self._raced(wrong, rows):
            self._disagree("reassignment", f"cancel {action.target is None}", said[0], f"error {error}")

    def _elect(self, action: Elect) -> None:
        part = self.connection.build(ELECT_LEADERS, "TopicPartitions", topic=action.topic, partitions=action.partitions)
        self.connection.ask(ELECT_LEADERS, election_type=int(action.unclean), topic_partitions=(part,), timeout=_SOON)
        changed = self.take(self.follower.new())
        self.counts["elect"] += 1
        found = elected(action, self.world, changed)
        if found is not None:
            self._disagree("election", "kinds", found, "")

    def _raced(self, wrong: Callable[[Sequence[Row]], str | None], rows: Sequence[Row]) -> bool:
        """Whether the answer is wrong from every state that the request can have met; all records are taken."""
        met = 0
        while wrong(rows[met:]) is not None:
            if met == len(rows) or met > MOST_RACED:
                self.take(rows[met:])
                return True
            self.take(rows[met : met + 1])
            met += 1
        self.counts["raced"] += met > 0
        self.take(rows[met:])
        return False

    def _move(self, move: Move) -> None:
        player = self.brokers.players[move.player - 1]
        chance = Random(f"{self.seed}/{self.number}/move")  # noqa: S311
        self.counts[move.what] += 1
        if move.what in ("return", "return_clean"):
            self._return(player, chance, clean=move.what == "return_clean")
            return
        if move.what == "die":
            player.silent = True
            return
        if player.silent:
            self._return(player, chance, clean=chance.random() < 0.5)
            return
        player.want_fence = move.what == "fence"
        player.want_shut_down = move.what == "shut_down"
        if move.what == "lose":
            player.offline = tuple({*player.offline, chance.choice(player.directories)})
        self._beat(player)

    def _return(self, player: Player, chance: Random, *, clean: bool) -> None:
        """A process that starts when its predecessor has ended: the controller may refuse it, and then nobody is there."""
        if not player.silent:
            player.want_fence = True
            self._beat(player)
            player.silent = True
        if self.brokers.register(player, chance, level(self.world), clean=clean) == 0:
            self.take(self.follower.new())
            player.want_fence = False
            self._beat(player)
        self.take(self.follower.new())

    def _beat(self, player: Player) -> None:
        self.brokers.beat(player, self.follower.next_offset)
        self.take(self.follower.new())

    def _other(self, action: Other) -> None:
        self.connection.ask(action.key, **action.fields)
        self.counts["other"] += 1
        self.take(self.follower.new())

    def _disagree(self, kind: str, about: str, predicted: str, real: str) -> None:
        self.counts["disagreements"] += 1
        self.disagreements.append(Disagreement(self.number, kind, about, predicted, real))


def _feature_answer(answer: Any, release: tuple[int, int]) -> tuple[tuple[str, int, str], ...]:
    if release >= (4, 0) or answer.error_code.value:
        return (("", int(answer.error_code.value), answer.error_message or ""),)
    return tuple((each.feature, int(each.error_code.value), each.error_message or "") for each in answer.results)


__all__ = ["Disagreement", "Session", "as_uuid"]
