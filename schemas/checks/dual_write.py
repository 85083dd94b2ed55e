"""DUR checks: is dual write complete and alive (S§7.3)."""

from __future__ import annotations

from schemas.checks.check import DURING, KRAFT_ONLY, ZOOKEEPER_ONLY, Check, Phase, check

CHECKS: tuple[Check, ...] = (
    check(
        "DUR-01",
        "/migration records a finished load",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not roll back: since somebody removed or changed /migration, the leader writes nothing to ZooKeeper. Do not "
        "move the leadership yet: without this offset a new leader does not start dual write. First write /migration "
        "back, as in the last run or a backup (any kraft_metadata_offset from the load's end to the log's end does). "
        "Then move the leadership: only a new leader reads /migration again, and it writes all of the metadata to "
        "ZooKeeper. Then run the audit again.",
        "KIP-866; ZkMigrationLeadershipState.initialZkMigrationComplete",
    ),
    check(
        "DUR-02",
        "/controller is held by the KRaft leader of the newest epoch",
        ("dual_write", "finalize"),
        DURING,
        "Run the audit again if the leadership has just moved. Otherwise find out who claimed /controller: until the leader "
        "has it again, ZooKeeper refuses its changes. Then move the leadership (restart the active controller cleanly): the "
        "new leader claims /controller, and from Kafka 3.5 on it writes to ZooKeeper what is missing. In Kafka 3.4 a new leader waits "
        "until each broker that holds replicas runs, and loads ZooKeeper again: start those brokers, and upgrade the controllers.",
        "KIP-866, Controller Claim; KafkaZkClient.tryRegisterKRaftControllerAsActiveController",
    ),
    check(
        "DUR-03",
        "/migration was written by the KRaft leader of the newest epoch",
        ("dual_write", "finalize"),
        DURING,
        "Run the audit again if the leadership has just moved. If the check still fails, ZooKeeper refuses the new "
        "leader's writes: move the leadership once more.",
        "KAFKA-16171, KAFKA-16667; ZkMigrationLeadershipState; S§4.4",
    ),
    check(
        "DUR-04",
        "Dual write is alive, and ZooKeeper is not far behind",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not finalise or roll back until the lag is gone. Look for migration faults in the active controller's "
        "log, and check ZooKeeper's health. Do not rely on the metric ZkWriteBehindLag: it reads 0 when dual write "
        "has stopped.",
        "KIP-866, ZkWriteBehindLag; S§7.3",
    ),
    check(
        "DUR-05",
        "No row is lost, foreign or wrongly loaded",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Read the list of differences: it shows what happened to each row, and what to do about each class.",
        "KIP-866, Dual Write; S§5.6",
    ),
    check(
        "DUR-06",
        "ZooKeeper can store every configuration, ACL, quota and credential",
        ("dual_write",),
        DURING,
        "Delete the client metrics subscriptions, ACLs, quotas and credentials listed, and create no new ones until the migration is "
        "finalised. With them, the full sync after the next controller failover cannot finish. Kafka does not delete a quota with an "
        "empty name: finalise, or start the controllers with the release before their upgrade, which writes it as the default.",
        "ZkConfigMigrationClient, ZkAclMigrationClient; S§5.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-07",
        "The load is recorded completely and once",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not finalise: KRaft may have only half of ZooKeeper's metadata. Read the controllers' logs from the time "
        "of the load.",
        "KIP-866; KIP-868; S§4.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-08",
        "The load ran once",
        ("start", "dual_write"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "A warning: a load broke off, and the next one wrote its topics again and ended. Nothing is lost. Do not upgrade to Kafka "
        "3.6 or later before each controller has a checkpoint that is newer than the offsets listed: without one it ends when it reads "
        "them. "
        "A failure: stop the controllers, because the load runs again over metadata that is already there. Upgrade Kafka. Empty the "
        "controllers' log folders and format them again. Delete /migration in ZooKeeper. Then start the migration again, and restart the "
        "brokers that have it enabled.",
        "KAFKA-14840; KRaftMigrationDriver; S§4.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-09",
        "Every kind of metadata is kept in checkpoints (metadata snapshots) at this metadata.version",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Do not restart a controller: it would start from a checkpoint without the SCRAM credentials and delegation "
        "tokens listed. Save them. Raise metadata.version, then create them again.",
        "ScramImage, DelegationTokenImage; S§3.4",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-10",
        "metadata.version has not changed since the migration began",
        ("dual_write",),
        DURING,
        "Find out how it was changed: Kafka refuses the change while a migration is in progress. Run the audit again "
        "with every controller's log.",
        "FeatureControlManager; S§9.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-11",
        "Every broker is in one mode: ZooKeeper or KRaft",
        ("dual_write",),
        DURING,
        "Run the audit again if the broker is being restarted. Otherwise read the log of the broker listed: it runs "
        "in one mode and is registered in the other.",
        "KIP-866, Broker Registration; RegisterBrokerRecord.IsMigratingZkBroker; S§7.3",
    ),
    check(
        "DUR-12",
        "No two running processes share a broker id",
        ("start", "dual_write", "finalize"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Find both processes of the broker listed and stop the one that should not run. Then restart the other one. "
        "Until then each takes the other's place, and clients see the replicas of both as one broker's.",
        "KIP-631, Broker Registration; ClusterControlManager.registerBroker; S§7.3",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-13",
        "Every replica that left an ISR raised the leader epoch",
        ("dual_write",),
        DURING,
        "Elect the preferred leader of the partitions listed: `kafka-leader-election.sh --election-type preferred`. Where it "
        "leads already, restart its broker cleanly. A new leader raises the epoch; brokers in ZooKeeper mode ignore a "
        "change with the old epoch and keep the old ISR.",
        "KAFKA-15109; PartitionChangeBuilder; S§3.3",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    check(
        "DUR-14",
        "Every topic has the same id in ZooKeeper and in KRaft",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Force a full sync (restart the active controller cleanly), or delete the topic again through the Admin API. The "
        "topic was deleted and created again, and one of the two changes did not reach ZooKeeper.",
        "KIP-516; TopicsDelta; S§6",
        severity="critical",
    ),
    check(
        "DUR-15",
        "Every producer id is handed out only once",
        ("dual_write", "rollback"),
        DURING,
        "Upgrade Kafka: two producers may have the same id. Restart the transactional producers that the brokers' "
        "logs name.",
        "KAFKA-15552; ProducerIdControlManager; S§6",
        severity="critical",
    ),
    check(
        "DUR-16",
        "No broker sends ZooKeeper requests that KRaft ignores",
        ("dual_write",),
        DURING,
        "Find the broker or script that created the znodes listed and stop it. Nothing reads them any more.",
        "KIP-497; S§8.1",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "DUR-17",
        "No quota was removed in a way that Kafka fails to mirror",
        ("dual_write",),
        DURING,
        "Do not remove quotas of client ids and IP addresses until the migration is finalised: set them to other values. ZooKeeper "
        "may still have the quotas listed, and lack changes made at the same moment. A full sync (Kafka 3.5 and later) repairs "
        "both: restart the active controller cleanly.",
        "ZkConfigMigrationClient (NullPointerException); S§5.2, S§14",
        severity="warning",
    ),
    check(
        "DUR-18",
        "No change was dropped after a failed quota change",
        ("dual_write",),
        DURING,
        "Force a full sync: restart the active controller cleanly. The producer ids, ACLs or tokens listed changed "
        "together with a quota, and mirroring that quota failed. Kafka 3.4 has no full sync: make the changes again there.",
        "KRaftMigrationZkWriter.handleDelta; S§5.2",
        severity="warning",
    ),
    check(
        "DUR-20",
        "Every broker and controller runs a release that can take part in a migration",
        ("start", "dual_write", "finalize", "rollback"),
        frozenset({Phase.WAITING, Phase.DUAL_WRITE}),
        "Stop the nodes listed and start them with the release of the others (3.4 to 3.9). Kafka 4 does not support "
        "ZooKeeper: as active controller it silently ends dual write. Upgrade to Kafka 4 after finalising.",
        "KIP-866; KIP-896; MetadataVersion, S§2.6, S§9.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "DUR-21",
        "Every key exists once on each side",
        ("dual_write", "finalize", "rollback"),
        DURING,
        "Look at the rows listed: two znodes have the same name after decoding, or one row was created twice. Kafka "
        "keeps one of the two; the audit cannot know which. Delete the wrong one.",
        "Sanitizer, ZkData; S§5.4, S§6",
    ),
    check(
        "DUR-22",
        "Every broker that runs in ZooKeeper mode is registered in KRaft, and not fenced",
        ("dual_write", "finalize"),
        frozenset({Phase.DUAL_WRITE}),
        "Run the audit again if the broker has just started. Otherwise set its inter.broker.protocol.version to the cluster's "
        "metadata.version, with the migration enabled and this quorum in controller.quorum.voters, and restart it: the controllers "
        "refuse the registration of a broker of another version. Raise neither before the migration is finalised.",
        "ClusterControlManager.registerBroker; BrokerLifecycleManager; S§4.1.1, S§9.2",
    ),
    check(
        "DUR-19",
        "No topic deletion is left over from before the KRaft controller took over",
        (),
        frozenset({Phase.DUAL_WRITE, Phase.FINALIZED}),
        "Delete the topics listed through the Admin API if they still exist. Then remove their znodes below "
        "/admin/delete_topics. No ZooKeeper controller is left to delete them, but after a rollback the next one "
        "would.",
        "KAFKA-15605; KRaftMigrationZkWriter; S§5.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
)
