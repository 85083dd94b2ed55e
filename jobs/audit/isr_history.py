"""The partitions' history: every change that a run reads, and those of them that no run has recorded yet."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jobs.audit.finished import of_finished
from jobs.audit.kraft_side import LEADER_CHANGE, KraftSide, continued
from jobs.audit.run import Run
from schemas.gold import ISR_CHANGE, ISR_HISTORY
from transforms.clusters import by_cluster, of_clusters
from transforms.isr.frames import isr_history
from transforms.isr.history import HOUR
from transforms.isr.hourly import RECORD
from transforms.isr.violations import JUDGED, may_tell
from transforms.kraft.replay.image import Log, topic_names
from transforms.kraft.replay.partitions import KEY


def changes(log: Log, sides: Mapping[str, KraftSide]) -> DataFrame:
    """Every change of a partition in the committed part of each cluster's log, as far as the run has read it: ISR_CHANGE rows.

    It begins at the base checkpoint, or at the state that an earlier run has kept.
    """
    committed = log.below({name: side.committed.end_exclusive for name, side in sides.items()})
    begins = {name: side.extent().start for name, side in sides.items()}
    records = committed.partition_records
    kept = continued(sides)
    if kept:
        # Of a large kept state, only the partitions that were changed since are sorted.
        since = F.coalesce(by_cluster(kept, "bigint"), F.lit(-1))
        touched = records.where(F.col("offset") >= since).select(*KEY).distinct()
        records = records.join(touched, KEY, "left_semi")
    return isr_history(records, topic_names(committed.events), begins).select(*ISR_CHANGE.fieldNames())


def recorded(run: Run, log: Log, sides: Mapping[str, KraftSide]) -> DataFrame:
    """The `changes` of a run; those that no finished run has recorded go to gold isr_history, beside the rest of the run.

    What a run has left that never finished is recorded again: its rows count for nobody.
    """
    found = changes(log, sides)
    if run.small:
        found = run.cache(found)
    new = found
    if run.warehouse.version(ISR_HISTORY) is not None:
        # Made before it is written: a write that reads its own table is refused when another run writes there too.
        new = run.cache_now(found.join(_known(run, sides).select(*RECORD), [*RECORD], "left_anti"))
    run.keep(ISR_HISTORY, new)
    # Millions of changes are read back from where they were written, rather than kept in memory or sorted again.
    return found if run.small else _known(run, sides).select(*found.columns)


def _known(run: Run, sides: Mapping[str, KraftSide]) -> DataFrame:
    """What finished runs and this one have recorded of each cluster's present log, from where this run read it."""
    earliest = by_cluster({name: side.extent().start for name, side in sides.items()}, "bigint")
    begun = by_cluster({name: log_begun(side) for name, side in sides.items()}, "bigint")
    rows = _that_count(run, of_clusters(sides), own=True)
    return rows.where((F.col("offset") >= earliest) & (F.col("append_time") >= begun))


def recent_changes(
    run: Run, found: DataFrame, sides: Mapping[str, KraftSide], ends: Mapping[str, int], hours: int
) -> DataFrame:
    """The `changes` of a run, with those that earlier runs recorded in the last `hours` before each log's end (ms).

    A run that went on from a kept state has read the newest part only. What two runs at the same time recorded is there
    twice.
    """
    begun = {name: ends[name] - hours * HOUR for name in sides if name in ends}
    earlier = _earlier(run, sides, F.col("append_time") >= by_cluster(begun, "bigint")) if begun else None
    return found if earlier is None else found.unionByName(earlier.select(*found.columns))


def judged_changes(run: Run, found: DataFrame, sides: Mapping[str, KraftSide], ends: Mapping[str, int]) -> DataFrame:
    """The `changes` of a run, with those of earlier runs that a rule looks at (`transforms.isr.violations`).

    An election that can have lost data is open until it is healed, however long ago it was.
    """
    earlier = _earlier(run, sides, may_tell(ends))
    if run.small and earlier is None:
        return found
    every = found if earlier is None else found.unionByName(earlier.select(*found.columns))
    # Of millions of changes a few are looked at, by several rules, and of these a third of the columns; what two runs at the
    # same time recorded counts once.
    judged = every.where(may_tell(ends)).select(*JUDGED).dropDuplicates([*RECORD])
    return judged if run.small else run.cache(judged)


def _earlier(run: Run, sides: Mapping[str, KraftSide], wanted: Column) -> DataFrame | None:
    """What earlier runs have recorded of the clusters that this run goes on with; None when there is none."""
    kept = continued(sides)
    if not kept or run.warehouse.version(ISR_HISTORY) is None:
        return None
    begun = by_cluster({name: log_begun(sides[name]) for name in kept}, "bigint")
    stored = _that_count(run, of_clusters(kept) & (F.col("append_time") >= begun) & wanted)
    return stored.where(F.col("offset") < by_cluster(kept, "bigint"))


def _that_count(run: Run, wanted: Column, *, own: bool = False) -> DataFrame:
    """Recorded changes of finished runs, and with `own` those of this run."""
    rows = run.warehouse.read(ISR_HISTORY).where(wanted)
    finished, mine = run.finished_runs(), F.col("run_id") == run.run_id
    if finished is None:
        return rows.where(mine) if own else rows.where(F.lit(False))
    counting = finished.where(~mine)
    if own:
        this = run.spark.createDataFrame([(name, run.run_id) for name in run.clusters], counting.schema)
        counting = counting.unionByName(this)
    return of_finished(rows, counting)


def log_begun(side: KraftSide) -> int:
    """When the log began (ms), where that is known: a quorum that was formatted anew has the history of another log, too."""
    first = next((m for m in side.milestones if m["type"] == LEADER_CHANGE and m["checkpoint_offset"] is None), None)
    return first["append_time"] if first is not None and first["offset"] == 0 else 0
