"""What a replayed log shows by itself: broken rules of replay and of the migration, each planted once."""

from __future__ import annotations

from collections import defaultdict

import pytest
from pyspark.sql import SparkSession

from jobs.steps.replay_log import near_together
from schemas.bronze import KRAFT_RECORDS
from schemas.entities.partitions import PARTITIONS
from tests.held import hold
from tests.reconcile.planted import (
    BROKEN_LOG,
    CHECKPOINT,
    DUAL_WRITE,
    HEALTHY_LOG,
    Row,
    checkpoint,
    config,
    frame,
    log_rows,
    of_cluster,
    samples,
    topic,
)
from tests.reconcile.planted_history import END_MS
from transforms.clusters import CLUSTER
from transforms.isr.frames import isr_history
from transforms.isr.violations import Present, history_violations
from transforms.kraft.replay.partitions import partition_records

# Logs that stand together.
FLEET: dict[str, tuple[list[Row], list[Row]]] = {
    "broken": (BROKEN_LOG, checkpoint(BROKEN_LOG, without=30)),
    "healthy": (HEALTHY_LOG, checkpoint(HEALTHY_LOG)),
    "no-checkpoint": (BROKEN_LOG, []),
    "as-its-checkpoint": (BROKEN_LOG, checkpoint(BROKEN_LOG)),
    "a-known-config": ([*HEALTHY_LOG, config(29, "retention.ms")], checkpoint(HEALTHY_LOG)),
}
Findings = list[tuple[str, str, str, str]]


@pytest.fixture(scope="module")
def alone(spark: SparkSession) -> dict[str, Findings]:
    """What each log shows by itself: code, subject, detail, place."""
    return {cluster: findings_of(spark, cluster)[cluster] for cluster in FLEET}


@pytest.fixture(scope="module")
def found(alone: dict[str, Findings]) -> dict[str, list[tuple[str, str, str]]]:
    by_code: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for code, subject, detail, place in alone["broken"]:
        by_code[code].append((subject, detail, place))
    return by_code


def test_a_healthy_log_shows_nothing(alone: dict[str, Findings]) -> None:
    assert alone["healthy"] == []


@pytest.mark.parametrize(
    ("code", "rows"),
    [
        ("DUR-12", [("broker 7", "incarnation first is back, after second took its place", "offset 38")]),
        (
            "BROKER-REPLACED",
            [("broker 8", "incarnation other took the place of one, which was not fenced", "offset 42")],
        ),
        ("BROKER-CHANGE", [("broker 0", "a change of epoch 99, which was never registered", "offset 52")]),
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


def test_a_configuration_that_kafka_knows_is_in_every_checkpoint(alone: dict[str, Findings]) -> None:
    ((code, subject, detail, _),) = alone["a-known-config"]
    assert (code, detail) == ("CAP-08", "in the replay, not in the checkpoint")
    assert "retention.ms" in subject


def test_no_other_code_is_found(found: dict[str, list[tuple[str, str, str]]]) -> None:
    assert len(found) == 13


# The same logs, and where each cluster writes to both sides.
IN_DUAL_WRITE: dict[str, tuple[list[Row], tuple[int, int | None] | None]] = {
    "broken": (BROKEN_LOG, DUAL_WRITE),
    "healthy": (HEALTHY_LOG, DUAL_WRITE),
    "written-to-both-sides-later": (BROKEN_LOG, (62, None)),
    "not-yet-loaded": (BROKEN_LOG, None),
}


def findings_of(spark: SparkSession, *clusters: str) -> dict[str, Findings]:
    logs, snapshots = [], []
    for cluster in clusters:
        log, snapshot = FLEET[cluster]
        logs += of_cluster(cluster, log)
        snapshots += of_cluster(cluster, snapshot)
    found: dict[str, Findings] = {cluster: [] for cluster in clusters}
    for row in log_rows(spark, logs, snapshots).collect():
        found[row[CLUSTER]].append((row["code"], row["subject"], row["detail"], row["place"]))
    return {cluster: sorted(rows) for cluster, rows in found.items()}


def test_a_log_among_others_shows_what_it_shows_alone(spark: SparkSession, alone: dict[str, Findings]) -> None:
    assert findings_of(spark, *FLEET) == alone
    assert [row for row in alone["as-its-checkpoint"] if row[0] == "CAP-08"] == []


def test_a_shrink_in_dual_write_that_leaves_the_leader_epoch_is_found(spark: SparkSession) -> None:
    rows = [row for cluster, (log, _) in IN_DUAL_WRITE.items() for row in of_cluster(cluster, log)]
    history = hold(isr_history(partition_records(frame(spark, KRAFT_RECORDS.struct, rows))))
    present = {cluster: Present(END_MS, dual_write=during) for cluster, (_, during) in IN_DUAL_WRITE.items()}
    # Its topic is not there any more: what broke the rule counts all the same.
    found = samples(history_violations(history, frame(spark, PARTITIONS.table.struct, []), present))
    shrinks = {cluster: mine["DUR-13"].examples for cluster, mine in found.items() if "DUR-13" in mine}
    assert shrinks == {
        "broken": (
            "t partition 5: 1 left the ISR, the leader epoch stayed (offset 63)",
            "t partition 5: 2 left the ISR, the leader epoch stayed (offset 61)",
        ),
        "written-to-both-sides-later": (
            "t partition 0: 1 left the ISR, the leader epoch stayed (offset 96)",
            "t partition 5: 1 left the ISR, the leader epoch stayed (offset 63)",
        ),
    }


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


def test_each_checkpoint_is_compared_with_the_state_at_its_own_offset(spark: SparkSession) -> None:
    logs = [row for cluster in TWO_CHECKPOINTS for row in of_cluster(cluster, LATER_LOG)]
    snapshots = [row for cluster, (rows, _) in TWO_CHECKPOINTS.items() for row in of_cluster(cluster, rows)]
    told: dict[str, list[tuple[str, str, str]]] = {cluster: [] for cluster in TWO_CHECKPOINTS}
    for row in log_rows(spark, logs, snapshots).collect():
        told[row[CLUSTER]].append((row["code"], row["detail"], row["place"]))
    assert told == {cluster: wanted for cluster, (_, wanted) in TWO_CHECKPOINTS.items()}


def test_checkpoints_are_compared_together_only_when_little_lies_between() -> None:
    assert near_together([]) == []
    assert near_together([10, 20_010, 20_011, 90_000]) == [[10, 20_010], [20_011], [90_000]]
    assert [len(group) for group in near_together(range(1, 41))] == [16, 16, 8]
