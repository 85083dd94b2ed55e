"""A finished run's differences with KRaft's state at another offset, found in a worker: the log never comes to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType

from jobs.evidence import missing
from jobs.evidence.feed import Pass, Source, SpooledFeed, each_cluster, gathered, of_logs
from jobs.evidence.past_facts import past_facts
from jobs.evidence.past_run import PastRun
from jobs.exit import AuditError, UsageError
from jobs.runtime.workers import as_they_are
from schemas.gold import DIVERGENCES
from transforms.examination.as_of import TaskAt, divergences_at
from transforms.examination.made import slices
from transforms.frames import columns_of, from_arrow
from transforms.reconcile.compare.divergences import LOCATED, first_of
from transforms.reconcile.judge.summary import may_compare
from transforms.report.divergence_table import COLUMNS

_LOCATED = StructType([each for each in DIVERGENCES.columns if each.name in LOCATED])
_SHOWN = StructType([each for each in DIVERGENCES.columns if each.name in COLUMNS])
_FIRST = StructType([*_SHOWN.fields, StructField("total", LongType())])


def divergences_as_of(past: PastRun, offset: int) -> DataFrame:
    """The run's comparison with KRaft's state at `offset` (inclusive) instead of the committed end.

    Rows of gold divergences without the run's columns, and without the columns that need earlier runs. Each use
    computes them again. From /migration's offset on, it is the audit as if the log had ended there. Below it, ZooKeeper
    is ahead: rows that it has from later records are in_flight. Raises UsageError when the run compared nothing or its
    log does not hold the offset, AuditError where records of the log are gone: there is no state of a log with holes.
    """
    gone = missing.lines(missing.of_chain(past))
    if gone:
        raise AuditError("; ".join(gone))
    known = past_facts(past)
    if known.kraft is None or not may_compare(known.gathered.facts):
        raise UsageError(f"run {past.run_id} compared nothing (mode {past.report.mode}), so it has no differences")
    kraft = known.kraft
    folder = known.given.reads_data_folder
    task = TaskAt(known.gathered, kraft.side, kraft.base, known.given.bracketed, kraft.checked(offset), folder)
    source = Source(past.spark, past.in_workers, {past.cluster: past.walks})
    logs = of_logs(as_they_are(kraft.records))
    feeds = [source.clusters(), *source.trees(), *source.barriers([past.cluster] if folder else ()), *logs]
    return gathered(feeds, 1).mapInArrow(each_cluster(_pass(task)), _LOCATED)


def first_as_of(past: PastRun, offset: int, where: Mapping[str, str], limit: int) -> pl.DataFrame:
    """The first of `divergences_as_of` (0: all), as a worker ranks them, of those whose columns have these values.

    Columns are those that are shown, and `total`: how many rows there are. Columns that need earlier runs are null.
    """
    nothing = F.lit(None).cast("string")
    rows = divergences_as_of(past, offset).withColumns({"status": nothing, "first_seen_run": nothing})
    for name, wanted in where.items():
        rows = rows.where(F.col(name) == wanted)
    schema: pa.Schema = to_arrow_schema(_FIRST)

    def ranked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for piece in slices(first_of(from_arrow(batches, columns_of(_SHOWN)), limit)):
            yield from piece.cast(schema).to_batches()

    found = rows.select(*_SHOWN.names).coalesce(1).mapInArrow(ranked, _FIRST)
    return from_arrow(found.toArrow(), columns_of(_FIRST))


def _pass(task: TaskAt) -> Pass:
    schema: pa.Schema = to_arrow_schema(_LOCATED)

    def compare(_cluster: str, feed: SpooledFeed) -> Iterator[pa.RecordBatch]:
        for piece in slices(divergences_at(task, feed)):
            yield from piece.select(schema.names).cast(schema).to_batches()

    return compare
