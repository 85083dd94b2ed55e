"""Spark runs the one pass over each cluster: its input, its results, and the tables for its rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from jobs import out_of_memory
from jobs.evidence.feed import Source, each_cluster, in_order, of_logs
from jobs.evidence.past_records import whole_log
from jobs.exit import AuditError, for_people
from jobs.run import kept
from jobs.run.run import LOG, Run
from jobs.runtime.workers import WorkerRows, without_failures
from jobs.sinks.delta import UnreadableError, in_parallel
from schemas.bronze import KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.examination.examine import examine
from transforms.examination.made import AGAIN, ANSWERS, FAILURE, ROWS, Made
from transforms.examination.task import ClusterTask
from transforms.kraft.side import KraftSide
from transforms.units import Feed, batches_of

_OUTCOME: pa.Schema = to_arrow_schema(EXAMINED.struct)
# Rows in a piece as small as this come to the driver with the answers: to read their table again takes Python's workers longer than
# they are worth, a seventh of a small audit's queries (`tests/pipeline/test_queries.py`).
FEW_ROWS = "few_rows"
_FEW_BYTES = 32 * 1024


@dataclass(frozen=True)
class Examined:
    """A pass's results for a cluster: answers by the names of their questions, numbers of rows by table, and small pieces of rows."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    pieces: Mapping[str, Sequence[bytes]] = field(default_factory=dict)


# The tasks as a query gets them, and the records that it reads.
_Prepared = Callable[[Mapping[str, ClusterTask]], tuple[Mapping[str, ClusterTask], DataFrame]]


def examined(run: Run, tasks: Mapping[str, ClusterTask]) -> dict[str, Examined]:
    """Examine the clusters and store the results; a cluster whose pass failed has failed.

    The rows for the other tables are in silver `examined` then: `store_rows` brings them there.
    """
    records = without_failures(run.rows(KRAFT_RECORDS))
    _store(run, tasks, lambda several: (several, records))
    again = _asked_again(run) if _some_go_on(tasks) else []
    if again:
        _store(run, {name: tasks[name] for name in again}, partial(_with_whole_logs, run, records), AGAIN)
    return stored(run)


def _with_whole_logs(
    run: Run, records: DataFrame, tasks: Mapping[str, ClusterTask]
) -> tuple[Mapping[str, ClusterTask], DataFrame]:
    """The tasks with all records that earlier runs have read: what seems lost is looked for there."""
    whole = {name: whole_log(run.warehouse, name, run.run_id, _side(each)) for name, each in tasks.items()}
    asked_again = {
        name: replace(each, whole_from=whole[name].base or 0, earlier=whole[name].earlier)
        for name, each in tasks.items()
    }
    # This run reports only the damage that it has read itself.
    parts = [*(log.records for log in whole.values()), records.where(F.col("problem").isNotNull())]
    return asked_again, reduce(DataFrame.unionByName, parts)


def _some_go_on(tasks: Mapping[str, ClusterTask]) -> bool:
    return any(each.given.side is not None and each.given.side.kept is not None for each in tasks.values())


def _asked_again(run: Run) -> list[str]:
    return [row[CLUSTER] for row in run.looked_up(EXAMINED, (CLUSTER,), {"kind": AGAIN})]


def _side(task: ClusterTask) -> KraftSide:
    if task.given.side is None:
        raise AssertionError("only a log that was resumed is read again")
    return task.given.side


def _store(run: Run, tasks: Mapping[str, ClusterTask], prepared: _Prepared, series: str = "") -> None:
    """Examine the clusters in one query. If one of them may have broken it, each has a query of its own.

    A damaged file, or a cluster that is too large for this machine's memory, is then no other cluster's fault; and most find more
    memory alone.
    """
    try:
        _store_at_once(run, *prepared(tasks), series)
        return
    except Exception as error:
        if not _may_be_one_clusters(error):
            raise
        if len(tasks) == 1:
            run.fail(next(iter(tasks)), error)
            return
        LOG.warning("the clusters are examined one after the other: %s", for_people(error))
    for name, each in tasks.items():
        try:
            _store_at_once(run, *prepared({name: each}), f"{series}/{name}")
        except Exception as error:
            if out_of_memory.java_is_gone(error):
                raise
            run.fail(name, error)


def _may_be_one_clusters(error: Exception) -> bool:
    killed = out_of_memory.worker_died(error) and not out_of_memory.java_is_gone(error)
    return killed or isinstance(error, UnreadableError)


def _store_at_once(run: Run, tasks: Mapping[str, ClusterTask], records: DataFrame, series: str) -> None:
    feed = in_order(_feeds(run, tasks, records), len(tasks))
    run.append(EXAMINED, WorkerRows(feed, each_cluster(_pass(run.run_id, dict(tasks))), EXAMINED.struct), series=series)


def stored(run: Run) -> dict[str, Examined]:
    """What was found of each cluster, from silver `examined`."""
    told = run.looked_up(EXAMINED, (CLUSTER, "kind", "name", "payload"), {"kind": [ANSWERS, FAILURE, FEW_ROWS]})
    documents: dict[str, Any] = {}
    pieces: dict[str, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    for row in told:
        cluster, payload = row[CLUSTER], row["payload"]
        if row["kind"] == FEW_ROWS:
            pieces[cluster][row["name"]].append(payload)
        elif row["kind"] == FAILURE:
            run.fail(cluster, _error_of(json.loads(payload)))
        else:
            documents[cluster] = json.loads(payload)
    return {
        cluster: Examined(document["answers"], document["rows"], pieces[cluster])
        for cluster, document in documents.items()
    }


def _error_of(said: Mapping[str, Any]) -> Exception:
    if said["for_people"]:
        return AuditError(said["text"])
    if said["text"] == MemoryError.__name__:
        return AuditError(out_of_memory.PYTHON)
    return AuditError(f"{said['text']} inside the audit; audit this cluster alone to see where")


def _feeds(run: Run, tasks: Mapping[str, ClusterTask], records: DataFrame) -> list[DataFrame]:
    source = Source(run.spark, run.rows, {name: run.clusters[name].walks for name in tasks})
    folders = [name for name, each in tasks.items() if each.given.reads_data_folder]
    logs = [name for name, each in tasks.items() if each.given.has_kraft]
    feeds = [source.clusters(), *source.trees(), *source.written(folders), *of_logs(records, logs)]
    going = {name: each for name, each in run.kept.items() if name in tasks}
    return [*feeds, kept.fed(run, going)] if going else feeds


def _pass(run_id: str, tasks: Mapping[str, ClusterTask]) -> Callable[[str, Feed], Iterator[pa.RecordBatch]]:
    def examine_one(cluster: str, feed: Feed) -> Iterator[pa.RecordBatch]:
        for made in examine(tasks[cluster], feed):
            yield _row(cluster, run_id, made)

    return examine_one


def _row(cluster: str, run_id: str, made: Made) -> pa.RecordBatch:
    kind = FEW_ROWS if made.kind == ROWS and len(made.payload) <= _FEW_BYTES else made.kind
    values = (cluster, run_id, kind, made.name, made.part, made.payload)
    return pa.RecordBatch.from_pylist([dict(zip(_OUTCOME.names, values, strict=True))], _OUTCOME)


def store_rows(run: Run, tables: Sequence[Table], found: Mapping[str, Examined]) -> None:
    """Bring the rows that were made to their tables; a table that has none is left alone."""
    filled = [table for table in tables if any(each.rows.get(table.full_name) for each in found.values())]
    in_parallel([lambda table=table: run.append(table, _rows_of(run, table, found)) for table in filled])  # type: ignore[misc]


def _rows_of(run: Run, table: Table, found: Mapping[str, Examined]) -> WorkerRows | pa.Table:
    """A table's rows, as they came with the answers where all of them did."""
    name, going = table.full_name, [found[cluster] for cluster in run.going if cluster in found]
    batches = [batch for each in going for piece in each.pieces.get(name, ()) for batch in batches_of(piece)]
    if sum(batch.num_rows for batch in batches) < sum(each.rows.get(name, 0) for each in going):
        return made_rows(run, table)
    return pa.Table.from_batches(batches, to_arrow_schema(table.struct))


def made_rows(run: Run, table: Table) -> WorkerRows:
    """The rows that this run's passes made for a table."""
    rows = run.rows(EXAMINED).where(F.col("kind").isin(ROWS, FEW_ROWS) & (F.col("name") == table.full_name))
    return WorkerRows(rows.select("payload"), _unpacked(to_arrow_schema(table.struct)), table.struct)


def _unpacked(schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch["payload"]:
                for rows in batches_of(payload.as_buffer()):
                    yield rows.select(schema.names).cast(schema)

    return unpack
