"""A cluster's facts for the comparison of its rows: the part of the log that counts, and the writers."""

from __future__ import annotations

from dataclasses import replace

from schemas.checks import Phase
from transforms.reconcile.compare.context import Context
from transforms.reconcile.compare.difference import Ends
from transforms.reconcile.compare.release_limits import limits
from transforms.reconcile.judge.evidence import ClusterFacts
from transforms.reconcile.judge.liveness import clocks
from transforms.reconcile.judge.load import history_from, load_claim, load_range


def context_of(gathered: ClusterFacts) -> Context:
    """The inputs for the classes of differing rows. Raises ValueError if rows are not compared."""
    facts = gathered.facts
    if facts.committed is None or facts.compared_offset is None:
        raise ValueError("rows are compared only when the log and /migration are there; see may_compare")
    zookeeper, writes = facts.compared_znodes or {}, facts.zookeeper_writes
    claim = zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None
    load = load_range([(state.offset, facts.name_of(state)) for state in facts.states], facts.transactions)
    return Context(
        frozen=facts.phase is Phase.FINALIZED,
        migration_offset=facts.compared_offset if facts.mirrored_offset is None else facts.mirrored_offset,
        migration_mzxid=zookeeper.get("migration_mzxid"),
        committed_end=facts.committed.end_exclusive,
        load_time_ms=facts.load_time_ms,
        newest_append_time_ms=facts.newest_append_time_ms,
        pending_deletes=gathered.pending_deletes,
        foreign_zxids=frozenset(zxid for zxid, _ in gathered.foreign_writes),
        foreign_paths=frozenset(path for _, path in gathered.foreign_writes),
        claim_zxid=claim,
        limits=limits(facts.kafka_version),
        load=load,
        load_claim=load_claim(zookeeper, facts.plan, load),
        history_from=history_from(facts.plan),
        transactions_known=claim in gathered.claims and not (writes and writes.unseen()),
        known_from=min(gathered.claims, default=None),
        clocks=clocks(facts),
        # What was appended while the two sides were read, ZooKeeper first, is not lag.
        lag_limit_ms=round(facts.lag_limit * 1000) + facts.reading_ms,
    )


def context_at(context: Context, offset: int) -> Context:
    """The same with KRaft's state at `offset` (inclusive) in the place of that at the committed end.

    From `/migration`'s offset on, it is the comparison as if the log had ended there. Below it, ZooKeeper is ahead.
    """
    ahead = offset < context.migration_offset
    begins = context.history_from
    return replace(
        context,
        # Whoever asks for an offset before the copies' beginning has the records that earlier runs have read.
        history_from=None if ahead and begins is not None and begins > offset + 1 else begins,
        migration_offset=min(offset, context.migration_offset),
        committed_end=max(offset + 1, context.committed_end) if ahead else offset + 1,
    )


def ends_of(gathered: ClusterFacts) -> Ends:
    """Up to where the log counts, and where it ends; raises ValueError without a log."""
    facts = gathered.facts
    if facts.committed is None:
        raise ValueError("rows are compared only when the log is there; see may_compare")
    return Ends(facts.committed.end_exclusive, None if facts.plan is None else facts.plan.leading.end)
