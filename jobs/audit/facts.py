"""Gather a run's facts from its tables: bounded queries, collected to the driver."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit.kraft_side import FEATURE_LEVEL, STATE, KraftSide, read_kraft_side
from jobs.audit.run import Run
from jobs.sinks.delta import in_parallel
from jobs.sources.property_files import read_property_files
from jobs.steps.ingest_zookeeper import second_walk
from schemas.bronze import KRAFT_LOG_COPIES, KRAFT_RECORDS, ZK_ZNODES
from schemas.checks import KRAFT, START_PHASES, ZOOKEEPER, Phase
from schemas.entities import ENTITIES, MIRRORED
from schemas.entities.migration import MIGRATION
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.silver import ADMIN_OPERATIONS, BARRIERS, FINDINGS, LEADER_EPOCHS, ROW_VERSIONS, ZOOKEEPER_WRITES
from transforms.kraft.quorum import LogCopyFacts, NoUsableLogError, plan_read
from transforms.kraft.release import Release, before, infer_release
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.classify import CLOCK_MARGIN_MS
from transforms.reconcile.compare.difference import union_all
from transforms.reconcile.judge import queries
from transforms.reconcile.judge.deltas import Delta, deltas_of
from transforms.reconcile.judge.facts import (
    Facts,
    Identities,
    LagMeasure,
    LeaderEpoch,
    LevelChange,
    Protection,
    ReplicaUse,
    Sample,
    StateChange,
    known_identities,
    phase_of,
    state_in_3_4,
    state_name,
)
from transforms.reconcile.judge.load import recorded_load
from transforms.reconcile.left_behind import left_behind
from transforms.zookeeper.read.bracket import bracket

_AT_ONCE = 4
_EXAMPLES = 5
_FOREIGN_LIMIT = 10_000


class Gatherer:
    """Reads the run's silver tables once and turns them into `Facts`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        tables = {entity.name: entity.table for entity in ENTITIES} | {"findings": FINDINGS}
        held = in_parallel([partial(run.hold_if_small, run.read(table)) for table in tables.values()])
        self.silver: dict[str, DataFrame] = dict(zip(tables, held, strict=True))
        self.zookeeper = self._migration_znodes()
        self.kraft: KraftSide | None = read_kraft_side(run, self.zookeeper) if run.settings.kraft else None
        self.brokers = self._rows("brokers")
        self.controllers = self._rows("controllers")
        self.features = {row["feature"]: row["level"] for row in self._rows("features") if row["source"] == KRAFT}
        self.release = self._release()
        self._counts: dict[str, dict[str, int | None]] | None = None

    def facts(self) -> Facts:
        """All facts but what only the comparison of rows can tell."""
        states = self._states()
        phase = self._phase(states)
        collected = self._collected()
        epochs = self._epochs()
        # Independent queries, each mostly planning: several at once.
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            sampled = pool.submit(self._samples, self._known(phase, states, epochs))
            protected = pool.submit(self._protection)
            producers = pool.submit(self._producer_ids)
            replicas = pool.submit(self._replicas)
            configured = pool.submit(self._configured_brokers)
            counted = pool.submit(self.counts)
            levels = pool.submit(self._levels)
            progress = pool.submit(self._progress)
            at_barrier = pool.submit(self._at_barrier)
            moved = pool.submit(self._moved_sample)
            foreign = pool.submit(self._foreign_sample)
            identities = pool.submit(self._identities)
            left_behind = pool.submit(self._left_behind, phase)
        totals = sampled.result()
        protection, newest_znode_time = protected.result()
        next_producer_id, producer_block_end = producers.result()
        measured = progress.result()
        return Facts(
            phase=phase,
            collected=collected,
            kafka_version=self.release.version,
            zookeeper=self.zookeeper,
            copies=self.copies(),
            plan=self.kraft.plan if self.kraft else None,
            plan_problem=self._plan_problem(),
            committed=self.kraft.committed if self.kraft else None,
            transactions=self.kraft.transactions if self.kraft else None,
            states=states,
            epochs=epochs,
            brokers_in_zookeeper=[row for row in self.brokers if row["source"] == ZOOKEEPER],
            brokers_in_kraft=[row for row in self.brokers if row["source"] == KRAFT],
            controllers=self.controllers,
            features=self.features,
            replicas=replicas.result(),
            brokers_with_config=configured.result(),
            findings=totals,
            counts=counted.result(),
            levels=levels.result(),
            next_producer_id=next_producer_id,
            producer_block_end=producer_block_end,
            protection=protection,
            newest_znode_time=newest_znode_time,
            properties=read_property_files(self.run.settings.properties),
            capture_skew_limit=self.run.settings.thresholds.capture_skew_seconds,
            lag=measured.lag,
            mirrored_offset=measured.mirrored_offset,
            load_time=self._load_time(states, measured),
            at_barrier=at_barrier.result(),
            moved=moved.result(),
            foreign_writes=foreign.result(),
            identities=identities.result(),
            left_behind=left_behind.result(),
        )

    def copies(self) -> Sequence[LogCopyFacts]:
        """Facts of every copy of the log."""
        if self.kraft is not None:
            return self.kraft.copies
        rows = self.run.read(KRAFT_LOG_COPIES).collect() if self.run.settings.kraft else []
        return [LogCopyFacts.from_row(row.asDict(recursive=True)) for row in rows]

    def counts(self) -> dict[str, dict[str, int | None]]:
        """Rows per entity and side; None for a side that was not collected."""
        if self._counts is None:
            self._counts = self._counted()
        return self._counts

    def _counted(self) -> dict[str, dict[str, int | None]]:
        collected = self._collected()
        wanted = {name: rows for name, rows in self.silver.items() if name not in ("findings", "migration")}
        counts: dict[str, dict[str, int | None]] = {
            name: {side: 0 if side in collected else None for side in (ZOOKEEPER, KRAFT)} for name in wanted
        }
        for row in queries.row_counts(wanted).collect():
            counts[row["entity"]][row["source"]] = row["rows"]
        return counts

    def pending_deletes(self) -> DataFrame:
        """Topics queued for deletion: one column, topic."""
        return (
            self.run.read(ADMIN_OPERATIONS)
            .where("kind = 'delete_topic'")
            .select(F.col("subject").alias("topic"))
            .distinct()
        )

    def first_walk(self) -> DataFrame:
        """The run's ZooKeeper tree; a second walk, if there was one, only tells what moved."""
        return self.run.read(ZK_ZNODES).where(F.col("snapshot_id") == self.run.run_id)

    def moved(self) -> DataFrame | None:
        """Znodes that changed between two walks around the log (path, moved, …); None when there was one walk."""
        source = self.run.settings.zookeeper
        if source is None or not source.bracket:
            return None
        after = self.run.read(ZK_ZNODES).where(F.col("snapshot_id") == second_walk(self.run.run_id))
        return bracket(self.first_walk(), after)[1]

    def _moved_sample(self) -> Sample | None:
        moved = self.moved()
        if moved is None:
            return None
        rows = moved.where("path <> '/migration'")
        listed = rows.orderBy("path").limit(queries.SAMPLE).collect()
        return Sample(rows.count(), tuple(f"{row['path']}: {row['moved']}" for row in listed))

    def foreign_writes(self) -> list[tuple[int, str]]:
        """Transactions (zxid, path) that something other than the KRaft controller sent; the oldest ones of very many."""
        rows = self.run.read(ZOOKEEPER_WRITES).where("kind = 'foreign'").orderBy("zxid").limit(_FOREIGN_LIMIT)
        return [(row["zxid"], row["path"]) for row in rows.select("zxid", "path").collect()]

    def _foreign_sample(self) -> Sample:
        found = self.foreign_writes()
        texts = tuple(f"transaction {zxid} on {path}" for zxid, path in found[: queries.SAMPLE])
        return Sample(len(found), texts)

    def _at_barrier(self) -> bool:
        """True when the tree was read at the transaction that wrote `/migration`'s offset, from a data folder."""
        zxid = (self.zookeeper or {}).get("migration_mzxid")
        if zxid is None:
            return False
        return bool(self.run.read(BARRIERS).where(F.col("zxid") == zxid).limit(1).collect())

    def deltas(self, offsets: Sequence[int], loaded_at: int | None) -> dict[int, Delta]:
        """The barriers around each offset, where ZooKeeper's transaction logs show them (`Facts.deltas`).

        Barriers of an earlier migration, before this one's load, are left out.
        """
        if not offsets:
            return {}
        since = 0 if loaded_at is None else loaded_at - CLOCK_MARGIN_MS
        barriers = self.run.read(BARRIERS).where(F.col("time") >= since)
        rows = queries.barriers_between(barriers, offsets).collect()
        return deltas_of(offsets, [(row["passed"], row["lowest"], row["highest"]) for row in rows])

    def newest_append_time(self) -> int | None:
        """Append time of the leading copy's last record."""
        return self.kraft.plan.leading.last_append_time if self.kraft else None

    def _rows(self, entity: str) -> list[dict[str, Any]]:
        return [row.asDict(recursive=True) for row in self.silver[entity].collect()]

    def _migration_znodes(self) -> Mapping[str, Any] | None:
        rows = self.run.read(MIGRATION.table).where("source = 'zookeeper'").collect()
        return rows[0].asDict() if rows else None

    def _collected(self) -> frozenset[str]:
        sides = set()
        if self.run.settings.zookeeper is not None:
            sides.add(ZOOKEEPER)
        if self.kraft is not None:
            sides.add(KRAFT)
        return frozenset(sides)

    def _release(self) -> Release:
        kraft_brokers = [row for row in self.brokers if row["source"] == KRAFT]
        level = self.features.get("metadata.version")
        codes = frozenset(row["state_code"] for row in self._rows("migration") if row["source"] == KRAFT)
        milestones = self.kraft.milestones if self.kraft else ()
        return infer_release(
            self.run.settings.kafka_version,
            self.controllers,
            kraft_brokers,
            level,
            codes,
            state_in_checkpoint=any(m["type"] == STATE and m["checkpoint_offset"] is not None for m in milestones),
        )

    def _states(self) -> list[StateChange]:
        rows = self.run.read(MIGRATION.table).where("source = 'kraft'").orderBy("kraft_offset").collect()
        return [StateChange(row["kraft_offset"], row["state_code"], row["kraft_append_time"]) for row in rows]

    def _epochs(self) -> list[LeaderEpoch]:
        rows = self.run.read(LEADER_EPOCHS).orderBy("epoch").collect() if self.kraft else []
        return [
            LeaderEpoch(row["epoch"], row["start_offset"], row["leader_id"], tuple(row["voters"]), row["append_time"])
            for row in rows
        ]

    def _phase(self, states: Sequence[StateChange]) -> Phase:
        name = state_name(states[-1].code, self.release.version) if states else "NONE"
        if before(self.release.version, 3, 5):
            name = state_in_3_4(name, self.zookeeper)
        in_zookeeper = any(row["source"] == ZOOKEEPER for row in self.brokers)
        return phase_of(self._collected(), name, self.zookeeper, in_zookeeper)

    def _plan_problem(self) -> str | None:
        if self.kraft is not None or not self.run.settings.kraft:
            return None
        try:
            plan_read(list(self.copies()))
        except NoUsableLogError as error:
            return str(error)
        return None

    def _known(self, phase: Phase, states: Sequence[StateChange], epochs: Sequence[LeaderEpoch]) -> queries.Known:
        zookeeper = self.zookeeper or {}
        loaded = [s.append_time for s in states if state_name(s.code, self.release.version) == "MIGRATION"]
        down = [b for b in self.brokers if b["source"] == KRAFT and b["fenced"] and b["in_controlled_shutdown"]]
        return queries.Known(
            starting=phase in START_PHASES,
            live=[row["broker_id"] for row in self.brokers if row["source"] == ZOOKEEPER],
            down=[broker["broker_id"] for broker in down],
            controller_epoch=zookeeper.get("controller_epoch"),
            claim=zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None,
            loaded_at=loaded[0] if loaded else None,
            epoch_start=epochs[-1].start_offset if epochs else None,
            mirrored_until=zookeeper.get("migration_mzxid") if phase is Phase.FINALIZED else None,
            load=recorded_load(
                [(state.offset, state_name(state.code, self.release.version)) for state in states],
                self.kraft.transactions if self.kraft else None,
            ),
        )

    def _levels(self) -> list[LevelChange]:
        changes = [
            (record["offset"], json.loads(record["data"]))
            for record in (self.kraft.milestones if self.kraft else ())
            if record["type"] == FEATURE_LEVEL
        ]
        return [LevelChange(offset, body["featureLevel"]) for offset, body in changes if body["name"] == FEATURE_NAME]

    def _producer_ids(self) -> tuple[int | None, int | None]:
        rows = {row["source"]: row for row in self._rows("producer_ids")}
        following, block = rows.get(KRAFT, {}), rows.get(ZOOKEEPER, {})
        return following.get("next_producer_id"), block.get("block_end")

    def _protection(self) -> tuple[Protection | None, int | None]:
        if self.run.settings.zookeeper is None:
            return None, None
        row = queries.protection(self.first_walk()).collect()[0]
        return Protection(row["znodes"], row["open"]), row["newest"]

    def _identities(self) -> Identities | None:
        if self.run.settings.zookeeper is None:
            return None
        rows = queries.identities(self.first_walk()).collect()
        return known_identities((row["path"], row["scheme"], row["id"]) for row in rows)

    def _left_behind(self, phase: Phase) -> Sample | None:
        offset = (self.zookeeper or {}).get("kraft_metadata_offset")
        if phase is not Phase.ROLLED_BACK or self.kraft is None or offset is None or offset < 0:
            return None
        both = union_all([canonical(entity, self.silver[entity.name]) for entity in MIRRORED])
        rows = queries.samples(left_behind(both, offset)).collect()
        return Sample(rows[0]["total"] if rows else 0, tuple(row["text"] for row in rows))

    def _samples(self, known: queries.Known) -> dict[str, Sample]:
        tables = {
            **self.silver,
            "admin_operations": self.run.read(ADMIN_OPERATIONS),
            "row_versions": self.run.read(ROW_VERSIONS),
        }
        found = queries.violations(tables, self.first_walk(), self.run.read(KRAFT_RECORDS), known)
        totals: dict[str, int] = {}
        examples: dict[str, list[str]] = defaultdict(list)
        for row in queries.samples(found).collect():
            totals[row["code"]] = row["total"]
            examples[row["code"]].append(row["text"])
        return {code: Sample(total, tuple(examples[code])) for code, total in totals.items()}

    def _replicas(self) -> list[ReplicaUse]:
        side = ZOOKEEPER if self.run.settings.zookeeper is not None else KRAFT
        partitions = self.silver["partitions"].where(F.col("source") == side)
        counts = queries.replica_counts(partitions, self.pending_deletes()).collect()
        known = {row["broker_id"] for row in self.brokers if row["source"] == KRAFT and row["is_migrating_zk_broker"]}
        absent = [row["broker_id"] for row in counts if row["broker_id"] not in known]
        examples: dict[int, list[str]] = defaultdict(list)
        if absent:
            for row in queries.partitions_on(partitions, absent, _EXAMPLES).collect():
                examples[row["broker_id"]].append(row["text"])
        uses = [
            ReplicaUse(row["broker_id"], row["replicas"], tuple(examples[row["broker_id"]]), row["adding"])
            for row in counts
        ]
        return sorted(uses, key=lambda use: use.broker_id)

    def _configured_brokers(self) -> frozenset[int]:
        names = self.silver["configs"].where("resource_type = 'BROKER'").select("resource_name").distinct().collect()
        return frozenset(int(row[0]) for row in names if row[0].isdigit())

    def _progress(self) -> Progress:
        if self.kraft is None:
            return Progress()
        records = self.run.read(KRAFT_RECORDS).where("problem IS NULL")
        # To the log's very end: a copy that can't prove its tail committed must not make the lag look small.
        return progress(records, self.kraft.plan.leading.end, self.zookeeper or {}, self.release.version)

    def _load_time(self, states: Sequence[StateChange], progress: Progress) -> int | None:
        """When the load ended. 3.4 keeps its last offset in `/migration`; later releases record a state."""
        if before(self.release.version, 3, 5):
            return progress.loaded_at
        ended = (s.append_time for s in states if state_name(s.code, self.release.version) == "MIGRATION")
        return next(ended, None)


@dataclass(frozen=True)
class Progress:
    """`lag` where `/migration` tells it; else up to which offset ZooKeeper must have everything, and the load's end."""

    lag: LagMeasure | None = None
    mirrored_offset: int | None = None
    loaded_at: int | None = None


def progress(records: DataFrame, end: int, zookeeper: Mapping[str, Any], kafka_version: str | None) -> Progress:
    """How far ZooKeeper is, from the log's records below `end` and the znode row of silver `migration`.

    3.4 never moves `/migration`'s offset, but writes the znode with every change (S§4.4).
    """
    offset, written = zookeeper.get("kraft_metadata_offset"), zookeeper.get("migration_mtime")
    if offset is None or offset < 0:
        return Progress()
    surely = 0 if written is None else written - CLOCK_MARGIN_MS
    times = queries.append_times(records, offset, end, surely).collect()[0]
    if before(kafka_version, 3, 5):
        return Progress(None, max(offset, times["before_written"] or 0), times["at_migration"])
    return Progress(_lag(times, end - 1 - offset, written))


def _lag(times: Any, records: int, written: int | None) -> LagMeasure:
    newest, oldest = times["newest"], times["oldest_behind"]
    return LagMeasure(
        records=max(0, records),
        seconds=0.0 if oldest is None else (newest - oldest) / 1000,
        silence=None if newest is None or written is None else max(0.0, (newest - written) / 1000),
        changes=times["changes"],
    )
