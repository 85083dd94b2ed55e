"""DUR checks: is dual writing complete and alive (S§7.3)."""

from __future__ import annotations

from schemas.checks.check import DURING, KRAFT_ONLY, ZOOKEEPER_ONLY, Check, Phase, check

CHECKS: tuple[Check, ...] = (
    check(
        "DUR-01",
        "/migration records a finished load",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not move the controller leadership: without this offset dual writing does not start again. Restore "
        "/migration from a backup of ZooKeeper. Without a backup keep the present leader running and roll back: it is the last "
        "controller that mirrors.",
        "KIP-866; ZkMigrationLeadershipState.initialZkMigrationComplete",
    ),
    check(
        "DUR-02",
        "/controller is held by the KRaft leader of the newest epoch",
        ("dual_write", "finalize"),
        DURING,
        "Find out who claimed /controller; if the leadership just moved, run the audit again.",
        "KIP-866, Controller Claim; KafkaZkClient.tryRegisterKRaftControllerAsActiveController",
    ),
    check(
        "DUR-03",
        "/migration was written by the KRaft leader of the newest epoch",
        ("dual_write", "finalize"),
        DURING,
        "If the leadership just moved, run the audit again. If it stays, the new leader's writes are refused: move "
        "the leadership once more.",
        "KAFKA-16171, KAFKA-16667; ZkMigrationLeadershipState; S§4.4",
    ),
    check(
        "DUR-04",
        "Dual writing is alive and ZooKeeper is not far behind",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Look at the active controller's log for migration faults and at ZooKeeper's health; do not finalise or roll "
        "back until the lag is gone. A ZkWriteBehindLag metric of 0 proves nothing when dual writing has stopped.",
        "KIP-866, ZkWriteBehindLag; S§7.3",
    ),
    check(
        "DUR-05",
        "No row is lost, foreign or wrongly loaded",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "See the divergences: each row says what happened and what to do.",
        "KIP-866, Dual Write; S§5.6",
    ),
    check(
        "DUR-06",
        "No configuration of a kind that ZooKeeper has no place for",
        ("dual_write",),
        DURING,
        "Delete the client metrics subscriptions named until the migration is finalised: the next controller failover "
        "can't finish its full sync with them.",
        "ZkConfigMigrationClient; S§5.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-07",
        "The load is recorded whole and once",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not finalise. Look at the controllers' logs of the load; the copy may be half of ZooKeeper's metadata.",
        "KIP-866; KIP-868; S§4.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-08",
        "The load ran once",
        ("start", "dual_write"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Stop the controllers: the load is repeated over metadata that is there already. Upgrade Kafka, format the "
        "controllers anew, delete /migration and start again.",
        "KAFKA-14840; KRaftMigrationDriver; S§4.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-09",
        "Every kind of metadata survives a snapshot at this metadata.version",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not let a controller restart from a snapshot: save the SCRAM credentials and delegation tokens named "
        "and create them again after metadata.version is raised.",
        "ScramImage, DelegationTokenImage; S§3.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-10",
        "metadata.version has not changed since the migration began",
        ("dual_write",),
        DURING,
        "Find out how it was changed: Kafka refuses to while a migration is in progress. Run the audit again with "
        "every controller's log.",
        "FeatureControlManager; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-11",
        "Every broker is in one mode: ZooKeeper or KRaft",
        ("dual_write",),
        DURING,
        "If the broker is being restarted, run the audit again; else look at the log of the broker named: it runs "
        "in one mode and is registered in the other.",
        "KIP-866, Broker Registration; RegisterBrokerRecord.IsMigratingZkBroker; S§7.3",
    ),
    check(
        "DUR-12",
        "No two processes live under one broker id",
        ("start", "dual_write", "finalize"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Find both processes of the broker named and stop the one that should not run, then restart the other: each takes "
        "the other's place, and replicas of both are served as one.",
        "KIP-631, Broker Registration; ClusterControlManager.registerBroker; S§7.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-13",
        "Every replica that left an ISR raised the leader epoch",
        ("dual_write",),
        DURING,
        "Elect a leader for the partitions named (kafka-leader-election.sh), which raises their epoch: brokers in ZooKeeper "
        "mode pass over a change that does not, and go on with the ISR they had.",
        "KAFKA-15109; PartitionChangeBuilder; S§3.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DUR-14",
        "No topic has another id than in ZooKeeper",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "The topic was deleted and made again and one half of that was lost. Delete it once more through the Admin "
        "API, or force a full sync by moving the controller leadership.",
        "KIP-516; TopicsDelta; S§6",
        severity="critical",
    ),
    check(
        "DUR-15",
        "Producer ids are handed out once",
        ("dual_write", "rollback"),
        DURING,
        "Restart the producers of transactions named in the brokers' logs, and upgrade Kafka: two producers may "
        "have the same id.",
        "KAFKA-15552; ProducerIdControlManager; S§6",
        severity="critical",
    ),
    check(
        "DUR-16",
        "No broker speaks to ZooKeeper in the old way",
        ("dual_write",),
        DURING,
        "Find the broker or script that made the znodes named: nobody reads them any more.",
        "KIP-497; S§8.1",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "DUR-17",
        "No quota was removed whose removal Kafka fails to mirror",
        ("dual_write",),
        DURING,
        "Compare the quotas named, and all changes made in the same moment; a full sync (move the controller "
        "leadership) mirrors them. Set quotas of clients and addresses to other values instead of removing them "
        "until the migration is finalised.",
        "ZkConfigMigrationClient (NullPointerException); S§5.2, S§14",
        severity="warning",
    ),
    check(
        "DUR-18",
        "No change was dropped behind a failed quota change",
        ("dual_write",),
        DURING,
        "The producer ids, ACLs or tokens named were changed together with a quota whose mirroring failed. Force a "
        "full sync by moving the controller leadership.",
        "KRaftMigrationZkWriter.handleDelta; S§5.2",
        severity="warning",
    ),
    check(
        "DUR-20",
        "Every broker and controller is of a release that can be part of a migration",
        ("start", "dual_write", "finalize", "rollback"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Stop the nodes named and start them with the release of the others (3.4 to 3.9): Kafka 4 knows no ZooKeeper, and as the "
        "active controller it ends dual writing without a word. Upgrade to Kafka 4 after finalising.",
        "KIP-866; KIP-896; MetadataVersion, S§2.6, S§9.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-21",
        "Every key is on a side once",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Look at the rows named: two znodes spell one name, or one was made twice. Kafka keeps one of them, and which it is the "
        "audit can't tell; delete the other.",
        "Sanitizer, ZkData; S§5.4, S§6",
    ),
    check(
        "DUR-19",
        "No topic is queued for deletion since before the KRaft controller took over",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
        "Delete the topics named through the Admin API if they still exist, then remove their znodes below "
        "/admin/delete_topics: no ZooKeeper controller is left that would, and after a rollback the next one will.",
        "KAFKA-15605; KRaftMigrationZkWriter; S§5.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
)
