"""Answers to AlterPartition, held to each release's own ReplicationControlManager in a process without a server.

Java compiles a source file here, which takes a JDK. `tests/live/fire` asks whole controllers.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from jobs.commands.demo.kafka_servers import kafka_jars
from jobs.runtime.java import java_home
from tests.live.amount import cases, chance
from tests.live.fire import evidence
from tests.live.fire.servers import PINS, RELEASES
from transforms.features.levels import release_tuple
from transforms.isr.partition import Change, Ids, PartitionState, merged
from transforms.isr.validate import (
    AlterPartitionAnswer,
    AlterPartitionRequest,
    Controller,
    ControllerMode,
    Registration,
    request_versions,
    validate,
)

pytestmark = pytest.mark.live

CASES = cases(30_000)
WORLDS = 40
BROKERS = range(1, 7)
_STRANGER = 99
# Below level 12 a shrinking ISR raises the leader epoch; partitions have directories from 17 and ELR from 23 on.
_LEVELS_3X, _LEVELS_4X, _BUMPS_BELOW, _DIRECTORIES_FROM = (11, 14, 19), (11, 19, 25), 12, 17


@dataclass(frozen=True)
class World:
    """The brokers of a case, those whose replica's directory is offline, and the features."""

    brokers: dict[int, Registration]
    offline: frozenset[int]
    level: int
    elr: bool


@dataclass(frozen=True)
class Case:
    """A controller and a request to it; `place` says whether there is such a topic and partition."""

    world: World
    partition: PartitionState
    min_isr: int
    unclean: bool
    request: AlterPartitionRequest
    place: str

    def controller(self, release: tuple[int, int]) -> Controller:
        """As `isr validate` is told of it."""
        return Controller(
            ControllerMode.KRAFT,
            release,
            self.world.brokers,
            self.partition if self.place == "there" else None,
            topic_known=self.place != "no topic",
            bumps_on_shrink=self.world.level < _BUMPS_BELOW,
            offline=tuple(sorted(self.world.offline)) if self.world.level >= _DIRECTORIES_FROM else (),
            elr=self.world.elr,
            min_isr=min(self.min_isr, len(self.partition.replicas)),
            unclean=self.unclean,
        )

    def line(self) -> str:
        """As the Java class reads it."""
        world, state, asked = self.world, self.partition, self.request
        brokers = (
            f"{number}:{each.broker_epoch}:{each.fenced:d}:{each.in_controlled_shutdown:d}:{number not in world.offline:d}"
            for number, each in world.brokers.items()
        )
        lists = (state.replicas, state.isr, state.adding, state.removing, state.elr, state.last_known_elr)
        fields = [
            ",".join(brokers),
            *(str(int(each)) for each in (world.level, world.elr, self.min_isr, self.unclean)),
            *(_ids(each) for each in lists),
            *(str(each) for each in (state.leader, state.leader_recovery_state, asked.version, asked.sender)),
            *(str(each) for each in (asked.sender_epoch, asked.leader_epoch, asked.partition_epoch)),
            ",".join(f"{member}:{asked.broker_epochs[member]}" for member in asked.isr),
            str(asked.leader_recovery_state),
            self.place,
        ]
        return ";".join(fields)


def _ids(ids: Iterable[int]) -> str:
    return ",".join(map(str, ids))


@dataclass(frozen=True)
class Maker:
    """Makes cases of one release."""

    chance: Random
    release: tuple[int, int]
    worlds: Sequence[World]

    @staticmethod
    def of(release: str) -> Maker:
        drawn, short = chance(release), release_tuple(release)
        return Maker(drawn, short, [_world(drawn, short) for _ in range(WORLDS)])

    def some(self, ids: Iterable[int], least: int = 0) -> Ids:
        pool = list(ids)
        return tuple(self.chance.sample(pool, self.chance.randint(min(least, len(pool)), len(pool))))

    def often(self, share: float) -> bool:
        return self.chance.random() < share

    def case(self) -> Case:
        world, state = self.chance.choice(self.worlds), self.partition()
        place = self.chance.choice(["there"] * 40 + ["no topic", "no partition"])
        return Case(world, state, self.chance.randint(1, 4), self.often(0.3), self.request(world, state), place)

    def partition(self) -> PartitionState:
        replicas = tuple(self.chance.sample(BROKERS, self.chance.randint(1, 5)))
        adding, removing = self.some(replicas), ()
        removing = self.some(each for each in replicas if each not in adding or self.often(0.1))
        if self.often(0.5) or set(replicas) <= set(removing):
            adding = removing = ()
        isr = self.some(replicas, 1)
        elr = tuple(sorted(self.some(set(BROKERS) - set(isr)))) if self.release >= (4, 0) and self.often(0.5) else ()
        last = (self.chance.choice(BROKERS),) if self.release >= (4, 0) and self.often(0.25) else ()
        leader = self.chance.choice([*isr, *isr, *isr, -1])
        return PartitionState(replicas, isr, leader, 5, 9, int(self.often(0.2)), adding, removing, elr, last)

    def request(self, world: World, state: PartitionState) -> AlterPartitionRequest:
        oldest, newest = request_versions(self.release)
        sender = self.chance.choice([*BROKERS, _STRANGER, -1]) if self.often(0.04) else state.leader
        known = world.brokers.get(sender, Registration(777))
        isr = self.isr(world, state)
        recovery = int(self.often(0.3 if state.recovering else 0.06))
        return AlterPartitionRequest(
            5 + self.off(0.08),
            9 + self.off(0.08),
            isr[:1] if state.recovering and self.often(0.3) else isr,
            sender,
            known.broker_epoch + self.off(0.03),
            {member: self.epoch(world, member) for member in isr},
            recovery,
            newest if self.often(0.6) else self.chance.randint(oldest, newest),
        )

    def off(self, share: float) -> int:
        return self.chance.choice((-1, 1)) if self.often(share) else 0

    def epoch(self, world: World, member: int) -> int:
        known = world.brokers.get(member, Registration(500))
        return -1 if self.often(0.1) else known.broker_epoch + self.off(0.02)

    def isr(self, world: World, state: PartitionState) -> Ids:
        work = [each for each in state.replicas if _at_work(world.brokers.get(each))]
        first, way = [state.leader] if state.leader > 0 else [], self.chance.random()
        if way < 0.15:
            return state.isr
        if way < 0.6:
            kept = [each for each in state.isr if each in work]
            return tuple(dict.fromkeys([*first, *kept, *[each for each in work if self.often(0.8)]]))
        if way < 0.9:
            return tuple(dict.fromkeys([*first, *self.some(state.replicas)]))
        left = tuple(each for each in state.isr if each != state.leader)
        wrong: list[Ids] = [(*state.isr, _STRANGER), (*state.isr, -1), (*state.isr, state.isr[0]), left, ()]
        return self.chance.choice(wrong)


def _world(chance: Random, release: tuple[int, int]) -> World:
    brokers = {
        number: Registration(100 * number, chance.random() < 0.15, chance.random() < 0.08)
        for number in BROKERS
        if chance.random() < 0.95
    }
    elr = release >= (4, 0) and chance.random() < 0.6
    level = 25 if elr else chance.choice(_LEVELS_4X if release >= (4, 0) else _LEVELS_3X)
    return World(brokers, frozenset(number for number in brokers if chance.random() < 0.07), level, elr)


def _at_work(known: Registration | None) -> bool:
    return known is not None and not known.fenced and not known.in_controlled_shutdown


def real_answers(release: str, made: Sequence[Case], folder: Path) -> list[str]:
    """What the release's class answers, a line a case."""
    jars, tools = f"{kafka_jars(PINS[release])}/*", java_home() / "bin"
    source = Path(__file__).with_name("Answers.java")
    subprocess.run([str(tools / "javac"), "-nowarn", "-cp", jars, "-d", str(folder), str(source)], check=True)
    command = [str(tools / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{folder}:{jars}", "Answers"]
    lines = "\n".join(case.line() for case in made)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def agree(case: Case, answer: AlterPartitionAnswer, real: str) -> bool:
    """Whether the real answer, and the state that its record makes, are the predicted ones.

    A line is the error alone, or also leader, leader epoch, ISR, recovery, partition epoch and the record's fields.
    """
    error, *told = real.split(";")
    if error != str(answer.code):
        return False
    if not told:
        return answer.result is None or not answer.writes
    state, record = answer.result, _change(told[-1])
    after = case.partition if record is None else merged(case.partition, record)
    if state is None or (record is not None) != answer.writes or after != state:
        return not answer.writes and state is None and record is None
    shown = [state.leader, state.leader_epoch, _ids(state.isr), state.leader_recovery_state, state.partition_epoch]
    return answer.code != 0 or told[:-1] == [str(each) for each in shown]


def _change(text: str) -> Change | None:
    if text == "none":
        return None
    *lists, leader, recovery = text.split("/")
    replicas, isr, adding, removing, elr, last = (
        None if each == "-" else tuple(map(int, filter(None, each.split(",")))) for each in lists
    )
    return Change(
        replicas,
        isr,
        None if leader == "-2" else int(leader),
        None if recovery == "-1" else int(recovery),
        adding,
        removing,
        elr,
        last,
    )


@pytest.mark.parametrize("release", RELEASES)
def test_each_answer_is_the_release_s_own(release: str, tmp_path: Path) -> None:
    short = release_tuple(release)
    maker = Maker.of(release)
    made = [maker.case() for _ in range(CASES)]
    asked = [(case, case.controller(short)) for case in made]
    real = real_answers(release, made, tmp_path)
    answers = [validate(case.request, controller) for case, controller in asked]
    wrong = [
        f"{case.line()}\n  predicted {answer}\n  real {told}"
        for (case, _), answer, told in zip(asked, answers, real, strict=True)
        if not agree(case, answer, told)
    ]
    assert not wrong, f"{len(wrong)} of {len(made)} differ:\n" + "\n".join(wrong[:3])
    assert {answer.rule for answer in answers} == {None, *evidence.RULES}
    for name, mutant in evidence.mutants(short, elr=short >= (4, 0)).items():
        with mutant() as predictor:
            seen = any(
                not agree(case, predictor(case.request, controller), told)
                for (case, controller), told in zip(asked[: CASES // 10], real, strict=False)
            )
        assert seen, f"{name} could be left out unseen"
