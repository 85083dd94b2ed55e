"""Replay the logs of a run from checkpoint to checkpoint, and keep the state where the next run will go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.kept_state import NOTHING, Keeping, Written, keep_rows, kept_rows, read_states, versions_from
from jobs.audit.kraft_side import PRE_MIGRATION, KraftSide
from jobs.audit.run import Run
from schemas.bronze import KRAFT_RECORDS
from schemas.checks.codes import CONFIG_SKIPPED
from schemas.silver import FINDINGS
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.kraft.replay.compaction import compacted_below, compacted_then
from transforms.kraft.replay.events import applied, uncached
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.rows import fold
from transforms.kraft.replay.verify import checkpoint_differences, checkpoint_records
from transforms.reconcile.judge.facts import state_name
from transforms.reconcile.judge.load import recorded_load
from transforms.reconcile.judge.queries import damaged, load_violations


@dataclass(frozen=True)
class Replayed:
    """The logs ready for the tables: their events and folded state are cached, so that no table reads them again.

    `compact` replays to the same state as `log`, and to the same versions of every row from `versions_from_inclusive` on. `keep_at`
    are the offsets at which a cluster's log was compacted and the state written, to be kept for the next run; `written` is what
    was written of it. `applied` are the bronze records that take effect.
    """

    sides: Mapping[str, KraftSide]
    log: Log
    compact: Log
    versions_from_inclusive: Mapping[str, int]
    keep_at: Mapping[str, int]
    committed: Log
    folded: DataFrame
    applied: DataFrame
    checkpoint_mismatches: tuple[DataFrame, ...]
    written: Mapping[str, Written]


def replay_logs(
    run: Run,
    records: DataFrame,
    sides: Mapping[str, KraftSide],
    migration_offsets: Mapping[str, int | None],
    *,
    clearing: bool = True,
    verify: bool = True,
) -> Replayed:
    """Replay each log from its base or from what an earlier run has kept.

    `records` are the run's bronze kraft_records, `migration_offsets` the offset in `/migration` where there is one.
    Without `clearing` the records hold no CLEAR_ELR. Without `verify` nothing
    is compared with Kafka's checkpoints, and no state is kept for a later run.
    """
    after = {
        name: versions_from(side.committed.end_exclusive, migration_offsets.get(name)) for name, side in sides.items()
    }
    base = read_states(run, {name: side.kept for name, side in sides.items() if side.kept is not None})
    extents = {name: side.extent() for name, side in sides.items()}
    log = Log.of(records, extents, base, run.cache, clearing=clearing)
    kept = sides.items() if verify else ()
    keep_at = {name: offset for name, side in kept if (offset := _keep_at(run, name, side, after[name])) is not None}
    written: dict[str, Written] = {}
    compact, mismatches = _replay_by_checkpoints(run, records, sides, log, keep_at, written) if verify else (log, ())
    committed = compact.below({name: side.committed.end_exclusive for name, side in sides.items()})
    folded = run.cache_now(fold(committed.events))
    return Replayed(
        sides, log, compact, after, keep_at, committed, folded, applied(records, extents), mismatches, written
    )


@dataclass(frozen=True)
class _Stop:
    """Where the replay of a cluster's log stops: at checkpoints to compare with, or to keep the state."""

    offset: int
    checkpoints: Sequence[int] = ()
    is_kept: bool = False


def _replay_by_checkpoints(
    run: Run,
    records: DataFrame,
    sides: Mapping[str, KraftSide],
    log: Log,
    keep_at: Mapping[str, int],
    written: dict[str, Written],
) -> tuple[Log, tuple[DataFrame, ...]]:
    """Replay from stop to stop, all clusters at once, each step from the state of the one before; compare at each.

    Gives the logs compacted at `keep_at`, and where the replay is not Kafka's checkpoint (CAP-08); what was written of the states
    to keep goes into `written`. Checkpoints that few
    records lie between are one stop, and a state is made only where many records lie before it: a query takes longer to
    plan than to go over some thousand records twice.
    """
    stops = {name: _stops(side, keep_at.get(name)) for name, side in sides.items()}
    rest = log
    mismatches: list[DataFrame] = []
    kept_states: list[Log] = []
    starts = {name: side.extent().start for name, side in sides.items()}
    cached: Log | None = None
    before: Log | None = None
    for number in range(max((len(mine) for mine in stops.values()), default=0)):
        now = {name: mine[number] for name, mine in stops.items() if number < len(mine)}
        if any(stop.is_kept or stop.offset - starts[name] > NEAR_RECORDS for name, stop in now.items()):
            offsets = {name: stop.offset for name, stop in now.items()}
            state = _cached_state(run, rest, offsets, [name for name, stop in now.items() if stop.is_kept], written)
            kept_states += [state.of_clusters([name for name, stop in now.items() if stop.is_kept])]
            rest = compacted_then(state, rest, offsets)
            starts |= offsets
            cached, before = state, cached
        checkpoints = {name: stop.checkpoints for name, stop in now.items() if stop.checkpoints}
        if checkpoints:
            mismatches.append(_mismatches(run, records, sides, rest, checkpoints))
        if before is not None:
            before.events.unpersist()
            before.partition_records.unpersist()
            before = None
    compact = log
    if keep_at:
        compact = log.since(keep_at)
        for state in kept_states:
            compact = compact.union(state)
    return compact, tuple(mismatches)


def _cached_state(
    run: Run, rest: Log, offsets: Mapping[str, int], keep: Sequence[str], written: dict[str, Written]
) -> Log:
    """The state at the offsets as rows that are there; written, too, for the clusters whose state is kept."""
    state = compacted_below(rest, offsets)
    state = Log(run.cache(state.events), run.cache(state.partition_records))
    mine = keep_rows(run, state, keep) if keep else {}
    written |= mine
    if not keep or run.small:
        return state
    # Millions of rows are read back from where they were written, rather than kept in memory.
    kept, others = kept_rows(run, mine), [name for name in offsets if name not in keep]
    return kept.union(state.of_clusters(others)) if others else kept


def _mismatches(
    run: Run, records: DataFrame, sides: Mapping[str, KraftSide], log: Log, checkpoints: Mapping[str, Sequence[int]]
) -> DataFrame:
    cache = uncached if run.small else run.cache
    own = Log.of_checkpoints(checkpoint_records(records, checkpoints), cache)
    levels = {
        name: {offset: sides[name].metadata_version(offset) for offset in mine} for name, mine in checkpoints.items()
    }
    below = log.below({name: mine[-1] for name, mine in checkpoints.items()})
    found = checkpoint_differences(below, own, levels)
    # What large logs are compared by is let go before the next stop.
    return found if run.small else run.cache_now(found)


NEAR_RECORDS = 20_000
_NEAR_CHECKPOINTS = 16


def _stops(side: KraftSide, keep_at: int | None) -> list[_Stop]:
    stops = [_Stop(group[0], tuple(group)) for group in near_together(checkpoints_to_verify(side))]
    if keep_at is not None:
        stops.append(_Stop(keep_at, is_kept=True))
    return sorted(stops, key=lambda stop: (stop.offset, not stop.is_kept))


def near_together(offsets: Sequence[int]) -> list[list[int]]:
    """Sorted offsets in groups of a bounded number, the last of each a bounded number of records after its first."""
    groups: list[list[int]] = []
    for offset in offsets:
        if groups and len(groups[-1]) < _NEAR_CHECKPOINTS and offset - groups[-1][0] <= NEAR_RECORDS:
            groups[-1].append(offset)
        else:
            groups.append([offset])
    return groups


def _keep_at(run: Run, name: str, side: KraftSide, after: int) -> int | None:
    """Where to compact the log and keep its state: no version is wanted of what is below, and no transaction is open there.

    None when too little is new: the log is replayed as it is, from what an earlier run has kept.
    """
    states = side.states()
    if states and states[-1][1] == PRE_MIGRATION:
        # A load without transactions may be under way, and is judged as a whole.
        return None
    pending = side.transactions.open
    end = after if pending is None else min(after, pending.begin_inclusive)
    known = 0 if side.kept is None else side.kept.offset
    kraft = run.clusters[name].settings.kraft
    every = kraft.keep_state_every if kraft else 0
    return end if end - known >= every and end > side.plan.start else None


def to_keep(run: Run, replayed: Replayed) -> dict[str, Keeping]:
    """The states that the next run may go on from, for `keep_states`: none of a log with findings, which each run must see itself."""
    keep_at = replayed.keep_at
    if not keep_at:
        return {}
    records = run.rows(KRAFT_RECORDS).where(of_clusters(keep_at))
    before = records.where((F.col("offset") == by_cluster(keep_at, "bigint") - 1) & F.col("checkpoint_offset").isNull())
    last = {row[CLUSTER]: row for row in before.select(CLUSTER, "epoch", "append_time").collect()}
    loads = {
        name: recorded_load(
            [(offset, state_name(code, None)) for offset, code in replayed.sides[name].states()],
            replayed.sides[name].transactions,
        )
        for name in keep_at
    }
    # What Kafka itself skips is no fault of the log.
    judged = (F.col("source") == "kraft") & (F.col("code") != CONFIG_SKIPPED)
    findings = run.rows(FINDINGS).where(of_clusters(keep_at) & judged)
    found = [rows.select(CLUSTER) for rows in (findings, damaged(records), load_violations(records, loads))]
    faulty = {row[0] for row in found[0].union(found[1]).union(found[2]).distinct().collect()}
    keeping = {}
    for name, offset in keep_at.items():
        side = replayed.sides[name]
        if name in faulty or name not in last:
            keeping[name] = NOTHING
        else:
            base_run = None if side.kept is None else side.kept.run_id
            keeping[name] = Keeping(
                offset,
                last[name]["epoch"],
                last[name]["append_time"],
                tuple(side.milestones),
                base_run,
                replayed.written[name],
            )
    return keeping


def checkpoints_to_verify(side: KraftSide) -> list[int]:
    """Offsets of the complete checkpoints inside the replayed part; the base itself proves nothing."""
    start = side.plan.base_checkpoint[1].offset if side.plan.base_checkpoint else -1
    if side.kept is not None:
        start = side.kept.offset
    offsets = {c.offset for copy in side.copies for c in copy.checkpoints if copy.has_log and c.complete}
    return sorted(offset for offset in offsets if start < offset <= side.committed.end_exclusive)
