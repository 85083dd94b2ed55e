"""What the pass over a cluster is asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from transforms.chain.chain import Chain
from transforms.kraft.coverage import PlannedLog
from transforms.reconcile.compare.suppressions import SuppressionRule
from transforms.reconcile.judge.given import Given


@dataclass(frozen=True)
class Recorded:
    """Changes of partitions below the offset `until` (exclusive) are in gold isr_history.

    `append_time` is that of the record before it and `begun` when that log began (ms; 0 where the log does not say), by which a later
    run knows that it reads the same log. Of what a release recorded that did not remember `begun`, that is None.
    """

    until: int
    append_time: int | None
    begun: int | None


@dataclass(frozen=True)
class ClusterTask:
    """One cluster's task.

    `planned` is what of its log was to be read, None without a log that can be used. With `keep_every` the state of the log is kept
    when that many records are new. `suppressions` are those in force. An error is raised where the cluster is `alone` in its run;
    elsewhere it is the cluster's own. `whole_from` is the checkpoint (exclusive end; 0 without one) from which on the feed has the
    log that earlier runs have read, None where it has only what this one read; `earlier` is what those runs were to read of it.
    `recorded` says which changes of partitions are in gold isr_history already, None where none is known to be. `chain` is the state
    that is stored, whose index the feed has: only what has changed since is made; without parts, all rows are.
    """

    given: Given
    run_id: str
    planned: PlannedLog | None = None
    keep_every: int | None = None
    suppressions: tuple[SuppressionRule, ...] = ()
    alone: bool = False
    whole_from: int | None = None
    earlier: PlannedLog | None = None
    recorded: Recorded | None = None
    chain: Chain = field(default_factory=Chain)
