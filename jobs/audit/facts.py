"""Gather the facts of a run's clusters: two queries over all of them, each answer bounded, collected to the driver."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.audit import kip_tables, kraft_health
from jobs.audit.capture import captured_at, reading_ms
from jobs.audit.isr_history import judged_changes, log_begun
from jobs.audit.kraft_side import FEATURE_LEVEL, LEADER_CHANGE, STATE, KraftSide, continued, log_copies
from jobs.audit.run import ClusterRun, Run
from jobs.audit.walks import both_trees, bracketed, moved_znodes, newest_tree
from jobs.sources.property_files import read_property_files
from jobs.steps.materialize import State
from schemas.bronze import KRAFT_RECORDS, ZK_TRANSACTIONS
from schemas.checks import KRAFT, START_PHASES, ZOOKEEPER, Phase
from schemas.entities import ENTITIES, MIRRORED
from schemas.entities.partitions import PARTITIONS
from schemas.kraft.metadata_versions import FEATURE_NAME
from schemas.silver import ADMIN_OPERATIONS, BARRIERS, FINDINGS, ZOOKEEPER_WRITES
from transforms.clusters import CLUSTER, by_cluster, of_clusters
from transforms.features.levels import release_tuple
from transforms.isr.checks import bumps_on_shrink
from transforms.kraft.quorum import LogCopy, NoUsableLogError, plan_read
from transforms.kraft.release import Release, before, infer_release, is_migrating
from transforms.properties import PropertyFiles
from transforms.reconcile.compare.canonical import canonical
from transforms.reconcile.compare.classify import CLOCK_MARGIN_MS
from transforms.reconcile.judge import kraft_queries, queries, zookeeper_writes
from transforms.reconcile.judge.deltas import Delta, deltas_of
from transforms.reconcile.judge.facts import (
    Facts,
    Identities,
    LagMeasure,
    LeaderEpoch,
    LevelChange,
    LogActivity,
    Protection,
    ReplicaUse,
    Sample,
    StateChange,
    known_identities,
    phase_of,
    state_in_3_4,
    state_name,
)
from transforms.reconcile.judge.lag_series import Waited, lag_series, points
from transforms.reconcile.judge.left_behind import left_behind
from transforms.reconcile.judge.load import recorded_load
from transforms.reconcile.judge.skew import ClockSkew, OneByOne, clock_skew, mirroring_times
from transforms.unions import union_all
from transforms.zookeeper.read.trees import at_barrier, newest

_EXAMPLES = 5
_WRITTEN = "written"
_SMALL = ("brokers", "controllers", "features", "producer_ids")
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class Answers:
    """What the queries say of one cluster: rows by the name of the answer."""

    rows: Mapping[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))

    def of(self, name: str) -> list[dict[str, Any]]:
        """Rows of one answer."""
        return self.rows.get(name, [])

    def first(self, name: str) -> dict[str, Any] | None:
        """The row of an answer that has one at most."""
        return next(iter(self.of(name)), None)


@dataclass(frozen=True)
class ClusterFacts:
    """One cluster's facts, and what else its comparison and its report need."""

    name: str
    facts: Facts
    release: Release
    pending_deletes: frozenset[str]
    foreign_writes: Sequence[tuple[int, str]]
    claims: frozenset[int]
    lag_series: Sequence[Waited] = ()
    answers: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


class Gathering:
    """What is asked about a run's clusters: small answers first, then, beside the comparison, which rows break a rule."""

    def __init__(self, run: Run, state: State, previous: Mapping[str, str]) -> None:
        """`previous` is the id of each cluster's finished run before this one, where there is one."""
        self._run, self._state = run, state
        self._previous = {
            name: id_ for name, id_ in previous.items() if run.clusters[name].settings.zookeeper is not None
        }
        self._silver = {entity.name: run.rows(entity.table) for entity in ENTITIES} | {"findings": run.rows(FINDINGS)}
        small = _ask(run, _small_questions(run, state, self._silver))
        self._first = {name: _FirstLook(run.clusters[name], small[name], state) for name in run.going}

    def without_samples(self) -> dict[str, ClusterFacts]:
        """The facts of each cluster but `findings` and the examples of `replicas`, and what the comparison tells."""
        copies, twice = log_copies(self._run), bracketed(self._run)
        gathered = {}
        for name in self._run.going:
            try:
                look = self._first[name].facts(copies.get(name, ()), name in twice)
                facts = replace(look.facts, previous_partitions=name in self._previous)
                gathered[name] = replace(look, facts=facts)
            except Exception as error:
                self._run.fail(name, error)
        return gathered

    def samples(self) -> dict[str, Samples]:
        """Rows that break a rule, and examples of replicas, by cluster."""
        asked = _samples(self._run, self._state, self._silver, self._first)
        if self._previous:
            asked["fallen"] = queries.samples(self._fallen_epochs())
        answers = _ask(self._run, asked)
        return {
            name: Samples(
                _by_code([*mine.of("samples"), *mine.of("fallen")]),
                self._first[name].replicas(mine),
                self._left_behind(name, mine),
                {**self._first[name].answers.rows, **mine.rows},
            )
            for name, mine in answers.items()
        }

    def _fallen_epochs(self) -> DataFrame:
        """Partitions of ZooKeeper whose epochs were higher in the run before; rows that are not kept any more tell nothing."""
        stored = self._run.warehouse.read(PARTITIONS.table).where(of_clusters(self._previous))
        mine = (F.col("source") == ZOOKEEPER) & (F.col("run_id") == by_cluster(self._previous, "string"))
        now = self._silver["partitions"].where((F.col("source") == ZOOKEEPER) & of_clusters(self._previous))
        return kraft_queries.fallen_epochs(now, stored.where(mine))

    def _left_behind(self, name: str, answers: Answers) -> Sample | None:
        look = self._first[name]
        if look.phase is not Phase.ROLLED_BACK or look.mirrored_offset is None:
            return None
        return next(iter(_by_code(answers.of("left_behind")).values()), Sample())


@dataclass(frozen=True)
class Samples:
    """What the second query tells of a cluster."""

    findings: Mapping[str, Sample]
    replicas: Sequence[ReplicaUse]
    left_behind: Sample | None = None
    answers: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def added_to(self, gathered: ClusterFacts) -> ClusterFacts:
        """The facts with these."""
        facts = replace(gathered.facts, findings=self.findings, replicas=self.replicas, left_behind=self.left_behind)
        return replace(gathered, facts=facts, answers=self.answers)


def _ask(run: Run, questions: Mapping[str, DataFrame]) -> dict[str, Answers]:
    found: dict[str, Answers] = {name: Answers() for name in run.going}
    for row in queries.as_facts(questions).collect():
        if row[CLUSTER] in found:
            found[row[CLUSTER]].rows[row["fact"]].append(json.loads(row["row"]))
    return found


def _small_questions(run: Run, state: State, silver: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    sources = {name: settings.zookeeper is not None for name, settings in run.settings_of().items()}
    deciding = by_cluster({name: ZOOKEEPER if given else KRAFT for name, given in sources.items()}, "string")
    partitions = silver["partitions"].where(F.col("source") == deciding)
    operations = run.rows(ADMIN_OPERATIONS).where((F.col("kind") == "delete_topic") & at_barrier())
    pending = operations.select(CLUSTER, F.col("subject").alias("topic")).distinct()
    brokers = silver["configs"].where("resource_type = 'BROKER'")
    counted = {name: rows for name, rows in silver.items() if name not in ("findings", "migration")}
    questions = {
        **{name: silver[name].drop("run_id") for name in _SMALL},
        "counts": queries.row_counts(counted),
        "replicas": queries.replica_counts(partitions, pending),
        "pending": pending,
        "configured": brokers.select(CLUSTER, "resource_name").distinct(),
    }
    questions |= kraft_health.questions(silver, run.rows(KRAFT_RECORDS), state.sides)
    questions |= _restarts(run, state) | _in_no_snapshot(run, state)
    if any(sources.values()):
        questions["protection"] = queries.protection(newest_tree(run))
        questions["identities"] = queries.identities(newest_tree(run))
    asked = {
        name: mine
        for name in state.sides
        if (mine := mirrored(state.migrations.get(name), state.compared.get(name), state.sides[name])) is not None
    }
    if asked:
        records = run.rows(KRAFT_RECORDS).where("problem IS NULL")
        questions["append_times"] = queries.append_times(records, asked)
    spans = {name: _one_by_one(side, state.compared.get(name)) for name, side in state.sides.items()}
    ranges = {name: span for name, span in spans.items() if span is not None}
    if ranges:
        questions["skew"] = mirroring_times(silver, ranges)
    if _reads_folders(run):
        questions |= _of_transactions(run, state)
    moved = moved_znodes(run)
    if moved is not None:
        text = F.concat_ws(": ", "path", "moved").alias("text")
        # It moves all the time in dual write, which is no fault and a sign of life.
        its_data = F.when(F.col("moved") == "data", F.lit(_WRITTEN))
        code = F.when(F.col("path") == "/migration", its_data).otherwise(F.lit("moved"))
        questions["moved"] = queries.samples(moved.select(CLUSTER, code.alias("code"), text).where("code IS NOT NULL"))
    return questions


def _restarts(run: Run, state: State) -> dict[str, DataFrame]:
    """How often each broker was started in the log's last hour, also where this run read only what is new of it."""
    ends = {name: side.plan.leading.last_append_time for name, side in state.sides.items()}
    if not ends:
        return {}
    kept = continued(state.sides)
    records = run.rows(KRAFT_RECORDS)
    if kept:
        earlier = _earlier_records(run, state, kept).where(kraft_queries.registered_lately(ends))
        records = records.unionByName(
            earlier.dropDuplicates([CLUSTER, "offset", "append_time"]).select(*records.columns)
        )
    return {"restarts": kraft_queries.restarts(records, ends)}


def _in_no_snapshot(run: Run, state: State) -> dict[str, DataFrame]:
    """Since when records of earlier runs are in no snapshot, where this run read only what came after them."""
    kept = continued(state.sides)
    newest = {name: kraft_health.newest_checkpoint(state.sides[name].copies) or 0 for name in kept}
    behind = {name: offset for name, offset in newest.items() if offset < kept[name]}
    if not behind:
        return {}
    records = _earlier_records(run, state, kept).where(F.col("offset") >= by_cluster(behind, "bigint"))
    return {"in_no_snapshot": kraft_queries.first_append_time(records)}


def _earlier_records(run: Run, state: State, kept: Mapping[str, int]) -> DataFrame:
    """What earlier runs have read of the present logs below the offsets in `kept`; a record may be there twice."""
    begun = by_cluster({name: log_begun(state.sides[name]) for name in kept}, "bigint")
    rows = run.warehouse.read(KRAFT_RECORDS).where(of_clusters(kept) & (F.col("append_time") >= begun))
    return rows.where(F.col("offset") < by_cluster(kept, "bigint"))


def _reads_folders(run: Run) -> bool:
    return any(settings.zookeeper and settings.zookeeper.folder for settings in run.settings_of().values())


def _one_by_one(side: KraftSide, compared: Mapping[str, Any] | None) -> OneByOne | None:
    """Which changes the tree that is compared got as they were made (S§5.2).

    They begin with the leader that mirrored last: its full sync wrote what was there before. None before the load, and in
    3.4, whose log has the load after its only state record.
    """
    znodes = compared or {}
    begun, offset, mzxid = side.dual_write(), znodes.get("kraft_metadata_offset"), znodes.get("migration_mzxid")
    if begun is None or offset is None or mzxid is None or not side.shows_waiting:
        return None
    starts = [start for _, start in side.plan.leading.epoch_starts if start <= offset]
    return OneByOne(max([begun[0], *starts]), offset, mzxid)


def mirrored(
    zookeeper: Mapping[str, Any] | None, compared: Mapping[str, Any] | None, side: KraftSide
) -> queries.Mirrored | None:
    """What `/migration` says of a cluster, as it was read and as it was compared; None when it says nothing of an offset."""
    offset, written = (zookeeper or {}).get("kraft_metadata_offset"), (compared or {}).get("migration_mtime")
    if offset is None or offset < 0:
        return None
    surely = 0 if written is None else written - CLOCK_MARGIN_MS
    # To the log's very end: a copy that can't prove its tail committed must not make the lag look small.
    return queries.Mirrored(offset, side.plan.leading.end, surely)


def _of_transactions(run: Run, state: State) -> dict[str, DataFrame]:
    """What the transaction logs of data folders tell: whether the tree stands at a barrier, and who else wrote."""
    zxids = {name: (migration or {}).get("migration_mzxid") for name, migration in state.compared.items()}
    at = run.rows(BARRIERS).where(F.col("zxid") == by_cluster(zxids, "bigint")).select(CLUSTER, "zxid")
    born = {name: side.milestones[0]["append_time"] for name, side in state.sides.items() if side.milestones}
    series = {}
    if born:
        series["lag_series"] = lag_series(run.rows(BARRIERS), run.rows(KRAFT_RECORDS), born)
    writes = zookeeper_writes.questions(run.rows(ZOOKEEPER_WRITES), run.rows(ZK_TRANSACTIONS))
    last = run.rows(ZK_TRANSACTIONS).groupBy(CLUSTER).agg(F.max("time").alias("time"), F.max("zxid").alias("zxid"))
    return {"at_barrier": at, "transactions": last, **writes, **series}


def _samples(
    run: Run, state: State, silver: Mapping[str, DataFrame], first: Mapping[str, _FirstLook]
) -> dict[str, DataFrame]:
    known = {name: look.known() for name, look in first.items()}
    tables = {
        **silver,
        "admin_operations": run.rows(ADMIN_OPERATIONS).where(newest()),
        "row_versions": state.row_versions,
    }
    if state.sides:
        ends = {
            name: at for name, side in state.sides.items() if (at := side.plan.leading.last_append_time) is not None
        }
        tables["isr_history"] = judged_changes(run, run.of_going(state.isr_changes), state.sides, ends)
    if _reads_folders(run):
        tables["zk_transactions"] = run.rows(ZK_TRANSACTIONS)
    found = queries.violations(tables, both_trees(run), run.rows(KRAFT_RECORDS), known)
    questions = {"samples": queries.samples(found)}
    znodes = newest_tree(run) if any(settings.zookeeper for settings in run.settings_of().values()) else None
    questions |= kip_tables.questions(run, silver, state.isr_changes, state.sides, znodes)
    strangers = {name: look.registered for name, look in first.items() if look.strangers}
    if strangers:
        deciding = by_cluster({name: first[name].deciding_side for name in strangers}, "string")
        partitions = silver["partitions"].where(of_clusters(strangers) & (F.col("source") == deciding))
        questions["examples"] = queries.partitions_on(partitions, strangers, _EXAMPLES)
    rolled_back = {name: look.mirrored_offset for name, look in first.items() if look.phase is Phase.ROLLED_BACK}
    offsets = {name: offset for name, offset in rolled_back.items() if offset is not None}
    if offsets:
        both = union_all([canonical(entity, silver[entity.name]) for entity in MIRRORED])
        questions["left_behind"] = queries.samples(left_behind(both, offsets))
    return questions


class _FirstLook:
    """One cluster after the first query: what decides what the second one asks."""

    def __init__(self, cluster: ClusterRun, answers: Answers, state: State) -> None:
        name = cluster.name
        self.cluster = cluster
        self.settings = cluster.settings
        self.answers = answers
        self.side: KraftSide | None = state.sides.get(name)
        self.zookeeper = state.migrations.get(name)
        self.compared = state.compared.get(name)
        self.brokers = answers.of("brokers")
        self.controllers = answers.of("controllers")
        self.features = {row["feature"]: row["level"] for row in answers.of("features") if row["source"] == KRAFT}
        self.release = self._release()
        self.states = self._states()
        self.epochs = self._epochs()
        self.phase = self._phase()

    @property
    def collected(self) -> frozenset[str]:
        """Sides that were read."""
        sides = {ZOOKEEPER} if self.settings.zookeeper is not None else set()
        return frozenset(sides | ({KRAFT} if self.side is not None else set()))

    @property
    def deciding_side(self) -> str:
        """Side whose assignments count."""
        return ZOOKEEPER if self.settings.zookeeper is not None else KRAFT

    @property
    def mirrored_offset(self) -> int | None:
        """Offset in `/migration`, where there is a log to hold it against; None when it says none."""
        offset: int | None = (self.zookeeper or {}).get("kraft_metadata_offset")
        return None if self.side is None or offset is None or offset < 0 else offset

    @property
    def registered(self) -> list[int]:
        """ZooKeeper brokers that are registered in KRaft as ready to migrate."""
        return [row["broker_id"] for row in self.brokers if row["source"] == KRAFT and row["is_migrating_zk_broker"]]

    @property
    def strangers(self) -> bool:
        """True when brokers that are not registered so hold replicas."""
        return any(row["broker_id"] not in self.registered for row in self.answers.of("replicas"))

    def known(self) -> queries.Known:
        """What the rules of violations need to know."""
        zookeeper = self.zookeeper or {}
        loaded = [s.append_time_ms for s in self.states if state_name(s.code, self.release.version) == "MIGRATION"]
        # In a KRaft cluster nobody waits for a stopped broker's next step: what it lacks is told, whyever it is down.
        in_kraft = self.phase is Phase.KRAFT
        stopped = [b for b in self.brokers if b["source"] == KRAFT and b["fenced"] and b["in_controlled_shutdown"]]
        down = [] if in_kraft else stopped
        return queries.Known(
            starting=self.phase in START_PHASES,
            live=[row["broker_id"] for row in self.brokers if row["source"] == ZOOKEEPER],
            down=[broker["broker_id"] for broker in down],
            controller_epoch=zookeeper.get("controller_epoch"),
            claim=zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None,
            loaded_at=loaded[0] if loaded else None,
            epoch_start=self.epochs[-1].start_offset if self.epochs else None,
            mirrored_until=zookeeper.get("migration_mzxid") if self.phase is Phase.FINALIZED else None,
            load=recorded_load(
                [(change.offset, state_name(change.code, self.release.version)) for change in self.states],
                self.side.transactions if self.side else None,
            ),
            newest_znode_time_ms=self._newest_change()[0],
            health=kraft_health.health_of(
                self.brokers,
                self.answers.rows,
                by_zookeeper=self.phase in (*START_PHASES, Phase.ROLLED_BACK),
                compared=self.phase is Phase.DUAL_WRITE,
                level=self.features.get(FEATURE_NAME),
                bumps=self._bumps_on_shrink(),
                side=self.side,
            ),
        )

    def facts(self, copies: Sequence[Mapping[str, Any]], twice: bool) -> ClusterFacts:
        """All but what `Samples` add."""
        side, answers = self.side, self.answers
        measured = mirror_position(answers.first("append_times"), side, self.zookeeper or {}, self.release.version)
        next_producer_id, producer_block_end = self._producer_ids()
        newest_change = self._newest_change()
        foreign = [(row["zxid"], row["path"]) for row in answers.of("foreign")]
        writes = self._writes()
        moved = _by_code(answers.of("moved"))
        facts = Facts(
            phase=self.phase,
            collected=self.collected,
            kafka_version=self.release.version,
            zookeeper=self.zookeeper,
            compared_at=None if self.compared == self.zookeeper else self.compared,
            copies=[LogCopy.from_row(row) for row in copies] if side is None else side.copies,
            plan=side.plan if side else None,
            plan_problem=self._plan_problem(copies),
            committed=side.committed if side else None,
            transactions=side.transactions if side else None,
            states=self.states,
            epochs=self.epochs,
            brokers_in_zookeeper=[row for row in self.brokers if row["source"] == ZOOKEEPER],
            brokers_in_kraft=[row for row in self.brokers if row["source"] == KRAFT],
            controllers=self.controllers,
            features=self.features,
            brokers_with_config=self._configured_brokers(),
            counts=self._counts(),
            levels=[change for change in self._levels() if change.feature == FEATURE_NAME],
            other_levels=[change for change in self._levels() if change.feature != FEATURE_NAME],
            next_producer_id=next_producer_id,
            producer_block_end=producer_block_end,
            protection=self._protection(),
            newest_znode_time_ms=newest_change[0],
            newest_zxid=newest_change[1],
            captured_at_ms=captured_at(self.cluster),
            written_while_read=_WRITTEN in moved,
            reading_ms=reading_ms(self.cluster),
            skew=self._skew(),
            properties=self._properties(),
            capture_skew_limit=self.settings.thresholds.capture_skew_seconds,
            alive_limit=self.settings.thresholds.alive_seconds,
            interruption_accepted=self.settings.thresholds.restart_may_interrupt,
            lag_limit=self.settings.thresholds.lag_seconds,
            lag=measured.lag,
            mirrored_offset=measured.mirrored_offset,
            load_time_ms=self._load_time(measured),
            at_barrier=answers.first("at_barrier") is not None,
            moved=moved.get("moved", Sample()) if twice else None,
            foreign_writes=Sample() if writes is None else Sample(*writes.foreign),
            reads_data_folder=self._reads_data_folder,
            zookeeper_writes=writes,
            identities=self._identities(),
            quorum=None if side is None else kraft_health.quorum_of(side),
            activity=self._activity(),
            broker_configs=kraft_health.configs_of(answers.of("broker_configs")),
            zookeeper_features=self._zookeeper_features(),
            partition_counts=kraft_health.partition_counts(answers.of("partition_health")),
            out_of_sync=kraft_health.out_of_sync_of(answers.of("out_of_sync")),
        )
        pending = frozenset(row["topic"] for row in answers.of("pending"))
        claims = frozenset(each.zxid for each in (writes.elections if writes else ()) if each.is_claim)
        series = points(answers.of("lag_series"), 0.0 if facts.skew is None else facts.skew.median)
        return ClusterFacts(self.settings.cluster, facts, self.release, pending, foreign, claims, series)

    @property
    def _reads_data_folder(self) -> bool:
        return self.settings.zookeeper is not None and self.settings.zookeeper.folder is not None

    def _writes(self) -> zookeeper_writes.ZooKeeperWrites | None:
        return zookeeper_writes.of_answers(self.answers.of) if self._reads_data_folder else None

    def _bumps_on_shrink(self) -> bool:
        """All through the log: with a level that is high enough the rule is another, so only what was always so is judged."""
        if self.release.version is None or self.phase not in (Phase.KRAFT, Phase.FINALIZED):
            return False
        highest = max((change.level for change in self._levels()), default=None)
        return bumps_on_shrink(release_tuple(self.release.version), highest, migrating=False) is True

    def _activity(self) -> LogActivity | None:
        if self.side is None:
            return None
        earlier = self.answers.first("in_no_snapshot")
        return kraft_health.activity_of(
            self.answers.of("activity"),
            self.answers.of("restarts"),
            self.side,
            None if earlier is None else earlier["first"],
        )

    def _zookeeper_features(self) -> dict[str, int] | None:
        if self.settings.zookeeper is None:
            return None
        return {row["feature"]: row["level"] for row in self.answers.of("features") if row["source"] == ZOOKEEPER}

    def _release(self) -> Release:
        kraft_brokers = [row for row in self.brokers if row["source"] == KRAFT]
        milestones = self.side.milestones if self.side else ()
        codes = frozenset(code for _, code in self.side.states()) if self.side else frozenset()
        return infer_release(
            self.settings.kafka_version,
            self.controllers,
            kraft_brokers,
            self.features.get(FEATURE_NAME),
            codes,
            state_in_checkpoint=any(m["type"] == STATE and m["checkpoint_offset"] is not None for m in milestones),
            migrating=self._migrating(),
        )

    def _migrating(self) -> bool:
        if self.side is None:
            return False
        codes = [code for _, code in self.side.states()]
        return is_migrating(codes, self.side.plan.leading.last_epoch, self.zookeeper)

    def _states(self) -> list[StateChange]:
        rows = [m for m in (self.side.milestones if self.side else ()) if m["type"] == STATE]
        return [StateChange(m["offset"], json.loads(m["data"])["zkMigrationState"], m["append_time"]) for m in rows]

    def _epochs(self) -> list[LeaderEpoch]:
        rows = [
            (m, json.loads(m["data"]))
            for m in (self.side.milestones if self.side else ())
            if m["type"] == LEADER_CHANGE and m["checkpoint_offset"] is None
        ]
        return [
            LeaderEpoch(
                m["epoch"],
                m["offset"],
                body["leaderId"],
                tuple(voter["voterId"] for voter in body["voters"]),
                m["append_time"],
            )
            for m, body in sorted(rows, key=lambda pair: int(pair[0]["epoch"]))
        ]

    def _phase(self) -> Phase:
        name = state_name(self.states[-1].code, self.release.version) if self.states else "NONE"
        if before(self.release.version, 3, 5):
            name = state_in_3_4(name, self.zookeeper)
        in_zookeeper = any(row["source"] == ZOOKEEPER for row in self.brokers)
        topics = self._counts()["topics"]
        in_zookeeper_alone = bool(topics[ZOOKEEPER]) and not topics[KRAFT]
        return phase_of(self.collected, name, self.zookeeper, in_zookeeper, in_zookeeper_alone)

    def _plan_problem(self, copies: Sequence[Mapping[str, Any]]) -> str | None:
        if self.side is not None or self.settings.kraft is None:
            return None
        try:
            plan_read([LogCopy.from_row(row) for row in copies])
        except NoUsableLogError as error:
            return str(error)
        return None

    def _levels(self) -> list[LevelChange]:
        """Every FeatureLevel record that was read."""
        changes = [
            (record["offset"], json.loads(record["data"]))
            for record in (self.side.milestones if self.side else ())
            if record["type"] == FEATURE_LEVEL
        ]
        return [LevelChange(offset, body["featureLevel"], body["name"]) for offset, body in changes]

    def _counts(self) -> dict[str, dict[str, int | None]]:
        names = [entity.name for entity in ENTITIES if entity.name != "migration"]
        counts: dict[str, dict[str, int | None]] = {
            name: {side: 0 if side in self.collected else None for side in (ZOOKEEPER, KRAFT)} for name in names
        }
        for row in self.answers.of("counts"):
            counts[row["entity"]][row["source"]] = row["rows"]
        return counts

    def _producer_ids(self) -> tuple[int | None, int | None]:
        rows = {row["source"]: row for row in self.answers.of("producer_ids")}
        following, block = rows.get(KRAFT, {}), rows.get(ZOOKEEPER, {})
        return following.get("next_producer_id"), block.get("block_end")

    def _protection(self) -> Protection | None:
        if self.settings.zookeeper is None:
            return None
        row = self.answers.first("protection") or {"znodes": 0, "open": 0}
        return Protection(row["znodes"], row["open"])

    def _newest_change(self) -> tuple[int | None, int | None]:
        """Time and zxid of the newest change of the tree: a session's begin and end are in the transaction logs only."""
        answers = [self.answers.first("protection") or {}, self.answers.first("transactions") or {}]
        times, zxids = ([row[name] for row in answers if row.get(name) is not None] for name in ("time", "zxid"))
        return max(times, default=None), max(zxids, default=None)

    def _skew(self) -> ClockSkew | None:
        row = self.answers.first("skew")
        return None if row is None else clock_skew(row["quantiles"], row["pairs"])

    def _identities(self) -> Identities | None:
        if self.settings.zookeeper is None:
            return None
        return known_identities((row["path"], row["scheme"], row["id"]) for row in self.answers.of("identities"))

    def replicas(self, samples: Answers) -> list[ReplicaUse]:
        """Replicas of each broker, with the examples that were asked for."""
        examples: dict[int, list[str]] = defaultdict(list)
        for row in sorted(samples.of("examples"), key=lambda row: int(row["number"])):
            examples[row["broker_id"]].append(row["text"])
        uses = [
            ReplicaUse(row["broker_id"], row["replicas"], tuple(examples[row["broker_id"]]), row["adding"])
            for row in self.answers.of("replicas")
        ]
        return sorted(uses, key=lambda use: use.broker_id)

    def _configured_brokers(self) -> frozenset[int]:
        names = [row["resource_name"] for row in self.answers.of("configured")]
        return frozenset(int(name) for name in names if name.isdigit())

    def _properties(self) -> PropertyFiles:
        return read_property_files(self.settings.properties)

    def _load_time(self, measured: MirrorPosition) -> int | None:
        """When the load ended. 3.4 keeps its last offset in `/migration`; later releases record a state."""
        if before(self.release.version, 3, 5):
            return measured.loaded_at
        ended = (s.append_time_ms for s in self.states if state_name(s.code, self.release.version) == "MIGRATION")
        return next(ended, None)


def _by_code(rows: Sequence[Mapping[str, Any]]) -> dict[str, Sample]:
    totals: dict[str, int] = {}
    examples: dict[str, list[str]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: int(row["number"])):
        totals[row["code"]] = row["total"]
        examples[row["code"]].append(row["text"])
    return {code: Sample(total, tuple(examples[code])) for code, total in totals.items()}


def deltas(
    run: Run, offsets: Mapping[str, Sequence[int]], loaded_at: Mapping[str, int | None]
) -> dict[str, dict[int, Delta]]:
    """For each cluster, the barriers around each offset, where ZooKeeper's transaction logs show them (`Facts.deltas`).

    Barriers of an earlier migration, before this one's load, are left out.
    """
    asked = {
        name: mine
        for name, mine in offsets.items()
        if mine and (source := run.clusters[name].settings.zookeeper) is not None and source.folder is not None
    }
    if not asked:
        return {}
    since = {name: (loaded_at.get(name) or CLOCK_MARGIN_MS) - CLOCK_MARGIN_MS for name in asked}
    barriers = run.rows(BARRIERS).where(F.col("time") >= by_cluster(since, "bigint"))
    found: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for row in queries.barriers_between(barriers, asked).collect():
        found[row[CLUSTER]].append((row["passed"], row["lowest"], row["highest"]))
    return {name: deltas_of(mine, found[name]) for name, mine in asked.items()}


@dataclass(frozen=True)
class MirrorPosition:
    """`lag` where `/migration` tells it; else up to which offset ZooKeeper must have everything, and the load's end."""

    lag: LagMeasure | None = None
    mirrored_offset: int | None = None
    loaded_at: int | None = None


def mirror_position(
    times: Mapping[str, Any] | None, side: KraftSide | None, zookeeper: Mapping[str, Any], kafka_version: str | None
) -> MirrorPosition:
    """How far ZooKeeper is, from a row of `append_times` and the znode row of silver `migration`.

    3.4 never moves `/migration`'s offset, but writes the znode with every change (S§4.4).
    """
    offset, written = zookeeper.get("kraft_metadata_offset"), zookeeper.get("migration_mtime")
    if side is None or offset is None or offset < 0:
        return MirrorPosition()
    times = times or dict.fromkeys(("newest", "oldest_behind", "at_migration", "before_written")) | {"changes": 0}
    if before(kafka_version, 3, 5):
        return MirrorPosition(None, max(offset, times["before_written"] or 0), times["at_migration"])
    return MirrorPosition(_lag(times, side.plan.leading.end - 1 - offset, written))


def _lag(times: Mapping[str, Any], records: int, written: int | None) -> LagMeasure:
    newest, oldest, appended = times["newest"], times["oldest_behind"], times["at_migration"]
    return LagMeasure(
        records=max(0, records),
        seconds=0.0 if oldest is None else (newest - oldest) / 1000,
        silence=None if newest is None or written is None else (newest - written) / 1000,
        changes=times["changes"],
        mirrored_age=None if newest is None or appended is None else (newest - appended) / 1000,
    )
