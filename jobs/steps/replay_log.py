"""Replay a run's log: from checkpoint to checkpoint, cut where the next run will go on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.kept_state import keep_nothing, keep_rows, keep_state, read_state, versions_from
from jobs.audit.kraft_side import FEATURE_LEVEL, PRE_MIGRATION, KraftSide, states_of
from jobs.audit.run import Run
from schemas.bronze import KRAFT_RECORDS
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.silver import FINDINGS
from transforms.kraft.replay.base import continued, state_at
from transforms.kraft.replay.image import Log
from transforms.kraft.replay.rows import fold
from transforms.kraft.replay.verify import checkpoint_differences, checkpoint_records
from transforms.reconcile.judge.facts import state_name
from transforms.reconcile.judge.load import recorded_load
from transforms.reconcile.judge.queries import damaged, load_violations


@dataclass(frozen=True)
class Replayed:
    """A log ready for the tables: its events and their folded state are held, so that no table reads them again.

    `short` replays to the same state as `log`, and to the same versions of every row from `versions_from` on. `cut` is
    where it was cut when the state there was written, to be kept for the next run.
    """

    side: KraftSide
    log: Log
    short: Log
    versions_from: int
    cut: int | None
    committed: Log
    folded: DataFrame
    unlike_checkpoints: tuple[DataFrame, ...]


def replay_log(run: Run, kraft: KraftSide, znode_migration: Mapping[str, Any] | None) -> Replayed:
    """Replay the log from its base or from what an earlier run has kept; `znode_migration` is the `/migration` row."""
    after = versions_from(kraft.committed.offset, (znode_migration or {}).get("kraft_metadata_offset"))
    base = None if kraft.kept is None else read_state(run, kraft.kept)
    log = Log.of(kraft.records, kraft.plan.leading.end, kraft.transactions.discarded, base, run.hold)
    log = Log(log.events, run.hold_if_small(log.hot))
    cut = _cut(run, kraft, after)
    short, unlike = _walk(run, kraft, log, cut)
    committed = short.below(kraft.committed.offset)
    folded = run.make(fold(committed.events))
    return Replayed(kraft, log, short, after, cut, committed, folded, unlike)


def _walk(run: Run, kraft: KraftSide, log: Log, cut: int | None) -> tuple[Log, tuple[DataFrame, ...]]:
    """Replay from checkpoint to checkpoint, each step from the state of the one before, and compare at each.

    Gives the log cut at `cut` (all of it when that is None), and where the replay is not Kafka's checkpoint (CAP-08).
    Checkpoints that few records lie between are one step: a query takes longer to plan than to copy those.
    """
    rest, short, unlike = log, log, []
    steps = {group[0]: group for group in near_together(checkpoints_to_verify(kraft))}
    held: list[Log] = []
    for offset in sorted({*steps, *(() if cut is None else (cut,))}):
        state = state_at(rest, offset)
        state = keep_rows(run, state) if offset == cut else Log(run.hold(state.events), run.hold(state.hot))
        rest = continued(state, log, offset)
        if offset == cut:
            short = rest
        if offset in steps:
            unlike.append(_unlike(run, kraft, rest, steps[offset]))
        _let_go(held)
        held = [] if offset == cut else [state]
    _let_go(held)
    return short, tuple(unlike)


def _unlike(run: Run, kraft: KraftSide, log: Log, checkpoints: Sequence[int]) -> DataFrame:
    own = Log.of_checkpoints(checkpoint_records(kraft.all_records, checkpoints), run.hold)
    levels = {offset: _metadata_version(kraft, offset) for offset in checkpoints}
    unlike = run.make(checkpoint_differences(log.below(checkpoints[-1]), own, levels))
    _let_go([own])
    return unlike


_NEAR_RECORDS = 20_000
_NEAR_CHECKPOINTS = 16


def near_together(offsets: Sequence[int]) -> list[list[int]]:
    """Sorted offsets in groups of a bounded number, the last of each a bounded number of records after its first."""
    groups: list[list[int]] = []
    for offset in offsets:
        if groups and len(groups[-1]) < _NEAR_CHECKPOINTS and offset - groups[-1][0] <= _NEAR_RECORDS:
            groups[-1].append(offset)
        else:
            groups.append([offset])
    return groups


def _let_go(held: Sequence[Log]) -> None:
    for state in held:
        state.events.unpersist()
        state.hot.unpersist()


def _cut(run: Run, kraft: KraftSide, after: int) -> int | None:
    """Where to cut the log and keep its state: no version is wanted of what is below, and no transaction is open there.

    None when too little is new: the log is replayed as it is, from what an earlier run has kept.
    """
    states = states_of(kraft)
    if states and states[-1][1] == PRE_MIGRATION:
        # A load without transactions may be under way, and is judged as a whole.
        return None
    pending = kraft.transactions.open
    cut = after if pending is None else min(after, pending.begin)
    known = 0 if kraft.kept is None else kraft.kept.offset
    every = run.settings.kraft.keep_state_every if run.settings.kraft else 0
    return cut if cut - known >= every and cut > kraft.plan.start else None


def keep(run: Run, replayed: Replayed) -> None:
    """Let the next run go on from the state at the cut, unless this log has findings: each run must see those itself."""
    if replayed.cut is None:
        return
    before = replayed.side.all_records.where(F.col("offset") == replayed.cut - 1).where("checkpoint_offset IS NULL")
    last = before.select("epoch", "append_time").limit(1).collect()
    found = run.read(FINDINGS).where("source = 'kraft'").limit(1).collect()
    found += damaged(run.read(KRAFT_RECORDS)).limit(1).collect()
    load = recorded_load(
        [(offset, state_name(code, None)) for offset, code in states_of(replayed.side)], replayed.side.transactions
    )
    found += load_violations(replayed.side.all_records, load).limit(1).collect()
    if found or not last:
        keep_nothing(run)
    else:
        keep_state(run, replayed.cut, last[0].asDict(), replayed.side.milestones)


def checkpoints_to_verify(kraft: KraftSide) -> list[int]:
    """Offsets of the complete checkpoints inside the replayed part; the base itself proves nothing."""
    start = kraft.plan.base[1].offset if kraft.plan.base else -1
    if kraft.kept is not None:
        start = kraft.kept.offset
    offsets = {c.offset for copy in kraft.copies for c in copy.checkpoints if copy.has_log and c.complete}
    return sorted(offset for offset in offsets if start < offset <= kraft.committed.offset)


def _metadata_version(kraft: KraftSide, offset: int) -> int | None:
    bodies = [json.loads(m["data"]) for m in kraft.milestones if m["type"] == FEATURE_LEVEL and m["offset"] < offset]
    levels = [body["featureLevel"] for body in bodies if body["name"] == FEATURE_NAME]
    return levels[-1] if levels else None
