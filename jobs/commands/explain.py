"""`kraft-audit explain`: one row's story: both values, why they differ, and every record and transaction that made it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import reduce
from operator import and_

import polars as pl
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from jobs.commands.options import add_run_argument, add_warehouse_arguments
from jobs.evidence import missing
from jobs.evidence.opening import open_warehouse
from jobs.evidence.past_log import PastKraft, migration_znodes, past_kraft
from jobs.evidence.past_run import PastRun, past_run
from jobs.evidence.row_records import row_versions
from jobs.exit import OK, UsageError
from jobs.runtime.output import say
from schemas.bronze import QUARANTINE, ZK_TRANSACTIONS
from schemas.checks import ZOOKEEPER
from schemas.gold import DIVERGENCES
from schemas.report import DivergenceRow
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from schemas.table import Table
from transforms.explain.keys import EXPLAINED, KeyFormError, RowKey, form_of, parse_key
from transforms.explain.row_evidence import RowEvidence, barriers_passed, explanation_of, rows_of, znode_writes
from transforms.explain.text import Explanation, render
from transforms.explain.timeline import BarrierPassed
from transforms.explain.writes import CREATES, ZnodeWrite
from transforms.explain.znodes import znode_paths
from transforms.frames import columns_of, from_arrow
from transforms.reconcile.compare.home import ancestors
from transforms.report.compared import was_compared
from transforms.report.comparison import divergence_row
from transforms.report.printable import visible

_NEAREST = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `kraft-audit explain`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    forms = [(name, form_of(entity)) for name, entity in EXPLAINED.items()]
    parser.epilog = "keys:\n" + "\n".join(f"  {name:<18} {form}" for name, form in forms)
    parser.add_argument("entity", metavar="ENTITY", help=", ".join(EXPLAINED))
    parser.add_argument("key", metavar="KEY", nargs="?", help="the row; the forms are below")
    add_warehouse_arguments(parser)
    add_run_argument(parser)
    parser.add_argument(
        "--as-of", type=int, metavar="OFFSET", help="also show KRaft's row after this offset (inclusive)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the story of a row. Returns 0, or 2 if the key is wrong or the row never existed."""
    try:
        row = parse_key(arguments.entity, arguments.key)
    except KeyFormError as error:
        raise UsageError(visible(str(error))) from None
    with open_warehouse(arguments) as run:
        past = past_run(run, arguments.run_id)
        text = render(explanation(past, row, arguments.as_of))
        gone = missing.lines(missing.of_chain(past))
    for line in [*gone, *text.removesuffix("\n").split("\n"), *past.standing.lines(run.stale_after_hours)]:
        say(line)
    return OK


def explanation(past: PastRun, row: RowKey, as_of: int | None = None) -> Explanation:
    """Gather one row's story from a finished run. Raises UsageError when there never was such a row."""
    kraft = past_kraft(past, migration_znodes(past))
    if as_of is not None:
        if kraft is None:
            raise UsageError(f"--as-of: run {past.run_id} has no metadata log")
        kraft.checked(as_of)
    found = _found(past, row, kraft)
    if not found.ever and found.unread:
        raise UsageError(
            f"{row.entity.name}: it is unknown whether there is a row {row.shown}: {'; '.join(found.unread)}"
        )
    if not found.ever:
        raise UsageError(f"{row.entity.name}: there never was a row {row.shown}; nearest: {_nearest(past, row)}")
    return explanation_of(row, found, as_of)


def _found(past: PastRun, row: RowKey, kraft: PastKraft | None) -> RowEvidence:
    versions = [] if kraft is None else row_versions(kraft.applied(), row, kraft.base)
    return RowEvidence(
        cluster=past.cluster,
        run_id=past.run_id,
        mode=past.report.mode,
        mirrored_offset=past.report.migration.kraft_metadata_offset,
        side=None if kraft is None else kraft.side,
        versions=versions,
        now=rows_of(row, _silver_rows(past, row)),
        differences=_differences(past, row),
        writes=_writes(past, row),
        barriers=_barriers(past, [version.offset for version in versions]),
        has_transactions=not past.read(ZK_TRANSACTIONS).isEmpty(),
        compared=was_compared(past.report),
        unread=_unread(past, row),
    )


def _unread(past: PastRun, row: RowKey) -> list[str]:
    """The row's znodes, and those above them, that the run could not read, with the reason."""
    paths = znode_paths(row)
    places = sorted({*paths, *(above for path in paths for above in ancestors(path))})
    if not places:
        return []
    unread = past.read(QUARANTINE).where((F.col("source") == ZOOKEEPER) & F.col("file").isin(places))
    return [
        visible(f"{each['file']} ({each['reason']})", 300)
        for each in unread.select("file", "reason").distinct().orderBy("file").collect()
    ]


def _silver_rows(past: PastRun, row: RowKey) -> pl.DataFrame:
    """Rows of both sides with the plain columns of the key: those are looked up in the files."""
    arrays = {field.name for field in row.entity.columns if isinstance(field.dataType, ArrayType)}
    plain = [F.col(name) == F.lit(value) for name, value in row.key.items() if name not in arrays]
    return _collected(past.read(row.entity.table).where(reduce(and_, plain, F.lit(True))), row.entity.table)


def _differences(past: PastRun, row: RowKey) -> list[DivergenceRow]:
    rows = past.read(DIVERGENCES).where("status <> 'resolved'")
    mine = rows.where((F.col("entity") == row.entity.name) & (F.col("key") == row.gold)).orderBy("column")
    return [divergence_row(each.asDict()) for each in mine.collect()]


def _writes(past: PastRun, row: RowKey) -> list[ZnodeWrite]:
    paths, path = znode_paths(row), F.col("path")
    logged = past.read(ZK_TRANSACTIONS)
    mine = logged.where(path.isin(paths)).select("zxid", "session").distinct()
    zxids = F.broadcast(mine.select("zxid").distinct())
    sessions = F.broadcast(mine.select("session", F.lit(True).alias("writes")).distinct())
    # The first two operations of a multi show whether it is KRaft's envelope.
    of_row = (path.isin(paths) | (F.col("multi_index") <= 1)) & F.col("is_its")
    births = F.col("type").isin(list(CREATES)) & ~F.col("failed") & F.col("writes")
    owned = births & ((path == "/controller") | path.startswith("/brokers/ids/"))
    marked = logged.join(zxids.withColumn("is_its", F.lit(True)), "zxid", "left").join(sessions, "session", "left")
    known = past.read(ZOOKEEPER_WRITES)
    kinds = known.join(zxids, "zxid", "left_semi").unionByName(known.where("kind = 'claim'"))
    return znode_writes(
        row, _collected(marked.where(of_row | owned), ZK_TRANSACTIONS), _collected(kinds, ZOOKEEPER_WRITES)
    )


def _barriers(past: PastRun, offsets: Sequence[int]) -> list[BarrierPassed]:
    """Of all writes of /migration, the first one that covers each record of the row."""
    return barriers_passed(_collected(past.read(BARRIERS), BARRIERS), offsets) if offsets else []


def _collected(rows: DataFrame, table: Table) -> pl.DataFrame:
    """A few rows of a table."""
    return from_arrow(rows.select(*[each.name for each in table.columns]).toArrow(), columns_of(table.columns))


def _nearest(past: PastRun, row: RowKey) -> str:
    text = F.to_json(F.struct(*row.entity.key), {"ignoreNullFields": "false"}) if row.entity.key else F.lit("{}")
    keys = past.read(row.entity.table).select(text.alias("key")).distinct()
    near = keys.orderBy(F.levenshtein("key", F.lit(row.canonical)), "key").limit(_NEAREST).collect()
    typed = [RowKey(row.entity, json.loads(each["key"])).typed for each in near]
    return ", ".join(visible(text, 200) for text in typed) or f"none, the run has no {row.entity.name}"
