"""Step 3: bronze to silver: the log replayed into state, the znodes parsed into the same tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.kraft_side import LEADER_CHANGE, STATE, KraftSide, dual_write, read_kraft_side
from jobs.audit.run import Run, step_main
from jobs.exit import UsageError
from jobs.sinks.delta import in_parallel
from jobs.steps.replay_log import Replayed, keep, replay_log
from schemas.bronze import KRAFT_RECORDS, QUARANTINE, ZK_ZNODES
from schemas.entities import ENTITIES, MIRRORED, Entity
from schemas.entities.migration import MIGRATION
from schemas.silver import ADMIN_OPERATIONS, FINDINGS, LEADER_EPOCHS, ROW_VERSIONS
from schemas.table import Table
from schemas.zookeeper.state import ZNODE_STATE
from transforms.kraft.replay.findings import log_findings
from transforms.kraft.replay.image import image, row_versions
from transforms.reconcile.compare.difference import union_all
from transforms.zookeeper.read.routes import MIGRATION_PATHS
from transforms.zookeeper.read.state import state_batches
from transforms.zookeeper.read.tables import migration_row, tables


def run_step(run: Run) -> None:
    """Make the run's silver tables from its bronze rows. Raises UsageError for a source that holds no metadata."""
    _refuse_empty_tree(run)
    znodes = run.read(ZK_ZNODES).where(F.col("snapshot_id") == run.run_id)
    znode_migration = _znode_migration(znodes)
    kraft = read_kraft_side(run, znode_migration)
    state, replayed = _both_states(run, znodes, kraft, znode_migration)
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
        keep(run, replayed)
    state.unpersist()


def _znode_migration(znodes: DataFrame) -> dict[str, Any] | None:
    rows = znodes.where(F.col("path").isin(list(MIGRATION_PATHS))).mapInArrow(state_batches, ZNODE_STATE)
    return migration_row(row.asDict() for row in rows.where("entity = 'migration'").collect())


def _both_states(
    run: Run, znodes: DataFrame, kraft: KraftSide | None, znode_migration: Mapping[str, Any] | None
) -> tuple[DataFrame, Replayed | None]:
    """Parse the znodes and replay the log, at the same time: neither keeps a machine busy by itself."""
    with ThreadPoolExecutor(1) as beside:
        parsed = beside.submit(run.make, znodes.mapInArrow(state_batches, ZNODE_STATE))
        replayed = None if kraft is None else replay_log(run, kraft, znode_migration)
    return parsed.result(), replayed


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
    findings = log_findings(replayed.log, replayed.short, replayed.folded, dual_write(replayed.side))
    return [findings, *replayed.unlike_checkpoints]


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
        if record["type"] == LEADER_CHANGE and record["checkpoint_offset"] is None
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
