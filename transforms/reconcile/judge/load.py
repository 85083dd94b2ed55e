"""The load of ZooKeeper's metadata in the log: its place, and faults of its states (S§4.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transforms.kraft.quorum import ReadPlan
from transforms.kraft.release import FIRST_MIGRATING_LEVEL
from transforms.kraft.replay.transactions import MetadataTransaction, TransactionLog
from transforms.reconcile.judge.facts import Facts

# From 3.6-IV1 the load is one transaction, of this name.
TRANSACTIONS_LEVEL = 13
LOAD = "ZK Migration"


@dataclass(frozen=True)
class Load:
    """Offsets of a load: after the record of PRE_MIGRATION (`after`), before that of MIGRATION (`until`).

    `transaction` are its Begin and End when it has one; what lies in `discarded` ranges was never applied.
    """

    after: int
    until: int
    transaction: tuple[int, int] | None = None
    discarded: Sequence[tuple[int, int | None]] = ()


def recorded_load(states: Sequence[tuple[int, str]], log: TransactionLog | None) -> Load | None:
    """Where the first load is, from (offset, state name) in log order; None when the log does not show it whole."""
    waited: int | None = None
    for offset, name in states:
        if name == "MIGRATION":
            return None if waited is None else _bracketed(waited, offset, log)
        waited = offset if name == "PRE_MIGRATION" else None
    return None


def _bracketed(after: int, until: int, log: TransactionLog | None) -> Load:
    if log is None:
        return Load(after, until)
    around = [
        t
        for t in load_transactions(log)
        if t.end_inclusive is not None and t.begin_inclusive < until <= t.end_inclusive
    ]
    ends = (
        None if not around or around[0].end_inclusive is None else (around[0].begin_inclusive, around[0].end_inclusive)
    )
    return Load(after, until, ends, log.discarded)


def load_range(states: Sequence[tuple[int, str]], log: TransactionLog | None) -> tuple[int, int] | None:
    """First and last offset of the load's records, from (offset, state name); None when the log does not show it whole."""
    load = recorded_load(states, log)
    if load is None:
        return None
    return load.transaction or (load.after + 1, load.until)


def load_claim(zookeeper: Mapping[str, Any], plan: ReadPlan | None, load: tuple[int, int] | None) -> int | None:
    """czxid of the claim that the load followed, when the same leader still holds ZooKeeper; None after a failover."""
    if load is None or plan is None or not zookeeper.get("controller_persistent"):
        return None
    claim: int | None = zookeeper.get("controller_czxid")
    return claim if plan.leading.epoch_at(load[1]) == zookeeper.get("controller_kraft_epoch") else None


def history_from(plan: ReadPlan | None) -> int | None:
    """The offset from which on the log is complete: 0, or its base checkpoint's end."""
    if plan is None:
        return None
    return 0 if plan.base_checkpoint is None else plan.base_checkpoint[1].offset


def load_transactions(log: TransactionLog) -> list[MetadataTransaction]:
    """Transactions of a load that took effect."""
    return [t for t in log.transactions if t.outcome == "end" and t.name == LOAD]


def state_problems(facts: Facts) -> list[str]:
    """Changes of the migration's state other than PRE_MIGRATION to MIGRATION, once, and on to POST_MIGRATION.

    The same value again is not a change. What came before the checkpoint that a log begins at is not judged. At 3.4-IV0 the first
    state may be that of a load of 3.4, which records no other one (S§4.3): later releases record PRE_MIGRATION before.
    """
    from_checkpoint = facts.plan is not None and facts.plan.base_checkpoint is not None
    previous, loads, problems = None if from_checkpoint else "NONE", 0, []
    for change in facts.states:
        name = facts.name_of(change)
        if name == "MIGRATION" and previous != "MIGRATION":
            loads += 1
            if loads > 1:
                problems.append(f"the load ended again at offset {change.offset}, from state {previous}")
            elif previous not in ("PRE_MIGRATION", None) and _level_at(facts, change.offset) != FIRST_MIGRATING_LEVEL:
                problems.append(f"the load ended at offset {change.offset}, from state {previous}")
        if previous in ("MIGRATION", "POST_MIGRATION") and name in ("NONE", "PRE_MIGRATION"):
            problems.append(f"the state went back from {previous} to {name} at offset {change.offset}")
        previous = name
    return problems


def _level_at(facts: Facts, offset: int) -> int | None:
    """The metadata.version at an offset, as far as the log records it."""
    return next((change.level for change in reversed(facts.levels) if change.offset < offset), None)


def unbracketed_end(facts: Facts) -> list[str]:
    """The end of the load outside a transaction, where there must be one and the log still shows it."""
    log, plan = facts.transactions, facts.plan
    if log is None or plan is None or plan.base_checkpoint is not None or (facts.level or 0) < TRANSACTIONS_LEVEL:
        return []
    inside = [(t.begin_inclusive, t.end_inclusive) for t in load_transactions(log)]
    ends = [change.offset for change in facts.states if facts.name_of(change) == "MIGRATION"]
    return [
        f"the load ended at offset {offset} outside a transaction"
        for offset in ends[:1]
        if not any(begin < offset < (end or offset) for begin, end in inside)
    ]
