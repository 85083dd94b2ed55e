"""Spark runs the one pass over each cluster: what it is fed, what it made, and the tables that its rows go to."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from jobs.audit import kept
from jobs.audit.feed import Source, each_cluster, in_order, of_logs
from jobs.audit.past_records import whole_records
from jobs.audit.run import Run
from jobs.exit import AuditError
from jobs.runtime.workers import without_failures
from jobs.sinks.delta import in_parallel
from schemas.bronze import KRAFT_RECORDS
from schemas.examined import EXAMINED
from schemas.table import Table
from transforms.clusters import CLUSTER
from transforms.examination.asked import Asked
from transforms.examination.examine import examine
from transforms.examination.made import AGAIN, ANSWERS, FAILURE, ROWS, Made
from transforms.kraft.side import KraftSide
from transforms.units import Feed, batches_of

_OUTCOME: pa.Schema = to_arrow_schema(EXAMINED.struct)


@dataclass(frozen=True)
class Examined:
    """What a pass said of a cluster: answers to its questions by name, and how many rows it made for each table."""

    answers: Mapping[str, Any] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)


def examined(run: Run, asked: Mapping[str, Asked]) -> dict[str, Examined]:
    """Examine the clusters and store what was made; one whose pass failed has failed.

    The rows for the other tables are in silver `examined` then: `store_rows` brings them there.
    """
    records = without_failures(run.rows(KRAFT_RECORDS))
    _store(run, asked, records)
    again = [row[CLUSTER] for row in _pieces(run, AGAIN).select(CLUSTER).collect()] if _some_go_on(asked) else []
    if again:
        # What seems lost is looked for in all records that earlier runs have read.
        whole = {name: whole_records(run.warehouse, name, run.run_id, _side(asked[name])) for name in again}
        asked_again = {name: replace(asked[name], whole_from=base or 0) for name, (_, base) in whole.items()}
        # Of damage, this run tells what it has read itself.
        parts = [*(rows for rows, _ in whole.values()), records.where(F.col("problem").isNotNull())]
        _store(run, asked_again, reduce(DataFrame.unionByName, parts), series=AGAIN)
    return stored(run)


def _some_go_on(asked: Mapping[str, Asked]) -> bool:
    return any(each.given.side is not None and each.given.side.kept is not None for each in asked.values())


def _side(asked: Asked) -> KraftSide:
    if asked.given.side is None:
        raise AssertionError("only a log that was gone on with is asked for again")
    return asked.given.side


def _store(run: Run, asked: Mapping[str, Asked], records: DataFrame, series: str = "") -> None:
    feed = in_order(_feeds(run, asked, records), len(asked))
    made = feed.mapInArrow(each_cluster(_pass(run.run_id, dict(asked))), EXAMINED.struct)
    run.append(EXAMINED, made, series=series)


def _pieces(run: Run, *kinds: str) -> DataFrame:
    return run.rows(EXAMINED).where(F.col("kind").isin(*kinds))


def stored(run: Run) -> dict[str, Examined]:
    """What was found of each cluster, from silver `examined`."""
    found = {}
    for row in _pieces(run, ANSWERS, FAILURE).select(CLUSTER, "kind", "payload").collect():
        document = json.loads(bytes(row["payload"]))
        if row["kind"] == FAILURE:
            run.fail(row[CLUSTER], _error_of(document))
        else:
            found[row[CLUSTER]] = Examined(document["answers"], document["rows"])
    return found


def _error_of(said: Mapping[str, Any]) -> Exception:
    if said["for_people"]:
        return AuditError(said["text"])
    return AuditError(f"{said['text']} inside the audit; audit this cluster alone to see where")


def _feeds(run: Run, asked: Mapping[str, Asked], records: DataFrame) -> list[DataFrame]:
    source = Source(run.spark, run.rows, {name: run.clusters[name].walks for name in asked})
    folders = [name for name, each in asked.items() if each.given.reads_data_folder]
    logs = [name for name, each in asked.items() if each.given.has_kraft]
    feeds = [source.clusters(), *source.trees(), *source.written(folders), *of_logs(records, logs)]
    going = {name: each for name, each in run.kept.items() if name in asked}
    return [*feeds, kept.fed(run, going)] if going else feeds


def _pass(run_id: str, asked: Mapping[str, Asked]) -> Callable[[str, Feed], Iterator[pa.RecordBatch]]:
    def examine_one(cluster: str, feed: Feed) -> Iterator[pa.RecordBatch]:
        for made in examine(asked[cluster], feed):
            yield _row(cluster, run_id, made)

    return examine_one


def _row(cluster: str, run_id: str, made: Made) -> pa.RecordBatch:
    values = (cluster, run_id, made.kind, made.name, made.part, made.payload)
    return pa.RecordBatch.from_pylist([dict(zip(_OUTCOME.names, values, strict=True))], _OUTCOME)


def store_rows(run: Run, tables: Sequence[Table], found: Mapping[str, Examined]) -> None:
    """Bring the rows that were made to their tables; a table that has none is left alone."""
    filled = [table for table in tables if any(each.rows.get(table.full_name) for each in found.values())]
    in_parallel([lambda table=table: run.append(table, made_rows(run, table)) for table in filled])  # type: ignore[misc]


def made_rows(run: Run, table: Table) -> DataFrame:
    """The rows that this run's passes made for a table."""
    rows = run.rows(EXAMINED).where((F.col("kind") == ROWS) & (F.col("name") == table.full_name))
    return rows.select("payload").mapInArrow(_unpacked(to_arrow_schema(table.struct)), table.struct)


def _unpacked(schema: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in batch["payload"]:
                for rows in batches_of(payload.as_buffer()):
                    yield rows.select(schema.names).cast(schema)

    return unpack
