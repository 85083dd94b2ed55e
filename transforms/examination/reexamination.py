"""A finished run examined again from its evidence and compared with its stored results; its kept state and answers are not used."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl
import pyarrow as pa

from schemas.entities import ENTITIES
from schemas.entities.entity import CHAIN_COLUMNS
from schemas.gold import DIVERGENCES, ISR_HISTORY
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from schemas.table import Table
from transforms.chain.chain import newest_rows
from transforms.clusters import CLUSTER
from transforms.examination.answers import CHANGES_SINCE, FIRST, SECOND
from transforms.examination.examine import examine
from transforms.examination.made import ANSWERS, FAILURE, ROWS
from transforms.examination.stored_changes import ChangesBeside, OwnChanges
from transforms.examination.task import ClusterTask
from transforms.frames import columns_of, from_arrow
from transforms.units import Feed, batches_of

# All rows of these tables can be made again from the evidence of one run.
TABLES: tuple[Table, ...] = (*(entity.table for entity in ENTITIES), ADMIN_OPERATIONS, FINDINGS, DIVERGENCES)
# They compare the run with earlier ones, or are only about the part of the log that it has read itself.
OF_TWO_RUNS = frozenset({"fallen", "earlier_epochs", "activity", "append_times", "in_no_snapshot"})
_OF_TWO_RUNS_IN_ROWS = ("first_seen_run", "status")
_OF_STORING = (CLUSTER, "run_id", *(each.name for each in CHAIN_COLUMNS))
EVIDENCE = "evidence"
# Rows that are stored follow the kinds of `transforms.units.UnitKind`: gold isr_history and isr_by_day, and TABLES.
CHANGES_KIND, DAYS_KIND, FIRST_KIND = 98, 99, 100
UNLIKE = pl.Schema({"what": pl.String, "stored": pl.Int64, "again": pl.Int64, "row": pl.String, "total": pl.Int64})


@dataclass(frozen=True)
class RepeatedTask:
    """A finished run's task, with its log from the beginning, and what it has stored: its `answers`, and the runs whose rows in chained
    tables make up its state, the base's first.

    `shown` is how many differing rows of each table are listed, 1 at least.
    """

    task: ClusterTask
    answers: Mapping[str, Any]
    state_runs: Sequence[str]
    shown: int


def numbered() -> list[tuple[int, Table]]:
    """The tables whose stored rows of the run the feed has, each with the number by which it has them."""
    return list(enumerate(TABLES, FIRST_KIND))


def unlike(again: RepeatedTask, feed: Feed, stored_rows: Callable[[int], Iterable[pa.RecordBatch]]) -> pl.DataFrame:
    """What is not as it was stored (UNLIKE): the table or answer, how often the row is stored and was found again, and the row.

    `stored_rows` gives what is stored of a table by its number (`numbered`, and CHANGES_KIND and DAYS_KIND); of a chained one that is
    all rows of `state_runs`, with `run_id`. The first ones of each table are listed; `total` has their number. Where the run can't
    be examined again there is one row: its `what` is EVIDENCE, its `row` the reason.
    """
    made: dict[str, list[pa.RecordBatch]] = defaultdict(list)
    answers: Mapping[str, Mapping[str, Any]] = {}
    own = OwnChanges.of(again.task.run_id, again.answers.get(CHANGES_SINCE), stored_rows(DAYS_KIND))
    changes = ChangesBeside(own, lambda: stored_rows(CHANGES_KIND), again.shown)
    for piece in examine(again.task, feed):
        if piece.kind == ROWS and piece.name == ISR_HISTORY.full_name:
            changes.find(batches_of(piece.payload))
        elif piece.kind == ROWS and piece.name is not None:
            made[piece.name] += batches_of(piece.payload)
        elif piece.kind == ANSWERS:
            answers = json.loads(piece.payload)["answers"]
        elif piece.kind == FAILURE:
            return _shown(EVIDENCE, pl.Series([json.loads(piece.payload)["text"]]), pl.Series(dtype=pl.String), 1)
    parts = []
    for kind, table in numbered():
        stored = _texts_of(table, _stored(table, stored_rows(kind), again.state_runs))
        found = _texts_of(table, from_arrow(made[table.full_name], _compared(table)))
        parts.append(_shown(table.full_name, stored, found, again.shown))
    parts.append(_columns(changes.unlike().with_columns(what=pl.lit(ISR_HISTORY.full_name))))
    for look in (FIRST, SECOND):
        for name in sorted(again.answers[look].keys() - OF_TWO_RUNS):
            stored, found = _texts(again.answers[look][name]), _texts(answers.get(look, {}).get(name, []))
            parts.append(_shown(f"answer {name}", stored, found, again.shown))
    return pl.concat(parts)


def unlike_rows(table: Table, stored: pl.DataFrame, again: Sequence[Mapping[str, Any]], shown: int) -> pl.DataFrame:
    """Rows of a gold table that are not as often stored as they were made again (UNLIKE).

    A column that the release that stored the rows did not fill is not compared.
    """
    columns = columns_of(table.columns, *_OF_STORING)
    made = pl.DataFrame([{name: row.get(name) for name in columns} for row in again], columns)
    filled = [name for name in columns if stored.is_empty() or stored[name].null_count() < stored.height]
    texts = [rows.select(pl.struct(filled).struct.json_encode().alias("row"))["row"] for rows in (stored, made)]
    return _shown(table.full_name, texts[0], texts[1], shown)


def _stored(table: Table, batches: Iterable[pa.RecordBatch], state_runs: Sequence[str]) -> pl.DataFrame:
    if not table.chained:
        return from_arrow(batches, _compared(table))
    of_runs = from_arrow(batches, columns_of(table.columns, CLUSTER))
    return newest_rows(of_runs.lazy(), state_runs).select(_compared(table).names()).collect()


def _compared(table: Table) -> pl.Schema:
    return columns_of(table.columns, *_OF_STORING)


def _texts_of(table: Table, rows: pl.DataFrame) -> pl.Series:
    """Rows as JSON texts: lists and numbers compare as what they are, and a text can be shown."""
    if table is DIVERGENCES:
        rows = rows.filter(pl.col("status") != "resolved").drop(_OF_TWO_RUNS_IN_ROWS)
    return rows.select(pl.struct(pl.all()).struct.json_encode().alias("row"))["row"]


def _texts(rows: Sequence[Any]) -> pl.Series:
    return pl.Series([json.dumps(row, sort_keys=True) for row in rows], dtype=pl.String)


def _shown(what: str, stored: pl.Series, found: pl.Series, most: int) -> pl.DataFrame:
    """Rows that are not as often in the one as in the other."""
    counts = [
        pl.DataFrame({"row": rows}).group_by("row").len(name) for name, rows in (("stored", stored), ("again", found))
    ]
    both = counts[0].join(counts[1], on="row", how="full", coalesce=True).fill_null(0)
    odd = both.filter(pl.col("stored") != pl.col("again")).sort("row")
    first_ones = odd.head(most).with_columns(pl.lit(what).alias("what"), pl.lit(odd.height).alias("total"))
    return _columns(first_ones)


def _columns(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(pl.col(name).cast(kind) for name, kind in UNLIKE.items())
