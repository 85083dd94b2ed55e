"""What the partitions' past leads to: open and healed elections, flapping, churn, quiet shrinks; and what does not count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from schemas.checks.codes import (
    CHURN,
    CHURN_PAST,
    FLAPPING,
    HEALED_ELECTION,
    LAST_KNOWN_FENCED,
    LOSSY_ELECTION,
    QUIET_SHRINK,
)
from tests.reconcile.planted import Row, isr_change
from tests.reconcile.planted_history import (
    END_MS,
    HISTORIES,
    PRESENT,
    elected,
    emptied,
    history_samples,
    planted_history,
)
from transforms.isr.history import HOUR
from transforms.isr.violations import history_violations, is_needed
from transforms.reconcile.judge.facts import Sample


@pytest.fixture(scope="module")
def found() -> Mapping[str, Sample]:
    return history_samples(HISTORIES)


def test_elections_are_told_by_offset_and_kind_and_only_unhealed_ones_are_open(found: Mapping[str, Sample]) -> None:
    assert found[LOSSY_ELECTION].examples == (
        "t/1: unclean election of broker 1 at offset 21; before it ISR [], ELR []",
        "t/3: election of the last known leader of broker 2 at offset 26; before it ISR [], ELR []",
    )
    assert found[HEALED_ELECTION].examples == (
        "t/2: unclean election of broker 1 at offset 23; before it ISR [], ELR []",
    )
    assert found[LAST_KNOWN_FENCED].examples == (found[LOSSY_ELECTION].examples[1],)


def test_a_broker_that_flaps_is_told_from_one_that_was_started_again(found: Mapping[str, Sample]) -> None:
    assert found[FLAPPING].examples == (
        "t/4: broker 0 left or joined the ISR 8 times in the log's last hour, and was started 0 times",
    )


def test_a_broker_that_left_again_and_is_out_warns_and_the_others_are_told(found: Mapping[str, Sample]) -> None:
    (again,) = found[CHURN].examples
    assert again.startswith("broker 2 left the ISR of")
    assert again.endswith("was started 0 times, and is not in sync")
    assert all(text.endswith("is back in sync") for text in found[CHURN_PAST].examples)


def test_a_broker_that_left_once_and_is_out_is_one_that_is_down() -> None:
    found = history_samples([[], [isr_change(100, 1, [0, 1], 0)]])
    assert CHURN not in found
    (text,) = found[CHURN_PAST].examples
    assert text.startswith("broker 2 left the ISR of 1 partition in the log's last hour")
    assert text.endswith("is not in sync")


def test_a_shrink_that_leaves_the_leader_epoch_is_told_where_it_must_rise(found: Mapping[str, Sample]) -> None:
    assert "t/7: [2] left the ISR at offset 27, the leader epoch stayed 0" in found[QUIET_SHRINK].examples
    assert found["DUR-13"].examples == ("t partition 7: 2 left the ISR, the leader epoch stayed (offset 27)",)


def test_what_is_older_than_an_hour_does_not_count_as_churn() -> None:
    later = replace(PRESENT, log_end_ms=END_MS + 2 * 3_600_000, bumps_on_shrink=False, dual_write=None)
    past = history_samples(HISTORIES, later)
    assert set(past) == {LOSSY_ELECTION, HEALED_ELECTION, LAST_KNOWN_FENCED}


def cancelled(number: int, leader: int) -> list[Row]:
    """A reassignment to broker 3 alone, taken back while nobody else is in sync: the ISR becomes broker 0 by decree."""
    start: Row = {"replicas": [3, 0, 1, 2], "adding_replicas": [3], "removing_replicas": [0, 1, 2]}
    end: Row = {"replicas": [0, 1, 2], "adding_replicas": [], "removing_replicas": []}
    return [
        {**isr_change(50, number, [0, 1, 2, 3]), **start},
        isr_change(51, number, [3], 3),
        {**isr_change(52, number, [0], leader), **end},
    ]


def test_a_cancelled_reassignment_is_open_until_the_isr_it_made_has_grown() -> None:
    """It sets no RECOVERING that would tell when it is over."""
    stories = [[], cancelled(1, 0), cancelled(2, -1), [*cancelled(3, 0), isr_change(53, 3, [0, 1])]]
    past = history_samples(stories, replace(PRESENT, bumps_on_shrink=False))
    assert past[LOSSY_ELECTION].examples == (
        "t/1: unclean election of broker 0 at offset 52; before it ISR [3], ELR []",
        "t/2: unclean election of broker 0 at offset 52; before it ISR [3], ELR []",
    )
    assert past[HEALED_ELECTION].examples == (
        "t/3: unclean election of broker 0 at offset 52; before it ISR [3], ELR []",
    )


def recovered(offset: int, number: int, isr: list[int]) -> Row:
    """The leader reports a grown ISR."""
    return {**isr_change(offset, number, isr), "leader_recovery_state": 0}


UNCLEAN = "t/{}: unclean election of broker {} at offset {}; before it ISR {}, ELR []"
# Elections that healed, and what came after; the number of each is its place.
LATER = (
    [],
    # 1: today all its replicas are down.
    [emptied(20, 1), elected(21, 1, 1), recovered(22, 1, [1, 0]), emptied(60, 1)],
    # 2: it healed, and there was another one.
    [emptied(20, 2), elected(21, 2, 1), recovered(22, 2, [1, 0]), emptied(60, 2), elected(61, 2, 2)],
    # 3: there was another one before it healed.
    [emptied(20, 3), elected(21, 3, 1), emptied(60, 3), elected(61, 3, 2)],
    # 4: a second one that healed heals the first one.
    [emptied(20, 4), elected(21, 4, 1), emptied(60, 4), elected(61, 4, 2), recovered(62, 4, [2, 0])],
    # 5: a cancelled reassignment made broker 0 the ISR; it grew, and today broker 0 is down.
    [*cancelled(5, 0), isr_change(53, 5, [0, 1]), isr_change(60, 5, [1], 1)],
    # 6: the same, and its ISR has been broker 0 since.
    [*cancelled(6, -1), isr_change(53, 6, None, 0), isr_change(60, 6, None, -1)],
    # 7: an election after it healed, and today the ISR is broker 0 again.
    [*cancelled(7, 0), elected(60, 7, 1), recovered(61, 7, [1, 0]), isr_change(62, 7, [0], 0)],
)
OPEN = (
    UNCLEAN.format(2, 2, 61, []),
    UNCLEAN.format(3, 1, 21, []),
    UNCLEAN.format(3, 2, 61, []),
    UNCLEAN.format(6, 0, 52, [3]),
)
HEALED = (
    UNCLEAN.format(1, 1, 21, []),
    UNCLEAN.format(2, 1, 21, []),
    UNCLEAN.format(4, 1, 21, []),
    UNCLEAN.format(4, 2, 61, []),
    UNCLEAN.format(5, 0, 52, [3]),
    UNCLEAN.format(7, 0, 52, [3]),
    UNCLEAN.format(7, 1, 60, [0]),
)


def test_an_election_that_healed_stays_healed() -> None:
    """What happens to its partition later is another fault."""
    found = history_samples(LATER, replace(PRESENT, bumps_on_shrink=False))
    assert (found[LOSSY_ELECTION].examples, found[HEALED_ELECTION].examples) == (OPEN, HEALED)


def test_what_healed_an_election_is_remembered_as_long_as_the_election() -> None:
    history, partitions = planted_history(LATER)
    later = END_MS + 1000 * HOUR
    kept = history.filter(is_needed(END_MS)).filter(is_needed(later))
    assert kept.height < history.height
    found = history_violations(kept, partitions, replace(PRESENT, log_end_ms=later, dual_write=None))
    for code, texts in ((LOSSY_ELECTION, OPEN), (HEALED_ELECTION, HEALED)):
        assert tuple(sorted(found.filter(code=code)["text"])) == texts


def test_of_the_last_known_leader_only_an_open_election_counts_as_fenced() -> None:
    known = {"last_known_elr": []}
    first = [emptied(20, 1, 2), elected(21, 1, 2, **known), recovered(22, 1, [2, 0])]
    again = [emptied(30, 1, 2), elected(31, 1, 2, **known)]
    (text,) = history_samples([[], [*first, *again]])[LAST_KNOWN_FENCED].examples
    assert "at offset 31" in text
