"""CONF checks: do the nodes' property files let them migrate (KIP-866)."""

from __future__ import annotations

from schemas.checks.check import DURING, FINALIZED, IN_KRAFT, KRAFT_ONLY, START_PHASES, Check, check, optional

CHECKS: tuple[Check, ...] = (
    optional(
        check(
            "CONF-01",
            "Every controller's configuration allows the migration",
            ("start",),
            START_PHASES,
            "Correct the files listed and restart those controllers. Do this before you restart any broker for the "
            "migration.",
            "KIP-866, Migration Configuration; KafkaConfig.validateValues",
            needs=frozenset(),
        )
    ),
    optional(
        check(
            "CONF-02",
            "Every broker's configuration allows the migration",
            ("start",),
            START_PHASES,
            "Correct the files listed before you restart those brokers for the migration. With most of these mistakes "
            "Kafka refuses to start; with the others it waits for the broker forever.",
            "KIP-866, Migration Configuration; KafkaConfig.validateValues; KAFKA-16468",
            needs=frozenset(),
        )
    ),
    optional(
        check(
            "CONF-03",
            "Brokers and controllers name the same ZooKeeper, the same quorum and the same protocol",
            ("start",),
            START_PHASES,
            "Set zookeeper.connect (servers and chroot), controller.quorum.voters and inter.broker.protocol.version "
            "to the same values in all files. The protocol must equal the cluster's metadata.version.",
            "KIP-866, Migration Configuration; ControllerRegistration; S§7.2",
            needs=frozenset(),
        )
    ),
    optional(
        check(
            "CONF-04",
            "Every controller's file keeps the migration enabled while brokers are in ZooKeeper mode",
            ("dual_write", "finalize", "rollback"),
            DURING,
            "Do not restart those controllers yet. Set zookeeper.metadata.migration.enable=true and zookeeper.connect "
            "in the files listed first. The first of these controllers to become leader finalises the migration, and "
            "there is no way back.",
            "KIP-866, Failure Modes; KRaftMigrationDriver; S§7.4",
            needs=frozenset(),
        )
    ),
    optional(
        check(
            "CONF-05",
            "No controller has the migration enabled after finalising",
            (),
            FINALIZED,
            "Remove zookeeper.metadata.migration.enable and zookeeper.connect from the files of the controllers listed and "
            "restart them, before you shut ZooKeeper down. A controller that has the flag connects to ZooKeeper when it "
            "starts, and does not start without it; as the leader, it still registers brokers in ZooKeeper mode.",
            "KIP-866, Failure Modes; RegisterControllerRecord.ZkMigrationReady; S§12.4",
            needs=KRAFT_ONLY,
            severity="warning",
        )
    ),
    optional(
        check(
            "CONF-06",
            "No property file has a key that Kafka 4 removed, or a value that it does not take",
            (),
            IN_KRAFT,
            "Remove the keys listed from the files: Kafka 4 does not support them, and the features they enabled are "
            "off. Correct the values listed: a node does not start with one that is too small (from 4.0 to 4.2 on), nor with an "
            "empty one or an empty member (from 4.2 on).",
            "Upgrading to 4.0, Kafka's documentation; KIP-833; KIP-1030; KIP-1161; AbstractKafkaConfig; S§8.6",
            needs=frozenset(),
            severity="warning",
        )
    ),
)
