"""Step 3: bronze to silver: the log replayed into state, the znodes parsed into the same tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.exit import UsageError
from jobs.kept_state import KeptState, keep_nothing, keep_rows, keep_state, read_state, state_of, versions_from
from jobs.run import Run, step_main
from jobs.sinks.delta import in_parallel
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, QUARANTINE, ZK_ZNODES
from schemas.entities import ENTITIES, MIRRORED, Entity
from schemas.entities.migration import MIGRATION
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.silver import ADMIN_OPERATIONS, FINDINGS, LEADER_EPOCHS, ROW_VERSIONS
from schemas.table import Table
from schemas.zookeeper.state import ZNODE_STATE
from transforms.kraft.base import continued, state_at
from transforms.kraft.findings import log_findings
from transforms.kraft.image import Log, image, row_versions, with_base
from transforms.kraft.quorum import CommittedEnd, LogCopyFacts, NoUsableLogError, ReadPlan, committed_end, plan_read
from transforms.kraft.replay import fold
from transforms.kraft.transactions import MARKERS, Marker, TransactionLog, read_transactions
from transforms.kraft.verify import checkpoint_differences, checkpoint_records
from transforms.reconcile.difference import union_all
from transforms.reconcile.facts import state_name
from transforms.reconcile.load import recorded_load
from transforms.reconcile.queries import damaged, load_violations
from transforms.zookeeper.state import state_batches
from transforms.zookeeper.tables import migration_row, tables

STATE, _LEADER_CHANGE = "ZK_MIGRATION_STATE_RECORD", "LEADER_CHANGE"
# 3.4 means PRE_MIGRATION by the first byte, and raises leader epochs as in dual write all along.
_MIGRATION, _PRE_MIGRATION, _POST_MIGRATION = 1, 2, 3
FEATURE_LEVEL = "FEATURE_LEVEL_RECORD"
_MILESTONES = (*MARKERS, STATE, _LEADER_CHANGE, FEATURE_LEVEL)


@dataclass(frozen=True)
class KraftSide:
    """The log of a run: what to apply of it and up to where."""

    copies: tuple[LogCopyFacts, ...]
    plan: ReadPlan
    committed: CommittedEnd
    records: DataFrame
    all_records: DataFrame
    milestones: Sequence[Mapping[str, Any]]
    transactions: TransactionLog
    kept: KeptState | None


def run_step(run: Run) -> None:
    """Make the run's silver tables from its bronze rows. Raises UsageError for a source that holds no metadata."""
    _refuse_empty_tree(run)
    znodes = run.read(ZK_ZNODES).where(F.col("snapshot_id") == run.run_id)
    state = run.hold(znodes.mapInArrow(state_batches, ZNODE_STATE))
    znode_migration = migration_row(row.asDict() for row in state.where("entity = 'migration'").collect())
    kraft = read_kraft_side(run, znode_migration)
    replayed = None if kraft is None else _replay(run, kraft, znode_migration)
    # The longest first: the writers share the machine, and the last to start decides when all are done.
    made: list[tuple[Table, DataFrame]] = [(FINDINGS, union_all([_findings(state), *_log_findings(replayed)]))]
    made += _entity_tables(run, tables(state), replayed)
    made.append((MIGRATION.table, _migration(run, znode_migration, kraft)))
    made.append((ADMIN_OPERATIONS, _admin_operations(state)))
    if kraft is not None:
        made.append((LEADER_EPOCHS, _leader_epochs(run, kraft)))
    writes: list[Callable[[], None]] = [partial(run.replace, table, rows) for table, rows in made]
    quarantine = run.hold(_quarantine(run))
    if not quarantine.isEmpty():
        writes.append(lambda: run.append(QUARANTINE, quarantine))
    in_parallel(writes)
    if replayed is not None:
        _keep(run, replayed)
    state.unpersist()


def _refuse_empty_tree(run: Run) -> None:
    """A tree without Kafka's znodes is the wrong tree: it must not take the place of a good one (DESIGN §8)."""
    source = run.settings.zookeeper
    if source is None:
        return
    found = run.read(ZK_ZNODES).where("path IN ('/brokers', '/brokers/topics', '/brokers/ids')").limit(1).collect()
    if not found:
        where = source.connect or source.folder or source.dump
        raise UsageError(
            f"ZooKeeper {where} holds no Kafka metadata (no /brokers); check the path, or the chroot of the connect string"
        )


def read_kraft_side(run: Run, znode_migration: Mapping[str, Any] | None) -> KraftSide | None:
    """Plan the log of the run's copies; None when there is no log that can be used."""
    rows = [row.asDict(recursive=True) for row in run.read(KRAFT_LOG_COPIES).collect()]
    copies = tuple(LogCopyFacts.from_row(row) for row in rows)
    try:
        plan = plan_read(copies)
    except NoUsableLogError:
        return None
    migration = znode_migration or {}
    committed = committed_end(
        copies, plan, migration.get("kraft_metadata_offset"), migration.get("kraft_metadata_epoch")
    )
    kept = next((state_of(run, row["base_run"]) for row in rows if row["base_run"]), None)
    all_records = run.read(KRAFT_RECORDS).where("problem IS NULL")
    if kept is None:
        records = with_base(all_records, None if plan.base is None else plan.base[1].offset)
    else:
        records = all_records.where(F.col("checkpoint_offset").isNull() & (F.col("offset") >= kept.offset))
    milestones = [*(kept.milestones if kept else ()), *_milestones(records)]
    markers = [
        Marker(row["offset"], row["type"], json.loads(row["data"]).get("name"), row["append_time"])
        for row in milestones
        if row["type"] in MARKERS
    ]
    return KraftSide(copies, plan, committed, records, all_records, milestones, read_transactions(markers), kept)


def whole_records(run: Run, kraft: KraftSide) -> DataFrame:
    """All records that the run's state was replayed from: its own, and those of the runs it goes on from."""
    if kraft.kept is None:
        return kraft.records
    earlier = replace(run, run_id=kraft.kept.run_id)
    before = read_kraft_side(earlier, None)
    if before is None:
        return kraft.records
    known = whole_records(earlier, before).where(F.col("offset") < kraft.kept.offset)
    return known.unionByName(kraft.records)


def _milestones(records: DataFrame) -> list[dict[str, Any]]:
    """The few records that say how to read the others, in log order."""
    rows = records.where(F.col("type").isin(list(_MILESTONES)))
    wanted = rows.select("type", "offset", "epoch", "append_time", "data", "checkpoint_offset")
    return [row.asDict() for row in wanted.orderBy("offset").collect()]


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


def _replay(run: Run, kraft: KraftSide, znode_migration: Mapping[str, Any] | None) -> Replayed:
    after = versions_from(kraft.committed.offset, (znode_migration or {}).get("kraft_metadata_offset"))
    base = None if kraft.kept is None else read_state(run, kraft.kept)
    log = Log.of(kraft.records, kraft.plan.leading.end, kraft.transactions.discarded, base)
    log = Log(run.hold(log.events), run.hold_if_small(log.hot))
    cut = _cut(run, kraft, after)
    short, unlike = _walk(run, kraft, log, cut)
    committed = short.below(kraft.committed.offset)
    folded = run.hold(fold(committed.events))
    # The writers start together: without this each would make the same rows for itself.
    folded.count()
    return Replayed(kraft, log, short, after, cut, committed, folded, unlike)


def _walk(run: Run, kraft: KraftSide, log: Log, cut: int | None) -> tuple[Log, tuple[DataFrame, ...]]:
    """Replay from checkpoint to checkpoint, each step from the state of the one before, and compare at each.

    Gives the log cut at `cut` (all of it when that is None), and where the replay is not Kafka's checkpoint (CAP-08).
    """
    rest, short, unlike = log, log, []
    verified = checkpoints_to_verify(kraft)
    held: list[Log] = []
    for offset in sorted({*verified, *(() if cut is None else (cut,))}):
        state = state_at(rest, offset)
        state = keep_rows(run, state) if offset == cut else Log(run.hold(state.events), run.hold(state.hot))
        rest = continued(state, log, offset)
        if offset == cut:
            short = rest
        if offset in verified:
            checkpoint = Log.of(checkpoint_records(kraft.all_records, offset), offset)
            differing = run.hold(checkpoint_differences(state, checkpoint, _metadata_version(kraft, offset)))
            differing.count()
            unlike.append(differing)
        _let_go(held)
        held = [] if offset == cut else [state]
    _let_go(held)
    return short, tuple(unlike)


def _let_go(held: Sequence[Log]) -> None:
    for state in held:
        state.events.unpersist()
        state.hot.unpersist()


def _cut(run: Run, kraft: KraftSide, after: int) -> int | None:
    """Where to cut the log and keep its state: no version is wanted of what is below, and no transaction is open there.

    None when too little is new: the log is replayed as it is, from what an earlier run has kept.
    """
    states = _states(kraft)
    if states and states[-1][1] == _PRE_MIGRATION:
        # A load without transactions may be under way, and is judged as a whole.
        return None
    pending = kraft.transactions.open
    cut = after if pending is None else min(after, pending.begin)
    known = 0 if kraft.kept is None else kraft.kept.offset
    every = run.settings.kraft.keep_state_every if run.settings.kraft else 0
    return cut if cut - known >= every and cut > kraft.plan.start else None


def _keep(run: Run, replayed: Replayed) -> None:
    """Let the next run go on from the state at the cut, unless this log has findings: each run must see those itself."""
    if replayed.cut is None:
        return
    before = replayed.side.all_records.where(F.col("offset") == replayed.cut - 1).where("checkpoint_offset IS NULL")
    last = before.select("epoch", "append_time").limit(1).collect()
    found = run.read(FINDINGS).where("source = 'kraft'").limit(1).collect()
    found += damaged(run.read(KRAFT_RECORDS)).limit(1).collect()
    load = recorded_load(
        [(offset, state_name(code, None)) for offset, code in _states(replayed.side)], replayed.side.transactions
    )
    found += load_violations(replayed.side.all_records, load).limit(1).collect()
    if found or not last:
        keep_nothing(run)
    else:
        keep_state(run, replayed.cut, last[0].asDict(), replayed.side.milestones)


def _entity_tables(
    run: Run,
    zookeeper: dict[str, DataFrame],
    replayed: Replayed | None,
) -> list[tuple[Table, DataFrame]]:
    images: dict[str, DataFrame] = {}
    made: list[tuple[Table, DataFrame]] = []
    if replayed is not None:
        images = image(replayed.committed, replayed.folded)
        after = replayed.versions_from
        made.append((ROW_VERSIONS, row_versions(replayed.short, replayed.folded, after, MIRRORED)))
    for entity in ENTITIES:
        if entity is not MIGRATION:
            sides = [("zookeeper", zookeeper.get(entity.name)), ("kraft", images.get(entity.name))]
            made.append((entity.table, both_sides(run, entity, sides)))
    return made


def _log_findings(replayed: Replayed | None) -> list[DataFrame]:
    """Records that break a rule of replay, and rows in which the replay is not Kafka's own checkpoint."""
    if replayed is None:
        return []
    dual_write = _dual_write(replayed.side)
    findings = log_findings(replayed.log, replayed.short, replayed.folded, dual_write)
    return [findings, *replayed.unlike_checkpoints]


def _dual_write(kraft: KraftSide) -> tuple[int, int | None] | None:
    """Offsets between which the log is in dual write, by the bytes of every release whose controllers heed them."""
    states = _states(kraft)
    begun = next((offset for offset, code in states if code == _MIGRATION), None)
    if begun is None:
        return None
    return begun, next((offset for offset, code in states if code == _POST_MIGRATION and offset > begun), None)


def _states(kraft: KraftSide) -> list[tuple[int, int]]:
    """Offset and code of every ZkMigrationState record, in log order."""
    states = [m for m in kraft.milestones if m["type"] == STATE]
    return [(m["offset"], json.loads(m["data"])["zkMigrationState"]) for m in states]


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


def both_sides(run: Run, entity: Entity, sides: Sequence[tuple[str, DataFrame | None]]) -> DataFrame:
    """An entity's silver rows (without the run's columns) from its rows of each side (source, rows); None adds none."""
    rows = run.warehouse.empty(entity.table).drop("cluster", "run_id")
    for source, side in sides:
        if side is not None:
            rows = rows.unionByName(side.withColumn("source", F.lit(source)), allowMissingColumns=True)
    return rows


def _migration(run: Run, znode: Mapping[str, Any] | None, kraft: KraftSide | None) -> DataFrame:
    names = [name for name in MIGRATION.table.column_names if name not in ("cluster", "run_id")]
    rows: list[dict[str, Any]] = []
    if znode is not None:
        rows.append({"source": "zookeeper", **znode})
    for record in kraft.milestones if kraft else ():
        if record["type"] == STATE:
            rows.append(
                {
                    "source": "kraft",
                    "state_code": json.loads(record["data"])["zkMigrationState"],
                    "kraft_offset": record["offset"],
                    "kraft_created_offset": record["offset"],
                    "kraft_epoch": record["epoch"],
                    "kraft_append_time": record["append_time"],
                }
            )
    struct = StructType([field for field in MIGRATION.table.columns if field.name in names])
    return run.spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], struct)


def _leader_epochs(run: Run, kraft: KraftSide) -> DataFrame:
    struct = StructType([field for field in LEADER_EPOCHS.columns if field.name not in ("cluster", "run_id")])
    rows = [
        (
            record["epoch"],
            record["offset"],
            (body := json.loads(record["data"]))["leaderId"],
            [voter["voterId"] for voter in body["voters"]],
            record["append_time"],
        )
        for record in kraft.milestones
        if record["type"] == _LEADER_CHANGE and record["checkpoint_offset"] is None
    ]
    return run.spark.createDataFrame(rows, struct)


def _admin_operations(state: DataFrame) -> DataFrame:
    rows = state.where("entity = 'admin_operations'")
    parsed = rows.withColumn("parsed", F.from_json("row", "kind string, subject string, detail string"))
    return parsed.select("parsed.*", "zk_path", "zk_czxid", "zk_mzxid", "zk_mtime")


def _findings(state: DataFrame) -> DataFrame:
    rows = state.where("entity = 'findings'")
    parsed = rows.withColumn("parsed", F.from_json("row", "code string, subject string, detail string"))
    return parsed.select(F.lit("zookeeper").alias("source"), "parsed.*", F.col("zk_path").alias("place"))


def _quarantine(run: Run) -> DataFrame:
    znodes = run.read(ZK_ZNODES).where("problem IS NOT NULL")
    records = run.read(KRAFT_RECORDS).where("problem IS NOT NULL")
    nothing = F.lit(None).cast("bigint")
    return znodes.select(
        F.lit("zookeeper").alias("source"),
        F.col("path").alias("file"),
        nothing.alias("position"),
        F.col("data_length").cast("bigint").alias("length"),
        nothing.alias("offset"),
        F.col("problem").alias("reason"),
    ).unionByName(
        records.select(
            F.lit("kraft").alias("source"), "file", "position", "length", "offset", F.col("problem").alias("reason")
        )
    )


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("materialize", run_step, argv)


if __name__ == "__main__":
    sys.exit(main())
