"""Partition histories in which each rule of the past is broken once: churn, elections that can lose data, a quiet shrink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from schemas.entities.partitions import PARTITIONS
from tests.isr.told import history_of
from tests.reconcile.planted import Row, isr_change, partition
from transforms.frames import columns_of, frame
from transforms.isr.violations import JUDGED, Present, history_violations
from transforms.reconcile.judge.facts import Sample

END_MS = 1_000_000
# Broker 2 is behind; broker 1 was started twice in the last hour. Shrinks raise the leader epoch here. Dual write is short.
PRESENT = Present(END_MS, at_work=(0, 1), out_of_sync=(2,), restarts={1: 2}, bumps_on_shrink=True, dual_write=(26, 28))
UNKNOWN_LEADER = {"eligible_leader_replicas": [], "last_known_elr": [0]}


def elected(offset: int, number: int, leader: int, **columns: Any) -> Row:
    """An election that can lose data: the controller sets RECOVERING."""
    return {**isr_change(offset, number, [leader], leader), "leader_recovery_state": 1, **columns}


def emptied(offset: int, number: int, last_known: int | None = None) -> Row:
    """The last member of the ISR goes."""
    known: Row = {} if last_known is None else {"last_known_elr": [last_known]}
    return {**isr_change(offset, number, [], -1), "eligible_leader_replicas": [], **known}


def bouncing(number: int, member: int, times: int) -> list[Row]:
    """A partition whose ISR a broker leaves and joins in turn; each record names the leader."""
    others = [node for node in (0, 1, 2) if node != member]
    members = [others if turn % 2 == 0 else [*others, member] for turn in range(times)]
    return [isr_change(100 + 10 * number + turn, number, isr, others[0]) for turn, isr in enumerate(members)]


# What each partition is for; its number is its place.
HISTORIES: Sequence[list[Row]] = (
    [],
    # 1: unclean, and not healed.
    [emptied(20, 1), elected(21, 1, 1)],
    # 2: the same, healed by an ISR that grew.
    [emptied(22, 2), elected(23, 2, 1), {**isr_change(24, 2, [1, 0]), "leader_recovery_state": 0}],
    # 3: of the last known leader, by a broker that is not running.
    [emptied(25, 3, 2), elected(26, 3, 2, last_known_elr=[])],
    # 4: broker 0 can't keep up. 5: broker 1 was only started again.
    bouncing(4, 0, 8),
    bouncing(5, 1, 4),
    # 6: broker 2 left twice and is out.
    bouncing(6, 2, 3),
    # 7: the leader epoch stays though the ISR shrinks.
    [isr_change(27, 7, [0, 1])],
)
HEALTHY: Sequence[list[Row]] = ([], [isr_change(20, 1, None, 0)])


def _now(number: int, story: Sequence[Row]) -> Row:
    last_leader = next((row["leader"] for row in reversed(story) if row["leader"] != -2), 0)
    states = [row["leader_recovery_state"] for row in story if row["leader_recovery_state"] != -1]
    epoch = sum(row["leader"] != -2 for row in story)
    return {
        "source": "kraft",
        "topic": "t",
        "topic_id": "t",
        "partition": number,
        "replicas": [0, 1, 2],
        "isr": next((row["isr"] for row in reversed(story) if row["isr"] is not None), [0, 1, 2]),
        "leader": last_leader,
        "leader_epoch": epoch,
        "leader_recovery_state": states[-1] if states else 0,
    }


def planted_history(histories: Sequence[list[Row]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The changes of these partitions, and KRaft's silver rows of them."""
    changes = [
        history_of([partition(number, number, [0, 1, 2]), *story]).select(*JUDGED)
        for number, story in enumerate(histories)
    ]
    now = [_now(number, story) for number, story in enumerate(histories)]
    return pl.concat(changes), frame(now, columns_of(PARTITIONS.row_columns))


def history_samples(histories: Sequence[list[Row]], present: Present = PRESENT) -> Mapping[str, Sample]:
    """What the rules find in these histories, as the facts of a run have it."""
    found = history_violations(*planted_history(histories), present)
    texts = {code: sorted(rows["text"]) for (code,), rows in found.partition_by("code", as_dict=True).items()}
    return {str(code): Sample(len(each), tuple(each)) for code, each in texts.items()}
