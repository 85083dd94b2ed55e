"""`kraft-audit explain`: one row's story: both values, why they differ, and every record and transaction that made it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from jobs.audit.compare import divergence_row
from jobs.audit.past import PastRun, add_run_argument, add_warehouse_arguments, open_warehouse, past_run
from jobs.audit.past_state import PastKraft, migration_znodes, past_kraft
from jobs.exit import OK, UsageError
from schemas.bronze import ZK_TRANSACTIONS
from schemas.entities import Entity
from schemas.gold import DIVERGENCES
from schemas.silver import BARRIERS, ZOOKEEPER_WRITES
from transforms.explain.keys import EXPLAINED, KeyFormError, RowKey, form_of, parse_key
from transforms.explain.records import (
    VersionAfter,
    partition_states,
    partition_versions,
    row_events,
    state_at,
    versions,
)
from transforms.explain.text import Explanation, Side, render, utc_time
from transforms.explain.timeline import BarrierPassed, row_text, timeline
from transforms.explain.writes import CREATES, ZnodeWrite, session_writers, writes
from transforms.explain.znodes import znode_paths
from transforms.reconcile.compare.canonical import key_json
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
        "--as-of", type=int, metavar="OFFSET", help="also tell KRaft's row after this offset (inclusive)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the story of a row. 0 whatever it tells; 2 when the key is wrong or there never was such a row."""
    try:
        row = parse_key(arguments.entity, arguments.key)
    except KeyFormError as error:
        raise UsageError(visible(str(error))) from None
    with open_warehouse(arguments) as run:
        print(render(explanation(past_run(run, arguments.run_id), row, arguments.as_of)), end="")
    return OK


def explanation(past: PastRun, row: RowKey, as_of: int | None = None) -> Explanation:
    """Gather one row's story from a finished run. Raises UsageError when there never was such a row."""
    kraft = past_kraft(past, migration_znodes(past))
    if as_of is not None:
        if kraft is None:
            raise UsageError(f"--as-of: run {past.run_id} has no metadata log")
        kraft.checked(as_of)
    found = [] if kraft is None else _versions(kraft, row)
    written = _writes(past, row)
    now = _silver_rows(past, row)
    if not (found or any(write.row is not None for write in written) or now):
        raise UsageError(
            f"{row.entity.name}: there never was a row {row.shown}; nearest: {_nearest(past, row.entity, row)}"
        )
    return Explanation(
        row=row,
        cluster=past.cluster,
        run_id=past.run_id,
        sides=[_zookeeper_side(past, row, now), _kraft_side(past, row, kraft, found)],
        differences=_differences(past, row),
        steps=timeline(row, found, written, _barriers(past, [version.offset for version in found])),
        notes=_notes(past, row, kraft, found, written),
        as_of=None if as_of is None or kraft is None else _side_at(row, kraft, found, as_of),
    )


def _versions(kraft: PastKraft, row: RowKey) -> list[VersionAfter]:
    side = kraft.side
    records = kraft.applied()
    base_checkpoint_end_exclusive = side.plan.base_checkpoint[1].offset if side.plan.base_checkpoint else None
    if row.entity.name != "partitions":
        return versions(event.asDict() for event in row_events(records, row).collect())
    topic = parse_key("topics", {"topic": row.key["topic"]})
    lives = [event.asDict() for event in row_events(records, topic).collect()]
    states = [state.asDict(recursive=True) for state in partition_states(records, row, lives).collect()]
    return partition_versions(states, lives, base_checkpoint_end_exclusive)


def _matches(row: RowKey) -> Column:
    """Plain columns first: they are pushed down to the files, the key's text decides."""
    arrays = {field.name for field in row.entity.columns if isinstance(field.dataType, ArrayType)}
    plain = [F.col(name) == F.lit(value) for name, value in row.key.items() if name not in arrays]
    return reduce(and_, plain, key_json(row.entity) == F.lit(row.canonical))


def _silver_rows(past: PastRun, row: RowKey) -> dict[str, dict[str, Any]]:
    found = past.read(row.entity.table).where(_matches(row)).collect()
    return {each["source"]: each.asDict(recursive=True) for each in found}


def _zookeeper_side(past: PastRun, row: RowKey, now: Mapping[str, Mapping[str, Any]]) -> Side:
    found = now.get("zookeeper")
    if past.report.mode == "kraft_only":
        return Side("ZooKeeper", "not collected", "")
    if found is None:
        return Side("ZooKeeper", row_text(row, None), "")
    place = f"{visible(found['zk_path'] or '')}, written last by zxid {found['zk_mzxid']:#x} at {utc_time(found['zk_mtime'])}"
    return Side("ZooKeeper", row_text(row, found), place)


def _kraft_side(past: PastRun, row: RowKey, kraft: PastKraft | None, found: Sequence[VersionAfter]) -> Side:
    if kraft is None:
        return Side("KRaft", "not collected", "")
    return _side_at(row, kraft, found, kraft.side.committed.end_exclusive - 1)


def _side_at(row: RowKey, kraft: PastKraft, found: Sequence[VersionAfter], offset: int) -> Side:
    version = state_at(found, offset, kraft.side.transactions.discarded_at(offset))
    proved = "" if offset < kraft.side.committed.end_exclusive else ", not proved committed"
    name = f"KRaft after offset {offset} (inclusive{proved})"
    waiting = _open_transaction(kraft, found, offset)
    if version is None:
        return Side(name, row_text(row, None), waiting or "no record of it up to there")
    did = "removed at" if version.row is None else "since"
    place = f"{did} offset {version.offset}, epoch {version.epoch}"
    return Side(name, row_text(row, version.row), f"{place}; {waiting}" if waiting else place)


def _open_transaction(kraft: PastKraft, found: Sequence[VersionAfter], offset: int) -> str:
    """Say so when records of the row up to the offset were not in force there: their transaction ended later."""
    for begin, end in kraft.side.transactions.discarded_at(offset):
        if any(begin <= version.offset <= offset for version in found):
            ended = "is open" if end is None else f"ended at offset {end}"
            return f"its records from offset {begin} on were not in force: their transaction {ended}"
    return ""


def _differences(past: PastRun, row: RowKey) -> list[Any]:
    rows = past.read(DIVERGENCES).where("status <> 'resolved'")
    mine = rows.where((F.col("entity") == row.entity.name) & (F.col("key") == row.gold)).orderBy("column")
    return [divergence_row(each) for each in mine.collect()]


def _writes(past: PastRun, row: RowKey) -> list[ZnodeWrite]:
    paths = znode_paths(row)
    logged = past.read(ZK_TRANSACTIONS)
    mine = logged.where(F.col("path").isin(paths)).select("zxid", "session").distinct()
    # Of a multi, its first two operations tell whether it is KRaft's envelope.
    of_row = F.col("path").isin(paths) | (F.col("multi_index") <= 1)
    operations = logged.where(of_row).join(F.broadcast(mine.select("zxid")), "zxid", "left_semi").collect()
    if not operations:
        return []
    births = logged.where(F.col("type").isin(list(CREATES)) & ~F.col("failed"))
    owned = births.where((F.col("path") == "/controller") | F.col("path").startswith("/brokers/ids/"))
    known = past.read(ZOOKEEPER_WRITES)
    kinds = known.join(F.broadcast(mine.select("zxid")), "zxid", "left_semi").select("zxid", "kind").collect()
    claim = known.where("kind = 'claim'").agg(F.min("zxid")).collect()[0][0]
    writers = session_writers(
        each.asDict()
        for each in owned.join(F.broadcast(mine.select("session").distinct()), "session", "left_semi").collect()
    )
    plain = [operation.asDict() for operation in operations]
    return writes(row, plain, paths, {each["zxid"]: each["kind"] for each in kinds}, writers, claim)


def _barriers(past: PastRun, offsets: Sequence[int]) -> list[BarrierPassed]:
    """Of all writes of /migration, the first one that covers each record of the row."""
    if not offsets:
        return []
    asked = past.spark.createDataFrame([(offset,) for offset in offsets], "asked bigint")
    reached = past.read(BARRIERS).join(F.broadcast(asked), F.col("kraft_metadata_offset") >= F.col("asked"))
    first = F.min(F.struct("zxid", "time", "kraft_metadata_offset", "kraft_controller_id")).alias("first")
    rows = reached.groupBy("asked").agg(first).select("first.*").distinct().collect()
    return [BarrierPassed(r["zxid"], r["time"], r["kraft_metadata_offset"], r["kraft_controller_id"]) for r in rows]


def _notes(
    past: PastRun, row: RowKey, kraft: PastKraft | None, found: Sequence[VersionAfter], written: Sequence[ZnodeWrite]
) -> list[str]:
    notes = []
    mirrored = past.report.migration.kraft_metadata_offset
    if mirrored is not None and kraft is not None:
        notes.append(
            f"/migration is at offset {mirrored}: what the log did up to there (inclusive) is said to be in ZooKeeper."
        )
    if kraft is not None and any(version.offset >= kraft.side.committed.end_exclusive for version in found):
        notes.append(f"Records from offset {kraft.side.committed.end_exclusive} on are not proved committed.")
    if past.report.mode != "kraft_only" and past.read(ZK_TRANSACTIONS).isEmpty():
        notes.append(
            "ZooKeeper's transactions are not told: the run had no transaction logs (zookeeper.folder holds them)."
        )
    elif past.report.mode != "kraft_only":
        notes.append("ZooKeeper's transactions are told from where the copied transaction logs begin.")
    if row.entity.name == "brokers" and written:
        notes.append("A broker's znode goes with its session, which is no write of the znode and not listed.")
    return notes


def _nearest(past: PastRun, entity: Entity, row: RowKey) -> str:
    keys = past.read(entity.table).select(key_json(entity).alias("key")).distinct()
    near = keys.orderBy(F.levenshtein("key", F.lit(row.canonical)), "key").limit(_NEAREST).collect()
    typed = [RowKey(entity, json.loads(each["key"])).typed for each in near]
    return ", ".join(visible(text, 200) for text in typed) or f"none, the run has no {entity.name}"
