"""A finished run examined again in a worker, by what bronze has of it and of the runs that it continued from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from jobs.evidence.feed import Pass, Source, SpooledFeed, each_cluster, gathered, of_logs
from jobs.evidence.kept_state import kept_by
from jobs.evidence.opening import spark_tables
from jobs.evidence.past_facts import past_facts
from jobs.evidence.past_log import past_copies
from jobs.evidence.past_records import copies_of
from jobs.evidence.past_run import PastRun
from jobs.exit import AuditError
from jobs.runtime.workers import as_they_are
from jobs.sinks.conditions import PRESENT
from jobs.sinks.delta_errors import readable
from schemas.bronze import KRAFT_RECORDS, ZK_ZNODES
from schemas.examined import FEED
from schemas.gold import ISR_BY_DAY, ISR_HISTORY
from transforms.clusters import CLUSTER, of_clusters
from transforms.examination.reexamination import CHANGES_KIND, DAYS_KIND, RepeatedTask, numbered, unlike, unlike_rows
from transforms.examination.task import ClusterTask
from transforms.kraft.coverage import PlannedLog, planned_log
from transforms.kraft.quorum import LogCopy, Slice, plan_read
from transforms.kraft.side import KraftSide
from transforms.report.gold_rows import judged_rows
from transforms.units import packed

_TOLD = StructType(
    [
        StructField("what", StringType()),
        StructField("stored", LongType()),
        StructField("again", LongType()),
        StructField("row", StringType()),
        StructField("total", LongType()),
    ]
)
_WHERE = KRAFT_RECORDS.full_name


@readable()
def examined_again(past: PastRun, shown: int) -> list[dict[str, Any]]:
    """What differs from what the run has stored: rows of `transforms.examination.reexamination.UNLIKE`, `shown` of each
    table at most.

    Raises UsageError where the run's answers are forgotten, WarehouseError where its silver rows are gone or a file of the
    tables can't be read, AuditError where bronze has nothing of a run any more.
    """
    past = replace(past, all_differences=False)
    known = past_facts(past)
    given = replace(known.given, side=None)
    if given.has_zookeeper and past.rows(ZK_ZNODES, ["path"], most=1).is_empty():
        raise AuditError(f"{ZK_ZNODES.full_name} no longer has its rows")
    if known.kraft is None:
        records, planned = [past.in_workers(KRAFT_RECORDS, {})], None
    else:
        runs = _chain(past, known.kraft.side)
        first = copies_of(past.warehouse, past.cluster, runs[-1])
        given = replace(known.given, side=_from_the_start(known.kraft.side, first))
        planned = _planned(past, first)
        # A run reports only the damage that it has read itself; no run continues from a state above damage.
        records = [as_they_are(known.kraft.records), past.in_workers(KRAFT_RECORDS, {"problem": PRESENT})]
    again = RepeatedTask(ClusterTask(given, past.run_id, planned), known.answers, past.state_runs, shown)
    source = Source(past.spark, past.in_workers, {past.cluster: past.walks})
    feeds = [
        source.clusters(),
        *source.trees(),
        *source.written([past.cluster] if given.reads_data_folder else []),
        *(feed for rows in records for feed in of_logs(rows)),
        *(
            past.in_workers(table, {}).then(packed(kind, with_runs=table.chained), FEED).rows
            for kind, table in [*numbered(), (CHANGES_KIND, ISR_HISTORY)]
        ),
        _sums(past).mapInArrow(packed(DAYS_KIND), FEED),
    ]
    rows = gathered(feeds, 1).mapInArrow(each_cluster(_pass(again)), _TOLD).collect()
    return [row.asDict() for row in rows] + _judged(past, shown)


def _sums(past: PastRun) -> DataFrame:
    """Rows of gold isr_by_day with changes of the run."""
    mine = of_clusters([past.cluster]) & F.array_contains("runs", past.run_id)
    return spark_tables(past.warehouse).read(ISR_BY_DAY).where(mine)


def _judged(past: PastRun, shown: int) -> list[dict[str, Any]]:
    """Rows of gold checks, gates and broker_presence that are not what the run's report says."""
    again = judged_rows(past.report)
    return [
        row for table, rows in again.items() for row in unlike_rows(table, past.rows(table), rows, shown).to_dicts()
    ]


def _pass(again: RepeatedTask) -> Pass:
    schema: pa.Schema = to_arrow_schema(_TOLD)

    def examine(_cluster: str, feed: SpooledFeed) -> Iterator[pa.RecordBatch]:
        yield from unlike(again, feed, feed.batches).to_arrow().cast(schema).to_batches()

    return examine


def _chain(past: PastRun, side: KraftSide) -> list[str]:
    """The run, the one that it continued from, and so on; bronze has records of each. Raises AuditError where it has none."""
    runs, state = [past.run_id], side.kept
    while state is not None:
        runs.append(state.run_id)
        state = kept_by(past.warehouse, past.cluster, state.base_run)
    there = past.warehouse.counts(KRAFT_RECORDS, {CLUSTER: past.cluster, "run_id": runs})
    gone = [run_id for run_id in runs if (past.cluster, run_id) not in there]
    if gone:
        raise AuditError(f"{_WHERE} no longer has the rows of run {gone[-1]}, which it needs")
    return runs


def _from_the_start(side: KraftSide, first: list[dict[str, Any]]) -> KraftSide:
    """The log as if nothing of it had been kept: it begins where the first run's copies did."""
    base = plan_read([LogCopy.from_row(row) for row in first]).base_checkpoint
    return replace(side, kept=None, plan=replace(side.plan, base_checkpoint=base))


def _planned(past: PastRun, first: list[dict[str, Any]]) -> PlannedLog | None:
    """All that the runs were to read, as one piece of the log."""
    begun = planned_log(first)
    ended = planned_log(past_copies(past))
    if begun is None or ended is None or not begun.slices or not ended.slices:
        return begun
    fetched = frozenset({_WHERE}) if begun.slices[0].location in begun.fetched else frozenset[str]()
    whole = Slice(_WHERE, begun.slices[0].from_offset_inclusive, ended.slices[-1].to_offset_exclusive)
    return PlannedLog(begun.base, (whole,), fetched)
