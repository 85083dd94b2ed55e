"""The catalogue of checks (S§7): what must hold, which gates it can block, what to do when it does not.

Each entry has one function of the same id in `transforms.reconcile.checks` that returns the violations.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where a cluster stands; a check applies in some phases only."""

    ZOOKEEPER = "zookeeper"
    """No KRaft log, or one without a migration state: nothing has begun."""
    WAITING = "waiting"
    """PRE_MIGRATION: the controllers wait for the brokers, or the load runs."""
    DUAL_WRITE = "dual_write"
    """MIGRATION: loaded, every change is mirrored to ZooKeeper."""
    FINALIZED = "finalized"
    """POST_MIGRATION: ZooKeeper is history."""
    ROLLED_BACK = "rolled_back"
    """The log says MIGRATION, but a ZooKeeper broker is the controller again."""
    KRAFT = "kraft"
    """A cluster that never was in ZooKeeper mode, or Kafka 4: no migration state."""


ZOOKEEPER, KRAFT = "zookeeper", "kraft"
BOTH = frozenset({ZOOKEEPER, KRAFT})
START_PHASES = frozenset({Phase.ZOOKEEPER, Phase.WAITING})
EVERY_PHASE = frozenset(Phase)


@dataclass(frozen=True)
class Check:
    """One check. `needs` are the sides that must have been collected, else its verdict is unknown."""

    id: str
    title: str
    gates: tuple[str, ...]
    phases: frozenset[Phase]
    needs: frozenset[str]
    severity: str
    remedy: str
    reference: str


def _check(
    check_id: str,
    title: str,
    gates: tuple[str, ...],
    phases: frozenset[Phase],
    remedy: str,
    reference: str,
    *,
    needs: frozenset[str] = BOTH,
    severity: str = "error",
) -> Check:
    return Check(check_id, title, gates, phases, needs, severity, remedy, reference)


_DURING = frozenset({Phase.DUAL_WRITE})
_MIGRATED = frozenset({Phase.DUAL_WRITE, Phase.FINALIZED})
_ALL_GATES = ("start", "dual_write", "finalize", "rollback")

CHECKS: tuple[Check, ...] = (
    _check(
        "CAP-01",
        "Both sides are of one cluster: /cluster/id equals cluster.id of every log folder",
        _ALL_GATES,
        EVERY_PHASE,
        "Give the audit the ZooKeeper tree and the controllers' logs of the same cluster.",
        "MetaProperties; S§7.1",
    ),
    _check(
        "CAP-02",
        "The metadata log is whole: checksums match, offsets follow each other, epochs never fall",
        _ALL_GATES,
        EVERY_PHASE,
        "Copy the log folder again while the controller is stopped or idle; see the quarantine table for the place.",
        "DefaultRecordBatch; S§2.2",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "CAP-03",
        "The log starts at offset 0 or at a complete checkpoint",
        _ALL_GATES,
        EVERY_PHASE,
        "Copy the .checkpoint files together with the segments.",
        "KafkaMetadataLog.recoverSnapshots; S§2.1",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "CAP-04",
        "The log used reaches /migration's offset and has its epoch",
        ("dual_write", "finalize", "rollback"),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
        "Give the audit the logs of the controllers that are ahead: this copy is stale or of another quorum.",
        "S§2.9, S§7.1",
    ),
    _check(
        "CAP-06",
        "No metadata transaction is open at the end of the log",
        ("start", "dual_write", "finalize", "rollback"),
        EVERY_PHASE,
        "The load is still running, or died: run the audit again; if it stays open, look at the active controller's log.",
        "KIP-868; S§2.7",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "CAP-07",
        "Every znode could be read",
        _ALL_GATES,
        EVERY_PHASE,
        "Give the audit's ZooKeeper identity read access to the paths named.",
        "S§7.1",
        needs=frozenset({ZOOKEEPER}),
    ),
    _check(
        "CAP-08",
        "The replayed state equals Kafka's own checkpoint at every checkpoint of the log",
        _ALL_GATES,
        EVERY_PHASE,
        "Do not trust this run's comparison: the log copy or the audit itself is wrong. Copy the log folders again; if "
        "it stays, report it with the rows named.",
        "SnapshotGenerator; S§3.4",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "START-01",
        "Every broker in ZooKeeper is registered with the controllers as ready to migrate",
        ("start",),
        START_PHASES,
        "Restart the brokers named with zookeeper.metadata.migration.enable=true and the controllers' quorum settings.",
        "KIP-866, Broker Registration; KRaftMigrationDriver.areZkBrokersReadyForMigration",
    ),
    _check(
        "START-02",
        "Every broker that holds replicas is registered as ready to migrate",
        ("start",),
        START_PHASES,
        "Bring the brokers named back with the migration enabled, or move their replicas elsewhere and wait for the "
        "reassignment to finish: the migration waits for them for ever.",
        "KIP-866, Broker Presence; ZkMigrationLeadershipState",
    ),
    _check(
        "START-03",
        "Every topic has a topic id",
        ("start",),
        START_PHASES,
        "Raise inter.broker.protocol.version to 2.8 or later and restart, so that the controller assigns topic ids.",
        "ZkTopicMigrationClient (None.get); S§7.2",
        needs=frozenset({ZOOKEEPER}),
    ),
    _check(
        "START-04",
        "Every assigned partition has a state znode that can be parsed",
        ("start",),
        START_PHASES,
        "Recreate the state znodes (trigger a leader election or reassign the partitions named): the load would invent "
        "their state.",
        "TopicPartitionStateZNode; S§4.2",
        needs=frozenset({ZOOKEEPER}),
    ),
    _check(
        "START-05",
        "Every controller is registered with the migration enabled",
        ("start",),
        frozenset({Phase.WAITING}),
        "Set zookeeper.metadata.migration.enable=true on the controllers named and restart them.",
        "KIP-919; RegisterControllerRecord",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "START-07",
        "/migration is absent or untouched when a new quorum is to load ZooKeeper",
        ("start",),
        frozenset({Phase.WAITING, Phase.ZOOKEEPER, Phase.ROLLED_BACK}),
        "Stop the controllers at once. Delete /migration (and /controller if a KRaft controller left it) in ZooKeeper, "
        "format the controllers anew, then start again: this quorum would skip the load and empty ZooKeeper.",
        "KAFKA-17146; KRaftMigrationDriver, S§4.1",
        severity="critical",
    ),
    _check(
        "START-13",
        "Every configuration, quota and SCRAM credential can be loaded",
        ("start",),
        START_PHASES,
        "Correct the znodes named with kafka-configs: one value that can't be parsed aborts the load.",
        "ZkConfigMigrationClient; S§4.2",
        needs=frozenset({ZOOKEEPER}),
    ),
    _check(
        "START-14",
        "Every ACL can be loaded",
        ("start",),
        START_PHASES,
        "Correct the znodes named with kafka-acls.",
        "AclEntry.fromBytes; S§1.4",
        needs=frozenset({ZOOKEEPER}),
    ),
    _check(
        "DUR-01",
        "/migration records a finished load",
        ("dual_write", "finalize", "rollback"),
        _DURING,
        "Do not move the controller leadership: without this offset dual writing does not start again. Restore "
        "/migration from a backup of ZooKeeper, or contact the audit's evidence before any failover.",
        "KIP-866; ZkMigrationLeadershipState.initialZkMigrationComplete",
    ),
    _check(
        "DUR-02",
        "/controller is held by the KRaft leader of the newest epoch",
        ("dual_write", "finalize"),
        _DURING,
        "Find out who claimed /controller; if the leadership just moved, run the audit again.",
        "KIP-866, Controller Claim; KafkaZkClient.tryRegisterKRaftControllerAsActiveController",
    ),
    _check(
        "DUR-04",
        "Dual writing is alive and ZooKeeper is not far behind",
        ("dual_write", "finalize", "rollback"),
        _DURING,
        "Look at the active controller's log for migration faults and at ZooKeeper's health; do not finalise or roll "
        "back until the lag is gone. A ZkWriteBehindLag metric of 0 proves nothing when dual writing has stopped.",
        "KIP-866, ZkWriteBehindLag; S§7.3",
    ),
    _check(
        "DUR-05",
        "No row is lost, foreign or wrongly loaded",
        ("dual_write", "finalize", "rollback"),
        _DURING,
        "See the divergences: each row says what happened and what to do.",
        "KIP-866, Dual Write; S§5.6",
    ),
    _check(
        "DUR-06",
        "No configuration of a kind that ZooKeeper has no place for",
        ("dual_write",),
        _DURING,
        "Delete the client metrics subscriptions named until the migration is finalised: the next controller failover "
        "can't finish its full sync with them.",
        "ZkConfigMigrationClient; S§5.2",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "FIN-01",
        "Every registered broker runs in KRaft mode",
        ("finalize",),
        _DURING,
        "Restart the brokers named in KRaft mode (process.roles=broker, no zookeeper.connect).",
        "KIP-866, Finalizing; RegisterBrokerRecord.IsMigratingZkBroker",
        severity="error",
    ),
    _check(
        "FIN-02",
        "No broker is left in ZooKeeper",
        ("finalize",),
        _DURING,
        "Stop or restart in KRaft mode the brokers named.",
        "KIP-866, Finalizing",
    ),
    _check(
        "RB-01",
        "The migration is not finalised",
        ("rollback",),
        _MIGRATED,
        "There is no way back to ZooKeeper after finalisation.",
        "KIP-866, Rollback; ZkMigrationState.POST_MIGRATION",
        needs=frozenset({KRAFT}),
    ),
    _check(
        "RB-02",
        "Nothing would be lost by going back: ZooKeeper has every committed row",
        ("rollback",),
        _DURING,
        "Wait for the lag to clear and repair the divergences listed first; a rollback would lose those rows.",
        "KIP-866, Rollback; S§7.5",
    ),
)
