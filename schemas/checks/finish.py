"""FIN checks: may the migration be finalised, and was it (FIN and POST) (S§7.4)."""

from __future__ import annotations

from schemas.checks.check import DURING, FINALIZED, KRAFT_ONLY, Check, check

CHECKS: tuple[Check, ...] = (
    check(
        "FIN-01",
        "Every registered broker runs in KRaft mode",
        ("finalize",),
        DURING,
        "Restart the listed brokers in KRaft mode before you finalise: set process.roles=broker and remove "
        "zookeeper.connect.",
        "KIP-866, Finalizing; RegisterBrokerRecord.IsMigratingZkBroker",
        severity="error",
    ),
    check(
        "FIN-02",
        "No broker is left in ZooKeeper",
        ("finalize",),
        DURING,
        "Restart the listed brokers in KRaft mode, or stop them.",
        "KIP-866, Finalizing",
    ),
    check(
        "FIN-03",
        "Every registered broker is running, or was shut down on purpose",
        ("finalize",),
        DURING,
        "Start the brokers listed, or wait until their shutdown has finished. Unregister those that are gone for "
        "good: `kafka-cluster.sh unregister --id N`.",
        "KIP-866, Finalizing; KIP-841",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-04",
        "ZooKeeper has every committed change: it cannot catch up after finalising",
        ("finalize",),
        DURING,
        "Repair the differences and wait until the lag is gone before you finalise. Skip this only if you do not need "
        "ZooKeeper's copy.",
        "KIP-866, Finalizing; S§7.4",
    ),
    check(
        "FIN-05",
        "No reassignment is in progress and every partition has a leader",
        ("finalize",),
        DURING,
        "Wait until the reassignments listed have finished. Start the brokers of the offline partitions.",
        "S§7.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-06",
        "Every controller is close behind the most advanced one",
        ("finalize",),
        DURING,
        "Wait until the controllers listed have caught up before you restart any controller.",
        "KIP-595; S§2.9",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-07",
        "No controller runs without the migration flag",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Unless you are finalising, set zookeeper.metadata.migration.enable=true on the controllers listed and restart them "
        "now. The first of them to become leader finalises the migration, and there is no way back.",
        "KIP-866, Finalizing; KRaftMigrationDriver, RegisterControllerRecord.ZkMigrationReady; S§7.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "FIN-08",
        "Every partition has all its replicas in sync, not counting brokers that were shut down on purpose",
        ("finalize",),
        DURING,
        "Start the brokers listed, or wait until they have caught up, before you finalise.",
        "KIP-866, Finalizing; S§7.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "POST-01",
        "The migration was finalised once",
        (),
        FINALIZED,
        "Give the audit the logs of one quorum only. If they already are from one quorum, keep them and report "
        "this: Kafka writes this state only once.",
        "ZkMigrationState.POST_MIGRATION; S§7.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-02",
        "Nothing mirrors to ZooKeeper after finalising",
        (),
        FINALIZED,
        "Stop the process that writes ZooKeeper: a controller of another quorum, or a ZooKeeper broker that became "
        "controller. Shut ZooKeeper down when nothing writes it any more and no controller has the migration enabled "
        "(CONF-05).",
        "KIP-866, Finalizing; S§7.4",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-03",
        "No broker runs in ZooKeeper mode after finalising",
        (),
        FINALIZED,
        "Restart the listed brokers in KRaft mode: set process.roles=broker and remove zookeeper.connect.",
        "KIP-866, Finalizing; RegisterBrokerRecord.IsMigratingZkBroker",
        needs=KRAFT_ONLY,
        severity="critical",
    ),
    check(
        "POST-04",
        "Nobody writes metadata to ZooKeeper after finalising",
        (),
        FINALIZED,
        "Stop what wrote the znodes listed: a script, an old tool, or a broker in ZooKeeper mode. Make the change "
        "through the Admin API instead: Kafka no longer reads ZooKeeper.",
        "KIP-866, Finalizing; S§5.6",
        needs=frozenset(),
        severity="warning",
    ),
)
