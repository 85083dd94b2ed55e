"""What the checks judge: small facts of one run, gathered by aggregates that do not grow with the cluster's rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from schemas.checks import KRAFT, ZOOKEEPER, Phase
from schemas.classes import DEFECTS
from schemas.kraft.metadata_versions import FEATURE_NAME, zk_migration_states
from schemas.report import DivergenceRow
from transforms.kraft.quorum import CommittedEnd, LogCopy, ReadPlan, elected_leader, known_voters
from transforms.kraft.replay.transactions import TransactionLog
from transforms.properties import PropertyFiles
from transforms.reconcile.judge.earlier import Claim, EarlierRun
from transforms.reconcile.judge.skew import ClockSkew
from transforms.reconcile.judge.zookeeper_writes import ZooKeeperWrites


@dataclass(frozen=True)
class Sample:
    """An exact total and a bounded sample."""

    total: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReplicaUse:
    """How many replicas ZooKeeper's assignments give a broker, with a few of the partitions.

    `adding` are those among them that a current reassignment adds.
    """

    broker_id: int
    replicas: int
    examples: tuple[str, ...]
    adding: int = 0


@dataclass(frozen=True)
class StateChange:
    """One ZkMigrationState record."""

    offset: int
    code: int
    append_time_ms: int | None


@dataclass(frozen=True)
class LeaderEpoch:
    """One LeaderChange record, or another source of the newest epoch, named by `source`.

    The leader is None where it is unknown.
    """

    epoch: int
    start_offset: int
    leader_id: int | None
    voters: tuple[int, ...]
    append_time_ms: int | None
    source: str = "the log's LeaderChange"


@dataclass(frozen=True)
class LagMeasure:
    """ZkWriteBehindLag. `seconds` is the age of the oldest record ZooKeeper lacks; `silence` is how long before the
    log's newest record `/migration` was last written (seconds, two clocks: below 0 when ZooKeeper's says later).
    `changes` are those of the records that change what ZooKeeper holds. `records` is None where the log ends before
    `/migration`'s offset: then all numbers are of the log that was read, and how far ZooKeeper is behind is unknown.
    `mirrored_age` is how long before the log's newest record the one at `/migration`'s offset was appended (seconds, the
    controllers' clock alone; None where it was not read).
    """

    records: int | None
    seconds: float
    silence: float | None
    changes: int
    mirrored_age: float | None = None


@dataclass(frozen=True)
class LevelChange:
    """One FeatureLevel record, of metadata.version where nothing else is named."""

    offset: int
    level: int
    feature: str = FEATURE_NAME


@dataclass(frozen=True)
class Protection:
    """Znodes of Kafka's secured roots whose ACL was read, and those among them that everybody may write."""

    znodes: int
    open: int

    @property
    def secured(self) -> bool:
        """True when most znodes can be written by Kafka alone: `zookeeper.set.acl` was meant."""
        return self.znodes > 0 and self.open * 2 < self.znodes


@dataclass(frozen=True)
class Identities:
    """Kafka's identities in ZooKeeper, `scheme:id`: from the znodes that controllers made, and from those that brokers made."""

    controllers: frozenset[str] = frozenset()
    brokers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Voter:
    """One voter by a KRaftVoters record (KIP-853). `endpoints` are (listener, host, port)."""

    voter_id: int
    directory_id: str
    endpoints: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True)
class VoterSet:
    """One KRaftVoters record; its time in milliseconds since the epoch, None for one that a checkpoint holds."""

    offset: int
    time_ms: int | None
    voters: tuple[Voter, ...]

    @property
    def keys(self) -> frozenset[tuple[int, str]]:
        """The voters' node ids, each with its directory id (`ReplicaKey`)."""
        return frozenset((voter.voter_id, voter.directory_id) for voter in self.voters)


@dataclass(frozen=True)
class Quorum:
    """The quorum in the log's control records: kraft.version, 0 without a record, and the sets of voters in order.

    There are none with kraft.version 0: then controller.quorum.voters of every node names them.
    """

    kraft_version: int = 0
    voter_sets: tuple[VoterSet, ...] = ()

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The newest set; empty for a static quorum."""
        return self.voter_sets[-1].voters if self.voter_sets else ()


@dataclass(frozen=True)
class LogActivity:
    """What is written into the log, as far as this run read it. Times in milliseconds since the epoch, sizes in bytes.

    `checkpoint` is the offset (exclusive) of the newest complete checkpoint of any copy, `checkpoint_time_ms` the append time
    of the newest record below it, or of the oldest one from it on that an earlier run has read, `bytes_behind` the size of
    the records from it on; None without one. `by_type` counts
    the records. `unproved` changes of metadata are not proved
    committed, the first of them appended at `unproved_since_ms` (None without any). `leaderless_ms` is how long there was no
    leader since that checkpoint.
    """

    first_time_ms: int
    last_time_ms: int
    bytes: int
    by_type: Mapping[str, int]
    checkpoint: int | None = None
    checkpoint_time_ms: int | None = None
    bytes_behind: int = 0
    unproved: int = 0
    unproved_since_ms: int | None = None
    leaderless_ms: int = 0


@dataclass(frozen=True)
class PartitionCounts:
    """A side's partitions with a state; the words are those of `kraft_queries.partition_health`."""

    partitions: int = 0
    leaderless: int = 0
    short: int = 0
    recovering: int = 0
    moved: int = 0


@dataclass(frozen=True)
class BrokerConfig:
    """One dynamic configuration of a broker, or of all where `broker` is empty, on one side."""

    source: str
    broker: str
    name: str
    value: str | None


@dataclass(frozen=True)
class Facts:
    """One run's facts. Lists are as long as the cluster has brokers, controllers or epochs, never partitions.

    A field's default means that it was not gathered: `transforms.reconcile.judge.absent` lists the missing facts of a side that
    was collected, so that no check passes without its input.

    `captured_at_ms` is the time at which ZooKeeper was read, milliseconds since the epoch, by a live walk's clock or the
    configuration; None for files, where the newest time on either side counts. `reading_ms` is the time from then until the
    log's end was looked up. `written_while_read` is true when `/migration` was written between the two walks of a bracket: no
    clock is needed to see that it still is. `newest_znode_time_ms` is the newest time on ZooKeeper's side, a znode's or a
    transaction's, by its own clock. `skew` is the skew of the two clocks as measured on the rows; `alive_limit`, `lag_limit` and
    `capture_skew_limit` are the configured thresholds. `interruption_accepted` is true when the operator accepts that a rolling
    restart interrupts partitions. `deltas` has, for offsets of lost writes, the two barriers around them: (last one before, first
    one at or after). `reads_data_folder` is true when the configuration names a ZooKeeper data folder; `zookeeper_writes` sums up
    its transaction logs. `mirrored_offset` is the offset up to which ZooKeeper must have everything in a release whose `/migration`
    does not move (3.4); `load_time_ms` is the end of the load, `log_begun_ms` the beginning of a log that was not pruned, milliseconds
    since the epoch. `left_behind` are the changes in KRaft
    that ZooKeeper never got, None unless the cluster was rolled back and `/migration` has the offset up to which it was mirrored.
    `zookeeper` are `/migration`, `/controller` and so on when ZooKeeper was read, `compared_at` the same at the barrier at which
    rows are compared (None if that is the same tree), `newest_zxid` the newest change in the tree. `brokers_with_config` are
    brokers with configurations on either side, `configured_in_kraft` those in the log alone. `levels` are the changes of
    metadata.version, `other_levels` those of all other features. `defect_rows` are the rows that a report lists, and the first of
    each class and entity. `previous_end` is the last offset (inclusive) of the log that
    the cluster's run before this one read. `out_of_sync` are, by side and broker, the replicas that their ISR lacks;
    `previous_partitions` is true when that run's partitions of ZooKeeper were compared with this one's. `earlier` is the newest
    finished run whose log was the cluster's own, `claim` how current this run's sources should be.
    """

    phase: Phase
    collected: frozenset[str]
    kafka_version: str | None
    zookeeper: Mapping[str, Any] | None = None
    copies: Sequence[LogCopy] = ()
    plan: ReadPlan | None = None
    plan_problem: str | None = None
    committed: CommittedEnd | None = None
    transactions: TransactionLog | None = None
    states: Sequence[StateChange] = ()
    epochs: Sequence[LeaderEpoch] = ()
    log_begun_ms: int | None = None
    brokers_in_zookeeper: Sequence[Mapping[str, Any]] = ()
    brokers_in_kraft: Sequence[Mapping[str, Any]] = ()
    controllers: Sequence[Mapping[str, Any]] = ()
    features: Mapping[str, int] = field(default_factory=dict)
    replicas: Sequence[ReplicaUse] = ()
    brokers_with_config: frozenset[int] | None = None
    configured_in_kraft: frozenset[int] | None = None
    findings: Mapping[str, Sample] | None = None
    divergences: Mapping[str, Sample] | None = None
    duplicated: Sample | None = None
    compared: bool = False
    at_barrier: bool = False
    moved: Sample | None = None
    foreign_writes: Sample = Sample()
    lag: LagMeasure | None = None
    mirrored_offset: int | None = None
    load_time_ms: int | None = None
    counts: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    defect_rows: Sequence[DivergenceRow] = ()
    levels: Sequence[LevelChange] = ()
    other_levels: Sequence[LevelChange] = ()
    next_producer_id: int | None = None
    producer_block_end: int | None = None
    protection: Protection | None = None
    newest_znode_time_ms: int | None = None
    capture_skew_limit: float = 60.0
    alive_limit: float = 5.0
    interruption_accepted: bool = False
    lag_limit: float = 60.0
    captured_at_ms: int | None = None
    written_while_read: bool = False
    reading_ms: int = 0
    skew: ClockSkew | None = None
    properties: PropertyFiles = field(default_factory=PropertyFiles)
    deltas: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    identities: Identities | None = None
    left_behind: Sample | None = None
    compared_at: Mapping[str, Any] | None = None
    newest_zxid: int | None = None
    reads_data_folder: bool = False
    zookeeper_writes: ZooKeeperWrites | None = None
    quorum: Quorum | None = None
    activity: LogActivity | None = None
    broker_configs: Sequence[BrokerConfig] | None = None
    zookeeper_features: Mapping[str, int] | None = None
    partition_counts: Mapping[str, PartitionCounts] | None = None
    out_of_sync: Mapping[str, Mapping[int, int]] | None = None
    previous_end: int | None = None
    previous_partitions: bool = False
    earlier: EarlierRun | None = None
    claim: Claim | None = None

    @property
    def migration_offset(self) -> int | None:
        """kraft_metadata_offset of `/migration` as it was read, None when it is absent or unreadable."""
        return None if self.zookeeper is None else self.zookeeper.get("kraft_metadata_offset")

    @property
    def compared_znodes(self) -> Mapping[str, Any] | None:
        """`/migration`, `/controller` and so on of the tree whose rows are compared: at the barrier, if there is one."""
        return self.zookeeper if self.compared_at is None else self.compared_at

    @property
    def compared_offset(self) -> int | None:
        """kraft_metadata_offset of `/migration` in that tree."""
        return (self.compared_znodes or {}).get("kraft_metadata_offset")

    @property
    def ends_early(self) -> str | None:
        """Why nobody knows what ZooKeeper lacks: the log ends before the newest `/migration`; None if it reaches it."""
        offset = self.migration_offset
        if offset is None or self.plan is None or offset < self.plan.leading.end:
            return None
        return f"the log ends at offset {self.plan.leading.end - 1}, /migration is at {offset}: copy the logs again, after ZooKeeper"

    @property
    def older_than_load(self) -> str | None:
        """Why ZooKeeper's copy shows nothing of dual write; None if it can."""
        if not copied_before_load(self.zookeeper, self.newest_znode_time_ms, self.load_time_ms):
            return None
        return "ZooKeeper was copied before the load, which the log shows as done: copy both sides again, the logs last"

    def found(self, *codes: str) -> Sample:
        """What the tables hold under the codes: a check's id, or a finding's code of S§11."""
        findings = {} if self.findings is None else self.findings
        return _together([findings[code] for code in codes if code in findings])

    def differing(self, *classes: str) -> Sample:
        """Rows that differ, of these classes of `schemas.classes`."""
        divergences = self.divergences or {}
        return _together([divergences[name] for name in classes if name in divergences])

    @property
    def defects_listed(self) -> tuple[int, int] | None:
        """How many rows that are defects are known one by one, and how many there are; None if all are known."""
        known, total = sum(row.class_ in DEFECTS for row in self.defect_rows), self.differing(*DEFECTS).total
        return (known, total) if known < total else None

    def rows_in_kraft(self, entity: str) -> int:
        """How many rows of an entity the committed log has; 0 if it was not read."""
        return self.counts.get(entity, {}).get(KRAFT) or 0

    def rows_in_zookeeper(self, entity: str) -> int:
        """How many rows of an entity ZooKeeper has; 0 if it was not read."""
        return self.counts.get(entity, {}).get(ZOOKEEPER) or 0

    @property
    def unreadable_znodes(self) -> Sample:
        """Znodes that could not be read."""
        return self.found("CAP-07")

    @property
    def damaged_log(self) -> Sample:
        """Bytes of the log that are not a record."""
        return self.found("CAP-02")

    @property
    def unknown_records(self) -> Sample:
        """Records of the log of a type, version, tagged field or code that this audit's tables do not have."""
        return self.found("CAP-12")

    @property
    def unmirrored_configs(self) -> Sample:
        """Configurations in KRaft whose resource type has no place in ZooKeeper."""
        return self.found("DUR-06")

    @property
    def newest_append_time_ms(self) -> int | None:
        """Append time of the leading copy's last record, milliseconds since the epoch."""
        return None if self.plan is None else self.plan.leading.last_append_time

    @property
    def level(self) -> int | None:
        """The finalised metadata.version; None when the log has none."""
        return self.features.get(FEATURE_NAME)

    @property
    def voters(self) -> tuple[int, ...]:
        """The controllers that vote; none when nothing names them."""
        if self.quorum is not None and self.quorum.voters:
            return tuple(voter.voter_id for voter in self.quorum.voters)
        leader = self.leader
        return leader.voters if leader else ()

    @property
    def leader(self) -> LeaderEpoch | None:
        """The newest leader epoch of the log and who leads it.

        A log that starts at a snapshot may hold no LeaderChange. Its newest batches have the epoch, and the leader stands
        in the copies' `quorum-state`, or in the claim that only the leader of that epoch can have made (S§4.5).
        """
        recorded = self.epochs[-1] if self.epochs else None
        newest = None if self.plan is None else self.plan.leading.last_epoch
        if newest is None or (recorded is not None and recorded.epoch >= newest):
            return recorded
        starts = self.plan.leading.epoch_starts if self.plan else ()
        leader_id, source = self._leader_of(newest)
        voters = known_voters(self.copies, self.plan) or (recorded.voters if recorded else ())
        return LeaderEpoch(newest, starts[-1][1] if starts else 0, leader_id, voters, None, source)

    @property
    def in_office(self) -> LeaderEpoch | None:
        """The leader that ZooKeeper must know: `leader`, or the one that claimed it in an epoch that the log does not have yet.

        A controller claims ZooKeeper as soon as it is elected. If all of them are stopped together, its first record may never be
        written, and the epoch stands in `quorum-state` alone.
        """
        leader, znodes = self.leader, self.zookeeper or {}
        node, epoch = znodes.get("controller_id"), znodes.get("controller_kraft_epoch")
        if leader is None or node is None or epoch is None or epoch <= leader.epoch:
            return leader
        if elected_leader(self.copies, epoch) != node:
            return leader
        return replace(leader, epoch=epoch, leader_id=node, append_time_ms=None, source="quorum-state")

    def _leader_of(self, epoch: int) -> tuple[int | None, str]:
        elected = elected_leader(self.copies, epoch)
        if elected is not None:
            return elected, "quorum-state and the epoch of the newest batches"
        znodes = self.zookeeper or {}
        for znode, node, claimed in (
            ("/controller", "controller_id", "controller_kraft_epoch"),
            ("/migration", "kraft_controller_id", "kraft_controller_epoch"),
        ):
            if znodes.get(claimed) == epoch and znodes.get(node) is not None:
                return znodes[node], f"{znode}, which names the epoch of the newest batches"
        return None, "the epoch of the newest batches"

    def name_of(self, change: StateChange) -> str:
        """Name of one recorded state."""
        return state_name(change.code, self.kafka_version)

    @property
    def state_name(self) -> str:
        """Name of the log's migration state by the Kafka version; NONE without a record."""
        if not self.states:
            return "NONE"
        return state_name(self.states[-1].code, self.kafka_version)


def _together(samples: Sequence[Sample]) -> Sample:
    examples = tuple(example for sample in samples for example in sample.examples)
    return Sample(sum(sample.total for sample in samples), examples)


def known_identities(rows: Iterable[tuple[str, str, str]]) -> Identities:
    """Identities from (path, scheme, id) of `ZnodeLook`; running brokers are better evidence than the creator of a root."""
    by_path: dict[str, set[str]] = {}
    for path, scheme, identity in rows:
        by_path.setdefault(path, set()).add(f"{scheme}:{identity}")
    working = [names for path, names in by_path.items() if path.startswith("/brokers/ids/")]
    brokers = frozenset().union(*working) if working else frozenset(by_path.get("/brokers/topics", ()))
    return Identities(frozenset(by_path.get("/migration", ())), brokers)


def state_name(code: int, kafka_version: str | None) -> str:
    """Name of a ZkMigrationState byte in a release (S§2.6); NONE in 4.x, which ignores the record."""
    return zk_migration_states(kafka_version).get(code, "NONE")


def state_in_3_4(recorded: str, zookeeper: Mapping[str, Any] | None) -> str:
    """The state of a Kafka 3.4 migration, which its log does not record but at each start of a load (S§4.3).

    Controllers with the migration enabled make `/migration` at once, and keep the load's last offset in it when it is
    done. Checkpoints of 3.4 hold no state at all.
    """
    offset = (zookeeper or {}).get("kraft_metadata_offset")
    if recorded in ("NONE", "PRE_MIGRATION") and offset is not None and offset > 0:
        return "MIGRATION"
    if recorded == "NONE" and (zookeeper or {}).get("migration_present"):
        return "PRE_MIGRATION"
    return recorded


def phase_of(
    collected: frozenset[str],
    state_name: str,
    zookeeper: Mapping[str, Any] | None,
    has_zookeeper_brokers: bool,
    zookeeper_alone_has_topics: bool = False,
) -> Phase:
    """The cluster's phase, from the log's state and the holder of `/controller`.

    `state_name` is NONE, PRE_MIGRATION, MIGRATION or POST_MIGRATION; for 3.4, what `state_in_3_4` makes of it. A tree with
    topics beside a log without any is a cluster in ZooKeeper mode, though no broker of it may be running.
    """
    if KRAFT not in collected:
        return Phase.ZOOKEEPER
    if state_name == "PRE_MIGRATION":
        return Phase.WAITING
    if state_name == "POST_MIGRATION":
        return Phase.FINALIZED
    if state_name == "MIGRATION":
        return Phase.ROLLED_BACK if _in_brokers_hands(zookeeper or {}) else Phase.DUAL_WRITE
    return Phase.ZOOKEEPER if has_zookeeper_brokers or zookeeper_alone_has_topics else Phase.KRAFT


def copied_before_load(zookeeper: Mapping[str, Any] | None, newest_znode_ms: int | None, load_ms: int | None) -> bool:
    """A tree in which the load is still to come, beside a log that has its end: a broker holds `/controller`, `/migration` has no
    offset, and nothing in the tree is newer than the load (both times in milliseconds). A cluster that was rolled back has newer znodes.
    """
    znodes = zookeeper or {}
    offset = znodes.get("kraft_metadata_offset")
    waits = znodes.get("controller_persistent") is False and offset is not None and offset <= 0
    return waits and newest_znode_ms is not None and load_ms is not None and newest_znode_ms < load_ms


def _in_brokers_hands(zookeeper: Mapping[str, Any]) -> bool:
    """A ZooKeeper broker holds `/controller`, and no KRaft controller has moved the offset in `/migration` since it took it.

    Whoever rolls back stops the controllers first. Those that run write that offset whoever holds `/controller`
    (`KRaftMigrationDriver.MetadataChangeEvent`): only their changes are checked against `/controller_epoch`.
    """
    if zookeeper.get("controller_persistent") is not False:
        return False
    taken, written = zookeeper.get("controller_czxid"), zookeeper.get("migration_mzxid")
    mirrors = (zookeeper.get("kraft_metadata_offset") or 0) > 0
    return not (mirrors and taken is not None and written is not None and written > taken)
