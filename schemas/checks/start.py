"""START checks: may the migration begin (S§7.2)."""

from __future__ import annotations

from schemas.checks.check import KRAFT_ONLY, START_PHASES, WAITING, ZOOKEEPER_ONLY, Check, Phase, check, optional

CHECKS: tuple[Check, ...] = (
    check(
        "START-01",
        "Every broker in ZooKeeper is registered with the controllers as ready to migrate",
        ("start",),
        START_PHASES,
        "Restart the brokers named with zookeeper.metadata.migration.enable=true and the controllers' quorum settings; where "
        "none is running, start them.",
        "KIP-866, Broker Registration; KRaftMigrationDriver.areZkBrokersReadyForMigration",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-02",
        "Every broker that holds replicas is running and registered as ready to migrate",
        ("start",),
        START_PHASES,
        "Bring the brokers named back with the migration enabled, or move their replicas elsewhere and wait for the "
        "reassignment to finish: the migration waits for them for ever.",
        "KIP-866, Broker Presence; ZkMigrationLeadershipState",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-03",
        "Every topic has a topic id",
        ("start",),
        START_PHASES,
        "Raise inter.broker.protocol.version to 2.8 or later and restart, so that the controller assigns topic ids.",
        "ZkTopicMigrationClient (None.get); S§7.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-04",
        "Every assigned partition has a state znode that can be parsed",
        ("start",),
        START_PHASES,
        "Recreate the state znodes (trigger a leader election or reassign the partitions named): the load would invent "
        "their state.",
        "TopicPartitionStateZNode; S§4.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-05",
        "Every controller is registered with the migration enabled",
        ("start",),
        WAITING,
        "Set zookeeper.metadata.migration.enable=true on the controllers named and restart them.",
        "KIP-919; RegisterControllerRecord",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-06",
        "metadata.version is high enough for what is to be loaded",
        ("start",),
        WAITING,
        "Raise inter.broker.protocol.version of the brokers and format the controllers with the same "
        "metadata.version: below 3.6-IV1 a load that dies stays half done, below 3.5-IV2 SCRAM credentials and "
        "below 3.6-IV2 delegation tokens are lost at the next snapshot.",
        "KIP-866; MetadataVersion; KAFKA-17457; S§2.6",
    ),
    check(
        "START-07",
        "/migration is absent or untouched when a new quorum is to load ZooKeeper",
        ("start",),
        frozenset({Phase.WAITING, Phase.ZOOKEEPER, Phase.ROLLED_BACK}),
        "Stop the controllers at once. Delete /migration (and /controller if a KRaft controller left it) in ZooKeeper, "
        "format the controllers anew, then start again: this quorum would skip the load and empty ZooKeeper.",
        "KAFKA-17146, KAFKA-19480; KRaftMigrationDriver, MigrationZNode; S§4.1",
        needs=ZOOKEEPER_ONLY,
        severity="critical",
    ),
    check(
        "START-08",
        "No other controller's claim of ZooKeeper stands in the way",
        ("start",),
        START_PHASES,
        "If no KRaft controller of this quorum runs, delete /controller; else its claim is refused until the "
        "quorum's epoch exceeds the one stored there.",
        "KIP-866, Controller Claim; KafkaZkClient.tryRegisterKRaftControllerAsActiveController; S§4.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-09",
        "The controllers were started to migrate",
        ("start",),
        START_PHASES,
        "Format new controllers and start them with zookeeper.metadata.migration.enable=true from the first start "
        "on: a log that began without it never migrates.",
        "KIP-866; FeatureControlManager, ActivationRecordsGenerator; S§4.1",
    ),
    check(
        "START-10",
        "Every migrating broker's protocol version is the controllers' metadata.version",
        ("start",),
        WAITING,
        "Set inter.broker.protocol.version of the brokers named to the cluster's metadata.version and restart them.",
        "KIP-866; KIP-584; KafkaServer; S§9.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-11",
        "No broker has the id of a controller",
        ("start",),
        START_PHASES,
        "Give the controllers ids that no broker has (node.id), and format them anew.",
        "KIP-866; KRaftConfig node.id; S§7.2",
    ),
    check(
        "START-12",
        "Nothing is under way: no reassignment, election or deletion",
        ("start",),
        START_PHASES,
        "Let it finish first: what is asked for under /admin is not migrated, and a topic being deleted is not either.",
        "ZkMigrationClient; KAFKA-15605; S§4.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
    check(
        "START-13",
        "Every configuration, quota and SCRAM credential can be loaded",
        ("start",),
        START_PHASES,
        "Correct the znodes named with kafka-configs: one value that can't be parsed aborts the load.",
        "ZkConfigMigrationClient; S§4.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-14",
        "Every ACL can be loaded",
        ("start",),
        START_PHASES,
        "Correct the znodes named with kafka-acls.",
        "AclEntry.fromBytes; S§1.4",
        needs=ZOOKEEPER_ONLY,
    ),
    optional(
        check(
            "START-15",
            "The controllers can decode the brokers' passwords, and KRaft may hold them in clear text",
            ("start",),
            START_PHASES,
            "Set password.encoder.secret of the brokers on every controller: without it ciphertext is taken for the password. "
            "KRaft holds what is decoded in clear text: protect the controllers' log folders, then say that this is accepted "
            "(properties.clear_text_passwords_accepted), or move the passwords to the brokers' property files first.",
            "KIP-866; KAFKA-14801; ControllerServer, PasswordEncoder; S§1.5",
            needs=ZOOKEEPER_ONLY,
        )
    ),
    check(
        "START-16",
        "Every partition has a leader that is there",
        ("start",),
        START_PHASES,
        "Bring the brokers of the partitions named back first: the load copies a partition without a leader as it is.",
        "KIP-866; S§7.2",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-17",
        "This Kafka release has no known migration defect that a later one repairs",
        ("start",),
        START_PHASES,
        "Upgrade the brokers and controllers to the newest 3.9 release before the migration starts.",
        "S§12.2",
        severity="warning",
    ),
    check(
        "START-18",
        "/controller_epoch is there and is a number",
        ("start",),
        START_PHASES,
        "Start a ZooKeeper broker so that it becomes the controller and writes it: without it no KRaft controller "
        "can claim ZooKeeper.",
        "KafkaZkClient.getControllerEpoch; S§4.5",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-19",
        "No configuration of a kind that stops the first full sync",
        ("start",),
        WAITING,
        "Delete the client metrics subscriptions named: dual writing would never begin.",
        "ZkConfigMigrationClient; S§5.2",
        needs=KRAFT_ONLY,
    ),
    check(
        "START-20",
        "Every znode that the load or a broker's start reads holds what Kafka can read",
        ("start",),
        START_PHASES,
        "Correct the znodes named: the load fails on some of them, again and again, and leaves others out without a word, "
        "access control lists among them. Brokers do not start with a /feature that they can't read.",
        "ZkMigrationClient, ZkData decoders; FeatureZNode; S§4.2, S§9.1, S§11",
        needs=ZOOKEEPER_ONLY,
    ),
    check(
        "START-21",
        "Every partition has all its replicas in sync",
        ("start",),
        START_PHASES,
        "Bring the brokers named back, or wait until they have caught up: the fewer copies there are, the less the migration "
        "can afford another fault.",
        "KIP-866, Broker Presence; S§7.2",
        needs=ZOOKEEPER_ONLY,
        severity="warning",
    ),
)
