"""Step 3: bronze to silver: the logs replayed into state, the znodes parsed into the same tables."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from jobs.audit.isr_history import recorded
from jobs.audit.kept_state import Keeping, keep_states
from jobs.audit.kraft_health import newest_checkpoint
from jobs.audit.kraft_side import STATE, KraftSide, kraft_sides, log_copies, milestone_rows
from jobs.audit.run import Run
from jobs.audit.steps import differing_rows, rows_read, step_main
from jobs.audit.walks import both_trees, bracketed, second_walks
from jobs.exit import AuditError, UsageError
from jobs.runtime.workers import failed_rows, failure_of, without_failures
from jobs.sinks.delta import in_parallel
from jobs.steps.replay_log import Replayed, replay_logs, to_keep
from schemas.bronze import KRAFT_RECORDS, QUARANTINE
from schemas.entities import ENTITIES, MIRRORED, Entity
from schemas.entities.migration import MIGRATION
from schemas.entities.partitions import PARTITIONS
from schemas.gold import ISR_CHANGE
from schemas.kraft.records import CLEAR_ELR
from schemas.replayed import ROW_VERSION
from schemas.silver import ADMIN_OPERATIONS, FINDINGS
from schemas.table import Table
from schemas.zookeeper.trees import BARRIER, NEWEST, TREE
from transforms.clusters import CLUSTER
from transforms.kraft.coverage import PlannedLog, counted, planned_log, shortfall
from transforms.kraft.replay.findings import log_findings
from transforms.kraft.replay.image import Log, image, row_versions
from transforms.reconcile.judge.queries import as_facts
from transforms.unions import union_all
from transforms.zookeeper.read.state import CLUSTER_STATE, state_batches
from transforms.zookeeper.read.tables import migration_row, tables
from transforms.zookeeper.read.trees import newest

_ROOTS = ("/brokers", "/brokers/topics", "/brokers/ids")


Migrations = Mapping[str, Mapping[str, Any] | None]


@dataclass(frozen=True)
class State:
    """What the step made, for the judging that follows it in the same run.

    `migrations` are the rows of `/migration`, `/controller` and `/controller_epoch` as they were when ZooKeeper was read,
    `compared` the same of the tree that is compared with the log (`schemas.zookeeper.trees`); `row_versions` are
    ROW_VERSION rows. `isr_changes` are `schemas.gold.ISR_CHANGE` rows: every change of a partition in the part of the log
    that was read. `log` is what was replayed of the clusters' logs, None without any. `keeping` is what is to be said of the states
    that were written for the next run, after all else (`jobs.audit.kept_state`).
    """

    sides: Mapping[str, KraftSide]
    migrations: Migrations
    compared: Migrations
    row_versions: DataFrame
    isr_changes: DataFrame
    log: Log | None = None
    keeping: Mapping[str, Keeping] = field(default_factory=dict)


def run_step(run: Run) -> State:
    """Make the run's silver tables from its bronze rows; a cluster whose source could not be read has failed."""
    znodes = both_trees(run)
    state = run.cache_now(without_failures(znodes).mapInArrow(state_batches, CLUSTER_STATE))
    records = run.rows(KRAFT_RECORDS)
    copies = log_copies(run)
    planned = {name: plan for name, rows in copies.items() if (plan := planned_log(rows)) is not None}
    opening = _opening(run, znodes, state, records, planned)
    _fail_unread(run, opening)
    _fail_uncovered(run, opening, planned)
    if opening.problems:
        _quarantine(run, znodes, records)
    if not run.going:
        # A table without rows takes as long to write as one of a small cluster, and there are twenty.
        return State({}, {}, {}, _no_rows(run, ROW_VERSION), _no_rows(run, ISR_CHANGE))
    migrations, compared = (
        {name: migration_row(opening.migration.get(name, ()), tree) for name in run.going} for tree in (NEWEST, BARRIER)
    )
    sides = kraft_sides(
        run.warehouse, {name: copies[name] for name in copies if name in run.going}, opening.milestones, compared
    )
    replayed = _replay(run, records, sides, compared, clearing=opening.clears)
    versions, history = _make_tables(run, run.of_going(state), replayed)
    run.keep(MIGRATION.table, _migration(run, migrations, compared, sides), few=True)
    if replayed is None:
        return State(sides, migrations, compared, versions, history)
    return State(sides, migrations, compared, versions, history, replayed.log, to_keep(run, replayed))


@dataclass(frozen=True)
class _Opening:
    """The few rows that decide how the others are read, by cluster."""

    failures: Mapping[str, str]
    kafka: frozenset[str]
    migration: Mapping[str, Sequence[Mapping[str, Any]]]
    milestones: Mapping[str, Sequence[Mapping[str, Any]]]
    problems: frozenset[str]
    clears: bool
    slices: Mapping[str, Sequence[Mapping[str, Any]]]
    rows: Mapping[str, Mapping[str, int]]


def _opening(
    run: Run, znodes: DataFrame, state: DataFrame, records: DataFrame, planned: Mapping[str, PlannedLog]
) -> _Opening:
    kafka = F.col("path").isin(list(_ROOTS))
    frames = {
        "failed_tree": failed_rows(znodes),
        "failed_log": failed_rows(records),
        "kafka": znodes.where(kafka).select(CLUSTER, "path"),
        "migration": state.where("entity = 'migration'").select(CLUSTER, TREE, "row"),
        "milestone": milestone_rows(records),
        "clears": records.where(F.col("type") == CLEAR_ELR.name).groupBy(CLUSTER).agg(F.count("*").alias("records")),
        "problem": union_all([rows.where("problem IS NOT NULL").select(CLUSTER) for rows in (znodes, records)])
        .distinct()
        .select(CLUSTER, F.lit(True).alias("there")),
    }
    if planned:
        frames["slice"] = counted(records, planned)
    if run.in_steps:
        frames["rows"] = rows_read(run)
    twice = bracketed(run)
    if twice:
        frames["kafka_again"] = second_walks(run).where(kafka).select(CLUSTER, "path")
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: defaultdict(list) for name in frames}
    for row in as_facts(frames).collect():
        found[row["fact"]][row[CLUSTER]].append(json.loads(row["row"]))
    failures = {
        name: rows[0]["problem"] for kind in ("failed_log", "failed_tree") for name, rows in found[kind].items()
    }
    # A second walk without Kafka's znodes was one of another tree: nothing stood still, and nothing would be judged.
    astray = set(twice) - set(found.get("kafka_again", ()))
    return _Opening(
        failures,
        frozenset(set(found["kafka"]) - astray),
        found["migration"],
        found["milestone"],
        frozenset(found["problem"]),
        bool(found["clears"]),
        found.get("slice", {}),
        {name: {row["table"]: row["rows"] for row in rows} for name, rows in found.get("rows", {}).items()},
    )


def _fail_unread(run: Run, opening: _Opening) -> None:
    """Clusters whose source could not be read, or holds no metadata of Kafka's, go no further.

    A tree without Kafka's znodes is the wrong tree: it must not take the place of a good one (DESIGN §8).
    """
    for name, settings in run.settings_of().items():
        source = settings.zookeeper
        if name in opening.failures:
            run.fail(name, failure_of(opening.failures[name]))
        elif source is not None and name not in opening.kafka:
            where = source.connect or source.folder or source.dump
            run.fail(
                name,
                UsageError(
                    f"ZooKeeper {where} holds no Kafka metadata (no /brokers); "
                    "check the path, or the chroot of the connect string"
                ),
            )


def _fail_uncovered(run: Run, opening: _Opening, planned: Mapping[str, PlannedLog]) -> None:
    """Clusters whose rows are not those that were to be read are not judged: what is missing would be taken for lost or for fine."""
    for name in run.going:
        short = shortfall(planned[name], opening.slices.get(name, ())) if name in planned else None
        if short is None and run.in_steps:
            short = differing_rows(run.clusters[name].rows_read, opening.rows.get(name, {}))
        if short is not None:
            run.fail(name, AuditError(f"the tables do not hold what the run has read: {short}; begin another run"))


def _replay(
    run: Run,
    records: DataFrame,
    sides: Mapping[str, KraftSide],
    migrations: Migrations,
    *,
    clearing: bool,
) -> Replayed | None:
    if not sides:
        return None
    offsets = {name: (migration or {}).get("kraft_metadata_offset") for name, migration in migrations.items()}
    return replay_logs(run, run.of_going(records), sides, offsets, clearing=clearing)


def _make_tables(run: Run, state: DataFrame, replayed: Replayed | None) -> tuple[DataFrame, DataFrame]:
    """Make the tables of both sides; returns the versions of KRaft's rows, and the changes of its partitions."""
    zookeeper = tables(state)
    images: dict[str, DataFrame] = {}
    if replayed is not None:
        images = image(replayed.committed, replayed.folded)
    # What several queries read is made first, at the same time: a small query is mostly planning, on one core.
    held = in_parallel(
        [
            lambda: _versions(run, replayed),
            lambda: run.keep(
                FINDINGS, union_all([_findings(state.where(newest())), *_log_findings(replayed)]), hold=True, few=True
            ),
            lambda: run.keep(PARTITIONS.table, _entity(run, PARTITIONS, zookeeper, images), hold=True),
            lambda: _isr_changes(run, replayed),
        ]
    )
    rest = [entity for entity in ENTITIES if entity not in (MIGRATION, PARTITIONS)]
    keeping: list[Callable[[], DataFrame]] = [partial(_keep_entity, run, entity, zookeeper, images) for entity in rest]
    in_parallel([*keeping, lambda: run.keep(ADMIN_OPERATIONS, _admin_operations(state), few=True)])
    return held[0], held[3]


def _keep_entity(
    run: Run, entity: Entity, zookeeper: Mapping[str, DataFrame], kraft: Mapping[str, DataFrame]
) -> DataFrame:
    return run.keep(entity.table, _entity(run, entity, zookeeper, kraft), few=True)


def _versions(run: Run, replayed: Replayed | None) -> DataFrame:
    if replayed is None:
        return _no_rows(run, ROW_VERSION)
    return run.cache_now(row_versions(replayed.compact, replayed.folded, replayed.versions_from_inclusive, MIRRORED))


def _no_rows(run: Run, struct: StructType) -> DataFrame:
    return run.spark.createDataFrame([], struct)


def _isr_changes(run: Run, replayed: Replayed | None) -> DataFrame:
    if replayed is None:
        return _no_rows(run, ISR_CHANGE)
    return recorded(run, replayed.log, replayed.sides)


def _entity(run: Run, entity: Entity, zookeeper: Mapping[str, DataFrame], kraft: Mapping[str, DataFrame]) -> DataFrame:
    sides: list[tuple[str, DataFrame | None]] = [
        ("zookeeper", zookeeper.get(entity.name)),
        ("kraft", kraft.get(entity.name)),
    ]
    return both_sides(run.spark, entity, sides)


def _log_findings(replayed: Replayed | None) -> list[DataFrame]:
    """Records that break a rule of replay, and rows in which the replay is not Kafka's own checkpoint."""
    if replayed is None:
        return []
    snapshots = {name: newest_checkpoint(side.copies) for name, side in replayed.sides.items()}
    found = log_findings(replayed.log, replayed.compact, replayed.folded, replayed.applied, snapshots)
    return [found, *replayed.checkpoint_mismatches]


def both_sides(spark: SparkSession, entity: Entity, sides: Sequence[tuple[str, DataFrame | None]]) -> DataFrame:
    """An entity's silver rows (without run_id) from its rows of each side (source, rows); None adds none."""
    frames = [side.withColumn("source", F.lit(source)) for source, side in sides if side is not None]
    fields = [field for field in entity.table.columns if field.name != "run_id"]
    if not frames:
        return spark.createDataFrame([], StructType(fields))
    names = {name for frame in frames for name in frame.columns}
    missing = {field.name: F.lit(None).cast(field.dataType) for field in fields if field.name not in names}
    rows = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1], allowMissingColumns=True)
    return (rows.withColumns(missing) if missing else rows).select(*[field.name for field in fields])


def _driver_rows(run: Run, table: Table, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    struct = StructType([field for field in table.columns if field.name != "run_id"])
    return run.spark.createDataFrame([tuple(row.get(name) for name in struct.fieldNames()) for row in rows], struct)


def _migration(run: Run, migrations: Migrations, compared: Migrations, sides: Mapping[str, KraftSide]) -> DataFrame:
    rows: list[dict[str, Any]] = [
        {CLUSTER: name, "source": "zookeeper", **znodes, TREE: tree}
        for name in migrations
        for tree, znodes in _of_trees(migrations[name], compared[name])
    ]
    for name, side in sides.items():
        rows += [
            {
                CLUSTER: name,
                "source": "kraft",
                "state_code": json.loads(record["data"])["zkMigrationState"],
                "kraft_offset": record["offset"],
                "kraft_created_offset": record["offset"],
                "kraft_epoch": record["epoch"],
                "kraft_append_time": record["append_time"],
            }
            for record in side.milestones
            if record["type"] == STATE
        ]
    return _driver_rows(run, MIGRATION.table, rows)


def _of_trees(
    znodes: Mapping[str, Any] | None, compared: Mapping[str, Any] | None
) -> list[tuple[str | None, Mapping[str, Any]]]:
    trees = [(None, znodes)] if znodes == compared else [(NEWEST, znodes), (BARRIER, compared)]
    return [(tree, mine) for tree, mine in trees if mine is not None]


def _admin_operations(state: DataFrame) -> DataFrame:
    rows = state.where("entity = 'admin_operations'")
    parsed = rows.withColumn("parsed", F.from_json("row", "kind string, subject string, detail string"))
    return parsed.select(CLUSTER, TREE, "parsed.*", "zk_path", "zk_czxid", "zk_mzxid", "zk_mtime")


def _findings(state: DataFrame) -> DataFrame:
    rows = state.where("entity = 'findings'")
    parsed = rows.withColumn("parsed", F.from_json("row", "code string, subject string, detail string"))
    return parsed.select(CLUSTER, F.lit("zookeeper").alias("source"), "parsed.*", F.col("zk_path").alias("place"))


def _quarantine(run: Run, znodes: DataFrame, records: DataFrame) -> None:
    nothing = F.lit(None).cast("bigint")
    unreadable = znodes.where("problem IS NOT NULL").select(
        CLUSTER,
        F.lit("zookeeper").alias("source"),
        F.col("path").alias("file"),
        nothing.alias("position"),
        F.col("data_length").cast("bigint").alias("length"),
        nothing.alias("offset"),
        F.col("problem").alias("reason"),
    )
    damaged = records.where("problem IS NOT NULL").select(
        CLUSTER,
        F.lit("kraft").alias("source"),
        "file",
        "position",
        "length",
        "offset",
        F.col("problem").alias("reason"),
    )
    run.keep(QUARANTINE, unreadable.unionByName(damaged))


def _alone(run: Run) -> None:
    """The step alone: what it leaves for the run after this one comes last, and counts when this run has finished."""
    state = run_step(run)
    run.finish_writes()
    keep_states(run, state.keeping)


def main(argv: list[str] | None = None) -> int:
    """Entry point of the step alone."""
    return step_main("materialize", _alone, argv)


if __name__ == "__main__":
    sys.exit(main())
