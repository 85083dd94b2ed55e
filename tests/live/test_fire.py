"""Real controllers under fire for a minute each: no answer but the predicted one, and no rule that could be left out unseen.

A controller can give up its leadership over a fault of its own (docs/faults.md), which ends a session: the next seed follows.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

import pytest

from tests.live.fire import audit, evidence
from tests.live.fire.servers import controller
from tests.live.fire.session import Asked, Disagreement, Session

pytestmark = pytest.mark.live

SECONDS = 60
SEED = 11
REQUESTS = 2_500
# Within so many requests a rule that is left out of the prediction has to be seen.
SEEN_WITHIN = 2_500


@dataclass
class Fired:
    """What all sessions with a release came to."""

    release: tuple[int, int] = (0, 0)
    counts: Counter[str] = field(default_factory=Counter)
    asked: list[Asked] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)

    def take(self, session: Session) -> None:
        session.take(session.follower.new())
        if self.counts["requests"] < SEEN_WITHIN:
            self.asked += session.asked
        self.release = session.running.release
        self.counts += session.counts
        self.disagreements += session.disagreements
        self.findings += audit.beside_snapshots(session.rows, session.running.log, self.release)
        self.findings += audit.findings(session.world)


@pytest.fixture(scope="module", params=["3.9.1", "4.4.0"])
def fired(request: pytest.FixtureRequest) -> Fired:
    found, seed, end = Fired(), SEED, time.monotonic() + SECONDS
    while time.monotonic() < end or found.counts["requests"] < SEEN_WITHIN:
        with controller(request.param, seed) as running:
            session = Session.of(running, seed)
            session.keep_asked = True
            session.run(range(REQUESTS))
            found.take(session)
        seed += 1
    return found


def test_every_answer_is_the_predicted_one(fired: Fired) -> None:
    shown = "\n".join(f"{each.step}: {each.predicted}\n{each.real}" for each in fired.disagreements[:5])
    assert not fired.disagreements, shown
    assert fired.counts["AlterPartition"] > 4_000
    assert fired.counts["UpdateFeatures"] > 100
    assert fired.counts["cancel"] > 20
    assert fired.counts["raced"] < fired.counts["requests"] / 100


def test_the_log_that_is_left_is_what_the_snapshots_say_and_breaks_no_rule(fired: Fired) -> None:
    assert fired.findings == []


def test_a_rule_that_is_left_out_is_seen(fired: Fired) -> None:
    assert evidence.seen(fired.asked, evidence.validate.validate) is None
    unseen = []
    elr = any(each.question.controller.elr for each in fired.asked)
    for name, mutant in evidence.mutants(fired.release, elr).items():
        with mutant() as predictor:
            if evidence.seen(fired.asked, predictor) is None:
                unseen.append(name)
    assert unseen == []
