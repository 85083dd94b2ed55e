"""What the first answers about a cluster decide: its release and its phase, and with them the next questions."""

from __future__ import annotations

import json
from dataclasses import replace

from schemas.checks import BY_ZOOKEEPER, KRAFT, START_PHASES, ZOOKEEPER, Phase
from schemas.entities import ENTITIES
from schemas.kraft.feature_levels import ELR_VERSION
from schemas.kraft.metadata_versions import FEATURE_NAME
from transforms.features.levels import release_tuple
from transforms.isr.builder import bumps_on_shrink
from transforms.kraft.release import Release, before, infer_release, is_migrating
from transforms.kraft.side import FEATURE_LEVEL, LEADER_CHANGE, STATE, Milestone
from transforms.reconcile.compare.exposure import has
from transforms.reconcile.judge import kraft_health
from transforms.reconcile.judge.facts import (
    LeaderEpoch,
    LevelChange,
    StateChange,
    copied_before_load,
    phase_of,
    state_in_3_4,
    state_name,
)
from transforms.reconcile.judge.given import Answers, Given, Rows
from transforms.reconcile.judge.kraft_queries import Health
from transforms.reconcile.judge.load import recorded_load
from transforms.reconcile.judge.queries import Known

Counts = dict[str, dict[str, int | None]]


class FirstLook:
    """One cluster after the first questions.

    `brokers` and `controllers` are silver rows of both sides, `features` KRaft's finalised levels; `states`, `epochs` and
    `levels` are the records of those kinds that the log has, in its order, `states` those in effect,
    `levels` those of no aborted transaction.
    """

    def __init__(self, given: Given, answers: Rows) -> None:
        """`answers` are those to the first questions, by name."""
        self.given, self.answers = given, Answers(answers)
        self.brokers = self.answers.of("brokers")
        self.controllers = self.answers.of("controllers")
        self.features = {row["feature"]: row["level"] for row in self.answers.of("features") if row["source"] == KRAFT}
        self.counts = _counts(given, self.answers)
        self.release = self._release()
        self.states = [
            StateChange(record["offset"], json.loads(record["data"])["zkMigrationState"], record["append_time"])
            for record in (given.side.in_effect(STATE) if given.side else ())
        ]
        self.epochs = self._epochs()
        self.levels = self._levels()
        self.phase = self._phase()

    @property
    def mirrored_offset(self) -> int | None:
        """Offset in `/migration`, where there is a log to compare it with; None if it has none."""
        offset: int | None = (self.given.zookeeper or {}).get("kraft_metadata_offset")
        return None if self.given.side is None or offset is None or offset < 0 else offset

    @property
    def rolled_back_from(self) -> int | None:
        """The offset up to which ZooKeeper has everything, of a cluster that was rolled back; None of any other."""
        return self.mirrored_offset if self.phase is Phase.ROLLED_BACK else None

    @property
    def registered(self) -> list[int]:
        """ZooKeeper brokers that are registered in KRaft as ready to migrate."""
        return [row["broker_id"] for row in self.brokers if row["source"] == KRAFT and row["is_migrating_zk_broker"]]

    @property
    def strangers(self) -> bool:
        """True when brokers that are not registered so hold replicas."""
        registered = set(self.registered)
        return any(row["broker_id"] not in registered for row in self.answers.of("replicas"))

    @property
    def newest_change(self) -> tuple[int | None, int | None]:
        """Time and zxid of the newest change of the tree: a session's begin and end are in the transaction logs only."""
        rows = [self.answers.first("protection") or {}, self.answers.first("transactions") or {}]
        times, zxids = ([row[name] for row in rows if row.get(name) is not None] for name in ("time", "zxid"))
        return max(times, default=None), max(zxids, default=None)

    @property
    def capped_min_isr(self) -> bool:
        """True where no partition needs more members of its ISR than it has replicas: from 3.7 on (`Partition.effectiveMinIsr`)."""
        return not before(self.release.version, 3, 7)

    @property
    def endless_swaps(self) -> bool:
        """True where a reassignment that both adds and removes a replica never completes (`PartitionReassignmentReplicas`)."""
        version = self.release.version
        return before(version, 3, 8) or (version is not None and not before(version, 4, 3))

    def known(self) -> Known:
        """The inputs of the rules about single rows."""
        zookeeper = self.given.zookeeper or {}
        named = [(change.offset, state_name(change.code, self.release.version)) for change in self.states]
        return Known(
            starting=self.phase in START_PHASES,
            live=[row["broker_id"] for row in self.brokers if row["source"] == ZOOKEEPER],
            down=self._down(),
            controller_epoch=zookeeper.get("controller_epoch"),
            claim=zookeeper.get("controller_czxid") if zookeeper.get("controller_persistent") else None,
            loaded_at=self.loaded_at,
            epoch_start=self.epochs[-1].start_offset if self.epochs else None,
            mirrored_until=zookeeper.get("migration_mzxid") if self.phase is Phase.FINALIZED else None,
            load=recorded_load(named, self.given.side.transactions if self.given.side else None),
            newest_znode_time_ms=self.newest_change[0],
            default_is_empty=self._default_is_empty(),
            health=self._health(),
        )

    def _default_is_empty(self) -> bool | None:
        """An inferred release may be older than those that run, and they may have the repair."""
        version = self.release.version
        unsure = before(version, 3, 5) or (self.given.kafka_version is None and has("KAFKA-16411", version))
        return None if unsure else has("KAFKA-16411", version)

    @property
    def loaded_at(self) -> int | None:
        """Time of the load's end in the log, milliseconds since the epoch. The log of 3.4 does not record it."""
        ended = (s.append_time_ms for s in self.states if state_name(s.code, self.release.version) == "MIGRATION")
        return next(ended, None)

    def _down(self) -> list[int]:
        """Brokers that were shut down on purpose and are waited for.

        A KRaft cluster, also one that was finalised, is not waiting for a stopped broker's next step: what it lacks is
        reported, also if it was stopped on purpose.
        """
        if self.phase in (Phase.KRAFT, Phase.FINALIZED):
            return []
        mine = [row for row in self.brokers if row["source"] == KRAFT]
        return [row["broker_id"] for row in mine if row["fenced"] and row["in_controlled_shutdown"]]

    def _health(self) -> Health:
        found = kraft_health.health_of(
            self.brokers,
            self.answers,
            by_zookeeper=self.phase in BY_ZOOKEEPER,
            compared=self.phase is Phase.DUAL_WRITE,
            level=self.features.get(FEATURE_NAME),
            bumps=self._bumps_on_shrink(),
            side=self.given.side,
            static_min_isr=self.given.static_min_isr,
        )
        leader = self.epochs[-1].leader_id if self.epochs else None
        unclean = kraft_health.allows_unclean(self.answers, leader)
        return replace(
            found,
            unclean=unclean,
            capped_min_isr=self.capped_min_isr,
            elr_off=FEATURE_NAME in self.features and not self.features.get(ELR_VERSION),
            endless_swaps=self.endless_swaps,
        )

    def _bumps_on_shrink(self) -> bool:
        """All through the log: with a level that is high enough the rule is another, so only what was always so is judged."""
        if self.release.version is None or self.phase not in (Phase.KRAFT, Phase.FINALIZED):
            return False
        highest = max((change.level for change in self.levels), default=None)
        return bumps_on_shrink(release_tuple(self.release.version), highest, migrating=False) is True

    def _records(self, kind: str) -> list[Milestone]:
        side = self.given.side
        return [record for record in (side.milestones if side else ()) if record["type"] == kind]

    def _release(self) -> Release:
        side = self.given.side
        codes = [code for _, code in side.states()] if side else []
        return infer_release(
            self.given.kafka_version,
            self.controllers,
            [row for row in self.brokers if row["source"] == KRAFT],
            self.features.get(FEATURE_NAME),
            frozenset(codes),
            state_in_checkpoint=any(record["checkpoint_offset"] is not None for record in self._records(STATE)),
            offset_moved=self._offset_moved(),
            migrating=side is not None and is_migrating(codes, side.plan.leading.last_epoch, self.given.zookeeper),
        )

    def _offset_moved(self) -> bool:
        """True if the transaction logs show that `/migration` passed records which began no load: each load records a state."""
        begun = [record["offset"] for record in self._records(STATE)]
        passed = [
            range(row["kraft_metadata_offset"] - row["records"] + 1, row["kraft_metadata_offset"] + 1)
            for row in self.answers.of("lag_series")
        ]
        return any(not any(offset in each for offset in begun) for each in passed)

    def _epochs(self) -> list[LeaderEpoch]:
        rows = [
            (record, json.loads(record["data"]))
            for record in self._records(LEADER_CHANGE)
            if record["checkpoint_offset"] is None
        ]
        return [
            LeaderEpoch(
                record["epoch"],
                record["offset"],
                body["leaderId"],
                tuple(voter["voterId"] for voter in body["voters"]),
                record["append_time"],
            )
            for record, body in sorted(rows, key=lambda pair: int(pair[0]["epoch"]))
        ]

    def _levels(self) -> list[LevelChange]:
        # Those of a transaction that has not ended are listed: a level that may be on its way is not missing.
        records = self.given.side.not_aborted(FEATURE_LEVEL) if self.given.side else ()
        rows = [(record["offset"], json.loads(record["data"])) for record in records]
        return [LevelChange(offset, body["featureLevel"], body["name"]) for offset, body in rows]

    def _phase(self) -> Phase:
        name = state_name(self.states[-1].code, self.release.version) if self.states else "NONE"
        if before(self.release.version, 3, 5):
            name = state_in_3_4(name, self.given.zookeeper)
        in_zookeeper = any(row["source"] == ZOOKEEPER for row in self.brokers)
        topics = self.counts["topics"]
        in_zookeeper_alone = bool(topics[ZOOKEEPER]) and not topics[KRAFT]
        phase = phase_of(self.given.collected, name, self.given.zookeeper, in_zookeeper, in_zookeeper_alone)
        older = phase is Phase.ROLLED_BACK and copied_before_load(
            self.given.zookeeper, self.newest_change[0], self.loaded_at
        )
        return Phase.DUAL_WRITE if older else phase


def _counts(given: Given, answers: Answers) -> Counts:
    """Rows by entity and side; None of a side that was not read."""
    none = {side: 0 if side in given.collected else None for side in (ZOOKEEPER, KRAFT)}
    counts: Counts = {entity.name: dict(none) for entity in ENTITIES if entity.name != "migration"}
    for row in answers.of("counts"):
        counts[row["entity"]][row["source"]] = row["rows"]
    return counts
