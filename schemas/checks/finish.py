"""FIN checks: may the migration be finalised, and was it (FIN and POST) (S§7.4)."""

from __future__ import annotations

from schemas.checks.check import DURING, FINALIZED, KRAFT_ONLY, Check, check

CHECKS: tuple[Check, ...] = (
    check(
        "FIN-01",
        "Every registered broker runs in KRaft mode",
        ("finalize",),
        DURING,
        "Restart the brokers named in KRaft mode (process.roles=broker, no zookeeper.connect).",
        "KIP-866, Finalizing; RegisterBrokerRecord.IsMigratingZkBroker",
        severity="error",
    ),
    check(
        "FIN-02",
        "No broker is left in ZooKeeper",
        ("finalize",),
        DURING,
        "Stop or restart in KRaft mode the brokers named.",
        "KIP-866, Finalizing",
    ),
    check(
        "FIN-03",
        "Every registered broker is up, or was shut down on purpose",
        ("finalize",),
        DURING,
        "Bring the brokers named back, wait for those that shut down, or unregister those that are gone for good.",
        "KIP-866, Finalizing; KIP-841",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-04",
        "ZooKeeper has everything: this is the last chance to go back with all data",
        ("finalize",),
        DURING,
        "Repair the divergences and let the lag clear before finalising, or decide that ZooKeeper's copy is not "
        "needed.",
        "KIP-866, Finalizing; S§7.4",
    ),
    check(
        "FIN-05",
        "No reassignment is under way and no partition is without a leader",
        ("finalize",),
        DURING,
        "Let the reassignments named finish and bring the brokers of the offline partitions back.",
        "S§7.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-06",
        "Every controller is close behind the best one",
        ("finalize",),
        DURING,
        "Bring the controllers named up to date before any of them restarts.",
        "KIP-595; S§2.9",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-07",
        "No controller runs without the migration flag while brokers are in ZooKeeper mode",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Set zookeeper.metadata.migration.enable=true on the controllers named and restart them now: the first of "
        "them that becomes leader finalises the migration, and there is no way back.",
        "KIP-866, Finalizing; KRaftMigrationDriver, RegisterControllerRecord.ZkMigrationReady; S§7.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-08",
        "Every partition has all its replicas in sync, those on brokers that are down on purpose left aside",
        ("finalize",),
        DURING,
        "Bring the brokers named back, or wait until they have caught up, before the way back is closed.",
        "KIP-866, Finalizing; S§7.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "POST-01",
        "The migration was finalised once",
        (),
        FINALIZED,
        "Give the audit the logs of one quorum; if they are, keep them and report it: Kafka writes this state once.",
        "ZkMigrationState.POST_MIGRATION; S§7.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-02",
        "Nothing mirrors to ZooKeeper after finalising",
        (),
        FINALIZED,
        "Stop what writes ZooKeeper: a controller of another quorum, or a ZooKeeper broker that became controller. "
        "When all is quiet, ZooKeeper can be shut down.",
        "KIP-866, Finalizing; S§7.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-03",
        "No broker registered in ZooKeeper mode after finalising",
        (),
        FINALIZED,
        "Restart the brokers named in KRaft mode (process.roles=broker, no zookeeper.connect).",
        "KIP-866, Finalizing; RegisterBrokerRecord.IsMigratingZkBroker",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-04",
        "Nobody writes metadata to ZooKeeper after finalising",
        (),
        FINALIZED,
        "Stop what wrote the znodes named (a script, an old tool, a broker in ZooKeeper mode) and make the change through "
        "the Admin API: Kafka does not read them any more.",
        "KIP-866, Finalizing; S§5.6",
        needs=frozenset(),
        severity="warning",
    ),
)
