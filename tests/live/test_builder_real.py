"""The record for a proposed state, held to the class of each release that builds it in a controller: no server is started.

Java runs a source file here, which takes a JDK.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from jobs.commands.demo.kafka_servers import kafka_jars
from jobs.runtime.java import java_home
from tests.live.amount import cases, chance
from tests.live.fire.servers import PINS, RELEASES
from transforms.features.levels import release_tuple
from transforms.isr.builder import Builder, Proposal
from transforms.isr.partition import Change, Ids, PartitionState

pytestmark = pytest.mark.live

CASES = cases(20_000)
BROKERS = range(1, 7)
# Below level 12 a shrinking ISR raises the leader epoch.
_BUMPS_BELOW = 12


@dataclass(frozen=True)
class Case:
    """A partition, what is proposed, and what decides besides."""

    partition: PartitionState
    proposal: Proposal
    leaders: Ids
    unclean: bool
    elr: bool
    min_isr: int
    level: int

    def line(self) -> str:
        now, wanted = self.partition, self.proposal
        lists = (now.replicas, now.isr, now.adding, now.removing, now.elr, now.last_known_elr)
        targets = (wanted.replicas, wanted.isr, wanted.adding, wanted.removing)
        fields = [
            *(_ids(each) for each in lists),
            str(now.leader),
            str(now.leader_recovery_state),
            *(_ids(each) for each in targets),
            str(wanted.leader_recovery_state),
            _ids(self.leaders),
            *(str(int(each)) for each in (self.unclean, self.elr, self.min_isr, self.level)),
        ]
        return ";".join(fields)

    def record(self, release: tuple[int, int]) -> str:
        """The project's record as the Java class prints its own."""
        builder = Builder(
            release, self.leaders.__contains__, self.level < _BUMPS_BELOW, self.elr, self.min_isr, self.unclean
        )
        return _text(builder.change(self.partition, self.proposal))


def _ids(ids: Iterable[int] | None) -> str:
    return "-" if ids is None else ",".join(map(str, ids))


def _text(change: Change | None) -> str:
    if change is None:
        return "none"
    lists = (change.replicas, change.isr, change.adding, change.removing, change.elr, change.last_known_elr)
    leader = -2 if change.leader is None else change.leader
    recovery = -1 if change.leader_recovery_state is None else change.leader_recovery_state
    return ";".join([*(_ids(each) for each in lists), str(leader), str(recovery)])


def a_case(drawn: Random, *, with_elr: bool) -> Case:
    """Any partition, those included that no controller would come to, and any proposal."""

    def some(ids: Iterable[int], least: int = 0) -> Ids:
        pool = list(ids)
        return tuple(drawn.sample(pool, drawn.randint(min(least, len(pool)), len(pool))))

    replicas = tuple(drawn.sample(BROKERS, drawn.randint(1, 5)))
    adding = some(replicas) if drawn.random() < 0.5 else ()
    removing = some(each for each in replicas if each not in adding or drawn.random() < 0.1)
    removing = removing if drawn.random() < 0.5 else ()
    empty = with_elr and drawn.random() < 0.15
    isr = () if empty else some(replicas, 1)
    elr = tuple(sorted(some(set(BROKERS) - set(isr)))) if with_elr and drawn.random() < 0.5 else ()
    last = some(BROKERS) if drawn.random() < 0.3 else (drawn.choice([-1, *BROKERS]),)
    partition = PartitionState(
        replicas,
        isr,
        drawn.choice([*isr, -1]),
        5,
        9,
        int(drawn.random() < 0.2),
        adding,
        removing,
        elr,
        last if with_elr and drawn.random() < 0.3 else (),
    )
    leaders = tuple({*some(BROKERS), *((partition.leader,) if partition.leader > 0 and drawn.random() < 0.8 else ())})
    return Case(
        partition,
        a_proposal(drawn, partition, some(replicas, 1)),
        leaders,
        drawn.random() < 0.4,
        with_elr and drawn.random() < 0.6,
        drawn.randint(1, 4),
        drawn.choice((11, 14, 19)),
    )


def a_proposal(drawn: Random, partition: PartitionState, isr: Ids) -> Proposal:
    """Another ISR, a new assignment, or the present one cancelled."""
    now, way = Proposal.of(partition), drawn.random()
    if way < 0.6:
        recovery = drawn.choice((partition.leader_recovery_state, 0))
        return Proposal(now.replicas, drawn.choice((isr, isr, isr, now.isr)), now.adding, now.removing, recovery)
    if way < 0.8:
        target = tuple(drawn.sample(BROKERS, drawn.randint(1, 4)))
        removing = tuple(sorted(set(now.replicas) - set(target)))
        adding = tuple(sorted(set(target) - set(now.replicas)))
        return Proposal((*target, *removing), now.isr, adding or now.adding, removing or now.removing, 0)
    left = tuple(each for each in now.replicas if each not in now.adding)
    kept = tuple(each for each in now.isr if each not in now.adding)
    return Proposal(left, kept or left[:1], (), (), 0) if left else now


@pytest.mark.parametrize("release", RELEASES)
def test_a_record_is_the_one_that_the_release_builds(release: str) -> None:
    short, drawn = release_tuple(release), chance(release)
    made = [a_case(drawn, with_elr=short >= (4, 0)) for _ in range(CASES)]
    source, java = Path(__file__).with_name("ChangeBuilder.java"), java_home() / "bin" / "java"
    command = [str(java), "-Xmx256m", "-cp", f"{kafka_jars(PINS[release])}/*", str(source)]
    lines = "\n".join(case.line() for case in made)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wrong = [
        (case, case.record(short), real)
        for case, real in zip(made, done.stdout.splitlines(), strict=True)
        if case.record(short) != real
    ]
    assert wrong == []
    assert len(set(done.stdout.splitlines())) > CASES / 20
