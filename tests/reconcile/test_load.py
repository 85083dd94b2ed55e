"""Where the load lies in the log, which claim it followed, and how far back the log tells."""

from __future__ import annotations

from tests.reconcile.test_checks import CLAIM, EPOCH, LOAD_BEGIN, LOAD_END, LOAD_STATE, copy, load, zookeeper
from transforms.kraft.quorum import Checkpoint, plan_read
from transforms.kraft.replay.transactions import read_transactions
from transforms.reconcile.judge.load import history_from, load_claim, load_range

STATES = [(3, "PRE_MIGRATION"), (LOAD_STATE, "MIGRATION")]


def test_the_load_is_its_transaction_or_what_lies_between_the_states() -> None:
    assert load_range(STATES, load()) == (LOAD_BEGIN, LOAD_END)
    assert load_range(STATES, read_transactions([])) == (4, LOAD_STATE)
    assert load_range(STATES[1:], load()) is None, "the log does not show its beginning"
    assert load_range([], None) is None


def test_the_claim_of_the_load_is_known_as_long_as_the_same_leader_holds_zookeeper() -> None:
    plan = plan_read([copy(3000)])
    assert load_claim(zookeeper(), plan, (LOAD_BEGIN, LOAD_END)) == CLAIM
    assert load_claim(zookeeper(controller_kraft_epoch=EPOCH + 1), plan, (LOAD_BEGIN, LOAD_END)) is None
    assert load_claim(zookeeper(controller_persistent=False), plan, (LOAD_BEGIN, LOAD_END)) is None
    assert load_claim(zookeeper(), plan, None) is None


def test_a_log_that_starts_at_a_checkpoint_tells_from_there_on() -> None:
    assert history_from(plan_read([copy(3000)])) == 0
    later = copy(
        3000, log_start=350, epoch_starts=((EPOCH, 350),), checkpoints=(Checkpoint("350.checkpoint", 350, EPOCH, True),)
    )
    assert history_from(plan_read([later])) == 350
    assert history_from(None) is None
