"""CONF checks: do the nodes' property files let them migrate (KIP-866)."""

from __future__ import annotations

from schemas.checks.check import DURING, FINALIZED, IN_KRAFT, KRAFT_ONLY, START_PHASES, Check, check, optional

CHECKS: tuple[Check, ...] = (
    optional(
        check(
            "CONF-01",
            "Every controller's configuration lets it migrate",
            ("start",),
            START_PHASES,
            "Correct the files named and restart those controllers before any broker is restarted for the migration.",
            "KIP-866, Migration Configuration; KafkaConfig.validateValues",
            needs=frozenset(),
        )
    ),
    optional(
        check(
            "CONF-02",
            "Every broker's configuration lets it migrate",
            ("start",),
            START_PHASES,
            "Correct the files named before those brokers are restarted for the migration: Kafka refuses to start with "
            "most of these, and waits for the broker for ever with the others.",
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
            "Make zookeeper.connect (servers and chroot), controller.quorum.voters and inter.broker.protocol.version the "
            "same in all files, and the protocol that of the cluster's metadata.version.",
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
            "Set zookeeper.metadata.migration.enable=true and zookeeper.connect in the files named before those "
            "controllers restart: the first of them that becomes leader finalises the migration, and there is no way back.",
            "KIP-866, Failure Modes; KRaftMigrationDriver; S§7.4",
            needs=frozenset(),
        )
    ),
    check(
        "CONF-05",
        "No controller has the migration enabled after finalising",
        (),
        FINALIZED,
        "Take zookeeper.metadata.migration.enable and zookeeper.connect out of the controllers named and restart them: "
        "Kafka ignores both by now, and a release after 3.9 does not start with them.",
        "KIP-866, Failure Modes; RegisterControllerRecord.ZkMigrationReady; S§12.4",
        needs=KRAFT_ONLY,
        severity="warning",
    ),
    optional(
        check(
            "CONF-06",
            "No property file has a key that Kafka 4 dropped",
            (),
            IN_KRAFT,
            "Take the keys named out of the files: Kafka 4 does not know them, and what they were to switch on is off.",
            "Upgrading to 4.0, Kafka's documentation; KIP-833; S§8.6",
            needs=frozenset(),
            severity="warning",
        )
    ),
)
