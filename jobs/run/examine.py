"""Spark runs the one pass over each cluster: its input, its results, and the tables for its rows."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from jobs import out_of_memory
from jobs.evidence.feed import Source, each_cluster, gathered, of_logs
from jobs.evidence.past_records import whole_log
from jobs.exit import AuditError, for_people
from jobs.run import kept
from jobs.run.cluster_pass import FEW_ROWS, FILE, file_of, passing
from jobs.run.run import LOG, Run
from jobs.runtime.workers import WorkerRows, as_they_are
from jobs.sinks.conditions import PRESENT
from jobs.sinks.delta import in_parallel
from jobs.sinks.delta_errors import UnreadableError
from jobs.sinks.parquet import DataFile
from schemas.bronze import KRAFT_RECORDS, QUARANTINE
from schemas.entities import ENTITIES
from schemas.examined import EXAMINED
from schemas.gold import DIVERGENCES, ISR_HISTORY
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.examination.made import AGAIN, ANSWERS, FAILURE, ROWS
from transforms.examination.task import ClusterTask
from transforms.kraft.side import KraftSide
from transforms.units import batches_of

# The tables whose rows a pass makes.
TABLES = (*(entity.table for entity in ENTITIES), ADMIN_OPERATIONS, FINDINGS, QUARANTINE, ISR_HISTORY, DIVERGENCES)


@dataclass(frozen=True)
class Examined:
    """A pass's results for a cluster: answers by the names of their questions; and by table the number of rows, small pieces of
    them, and the file that has the many, which no commit names yet.
    """

    answers: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    pieces: Mapping[str, Sequence[bytes]] = field(default_factory=dict)
    files: Mapping[str, DataFile] = field(default_factory=dict)


# The tasks as a query gets them, and the logs that it reads: rows of `schemas.examined.FEED`.
_Prepared = Callable[[Mapping[str, ClusterTask]], tuple[Mapping[str, ClusterTask], list[DataFrame]]]


def examined(run: Run, tasks: Mapping[str, ClusterTask]) -> dict[str, Examined]:
    """Examine the clusters and store the results; a cluster whose pass failed has failed.

    The rows for the other tables are in silver `examined` then, or in files that it names: `store_rows` brings them there.
    """
    _store(run, tasks, partial(_with_new_records, run))
    again = _asked_again(run) if _some_go_on(tasks) else []
    if again:
        _store(run, {name: tasks[name] for name in again}, partial(_with_whole_logs, run), AGAIN)
    return stored(run)


def _with_new_records(run: Run, tasks: Mapping[str, ClusterTask]) -> tuple[Mapping[str, ClusterTask], list[DataFrame]]:
    """The tasks with the records that this run has read."""
    return tasks, _source(run, tasks).logs([name for name, each in tasks.items() if each.given.has_kraft])


def _with_whole_logs(run: Run, tasks: Mapping[str, ClusterTask]) -> tuple[Mapping[str, ClusterTask], list[DataFrame]]:
    """The tasks with all records that earlier runs have read: what seems lost is looked for there."""
    whole = {name: whole_log(run.warehouse, name, run.run_id, _side(each)) for name, each in tasks.items()}
    asked_again = {
        name: replace(each, whole_from=whole[name].base or 0, earlier=whole[name].earlier)
        for name, each in tasks.items()
    }
    # This run reports only the damage that it has read itself.
    damage = run.in_workers(KRAFT_RECORDS, {CLUSTER: sorted(tasks), "problem": PRESENT})
    earlier = [records for log in whole.values() for records in of_logs(as_they_are(log.records))]
    return asked_again, [*earlier, *of_logs(damage)]


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


def _store_at_once(run: Run, tasks: Mapping[str, ClusterTask], logs: list[DataFrame], series: str) -> None:
    feed = gathered([*_feeds(run, tasks), *logs], len(tasks))
    new_files = run.warehouse.new_files(TABLES)
    examine = each_cluster(passing(run.run_id, dict(tasks), new_files))
    try:
        run.append(EXAMINED, WorkerRows(feed, examine, EXAMINED.struct), series=series)
    except BaseException:
        new_files.drop()
        raise


def stored(run: Run) -> dict[str, Examined]:
    """What was found of each cluster, from silver `examined`."""
    kinds = [ANSWERS, FAILURE, FEW_ROWS, FILE]
    told = run.looked_up(EXAMINED, (CLUSTER, "kind", "name", "payload"), {"kind": kinds})
    documents: dict[str, Any] = {}
    pieces: dict[str, dict[str, list[bytes]]] = defaultdict(lambda: defaultdict(list))
    files: dict[str, dict[str, DataFile]] = defaultdict(dict)
    for row in told:
        cluster, payload = row[CLUSTER], row["payload"]
        if row["kind"] == FEW_ROWS:
            pieces[cluster][row["name"]].append(payload)
        elif row["kind"] == FILE:
            files[cluster][row["name"]] = file_of(payload)
        elif row["kind"] == FAILURE:
            run.fail(cluster, _error_of(json.loads(payload)))
        else:
            documents[cluster] = json.loads(payload)
    return {
        cluster: Examined(document["answers"], document["rows"], pieces[cluster], files[cluster])
        for cluster, document in documents.items()
    }


def _error_of(said: Mapping[str, Any]) -> Exception:
    if said["for_people"]:
        return AuditError(said["text"])
    if said["text"] == MemoryError.__name__:
        return AuditError(out_of_memory.PYTHON)
    return AuditError(f"{said['text']} inside the audit; audit this cluster alone to see where")


def _source(run: Run, tasks: Mapping[str, ClusterTask]) -> Source:
    return Source(run.spark, run.in_workers, {name: run.clusters[name].walks for name in tasks})


def _feeds(run: Run, tasks: Mapping[str, ClusterTask]) -> list[DataFrame]:
    source = _source(run, tasks)
    folders = [name for name, each in tasks.items() if each.given.reads_data_folder]
    feeds = [source.clusters(), *source.trees(), *source.written(folders)]
    going = {name: each for name, each in run.kept.items() if name in tasks}
    return [*feeds, kept.fed(run, going)] if going else feeds


def store_rows(run: Run, found: Mapping[str, Examined]) -> None:
    """Bring the rows that were made to their tables; a table that has none is left alone."""
    going = [found[cluster] for cluster in run.going if cluster in found]
    in_parallel([partial(_store_rows, run, table, going) for table in TABLES])


def _store_rows(run: Run, table: Table, going: Sequence[Examined]) -> None:
    files = [each.files[table.full_name] for each in going if table.full_name in each.files]
    if files:
        run.append(table, files, series=FILE)
    other = sum(each.rows.get(table.full_name, 0) for each in going) - sum(file.rows for file in files)
    if other:
        run.append(table, _other_rows(run, table, going, other))


def _other_rows(run: Run, table: Table, going: Sequence[Examined], number: int) -> WorkerRows | pa.Table:
    """A table's rows that are not in files of its own, as they came with the answers where all of them did."""
    pieces = [piece for each in going for piece in each.pieces.get(table.full_name, ())]
    batches = [batch for piece in pieces for batch in batches_of(piece)]
    if sum(batch.num_rows for batch in batches) < number:
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
