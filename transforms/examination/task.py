"""The task of the pass over a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from transforms.chain.chain import Chain
from transforms.kraft.coverage import PlannedLog
from transforms.reconcile.compare.suppressions import SuppressionRule
from transforms.reconcile.judge.given import Given


@dataclass(frozen=True)
class Recorded:
    """Changes of partitions below the offset `until` (exclusive) are in gold isr_history.

    `append_time` is that of the record before it and `begun` the time at which that log began (ms; 0 if unknown), by which a later
    run recognises the same log. `begun` is None in rows of releases that did not store it.
    """

    until: int
    append_time: int | None
    begun: int | None

    def is_of(self, begun_ms: int | None, append_time: int | None, *, resumed: bool) -> bool:
        """Whether a log is the one whose changes these are.

        It began at `begun_ms` (None if unknown); `append_time` is that of its record before `until`, None where that was not read.
        With `resumed` it was found to continue the kept state of an earlier run.
        """
        if self.begun and begun_ms and self.begun != begun_ms:
            return False
        if append_time is not None:
            return append_time == self.append_time
        return self.begun is not None and (resumed or self.begun == (begun_ms or 0))


@dataclass(frozen=True)
class ClusterTask:
    """One cluster's task.

    `planned` is the part of its log to read, None without a usable log. With `keep_every` the state of the log is kept
    when that many records are new. `suppressions` are those in force. An error is raised if the cluster is `alone` in its run;
    otherwise it fails that cluster only. `whole_from` is the checkpoint (exclusive end; 0 without one) from which on the feed has
    the log that earlier runs have read, None if it has only this run's records; `earlier` is the part that those runs had to read.
    `recorded` are the changes of partitions that gold isr_history already has, None if none are known. `chain` is the stored
    state, whose index the feed has: the pass makes only rows that have changed since; without parts, all rows.
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
