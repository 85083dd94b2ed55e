"""What a replayed log shows by itself: broken rules of replay and of the migration, each planted once."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.isr.told import history_of
from tests.reconcile.planted import (
    BROKEN_LOG,
    CHECKPOINT,
    DUAL_WRITE,
    HEALTHY_LOG,
    Row,
    checkpoint,
    config,
    log_findings,
    samples,
    table,
    topic,
)
from tests.reconcile.planted_history import END_MS
from transforms.isr.violations import JUDGED, Present, history_violations

LOGS: dict[str, tuple[list[Row], list[Row]]] = {
    "broken": (BROKEN_LOG, checkpoint(BROKEN_LOG, without=30)),
    "healthy": (HEALTHY_LOG, checkpoint(HEALTHY_LOG)),
    "no-checkpoint": (BROKEN_LOG, []),
    "as-its-checkpoint": (BROKEN_LOG, checkpoint(BROKEN_LOG)),
    "a-known-config": ([*HEALTHY_LOG, config(29, "retention.ms")], checkpoint(HEALTHY_LOG)),
}
Findings = list[tuple[str, str, str, str]]


@pytest.fixture(scope="module")
def shown() -> dict[str, Findings]:
    """What each log shows: code, subject, detail, place."""
    return {name: findings_of(*log) for name, log in LOGS.items()}


def findings_of(log: list[Row], snapshot: list[Row]) -> Findings:
    return sorted(log_findings(log, snapshot).select("code", "subject", "detail", "place").rows())


@pytest.fixture(scope="module")
def found(shown: dict[str, Findings]) -> dict[str, list[tuple[str, str, str]]]:
    by_code: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for code, subject, detail, place in shown["broken"]:
        by_code[code].append((subject, detail, place))
    return by_code


def test_a_healthy_log_shows_nothing(shown: dict[str, Findings]) -> None:
    assert shown["healthy"] == []


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("DUR-12", [("broker 7", "incarnation first is back, after second took its place", "offset 38")]),
        (
            "BROKER-REPLACED",
            [("broker 8", "incarnation other took the place of one, which was not fenced", "offset 42")],
        ),
        ("BROKER-CHANGE", [("broker 0", "a change of epoch 99 of a broker registered with 10", "offset 52")]),
        ("PARTITION-UNKNOWN", [("t partition 6", "a change of a partition that was never made", "offset 65")]),
        ("DIRECTORIES", [("t partition 7", "1 directories for 3 replicas", "offset 66")]),
        ("DUR-08", [("orders", "a topic of this name was made while another was still there", "offset 70")]),
        (
            "REMOVAL-UNKNOWN",
            [
                ('["gone"]', "a removal of an id in acls that is removed already", "offset 103"),
                ('["never"]', "a removal of an id in topics that was never made", "offset 71"),
                (
                    '["nobody", "SCRAM-SHA-256"]',
                    "a removal of an id in scram_credentials that was never made",
                    "offset 75",
                ),
                ("[3003]", "a removal of an id in controllers that was never made", "offset 76"),
                ("broker 5", "an unregistration of a broker that is not registered", "offset 73"),
                ("broker 9", "an unregistration with epoch 44 of a broker registered with 46", "offset 74"),
            ],
        ),
        (
            "TOPIC-UNKNOWN",
            [
                ("topic id of-no-topic", "a record of a partition before its topic was made", "offset 79"),
                (
                    "topic id removed-id",
                    "a record of a partition after its topic was removed at offset 83",
                    "offset 86",
                ),
            ],
        ),
        (
            "CLEAR-REMOVED",
            [
                ("again", "a ClearElr record of all topics after the topic's removal at offset 105", "offset 106"),
                ("removed", "a ClearElr record of all topics after the topic's removal at offset 83", "offset 106"),
            ],
        ),
        ("CLEAR-UNKNOWN", [("nowhere", "a ClearElr record of a topic that is not there", "offset 78")]),
        ("DUR-15", [("producer ids", "next producer id 1500 after 2000", "offset 72")]),
        (
            "CONFIG-SKIPPED",
            [
                (
                    'configs ["TOPIC", "orders", "vendor.key"]',
                    "in the replay, not in the checkpoint",
                    "checkpoint 31",
                )
            ],
        ),
        ("CAP-08", [("producer_ids ", "in the replay, not in the checkpoint", "checkpoint 31")]),
    ],
)
def test_only_what_was_planted_is_found(
    found: dict[str, list[tuple[str, str, str]]], code: str, rows: list[tuple[str, str, str]]
) -> None:
    assert found[code] == rows


def test_a_configuration_that_kafka_knows_is_in_every_checkpoint(shown: dict[str, Findings]) -> None:
    ((code, subject, detail, _),) = shown["a-known-config"]
    assert (code, detail) == ("CAP-08", "in the replay, not in the checkpoint")
    assert "retention.ms" in subject


def test_no_other_code_is_found(found: dict[str, list[tuple[str, str, str]]]) -> None:
    assert len(found) == 13


def test_the_state_is_that_of_a_checkpoint_that_lacks_nothing(shown: dict[str, Findings]) -> None:
    assert [row for row in shown["as-its-checkpoint"] if row[0] == "CAP-08"] == []
    assert shown["no-checkpoint"] == [row for row in shown["broken"] if not row[3].startswith("checkpoint ")]


# The same logs, and where each cluster writes to both sides.
IN_DUAL_WRITE: dict[str, tuple[list[Row], tuple[int, int | None] | None, tuple[str, ...]]] = {
    "broken": (
        BROKEN_LOG,
        DUAL_WRITE,
        (
            "t partition 5: 1 left the ISR, the leader epoch stayed (offset 63)",
            "t partition 5: 2 left the ISR, the leader epoch stayed (offset 61)",
        ),
    ),
    "healthy": (HEALTHY_LOG, DUAL_WRITE, ()),
    "written to both sides later": (
        BROKEN_LOG,
        (62, None),
        (
            "t partition 0: 1 left the ISR, the leader epoch stayed (offset 96)",
            "t partition 5: 1 left the ISR, the leader epoch stayed (offset 63)",
        ),
    ),
    "not yet loaded": (BROKEN_LOG, None, ()),
}


@pytest.mark.parametrize("name", IN_DUAL_WRITE)
def test_a_shrink_in_dual_write_that_leaves_the_leader_epoch_is_found(name: str) -> None:
    log, during, texts = IN_DUAL_WRITE[name]
    history = history_of(log).select(*JUDGED)
    # Its topic is not there any more: what broke the rule counts all the same.
    found = samples(history_violations(history, table("partitions", []), Present(END_MS, dual_write=during)))
    assert (found["DUR-13"].examples if "DUR-13" in found else ()) == texts


LATER = 41
# What the first checkpoint holds does not change until the second.
LATER_LOG = [row for row in HEALTHY_LOG if row["offset"] < CHECKPOINT] + [topic(LATER - 1, "later", "later-id")]


def checkpoints(*, early: bool, late: bool) -> list[Row]:
    """The checkpoints at 31 and at 41, each with the topic made at 40 or without it."""
    first = checkpoint(LATER_LOG)
    made = {**LATER_LOG[-1], "offset": len(first)}
    second = [{**row, "checkpoint_offset": LATER} for row in first]
    return [
        *first,
        *second,
        *([{**made, "checkpoint_offset": CHECKPOINT}] if early else []),
        *([{**made, "checkpoint_offset": LATER}] if late else []),
    ]


TWO_CHECKPOINTS = {
    "as-it-is": (checkpoints(early=False, late=True), []),
    "left-out-late": (
        checkpoints(early=False, late=False),
        [("CAP-08", "in the replay, not in the checkpoint", "checkpoint 41")],
    ),
    "there-too-early": (
        checkpoints(early=True, late=True),
        [("CAP-08", "in the checkpoint, not in the replay", "checkpoint 31")],
    ),
}


@pytest.mark.parametrize("name", TWO_CHECKPOINTS)
def test_each_checkpoint_is_compared_with_the_state_at_its_own_offset(name: str) -> None:
    snapshots, told = TWO_CHECKPOINTS[name]
    found = log_findings(LATER_LOG, snapshots)
    assert found.select("code", "detail", "place").rows() == told
