"""Real controllers under fire for a minute each: no answer but the predicted one, and no rule that could be left out unseen."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.live.fire import audit, evidence
from tests.live.fire.servers import controller
from tests.live.fire.session import Session

pytestmark = pytest.mark.live

SECONDS = 60
SEED = 11
# Within so many requests a rule that is left out of the prediction has to be seen.
SEEN_WITHIN = 2_500


@pytest.fixture(scope="module", params=["3.9.1", "4.4.0"])
def fired(request: pytest.FixtureRequest) -> Iterator[Session]:
    """A session of a minute, or as long as it takes to see every mutant."""
    with controller(request.param, SEED) as running:
        session = Session.of(running, SEED)
        session.keep_asked = True
        session.run(range(SEEN_WITHIN))
        session.keep_asked = False
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            session.run(range(session.number + 1, session.number + 101))
        session.take(session.follower.new())
        yield session


def test_every_answer_is_the_predicted_one(fired: Session) -> None:
    shown = "\n".join(f"{each.step}: {each.predicted}\n{each.real}" for each in fired.disagreements[:5])
    assert not fired.disagreements, shown
    assert fired.counts["AlterPartition"] > 5_000
    assert fired.counts["UpdateFeatures"] > 150
    assert fired.counts["cancel"] > 20
    assert fired.counts["raced"] < fired.counts["requests"] / 100


def test_the_log_that_is_left_is_what_the_snapshots_say_and_breaks_no_rule(fired: Session) -> None:
    assert audit.beside_snapshots(fired.rows, fired.running.log, fired.running.release) == []
    assert audit.findings(fired.world, fired.steps) == []


def test_a_rule_that_is_left_out_is_seen(fired: Session) -> None:
    release = fired.running.release
    assert evidence.seen(fired.asked, evidence.validate.validate) is None
    unseen = []
    for name, mutant in evidence.mutants(release, any(each.question.controller.elr for each in fired.asked)).items():
        with mutant() as predictor:
            if evidence.seen(fired.asked, predictor) is None:
                unseen.append(name)
    assert unseen == []
