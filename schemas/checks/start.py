"""START checks: may the migration begin (S§7.2)."""

from __future__ import annotations

from schemas.checks.check import KRAFT_ONLY, START_PHASES, WAITING, ZOOKEEPER_ONLY, Check, Phase, check, optional

CHECKS: tuple[Check, ...] = (
    check(
        "START-01",
        "Every broker in ZooKeeper is registered with the controllers as ready to migrate",
        ("start",),
        START_PHASES,
        "Set zookeeper.metadata.migration.enable=true and the controllers' quorum settings on the brokers listed, and "
        "restart them. Restart those that have them, too, if the controllers were formatted since. "
        "If no broker is running, start the brokers.",
        "KIP-866, Broker Registration; KRaftMigrationDriver.areZkBrokersReadyForMigration",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-02",
        "Every broker that holds replicas is running and registered as ready to migrate",
        ("start",),
        START_PHASES,
        "Start the brokers listed, with the migration enabled. If a broker will not come back, move its replicas to "
        "other brokers and wait until the reassignment has finished. While a broker listed is not registered, the "
        "migration does not start. From Kafka 3.5 on it starts without one that is registered but stopped, and loads that broker's "
        "partitions as they are then, some without a leader.",
        "KIP-866, Broker Presence; ZkMigrationLeadershipState",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-03",
        "Every topic has a topic id",
        ("start",),
        START_PHASES,
        "Raise inter.broker.protocol.version to 2.8 or later and restart the brokers. The controller then assigns "
        "topic ids.",
        "ZkTopicMigrationClient (None.get); S§7.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-04",
        "Every assigned partition has a state znode that can be parsed",
        ("start",),
        START_PHASES,
        "Start all brokers of the partitions listed. If a backup of ZooKeeper has the state znode, write it back: "
        "`zookeeper-shell.sh HOST:PORT set PATH DATA`, or create. If not, delete one that cannot be parsed. Then restart "
        "the broker that is the controller: the next controller writes the znodes that are missing, with leader epoch 0 "
        "and all live replicas as the ISR, even one that lacks records. Neither an election nor a reassignment writes "
        "them. Without a state znode, the load invents the partition's state.",
        "TopicPartitionStateZNode, PartitionStateMachine.initializeLeaderAndIsrForPartitions; S§4.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-05",
        "Every controller is registered with the migration enabled",
        ("start",),
        WAITING,
        "Set zookeeper.metadata.migration.enable=true on the controllers listed and restart them.",
        "KIP-919; RegisterControllerRecord",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-06",
        "metadata.version is high enough for the metadata to be loaded",
        ("start",),
        WAITING,
        "Raise inter.broker.protocol.version on the brokers. Empty the controllers' log folders and format them with the "
        "same metadata.version. Below 3.6-IV1 a load that dies stays half done: from 3.6 on the next one ends at its topics, before that "
        "it stores its ACLs twice. Below 3.5-IV2 the next checkpoint drops SCRAM credentials, below 3.6-IV2 delegation tokens.",
        "KIP-866; MetadataVersion; KAFKA-17457; S§2.6",
    ),
    check(
        "START-07",
        "/migration is absent or unused when a new quorum is about to load ZooKeeper",
        ("start",),
        frozenset({Phase.WAITING, Phase.ZOOKEEPER, Phase.ROLLED_BACK}),
        "Stop the controllers at once: this quorum would skip the load and empty ZooKeeper. Delete "
        "/migration (`zookeeper-shell.sh HOST:PORT delete /migration`), and /controller if a KRaft controller left it. "
        "Empty the controllers' log folders and format them: `kafka-storage.sh format --cluster-id ID --config FILE`. Then "
        "start them, and restart the brokers that have the migration enabled: one that runs does not register with another quorum.",
        "KAFKA-17146, KAFKA-19480; KRaftMigrationDriver, MigrationZNode; S§4.1",
        needs=ZOOKEEPER_ONLY,
        severity="critical",
    ),
    check(
        "START-08",
        "No other controller holds a claim on ZooKeeper",
        ("start",),
        START_PHASES,
        "Delete /controller if no KRaft controller of this quorum is running: `zookeeper-shell.sh HOST:PORT delete "
        "/controller`. Otherwise the claim is refused until the quorum's epoch exceeds the one stored in /controller.",
        "KIP-866, Controller Claim; KafkaZkClient.tryRegisterKRaftControllerAsActiveController; S§4.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-09",
        "The controllers were started to migrate",
        ("start",),
        START_PHASES,
        "Format new controllers. Set zookeeper.metadata.migration.enable=true before their first start: a log that "
        "began without it never migrates. Then restart the brokers that have the migration enabled: one that runs does not register with "
        "another quorum.",
        "KIP-866; FeatureControlManager, ActivationRecordsGenerator; S§4.1",
    ),
    check(
        "START-10",
        "Every migrating broker's protocol version equals the controllers' metadata.version",
        ("start",),
        WAITING,
        "Set inter.broker.protocol.version on the brokers listed to the cluster's metadata.version and restart them.",
        "KIP-866; KIP-584; KafkaServer; S§9.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-11",
        "No broker has the same id as a controller",
        ("start",),
        START_PHASES,
        "Give the controllers ids (node.id) that no broker has, empty their log folders and format them again.",
        "KIP-866; KRaftConfig node.id; S§7.2",
    ),
    check(
        "START-12",
        "No reassignment, election or topic deletion is in progress",
        ("start",),
        START_PHASES,
        "Wait until these operations have finished. The load does not migrate requests under /admin or topics that are being deleted.",
        "ZkMigrationClient; KAFKA-15605; S§4.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "START-13",
        "Every configuration, quota and SCRAM credential can be loaded and written back",
        ("start",),
        START_PHASES,
        "Correct the znodes listed with kafka-configs.sh: one value that cannot be parsed aborts the load. A quota of an unknown name, or "
        "with a fraction where Kafka wants a whole number, is loaded, but the full sync after the load never ends: the brokers get no "
        "metadata.",
        "ZkConfigMigrationClient, KRaftMigrationZkWriter.handleClientQuotasSnapshot; S§4.2, S§5.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-14",
        "Every ACL can be loaded",
        ("start",),
        START_PHASES,
        "Correct the znodes listed with kafka-acls.sh.",
        "AclEntry.fromBytes; S§1.4",
        needs=ZOOKEEPER_ONLY,
    ),
    optional(
        check(
            "START-15",
            "The controllers can decode the brokers' passwords, and KRaft may store them in clear text",
            ("start",),
            START_PHASES,
            "Set the brokers' password.encoder.secret on every controller: without it Kafka takes the ciphertext for "
            "the password. KRaft stores the decoded passwords in clear text. Either protect the controllers' log "
            "folders and accept this with properties.clear_text_passwords_accepted, or move the passwords to the "
            "brokers' property files first.",
            "KIP-866; KAFKA-14801; ControllerServer, PasswordEncoder; S§1.5",
            needs=ZOOKEEPER_ONLY,
        )
    ),
    check(
        "START-16",
        "Every partition has a live leader",
        ("start",),
        START_PHASES,
        "Start the brokers of the partitions listed before the migration: the load copies a partition without a "
        "leader as it is.",
        "KIP-866; S§7.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-17",
        "This Kafka release has no known migration defect that a later release fixes",
        ("start",),
        START_PHASES,
        "Upgrade the brokers and controllers to the newest 3.9 release before the migration starts.",
        "S§12.2",
        severity="warning",
    ),
    check(
        "START-18",
        "/controller_epoch exists and is a number",
        ("start",),
        START_PHASES,
        "Start a broker in ZooKeeper mode. It becomes the controller and writes the znode. Without /controller_epoch "
        "no KRaft controller can claim ZooKeeper.",
        "KafkaZkClient.getControllerEpoch; S§4.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-19",
        "No configuration exists that stops the first full sync",
        ("start",),
        WAITING,
        "Delete the client metrics subscriptions listed. With them, dual write never begins.",
        "ZkConfigMigrationClient; S§5.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-20",
        "Kafka can read every znode that the load or a starting broker reads",
        ("start",),
        START_PHASES,
        "Correct the znodes listed. On some of them the load fails again and again; others, ACLs among them, it "
        "silently skips. A broker does not start with a /feature that it cannot read.",
        "ZkMigrationClient, ZkData decoders; FeatureZNode; S§4.2, S§9.1, S§11",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-21",
        "Every partition has all its replicas in sync",
        ("start",),
        START_PHASES,
        "Start the brokers listed, or wait until they have caught up. With fewer copies, one more fault during the "
        "migration can cost data.",
        "KIP-866, Broker Presence; S§7.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "START-22",
        "No load has broken off",
        ("start",),
        WAITING,
        "Until a load ends, ZooKeeper's brokers have no controller: nobody elects leaders. Search the controllers' logs for "
        "“Aborted metadata migration from ZooKeeper to KRaft”: the error beside it names what the load could not read or "
        "write. Correct that, then start the controllers that stopped: the next leader loads again. If you cannot, go back: "
        "stop all controllers, then delete /controller and /migration in ZooKeeper.",
        "KRaftMigrationDriver.MigrateMetadataEvent; QuorumController.abortMigration; S§4.3",
        needs=KRAFT_ONLY,
    ),
)
