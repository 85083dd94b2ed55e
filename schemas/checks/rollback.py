"""RB checks: may the migration be rolled back (S§7.5)."""

from __future__ import annotations

from schemas.checks.check import DURING, KRAFT_ONLY, MIGRATED, ZOOKEEPER_ONLY, Check, Phase, check, optional

CHECKS: tuple[Check, ...] = (
    check(
        "RB-01",
        "The migration is not finalised",
        ("rollback",),
        MIGRATED,
        "Do not roll back: there is no way back to ZooKeeper after finalising.",
        "KIP-866, Rollback; ZkMigrationState.POST_MIGRATION",
        needs=KRAFT_ONLY,
    ),
    check(
        "RB-02",
        "A rollback loses nothing: ZooKeeper has every committed row",
        ("rollback",),
        DURING,
        "Do not roll back yet: these rows would be lost. Repair the differences listed. Find out why ZooKeeper does "
        "not receive the missing changes (DUR-04, DUR-17, DUR-18).",
        "KIP-866, Rollback; S§7.5",
    ),
    check(
        "RB-03",
        "A ZooKeeper controller would accept every partition's controller epoch",
        ("rollback",),
        DURING,
        "Keep /controller_epoch when you roll back, although KIP-866's text says to delete it. If it is gone, create "
        "it with the highest epoch in the partitions' states. Repeat the controller election until the epoch exceeds "
        "those listed: until then the ZooKeeper controller refuses to elect leaders for those partitions.",
        "KAFKA-20488; PartitionStateMachine; S§7.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "RB-04",
        "Brokers can start in ZooKeeper mode, at this metadata.version and with the quotas that ZooKeeper has",
        ("rollback",),
        DURING,
        "Start the brokers with the inter.broker.protocol.version they had before the migration. No broker in ZooKeeper mode starts with a "
        "quota that is listed: upgrade the controllers to 3.5.2 or later, the active one last. Their full sync writes it "
        "as a whole number.",
        "MetadataVersion; QuotaConfigHandler; S§2.6, S§5.3, S§7.5",
        needs=KRAFT_ONLY,
    ),
    check(
        "RB-05",
        "The rollback removed /migration",
        ("rollback",),
        frozenset({Phase.ROLLED_BACK}),
        "Delete /migration in ZooKeeper. Empty the controllers' log folders and format them again before the next attempt. "
        "A new quorum would take the leftover znode for a finished load, and the old one would claim ZooKeeper as soon as it starts and "
        "undo what was changed there since the rollback (TXN-05).",
        "KAFKA-17146; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "RB-06",
        "A ZooKeeper controller would not hand out the same producer ids again",
        ("rollback",),
        DURING,
        "Wait until the lag is gone. If it is gone already, set /latest_producer_id_block beyond the next id listed "
        "before you start any broker in ZooKeeper mode.",
        "KIP-730; ProducerIdManager; S§6",
    ),
    check(
        "RB-07",
        "ZooKeeper can store everything that KRaft has",
        ("rollback",),
        DURING,
        "Save what is listed before you roll back: ZooKeeper cannot store it.",
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
            "Start the controllers again. Wait until ZooKeeper has caught up (RB-02, DUR-04). Stop the controllers "
            "cleanly, one after the other. Then copy both sides and run the audit on the copies.",
            "KIP-866, Rollback; S§7.5",
        )
    ),
    optional(
        check(
            "RB-09",
            "Every broker's meta.properties belongs to this cluster and can be read in ZooKeeper mode",
            ("rollback",),
            DURING,
            "Start the brokers listed with zookeeper.metadata.migration.enable=true, which accepts version 1 too. Or "
            "set version=0 and broker.id in the meta.properties of their log directories.",
            "KIP-866, Rollback; MetaPropertiesEnsemble (REQUIRE_V0); S§7.5",
            needs=KRAFT_ONLY,
        )
    ),
    check(
        "RB-10",
        "After the rollback every broker that holds replicas is back in ZooKeeper",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Start the listed brokers in ZooKeeper mode, without process.roles and without the migration flag.",
        "KIP-866, Rollback; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "RB-11",
        "After the rollback the ZooKeeper controller may elect leaders for every partition",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Delete /controller, again and again, until /controller_epoch exceeds the epochs listed. Until then the "
        "controller refuses to elect leaders for those partitions.",
        "KAFKA-20488; PartitionStateMachine; S§7.5",
        needs=ZOOKEEPER_ONLY,
        severity="critical",
    ),
    check(
        "RB-12",
        "After the rollback the KRaft controllers are stopped",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Stop the KRaft controllers: while /migration has an offset, one that is elected again claims ZooKeeper from the brokers, and "
        "undoes there what was changed since the rollback.",
        "KIP-866, Rollback; KRaftMigrationDriver; S§7.5",
        severity="warning",
    ),
    check(
        "RB-13",
        "The rollback lost no change of KRaft's",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Create the rows listed again with Kafka's tools if you still need them: KRaft had them, ZooKeeper never did. Remove again "
        "those that KRaft had removed: in ZooKeeper they are still in effect.",
        "KIP-866, Rollback; S§7.5",
        severity="warning",
    ),
    check(
        "RB-14",
        "After the rollback no controller with the old log waits for another migration",
        (),
        frozenset({Phase.ROLLED_BACK}),
        "Stop the KRaft controllers. Empty their log folders and format them: `kafka-storage.sh format --cluster-id ID "
        "--config FILE`. /migration may stay as it is, because it has no offset. Then start the controllers, and restart every broker with "
        "the migration enabled: one that runs does not register with another quorum.",
        "KRaftMigrationDriver (WaitForControllerQuorumEvent); S§4.1, S§7.5",
        severity="warning",
    ),
)
