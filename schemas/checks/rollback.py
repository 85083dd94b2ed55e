"""RB checks: may the migration be rolled back (S§7.5)."""

from __future__ import annotations

from schemas.checks.check import DURING, KRAFT_ONLY, MIGRATED, ZOOKEEPER_ONLY, Check, Phase, check, optional

CHECKS: tuple[Check, ...] = (
    check(
        "RB-01",
        "The migration is not finalised",
        ("rollback",),
        MIGRATED,
        "There is no way back to ZooKeeper after finalisation.",
        "KIP-866, Rollback; ZkMigrationState.POST_MIGRATION",
        needs=KRAFT_ONLY,
    ),
    check(
        "RB-02",
        "Nothing would be lost by going back: ZooKeeper has every committed row",
        ("rollback",),
        DURING,
        "Repair the divergences listed, and find out why ZooKeeper does not get what is behind (DUR-04): a rollback would "
        "lose those rows.",
        "KIP-866, Rollback; S§7.5",
    ),
    check(
        "RB-03",
        "A ZooKeeper controller would accept every partition's controller epoch",
        ("rollback",),
        DURING,
        "Keep /controller_epoch when rolling back, though KIP-866's text deletes it (write it again with the highest epoch of "
        "the partitions' states where it is gone), and let the ZooKeeper controller be elected often enough to "
        "pass the epochs named: until then it refuses to elect leaders for those partitions.",
        "KAFKA-20488; PartitionStateMachine; S§7.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "RB-04",
        "ZooKeeper brokers can run at this metadata.version",
        ("rollback",),
        DURING,
        "Start the brokers with the inter.broker.protocol.version they had before the migration.",
        "MetadataVersion; S§2.6, S§7.5",
        needs=KRAFT_ONLY,
    ),
    check(
        "RB-05",
        "A rollback removed /migration",
        ("rollback",),
        frozenset({Phase.ROLLED_BACK}),
        "Delete /migration in ZooKeeper before the next attempt, and format the controllers anew: a new quorum "
        "would take it for a finished load.",
        "KAFKA-17146; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "RB-06",
        "A ZooKeeper controller would not hand out producer ids again",
        ("rollback",),
        DURING,
        "Wait for the lag to clear; if it has, set /latest_producer_id_block past the next id named before any "
        "broker starts in ZooKeeper mode.",
        "KIP-730; ProducerIdManager; S§6",
    ),
    check(
        "RB-07",
        "Nothing exists that only KRaft can hold",
        ("rollback",),
        DURING,
        "Save what is named before rolling back: ZooKeeper has no place for it.",
        "S§5.2, S§7.5",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    optional(
        check(
            "RB-08",
            "/migration has reached the last change of the log",
            ("rollback",),
            DURING,
            "Start the controllers again, wait until ZooKeeper has caught up (RB-02, DUR-04), stop them in order, one after the "
            "other, and run the audit on copies made after that.",
            "KIP-866, Rollback; S§7.5",
        )
    ),
    optional(
        check(
            "RB-09",
            "Every broker's meta.properties is of this cluster and can be read in ZooKeeper mode",
            ("rollback",),
            DURING,
            "Start the brokers named with zookeeper.metadata.migration.enable=true, which takes version 1 as well, or set "
            "version=0 and broker.id in the meta.properties of their log directories.",
            "KIP-866, Rollback; MetaPropertiesEnsemble (REQUIRE_V0); S§7.5",
            needs=KRAFT_ONLY,
        )
    ),
    check(
        "RB-10",
        "After the rollback every broker that holds replicas is back in ZooKeeper",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Start the brokers named in ZooKeeper mode, without process.roles and without the migration flag.",
        "KIP-866, Rollback; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "RB-11",
        "After the rollback the ZooKeeper controller may elect leaders for every partition",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Delete /controller until /controller_epoch has passed the epochs named: until then the controller refuses to "
        "elect leaders for those partitions.",
        "KAFKA-20488; PartitionStateMachine; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="critical",
    ),
    check(
        "RB-12",
        "After the rollback the KRaft controllers are stopped",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Stop the KRaft controllers for good: one that is elected again claims ZooKeeper from the brokers.",
        "KIP-866, Rollback; KRaftMigrationDriver; S§7.5",
        severity="warning",
    ),
    check(
        "RB-13",
        "The rollback lost nothing that KRaft had",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Make the rows named again with Kafka's tools, if they are still wanted: KRaft had them and ZooKeeper never did.",
        "KIP-866, Rollback; S§7.5",
        severity="warning",
    ),
)
